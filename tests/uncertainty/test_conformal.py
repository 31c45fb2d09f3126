"""`ConformalLDL`: coverage by simulation, bounds by brute force, and what happens where there is too little data."""

import os

import numpy as np
import pandas as pd
import pytest
from scipy.special import rel_entr, softmax
from sklearn import config_context
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skldl import SABFGS, MeanDistribution
from skldl.data import load_dataset
from skldl.exceptions import DataError, LabelMismatchError, LengthMismatchError, ParameterError
from skldl.uncertainty import ConformalLDL, TooFewCalibrationRowsWarning

WEIGHTS = np.random.default_rng(9).normal(size=(4, 3))
LINEAR = SABFGS(alpha=1e-3, fit_intercept=True)
SCALE = np.array([0.3, 0.2, 0.1])
SCORES = {
    "total_variation": lambda D, P: 0.5 * np.abs(D - P).sum(axis=1),
    "kullback_leibler": lambda D, P: rel_entr(D, P).sum(axis=1),
    "label": lambda D, P: (np.abs(D - P) / SCALE).max(axis=1),
}


def draw(seed, n, *, groups=None, noise=20.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    scores = X @ WEIGHTS
    if groups is not None:
        scores = scores + rng.normal(size=(groups.max() + 1, 3))[groups]
    concentration = softmax(scores, axis=1) * np.broadcast_to(noise, n)[:, None]
    D = np.maximum(rng.standard_gamma(concentration), 1e-12)
    return X, D / D.sum(axis=1, keepdims=True)


def coverage(n_draws, n_fit, *, level=0.9, n_test=200, **options):
    fractions = []
    for seed in range(n_draws):
        X, D = draw(seed, n_fit + n_test)
        model = ConformalLDL(LINEAR, random_state=seed, **options).fit(X[:n_fit], D[:n_fit])
        region = model.predict_region(X[n_fit:], level)
        inside = region.contains(D[n_fit:])
        fractions.append(inside.mean())
        assert (D[n_fit:][inside] >= region.lower[inside] - 1e-9).all()
        assert (D[n_fit:][inside] <= region.upper[inside] + 1e-9).all()
    return float(np.mean(fractions))


@pytest.fixture
def calibrated(as_given):
    """A model that predicts its features, with calibration scores, scales of the labels and groups of choice."""

    def make(score, scores, scale=1.0, groups=None):
        rows = np.full((1, 3), 1 / 3)
        model = ConformalLDL(as_given.fit(rows, rows), method="prefit", conformity_score=score).fit(rows, rows)
        model.calibration_scores_, model.label_scale_, model.groups_ = np.array(scores), np.full(3, scale), groups
        return model

    return make


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize(("n_draws", "error"), [(40, 0.02), pytest.param(200, 0.01, marks=pytest.mark.slow)])
def test_split_has_the_coverage_of_its_level(score, n_draws, error):
    assert coverage(n_draws, 800, conformity_score=score) == pytest.approx(0.9, abs=error)


@pytest.mark.parametrize("score", ["total_variation", "label"])
def test_cross_validation_plus_comes_near_the_level(score):
    assert 0.88 <= coverage(25, 200, conformity_score=score, method="cv+") <= 0.94


def test_as_many_folds_as_rows_are_the_jackknife_plus():
    X, D = draw(0, 40)
    model = ConformalLDL(MeanDistribution(), method="cv+", n_folds=40, random_state=0).fit(X, D)
    expected = [0.5 * np.abs(D[i] - np.delete(D, i, 0).mean(axis=0)).sum() for i in range(40)]
    np.testing.assert_allclose(model.calibration_scores_, expected, atol=1e-12)


def test_the_ball_of_cv_plus_holds_the_region_itself():
    X, D = draw(0, 150)
    Xnew, _ = draw(1, 30)
    region = ConformalLDL(LINEAR, method="cv+", n_folds=5, random_state=0).fit(X, D).predict_region(Xnew, 0.8)
    rng = np.random.default_rng(0)
    n_inside = 0
    for _ in range(200):
        D_try = softmax(np.log(region.center) + rng.normal(scale=0.8, size=region.center.shape), axis=1)
        inside = region.contains(D_try)
        n_inside += inside.sum()
        assert (0.5 * np.abs(D_try - region.center).sum(axis=1)[inside] <= region.radius[inside] + 1e-12).all()
    assert n_inside > 100


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("radius", [0.0513, 0.3037, 0.9011])  # no point of the grid at the edge
@pytest.mark.parametrize("center", [[0.2, 0.3, 0.5], [0.02, 0.08, 0.9], [1 / 3, 1 / 3, 1 / 3]])
def test_bounds_against_a_search_over_the_simplex(calibrated, score, radius, center):
    steps = np.linspace(0, 1, 401)
    a, b = (grid.ravel() for grid in np.meshgrid(steps, steps))
    simplex = np.c_[a, b, 1 - a - b][a + b <= 1 + 1e-12].clip(0)
    centers = np.tile(center, (len(simplex), 1))
    region = calibrated(score, [radius], SCALE).predict_region(centers, 0.5)
    inside = SCORES[score](simplex, centers) <= radius
    np.testing.assert_array_equal(region.contains(simplex), inside)
    np.testing.assert_allclose(region.lower[0], simplex[inside].min(axis=0), atol=0.006)
    np.testing.assert_allclose(region.upper[0], simplex[inside].max(axis=0), atol=0.006)


@pytest.mark.parametrize("score", SCORES)
def test_the_centre_is_inside_of_every_region(calibrated, score):
    """Also where the cut by the simplex rounds: a width was -1e-16."""
    P = np.random.default_rng(0).dirichlet(np.ones(3), size=500)
    P *= 1 + np.random.default_rng(1).integers(-2, 3, size=(500, 1)) * 2.0**-53
    region = calibrated(score, [0.0], 0.1).predict_region(P, 0.5)
    assert (region.lower <= region.center).all()
    assert (region.upper >= region.center).all()


def test_bounds_of_the_divergence_where_a_label_has_no_mass(calibrated):
    region = calibrated("kullback_leibler", [0.1]).predict_region([[0.0, 0.0, 1.0]], 0.5)
    np.testing.assert_allclose(region.lower, [[0.0, 0.0, 1.0]])
    np.testing.assert_allclose(region.upper, [[0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    ("scores", "groups", "level", "radius"),
    [
        (range(1, 21), None, 0.9, 19.0),  # ⌈21 · 0.9⌉ = 19
        (range(1, 25), None, 0.56, 14.0),  # 25 · 0.56 is 14 up to rounding
        (range(1, 21), np.arange(20), 0.9, 19.0),  # groups of one row are rows
        ([1.0, 1.0, 5.0], np.array([0, 0, 1]), 0.6, 5.0),
    ],
)
def test_quantile_is_that_of_the_theorem(calibrated, scores, groups, level, radius):
    model = calibrated("label", [float(score) for score in scores], groups=groups)
    assert model.predict_region(np.full((1, 3), 1 / 3), level).radius[0] == radius


def test_coverage_within_each_stratum():
    fractions = []
    for seed in range(25):
        rng = np.random.default_rng(seed)
        hard = rng.integers(0, 2, size=1200)
        X, D = draw(seed, 1200, noise=np.where(hard, 3.0, 60.0))
        model = ConformalLDL(LINEAR, calibration_size=0.4, random_state=seed).fit(X[:900], D[:900], strata=hard[:900])
        inside = model.predict_region(X[900:], 0.9, strata=hard[900:]).contains(D[900:])
        fractions.append([inside[hard[900:] == s].mean() for s in (0, 1)])
    np.testing.assert_allclose(np.mean(fractions, axis=0), 0.9, atol=0.025)


def test_coverage_for_new_groups_needs_the_groups():
    with_groups, without = [], []
    for seed in range(25):
        groups = np.repeat(np.arange(60), 8)
        X, D = draw(seed, 480, groups=groups)
        X_new, D_new = draw(seed + 1000, 300, groups=np.arange(300))
        model = ConformalLDL(MeanDistribution(), calibration_size=0.5, random_state=seed)
        with_groups.append(model.fit(X, D, groups=groups).predict_region(X_new).contains(D_new).mean())
        without.append(model.fit(X, D).predict_region(X_new).contains(D_new).mean())
    assert np.mean(with_groups) >= 0.9
    assert np.mean(with_groups) > np.mean(without)


@pytest.mark.parametrize("adaptive", [True, LinearRegression()])
def test_adaptive_radii_are_larger_where_rows_are_harder(adaptive):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(1500, 2))
    D = np.maximum(rng.standard_gamma(np.where(X[:, :1] > 0, 2.0, 50.0) * np.ones((1, 3))), 1e-12)
    D /= D.sum(axis=1, keepdims=True)
    model = ConformalLDL(MeanDistribution(), adaptive=adaptive, n_folds=3, random_state=0).fit(X[:1000], D[:1000])
    region = model.predict_region(X[1000:])
    hard = X[1000:, 0] > 0
    assert region.radius[hard].mean() > 1.5 * region.radius[~hard].mean()
    assert 0.86 <= region.contains(D[1000:]).mean() <= 0.94


@pytest.mark.parametrize("n_votes", [5, 12, 50])
def test_true_distributions_behind_few_votes_have_narrower_regions(n_votes):
    outcomes = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(1500, 4))
        truth = softmax(X @ WEIGHTS + 0.5 * rng.normal(size=(1500, 3)), axis=1)
        counts = np.array([rng.multinomial(n_votes, row) for row in truth])
        D = counts / n_votes
        options = {"calibration_size": 0.4, "random_state": 0}
        given = ConformalLDL(LINEAR, **options).fit(X[:1000], D[:1000]).predict_region(X[1000:])
        true = ConformalLDL(LINEAR, covers="true", **options).fit(X[:1000], D[:1000], counts=counts[:1000])
        region = true.predict_region(X[1000:])
        inside = given.contains(D[1000:]).mean(), region.contains(truth[1000:]).mean()
        outcomes.append((*inside, region.radius.mean() / given.radius.mean()))
    covers_given, covers_true, ratio = np.mean(outcomes, axis=0)
    assert 0.88 <= covers_given <= 0.92
    assert 0.85 <= covers_true <= 0.95  # it rests on a posterior, so it is not exact
    assert ratio < 0.9


def test_too_few_rows_give_the_whole_simplex_and_a_warning():
    X, D = draw(0, 20)
    model = ConformalLDL(MeanDistribution(), random_state=0).fit(X, D)
    with pytest.warns(TooFewCalibrationRowsWarning, match="whole simplex"):
        region = model.predict_region(X, 0.99)
    assert np.isinf(region.radius).all()
    assert region.contains(D).all()
    np.testing.assert_array_equal(region.lower, 0.0)
    np.testing.assert_array_equal(region.upper, 1.0)


def test_frames_weights_and_names():
    X, D = draw(0, 200)
    frame, labels = pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(D, columns=["x", "y", "z"])
    model = ConformalLDL(LINEAR, random_state=0).fit(frame, labels, sample_weight=np.ones(200))
    assert list(model.estimator_.label_names_) == ["x", "y", "z"]
    region = model.predict_region(frame)
    np.testing.assert_allclose(region.center, model.predict(frame))
    assert region.contains(labels).mean() > 0.8
    with pytest.raises(DataError, match="shape"):
        region.contains(labels[:10])


def named(D):
    """Distributions in a DataFrame, and the same with the columns in another order."""
    frame = pd.DataFrame(D, columns=["x", "y", "z"])
    return frame, frame[["z", "x", "y"]]


def test_columns_of_distributions_and_votes_are_matched_by_name():
    X, D = draw(0, 300)
    labels, swapped = named(D)
    region = ConformalLDL(LINEAR, random_state=0).fit(X[:200], labels[:200]).predict_region(X[200:])
    assert list(region.label_names) == ["x", "y", "z"]
    np.testing.assert_array_equal(region.contains(swapped[200:]), region.contains(D[200:]))
    fitted = clone(LINEAR).fit(X[:100], labels[:100])
    for estimator in (fitted, make_pipeline(StandardScaler(), clone(LINEAR)).fit(X[:100], labels[:100])):
        model = ConformalLDL(estimator, method="prefit")
        by_place = model.fit(X[100:], D[100:]).calibration_scores_
        by_name = model.fit(X[100:], swapped[100:]).calibration_scores_
        np.testing.assert_allclose(by_name, by_place, atol=1e-12)  # sums of rows in another order
    votes = np.random.default_rng(0).multinomial(20, D)
    model = ConformalLDL(LINEAR, covers="true", random_state=0)
    by_place = model.fit(X, named(votes / 20)[0], counts=votes).calibration_scores_
    np.testing.assert_array_equal(
        model.fit(X, named(votes / 20)[0], counts=named(votes)[1]).calibration_scores_, by_place
    )


def test_labels_with_other_names_are_rejected():
    X, D = draw(0, 100)
    other = pd.DataFrame(D, columns=["a", "b", "c"])
    model = ConformalLDL(LINEAR, random_state=0).fit(X, named(D)[0])
    for use in (model.predict_region(X, 0.5).contains, lambda table: model.score(X, table)):
        with pytest.raises(LabelMismatchError, match="label 'x'"):
            use(other)
    with pytest.raises(LabelMismatchError, match="label 'x'"):
        ConformalLDL(model.estimator_, method="prefit").fit(X, other)
    with pytest.raises(LabelMismatchError, match="label 'x'"):
        model.set_params(covers="true").fit(X, named(D)[0], counts=other)


@pytest.mark.parametrize("method", ["split", "cv+", "prefit"])
@pytest.mark.parametrize("n_rows", [90, 110])
def test_x_and_y_of_different_lengths_are_rejected(method, n_rows):
    X, D = draw(0, 110)
    model = ConformalLDL(clone(LINEAR).fit(X, D), method=method)
    with pytest.raises(LengthMismatchError, match=f"X has {n_rows} rows and y has 100"):
        model.fit(X[:n_rows], D[:100])


def test_grid_search_chooses_by_the_score():
    X, D = draw(0, 200)
    labels, swapped = named(D)
    search = GridSearchCV(ConformalLDL(LINEAR, random_state=0), {"estimator__alpha": [100.0, 1e-3]}, cv=3)
    search.fit(X, labels)
    assert search.best_params_ == {"estimator__alpha": 1e-3}
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    model, weight = search.best_estimator_, np.linspace(1, 2, 200)
    assert model.score(X, swapped, weight) == pytest.approx(model.estimator_.score(X, swapped, weight))


def test_a_fit_that_fails_leaves_the_calibrated_model():
    X, D = draw(0, 100)
    model = ConformalLDL(LINEAR, method="cv+", n_folds=3, random_state=0).fit(X, D)
    before = model.predict_region(X).radius
    with pytest.raises(DataError, match="contains NaN"):
        model.fit(np.full_like(X, np.nan), D)
    np.testing.assert_array_equal(model.predict_region(X).radius, before)


@pytest.mark.parametrize("method", ["split", "cv+"])
def test_weights_reach_a_pipeline_with_and_without_metadata_routing(method):
    X, D = draw(0, 100)
    weight = np.linspace(0.1, 3.0, 100)

    plain = ConformalLDL(make_pipeline(StandardScaler(), LINEAR), method=method, random_state=0)
    weighted = plain.fit(X, D, sample_weight=weight).predict(X)
    assert np.abs(weighted - plain.fit(X, D).predict(X)).max() > 1e-4
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, clone(LINEAR).set_fit_request(sample_weight=True))
        routed = ConformalLDL(pipeline, method=method, random_state=0).fit(X, D, sample_weight=weight)
    np.testing.assert_array_equal(routed.predict(X), weighted)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "jackknife"}, "'split' or 'cv+' or 'prefit'"),
        ({"conformity_score": "cosine"}, "total_variation"),
        ({"method": "cv+", "conformity_score": "kullback_leibler"}, "split"),
        ({"method": "cv+", "adaptive": True}, "split"),
        ({"adaptive": "yes"}, "adaptive='yes' must be True or False or a regressor"),
        ({"calibration_size": 1.5}, "above 0 and below 1"),
        ({"n_folds": 1}, "at least 2"),
        ({"estimator": RandomForestRegressor()}, "label distribution learner"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ParameterError, match=message.replace("+", r"\+")):
        ConformalLDL(**{"estimator": LINEAR, **options}).fit(*draw(0, 40))


def test_bad_arguments():
    X, D = draw(0, 60)
    model = ConformalLDL(LINEAR, random_state=0)
    with pytest.raises(DataError, match=r"strata has shape \(3,\)"):
        model.fit(X, D, strata=[1, 2, 3])
    model.fit(X, D)
    with pytest.raises(DataError, match="no strata"):
        model.predict_region(X, strata=np.ones(60))
    with pytest.raises(ParameterError, match=r"level=1\.5"):
        model.predict_region(X, 1.5)
    model.fit(X, D, strata=np.arange(60) % 2)
    with pytest.raises(DataError, match="too"):
        model.predict_region(X, 0.5)
    with pytest.raises(DataError, match="needs counts"):
        ConformalLDL(LINEAR, covers="true").fit(X, D)
    with pytest.raises(DataError, match=r"counts has shape \(60, 2\), but needs \(60, 3\)"):
        ConformalLDL(LINEAR, covers="true").fit(X, D, counts=D[:, :2])
    with pytest.raises(DataError, match="infinity"):
        ConformalLDL(LINEAR, covers="true").fit(X, D, counts=np.full_like(D, np.inf))


def test_impossible_rows_are_covered_only_by_the_whole_simplex():
    X, D = np.zeros((40, 1)), np.tile([1.0, 0.0], (40, 1))
    model = ConformalLDL(
        MeanDistribution(), conformity_score="kullback_leibler", calibration_size=0.5, random_state=0
    ).fit(X, D)
    finite = model.predict_region(X[:2], 0.9)
    np.testing.assert_array_equal(finite.contains([[1.0, 0.0], [0.5, 0.5]]), [True, False])
    with pytest.warns(TooFewCalibrationRowsWarning):
        everything = model.predict_region(X[:2], 0.99)
    assert everything.contains([[1.0, 0.0], [0.5, 0.5]]).all()


def test_a_fitted_estimator_is_calibrated_as_it_is():
    X, D = draw(0, 900)
    fitted = make_pipeline(StandardScaler(), clone(LINEAR)).fit(X[:300], D[:300])
    model = ConformalLDL(fitted, method="prefit").fit(X[300:600], D[300:600])
    assert model.estimator_ is fitted
    assert model.n_calibration_ == 300
    expected = 0.5 * np.abs(D[300:600] - fitted.predict(X[300:600])).sum(axis=1)
    np.testing.assert_allclose(model.calibration_scores_, expected)
    assert 0.84 <= model.predict_region(X[600:]).contains(D[600:]).mean() <= 0.96
    with pytest.raises(NotFittedError):
        ConformalLDL(LINEAR, method="prefit").fit(X, D)
    with pytest.raises(ParameterError, match="split"):
        ConformalLDL(fitted, method="prefit", adaptive=True).fit(X, D)


def test_groups_and_strata_of_cv_plus_by_the_definition():
    X, D = draw(0, 60)
    groups, strata = np.repeat(np.arange(20), 3), np.repeat([0, 1], 30)
    model = ConformalLDL(MeanDistribution(), method="cv+", n_folds=5, random_state=0)
    model.fit(X, D, groups=groups, strata=strata)
    exceeding = np.zeros(60, dtype=int)
    for row in range(60):
        for other in np.flatnonzero(strata == strata[row]):
            member = model.fold_estimators_[model.folds_[other]]
            own = 0.5 * np.abs(D[row] - member.predict(X[[row]])[0]).sum()
            exceeding[row] += own > model.calibration_scores_[other] + 1e-12  # a row itself is no larger
    for limit in range(15, 30):  # in rows, of which each group has three: also where a sum of thirds is at the limit
        inside = model.predict_region(X, limit / 33, strata=strata).contains(D)
        np.testing.assert_array_equal(inside, exceeding < limit)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SBU_3DFE", "Yeast_spo5", "Natural_Scene"])
def test_split_covers_on_real_sets(name):
    if not os.environ.get("SKLDL_DATA"):
        pytest.skip("needs the data of the paper in SKLDL_DATA")
    data = load_dataset(name)
    fractions = []
    for seed in range(20):
        train, test = np.array_split(np.random.default_rng(seed).permutation(data.n_samples)[:1600], 2)
        model = ConformalLDL(LINEAR, random_state=seed).fit(data.X[train], data.D[train])
        fractions.append(model.predict_region(data.X[test]).contains(data.D[test]).mean())
    assert 0.88 <= np.mean(fractions) <= 0.92

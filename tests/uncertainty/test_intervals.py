"""Intervals that a model file keeps: coverage by simulation, the same regions as `ConformalLDL`, bad state."""

import numpy as np
import pytest
from scipy.special import softmax

from skldl import SABFGS
from skldl.uncertainty import ConformalLDL
from skldl.uncertainty._intervals import Intervals, coverage_of_folds  # not exported: for model files of tables

WEIGHTS = np.random.default_rng(9).normal(size=(4, 3))


def draw(seed, n_rows):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    D = rng.standard_gamma(20 * softmax(X @ WEIGHTS, axis=1)) + 1e-12
    return X, D / D.sum(axis=1, keepdims=True)


def coverage(n_draws):
    inside, near = [], []
    for seed in range(n_draws):
        X, D = draw(seed, 700)
        model = SABFGS(alpha=1e-3, fit_intercept=True).fit(X[:300], D[:300])
        P = model.predict(X[300:])
        lower, upper, radius = Intervals(D[300:500], P[:200], D[:300].std(axis=0)).around(P[200:], 0.9)
        inside.append(((lower <= D[500:]) & (D[500:] <= upper)).all(axis=1).mean())
        near.append((0.5 * np.abs(D[500:] - P[200:]).sum(axis=1) <= radius).mean())
    return [np.mean(inside), np.mean(near)]


@pytest.mark.parametrize(("n_draws", "error"), [(30, 0.02), pytest.param(200, 0.01, marks=pytest.mark.slow)])
def test_intervals_and_radius_cover(n_draws, error):
    np.testing.assert_allclose(coverage(n_draws), 0.9, atol=error)


def test_they_are_the_regions_of_split_conformal_prediction():
    X, D = draw(0, 300)
    model = ConformalLDL(SABFGS(alpha=1e-3), conformity_score="label", random_state=0).fit(X, D)
    region = model.predict_region(X[:20], 0.8)
    P = model.predict(X[:20])
    stored = Intervals(D[:0], np.empty((0, 3)), model.label_scale_)
    stored.box_scores_ = model.calibration_scores_
    lower, upper, _ = stored.around(P, 0.8)
    np.testing.assert_array_equal(lower, region.lower)
    np.testing.assert_array_equal(upper, region.upper)


def test_too_few_rows_give_the_whole_simplex():
    D = np.full((5, 2), 0.5)
    few = Intervals(D, D, np.ones(2))
    assert few.is_enough_for(0.8)
    assert not few.is_enough_for(0.9)
    lower, upper, radius = few.around(D[:1], 0.9)
    np.testing.assert_array_equal(np.r_[lower[0], upper[0], radius], [0, 0, 1, 1, 1])


def test_groups_make_intervals_wider_where_their_rows_agree():
    rng = np.random.default_rng(0)
    shift = np.repeat(rng.uniform(-0.3, 0.3, 20), 30)
    D = np.c_[0.5 + shift, 0.5 - shift]
    P = np.full_like(D, 0.5)
    groups = np.repeat(np.arange(20), 30)
    rows, whole = Intervals(D, P, np.ones(2)), Intervals(D, P, np.ones(2), groups)
    assert whole.around(P[:1], 0.9)[2] >= rows.around(P[:1], 0.9)[2]
    assert not whole.is_enough_for(0.96)
    assert rows.is_enough_for(0.96)


def test_coverage_in_a_cross_validation():
    X, D = draw(0, 400)
    folds = np.arange(400) % 4
    P = np.empty_like(D)
    for fold in range(4):
        P[folds == fold] = SABFGS(alpha=1e-3).fit(X[folds != fold], D[folds != fold]).predict(X[folds == fold])
    inside, width = coverage_of_folds(D, P, folds, 0.9)
    assert 0.85 <= inside <= 0.95
    assert 0 < width < 1
    assert coverage_of_folds(D, P, folds, 0.5)[1] < width
    assert coverage_of_folds(D, P, folds, 0.9, groups=np.arange(400))[0] == pytest.approx(inside)


def test_every_group_counts_the_same_in_a_cross_validation():
    rng = np.random.default_rng(0)
    size = np.where(np.arange(400) % 2, 1, 9)  # large groups lie near the prediction, small ones scatter
    groups = np.repeat(np.arange(400), size)
    shift = np.repeat(rng.uniform(-0.4, 0.4, 400) * np.where(size == 1, 1.0, 0.1), size)
    D = np.c_[0.5 + shift, 0.5 - shift]
    P = np.full_like(D, 0.5)
    inside, _ = coverage_of_folds(D, P, groups % 5, 0.8, groups)
    assert 0.75 <= inside <= 0.85
    assert coverage_of_folds(D, P, groups % 5, 0.8)[1] < coverage_of_folds(D, P, groups % 5, 0.8, groups)[1]


def votes_of(seed, n_rows, n_votes=10):
    X, truth = draw(seed, n_rows)
    return X, truth, np.random.default_rng(seed).multinomial(n_votes, truth).astype(float)


def test_intervals_for_the_truth_cover_it_and_are_narrower():
    inside, near, ratio = [], [], []
    for seed in range(20):
        X, truth, counts = votes_of(seed, 700)
        D = counts / 10
        P = SABFGS(alpha=1e-3, fit_intercept=True).fit(X[:300], D[:300]).predict(X[300:])
        scale = D[:300].std(axis=0)
        lower, upper, radius = Intervals.of_the_truth(counts[300:500], P[:200], scale).around(P[200:], 0.9)
        inside.append(((lower <= truth[500:]) & (truth[500:] <= upper)).all(axis=1).mean())
        near.append((0.5 * np.abs(truth[500:] - P[200:]).sum(axis=1) <= radius).mean())
        ratio.append(radius[0] / Intervals(D[300:500], P[:200], scale).around(P[:1], 0.9)[2][0])
    assert 0.88 <= np.mean(inside) <= 0.96
    assert 0.88 <= np.mean(near) <= 0.96
    assert np.mean(ratio) < 0.9  # the fractions of ten votes scatter more than what is behind them


@pytest.mark.parametrize("grouped", [False, True])
def test_they_are_the_regions_for_the_truth_of_conformal_prediction(grouped):
    X, _, counts = votes_of(0, 300)
    D, groups = counts / 10, np.arange(200) // 4 if grouped else None
    fitted = SABFGS(alpha=1e-3).fit(X[:100], D[:100])
    model = ConformalLDL(fitted, method="prefit", conformity_score="label", covers="true", random_state=0)
    region = model.fit(X[100:], D[100:], groups=groups, counts=counts[100:]).predict_region(X[:20], 0.8)
    P = fitted.predict(X)
    stored = Intervals.of_the_truth(
        counts[100:], P[100:], np.ones(3), groups, np.random.RandomState(0).randint(2**31 - 1)
    )
    assert stored.n_rows_ == 200
    stored._check_fitted_state()
    lower, upper, _ = stored.around(P[:20], 0.8)
    np.testing.assert_array_equal(lower, region.lower)
    np.testing.assert_array_equal(upper, region.upper)


def test_many_calibration_rows_get_fewer_draws_each():
    P, votes = np.full((5000, 2), 0.5), np.full((5000, 2), 3.0)
    assert len(Intervals.of_the_truth(votes, P, np.ones(2)).box_scores_) == 20_000


@pytest.mark.parametrize(
    ("name", "value"),
    [("box_scores_", np.zeros(3)), ("label_scale_", "x"), ("n_rows_", 7), ("n_rows_", None), ("groups_", [0])],
)
def test_damaged_state_is_rejected(name, value):
    D = np.full((5, 2), 0.5)
    intervals = Intervals(D, D, np.ones(2))
    intervals._check_fitted_state()
    setattr(intervals, name, value)
    with pytest.raises(ValueError, match="calibration"):
        intervals._check_fitted_state()

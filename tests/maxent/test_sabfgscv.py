"""SABFGSCV: the choice of alpha against a plain loop, data as they come, splitters, the common checks."""

import warnings

import numpy as np
import pytest
from joblib import parallel_config
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.preprocessing import StandardScaler

from skldl import SABFGS, SABFGSCV, MeanDistribution
from skldl.chunks import ArrayRows
from skldl.metrics import kullback_leibler
from skldl.testing import check_estimator, make_distributions


def test_common_checks():
    check_estimator(SABFGSCV(alphas=[1e-3, 1e-1, 10.0], cv=3))


def test_scores_are_those_of_a_plain_loop():
    X, D = make_distributions(60, 5, 3)
    X = X * [1.0, 10.0, 1e-3, 5.0, 1e4]
    alphas = [1e-4, 1e-2, 1.0]
    folds = KFold(4)
    model = SABFGSCV(alphas, cv=folds).fit(X, D)
    for column, (train, test) in enumerate(folds.split(X)):
        scaler = StandardScaler().fit(X[train])
        for row, alpha in enumerate(alphas):
            single = SABFGS(alpha, fit_intercept=True, tol=1e-12).fit(scaler.transform(X[train]), D[train])
            expected = kullback_leibler(D[test], single.predict(scaler.transform(X[test])))
            assert model.cv_scores_[row, column] == pytest.approx(expected, abs=1e-4)
    assert model.alpha_ == alphas[model.cv_scores_.mean(axis=1).argmin()]
    scaler = StandardScaler().fit(X)
    final = SABFGS(model.alpha_, fit_intercept=True, tol=1e-12).fit(scaler.transform(X), D)
    np.testing.assert_allclose(model.predict(X), final.predict(scaler.transform(X)), atol=1e-4)


def test_coefficients_apply_to_raw_features():
    X, D = make_distributions(60, 3, 3)
    X = X * [1e6, 1.0, 1e-6]
    model = SABFGSCV().fit(X, D)
    scores = X @ model.coef_.T + model.intercept_
    P = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict(X), P / P.sum(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(model.predict(X), SABFGSCV().fit(X / [1e6, 1.0, 1e-6], D).predict(X / [1e6, 1.0, 1e-6]))


@pytest.mark.parametrize("n_features", [5, 60])
def test_sparse_equals_dense(n_features):
    X, D = make_distributions(40, n_features, 3)
    X = np.where(X < 0.6, 0.0, X)
    dense, thin = SABFGSCV(cv=3).fit(X, D), SABFGSCV(cv=3).fit(sparse.csr_matrix(X), D)
    assert thin.alpha_ == dense.alpha_
    np.testing.assert_allclose(thin.cv_scores_, dense.cv_scores_, atol=1e-8)
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-6)


def test_noise_is_predicted_by_the_mean():
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(60, 80)), rng.dirichlet(np.ones(4), size=60)
    model = SABFGSCV().fit(X, D)
    assert model.alpha_ >= 1
    np.testing.assert_allclose(model.predict(X), MeanDistribution().fit(X, D).predict(X), atol=0.05)


def test_largest_default_alpha_is_the_mean():
    X, D = make_distributions(100, 20, 5)
    model = SABFGSCV(alphas=[1e3]).fit(X, D)
    np.testing.assert_allclose(model.predict(X), MeanDistribution().fit(X, D).predict(X), atol=5e-3)


def test_one_standard_error_takes_a_larger_alpha():
    X, D = make_distributions(80, 6, 3, random_state=1)
    best, careful = SABFGSCV().fit(X, D), SABFGSCV(one_standard_error=True).fit(X, D)
    np.testing.assert_array_equal(best.cv_scores_, careful.cv_scores_)
    means = best.cv_scores_.mean(axis=1)
    row = int(means.argmin())
    bound = means[row] + best.cv_scores_[row].std(ddof=1) / np.sqrt(5)
    assert careful.alpha_ == best.alphas_[means <= bound].max()
    assert careful.alpha_ > best.alpha_


def test_single_split_has_no_standard_error():
    X, D = make_distributions(80, 6, 3)
    split = ShuffleSplit(1, random_state=0)
    assert SABFGSCV(cv=split, one_standard_error=True).fit(X, D).alpha_ == SABFGSCV(cv=split).fit(X, D).alpha_


def test_groups_stay_together():
    X, D = make_distributions(60, 3, 3)
    groups = np.repeat(np.arange(10), 6)
    model = SABFGSCV(cv=GroupKFold(5)).fit(X, D, groups=groups)
    pairs = list(GroupKFold(5).split(X, D, groups))
    np.testing.assert_array_equal(model.cv_scores_, SABFGSCV(cv=pairs).fit(X, D).cv_scores_)
    masks = [(np.isin(np.arange(60), train), np.isin(np.arange(60), test)) for train, test in pairs]
    np.testing.assert_array_equal(model.cv_scores_, SABFGSCV(cv=masks).fit(X, D).cv_scores_)


def test_rows_without_weight_leave_splits_and_groups_in_place():
    X, D = make_distributions(60, 3, 3)
    weight = np.where(np.arange(60) % 7 == 0, 0.0, 1.0 + np.arange(60) % 3)
    kept = weight > 0
    groups = np.repeat(np.arange(10), 6)
    expected = SABFGSCV(cv=GroupKFold(5)).fit(X[kept], D[kept], sample_weight=weight[kept], groups=groups[kept])
    pairs = list(GroupKFold(5).split(X[kept], D[kept], groups[kept]))
    original = np.flatnonzero(kept)
    pairs = [(original[train], np.append(original[test], 0)) for train, test in pairs]
    for model in (
        SABFGSCV(cv=GroupKFold(5)).fit(X, D, sample_weight=weight, groups=groups),
        SABFGSCV(cv=pairs).fit(X, D, sample_weight=weight),
    ):
        np.testing.assert_allclose(model.cv_scores_, expected.cv_scores_, rtol=1e-12)


def test_folds_in_parallel_give_the_same():
    X, D = make_distributions(60, 3, 3)
    alone = SABFGSCV().fit(X, D)
    with parallel_config("threading"):
        together = SABFGSCV(n_jobs=2).fit(X, D)
    np.testing.assert_array_equal(alone.cv_scores_, together.cv_scores_)


def test_zero_is_an_alpha_too():
    X, D = make_distributions(200, 3, 3)
    model = SABFGSCV(alphas=[0.0, 1e3]).fit(X, D)
    assert model.alpha_ == 0
    np.testing.assert_allclose(model.predict(X), SABFGS(fit_intercept=True).fit(X, D).predict(X), atol=1e-4)


def test_constant_features_get_no_weight():
    X, D = make_distributions(50, 3, 3)
    model = SABFGSCV().fit(np.column_stack([X, np.full(50, 0.1)]), D)
    np.testing.assert_array_equal(model.coef_[:, 3], 0.0)


def test_warning_names_the_parameter():
    X, D = make_distributions()
    with pytest.warns(ConvergenceWarning, match=r"SABFGSCV with alpha=.* stopped at max_iter=2"):
        SABFGSCV(max_iter=2).fit(X, D)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alphas": []}, "alphas=.* at least one item"),
        ({"alphas": [1.0, -1.0]}, r"alphas=\[1\.0, -1\.0\] must be"),
        ({"cv": 1}, "cv=1 must be a whole number of at least 2"),
        ({"cv": True}, "cv=True must be"),
        ({"cv": "five"}, "cv='five' must be a whole number"),
        ({"cv": 100}, "n_samples=40"),
        ({"tol": -1}, "tol=-1"),
        ({"max_iter": 0}, "max_iter=0"),
    ],
)
def test_invalid_parameters_are_rejected(settings, message):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=message):
        SABFGSCV(**settings).fit(X, D)


@pytest.mark.parametrize("name", ["SJAFFE", pytest.param("Natural_Scene", marks=pytest.mark.slow)])
def test_never_worse_than_the_mean_where_the_paper_overfits(name, paper_data):
    X, D = paper_data(name)
    divergences = []
    for test in np.array_split(np.arange(len(D)), 10):
        train = np.setdiff1d(np.arange(len(D)), test)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the comparison must hold without it, too
            models = SABFGSCV().fit(X[train], D[train]), MeanDistribution().fit(X[train], D[train])
        divergences.append([kullback_leibler(D[test], model.predict(X[test])) for model in models])
    ours, mean = np.mean(divergences, axis=0)
    assert ours < 0.9 * mean


@pytest.mark.slow
def test_never_worse_than_the_mean_on_movie(paper_data):
    X, D = paper_data("Movie")
    test = np.arange(len(D)) % 10 == 0
    model = SABFGSCV().fit(X[~test], D[~test])
    mean = MeanDistribution().fit(X[~test], D[~test])
    assert kullback_leibler(D[test], model.predict(X[test])) < kullback_leibler(D[test], mean.predict(X[test]))


class Splitter:
    """A splitter of one's own, which may do anything."""

    def __init__(self, *pairs):
        self.pairs = pairs

    def split(self, X, y=None, groups=None):
        yield from self.pairs

    def get_n_splits(self, X=None, y=None, groups=None):
        return len(self.pairs)


def test_rows_given_twice_count_twice():
    X, D = make_distributions()
    rows = np.arange(len(D))
    test, train = rows[:10], rows[10:]
    repeated = np.concatenate([train, train[:15]])
    found = SABFGSCV([0.1], cv=[(repeated, np.concatenate([test, test[:3]]))]).fit(X, D)
    weight = np.ones(len(D))
    weight[10:25] = 2
    weight[:3] = 2
    expected = SABFGSCV([0.1], cv=[(train, test)]).fit(X, D, weight)
    np.testing.assert_allclose(found.cv_scores_, expected.cv_scores_, rtol=1e-4)
    once = SABFGSCV([0.1], cv=[(train, test)]).fit(X, D)
    assert abs(found.cv_scores_[0, 0] - once.cv_scores_[0, 0]) > 1e-4


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([([0, 1, -1], [2])], "train of cv pair 0 holds row -1, but rows are numbered from 0 to"),
        ([([0, 1], [2]), ([0, 1], [400])], "test of cv pair 1 holds row 400"),
        ([([0, 1], [])], "test of cv pair 0 is empty"),
        ([([], [1])], "train of cv pair 0 is empty"),
        ([([0.5, 1.0], [2])], "row numbers"),
        ([(np.ones(7, dtype=bool), [2])], "a mask of"),
        ([([0], [1], [2])], "Item 0 of cv holds 3 parts"),
        ([], "holds no"),
        ([1, 2], "Item 0 of cv is 1: pass .train, test. pairs"),
        (Splitter(([0, 1, -1], [2])), "train of cv pair 0 holds row -1, but rows are numbered from 0 to"),
        (Splitter(([0, 1], [2]), ([0, 1], [400])), "test of cv pair 1 holds row 400"),
        (Splitter(([0, 1], [])), "test of cv pair 0 is empty"),
        (Splitter(([], [1])), "train of cv pair 0 is empty"),
        (Splitter((0, 1)), "train of cv pair 0 has shape"),
        (Splitter(3), "Item 0 of cv is 3"),
        (Splitter(), "holds no"),
        (1000, "cv=1000 folds need at least 1000 rows"),
    ],
)
def test_bad_pairs(cv, message):
    with pytest.raises(ValueError, match=message):
        SABFGSCV(cv=cv).fit(*make_distributions())


def test_pairs_among_rows_without_weight():
    X, D = make_distributions()
    weight = np.ones(len(D))
    weight[::4] = 0
    rows = np.arange(len(D))
    found = SABFGSCV([0.1], cv=[(rows[10:], rows[:10])]).fit(X, D, weight)
    kept = weight > 0
    places = np.flatnonzero(kept)
    pair = np.flatnonzero(places >= 10), np.flatnonzero(places < 10)
    np.testing.assert_allclose(found.cv_scores_, SABFGSCV([0.1], cv=[pair]).fit(X[kept], D[kept]).cv_scores_, rtol=1e-9)
    with pytest.raises(ValueError, match="test of cv pair 0 is empty"):
        SABFGSCV([0.1], cv=[(rows[10:], rows[:1])]).fit(X, D, weight)


def rare_and_binary(n=300):
    rng = np.random.default_rng(3)
    X = np.c_[rng.random((n, 6)) < 0.05, rng.normal(size=(n, 2)) * 50].astype(float)
    scores = np.c_[X[:, 0] + X[:, 6] / 50, X[:, 1], np.zeros(n)]
    D = np.exp(scores + 0.3 * rng.normal(size=(n, 3)))
    return X, D / D.sum(axis=1, keepdims=True)


def test_scaling_is_chosen_by_held_out_divergence():
    X, D = rare_and_binary()
    chosen = SABFGSCV().fit(X, D)
    fixed = {scaling: SABFGSCV(scaling=scaling).fit(X, D) for scaling in ("standard", "mixed", "raw")}
    least = {scaling: model.cv_scores_.mean(axis=1).min() for scaling, model in fixed.items()}
    assert chosen.scaling_ == min(("standard", "mixed"), key=least.get)
    np.testing.assert_array_equal(chosen.predict(X), fixed[chosen.scaling_].predict(X))
    assert least["mixed"] != least["standard"] != least["raw"]
    assert SABFGSCV().fit(X[:, 6:], D).scaling_ == "standard"  # nothing rare: both scalings are the same


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_a_feature_that_has_two_values_in_each_chunk_and_three_in_all_is_divided(form):
    X, D = make_distributions(90, 3, 4)
    X[:, 0] = np.arange(90) % 2 * np.where(np.arange(90) < 45, 1.0, 2.0)  # 0 and 1, then 0 and 2
    expected = SABFGSCV([0.1, 1.0], cv=3, scaling="standard").fit(X, D)
    found = SABFGSCV([0.1, 1.0], cv=3, scaling="mixed").fit(ArrayRows(form(X), D, chunk_rows=45))
    np.testing.assert_allclose(found.cv_scores_, expected.cv_scores_, rtol=1e-9)


def test_binary_features_are_not_divided_in_mixed_scaling():
    X, D = rare_and_binary()
    alphas = [0.1]
    mixed = SABFGSCV(alphas, scaling="mixed").fit(X, D)
    scaled = X / np.r_[np.ones(6), X[:, 6:].std(axis=0)]
    raw = SABFGSCV(alphas, scaling="raw").fit(scaled, D)
    np.testing.assert_allclose(mixed.predict(X), raw.predict(scaled), atol=1e-8)


def test_out_of_fold_predictions_are_those_of_the_folds():
    X, D = rare_and_binary()
    model = SABFGSCV(scaling="standard").fit(X, D)
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        fold = SABFGSCV([model.alpha_], scaling="standard", cv=2).fit(X[train], D[train])
        np.testing.assert_allclose(model.oof_predictions_[test], fold.predict(X[test]), atol=1e-3)
    divergence = kullback_leibler(D, model.oof_predictions_)
    assert divergence == pytest.approx(model.cv_scores_.mean(axis=1).min(), rel=1e-6)
    overlapping = [(np.arange(200), np.arange(200, 300)), (np.arange(100, 300), np.arange(90))]
    assert not hasattr(SABFGSCV(cv=overlapping).fit(X, D), "oof_predictions_")
    assert not hasattr(model.set_params(cv=overlapping).fit(X, D), "oof_predictions_")  # nor those of the fit before


def test_a_number_of_folds_keeps_groups_together():
    X, D = rare_and_binary(60)
    people = np.repeat(np.arange(60), 5)
    apart = SABFGSCV().fit(X[people], D[people])
    together = SABFGSCV().fit(X[people], D[people], groups=people)
    assert together.cv_scores_.mean(axis=1).min() > apart.cv_scores_.mean(axis=1).min()
    with pytest.raises(ValueError, match="one group"):
        SABFGSCV().fit(X, D, groups=np.zeros(60))


def test_unknown_scaling():
    with pytest.raises(ValueError, match="scaling='unit'"):
        SABFGSCV(scaling="unit").fit(*rare_and_binary(30))

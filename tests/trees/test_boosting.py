"""GradientBoostingLDL: rounds by hand, LightGBM's trees read back, folds, files."""

import importlib.util

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.tree import DecisionTreeRegressor

import skldl
from skldl.exceptions import NonFiniteError
from skldl.metrics import kullback_leibler
from skldl.testing import CHECKS, check_estimator, make_distributions
from skldl.trees import GradientBoostingLDL

X, D = make_distributions(150, 5, 4)
X_NEW = make_distributions(40, 5, 4, random_state=1)[0]
COPIES = "two copies of a row are drawn, and fall into folds, independently"
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, len(D))
NO_RANDOMNESS = {
    "learning_rate": 0.3,
    "max_leaf_nodes": 4,
    "min_samples_leaf": 5,
    "max_features": 1.0,
    "subsample": 1.0,
    "l2_regularization": 0.5,
    "random_splits": False,
    "random_state": 0,
}
needs_lightgbm = pytest.mark.skipif(importlib.util.find_spec("lightgbm") is None, reason="LightGBM is not installed")
ENGINES = ["sklearn", pytest.param("lightgbm", marks=needs_lightgbm)]


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def test_passes_the_common_checks(engine):
    expected = dict.fromkeys(
        (
            "check_weight_two_is_row_twice",
            "check_sample_weight_equivalence_on_dense_data",
            "check_sample_weight_equivalence_on_sparse_data",
        ),
        COPIES,
    )
    check_estimator(GradientBoostingLDL(5, n_folds=2, engine=engine), expected_failed_checks=expected)


@pytest.mark.parametrize("check", ["check_label_permutation", "check_deterministic"])
def test_passes_our_checks_with_default_folds(engine, check):
    CHECKS[check](GradientBoostingLDL(40, engine=engine))


def raw_predictions(model, rows):
    """The distributions that each model of the ensemble predicts, with the labels as they were given."""
    rows, order = np.asarray(rows, dtype=np.float32), np.argsort(model.label_order_)
    turns = 1 if model.engine_ == "sklearn" else D.shape[1]
    return [
        softmax(base + trees.total(rows, turns), axis=1)[:, order]
        for base, trees in zip(model.bases_, model.trees_, strict=True)
    ]


def group_held_out(model, groups, weight):
    """For each model of the ensemble the group that it did not see, found by the mean that it starts from."""
    means = np.array([np.average(D[groups != g], axis=0, weights=weight[groups != g]) for g in np.unique(groups)])
    starts = softmax(model.bases_, axis=1)[:, np.argsort(model.label_order_)]
    return [int(np.argmin(np.abs(means - start).max(axis=1))) for start in starts]


def test_rounds_of_vector_leaves_by_hand():
    """Gradients and Hessians from the softmax, one regression tree for all labels, leaves by Newton's step."""
    groups, n_rounds = np.arange(150) % 2, 4
    model = GradientBoostingLDL(n_rounds, n_folds=2, engine="sklearn", **NO_RANDOMNESS)
    model.fit(X, D, WEIGHT, groups=groups)
    w, expected = WEIGHT / WEIGHT.mean(), np.zeros(n_rounds + 1)
    for g in (0, 1):
        train, test = np.flatnonzero(groups != g), np.flatnonzero(groups == g)
        scores = np.tile(np.log(np.average(D[train], axis=0, weights=w[train])), (150, 1))
        for number in range(n_rounds + 1):
            P = softmax(scores, axis=1)
            expected[number] += w[test] @ (D[test] * np.log(D[test] / P[test])).sum(axis=1)
            gradient, hessian = P - D, 4 / 3 * P * (1 - P)
            mean_hessian = np.average(hessian[train], axis=0, weights=w[train])
            tree = DecisionTreeRegressor(max_leaf_nodes=4, min_samples_leaf=5, random_state=0)
            tree.fit(X[train], -gradient[train] / np.sqrt(mean_hessian), sample_weight=w[train])
            leaf = tree.apply(X)
            for number_of_leaf in np.unique(leaf[train]):
                inside = np.where((leaf == number_of_leaf) & (groups != g), w, 0.0)
                scores[leaf == number_of_leaf] -= 0.3 * (inside @ gradient) / (0.5 + inside @ hessian)
    np.testing.assert_allclose(model.oof_curve_, expected / w.sum(), atol=1e-8)


@needs_lightgbm
def test_one_round_of_lightgbm_has_newton_leaves():
    groups = np.arange(150) % 2
    model = GradientBoostingLDL(1, n_folds=2, engine="lightgbm", **NO_RANDOMNESS).fit(X, D, WEIGHT, groups=groups)
    assert model.n_iter_ == 1
    w, rows = WEIGHT / WEIGHT.mean(), X.astype(np.float32)
    for trees, unseen in zip(model.trees_, group_held_out(model, groups, w), strict=True):
        train = groups != unseen
        mean = np.average(D[train], axis=0, weights=w[train])
        h = 4 / 3 * mean * (1 - mean)
        for j, leaf in zip(model.label_order_, trees.leaves(rows[train]), strict=True):
            assert 2 <= len(set(leaf)) <= 4
            for number in set(leaf):
                inside = np.where(leaf == number, w[train], 0.0)
                step = inside @ (D[train][:, j] - mean[j]) / (0.5 + inside.sum() * h[j])
                assert trees.values[number, 0] == pytest.approx(0.3 * step, rel=1e-4)


def test_no_round_is_the_mean(engine):
    groups = np.arange(150) % 3
    model = GradientBoostingLDL(0, engine=engine, n_folds=3).fit(X, D, WEIGHT, groups=groups)
    assert model.n_iter_ == 0
    assert model.feature_importances_.tolist() == [0.0] * 5
    # each of three models predicts the mean of its training rows, and each row is in two of them
    np.testing.assert_allclose(model.predict(X[:1])[0], np.average(D, axis=0, weights=WEIGHT), atol=5e-3)
    for g in range(3):
        expected = np.average(D[groups != g], axis=0, weights=WEIGHT[groups != g])
        np.testing.assert_allclose(model.oof_predictions_[groups == g], np.tile(expected, (50, 1)), atol=1e-9)


def test_noise_alone_stops_at_the_mean(engine):
    rng = np.random.default_rng(0)
    model = GradientBoostingLDL(engine=engine, random_state=0)
    model.fit(rng.normal(size=(200, 3)), rng.dirichlet(5 * np.ones(3), 200))
    assert -model.oof_score_ > 0.98 * model.oof_curve_[0]
    assert len(model.oof_curve_) <= 1 + model.n_iter_ + model.patience + 10  # rounds are added ten at a time


@pytest.mark.parametrize("random_splits", [True, False])
@pytest.mark.parametrize("with_missing", [False, True])
def test_the_curve_is_that_of_the_out_of_fold_predictions(engine, random_splits, with_missing):
    """LightGBM computes the curve itself; the predictions come from its trees, read back."""
    features, groups = X.copy(), np.arange(150) % 3
    if with_missing:
        features[::5, 0] = np.nan
        features[(groups == 1) & (np.arange(150) % 2 > 0), 1] = (
            np.nan
        )  # not in the rows that the model without them saw
    features = np.column_stack([features, np.ones(150)])  # a feature that no tree can use
    model = GradientBoostingLDL(60, n_folds=3, engine=engine, random_splits=random_splits, random_state=0)
    model.fit(features, D, WEIGHT, groups=groups)
    assert model.n_iter_ == model.oof_curve_.argmin() > 5
    assert model.oof_curve_[model.n_iter_] == pytest.approx(-model.oof_score_, abs=1e-9)
    divergence = kullback_leibler(D, model.oof_predictions_, sample_weight=WEIGHT)
    assert -model.oof_score_ == pytest.approx(divergence, abs=1e-12)
    assert model.oof_score_ > -0.75 * model.oof_curve_[0]
    assert len(model.oof_curve_) <= 61


def test_zeros_in_the_distributions_have_a_finite_divergence(engine):
    model = GradientBoostingLDL(5, n_folds=2, engine=engine, random_state=0).fit(X, np.eye(4)[D.argmax(axis=1)])
    assert np.isfinite(model.oof_curve_).all()


def test_out_of_fold_predictions_come_from_the_model_that_did_not_see_the_row(engine):
    groups = np.arange(150) % 3
    model = GradientBoostingLDL(20, n_folds=3, engine=engine, random_state=0).fit(X, D, groups=groups)
    alone = raw_predictions(model, X)
    for P, unseen in zip(alone, group_held_out(model, groups, np.ones(150)), strict=True):
        np.testing.assert_allclose(model.oof_predictions_[groups == unseen], P[groups == unseen], atol=1e-12)
    np.testing.assert_allclose(model.predict(X), np.mean(alone, axis=0), atol=1e-12)


def test_groups_stay_together():
    groups = np.random.RandomState(0).randint(12, size=150)
    without_trees = GradientBoostingLDL(0, n_folds=4, engine="sklearn", random_state=0)
    held_out = without_trees.fit(X, D, groups=groups).oof_predictions_  # the mean of all rows outside the fold
    assert len(np.unique(held_out, axis=0)) == 4
    assert all(len(np.unique(held_out[groups == g], axis=0)) == 1 for g in range(12))
    assert len(without_trees.fit(X, D, groups=groups % 2).bases_) == 2
    copies = np.repeat(np.arange(15), 10)
    rng = np.random.default_rng(0)
    features, distributions = rng.normal(size=(15, 4))[copies], rng.dirichlet(np.ones(3), 15)[copies]
    model = GradientBoostingLDL(100, engine="sklearn", random_state=0)
    assert model.fit(features, distributions).oof_score_ > -0.1  # copies of each row are in the training rows
    assert model.fit(features, distributions, groups=copies).oof_score_ < -0.2


def test_rows_without_weight_are_predicted_by_all_models(engine):
    weight = (np.arange(150) % 3 > 0).astype(float)
    model = GradientBoostingLDL(10, engine=engine, random_state=0).fit(X, D, sample_weight=weight)
    fewer = GradientBoostingLDL(10, engine=engine, random_state=0).fit(X[weight > 0], D[weight > 0])
    np.testing.assert_allclose(model.oof_predictions_[weight > 0], fewer.oof_predictions_, atol=1e-12)
    np.testing.assert_allclose(model.oof_predictions_[weight == 0], model.predict(X[weight == 0]), atol=1e-12)


def test_missing_values_are_learnt_from(engine):
    rng = np.random.default_rng(0)
    features = rng.uniform(size=(300, 3))
    missing = rng.uniform(size=300) < 0.5
    features[missing, 1] = np.nan
    distributions = np.where(missing[:, None], [0.8, 0.2], [0.3, 0.7])
    model = GradientBoostingLDL(100, engine=engine, max_features=1.0, random_splits=False, random_state=0)
    np.testing.assert_allclose(model.fit(features, distributions).predict(features), distributions, atol=0.01)
    with pytest.raises(NonFiniteError):
        model.fit(np.where(np.isnan(features), np.inf, features), distributions)


def test_threads_and_blocks_change_nothing(engine, monkeypatch):
    expected = GradientBoostingLDL(20, engine=engine, random_state=0).fit(X, D)
    monkeypatch.setattr("skldl.trees._boosting.ROWS_AT_ONCE", 7)
    model = GradientBoostingLDL(20, engine=engine, random_state=0, n_jobs=2).fit(X, D)
    np.testing.assert_array_equal(model.oof_predictions_, expected.oof_predictions_)
    np.testing.assert_allclose(model.predict(X_NEW), expected.predict(X_NEW), atol=1e-14)


def test_importances_find_the_feature_that_matters(engine):
    distributions = np.column_stack([X[:, 2], 1 - X[:, 2]])
    model = GradientBoostingLDL(20, engine=engine, random_state=0).fit(X, distributions)
    assert model.feature_importances_.argmax() == 2
    assert model.feature_importances_.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("n_ones", [0, 1, 150])
def test_features_without_a_split_give_the_mean(engine, form, n_ones):
    """With a single one, the models of all folds but one see zeros alone."""
    features = np.zeros((150, 2))
    features[:n_ones, 0] = 1.0
    model = GradientBoostingLDL(5, engine=engine, n_folds=3, patience=2, random_state=0).fit(form(features), D, WEIGHT)
    np.testing.assert_allclose(model.predict(form(features[-1:]))[0], np.average(D, axis=0, weights=WEIGHT), atol=5e-3)
    assert model.feature_importances_.tolist() == [0.0, 0.0]


def test_tiny_sets(engine):
    one = GradientBoostingLDL(5, engine=engine).fit(X[:1], D[:1])
    np.testing.assert_allclose(one.predict(X_NEW[:1]), D[:1], atol=1e-9)
    np.testing.assert_allclose(one.oof_predictions_, D[:1], atol=1e-9)
    two = GradientBoostingLDL(5, engine=engine, random_state=0).fit(X[:2], D[:2])
    np.testing.assert_allclose(two.oof_predictions_, D[[1, 0]], atol=1e-9)


def test_size_decides_what_is_auto():
    model = GradientBoostingLDL()
    model.engine_ = "lightgbm"
    small, middle, large = (model._settings(n, 20) for n in (150, 10_000, 100_000))
    assert (small.min_samples_leaf, middle.min_samples_leaf) == (9, 20)
    assert (small.random_splits, middle.random_splits) == (True, False)
    assert (middle.subsample, large.subsample) == (0.7, 0.2)
    assert len(model._held_out_rows(30_000, None, np.random.RandomState(0))) == 3
    model.engine_ = "sklearn"
    assert model._settings(150, 20).max_leaf_nodes == 31
    assert [model._settings(150, q).max_features for q in (3, 20, 100)] == [1.0, 0.4, 0.3]


def test_without_lightgbm(monkeypatch):
    monkeypatch.setattr("skldl.trees._boosting.find_spec", lambda name: None)
    assert GradientBoostingLDL(1).fit(X, D).engine_ == "sklearn"
    with pytest.raises(ImportError, match=r"scikit-ldl\[boost\]"):
        GradientBoostingLDL(1, engine="lightgbm").fit(X, D)


@needs_lightgbm
def test_auto_takes_lightgbm():
    assert GradientBoostingLDL(1).fit(X, D).engine_ == "lightgbm"


def test_model_file(engine, tmp_path):
    pytest.importorskip("skops")
    model = GradientBoostingLDL(10, engine=engine, random_state=0).fit(X, D)
    path = skldl.save(model, tmp_path / "boosting.skldl")
    np.testing.assert_array_equal(skldl.load(path).predict(X_NEW), model.predict(X_NEW))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"max_iter": -1}, "max_iter=-1"),
        ({"patience": 0}, "patience=0"),
        ({"engine": "xgboost"}, "engine='xgboost'"),
        ({"learning_rate": 0}, "learning_rate=0 must be a finite number above 0"),
        ({"max_features": 1.2}, "max_features=1.2"),
        ({"subsample": 0.0}, "subsample=0.0"),
        ({"l2_regularization": -1}, "l2_regularization=-1 must be a finite number of at least 0"),
        ({"max_leaf_nodes": 1}, "max_leaf_nodes=1"),
        ({"min_samples_leaf": 0}, "min_samples_leaf=0"),
        ({"n_folds": 1}, "n_folds=1 must be 'auto' or a whole number of at least 2"),
        ({"random_splits": "never"}, "random_splits='never'"),
    ],
)
def test_wrong_hyper_parameters_are_rejected(parameters, message):
    with pytest.raises(ValueError, match=message):
        GradientBoostingLDL(**parameters).fit(X, D)

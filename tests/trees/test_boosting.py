"""GradientBoostingLDL: derivatives, one round in closed form, LightGBM's trees read back, folds, files."""

import importlib.util

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.tree import DecisionTreeRegressor

import skldl
from skldl.exceptions import NonFiniteError
from skldl.metrics import kullback_leibler
from skldl.testing import CHECKS, check_estimator, make_distributions
from skldl.trees import GradientBoostingLDL, _boosting
from skldl.trees._boosting import BoostingSettings, VectorLeafFold, derivatives, divergences, newton_steps

X, D = make_distributions(150, 5, 4)
X_NEW = make_distributions(40, 5, 4, random_state=1)[0]
COPIES = "two copies of a row are drawn, and fall into folds, independently"
NO_RANDOMNESS = BoostingSettings(0.3, 4, 5, 1.0, 1.0, 0.5, False)
needs_lightgbm = pytest.mark.skipif(importlib.util.find_spec("lightgbm") is None, reason="LightGBM is not installed")
ENGINES = ["sklearn", pytest.param("lightgbm", marks=needs_lightgbm)]


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


def fold_class(engine):
    if engine == "sklearn":
        return VectorLeafFold
    from skldl.trees._boosting import LightGBMFold

    return LightGBMFold


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


def test_derivatives_by_finite_differences():
    rng = np.random.default_rng(0)
    scores, weight = rng.normal(size=D.shape), rng.uniform(0.5, 2.0, len(D))
    gradient, hessian = derivatives(D, scores, weight)
    for j in range(4):
        step = np.zeros(4)
        step[j] = 1e-4
        up, middle, down = (weight * divergences(D, scores + sign * step) for sign in (1, 0, -1))
        np.testing.assert_allclose(gradient[:, j], (up - down) / 2e-4, atol=1e-7)
        np.testing.assert_allclose(hessian[:, j], 4 / 3 * (up - 2 * middle + down) / 1e-8, atol=1e-5)


def test_the_scaled_diagonal_is_the_hessian_where_the_prediction_is_uniform():
    p = np.full(4, 0.25)
    step = np.array([0.5, -0.2, -0.4, 0.1])
    hessian = derivatives(p[None], np.zeros((1, 4)), np.ones(1))[1][0]
    np.testing.assert_allclose(hessian * step, (np.diag(p) - np.outer(p, p)) @ step, atol=1e-15)


def test_divergences_are_those_of_the_measures():
    scores = np.random.default_rng(0).normal(size=D.shape)
    assert divergences(D, scores).mean() == pytest.approx(kullback_leibler(D, softmax(scores, axis=1)), abs=1e-12)
    assert np.isfinite(divergences(np.eye(4), scores[:4])).all()


def test_newton_steps_by_hand():
    leaf = np.array([1, 1, 2, 1, 2])
    gradient, hessian = np.arange(10.0).reshape(5, 2), np.arange(10.0, 20.0).reshape(5, 2)
    steps = newton_steps(leaf, 4, gradient, hessian, 0.5)
    for node in (1, 2):
        rows = leaf == node
        np.testing.assert_allclose(steps[node], -gradient[rows].sum(axis=0) / (0.5 + hessian[rows].sum(axis=0)))
    np.testing.assert_array_equal(steps[[0, 3]], 0.0)


def test_one_round_of_vector_leaves_in_closed_form():
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(D))
    train, test = np.arange(120), np.arange(120, 150)
    fold = VectorLeafFold(X.astype(np.float32), D, weight, train, test, NO_RANDOMNESS, 0)
    (held_out,) = fold.advance(1)
    mean = np.average(D[train], axis=0, weights=weight[train])
    h = 4 / 3 * mean * (1 - mean)
    tree = DecisionTreeRegressor(max_leaf_nodes=4, min_samples_leaf=5, random_state=0)
    tree.fit(X[train], (D[train] - mean) / np.sqrt(h), sample_weight=weight[train])
    scores = np.tile(np.log(mean), (30, 1))
    for i, leaf in enumerate(tree.apply(X[test])):
        w = np.where(tree.apply(X[train]) == leaf, weight[train], 0.0)
        scores[i] += 0.3 * (w @ (D[train] - mean)) / (0.5 + w.sum() * h)
    P = softmax(scores, axis=1)
    expected = weight[test] @ (D[test] * np.log(D[test] / P)).sum(axis=1)
    assert held_out == pytest.approx(expected, abs=1e-9)


@needs_lightgbm
def test_one_round_of_lightgbm_has_newton_leaves():
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(D))
    train = np.arange(120)
    rows = X.astype(np.float32)
    fold = fold_class("lightgbm")(rows, D, weight, train, np.arange(120, 150), NO_RANDOMNESS, 0)
    fold.advance(1)
    trees = fold.trees(1)
    mean = np.average(D[train], axis=0, weights=weight[train])
    h = 4 / 3 * mean * (1 - mean)
    for j, leaf in enumerate(trees.leaves(rows[train])):
        assert 2 <= len(set(leaf)) <= 4
        for number in set(leaf):
            inside = leaf == number
            step = weight[train][inside] @ (D[train][inside, j] - mean[j]) / (0.5 + weight[train][inside].sum() * h[j])
            assert trees.values[number, 0] == pytest.approx(0.3 * step, rel=1e-4)


@needs_lightgbm
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("random_splits", [True, False])
def test_trees_read_back_predict_what_lightgbm_predicts(missing, random_splits):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 5)).astype(np.float32)
    rows[rng.uniform(size=rows.shape) < missing] = np.nan
    rows[:, 4] = 1.0  # a feature that no tree can use
    settings = BoostingSettings(0.1, 8, 3, 0.5, 0.7, 1.0, random_splits)
    fold = fold_class("lightgbm")(rows, D, np.ones(150), np.arange(120), np.arange(120, 150), settings, 0)
    fold.advance(12)
    new = rng.normal(size=(60, 5)).astype(np.float32)
    new[rng.uniform(size=new.shape) < 0.2] = np.nan  # also in features whose training rows had no missing value
    for n_rounds in (1, 12, 50):
        expected = fold.booster.predict(new, num_iteration=n_rounds, raw_score=True)
        np.testing.assert_allclose(
            _boosting._scores(np.zeros(4), fold.trees(n_rounds), new), expected, atol=1e-12, rtol=0
        )


@needs_lightgbm
def test_categorical_splits_are_refused():
    from skldl.trees._boosting import read_trees

    text = (
        "tree\n\nTree=0\nnum_leaves=2\nsplit_feature=0\nthreshold=0\ndecision_type=1\n"
        "left_child=-1\nright_child=-2\nleaf_value=1 2\n\n"
    )
    with pytest.raises(ValueError, match="categorical"):
        read_trees(text, 1)


def test_no_round_is_the_mean(engine):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(D))
    model = GradientBoostingLDL(0, engine=engine, n_folds=3, random_state=0).fit(X, D, sample_weight=weight)
    assert model.n_iter_ == 0
    assert model.feature_importances_.tolist() == [0.0] * 5
    # each of three models predicts the mean of its training rows, and each row is in two of them
    np.testing.assert_allclose(model.predict(X[:1])[0], np.average(D, axis=0, weights=weight), atol=5e-3)
    for base, fold in zip(model.bases_, _folds(model, len(D)), strict=True):
        rest = np.setdiff1d(np.arange(len(D)), fold)
        expected = np.average(D[rest], axis=0, weights=weight[rest])
        np.testing.assert_allclose(softmax(base)[np.argsort(model.label_order_)], expected, atol=1e-9)
        np.testing.assert_allclose(model.oof_predictions_[fold], np.tile(expected, (len(fold), 1)), atol=1e-9)


def _folds(model, n_samples):
    return model._held_out_rows(n_samples, None, np.random.RandomState(0))


def test_noise_alone_stops_at_the_mean(engine):
    rng = np.random.default_rng(0)
    model = GradientBoostingLDL(engine=engine, random_state=0)
    model.fit(rng.normal(size=(200, 3)), rng.dirichlet(5 * np.ones(3), 200))
    assert -model.oof_score_ > 0.98 * model.oof_curve_[0]
    assert len(model.oof_curve_) <= 1 + model.n_iter_ + model.patience + _boosting.ROUNDS_AT_ONCE


def test_the_curve_is_that_of_the_out_of_fold_predictions(engine):
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(D))
    model = GradientBoostingLDL(60, engine=engine, random_state=0).fit(X, D, sample_weight=weight)
    assert model.n_iter_ == model.oof_curve_.argmin() > 5
    assert model.oof_curve_[model.n_iter_] == pytest.approx(-model.oof_score_, abs=1e-9)
    assert -model.oof_score_ == pytest.approx(
        kullback_leibler(D, model.oof_predictions_, sample_weight=weight), abs=1e-12
    )
    assert model.oof_score_ > -0.7 * model.oof_curve_[0]
    assert len(model.oof_curve_) <= 61


def test_out_of_fold_predictions_come_from_the_model_that_did_not_see_the_row(engine):
    model = GradientBoostingLDL(20, n_folds=3, engine=engine, random_state=0).fit(X, D)
    total = np.zeros(D.shape)
    for k, fold in enumerate(_folds(model, len(D))):
        alone = softmax(_boosting._scores(model.bases_[k], model.trees_[k], X.astype(np.float32)), axis=1)
        alone = alone[:, np.argsort(model.label_order_)]
        np.testing.assert_allclose(model.oof_predictions_[fold], alone[fold], atol=1e-12)
        total += alone / 3
    np.testing.assert_allclose(model.predict(X), total, atol=1e-12)


def test_groups_stay_together():
    groups = np.random.RandomState(0).randint(12, size=150)
    folds = GradientBoostingLDL(n_folds=4)._held_out_rows(150, groups, np.random.RandomState(0))
    assert len(folds) == 4
    assert sorted(np.concatenate(folds)) == list(range(150))
    assert all(not set(groups[a]) & set(groups[b]) for a in folds for b in folds if a is not b)
    assert len(GradientBoostingLDL()._held_out_rows(150, groups % 2, np.random.RandomState(0))) == 2
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
    monkeypatch.setattr(_boosting, "find_spec", lambda name: None)
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
def test_wrong_hyper_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        GradientBoostingLDL(**parameters).fit(X, D)

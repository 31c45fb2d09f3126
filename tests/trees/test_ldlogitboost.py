"""LDLogitBoost: common checks, trees and pairs by brute force, one round by hand, loss that falls, paths."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.tree import DecisionTreeRegressor

from skldl.baseline import MeanDistribution
from skldl.metrics import kullback_leibler
from skldl.testing import check_estimator, make_distributions
from skldl.trees import LDLogitBoost


@pytest.mark.parametrize("method", ["aoso", "logitboost"])
def test_common_checks(method):
    check_estimator(LDLogitBoost(5, method=method, learning_rate=0.5, max_leaf_nodes=4))


def before_the_last_round(model, X):
    """The distributions from which the last round starts."""
    F = np.tile(model.start_, (len(X), 1))
    for trees in model.trees_[:-1]:
        if model.method == "aoso":
            F += model.learning_rate * trees.predict(X)
        else:
            step = np.column_stack([tree.predict(X)[:, 0] for tree in trees])
            F += model.learning_rate * (1 - 1 / F.shape[1]) * (step - step.mean(axis=1, keepdims=True))
    return softmax(F, axis=1)


@pytest.mark.parametrize("n_rounds", [1, 2, 3])
def test_trees_of_labels_are_the_weighted_least_squares_trees_of_scikit_learn(n_rounds):
    X, D = make_distributions(60, 3, 3)
    D = 0.5 * D + 1 / 6  # no step is clipped
    weight = np.random.default_rng(0).uniform(0.5, 2, 60)
    settings = {"max_leaf_nodes": 6, "max_bins": 100, "min_leaf_share": 0.0, "ridge": 1e-12}
    model = LDLogitBoost(n_rounds, method="logitboost", **settings).fit(X, D, weight)
    p = before_the_last_round(model, X)
    for j, tree in enumerate(model.trees_[-1]):
        hessian = p[:, j] * (1 - p[:, j])
        theirs = DecisionTreeRegressor(max_leaf_nodes=6)
        theirs.fit(X, (D[:, j] - p[:, j]) / hessian, sample_weight=weight * hessian)
        np.testing.assert_allclose(tree.predict(X)[:, 0], theirs.predict(X), atol=1e-8)


def test_blocks_of_columns_change_nothing(monkeypatch):
    X, D = make_distributions(50, 5, 3)
    expected = LDLogitBoost(10).fit(X, D).predict(X)
    monkeypatch.setattr("skldl.trees._newton_tree.BLOCK_CELLS", 60)
    np.testing.assert_allclose(LDLogitBoost(10).fit(X, D).predict(X), expected, atol=1e-12)


def pairs_by_loops(d, p, weight):
    """The pair that gains most by moving all rows together, with its step, and the pair on which rows err most."""
    best, widest = (0.0, 0, 0, 0.0), (0.0, 0, 0)
    for r, s in np.ndindex(p.shape[1], p.shape[1]):
        error = d[:, r] - p[:, r] - d[:, s] + p[:, s]
        G = (weight * error).sum()
        H = (weight * (p[:, r] * (1 - p[:, r]) + p[:, s] * (1 - p[:, s]) + 2 * p[:, r] * p[:, s])).sum()
        if r != s and G > 0 and best[0] < G**2 / H:
            best = (G**2 / H, r, s, G / H)
        squares = (weight * error**2).sum()
        if r != s and squares / H > widest[0] * (1 + 1e-9):
            widest = (squares / H, r, s)
    return best[1:], widest[1:]


@pytest.mark.parametrize("n_rounds", [1, 4])
def test_nodes_choose_the_pairs_that_loops_find(n_rounds):
    X, D = make_distributions(40, 3, 5)
    weight = np.random.default_rng(0).dirichlet(np.full(40, 5.0))
    model = LDLogitBoost(n_rounds, learning_rate=0.3, max_leaf_nodes=2, min_leaf_share=0.0, ridge=1e-12)
    p = before_the_last_round(model.fit(X, D, weight), X)
    tree = model.trees_[-1]
    steps, left = tree.predict(X), X[:, tree.feature[0]] <= tree.threshold[0]
    for rows in (left, ~left):
        (r, s, t), _ = pairs_by_loops(D[rows], p[rows], weight[rows])
        expected = np.zeros(5)
        expected[r], expected[s] = min(t, 4.0), -min(t, 4.0)
        np.testing.assert_allclose(steps[rows], np.tile(expected, (rows.sum(), 1)), atol=1e-8)
    _, (r, s) = pairs_by_loops(D, p, weight)
    G = weight * (D[:, r] - p[:, r] - D[:, s] + p[:, s])
    H = weight * (p[:, r] + p[:, s] - (p[:, r] - p[:, s]) ** 2)
    gains = {}
    for column in range(3):
        values = np.unique(X[:, column])
        for threshold in values[:-1] + 0.5 * np.diff(values):
            parts = X[:, column] <= threshold, X[:, column] > threshold
            gains[column, threshold] = sum(G[rows].sum() ** 2 / H[rows].sum() for rows in parts)
    assert (tree.feature[0], tree.threshold[0]) == pytest.approx(max(gains, key=gains.__getitem__))


def test_pair_step_is_newtons():
    """Gradient and curvature of the cross-entropy along f_r = t, f_s = −t, by differences."""
    rng = np.random.default_rng(0)
    F, d = rng.normal(size=4), rng.dirichlet(np.ones(4))

    def loss(t):
        moved = F + t * np.array([1, 0, -1, 0])
        return -(d * (moved - np.log(np.exp(moved).sum()))).sum()

    p = np.exp(F) / np.exp(F).sum()
    gradient, hessian = d[0] - p[0] - d[2] + p[2], p[0] + p[2] - (p[0] - p[2]) ** 2
    h = 1e-4
    assert gradient == pytest.approx((loss(-h) - loss(h)) / (2 * h), rel=1e-5)
    assert hessian == pytest.approx((loss(h) - 2 * loss(0) + loss(-h)) / h**2, rel=1e-4)


@pytest.mark.parametrize("method", ["aoso", "logitboost"])
def test_loss_falls_and_a_step_is_learnt(method):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 3))
    D = np.where(X[:, :1] * X[:, 1:2] > 0, [0.8, 0.1, 0.1], [0.1, 0.2, 0.7])
    model = LDLogitBoost(60, method=method, learning_rate=0.2).fit(X[:200], D[:200])
    assert np.all(np.diff(model.loss_curve_) < 1e-9)
    mean = MeanDistribution().fit(X[:200], D[:200]).predict(X[200:])
    assert kullback_leibler(D[200:], model.predict(X[200:])) < 0.3 * kullback_leibler(D[200:], mean)


def test_constant_features_give_the_mean():
    _, D = make_distributions(50, 3, 4)
    P = LDLogitBoost(5).fit(np.ones((50, 2)), D).predict(np.ones((1, 2)))
    np.testing.assert_allclose(P, D.mean(axis=0)[None], atol=1e-12)


def test_bins_hold_equal_numbers_of_rows():
    X = np.random.default_rng(0).normal(size=(1000, 1))
    degree = 0.1 + 0.8 * X[:, 0].argsort().argsort() / 1000
    model = LDLogitBoost(50, max_bins=10).fit(X, np.column_stack([degree, 1 - degree]))
    thresholds = {
        t for tree in model.trees_ for t, feature in zip(tree.threshold, tree.feature, strict=True) if not feature
    }
    counts = np.bincount(np.searchsorted(sorted(thresholds), X[:, 0]))
    assert len(counts) == 10
    assert counts.min() >= 99
    assert counts.max() <= 101


def test_path_over_rounds():
    X, D = make_distributions(40, 3, 3)
    for method in ("aoso", "logitboost"):
        model = LDLogitBoost(method=method)
        for value, P in zip([2, 7], model.predict_path(X, D, X[:4], param="n_estimators", values=[2, 7]), strict=True):
            expected = LDLogitBoost(value, method=method).fit(X, D).predict(X[:4])
            np.testing.assert_allclose(P, expected, atol=1e-12)


@pytest.mark.parametrize(
    "bad", [{"method": "mart"}, {"n_estimators": 0}, {"learning_rate": 0}, {"min_leaf_share": 0.7}, {"max_bins": 1}]
)
def test_bad_hyperparameters(bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        LDLogitBoost(**bad).fit(X, D)

"""LDLogitBoost: common checks, trees and pairs by brute force, one round by hand, loss that falls, paths."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from skldl.baseline import MeanDistribution
from skldl.metrics import kullback_leibler
from skldl.testing import check_estimator, make_distributions
from skldl.trees import LDLogitBoost
from skldl.trees._ldlogitboost import pair_to_move, pair_to_split
from skldl.trees._newton_tree import Bins, grow_tree


@pytest.mark.parametrize("method", ["aoso", "logitboost"])
def test_common_checks(method):
    check_estimator(LDLogitBoost(5, method=method, learning_rate=0.5, max_leaf_nodes=4))


def test_tree_is_the_weighted_least_squares_tree_of_scikit_learn():
    """With Hessians as weights and G/H as target a Newton tree is a regression tree."""
    rng = np.random.default_rng(0)
    X, target, hessian = rng.normal(size=(60, 3)), rng.normal(size=60), rng.uniform(0.5, 2, 60)
    bins = Bins.of(X, np.ones(60), 100)

    def leaf_value(rows):
        return np.array([(hessian[rows] * target[rows]).sum() / hessian[rows].sum()])

    tree = grow_tree(
        bins,
        np.full(60, 1 / 60),
        lambda rows: ((hessian * target)[rows], hessian[rows]),
        leaf_value,
        max_leaf_nodes=6,
        min_weight=0.0,
        ridge=1e-12,
    )
    theirs = DecisionTreeRegressor(max_leaf_nodes=6).fit(X, target, sample_weight=hessian)
    np.testing.assert_allclose(tree.predict(X)[:, 0], theirs.predict(X), atol=1e-9)


def test_blocks_of_columns_change_nothing(monkeypatch):
    X, D = make_distributions(50, 5, 3)
    expected = LDLogitBoost(10).fit(X, D).predict(X)
    monkeypatch.setattr("skldl.trees._newton_tree.BLOCK_CELLS", 60)
    np.testing.assert_allclose(LDLogitBoost(10).fit(X, D).predict(X), expected, atol=1e-12)


def test_pairs_by_loops():
    rng = np.random.default_rng(0)
    p, d, weight = rng.dirichlet(np.ones(5), size=8), rng.dirichlet(np.ones(5), size=8), rng.uniform(0.5, 2, 8)
    best, widest = (0.0, 0, 0, 0.0), (0.0, 0, 0)
    for r in range(5):
        for s in range(5):
            G = (weight * (d[:, r] - p[:, r] - d[:, s] + p[:, s])).sum()
            H = (weight * (p[:, r] * (1 - p[:, r]) + p[:, s] * (1 - p[:, s]) + 2 * p[:, r] * p[:, s])).sum()
            if r != s and G > 0 and best[0] < G**2 / H:
                best = (G**2 / H, r, s, G / H)
            squares = (weight * (d[:, r] - p[:, r] - d[:, s] + p[:, s]) ** 2).sum()
            if r != s and squares / H > widest[0] * (1 + 1e-9):
                widest = (squares / H, r, s)
    assert pair_to_move(d - p, p, weight, 0.0) == pytest.approx(best[1:])
    assert pair_to_split(d - p, p, weight, 0.0) == widest[1:]


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


def test_quantile_bins_keep_weights_apart_evenly():
    X = np.random.default_rng(0).normal(size=(1000, 1))
    bins = Bins.of(X, np.ones(1000), 10)
    counts = np.bincount(bins.codes[:, 0])
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

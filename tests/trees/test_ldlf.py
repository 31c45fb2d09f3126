"""LDLF: common checks, predictions by walking, gradient by differences, leaves that never raise the loss."""

import numpy as np
import pytest
from scipy import optimize, special

from skldl.baseline import MeanDistribution
from skldl.metrics import kullback_leibler
from skldl.testing import check_estimator, make_distributions
from skldl.trees import LDLF
from skldl.trees._ldlf import tree_loss  # no estimator shows the gradient of its loss

SMALL = {"n_estimators": 2, "max_depth": 2, "n_rounds": 3}


def test_common_checks():
    # few steps: rounding errors grow with their number, and scikit-learn compares at 1e-7
    check_estimator(LDLF(**SMALL, n_split_steps=5, random_state=0))


def walk(forest, X, tree=0):
    """Probability of each leaf for each row, from the decisions on the way to it."""
    s = special.expit(X @ forest.coefs_[tree] + forest.intercepts_[tree])
    depth = forest.max_depth
    mu = np.ones((len(X), 2**depth))
    for leaf in range(2**depth):
        node = 0
        for level in reversed(range(depth)):
            right = leaf >> level & 1
            mu[:, leaf] *= 1 - s[:, node] if right else s[:, node]
            node = 2 * node + 1 + right
    return mu


def test_predictions_by_walking_down():
    X, D = make_distributions(30, 3, 3)
    forest = LDLF(2, max_depth=3, n_rounds=2, random_state=0).fit(X, D)
    np.testing.assert_allclose(walk(forest, X).sum(axis=1), 1)
    expected = np.mean([walk(forest, X, tree) @ forest.leaves_[tree] for tree in (0, 1)], axis=0)
    np.testing.assert_allclose(forest.predict(X), expected, atol=1e-12)


def test_gradient_by_differences():
    rng = np.random.default_rng(0)
    scores, Q = rng.normal(size=(5, 7)), rng.dirichlet(np.ones(3), size=8)
    D, weight = rng.dirichlet(np.ones(3), size=5), rng.dirichlet(np.ones(5))
    _, gradient = tree_loss(scores, Q, D, weight)
    for place in np.ndindex(scores.shape):
        step = np.zeros_like(scores)
        step[place] = 1e-6
        slope = (tree_loss(scores + step, Q, D, weight)[0] - tree_loss(scores - step, Q, D, weight)[0]) / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-9)


def test_leaf_updates_are_the_papers_and_reach_the_minimum():
    """In one round only the leaves are fitted, to split functions as they were drawn."""
    X, D = make_distributions(20, 3, 3)
    weight = np.random.default_rng(0).dirichlet(np.ones(20))

    def fit(n_updates):
        return LDLF(1, max_depth=1, alpha=0.0, n_rounds=1, n_leaf_updates=n_updates, random_state=0).fit(X, D, weight)

    Q = np.full((2, 3), 1 / 3)
    mu = walk(fit(1), X)
    for n_updates in (1, 2, 3):
        g = mu @ Q
        by_hand = np.zeros_like(Q)
        for leaf, label in np.ndindex(Q.shape):
            by_hand[leaf, label] = sum(weight * D[:, label] * Q[leaf, label] * mu[:, leaf] / g[:, label])
        Q = by_hand / by_hand.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(fit(n_updates).leaves_[0], Q, rtol=1e-10)
    losses = [fit(n_updates).loss_curves_[0][-1] for n_updates in (1, 2, 3, 10, 100, 1000, 10_000)]
    assert np.all(np.diff(losses) <= 1e-14)

    def loss(flat):  # convex in the leaves
        P = mu @ special.softmax(flat.reshape(2, 3), axis=1)
        return -weight @ (D * np.log(P)).sum(axis=1)

    assert losses[-1] == pytest.approx(optimize.minimize(loss, np.zeros(6), options={"gtol": 1e-9}).fun, abs=1e-6)


def test_without_splits_that_matter_it_is_the_mean():
    X, D = make_distributions(40, 3, 3)
    forest = LDLF(**SMALL, alpha=1e6, random_state=0).fit(X, D)
    np.testing.assert_allclose(forest.predict(X), MeanDistribution().fit(X, D).predict(X), atol=1e-3)


def test_loss_falls_and_a_step_is_learnt():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 2))
    D = np.where(X[:, :1] * X[:, 1:] > 0, [0.8, 0.1, 0.1], [0.1, 0.2, 0.7])
    forest = LDLF(3, max_depth=3, n_rounds=15, random_state=0).fit(X[:200], D[:200])
    for curve in forest.loss_curves_:
        assert np.all(np.diff(curve) < 1e-9)
    mean = MeanDistribution().fit(X[:200], D[:200])
    error, error_of_mean = (kullback_leibler(D[200:], m.predict(X[200:])) for m in (forest, mean))
    assert error < 0.5 * error_of_mean


def test_rare_features_are_not_blown_up():
    """A column of zeros and a few ones, divided by its deviation, would make the rows that hold the ones outliers."""
    rng = np.random.default_rng(0)
    X = (rng.uniform(size=(400, 300)) < 0.01).astype(float)
    D = np.exp(0.3 * X @ rng.normal(size=(300, 4)) + 0.7 * rng.normal(size=(400, 4)))
    D /= D.sum(axis=1, keepdims=True)
    model = LDLF(2, max_depth=3, random_state=0).fit(X[:300], D[:300])
    mean = MeanDistribution().fit(X[:300], D[:300]).predict(X[300:])
    assert kullback_leibler(D[300:], model.predict(X[300:])) < kullback_leibler(D[300:], mean)


def test_path_of_sizes():
    X, D = make_distributions(30, 3, 3)
    model = LDLF(**{**SMALL, "n_estimators": 9}, random_state=0)
    for value, P in zip([1, 3], model.predict_path(X, D, X[:4], param="n_estimators", values=[1, 3]), strict=True):
        expected = LDLF(**{**SMALL, "n_estimators": value}, random_state=0).fit(X, D).predict(X[:4])
        np.testing.assert_allclose(P, expected, atol=1e-12)
    assert len(list(model.predict_path(X, D, X[:4], param="max_depth", values=[1, 2]))) == 2


@pytest.mark.parametrize("bad", [{"n_estimators": 0}, {"max_depth": 1.5}, {"alpha": -1}])
def test_bad_hyperparameters(bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        LDLF(**bad).fit(X, D)

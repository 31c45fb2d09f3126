"""LDSVR: common checks, the convex objective against scipy, kernel ridge as its limit, a true tube, the path."""

import numpy as np
import pytest
from scipy import optimize, sparse, special
from sklearn.metrics.pairwise import rbf_kernel

from skldl.baseline import MeanDistribution
from skldl.kernel import LDSVR
from skldl.metrics import kullback_leibler
from skldl.testing import check_estimator, make_distributions


def test_common_checks():
    check_estimator(LDSVR())


def fitted(n, alpha, epsilon, max_iter=2000):
    """A model fitted to the optimum, its kernel matrix, targets and weights, and the coefficients of all rows."""
    X, D = make_distributions(n, 2, 3)
    weight = np.random.default_rng(0).dirichlet(np.full(n, 5.0))
    model = LDSVR(alpha, epsilon=epsilon, max_iter=max_iter, tol=1e-16).fit(X, D, weight)
    B = np.zeros(D.shape)
    B[[int(np.flatnonzero((row == X).all(axis=1))[0]) for row in model.support_vectors_]] = model.dual_coef_
    return model, rbf_kernel(X, gamma=0.5 / model.sigma_**2), special.logit(D), weight, B


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_scipy_finds_the_same_minimum(epsilon):
    model, K, Z, weight, found = fitted(12, 0.05, epsilon)

    def value(flat):
        B, b = flat[:-3].reshape(Z.shape), flat[-3:]
        u = np.sqrt(((Z - K @ B - b) ** 2).sum(axis=1))
        return weight @ np.maximum(u - epsilon, 0.0) ** 2 + 0.025 * np.vdot(B, K @ B)

    assert np.all(np.diff(model.loss_curve_) < 0)
    assert model.loss_curve_[-1] == pytest.approx(value(np.r_[found.ravel(), model.intercept_]), rel=1e-9)
    start = np.zeros(Z.size + 3)
    theirs = optimize.minimize(value, start, method="BFGS", options={"gtol": 1e-7, "maxiter": 2000}).fun
    assert model.loss_curve_[-1] == pytest.approx(theirs, abs=1e-6)
    assert model.loss_curve_[-1] <= theirs + 1e-9


def test_without_tube_it_is_kernel_ridge():
    """With epsilon = 0 all rows have weight 2ω, and one solve is the answer."""
    model, K, Z, weight, found = fitted(12, 0.05, 0.0)
    n = len(K)
    system = np.block([[K + np.diag(0.05 / (2 * weight)), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.vstack([Z, np.zeros(Z.shape[1])]))
    np.testing.assert_allclose(found, solution[:-1], atol=1e-8)
    np.testing.assert_allclose(model.intercept_, solution[-1], atol=1e-8)


def test_optimality_conditions():
    """alpha B_i = 2 ω_i (u_i − ε) r_i / u_i outside the tube, B_i = 0 inside, and B sums to zero."""
    model, K, Z, weight, found = fitted(30, 0.02, 0.8)
    residual = Z - K @ found - model.intercept_
    u = np.sqrt((residual**2).sum(axis=1))
    pull = (2 * weight * np.maximum(u - 0.8, 0) / u)[:, None] * residual
    np.testing.assert_allclose(0.02 * found, pull, atol=1e-6)
    assert (u < 0.8).any()
    assert (u > 0.8).any()
    np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-9)


def test_a_wide_tube_leaves_the_mean_of_the_logits():
    X, D = make_distributions(30, 3, 3)
    model = LDSVR(epsilon=100.0).fit(X, D)
    assert len(model.support_vectors_) == 0
    expected = special.expit(special.logit(D).mean(axis=0))
    np.testing.assert_allclose(model.predict(X[:2]), np.tile(expected / expected.sum(), (2, 1)), atol=1e-12)


def test_follows_a_curve_better_than_the_mean():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(150, 2))
    S = np.c_[np.sin(3 * X[:, 0]), np.cos(3 * X[:, 1]), np.zeros(150)]
    D = np.exp(S) / np.exp(S).sum(axis=1, keepdims=True)
    P = LDSVR().fit(X[:100], D[:100]).predict(X[100:])
    mean = MeanDistribution().fit(X[:100], D[:100]).predict(X[100:])
    assert kullback_leibler(D[100:], P) < 0.05 * kullback_leibler(D[100:], mean)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_where_the_features_are_zero_does_not_matter(form):
    X, D = make_distributions(40, 4, 3)
    X = np.round(X * 256) / 256  # so that X + 2³⁰ is exact
    expected = LDSVR().fit(X, D).predict(X)
    found = LDSVR().fit(form(X + 2.0**30), D).predict(form(X + 2.0**30))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_path_agrees_with_single_fits():
    X, D = make_distributions(40, 3, 3)
    for param, values in {"alpha": [1e-3, 1.0], "width": [0.5, 2.0], "epsilon": [0.0, 0.2]}.items():
        path = LDSVR().predict_path(X, D, X[:5], param=param, values=values)
        for value, P in zip(values, path, strict=True):
            np.testing.assert_allclose(P, LDSVR().set_params(**{param: value}).fit(X, D).predict(X[:5]), atol=1e-12)


@pytest.mark.parametrize("bad", [{"alpha": 0}, {"epsilon": -1}, {"width": 0}, {"floor": 0.6}, {"max_iter": 0}])
def test_bad_hyperparameters(bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        LDSVR(**bad).fit(X, D)

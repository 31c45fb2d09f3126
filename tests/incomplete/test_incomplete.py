"""IncomLDL and WInLDL: optimality conditions, oracles, and predictions from tables with gaps."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from sklearn.exceptions import NotFittedError

from skldl import AAKNN, SABFGS, IncomLDL, MeanDistribution, WInLDL
from skldl.data import make_missing
from skldl.exceptions import ParameterError
from skldl.incomplete import complete
from skldl.metrics import chebyshev
from skldl.simplex import softmax
from skldl.testing import check_estimator, make_distributions


class Problem:
    """The objective in the coordinates of the definition, from the public weights of a model."""

    def __init__(self, ridge=0.0):
        self.X, D = make_distributions(40, 3, 5)
        self.hidden = make_missing(D, 0.4)
        self.sample_weight = np.random.default_rng(0).uniform(1, 2, size=40)
        weight = self.sample_weight / self.sample_weight.sum()
        self.mean = weight @ self.X
        self.std = np.sqrt(weight @ (self.X - self.mean) ** 2)
        self.design = np.column_stack([np.ones(40), (self.X - self.mean) / self.std])
        self.root, self.observed = np.sqrt(weight)[:, None], ~np.isnan(self.hidden)
        self.target = self.root * np.nan_to_num(self.hidden)
        self.A = np.vstack([self.root * self.design, np.sqrt(ridge) * np.eye(4)[1:]])

    def fit(self, alpha, **options):
        model = IncomLDL(alpha, missing="degrees", max_iter=20_000, **options)
        model.fit(self.X, self.hidden, self.sample_weight)
        return np.vstack([model.intercept_ + self.mean @ model.coef_.T, model.coef_.T * self.std[:, None]])

    def residual(self, W):
        return (self.root * (self.design @ W) - self.target) * self.observed

    def objective(self, W, alpha):
        return 0.5 * (self.residual(W) ** 2).sum() + alpha * np.linalg.svd(self.A @ W, compute_uv=False).sum()


@pytest.mark.parametrize("fraction", [0.3, 0.01])
@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_prox_satisfies_the_optimality_condition(fraction, ridge):
    """At a minimum −∇ lies in alpha times the subdifferential of the nuclear norm: UVᵀ on the range, ≤ 1 off it."""
    problem = Problem(ridge)
    Q, values, right = np.linalg.svd(problem.A, full_matrices=False)  # V = diag(values) right W has the norm of A W
    largest = np.linalg.norm(Q[:40].T @ problem.target, 2)
    alpha = fraction * largest
    W = problem.fit(alpha, method="prox", ridge=ridge, tol=1e-13)
    gradient = Q[:40].T @ problem.residual(W)
    left, values, right = np.linalg.svd(values[:, None] * (right @ W), full_matrices=False)
    rank = int((values > 1e-10).sum())
    assert rank > 0
    left, right = left[:, :rank], right[:rank]
    np.testing.assert_allclose(left.T @ -gradient @ right.T, alpha * np.eye(rank), atol=1e-9)
    off = gradient - left @ (left.T @ gradient)
    off = off - (off @ right.T) @ right
    assert np.linalg.norm(off, 2) <= alpha * (1 + 1e-6)
    np.testing.assert_allclose(problem.fit(1.001 * largest, method="prox", ridge=ridge, tol=1e-12), 0.0, atol=1e-9)


@pytest.mark.parametrize(("rho", "ridge"), [(0.3, 0.0), (3.0, 0.0), (1.0, 2.0)])
def test_admm_reaches_the_constrained_minimum_whatever_rho(rho, ridge):
    problem = Problem(ridge)
    alpha = 0.01
    W = problem.fit(alpha, ridge=ridge, rho=rho, tol=1e-9)
    P = problem.design @ W
    assert P.min() > -1e-6
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-6)
    assert problem.objective(W, alpha) > problem.objective(problem.fit(alpha, method="prox", ridge=ridge), alpha)

    def slack(flat):
        return (problem.design @ flat.reshape(4, 5)).ravel()

    def sums(flat):
        return flat.reshape(4, 5).sum(axis=1) - np.array([1.0, 0, 0, 0])

    constraints = [{"type": "ineq", "fun": slack}, {"type": "eq", "fun": sums}]
    start = np.zeros((4, 5))
    start[0] = 0.2
    for origin in (W, start):  # neither from the solution nor from the uniform distribution is there a better one
        found = optimize.minimize(
            lambda flat: problem.objective(flat.reshape(4, 5), alpha), origin.ravel(), constraints=constraints
        )
        assert problem.objective(W, alpha) < found.fun + 1e-6


def test_without_penalty_and_gaps_prox_is_least_squares():
    X, D = make_distributions(40, 3, 4)
    model = IncomLDL(0.0, method="prox", max_iter=5000, tol=1e-12).fit(X, D)
    W = np.linalg.lstsq(np.column_stack([np.ones(40), X]), D, rcond=None)[0]
    np.testing.assert_allclose(model.intercept_, W[0], atol=1e-8)
    np.testing.assert_allclose(model.coef_.T, W[1:], atol=1e-8)


def test_the_constant_of_winldl_has_no_ridge():
    X, D = make_distributions(200, 3, 4)
    D = 0.2 * D + 0.8 * np.array([0.7, 0.1, 0.1, 0.1])
    P = WInLDL(ridge=1e6, max_iter=500).fit(X, D).predict(X)
    np.testing.assert_allclose(P, np.tile(P[0], (200, 1)), atol=1e-4)
    np.testing.assert_allclose(P[0], D.mean(axis=0), atol=0.01)


@pytest.mark.parametrize(
    ("chosen", "published"),
    [
        (IncomLDL(), IncomLDL(ridge=0.0)),
        (IncomLDL(method="prox"), IncomLDL(method="prox", ridge=0.0)),
        (WInLDL(), WInLDL(ridge=1e-5)),
    ],
)
def test_defaults_work_with_more_features_than_rows(chosen, published):
    """Two directions of much variance carry the signal, 118 of little variance carry noise."""
    generator = np.random.default_rng(0)
    Z = generator.normal(size=(300, 2))
    X = Z @ generator.normal(size=(2, 120)) + 0.5 * generator.normal(size=(300, 120))
    D = softmax(Z @ generator.normal(size=(2, 5)) + 0.3 * generator.normal(size=(300, 5)))
    train, test = np.arange(80), np.arange(80, 300)
    hidden = make_missing(D, 0.5, renormalise=True)[train]
    mean = MeanDistribution("renormalised")
    distances = [
        chebyshev(D[test], model.set_params(missing="renormalised").fit(X[train], hidden).predict(X[test]))
        for model in (chosen, published, mean)
    ]
    assert distances[0] < 0.9 * min(distances[1:])
    assert chosen.ridge_ > 1e-5


@pytest.mark.parametrize("model", [IncomLDL(), IncomLDL(method="prox"), WInLDL()])
@pytest.mark.parametrize("renormalise", [False, True])
def test_linear_truth_is_recovered_from_half_of_the_cells(model, renormalise):
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, size=(300, 3))
    W = generator.normal(size=(3, 6))
    W -= W.mean(axis=1, keepdims=True)
    D = 1 / 6 + 0.03 * X @ W
    hidden = make_missing(D, 0.5, renormalise=renormalise)
    model.set_params(missing="renormalised" if renormalise else "degrees").fit(X, hidden)
    mean = MeanDistribution().fit(X, D).predict(X)
    assert chebyshev(D, model.predict(X)) < (0.25 if renormalise else 0.1) * chebyshev(D, mean)


def test_winldl_without_gaps_or_binding_constraints_is_close_to_weighted_least_squares():
    """With fixed weights and no missing cell the fixed point solves Xᵀ(Q² ∘ (XW − D)) = 0 on the simplex's plane."""
    generator = np.random.default_rng(0)
    X = generator.uniform(-1, 1, size=(80, 2))
    D = 1 / 3 + 0.1 * X @ np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]) + 0.02 * generator.normal(size=(80, 3))
    D /= D.sum(axis=1, keepdims=True)
    model = WInLDL(max_iter=3000, ridge=1e-12).fit(X, D)
    design = np.column_stack([np.ones(80), X])
    squares = 4.0 ** (1 - D)

    def loss(flat):
        W = np.column_stack([flat.reshape(3, 2), np.array([1.0, 0, 0]) - flat.reshape(3, 2).sum(axis=1)])
        return (squares * (design @ W - D) ** 2).mean()

    best = optimize.minimize(loss, np.zeros(6), tol=1e-14).x.reshape(3, 2)
    np.testing.assert_allclose(np.vstack([model.intercept_, model.coef_.T])[:, :2], best, atol=1e-4)


@pytest.mark.parametrize("estimator", [IncomLDL(alpha=1e-3), IncomLDL(alpha=1e-3, method="prox"), WInLDL(ridge=1e-5)])
def test_all_checks(estimator):
    check_estimator(estimator)


def test_alpha_is_chosen_unattended():
    X, D = make_distributions(60, 3, 5)
    model = IncomLDL(missing="degrees").fit(X, make_missing(D, 0.4))
    assert model.alpha_ > 0
    assert IncomLDL(0.01).fit(X, D).ridge_ == 0
    assert IncomLDL(ridge=3.0).fit(X, D).ridge_ == 3
    assert chebyshev(D, model.predict(X)) < chebyshev(D, MeanDistribution().fit(X, D).predict(X))
    one = IncomLDL().fit(X[:1], D[:1])
    np.testing.assert_allclose(one.predict(X[:1]), D[:1], atol=0.2)
    np.testing.assert_allclose(WInLDL().fit(X[:1], D[:1]).predict(X[:1]), D[:1], atol=0.01)


def test_complete_takes_tables_and_estimators():
    X, D = make_distributions(30, 3, 4)
    frame = pd.DataFrame(make_missing(D, 0.5), columns=list("abcd"), index=np.arange(30) + 5)
    filled = complete(X, frame, SABFGS(missing="degrees"))
    assert list(filled.columns) == list("abcd")
    assert list(filled.index) == list(frame.index)
    np.testing.assert_allclose(filled.sum(axis=1), 1.0)
    seen = frame.notna().to_numpy()
    np.testing.assert_allclose(filled.to_numpy()[seen], frame.to_numpy()[seen], atol=1e-12)
    with pytest.warns(UserWarning, match="takes them as missing='degrees'"):
        assert not np.isnan(complete(X, make_missing(D, 0.5))).any()
    with pytest.raises(ParameterError, match="cannot learn from missing degrees"):
        complete(X, D, AAKNN())
    with pytest.raises(NotFittedError):
        SABFGS().complete(X, D)

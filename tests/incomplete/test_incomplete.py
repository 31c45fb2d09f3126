"""IncomLDL and WInLDL: optimality conditions, oracles, agreement, and what they make of gaps."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from sklearn.exceptions import NotFittedError

from skldl import AAKNN, SABFGS, IncomLDL, MeanDistribution, WInLDL
from skldl.data import make_missing
from skldl.exceptions import ParameterError
from skldl.incomplete import complete
from skldl.incomplete._incomldl import LowRank, shrink
from skldl.incomplete._linear import LinearProblem, project_weighted
from skldl.metrics import chebyshev
from skldl.simplex import project, softmax
from skldl.testing import check_estimator, make_distributions


def test_weighted_projection_is_the_minimum_on_the_simplex():
    generator = np.random.default_rng(0)
    for n_labels in (2, 3, 6):
        a, w = generator.normal(size=n_labels), generator.uniform(0.1, 3, size=n_labels)
        found = project_weighted(a[None], w[None])[0]
        best = optimize.minimize(
            lambda z, a=a, w=w: 0.5 * (w * (z - a) ** 2).sum(),
            np.full(n_labels, 1 / n_labels),
            jac=lambda z, a=a, w=w: w * (z - a),
            bounds=[(0, None)] * n_labels,
            constraints={"type": "eq", "fun": lambda z: z.sum() - 1, "jac": np.ones_like},
            options={"ftol": 1e-14, "maxiter": 500},
        )
        np.testing.assert_allclose(found, best.x, atol=1e-6)
        assert found.sum() == pytest.approx(1.0, abs=1e-14)


def test_equal_weights_give_the_ordinary_projection():
    A = np.random.default_rng(0).normal(size=(50, 7))
    np.testing.assert_allclose(project_weighted(A, np.full_like(A, 3.0)), project(A), atol=1e-12)


def test_shrink_is_the_proximal_step_of_the_nuclear_norm():
    V = np.random.default_rng(0).normal(size=(4, 3))
    found = shrink(V, 0.7)

    def loss(flat):
        Z = flat.reshape(V.shape)
        return 0.5 * ((Z - V) ** 2).sum() + 0.7 * np.linalg.svd(Z, compute_uv=False).sum()

    generator = np.random.default_rng(1)
    nearby = [loss(found.ravel() + 1e-3 * generator.normal(size=12)) for _ in range(200)]
    assert loss(found.ravel()) < min(nearby)


@pytest.fixture
def problem():
    X, D = make_distributions(40, 3, 5)
    return LinearProblem.of(X, make_missing(D, 0.4), np.random.default_rng(0).uniform(1, 2, size=40), "degrees")


@pytest.mark.parametrize("share", [0.3, 0.01])
@pytest.mark.parametrize("ridge", [0.0, 2.0])
def test_prox_satisfies_the_optimality_condition(problem, share, ridge):
    """At a minimum −∇ lies in alpha times the subdifferential of the nuclear norm: UVᵀ on the range, ≤ 1 off it."""
    solver = LowRank(problem, 1.0, ridge)
    alpha = share * solver.largest_alpha()
    solver.run(alpha, "prox", 5000, 1e-13)
    gradient = solver.Q.T @ ((solver.Q @ solver.V - solver.root * problem.D) * problem.observed)
    left, values, right = np.linalg.svd(solver.V, full_matrices=False)
    rank = int((values > 1e-10).sum())
    assert rank > 0
    left, right = left[:, :rank], right[:rank]
    np.testing.assert_allclose(left.T @ -gradient @ right.T, alpha * np.eye(rank), atol=1e-9)
    off = gradient - left @ (left.T @ gradient)
    off = off - (off @ right.T) @ right
    assert np.linalg.norm(off, 2) <= alpha * (1 + 1e-6)


def test_prox_predicts_nothing_at_the_largest_alpha(problem):
    solver = LowRank(problem, 1.0)
    solver.run(1.001 * solver.largest_alpha(), "prox", 1000, 1e-12)
    np.testing.assert_allclose(solver.V, 0.0, atol=1e-9)
    solver.run(0.9 * solver.largest_alpha(), "prox", 1000, 1e-12)
    assert np.abs(solver.V).max() > 1e-3


@pytest.mark.parametrize(("rho", "ridge"), [(0.3, 0.0), (3.0, 0.0), (1.0, 2.0)])
def test_admm_reaches_the_constrained_minimum_whatever_rho(problem, rho, ridge):
    alpha = 0.05 * LowRank(problem, 1.0, ridge).largest_alpha()
    solver = LowRank(problem, rho, ridge)
    solver.run(alpha, "admm", 20_000, 1e-9)
    P = problem.X @ solver.weights()
    assert P.min() > -1e-6
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-6)
    best = solver.objective(alpha)
    generator = np.random.default_rng(0)
    V = solver.V.copy()
    for scale in (1e-1, 1e-2, 1e-3):  # no feasible point nearby is better: move towards other models on the simplex
        for _ in range(50):
            other = LinearProblem.of(
                problem.X[:, 1:], generator.dirichlet(np.ones(5), size=40), problem.weight, "complete"
            )
            goal = LowRank(other, 1.0)
            goal.run(1e-3, "admm", 50, 1e-6)
            W = (1 - scale) * solver.weights() + scale * goal.weights()
            if (problem.X @ W).min() < 0:
                continue
            solver.V = solver.values[:, None] * (solver.right @ W)
            assert solver.objective(alpha) > best - 1e-7
            solver.V = V


def test_without_penalty_and_gaps_prox_is_least_squares():
    X, D = make_distributions(40, 3, 4)
    model = IncomLDL(0.0, method="prox", max_iter=5000, tol=1e-12).fit(X, D)
    W = np.linalg.lstsq(np.column_stack([np.ones(40), X]), D, rcond=None)[0]
    np.testing.assert_allclose(model.intercept_, W[0], atol=1e-8)
    np.testing.assert_allclose(model.coef_.T, W[1:], atol=1e-8)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_ridge_puts_the_weights_into_the_nuclear_norm_but_not_the_constant(problem, ridge):
    solver = LowRank(problem, 1.0, ridge)
    W = np.random.default_rng(0).normal(size=(4, 5))
    solver.V = solver.values[:, None] * (solver.right @ W)
    np.testing.assert_allclose(solver.weights(), W)
    np.testing.assert_allclose(solver.Q @ solver.V, solver.root * (problem.X @ W))
    rows = np.vstack([solver.root * (problem.X @ W), np.sqrt(ridge) * W[1:]])
    expected = np.linalg.svd(rows, compute_uv=False).sum()
    assert solver.objective(1.0) - solver.objective(0.0) == pytest.approx(expected)


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
def test_more_features_than_rows_are_no_trouble_for_the_defaults(chosen, published):
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

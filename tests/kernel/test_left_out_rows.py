"""Every solver of `KernelRidgeLDL` against systems of equations that are solved anew without the rows left out."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from skldl.kernel import KernelRidgeLDL

ALL_SOLVERS = ("eigen", "cholesky", "nystroem")


def exponential(A, B):
    return np.exp(-np.sqrt(((A[:, None] - B) ** 2).sum(axis=2)) / 2)


def problem(n_rows=40):
    """Degrees far from zero, so that predictions are distributions before they are projected."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 3))
    D = 1 / 3 + 0.05 * np.column_stack([np.sin(X[:, 0]), X[:, 1] / 2 + 0.3 * rng.uniform(-1, 1, n_rows)])
    return X, np.column_stack([D, 1 - D.sum(axis=1)]), rng.integers(1, 4, size=n_rows).astype(float)


def solve_anew(K, Y, weight, penalty):
    """Coefficients and intercept from the stationarity conditions: (K + λW⁻¹)a + 1b = Y, 1ᵀa = 0."""
    n = len(K)
    system = np.block([[K + penalty * np.diag(1 / weight), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return solution[:-1], solution[-1]


def predict_without(K, Y, weight, penalty, groups):
    P = np.empty_like(Y)
    for group in np.unique(groups):
        out = groups == group
        a, b = solve_anew(K[np.ix_(~out, ~out)], Y[~out], weight[~out], penalty)
        P[out] = K[np.ix_(out, ~out)] @ a + b
    return P


def fit(X, D, weight, groups, solver, monkeypatch, kernel=exponential, **settings):
    if solver == "cholesky":
        monkeypatch.setattr("skldl.kernel._kernelridge.EIGEN_ROWS", 1)
    name = solver if solver in ("cg", "nystroem") else "exact"
    settings = {"target": "degrees", "scaling": "raw", "mean_share": 0.0, "alpha": 1e-3} | settings
    model = KernelRidgeLDL(kernel=kernel, solver=name, **settings).fit(X, D, weight, groups=groups)
    assert model.solver_ == solver
    return model


@pytest.mark.parametrize("solver", ALL_SOLVERS)
@pytest.mark.parametrize("alpha", [1e-5, 1e-2, 1.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_groups", [None, 7, 2])
def test_coefficients_and_left_out_rows_equal_new_solutions(solver, alpha, weighted, n_groups, monkeypatch):
    X, D, weight = problem()
    weight = weight if weighted else None
    groups = None if n_groups is None else np.arange(len(D)) * 3 % n_groups
    model = fit(X, D, weight, groups, solver, monkeypatch, alpha=alpha, n_landmarks=12)
    w, codes = (np.ones(len(D)) if weight is None else weight), (np.arange(len(D)) if groups is None else groups)
    K = exponential(X, X)
    if solver == "nystroem":
        to_landmarks, among = exponential(X, model.X_fit_), exponential(model.X_fit_, model.X_fit_)
        assert len(among) == 12
        K = to_landmarks @ np.linalg.solve(among, to_landmarks.T)
    penalty = alpha * w.sum()
    a, b = solve_anew(K, D, w, penalty)
    if solver != "nystroem":
        np.testing.assert_allclose(model.dual_coef_, a, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(model.intercept_, b, atol=1e-10)
    np.testing.assert_allclose(model.predict(X), K @ a + b, atol=1e-9)
    np.testing.assert_allclose(model.loo_predictions_, predict_without(K, D, w, penalty, codes), atol=1e-9)


@pytest.mark.parametrize("solver", ALL_SOLVERS)
def test_a_constant_kernel_leaves_the_mean_of_the_others(solver, monkeypatch):
    X, D, _ = problem()
    model = fit(X, D, None, None, solver, monkeypatch, kernel=lambda A, B: np.ones((len(A), len(B))))
    np.testing.assert_allclose(model.loo_predictions_, (D.sum(axis=0) - D) / (len(D) - 1), atol=1e-12)


@pytest.mark.parametrize(("solver", "message"), [("eigen", "semi-definite"), ("cholesky", "not positive definite")])
def test_an_indefinite_kernel_is_rejected(solver, message, monkeypatch):
    X, D, _ = problem()
    with pytest.raises(ValueError, match=message):
        fit(X, D, None, None, solver, monkeypatch, kernel=lambda A, B: -exponential(A, B), alpha=1e-5)


def test_all_rows_as_landmarks_give_the_exact_leverages_of_conjugate_gradients(monkeypatch):
    monkeypatch.setattr("skldl.kernel._solvers.PROBE_TOL", 1e-12)
    X, D, weight = problem(50)
    for groups in (None, np.arange(50) // 5):
        model = fit(X, D, weight, groups, "cg", monkeypatch, tol=1e-12, max_iter=200)
        codes = np.arange(50) if groups is None else groups
        exact = predict_without(exponential(X, X), D, weight, 1e-3 * weight.sum(), codes)
        np.testing.assert_allclose(model.loo_predictions_, exact, atol=1e-8)


@pytest.mark.parametrize(("kernel", "n_landmarks"), [(exponential, 50), ("exponential", 50), ("linear", 2)])
@pytest.mark.parametrize(("groups", "bound"), [(None, 0.07), (np.arange(300) // 3, 0.2)])
def test_conjugate_gradients_reach_the_exact_solution_and_nearly_the_left_out_rows(
    kernel, n_landmarks, groups, bound, monkeypatch
):
    X, D, weight = problem(300)
    settings = {"kernel": kernel, "tol": 1e-11, "max_iter": 200, "n_landmarks": n_landmarks}
    model = fit(X, D, weight, groups, "cg", monkeypatch, **settings, width=2.0 if kernel == "exponential" else None)
    scale = 2.0 if kernel is exponential else model.length_scale_
    K = X @ X.T / scale if kernel == "linear" else np.exp(-cdist(X, X) / scale)
    penalty = 1e-3 * weight.sum()
    a, b = solve_anew(K, D, weight, penalty)
    np.testing.assert_allclose(model.dual_coef_, a, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, b, atol=1e-8)
    assert model.n_iter_ < 60
    exact = predict_without(K, D, weight, penalty, np.arange(300) if groups is None else groups)
    approximate = model.loo_predictions_
    assert np.sqrt(np.mean((approximate - exact) ** 2) / np.mean((exact - D) ** 2)) < (
        bound if kernel is exponential else 0.03
    )
    assert np.mean((approximate - D) ** 2) == pytest.approx(np.mean((exact - D) ** 2), rel=0.05)

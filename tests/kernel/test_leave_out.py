"""The algebra of left-out rows against systems of equations that are solved anew without them."""

import numpy as np
import pytest

from skldl.kernel import _large
from skldl.kernel._large import left_out as approximately_left_out
from skldl.kernel._large import nystroem, solve
from skldl.kernel._leave_out import ExactInverse, Weighting, decompose, intercept, kernel_means

PENALTIES = np.array([1e-4, 1e-1, 10.0])


def problem(n_rows=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] + 0.3 * rng.normal(size=n_rows)])
    distances = np.sqrt(((X[:, None] - X) ** 2).sum(axis=2))
    weight = rng.integers(1, 4, size=n_rows).astype(float)
    return X, Y, np.exp(-distances / 2), weight


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


@pytest.mark.parametrize("weighted", [False, True])
def test_coefficients_solve_the_penalised_problem(weighted):
    _, Y, K, weight = problem()
    weight = weight if weighted else None
    weighting = Weighting.of(weight, K)
    spectrum = decompose(K.copy(), weight)
    for penalty in PENALTIES:
        dual = spectrum.dual(Y, penalty)
        b = intercept(Y, dual, kernel_means(K, weighting), weighting)
        a_expected, b_expected = solve_anew(K, Y, weighting.root**2, penalty)
        np.testing.assert_allclose(dual, a_expected, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(b, b_expected, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_groups", [None, 7, 2])
def test_left_out_rows_equal_fits_without_them(weighted, n_groups):
    _, Y, K, weight = problem()
    codes = None if n_groups is None else np.arange(len(K)) * 3 % n_groups
    weight = weight if weighted else None
    ones = np.ones(len(K)) if weight is None else weight
    groups = np.arange(len(K)) if codes is None else codes
    tables = decompose(K.copy(), weight).left_out(Y, PENALTIES, codes)
    for penalty, table in zip(PENALTIES, tables, strict=True):
        expected = predict_without(K, Y, ones, penalty, groups)
        np.testing.assert_allclose(table, expected, atol=1e-10)
        inverse = ExactInverse(K.copy(), weight, penalty)
        np.testing.assert_allclose(inverse.left_out(Y, inverse.residuals(Y), codes), expected, atol=1e-10)


def test_leverage_holds_the_part_of_the_intercept():
    _, _, K, _ = problem()
    centred = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
    values, vectors = np.linalg.eigh(centred)
    leverage = 1 / len(K) + (vectors**2 * (values / (values + 0.1))).sum(axis=1)
    np.testing.assert_allclose(1 - decompose(K.copy(), None).diagonal(np.array([0.1]))[0], leverage, atol=1e-12)


def test_a_constant_kernel_leaves_the_mean_of_the_others():
    _, Y, K, _ = problem()
    table = decompose(np.ones_like(K), None).left_out(Y, np.array([0.1]), None)[0]
    np.testing.assert_allclose(table, (Y.sum(axis=0) - Y) / (len(Y) - 1), atol=1e-12)


def test_an_indefinite_kernel_is_rejected():
    _, _, K, _ = problem()
    with pytest.raises(ValueError, match="not positive semi-definite"):
        decompose(-K, None)
    with pytest.raises(ValueError, match="not positive definite"):
        ExactInverse(-K, None, 1e-3)


@pytest.mark.parametrize("codes", [None, np.arange(60) % 9])
def test_nystroem_left_out_equals_ridge_on_its_features_without_the_rows(codes):
    X, Y, K, weight = problem(60)
    landmarks = np.arange(0, 60, 4)
    sketch = nystroem("exponential", X, 2.0, weight, landmarks)
    low_rank = K[:, landmarks] @ np.linalg.solve(K[np.ix_(landmarks, landmarks)], K[landmarks])
    table = sketch.spectrum.left_out(Y, np.array([0.3]), codes)[0]
    groups = np.arange(60) if codes is None else codes
    np.testing.assert_allclose(table, predict_without(low_rank, Y, weight, 0.3, groups), atol=1e-9)
    dual, b = sketch.dual(Y, 0.3)
    a_expected, b_expected = solve_anew(low_rank, Y, weight, 0.3)
    np.testing.assert_allclose(K[:, landmarks] @ dual + b, low_rank @ a_expected + b_expected, atol=1e-9)


def large_fit(X, Y, sketch, tol):
    rng = np.random.RandomState(0)
    return solve("exponential", X, 2.0, sketch, Y, 0.2, tol=tol, max_iter=200, random_state=rng)


def test_all_rows_as_landmarks_give_the_exact_leverages(monkeypatch):
    monkeypatch.setattr(_large, "PROBE_TOL", 1e-12)
    X, Y, K, weight = problem(50)
    sketch = nystroem("exponential", X, 2.0, weight, np.arange(50))
    fit = large_fit(X, Y, sketch, 1e-12)
    for codes in (None, np.arange(50) // 5):
        exact = decompose(K.copy(), weight).left_out(Y, np.array([0.2]), codes)[0]
        np.testing.assert_allclose(approximately_left_out(Y, fit, sketch, 0.2, codes), exact, atol=1e-8)


def test_conjugate_gradients_reach_the_exact_solution_and_a_good_approximation_of_left_out_rows():
    X, Y, K, weight = problem(300)
    sketch = nystroem("exponential", X, 2.0, weight, np.arange(0, 300, 6))
    fit = large_fit(X, Y, sketch, 1e-11)
    a_expected, b_expected = solve_anew(K, Y, weight, 0.2)
    np.testing.assert_allclose(fit.dual, a_expected, atol=1e-8)
    np.testing.assert_allclose(fit.intercept, b_expected, atol=1e-8)
    assert fit.n_iter < 60
    for codes, bound in ((None, 0.07), (np.arange(300) // 3, 0.2)):
        exact = decompose(K.copy(), weight).left_out(Y, np.array([0.2]), codes)[0]
        approximate = approximately_left_out(Y, fit, sketch, 0.2, codes)
        error = np.sqrt(np.mean((approximate - exact) ** 2) / np.mean((exact - Y) ** 2))
        assert error < bound
        assert np.mean((approximate - Y) ** 2) == pytest.approx(np.mean((exact - Y) ** 2), rel=0.05)

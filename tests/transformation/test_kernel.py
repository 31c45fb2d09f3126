"""The low-rank factor of a kernel matrix: its error is what it says, and expansions move to the pivot rows."""

from threading import Thread

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from skldl.transformation._kernel import KernelFactor, KernelMatrix, pivoted_cholesky


@pytest.fixture
def problem():
    X = np.random.default_rng(0).normal(size=(60, 3))
    return X, rbf_kernel(X, gamma=0.3)


def factorise(K, rank, tol=0.0):
    return pivoted_cholesky(lambda row: K[row], np.diag(K), max_rank=rank, tol=tol)


@pytest.mark.parametrize("rank", [1, 5, 20])
def test_error_bounds_every_entry(problem, rank):
    _, K = problem
    found = factorise(K, rank)
    rest = K - found.factor @ found.factor.T
    assert found.factor.shape == (60, rank)
    assert np.abs(rest).max() == pytest.approx(found.error, rel=1e-9)
    assert np.linalg.eigvalsh(rest).min() > -1e-12


def test_tolerance_ends_it(problem):
    _, K = problem
    found = factorise(K, 60, tol=1e-4)
    assert found.factor.shape[1] < 60
    assert found.error <= 1e-4


def test_is_the_nystroem_approximation(problem):
    _, K = problem
    found = factorise(K, 12)
    pivots = found.pivots
    nystroem = K[:, pivots] @ np.linalg.solve(K[np.ix_(pivots, pivots)], K[pivots])
    np.testing.assert_allclose(found.factor @ found.factor.T, nystroem, atol=1e-8)


def test_expansion_over_the_pivots(problem):
    X, K = problem
    found = factorise(K, 12)
    coefficients = np.random.default_rng(1).normal(size=(2, 60))
    moved = found.expansion(coefficients)
    assert np.count_nonzero(moved.any(axis=0)) == 12
    np.testing.assert_allclose(moved @ K, found.times(coefficients), atol=1e-9)
    new = rbf_kernel(np.zeros((1, 3)), X, gamma=0.3)
    expected = new[:, found.pivots] @ np.linalg.solve(K[np.ix_(found.pivots, found.pivots)], K[found.pivots])
    np.testing.assert_allclose(moved @ new.T, coefficients @ expected.T, atol=1e-7)


def test_matrix_and_factor_agree(problem):
    X, _ = problem
    matrix, factor = KernelMatrix(X @ X.T), KernelFactor(X, 0.0)
    coefficients = np.zeros((2, 60))
    for columns in (slice(0, 5), slice(0, 50)):
        coefficients[:, columns] = 1.5
        np.testing.assert_allclose(matrix.times(coefficients), factor.times(coefficients), atol=1e-10)
    rows = np.array([4, 7, 30])
    np.testing.assert_allclose(matrix.block(rows), factor.block(rows), atol=1e-12)
    assert matrix.features() is None
    assert factor.features() is X
    assert factor.expansion(coefficients) is coefficients
    assert matrix.expansion(coefficients) is coefficients


def test_smoothing_is_the_inverse_of_the_matrix_with_a_ridge(problem):
    _, K = problem
    kernel = KernelMatrix(K)
    coefficients = np.random.default_rng(1).normal(size=(2, 60)).astype(np.float32)
    for ridge in (0.5, 0.5, 4.0):  # the same twice, and another one
        found = kernel.smooth(coefficients, ridge)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, ridge * np.linalg.solve(K + ridge * np.eye(60), coefficients.T).T, atol=1e-5)


def test_threads_that_smooth_with_another_ridge_do_not_disturb_each_other(problem):
    """Another thread exchanges the inverse that is kept, just when this one has found that it is the right one."""
    kernel = KernelMatrix(problem[1])
    coefficients = np.ones((1, 60), dtype=np.float32)
    expected = kernel.smooth(coefficients, 0.5)

    class Ridge(float):
        def __ne__(self, other):
            thread = Thread(target=kernel.smooth, args=(coefficients, 4.0))
            thread.start()
            thread.join()
            return float(self) != other

    np.testing.assert_array_equal(kernel.smooth(coefficients, Ridge(0.5)), expected)


def test_a_matrix_that_is_not_positive_semidefinite_has_no_smoother():
    with pytest.raises(np.linalg.LinAlgError, match=r"with 0\.5 on its diagonal is not positive definite"):
        KernelMatrix(-np.eye(3)).smooth(np.ones((1, 3)), 0.5)

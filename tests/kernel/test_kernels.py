"""Kernels and distances against scikit-learn's and scipy's."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, rbf_kernel

from skldl.kernel import _kernels
from skldl.kernel._kernels import distances, kernel_times, kernel_values, squared_distances, typical_distance


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.uniform(size=(20, 5)) * (rng.uniform(size=(20, 5)) < 0.7), rng.uniform(size=(9, 5))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_kernels_are_those_of_scikit_learn(rows, form):
    A, B = rows
    expected = {
        "exponential": np.exp(-cdist(A, B) / 0.7),
        "laplacian": laplacian_kernel(A, B, gamma=1 / 0.7),
        "rbf": rbf_kernel(A, B, gamma=0.5 / 0.7**2),
        "chi2": chi2_kernel(A, B, gamma=1 / 0.7),
        "linear": A @ B.T / 0.7,
    }
    for name, values in expected.items():
        np.testing.assert_allclose(kernel_values(name, form(A), form(B), 0.7), values, atol=1e-12)
        np.testing.assert_allclose(kernel_values(name, A, form(B), 0.7), values, atol=1e-12)


def test_equal_rows_are_at_distance_zero_whatever_the_origin():
    X = 1e6 + np.random.default_rng(0).normal(size=(30, 4))
    assert not np.diagonal(distances(X, X, "euclidean")).any()
    np.testing.assert_allclose(distances(X, X, "euclidean"), cdist(X, X), rtol=1e-7)
    same = np.tile(X[:1], (30, 1))
    assert not distances(same, same, "euclidean").any()
    thin = sparse.csr_matrix(X * (np.arange(4) < 2))
    assert not np.diagonal(distances(thin, thin, "euclidean")).any()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_rows_of_two_clusters_far_apart_keep_their_digits(form):
    X = np.random.default_rng(0).normal(size=(60, 6)) * [1, 1, 1, 0, 0, 0]
    X[30:] = X[30:, ::-1]
    X[:30, 0] += 1e7
    X[30:, 5] += 1e7
    new = np.vstack([X[:5], X[-5:] + 0.5 * (X[-5:] != 0)])
    np.testing.assert_allclose(squared_distances(form(new), form(X)), cdist(new, X, "sqeuclidean"), rtol=1e-9)


@pytest.mark.parametrize(
    ("large", "of_rows", "of_others"),
    [
        (2.0**30, np.float64, np.float64),
        (2.0**15, np.float32, np.float32),
        (2.0**15, np.float32, np.float64),
        (2.0**15, np.float64, np.float32),
    ],
)
def test_whole_numbers_with_many_digits_are_rounded(large, of_rows, of_others):
    X = np.array([[large, 1, 0], [large, 3, 0], [0, 1, 5]])
    found = distances(sparse.csr_matrix(X.astype(of_rows)), sparse.csr_matrix(X.astype(of_others)), "euclidean")
    np.testing.assert_allclose(found, cdist(X, X), rtol=1e-6)


def test_whole_numbers_with_few_digits_need_no_differences(monkeypatch):
    """Rows of counts are often equal, and then many pairs would be computed twice."""
    X = np.tile([[1.0, 0.0, 2.0], [0.0, 7.0, 0.0]], (10, 1))
    monkeypatch.setattr(_kernels, "row_size", None)
    np.testing.assert_array_equal(distances(*2 * (sparse.csr_matrix(X),), "euclidean"), cdist(X, X))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_two_valued_columns_take_the_matrix_product_and_give_the_same_l1_distances(form, monkeypatch):
    rng = np.random.default_rng(0)
    binary = rng.integers(0, 2, size=(40, 30)) * rng.uniform(0.5, 3, size=30)
    binary[:, 3] -= 7 if form is np.asarray else 0
    X = np.hstack([binary, rng.normal(size=(40, 2))])
    new = X[:5].copy()
    new[0, 0] = 0.123  # a third value in a column that had two
    np.testing.assert_allclose(distances(form(X), form(X), "cityblock"), cdist(X, X, "cityblock"), atol=1e-10)
    np.testing.assert_allclose(distances(form(new), form(X), "cityblock"), cdist(new, X, "cityblock"), atol=1e-10)
    plain = []
    monkeypatch.setattr(_kernels, "_plain_cityblock", lambda A, B: plain.append(A.shape[1]) or np.zeros((5, 40)))
    distances(form(new), form(X), "cityblock")
    assert plain == [3]  # the two continuous columns and the one with a new value


def test_blocks_do_not_change_the_product(rows, monkeypatch):
    A, B = rows
    coefficients = np.random.default_rng(1).normal(size=(9, 2))
    expected = kernel_values("laplacian", A, B, 1.0) @ coefficients
    monkeypatch.setattr(_kernels, "BLOCK_CELLS", 30)
    np.testing.assert_allclose(kernel_times("laplacian", A, B, 1.0, coefficients), expected, atol=1e-14)


def test_median_distance_counts_weights_as_copies(rows):
    A, _ = rows
    weight = np.arange(20) % 3 + 1.0
    copies = np.repeat(A, weight.astype(int), axis=0)
    for metric in ("euclidean", "cityblock", "product"):
        expected = typical_distance(distances(copies, copies, metric), None, metric)
        assert typical_distance(distances(A, A, metric), weight, metric) == pytest.approx(expected, rel=1e-12)
    mostly_equal = np.r_[np.zeros((8, 1)), np.ones((2, 1))]
    assert typical_distance(distances(mostly_equal, mostly_equal, "euclidean"), None, "euclidean") == 1.0
    assert typical_distance(np.zeros((3, 3)), None, "euclidean") == 1.0


def test_a_kernel_function_must_return_one_number_for_each_pair(rows):
    with pytest.raises(ValueError, match=r"returned shape \(20,\)"):
        kernel_values(lambda A, B: A[:, 0], *rows, 1.0)

"""Kernels and their length scales against scikit-learn's and scipy's, seen through what `KernelRidgeLDL` predicts."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import chi2_kernel, laplacian_kernel, rbf_kernel

from skldl.kernel import LDSVR, KernelRidgeLDL

FORMS = [np.asarray, sparse.csr_matrix]
KERNELS = {
    "exponential": lambda A, B, scale: np.exp(-cdist(A, B) / scale),
    "laplacian": lambda A, B, scale: laplacian_kernel(A, B, gamma=1 / scale),
    "rbf": lambda A, B, scale: rbf_kernel(A, B, gamma=0.5 / scale**2),
    "chi2": lambda A, B, scale: chi2_kernel(A, B, gamma=1 / scale),
    "linear": lambda A, B, scale: A @ B.T / scale,
}


def ridge(name, width=1.0, alpha=0.1):
    return KernelRidgeLDL("degrees", kernel=name, width=width, alpha=alpha, scaling="raw", mean_share=0.0)


def degrees(n_rows):
    """Degrees so near to equal that no prediction has to be projected."""
    return 1 / 3 + np.random.default_rng(5).uniform(-0.02, 0.02, (n_rows, 1)) * [[1.0, 1.0, -2.0]]


def assert_kernel(model, X, new, kernel, rtol=1e-9):
    """The model predicts with the kernel of these rows, all of them computed from differences."""
    K = kernel(new, X, model.length_scale_)
    np.testing.assert_allclose(model.predict(new), K @ model.dual_coef_ + model.intercept_, rtol=rtol)
    np.testing.assert_allclose(model.dual_coef_.sum(axis=0), 0, atol=1e-9)
    fitted = kernel(X, X, model.length_scale_) @ model.dual_coef_ + model.intercept_
    penalty = model.alpha_ * len(X)
    np.testing.assert_allclose(fitted + penalty * model.dual_coef_, degrees(len(X)), rtol=rtol)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", list(KERNELS))
def test_kernels_are_those_of_scikit_learn(name, form):
    rng = np.random.default_rng(0)
    X, new = rng.uniform(size=(20, 5)) * (rng.uniform(size=(20, 5)) < 0.7), rng.uniform(size=(9, 5))
    model = ridge(name, 0.7 if name != "linear" else None).fit(form(X), degrees(20))
    assert_kernel(model, X, new, KERNELS[name])
    np.testing.assert_allclose(model.predict(sparse.csr_matrix(new)), model.predict(new), atol=1e-12)
    centred = X - X.mean(axis=0)
    unit = {
        "exponential": lambda: np.sort(cdist(X, X), axis=None)[199],  # the lower median of 400
        "rbf": lambda: np.sort(cdist(X, X), axis=None)[199],
        "laplacian": lambda: np.sort(cdist(X, X, "cityblock"), axis=None)[199],
        "chi2": lambda: np.sort(-np.log(chi2_kernel(X, X, gamma=1.0)), axis=None)[199],
        "linear": lambda: (centred**2).sum(axis=1).mean() / 0.7,
    }
    assert model.length_scale_ == pytest.approx(0.7 * unit[name](), rel=1e-9)


def two_clusters_far_apart():
    X = np.random.default_rng(0).normal(size=(60, 6)) * [1, 1, 1, 0, 0, 0]
    X[30:] = X[30:, ::-1]
    X[:30, 0] += 1e7
    X[30:, 5] += 1e7
    return X, np.vstack([X[:5], X[-5:] + 0.5 * (X[-5:] != 0)])


@pytest.mark.parametrize("form", FORMS)
def test_rows_far_from_zero_and_from_each_other_keep_their_digits(form):
    X, new = two_clusters_far_apart()
    model = LDSVR(width=1e-7, epsilon=0.0).fit(form(X), degrees(60))
    shifted = X - np.where(np.arange(60)[:, None] < 30, [1e7, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1e7])
    near = np.r_[new[:5] - [1e7, 0, 0, 0, 0, 0], new[5:] - [0, 0, 0, 0, 0, 1e7]]
    square = cdist(near, shifted, "sqeuclidean")
    apart = (np.arange(10) < 5)[:, None] != (np.arange(60) < 30)
    K = np.where(apart, 0.0, np.exp(-square / (2 * model.sigma_**2)))
    assert model.sigma_ < 2
    scores = K @ model.dual_coef_ + model.intercept_
    expected = 1 / (1 + np.exp(-scores))
    np.testing.assert_allclose(model.predict(form(new)), expected / expected.sum(axis=1, keepdims=True), rtol=1e-8)


@pytest.mark.parametrize("form", FORMS)
def test_equal_rows_are_at_distance_zero_whatever_the_origin(form):
    X = (1e6 + np.random.default_rng(0).normal(size=(30, 4))) * (np.arange(4) < 2)
    model = ridge("exponential", 1e-12, alpha=1e-6).fit(form(X), degrees(30))  # so narrow that only equal rows count
    weight = (np.eye(30) - 1 / 30) / (1 + 30e-6)
    np.testing.assert_allclose(model.predict(form(X)), weight @ degrees(30) + degrees(30).mean(axis=0), atol=1e-12)


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
    model = ridge("exponential", 3.0 / large).fit(sparse.csr_matrix(X.astype(of_others)), degrees(3))
    assert_kernel(model, X, X, KERNELS["exponential"], rtol=1e-6)
    single = sparse.csr_matrix(X.astype(of_rows))
    np.testing.assert_allclose(model.predict(single), model.predict(X), rtol=1e-6)


def test_whole_numbers_with_few_digits_need_no_differences(monkeypatch):
    """Rows of counts are often equal, and then many pairs would be computed twice."""
    X = np.tile([[1.0, 0.0, 2.0], [0.0, 7.0, 0.0]], (10, 1))
    model = ridge("exponential").fit(sparse.csr_matrix(X), degrees(20))
    monkeypatch.setattr("skldl.kernel._kernels.row_size", None)
    assert_kernel(model, X, X, KERNELS["exponential"])


@pytest.mark.parametrize("form", FORMS)
def test_two_valued_columns_take_the_matrix_product_and_have_the_same_l1_distances(form, monkeypatch):
    rng = np.random.default_rng(0)
    binary = rng.integers(0, 2, size=(40, 30)) * rng.uniform(0.5, 3, size=30)
    binary[:, 3] -= 7 if form is np.asarray else 0
    X = np.hstack([binary, rng.normal(size=(40, 2))])
    new = X[:5].copy()
    new[0, 0] = 0.123  # a third value in a column that had two
    model = ridge("laplacian").fit(form(X), degrees(40))
    assert_kernel(model, X, new, KERNELS["laplacian"])
    np.testing.assert_allclose(model.predict(form(new)), model.predict(new), atol=1e-12)
    plain = []
    monkeypatch.setattr(
        "skldl.kernel._kernels._plain_cityblock", lambda A, B: plain.append(A.shape[1]) or np.zeros((5, 40))
    )
    model.predict(form(new))
    assert plain == [3]  # the two continuous columns and the one with a new value


@pytest.mark.parametrize("name", ["exponential", "laplacian", "linear"])
def test_weights_count_as_copies_in_the_length_scale(name):
    X = np.random.default_rng(0).uniform(size=(20, 5))
    weight = np.arange(20) % 3 + 1
    rows = np.repeat(np.arange(20), weight)
    width = None if name == "linear" else 1.0
    weighted = ridge(name, width).fit(X, degrees(20), weight)
    assert weighted.length_scale_ == pytest.approx(
        ridge(name, width).fit(X[rows], degrees(20)[rows]).length_scale_, rel=1e-12
    )


@pytest.mark.parametrize("X", [np.r_[np.zeros((8, 1)), np.ones((2, 1))], np.zeros((3, 1))])
def test_the_length_scale_of_rows_that_are_mostly_equal_is_not_zero(X):
    assert ridge("exponential").fit(X, degrees(len(X))).length_scale_ == 1.0


def test_a_kernel_function_must_return_one_number_for_each_pair():
    with pytest.raises(ValueError, match=r"returned shape \(20,\)"):
        KernelRidgeLDL(kernel=lambda A, B: A[:, 0], alpha=0.1).fit(np.ones((20, 3)), degrees(20))

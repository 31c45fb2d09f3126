"""Nearly constant columns of sparse rows: fitted as dense ones are, in memory and in chunks."""

import numpy as np
import pytest
from scipy import sparse

from skldl import SABFGS, SABFGSCV
from skldl.chunks import ArrayRows
from skldl.maxent import _moments
from skldl.maxent._whitening import factorise  # its products of columns are compared: fits would hide lost digits
from skldl.selection import assign_folds
from skldl.testing import make_distributions

TWO_VALUES = [(1.0, 0.0), (-0.3, 0.0), (5.0, 7.0)]
TINY = [1e-2, 1e-4, 1e-6, 1e-8, 5e-9, 1e-12, 1e-30]


def nearly_constant(common, other, tiny, n_rows=100, n_features=5):
    """Features, two of which hold another value in one and two rows of tiny weight alone, distributions and weights."""
    X, D = make_distributions(n_rows, n_features, 3)
    X[X < 0.3] = 0.0
    X[:, [1, 3]] = common
    X[7, 1] = X[7, 3] = X[9, 3] = other
    weight = np.ones(n_rows)
    weight[[7, 9]] = tiny, 3 * tiny
    return X, D, weight


@pytest.mark.parametrize("values", TWO_VALUES)
@pytest.mark.parametrize("tiny", [*TINY, 1e-323])
def test_products_of_columns_are_those_of_dense_rows(values, tiny):
    X, _, weight = nearly_constant(*values, tiny)
    weight /= weight.sum()
    dense, thin = (factorise(form, weight, fit_intercept=True, scale_free=False) for form in (X, sparse.csr_matrix(X)))
    scale = np.sqrt(np.diag(dense.gram))
    scale[scale == 0] = 1.0
    np.testing.assert_allclose(thin.gram / np.outer(scale, scale), dense.gram / np.outer(scale, scale), atol=1e-9)
    np.testing.assert_allclose(np.sqrt(np.diag(thin.gram)), scale * (np.diag(dense.gram) > 0), 1e-9)
    np.testing.assert_allclose(thin.centre, dense.centre, rtol=1e-13)


@pytest.mark.parametrize("values", TWO_VALUES)
@pytest.mark.parametrize("tiny", TINY)
@pytest.mark.parametrize("n_features", [5, 150])
@pytest.mark.parametrize("model", [SABFGS(0.01, fit_intercept=True, tol=1e-12), SABFGSCV([1e-3, 0.1], cv=3)])
def test_sparse_rows_in_memory_and_in_chunks_are_fitted_as_dense_ones(values, tiny, n_features, model):
    X, D, weight = nearly_constant(*values, tiny, n_features=n_features)
    thin = sparse.csr_matrix(X)
    expected = model.fit(X, D, weight).predict(X)
    for fitted in (model.fit(thin, D, weight), model.fit(ArrayRows(thin, D, weight, chunk_rows=30))):
        np.testing.assert_allclose(np.delete(fitted.predict(X), [7, 9], 0), np.delete(expected, [7, 9], 0), atol=1e-6)


@pytest.mark.parametrize("tiny", [1e-7, 1e-9])
def test_a_flag_leaves_the_optimum_without_penalty_alone(tiny):
    """With more features than rows and no penalty, columns are scaled, and with them the rounding of their products."""
    X, _, weight = nearly_constant(1.0, 0.0, tiny, 60, 200)
    weight /= weight.sum()
    dense, thin = (factorise(form, weight, fit_intercept=True, scale_free=True) for form in (X, sparse.csr_matrix(X)))
    np.testing.assert_allclose(thin.rows.eigenvalues, dense.rows.eigenvalues, rtol=1e-7)


@pytest.mark.parametrize("n_features", [5, 150])
def test_a_start_and_a_plain_search_know_the_features_as_they_are(n_features):
    X, D, weight = nearly_constant(1.0, 0.0, 1e-9, n_features=n_features)
    thin = sparse.csr_matrix(X)
    plain = SABFGS(0.01, whiten=False, fit_intercept=True, tol=1e-10)
    np.testing.assert_allclose(plain.fit(thin, D, weight).predict(X), plain.fit(X, D, weight).predict(X), atol=1e-5)
    warm = SABFGS(0.01, fit_intercept=True, warm_start=True).fit(thin, D, weight)
    assert warm.fit(thin, D, weight).n_iter_ == 0


def test_many_columns_take_the_diagonal(monkeypatch):
    monkeypatch.setattr(_moments, "MAX_MATRIX", 4)
    X, D, weight = nearly_constant(1.0, 0.0, 1e-9)
    thin, model = sparse.csr_matrix(X), SABFGS(0.01, fit_intercept=True, tol=1e-12)
    expected = model.fit(X, D, weight).predict(X)
    for fitted in (model.fit(thin, D, weight), model.fit(ArrayRows(thin, D, weight, chunk_rows=30))):
        np.testing.assert_allclose(fitted.predict(X), expected, atol=1e-9)


def test_a_column_that_is_nearly_constant_without_one_fold_alone():
    X, D, weight = nearly_constant(1.0, 0.0, 1e-9)
    thin, expected = sparse.csr_matrix(X), SABFGSCV([0.1], cv=3).fit(X, D, weight)
    rows = ArrayRows(thin, D, weight, chunk_rows=30)
    np.testing.assert_allclose(SABFGSCV([0.1], cv=3).fit(rows).coef_, expected.coef_, atol=1e-6)
    fold = assign_folds(100, 3, random_state=np.random.RandomState(0))  # those of SABFGSCV
    X[:, 1] = np.where(fold == fold[7], np.arange(100) % 5, 1.0)  # with that fold, it is not
    X[(fold != fold[7]).argmax(), 1] = 0.0
    weight[(fold != fold[7]).argmax()] = 1e-9
    thin, expected = sparse.csr_matrix(X), SABFGSCV([0.1], cv=3).fit(X, D, weight)
    for fitted in (SABFGSCV([0.1], cv=3).fit(thin, D, weight), SABFGSCV([0.1], cv=3).fit(ArrayRows(thin, D, weight))):
        np.testing.assert_allclose(fitted.coef_, expected.coef_, atol=1e-6)


@pytest.mark.parametrize("other", [0.0, 1e7])
@pytest.mark.parametrize("n_features", [5, 150])
def test_a_column_far_from_zero_is_rejected_in_memory_and_in_chunks(other, n_features):
    X, D, weight = nearly_constant(1.0, 0.0, 1e-9, n_features=n_features)
    X[:, 2] = 1e7 + np.random.default_rng(0).random(100)
    X[7, 2] = other
    thin, model = sparse.csr_matrix(X), SABFGS(0.01, fit_intercept=True)
    for data in ((thin, D, weight), (ArrayRows(thin, D, weight, chunk_rows=30),)):
        with pytest.raises(ValueError, match=r"Column 2 of the sparse X has mean 1e\+07 .* dense X"):
            model.fit(*data)


def test_more_than_two_values_are_rejected_in_memory_and_in_chunks():
    X, D, weight = nearly_constant(1.0, 0.0, 1e-12)
    X[9, 3] = 0.5
    thin = sparse.csr_matrix(X)
    for data in ((thin, D, weight), (ArrayRows(thin, D, weight, chunk_rows=30),)):
        with pytest.raises(ValueError, match=r"Column 3 of the sparse X has mean 1 and values from 0 to 1: .* dense X"):
            SABFGS(0.01, fit_intercept=True).fit(*data)


@pytest.mark.parametrize(
    ("common", "other", "tiny", "n_passes"),
    [(1.0, 0.0, 1e-9, 2), (5.0, 7.0, 1e-9, 2), (1.0, 0.0, 1.0, 1), (3.7, 3.7, 1.0, 1)],
)
def test_only_nearly_constant_columns_of_two_values_take_a_second_pass(common, other, tiny, n_passes):
    X, D, weight = nearly_constant(common, other, tiny)
    rows = ArrayRows(sparse.csr_matrix(X), D, weight, chunk_rows=30)
    assert SABFGS(0.01, fit_intercept=True).fit(rows).n_evaluations_ == rows.n_passes - n_passes


def test_constant_columns_of_single_precision_have_weight_zero():
    X, D = make_distributions(100, 3, 3)
    X = np.column_stack([X, np.tile(np.linspace(0.1, 3, 9), (100, 1))]).astype(np.float32)
    model = SABFGS(fit_intercept=True).fit(sparse.csr_matrix(X), D)
    assert not model.coef_[:, 3:].any()
    assert model.coef_[:, :3].all()

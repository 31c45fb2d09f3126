"""Features whose squares overflow or vanish are refused where squares are needed, and nowhere else."""

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context

from skldl import PTSVM, SABFGS, SABFGSCV, SAIIS, PTBayes
from skldl.chunks import ArrayRows
from skldl.exceptions import DataError
from skldl.testing import make_distributions

SQUARING = [SABFGS(), SABFGS(fit_intercept=True), SABFGSCV(), PTBayes(), PTBayes("diag"), PTSVM("linear")]


@pytest.mark.parametrize("model", SQUARING, ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(("scale", "size"), [(1e160, "large"), (1e-160, "small"), (-1e200, "large")])
def test_squares_that_overflow_or_vanish_are_refused_with_the_cure(model, form, scale, size):
    X, D = make_distributions(n_samples=40)
    with pytest.raises(DataError, match=f"whose squares are too {size} .*Multiply X by a power of ten"):
        model.fit(form(scale * X), D)


@pytest.mark.parametrize("model", SQUARING[:5], ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(("scale", "size"), [(1e160, "large"), (1e-160, "small")])
def test_rows_in_chunks_are_refused_likewise(model, form, scale, size):
    X, D = make_distributions(n_samples=40)
    with pytest.raises(DataError, match=f"whose squares are too {size} .*Multiply X by a power of ten"):
        model.fit(ArrayRows(form(scale * X), D, chunk_rows=15))
    X[:15] *= 1e-200  # the squares of one chunk may vanish
    assert np.isfinite(model.fit(ArrayRows(form(X), D, chunk_rows=15)).predict(X)).all()


@pytest.mark.parametrize("model", SQUARING[:3], ids=repr)
@pytest.mark.parametrize(("scale", "size"), [(1e160, "large"), (1e-160, "small")])
def test_arrays_on_a_device_are_refused_likewise(model, scale, size, monkeypatch):
    xp = pytest.importorskip("array_api_strict")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    X, D = make_distributions(n_samples=40)
    with config_context(array_api_dispatch=True), pytest.raises(DataError, match=f"whose squares are too {size}"):
        model.fit(xp.asarray(scale * X), xp.asarray(D))


@pytest.mark.parametrize("scale", [1e20, 1e100])
def test_a_linear_machine_whose_numbers_overflow_is_told_with_the_cure(scale):
    X, D = make_distributions(n_samples=40)
    with pytest.raises(DataError, match=r"LIBSVM could not solve a machine of PTSVM.*Scale the features"):
        PTSVM("linear").fit(scale * X, D)


@pytest.mark.parametrize("model", SQUARING[:5], ids=repr)
def test_a_column_of_tiny_numbers_and_a_table_of_zeros_are_none(model):
    X, D = make_distributions(n_samples=40)
    expected = model.fit(np.column_stack([X, np.zeros(40)]), D).predict(np.column_stack([X, np.zeros(40)]))
    tiny = np.column_stack([X, np.full(40, 1e-300)])
    np.testing.assert_allclose(model.fit(tiny, D).predict(tiny), expected, atol=1e-9)
    assert np.isfinite(model.fit(np.zeros((40, 2)), D).predict(np.zeros((3, 2)))).all()


@pytest.mark.filterwarnings("ignore:SAIIS stopped at max_iter=20")  # any number of iterations can be compared
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_scaling_by_iterations_takes_any_unit(scale):
    X, D = make_distributions(n_samples=40)
    expected = SAIIS(max_iter=20, tol=0).fit(abs(X), D).predict(abs(X))
    found = SAIIS(max_iter=20, tol=0).fit(scale * abs(X), D).predict(scale * abs(X))
    np.testing.assert_allclose(found, expected, atol=1e-9)

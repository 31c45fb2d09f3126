"""Features whose squares overflow or vanish are refused where squares are needed, and nowhere else."""

import numpy as np
import pytest
from scipy import sparse

from skldl import PTSVM, SABFGS, SABFGSCV, SAIIS, PTBayes
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
def test_a_column_of_tiny_numbers_and_a_table_of_zeros_are_none(model):
    X, D = make_distributions(n_samples=40)
    expected = model.fit(np.column_stack([X, np.zeros(40)]), D).predict(np.column_stack([X, np.zeros(40)]))
    tiny = np.column_stack([X, np.full(40, 1e-300)])
    np.testing.assert_allclose(model.fit(tiny, D).predict(tiny), expected, atol=1e-9)
    assert np.isfinite(model.fit(np.zeros((40, 2)), D).predict(np.zeros((3, 2)))).all()


@pytest.mark.filterwarnings("ignore:SAIIS stopped at max_iter=20")
@pytest.mark.parametrize("scale", [1e-200, 1e100])
def test_scaling_by_iterations_takes_any_unit(scale):
    X, D = make_distributions(n_samples=40)
    expected = SAIIS(max_iter=20, tol=0).fit(abs(X), D).predict(abs(X))
    found = SAIIS(max_iter=20, tol=0).fit(scale * abs(X), D).predict(scale * abs(X))
    np.testing.assert_allclose(found, expected, atol=1e-9)

"""SABFGS: warm starts and paths over a hyper-parameter end where fits from zero end."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from skldl import SABFGS
from skldl.maxent import _search, _whitening
from skldl.testing import make_distributions


def test_warm_start():
    X, D = make_distributions(100, 6, 4)
    for more in ({}, {"whiten": False, "fit_intercept": True}, {"fit_intercept": True, "alpha": 1e-3}):
        model = SABFGS(warm_start=True, **more).fit(X, D)
        expected, steps = model.predict(X), model.n_iter_
        assert model.fit(X, D).n_iter_ < min(3, steps)
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-4)
    wide = SABFGS(warm_start=True).fit(X[:5], D[:5])
    assert wide.fit(X[:5], D[:5]).n_iter_ <= 1
    with pytest.raises(ValueError, match="warm_start=True, but the fit before had 6 features and 4 labels"):
        model.fit(X[:, :3], D)


@pytest.mark.filterwarnings("ignore:SABFGS without intercept")  # alpha=10 leaves little but the uniform distribution
@pytest.mark.parametrize("shape", [(80, 5, 4), (15, 30, 3)])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_path_over_alpha_equals_cold_fits(shape, fit_intercept, form):
    X, D = make_distributions(*shape)
    model = SABFGS(fit_intercept=fit_intercept, tol=1e-14)
    alphas = [1e-3, 10.0, 0.0, 1e-1, 1e-15]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # 1e-14 is at the edge of rounding
        path = list(model.predict_path(form(X), D, X, param="alpha", values=alphas))
        for alpha, P in zip(alphas, path, strict=True):
            cold = SABFGS(alpha, fit_intercept=fit_intercept, tol=1e-14).fit(form(X), D)
            np.testing.assert_allclose(P, cold.predict(X), atol=1e-6, err_msg=f"alpha={alpha}")


def test_path_over_alpha_factorises_once(monkeypatch):
    calls = []
    original = _whitening.linalg.eigh
    monkeypatch.setattr(_whitening.linalg, "eigh", lambda *a, **k: calls.append(1) or original(*a, **k))
    X, D = make_distributions(80, 5, 4)
    list(SABFGS().predict_path(X, D, X, param="alpha", values=[1e-3, 1e-2, 1e-1, 1.0]))
    assert len(calls) == 1


@pytest.mark.parametrize("whiten", [False, True])
def test_path_over_max_iter_is_one_run(whiten, monkeypatch):
    runs = []
    original = _search.minimisation
    monkeypatch.setattr(_search, "minimisation", lambda *a, **k: runs.append(1) or original(*a, **k))
    X, D = make_distributions(80, 5, 4)
    values = [5, 1, 3, 500]
    path = list(SABFGS(whiten=whiten).predict_path(X, D, X, param="max_iter", values=values))
    assert len(runs) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the few iterations are the point
        for value, P in zip(values, path, strict=True):
            np.testing.assert_array_equal(P, SABFGS(whiten=whiten, max_iter=value).fit(X, D).predict(X))


def test_path_over_another_parameter_fits_each():
    X, D = make_distributions(40, 3, 3)
    path = list(SABFGS().predict_path(X, D, X, param="fit_intercept", values=[True, False]))
    np.testing.assert_array_equal(path[0], SABFGS(fit_intercept=True).fit(X, D).predict(X))
    plain = list(SABFGS(whiten=False, alpha=1e-2).predict_path(X, D, X, param="alpha", values=[1e-2]))
    np.testing.assert_array_equal(plain[0], SABFGS(whiten=False, alpha=1e-2).fit(X, D).predict(X))

"""The cross-entropy that SABFGS minimises against its definition, and its gradient against finite differences."""

import numpy as np
import pytest
from scipy import sparse, special

from skldl import SABFGS
from skldl.chunks import ArrayRows
from skldl.maxent import _blocks
from skldl.testing import make_distributions


def _by_definition(parameters, X, D, weight, alpha, fit_intercept):
    U, b = (parameters[:-1], parameters[-1]) if fit_intercept else (parameters, 0.0)
    log_P = special.log_softmax(X @ U + b, axis=1)
    return -(weight[:, None] * D * log_P).sum() / weight.sum() + 0.5 * alpha * (U**2).sum()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array, ArrayRows])
def test_loss_and_gradient(form, fit_intercept, evaluate, assert_downhill):
    X, D = make_distributions(30, 4, 3)
    X = np.where(X < 0.3, 0.0, X)
    rng = np.random.default_rng(2)
    weight = rng.uniform(0.1, 2, size=30)
    parameters = rng.normal(size=(4 + fit_intercept, 3))
    data = (ArrayRows(X, D, weight, chunk_rows=7),) if form is ArrayRows else (form(X), D, weight)
    loss, step = evaluate(parameters, *data, alpha=0.1, fit_intercept=fit_intercept)
    arguments = (X, D, weight, 0.1, fit_intercept)
    assert loss == pytest.approx(_by_definition(parameters, *arguments), rel=1e-13)
    assert_downhill(step, lambda flat: _by_definition(flat.reshape(parameters.shape), *arguments), parameters)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_at_the_optimum_the_gradient_vanishes(fit_intercept):
    X, D = make_distributions(60, 4, 3)
    weight = np.random.default_rng(0).uniform(0.1, 2, size=60)
    model = SABFGS(1e-3, fit_intercept=fit_intercept, tol=1e-14).fit(X, D, weight)
    rest = (weight / weight.sum())[:, None] * (model.predict(X) - D)
    np.testing.assert_allclose(X.T @ rest + 1e-3 * model.coef_.T, 0.0, atol=1e-7)
    if fit_intercept:
        np.testing.assert_allclose(rest.sum(axis=0), 0.0, atol=1e-7)


def test_blocks_change_nothing(monkeypatch):
    X, D = make_distributions(500, 3, 4)
    expected = SABFGS(fit_intercept=True).fit(X, D)
    monkeypatch.setattr(_blocks, "CACHE_CELLS", 4)
    model = SABFGS(fit_intercept=True).fit(X, D)
    np.testing.assert_allclose(model.loss_curve_, expected.loss_curve_, rtol=1e-14)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-13)


@pytest.mark.parametrize("size", [1e5, 400.0])
def test_scores_beyond_the_range_of_exp(size, evaluate):
    X, D = make_distributions(20, 3, 4)
    parameters = size * np.random.default_rng(0).normal(size=(4, 4))
    for fit_intercept in (False, True):
        own = parameters[: 3 + fit_intercept]
        loss, step = evaluate(own, X, D, fit_intercept=fit_intercept)
        assert loss == pytest.approx(_by_definition(own, X, D, np.ones(20), 0.0, fit_intercept), rel=1e-12)
        assert np.isfinite(step).all()


def test_single_precision_is_summed_in_double():
    X, D = make_distributions(200, 3, 4)
    X32 = X.astype(np.float32)
    model, expected = SABFGS().fit(X32, D), SABFGS().fit(X32.astype(np.float64), D)
    np.testing.assert_allclose(model.loss_curve_, expected.loss_curve_, rtol=1e-14)
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-13)


def test_loss_reaches_the_entropy_and_no_less():
    X, D = make_distributions(8, 20, 3)
    model = SABFGS().fit(X, D)
    entropy = special.entr(D).sum(axis=1).mean()
    assert 0.0 <= model.loss_curve_[-1] - entropy <= 1e-8
    assert model.excess_ == pytest.approx(model.loss_curve_[-1] - entropy, abs=1e-12)

"""Whitened coordinates: exact maps there and back, and a Hessian near the identity.

They are tested themselves, as the interface by which the packages losses and correlation use them: a wrong map would
cost steps, and change no optimum.
"""

import numpy as np
import pytest
from scipy import sparse, special

from skldl.maxent import _moments, _whitening
from skldl.maxent._whitening import factorise  # reason: see above
from skldl.testing import make_distributions

FORMS = [np.asarray, sparse.csr_matrix]


def _hessian(gradient, parameters, apply, adjoint):
    """Hessian in whitened coordinates at the given parameters, by central differences."""
    columns = []
    for i in range(parameters.size):
        step = np.zeros(parameters.size)
        step[i] = 1e-5
        moved = apply(step.reshape(parameters.shape))
        columns.append(adjoint(gradient(parameters + moved) - gradient(parameters - moved)).ravel() / 2e-5)
    return np.array(columns)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("alpha", [0.0, 1e-2])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("n_features", [3, 30])
def test_hessian_at_constant_predictions_is_a_projection(form, alpha, fit_intercept, n_features):
    X, D = make_distributions(20, n_features, 3)
    X = X * np.logspace(-1, 1, n_features)
    weight = np.linspace(1, 2, 20) / 30
    factorisation = factorise(form(X), weight, fit_intercept=fit_intercept, scale_free=alpha == 0)
    whitening = factorisation.whitening(alpha, np.full(3, 1 / 3))
    zero = np.zeros((factorisation.design.shape[1] + fit_intercept, 3))

    def gradient(parameters):
        design = factorisation.design
        U, b = (parameters[:-1], parameters[-1:]) if fit_intercept else (parameters, 0.0)
        rest = weight[:, None] * (special.softmax(design @ U + b, axis=1) - D)
        of_U = design.T @ rest + alpha * U
        return np.vstack([of_U, rest.sum(axis=0)]) if fit_intercept else of_U

    H = _hessian(gradient, zero, whitening.expand, whitening.contract)
    eigenvalues = np.linalg.eigvalsh(0.5 * (H + H.T))
    near = np.minimum(np.abs(eigenvalues), np.abs(eigenvalues - 1))
    assert near.max() < 1e-5
    assert (eigenvalues > 0.5).sum() == 2 * len(zero)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_contract_is_the_transpose_of_expand(form, fit_intercept):
    rng = np.random.default_rng(3)
    X, _ = make_distributions(12, 20, 4)
    factorisation = factorise(form(X), np.full(12, 1 / 12), fit_intercept=fit_intercept, scale_free=False)
    whitening = factorisation.whitening(0.1, np.array([0.1, 0.2, 0.3, 0.4]))
    shape = (factorisation.design.shape[1] + fit_intercept, 4)
    V, G = rng.normal(size=shape), rng.normal(size=shape)
    assert np.vdot(whitening.expand(V), G) == pytest.approx(np.vdot(V, whitening.contract(G)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale_free", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_row_space_gives_the_same_scores(form, scale_free, fit_intercept):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(10, 40)) * np.logspace(-2, 2, 40)
    X[:, 7] = 0.0
    X[3] = X[2]  # rank deficient
    weight = rng.dirichlet(np.full(10, 5.0))
    factorisation = factorise(form(X), weight, fit_intercept=fit_intercept, scale_free=scale_free)
    assert factorisation.design.shape[1] <= 9
    parameters = rng.normal(size=(factorisation.design.shape[1] + fit_intercept, 3))
    W, b = factorisation.to_features(parameters)
    U = parameters[: factorisation.design.shape[1]]
    expected = factorisation.design @ U + (parameters[-1] if fit_intercept else 0.0)
    np.testing.assert_allclose(X @ W + b, expected, atol=1e-9)
    np.testing.assert_allclose(factorisation.from_features(W, b), parameters, atol=1e-8)
    gradient = rng.normal(size=(40 + fit_intercept, 3))
    pulled = factorisation.gradient_from_features(gradient)
    flat = np.vstack([W, b]) if fit_intercept else W
    if fit_intercept:
        assert np.vdot(flat, gradient) == pytest.approx(np.vdot(parameters, pulled))
    else:
        assert np.vdot(W, gradient) == pytest.approx(np.vdot(parameters, pulled))


def test_many_features_and_rows_take_the_diagonal(monkeypatch):
    monkeypatch.setattr(_moments, "MAX_MATRIX", 5)
    X = sparse.random(30, 10, density=0.4, random_state=0, format="csr")
    weight = np.full(30, 1 / 30)
    for form in (X, X.toarray()):
        factorisation = factorise(form, weight, fit_intercept=True, scale_free=True)
        assert factorisation.design is form
        np.testing.assert_allclose(factorisation.eigenvalues, X.toarray().var(axis=0), atol=1e-14)


def test_cholesky_survives_a_gram_matrix_spoilt_by_rounding():
    spoilt = np.ones((3, 3)) - 1e-8 * np.eye(3)[::-1]
    spoilt[0, 1] = spoilt[1, 0] = 1 + 1e-7
    assert np.linalg.eigvalsh(spoilt).min() < 0
    assert np.isfinite(_whitening._inverse_root(spoilt, 0.0)).all()


@pytest.mark.parametrize("form", FORMS)
def test_deviations(form):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=50), np.full(50, 0.1), np.zeros(50), 1e3 + rng.normal(size=50)])
    gram = factorise(form(X), np.full(50, 0.02), fit_intercept=True, scale_free=False).gram
    deviations = np.sqrt(np.diag(gram))
    np.testing.assert_allclose(deviations[[0, 3]], X.std(axis=0)[[0, 3]], rtol=1e-6)
    np.testing.assert_array_equal(deviations[[1, 2]], 0.0)

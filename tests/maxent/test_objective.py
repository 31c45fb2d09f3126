"""The cross-entropy against its definition, and its gradient against finite differences."""

import numpy as np
import pytest
from scipy import optimize, sparse, special

from skldl.maxent import _blocks
from skldl.maxent._objective import CrossEntropy, probabilities, row_weights
from skldl.testing import make_distributions


def _by_definition(parameters, X, D, weight, alpha, fit_intercept):
    U, b = (parameters[:-1], parameters[-1]) if fit_intercept else (parameters, 0.0)
    log_P = special.log_softmax(X @ U + b, axis=1)
    return -(weight[:, None] * D * log_P).sum() + 0.5 * alpha * (U**2).sum()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_loss_and_gradient(form, fit_intercept):
    X, D = make_distributions(30, 4, 3)
    X = np.where(X < 0.3, 0.0, X)
    rng = np.random.default_rng(2)
    weight = row_weights(30, rng.uniform(0.1, 2, size=30))
    objective = CrossEntropy(form(X), D, weight, alpha=0.1, fit_intercept=fit_intercept)
    parameters = rng.normal(size=objective.shape)
    loss, gradient = objective(parameters)
    arguments = (X, D, weight, 0.1, fit_intercept)
    assert loss == pytest.approx(_by_definition(parameters, *arguments), rel=1e-13)
    numeric = optimize.approx_fprime(
        parameters.ravel(), lambda flat: _by_definition(flat.reshape(parameters.shape), *arguments), 1e-7
    )
    np.testing.assert_allclose(gradient.ravel(), numeric, atol=1e-6)
    b = parameters[-1] if fit_intercept else None
    expected = weight @ probabilities(X, parameters[: X.shape[1]], b)
    np.testing.assert_allclose(objective.mean_prediction, expected, rtol=1e-12)


def test_blocks_change_nothing(monkeypatch):
    X, D = make_distributions(500, 3, 4)
    weight = row_weights(500, None)
    parameters = np.random.default_rng(0).normal(size=(3, 4))
    whole = CrossEntropy(X, D, weight)(parameters)
    monkeypatch.setattr(_blocks, "CACHE_CELLS", 4)
    in_blocks = CrossEntropy(X, D, weight)(parameters)
    assert in_blocks[0] == pytest.approx(whole[0], rel=1e-14)
    np.testing.assert_allclose(in_blocks[1], whole[1], atol=1e-15)


def test_scores_beyond_the_range_of_exp():
    X, D = make_distributions(20, 3, 4)
    parameters = 1e5 * np.random.default_rng(0).normal(size=(3, 4))
    weight = row_weights(20, None)
    loss, gradient = CrossEntropy(X, D, weight)(parameters)
    assert loss == pytest.approx(_by_definition(parameters, X, D, weight, 0.0, False), rel=1e-12)
    assert np.isfinite(gradient).all()


def test_single_precision_is_summed_in_double():
    X, D = make_distributions(200, 3, 4)
    X32 = X.astype(np.float32)
    parameters = np.random.default_rng(0).normal(size=(3, 4))
    weight = row_weights(200, None)
    loss, gradient = CrossEntropy(X32, D, weight)(parameters)
    expected_loss, expected = CrossEntropy(X32.astype(np.float64), D, weight)(parameters)
    assert loss == pytest.approx(expected_loss, rel=1e-14)
    np.testing.assert_allclose(gradient, expected, atol=1e-15)


def test_loss_never_falls_below_the_entropy():
    X, D = make_distributions(8, 20, 3)
    objective = CrossEntropy(X, D, row_weights(8, None))
    perfect = np.linalg.lstsq(X, np.log(D), rcond=None)[0]
    assert objective(perfect)[0] == pytest.approx(objective.entropy, abs=1e-12)


def test_row_weights_of_any_size():
    np.testing.assert_allclose(row_weights(3, np.array([1e308, 1e308, 2e307])), [5 / 11, 5 / 11, 1 / 11])
    np.testing.assert_allclose(row_weights(4, None), 0.25)


def test_the_rows_are_read_once_for_one_point_and_several_alphas(monkeypatch):
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(30, 4)), rng.dirichlet(np.ones(3), size=30)
    objective = CrossEntropy(X, D, row_weights(30, None), fit_intercept=True)
    parameters = rng.normal(size=objective.shape)
    loss, gradient = objective(parameters)
    kept, mean = gradient.copy(), objective.mean_prediction
    objective(np.zeros(objective.shape))
    objective(parameters)
    monkeypatch.setattr(CrossEntropy, "_without_penalty", None)  # a further pass would fail
    objective.alpha = 0.3
    penalised, slope = objective(parameters)
    U = parameters[:4]
    assert penalised == pytest.approx(loss + 0.15 * np.vdot(U, U), rel=1e-14)
    np.testing.assert_allclose(slope, gradient + 0.3 * np.vstack([U, np.zeros(3)]), rtol=1e-13)
    np.testing.assert_array_equal(gradient, kept)
    np.testing.assert_array_equal(objective.mean_prediction, mean)

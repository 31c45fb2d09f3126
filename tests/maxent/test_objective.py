"""The cross-entropy against its definition, and its gradient against finite differences."""

import numpy as np
import pytest
from scipy import optimize, sparse, special

from skldl.chunks import ArrayRows
from skldl.maxent import _blocks
from skldl.maxent._objective import Passes, Request, probabilities
from skldl.testing import make_distributions


def _by_definition(parameters, X, D, weight, alpha, fit_intercept):
    U, b = (parameters[:-1], parameters[-1]) if fit_intercept else (parameters, 0.0)
    log_P = special.log_softmax(X @ U + b, axis=1)
    return -(weight[:, None] * D * log_P).sum() / weight.sum() + 0.5 * alpha * (U**2).sum()


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_loss_and_gradient(form, fit_intercept, evaluate):
    X, D = make_distributions(30, 4, 3)
    X = np.where(X < 0.3, 0.0, X)
    rng = np.random.default_rng(2)
    weight = rng.uniform(0.1, 2, size=30)
    parameters = rng.normal(size=(4 + fit_intercept, 3))
    loss, gradient, mean, _ = evaluate(parameters, form(X), D, weight, alpha=0.1, fit_intercept=fit_intercept)
    arguments = (X, D, weight, 0.1, fit_intercept)
    assert loss == pytest.approx(_by_definition(parameters, *arguments), rel=1e-13)
    numeric = optimize.approx_fprime(
        parameters.ravel(), lambda flat: _by_definition(flat.reshape(parameters.shape), *arguments), 1e-7
    )
    np.testing.assert_allclose(gradient.ravel(), numeric, atol=1e-6)
    b = parameters[-1] if fit_intercept else None
    expected = weight @ probabilities(X, parameters[: X.shape[1]], b) / weight.sum()
    np.testing.assert_allclose(mean, expected, rtol=1e-12)


def test_blocks_and_chunks_change_nothing(monkeypatch, evaluate):
    X, D = make_distributions(500, 3, 4)
    parameters = np.random.default_rng(0).normal(size=(4, 4))
    whole = evaluate(parameters, X, D, fit_intercept=True)
    monkeypatch.setattr(_blocks, "CACHE_CELLS", 4)
    in_blocks = evaluate(parameters, X, D, fit_intercept=True)
    assert in_blocks[0] == pytest.approx(whole[0], rel=1e-14)
    np.testing.assert_allclose(in_blocks[1], whole[1], atol=1e-15)
    passes = Passes(ArrayRows(X, D, chunk_rows=77))
    sums = passes.sums(np.ones((1, 1), dtype=bool), parameters[None, :3], parameters[None, 3])
    np.testing.assert_allclose(sums.gradient_of_b[0] / 500, whole[2], rtol=1e-13)


def test_several_requests_are_answered_as_each_alone():
    X, D = make_distributions(200, 3, 4)
    rng = np.random.default_rng(0)
    asked = [Request(rng.normal(size=(3, 4)), rng.normal(size=4)) for _ in range(3)]
    passes = Passes(ArrayRows(X, D, chunk_rows=77))

    def search(number):
        first = yield asked[number]
        second = (yield asked[0]) if number else None
        return first, second

    together = passes.run_together([search(number) for number in range(3)], np.ones((3, 1), dtype=bool))
    assert passes.rows.n_passes == 2
    for number, (first, second) in enumerate(together):
        alone, again = passes.run(search(number))
        np.testing.assert_allclose(first.gradient, alone.gradient, rtol=1e-13)
        assert first.log_partition == pytest.approx(alone.log_partition, rel=1e-14)
        if number:
            np.testing.assert_allclose(second.gradient, again.gradient, rtol=1e-13)


@pytest.mark.parametrize("size", [1e5, 400.0])
def test_scores_beyond_the_range_of_exp(size, evaluate):
    X, D = make_distributions(20, 3, 4)
    parameters = size * np.random.default_rng(0).normal(size=(4, 4))
    for fit_intercept in (False, True):
        own = parameters[: 3 + fit_intercept]
        loss, gradient, _, _ = evaluate(own, X, D, fit_intercept=fit_intercept)
        assert loss == pytest.approx(_by_definition(own, X, D, np.ones(20), 0.0, fit_intercept), rel=1e-12)
        assert np.isfinite(gradient).all()


def test_single_precision_is_summed_in_double(evaluate):
    X, D = make_distributions(200, 3, 4)
    X32 = X.astype(np.float32)
    parameters = np.random.default_rng(0).normal(size=(3, 4))
    loss, gradient, *_ = evaluate(parameters, X32, D)
    expected_loss, expected, *_ = evaluate(parameters, X32.astype(np.float64), D)
    assert loss == pytest.approx(expected_loss, rel=1e-14)
    np.testing.assert_allclose(gradient, expected, atol=1e-15)


def test_loss_never_falls_below_the_entropy(evaluate):
    X, D = make_distributions(8, 20, 3)
    perfect = np.linalg.lstsq(X, np.log(D), rcond=None)[0]
    loss, *_, objective = evaluate(perfect, X, D)
    assert loss == pytest.approx(objective.entropy, abs=1e-12)

"""Row losses: gradients by finite differences, closed forms, and the measures of the same name."""

import numpy as np
import pytest

from skldl.losses import COMBINATIONS, LOSSES, resolve_loss
from skldl.metrics import cumulative_jensen_shannon, earth_mover, error_of_mean, squared_euclidean
from skldl.metrics import kullback_leibler as kullback_leibler_measure
from skldl.simplex import log_softmax

SMOOTHING = 1e-3  # as documented


def _rows(n_labels=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(6, n_labels)), rng.dirichlet(np.ones(n_labels), size=6)


def slope_by_differences(function, S, step=1e-6):
    """Central differences of a function from scores to one value per row."""
    gradient = np.empty_like(S)
    for j in range(S.shape[1]):
        up, down = S.copy(), S.copy()
        up[:, j] += step
        down[:, j] -= step
        gradient[:, j] = (function(up) - function(down)) / (2 * step)
    return gradient


@pytest.mark.parametrize("name", [*LOSSES, *COMBINATIONS])
@pytest.mark.parametrize("n_labels", [2, 3, 7])
def test_gradient_is_that_of_the_value(name, n_labels):
    S, D = _rows(n_labels)
    loss = resolve_loss(name)
    values, gradient = loss(log_softmax(S), D)
    assert values.shape == (6,)
    np.testing.assert_allclose(
        gradient, slope_by_differences(lambda S: loss(log_softmax(S), D)[0], S), rtol=1e-5, atol=1e-7
    )
    np.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "measure", "error"),
    [
        ("kullback_leibler", kullback_leibler_measure, 1e-12),
        ("squared_error", squared_euclidean, 1e-12),
        ("cjs", cumulative_jensen_shannon, 1e-12),
        ("cad", earth_mover, 4 * SMOOTHING),
        ("expectation", error_of_mean, SMOOTHING),
    ],
)
def test_value_is_that_of_the_measure(name, measure, error):
    S, D = _rows()
    P = np.exp(log_softmax(S))
    np.testing.assert_allclose(LOSSES[name](np.log(P), D)[0], measure.rowwise(D, P), rtol=0, atol=error)


def test_quadratic_form_is_the_squared_distance_of_running_sums():
    """(p − d)ᵀ A (p − d) = 2/(c − 1) Σ_j (F̂_j − F_j)², since the differences sum to zero."""
    S, D = _rows()
    P = np.exp(log_softmax(S))
    expected = 2 / 4 * (np.cumsum(P - D, axis=1) ** 2).sum(axis=1)
    np.testing.assert_allclose(LOSSES["qfd2"](np.log(P), D)[0], expected, rtol=1e-12)


def test_unimodal_penalty_by_loops():
    S, D = _rows()
    P = np.exp(log_softmax(S))
    expected = np.zeros(len(D))
    for i, (p, d) in enumerate(zip(P, D, strict=True)):
        y = d.argmax()
        expected[i] = sum(max(0.0, -(p[j] - p[j + 1]) * np.sign(j - y)) for j in range(len(p) - 1))
    np.testing.assert_allclose(LOSSES["unimodal"](np.log(P), D)[0], expected, atol=4 * SMOOTHING)


def test_concentrated_penalty_is_a_gaussian_likelihood():
    from scipy import stats

    S, D = _rows()
    P, places = np.exp(log_softmax(S)), np.arange(5)
    mean = P @ places
    deviation = np.sqrt(P @ places**2 - mean**2)
    expected = -stats.norm(mean, deviation).logpdf(D @ places) - 0.5 * np.log(2 * np.pi)
    np.testing.assert_allclose(LOSSES["concentrated"](np.log(P), D)[0], expected, rtol=1e-4)


def test_running_sums_of_probabilities_that_underflow_keep_a_finite_slope():
    log_p = log_softmax(np.array([[-2000.0, 0.0, 1.0]]))
    for d in ([[0.2, 0.3, 0.5]], [[0.0, 0.5, 0.5]]):
        values, gradient = LOSSES["cjs"](log_p, np.array(d))
        assert np.isfinite(values).all()
        assert np.isfinite(gradient).all()


def test_sum_of_losses():
    S, D = _rows()
    log_p = log_softmax(S)
    values, gradient = resolve_loss({"kullback_leibler": 2.0, "qfd2": 0.5})(log_p, D)
    first, second = LOSSES["kullback_leibler"](log_p, D), LOSSES["qfd2"](log_p, D)
    np.testing.assert_allclose(values, 2 * first[0] + 0.5 * second[0])
    np.testing.assert_allclose(gradient, 2 * first[1] + 0.5 * second[1])


@pytest.mark.parametrize("bad", ["emd", {}, {"emd": 1.0}, {"cad": -1.0}, 3])
def test_unknown_losses_are_rejected(bad):
    with pytest.raises(ValueError, match=r"loss|coefficient"):
        resolve_loss(bad)

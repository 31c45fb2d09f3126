"""Noise generators: the share that is asked for, rows that stay distributions, repeatable, nothing changed in place."""

import numpy as np
import pytest

from skldl.data import exchange_rows, gaussian_log_ratio_noise

D = np.random.default_rng(0).dirichlet(np.ones(5), 400)


def test_exchanged_rows():
    mixed = exchange_rows(D, 0.25, random_state=0)
    assert (np.abs(mixed - D) > 1e-9).any(axis=1).mean() == pytest.approx(0.25)
    np.testing.assert_allclose(np.sort(mixed, axis=0), np.sort(D, axis=0), rtol=1e-12)
    np.testing.assert_allclose(exchange_rows(D, 0.0), D, rtol=1e-12)
    np.testing.assert_allclose(exchange_rows(D[:1], 1.0), D[:1], rtol=1e-12)


def test_gaussian_noise_in_log_ratios():
    np.testing.assert_allclose(gaussian_log_ratio_noise(D, 0.0), D, atol=1e-12)
    noisy = gaussian_log_ratio_noise(D, 0.4, random_state=0)
    np.testing.assert_allclose(noisy.sum(axis=1), 1)

    def clr(rows):
        return np.log(rows) - np.log(rows).mean(axis=1, keepdims=True)

    change = clr(noisy) - clr(D)
    assert change.std() == pytest.approx(0.4 * np.sqrt(4 / 5), rel=0.05)  # centring takes one of five parts out
    with_zeros = gaussian_log_ratio_noise(np.eye(3), 0.1, random_state=0)
    assert np.isfinite(with_zeros).all()
    assert with_zeros.diagonal().min() > 0.99


@pytest.mark.parametrize(
    ("function", "arguments", "what"),
    [
        (exchange_rows, {"share": 2}, "share"),
        (gaussian_log_ratio_noise, {"scale": -1}, "scale"),
        (gaussian_log_ratio_noise, {"scale": 1, "floor": 0}, "floor"),
    ],
)
def test_bad_arguments(function, arguments, what):
    with pytest.raises(ValueError, match=what):
        function(D, **arguments)

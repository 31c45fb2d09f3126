"""mu by its integral, its limits, weights; match rate and divisiveness with options."""

import numpy as np
import pytest
from scipy import integrate

from skldl.metrics import divisiveness_error, kullback_leibler, match_rate, mu


def _rows(n=30, c=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(c), n), rng.dirichlet(np.ones(c), n)


def test_mu_is_its_integral():
    D, P = _rows()
    divergences = kullback_leibler.rowwise(D, P)
    reference = kullback_leibler(D, np.full_like(D, 0.25))
    points = np.sort(divergences[divergences < reference])
    share = integrate.quad(lambda t: (divergences <= t).mean(), 0, reference, points=points, limit=500)[0] / reference
    assert mu(D, P) == pytest.approx(share, rel=1e-6)


def test_mu_at_its_ends():
    D, _ = _rows()
    assert mu(D, D) == 1.0
    assert mu(np.eye(3), np.roll(np.eye(3), 1, axis=0)) == 0.0
    assert mu(np.eye(3), np.full((3, 3), 1 / 3)) == pytest.approx(0.0, abs=1e-12)
    flat = np.full((2, 4), 0.25)
    assert mu(flat, flat) == 1.0
    assert mu(flat, [[0.4, 0.2, 0.2, 0.2], [0.25, 0.25, 0.25, 0.25]]) == 0.0


def test_mu_with_weights():
    D, P = _rows()
    weight = np.where(np.arange(30) < 10, 2.0, 1.0)
    twice = np.r_[np.arange(10), np.arange(30)]
    assert mu(D, P, weight) == pytest.approx(mu(D[twice], P[twice]), rel=1e-12)


def test_match_rate_is_the_overlap_of_sets():
    D, P = _rows(c=6)
    for k in (1, 3, 6, 9):
        m = min(k, 6)
        expected = [len(set(np.argsort(d)[-m:]) & set(np.argsort(p)[-m:])) / m for d, p in zip(D, P, strict=True)]
        np.testing.assert_allclose(match_rate.with_options(k=k).rowwise(D, P), expected)


def test_divisiveness_with_named_sides():
    d, p = [[0.5, 0.1, 0.4]], [[0.2, 0.2, 0.6]]
    assert divisiveness_error(d, p) == pytest.approx(0.2)
    assert divisiveness_error.with_options(negative=[0], positive=[1])(d, p) == pytest.approx(0.1)
    with pytest.raises(ValueError, match="only 3 labels"):
        divisiveness_error.with_options(negative=[0], positive=[7])(d, p)
    for bad in (
        {"negative": [0], "positive": None},
        {"negative": [0], "positive": [0]},
        {"negative": [], "positive": [1]},
    ):
        with pytest.raises(ValueError, match="negative"):
            divisiveness_error.with_options(**bad)

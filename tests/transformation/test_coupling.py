"""Pairwise coupling against LIBSVM's published iteration and against a general solver."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from skldl.transformation._coupling import couple


def iterate_as_published(r, tolerance=1e-13):
    """Algorithm 2 of Wu, Lin and Weng (2004) for one row: r[i, j] is the probability of i against j."""
    n_labels = len(r)
    Q = -r.T * r
    for t in range(n_labels):
        Q[t, t] = sum(r[j, t] ** 2 for j in range(n_labels) if j != t)
    p = np.full(n_labels, 1 / n_labels)
    for _ in range(100_000):
        gradient = Q @ p
        if np.abs(gradient - p @ gradient).max() < tolerance:
            break
        for t in range(n_labels):
            p[t] = (p @ Q @ p - Q[t] @ p + Q[t, t] * p[t]) / Q[t, t]
            p /= p.sum()
    return p


def full_matrix(won, n_labels):
    won = np.clip(won, 1e-7, 1 - 1e-7)
    r = np.zeros((n_labels, n_labels))
    r[np.triu_indices(n_labels, 1)] = won
    return r + np.tril(1 - r.T, -1)


@pytest.mark.parametrize("n_labels", [3, 4, 7, 18])
def test_equals_the_published_iteration(n_labels):
    won = np.random.default_rng(n_labels).uniform(0.05, 0.95, size=(5, n_labels * (n_labels - 1) // 2))
    expected = [iterate_as_published(full_matrix(row, n_labels)) for row in won]
    np.testing.assert_allclose(couple(won, n_labels), expected, atol=1e-9)


def test_minimises_the_stated_objective():
    won = np.random.default_rng(0).uniform(0.1, 0.9, size=6)
    r = full_matrix(won, 4)

    def objective(p):
        return sum((r[j, i] * p[i] - r[i, j] * p[j]) ** 2 for i in range(4) for j in range(4) if i != j)

    found = minimize(
        objective,
        np.full(4, 0.25),
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"ftol": 1e-15, "maxiter": 500},
    )
    np.testing.assert_allclose(couple([won], 4)[0], found.x, atol=1e-5)


@given(st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=12))
def test_consistent_odds_come_back(shares):
    p = np.array(shares) / np.sum(shares)
    first, second = np.triu_indices(len(p), 1)
    np.testing.assert_allclose(couple([p[first] / (p[first] + p[second])], len(p))[0], p, atol=1e-6)


def test_two_labels_need_no_coupling():
    np.testing.assert_array_equal(couple([[0.3], [0.9]], 2), [[0.3, 0.7], [0.9, 1 - 0.9]])


@given(st.integers(2, 9), st.integers(0, 1000))
def test_certain_pairs_still_give_distributions(n_labels, seed):
    won = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], size=(4, n_labels * (n_labels - 1) // 2))
    P = couple(won, n_labels)
    assert np.isfinite(P).all()
    assert P.min() >= 0
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)


def test_a_label_that_wins_every_pair_takes_all():
    P = couple([[1.0, 1.0, 0.5]], 3)
    np.testing.assert_allclose(P, [[1, 0, 0]], atol=1e-6)


def test_permuting_labels_permutes_the_result():
    won = np.random.default_rng(1).uniform(size=10)
    r = full_matrix(won, 5)
    order = np.array([3, 1, 4, 0, 2])
    permuted = r[np.ix_(order, order)][np.triu_indices(5, 1)]
    np.testing.assert_allclose(couple([permuted], 5)[0], couple([won], 5)[0][order], atol=1e-12)

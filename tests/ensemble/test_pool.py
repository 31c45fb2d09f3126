"""The weights of a pool: gradients by finite differences, optima by their own conditions, limits that are known."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, check_grad, minimize
from scipy.special import rel_entr, softmax

from skldl.ensemble._pool import Pool, fit_pool, linear_loss, log_linear_loss, mean_divergence


@pytest.fixture
def example():
    rng = np.random.default_rng(0)
    D = softmax(rng.normal(size=(80, 4)), axis=1)
    noise = rng.normal(size=(3, 80, 4)) * np.array([0.3, 0.8, 2.0])[:, None, None]
    return softmax(np.log(D) + noise, axis=2), D, rng.uniform(0.5, 2.0, size=80)


def test_gradient_of_the_log_linear_pool(example):
    members, D, weight = example
    share = weight / weight.sum()
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=7) + 0.5
        arguments = (np.log(members), D, share, 0.02)
        error = check_grad(
            lambda x, *a: log_linear_loss(x, *a)[0], lambda x, *a: log_linear_loss(x, *a)[1], x, *arguments
        )
        assert error < 1e-6


def test_gradient_of_the_linear_pool(example):
    members, D, weight = example
    share = weight / weight.sum()
    x = np.array([0.2, 0.5, 0.4])
    expected = approx_fprime(x, lambda x: linear_loss(x, members, D, share)[0], 1e-7)
    np.testing.assert_allclose(linear_loss(x, members, D, share)[1], expected, atol=1e-5)


def test_linear_weights_lie_on_the_simplex_and_match_a_solver_with_that_constraint(example):
    members, D, weight = example
    pool = fit_pool(members, D, weight, kind="linear")
    share = weight / weight.sum()
    oracle = minimize(
        lambda w: -share @ (D * np.log(np.tensordot(w, members, axes=1))).sum(axis=1),
        np.full(3, 1 / 3),
        method="SLSQP",
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-12},
    )
    assert pool.weights.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(pool.weights, oracle.x, atol=1e-4)


def test_log_linear_optimum_satisfies_its_conditions(example):
    members, D, weight = example
    pool = fit_pool(members, D, weight, kind="log-linear")
    share = weight / weight.sum()
    strength = 8.0 * mean_divergence(D, share) / len(D)
    x = np.concatenate([pool.weights, pool.offset])
    gradient = log_linear_loss(x, np.log(members), D, share, strength)[1]
    free = np.concatenate([pool.weights > 0, np.ones(4, dtype=bool)])
    np.testing.assert_allclose(gradient[free], 0.0, atol=1e-5)
    assert (gradient[~free] >= -1e-8).all()


def test_a_large_penalty_gives_equal_weights_and_none_gives_the_best_fit(example):
    members, D, _ = example
    equal = fit_pool(members, D, None, kind="log-linear", penalty=1e9)
    np.testing.assert_allclose(equal.weights, 1 / 3, atol=1e-4)
    np.testing.assert_allclose(equal.offset, 0.0, atol=1e-4)
    geometric = softmax(np.log(members).mean(axis=0), axis=1)
    np.testing.assert_allclose(Pool("log-linear", np.full(3, 1 / 3), np.zeros(4)).apply(members), geometric)

    def divergence(pool):
        return rel_entr(D, pool.apply(members)).sum(axis=1).mean()

    free = fit_pool(members, D, None, kind="log-linear", penalty=0.0)
    alone = [rel_entr(D, member).sum(axis=1).mean() for member in members]
    assert divergence(free) < min(alone)
    assert divergence(free) <= divergence(equal)


def test_a_member_that_is_the_truth_but_too_cautious_is_sharpened():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(500, 3))
    pool = fit_pool(softmax(scores / 2, axis=1)[None], softmax(scores, axis=1), None, kind="log-linear", penalty=0.0)
    assert pool.weights[0] == pytest.approx(2.0, abs=1e-4)
    np.testing.assert_allclose(pool.offset - pool.offset.mean(), 0.0, atol=1e-4)


def test_rows_of_weight_two_count_as_two_rows_where_there_is_no_penalty(example):
    members, D, _ = example
    weight = np.where(np.arange(80) < 20, 2.0, 1.0)
    twice = np.concatenate([np.arange(80), np.arange(20)])
    weighted = fit_pool(members, D, weight, kind="log-linear", penalty=0.0)
    copied = fit_pool(members[:, twice], D[twice], None, kind="log-linear", penalty=0.0)
    np.testing.assert_allclose(weighted.apply(members), copied.apply(members), atol=1e-5)


def test_labels_without_mass_and_one_hot_rows_do_not_break_it():
    D = np.eye(3)[np.arange(30) % 2]
    members = np.stack([0.9 * D + 0.1 / 3, np.tile([0.5, 0.5, 0.0], (30, 1))])
    for kind in ("linear", "log-linear"):
        pooled = fit_pool(members, D, None, kind=kind).apply(members)
        assert np.isfinite(pooled).all()
        np.testing.assert_allclose(pooled.sum(axis=1), 1.0)

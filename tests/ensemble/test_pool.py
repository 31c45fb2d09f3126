"""The weights of a pool of members whose predictions are given: optima by their conditions, limits that are known."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax, rel_entr, softmax

from skldl import StackingLDL
from skldl.base import BaseLDL

ROWS = np.arange(80)[:, None]


class Given(BaseLDL):
    """A member whose held-out predictions and predictions are a table, by the number of the row."""

    def __init__(self, table):
        self.table = table

    def _fit(self, X, D, sample_weight):
        self.oof_predictions_ = self.table[X[:, 0].astype(int)]

    def _predict(self, X):
        return self.table[X[:, 0].astype(int)]


def pool(members, D, weight=None, rows=ROWS, groups=None, **settings):
    """A fitted pool, and the members' held-out predictions as it uses them: with a little of the mean distribution."""
    model = StackingLDL([(f"m{k}", Given(table)) for k, table in enumerate(members)], **settings)
    model.fit(rows, D, sample_weight=weight, groups=groups)
    w = np.ones(len(D)) if weight is None else weight
    others = (w @ D - w[:, None] * D) / (w.sum() - w)[:, None]
    return model, np.array(
        [
            (1 - share) * table[rows[:, 0]] + share * others
            for share, table in zip(model.mean_shares_, members, strict=True)
        ]
    )


@pytest.fixture
def example():
    rng = np.random.default_rng(0)
    D = softmax(rng.normal(size=(80, 4)), axis=1)
    noise = rng.normal(size=(3, 80, 4)) * np.array([0.3, 0.8, 2.0])[:, None, None]
    return softmax(np.log(D) + noise, axis=2), D, rng.uniform(0.5, 2.0, size=80)


def test_linear_weights_lie_on_the_simplex_and_match_a_solver_with_that_constraint(example):
    members, D, weight = example
    model, mixed = pool(members, D, weight, pool="linear")
    oracle = minimize(
        lambda w: -weight @ (D * np.log(np.tensordot(w, mixed, axes=1))).sum(axis=1) / weight.sum(),
        np.full(3, 1 / 3),
        method="SLSQP",
        bounds=[(0, 1)] * 3,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
        options={"ftol": 1e-12},
    )
    assert model.member_weights_.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(model.member_weights_, oracle.x, atol=1e-4)
    assert not model.offset_.any()


@pytest.mark.parametrize("penalty", [8.0, 300.0])
@pytest.mark.parametrize("n_members", [1, 3])
def test_log_linear_optimum_satisfies_the_conditions_of_the_penalised_problem(example, penalty, n_members):
    members, D, weight = example
    model, mixed = pool(members[:n_members], D, weight, penalty=penalty)
    w = weight / weight.sum()
    strength = penalty / 80 * float(w @ rel_entr(D, w @ D).sum(axis=1))

    def objective(x):
        scores = np.tensordot(x[:n_members], np.log(mixed), axes=1) + x[n_members:]
        distance = ((x[:n_members] - 1 / n_members) ** 2).sum() + (x[n_members:] ** 2).sum()
        return -w @ (D * log_softmax(scores, axis=1)).sum(axis=1) + strength * distance

    x = np.r_[model.member_weights_, model.offset_]
    gradient = approx_fprime(x, objective, 1e-7)
    free = x != 0
    np.testing.assert_allclose(gradient[free], 0.0, atol=1e-5)
    assert (gradient[~free] >= -1e-6).all()


def test_a_large_penalty_makes_weights_equal_and_none_fits_best(example):
    members, D, _ = example
    equal, mixed = pool(members, D, penalty=1e9)
    np.testing.assert_allclose(equal.member_weights_, 1 / 3, atol=1e-4)
    np.testing.assert_allclose(equal.offset_, 0.0, atol=1e-4)
    shares = equal.mean_shares_[:, None, None]
    geometric = softmax(np.log((1 - shares) * members + shares * D.mean(axis=0)).mean(axis=0), axis=1)
    np.testing.assert_allclose(equal.predict(ROWS), geometric, atol=1e-4)

    def divergence(P):
        return rel_entr(D, P).sum(axis=1).mean()

    free, _ = pool(members, D, penalty=0.0)
    assert divergence(free.predict(ROWS)) < min(divergence(P) for P in mixed)
    assert divergence(free.predict(ROWS)) <= divergence(equal.predict(ROWS))


def test_a_member_that_is_the_truth_but_too_cautious_is_sharpened():
    scores = np.random.default_rng(1).normal(size=(80, 3))
    model, _ = pool(softmax(scores / 2, axis=1)[None], softmax(scores, axis=1), penalty=0.0)
    assert model.member_weights_[0] == pytest.approx(2.0, abs=1e-2)
    np.testing.assert_allclose(model.offset_ - model.offset_.mean(), 0.0, atol=1e-2)


def test_rows_of_weight_two_count_as_two_rows_where_there_is_no_penalty(example):
    members, D, _ = example
    weight = np.where(np.arange(80) < 20, 2.0, 1.0)
    twice = np.concatenate([np.arange(80), np.arange(20)])
    weighted, _ = pool(members, D, weight, penalty=0.0)
    copied, _ = pool(members, D[twice], rows=twice[:, None], groups=twice, penalty=0.0)
    np.testing.assert_allclose(weighted.predict(ROWS), copied.predict(ROWS), atol=1e-5)


@pytest.mark.parametrize("kind", ["linear", "log-linear"])
def test_labels_without_mass_and_one_hot_rows_do_not_break_it(kind):
    D = np.eye(3)[np.arange(80) % 2]
    members = np.stack([0.9 * D + 0.1 / 3, np.tile([0.5, 0.5, 0.0], (80, 1))])
    P = pool(members, D, pool=kind)[0].predict(ROWS)
    assert np.isfinite(P).all()
    np.testing.assert_allclose(P.sum(axis=1), 1.0)

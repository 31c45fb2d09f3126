"""LDLDPA: common checks, the objective by loops, limits."""

import numpy as np
import pytest
from scipy import stats

from skldl import SABFGS
from skldl.correlation import LDLDPA
from skldl.testing import check_estimator, make_distributions


def test_common_checks():
    check_estimator(LDLDPA())


def test_objective_by_loops(check_optimum):
    X, D = make_distributions(40, 3, 4)
    weight = np.random.default_rng(0).uniform(0.5, 2, 40)
    model = LDLDPA(1e-3, rank_weight=0.2, variance_weight=3.0, fit_intercept=True, tol=1e-11).fit(X, D, weight)

    ranks = [stats.rankdata(d) for d in D]

    def objective(P, W, weight):
        total = 0.0
        for w, p, d, rank in zip(weight, P, D, ranks, strict=True):
            average = np.mean(rank * p)
            total += w * ((d * np.log(d / p)).sum() - 0.2 * average + 3.0 * (np.var(d) - np.var(p)) ** 2)
        return total

    check_optimum(model, X, objective, weight)


def test_without_both_terms_it_is_sabfgs():
    X, D = make_distributions(60, 4, 3)
    plain = LDLDPA(1e-3, rank_weight=0, variance_weight=0, tol=1e-12).fit(X, D)
    np.testing.assert_allclose(
        plain.predict(X), SABFGS(1e-3, fit_intercept=True, tol=1e-12).fit(X, D).predict(X), atol=1e-6
    )


def test_terms_raise_the_percentile_average_and_keep_the_variance():
    X, D = make_distributions(200, 3, 5, random_state=4)
    plain = LDLDPA(1e-3, rank_weight=0, variance_weight=0).fit(X, D).predict(X)
    ranked = LDLDPA(1e-3, rank_weight=1.0, variance_weight=0).fit(X, D).predict(X)
    spread = LDLDPA(1e-3, rank_weight=0, variance_weight=1e4).fit(X, D).predict(X)
    ranks = stats.rankdata(D, axis=1)
    assert (ranks * ranked).mean() > (ranks * plain).mean()
    assert ((spread.var(axis=1) - D.var(axis=1)) ** 2).mean() < ((plain.var(axis=1) - D.var(axis=1)) ** 2).mean()


@pytest.mark.parametrize("bad", [{"rank_weight": -1}, {"variance_weight": "much"}])
def test_bad_hyperparameters(bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        LDLDPA(**bad).fit(X, D)

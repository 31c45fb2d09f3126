"""LDLLC: common checks, the objective by loops, signs that agree with the weights, limits."""

import numpy as np
import pytest

from skldl import SABFGS
from skldl.correlation import LDLLC
from skldl.testing import check_estimator, make_distributions


def test_common_checks():
    check_estimator(LDLLC())


def test_one_feature_has_no_correlations():
    X, D = make_distributions(40, 1, 3)
    model = LDLLC(1e-2, correlation_weight=0.1, tol=1e-12).fit(X, D)
    assert not model.signs_.any()
    np.testing.assert_allclose(model.predict(X), LDLLC(1e-2, correlation_weight=0, tol=1e-12).fit(X, D).predict(X))


@pytest.mark.parametrize("shape", [(40, 3, 4), (12, 20, 3)])
def test_objective_by_loops_with_the_signs_of_the_solution(check_optimum, shape):
    X, D = make_distributions(*shape)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    model = LDLLC(1e-2, correlation_weight=5e-3, fit_intercept=True, tol=1e-11).fit(X, D, weight)
    assert 1 <= model.n_rounds_ < 10
    np.testing.assert_array_equal(model.signs_, np.sign(np.corrcoef(model.coef_)) - np.eye(shape[2]))

    def objective(P, W, weight):
        total = sum(w * (d * np.log(d / p)).sum() for w, p, d in zip(weight, P, D, strict=True))
        for i in range(D.shape[1]):
            for j in range(i):
                total += 5e-3 * model.signs_[i, j] * (np.sqrt(((W[:, i] - W[:, j]) ** 2).sum() + 1e-12) - 1e-6)
        return total

    check_optimum(model, X, objective, weight)


def test_without_distances_it_is_sabfgs():
    X, D = make_distributions(60, 4, 3)
    plain = LDLLC(1e-3, correlation_weight=0, tol=1e-12).fit(X, D)
    np.testing.assert_allclose(
        plain.predict(X), SABFGS(1e-3, fit_intercept=True, tol=1e-12).fit(X, D).predict(X), atol=1e-6
    )
    assert plain.n_rounds_ == 0


def test_bad_hyperparameters():
    X, D = make_distributions()
    with pytest.raises(ValueError, match="correlation_weight"):
        LDLLC(correlation_weight=-1).fit(X, D)
    with pytest.raises(ValueError, match="max_rounds"):
        LDLLC(max_rounds=0).fit(X, D)

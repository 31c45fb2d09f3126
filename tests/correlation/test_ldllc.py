"""LDLLC: common checks, the objective by loops, signs that agree with the weights, limits."""

import numpy as np
import pytest

from skldl import SABFGS
from skldl.correlation import LDLLC
from skldl.correlation._ldllc import correlation_signs, signed_distances
from skldl.testing import check_estimator, make_distributions


def test_common_checks():
    check_estimator(LDLLC())


def test_signs_are_those_of_pearson():
    W = np.random.default_rng(0).normal(size=(7, 5))
    expected = np.sign(np.corrcoef(W.T)) - np.eye(5)
    np.testing.assert_array_equal(correlation_signs(W), expected)
    W[:, 2] = 3.0
    assert not correlation_signs(W)[2].any()


def test_slope_of_the_distances():
    rng = np.random.default_rng(0)
    U, signs = rng.normal(size=(4, 3)), correlation_signs(rng.normal(size=(6, 3)))
    penalty = signed_distances(signs, 0.7)
    value, slope = penalty(U)
    pairs = [(0, 1), (0, 2), (1, 2)]
    expected = 0.7 * sum(signs[i, j] * np.linalg.norm(U[:, i] - U[:, j]) for i, j in pairs)
    assert value == pytest.approx(expected, abs=1e-5)
    for place in np.ndindex(U.shape):
        step = np.zeros_like(U)
        step[place] = 1e-6
        assert slope[place] == pytest.approx((penalty(U + step)[0] - penalty(U - step)[0]) / 2e-6, abs=1e-6)


@pytest.mark.parametrize("shape", [(40, 3, 4), (12, 20, 3)])
def test_objective_by_loops_with_the_signs_of_the_solution(check_optimum, shape):
    X, D = make_distributions(*shape)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    model = LDLLC(1e-2, correlation_weight=5e-3, fit_intercept=True, tol=1e-11).fit(X, D, weight)
    assert 1 <= model.n_rounds_ < 10
    np.testing.assert_array_equal(model.signs_, correlation_signs(model.coef_.T))

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

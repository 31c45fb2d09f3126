"""DirichletLDL: common checks, closed forms against sampling and scipy, finite differences, precision."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats

from skldl import MeanDistribution
from skldl.losses import DirichletLDL, SmoothLossLDL
from skldl.losses._dirichletldl import (
    concentrations,
    divergence_from_uniform,
    expected_divergence,
    negative_log_density,
)
from skldl.metrics import kullback_leibler
from skldl.testing import check_estimator, make_distributions


def test_common_checks():
    check_estimator(DirichletLDL())


@pytest.mark.slow
def test_common_checks_of_the_likelihood():
    check_estimator(DirichletLDL(loss="likelihood"))


def test_closed_forms_by_integration():
    """With two labels a Dirichlet distribution is a beta distribution."""
    a, d = np.array([[1.7, 3.2]]), np.array([[0.3, 0.7]])
    density = stats.beta(1.7, 3.2).pdf

    def divergence(p):
        return 0.3 * np.log(0.3 / p) + 0.7 * np.log(0.7 / (1 - p))

    expected = integrate.quad(lambda p: density(p) * divergence(p), 0, 1)[0]
    assert expected_divergence(a, d)[0][0] == pytest.approx(expected, rel=1e-8)
    uniform = integrate.quad(lambda p: density(p) * np.log(density(p)) if density(p) > 0 else 0.0, 0, 1)[0]
    assert divergence_from_uniform(a)[0][0] == pytest.approx(uniform, rel=1e-8)


def test_density_is_that_of_scipy():
    rng = np.random.default_rng(0)
    a, d = rng.uniform(1, 5, size=(6, 4)), rng.dirichlet(np.ones(4), size=6)
    expected = [-stats.dirichlet(row).logpdf(point) for row, point in zip(a, d, strict=True)]
    np.testing.assert_allclose(negative_log_density(a, d)[0], expected, rtol=1e-10)


def test_slopes_by_differences():
    rng = np.random.default_rng(0)
    a, d = rng.uniform(1, 20, size=(5, 4)), rng.dirichlet(np.ones(4), size=5)
    losses = (lambda a: expected_divergence(a, d), lambda a: negative_log_density(a, d), divergence_from_uniform)
    for function in losses:
        slope = function(a)[1]
        for j in range(4):
            step = np.zeros(4)
            step[j] = 1e-5
            change = (function(a + step)[0] - function(a - step)[0]) / 2e-5
            np.testing.assert_allclose(slope[:, j], change, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize(("shape", "fit_intercept"), [((40, 3, 3), True), ((40, 3, 3), False), ((12, 15, 3), True)])
def test_scipy_finds_nothing_lower_nearby(shape, fit_intercept):
    X, D = make_distributions(*shape)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    model = DirichletLDL(1e-3, prior_weight=1e-2, fit_intercept=fit_intercept, tol=1e-10).fit(X, D, weight)
    share, q = weight / weight.sum(), shape[1]

    def objective(flat):
        parameters = flat.reshape(q + 1, 3)
        a = concentrations(X @ parameters[:q] + parameters[q] * fit_intercept)
        rows = expected_divergence(a, D)[0] + 1e-2 * divergence_from_uniform(a)[0]
        return share @ rows + 0.5e-3 * (parameters[:q] ** 2).sum()

    end = np.vstack([model.coef_.T, model.intercept_]).ravel()
    assert objective(end) == pytest.approx(model.loss_curve_[-1], rel=1e-10)
    lower = optimize.minimize(objective, end, method="BFGS", options={"gtol": 1e-8, "maxiter": 50}).fun
    assert model.loss_curve_[-1] - lower < 1e-7


def test_constant_features_give_the_mean_nearly():
    _, D = make_distributions(200, 3, 3)
    X = np.zeros((200, 1))
    model = DirichletLDL(prior_weight=1e-6, max_iter=5000).fit(X, D)
    np.testing.assert_allclose(model.predict(X[:1]), MeanDistribution().fit(X, D).predict(X[:1]), atol=2e-3)


@pytest.mark.parametrize("prior_weight", [1e-2, 1e-3])
def test_automatic_penalty_fits_the_unit_of_the_concentrations(prior_weight):
    """Concentrations of hundreds need weights of hundreds: a penalty made for a softmax would leave only the mean."""
    X, D = make_distributions(300, 30, 4, random_state=3)
    model = DirichletLDL(prior_weight=prior_weight).fit(X[:200], D[:200])
    reference, mean = SmoothLossLDL().fit(X[:200], D[:200]), MeanDistribution().fit(X[:200], D[:200])
    ours, softmax, constant = (kullback_leibler(D[200:], m.predict(X[200:])) for m in (model, reference, mean))
    assert constant - ours > 0.8 * (constant - softmax)


def test_precision_is_higher_where_rows_agree():
    rng = np.random.default_rng(0)
    sure = np.arange(400) < 200
    D = np.where(sure[:, None], rng.dirichlet([40, 20, 20], size=400), rng.dirichlet([4, 2, 2], size=400))
    X = sure[:, None].astype(float)
    model = DirichletLDL(1e-8, loss="likelihood", prior_weight=0.0).fit(X, D)
    np.testing.assert_allclose(model.predict_precision([[0.0], [1.0]]), [8, 80], rtol=0.15)
    averaged = D.copy()
    for group in (sure, ~sure):
        averaged[group] = D[group].mean(axis=0)
    one, other = (DirichletLDL(1e-4, prior_weight=0.1).fit(X, rows).predict_precision(X) for rows in (D, averaged))
    np.testing.assert_allclose(one, other, rtol=1e-3)  # the expected divergence sees the mean alone


def test_bad_hyperparameters():
    X, D = make_distributions()
    for bad in ({"prior_weight": -1}, {"loss": "emd"}, {"floor": 0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            DirichletLDL(**bad).fit(X, D)

"""DirichletLDL: common checks, closed forms against sampling and scipy, finite differences, precision."""

import numpy as np
import pytest
from scipy import optimize, special, stats

from skldl import MeanDistribution
from skldl.losses import DirichletLDL, SmoothLossLDL
from skldl.metrics import kullback_leibler
from skldl.simplex import smooth_zeros
from skldl.testing import check_estimator, make_distributions


def test_common_checks():
    check_estimator(DirichletLDL())


@pytest.mark.slow
def test_common_checks_of_the_likelihood():
    check_estimator(DirichletLDL(loss="likelihood"))


def mean_logarithm(a, total):
    """E ln p_j under a Dirichlet distribution, by integration over its beta distribution."""
    return stats.beta(a, total - a).expect(np.log)


@pytest.mark.parametrize("loss", ["expected_divergence", "likelihood"])
def test_objective_by_integration_and_scipy(loss):
    X, D = make_distributions(6, 2, 3)
    model = DirichletLDL(1e-2, loss=loss, prior_weight=0.1, floor=1e-3).fit(X, D)
    A = 1 + np.logaddexp(0, X @ model.coef_.T + model.intercept_)
    total = 0.5e-2 * (model.coef_**2).sum()
    for a, d in zip(A, smooth_zeros(D, 1e-3) if loss == "likelihood" else D, strict=True):
        logarithms = np.array([mean_logarithm(a_j, a.sum()) for a_j in a])
        row = d @ (np.log(d) - logarithms) if loss == "expected_divergence" else -stats.dirichlet(a).logpdf(d)
        uniform = np.log(2)  # the density of the uniform distribution over three labels
        total += (row + 0.1 * (-stats.dirichlet(a).entropy() - uniform)) / 6
    assert model.loss_curve_[-1] == pytest.approx(total, rel=1e-8)


@pytest.mark.parametrize("loss", ["expected_divergence", "likelihood"])
@pytest.mark.parametrize(("shape", "fit_intercept"), [((40, 3, 3), True), ((40, 3, 3), False), ((12, 15, 3), True)])
def test_scipy_finds_nothing_lower_nearby(shape, fit_intercept, loss):
    X, D = make_distributions(*shape)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    model = DirichletLDL(1e-3, loss=loss, fit_intercept=fit_intercept, tol=1e-10).fit(X, D, weight)
    share, q = weight / weight.sum(), shape[1]
    target = smooth_zeros(D, 1e-4) if loss == "likelihood" else D

    def objective(flat):
        parameters = flat.reshape(q + 1, 3)
        a = 1 + np.logaddexp(0, X @ parameters[:q] + parameters[q] * fit_intercept)
        total = a.sum(axis=1)
        log_normaliser = special.gammaln(a).sum(axis=1) - special.gammaln(total)
        logarithms = special.digamma(a) - special.digamma(total)[:, None]
        if loss == "likelihood":
            rows = log_normaliser - ((a - 1) * np.log(target)).sum(axis=1)
        else:
            rows = (target * (np.log(target) - logarithms)).sum(axis=1)
        prior = -log_normaliser + ((a - 1) * logarithms).sum(axis=1) - np.log(2)
        return share @ (rows + 1e-2 * prior) + 0.5e-3 * (parameters[:q] ** 2).sum()

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

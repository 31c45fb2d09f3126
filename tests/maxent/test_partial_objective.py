"""Missing degrees in the maximum entropy model: gradient, modes, optimum, and equality where nothing is missing."""

import warnings

import numpy as np
import pytest
from scipy import optimize, sparse
from scipy.special import log_softmax, logsumexp, softmax

from skldl import SABFGS, SABFGSCV
from skldl.testing import make_distributions


def with_gaps(D, *, share=0.4, seed=0, renormalise=False):
    gaps = np.random.default_rng(seed).uniform(size=D.shape) < share
    gaps[:, 0] &= ~gaps.all(axis=1)
    hidden = np.where(gaps, np.nan, D)
    return hidden / np.nansum(hidden, axis=1, keepdims=True) if renormalise else hidden


def naive_loss(X, D, weight, theta, missing, alpha):
    """The definition, row by row, with probabilities."""
    P = softmax(X @ theta, axis=1)
    total = 0.0
    for row, p, w in zip(D, P, weight, strict=True):
        seen = ~np.isnan(row)
        d = row[seen]
        if missing == "renormalised":
            total -= w * (d * np.log(p[seen] / p[seen].sum())).sum()
        else:
            total -= w * (d * np.log(p[seen])).sum()
            if not seen.all():
                total -= w * (1 - d.sum()) * np.log(p[~seen].sum())
    return total + 0.5 * alpha * (theta**2).sum()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("missing", ["degrees", "renormalised"])
@pytest.mark.parametrize("intercept", [False, True])
def test_loss_is_the_definition_and_gradient_its_derivative(missing, intercept, form, evaluate, assert_downhill):
    X, D = make_distributions(30, 3, 5)
    D = with_gaps(D, renormalise=missing == "renormalised")
    if missing == "renormalised":  # rows with one observed label say nothing
        X, D = X[(~np.isnan(D)).sum(axis=1) > 1], D[(~np.isnan(D)).sum(axis=1) > 1]
    weight = np.random.default_rng(1).uniform(1, 2, size=len(D))
    settings = {"alpha": 0.3, "fit_intercept": intercept, "missing": missing}
    theta = np.random.default_rng(2).normal(size=(3 + intercept, 5))
    design = np.column_stack([X, np.ones(len(D))]) if intercept else X

    def expected(flat):
        at = flat.reshape(theta.shape)
        return naive_loss(design, D, weight / weight.sum(), at, missing, 0.0) + 0.15 * (at[:3] ** 2).sum()

    loss, step = evaluate(theta, form(X), D, weight, **settings)
    assert loss == pytest.approx(expected(theta.ravel()), rel=1e-12)
    assert_downhill(step, expected, theta)
    if intercept:  # the whitened search begins at zero, and its loss there has a closed form
        first = SABFGS(**settings).fit(form(X), D, weight).loss_curve_[0]
        assert first == pytest.approx(expected(np.zeros(theta.size)), rel=1e-12)


@pytest.mark.parametrize("missing", ["degrees", "renormalised"])
@pytest.mark.parametrize(
    "estimator", [SABFGS(alpha=0.01), SABFGS(whiten=False), SABFGS(fit_intercept=True), SABFGSCV()]
)
def test_nothing_missing_is_the_ordinary_fit_to_the_last_digit(estimator, missing):
    X, D = make_distributions()
    ordinary = estimator.fit(X, D).coef_.copy()
    model = estimator.set_params(missing=missing).fit(X, D)
    np.testing.assert_array_equal(model.coef_, ordinary)
    assert model.missing_ == "complete"


def test_one_gap_in_each_row_is_no_gap_where_degrees_are_true():
    X, D = make_distributions(40, 4, 4)
    hidden = D.copy()
    hidden[np.arange(40), np.arange(40) % 4] = np.nan
    model = SABFGS(0.01, missing="degrees").fit(X, hidden)
    assert model.missing_ == "complete"
    np.testing.assert_allclose(model.coef_, SABFGS(0.01).fit(X, D).coef_, atol=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("whiten", [False, True])
@pytest.mark.parametrize("missing", ["degrees", "renormalised"])
def test_optimum_is_that_of_scipy(missing, whiten, intercept):
    X, D = make_distributions(60, 4, 5)
    D = with_gaps(D, renormalise=missing == "renormalised")
    if missing == "renormalised":
        D = D[(~np.isnan(D)).sum(axis=1) > 1]
        X = X[: len(D)]
    weight = np.full(len(D), 1 / len(D))
    model = SABFGS(0.01, missing=missing, whiten=whiten, fit_intercept=intercept, tol=1e-12).fit(X, D)
    design = np.column_stack([X, np.ones(len(X))]) if intercept else X

    def loss(flat):
        theta = flat.reshape(design.shape[1], 5)
        penalty = 0.005 * (theta[: X.shape[1]] ** 2).sum()
        return naive_loss(design, D, weight, theta, missing, 0.0) + penalty

    found = np.vstack([model.coef_.T, model.intercept_]) if intercept else model.coef_.T
    best = optimize.minimize(loss, np.zeros(design.shape[1] * 5), method="L-BFGS-B", tol=1e-14)
    assert loss(found.ravel()) <= best.fun + 1e-9
    np.testing.assert_allclose(model.loss_curve_[-1], loss(found.ravel()), rtol=1e-10)


def test_direct_gradient_and_expectation_maximisation_reach_the_same_optimum():
    """EM: fill each gap with its share of the rest, fit the complete table, and again."""
    X, D = make_distributions(60, 3, 5)
    hidden = with_gaps(D)
    gaps = np.isnan(hidden)
    rest = 1 - np.nansum(hidden, axis=1, keepdims=True)
    P = np.full_like(D, 0.2)
    for _ in range(300):
        share = np.where(gaps, P, 0.0)
        share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
        filled = np.where(gaps, rest * share, hidden)
        P = SABFGS(0.05, tol=1e-12).fit(X, filled).predict(X)
    direct = SABFGS(0.05, missing="degrees", tol=1e-12).fit(X, hidden).predict(X)
    np.testing.assert_allclose(direct, P, atol=1e-4)


def test_renormalised_rows_need_only_ratios():
    """The scale of the observed part of a row says nothing: the model recovers the truth from ratios alone."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    theta = rng.normal(size=(3, 5))
    D = softmax(X @ theta, axis=1)
    with pytest.warns(UserWarning, match="fewer than two"):
        model = SABFGS(missing="renormalised").fit(X, with_gaps(D, share=0.5, renormalise=True))
    np.testing.assert_allclose(model.predict(X), D, atol=1e-3)


@pytest.mark.parametrize("missing", ["degrees", "renormalised"])
def test_rows_that_carry_nothing_are_rows_that_are_not_there(missing):
    X, D = make_distributions(40, 3, 5)
    D = with_gaps(D, share=0.3, renormalise=missing == "renormalised")
    D = np.where((~np.isnan(D)).sum(axis=1, keepdims=True) > 1, D, 0.2)
    empty = D.copy()
    empty[:5] = np.nan
    if missing == "renormalised":
        empty[0, 0] = 1.0
    with pytest.warns(UserWarning, match="5 of 40 rows"):
        model = SABFGS(0.01, missing=missing).fit(X, empty)
    np.testing.assert_array_equal(model.coef_, SABFGS(0.01, missing=missing).fit(X[5:], D[5:]).coef_)


def test_cross_validation_on_gaps_takes_the_divergence_of_what_was_observed():
    X, D = make_distributions(60, 3, 5)
    hidden = with_gaps(D)
    rows = np.arange(60)
    pairs = [(rows[10:], rows[:10])]
    model = SABFGSCV([0.01], cv=pairs, scaling="raw", missing="degrees").fit(X, hidden)
    fold = SABFGS(0.01, fit_intercept=True, missing="degrees", tol=1e-6).fit(X[10:], hidden[10:])  # as folds are fitted
    assert model.cv_scores_[0, 0] == pytest.approx(-fold.score(X[:10], hidden[:10]), rel=1e-9)
    assert model.missing_ == "degrees"


def test_all_alphas_of_a_path_are_those_of_single_fits():
    X, D = make_distributions(50, 3, 5)
    hidden = with_gaps(D)
    model = SABFGS(missing="degrees", tol=1e-12)
    path = list(model.predict_path(X, hidden, X, param="alpha", values=[0.1, 0.01]))
    for alpha, P in zip([0.1, 0.01], path, strict=True):
        np.testing.assert_allclose(P, SABFGS(alpha, missing="degrees", tol=1e-12).fit(X, hidden).predict(X), atol=1e-5)


def test_huge_scores_stay_finite(evaluate):
    X, D = make_distributions(30, 3, 5)
    D = with_gaps(D)
    theta = 1e4 * np.random.default_rng(0).normal(size=(3, 5))
    loss, step = evaluate(theta, X, D, missing="degrees")
    log_P = log_softmax(X @ theta, axis=1)
    gaps = np.isnan(D)
    hidden = logsumexp(np.where(gaps, log_P, -np.inf), axis=1)
    rest = 1 - np.nansum(D, axis=1)
    part = np.where(gaps.any(axis=1), rest * np.where(gaps.any(axis=1), hidden, 0.0), 0.0)
    assert loss == pytest.approx(-(np.nansum(D * log_P, axis=1) + part).mean(), rel=1e-12)
    assert np.isfinite(step).all()


def test_weight_two_is_the_row_twice():
    X, D = make_distributions(40, 3, 5)
    D = with_gaps(D)
    twice = np.r_[np.arange(10), np.arange(40)]
    weight = np.where(np.arange(40) < 10, 2.0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weighted = SABFGS(0.01, missing="degrees", tol=1e-12).fit(X, D, weight)
        doubled = SABFGS(0.01, missing="degrees", tol=1e-12).fit(X[twice], D[twice])
    np.testing.assert_allclose(weighted.coef_, doubled.coef_, atol=1e-6)

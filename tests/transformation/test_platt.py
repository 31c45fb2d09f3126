"""Platt's posterior against a general optimiser and scikit-learn's calibration."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from skldl.transformation import _platt
from skldl.transformation._platt import fit_sigmoids


def cross_entropy(parameters, f, u, v):
    t_plus, t_minus = (u.sum() + 1) / (u.sum() + 2), 1 / (v.sum() + 2)
    score = parameters[0] * f + parameters[1]
    target = u * t_plus + v * t_minus
    return -(target * log_expit(score) + (u + v - target) * log_expit(-score)).sum()


def make_pairs(n_pairs=6, n_samples=80, scale=1.0, seed=0):
    generator = np.random.default_rng(seed)
    decisions = scale * generator.normal(size=(n_samples, n_pairs)) + generator.normal(size=n_pairs)
    share = expit(np.linspace(-2, 3, n_pairs) * decisions / scale + generator.normal(size=n_pairs))
    weight = generator.uniform(0, 3, size=decisions.shape)
    return decisions, weight * share, weight * (1 - share)


def test_finds_the_minimum():
    decisions, positive, negative = make_pairs()
    slope, intercept = fit_sigmoids(decisions, positive, negative)
    for k in range(decisions.shape[1]):
        arguments = decisions[:, k], positive[:, k], negative[:, k]
        best = minimize(cross_entropy, [0.0, 0.0], args=arguments, method="BFGS", options={"gtol": 1e-7})
        assert cross_entropy([slope[k], intercept[k]], *arguments) <= best.fun + 1e-10
        np.testing.assert_allclose([slope[k], intercept[k]], best.x, rtol=1e-4, atol=1e-5)


def test_equals_logistic_regression_on_soft_copies():
    decisions, positive, negative = make_pairs(n_pairs=1, seed=3)
    slope, intercept = fit_sigmoids(decisions, positive, negative)
    t_plus, t_minus = (positive.sum() + 1) / (positive.sum() + 2), 1 / (negative.sum() + 2)
    target = (positive * t_plus + negative * t_minus).ravel()
    model = LogisticRegression(C=1e12, tol=1e-10, max_iter=1000).fit(
        np.vstack([decisions, decisions]),
        np.repeat([1, 0], len(decisions)),
        sample_weight=np.concatenate([target, (positive + negative).ravel() - target]),
    )
    np.testing.assert_allclose([slope[0], intercept[0]], [model.coef_[0, 0], model.intercept_[0]], atol=1e-5)


def test_equals_the_calibration_of_scikit_learn():
    """One-hot rows with equal weights are what sigmoid calibration was made for, Platt's targets included."""
    generator = np.random.default_rng(5)
    X = generator.normal(size=(60, 2))
    y = (X[:, 0] + generator.normal(size=60) > 0.3).astype(int)
    model = CalibratedClassifierCV(LogisticRegression(), method="sigmoid", ensemble=False, cv=3).fit(X, y)
    calibrated = model.calibrated_classifiers_[0]
    decisions = cross_val_predict(LogisticRegression(), X, y, cv=3, method="decision_function")[:, None]
    slope, intercept = fit_sigmoids(decisions, y[:, None] * 1.0, 1.0 - y[:, None])
    scores = calibrated.estimator.decision_function(X)
    np.testing.assert_allclose(expit(slope * scores + intercept), model.predict_proba(X)[:, 1], atol=1e-4)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_scale_of_decisions_does_not_matter(scale):
    decisions, positive, negative = make_pairs(seed=1)
    slope, intercept = fit_sigmoids(decisions, positive, negative)
    other_slope, other_intercept = fit_sigmoids(scale * decisions, positive, negative)
    np.testing.assert_allclose(other_slope * scale, slope, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other_intercept, intercept, rtol=1e-6, atol=1e-9)


def test_exchanging_labels_turns_the_sign():
    decisions, positive, negative = make_pairs(seed=2)
    slope, intercept = fit_sigmoids(decisions, positive, negative)
    mirrored = fit_sigmoids(-decisions, negative, positive)
    np.testing.assert_allclose(mirrored[0], slope, atol=1e-9)
    np.testing.assert_allclose(mirrored[1], -intercept, atol=1e-9)


def test_constant_decisions_leave_the_prior_of_laplace():
    positive, negative = np.full((10, 2), 3.0), np.full((10, 2), 1.0)
    decisions = np.tile([0.0, 5.0], (10, 1))
    decisions[0, 1] += 1e-13  # what rounding leaves
    slope, intercept = fit_sigmoids(decisions, positive, negative, noise=1e-10)
    np.testing.assert_array_equal(slope, 0)
    expected = (30 * 31 / 32 + 10 * 1 / 12) / 40
    np.testing.assert_allclose(expit(intercept), expected, atol=1e-9)


def test_labels_without_mass():
    decisions = np.random.default_rng(0).normal(size=(10, 3))
    mass, nothing = np.ones(10), np.zeros(10)
    slope, intercept = fit_sigmoids(
        decisions, np.column_stack([nothing, mass, nothing]), np.column_stack([mass, nothing, nothing])
    )
    np.testing.assert_allclose(expit(intercept), [1 / 12, 11 / 12, 1 / 2], atol=1e-9)
    np.testing.assert_allclose(slope, 0, atol=1e-6)


def test_perfect_separation_stays_finite():
    decisions = np.linspace(-1e3, 1e3, 200)[:, None]
    positive = (decisions > 0) * 1.0
    slope, intercept = fit_sigmoids(decisions, positive, 1.0 - positive)
    arguments = decisions[:, 0], positive[:, 0], 1.0 - positive[:, 0]
    assert np.isfinite([slope[0], intercept[0]]).all()
    assert expit(slope * 1e3 + intercept) > 0.95
    around = [cross_entropy([slope[0] * a, intercept[0] + b], *arguments) for a in (0.99, 1.01) for b in (-0.01, 0.01)]
    assert min(around) > cross_entropy([slope[0], intercept[0]], *arguments)


def heavy_tailed_pairs():
    """Decision values with outliers and weights over eight orders of magnitude: full Newton steps overshoot."""
    generator = np.random.default_rng(0)
    decisions = generator.standard_cauchy(size=(20, 200))
    weight = 10 ** generator.uniform(-3, 5, size=decisions.shape)
    first = generator.random(decisions.shape) < 0.1
    return decisions, weight * first, weight * ~first


def test_backtracking_leads_to_the_minimum():
    decisions, positive, negative = heavy_tailed_pairs()
    slope, intercept = fit_sigmoids(decisions, positive, negative)
    mass_positive, mass_negative = positive.sum(axis=0), negative.sum(axis=0)
    pull = positive * (mass_positive + 1) / (mass_positive + 2) + negative / (mass_negative + 2)
    residual = (positive + negative) * expit(slope * decisions + intercept) - pull
    scale = (positive + negative) * (1 + np.abs(decisions))
    for gradient in (residual.sum(axis=0), (residual * decisions).sum(axis=0)):
        assert (np.abs(gradient) <= 1e-5 * scale.sum(axis=0)).all()


def test_without_backtracking_some_pairs_miss_it(monkeypatch):
    decisions, positive, negative = heavy_tailed_pairs()
    with_halvings = np.array(fit_sigmoids(decisions, positive, negative))
    monkeypatch.setattr(_platt, "MAX_HALVINGS", 0)
    monkeypatch.setattr(_platt, "MAX_ITERATIONS", 5)
    with pytest.warns(ConvergenceWarning):
        without = np.array(fit_sigmoids(decisions, positive, negative))
    assert np.abs(with_halvings - without).max() > 1e-3


def test_says_when_it_has_not_converged(monkeypatch):
    monkeypatch.setattr(_platt, "MAX_ITERATIONS", 1)
    decisions, positive, negative = make_pairs(seed=4)
    with pytest.warns(ConvergenceWarning, match=r"of 6 of 6 pairs .* lower C"):
        slope, _ = fit_sigmoids(decisions, positive, negative)
    assert np.isfinite(slope).all()

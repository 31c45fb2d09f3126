"""Platt's posterior against a general optimiser and scikit-learn, and coupling against the published iteration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from skldl.transformation._ptsvm import couple, fit_sigmoids  # each has a published algorithm as its oracle


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


def test_a_search_that_has_not_converged_ends_with_a_warning(monkeypatch):
    monkeypatch.setattr("skldl.transformation._ptsvm.MAX_PLATT_STEPS", 1)
    decisions, positive, negative = make_pairs(seed=4)
    with pytest.warns(ConvergenceWarning, match=r"of 6 of 6 pairs .* lower C"):
        slope, _ = fit_sigmoids(decisions, positive, negative)
    assert np.isfinite(slope).all()


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

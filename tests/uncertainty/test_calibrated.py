"""`CalibratedLDL`: maps against closed forms and another solver; gains where predictions are off, none elsewhere."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, rel_entr, softmax

from skldl import AAKNN, SABFGS, BaseLDL, MeanDistribution
from skldl.exceptions import ParameterError
from skldl.metrics import kullback_leibler
from skldl.testing import check_estimator, make_distributions
from skldl.uncertainty import CalibratedLDL

FOLDS_DIFFER = "the folds differ between weights and copies"
EXPECTED = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    FOLDS_DIFFER,
)


class Distorted(BaseLDL):
    """The true softmax model with a wrong temperature and a bias towards the first label."""

    def __init__(self, power=1.0, shift=0.0):
        self.power = power
        self.shift = shift

    def _fit(self, X, D, sample_weight):
        self.model_ = SABFGS(alpha=1e-6, fit_intercept=True).fit(X, D)

    def _predict(self, X):
        scores = self.power * np.log(self.model_.predict(X))
        scores[:, 0] += self.shift
        return softmax(scores, axis=1)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    D = rng.standard_gamma(20 * softmax(X @ rng.normal(size=(3, 4)), axis=1)) + 1e-9
    return X, D / D.sum(axis=1, keepdims=True)


@pytest.mark.slow
def test_common_checks():
    check_estimator(CalibratedLDL(SABFGS(alpha=1e-3), random_state=0), expected_failed_checks=EXPECTED)


@pytest.mark.parametrize("method", ["temperature", "vector"])
def test_maps_undo_what_was_done_to_the_truth(as_given, method):
    rng = np.random.default_rng(0)
    D = rng.dirichlet(np.ones(4), size=3000)
    b = np.array([0.5, -0.2, 0.0, 0.0]) if method == "vector" else np.zeros(4)
    P = softmax(2.0 * np.log(D) + b, axis=1)
    found = CalibratedLDL(as_given, method=method, random_state=0).fit(P, D)
    np.testing.assert_allclose(found.weights_, 0.5, atol=0.01)
    np.testing.assert_allclose(found.offset_ - found.offset_.mean(), -(b - b.mean()) / 2, atol=0.02)
    np.testing.assert_allclose(found.predict(P), D, atol=0.01)


def test_vector_scaling_minimises_its_objective_with_weights(as_given):
    rng = np.random.default_rng(1)
    D, P, weight = rng.dirichlet(np.ones(3), 60), rng.dirichlet(np.ones(3), 60), rng.uniform(0.5, 2, 60)

    def objective(x):
        scores = log_softmax(x[:3] * np.log(P) + x[3:], axis=1)
        return (
            -np.average((D * scores).sum(axis=1), weights=weight) + (((x[:3] - 1) ** 2).sum() + (x[3:] ** 2).sum()) / 60
        )

    found = CalibratedLDL(as_given, method="vector", random_state=0).fit(P, D, sample_weight=weight)
    plain = minimize(objective, np.r_[np.ones(3), np.zeros(3)], method="Powell", bounds=[(0, 5)] * 3 + [(-5, 5)] * 3)
    assert objective(np.r_[found.weights_, found.offset_]) <= plain.fun + 1e-8


def test_shrinkage_finds_the_fraction_that_the_noise_needs(as_given):
    rng = np.random.default_rng(2)
    mean = np.array([0.2, 0.3, 0.5])
    D = rng.dirichlet(40 * mean, size=2000)
    noise = rng.dirichlet(4 * mean, size=2000)  # has nothing to do with D
    model = CalibratedLDL(as_given, method="shrink", random_state=0)
    assert model.fit(noise, D).mean_share_ >= 0.7
    assert model.fit(D, D).mean_share_ == 0.0


@pytest.mark.parametrize(("distortion", "best"), [({"power": 3.0}, "temperature"), ({"shift": 1.0}, "vector")])
def test_calibration_repairs_predictions_on_new_rows(rows, distortion, best):
    X, D = rows
    model = CalibratedLDL(Distorted(**distortion), random_state=0).fit(X[:300], D[:300])
    before = kullback_leibler(D[300:], model.estimator_.predict(X[300:]))
    after = kullback_leibler(D[300:], model.predict(X[300:]))
    ideal = kullback_leibler(D[300:], Distorted().fit(X[:300], D[:300]).predict(X[300:]))
    assert model.method_ in (best, "vector")
    assert after < 0.6 * before
    assert after < 1.05 * ideal


def test_a_calibrated_model_is_left_alone(rows):
    X, D = rows
    model = CalibratedLDL(SABFGS(alpha=1e-4, fit_intercept=True), random_state=0).fit(X, D)
    assert model.scores_[model.method_] >= 0.98 * model.scores_["none"]


def test_held_out_predictions_are_cross_fitted(rows):
    X, D = rows[0][:60], rows[1][:60]
    model = CalibratedLDL(AAKNN(1), method="shrink", n_folds=3, random_state=0).fit(X, D)
    assert set(model.scores_) == {"none", "shrink"}
    assert rel_entr(D, model.oof_predictions_).sum(axis=1).mean() == pytest.approx(model.scores_["shrink"])
    assert rel_entr(D, np.maximum(model.uncalibrated_, 1e-300)).sum(axis=1).mean() == pytest.approx(
        model.scores_["none"]
    )
    mixed = (1 - model.mean_share_) * model.estimator_.predict(X) + model.mean_share_ * D.mean(axis=0)
    np.testing.assert_allclose(model.predict(X), mixed, atol=1e-9)


def test_groups_are_held_out_together(rows):
    X, D = np.repeat(rows[0][:40], 5, axis=0), np.repeat(rows[1][:40], 5, axis=0)
    groups = np.repeat(np.arange(40), 5)
    apart = CalibratedLDL(AAKNN(1), random_state=0).fit(X, D, groups=groups)
    mixed = CalibratedLDL(AAKNN(1), random_state=0).fit(X, D)
    assert mixed.scores_["none"] < 1e-6 < apart.scores_["none"]  # copies of a row give it away
    assert apart.mean_share_ > mixed.mean_share_


def test_without_a_map_degrees_of_zero_stay_zero(as_given):
    P = np.array([[0.0, 1.0], [0.3, 0.7], [0.1, 0.9], [0.2, 0.8]])
    model = CalibratedLDL(as_given, method="none", n_folds=2, random_state=0).fit(P, P)
    np.testing.assert_array_equal(model.predict(P), P)


def test_bad_parameters():
    X, D = make_distributions(n_samples=20)
    with pytest.raises(ParameterError, match="label distribution learner"):
        CalibratedLDL(None).fit(X, D)
    with pytest.raises(ParameterError, match="temperature"):
        CalibratedLDL(MeanDistribution(), method="platt").fit(X, D)

"""The objective of SABFGS at some parameters, as far as a fit shows it."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from skldl import SABFGS


@pytest.fixture
def evaluate():
    """Loss at some parameters, and minus its gradient up to a factor: the first step of a search that begins there."""

    def at(parameters, X, D=None, weight=None, *, fit_intercept=False, **settings):
        model = SABFGS(fit_intercept=fit_intercept, whiten=False, warm_start=True, max_iter=1, tol=0.0, **settings)
        U, b = (parameters[:-1], parameters[-1]) if fit_intercept else (parameters, np.zeros(parameters.shape[1]))
        model.coef_, model.intercept_ = U.T, b
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, D, weight)
        before, after = np.vstack([U, b]), np.vstack([model.coef_.T, model.intercept_])
        step = after - before + before.mean(axis=1, keepdims=True)  # weights are stored with mean zero over labels
        return model.loss_curve_[0], step[: len(parameters)]

    return at


@pytest.fixture
def assert_downhill():
    """Check that a step points along minus the numerical gradient of a loss of flat parameters, centred over labels."""

    def check(step, loss, parameters):
        flat = parameters.ravel()
        sizes = 1e-6 * np.maximum(1.0, np.abs(flat))
        moves = np.diag(sizes)
        gradient = np.array([loss(flat + move) - loss(flat - move) for move in moves]) / (2 * sizes)
        gradient = gradient.reshape(step.shape)
        gradient -= gradient.mean(axis=1, keepdims=True)
        np.testing.assert_allclose(step / np.linalg.norm(step), -gradient / np.linalg.norm(gradient), atol=1e-7)

    return check

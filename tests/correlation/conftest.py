"""Fixtures: an objective written a second time, with loops, as the oracle of a fitted linear softmax model."""

import numpy as np
import pytest
from scipy import optimize

from skldl.simplex import softmax


@pytest.fixture
def check_optimum():
    """Compare the last loss of a model with an objective of (P, W), and look for a lower value nearby with scipy."""

    def check(model, X, objective, weight=None, excess=1e-7):
        weight = np.full(len(X), 1 / len(X)) if weight is None else weight / weight.sum()
        shape = (X.shape[1] + 1, model.n_labels_)

        def whole(flat):
            parameters = flat.reshape(shape)
            W, b = parameters[:-1], parameters[-1] if model.fit_intercept else 0.0
            return objective(softmax(X @ W + b), W, weight) + 0.5 * model.alpha_ * (W**2).sum()

        end = np.vstack([model.coef_.T, model.intercept_]).ravel()
        assert model.loss_curve_[-1] == pytest.approx(whole(end), rel=1e-9, abs=1e-12)
        lower = optimize.minimize(whole, end, method="BFGS", options={"gtol": 1e-8, "maxiter": 60}).fun
        assert model.loss_curve_[-1] - lower < excess

    return check

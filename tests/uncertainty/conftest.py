"""A learner whose predictions a test chooses."""

import numpy as np
import pytest

from skldl import BaseLDL


class AsGiven(BaseLDL):
    """Predicts the features themselves, whatever it was fitted to."""

    def _fit(self, X, D, sample_weight):
        pass

    def _predict(self, X):
        return np.asarray(X)


@pytest.fixture(scope="session")
def as_given():
    return AsGiven()

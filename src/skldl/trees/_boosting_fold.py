"""Common code of both engines of gradient boosting: the loss, its derivatives, and the operations of a fold."""

from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import log_softmax, xlogy

from skldl.trees._flat_trees import FlatTrees
from skldl.utils.mean_mixture import mean_distribution
from skldl.utils.typing import FloatArray, IntArray


class BoostingSettings(NamedTuple):
    """Hyper-parameters with every "auto" decided."""

    learning_rate: float
    max_leaf_nodes: int
    min_samples_leaf: int
    max_features: float
    subsample: float
    l2: float
    random_splits: bool


class Fold(Protocol):
    """A model that is boosted on the training rows of one fold, round by round."""

    def __init__(
        self,
        X: Any,
        D: FloatArray,
        weight: FloatArray,
        train: IntArray,
        test: IntArray,
        settings: BoostingSettings,
        seed: int,
    ) -> None: ...

    def advance(self, n_rounds: int) -> list[float]:
        """Add rounds; return the weighted sum of held-out divergences after each of them."""
        ...

    def trees(self, n_rounds: int) -> FlatTrees:
        """The trees of the first rounds."""
        ...

    def gains(self, n_rounds: int) -> FloatArray:
        """Total gain of the splits on each feature in the first rounds."""
        ...


def log_mean(D: FloatArray, weight: FloatArray) -> FloatArray:
    """Scores that predict the weighted mean distribution: where boosting begins."""
    return np.log(mean_distribution(D, weight))


def divergences(D: FloatArray, scores: FloatArray) -> FloatArray:
    """Kullback-Leibler divergence of each row from D to the softmax of the scores."""
    return np.asarray((xlogy(D, D) - D * log_softmax(scores, axis=1)).sum(axis=1))


def derivatives(D: FloatArray, scores: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Gradient p - d and scaled diagonal Hessian p (1 - p) c / (c - 1) of the weighted divergence in the scores.

    The factor c / (c - 1) makes up for the off-diagonal part of the Hessian, diag(p) - p pᵀ: on vectors that sum to
    zero, and for uniform p, the scaled diagonal is exact.
    """
    P = np.exp(log_softmax(scores, axis=1))
    n_labels = D.shape[1]
    return (P - D) * weight[:, None], P * (1.0 - P) * (n_labels / (n_labels - 1) * weight)[:, None]

"""`MeanDistribution`: the same distribution for every instance, the weighted mean of the training distributions.

Among all constant predictions it has the least mean Kullback-Leibler divergence on the training rows. The tables of
Geng (2016) do not print it, and it beats most of their cells (docs/reproduction.md): every comparison should hold it.
"""

from typing import Any, ClassVar

import numpy as np

from skldl._partial_base import MISSING, PartialLDL
from skldl.chunks import Chunk, Rows
from skldl.utils.arrays import as_type_of, is_device_array, namespace, weighted_mean
from skldl.utils.missing import COMPLETE, mean_distribution
from skldl.utils.typing import FloatArray


class MeanDistribution(PartialLDL):
    """Predict the weighted mean of the training distributions for every row.

    With missing degrees it is the constant prediction under which what was observed is most likely.

    Parameters
    ----------
    missing : {"auto", "degrees", "renormalised"}, default="auto"
        What NaN in y means; see `skldl.SABFGS`.

    Attributes
    ----------
    distribution_ : ndarray of shape (n_labels,)
        The mean distribution.
    missing_ : {"complete", "degrees", "renormalised"}
        How gaps in y were read.
    n_features_in_ : int
        Number of features seen by ``fit``.
    n_labels_ : int
        Number of labels.
    label_names_ : ndarray of str
        Names of the labels.

    Examples
    --------
    >>> from skldl import MeanDistribution
    >>> X = [[0.0], [1.0]]
    >>> D = [[0.2, 0.8], [0.6, 0.4]]
    >>> MeanDistribution().fit(X, D).predict([[5.0]])
    array([[0.4, 0.6]])
    >>> MeanDistribution().fit(X, D, sample_weight=[3, 1]).predict([[5.0]])
    array([[0.3, 0.7]])
    """

    _constraints: ClassVar = {"missing": MISSING}
    _array_api = True

    def __init__(self, missing: str = "auto") -> None:
        self.missing = missing

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        if self.missing_ != COMPLETE:
            weight = np.ones(len(D)) if sample_weight is None else sample_weight
            self.distribution_ = mean_distribution(D, weight, self.missing_)
            return
        self.distribution_ = weighted_mean(D, sample_weight)

    def _fit_rows(self, rows: Rows) -> None:
        self.missing_, self.n_left_out_ = COMPLETE, 0
        mass, total = rows.sum(_mass)
        self.distribution_ = mass / total

    def _predict(self, X: Any) -> FloatArray:
        if is_device_array(X):
            row = as_type_of(self.distribution_, X)
            return namespace(X).broadcast_to(row[None, :], (X.shape[0], self.n_labels_))
        return np.tile(self.distribution_, (X.shape[0], 1))


def _mass(chunk: Chunk) -> tuple[FloatArray, float]:
    """Weighted sum of the distributions of a chunk, and the sum of the weights."""
    D = np.asarray(chunk.D)
    if chunk.weight is None:
        return D.sum(axis=0), float(len(D))
    return chunk.weight @ D, float(chunk.weight.sum())

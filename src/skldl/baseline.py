"""`MeanDistribution`: the same distribution for every instance, the weighted mean of the training distributions.

Among all constant predictions it has the least mean Kullback-Leibler divergence on the training rows. The tables of
Geng (2016) do not contain it, and it beats most of their entries (docs/reproduction.md): every comparison should
include it.
"""

from typing import Any, ClassVar

import numpy as np

from skldl.base import MISSING, PartialLDL
from skldl.chunks import Chunk, Rows
from skldl.chunks._arrays import in_memory
from skldl.chunks._rows import Sums
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
        What NaN in y means.
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

    _onnx = "mean"
    _constraints: ClassVar = {"missing": MISSING}
    _array_api = True

    def __init__(self, missing: str = "auto") -> None:
        self.missing = missing

    def _fit_rows(self, rows: Rows) -> None:
        if self.missing_ != COMPLETE:
            chunk = in_memory(rows).chunk
            self.distribution_ = mean_distribution(np.asarray(chunk.D), chunk.weights(), self.missing_)
        else:
            self.distribution_, _ = rows.sum(_mean, merge=_merge_means)

    def _predict(self, X: Any) -> FloatArray:
        if is_device_array(X):
            row = as_type_of(self.distribution_, X)
            return namespace(X).broadcast_to(row[None, :], (X.shape[0], self.n_labels_))
        return np.tile(self.distribution_, (X.shape[0], 1))


def _mean(chunk: Chunk) -> Sums:
    """Weighted mean of the distributions of a chunk, and the sum of the weights."""
    total = len(chunk) if chunk.weight is None else namespace(chunk.weight).sum(chunk.weight)
    return weighted_mean(chunk.D, chunk.weight), float(total)


def _merge_means(first: Sums, second: Sums) -> Sums:
    """Put two means together; that of two equal ones is the same to the last digit."""
    total = first[1] + second[1]
    return first[0] + (second[0] - first[0]) * (second[1] / total), total

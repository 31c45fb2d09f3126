"""Thirty experiments: pairs of distributions, the correlation of the measures over them, and the tree that it makes."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats
from scipy.cluster import hierarchy
from scipy.spatial.distance import squareform

from skldl.metrics._measure import Measure, compute_rows
from skldl.utils.typing import FloatArray

Pairs = tuple[FloatArray, FloatArray]

DISSIMILARITIES = {
    "sine": lambda r: np.sqrt(np.maximum(1.0 - r * r, 0.0)),
    "one_minus_r": lambda r: 1.0 - np.abs(r),
}
CORRELATIONS = ("pearson", "spearman")


def random_pairs(
    n_labels: int, concentration: float, n_experiments: int, n_pairs: int, generator: np.random.Generator
) -> Iterator[Pairs]:
    """Draw, for each experiment, one true distribution and many predictions, all from a symmetric Dirichlet law."""
    parameters = np.full(n_labels, concentration)
    for _ in range(n_experiments):
        true = generator.dirichlet(parameters)
        yield np.tile(true, (n_pairs, 1)), generator.dirichlet(parameters, n_pairs)


def own_pairs(
    true: FloatArray, pred: FloatArray, n_experiments: int, generator: np.random.Generator
) -> Iterator[Pairs]:
    """Draw, for each experiment, a random half of the rows."""
    half = (len(true) + 1) // 2
    for _ in range(n_experiments):
        rows = generator.choice(len(true), half, replace=False)
        yield true[rows], pred[rows]


def correlate(measures: Sequence[Measure], experiments: Iterator[Pairs], correlation: str) -> FloatArray:
    """Mean over experiments of the correlation matrix of the measures' values."""
    matrices = []
    for true, pred in experiments:
        values = np.stack(list(compute_rows(true, pred, measures).values()))
        if correlation == "spearman":
            values = stats.rankdata(values, axis=1)
        matrices.append(_correlation_matrix(values))
    return np.asarray(np.mean(matrices, axis=0))


def _correlation_matrix(values: FloatArray) -> FloatArray:
    """Pearson correlation of the rows; a measure that never varies has no correlation with the others."""
    centred = values - values.mean(axis=1, keepdims=True)
    length = np.linalg.norm(centred, axis=1, keepdims=True)
    constant = length <= 1e-12 * np.abs(values).max(axis=1, keepdims=True)
    directions = np.where(constant, 0.0, centred / np.where(constant, 1.0, length))
    matrix = directions @ directions.T
    np.fill_diagonal(matrix, 1.0)
    return np.asarray(np.clip(matrix, -1.0, 1.0))


def tree(distances: FloatArray) -> FloatArray:
    """Single-linkage clustering of a distance matrix, as a linkage matrix of scipy."""
    symmetric = (distances + distances.T) / 2.0
    np.fill_diagonal(symmetric, 0.0)
    return np.asarray(hierarchy.linkage(squareform(symmetric, checks=False), "single"))


def cut_tree(linkage: FloatArray, cut: float) -> npt.NDArray[np.int_]:
    """Number the clusters that are further apart than the cut."""
    return np.asarray(hierarchy.fcluster(linkage, cut, "distance"), dtype=np.int_)

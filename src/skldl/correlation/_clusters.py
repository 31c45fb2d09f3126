"""Clusters of distributions by weighted k-means with a deterministic start.

The start is that of Su and Dy (2007): the cluster with the largest sum of squared deviations is split repeatedly, by
the hyperplane through its mean orthogonal to its direction of largest variance. It depends on weighted moments alone,
so that a row of weight two counts as the row twice, and permuting the labels permutes the centres.

References
----------
.. [1] T. Su and J. G. Dy, "In search of deterministic methods for initializing K-means and Gaussian mixture
   clustering", Intelligent Data Analysis 11(4), 2007.
"""

import numpy as np

from skldl.utils.typing import FloatArray, IntArray

MAX_ROUNDS = 300  # the default of scikit-learn's KMeans
ROUNDING = 1e-12  # a cluster whose squared deviations fall below this fraction of the total is one point


def cluster_rows(D: FloatArray, weight: FloatArray, n_clusters: int) -> tuple[IntArray, FloatArray]:
    """Assign each row to one of at most ``n_clusters`` clusters.

    Parameters
    ----------
    D : ndarray of shape (n_samples, n_labels)
        Distributions.
    weight : ndarray of shape (n_samples,)
        Row weights, all positive.
    n_clusters : int
        Maximum number of clusters; there are fewer if D has fewer different rows.

    Returns
    -------
    assignment : ndarray of shape (n_samples,)
        Index of the cluster of each row, without gaps.
    centres : ndarray of shape (n_found, n_labels)
        Weighted mean of each cluster.
    """
    assignment = _split(D, weight, n_clusters)
    for _ in range(MAX_ROUNDS):
        centres = _means(D, weight, assignment)
        nearest = _squared_distances(D, centres).argmin(axis=1)
        _, nearest = np.unique(nearest, return_inverse=True)  # a cluster without rows is dropped
        if np.array_equal(nearest, assignment):
            break
        assignment = nearest
    return assignment, _means(D, weight, assignment)


def _split(D: FloatArray, weight: FloatArray, n_clusters: int) -> IntArray:
    """Assign the rows to the clusters of the start."""
    assignment = np.zeros(len(D), dtype=np.intp)
    smallest = ROUNDING * max(float(weight @ (D**2).sum(axis=1)), np.finfo(np.float64).tiny)
    for _ in range(n_clusters - 1):
        centred = D - _means(D, weight, assignment)[assignment]
        deviations = np.bincount(assignment, weights=weight * (centred**2).sum(axis=1))
        largest = int(deviations.argmax())
        if deviations[largest] <= smallest:
            break
        rows = np.flatnonzero(assignment == largest)
        inside = centred[rows]
        _, axes = np.linalg.eigh(inside.T @ (inside * weight[rows, None]))
        side = inside @ axes[:, -1] > 0
        # the sign of an eigenvector is arbitrary: the part that keeps its index must not depend on it
        if weight[rows] @ (side * (inside**2).sum(axis=1)) > weight[rows] @ (~side * (inside**2).sum(axis=1)):
            side = ~side
        assignment[rows[side]] = assignment.max() + 1
    return assignment


def _means(D: FloatArray, weight: FloatArray, assignment: IntArray) -> FloatArray:
    """Weighted mean of each cluster."""
    members = np.eye(int(assignment.max()) + 1)[assignment] * weight[:, None]
    return np.asarray((members.T @ D) / members.sum(axis=0)[:, None])


def _squared_distances(D: FloatArray, centres: FloatArray) -> FloatArray:
    """Squared distance of each row from each centre, by products, which need no array over rows, centres and labels."""
    distances = (D**2).sum(axis=1)[:, None] - 2.0 * (D @ centres.T)
    distances += (centres**2).sum(axis=1)
    return np.asarray(np.maximum(distances, 0.0))  # negative only by rounding

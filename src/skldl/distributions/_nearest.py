"""Nearest rows with all that are equally near: the result depends neither on the order of the rows nor on sparsity."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from skldl.utils.typing import FloatArray, IntArray

_SLACK = 1e-6  # error of distances that scikit-learn computes from products, as a share of the largest norm
_EQUAL = 1e-9  # distances that differ by less, as a share of themselves, are equal
_CELLS = 4_000_000


def nearest_rows(
    neighbors: NearestNeighbors, fitted: Any, X: Any | None, n_neighbors: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Find the nearest fitted rows of each row, and all that are as near as the last of them.

    Parameters
    ----------
    neighbors : NearestNeighbors
        Fitted to ``fitted``.
    fitted : array or CSR matrix of shape (n_fitted, n_features)
        The rows to search.
    X : array or CSR matrix of shape (n_samples, n_features), or None
        The rows to find neighbours for, dense or sparse independent of the fitted rows; None for the fitted rows
        themselves, none of which is its own neighbour.
    n_neighbors : int
        Least number of neighbours of each row.

    Returns
    -------
    rows, columns : ndarray of int
        Pairs of a row and one of its neighbours.
    distances : ndarray
        Their Euclidean distances.
    """
    if X is not None and sparse.issparse(X) != sparse.issparse(fitted):
        X = sparse.csr_array(X) if sparse.issparse(fitted) else X.toarray()
    most = fitted.shape[0] - (X is None)
    slack = _SLACK * _largest_norm(fitted)
    width = min(n_neighbors + 8, most)
    while True:
        distances, columns = neighbors.kneighbors(X, n_neighbors=width)
        last = distances[:, n_neighbors - 1] * (1 + _SLACK) + slack
        if width == most or (distances[:, -1] > last).all():
            break
        width = min(4 * width, most)
    near = distances <= last[:, None]
    rows, places = np.nonzero(near)
    found = columns[rows, places]
    exact = _pair_distances(fitted if X is None else X, fitted, rows, found)
    starts = np.searchsorted(rows, np.arange(len(distances)))
    order = np.lexsort((exact, rows))  # ascending within each row
    limit = exact[order[starts + n_neighbors - 1]]
    kept = exact <= limit[rows] * (1 + _EQUAL)
    return rows[kept], found[kept], exact[kept]


def _largest_norm(X: Any) -> float:
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return float(np.sqrt(np.max(np.asarray(squares, dtype=np.float64))))


def _pair_distances(X: Any, Y: Any, rows: IntArray, columns: IntArray) -> FloatArray:
    """Distances of pairs of rows from their differences, which are exact for copies, sparse or not."""
    distances = np.empty(len(rows))
    step = max(1, _CELLS // X.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        difference = X[rows[part]] - Y[columns[part]]
        if sparse.issparse(difference):
            squares = np.asarray(difference.multiply(difference).sum(axis=1), dtype=np.float64).ravel()
        else:
            squares = (difference.astype(np.float64) ** 2).sum(axis=1)
        distances[part] = np.sqrt(squares)
    return distances

"""Nearest neighbours with all ties, so that the result depends neither on the order of the rows nor on sparsity."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from skldl.utils.typing import FloatArray, IntArray

SEARCH_ERROR = 1e-6  # of distances that scikit-learn computes from products, as a fraction of the largest norm
TIE_TOLERANCE = 1e-9  # relative difference up to which two exact distances are equal
MARGIN = 8  # neighbours found in addition, so that most searches for ties end in the first round; chosen by hand
BLOCK_CELLS = 4_000_000  # numbers in a temporary array (32 MB)


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
        Minimum number of neighbours of each row.

    Returns
    -------
    rows, columns : ndarray of int
        Pairs of a row and one of its neighbours.
    distances : ndarray
        Their Euclidean distances.
    """
    if X is not None and sparse.issparse(X) != sparse.issparse(fitted):
        X = sparse.csr_array(X) if sparse.issparse(fitted) else X.toarray()
    n_candidates = fitted.shape[0] - (X is None)
    slack = SEARCH_ERROR * _largest_norm(fitted)
    width = min(n_neighbors + MARGIN, n_candidates)
    while True:
        distances, columns = neighbors.kneighbors(X, n_neighbors=width)
        # errors of the search may hide a neighbour as near as the last one: search until one is clearly farther
        last = distances[:, n_neighbors - 1] * (1 + SEARCH_ERROR) + slack
        if width == n_candidates or (distances[:, -1] > last).all():
            break
        width = min(4 * width, n_candidates)
    near = distances <= last[:, None]
    rows, places = np.nonzero(near)
    found = columns[rows, places]
    exact = _pair_distances(fitted if X is None else X, fitted, rows, found)
    starts = np.searchsorted(rows, np.arange(len(distances)))
    order = np.lexsort((exact, rows))  # ascending within each row
    limit = exact[order[starts + n_neighbors - 1]]
    kept = exact <= limit[rows] * (1 + TIE_TOLERANCE)
    return rows[kept], found[kept], exact[kept]


def _largest_norm(X: Any) -> float:
    """Euclidean norm of the longest row."""
    squares = X.multiply(X).sum(axis=1) if sparse.issparse(X) else np.einsum("ij,ij->i", X, X)
    return float(np.sqrt(np.max(np.asarray(squares, dtype=np.float64))))


def _pair_distances(X: Any, Y: Any, rows: IntArray, columns: IntArray) -> FloatArray:
    """Distances of pairs of rows from their differences, which are exact for copies, sparse or not."""
    distances = np.empty(len(rows))
    step = max(1, BLOCK_CELLS // X.shape[1])
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        difference = X[rows[part]] - Y[columns[part]]
        if sparse.issparse(difference):
            squares = np.asarray(difference.multiply(difference).sum(axis=1), dtype=np.float64).ravel()
        else:
            squares = (difference.astype(np.float64) ** 2).sum(axis=1)
        distances[part] = np.sqrt(squares)
    return distances

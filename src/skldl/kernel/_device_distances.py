"""Distances between rows on a device, in double precision; the formulae of `skldl.kernel._kernels`."""

from typing import Any

from skldl.utils.arrays import count_true, namespace, take_rows

CLOSE = 1e-6
"""Squared distances below this share of the squared norms are computed again from differences."""


def device_distances(A: Any, B: Any, metric: str) -> Any:
    """Return the distances (or, for "product", inner products) between the rows of A and those of B.

    Parameters
    ----------
    A, B : array of shape (n_rows, n_features)
        Scaled features in double precision. B holds training rows.
    metric : {"euclidean", "cityblock", "chi2", "product"}
        Which distance.
    """
    xp = namespace(A)
    if metric == "product":
        return A @ B.T
    if metric == "euclidean":
        return xp.sqrt(_squared_euclidean(A, B))
    if metric == "chi2":
        return _by_features(xp.clip(A, 0.0), xp.clip(B, 0.0), _chi2)
    return _by_features(A, B, lambda a, b: xp.abs(a - b))


def _squared_euclidean(A: Any, B: Any) -> Any:
    """‖a‖² − 2aᵀb + ‖b‖², and from differences where that loses digits, so that equal rows are at distance zero."""
    xp = namespace(A)
    centre = xp.mean(B, axis=0)
    A, B = A - centre, B - centre
    norms = xp.sum(A**2, axis=1)[:, None] + xp.sum(B**2, axis=1)
    squares = xp.clip(norms + (-2.0 * A) @ B.T, 0.0)
    close = squares <= CLOSE * norms
    n_close = count_true(close)
    if n_close > squares.shape[0] * squares.shape[1] // 20:
        return _by_features(A, B, lambda a, b: (a - b) ** 2)
    if n_close:
        rows, columns = xp.nonzero(close)
        squares[close] = xp.sum((take_rows(A, rows) - take_rows(B, columns)) ** 2, axis=1)
    return squares


def _chi2(a: Any, b: Any) -> Any:
    xp = namespace(a)
    total = a + b
    return xp.where(total > 0, (a - b) ** 2 / xp.where(total > 0, total, 1.0), 0.0)


def _by_features(A: Any, B: Any, term: Any) -> Any:
    """Σ_j term(a_j, b_j) for all pairs of rows, feature by feature: no array of all features is made."""
    total = term(A[:, :1], B[:, 0])
    for j in range(1, A.shape[1]):
        total += term(A[:, j : j + 1], B[:, j])
    return total

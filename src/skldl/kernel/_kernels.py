"""Kernels by distance: exponential of the L2 or L1 distance, Gaussian, chi-square, and the inner product.

With ℓ the length scale,

    exponential  exp(−‖x − z‖₂ / ℓ)          laplacian  exp(−‖x − z‖₁ / ℓ)
    rbf          exp(−‖x − z‖₂² / (2ℓ²))     chi2       exp(−χ²(x, z) / ℓ),  χ² = Σ_j (x_j − z_j)² / (x_j + z_j)
    linear       xᵀz / ℓ

All are positive semi-definite. ℓ is the width times the median distance of the training rows (for "linear": the mean
squared norm of the centred rows, and there is no width).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import additive_chi2_kernel, manhattan_distances
from sklearn.utils.extmath import row_norms

from skldl.utils import arrays
from skldl.utils.arrays import as_double, count_true, is_device_array, namespace, row_size, take_rows
from skldl.utils.scaling import two_valued_columns
from skldl.utils.typing import FloatArray

KernelFunction = Callable[[Any, Any], Any]

BLOCK_CELLS = 2**22
"""A block of kernel values holds at most about this many numbers (32 MiB)."""
CLOSE = 1e-6
"""Squared distances below this fraction of the squared norms are computed again from differences: in larger ones, the
rounding of the norms shows from the tenth digit on at most."""


@dataclass(frozen=True)
class Family:
    """A kernel family: the distance that it is computed from and the widths that are tried."""

    distance: str
    widths: tuple[float, ...]


FAMILIES = {
    "exponential": Family("euclidean", (2.0, 0.5, 8.0)),
    "laplacian": Family("cityblock", (0.5, 0.125, 2.0)),
    "rbf": Family("euclidean", (1.0, 0.25, 4.0)),
    "chi2": Family("chi2", (0.5, 0.125, 2.0)),
    "linear": Family("product", (1.0,)),
}
"""The kernels by name."""


def kernel_values(kernel: str | KernelFunction, A: Any, B: Any, length_scale: float) -> FloatArray:
    """Return the kernel between the rows of A and those of B, both scaled features."""
    if callable(kernel):
        values = kernel(A, B)
        values = as_double(values) if is_device_array(values) else np.asarray(values, dtype=np.float64)
        if tuple(values.shape) != (A.shape[0], B.shape[0]):
            raise ValueError(
                f"kernel returned shape {tuple(values.shape)} for {A.shape[0]} and {B.shape[0]} rows. A kernel takes "
                "two tables of features and returns one number for each pair of rows."
            )
        return values
    return from_distances(kernel, distances(A, B, FAMILIES[kernel].distance), length_scale)


def from_distances(
    kernel: str, values: FloatArray, length_scale: float, *, out: FloatArray | None = None
) -> FloatArray:
    """Turn distances into kernel values; ``out`` may be the distances themselves."""
    if is_device_array(values):
        if kernel == "linear":
            return values / length_scale
        exponents = values**2 * (-0.5 / length_scale**2) if kernel == "rbf" else values * (-1 / length_scale)
        return namespace(values).exp(exponents)
    out = np.empty_like(values) if out is None else out
    if kernel == "linear":
        return np.divide(values, length_scale, out=out)
    if kernel == "rbf":
        np.square(values, out=out)
        out *= -0.5 / length_scale**2
    else:
        np.multiply(values, -1 / length_scale, out=out)
    return np.exp(out, out=out)


def row_blocks(n_rows: int, cells_per_row: int) -> Iterator[slice]:
    """Cut the rows into blocks of a bounded number of cells."""
    return arrays.row_blocks(n_rows, cells_per_row, BLOCK_CELLS)


def kernel_times(
    kernel: str | KernelFunction, A: Any, B: Any, length_scale: float, coefficients: FloatArray
) -> FloatArray:
    """Return k(A, B) @ coefficients, in blocks of bounded memory."""
    product = np.empty((A.shape[0], coefficients.shape[1]))
    for block in row_blocks(A.shape[0], B.shape[0]):
        product[block] = kernel_values(kernel, A[block], B, length_scale) @ coefficients
    return product


def distances(A: Any, B: Any, metric: str) -> FloatArray:
    """Return the distances (or, for "product", inner products) between the rows of A and those of B.

    Parameters
    ----------
    A, B : ndarray or CSR matrix
        Scaled features. B holds training rows.
    metric : {"euclidean", "cityblock", "chi2", "product"}
        Which distance.
    """
    if is_device_array(A):
        return _device_distances(A, B, metric)
    A = _like(B, A)
    if metric == "product":
        return _products(A, B)
    if metric == "euclidean":
        squares = _squared_euclidean(A, B)
        return np.sqrt(squares, out=squares)
    if metric == "chi2":
        # new rows may be negative where those learned from are not: χ² takes such a feature as 0
        A, B = (part.toarray() if sparse.issparse(part) else part for part in (A, B))
        return np.asarray(-additive_chi2_kernel(np.maximum(A, 0.0), np.maximum(B, 0.0)))
    return _cityblock(A, B)


def squared_distances(A: Any, B: Any) -> FloatArray:
    """Return the squared L2 distances between the rows of A and those of B in double precision.

    Rows far from zero keep the digits in which they differ.

    Parameters
    ----------
    A, B : ndarray or CSR matrix
        Features.

    Examples
    --------
    >>> import numpy as np
    >>> squared_distances(np.array([[1e9], [1e9 + 3]]), np.array([[1e9 + 1]]))
    array([[1.],
           [4.]])
    """
    return _squared_euclidean(_like(B, A).astype(np.float64, copy=False), B.astype(np.float64, copy=False))


def _like(B: Any, A: Any) -> Any:
    """Convert A to a dense array or a sparse matrix, as B is."""
    if sparse.issparse(A) == sparse.issparse(B):
        return A
    return sparse.csr_matrix(A) if sparse.issparse(B) else A.toarray()


def _products(A: Any, B: Any) -> FloatArray:
    product = A @ B.T
    return np.asarray(product.toarray() if sparse.issparse(product) else product)


def _squared_euclidean(A: Any, B: Any) -> FloatArray:
    """‖a‖² − 2aᵀb + ‖b‖², and from differences where that loses precision, so that equal rows are at distance zero."""
    if not sparse.issparse(A):
        centre = B.mean(axis=0)  # about it norms are smaller, so that fewer digits cancel in their difference
        A, B = A - centre, B - centre
    left, right = row_norms(A, squared=True), row_norms(B, squared=True)
    squares = _products(A, B)
    squares *= -2
    squares += left[:, None]
    squares += right
    np.maximum(squares, 0.0, out=squares)  # the difference of nearly equal terms may be negative
    if sparse.issparse(A) and _are_exact(A, B, left.max(initial=0) + right.max(initial=0)):
        return squares
    # rows that close together have nearly the same norm: ‖a‖² + ‖b‖² < 2.01‖a‖²
    close = np.flatnonzero(squares <= (2.01 * CLOSE * left)[:, None])
    if len(close) > squares.size // 20 and not sparse.issparse(A):  # then all distances are as fast as some of them
        return np.asarray(cdist(A, B, "sqeuclidean"))
    for block in row_blocks(len(close), row_size(A) + row_size(B)):
        rows, columns = np.divmod(close[block], squares.shape[1])
        difference = A[rows] - B[columns]
        squares[rows, columns] = row_norms(difference, squared=True)
    return squares


def _are_exact(A: Any, B: Any, largest: float) -> bool:
    """Whether nothing was rounded: sparse rows of integers whose squared norms are exact in their precision."""
    parts = (A, B)
    if not all(largest < 1 / np.finfo(part.dtype).eps for part in parts):
        return False
    return all(np.array_equal(part.data, np.rint(part.data)) for part in parts)


def _cityblock(A: Any, B: Any) -> FloatArray:
    """L1 distances; columns with the two values u < v contribute (a − b)² / (v − u), which a matrix product computes.

    With at most 16 such columns (chosen by hand) the product is not worth its preparation.
    """
    binary = two_valued_columns(B)
    if binary.sum() > 16:
        low, high = _bounds(B, binary)
        binary[binary] = _only_values(A[:, binary], low, high)
    if binary.sum() <= 16:
        return _plain_cityblock(A, B)
    low, high = _bounds(B, binary)
    factor = 1 / np.sqrt(high - low)
    total = _squared_euclidean(_times_columns(A[:, binary], factor), _times_columns(B[:, binary], factor))
    if not binary.all():
        total += _plain_cityblock(A[:, ~binary], B[:, ~binary])
    return total


def _times_columns(X: Any, factors: FloatArray) -> Any:
    return X.multiply(factors).tocsr() if sparse.issparse(X) else X * factors


def _bounds(X: Any, columns: npt.NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    chosen = X[:, columns]
    bounds = chosen.min(axis=0), chosen.max(axis=0)
    low, high = (np.ravel(bound.toarray()) if sparse.issparse(bound) else bound for bound in bounds)
    return low, high


def _only_values(A: Any, low: FloatArray, high: FloatArray) -> npt.NDArray[np.bool_]:
    """Say for each column of A whether it holds no other values than its two."""
    if not sparse.issparse(A):
        return np.asarray(((low == A) | (high == A)).all(axis=0))
    inside = (A.data != low[A.indices]) & (A.data != high[A.indices]) & (A.data != 0)
    odd = np.bincount(A.indices[inside], minlength=A.shape[1]) > 0
    return np.asarray(~odd & ((low == 0) | (high == 0)))


def _plain_cityblock(A: Any, B: Any) -> FloatArray:
    if sparse.issparse(A):
        return np.asarray(manhattan_distances(A, B))
    return np.asarray(cdist(A, B, "cityblock"))


def typical_distance(values: FloatArray, weight: FloatArray | None, metric: str) -> float:
    """Weighted median of the distances of all pairs of rows: the unit of the widths.

    Pairs of a row with itself count, so that a row of weight two is the same as the row twice. For inner products the
    unit is the mean squared norm of the centred rows.
    """
    w = np.full(len(values), 1.0) if weight is None else weight
    if metric == "product":
        share = w / w.sum()
        unit = float(share @ np.diagonal(values) - share @ values @ share)
    elif weight is None:
        middle = (
            values.size + 1
        ) // 2 - 1  # the lower median, as below: the value at which half of the weight is reached
        unit = float(np.partition(values, middle, axis=None)[middle])
    else:
        order = np.argsort(values, axis=None, kind="stable")
        running = np.cumsum(np.outer(w, w).ravel()[order])
        unit = float(values.ravel()[order[np.searchsorted(running, running[-1] / 2)]])
    if unit <= 0:  # half of all pairs are equal rows
        pairs = np.outer(w, w)[values > 0]
        unit = float(np.average(values[values > 0], weights=pairs)) if pairs.size else 1.0
    return unit


def _device_distances(A: Any, B: Any, metric: str) -> Any:
    """`distances` on a device, in double precision."""
    xp = namespace(A)
    if metric == "product":
        return A @ B.T
    if metric == "euclidean":
        return xp.sqrt(_device_squares(A, B))
    if metric == "chi2":
        return _by_features(xp.clip(A, 0.0), xp.clip(B, 0.0), _chi2)
    return _by_features(A, B, lambda a, b: xp.abs(a - b))


def _device_squares(A: Any, B: Any) -> Any:
    """`_squared_euclidean` on a device."""
    xp = namespace(A)
    centre = xp.mean(B, axis=0)  # about it norms are smaller, so that fewer digits cancel in their difference
    A, B = A - centre, B - centre
    norms = xp.sum(A**2, axis=1)[:, None] + xp.sum(B**2, axis=1)
    squares = xp.clip(norms + (-2.0 * A) @ B.T, 0.0)
    close = squares <= CLOSE * norms
    n_close = count_true(close)
    if n_close > squares.shape[0] * squares.shape[1] // 20:  # then all distances are as fast as some of them
        return _by_features(A, B, lambda a, b: (a - b) ** 2)
    if n_close:
        rows, columns = xp.nonzero(close)
        squares[close] = xp.sum((take_rows(A, rows) - take_rows(B, columns)) ** 2, axis=1)
    return squares


def _chi2(a: Any, b: Any) -> Any:
    xp = namespace(a)
    total = a + b  # 0 where both are: the term is 0 there, and the inner `where` avoids a division by 0
    return xp.where(total > 0, (a - b) ** 2 / xp.where(total > 0, total, 1.0), 0.0)


def _by_features(A: Any, B: Any, term: Any) -> Any:
    """Σ_j term(a_j, b_j) for all pairs of rows, feature by feature: an array of all features would not fit."""
    total = term(A[:, :1], B[:, 0])
    for j in range(1, A.shape[1]):
        total += term(A[:, j : j + 1], B[:, j])
    return total

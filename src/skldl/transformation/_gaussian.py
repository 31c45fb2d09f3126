"""The Gaussian kernel exp(−gamma·‖x − z‖²), its width, and the blocks in which kernels are computed.

‖x‖² − 2xᵀz + ‖z‖² is one matrix product for all pairs of rows. Where gamma times the squared norms is large, the
rounding errors of this difference would show in the kernel: such pairs are computed from x − z, unless the kernel is 0.
"""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.extmath import row_norms

from skldl._typing import FloatArray

BLOCK = 2**19
"""Numbers in the largest temporary array, 4 MiB."""
LARGE = 1e3
"""Up to this gamma·(‖x‖² + ‖z‖²) rounding errors change the kernel by less than 1e-12."""
FAR = 40.0
"""From this gamma·‖x − z‖² on the kernel is below 1e-17."""
MANY = 0.05
"""Share of the pairs of dense rows from which on all of them are computed from differences."""


def blocks(n_items: int, item_size: int) -> Iterator[slice]:
    """Cut a range so that each piece holds at most `BLOCK` numbers, and at least one item."""
    length = max(1, BLOCK // max(1, item_size))
    for start in range(0, n_items, length):
        yield slice(start, start + length)


def kernel_width(rows: Any, gamma: Literal["auto", "scale"] | float) -> float:
    """The number behind gamma; identical numbers everywhere have no scale, and 1 is as good as any."""
    if gamma == "auto":
        return 1.0 / rows.shape[1]
    if gamma == "scale":
        if rows.min() == rows.max():
            return 1.0
        return float(1.0 / (rows.shape[1] * _variance(rows)))
    return float(gamma)


def _variance(rows: Any) -> float:
    """Variance of all numbers: of their squared differences from the mean, so that a large mean costs no digits."""
    if not sparse.issparse(rows):
        return float(np.var(rows, dtype=np.float64))
    n_cells = rows.shape[0] * rows.shape[1]
    data = rows.data.astype(np.float64)
    mean = data.sum() / n_cells
    return float((np.square(data - mean).sum() + (n_cells - len(data)) * mean**2) / n_cells)


def gaussian_kernel(new: Any, rows: Any, gamma: float) -> FloatArray:
    """Return the kernel between two sets of rows in double precision.

    Parameters
    ----------
    new, rows : ndarray or CSR matrix
        Rows of the same features.
    gamma : float
        Width.

    Examples
    --------
    >>> import numpy as np
    >>> far = np.array([[1e8], [1e8 + 1]])
    >>> gaussian_kernel(far, far, gamma=1.0).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """
    left, right = row_norms(new, squared=True)[:, None], row_norms(rows, squared=True)[None]
    squares = euclidean_distances(new, rows, squared=True, X_norm_squared=left, Y_norm_squared=right)
    if gamma * (left.max() + right.max()) > LARGE:
        for block in blocks(*squares.shape):
            _restore_digits(squares[block], new[block], rows, gamma, left[block] + right)
    squares *= -gamma
    return np.asarray(np.exp(squares, out=squares))


def _restore_digits(squares: FloatArray, new: Any, rows: Any, gamma: float, norms: FloatArray) -> None:
    """Compute squared distances again, in place, where their errors show in the kernel."""
    may_be_near = gamma * squares <= FAR + gamma * norms * 1e-12
    places = np.argwhere((gamma * norms > LARGE) & may_be_near)
    if len(places) > MANY * squares.size and not sparse.issparse(new) and not sparse.issparse(rows):
        squares[:] = cdist(new, rows, "sqeuclidean")
        return
    for part in blocks(len(places), _row_size(new) + _row_size(rows)):
        left, right = places[part].T
        squares[left, right] = row_norms(_difference(new[left], rows[right]), squared=True)


def _row_size(rows: Any) -> int:
    """About how many numbers a row holds."""
    return 1 + int(rows.nnz // rows.shape[0] if sparse.issparse(rows) else rows.shape[1])


def _difference(left: Any, right: Any) -> Any:
    """Left − right as a matrix that `row_norms` takes: NumPy's class of matrices is not."""
    difference = left - right
    return difference if sparse.issparse(difference) else np.asarray(difference)

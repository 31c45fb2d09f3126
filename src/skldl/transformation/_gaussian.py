"""The Gaussian kernel exp(−gamma·‖x − z‖²), its width, and the blocks in which kernels are computed.

‖x‖² − 2xᵀz + ‖z‖² is one matrix product for all pairs of rows. Where gamma times the squared norms is large, the
rounding errors of this difference would show in the kernel, unless it is 0 there. Such pairs are computed again: from
x − z, or, where many rows lie close together, by the same product with all of them measured from one of them.
"""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.extmath import row_norms

from skldl.exceptions import DataError
from skldl.transformation._origin import measured_from
from skldl.utils.arrays import row_size
from skldl.utils.typing import BoolArray, FloatArray

BLOCK = 2**19
"""Numbers in the largest temporary array, 4 MiB."""
LARGE = 1e3
"""Up to this gamma·(‖x‖² + ‖z‖²) rounding errors change the kernel by less than 1e-12."""
FAR = 40.0
"""From this gamma·‖x − z‖² on the kernel is below 1e-17."""
LEAST_VARIANCE = 1e-300
"""Neither n_features times the variance of the features nor its inverse may be smaller: digits would be lost."""
ROUNDING = 3e-12
"""More than the error of a squared distance of rows near each other, as a share of the squared norm of one of them."""
FEW_COLUMNS = 4
FEW_PAIRS = 1000
"""Rows near at most so many others, and groups of rows with fewer pairs, are computed pair by pair: they are too few
for a matrix product of their own."""


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
        with np.errstate(over="ignore", invalid="ignore"):
            variance = _variance(rows)
        if not LEAST_VARIANCE <= variance * rows.shape[1] <= 1.0 / LEAST_VARIANCE:
            size = "small" if variance < 1.0 else "large"
            raise DataError(
                f"gamma='scale' divides by the variance of X, which is too {size} for a number in double precision: "
                f"the features range from {rows.min():.3g} to {rows.max():.3g}. Multiply X by a power of ten, so that "
                "its features are of the order of 1."
            )
        return float(1.0 / (rows.shape[1] * variance))
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
    squares = _squared_distances(new, rows, gamma)
    squares *= -gamma
    return np.asarray(np.exp(squares, out=squares))


def _squared_distances(new: Any, rows: Any, gamma: float) -> FloatArray:
    """Squared distances whose errors do not show in the kernel."""
    left, right = row_norms(new, squared=True), row_norms(rows, squared=True)
    largest = left.max() + right.max()
    if not np.isfinite(largest):
        raise DataError(
            "X holds numbers whose squares exceed the largest number in double precision, so that rows have no "
            "distance. Multiply X by a power of ten, so that its features are of the order of 1."
        )
    norms = {"X_norm_squared": left[:, None], "Y_norm_squared": right[None]}
    squares = np.asarray(euclidean_distances(new, rows, squared=True, **norms))
    if gamma * largest > LARGE:
        # Of two rows near each other with gamma·(‖x‖² + ‖z‖²) > LARGE both have more than LARGE/4, and z < 2x.
        limits = np.where(gamma * left >= LARGE / 4, FAR / gamma + ROUNDING * left, -1.0)
        for block in blocks(len(left), len(right) // 8):  # eight truth values take the memory of a number
            _restore_digits(squares[block], new[block], rows, gamma, squares[block] <= limits[block, None])
    return squares


def _restore_digits(squares: FloatArray, new: Any, rows: Any, gamma: float, near: BoolArray) -> None:
    """Compute the squared distances of pairs near each other again, in place; ``near`` is used up."""
    pending = np.flatnonzero(np.count_nonzero(near, axis=1) > FEW_COLUMNS)
    while len(pending):
        center = int(near[pending[0]].argmax())
        around = near[pending, center]
        group, pending = pending[around], pending[~around]
        others = np.flatnonzero(near[group].any(axis=0))
        if len(group) * len(others) < FEW_PAIRS:
            continue
        origin = rows[[center]].toarray()[0] if sparse.issparse(rows) else rows[center]
        # Their norms are now of the order of the limits, a small part of what they were.
        group_new, group_rows = measured_from(origin, new[group]), measured_from(origin, rows[others])
        squares[np.ix_(group, others)] = _squared_distances(group_new, group_rows, gamma)
        near[group] = False
    places = np.flatnonzero(near)
    for part in blocks(len(places), row_size(new) + row_size(rows)):
        left, right = np.divmod(places[part], near.shape[1])
        squares[left, right] = row_norms(_difference(new[left], rows[right]), squared=True)


def _difference(left: Any, right: Any) -> Any:
    """Left − right as a matrix that `row_norms` takes: NumPy's class of matrices is not."""
    difference = left - right
    return difference if sparse.issparse(difference) else np.asarray(difference)

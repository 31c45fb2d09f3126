"""What squares of features need: numbers whose squares are numbers, and rows measured from near their values."""

from typing import Any

import numpy as np
from scipy import sparse

from skldl.exceptions import DataError
from skldl.utils.typing import FloatArray

LARGEST = 1e150
"""Sums of squares of larger numbers would overflow, and those of numbers below 1/LARGEST vanish."""
SPARSE_DIGITS = 1e-10
"""Share of the squared mean up to which the variance of a sparse column, a difference of sums, has too few digits."""


def check_squares(X: Any) -> None:
    """Refuse features whose squares overflow, or all of whose squares vanish.

    Parameters
    ----------
    X : ndarray or sparse matrix
        Features.

    Examples
    --------
    >>> check_squares(np.array([[1e200]]))
    Traceback (most recent call last):
        ...
    skldl.exceptions.DataError: X holds numbers up to 1e+200, whose squares are too large for double precision. ...
    """
    check_range(float(X.min()), float(X.max()))


def check_range(least: float, greatest: float, *, is_part: bool = False) -> None:
    """Refuse features with these ends as `check_squares` does; of a part of the rows all squares may vanish."""
    largest = max(greatest, -least)
    if largest == 0 or ((is_part or largest >= 1 / LARGEST) and largest <= LARGEST):
        return
    size = "small" if largest < 1 else "large"
    raise DataError(
        f"X holds numbers up to {largest:.3g}, whose squares are too {size} for double precision. Multiply X by a "
        "power of ten, so that its features are of the order of 1."
    )


def sparse_minus(X: Any, origin: FloatArray) -> Any:
    """Sparse rows minus an origin, in double precision; cells that become 0 are not stored.

    Examples
    --------
    >>> sparse_minus(sparse.csr_matrix([[5.0, 0.0], [0.0, 3.0]]), np.array([5.0, 0.0])).toarray()
    array([[ 0.,  0.],
           [-5.,  3.]])
    """
    columns, n_rows = np.flatnonzero(origin), X.shape[0]
    starts = np.arange(n_rows + 1) * len(columns)
    shift = sparse.csr_matrix((np.tile(origin[columns], n_rows), np.tile(columns, n_rows), starts), shape=X.shape)
    return X.astype(np.float64) - shift


def row_size(rows: Any) -> int:
    """About how many numbers a row holds."""
    return 1 + int(rows.nnz // max(1, rows.shape[0]) if sparse.issparse(rows) else rows.shape[1])

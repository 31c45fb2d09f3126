"""Rows measured from another origin, without making sparse rows dense.

Squares of features far from zero lose the digits in which rows differ: (10⁸ + 1)² and (10⁸ + 2)² share eight of them.
Dense rows are therefore measured from a point among them. In sparse rows only the columns without a single zero can be
shifted so; in a column with zeros the distance from zero is part of how rows differ.
"""

from typing import Any

import numpy as np
from scipy import sparse

from skldl.utils.arrays import sparse_minus
from skldl.utils.typing import BoolArray, FloatArray


def movable_columns(rows: Any) -> BoolArray:
    """Return which columns can be shifted without adding entries: in sparse rows, those with an entry in every row.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_samples, n_features)
        Rows; each cell of a sparse matrix is stored once.

    Examples
    --------
    >>> from scipy import sparse
    >>> movable_columns(sparse.csr_matrix([[1.0, 0.0], [2.0, 3.0]]))
    array([ True, False])
    """
    if sparse.issparse(rows):
        return np.asarray(np.bincount(rows.indices, minlength=rows.shape[1]) == rows.shape[0])
    return np.ones(rows.shape[1], dtype=bool)


def column_medians(rows: Any) -> FloatArray | None:
    """Return the median of each movable column and 0 for the others; None if no column is moved.

    A median, unlike a mean, stays among the rows if one of them is far away.
    """
    movable = movable_columns(rows)
    medians = np.zeros(rows.shape[1])
    some = rows[:, movable].toarray() if sparse.issparse(rows) else rows
    if some.shape[1]:
        medians[movable] = np.median(some, axis=0)
    return medians if medians.any() else None


def measured_from(origin: FloatArray | None, rows: Any) -> Any:
    """Return rows minus the origin, in double precision.

    Sparse rows get entries in the columns whose origin is not 0, and stay sparse if most columns have the origin 0.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> measured_from(np.array([5.0, 0.0]), sparse.csr_matrix([[5.0, 0.0], [7.0, 3.0]])).toarray()
    array([[0., 0.],
           [2., 3.]])
    """
    if origin is None:
        return rows.astype(np.float64, copy=False)
    if not sparse.issparse(rows):
        return rows - origin
    if 2 * np.count_nonzero(origin) > len(origin):
        return rows.toarray() - origin
    return sparse_minus(rows, origin)

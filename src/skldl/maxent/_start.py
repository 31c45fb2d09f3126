"""The weights at which the search of a maximum entropy model begins."""

from numbers import Real
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skldl.utils.parameters import Constraint, one_of
from skldl.utils.typing import FloatArray

Init = Literal["zeros", "eye"] | npt.ArrayLike


def _are_numbers(value: Any) -> bool:
    if isinstance(value, str) or np.ma.isMaskedArray(value):
        return False
    if isinstance(value, list | tuple) and any(np.ma.isMaskedArray(row) for row in value):
        return False
    try:
        cells = np.asarray(value)
        if cells.dtype.kind == "O" and not all(isinstance(cell, Real) for cell in cells.flat):
            return False
        return cells.dtype.kind in "biufO" and cells.astype(np.float64).ndim == 2
    except (TypeError, ValueError):
        return False


INIT = one_of("zeros", "eye") | Constraint("an array of numbers of shape (n_features, n_labels)", _are_numbers)
"""What the hyper-parameter ``init`` may be."""


def starting_weights(init: Any, n_features: int, n_labels: int) -> FloatArray | None:
    """Return θ⁰ of shape (n_features, n_labels), or None for zeros.

    Parameters
    ----------
    init : {"zeros", "eye"} or array-like of shape (n_features, n_labels)
        "eye" is ``numpy.eye(n_features, n_labels)``, as in the code published with Geng (2016).
    n_features, n_labels : int
        The shape that the weights must have.

    Examples
    --------
    >>> from skldl.maxent._start import starting_weights
    >>> starting_weights("eye", 3, 2)
    array([[1., 0.],
           [0., 1.],
           [0., 0.]])
    """
    if isinstance(init, str):
        return None if init == "zeros" else np.eye(n_features, n_labels)
    theta = np.array(init, dtype=np.float64)
    if theta.shape != (n_features, n_labels):
        raise ValueError(
            f"init has shape {theta.shape}, but the weights have shape {(n_features, n_labels)}: one row for each "
            "feature, one column for each label (the transpose of coef_)."
        )
    if not np.isfinite(theta).all():
        raise ValueError("init holds numbers that are not finite. Begin at finite weights.")
    return theta

"""How `skldl.SABFGSCV` scales features: what each column is multiplied by."""

from collections.abc import Callable
from typing import Any

import numpy as np

from skldl.utils.typing import BoolArray, FloatArray

RARE = 0.1
"""Columns with a smaller share of numbers other than zero are rare."""


def rare_columns(two_valued: BoolArray, n_nonzero: Any, n_rows: int) -> BoolArray:
    """Columns with two values, or with more than nine zeros in ten."""
    return np.asarray(two_valued | (n_nonzero < RARE * n_rows))


def scaling_factors(deviations: FloatArray, scaling: str, find_rare: Callable[[], BoolArray]) -> FloatArray:
    """What the columns are multiplied by; 0 for constant ones.

    Parameters
    ----------
    deviations : ndarray of shape (n_features,)
        Standard deviation of each column, exactly zero for a constant one.
    scaling : {"standard", "mixed", "raw"}
        As in `skldl.SABFGSCV`.
    find_rare : callable
        Gives the rare columns; called for "mixed" alone.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.maxent._feature_scaling import scaling_factors
    >>> scaling_factors(np.array([2.0, 0.5, 0.0]), "mixed", lambda: np.array([False, True, True]))
    array([0.5, 1. , 0. ])
    """
    factors = np.divide(1.0, deviations, out=np.zeros_like(deviations), where=deviations > 0)
    if scaling == "standard":
        return factors
    as_they_are = np.ones(len(factors), dtype=bool) if scaling == "raw" else find_rare()
    return np.where(as_they_are & (factors > 0), 1.0, factors)

"""Ranks of a table of scores, for the figures about them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from skldl._validation import column_names
from skldl.exceptions import LengthMismatchError

FloatArray = npt.NDArray[np.floating]


def rank_rows(scores: Any, higher_is_better: bool) -> FloatArray:
    """Rank each row, 1 for the best; equal values share the mean of their ranks, missing ones stay missing."""
    values = np.asarray(scores, dtype=np.float64)
    return np.asarray(stats.rankdata(-values if higher_is_better else values, axis=1, nan_policy="omit"))


def names_of_columns(table: Any, names: Sequence[str] | None) -> list[str]:
    """Names of the models: those given, or else the columns of a DataFrame."""
    found = [str(name) for name in (names if names is not None else column_names(table))]
    n_columns = np.shape(table)[1]
    if len(found) != n_columns:
        raise LengthMismatchError(f"The table has {n_columns} columns, but {len(found)} names were given for them.")
    return found

"""Common code of figures of tables of scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from skldl._validation import column_names
from skldl.exceptions import LengthMismatchError


def names_of_columns(table: Any, names: Sequence[str] | None) -> list[str]:
    """Names of the models: those given, or else the columns of a DataFrame."""
    found = [str(name) for name in (names if names is not None else column_names(table))]
    n_columns = np.shape(table)[1]
    if len(found) != n_columns:
        raise LengthMismatchError(f"The table has {n_columns} columns, but {len(found)} names were given for them.")
    return found

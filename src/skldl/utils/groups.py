"""Validation of groups: rows of one group are held out together."""

from typing import Any

import numpy as np

from skldl.exceptions import DataError, LengthMismatchError, Parameter
from skldl.utils.typing import AnyArray, BoolArray, IntArray


def group_codes(groups: Any, n_samples: int) -> IntArray:
    """Number the groups of all rows from 0, in the order of their names; every row needs a group."""
    labels = np.asarray(groups)
    if labels.shape != (n_samples,):
        raise LengthMismatchError(
            f"groups has shape {labels.shape}, but there are {n_samples} rows. Pass one group for each row of X."
        )
    missing = _missing(labels) | np.ma.getmaskarray(groups) if np.ma.isMaskedArray(groups) else _missing(labels)
    if missing.any():
        row = int(missing.argmax())
        raise DataError(
            f"groups holds missing values, the first in row {row} ({int(missing.sum())} in all). "
            "Every row needs a group: fill them in, or remove these rows.",
            row=row,
        )
    return np.unique(labels.astype(str) if labels.dtype == object else labels, return_inverse=True)[1].astype(np.intp)


def _missing(labels: AnyArray) -> BoolArray:
    """Whether each label is NaN, infinity, NaT, None or pandas.NA."""
    if labels.dtype.kind in "fc":
        return ~np.isfinite(labels)
    if labels.dtype.kind in "mM":
        return np.isnat(labels)
    if labels.dtype != object:
        return np.zeros(labels.shape, dtype=bool)
    # NaN and NaT differ from themselves; pandas.NA, without a truth value, is known by the name of its type
    return np.array(
        [label is None or type(label).__name__ == "NAType" or bool(label != label) for label in labels], dtype=bool
    )


def check_groups(groups: Any, rows: IntArray, n_samples: int) -> IntArray | None:
    """Number the groups of some rows from 0; at least two are needed, since a single group cannot be held out.

    ``groups`` are those of all ``n_samples`` rows given to ``fit``, and ``rows`` the positions of those wanted. None
    stays None.
    """
    if groups is None:
        return None
    present, codes = np.unique(group_codes(groups, n_samples)[rows], return_inverse=True)
    if len(present) < 2:
        raise DataError(
            "All rows belong to one group, so none can be held out. Pass ",
            Parameter("groups", None),
            ", or two groups or more.",
        )
    return codes.astype(np.intp)

"""Validation of tables that hold the number of votes for each label."""

from collections.abc import Collection
from typing import Any

import numpy as np

from skldl.exceptions import DataError
from skldl.utils.column_names import label_names
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_numbers, in_label_order

NAN_HINT = "Write 0 where a label has no vote, and remove rows whose votes are not known."


def check_votes(counts: Any) -> FloatArray:
    """Return numbers of votes as float64: finite, at least zero, and not all zero.

    Parameters
    ----------
    counts : array-like or DataFrame of shape (n_samples, n_labels)
        Number of votes for each label; fractions of votes pass.
    """
    votes = check_numbers(counts, name="counts", nan_hint=NAN_HINT)
    if votes.shape[1] < 2:
        raise DataError(f"counts has shape {votes.shape}. Pass one row for each item and one column for each label.")
    label_names(counts, votes.shape[1])  # raises for equal names
    if votes.min() < 0:
        row, label = np.argwhere(votes < 0)[0]
        raise DataError(
            f"counts holds {votes[row, label]:g} in row {row}, label {label}. Numbers of votes are at least zero.",
            row=int(row),
        )
    if not votes.any():
        raise DataError("counts holds no vote at all. Pass the number of votes for each label.")
    return votes


def check_votes_of(counts: Any, names: Collection[Any], n_rows: int) -> FloatArray:
    """Return votes for each row of X, with the labels in the order of ``names``; see `check_votes`."""
    return in_label_order(check_votes(counts), counts, names, n_rows, name="counts")


def check_whole_votes(counts: Any) -> FloatArray:
    """Return votes that are whole numbers, at least one in each row; see `check_votes`."""
    votes = check_votes(counts)
    broken = np.abs(votes - np.rint(votes)) > 1e-9  # rounding of a computation such as 0.3 * 10 passes
    if broken.any():
        row, label = np.argwhere(broken)[0]
        raise DataError(
            f"counts holds {votes[row, label]:g} in row {row}, label {label}. A noise floor needs whole numbers of "
            "votes, without weights; it is not defined for answers of several labels.",
            row=int(row),
        )
    empty = votes.sum(axis=1) == 0
    if empty.any():
        row = int(np.argmax(empty))
        raise DataError(f"counts holds no vote in row {row}. Leave such rows out.", row=row)
    return np.rint(votes)

"""Single labels and sets of labels as distributions: the two special cases of label distribution learning.

In Geng (2016), section "Formulation of LDL", single-label learning gives the whole mass to one label, and multi-label
learning gives each label of the set Y the degree 1/|Y|.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from skldl.distributions._tables import (
    cells,
    check_label,
    check_names,
    check_not_empty,
    frame_like,
    is_frame,
    is_missing,
    is_series,
    names_of,
    plain_label,
    position_of,
    sorted_names,
)
from skldl.exceptions import (
    DataError,
    DimensionError,
    DuplicateLabelError,
    Parameter,
    SingleLabelError,
    ZeroRowError,
)
from skldl.utils.parameters import check_value, one_of
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_numbers

EMPTY = one_of("error", "uniform", "drop")  # how rows without labels are handled


def from_labels(y: Any, classes: Any = None) -> Any:
    """Turn single labels into distributions: the whole mass on the label.

    Parameters
    ----------
    y : array-like or Series of shape (n_samples,)
        One label per row: numbers, text or anything that can be compared for equality.
    classes : sequence, default=None
        All labels, in the order of the columns. None uses the labels that occur, sorted.

    Returns
    -------
    ndarray or DataFrame of shape (n_samples, n_labels)
        Rows with a single one. A Series gives a DataFrame of the same library, the labels as its columns.

    Raises
    ------
    UnknownLabelError
        If a label is not among ``classes``.
    MissingLabelError
        If a cell is empty.
    SingleLabelError
        If there are fewer than two labels.

    Examples
    --------
    >>> from skldl.distributions import from_labels
    >>> from_labels(["joy", "fear", "joy"], classes=["joy", "fear"])
    array([[1., 0.],
           [0., 1.],
           [1., 0.]])
    """
    codes, names = label_codes(y, classes, name="y")
    return frame_like(y, np.eye(len(names))[codes], names)


def label_codes(y: Any, classes: Any, *, name: str, argument: str = "classes") -> tuple[IntArray, list[Any]]:
    """Return the column of each single label, and the names of all columns."""
    if is_frame(y):
        raise DimensionError(f"{name} is a DataFrame. For single labels pass one of its columns.")
    if np.ndim(y) != 1 and isinstance(y, np.ndarray):
        raise DimensionError(
            f"{name} has {np.ndim(y)} dimensions, but single labels have one. "
            "For an indicator matrix use skldl.distributions.from_label_sets, for counts from_counts."
        )
    entries = cells(y)
    check_not_empty(entries, name=name)
    entries = [plain_label(check_label(entry, where=f"Row {row} of {name}")) for row, entry in enumerate(entries)]
    names = sorted_names(entries) if classes is None else check_names(classes, name=argument)
    column = {label: j for j, label in enumerate(names)}
    codes = [
        column[entry] if entry in column else position_of(names, entry, where=f"Row {row} of {name}", argument=argument)
        for row, entry in enumerate(entries)
    ]
    return np.array(codes, dtype=np.intp), names


def from_label_sets(Y: Any, classes: Any = None, empty: str = "error") -> Any:
    """Turn sets of labels into distributions: each label of a set Y has the degree ``1/|Y|``.

    Parameters
    ----------
    Y : indicator matrix of shape (n_samples, n_labels), or one collection of labels per row
        A two-dimensional array, sparse matrix, DataFrame, or nested list of equally long rows that hold only 0 and 1,
        is an indicator matrix. Any other list, and a Series, holds sets, lists or tuples of labels.
    classes : sequence, default=None
        All labels, in the order of the columns. None uses the columns of a DataFrame, or the labels that occur,
        sorted.
    empty : {"error", "uniform", "drop"}, default="error"
        How a row without any label is handled: an error, the same degree for all labels, or removal. Removed rows are
        missing in the result, so remove them from X, too.

    Returns
    -------
    ndarray or DataFrame of shape (n_samples, n_labels)
        Rows that sum to one. A DataFrame or Series gives a DataFrame of the same library.

    Raises
    ------
    ZeroRowError
        If a row holds no label and ``empty="error"``.
    UnknownLabelError, DuplicateLabelError, MissingLabelError
        If a label is not among ``classes``, occurs twice in one set, or is an empty cell.

    Examples
    --------
    >>> from skldl.distributions import from_label_sets
    >>> from_label_sets([["sky", "sea"], ["sea"]])
    array([[0.5, 0.5],
           [1. , 0. ]])
    >>> from_label_sets([[1, 1, 0], [0, 0, 0]], empty="uniform").round(3)
    array([[0.5  , 0.5  , 0.   ],
           [0.333, 0.333, 0.333]])
    """
    check_value("empty", empty, EMPTY)
    indicator, names = membership(Y, classes, name="Y")
    D, rows = divide_rows(indicator, empty, name="Y")
    return frame_like(Y, D, names, rows)


def holds_sets(y: Any) -> bool:
    """Whether y contains sets of labels, as a matrix or as collections, and not a column of single labels."""
    if sparse.issparse(y) or is_frame(y) or (isinstance(y, np.ndarray) and y.ndim == 2):
        return True
    return any(isinstance(entry, Iterable) and not isinstance(entry, str | bytes) for entry in cells(y))


def divide_rows(mass: FloatArray, empty: str, *, name: str) -> tuple[FloatArray, IntArray | None]:
    """Divide each row by its sum, and handle empty rows; the second result is the rows that remain, None for all."""
    totals = mass.sum(axis=1)
    bare = totals == 0
    rows = None
    if bare.any() and empty == "error":
        row = int(np.argmax(bare))
        raise ZeroRowError(
            f"Row {row} of {name} holds no label ({int(bare.sum())} such rows in all). Choose ",
            Parameter("empty", "uniform"),
            " or ",
            Parameter("empty", "drop"),
            ".",
            row=row,
        )
    if bare.all() and empty == "drop":
        raise ZeroRowError(f"No row of {name} holds a label, so nothing is left after the empty ones are removed.")
    if empty == "drop" and bare.any():
        rows = np.flatnonzero(~bare)
        mass, totals = mass[rows], totals[rows]
    elif empty == "uniform":
        mass = np.where(bare[:, None], 1.0, mass)
        totals = mass.sum(axis=1)
    return mass / totals[:, None], rows


def membership(Y: Any, classes: Any, *, name: str, argument: str = "classes") -> tuple[FloatArray, list[Any]]:
    """Return sets of labels as a matrix of zeros and ones, and the names of its columns."""
    if sparse.issparse(Y):
        Y = Y.toarray()
    if is_frame(Y) or (isinstance(Y, np.ndarray) and Y.ndim != 1) or _looks_like_indicator(Y):
        return _indicator(Y, classes, name=name)
    sets = [_members(entry, row, name=name) for row, entry in enumerate(cells(Y))]
    check_not_empty(sets, name=name)
    if classes is None:
        names = sorted_names(label for members in sets for label in members)
    else:
        names = check_names(classes, name=argument)
    column = {label: j for j, label in enumerate(names)}
    indicator = np.zeros((len(sets), len(names)))
    for row, members in enumerate(sets):
        for label in members:
            if label not in column:
                position_of(names, label, where=f"Row {row} of {name}", argument=argument)
            indicator[row, column[label]] = 1.0
    return indicator, names


def _looks_like_indicator(Y: Any) -> bool:
    """Whether Y is nested lists of zeros and ones, all of one length.

    They are no sets: of two labels or more, such a set would contain all labels or one label twice.
    """
    if not isinstance(Y, list | tuple) or is_series(Y):
        return False
    lengths = {len(row) if isinstance(row, list | tuple | np.ndarray) else -1 for row in Y}
    if len(lengths) != 1 or min(lengths) < 2:
        return False
    return all(isinstance(cell, int | float | np.number | np.bool_) and cell in (0, 1) for row in Y for cell in row)


def _indicator(Y: Any, classes: Any, *, name: str) -> tuple[FloatArray, list[Any]]:
    values = check_numbers(Y, name=name)
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise DataError(
            f"Row {row}, column {column} of {name} is {values[row, column]:g}. An indicator matrix holds 0 and 1 only: "
            "for counts use skldl.distributions.from_counts, for intensities from_scores.",
            row=row,
        )
    if values.shape[1] < 2:
        raise SingleLabelError(f"{name} has one column, and so one label: there is nothing to distribute.")
    return values, names_of(Y, values.shape[1], classes)


def _members(entry: Any, row: int, *, name: str) -> list[Any]:
    """Return the labels of one row, in their order in the row."""
    where = f"Row {row} of {name}"
    if isinstance(entry, str | bytes) or not isinstance(entry, Iterable) or is_missing(entry):
        raise DimensionError(
            f"{where} is {entry!r}, not a collection of labels. Pass a list, set or tuple for each row "
            "(an empty one for no label); for single labels use skldl.distributions.from_labels.",
            row=row,
        )
    members = [plain_label(check_label(label, where=where)) for label in entry]
    if len(set(members)) != len(members):
        twice = next(label for j, label in enumerate(members) if label in members[:j])
        raise DuplicateLabelError(
            f"{where} names the label {twice!r} twice. Each label may occur once in a set.", row=row
        )
    return members

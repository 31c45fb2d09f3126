"""Tables of pandas and polars and names of labels, for all converters of `skldl.distributions`.

Neither library is imported. The rules of input and output are in the docstring of `skldl.distributions`. Names of
columns in polars are text, so other names become text there.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl.exceptions import (
    DataError,
    DimensionError,
    DuplicateLabelError,
    EmptyDataError,
    LengthMismatchError,
    MissingLabelError,
    SingleLabelError,
    UnknownLabelError,
)
from skldl.utils.column_names import column_names, label_names
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_numbers


def library(table: Any) -> str:
    """Return "pandas" or "polars" for their DataFrames and Series, and "" for anything else."""
    names = {kind.__module__.split(".")[0] for kind in type(table).__mro__}
    found = names & {"pandas", "polars"}
    if not found or not hasattr(table, "to_numpy") or (found == {"pandas"} and not hasattr(table, "iloc")):
        return ""  # also for a pandas Index, which is treated as a list of entries
    return found.pop()


def is_frame(table: Any) -> bool:
    """Whether the table is a DataFrame of pandas or polars."""
    return bool(library(table)) and hasattr(table, "columns")


def is_series(table: Any) -> bool:
    """Whether the table is a Series of pandas or polars."""
    return bool(library(table)) and hasattr(table, "to_frame") and not hasattr(table, "columns")


def frame_like(table: Any, values: npt.NDArray[Any], columns: Sequence[Any], rows: IntArray | None = None) -> Any:
    """Return values in the type of the input: a DataFrame for a DataFrame or Series, else the array.

    Parameters
    ----------
    table : any
        The input of the public function.
    values : ndarray of shape (n_rows, n_columns)
        The result.
    columns : sequence
        Names of the columns.
    rows : ndarray of int, default=None
        Which rows of the table the values belong to; None means all.
    """
    if not (is_frame(table) or is_series(table)):
        return values
    kind = type(table.to_frame()) if is_series(table) else type(table)
    if library(table) == "polars":
        return kind({str(name): values[:, j] for j, name in enumerate(columns)})
    index = table.index if rows is None else table.index[rows]
    return kind(values, index=index, columns=list(columns))


def series_like(table: Any, values: Sequence[Any] | npt.NDArray[Any]) -> Any:
    """Return one value per row in the type of the input: a Series for a DataFrame, else the values unchanged."""
    if not is_frame(table):
        return values
    if library(table) == "polars":
        return type(table.to_series(0))(list(values))
    return type(table.iloc[:, 0])(list(values), index=table.index)


def cells(table: Any) -> list[Any]:
    """Return the entries of a list, a one-dimensional array or a Series as a list."""
    if is_series(table):
        return list(table.to_list())
    if isinstance(table, np.ndarray) and table.dtype != object:
        return list(table.tolist())
    if isinstance(table, str | bytes) or not isinstance(table, Iterable):
        raise DimensionError(f"A {type(table).__name__} is not a column of labels. Pass one entry per row.")
    return list(table)


def is_missing(cell: Any) -> bool:
    """Whether a cell is empty: None, NaN, NaT or pandas.NA."""
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or (isinstance(cell, float) and cell != cell)


def plain_label(label: Any) -> Any:
    """Convert NumPy scalars to Python objects and whole floats to integers, so that equal numbers are one label.

    pandas stores a column of whole numbers with a gap as floats (4.0 for 4); its labels are the same as without a gap.
    """
    if isinstance(label, np.number | np.bool_ | np.str_):
        label = label.item()
    if isinstance(label, float) and label.is_integer() and abs(label) < 2**53:  # larger floats are not exact
        return int(label)
    return label


def check_names(names: Any, *, name: str) -> list[Any]:
    """Validate the names of the labels: at least two, in an order, and all different."""
    if isinstance(names, set | frozenset):
        raise DataError(
            f"{name} is a set, which has no order, so the columns of the result would be in arbitrary order. "
            f"Pass a list: {name}=sorted(...)."
        )
    listed = [plain_label(entry) for entry in cells(names)]
    for j, entry in enumerate(listed):
        if is_missing(entry):
            raise MissingLabelError(f"{name}[{j}] is missing. Every label needs a name.")
    seen: set[Any] = set()
    for j, entry in enumerate(listed):
        if check_label(entry, where=f"{name}[{j}]") in seen:
            raise DuplicateLabelError(f"{name} holds {entry!r} twice. Each label is named once.")
        seen.add(entry)
    return check_two(listed)


def check_two(names: list[Any]) -> list[Any]:
    """Check that there are at least two labels."""
    if len(names) < 2:
        raise SingleLabelError(
            f"There is only one class, {names[0]!r}: there is nothing to distribute. Name the other labels, too."
            if names
            else "There is no label at all. Name the labels."
        )
    return names


def sorted_names(found: Iterable[Any]) -> list[Any]:
    """Sort the labels that occur; labels of kinds that do not compare are sorted by their text."""
    distinct = list(dict.fromkeys(plain_label(entry) for entry in found))
    _check_lookalikes(distinct)
    try:
        return check_two(sorted(distinct))
    except TypeError:
        return check_two(sorted(distinct, key=lambda entry: (type(entry).__name__, str(entry))))


def _check_lookalikes(names: list[Any]) -> None:
    """Raise an error for labels that differ but look the same, such as the number 4 and the text "4"."""
    first: dict[str, Any] = {}
    for entry in names:
        twin = first.setdefault(str(entry), entry)
        if twin is not entry and twin != entry:
            raise DuplicateLabelError(
                f"The labels {twin!r} ({type(twin).__name__}) and {entry!r} ({type(entry).__name__}) look the same. "
                "Turn them into one type."
            )


def position_of(names: list[Any], label: Any, *, where: str, argument: str) -> int:
    """Position of a label among the names; the error for an unknown label says where it was found."""
    try:
        return names.index(label)
    except ValueError:
        shown = ", ".join(repr(entry) for entry in names[:8]) + (", …" if len(names) > 8 else "")
        raise UnknownLabelError(
            f"{where} holds the label {label!r}, which is not among {argument} ({shown}). "
            f"Add it to {argument}, or correct the entry."
        ) from None


def check_label(label: Any, *, where: str) -> Any:
    """Check that a cell is not empty and can be a label."""
    if is_missing(label):
        raise MissingLabelError(f"{where} holds no label ({label!r}). Remove the row, or fill the label in.")
    if getattr(label, "__hash__", None) is None:
        raise DimensionError(
            f"{where} holds {label!r}, where a single label belongs. "
            "For several labels per row use skldl.distributions.from_label_sets."
        )
    return label


def numbers(table: Any, *, name: str) -> tuple[FloatArray, list[Any]]:
    """Return a numeric table of at least two columns, and the names of its labels."""
    values = check_numbers(table, name=name)
    if values.shape[1] < 2:
        raise SingleLabelError(
            f"{name} has {values.shape[1]} column (shape {values.shape}). A distribution needs at least two labels."
        )
    return values, names_of(table, values.shape[1])


def names_of(table: Any, n_labels: int, classes: Any = None) -> list[Any]:
    """Names of the columns of a table: those given, else those of the DataFrame, else their positions."""
    if classes is not None:
        names = check_names(classes, name="classes")
        if len(names) != n_labels:
            raise LengthMismatchError(f"classes names {len(names)} labels, but there are {n_labels} columns.")
        return names
    if not is_frame(table):
        return list(range(n_labels))
    label_names(table, n_labels)  # raises an error for two columns of one name
    return column_names(table)


def check_not_empty(rows: Sequence[Any], *, name: str) -> None:
    """Check that there is at least one row."""
    if len(rows) == 0:
        raise EmptyDataError(f"{name} has no rows: at least one is needed.")

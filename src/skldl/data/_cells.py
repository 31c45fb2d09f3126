"""Cells of a table column as numbers, truth values or words; errors name the row and the column of a bad cell."""

import datetime
import decimal
import numbers
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from skldl.exceptions import DataError, NonFiniteError, NotNumericError, Parameter, TableError
from skldl.utils.validation import reject_lazy

NUMBER, BOOLEAN, DATE, CATEGORY, TEXT = "number", "boolean", "date", "category", "text"

TRUTH = {
    **dict.fromkeys(("true", "yes", "t", "y"), 1.0),
    **dict.fromkeys(("false", "no", "f", "n"), 0.0),
}
TRUTH_OR_DIGIT = {**TRUTH, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}
MAX_DIGITS = 15  # a float keeps all decimal digits of whole numbers up to this length; longer ones are taken as codes
_FEW_COLUMNS = 100  # are replaced in a table one by one; chosen by hand
CODE = rf"^[+-]?(?:0\d|\d{{{MAX_DIGITS + 1},}}$)"  # such as 007; Arrow compiles this pattern too
_CODE = re.compile(CODE)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def as_frame(table: Any) -> pd.DataFrame:
    """Convert a table to a pandas DataFrame whose column names are text and unique; the argument is not changed.

    Accepts DataFrames of pandas and tables with a method ``to_pandas``. Periods become the dates of their first days,
    objects that are durations a column of durations. Bytes become text, since some programs write text to Parquet as
    bytes.
    """
    if hasattr(table, "to_pandas"):  # polars, pyarrow
        table = table.to_pandas()
    reject_lazy(table, name="The table")
    if not isinstance(table, pd.DataFrame):
        raise TableError(f"A table with named columns is needed (a DataFrame), not {type(table).__name__}.")
    frame = table.set_axis([str(name) for name in table.columns], axis=1)
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise TableError(f"Two columns of the table are called {twice[0]!r}. Rename one of them.")
    objects = [str(name) for name, dtype in frame.dtypes.items() if dtype.kind == "O"]
    converted = {name: _converted_objects(frame[name]) for name in objects}
    changed = {name: column for name, column in converted.items() if column is not None}
    return with_columns(frame, changed) if changed else frame


def _converted_objects(column: pd.Series) -> pd.Series | None:
    """Convert periods to dates, objects that are durations to their type, and bytes to text; None for other columns."""
    if isinstance(column.dtype, pd.PeriodDtype):
        return column.dt.to_timestamp()
    if column.dtype != object:
        return None
    first = next((cell for cell in column if not (pd.api.types.is_scalar(cell) and pd.isna(cell))), None)
    if isinstance(first, datetime.timedelta | np.timedelta64):
        return pd.to_timedelta(column) if pd.api.types.infer_dtype(column) == "timedelta" else None
    if not isinstance(first, bytes):
        return None
    try:
        return column.map(lambda cell: cell.decode() if isinstance(cell, bytes) else cell)
    except UnicodeDecodeError:
        return None  # an error, see `check_not_nested`, only if the column is used


def with_columns(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Copy a table and replace or add columns; unlike ``DataFrame.assign``, this works for a column called ``self``.

    Examples
    --------
    >>> import pandas as pd
    >>> with_columns(pd.DataFrame({"self": [1, 2], "x": [3, 4]}), {"self": [5, 6]}).to_dict("list")
    {'self': [5, 6], 'x': [3, 4]}
    """
    if len(columns) > _FEW_COLUMNS:  # each assignment takes time that is proportional to the number of columns
        return pd.DataFrame({**dict(frame.items()), **columns}, index=frame.index)
    changed = frame.copy(deep=False)
    for name, values in columns.items():
        changed[name] = values
    return changed


def is_plain_number(column: pd.Series) -> bool:
    """Whether the type of the column is a real number; booleans are not numbers here."""
    if isinstance(column.dtype, np.dtype):  # the functions of pandas below are slow for tables of many columns
        return column.dtype.kind in "iuf"
    kind = pd.api.types
    return bool(kind.is_numeric_dtype(column)) and not (kind.is_bool_dtype(column) or kind.is_complex_dtype(column))


def is_duration(column: pd.Series) -> bool:
    """Whether the type of the column is a duration, of NumPy or Arrow."""
    return getattr(column.dtype, "kind", "") == "m"


def check_not_nested(column: pd.Series) -> None:
    """Reject lists and other containers, and bytes that are not text: as words they would become categories."""
    if not pd.api.types.is_object_dtype(column):
        return
    for position, value in enumerate(column):
        if isinstance(value, list | tuple | set | dict | np.ndarray):
            trouble = f" holds several values ({type(value).__name__}), where one belongs. Make a column of each, or"
        elif isinstance(value, bytes):
            trouble = " holds bytes that are not text in UTF-8. Write them as text, or"
        else:
            continue
        advice = trouble + " leave the column out with "
        raise cell_error(TableError, column, position, advice, Parameter("drop", [str(column.name)]), ".")


def has_codes(column: pd.Series) -> bool:
    """Whether a column of text holds codes: numbers with leading zeros, or of more than fifteen digits."""
    return any(isinstance(value, str) and _CODE.match(value.strip()) for value in column)


def as_words(column: pd.Series, filler: str | None) -> pd.Series:
    """Convert cells to words, the same for 3, 3.0 and "3.0"; ``filler`` replaces missing cells.

    So a category does not depend on how a file was written.

    Examples
    --------
    >>> import pandas as pd
    >>> as_words(pd.Series([" 4.0", "04", "x", None]), "").tolist()
    ['4', '04', 'x', '']
    """
    if is_plain_number(column):
        return column.map(lambda value: filler if pd.isna(value) else f"{value:.15g}").astype(object)
    cells = column.astype(object)
    words = {}
    for value in cells[cells.notna()]:
        key = value if isinstance(value, str) else str(value)
        if key not in words:
            words[key] = canonical_word(key.strip())
    return cells.map(lambda value: words[value if isinstance(value, str) else str(value)], na_action="ignore").where(
        cells.notna(), filler
    )


def canonical_word(text: str) -> str:
    """Write a number in its shortest form, so that equal numbers are one word; codes and other text stay unchanged."""
    return f"{float(text):.15g}" if _NUMBER.fullmatch(text) and not _CODE.match(text) else text


def as_numbers(column: pd.Series) -> pd.Series:
    """Convert cells to floats: NaN where a cell is not a number; time spans become seconds."""
    if column.dtype == np.float64:
        return column
    if pd.api.types.is_timedelta64_dtype(column):
        return column.dt.total_seconds()
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_complex_dtype(column):
        return pd.Series(np.nan, index=column.index)
    if not is_plain_number(column):
        check_not_nested(column)
        column = column.astype(object).map(_number_or_text)
    return pd.to_numeric(column, errors="coerce").astype(np.float64)


def _number_or_text(value: Any) -> Any:
    """A cell that `pandas.to_numeric` may convert; it would silently take a part of dates, periods and complex numbers.

    None for those.
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, datetime.timedelta | np.timedelta64):  # before numbers: NumPy's are integers, too
        return pd.Timedelta(value).total_seconds()
    return value if isinstance(value, numbers.Real | decimal.Decimal | np.bool_) else None


def checked_numbers(column: pd.Series, expected: str = "a number belongs") -> pd.Series:
    """Convert cells to floats, NaN where empty; raise an error for any other cell, which says what is ``expected``."""
    numbers = as_numbers(column)
    if not is_plain_number(column):
        check_cells(column, numbers.isna() & column.notna(), expected)
    infinite = np.isinf(numbers.to_numpy())
    if infinite.any():
        raise cell_error(NonFiniteError, column, first_of(infinite), " is infinite. Leave such cells empty.")
    return numbers


def checked_truth(column: pd.Series) -> pd.Series:
    """Convert booleans, words such as yes, and 0 and 1 to floats, NaN where empty; raise an error for other cells."""
    if pd.api.types.is_bool_dtype(column):
        return column.astype(np.float64)
    numbers = as_words(column, "").str.lower().map(TRUTH_OR_DIGIT).astype(np.float64)
    check_cells(column, numbers.isna() & column.notna(), "the model expects yes or no")
    return numbers


def check_present(column: pd.Series, advice: str, error: type[DataError] = TableError) -> None:
    """Raise an error for the first empty cell."""
    empty = column.isna()
    if empty.any():
        raise cell_error(error, column, first_of(empty), f" is empty. {advice}")


def check_cells(column: pd.Series, wrong: Any, expected: str) -> None:
    """Raise an error for the first cell that is marked as wrong, with its value and what is ``expected``."""
    if wrong.any():
        shown = repr(column.iloc[first_of(wrong)])
        shown = shown if len(shown) <= 60 else f"{shown[:57]}…"
        raise cell_error(NotNumericError, column, first_of(wrong), f" holds {shown}, where {expected}.")


def first_of(mask: Any) -> int:
    """Position of the first True in a mask that has one."""
    return int(np.argmax(np.asarray(mask)))


def cell_error(error: type[DataError], column: pd.Series, position: int, *parts: str | Parameter) -> DataError:
    """An error about the cell at a position, with its row and column; ``parts`` follow the place in the message."""
    row, name = row_of(column, position), str(column.name)
    return error(cell_place(column, position), *parts, row=row, column=name)


def row_of(column: pd.Series, position: int) -> int:
    """Position in the whole table of a cell of a chunk: the index of a chunk counts the rows of the file from 0."""
    index = column.index
    return int(index[position]) if pd.api.types.is_integer_dtype(index.dtype) else position


def cell_place(column: pd.Series, position: int) -> str:
    """Name a cell for a message: rows are counted from 1, after the header, through the whole file."""
    return f"Row {row_of(column, position) + 1} of column {str(column.name)!r}"

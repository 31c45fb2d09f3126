"""Cells of a column as numbers, truth values or text, for any type in the file; bad cells by row and column."""

import datetime
import decimal
import numbers
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from skldl.exceptions import DataError, NonFiniteError, NotNumericError, Parameter, TableError

NUMBER, BOOLEAN, DATE, CATEGORY, TEXT = "number", "boolean", "date", "category", "text"

TRUTH = {
    **dict.fromkeys(("true", "yes", "t", "y"), 1.0),
    **dict.fromkeys(("false", "no", "f", "n"), 0.0),
}
_TRUTH_OR_DIGIT = {**TRUTH, "1": 1.0, "0": 0.0, "1.0": 1.0, "0.0": 0.0}
MOST_DIGITS = 15  # whole numbers with more are codes, and a float would change them
CODE = rf"^[+-]?(?:0\d|\d{{{MOST_DIGITS + 1},}}$)"  # 007, or more digits than a float keeps; also understood by Arrow
_CODE = re.compile(CODE)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")


def as_frame(table: Any) -> pd.DataFrame:
    """A pandas DataFrame with names of columns that are all text and all different; the argument stays as it is.

    Takes tables of pandas, and of libraries whose tables have ``to_pandas``. A period becomes the date of its
    beginning, and bytes, as which some programs write text to Parquet, the text.
    """
    if hasattr(table, "to_pandas"):  # polars, pyarrow
        table = table.to_pandas()
    if not isinstance(table, pd.DataFrame):
        raise TableError(f"A table with named columns is needed (a DataFrame), not {type(table).__name__}.")
    frame = table.set_axis([str(name) for name in table.columns], axis=1)
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise TableError(f"Two columns of the table are called {twice[0]!r}. Rename one of them.")
    doubtful = [name for name, dtype in frame.dtypes.items() if dtype.kind == "O"]
    plain = {str(name): _plain_cells(frame[name]) for name in doubtful}
    changed = {name: column for name, column in plain.items() if column is not None}
    return with_columns(frame, changed) if changed else frame


def _plain_cells(column: pd.Series) -> pd.Series | None:
    """Periods as dates, bytes as text; None for any other column."""
    if isinstance(column.dtype, pd.PeriodDtype):
        return column.dt.to_timestamp()
    if column.dtype != object or not isinstance(next((cell for cell in column if cell is not None), None), bytes):
        return None
    try:
        return column.map(lambda cell: cell.decode() if isinstance(cell, bytes) else cell)
    except UnicodeDecodeError:
        return None  # refused if it is used


def with_columns(frame: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """The table with other columns in the place of some; ``DataFrame.assign`` cannot do it for one called ``self``.

    Examples
    --------
    >>> import pandas as pd
    >>> with_columns(pd.DataFrame({"self": [1, 2], "x": [3, 4]}), {"self": [5, 6]}).to_dict("list")
    {'self': [5, 6], 'x': [3, 4]}
    """
    changed = frame.copy(deep=False)
    for name, values in columns.items():
        changed[name] = values
    return changed


def is_plain_number(column: pd.Series) -> bool:
    """Whether the column holds real numbers already; truth values are none."""
    if isinstance(column.dtype, np.dtype):  # the questions below take most of the time of a table of many columns
        return column.dtype.kind in "iuf"
    kind = pd.api.types
    return bool(kind.is_numeric_dtype(column)) and not (kind.is_bool_dtype(column) or kind.is_complex_dtype(column))


def refuse_nested(column: pd.Series) -> None:
    """Refuse a column of lists and the like, or of bytes that are no text; its words would be taken as categories."""
    if pd.api.types.is_object_dtype(column):
        for position, value in enumerate(column):
            if isinstance(value, list | tuple | set | dict | np.ndarray):
                raise TableError(
                    f"{cell_place(column, position)} holds several values ({type(value).__name__}), where one "
                    "belongs. Make a column of each, or leave it out with ",
                    Parameter("drop", [str(column.name)]),
                    ".",
                    row=row_of(column, position),
                    column=str(column.name),
                )
            if isinstance(value, bytes):
                raise TableError(
                    f"{cell_place(column, position)} holds bytes that are not text in UTF-8. Write them as "
                    "text, or leave the column out with ",
                    Parameter("drop", [str(column.name)]),
                    ".",
                    row=row_of(column, position),
                    column=str(column.name),
                )


def has_codes(column: pd.Series) -> bool:
    """Whether a column of text holds numbers that are codes: with leading zeros, or more than fifteen digits."""
    return any(isinstance(value, str) and _CODE.match(value.strip()) for value in column)


def as_words(column: pd.Series, filler: str | None, *, as_written: bool = False) -> pd.Series:
    """Text, the same for 3, 3.0 and "3.0", so that a category does not depend on how a file was written.

    The filler takes the place of missing cells. With ``as_written``, text is left as it is, as version 0.1 did.

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
            words[key] = key.strip() if as_written else _word(key.strip())
    return cells.map(lambda value: words[value if isinstance(value, str) else str(value)], na_action="ignore").where(
        cells.notna(), filler
    )


def _word(text: str) -> str:
    """Numbers that are equal become one word; codes stay as they are."""
    return f"{float(text):.15g}" if _NUMBER.fullmatch(text) and not _CODE.match(text) else text


def as_numbers(column: pd.Series) -> pd.Series:
    """Numbers where a cell can be read as one, else NaN; a span of time is its seconds."""
    if column.dtype == np.float64:
        return column
    if pd.api.types.is_timedelta64_dtype(column):
        return column.dt.total_seconds()
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_complex_dtype(column):
        return pd.Series(np.nan, index=column.index)
    if not is_plain_number(column):
        refuse_nested(column)
        column = column.astype(object).map(_number_or_text)
    return pd.to_numeric(column, errors="coerce").astype(np.float64)


def _number_or_text(value: Any) -> Any:
    """What pandas may read as a number; of dates, periods and complex numbers it would take a part without a word."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, datetime.timedelta | np.timedelta64):  # before numbers: NumPy's are integers, too
        return pd.Timedelta(value).total_seconds()
    return value if isinstance(value, numbers.Real | decimal.Decimal | np.bool_) else None


def checked_numbers(column: pd.Series, what: str = "a number belongs") -> pd.Series:
    """Numbers, NaN where a cell is empty; any other cell is an error, and ``what`` says what belongs there."""
    numbers = as_numbers(column)
    if not is_plain_number(column):
        refuse_cells(column, (numbers.isna() & column.notna()).to_numpy(), what)
    infinite = np.isinf(numbers.to_numpy())
    if infinite.any():
        position = int(np.argmax(infinite))
        place = cell_place(column, position)
        raise NonFiniteError(
            f"{place} is infinite. Leave such cells empty.", row=row_of(column, position), column=str(column.name)
        )
    return numbers


def checked_truth(column: pd.Series) -> pd.Series:
    """1 for true, 0 for false (truth values, words like yes, digits), NaN for an empty cell; others are refused."""
    if pd.api.types.is_bool_dtype(column):
        return column.astype(np.float64)
    numbers = as_words(column, "").str.lower().map(_TRUTH_OR_DIGIT).astype(np.float64)
    refuse_cells(column, (numbers.isna() & column.notna()).to_numpy(), "the model expects yes or no")
    return numbers


def row_of(column: pd.Series, position: int) -> int:
    """The row of a table, from 0, to which a cell belongs: readers number the rows of a file in the index."""
    index = column.index
    return int(index[position]) if pd.api.types.is_integer_dtype(index.dtype) else position


def cell_place(column: pd.Series, position: int) -> str:
    """Name a cell as a person finds it: rows count from 1, after the header, through the whole file."""
    return f"Row {row_of(column, position) + 1} of column {str(column.name)!r}"


def refuse_missing(column: pd.Series, hint: str, error: type[DataError] = TableError) -> None:
    """Name the first empty cell in an error."""
    if column.isna().any():
        position = int(np.argmax(column.isna()))
        raise error(
            f"{cell_place(column, position)} is empty. {hint}", row=row_of(column, position), column=str(column.name)
        )


def refuse_cells(column: pd.Series, wrong: Any, what: str) -> None:
    """Name the first wrong cell in an error."""
    if wrong.any():
        position = int(np.argmax(np.asarray(wrong)))
        shown = repr(column.iloc[position])
        shown = shown if len(shown) <= 60 else f"{shown[:57]}…"
        raise NotNumericError(
            f"{cell_place(column, position)} holds {shown}, where {what}.",
            row=row_of(column, position),
            column=str(column.name),
        )

"""Kinds of columns: numbers, booleans, dates or categories, detected in whole columns or chunk by chunk.

The kind of a column can depend on its last row, such as a word after whole numbers. So each chunk updates a
`ColumnKind`, and the kind is decided after all chunks.

Dates are datetimes, and text in an unambiguous format. Numbers in a notation that is not supported (percentages,
amounts of money, marks between thousands) are an error: as categories they would lose their order.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from skldl.data._cells import (
    BOOLEAN,
    CATEGORY,
    DATE,
    MAX_DIGITS,
    NUMBER,
    TRUTH,
    as_numbers,
    cell_place,
    check_not_nested,
    has_codes,
    is_duration,
    is_plain_number,
)
from skldl.data._csv import MOSTLY
from skldl.exceptions import Message, Parameter, TableError
from skldl.utils.column_names import list_names

_MIN_CELLS = 5  # of a column, for notes and errors about most of its cells; chosen by hand
_CELLS_OF_A_CHUNK = 200  # of text, searched for numbers in another notation; chosen by hand
_MAX_NUMBER = 1e150  # the square of a larger number overflows, the square of its reciprocal underflows
_TYPED_AS_TEXT = "%Y-%m-%d"  # format of datetimes if other chunks of the column hold text

# Dates.
_CLOCK = (
    r"((?:[01]?\d|2[0-3]):[0-5]\d(?::[0-5]\d)?|24:00(?::00)?)(?:[.,]\d+)?\s*([AaPp][Mm])?\s*(?:Z|[+-]\d{2}:?\d{2})?"
)
_TIME = rf"(?:[T ]\s?{_CLOCK})?"
# From each format of dates to its pattern; the groups are the date and, where there is one, the time and AM or PM.
_PATTERNS = {
    "%Y-%m-%d": re.compile(rf"(\d{{4}}-\d{{2}}-\d{{2}}){_TIME}"),
    "%Y/%m/%d": re.compile(rf"(\d{{4}}/\d{{1,2}}/\d{{1,2}}){_TIME}"),
    "%d.%m.%Y": re.compile(rf"(\d{{1,2}}\.\d{{1,2}}\.\d{{4}}){_TIME}"),
    "%d/%m/%Y": re.compile(rf"(\d{{1,2}}/\d{{1,2}}/\d{{4}}){_TIME}"),
    "%m/%d/%Y": re.compile(rf"(\d{{1,2}}/\d{{1,2}}/\d{{4}}){_TIME}"),
    "%d-%m-%Y": re.compile(rf"(\d{{1,2}}-\d{{1,2}}-\d{{4}}){_TIME}"),
    "%m-%d-%Y": re.compile(rf"(\d{{1,2}}-\d{{1,2}}-\d{{4}}){_TIME}"),
    "%d.%m.%y": re.compile(rf"(\d{{1,2}}\.\d{{1,2}}\.\d{{2}}){_TIME}"),
    "%d/%m/%y": re.compile(rf"(\d{{1,2}}/\d{{1,2}}/\d{{2}}){_TIME}"),
    "%m/%d/%y": re.compile(rf"(\d{{1,2}}/\d{{1,2}}/\d{{2}}){_TIME}"),
    "%d-%b-%Y": re.compile(rf"(\d{{1,2}}-[A-Za-z]{{3}}-\d{{4}}){_TIME}"),
    "%d %b %Y": re.compile(rf"(\d{{1,2}} [A-Za-z]{{3}} \d{{4}}){_TIME}"),
    "%b %d, %Y": re.compile(rf"([A-Za-z]{{3}} \d{{1,2}}, \d{{4}}){_TIME}"),
    "%Y-%m": re.compile(r"((?:19|20)\d{2}-(?:0[1-9]|1[0-2]))()()"),
    "%H:%M": re.compile(rf"(){_CLOCK}"),
}
_MONTHS = re.compile(
    r"\b(Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|t|tember|ober|ember)\b", re.IGNORECASE
)
_LIKE_A_DATE = re.compile(
    r"\d{1,4}[-/. ]{1,2}(?:\d{1,2}|[^\W\d_]{3,9}\.?)[-/., ]{1,2}\d{1,4}\b.*|\w{3,9}\.? \d{1,2},? \d{4}.*"
    r"|(?:.* )?\d{1,2}:\d{2}(?::\d{2})?.*|(?:19|20)\d{2}[-/ ]?(?:W|Q|KW|CW) ?\d{1,2}"
)
TYPED = "typed"
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MAX_LOOKED_AT = 20  # cells that select the possible formats of dates, before all cells are checked

# Numbers in other notations.
_SIGN = "[+\u2212\u2013-]"
_THOUSANDS = "|".join(rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+" for mark in (" ", "'", "\u2019", "_", r"\.", ","))
_NUMBER = rf"(?:{_THOUSANDS}|\d+|(?=[.,]))(?:[.,]\d+)?(?:[eEdD][+-]?\d+)?"
_CURRENCY = r"(?:[^\W\d_]{0,2}[$\u20a0-\u20cf\u00a3\u00a5]|USD|EUR|GBP|CHF|JPY|CNY)"
_AMOUNT = rf"{_SIGN}? ?{_CURRENCY}? ?{_SIGN}? ?{_NUMBER} ?(?:[%\u2030]|{_CURRENCY})?"
# A minus may follow a number of two or more characters; 2- is a school grade.
_OTHERWISE = re.compile(rf"{_AMOUNT}|(?=.{{3}}){_AMOUNT}[\u2212\u2013-]|\({_AMOUNT}\)")
_WITH_UNIT = re.compile(rf"{_SIGN}?{_NUMBER} ?([^\W\d_]{{1,4}})")


class ColumnKind:
    """The kind of a column, detected chunk by chunk.

    ``n_present`` is the number of cells that are not empty, and ``n_bad`` the number of them that are not numbers.

    Examples
    --------
    >>> import pandas as pd
    >>> column = ColumnKind("size")
    >>> column.update(pd.Series([1, 2]))
    >>> column.kind()
    'number'
    >>> column.update(pd.Series(["3", "large"]))
    >>> column.kind()
    'category'
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.n_present = self.n_bad = 0
        self._kind_if_empty = NUMBER  # from the type of the column, if all its cells are empty
        self._formats: set[str] | None = None  # formats of dates that fit all cells; None before the first cell
        self._truth = self._plain = True
        self._durations = False
        self._codes = False
        self._examples: list[str] = []
        self._first_cell: Any = None
        self._varies = self._gaps = False
        self._largest = 0.0  # absolute value
        self._whole = self._counts_rows = True
        self._last: Any = None
        self._n_looked_at = self._n_otherwise = self._n_like_dates = 0
        self._units: set[str | None] = set()

    def update(self, column: pd.Series, file: str = "") -> None:
        """Add a chunk.

        An integer index has the positions of the rows in the file, from 0; ``file`` is its name, for messages.
        """
        present = column.dropna()
        self._gaps = self._gaps or len(present) < len(column)
        if not len(present):
            if pd.api.types.is_bool_dtype(column):
                self._kind_if_empty = BOOLEAN
            elif pd.api.types.is_datetime64_any_dtype(column):
                self._kind_if_empty = DATE
            return
        self.n_present += len(present)
        if self._first_cell is None:
            self._first_cell = present.iloc[0]
        self._varies = self._varies or any(str(value) != str(self._first_cell) for value in present)
        if is_plain_number(column):
            self._truth = False
            self._formats = set()
            self._largest = max(self._largest, float(present.max()), -float(present.min()))
            self._whole = self._whole and bool(pd.api.types.is_integer_dtype(column))
            self._counts_rows = self._counts_rows and self._continues(present)
            self._last = present.iloc[-1]
            return
        check_not_nested(column)
        self._plain = False
        self._durations = self._durations or is_duration(column)
        if pd.api.types.is_bool_dtype(column):
            self._formats = set()
            return
        if self._truth:
            self._truth = {str(value).strip().lower() for value in present} <= TRUTH.keys()
        if self._formats is None or self._formats:
            formats = set(fitting_formats(present))
            formats |= {_TYPED_AS_TEXT} if TYPED in formats else set()
            self._formats = formats if self._formats is None else self._formats & formats
        numbers = as_numbers(column)
        bad = np.flatnonzero(numbers.isna() & column.notna())
        self.n_bad += len(bad)
        self._largest = max(self._largest, numbers.abs().max()) if len(bad) < len(present) else self._largest
        looked_at = column.iloc[bad[:_CELLS_OF_A_CHUNK]].astype(str)
        self._n_looked_at += len(looked_at)
        self._n_otherwise += sum(map(looks_like_number, looked_at))
        self._n_like_dates += sum(map(looks_like_date, looked_at))
        self._units |= set(map(unit_of, looked_at))
        for position in bad[: 3 - len(self._examples)]:
            row = cell_place(column, position).partition(" of ")[0].lower()
            self._examples.append(f"{column.iloc[position]!r} ({row}{f' of {file}' if file else ''})")
        if not (self.n_bad or self._codes):  # either makes it a column of categories
            self._codes = has_codes(present)

    def kind(self) -> str:
        """The kind of the column, from all chunks so far: "number", "boolean", "date" or "category".

        Text whose cells are all numbers is a number, unless one of them is a code such as 007, which a number would
        change.
        """
        if not self.n_present:
            return self._kind_if_empty
        if self._truth:
            return BOOLEAN
        if self._plain:
            return NUMBER
        if self.date_format() is not None:
            return DATE
        return CATEGORY if self.n_bad or self._codes else NUMBER

    def date_format(self) -> str | None:
        """Format of the dates of the column, or "typed" for datetimes; None if no format, or several, fit all cells."""
        formats = self._formats or set()
        if TYPED in formats or (self._kind_if_empty == DATE and not self.n_present):
            return TYPED
        return next(iter(formats)) if len(formats) == 1 else None

    def notes(self, n_different: int | None = None) -> list[str]:
        """Notes on the column; a column of numbers with a few other cells is an error.

        ``n_different`` is the number of different texts in it, if it is known.
        """
        if not self.n_present or self._truth:
            return []
        if self.kind() == NUMBER:
            self._check_range()
            if self._durations:
                return [f"Column {self.name!r} holds durations: models learn from their seconds."]
            return self._notes_on_whole_numbers()
        if self.date_format() is not None:
            return [
                f"Column {self.name!r} holds dates: models learn from their year, month, weekday, hour and distance."
            ]
        if self._formats:
            return [
                f"Column {self.name!r} holds dates such as {self._first_cell!r}, and no cell shows which part is the "
                "month: they are treated as categories. Write them as 2024-12-31."
            ]
        if self.n_present < _MIN_CELLS or not self.n_bad:
            return []
        if self.n_bad <= (1 - MOSTLY) * self.n_present:
            more = f" and {self.n_bad - len(self._examples)} more" if self.n_bad > len(self._examples) else ""
            raise TableError(
                f"Column {self.name!r} is mostly numbers, but holds {', '.join(self._examples)}{more}. If "
                "these cells mean a missing value, empty them or name them with ",
                Parameter("na_values"),
                "; if it is not numeric, set ",
                Parameter("categories", [self.name]),
                ".",
            )
        if self._n_otherwise > MOSTLY * self._n_looked_at:
            raise TableError(
                f"Column {self.name!r} holds numbers in a notation that is not supported: "
                f"{', '.join(self._examples)}. Write plain numbers, without percent signs, currencies and "
                "marks between thousands; if it is not numeric, set ",
                Parameter("categories", [self.name]),
                ".",
            )
        if self._n_like_dates > MOSTLY * self._n_looked_at:
            return [
                f"Column {self.name!r} seems to hold dates or times, such as {self._first_cell!r}, but is treated as "
                "categories, which have no order. Write all of them in one format, such as 2024-12-31 18:00."
            ]
        if None not in self._units and len(self._units) == 1:
            return [
                f"Column {self.name!r} holds numbers with a unit, such as {self._first_cell!r}, and is treated as "
                f"categories, which have no order. Remove {next(iter(self._units))!r} to use the numbers."
            ]
        if n_different == self.n_present:
            return [
                Message(
                    f"Column {self.name!r} holds a different text in every row. If it identifies the row, leave it "
                    "out with ",
                    Parameter("drop", [self.name]),
                    "; if it is text, set ",
                    Parameter("text", [self.name]),
                    ".",
                )
            ]
        return []

    def _continues(self, present: pd.Series) -> bool:
        """Whether each number is one more than that in the row before."""
        values = present.to_numpy()
        return bool((self._last is None or values[0] == self._last + 1) and np.all(values[1:] == values[:-1] + 1))

    def is_constant(self) -> bool:
        """Whether all cells are equal or all are empty; an empty cell differs from a value, as models encode gaps."""
        return not (self._varies or (self._gaps and self.n_present))

    def _notes_on_whole_numbers(self) -> list[str]:
        if not (self._plain and self._whole):
            return []
        if self._largest > 2**53:
            return [
                Message(
                    f"Column {self.name!r} holds whole numbers of more than {MAX_DIGITS} digits, which are "
                    "rounded. If they are codes, set ",
                    Parameter("categories", [self.name]),
                    ", or leave them out with ",
                    Parameter("drop", [self.name]),
                    ".",
                )
            ]
        if self._counts_rows and not self._gaps and self.n_present >= _MIN_CELLS:
            return [
                Message(
                    f"Column {self.name!r} goes up by one from row to row. If it only numbers the rows, leave "
                    "it out with ",
                    Parameter("drop", [self.name]),
                    ": the models learn from it.",
                )
            ]
        return []

    def _check_range(self) -> None:
        if _MAX_NUMBER < self._largest < np.inf or 0 < self._largest < 1 / _MAX_NUMBER:
            raise TableError(
                f"The largest absolute value of column {self.name!r} is {self._largest:.3g}, which is too "
                f"{'large' if self._largest > 1 else 'small'} to compute with. Use another unit, or leave "
                "the column out with ",
                Parameter("drop", [self.name]),
                ".",
            )


def kind_of(column: pd.Series) -> str:
    """Kind of a whole column, see `ColumnKind.kind`.

    Examples
    --------
    >>> import pandas as pd
    >>> [kind_of(pd.Series(cells)) for cells in (["1", "2.5"], ["007", "12"], ["yes", "no"], ["2024-05-31"])]
    ['number', 'category', 'boolean', 'date']
    """
    if is_plain_number(column) and column.notna().any():
        return NUMBER
    seen = ColumnKind(str(column.name))
    seen.update(column)
    return seen.kind()


def notes_on_columns(kinds: Mapping[str, ColumnKind], n_different: Mapping[str, int]) -> list[str]:
    """Notes on the columns of a table; columns of numbers with a few other cells are an error.

    ``n_different`` is the number of different texts of each column of categories.
    """
    notes = [note for name, kind in kinds.items() for note in kind.notes(n_different.get(name))]
    empty = [name for name, kind in kinds.items() if not kind.n_present]
    if empty:
        notes.append(f"{list_names(empty)}: empty in every row.")
    if kinds and all(kind.is_constant() for kind in kinds.values()):
        notes.append(f"{list_names(kinds)}: the same in every row, so that nothing can be learned from the features.")
    return notes


def as_dates(column: pd.Series, written: str) -> pd.Series:
    """Convert cells to dates and times, without time zones; NaT if a cell does not have the format ``written``."""
    if pd.api.types.is_datetime64_any_dtype(column):
        if isinstance(column.dtype, pd.ArrowDtype):  # pandas lacks some operations on dates of Arrow
            column = pd.to_datetime(column.astype(object))
        years = column.dt.year
        if not years.dropna().between(1, 9999).all():
            raise TableError(
                f"Column {str(column.name)!r} holds dates of the years {years.min():.0f} to {years.max():.0f}. Only "
                "the years 1 to 9999 are supported: check the unit in which the dates were written."
            )
        return column.dt.tz_localize(None)
    if written == TYPED:
        written = "%Y-%m-%d"
    pattern = _PATTERNS[written]
    found = [pattern.fullmatch(_text(cell)) if pd.notna(cell) else None for cell in column.astype(object)]
    if written == "%H:%M":
        days = pd.Series([pd.NaT if match is None else pd.Timestamp(0) for match in found], index=column.index)
    else:
        dates = [None if match is None else match[1] for match in found]
        days = pd.to_datetime(pd.Series(dates, index=column.index, dtype=object), format=written, errors="coerce")
    hours = pd.to_timedelta([_time_of_day(match) for match in found], errors="coerce")
    return days + pd.Series(hours, index=column.index)


def _text(cell: object) -> str:
    """The text of a cell, with names of months shortened to three letters."""
    return _MONTHS.sub(r"\1", str(cell).strip())


def _time_of_day(match: re.Match[str] | None) -> str:
    """The time in a matched cell as hours, minutes and seconds; empty for invalid times such as 13:05 PM."""
    if match is None or not match[2]:
        return "0:00:00"
    hour, _, rest = match[2].partition(":")
    if match[3]:
        if not 1 <= int(hour) <= 12:
            return ""
        hour = str(int(hour) % 12 + 12 * (match[3].lower() == "pm"))
    return f"{hour}:{rest}" if ":" in rest else f"{hour}:{rest}:00"


def looks_like_date(cell: str) -> bool:
    """Whether a cell looks like a date or a time of day, in any notation.

    These are three numbers with marks between them, names of months next to numbers, hours with minutes, and weeks or
    quarters of a year.

    Examples
    --------
    >>> [looks_like_date(cell) for cell in ("3. Mai 2024", "2024-W07", "7:30 Uhr", "18-24", "A-4-7")]
    [True, True, True, False, False]
    """
    return _LIKE_A_DATE.fullmatch(cell.strip()) is not None


def show_date(date: pd.Timestamp, written: str) -> str:
    """Write a date in the format of a column."""
    return date.strftime("%Y-%m-%d" if written == TYPED else written)


def date_parts(dates: pd.Series) -> pd.DataFrame:
    """Numerical features of dates; NaN for missing dates.

    Month and hour are cyclic: each is encoded as sine and cosine. Each weekday has a column. The number of days and the
    year encode trends.

    Examples
    --------
    >>> import pandas as pd
    >>> parts = date_parts(pd.Series(pd.to_datetime(["1970-01-04 06:00"])))
    >>> parts.round(2).iloc[0].loc[["days", "hour, sine", "Sunday"]]
    days          3.25
    hour, sine    1.00
    Sunday        1.00
    Name: 0, dtype: float64
    """
    clock = dates.dt
    epoch = pd.Timestamp(0).as_unit(clock.unit)  # dates before 1677 or after 2262 overflow in nanoseconds
    seconds = (dates - epoch).dt.total_seconds()
    parts = {"days": seconds / 86400, "year": clock.year.astype(np.float64)}
    hours = clock.hour + clock.minute / 60
    for part, turns in (("month", (clock.month - 1) / 12), ("hour", hours / 24)):
        angle = 2 * np.pi * turns.astype(np.float64)
        parts |= {f"{part}, sine": np.sin(angle), f"{part}, cosine": np.cos(angle)}
    for number, day in enumerate(_WEEKDAYS):
        parts[day] = (clock.day_of_week == number).astype(np.float64).where(dates.notna())
    return pd.DataFrame(parts)


def fitting_formats(column: pd.Series) -> list[str]:
    """All formats of dates that fit a column; with several, day and month cannot be distinguished.

    They are ``"typed"`` for datetimes, and formats of `datetime.strptime` for text; none if a cell is not a date.

    Examples
    --------
    >>> import pandas as pd
    >>> fitting_formats(pd.Series(["2024-05-31", "2024-06-01 12:30"])), fitting_formats(pd.Series(["03/04/2024"]))
    (['%Y-%m-%d'], ['%d/%m/%Y', '%m/%d/%Y'])
    """
    if pd.api.types.is_datetime64_any_dtype(column):
        return [TYPED]
    if not (pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column)):
        return []
    present = column.dropna()
    first = [_text(cell) for cell in present.iloc[:_MAX_LOOKED_AT]]
    fitting = [way for way, pattern in _PATTERNS.items() if first and all(map(pattern.fullmatch, first))]
    return [way for way in fitting if not np.any(as_dates(present, way).isna())]


def looks_like_number(cell: str) -> bool:
    """Whether a cell looks like a number in a notation that is not supported.

    Examples are percentages, amounts of money, marks between thousands and digits of other scripts.

    Examples
    --------
    >>> [looks_like_number(cell) for cell in ("35.2 %", "$5", "1'234.50", "(12)", "A4", "3-8", "10 kg")]
    [True, True, True, True, False, False, False]
    """
    return _OTHERWISE.fullmatch(_simple(cell)) is not None


def unit_of(cell: str) -> str | None:
    """The short word after the number in a cell, such as kg; None for other cells.

    Examples
    --------
    >>> unit_of("10.5 kg"), unit_of("10.5"), unit_of("kg 10")
    ('kg', None, None)
    """
    found = _WITH_UNIT.fullmatch(_simple(cell))
    return found[1] if found else None


def _simple(cell: str) -> str:
    """Normalise blanks and wide letters (Unicode normal form KC)."""
    return unicodedata.normalize("NFKC", cell).strip()

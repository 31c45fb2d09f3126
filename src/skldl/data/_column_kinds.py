"""What a column holds, whole or seen chunk by chunk: its kind, and notes.

A chunk alone does not say what a column is: a column of whole numbers may hold a word in its last row. So each chunk
adds to what is known, and the kind is decided when all chunks were seen.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from skldl.data._cells import (
    BOOLEAN,
    CATEGORY,
    DATE,
    MOST_DIGITS,
    NUMBER,
    TRUTH,
    as_numbers,
    cell_place,
    has_codes,
    is_plain_number,
    refuse_nested,
)
from skldl.data._csv import MOSTLY
from skldl.data._dates import TYPED, fitting_formats, looks_like_date
from skldl.data._number_notation import is_number_otherwise, unit_of
from skldl.exceptions import Message, Parameter, TableError
from skldl.utils.column_names import list_names

_FEWEST = 5  # cells of a column, for a judgement on what it is mostly
_CELLS_OF_A_CHUNK = 200  # of text, looked at for numbers in another notation
_LARGEST = 1e150  # the square of a larger number is infinite, that of the reciprocal zero
_TYPED_AS_TEXT = "%Y-%m-%d"  # how a datetime is written where other chunks of its column hold text


class ColumnKind:
    """What the chunks of one column have shown so far.

    ``n_present`` cells were not empty, and ``n_bad`` of them are no numbers.

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
        self._kind_of_nothing = NUMBER  # what the type of the column says where all its cells are empty
        self._formats: set[str] | None = None  # of dates; None as long as there was no cell
        self._truth = self._plain = True
        self._codes = False
        self._examples: list[str] = []
        self._first_cell: Any = None
        self._varies = self._gaps = False
        self._most = 0.0  # the largest absolute value
        self._whole = self._counts_rows = True
        self._last: Any = None
        self._n_looked_at = self._n_otherwise = self._n_like_dates = 0
        self._units: set[str | None] = set()

    def update(self, column: pd.Series, place: str = "") -> None:
        """Look at a chunk.

        An index of whole numbers holds the numbers of the rows, from 0; ``place`` is the file, for messages.
        """
        present = column.dropna()
        self._gaps = self._gaps or len(present) < len(column)
        if not len(present):
            if pd.api.types.is_bool_dtype(column):
                self._kind_of_nothing = BOOLEAN
            elif pd.api.types.is_datetime64_any_dtype(column):
                self._kind_of_nothing = DATE
            return
        self.n_present += len(present)
        if self._first_cell is None:
            self._first_cell = present.iloc[0]
        self._varies = self._varies or any(str(value) != str(self._first_cell) for value in present)
        if is_plain_number(column):
            self._truth = False
            self._formats = set()
            self._most = max(self._most, float(present.max()), -float(present.min()))
            self._whole = self._whole and bool(pd.api.types.is_integer_dtype(column))
            self._counts_rows = self._counts_rows and self._continues(present)
            self._last = present.iloc[-1]
            return
        refuse_nested(column)
        self._plain = False
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
        self._most = max(self._most, numbers.abs().max()) if len(bad) < len(present) else self._most
        looked_at = column.iloc[bad[:_CELLS_OF_A_CHUNK]].astype(str)
        self._n_looked_at += len(looked_at)
        self._n_otherwise += sum(map(is_number_otherwise, looked_at))
        self._n_like_dates += sum(map(looks_like_date, looked_at))
        self._units |= set(map(unit_of, looked_at))
        for position in bad[: 3 - len(self._examples)]:
            row = cell_place(column, position).partition(" of ")[0].lower()
            self._examples.append(f"{column.iloc[position]!r} ({row}{f' of {place}' if place else ''})")
        if not (self.n_bad or self._codes):  # either makes it a column of categories
            self._codes = has_codes(present)

    def kind(self) -> str:
        """The kind of the column, from all chunks so far: "number", "boolean", "date" or "category".

        Text whose cells are all numbers is a number, unless one of them is a code such as 007, which a number would
        change.
        """
        if not self.n_present:
            return self._kind_of_nothing
        if self._truth:
            return BOOLEAN
        if self._plain:
            return NUMBER
        if self.date_format() is not None:
            return DATE
        return CATEGORY if self.n_bad or self._codes else NUMBER

    def date_format(self) -> str | None:
        """How the dates of the column are written, "typed" or a format; None if it has none, or none that fits all."""
        formats = self._formats or set()
        if TYPED in formats or (self._kind_of_nothing == DATE and not self.n_present):
            return TYPED
        return next(iter(formats)) if len(formats) == 1 else None

    def notes(self, n_different: int | None = None) -> list[str]:
        """What is worth knowing about the column; one that is mostly numbers but not everywhere is refused.

        ``n_different`` is the number of different texts in it, where it is known.
        """
        if not self.n_present or self._truth:
            return []
        if self.kind() == NUMBER:
            self._refuse_extremes()
            return self._notes_on_whole_numbers()
        if self.date_format() is not None:
            return [
                f"Column {self.name!r} holds dates: models learn from their year, month, weekday, hour and distance."
            ]
        if self._formats:
            return [
                f"Column {self.name!r} holds dates such as {self._first_cell!r}, and no cell shows which part is the "
                "month: they are taken as categories. Write them as 2024-12-31."
            ]
        if self.n_present < _FEWEST or not self.n_bad:
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
                f"Column {self.name!r} holds numbers in a notation that is not read: "
                f"{', '.join(self._examples)}. Write plain numbers, without percent signs, currencies and "
                "marks between thousands; if it is not numeric, set ",
                Parameter("categories", [self.name]),
                ".",
            )
        if self._n_like_dates > MOSTLY * self._n_looked_at:
            return [
                f"Column {self.name!r} holds what look like dates or times, such as {self._first_cell!r}, and is taken "
                "as categories, which have no order. Write all of them in one way, such as 2024-12-31 18:00."
            ]
        if None not in self._units and len(self._units) == 1:
            return [
                f"Column {self.name!r} holds numbers with a unit, such as {self._first_cell!r}, and is taken as "
                f"categories, which have no order. Take out {next(iter(self._units))!r} to use the numbers."
            ]
        if n_different == self.n_present:
            return [
                Message(
                    f"Column {self.name!r} holds a different text in every row. If it names the row, leave it "
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
        """Whether the column is the same everywhere, empty columns included.

        Returns
        -------
        bool
            False if there are two values, or a value and a gap, which models see too.
        """
        return not (self._varies or (self._gaps and self.n_present))

    def _notes_on_whole_numbers(self) -> list[str]:
        if not (self._plain and self._whole):
            return []
        if self._most > 2**53:
            return [
                Message(
                    f"Column {self.name!r} holds whole numbers of more than {MOST_DIGITS} digits, which are "
                    "rounded. If they are codes, set ",
                    Parameter("categories", [self.name]),
                    ", or leave them out with ",
                    Parameter("drop", [self.name]),
                    ".",
                )
            ]
        if self._counts_rows and not self._gaps and self.n_present >= _FEWEST:
            return [
                Message(
                    f"Column {self.name!r} goes up by one from row to row. If it only numbers the rows, leave "
                    "it out with ",
                    Parameter("drop", [self.name]),
                    ": the models learn from it.",
                )
            ]
        return []

    def _refuse_extremes(self) -> None:
        if _LARGEST < self._most < np.inf or 0 < self._most < 1 / _LARGEST:
            raise TableError(
                f"The largest absolute value of column {self.name!r} is {self._most:.3g}, which is too "
                f"{'large' if self._most > 1 else 'small'} to compute with. Use another unit, or leave "
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
    """What is worth knowing about the columns of a table; those that cannot be what they seem are refused.

    ``n_different`` has the number of different texts of each column of categories.
    """
    notes = [note for name, kind in kinds.items() for note in kind.notes(n_different.get(name))]
    empty = [name for name, kind in kinds.items() if not kind.n_present]
    if empty:
        notes.append(f"{list_names(empty)}: empty in every row.")
    if kinds and all(kind.is_constant() for kind in kinds.values()):
        notes.append(f"{list_names(kinds)}: the same in every row, so that nothing can be learned from the features.")
    return notes

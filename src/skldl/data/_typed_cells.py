"""Columns of text, as a CSV file holds them, as numbers where all their cells are numbers."""

from collections import Counter
from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd

from skldl.data._cells import CODE, MOST_DIGITS, as_words
from skldl.exceptions import TableError

MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A")
_GROUPS = r"^[+-]?(?:\d*|[1-9]\d{0,2}(?:%s\d{3})+)(?:%s\d*)?(?:[eE][+-]?\d+)?$"


class ColumnReader:
    """Turn the cells of one column into numbers, piece by piece, or leave them as text (``as_written``).

    ``thousands`` is whether the other mark can only separate thousands; else a cell that holds it is no number.
    """

    def __init__(
        self, name: str, *, decimal: str, thousands: bool, missing: tuple[str, ...], as_written: bool, file: str
    ) -> None:
        self.name, self.decimal, self.file = name, decimal, file
        self._thousands = thousands
        self._missing = missing
        self._as_written = as_written
        self._dropped: Counter[str | None] = Counter()
        self._has_codes = False

    def __call__(self, cells: Any, first_row: int) -> Any:
        """Numbers, or text with None where a cell is missing; ``first_row`` rows came before these cells of Arrow."""
        import pyarrow.compute as pc

        if not self._as_written:
            if self.decimal == ".":
                numbers = self._numbers(cells, cells)
                if numbers is not None:
                    return numbers
            trimmed = pc.utf8_trim_whitespace(cells)
            cells = _without(trimmed, self._missing)
            # missing cells of numeric columns are not ambiguous
            filled = _without(trimmed, {*MISSING_WORDS, *self._missing})
            if filled.null_count < len(filled) or cells.null_count == len(cells):
                numbers = self._numbers(self._with_decimal_points(filled, first_row), filled)
                if numbers is not None:
                    return numbers
            self._dropped.update(trimmed.filter(pc.is_null(cells)).to_pylist())
        return cells.to_pandas()

    def notes(self) -> list[str]:
        """What the user should know: words taken as missing in a column of text; codes that look like numbers."""
        found = []
        words = {word: count for word, count in self._dropped.most_common() if word}
        if words:
            counts = ", ".join(f"{word!r} ({count} cells)" for word, count in words.items())
            found.append(
                f"Column {self.name!r}: {counts} taken as missing. If it is a name, define which words mean a missing "
                "value with na_values=; na_values=[] means none."
            )
        if self._has_codes:
            found.append(
                f"Column {self.name!r} holds codes with leading zeros or more than {MOST_DIGITS} digits, so it is "
                "taken as categories, not as numbers."
            )
        return found

    def _numbers(self, cells: Any, as_written: Any) -> Any:
        """The cells as numbers, or None if one of them is none, or a code such as 007."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            numbers = cells.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
        values = numbers.to_numpy(zero_copy_only=False)
        if cells.null_count < len(cells) and np.all((values == np.floor(values)) | np.isnan(values)):
            if pc.any(pc.match_substring_regex(as_written, CODE)).as_py():
                self._has_codes = True
                return None
            if not cells.null_count and np.abs(values).max(initial=0) < 2**53:
                return values.astype(np.int64)
        return values

    def _with_decimal_points(self, cells: Any, first_row: int) -> Any:
        """Numbers without marks between thousands and with a decimal point; other cells as they are."""
        import pyarrow.compute as pc

        other = "." if self.decimal == "," else ","
        marked = pc.match_substring_regex(cells, "^[+-]?[0-9.,]*[.,]")
        if not (pc.any(marked).as_py() and (self._thousands or self.decimal == ",")):
            return pc.if_else(pc.starts_with(cells, "+"), pc.utf8_slice_codeunits(cells, 1), cells)
        fits = pc.match_substring_regex(cells, _GROUPS % (f"[{other}]", f"[{self.decimal}]"))
        if self.decimal == ",":
            strange = pc.and_(pc.invert(fits), pc.match_substring_regex(cells, r"^[+-]?\d*\.\d*(?:[eE][+-]?\d+)?$"))
            if pc.any(strange).as_py():
                row = pc.index(strange, True).as_py()
                raise TableError(
                    f"{self.file}: row {first_row + row + 1} of column {self.name!r} holds {cells[row].as_py()!r}, "
                    "while other numbers have a decimal comma. Write all numbers in one way, or set which mark is the "
                    "decimal one with decimal='.' or decimal=','."
                )
        plain = pc.replace_substring(pc.replace_substring(cells, other, ""), ",", ".")
        plain = pc.if_else(pc.starts_with(plain, "+"), pc.utf8_slice_codeunits(plain, 1), plain)
        return pc.if_else(fits, plain, cells)


def _without(cells: Any, words: Collection[str]) -> Any:
    """The cells with None in the place of empty ones and of these words."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.is_in(cells, value_set=pa.array(["", *words], type=pa.string()))
    return pc.if_else(missing, pa.scalar(None, pa.string()), cells)


def join_pieces(pieces: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    """Join pieces of one table; a column that holds text in one of them becomes text.

    The pieces are emptied during the conversion, so that the table is not in memory twice.
    """
    return pd.DataFrame({name: _joined([piece.pop(name) for piece in pieces]) for name in columns}, copy=False)


def _joined(parts: list[Any]) -> Any:
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts) if parts else []
    words = [as_words(pd.Series(part), None) if isinstance(part, np.ndarray) else part for part in parts]
    return words[0] if len(words) == 1 else pd.concat([part.astype(object) for part in words], ignore_index=True)

"""JSON records as a table, for what the fast path does not take; errors name the row, the column and what was found."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from skldl.data._cells import CATEGORY
from skldl.exceptions import DataError
from skldl.utils.column_names import check_columns

LONGEST_CATEGORY = 10_000


def frame_of_records(records: Sequence[Any], columns: Sequence[str], keep: Sequence[str] = ()) -> pd.DataFrame:
    """A table of the columns that the model needs and of those to keep, without those to keep that no record names.

    A cell that a record does not name is missing; a column that the model needs must be named by one record at least.

    Examples
    --------
    >>> list(frame_of_records([{"age": 31, "note": "x"}, {}], ["age"], ["town"]).columns)
    ['age']
    """
    wanted = dict.fromkeys((*columns, *keep))
    for place, record in enumerate(records, start=1):
        if not isinstance(record, dict):
            raise DataError(
                f"Row {place} is {_json_type(record)}, where an object from columns to cells belongs, such as "
                f'{{"{columns[0]}": ...}}.'
            )
    present: dict[str, Any] = {}
    for record in records:
        present.update(record)
    if records:
        check_columns(columns, present)
    cells = {name: [record.get(name) for record in records] for name in wanted if name in present or not records}
    for name, column in cells.items():
        for place, cell in enumerate(column, start=1):
            if isinstance(cell, list | dict):
                raise DataError(f"Row {place} of column {name!r} holds {_json_type(cell)}, where one value belongs.")
    return pd.DataFrame({name: pd.Series(column, dtype=_dtype_of(column)) for name, column in cells.items()})


def refuse_long_categories(frame: pd.DataFrame, kinds: Mapping[str, str]) -> None:
    """Refuse texts where a category belongs: arrays of fixed width would multiply them by the number of rows."""
    for name, kind in kinds.items():
        if kind == CATEGORY and not pd.api.types.is_numeric_dtype(frame[name]):
            for row, cell in zip(frame.index, frame[name], strict=True):
                if isinstance(cell, str) and len(cell) > LONGEST_CATEGORY:
                    raise DataError(
                        f"Row {row + 1} of column {name!r} holds a text of {len(cell):,} characters, where a "
                        f"category of at most {LONGEST_CATEGORY:,} belongs."
                    )


def _dtype_of(column: list[Any]) -> Any:
    """Text and mixed cells stay objects; pandas finds the type of all others."""
    return object if any(isinstance(cell, str) for cell in column) or all(cell is None for cell in column) else None


def _json_type(cell: Any) -> str:
    names = {list: "a list", dict: "an object", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(cell), "a number")

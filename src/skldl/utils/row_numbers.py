"""How messages number the rows of what is checked."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_FIRST_ROW: ContextVar[int] = ContextVar("first_row", default=0)


@contextmanager
def rows_from(first: int) -> Iterator[None]:
    """Let messages count the rows from a number other than 0, where what is checked is a part of something larger."""
    token = _FIRST_ROW.set(first)
    try:
        yield
    finally:
        _FIRST_ROW.reset(token)


def row_number(row: int) -> int:
    """Number of a row as messages say it."""
    return row + _FIRST_ROW.get()

"""Error responses of the service: a status, a message and, where they are known, row, column and a hint."""

from collections.abc import Callable, Mapping
from typing import Any

from skldl.data._cells import BOOLEAN, CATEGORY, DATE, NUMBER, TEXT
from skldl.exceptions import DataError, Parameter

_HINTS = {
    NUMBER: "Send a number, or null where it is missing.",
    BOOLEAN: "Send true or false, or null where it is missing.",
    DATE: "Send a date as it was written in the training table (see /schema), or null where it is missing.",
    CATEGORY: "Send a text, or null where it is missing.",
    TEXT: "Send a text, or null where it is missing.",
}
PARAMETERS = ("format", "keep", "digits", "level", "covers")
"""Parameters of the address of a request for predictions, after the question mark."""


Check = Callable[[], None]
"""Raises `RequestEnded` if nobody waits for the result any more; work in threads calls it between its steps."""


def go_on() -> None:
    """Let work go on, for work outside of requests."""


class RequestEnded(Exception):
    """The request was answered, with an error, before its work was done."""


class RequestError(Exception):
    """A request that is rejected, with a status of HTTP, a message and headers of the response."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


def error_body(error: RequestError | DataError, kinds: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON of an error: its message and, if it is about a cell or a column, row, column and hint.

    ``kinds`` has the kind of each column of the model.

    Examples
    --------
    >>> from skldl.exceptions import TableError
    >>> error_body(TableError("Row 2 of column 'age' holds 'x'.", row=1, column="age"), {"age": "number"})["error"]
    {'message': "Row 2 of column 'age' holds 'x'.", 'row': 2, 'column': 'age',
     'hint': 'Send a number, or null where it is missing.'}
    """
    if isinstance(error, RequestError):
        return {"error": {"message": error.message}}
    body: dict[str, Any] = {"message": " ".join(error.worded(_spelled).split())}
    if error.row is not None:
        body["row"] = error.row + 1
    if error.column is not None:
        body["column"] = error.column
        if error.row is None:
            body["hint"] = "Name the column; null in JSON and an empty cell in CSV are missing values."
        elif kinds is not None and error.column in kinds:
            body["hint"] = _HINTS[kinds[error.column]]
    return {"error": body}


def _spelled(parameter: Parameter) -> str:
    """Spell a parameter of the address as in an address, any other one as in Python."""
    if parameter.name not in PARAMETERS or not parameter.has_value:
        return str(parameter)
    value = parameter.value
    return f"?{parameter.name}={','.join(value) if isinstance(value, list | tuple) else value}"

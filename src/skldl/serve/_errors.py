"""Error responses of the service: a status, a message and, where they are known, row and column."""

import ast
import re
from typing import Any

from skldl.data._cells import BOOLEAN, CATEGORY, DATE, NUMBER, TEXT

_PLACE = re.compile(r"^Row (\d+)(?: of column (?P<column>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"))?")
_LACKING = re.compile(r"^The table lacks the column (?P<column>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")")
_CURES = {
    NUMBER: "Send a number, or null where it is missing.",
    BOOLEAN: "Send true or false, or null where it is missing.",
    DATE: "Send a date as it was written in the training table (see /schema), or null where it is missing.",
    CATEGORY: "Send a text, or null where it is missing.",
    TEXT: "Send a text, or null where it is missing.",
}


class Refusal(Exception):
    """A request that cannot be answered: the status of HTTP, what is wrong with the cure, and headers of the answer."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers


def error_body(message: str, kinds: dict[str, str] | None = None) -> dict[str, Any]:
    """The body of an error: its message, and row, column and cure if the message names a cell.

    ``kinds`` has the kind of each column.

    Examples
    --------
    >>> error_body("Row 2 of column 'age' holds 'x', where the model expects a number.", {"age": "number"})["error"]
    {'message': "Row 2 of column 'age' holds 'x', where the model expects a number.", 'row': 2, 'column': 'age',
     'cure': 'Send a number, or null where it is missing.'}
    """
    error: dict[str, Any] = {"message": " ".join(message.split())}
    if place := _PLACE.match(message):
        error["row"] = int(place[1])
    found = place if place and place["column"] else _LACKING.match(message)
    if found:
        error["column"] = ast.literal_eval(found["column"])
        kind = (kinds or {}).get(error["column"])
        if found is not place:
            error["cure"] = "Name the column; null in JSON and an empty cell in CSV are missing values."
        elif kind is not None:
            error["cure"] = _CURES[kind]
    return {"error": error}

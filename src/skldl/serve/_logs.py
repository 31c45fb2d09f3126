"""Structured logs: one JSON object in a line on standard error for each event.

Lines about single requests are collected for a moment and written together, since a system call for each of them would
take as long as a prediction.
"""

import asyncio
import sys
from datetime import UTC, datetime
from typing import Any

import orjson

FLUSH_SECONDS = 0.1
_waiting: list[bytes] = []


def log(level: str, event: str, **fields: Any) -> None:
    """Write one event at once.

    Parameters
    ----------
    level : {"info", "warning", "error"}
        How important it is.
    event : str
        What happened.
    **fields
        Further fields, in plain values.
    """
    _waiting.append(_line({"level": level, "event": event, **fields}))
    flush()


def log_soon(fields: dict[str, Any]) -> None:
    """Write one event within a tenth of a second; only inside a running event loop.

    Parameters
    ----------
    fields : dict
        Fields, in plain values.
    """
    if not _waiting:
        asyncio.get_running_loop().call_later(FLUSH_SECONDS, flush)
    _waiting.append(_line(fields))


def flush() -> None:
    """Write what is waiting."""
    lines = b"".join(_waiting)
    _waiting.clear()
    sys.stderr.write(lines.decode())
    sys.stderr.flush()


def _line(fields: dict[str, Any]) -> bytes:
    time = {"time": datetime.now(UTC)}
    return orjson.dumps(time | fields, default=str, option=orjson.OPT_APPEND_NEWLINE)

"""Structured logs: one line of JSON on standard error for each event.

Lines about requests are collected for a tenth of a second and written together: a system call for each of them would
take as long as a prediction.
"""

import asyncio
import contextlib
import sys
import threading
import time
from functools import lru_cache
from typing import Any

from orjson import OPT_APPEND_NEWLINE, dumps

FLUSH_SECONDS = 0.1
MAX_PATH = 200
_REQUEST = (
    b'{"time":"%b","level":"info","event":"request","request":"%b","method":%b,"path":%b,"status":%d,"ms":%.3f,'
    b'"rows":%d,"model":%b}\n'
)
_waiting: list[bytes] = []
_flush_is_due = False
_writing = threading.Lock()  # models are reloaded in threads, which write events of their own


def log(level: str, event: str, **fields: Any) -> None:
    """Write one event at once, with further fields in plain values; the level is info, warning or error."""
    line = {"time": _now().decode(), "level": level, "event": event, **fields}
    _waiting.append(dumps(line, default=str, option=OPT_APPEND_NEWLINE))
    flush()


def log_request(request: str, method: str, path: str, status: int, ms: float, rows: int, model: str) -> None:
    """Write the line of a request, within a tenth of a second; only to be called in a running event loop."""
    global _flush_is_due
    if not _flush_is_due:
        _flush_is_due = True
        asyncio.get_running_loop().call_later(FLUSH_SECONDS, flush)
    words = dumps(method), dumps(path[:MAX_PATH]), status, ms, rows, dumps(model)
    _waiting.append(_REQUEST % (_now(), request.encode(), *words))


def flush() -> None:
    """Write all waiting lines. If standard error is closed, the service goes on without a log."""
    global _flush_is_due
    _flush_is_due = False
    with _writing, contextlib.suppress(OSError, ValueError):
        n_lines = len(_waiting)  # another thread may add to them
        lines = b"".join(_waiting[:n_lines])
        del _waiting[:n_lines]
        sys.stderr.write(lines.decode())
        sys.stderr.flush()


def _now() -> bytes:
    """The time as ISO 8601 in UTC."""
    second, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return b"%b.%06d+00:00" % (_written(second), nanoseconds // 1000)


@lru_cache(maxsize=1)  # date, hour, minute and second are the same for thousands of requests
def _written(second: int) -> bytes:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)).encode()

"""Limits of connections: bytes and time of headers, number of connections, and how one is closed during a request.

uvicorn limits none of these for its fast parser, and servers that have some of the limits take 1.5 to 3.7 times the CPU
time for a request of one row, see ``docs/deployment.md``. So its class of connections has a few lines more here.
"""

import asyncio
import contextlib
from collections import Counter
from types import SimpleNamespace
from typing import Any

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from skldl.serve._errors import RequestError, error_body
from skldl.serve._logs import log

MAX_HEADER_BYTES = 2**16
"""Most bytes of headers, as in Node and hypercorn within a factor of four; one read of the event loop comes on top."""
LINGER_SECONDS = 5.0
"""Time for a client to read an answer that came before the end of its body, as in nginx between two reads."""
LINGER_BYTES = 2**27
"""Most bytes that are ignored in this time: four times the largest body."""
MORE_CONNECTIONS = 448
"""Connections besides those of requests that run: idle ones, and those for ``/health``; chosen by hand."""
OTHER_FILES = 64
"""File descriptors that are kept for model files, logs and libraries; chosen by hand."""


class Connections:
    """The limits that all connections share, and how many were closed because of them since the last log line.

    Parameters
    ----------
    seconds : float
        Maximum time from the first byte of a request, or from the connection, to the end of its headers.
    concurrent : int
        Requests that run at the same time.
    """

    def __init__(self, seconds: float, concurrent: int) -> None:
        self.seconds = seconds
        self.maximum = concurrent + MORE_CONNECTIONS
        with contextlib.suppress(ModuleNotFoundError):  # Windows, which has no such limit
            import resource

            files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            if files != resource.RLIM_INFINITY:
                self.maximum = max(1, min(self.maximum, files - OTHER_FILES))
        self.closed: Counter[str] = Counter()

    def check(self, connections: set[Any]) -> None:
        """Close the connections whose headers are late, and log how many were closed; called once a second."""
        for connection in list(connections):
            if isinstance(connection, Connection):
                connection.check_time(self.seconds)
        if self.closed:
            log("warning", "connections closed", reasons=dict(self.closed))
            self.closed.clear()


class Connection(HttpToolsProtocol):
    """A connection of uvicorn with limits.

    Beyond the maximum number of connections, the one that has been without a running request for the longest time is
    closed for a new one: idle connections never keep others out, and ``/health`` needs no port of its own.
    """

    def __init__(self, *args: Any, limits: Connections, **options: Any) -> None:
        super().__init__(*args, **options)
        self._limits = limits
        self._idle_since = self.loop.time()
        self._headers_since: float | None = self._idle_since
        self._n_waiting = 0  # bytes that are part of neither complete headers nor a body
        self._lingers, self._n_ignored = False, 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._gently: Any = SimpleNamespace(
            write=transport.write, is_closing=transport.is_closing, close=self._let_client_finish
        )
        if len(self.connections) > self._limits.maximum:
            others = (other for other in self.connections if isinstance(other, Connection) and other.is_idle())
            oldest = min(others, key=lambda other: other._idle_since)
            self._limits.closed[f"more than {self._limits.maximum} connections"] += 1
            self.connections.discard(oldest)  # its connection_lost is called later
            oldest.transport.abort()

    def is_idle(self) -> bool:
        """Whether no request runs."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        if self._lingers:
            self._n_ignored += len(data)
            if self._n_ignored > LINGER_BYTES:
                self.transport.abort()
            return
        self._n_waiting += len(data)
        super().data_received(data)
        if self._n_waiting > MAX_HEADER_BYTES:
            self._reject(431, f"The headers have more than {MAX_HEADER_BYTES:,} bytes.", "headers too large")

    def check_time(self, seconds: float) -> None:
        """Close the connection if its headers have not come within so many seconds, or if it was idle for too long."""
        if self._lingers or not self.is_idle():
            return
        now = self.loop.time()
        if self._headers_since is None and now - self._idle_since > self.timeout_keep_alive:
            self.transport.close()
        if (
            self._n_waiting and self._headers_since is None
        ):  # here, since asking for the time of each request costs more
            self._headers_since = now
        if self._headers_since is not None and now - self._headers_since > seconds:
            self._reject(408, f"The headers took more than {seconds:g} seconds.", "no complete headers in time")

    def on_headers_complete(self) -> None:
        self._n_waiting, self._headers_since = 0, None
        super().on_headers_complete()
        # until the body is complete: an answer before that ends the connection
        self._keeps_alive, self.cycle.keep_alive = self.cycle.keep_alive, False
        self.cycle.transport = self._gently

    def on_body(self, body: bytes) -> None:
        self._n_waiting = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._n_waiting = 0
        self.cycle.keep_alive, self.cycle.transport = self._keeps_alive, self.transport
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
        else:  # without its timer for each request, which takes longer than all limits here: check_time closes
            self.server_state.total_requests += 1
            self.flow.resume_reading()

    def _reject(self, status: int, message: str, reason: str) -> None:
        self._limits.closed[reason] += 1
        self._headers_since = None
        if not self.is_idle() or self.transport.is_closing():  # in the middle of an answer
            self.transport.abort()
            return
        body = orjson.dumps(error_body(RequestError(status, message)))
        head = b"content-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
        self.transport.write(STATUS_LINE[status] + head + body)
        self._let_client_finish()

    def _let_client_finish(self) -> None:
        """Close for writing, and ignore what still comes: closing at once would reset the connection.

        The client would then lose the answer that it has not read.
        """
        if self._lingers or self.transport.is_closing():
            return
        self._lingers = True
        self.transport.write_eof()
        self.flow.resume_reading()
        self.loop.call_later(LINGER_SECONDS, self.transport.abort)

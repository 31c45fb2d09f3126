"""The server process: address, signals, and a shutdown that completes all running requests."""

import asyncio
import contextlib
import gc
import ipaddress
import logging
import signal
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from skldl.exceptions import Parameter, ParameterError
from skldl.serve._connections import Connection, Connections
from skldl.serve._logs import flush, log
from skldl.serve._service import Service

MIN_KEY_LENGTH = 16
DRAIN_SECONDS = 3.0
"""Time for clients to close idle connections when the service ends; chosen by hand."""
KEEP_ALIVE_SECONDS = 30
GC_THRESHOLD = 10_000
"""New objects before the garbage collector runs: each request creates hundreds, and none in cycles."""


def check_address(host: str, key: str, *, no_key: bool) -> None:
    """Raise an error for an address that others can reach without a key, and for keys that are too short.

    Parameters
    ----------
    host : str
        Address to listen at.
    key : str
        The key; empty for none.
    no_key : bool
        Whether the user disabled the key.

    Examples
    --------
    >>> from skldl.serve import check_address
    >>> check_address("127.0.0.1", "", no_key=False)
    """
    if key and len(key) < MIN_KEY_LENGTH:
        raise ParameterError(
            f"SKLDL_API_KEY has {len(key)} characters, fewer than {MIN_KEY_LENGTH}. Make one: "
            "python -c 'import secrets; print(secrets.token_urlsafe())'"
        )
    if not key and not no_key and not is_local(host):
        raise ParameterError(
            Parameter("host", host),
            " can be reached by others, and there is no key. Set the environment variable SKLDL_API_KEY, or use ",
            Parameter("no_key", True),
            " if the service is protected in another way.",
        )


def is_local(host: str) -> bool:
    """Return whether an address can be reached from this computer only.

    Examples
    --------
    >>> is_local("127.0.0.1"), is_local("localhost"), is_local("0.0.0.0"), is_local("::1")
    (True, True, False, True)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


class _AsEvents(logging.Handler):
    """Logging handler that writes messages of uvicorn and other packages to the log of the service."""

    def emit(self, record: logging.LogRecord) -> None:
        log(record.levelname.lower(), "server", message=record.getMessage())


class _Server(uvicorn.Server):
    """Server of uvicorn that reloads on SIGHUP and completes running requests before it ends."""

    def __init__(self, config: uvicorn.Config, service: Service, connections: Connections) -> None:
        super().__init__(config)
        self.should_exit: bool = False
        self._service, self._connections = service, connections
        self._reloads: set[asyncio.Task[Any]] = set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        handlers: dict[Any, Any] = {signal.SIGINT: self._stop, signal.SIGTERM: self._stop}
        if hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = self._reload
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    def _stop(self) -> None:
        if self.should_exit:  # asked twice
            self.force_exit = True
        self.should_exit = True
        for server in self.servers:  # before answers ask clients to open a new connection
            server.close()
        self._service.draining = True

    def _reload(self) -> None:
        task = asyncio.get_running_loop().create_task(self._service.reload())
        self._reloads.add(task)
        task.add_done_callback(self._reloads.discard)

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets=sockets)
        if self.started:
            for server in self.servers:
                for listener in server.sockets:
                    host, port = listener.getsockname()[:2]
                    log("info", "listening", url=f"http://{f'[{host}]' if ':' in host else host}:{port}")

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:  # every second
            self._connections.check(self.server_state.connections)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: Any = None) -> None:
        """Accept no new connections, and complete the requests of the open ones, with ``Connection: close``."""
        log("info", "draining", connections=len(self.server_state.connections))
        for server in self.servers:
            server.close()
        end = asyncio.get_running_loop().time() + DRAIN_SECONDS
        while self.server_state.connections and asyncio.get_running_loop().time() < end and not self.force_exit:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets=sockets)
        log("info", "stopped")


def run_server(app: ASGIApp, service: Service, *, host: str, port: int) -> bool:
    """Serve until SIGTERM or SIGINT; SIGHUP reads the model files again.

    Parameters
    ----------
    app : callable
        The application.
    service : Service
        Its state.
    host : str
        Address to listen at.
    port : int
        Port; 0 takes a free one, which the log names.

    Returns
    -------
    bool
        Whether the service had started; False if the address could not be taken.

    Examples
    --------
    >>> import socket
    >>> import tempfile
    >>> from pathlib import Path
    >>> import pandas as pd
    >>> import skldl
    >>> from skldl.serve import Service, make_app, run_server
    >>> from skldl.tabular import fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> fitted = fit_table(table, ["no", "yes"], model="sa-bfgs")
    >>> with tempfile.TemporaryDirectory() as folder, socket.socket() as other:
    ...     path = Path(folder) / "model.skldl"
    ...     _ = skldl.save(fitted.model, path, description=fitted.description)
    ...     service = Service({"moods": path})
    ...     other.bind(("127.0.0.1", 0))  # the port is in use, so that the example ends
    ...     other.listen()
    ...     started = run_server(make_app(service), service, host="127.0.0.1", port=other.getsockname()[1])
    >>> started
    False
    """
    connections = Connections(service.limits.seconds, service.limits.concurrent)
    protocol: Any = partial(Connection, limits=connections)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=False,  # nothing here uses the address of the client
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(service.limits.seconds) + 1,
    )
    gc.collect()
    gc.freeze()  # models and libraries stay in memory: the collector skips them from now on
    gc.set_threshold(GC_THRESHOLD, 10, 10)
    server = _Server(config, service, connections)
    try:
        with _messages_as_events():
            server.run()
    except SystemExit:  # uvicorn could not listen
        return False
    finally:
        service.close()
        flush()
    return True


@contextlib.contextmanager
def _messages_as_events() -> Iterator[None]:
    """Log messages and warnings of all packages as JSON: programs that read the log fail at lines of plain text."""
    root, handler = logging.getLogger(), _AsEvents(logging.WARNING)
    root.addHandler(handler)
    logging.captureWarnings(True)
    try:
        yield
    finally:
        logging.captureWarnings(False)
        root.removeHandler(handler)

"""Many headers, connections and bytes against the service as a process: each is limited, and others are served."""

import contextlib
import http.client
import importlib.util
import itertools
import json
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("httptools")

_spec = importlib.util.spec_from_file_location("test_process", Path(__file__).parents[1] / "serve" / "test_process.py")
_process = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_process)

pytestmark = pytest.mark.slow
POST = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
MIB = 2**20


@pytest.fixture(scope="module")
def service(faces_model):
    """Port and log of a service whose requests take at most a second and a mebibyte."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 4096 if before[1] == resource.RLIM_INFINITY else min(4096, before[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], most), before[1]))
    with _process.running(faces_model, "--timeout", "1", "--max-body", "1") as (_, port, lines):
        yield port, lines
        assert health(port) == 200
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def health(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
        return answer.status


@contextlib.contextmanager
def connections(port, number):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10)) for _ in range(number)]


def sent_until_closed(connection, pieces, seconds=20):
    """Bytes that could be sent before the service closed the connection."""
    n_bytes, end = 0, time.monotonic() + seconds
    with contextlib.suppress(ConnectionError):
        for piece in pieces:
            assert time.monotonic() < end, f"still open after {n_bytes / MIB:.0f} MiB"
            connection.sendall(piece)
            n_bytes += len(piece)
    return n_bytes


@pytest.mark.parametrize("piece", [b"X-%d: a\r\n" * 10_000, b"a" * 100_000], ids=["many", "long"])
def test_headers_without_end(service, piece):
    with connections(service[0], 1) as (connection,):
        connection.sendall(POST + b"X: " + piece)
        assert connection.recv(100).startswith(b"HTTP/1.1 431")
        assert sent_until_closed(connection, itertools.repeat(piece)) < 256 * MIB


@pytest.mark.parametrize("rest", [b"0\r\nX: ", b"2;"], ids=["trailers", "extension of a chunk"])
def test_what_follows_headers_without_end(service, rest):
    with connections(service[0], 1) as (connection,):
        connection.sendall(CHUNKED + b"2\r\n[]\r\n" + rest)
        assert sent_until_closed(connection, itertools.repeat(b"a" * 10_000)) < 16 * MIB


def test_slow_headers_and_idle_connections_are_closed(service):
    with connections(service[0], 100) as slow:
        for second in range(4):
            for connection in slow[: 50 * (second < 2)]:
                connection.sendall(POST if second == 0 else b"X: a\r\n")
            time.sleep(1)
        assert {connection.recv(12) for connection in slow} == {b"HTTP/1.1 408"}


def test_idle_connections_keep_nobody_out(service):
    port, lines = service
    with connections(port, 600), contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=5)) as other:
        assert health(port) == 200
        assert _process.ask(other, {"age": 31, "town": "Ulm", "smoker": "no"})[0] == 200
    end = time.monotonic() + 10
    while not any("more than 512 connections" in line.get("reasons", ()) for line in list(lines)):
        assert time.monotonic() < end, lines[-5:]
        time.sleep(0.1)


def test_a_client_that_sends_too_much_reads_why(service):
    request = urllib.request.Request(  # which asks to close the connection
        f"http://127.0.0.1:{service[0]}/predict", b" " * 33 * MIB, {"Content-Type": "application/json"}
    )
    for _ in range(3):
        with pytest.raises(urllib.error.HTTPError) as rejected:
            urllib.request.urlopen(request, timeout=20)
        assert rejected.value.code == 413
        assert "1,048,576 bytes" in json.load(rejected.value)["error"]["message"]


def test_a_body_without_end_is_not_read_on(service):
    with connections(service[0], 1) as (connection,):
        connection.sendall(CHUNKED)
        assert sent_until_closed(connection, itertools.repeat(b"10000\r\n" + b"a" * 2**16 + b"\r\n")) < 256 * MIB


def test_a_body_that_trickles_on_after_the_answer(service):
    with connections(service[0], 1) as (connection,):
        connection.sendall(POST.replace(b"/predict", b"/nowhere") + b"Content-Length: 1000\r\n\r\n")
        assert connection.recv(12) == b"HTTP/1.1 404"
        assert sent_until_closed(connection, (time.sleep(0.1) or b"a" for _ in range(200))) < 100

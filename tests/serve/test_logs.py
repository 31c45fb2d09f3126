"""Lines of the log: JSON in every case, in the order of events, none lost when the service ends."""

import asyncio
import json
import logging
import sys
import threading
import time
import warnings
from datetime import UTC, datetime

import pytest

from skldl.serve import _logs, _server


@pytest.fixture(autouse=True)
def nothing_waits():
    _logs._waiting.clear()
    yield
    assert not _logs._waiting


async def ask(*requests):
    for request in requests:
        _logs.log_request(*request)


def test_each_request_is_a_line_of_json(capsys):
    odd = 'a"b\\c\n\x00é😀'
    asyncio.run(ask(("ab-1", "POST", "/predict", 200, 1.23456, 7, "faces"), ("ab-2", odd, "/" + odd, 404, 0.0, 0, odd)))
    assert capsys.readouterr().err == ""  # they wait for each other
    _logs.flush()
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    written = datetime.fromisoformat(first.pop("time"))
    assert written.tzinfo == UTC
    assert abs((datetime.now(UTC) - written).total_seconds()) < 60
    assert first == {
        "level": "info",
        "event": "request",
        "request": "ab-1",
        "method": "POST",
        "path": "/predict",
        "status": 200,
        "ms": 1.235,
        "rows": 7,
        "model": "faces",
    }
    assert (second["method"], second["path"], second["model"]) == (odd, "/" + odd, odd)


def test_a_long_path_is_cut(capsys):
    asyncio.run(ask(("ab-1", "GET", "/" + "é" * 5000, 404, 1.0, 0, "")))
    _logs.flush()
    assert len(json.loads(capsys.readouterr().err)["path"]) == _logs.MAX_PATH


def test_lines_are_written_within_a_moment_and_before_a_later_event(capsys):
    async def serve():
        _logs.log_request("ab-1", "GET", "/", 200, 1.0, 0, "")
        await asyncio.sleep(3 * _logs.FLUSH_SECONDS)
        written = capsys.readouterr().err
        _logs.log_request("ab-2", "GET", "/", 200, 1.0, 0, "")
        _logs.log("info", "stopped", path=object)
        return written

    assert '"ab-1"' in asyncio.run(serve())
    events = [json.loads(line)["event"] for line in capsys.readouterr().err.splitlines()]
    assert events == ["request", "stopped"]


def test_times_have_microseconds_and_follow_the_clock(monkeypatch, capsys):
    for nanoseconds, text in (
        (1_700_000_000_000_001_999, "2023-11-14T22:13:20.000001+00:00"),
        (1_700_000_000_999_999_999, "2023-11-14T22:13:20.999999+00:00"),
        (1_700_000_001_000_000_000, "2023-11-14T22:13:21.000000+00:00"),
    ):
        monkeypatch.setattr("time.time_ns", lambda value=nanoseconds: value)
        _logs.log("info", "reloaded")
        assert json.loads(capsys.readouterr().err)["time"] == text


@pytest.mark.parametrize("error", [BrokenPipeError, ValueError])
def test_a_closed_log_does_not_end_the_service(monkeypatch, error):
    class Closed:
        def write(self, text):
            raise error

    monkeypatch.setattr(sys, "stderr", Closed())
    _logs.log("info", "reloaded")


def test_events_of_several_threads_are_whole_lines(monkeypatch):
    written = []

    class Slow:
        """A stream that other threads can come between."""

        def write(self, text):
            for letter in text:
                written.append(letter)
                if letter == ",":
                    time.sleep(1e-5)

        def flush(self):
            pass

    monkeypatch.setattr(sys, "stderr", Slow())
    threads = [
        threading.Thread(target=lambda: [_logs.log("info", "reloaded", part=part) for part in range(50)]) for _ in "ab"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = "".join(written).splitlines()
    assert sorted(json.loads(line)["part"] for line in lines) == sorted([*range(50), *range(50)])


def test_messages_of_other_packages_are_events(capsys):
    with warnings.catch_warnings(), _server._messages_as_events():
        warnings.simplefilter("always")
        logging.getLogger("asyncio").warning("socket.send() raised exception.")
        warnings.warn("a column is empty", UserWarning, stacklevel=1)
    first, second = map(json.loads, capsys.readouterr().err.splitlines())
    assert (first["level"], first["event"], first["message"]) == (
        "warning",
        "server",
        "socket.send() raised exception.",
    )
    assert "a column is empty" in second["message"]

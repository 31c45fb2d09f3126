"""Lines of the log: JSON in every case, in the order of events, none lost when the service ends."""

import asyncio
import gc
import json
import logging
import sys
import threading
import time
import warnings
from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from skldl.serve import Service, make_app, run_server


@pytest.fixture
def service(faces_model):
    service = Service({"faces": faces_model})
    yield service
    service.close()


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_each_request_is_a_line_of_json(make_client, rows, capsys):
    odd = 'a"b\\c\n\x00é😀'
    with make_client(log_requests=True) as client:  # one event loop for all
        client.post("/predict", json=rows[:7])
        client.get("/" + quote(odd))
        client.get("/" + "é" * 5000)
        time.sleep(0.5)  # lines wait for each other for a tenth of a second
        first, second, third = lines(capsys)
    written = datetime.fromisoformat(first.pop("time"))
    assert written.tzinfo == UTC
    assert abs((datetime.now(UTC) - written).total_seconds()) < 60
    assert first.pop("ms") > 0
    assert first.pop("request") == second["request"].replace("-2", "-1")
    assert first == {
        "level": "info",
        "event": "request",
        "method": "POST",
        "path": "/predict",
        "status": 200,
        "rows": 7,
        "model": "faces",
    }
    assert (second["method"], second["path"], second["status"]) == ("GET", "/" + odd, 404)
    assert third["path"] == "/" + "é" * 199


def test_lines_that_wait_are_written_before_a_later_event(make_client, capsys):
    with make_client(log_requests=True) as client:
        client.get("/health")
        client.portal.call(client.service.reload)
        assert [line["event"] for line in lines(capsys)] == ["request", "reloaded"]


def test_times_have_microseconds_and_follow_the_clock(service, monkeypatch, capsys):
    for nanoseconds, text in (
        (1_700_000_000_000_001_999, "2023-11-14T22:13:20.000001+00:00"),
        (1_700_000_000_999_999_999, "2023-11-14T22:13:20.999999+00:00"),
        (1_700_000_001_000_000_000, "2023-11-14T22:13:21.000000+00:00"),
    ):
        monkeypatch.setattr("time.time_ns", lambda value=nanoseconds: value)
        asyncio.run(service.reload())
        assert lines(capsys)[0]["time"] == text


@pytest.mark.parametrize("error", [BrokenPipeError, ValueError])
def test_a_closed_log_does_not_end_the_service(service, monkeypatch, error):
    class Closed:
        def write(self, text):
            raise error

    monkeypatch.setattr(sys, "stderr", Closed())
    assert asyncio.run(service.reload())


def test_events_of_several_threads_are_whole_lines(faces_model, monkeypatch):
    written = []

    class Slow:
        """A stream that other threads can come between."""

        def write(self, text):
            for letter in text:
                written.append(letter)
                if letter == ",":
                    time.sleep(1e-3)

        def flush(self):
            pass

    services = [Service({name: faces_model}) for name in "ab"]
    monkeypatch.setattr(sys, "stderr", Slow())
    threads = [
        threading.Thread(target=lambda one=one: [asyncio.run(one.reload()) for _ in range(10)]) for one in services
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in services:
        one.close()
    names = [next(iter(json.loads(line)["models"])) for line in "".join(written).splitlines()]
    assert sorted(names) == [*"a" * 10, *"b" * 10]


def test_messages_of_other_packages_are_events(service, monkeypatch, capsys):
    def run(server):
        logging.getLogger("asyncio").warning("socket.send() raised exception.")
        warnings.warn("a column is empty", UserWarning, stacklevel=1)

    monkeypatch.setattr("uvicorn.Server.run", run)
    threshold = gc.get_threshold()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            assert run_server(make_app(service), service, host="127.0.0.1", port=0)
    finally:  # the server changes them for its process
        gc.unfreeze()
        gc.set_threshold(*threshold)
    first, second = lines(capsys)
    assert (first["level"], first["event"]) == ("warning", "server")
    assert first["message"] == "socket.send() raised exception."
    assert "a column is empty" in second["message"]

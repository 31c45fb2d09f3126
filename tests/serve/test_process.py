"""The service as a real process: addresses, signals, logs; no request is lost when it reloads or ends."""

import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from skldl.serve import Service, check_address

SKLDL = [sys.executable, "-m", "skldl"]


@contextlib.contextmanager
def running(*arguments, key=""):
    """A service on a free port; gives the process, the port and the lines of its log."""
    environment = {**os.environ, "SKLDL_API_KEY": key}
    process = subprocess.Popen(
        [*SKLDL, "serve", *map(str, arguments), "--port", "0"], stderr=subprocess.PIPE, text=True, env=environment
    )
    lines = []
    try:
        for line in process.stderr:
            lines.append(json.loads(line))
            if lines[-1]["event"] == "listening":
                break
        reader = threading.Thread(target=lambda: lines.extend(map(json.loads, process.stderr)))
        reader.start()
        yield process, int(lines[-1]["url"].rpartition(":")[2]), lines
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=60)
        reader.join(timeout=60)
        process.stderr.close()


def ask(connection, row):
    connection.request("POST", "/predict", json.dumps([row]), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read(), answer.getheader("connection")


class Caller(threading.Thread):
    """Asks over and over on connections that it keeps, until the service takes no more."""

    def __init__(self, port, row):
        super().__init__()
        self._port, self._row = port, row
        self.answers, self.lost, self.go_on = [], [], True

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        while self.go_on:
            try:
                connection.connect()
            except ConnectionRefusedError:
                return  # it has ended: nothing was sent
            closing = None
            while self.go_on and closing != "close":
                try:
                    status, content, closing = ask(connection, self._row)
                except (OSError, http.client.HTTPException) as error:
                    self.lost.append(repr(error))
                    return
                self.answers.append((status, content))
            connection.close()


def call_while(port, row, events):
    callers = [Caller(port, row) for _ in range(4)]
    for caller in callers:
        caller.start()
    time.sleep(0.5)
    events()
    for caller in callers:
        caller.go_on = False
        caller.join(timeout=60)
    return callers


@pytest.mark.slow
def test_a_reload_and_the_end_lose_no_request(faces, faces_model, numbers_model, tmp_path, rows):
    path = tmp_path / "model.skldl"
    path.write_bytes(faces_model.read_bytes())
    with running(path) as (process, port, lines):

        def events():
            path.write_bytes(b"no model")
            process.send_signal(signal.SIGHUP)
            wait_for(lines, "reload failed")
            path.write_bytes(faces_model.read_bytes())
            process.send_signal(signal.SIGHUP)
            wait_for(lines, "reloaded")
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 0

        callers = call_while(port, rows[0], events)
    assert [caller.lost for caller in callers] == [[], [], [], []]
    answers = [answer for caller in callers for answer in caller.answers]
    assert len(answers) > 20
    assert len(set(answers)) == 1
    assert answers[0][0] == 200
    assert [line["event"] for line in lines if line["event"] != "request"][-2:] == ["draining", "stopped"]
    requests = [line for line in lines if line["event"] == "request"]
    assert len(requests) == len(answers)
    assert {"time", "request", "method", "path", "status", "ms", "rows", "model"} <= requests[0].keys()


def wait_for(lines, event):
    end = time.monotonic() + 60
    while not any(line["event"] == event for line in lines):
        assert time.monotonic() < end, event
        time.sleep(0.05)


@pytest.mark.slow
def test_what_runs_is_finished_before_the_end(faces_model, rows):
    with running(faces_model) as (process, port, lines):
        body = json.dumps(rows[:1]).encode()
        with socket.create_connection(("127.0.0.1", port), timeout=30) as half:
            head = f"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            half.sendall(head + body[:10])
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
            wait_for(lines, "draining")
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
            half.sendall(body[10:])
            assert half.recv(100).startswith(b"HTTP/1.1 200")
        assert process.wait(timeout=60) == 0


def test_a_reload_keeps_the_models_if_a_file_is_broken(faces_model, numbers_model, tmp_path, capsys):
    path = tmp_path / "model.skldl"
    path.write_bytes(faces_model.read_bytes())
    service = Service({"model": path})
    before = service.models["model"]
    path.write_bytes(b"no model")
    assert not asyncio.run(service.reload())
    assert service.models["model"] is before
    path.write_bytes(numbers_model.read_bytes())
    assert asyncio.run(service.reload())
    assert service.models["model"].labels == ["1", "2", "3"]
    service.close()
    failed, done = map(json.loads, capsys.readouterr().err.splitlines())
    assert (failed["event"], done["event"]) == ("reload failed", "reloaded")
    assert "not a model file" in failed["message"]
    text = service.metrics.text()
    assert 'skldl_reloads_total{result="failed"} 1' in text
    assert 'skldl_reloads_total{result="ok"} 1' in text


@pytest.mark.slow
def test_a_key_from_the_environment(faces_model, rows):
    with running(faces_model, "--quiet", key="0123456789abcdef") as (_, port, lines):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        assert ask(connection, rows[0])[0] == 401
        connection.request("POST", "/predict", json.dumps(rows[:1]), {"Authorization": "Bearer 0123456789abcdef"})
        assert connection.getresponse().status == 200
        connection.close()
    assert not [line for line in lines if line["event"] == "request"]


def rejected(*arguments, key=""):
    environment = {**os.environ, "SKLDL_API_KEY": key}
    done = subprocess.run(
        [*SKLDL, "serve", *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.slow
def test_a_port_that_is_taken(faces_model):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "cannot be taken" in rejected(faces_model, "--port", taken.getsockname()[1])


def test_addresses_that_others_reach_need_a_key():
    from skldl.exceptions import ParameterError

    check_address("127.0.0.1", "", no_key=False)
    check_address("0.0.0.0", "0123456789abcdef", no_key=False)
    check_address("0.0.0.0", "", no_key=True)
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"):
        with pytest.raises(ParameterError, match="SKLDL_API_KEY"):
            check_address(host, "", no_key=False)
    with pytest.raises(ParameterError, match="fewer than 16"):
        check_address("127.0.0.1", "short", no_key=False)


def test_mistakes_on_the_command_line(cli, tmp_path, faces_model):
    for arguments, message in (
        ([], "Name a model file"),
        ([str(tmp_path / "none.skldl")], "none.skldl"),
        (["--model", "faces"], "write name=path"),
        ([str(faces_model), "--model", f"faces={faces_model}"], "Two models are called"),
        ([str(faces_model), "--host", "0.0.0.0"], "SKLDL_API_KEY"),
        ([str(faces_model), "--max-rows", "0"], "Must be > 0"),
    ):
        assert message in cli(["serve", *arguments], status=2).err

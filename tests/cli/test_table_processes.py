"""The commands as real processes: pipes, terminals, kills, and memory that does not grow."""

import os
import pty
import signal
import subprocess
import sys
import time
import tracemalloc
from glob import glob

import numpy as np
import pandas as pd
import pytest

import skldl
from skldl.data import TableFile

SKLDL = [sys.executable, "-m", "skldl"]
LABELS = ["emo_joy", "emo_anger", "emo_fear"]


@pytest.fixture
def here(tmp_path, monkeypatch, faces, faces_model):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "faces.skldl").write_bytes(faces_model.read_bytes())
    faces.to_csv("faces.csv", index=False)
    return tmp_path


def many_rows(faces, path, n_rows):
    """Write a table piece by piece, so that this process stays small too."""
    rows = faces.drop(columns=LABELS)
    piece = pd.concat([rows] * 100, ignore_index=True)
    for start in range(0, n_rows, len(piece)):
        piece.head(n_rows - start).to_csv(path, index=False, mode="a" if start else "w", header=not start)


def on_a_terminal(line):
    """Run a command with standard error on a terminal, and return the process with what the terminal got."""
    parent, child = pty.openpty()
    process = subprocess.Popen([*SKLDL, *line.split()], stdout=subprocess.DEVNULL, stderr=child)
    os.close(child)
    seen = b""
    while True:
        try:
            piece = os.read(parent, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        seen += piece
    os.close(parent)
    process.wait(timeout=60)
    return process, seen


@pytest.mark.slow
def test_a_pipe_gets_nothing_but_the_table(here, faces):
    content = faces.drop(columns=LABELS).to_csv(index=False).encode()
    done = subprocess.run([*SKLDL, "predict", "faces.skldl", "-"], input=content, capture_output=True, check=True)
    assert not done.stderr
    assert done.stdout.decode().splitlines()[0] == "emo_joy,emo_anger,emo_fear,top,entropy"
    assert done.stdout.count(b"\n") == 121


@pytest.mark.slow
def test_a_reader_that_stops_early_is_no_error(here, faces):
    many_rows(faces, "long.csv", 40_000)
    process = subprocess.Popen(
        [*SKLDL, "predict", "faces.skldl", "long.csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline().startswith(b"emo_joy")
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 0


@pytest.mark.slow
def test_a_terminal_gets_a_bar(here, faces):
    many_rows(faces, "long.csv", 60_000)
    process, seen = on_a_terminal("predict faces.skldl long.csv --out p.csv")
    assert process.returncode == 0
    assert b"rows" in seen
    assert b"60,000 rows written to p.csv" in seen


def test_fit_on_a_terminal_shows_what_it_does(here, faces):
    """The nested estimate of a small table copied what shows the progress, a terminal with its lock, and failed."""
    faces.head(30).to_csv("few.csv", index=False)
    process, seen = on_a_terminal("fit few.csv --labels emo_* --drop person --out few.skldl")
    assert process.returncode == 0, seen.decode()
    assert b"estimate: the choice without fold 5 of 5" in seen
    assert skldl.load("few.skldl").predict(faces).shape == (len(faces), 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "how"),
    [
        ("predict", signal.SIGKILL),
        ("predict", signal.SIGTERM),
        pytest.param("predict", signal.SIGINT, marks=pytest.mark.slow),
        ("fit", signal.SIGKILL),
        pytest.param("fit", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("fit", signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_a_kill_leaves_the_old_file(here, faces, command, how):
    """Kill while the new file is half written: what is there afterwards is the old one, whole."""
    target = here / ("old.csv" if command == "predict" else "old.skldl")
    target.write_text("old")
    os.mkfifo("slow.csv")  # a table whose end never comes
    wanted = {
        "predict": ["predict", "faces.skldl", "slow.csv", "--out", target.name, "--overwrite"],
        "fit": ["fit", "slow.csv", "--labels", "emo_*", "--out", target.name, "--overwrite"],
    }[command]
    process = subprocess.Popen(
        [*SKLDL, *wanted],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a job in the background ignores it
    )
    piece = pd.concat([faces] * 200).to_csv(index=False).encode()
    with open("slow.csv", "wb") as stream:
        stream.write(piece)  # more than a pipe holds: the process reads by now
        stream.flush()
        wait_for(lambda: command == "fit" or is_writing(process, here))
        wait_for(lambda: ended(process, how))
        status = process.wait()
    reported = process.stderr.read()
    process.stderr.close()
    assert status in {signal.SIGKILL: [-9], signal.SIGTERM: [143], signal.SIGINT: [130, -2]}[how]
    assert target.read_text() == "old"
    assert b"Traceback" not in reported
    if how != signal.SIGKILL or hasattr(os, "O_TMPFILE"):
        assert not [file for file in here.iterdir() if file.suffix == ".part"]


def is_writing(process, here):
    """Whether a process has an unfinished file, which has no name on Linux."""
    handles = glob(f"/proc/{process.pid}/fd/*")
    without_name = any(os.path.realpath(handle).startswith(f"{here}/#") for handle in handles)
    return without_name or any(file.suffix == ".part" for file in here.iterdir())


def ended(process, how):
    """Send the signal, again if it was lost on the way, as a person presses Ctrl-C again."""
    process.send_signal(how)
    time.sleep(0.2)
    return process.poll() is not None


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the process did not come so far"
        time.sleep(0.02)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(here, faces, cli):
    """Three chunks take what one takes; the slow test below sees the whole process."""
    peaks = []
    for n_rows in (20_000, 60_000):
        many_rows(faces, "rows.csv", n_rows)
        tracemalloc.start()
        try:
            cli(["predict", "faces.skldl", "rows.csv", "--out", "p.csv", "--overwrite"])
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.4 * peaks[0]


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_million_rows(here, faces, ending, peak_memory):
    many_rows(faces, "small.csv", 10_000)
    many_rows(faces, "million.csv", 1_000_000)
    digits = ["--digits", "17"]  # all of them, so that the rows below sum to one
    small = peak_memory(["predict", "faces.skldl", "small.csv", "--out", f"s.{ending}", *digits])
    large = peak_memory(["predict", "faces.skldl", "million.csv", "--out", f"p.{ending}", *digits])
    assert large < small + 60
    rows = 0
    for chunk in TableFile(f"p.{ending}").chunks():
        np.testing.assert_allclose(chunk[LABELS].astype(float).sum(axis=1), 1)
        rows += len(chunk)
    assert rows == 1_000_000


@pytest.mark.slow
def test_fit_chooses_on_a_hundred_thousand_rows(here, faces, cli):
    generator = np.random.default_rng(0)
    table = faces.iloc[generator.integers(len(faces), size=100_000)]
    table.assign(age=table["age"] + generator.normal(0, 1, len(table))).to_parquet("large.parquet")
    cli(["fit", "large.parquet", "--labels", "emo_*", "--drop", "person", "--out", "m.skldl"])
    about = skldl.persistence.inspect("m.skldl")["description"]
    assert (about["rows"], about["score"]["rows"]) == (100_000, 5000)


def test_the_rows_that_are_done_are_shown_unless_the_result_is(here, monkeypatch, cli):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert "120 rows" in cli("predict faces.skldl faces.csv --out p.csv").err.replace("120 rows written", "")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "rows" not in cli("predict faces.skldl faces.csv").err

"""Chunks in several processes: order, errors, ends; and predictions that do not depend on the number of processes."""

import math
import operator
import os
import signal
import subprocess
import sys
import time
import warnings

import pandas as pd
import pytest

from skldl.cli.predict import N_CHUNKS_ALONE, in_order
from skldl.exceptions import DataError

LABELS = ["emo_joy", "emo_anger", "emo_fear"]
SKLDL = [sys.executable, "-m", "skldl"]


def broken(n_good):
    """A source that cannot be read to its end."""
    yield from range(1, n_good + 1)
    raise DataError("the file is damaged here")


def taken(results):
    """What came before an error, and the error."""
    found = []
    try:
        for result in results:
            found.append(result)
    except Exception as error:
        return found, error
    return found, None


def children():
    """Processes that this one has started and that still run."""
    return subprocess.run(
        ["ps", "-ww", "--ppid", str(os.getpid()), "-o", "args="], capture_output=True, text=True
    ).stdout.count("skldl.utils.processes")


def test_results_come_in_order_and_errors_when_it_is_their_turn():
    assert list(in_order(iter(range(1, 8)), operator.neg, 2)) == [-1, -2, -3, -4, -5, -6, -7]
    results, error = taken(in_order(iter([4, 9, 16, -1, 25]), math.sqrt, 2))
    assert results == [2, 3, 4]
    assert isinstance(error, ValueError)
    results, error = taken(in_order(broken(5), math.sqrt, 2))
    assert len(results) == 5
    assert "damaged" in str(error)
    assert children() == 0


def test_one_process_does_the_same():
    results, error = taken(in_order(iter([4, 9, -1, 25]), math.sqrt, 1))
    assert results == [2, 3]
    assert isinstance(error, ValueError)
    assert taken(in_order(broken(1), math.sqrt, 1))[0] == [1]
    assert list(in_order(iter(()), math.sqrt, 3)) == []


def test_by_default_few_chunks_start_no_process(monkeypatch):
    monkeypatch.setattr("skldl.cli.predict.Pool", None)  # to call it would be an error
    assert len(list(in_order(iter(range(N_CHUNKS_ALONE)), math.sqrt, None))) == N_CHUNKS_ALONE


def test_a_process_that_dies_is_an_error():
    """A chunk is the status that the process ends with."""
    results, error = taken(in_order(iter([7, 7, 7]), os._exit, 2))
    assert results == []
    assert isinstance(error, DataError)
    assert "exit status 7" in str(error)
    assert "--jobs" in str(error)


def test_warnings_of_the_processes_are_shown_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")  # so that only in_order can leave repetitions out
        list(in_order(iter(["too small", "too small", "too small"]), warnings.warn, 2))
    assert [str(entry.message) for entry in caught] == ["too small"]


def test_jobs_must_be_one_or_more(tmp_path, cli):
    assert "--jobs" in cli(["predict", "m.skldl", "t.csv", "--jobs", "0"], status=2).err


@pytest.fixture
def long_table(tmp_path, monkeypatch, faces, faces_model):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "faces.skldl").write_bytes(faces_model.read_bytes())
    rows = pd.concat([faces.drop(columns=LABELS)] * 1100, ignore_index=True)
    rows.to_csv("long.csv", index=False)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_output_does_not_depend_on_the_number_of_processes(long_table, tmp_path, monkeypatch, ending, cli):
    monkeypatch.setattr("skldl.cli.predict.N_CHUNKS_ALONE", 3)
    line = ["predict", "faces.skldl", "long.csv", "--keep", "person"]
    for jobs in ("1", "2", "3"):
        cli([*line, "--jobs", jobs, "--out", f"{jobs}.{ending}", "--monitor", f"{jobs}.json"])
    cli([*line, "--out", f"auto.{ending}"])
    first = (tmp_path / f"1.{ending}").read_bytes()
    assert first == (tmp_path / f"2.{ending}").read_bytes() == (tmp_path / f"3.{ending}").read_bytes()
    assert first == (tmp_path / f"auto.{ending}").read_bytes()
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()


@pytest.mark.slow
def test_a_bad_cell_ends_all_processes(long_table, tmp_path, cli):
    long_table.astype(object).assign(age=lambda t: t["age"].where(t.index != 99_999, "old")).to_csv("bad.csv")
    printed = cli(["predict", "faces.skldl", "bad.csv", "--out", "p.csv", "--jobs", "2"], status=2)
    assert "Row 100000 of column 'age' holds 'old'" in printed.err
    assert not (tmp_path / "p.csv").exists()
    assert children() == 0


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_survives_the_first_one(long_table, tmp_path, how):
    """Ctrl-C goes to all processes of a terminal; other signals to the first alone."""
    os.mkfifo("slow.csv")
    process = subprocess.Popen(
        [*SKLDL, "predict", "faces.skldl", "slow.csv", "--out", "p.csv", "--jobs", "2"],
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )

    def workers():
        listed = subprocess.run(
            ["ps", "-ww", "-s", str(process.pid), "-o", "stat=", "-o", "args="], capture_output=True, text=True
        )
        return [
            line for line in listed.stdout.splitlines() if "skldl.utils.processes" in line and not line.startswith("Z")
        ]

    header, _, rows = (tmp_path / "long.csv").read_bytes().partition(b"\n")
    with open("slow.csv", "wb") as stream:
        stream.write(header + b"\n" + rows * (2**25 // len(rows)))  # several blocks of the reader, but not the end
        stream.flush()
        wait_for(lambda: len(workers()) == 2)
        if how == signal.SIGINT:
            os.killpg(process.pid, how)
        else:
            process.send_signal(how)
        status = process.wait(timeout=60)
    printed = process.stderr.read()
    process.stderr.close()
    assert status in {signal.SIGKILL: [-9], signal.SIGTERM: [143], signal.SIGINT: [130]}[how]
    assert b"Traceback" not in printed
    wait_for(lambda: not workers())
    assert not (tmp_path / "p.csv").exists()


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come so far"
        time.sleep(0.05)

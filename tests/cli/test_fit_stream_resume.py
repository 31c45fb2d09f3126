"""`skldl fit --stream` that is stopped: what is kept, and the same command again."""

import fcntl
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

import skldl
from skldl.chunks import FolderJournal
from skldl.cli.fit import digest_of_part
from skldl.persistence import inspect

SKLDL = [sys.executable, "-m", "skldl"]
FIT = "--labels 'r_*' --stream --model sa-bfgs --set alpha=0.001"


def stopped_after(monkeypatch, n_passes):
    """Let the fit be interrupted when so many passes were written."""
    put = FolderJournal.put

    def counted(self, number, key, sums):
        put(self, number, key, sums)
        if number == n_passes:
            raise KeyboardInterrupt

    monkeypatch.setattr(FolderJournal, "put", counted)


@pytest.mark.parametrize("cache", [pytest.param("0", marks=pytest.mark.slow), "1GiB"])
def test_the_same_command_goes_on_after_a_stop(ratings_folder, monkeypatch, cache, ratings, cli):
    line = f"fit parts {FIT} --cache {cache}"
    cli(f"{line} --out whole.skldl")
    with monkeypatch.context() as patched:
        stopped_after(patched, 3)
        printed = cli(f"{line} --out m.skldl", status=130).err
    assert "3 passes are kept in m.skldl.resume" in printed
    assert not (ratings_folder / "m.skldl").exists()
    assert len(list((ratings_folder / "m.skldl.resume").glob("pass-*.npz"))) == 3
    assert "Continuing from m.skldl.resume, which holds 3 passes" in cli(f"{line} --out m.skldl").err
    assert not (ratings_folder / "m.skldl.resume").exists()
    first, second = skldl.load("whole.skldl"), skldl.load("m.skldl")
    assert (first[-1].coef_ == second[-1].coef_).all()
    new = ratings(50, seed=1)
    assert (first.predict(new) == second.predict(new)).all()
    reported = [inspect(file)["description"] for file in ("whole.skldl", "m.skldl")]
    assert reported[0] == reported[1]


def test_a_stop_before_anything_is_kept_leaves_nothing(ratings_folder, monkeypatch, cli):
    def interrupted(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("skldl.tabular._chunked_fit.EncoderFit.end_pass", interrupted)
    before = sorted(ratings_folder.rglob("*"))
    cli(f"fit all.csv {FIT} --out m.skldl", status=130)
    assert sorted(ratings_folder.rglob("*")) == before


def test_the_state_of_another_fit_is_not_used(ratings_folder, monkeypatch, cli):
    with monkeypatch.context() as patched:
        stopped_after(patched, 2)
        cli(f"fit all.csv {FIT} --out m.skldl", status=130)
    assert "held the state of another fit" in cli(f"fit all.csv {FIT} --seed 1 --out m.skldl").err
    assert not (ratings_folder / "m.skldl.resume").exists()
    (ratings_folder / "m.skldl.resume").mkdir()
    with open("m.skldl.resume/lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as another fit does
        assert "Another skldl fit is writing to m.skldl.resume" in cli(f"fit all.csv {FIT} --out m.skldl", status=2).err
    (ratings_folder / "n.skldl.resume").write_text("a file")
    assert "n.skldl.resume is a file" in cli(f"fit all.csv {FIT} --out n.skldl", status=2).err


@pytest.mark.slow
def test_a_table_exchanged_for_one_of_equal_size_and_time(ratings_folder, monkeypatch, cli):
    with monkeypatch.context() as patched:
        stopped_after(patched, 2)
        cli(f"fit all.csv {FIT} --out m.skldl", status=130)
    time_before, content = os.stat("all.csv").st_mtime_ns, (ratings_folder / "all.csv").read_text()
    header, *lines = content.splitlines()
    (ratings_folder / "all.csv").write_text("\n".join([header, *reversed(lines)]) + "\n")
    os.utime("all.csv", ns=(time_before, time_before))
    assert "held the state of another fit" in cli(f"fit all.csv {FIT} --out m.skldl").err


def test_large_files_are_compared_by_part_of_their_content(tmp_path, monkeypatch):
    monkeypatch.setattr("skldl.cli.fit.STAMP_BLOCKS", 4)
    monkeypatch.setattr("skldl.cli.fit.STAMP_BLOCK_BYTES", 10)
    found = set()
    for changed in (None, 5, 27, 53, 79, 99):  # in the first, second, third and fourth block, and at the end
        content = bytearray(b"x" * 100)
        if changed is not None:
            content[changed] = 0
        (tmp_path / "t.csv").write_bytes(content)
        found.add(digest_of_part(str(tmp_path / "t.csv")))
    assert len(found) == 6


def test_a_disk_without_room(ratings_folder, cli):
    """A limit on the size of files stands for a full disk: the cache is given up, the state of a pass is an error."""
    script = (
        "import resource, sys; from skldl.cli import main; limit = int(sys.argv[1]), resource.RLIM_INFINITY; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, limit); sys.exit(main(sys.argv[2:]))"
    )
    command = [sys.executable, "-c", script]
    line = shlex.split(f"fit parts {FIT} --out m.skldl")
    done = subprocess.run([*command, "700", *line], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "The state of the fit cannot be written to m.skldl.resume: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (ratings_folder / "m.skldl").exists()
    cli(f"fit parts {FIT} --out m.skldl")


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come so far"
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("n_passes", [0, 2, 9])
def test_a_kill_and_the_same_command_again(ratings_folder, n_passes, ratings, cli):
    """SIGKILL in the middle of a pass; the result is the same to the last digit as without it."""
    ratings(45_000).to_csv("large.csv", index=False)  # two chunks
    model = "--model sa-bfgs-cv --set alphas=[0.1,0.001]"
    line = shlex.split(f"fit large.csv --labels 'r_*' --stream --memory 620MiB --cache 0 {model}")
    cli([*line, "--out", "whole.skldl"])
    folder = ratings_folder / "m.skldl.resume"
    process = subprocess.Popen([*SKLDL, *line, "--out", "m.skldl"], stderr=subprocess.DEVNULL)
    wait_for(lambda: (folder / "state.json").exists() and len(list(folder.glob("pass-*.npz"))) >= n_passes)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -9
    assert not (ratings_folder / "m.skldl").exists()
    cli([*line, "--out", "m.skldl"])
    assert not folder.exists()
    first, second = skldl.load("whole.skldl"), skldl.load("m.skldl")
    assert (first[-1].coef_ == second[-1].coef_).all()
    assert (first[-1].intercept_ == second[-1].intercept_).all()
    assert inspect("whole.skldl")["description"] == inspect("m.skldl")["description"]

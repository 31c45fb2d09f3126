"""`skldl fit --stream` that is stopped: what is kept, and the same command again."""

import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import skldl
from skldl.cli._app import run
from skldl.cli._resume import ResumeFolder
from skldl.exceptions import DatasetError
from skldl.persistence import inspect

SKLDL = [sys.executable, "-c", "from skldl.cli import main; main()"]
FIT = "--labels 'r_*' --stream --model sa-bfgs --set alpha=0.001"


def call(line):
    return run(shlex.split(line))


def stopped_after(monkeypatch, n_passes):
    """Let the fit be interrupted when so many passes were written."""
    put = ResumeFolder.__init__

    def begin(self, *arguments):
        put(self, *arguments)
        keep = self.journal.put

        def counted(number, key, sums):
            keep(number, key, sums)
            if number == n_passes:
                raise KeyboardInterrupt

        self.journal.put = counted

    monkeypatch.setattr(ResumeFolder, "__init__", begin)


@pytest.mark.parametrize("cache", [pytest.param("0", marks=pytest.mark.slow), "1GiB"])
def test_the_same_command_goes_on_after_a_stop(ratings_folder, monkeypatch, capsys, cache, ratings):
    line = f"fit parts {FIT} --cache {cache}"
    assert call(f"{line} --out whole.skldl") == 0
    with monkeypatch.context() as patched:
        stopped_after(patched, 3)
        assert call(f"{line} --out m.skldl") == 130
    printed = capsys.readouterr().err
    assert "3 passes are kept in m.skldl.resume" in printed
    assert not (ratings_folder / "m.skldl").exists()
    assert len(list((ratings_folder / "m.skldl.resume").glob("pass-*.npz"))) == 3
    assert call(f"{line} --out m.skldl") == 0
    assert "Going on from m.skldl.resume, which holds 3 passes" in capsys.readouterr().err
    assert not (ratings_folder / "m.skldl.resume").exists()
    first, second = skldl.load("whole.skldl"), skldl.load("m.skldl")
    assert (first[-1].coef_ == second[-1].coef_).all()
    new = ratings(50, seed=1)
    assert (first.predict(new) == second.predict(new)).all()
    reported = [inspect(file)["description"] for file in ("whole.skldl", "m.skldl")]
    assert reported[0] == reported[1]


def test_a_stop_before_anything_is_kept_leaves_nothing(ratings_folder, monkeypatch):
    def interrupted(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("skldl.tabular._chunked_fit.EncoderFit.end_pass", interrupted)
    before = sorted(ratings_folder.rglob("*"))
    assert call(f"fit all.csv {FIT} --out m.skldl") == 130
    assert sorted(ratings_folder.rglob("*")) == before


def test_the_state_of_another_fit_is_not_used(ratings_folder, monkeypatch, capsys):
    with monkeypatch.context() as patched:
        stopped_after(patched, 2)
        assert call(f"fit all.csv {FIT} --out m.skldl") == 130
    assert call(f"fit all.csv {FIT} --seed 1 --out m.skldl") == 0
    assert "held the state of another fit" in capsys.readouterr().err
    assert not (ratings_folder / "m.skldl.resume").exists()
    first = ResumeFolder(ratings_folder / "m.skldl", ["all.csv"], {})
    assert call(f"fit all.csv {FIT} --out m.skldl") == 2
    assert "Another skldl fit is writing to m.skldl.resume" in capsys.readouterr().err
    first.remove()
    (ratings_folder / "n.skldl.resume").write_text("a file")
    assert call(f"fit all.csv {FIT} --out n.skldl") == 2
    assert "n.skldl.resume is a file" in capsys.readouterr().err


@pytest.mark.slow
def test_a_disk_without_room(ratings_folder):
    """A limit on the size of files stands for a full disk: the cache is given up, the state of a pass is an error."""
    script = (
        "import resource, sys; from skldl.cli._app import run; limit = int(sys.argv[1]), resource.RLIM_INFINITY; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, limit); sys.exit(run(sys.argv[2:]))"
    )
    command = [sys.executable, "-c", script]
    line = shlex.split(f"fit parts {FIT} --out m.skldl")
    done = subprocess.run([*command, "700", *line], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "The state of the fit cannot be written to m.skldl.resume: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (ratings_folder / "m.skldl").exists()
    assert call(f"fit parts {FIT} --out m.skldl") == 0
    with pytest.raises(DatasetError, match="cannot be written"):
        ResumeFolder(Path("none/m.skldl"), ["all.csv"], {}).save(None, {})


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come so far"
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("n_passes", [0, 2, 9])
def test_a_kill_and_the_same_command_again(ratings_folder, n_passes, ratings):
    """SIGKILL in the middle of a pass; the result is the same to the last digit as without it."""
    ratings(45_000).to_csv("large.csv", index=False)  # two chunks
    model = "--model sa-bfgs-cv --set alphas=[0.1,0.001]"
    line = shlex.split(f"fit large.csv --labels 'r_*' --stream --memory 620MiB --cache 0 {model}")
    assert run([*line, "--out", "whole.skldl"]) == 0
    folder = ratings_folder / "m.skldl.resume"
    process = subprocess.Popen([*SKLDL, *line, "--out", "m.skldl"], stderr=subprocess.DEVNULL)
    wait_for(lambda: (folder / "state.json").exists() and len(list(folder.glob("pass-*.npz"))) >= n_passes)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -9
    assert not (ratings_folder / "m.skldl").exists()
    assert run([*line, "--out", "m.skldl"]) == 0
    assert not folder.exists()
    first, second = skldl.load("whole.skldl"), skldl.load("m.skldl")
    assert (first[-1].coef_ == second[-1].coef_).all()
    assert (first[-1].intercept_ == second[-1].intercept_).all()
    assert inspect("whole.skldl")["description"] == inspect("m.skldl")["description"]

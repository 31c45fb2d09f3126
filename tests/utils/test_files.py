"""Atomic file writing."""

import os
import signal
import subprocess
import sys

import pytest

from skldl.utils import files
from skldl.utils.files import discard_unfinished, whole_file


@pytest.fixture(params=["without a name", "with a name"], autouse=True)
def kind(request, monkeypatch):
    """Files without a name, which are of Linux, and what other systems do."""
    if request.param == "with a name":
        monkeypatch.setattr(files, "_without_name", lambda folder: None)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("This system has no files without a name.")
    return request.param


def test_the_file_comes_with_the_end_of_the_block(tmp_path):
    place = tmp_path / "a.txt"
    with whole_file(place) as stream:
        stream.write(b"new")
        assert not place.exists()
    assert place.read_bytes() == b"new"
    mask = os.umask(0)
    os.umask(mask)
    assert place.stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_block_that_fails_changes_nothing(tmp_path, error):
    place = tmp_path / "a.txt"
    place.write_bytes(b"old")

    def fail(stream):
        stream.write(b"new")
        raise error

    with pytest.raises(error), whole_file(place) as stream:
        fail(stream)
    assert place.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_unfinished_files_can_be_removed_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_without_name", lambda folder: None)
    with pytest.raises(FileNotFoundError), whole_file(tmp_path / "a.txt"):
        discard_unfinished()
    assert not list(tmp_path.iterdir())
    with whole_file(tmp_path / "a.txt"):
        pass
    discard_unfinished()
    assert (tmp_path / "a.txt").exists()


def test_a_killed_process_leaves_nothing(tmp_path, kind):
    if kind == "with a name":
        pytest.skip("It leaves the unfinished file.")
    script = f"""
import os, signal
from skldl.utils.files import whole_file
with whole_file({str(tmp_path / "a.txt")!r}) as stream:
    stream.write(b"new")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == -signal.SIGKILL
    assert not list(tmp_path.iterdir())


def test_folders_and_missing_folders_are_rejected(tmp_path):
    with pytest.raises(IsADirectoryError, match="is a folder"), whole_file(tmp_path):
        pass
    with pytest.raises(FileNotFoundError, match="There is no folder"), whole_file(tmp_path / "no" / "a.txt"):
        pass


def test_a_symbolic_link_is_followed_and_the_mode_is_kept(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    with whole_file(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert real.read_bytes() == b"new"
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="No process reads"), whole_file(pipe) as stream:
        stream.write(b"lost")
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with whole_file(pipe) as stream:
        stream.write(b"through")
        stream.seek(0)  # a zip file goes back to its beginning
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert pipe.is_fifo()


def test_a_device_stays_a_device():
    with whole_file(os.devnull) as stream:
        stream.write(b"gone")
    assert not os.path.isfile(os.devnull)

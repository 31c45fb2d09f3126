"""Atomic file writing."""

import errno
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_unfinished: set[str] = set()


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file under a temporary name in the same folder, and rename it when the block ends without error.

    Yields a binary file. After an error nothing is left, and an existing file is unchanged. A process that is killed
    may leave the unfinished file, whose name begins with a dot and ends in ``.part``. A symbolic link is followed, the
    mode of an existing file is kept, and a pipe or device is written to, never replaced.
    """
    given, path = Path(path), Path(os.path.realpath(path))  # the target of a symbolic link is replaced, not the link
    if path.is_dir():
        raise IsADirectoryError(f"{given} is a folder. Name a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {path.parent if given.is_symlink() else given.parent}. Make it first."
        )
    if path.exists() and not path.is_file():
        with _into_special_file(path) as stream:
            yield stream
        return
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    _unfinished.add(partial)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # else the renamed file could be empty after a power cut
        os.chmod(partial, _mode_for(path))  # mkstemp makes files that only the owner can read
        os.replace(partial, path)
    except BaseException as error:
        Path(partial).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in DISK_IS_FULL and error.filename is None:
            raise OSError(error.errno, f"{error.strerror}. Nothing was written", str(given)) from error
        raise
    finally:
        _unfinished.discard(partial)


@contextmanager
def _into_special_file(path: Path) -> Iterator[IO[bytes]]:
    """Write into a pipe or device such as ``/dev/stdout``, which must not be replaced, once the content is complete."""
    with tempfile.TemporaryFile() as stream:
        yield stream
        stream.seek(0)
        try:
            # without this flag, opening a pipe without a reader would block forever
            target = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            raise OSError(errno.ENXIO, "No process reads from this pipe. Start the reader first", str(path)) from error
        os.set_blocking(target, True)
        with os.fdopen(target, "wb") as special:
            shutil.copyfileobj(stream, special)


def discard_unfinished() -> None:
    """Remove unfinished files, for a process that is asked to terminate."""
    for partial in _unfinished:
        Path(partial).unlink(missing_ok=True)


def _mode_for(path: Path) -> int:
    """The mode of the existing file, or the mode of a new file."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

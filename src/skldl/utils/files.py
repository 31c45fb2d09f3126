"""Atomic file writing."""

import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_OPEN_FILES = Path("/proc/self/fd")
_unfinished: set[str] = set()


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file that appears, or replaces an existing one, when the block ends without error.

    Yields a binary file. After an error nothing is left, and an existing file is unchanged. On Linux the file has no
    name until it is complete, so that a process that is killed leaves nothing either; elsewhere, and on file systems
    that cannot do this, it may leave the unfinished file, whose name begins with a dot and ends in ``.part``. A
    symbolic link is followed, the mode of an existing file is kept, and a pipe or device is written to, never replaced.
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
    handle = _without_name(path.parent)
    has_name = handle is None
    if handle is None:
        handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    else:
        partial = str(path.parent / f".{path.name}.{secrets.token_hex(8)}.part")
    _unfinished.add(partial)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())  # else the renamed file could be empty after a power cut
            if not has_name:  # a new file could be given its name at once, but only a renamed one replaces another
                os.link(_OPEN_FILES / str(handle), partial, src_dir_fd=handle)  # with it, os.link follows the link
        os.chmod(partial, _mode_for(path))  # so far only the owner can read it
        os.replace(partial, path)
    except BaseException as error:
        Path(partial).unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno in DISK_IS_FULL and error.filename is None:
            raise OSError(error.errno, f"{error.strerror}. Nothing was written", str(given)) from error
        raise
    finally:
        _unfinished.discard(partial)


def _without_name(folder: Path) -> int | None:
    """Open a file without a name in a folder; None where the system or the file system has no such files."""
    if not hasattr(os, "O_TMPFILE") or not _OPEN_FILES.is_dir():
        return None
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR, 0o600)
    except OSError:
        return None


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

"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_unfinished: set[str] = set()


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file under another name beside its place, and move it there when the block ends well.

    A block that fails leaves nothing, and whatever stood in the place before stays as it was. A process that is killed
    may leave the unfinished file, whose name begins with a dot and ends in ``.part``.

    Parameters
    ----------
    path : str or path
        The place of the file.

    Yields
    ------
    file
        To be written in binary.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder. Name a file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {path.parent}. Make it first.")
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    _unfinished.add(partial)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(partial, 0o666 & ~_umask())  # mkstemp lets nobody else read
        os.replace(partial, path)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
    finally:
        _unfinished.discard(partial)


def discard_unfinished() -> None:
    """Take away what is not finished, for a process that is told to end at once."""
    for partial in _unfinished:
        Path(partial).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""Encoded rows on the disk: files of a table are parsed and encoded once, and later passes read numbers."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from scipy import sparse

from skldl.chunks import Piece

_ROWS, _COMPLETE = "rows.cache", "rows.complete"
_DENSE, _SPARSE = 0, 1


class ChunkCache:
    """Chunks of encoded rows in one file, written in the first pass and read in those that follow.

    Rows with another fingerprint are not read. The file is given up when it becomes larger than ``most_bytes``, or when
    half of the free disk space is used; then every pass encodes the rows again, and ``given_up`` says why.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> cache = ChunkCache(pathlib.Path(tempfile.mkdtemp()), "a table", 2**20)
    >>> for piece in cache.kept(iter([Piece(np.eye(2), np.full((2, 2), 0.5))])):
    ...     pass
    >>> cache.is_complete(), next(iter(cache.read())).X.tolist()
    (True, [[1.0, 0.0], [0.0, 1.0]])
    """

    def __init__(self, folder: Path, fingerprint: str, most_bytes: int) -> None:
        self._folder, self._fingerprint, self._most_bytes = folder, fingerprint, most_bytes
        self.given_up = "" if most_bytes else "none was wanted"

    def is_complete(self) -> bool:
        """Whether all rows are there."""
        try:
            return (self._folder / _COMPLETE).read_text(encoding="utf-8") == self._fingerprint
        except (OSError, ValueError):
            return False

    def kept(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Pass pieces on, and write them on the way; they count when all have been seen."""
        self.remove()
        stream: IO[bytes] | None = None
        try:
            for piece in pieces:
                if not self.given_up:
                    with self._writing():
                        stream = stream or (self._folder / _ROWS).open("wb")
                        _write(stream, piece)
                        self._check_size(stream.tell())
                yield piece
            if not self.given_up and stream is not None:
                with self._writing():
                    stream.close()  # writes the last bytes
                    (self._folder / _COMPLETE).write_text(self._fingerprint, encoding="utf-8")
        finally:
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
            if not self.is_complete():
                self.remove()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Give the cache up if it cannot be written; errors of the rows themselves are raised elsewhere."""
        try:
            yield
        except OSError as error:
            self.given_up = f"it could not be written: {error.strerror or error}"

    def _check_size(self, n_bytes: int) -> None:
        if n_bytes > self._most_bytes:
            self.given_up = f"the encoded rows take more than {self._most_bytes / 2**30:.3g} GiB"
        elif n_bytes > shutil.disk_usage(self._folder).free:  # what was free before is n_bytes more
            self.given_up = "the encoded rows take more than half of the free disk space"

    def read(self) -> Iterator[Piece]:
        """Read what was written."""
        with (self._folder / _ROWS).open("rb") as stream:
            while stream.peek(1):
                yield _read(stream)

    def remove(self) -> None:
        """Take the files away."""
        for name in (_COMPLETE, _ROWS):
            (self._folder / name).unlink(missing_ok=True)


def _write(stream: IO[bytes], piece: Piece) -> None:
    is_sparse = sparse.issparse(piece.X)
    weight = np.empty(0) if piece.weight is None else np.asarray(piece.weight)
    about = [_SPARSE if is_sparse else _DENSE, piece.X.shape[0], piece.X.shape[1], piece.first_row]
    parts = [np.array(about), np.frombuffer(piece.place.encode(), dtype=np.uint8), np.asarray(piece.y), weight]
    if is_sparse:
        rows = piece.X.tocsr()
        parts += [rows.data, rows.indices, rows.indptr]
    else:
        parts.append(np.ascontiguousarray(piece.X))
    for part in parts:
        np.save(stream, part, allow_pickle=False)


def _read(stream: IO[bytes]) -> Piece:
    def part() -> Any:
        return np.load(stream, allow_pickle=False)

    kind, n_rows, n_columns, first = (int(value) for value in part())
    place, D, weight = part().tobytes().decode(), part(), part()
    X = sparse.csr_matrix((part(), part(), part()), shape=(n_rows, n_columns)) if kind == _SPARSE else part()
    return Piece(X, D, weight if len(weight) else None, place, first)

"""A table in files, read in chunks: taken apart, without the rows that judge the model, and encoded for a learner.

The files are read several times. Encoded rows are kept in a file between passes (`ChunkCache`), so that files are
parsed and encoded only once.
"""

import contextlib
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd
from scipy import sparse

from skldl.chunks import Layout, Piece, Rows
from skldl.data import Columns, TableFiles
from skldl.data._cells import as_words, cell_place, row_of
from skldl.data._roles import TableLayout
from skldl.exceptions import DataError, NonFiniteError, Parameter, TableError
from skldl.tabular._encoder import TableEncoder
from skldl.tabular._row_sample import drawn, mixed_keys, row_keys
from skldl.utils.column_names import list_names
from skldl.utils.typing import AnyArray, BoolArray, FloatArray

MAX_LABELS = 10_000
"""Votes and single labels with more different words are no labels."""
_KEYS_AT_ONCE = 2**20
_ROWS, _COMPLETE = "rows.cache", "rows.complete"
_DENSE, _SPARSE = 0, 1


@dataclass(frozen=True, eq=False)
class TableChunk:
    """Some rows of one file that have a label and weight; ``first`` such rows of the table come before them.

    The index of X is the position of the row in the file; ``groups`` are hashes.
    """

    place: str
    X: pd.DataFrame
    answers: pd.DataFrame
    weight: FloatArray | None
    groups: AnyArray | None
    first: int


class TableInChunks:
    """A table in files that is read chunk by chunk, as often as needed, and taken apart as `from_table` does it.

    After one pass, ``rows_of_files`` has the number of rows with a label and weight, and ``left_out`` that of other
    rows by the reason. The layout knows the names of the labels after `learn_labels` has seen all chunks.
    """

    def __init__(self, files: TableFiles, columns: Columns, chunk_rows: int = 20_000) -> None:
        for role in ("item", "annotator"):
            if getattr(columns, role) is not None:
                raise TableError(
                    Parameter(role),
                    ": one row for each vote is no table to read in chunks. Convert it first, with skldl convert.",
                )
        self.files, self.columns, self.chunk_rows = files, columns, chunk_rows
        self.layout = TableLayout(columns, files.columns)
        self._words: set[str] = set()
        self.left_out: Counter[str] = Counter()
        self.rows_of_files: dict[str, int] = {}

    def chunks(self) -> Iterator[TableChunk]:
        """Read all rows that have a label and weight once."""
        self.left_out.clear()
        self.rows_of_files = dict.fromkeys(self.files.files, 0)
        for chunk in self.chunks_of(None, 0):
            self.rows_of_files[chunk.place] += len(chunk.X)
            yield chunk
        if not any(self.rows_of_files.values()):
            raise TableError(f"No row of {self.files.name} has a label and weight.")

    def chunks_of(self, file: str | None, first: int) -> Iterator[TableChunk]:
        """The rows of one file, or of all, that have a label and weight; ``first`` such rows come before them."""
        for place, frame in self.files.pieces(self.chunk_rows, file):
            with naming(place):
                part = self.layout.take_apart(frame)
                self.left_out.update(part.left_out)
                groups = None if part.groups is None else _hashed(part.groups)
            if len(part.X):
                yield TableChunk(place, part.X, part.answers, part.weight, groups, first)
                first += len(part.X)

    def learn_labels(self, chunk: TableChunk) -> None:
        """Look at the label columns of a chunk: collect the words of votes and single labels, check all others."""
        if self.layout.label_names is not None:
            self.distributions(chunk)
            return
        self._words |= self.layout.words(chunk.answers)
        if len(self._words) > MAX_LABELS:
            raise TableError(
                f"The columns {list_names(self.layout.label_columns)} hold more than {MAX_LABELS:,} different words. "
                "Are they labels? ",
                Parameter("kind", self.columns.kind),
                " takes each word for a label.",
            )

    def end_of_labels(self) -> None:
        """Fix the names of the labels, after `learn_labels` has seen all chunks."""
        if self.layout.label_names is None:
            self.layout.name_labels(self._words)

    def distributions(self, chunk: TableChunk) -> pd.DataFrame:
        """The distributions of a chunk; errors name the file and the row."""
        with naming(chunk.place):
            if self.columns.kind == "distribution":
                _check_complete(chunk.answers)
            return self.layout.distributions(chunk.answers)


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Put the name of the file before errors about the rows of a chunk."""
    try:
        yield
    except DataError as error:
        if place in str(error):
            raise
        raise error.prefixed(f"{place}: ") from error


def _check_complete(answers: pd.DataFrame) -> None:
    gaps = answers.isna().to_numpy()
    if gaps.any():
        row, column = (int(position) for position in np.argwhere(gaps)[0])
        raise NonFiniteError(
            f"{cell_place(answers.iloc[:, column], row)}, a label, is empty. Models that read a table in chunks need "
            "every degree: write 0 where the label does not apply, or fit a model that learns from missing degrees "
            "(sa-bfgs-cv) in memory, with ",
            Parameter("stream", False),
            ".",
            row=row_of(answers.iloc[:, column], row),
        )


def _hashed(column: pd.Series) -> AnyArray:
    words: Any = as_words(column, "").astype(object).to_numpy()
    return np.asarray(pd.util.hash_array(words, categorize=True), dtype=np.uint64)


@dataclass(frozen=True)
class HeldOut:
    """Which rows judge the model instead of teaching it: a fraction of them, or of their groups, drawn by a hash."""

    fraction: float
    seed: int

    def of(self, chunk: TableChunk) -> BoolArray:
        """Which rows of a chunk are held out; this does not depend on how the table is cut."""
        if chunk.groups is not None:
            return drawn(mixed_keys(chunk.groups, self.seed), self.fraction)
        return drawn(row_keys(chunk.first, len(chunk.X), self.seed), self.fraction)

    def count(self, n_rows: int) -> int:
        """How many of the first so many rows are held out, if there are no groups."""
        starts = range(0, n_rows, _KEYS_AT_ONCE)
        parts = (row_keys(start, min(_KEYS_AT_ONCE, n_rows - start), self.seed) for start in starts)
        return sum(int(np.count_nonzero(drawn(keys, self.fraction))) for keys in parts)


class ChunkCache:
    """Chunks of encoded rows in one file, written in the first pass and read in those that follow.

    Rows with another fingerprint are not read. The file is given up when it becomes larger than ``max_bytes``, or when
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

    def __init__(self, folder: Path, fingerprint: str, max_bytes: int) -> None:
        self._folder, self._fingerprint, self._max_bytes = folder, fingerprint, max_bytes
        self.given_up = "" if max_bytes else "no space was allowed for it"

    def is_complete(self) -> bool:
        """Whether all rows were written."""
        try:
            return (self._folder / _COMPLETE).read_text(encoding="utf-8") == self._fingerprint
        except (OSError, ValueError):
            return False

    def kept(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        """Yield the pieces and write them on the way; they count when all have been written."""
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
        """Give the cache up if it cannot be written; errors about the rows themselves are raised elsewhere."""
        try:
            yield
        except OSError as error:
            self.given_up = f"it could not be written: {error.strerror or error}"

    def _check_size(self, n_bytes: int) -> None:
        if n_bytes > self._max_bytes:
            self.given_up = f"the encoded rows take more than {self._max_bytes / 2**30:.3g} GiB"
        elif n_bytes > shutil.disk_usage(self._folder).free:  # what was free before is n_bytes more
            self.given_up = "the encoded rows take more than half of the free disk space"

    def read(self) -> Iterator[Piece]:
        """Read the rows that were written."""
        with (self._folder / _ROWS).open("rb") as stream:
            while stream.peek(1):
                yield _read(stream)

    def remove(self) -> None:
        """Remove the files."""
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


class EncodedRows(Rows):
    """The training rows of a table as numbers, kept in a cache between passes; ``n_rows`` is None where unknown."""

    def __init__(
        self,
        table: TableInChunks,
        encoder: TableEncoder,
        held_out: HeldOut,
        n_rows: int | None,
        cache: ChunkCache | None = None,
    ) -> None:
        self.table, self.encoder, self.held_out, self.cache = table, encoder, held_out, cache
        self._n_rows = n_rows

    def _pieces(self, labels: bool) -> Iterator[Piece]:
        if self.cache is None or self.cache.given_up:
            return self._encoded(self.table.chunks(), labels)
        if self.cache.is_complete():
            return self.cache.read()
        return self.cache.kept(self._encoded(self.table.chunks(), labels=True))

    def _tasks(self, client: Any) -> list[tuple[Any, ...]] | None:
        """For a cluster: each file is read and encoded by one worker, which must see it at the same place."""
        if client is None:
            return []
        table = copy(self.table)
        table.files = self.table.files.at_full_paths()
        shared = client.submit(_itself, EncodedRows(table, self.encoder, self.held_out, None), pure=False)
        counts = [self.table.rows_of_files[file] for file in self.table.files.files]
        firsts = np.cumsum([0, *counts])
        return [
            (_pieces_of_file, shared, file, int(first))
            for file, first, count in zip(table.files.files, firsts, counts, strict=False)
            if count
        ]

    def _encoded(self, chunks: Iterator[TableChunk], labels: bool) -> Iterator[Piece]:
        for chunk in chunks:
            kept = ~self.held_out.of(chunk)
            if not kept.any():
                continue
            D = self.table.distributions(chunk)[kept] if labels else None
            with naming(chunk.place):
                X = self.encoder.transform(chunk.X[kept])
            yield Piece(X, D, None if chunk.weight is None else chunk.weight[kept], chunk.place, int(chunk.X.index[0]))

    def _known_layout(self) -> Layout:
        names = tuple(self.table.layout.label_names or ())
        is_sparse = self.encoder.is_sparse_
        return Layout(
            len(self.encoder.sources()), len(names), None, names, self.table.columns.weight is not None, is_sparse
        )

    def _name(self) -> str:
        return self.table.files.name

    @property
    def n_rows(self) -> int | None:
        """Number of training rows, where it is known."""
        return self._n_rows


def _itself(rows: EncodedRows) -> EncodedRows:
    """A task whose result can be made again when its worker is lost."""
    return rows


def _pieces_of_file(rows: EncodedRows, file: str, first: int) -> Iterator[Piece]:
    """The encoded rows of one file, on a worker."""
    return rows._encoded(rows.table.chunks_of(file, first), labels=True)

"""Parquet files: reader and writer of tables, and `ParquetRows`, which reads columns of numbers in chunks.

`ParquetRows` needs no pandas, so that pandas is imported only inside the functions that read or write tables.
"""

import contextlib
import ctypes
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from skldl.chunks._rows import Layout, Piece, Rows, check_chunk_rows, rows_in_chunk
from skldl.data._formats import PARQUET, find_files
from skldl.exceptions import (
    DatasetNotFoundError,
    EmptyDataError,
    NonFiniteError,
    NotNumericError,
    Parameter,
    TableError,
)
from skldl.utils.column_names import Columns, Names, assign_columns
from skldl.utils.dependencies import import_with_extra
from skldl.utils.typing import AnyArray

READ_BUFFER = 2**16
MAX_TASKS = 512
"""Approximate maximum number of tasks on a cluster: each costs its scheduler a few milliseconds in each pass."""
# Arrow keeps a page and a dictionary of each column while it reads: about 3 MiB were measured
BYTES_PER_COLUMN = 3 * 2**20
_ROW_LABELS_OF_PANDAS = re.compile(r"__index_level_\d+__")


class ParquetTable:
    """Reader of Parquet files: the columns are known at once, rows are read when they are needed.

    Parameters
    ----------
    stream : binary stream
        The file after ``start``, which was already read from it.
    start : bytes
        The first bytes.
    name : str
        Name of the file in messages.
    **options : Any
        Options of the readers of text files, which are ignored.

    Attributes
    ----------
    columns : list of str
        Names of the columns, without those in which pandas stores row labels.
    n_rows : int
        Number of rows.
    notes : list of str
        Notes for the user; none for Parquet.
    """

    has_header = True
    dialect = None

    def __init__(self, stream: IO[bytes], start: bytes, name: str, **options: Any) -> None:
        self.name = name
        self.notes: list[str] = []
        self._stream = _at_start(stream, start)
        self._file = open_parquet(self._stream, name)
        names = [str(column) for column in self._file.schema_arrow.names]
        self.columns = [column for column in names if not _ROW_LABELS_OF_PANDAS.fullmatch(column)]
        self.n_rows: int | None = self._file.metadata.num_rows

    def size(self) -> tuple[int, int]:
        """Bytes of all rows when they are unpacked, and bytes of memory for reading besides the rows of a piece."""
        metadata = self._file.metadata
        groups = [metadata.row_group(position).total_byte_size for position in range(metadata.num_row_groups)]
        # dictionaries and runs of equal values can be much smaller than the eight bytes of a cell in memory
        unpacked = max(sum(groups), 8 * metadata.num_rows * len(self.columns))
        return unpacked, min(BYTES_PER_COLUMN * len(self.columns), 2 * max(groups, default=0))

    def pieces(self, rows: int, text: Collection[str] = ()) -> Iterator[dict[str, Any]]:
        """Yield the columns of all rows, at most so many rows at a time; ``text`` is for text files."""
        for batch in _batches(self._file, self.name, batch_size=rows, columns=self.columns):
            # without the metadata, which would make some columns the index
            yield dict(batch.to_pandas(ignore_metadata=True, split_blocks=True).items())

    def empty(self) -> Any:
        """A table without rows whose columns have the types of the file."""
        return self._file.schema_arrow.empty_table().select(self.columns).to_pandas(ignore_metadata=True)

    def close(self) -> None:
        """Remove the copy of a file that came through a pipe."""
        self._stream.close()


class ParquetWriter:
    """Writer of Parquet files: pieces of a table in one file, with the column types of the first piece.

    Parameters
    ----------
    target : str
        Name of the file in messages.
    **options : Any
        Options of the writers of text files, which are ignored: Parquet stores numbers exactly.
    """

    def __init__(self, target: str, **options: Any) -> None:
        self._target = target
        self._file: Any = None

    def begin(self, stream: IO[Any]) -> None:
        """Write to a binary stream from now on."""
        self._stream, self._stack = stream, contextlib.ExitStack()

    def rendered(self, piece: Any, *, header: bool) -> Any:
        """Return the rows unchanged: their types depend on the first piece, which another process does not know."""
        return piece

    def append(self, piece: Any) -> None:
        """Write rows."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._file is None:
            schema = pa.Schema.from_pandas(piece, preserve_index=False).remove_metadata()
            for position, entry in enumerate(schema):
                if pa.types.is_null(entry.type):  # only missing cells so far: text can hold any later cell
                    schema = schema.set(position, entry.with_type(pa.string()))
            self._schema = schema
            self._file = self._stack.enter_context(pq.ParquetWriter(self._stream, schema))
        try:
            self._file.write_table(pa.Table.from_pandas(piece, schema=self._schema, preserve_index=False))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise TableError(
                f"{self._target}: the cells of a column changed their type between chunks ({error}). Write .csv "
                "instead."
            ) from error

    def end(self) -> None:
        """Write the index at the end of the file."""
        self._stack.close()


class ParquetRows(Rows):
    """Rows of Parquet files, which are read again in every pass.

    Only the necessary columns are read, and labels only in passes that use them. The memory does not depend on the
    number of rows.

    Parameters
    ----------
    path : str, path or sequence of them
        A file, a folder (all ``.parquet`` and ``.pq`` files in it and its subfolders, except those whose names begin
        with a dot or an underscore), a pattern such as ``"ratings/*.parquet"``, or several of these. The files of a
        folder or pattern are read in the order of their names.
    labels : str, sequence of str or None, default=None
        Columns of degrees: names, patterns such as ``"r_*"``, or prefixes of several names; None for rows to predict.
    features : str, sequence of str or None, default=None
        Columns of features, all of them numbers; None for every column that is neither a label nor the weight.
    weight : str, default=None
        Column of weights.
    batch_rows : int, default=None
        Maximum number of rows in a chunk; None for chunks of about two million numbers.

    Notes
    -----
    Columns of text, categories or dates raise an error: ``skldl fit --stream`` encodes them. If all feature columns are
    in single precision, so are the features. Files without rows are skipped. Values in names of folders
    (``year=2024/``) are not columns.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> from skldl import SABFGS
    >>> from skldl.chunks import ParquetRows
    >>> folder = tempfile.mkdtemp()
    >>> table = pa.table({"x": [0.0, 1.0, 2.0], "r_no": [0.5, 0.6, 0.7], "r_yes": [0.5, 0.4, 0.3]})
    >>> pq.write_table(table, folder + "/part-0.parquet")
    >>> rows = ParquetRows(folder, labels="r_*")
    >>> SABFGS(fit_intercept=True).fit(rows).predict(rows).round(2)
    array([[0.5, 0.5],
           [0.6, 0.4],
           [0.7, 0.3]])
    """

    def __init__(
        self,
        path: Any,
        labels: Names = None,
        *,
        features: Names = None,
        weight: str | None = None,
        batch_rows: int | None = None,
    ) -> None:
        sources = [path] if isinstance(path, str | PathLike) else list(path)
        self.files = [Path(file) for file in find_files(sources, PARQUET.suffixes)]
        if not self.files:
            raise DatasetNotFoundError("No Parquet file was named. Pass a file, a folder or a pattern.")
        self.labels, self.features, self.weight = labels, features, weight
        self.batch_rows = check_chunk_rows(batch_rows, "batch_rows")
        self.columns, self._groups, self._single = self._inspect()

    def _inspect(self) -> tuple[Columns, list[list[int]], bool]:
        """Read the metadata of every file; all must have the same columns."""
        columns: Columns | None = None
        counts: list[list[int]] = []  # rows of each row group of each file
        single = True
        for file in self.files:
            with open_parquet(file, str(file)) as opened:
                schema, metadata = opened.schema_arrow, opened.metadata
            if columns is None:
                columns = assign_columns(schema.names, self.labels, self.features, self.weight, place=str(file))
            single &= _check_columns(schema, columns, file, self.files[0], every=self.features is None)
            counts.append([metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)])
        if columns is None or not any(map(sum, counts)):
            raise EmptyDataError(f"There are no rows in {self._name()}. At least one is needed.")
        return columns, counts, single

    def _pieces(self, labels: bool) -> Iterator[Piece]:
        for file in self.files:
            yield from pieces_of(file, self.columns, self._single, self._chunk_size(), labels)

    def _tasks(self, client: Any) -> list[tuple[Any, ...]] | None:
        """One task for each row group or for several small ones, which depends only on the files."""
        if client is None:
            return []
        tasks = []
        size = max(self._chunk_size(), -(-(self.n_rows or 0) // MAX_TASKS))
        for file, groups in zip(self.files, self._groups, strict=True):
            some: list[int] = []
            first = n_rows = 0
            for group, count in enumerate(groups):
                some.append(group)
                n_rows += count
                if n_rows >= size or group == len(groups) - 1:
                    if n_rows:
                        tasks.append(
                            (pieces_of, file, self.columns, self._single, self._chunk_size(), True, some, first)
                        )
                    first, n_rows, some = first + n_rows, 0, []
        return tasks

    def _known_layout(self) -> Layout:
        columns = self.columns
        return Layout(
            len(columns.features),
            len(columns.labels) or None,
            columns.features,
            columns.labels or None,
            columns.weight is not None,
        )

    def _name(self) -> str:
        return str(self.files[0]) if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1} more files"

    def _chunk_size(self) -> int:
        return rows_in_chunk(len(self.columns.features) + len(self.columns.labels), self.batch_rows)

    @property
    def n_rows(self) -> int | None:
        """Number of rows, from the metadata of the files."""
        return sum(map(sum, self._groups))


def pieces_of(
    file: Path,
    columns: Columns,
    single: bool,
    batch_rows: int,
    labels: bool,
    groups: list[int] | None = None,
    first: int = 0,
) -> Iterator[Piece]:
    """Yield the rows of one file, or of some of its row groups, the first of which begins at row ``first``."""
    wanted = [*columns.features, *(columns.labels if labels else ()), *([columns.weight] if columns.weight else ())]
    with open_parquet(file, str(file)) as opened:
        for batch in _batches(opened, str(file), batch_size=batch_rows, columns=wanted, row_groups=groups):
            if not batch.num_rows:
                continue
            X = _matrix(batch, columns.features, file, first, np.float32 if single else np.float64)
            y = _matrix(batch, columns.labels, file, first, np.float64) if labels and columns.labels else None
            weight = _matrix(batch, (columns.weight,), file, first, np.float64)[:, 0] if columns.weight else None
            yield Piece(X, y, weight, str(file), first)
            first += batch.num_rows


def _matrix(batch: Any, names: Sequence[str], file: Path, first: int, dtype: Any) -> AnyArray:
    """Columns of a batch as an array in which each column is contiguous, as in Arrow."""
    cells = np.empty((len(names), batch.num_rows), dtype=dtype)
    for k, name in enumerate(names):
        column = batch.column(name)
        if column.null_count:
            row = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise NonFiniteError(
                f"In {file}: column {name!r} has no value in row {row}. Fill such cells in, drop these rows, or leave "
                "the column out with ",
                Parameter("features"),
                ".",
                row=row,
            )
        cells[k] = column.to_numpy(zero_copy_only=False)
    return cells.T


def _check_columns(schema: Any, columns: Columns, file: Path, first_file: Path, *, every: bool) -> bool:
    """Check the columns of a file against those of the first; return whether its features are in single precision."""
    types = import_with_extra("pyarrow.types", "cli")
    wanted = dict.fromkeys((*columns.features, *columns.labels, *([columns.weight] if columns.weight else ())))
    lacking = next((name for name in wanted if name not in schema.names), None)
    further = next((name for name in schema.names if name not in wanted), None) if every else None
    hint = "All files need the same columns: name them in features=."
    if lacking is not None:
        raise TableError(f"{file} lacks the column {lacking!r} that {first_file} has. {hint}")
    if further is not None:
        raise TableError(f"{file} has a column {further!r} that {first_file} does not have. {hint}")
    single = True
    for name in wanted:
        kind = schema.field(name).type
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        if not (is_number or types.is_decimal(kind)):
            raise NotNumericError(
                f"Column {name!r} of {file} holds {kind}, where numbers belong. Leave it out with ",
                Parameter("features"),
                ", or let the encoder of tables turn it into numbers: skldl fit --stream.",
            )
        if name in columns.features:
            single &= kind.bit_width == 32 and types.is_floating(kind)
    return single


def open_parquet(source: Any, name: str) -> Any:
    """Open a Parquet file or stream; errors name it."""
    pq = import_with_extra("pyarrow.parquet", "cli", user="To read Parquet files")
    try:
        # a small buffer, so that a row group is never read as a whole; checksums are compared if the file has any
        return pq.ParquetFile(source, buffer_size=READ_BUFFER, pre_buffer=False, page_checksum_verification=True)
    except FileNotFoundError as error:
        raise DatasetNotFoundError(f"{name} does not exist any more.") from error
    except (OSError, ValueError) as error:  # errors of Arrow are ValueErrors
        raise damaged(name, error) from error


def _batches(file: Any, name: str, **options: Any) -> Iterator[Any]:
    """Yield batches of rows of an open file; errors name it."""
    try:
        yield from file.iter_batches(**options)
    except (OSError, ValueError) as error:  # errors of Arrow are ValueErrors
        raise damaged(name, error) from error


def damaged(name: str, error: Exception) -> TableError:
    """The error for a Parquet file that Arrow cannot read, or not to its end."""
    return TableError(
        f"{name} cannot be read as Parquet ({first_line(error)[:300]}). It may be damaged or cut off: write it again, "
        "or leave it out."
    )


def release_unused_memory() -> None:
    """Return memory that Arrow and the C library cache to the operating system.

    After a large CSV file, Arrow caches more memory than the table needs, and the C library of Linux keeps small freed
    blocks that larger arrays cannot use. On other systems only the memory of Arrow is released.
    """
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError, TypeError):  # other systems lack this function
        ctypes.CDLL(None).malloc_trim(0)


def first_line(error: Exception) -> str:
    """The first line of a message of Arrow, or the class of the error if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _at_start(stream: IO[bytes], start: bytes) -> IO[bytes]:
    """Rewind the stream, or copy a pipe to disk: the index of a Parquet file is at its end."""
    if stream.seekable():
        stream.seek(0)
        return stream
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - `ParquetTable.close` closes it
    copy.write(start)
    shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy

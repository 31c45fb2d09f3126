"""Parquet files: tables that Arrow reads in batches of rows, and writes in pieces."""

import contextlib
import ctypes
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator
from typing import IO, Any

import pandas as pd

from skldl.exceptions import DatasetNotFoundError, TableError
from skldl.utils.dependencies import import_with_extra

READ_BUFFER = 2**16
# Arrow holds a page and a dictionary of each column while it reads: measured at about 3 MiB
BYTES_PER_COLUMN = 3 * 2**20
_ROW_LABELS_OF_PANDAS = re.compile(r"__index_level_\d+__")


class ParquetTable:
    """A Parquet file with known columns whose rows are not yet read: the reader of the format.

    Parameters
    ----------
    stream : binary stream
        The file; ``start`` was read from it already.
    start : bytes
        The first bytes.
    name : str
        Name of the file in messages.
    **options : Any
        Options for text files, which have no meaning here.

    Attributes
    ----------
    columns : list of str
        Names of the columns, without those in which pandas keeps row labels.
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
        """Bytes of all rows when they are unpacked, and bytes that reading takes besides the rows of a piece."""
        metadata = self._file.metadata
        groups = [metadata.row_group(position).total_byte_size for position in range(metadata.num_row_groups)]
        # dictionaries and runs of equal values can be much smaller than the eight bytes of a cell in memory
        unpacked = max(sum(groups), 8 * metadata.num_rows * len(self.columns))
        return unpacked, min(BYTES_PER_COLUMN * len(self.columns), 2 * max(groups, default=0))

    def pieces(self, rows: int, text: Collection[str] = ()) -> Iterator[pd.DataFrame]:
        """Yield all rows, at most so many at a time; ``text`` is for text files."""
        try:
            for batch in self._file.iter_batches(batch_size=rows, columns=self.columns):
                # without the metadata a column that pandas would make the index stays a column
                yield batch.to_pandas(ignore_metadata=True)
        except (OSError, ValueError) as error:  # errors of Arrow are ValueErrors
            raise damaged(self.name, error) from error

    def read(self, rows: int) -> pd.DataFrame:
        """All rows, read so many at a time."""
        pieces = list(self.pieces(rows))
        return pd.concat(pieces, ignore_index=True) if pieces else self.empty()

    def empty(self) -> pd.DataFrame:
        """A table without rows whose columns have the types of the file."""
        return self._file.schema_arrow.empty_table().select(self.columns).to_pandas(ignore_metadata=True)

    def close(self) -> None:
        """Remove the copy of a file that came through a pipe."""
        self._stream.close()


class ParquetWriter:
    """The writer of the format: pieces of a table into one file, with the column types of the first piece.

    Parameters
    ----------
    target : str
        Name of the file in messages.
    **options : Any
        Options for text files, which have no meaning here: Parquet keeps numbers as they are.
    """

    def __init__(self, target: str, **options: Any) -> None:
        self._target = target
        self._file: Any = None

    def begin(self, stream: IO[Any]) -> None:
        """Write to a binary stream from now on."""
        self._stream, self._stack = stream, contextlib.ExitStack()

    def rendered(self, piece: pd.DataFrame, *, header: bool) -> pd.DataFrame:
        """The rows as they are: their types follow from the first piece, which another process does not know."""
        return piece

    def append(self, piece: pd.DataFrame) -> None:
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


def open_parquet(source: Any, name: str) -> Any:
    """Open a Parquet file or stream; the errors name it."""
    pq = import_with_extra("pyarrow.parquet", "cli", user="To read Parquet files")
    try:
        # a small buffer: never a whole group of rows at once. Checksums are compared where the file has some.
        return pq.ParquetFile(source, buffer_size=READ_BUFFER, pre_buffer=False, page_checksum_verification=True)
    except FileNotFoundError as error:
        raise DatasetNotFoundError(f"{name} does not exist any more.") from error
    except (OSError, ValueError) as error:  # errors of Arrow are ValueErrors
        raise damaged(name, error) from error


def damaged(name: str, error: Exception) -> TableError:
    """The error for a Parquet file that Arrow cannot read, or not to its end."""
    return TableError(
        f"{name} cannot be read as Parquet ({first_line(error)[:300]}). It may be damaged or cut off: write it again, "
        "or leave it out."
    )


def release_unused_memory() -> None:
    """Release memory that Arrow and the C library cache.

    After a large CSV file Arrow holds more than the table itself; and columns that were freed leave holes that the C
    library of Linux keeps, though larger arrays cannot use them. Elsewhere only Arrow's part is done.
    """
    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with contextlib.suppress(OSError, AttributeError, TypeError):  # there is no such function on other systems
        ctypes.CDLL(None).malloc_trim(0)


def first_line(error: Exception) -> str:
    """The first line of a message of Arrow, or the class of the error if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _at_start(stream: IO[bytes], start: bytes) -> IO[bytes]:
    """The stream, or a copy of it on the disk, back at its start: Parquet keeps its index at the end."""
    if stream.seekable():
        stream.seek(0)
        return stream
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as rows are read
    copy.write(start)
    shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy

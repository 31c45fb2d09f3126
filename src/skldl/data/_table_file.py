"""Tables from files: CSV of any dialect, and Parquet, whole or in chunks.

Encoding (UTF-8 with or without a byte order mark, UTF-16, else Windows-1252), separator (comma, semicolon, tab or bar)
and decimal marks are found out from the beginning of the file. Cells are cut and converted by Arrow: a column of
numbers becomes numbers, any other stays text. ``-`` means standard input.
"""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any, Self

import pandas as pd

from skldl.data._csv_cutter import BLOCK_BYTES, CsvCutter, first_line
from skldl.data._dialect import Dialect, read_beginning
from skldl.data._memory import release_unused_memory
from skldl.data._typed_cells import MISSING_WORDS, ColumnReader, join_pieces
from skldl.data._utf8_stream import Utf8Stream
from skldl.exceptions import TableError

SAMPLE_BYTES = 2**18
SAMPLE_LINES = 20
LONGEST_SAMPLE = 2**26
CHUNK_ROWS = 20_000
READ_BUFFER = 2**16
PAGES = 3 * 2**20  # what Arrow holds of each column of a Parquet file while it is read: a page and a dictionary
_ROW_LABELS_OF_PANDAS = re.compile(r"__index_level_\d+__")


class TableFile:
    """A table in a file, with its columns known and its rows not yet read.

    The rows can be read once, by `read` or by `chunks`; then the file is closed. Use it in a ``with`` block where the
    reading may not come to its end.

    Parameters
    ----------
    source : str, path or binary stream
        A CSV or Parquet file, or ``-`` for standard input. A stream is read to its end and closed; messages call it by
        its ``name``.
    encoding : str, default=None
        Encoding of a CSV file, such as ``"shift_jis"``; found out by default.
    decimal : {".", ","}, default=None
        Decimal mark of a CSV file; the other mark then separates thousands. Found out by default.
    na_values : collection of str, default=None
        Words that mean a missing value; an empty cell always does. By default NA, N/A, NaN, nan, null, NULL, None and
        #N/A.
    header : bool or None, default=True
        Whether the first line of a CSV file names the columns; None detects it: a line of numbers is no header.

    Attributes
    ----------
    name : str
        What messages call the file.
    columns : list of str
        Names of the columns.
    dialect : Dialect or None
        How the file is written; None for Parquet.
    has_header : bool
        Whether the columns have names; otherwise they are numbered from 1.
    notes : list of str
        What the user should know; complete when all rows were read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skldl.data import TableFile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "prices.csv"
    ...     _ = file.write_text("thing;price\\ntea;1,50\\n")
    ...     table = TableFile(file)
    ...     table.dialect, table.read().to_dict("records")
    (Dialect(encoding='utf-8', separator=';', decimal=','), [{'thing': 'tea', 'price': 1.5}])
    """

    def __init__(
        self,
        source: str | os.PathLike[str] | IO[bytes],
        *,
        encoding: str | None = None,
        decimal: str | None = None,
        na_values: Collection[str] | None = None,
        header: bool | None = True,
    ) -> None:
        if decimal not in (None, ".", ","):
            raise TableError(f"decimal={decimal!r} is not known. Use a point or a comma.")
        self._keep_open = isinstance(source, str) and source == "-"
        if isinstance(source, str | os.PathLike):
            self.name = "standard input" if str(source) == "-" else str(source)
            self._path = None if str(source) == "-" else Path(source)
            self._source = _open(self._path, self.name)
        else:
            self.name, self._path, self._source = str(getattr(source, "name", "the stream")), None, source
        self._stream: IO[bytes] = self._source
        self._rows_read = 0
        self._size = os.path.getsize(self._path) if self._path is not None else 0
        self._missing = MISSING_WORDS if na_values is None else tuple(na_values)
        self.dialect: Dialect | None = None
        self.notes: list[str] = []
        self.has_header = True
        try:
            start, whole = _beginning_of(self._source)
            if not start.strip():
                raise TableError(f"{self.name} is empty. A table needs a header line with the names of its columns.")
            self._parquet = start[:4] == b"PAR1"
            if self._parquet:
                self._stream = _at_start(self._source, start)
                self._file = _open_parquet(self._stream, self.name)
                names = [str(name) for name in self._file.schema_arrow.names]
                self.columns = [name for name in names if not _ROW_LABELS_OF_PANDAS.fullmatch(name)]
            else:
                self._read_header(start, whole, encoding, decimal, header)
            _refuse_duplicates(self.columns, self.name)
        except BaseException:
            self.close()
            raise

    def _read_header(
        self, start: bytes, whole: bool, encoding: str | None, decimal: str | None, header: bool | None
    ) -> None:
        begun = read_beginning(start, self.name, whole=whole, encoding=encoding, decimal=decimal, header=header)
        self.dialect, self.columns, self.has_header = begun.dialect, begun.columns, begun.has_header
        self.notes += begun.notes
        self._text = Utf8Stream(begun, start, self._source, self.name)
        self._cutter = CsvCutter(self._text, begun, self.name, self._path)

    def close(self) -> None:
        """Close the file; standard input stays open."""
        for stream in (self._stream, self._source):
            if not (self._keep_open and stream is self._source):
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def share_read(self) -> float | None:
        """Share of the file that has been read.

        Returns
        -------
        float or None
            Between 0 and 1; None for standard input, whose length is not known.
        """
        if self._parquet:
            return self._rows_read / max(1, self._file.metadata.num_rows)
        return min(1.0, self._text.n_bytes / self._size) if self._size else None

    def size(self) -> tuple[int | None, int, int]:
        """How large the table is.

        Returns
        -------
        tuple of (int or None, int, int)
            Rows (None for CSV), bytes (of Parquet unpacked), and bytes that reading takes besides the rows.
        """
        if not self._parquet:
            return None, self._size, 8 * BLOCK_BYTES
        about = self._file.metadata
        groups = [about.row_group(place) for place in range(about.num_row_groups)]
        unpacked = max(sum(group.total_byte_size for group in groups), 8 * about.num_rows * len(self.columns))
        largest = max((group.total_byte_size for group in groups), default=0)
        return about.num_rows, unpacked, min(PAGES * len(self.columns), 2 * largest)

    def nothing(self) -> pd.DataFrame:
        """Make a table with the same columns and no rows.

        Returns
        -------
        DataFrame
            Columns of text, or of the types of a Parquet file.
        """
        if self._parquet:
            empty = self._file.schema_arrow.empty_table().select(self.columns)
            return empty.to_pandas(ignore_metadata=True)
        return pd.DataFrame(columns=self.columns, dtype=object)

    def read(self) -> pd.DataFrame:
        """Read all rows.

        Returns
        -------
        DataFrame
            The table; a file without rows is an error. Its ``attrs["notes"]`` are the notes of this object.
        """
        if self._parquet:
            chunks = list(self.chunks(rows=10 * CHUNK_ROWS))
            frame = pd.concat(chunks) if chunks else self.nothing()
        else:
            with self:
                frame = join_pieces(list(self._csv_pieces(10 * CHUNK_ROWS, ())), self.columns)
            release_unused_memory()
        if not len(frame):
            raise TableError(f"{self.name} has a header but no rows.")
        frame.attrs["notes"] = tuple(self.notes)
        return frame

    def chunks(self, rows: int = CHUNK_ROWS, *, text: Collection[str] = ()) -> Iterator[pd.DataFrame]:
        """Read the rows in pieces; the memory needed does not grow with the file.

        Parameters
        ----------
        rows : int, default=20000
            Maximum number of rows per chunk.
        text : collection of str, default=()
            Columns of a CSV file to be left as they are written.

        Yields
        ------
        DataFrame
            The next rows, numbered from the first data row of the file, 0. A column of a CSV file holds numbers if all
            its cells in this piece are numbers, else text; codes with leading zeros or more than fifteen digits are
            text.
        """
        try:
            start = 0
            pieces = self._parquet_chunks(rows) if self._parquet else map(pd.DataFrame, self._csv_pieces(rows, text))
            for chunk in pieces:
                chunk.index = pd.RangeIndex(start, start + len(chunk))
                start += len(chunk)
                self._rows_read = start
                yield chunk
        finally:
            self.close()

    def _parquet_chunks(self, rows: int) -> Iterator[pd.DataFrame]:
        import pyarrow as pa

        try:
            for batch in self._file.iter_batches(batch_size=rows, columns=self.columns):
                yield batch.to_pandas(ignore_metadata=True)  # where pandas keeps an index: here it is a column
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self.name} cannot be read to its end: {first_line(error)}") from error

    def _csv_pieces(self, rows: int, text: Collection[str]) -> Iterator[dict[str, Any]]:
        assert self.dialect is not None
        marks = self.dialect.by_column
        readers = [
            ColumnReader(
                name,
                decimal=marks.get(name, self.dialect.decimal),
                thousands=name in marks or self.dialect.certain,
                missing=self._missing,
                as_written=name in text,
                file=self.name,
            )
            for name in self.columns
        ]
        n_rows = 0
        for batch in self._cutter.batches(rows):
            for start in range(0, len(batch), rows):
                piece = batch.slice(start, rows)
                cells = zip(self.columns, readers, piece.columns, strict=True)
                yield {name: reader(column, n_rows) for name, reader, column in cells}
                n_rows += len(piece)
        self.notes += [note for reader in readers for note in reader.notes()]
        if n_rows and not self._text.ends_with_newline:
            self.notes.append(
                f"The last line of {self.name} does not end with a line break. If the file was cut off, its last cell "
                "is incomplete."
            )


def _beginning_of(stream: IO[bytes]) -> tuple[bytes, bool]:
    """The first bytes, with some whole lines among them, and whether that is everything."""
    start = stream.read(SAMPLE_BYTES)
    while start.count(b"\n") + start.count(b"\r") < SAMPLE_LINES and len(start) < LONGEST_SAMPLE:
        more = stream.read(len(start) or 1)
        if not more:
            return start, True
        start += more
        if start[:4] == b"PAR1":
            break
    return start, False


def _open(path: Path | None, name: str) -> IO[bytes]:
    if path is None:
        if sys.stdin is None:
            raise TableError("Standard input is closed. Name a file.")
        return sys.stdin.buffer
    if path.is_dir():
        raise TableError(f"{name} is a folder. Name a CSV or Parquet file.")
    if not path.exists():
        raise FileNotFoundError(f"There is no file {name}.")
    return path.open("rb")


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


def _open_parquet(stream: IO[bytes], name: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # never a whole group of rows at once; checksums count where the file has some
        return pq.ParquetFile(stream, buffer_size=READ_BUFFER, pre_buffer=False, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{name} starts like a Parquet file but cannot be read: {first_line(error)}") from error


def _refuse_duplicates(columns: list[str], name: str) -> None:
    seen: dict[str, int] = {}
    for position, column in enumerate(columns):
        if column in seen:
            raise TableError(
                f"{name} has two columns called {column!r}, the {seen[column] + 1}. and the {position + 1}. "
                "Rename one of them."
            )
        seen[column] = position

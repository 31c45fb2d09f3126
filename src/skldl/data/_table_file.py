"""Tables from files: CSV in whatever dialect it comes, and Parquet, whole or in chunks.

Everything is found out from the first bytes: encoding (UTF-8 with or without a byte order mark, UTF-16, else
Windows-1252), separator (comma, semicolon, tab or bar) and decimal mark. ``-`` means standard input.
"""

import contextlib
import csv
import io
import os
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import pandas as pd

from skldl.exceptions import TableError

SAMPLE_BYTES = 2**18
CHUNK_ROWS = 20_000
SEPARATORS = (",", ";", "\t", "|")
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A")
_DECIMAL_COMMA = re.compile(r"[+-]?(?:\d*|\d{1,3}(?:\.\d{3})+),\d+(?:[eE][+-]?\d+)?")
_ROW_LABELS_OF_PANDAS = re.compile(r"__index_level_\d+__")
_WITHOUT_ROW_NAMES = "Unnamed: 0"


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written.

    Attributes
    ----------
    encoding : str
        Name of the encoding.
    separator : str
        What stands between two cells.
    decimal : {".", ","}
        Decimal mark of its numbers.
    """

    encoding: str
    separator: str
    decimal: str


class Table:
    """A table in a file, with its columns known and its rows not yet read.

    The rows can be read once, by `read` or by `chunks`; then the file is closed. Use it in a ``with`` block where the
    reading may not come to its end.

    Parameters
    ----------
    source : str or path
        A CSV or Parquet file, or ``-`` for standard input.

    Attributes
    ----------
    name : str
        What messages call the file.
    columns : list of str
        Names of the columns.
    dialect : Dialect or None
        How the file is written; None for Parquet.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skldl.tabular import Table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "prices.csv"
    ...     _ = file.write_text("thing;price\\ntea;1,50\\n")
    ...     table = Table(file)
    ...     table.dialect, table.read().to_dict("records")
    (Dialect(encoding='utf-8', separator=';', decimal=','), [{'thing': 'tea', 'price': '1.50'}])
    """

    def __init__(self, source: str | os.PathLike[str]) -> None:
        self.name = "standard input" if str(source) == "-" else str(source)
        self._source = _open(source, self.name)
        self._stream: IO[bytes] = self._source
        self._rows_read = 0
        self._size = os.path.getsize(source) if str(source) != "-" else 0
        try:
            start = self._source.read(SAMPLE_BYTES)
            if not start.strip():
                raise TableError(f"{self.name} is empty. A table needs a header line with the names of its columns.")
            self._parquet = start[:4] == b"PAR1"
            self.dialect: Dialect | None = None
            if self._parquet:
                self._stream = _at_start(self._source, start)
                self._file = _open_parquet(self._stream, self.name)
                names = [str(name) for name in self._file.schema_arrow.names]
                self.columns = [name for name in names if not _ROW_LABELS_OF_PANDAS.fullmatch(name)]
            else:
                self.dialect = sniff(start, self.name)
                self.columns = _header(start, self.dialect, self.name)
                self._again = _Again(start, self._source)
                self._stream = io.BufferedReader(self._again)
            _refuse_duplicates(self.columns, self.name)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; standard input stays open."""
        for stream in (self._stream, self._source):
            if stream is not sys.stdin.buffer:
                stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def share_read(self) -> float | None:
        """Say what part of the file has been read.

        Returns
        -------
        float or None
            Between 0 and 1; None for standard input, whose length is not known.
        """
        if self._parquet:
            return self._rows_read / max(1, self._file.metadata.num_rows)
        return min(1.0, self._again.n_bytes / self._size) if self._size else None

    def nothing(self) -> pd.DataFrame:
        """A table with the same columns and no rows.

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
            The table; a file without rows is an error.
        """
        chunks = list(self.chunks(rows=10 * CHUNK_ROWS))
        if not sum(map(len, chunks)):
            raise TableError(f"{self.name} has a header but no rows.")
        return pd.concat(chunks)

    def chunks(self, rows: int = CHUNK_ROWS) -> Iterator[pd.DataFrame]:
        """Read the rows in pieces; the memory needed does not grow with the file.

        Parameters
        ----------
        rows : int
            At most so many rows at a time.

        Yields
        ------
        DataFrame
            The next rows, numbered from the first data row of the file, 0. In a CSV file every column holds text or
            missing values: what is a number is for the schema to say. Numbers have a decimal point, whatever the file
            has.
        """
        try:
            yield from self._parquet_chunks(rows) if self._parquet else self._csv_chunks(rows)
        finally:
            self.close()

    def _parquet_chunks(self, rows: int) -> Iterator[pd.DataFrame]:
        import pyarrow as pa

        start = 0
        try:
            for batch in self._file.iter_batches(batch_size=rows, columns=self.columns):
                chunk = batch.to_pandas(ignore_metadata=True)  # where pandas keeps an index: here it is a column
                chunk.index = pd.RangeIndex(start, start + len(chunk))
                start += len(chunk)
                self._rows_read = start
                yield chunk
        except (pa.ArrowException, OSError) as error:
            raise TableError(f"{self.name} cannot be read to its end: {_first_line(error)}") from error

    def _csv_chunks(self, rows: int) -> Iterator[pd.DataFrame]:
        assert self.dialect is not None
        try:
            reader = pd.read_csv(
                self._stream,
                sep=self.dialect.separator,
                encoding=self.dialect.encoding,
                dtype=str,
                keep_default_na=False,
                na_values=list(MISSING),
                chunksize=rows,
                header=0,
                names=self.columns,
                index_col=False,
                skipinitialspace=True,
                on_bad_lines="error",
            )
            while True:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", pd.errors.ParserWarning)  # every row longer than the header
                    chunk = next(reader, None)
                if chunk is None:
                    return
                yield _with_decimal_points(chunk) if self.dialect.decimal == "," else chunk
        except UnicodeError as error:
            raise TableError(
                f"{self.name} is not all {self.dialect.encoding}: {error}. Save it as UTF-8 and try again."
            ) from error
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            raise TableError(
                f"{self.name} cannot be read as a table: {_parser_complaint(error)}. Text with the separator "
                f"{self.dialect.separator!r} in it needs quotation marks."
            ) from error
        except Exception:
            if self._again.failure is not None:  # pandas makes other errors of an interrupt while it reads
                raise self._again.failure from None
            raise


class _Again(io.RawIOBase):
    """A stream with the bytes put back that were read from it to look at them; it remembers why reading failed."""

    def __init__(self, start: bytes, rest: IO[bytes]) -> None:
        self._start, self._rest = io.BytesIO(start), rest
        self.n_bytes = 0
        self.failure: BaseException | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            block = self._start.read(len(buffer)) or self._rest.read(len(buffer))
        except BaseException as error:
            self.failure = error
            raise
        buffer[: len(block)] = block
        self.n_bytes += len(block)
        return len(block)


def _open(source: str | os.PathLike[str], name: str) -> IO[bytes]:
    if str(source) == "-":
        return sys.stdin.buffer
    path = Path(source)
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
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the rows are read
    copy.write(start)
    shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy


def _open_parquet(stream: IO[bytes], name: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(stream)
    except (pa.ArrowException, OSError) as error:
        raise TableError(f"{name} starts like a Parquet file but cannot be read: {_first_line(error)}") from error


def sniff(start: bytes, name: str) -> Dialect:
    """Find out how a CSV file is written from its first bytes.

    Parameters
    ----------
    start : bytes
        The beginning of the file.
    name : str
        What messages call the file.

    Returns
    -------
    Dialect
        Encoding, separator and decimal mark.
    """
    encoding = _encoding(start, name)
    lines = start.decode(encoding, errors="ignore").splitlines()
    if len(start) >= SAMPLE_BYTES and len(lines) > 1:
        lines = lines[:-1]  # the last one is cut
    separator = _separator(lines)
    cells = [cell.strip() for row in _rows(lines[1:500], separator) for cell in row]
    decimal = "," if separator != "," and any(_DECIMAL_COMMA.fullmatch(cell) for cell in cells) else "."
    return Dialect(encoding, separator, decimal)


def _encoding(start: bytes, name: str) -> str:
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\x00" in start:
        raise TableError(f"{name} is neither text nor Parquet. Export the table as CSV (UTF-8) or Parquet.")
    if start.startswith(b"\xef\xbb\xbf"):
        return "utf-8-sig"
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(start) - 4:  # not just a character cut at the end of the sample
            return "cp1252"
    return "utf-8"


def _rows(lines: list[str], separator: str) -> list[list[str]]:
    """Cut lines into cells; a cell larger than the csv module takes is no reason to fail, only to stop looking."""
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):
        rows.extend(row for row in csv.reader(lines, delimiter=separator, skipinitialspace=True) if row)
    return rows


def _separator(lines: list[str]) -> str:
    """The separator that cuts the first lines into the same number of fields, the more the better."""
    best, most = ",", 1
    for separator in SEPARATORS:
        widths = [len(row) for row in _rows(lines[:50], separator)]
        if widths and widths[0] > most and widths.count(widths[0]) >= 0.9 * len(widths):
            best, most = separator, widths[0]
    return best


def _header(start: bytes, dialect: Dialect, name: str) -> list[str]:
    rows = _rows(start.decode(dialect.encoding, errors="ignore").splitlines(keepends=True)[:500], dialect.separator)
    if not rows:
        raise TableError(f"{name} holds no header line.")
    names = [cell.strip() for cell in rows[0]]
    unnamed = [position + 1 for position, cell in enumerate(names) if not cell]
    if unnamed == [1] and len(names) > 1:
        names[0] = _WITHOUT_ROW_NAMES  # R and pandas write row names under an empty heading
    elif unnamed:
        raise TableError(f"{name}: column {unnamed[0]} has no name in the header line. Give every column a name.")
    return names


def _refuse_duplicates(columns: list[str], name: str) -> None:
    for position, column in enumerate(columns):
        if column in columns[:position]:
            raise TableError(f"{name} has two columns called {column!r}. Rename one of them.")


def _with_decimal_points(chunk: pd.DataFrame) -> pd.DataFrame:
    """1.234,5 becomes 1234.5 in cells that hold nothing but a number."""
    for name in chunk.columns:
        numbers = chunk[name].str.fullmatch(_DECIMAL_COMMA.pattern).fillna(False).astype(bool)
        if numbers.any():
            plain = chunk.loc[numbers, name].str.replace(".", "", regex=False).str.replace(",", ".", regex=False)
            chunk.loc[numbers, name] = plain
    return chunk


def _parser_complaint(error: Exception) -> str:
    place = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
    if place:
        return f"line {place[2]} has {place[3]} fields, the header {place[1]}"
    if isinstance(error, pd.errors.ParserWarning):
        return "rows have more fields than the header"
    return _first_line(error)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

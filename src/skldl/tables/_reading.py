"""Tables from files: CSV in whatever dialect it comes, and Parquet, whole or in chunks.

Everything is found out from the first bytes: encoding (UTF-8 with or without a byte order mark, UTF-16, else
Windows-1252), separator (comma, semicolon, tab or bar) and decimal mark. ``-`` means standard input.
"""

import csv
import io
import os
import re
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pandas as pd

from skldl.exceptions import TableError

SAMPLE_BYTES = 2**18
CHUNK_ROWS = 20_000
SEPARATORS = (",", ";", "\t", "|")
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A")
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written."""

    encoding: str
    separator: str
    decimal: str


class Table:
    """A table in a file, with its columns known and its rows not yet read.

    Parameters
    ----------
    source : str or path
        A CSV or Parquet file, or ``-`` for standard input.
    """

    def __init__(self, source: str | os.PathLike[str]) -> None:
        self.name = "standard input" if str(source) == "-" else str(source)
        self._stream = _open(source, self.name)
        start = self._stream.peek(SAMPLE_BYTES)[:SAMPLE_BYTES]
        if not start:
            raise TableError(f"{self.name} is empty. A table needs a header line with the names of its columns.")
        self._parquet = start[:4] == b"PAR1"
        if self._parquet:
            self._file = _open_parquet(self._stream, self.name)
            self.columns = [str(name) for name in self._file.schema_arrow.names]
            self.dialect = None
        else:
            self.dialect = sniff(start, self.name)
            self.columns = _header(start, self.dialect, self.name)
        _refuse_duplicates(self.columns, self.name)

    def read(self) -> pd.DataFrame:
        """Read all rows.

        Returns
        -------
        DataFrame
            The table; a file without rows is an error.
        """
        chunks = list(self.chunks(rows=10 * CHUNK_ROWS))
        table = pd.concat(chunks, ignore_index=True) if chunks else pd.DataFrame(columns=self.columns)
        if not len(table):
            raise TableError(f"{self.name} has a header but no rows.")
        return table

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
            missing values: what is a number is for the schema to say.
        """
        try:
            yield from self._parquet_chunks(rows) if self._parquet else self._csv_chunks(rows)
        finally:
            self._stream.close()

    def _parquet_chunks(self, rows: int) -> Iterator[pd.DataFrame]:
        start = 0
        for batch in self._file.iter_batches(batch_size=rows):
            chunk = batch.to_pandas()
            chunk.columns = self.columns
            chunk.index = pd.RangeIndex(start, start + len(chunk))
            start += len(chunk)
            yield chunk

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
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)  # every row longer than the header
                yield from reader
        except pd.errors.EmptyDataError:
            return
        except UnicodeError as error:
            raise TableError(
                f"{self.name} is not all {self.dialect.encoding}: {error}. Save it as UTF-8 and try again."
            ) from error
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            place = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
            detail = (
                f"line {place[2]} has {place[3]} fields, the header {place[1]}"
                if place
                else " ".join(str(error).split())
            )
            raise TableError(
                f"{self.name} cannot be read as a table: {detail}. Text with the separator "
                f"{self.dialect.separator!r} in it needs quotation marks."
            ) from error


def _open(source: str | os.PathLike[str], name: str) -> Any:
    if str(source) == "-":
        return io.BufferedReader(
            sys.stdin.buffer.raw if hasattr(sys.stdin.buffer, "raw") else sys.stdin.buffer, SAMPLE_BYTES
        )
    path = Path(source)
    if path.is_dir():
        raise TableError(f"{name} is a folder. Name a CSV or Parquet file.")
    return io.BufferedReader(path.open("rb", buffering=0), SAMPLE_BYTES)


def _open_parquet(stream: IO[bytes], name: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not stream.seekable():  # Parquet keeps its index at the end
        spool = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the rows are read
        while block := stream.read(2**20):
            spool.write(block)
        spool.seek(0)
        stream = spool
    try:
        return pq.ParquetFile(stream)
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(f"{name} starts like a Parquet file but cannot be read: {error}") from error


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
    text = start.decode(encoding, errors="ignore")
    lines = text.splitlines()
    if len(start) >= SAMPLE_BYTES and len(lines) > 1:
        lines = lines[:-1]  # the last one is cut
    separator = _separator(lines)
    cells = [cell.strip() for row in csv.reader(lines[1:500], delimiter=separator) for cell in row]
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


def _separator(lines: list[str]) -> str:
    """The separator that cuts the first lines into the same number of fields, the more the better."""
    best, most = ",", 0
    for separator in SEPARATORS:
        widths = [len(row) for row in csv.reader(lines[:50], delimiter=separator) if row]
        if widths and widths[0] > 1 and widths.count(widths[0]) >= 0.9 * len(widths) and widths[0] > most:
            best, most = separator, widths[0]
    return best


def _header(start: bytes, dialect: Dialect, name: str) -> list[str]:
    text = start.decode(dialect.encoding, errors="ignore")
    for row in csv.reader(io.StringIO(text), delimiter=dialect.separator, skipinitialspace=True):
        if row:
            names = [cell.strip() for cell in row]
            break
    else:
        raise TableError(f"{name} holds no header line.")
    unnamed = [position + 1 for position, cell in enumerate(names) if not cell]
    if unnamed == [1] and len(names) > 1:
        names[0] = "Unnamed: 0"  # R and pandas write row names under an empty heading
    elif unnamed:
        raise TableError(f"{name}: column {unnamed[0]} has no name in the header line. Give every column a name.")
    return names


def _refuse_duplicates(columns: list[str], name: str) -> None:
    for position, column in enumerate(columns):
        if column in columns[:position]:
            raise TableError(f"{name} has two columns called {column!r}. Rename one of them.")

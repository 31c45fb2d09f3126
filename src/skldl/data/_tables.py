"""Tables in files: one file, several files with the same columns, and writing, in any format of `skldl.data._formats`.

``-`` means standard input or output.
"""

import os
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from copy import copy
from os.path import abspath, getsize
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import pandas as pd

from skldl.data._arrays import (
    FEATURE_KEYS,
    LABEL_KEYS,
    array_variables,
    check_names,
    find_key,
    names_in,
    numeric_table,
    one_per_row,
)
from skldl.data._cells import as_words, is_plain_number
from skldl.data._csv import Dialect
from skldl.data._formats import CSV, find_files, format_named, format_of_content, suffixes_with
from skldl.data._parquet import release_unused_memory
from skldl.exceptions import DataError, DatasetError, DatasetNotFoundError, TableError
from skldl.utils.column_names import list_names
from skldl.utils.files import whole_file

CHUNK_ROWS = 20_000

# The beginning of a file that is read to detect its dialect: this many bytes, or more if the lines are long. Chosen by
# hand.
SAMPLE_BYTES = 2**18
SAMPLE_LINES = 20
MAX_SAMPLE_BYTES = 2**26


class TableFile:
    """A table in a file: the columns are known at once, the rows are read when they are needed.

    The rows can be read once, by `read` or by `chunks`; then the file is closed. Use a ``with`` block to close it
    earlier.

    Parameters
    ----------
    source : str, path or binary stream
        A CSV or Parquet file, or ``-`` for standard input. The format is detected from the first bytes of the file. A
        stream is read to its end and closed; messages use its ``name``.
    encoding : str, default=None
        Encoding of a CSV file, such as ``"shift_jis"``; detected by default.
    decimal : {".", ","}, default=None
        Decimal mark of a CSV file; the other mark then separates thousands. Detected by default.
    na_values : collection of str, default=None
        Words that mean a missing value; an empty cell always does. By default NA, N/A, NaN, nan, null, NULL, None and
        #N/A.
    header : bool or None, default=True
        Whether the first line of a CSV file names the columns; None means that it does unless it has only numbers.

    Attributes
    ----------
    name : str
        Name of the file in messages.
    columns : list of str
        Names of the columns.
    dialect : Dialect or None
        Encoding, separator and decimal mark; None for Parquet.
    has_header : bool
        Whether the columns have names; otherwise they are numbered from 1.
    notes : list of str
        Notes for the user; complete after all rows were read.

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
        self._keep_open = isinstance(source, str) and source == "-"
        path: Path | None = None
        if isinstance(source, str | os.PathLike):
            self.name = "standard input" if str(source) == "-" else str(source)
            path = None if str(source) == "-" else Path(source)
            self._stream = _opened(path, self.name)
        else:
            self.name, self._stream = str(getattr(source, "name", "the stream")), source
        self._n_rows_read = 0
        self._n_bytes = getsize(path) if path is not None else 0
        self._reader: Any = None
        try:
            start, whole = _beginning_of(self._stream)
            if not start.strip():
                raise TableError(f"{self.name} is empty. A table needs a header line with the names of its columns.")
            self._reader = format_of_content(start).load("reader")(
                self._stream,
                start,
                self.name,
                path=path,
                whole=whole,
                encoding=encoding,
                decimal=decimal,
                na_values=na_values,
                header=header,
            )
            self.columns: list[str] = self._reader.columns
            _check_different(self.columns, self.name)
        except BaseException:
            self.close()
            raise
        self.dialect: Dialect | None = self._reader.dialect
        self.has_header: bool = self._reader.has_header
        self.notes: list[str] = self._reader.notes

    def close(self) -> None:
        """Close the file; standard input stays open."""
        if self._reader is not None:
            self._reader.close()
        if not self._keep_open:
            self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def fraction_read(self) -> float | None:
        """Fraction of the file that has been read.

        Returns
        -------
        float or None
            Between 0 and 1; None for standard input, whose length is unknown.
        """
        if self._reader.n_rows is not None:
            return self._n_rows_read / max(1, self._reader.n_rows)
        return min(1.0, self._reader.n_bytes_read / self._n_bytes) if self._n_bytes else None

    def size(self) -> tuple[int | None, int, int]:
        """Size of the table.

        Returns
        -------
        tuple of (int or None, int, int)
            Number of rows (None for text files, where it is unknown), number of bytes (for binary formats unpacked),
            and bytes of memory that reading takes besides the rows of a chunk.
        """
        return self._reader.n_rows, *self._reader.size()

    def empty(self) -> pd.DataFrame:
        """Make a table with the same columns and no rows.

        Returns
        -------
        DataFrame
            Columns of text, or of the types in a binary file.
        """
        frame: pd.DataFrame = self._reader.empty()
        return frame

    def read(self) -> pd.DataFrame:
        """Read all rows.

        Returns
        -------
        DataFrame
            The table; a file without rows is an error. Its ``attrs["notes"]`` are the notes of this object. A column
            that holds text in some rows is text in all.
        """
        frame = _joined(self._pieces(10 * CHUNK_ROWS), self.columns)
        if not len(frame):
            raise TableError(f"{self.name} has a header but no rows.")
        frame.attrs["notes"] = tuple(self.notes)
        return frame

    def chunks(self, rows: int = CHUNK_ROWS, *, text: Collection[str] = ()) -> Iterator[pd.DataFrame]:
        """Read the rows in chunks; the memory does not depend on the size of the file.

        Parameters
        ----------
        rows : int, default=20000
            Maximum number of rows in a chunk.
        text : collection of str, default=()
            Columns of a CSV file that are not converted to numbers.

        Yields
        ------
        DataFrame
            The next rows, with an index that counts the data rows of the file from 0. A column of a CSV file holds
            numbers if all its cells in this chunk are numbers, else text; codes with leading zeros or more than fifteen
            digits are text.
        """
        for piece in self._pieces(rows, text):
            chunk = pd.DataFrame(piece)
            chunk.index = pd.RangeIndex(self._n_rows_read - len(chunk), self._n_rows_read)
            yield chunk

    def _pieces(self, rows: int, text: Collection[str] = ()) -> Iterator[Mapping[str, Any]]:
        """Yield the columns of the rows piece by piece, count the rows, and close the file at the end."""
        try:
            for piece in self._reader.pieces(rows, text):
                self._n_rows_read += len(piece[self.columns[0]])
                yield piece
        finally:
            self.close()


class TableFiles:
    """A table in one or several files, which can be read repeatedly; all files have the same columns, in any order.

    Parameters
    ----------
    sources : str, path or sequence of them
        Files, folders, and patterns such as ``ratings/*.parquet``. A folder stands for the files of all table formats
        in it and its subfolders, in the order of their names, except those whose names begin with a dot or an
        underscore.
    **reading : dict
        Options of `TableFile`.

    Attributes
    ----------
    files : list of str
        The files.
    name : str
        Name of the table in messages.
    columns : list of str
        Names of the columns.
    n_bytes : int
        Size of the files, for binary formats of the unpacked table.
    reading_bytes : int
        Bytes of memory that reading takes besides the rows of a chunk.
    notes : list of str
        Notes for the user; complete after all rows were read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from skldl.data import TableFiles
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.csv", "b.csv"):
    ...         _ = (pathlib.Path(folder) / name).write_text("x,y\\n1,2\\n")
    ...     TableFiles(folder).read()
       x  y
    0  1  2
    1  1  2
    """

    def __init__(self, sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], **reading: Any) -> None:
        given = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
        self.files = find_files(given, suffixes_with("reader"))
        if not self.files:
            raise TableError("No table was named. Name a file, a folder, or a pattern.")
        self._reading = reading
        self.name = self.files[0] if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1} more files"
        self.notes: list[str] = []
        self.n_bytes = self.reading_bytes = 0
        self._sizes: dict[str, int] = {}
        for file in self.files:
            self._inspect(file)
        self._done = 0
        self._now: TableFile | None = None

    def _inspect(self, file: str) -> None:
        """Check the columns of a file against those of the first, and add its size."""
        with TableFile(file, **self._reading) as table:
            columns = list(table.columns)
            _, n_bytes, n_reading = table.size()
        if file == self.files[0]:
            self.columns = columns
        elif set(columns) != set(self.columns):
            lacking = [name for name in self.columns if name not in columns]
            further = [name for name in columns if name not in self.columns]
            what = f"lacks the column {lacking[0]!r}" if lacking else f"has a further column {further[0]!r}"
            raise TableError(
                f"{file} {what}: all files need the columns of {self.files[0]}, which are {list_names(self.columns)}. "
                "Correct the file, or leave it out."
            )
        self.n_bytes += n_bytes
        self.reading_bytes = max(self.reading_bytes, n_reading)
        self._sizes[file] = getsize(file)

    def pieces(self, rows: int = CHUNK_ROWS, only: str | None = None) -> Iterator[tuple[str, pd.DataFrame]]:
        """Read all rows, or those of one file, in chunks.

        Parameters
        ----------
        rows : int, default=20000
            Maximum number of rows in a chunk.
        only : str, default=None
            One of the files; None for all.

        Yields
        ------
        tuple of (str, DataFrame)
            The file of the rows, and the rows, with an index that counts the rows of the file from 0.
        """
        for file, table in self._open_each(only):
            for chunk in table.chunks(rows):
                if len(chunk):
                    yield file, chunk[self.columns]

    def _open_each(self, only: str | None = None) -> Iterator[tuple[str, TableFile]]:
        """Yield the open files in turn, or one of them; each must be read to its end."""
        self._done = 0
        for file, size in self._sizes.items():
            if only not in (None, file):
                continue
            with TableFile(file, **self._reading) as table:
                self._now = table
                yield file, table
                notes = [*table.notes, *([] if table._n_rows_read else [f"{file} has a header but no rows."])]
                self.notes += [note for note in notes if note not in self.notes]
            self._now = None
            self._done += size

    def read(self) -> pd.DataFrame:
        """Read all rows; a column that holds text in one file is text in all.

        Returns
        -------
        DataFrame
            The table, with rows numbered through all files. Its ``attrs["notes"]`` are the notes of this object.
        """
        pieces = (piece for _, table in self._open_each() for piece in table._pieces(10 * CHUNK_ROWS))
        frame = _joined(pieces, self.columns)
        if not len(frame):
            raise TableError(f"{self.name} has a header but no rows.")
        frame.attrs["notes"] = tuple(self.notes)
        return frame

    def place_of(self, row: int) -> tuple[str, int]:
        """Find the file of a row.

        Parameters
        ----------
        row : int
            Position of the row in the table.

        Returns
        -------
        tuple of (str, int)
            The file, and the position of the row in this file.
        """
        for file in self.files:
            with TableFile(file, **self._reading) as table:
                n_rows = table.size()[0]
                n_rows = sum(map(len, table.chunks())) if n_rows is None else n_rows
            if row < n_rows:
                return file, row
            row -= n_rows
        raise IndexError(row)

    @contextmanager
    def naming_rows(self) -> Iterator[None]:
        """Add the file to errors about a row of the table, if there are several files.

        Yields
        ------
        None
            Nothing; errors of the block are completed.
        """
        try:
            yield
        except DataError as error:
            if error.row is None or len(self.files) == 1:
                raise
            file, row = self.place_of(error.row)
            place = f" (Row {error.row + 1} of the table is row {row + 1} of {file}.)"
            raise type(error)(*error.parts, place, row=error.row) from error

    def at_full_paths(self) -> "TableFiles":
        """Copy the table with absolute paths, for a process that runs in another folder.

        Returns
        -------
        TableFiles
            The copy.
        """
        other = copy(self)
        other.files = [abspath(file) for file in self.files]
        other._sizes = dict(zip(other.files, self._sizes.values(), strict=True))
        return other

    def fraction_read(self) -> float | None:
        """Fraction of the files that has been read in this pass.

        Returns
        -------
        float or None
            Between 0 and 1; None for empty files.
        """
        whole = sum(self._sizes.values())
        now = 0.0 if self._now is None else (self._now.fraction_read() or 0.0) * self._sizes[self._now.name]
        return min(1.0, (self._done + now) / whole) if whole else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: each file is closed after its rows were read."""


def _joined(pieces: Iterable[Mapping[str, Any]], columns: list[str]) -> pd.DataFrame:
    """Join pieces of a table; a column that holds text in one piece becomes text in all."""
    parts = [dict(piece) for piece in pieces]
    if not parts:
        return pd.DataFrame(columns=columns)
    # columns are removed from the pieces one by one, so that the table is not in memory twice
    frame = pd.DataFrame({name: _joined_column([part.pop(name) for part in parts]) for name in columns}, copy=False)
    release_unused_memory()
    return frame


def _joined_column(parts: Sequence[Any]) -> pd.Series:
    columns = [pd.Series(part, copy=False) for part in parts]
    if len(columns) == 1:
        return columns[0]
    present = [is_plain_number(column) for column in columns if column.notna().any()]
    if any(present) and not all(present):
        columns = [as_words(column, None) if is_plain_number(column) else column.astype(object) for column in columns]
    elif len({column.dtype for column in columns}) > 1 and not all(present):
        columns = [column.astype(object) for column in columns]
    return pd.concat(columns, ignore_index=True)


class ArrayTable:
    """A file of arrays as a table, with the methods of `TableFile`: one column for each feature and label.

    ``labels`` is the name of the array of labels, if it is not a usual one such as labels or D; labels are optional.
    Arrays in ``also`` with one value for each row, such as weights and groups, become columns. The names of the columns
    are the arrays ``feature_names`` and ``label_names`` of the file, or else feature_0, … and label_0, ….

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "votes.npz"
    ...     np.savez(file, X=[[31.0], [54.0]], D=[[3, 1], [0, 2]], person=["ann", "bob"])
    ...     ArrayTable(file, also=["person"]).read()
       feature_0  label_0  label_1 person
    0       31.0        3        1    ann
    1       54.0        0        2    bob
    """

    def __init__(self, source: str | Path, *, labels: str | None = None, also: Sequence[str] = ()) -> None:
        path = Path(source)
        self.name = str(source)
        if not path.is_file():
            raise DatasetNotFoundError(f"There is no file {source}.")
        variables = array_variables(path)
        features = find_key(path, variables, None, FEATURE_KEYS, "features")
        X = _array_columns(path, variables, features, "feature")
        has_labels = labels is not None or any(key.lower() in LABEL_KEYS for key in variables)
        parts = [X]
        if has_labels:
            key = find_key(path, variables, labels, LABEL_KEYS, "labels")
            parts.append(_array_columns(path, variables, key, "label"))
        self.label_columns = list(parts[-1]) if has_labels else []
        parts += [pd.DataFrame({key: one_per_row(path, variables, key, len(X))}) for key in dict.fromkeys(also)]
        for part in parts:
            if len(part) != len(X):
                raise DatasetError(
                    f"{path}: {features!r} has {len(X)} rows and the labels have {len(part)}; each needs one row per "
                    "instance."
                )
        self._frame = pd.concat(parts, axis=1)
        self.columns = list(self._frame)
        self._rows_read = 0

    def read(self) -> pd.DataFrame:
        """All rows; a second call returns no rows."""
        frame, self._frame = self._frame, self._frame.iloc[:0]
        return frame

    def chunks(self, rows: int = 20_000, *, text: Collection[str] = ()) -> Iterator[pd.DataFrame]:
        """Yield the rows in chunks; ``text`` is for text files."""
        for start in range(0, len(self._frame), rows):
            piece = self._frame.iloc[start : start + rows]
            self._rows_read = start + len(piece)
            yield piece

    def empty(self) -> pd.DataFrame:
        """A table with the same columns and no rows."""
        return self._frame.iloc[:0]

    def fraction_read(self) -> float | None:
        """Fraction of the rows that were returned."""
        return self._rows_read / max(1, len(self._frame))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Do nothing: the arrays are in memory."""


class TableWriter:
    """Write a table in pieces; use it in a ``with`` block.

    The pieces are written to a temporary file in the same folder, which is renamed at the end of the block and removed
    after an error. Pieces for standard output (``-``) are written at once.

    Parameters
    ----------
    target : str, path or binary stream
        A file, or a stream with a ``name``, that ends in ``.csv``, ``.txt``, ``.tsv``, ``.parquet`` or ``.pq``; or
        ``-`` for CSV on standard output.
    digits : int, default=None
        Significant digits of numbers in text; by default all. Parquet keeps numbers as they are.
    exact : collection of str, default=()
        Columns to which ``digits`` does not apply.
    escape_formulas : bool, default=False
        Put an apostrophe before text that a spreadsheet would evaluate as a formula: text that begins with ``=``,
        ``+``, ``-`` or ``@`` and is not a number.

    Attributes
    ----------
    written : bool
        Whether any rows were written.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.data import TableWriter
    >>> with TableWriter("-") as writer:
    ...     writer.write(pd.DataFrame({"joy": [0.25]}))
    ...     writer.write(pd.DataFrame({"joy": [0.75]}))
    joy
    0.25
    0.75
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | IO[bytes],
        *,
        digits: int | None = None,
        exact: Collection[str] = (),
        escape_formulas: bool = False,
    ) -> None:
        self._given = None if isinstance(target, str | os.PathLike) else target
        self.target = str(target if self._given is None else self._given.name)
        format_ = CSV if self.target == "-" else format_named(self.target)
        if format_ is None or not format_.writer:
            *first, last = suffixes_with("writer")
            raise TableError(
                f"{self.target}: the file extension determines the format. Use {', '.join(first)} or {last}."
            )
        self._writer = format_.load("writer")(self.target, digits=digits, exact=exact, escape_formulas=escape_formulas)
        self.written = False

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._writer.begin(self._opened())
        self._stack.callback(self._writer.end)
        return self

    def _opened(self) -> IO[Any]:
        if self._given is not None:
            return self._given
        return sys.stdout if self.target == "-" else self._stack.enter_context(whole_file(self.target))

    def write(self, piece: pd.DataFrame) -> None:
        """Append rows.

        Parameters
        ----------
        piece : DataFrame
            Rows with the same columns each time.
        """
        self.append(self.rendered(piece, header=not self.written))

    def rendered(self, piece: pd.DataFrame, *, header: bool) -> Any:
        """Format rows without writing them; another process can do this.

        Parameters
        ----------
        piece : DataFrame
            The rows.
        header : bool
            Whether the names of the columns are included.

        Returns
        -------
        str or DataFrame
            The argument of `append`: text, or for a binary format the rows.
        """
        return self._writer.rendered(piece, header=header)

    def append(self, piece: Any) -> None:
        """Append rows that `rendered` formatted.

        Parameters
        ----------
        piece : str or DataFrame
            The next rows.
        """
        self._writer.append(piece)
        self.written = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.target == "-" and kind is None:
            self._stack.callback(sys.stdout.flush)
        self._stack.__exit__(kind, error, trace)


def _beginning_of(stream: IO[bytes]) -> tuple[bytes, bool]:
    """The first bytes of a file, with some complete lines if it is text, and whether that is the whole file."""
    start = stream.read(SAMPLE_BYTES)
    while start.count(b"\n") + start.count(b"\r") < SAMPLE_LINES and len(start) < MAX_SAMPLE_BYTES:
        more = stream.read(len(start) or 1)
        if not more:
            return start, True
        start += more
        if format_of_content(start).first_bytes:
            break
    return start, False


def _opened(path: Path | None, name: str) -> IO[bytes]:
    if path is None:
        if sys.stdin is None:
            raise TableError("Standard input is closed. Name a file.")
        return sys.stdin.buffer
    if path.is_dir():
        raise TableError(f"{name} is a folder. Name a file in it.")
    if not path.exists():
        raise DatasetNotFoundError(f"There is no file {name}.")
    return path.open("rb")


def _check_different(columns: list[str], name: str) -> None:
    seen: dict[str, int] = {}
    for position, column in enumerate(columns):
        if column in seen:
            raise TableError(
                f"{name} has two columns called {column!r}, columns {seen[column] + 1} and {position + 1}. Rename one "
                "of them."
            )
        seen[column] = position


def _array_columns(path: Path, variables: dict[str, Any], key: str, what: str) -> pd.DataFrame:
    values = numeric_table(path, variables[key], key, keep_sparse=False)
    names = names_in(path, variables, f"{what}_names")
    check_names(path, names, values.shape[1], f"{what}_names")
    return pd.DataFrame(values, columns=list(names or (f"{what}_{place}" for place in range(values.shape[1]))))

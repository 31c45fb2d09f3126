"""Several CSV or Parquet files as one table: their rows one after the other, every file with the same columns."""

import glob
from collections.abc import Iterator, Sequence
from copy import copy
from os.path import abspath, getsize
from pathlib import Path
from typing import Any, Self

import pandas as pd

from skldl.data._cells import as_words, is_plain_number, list_names
from skldl.data._table_file import CHUNK_ROWS, TableFile
from skldl.exceptions import TableError

ENDINGS = (".csv", ".tsv", ".txt", ".parquet", ".pq")
"""Files that are taken from a folder."""
_WILDCARDS = "*?["


def find_tables(sources: Sequence[str]) -> list[str]:
    """The files that names, folders and patterns such as ``ratings/*.parquet`` stand for, each once.

    The files of a folder (.csv, .tsv, .txt, .parquet, .pq) are taken in the order of their names, those in its folders
    too, but none whose name begins with a dot or an underscore. ``-`` stands for standard input.
    """
    found: dict[str, None] = {}
    for source in sources:
        if not source.strip():
            raise TableError("The name of the table is empty.")  # Path would take it for the current folder
        path = Path(source)
        if source != "-" and path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.suffix.lower() in ENDINGS and file.is_file())
            files = [str(file) for file in inside if not _is_hidden(file, path)]
            if not files:
                raise TableError(f"{source} is a folder without tables: no file in it ends in {', '.join(ENDINGS)}.")
        elif source != "-" and not path.exists() and any(sign in source for sign in _WILDCARDS):
            files = sorted(name for name in glob.glob(source, recursive=True) if Path(name).is_file())
            if not files:
                raise FileNotFoundError(f"There is no file {source}: nothing fits the pattern.")
        else:
            files = [source]
        found |= dict.fromkeys(files)
    return list(found)


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


class TableFiles:
    """The rows of several files, which can be read again and again; all have the columns of the first, in any order.

    ``notes`` are complete when all rows were read. ``n_bytes`` counts CSV files as they are and Parquet files unpacked;
    ``reading_bytes`` is the memory that reading takes besides the rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.csv", "b.csv"):
    ...         _ = (pathlib.Path(folder) / name).write_text("x,y\\n1,2\\n")
    ...     TableFiles(find_tables([folder])).read()
       x  y
    0  1  2
    1  1  2
    """

    def __init__(self, sources: Sequence[str], **reading: Any) -> None:
        self.files = list(sources)
        self._reading = reading
        self.name = self.files[0] if len(self.files) == 1 else f"{self.files[0]} and {len(self.files) - 1} more files"
        self.notes: list[str] = []
        self.n_bytes = self.reading_bytes = 0
        self._sizes: dict[str, int] = {}
        for file in self.files:
            self._look_at(file)
        self._done = 0
        self._now: TableFile | None = None

    def _look_at(self, file: str) -> None:
        """Compare the columns of a file with those of the first, and take note of its size."""
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
                "Mend the file, or leave it out."
            )
        self.n_bytes += n_bytes
        self.reading_bytes = max(self.reading_bytes, n_reading)
        self._sizes[file] = getsize(file)

    def pieces(self, rows: int = CHUNK_ROWS, only: str | None = None) -> Iterator[tuple[str, pd.DataFrame]]:
        """Read all rows once, at most so many at a time; or one file only.

        Yields the file that the rows come from, and the rows, numbered from the first data row of the file, 0.
        """
        self._done = 0
        for file, size in self._sizes.items():
            if only not in (None, file):
                continue
            with TableFile(file, **self._reading) as table:
                self._now = table
                empty = True
                for chunk in table.chunks(rows):
                    if len(chunk):
                        empty = False
                        yield file, chunk[self.columns]
                self._remember([*table.notes, *([f"{file} has a header but no rows."] if empty else [])])
            self._now = None
            self._done += size

    def _remember(self, notes: list[str]) -> None:
        self.notes += [note for note in notes if note not in self.notes]

    def read(self) -> pd.DataFrame:
        """All rows, numbered through all files; a column that holds text in one file becomes text.

        The ``attrs["notes"]`` of the table are the notes of this object.
        """
        parts = [chunk for _, chunk in self.pieces(10 * CHUNK_ROWS)]
        if not parts:
            raise TableError(f"{self.name} has a header but no rows.")
        frame = pd.DataFrame({name: _joined([part[name] for part in parts]) for name in self.columns})
        frame.attrs["notes"] = tuple(self.notes)
        return frame

    def place_of(self, row: int) -> tuple[str, int]:
        """The file that holds a row of the whole, both counted from 0, and its number there."""
        for file in self.files:
            with TableFile(file, **self._reading) as table:
                n_rows = table.size()[0]
                n_rows = sum(map(len, table.chunks())) if n_rows is None else n_rows
            if row < n_rows:
                return file, row
            row -= n_rows
        raise IndexError(row)

    def at_full_paths(self) -> "TableFiles":
        """The same table for a process that runs in another folder."""
        other = copy(self)
        other.files = [abspath(file) for file in self.files]
        other._sizes = dict(zip(other.files, self._sizes.values(), strict=True))
        return other

    def share_read(self) -> float | None:
        """What part of the files has been read in this pass."""
        whole = sum(self._sizes.values())
        now = 0.0 if self._now is None else (self._now.share_read() or 0.0) * self._sizes[self._now.name]
        return min(1.0, (self._done + now) / whole) if whole else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Each file is closed when its rows have been read."""


def _joined(parts: list[pd.Series]) -> pd.Series:
    """One column of several; numbers become words where other parts hold text."""
    present = [part for part in parts if part.notna().any()]
    numbers = [is_plain_number(part) for part in present]
    if any(numbers) and not all(numbers):
        parts = [as_words(part, None) if is_plain_number(part) else part.astype(object) for part in parts]
    elif len({part.dtype for part in parts}) > 1 and not all(numbers):
        parts = [part.astype(object) for part in parts]
    return pd.concat(parts, ignore_index=True)

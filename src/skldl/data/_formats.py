"""The file formats that all commands and functions read and write.

A new format is one entry in `FORMATS`, and a module with the parts that the entry names:

* ``reader``, a class with the methods of `skldl.data._parquet.ParquetTable`, for tables;
* ``writer``, a class with the methods of `skldl.data._parquet.ParquetWriter`, if tables can be written in it;
* ``arrays``, a function that reads named arrays from a path, for files of arrays instead of tables.

These modules are imported when a file of the format is opened, since only tables need pandas and pyarrow.
"""

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from skldl.exceptions import DatasetNotFoundError, TableError

_WILDCARDS = "*?["


@dataclass(frozen=True)
class Format:
    """A file format.

    ``suffixes`` are in lower case. ``first_bytes`` identify a binary format independently of the file name;
    ``media_type`` is its name in HTTP, with other spellings in ``media_synonyms``. ``reader``, ``writer`` and
    ``arrays``, see above, are written as ``module.name``.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str = ""
    writer: str = ""
    arrays: str = ""
    first_bytes: bytes = b""
    media_type: str = ""
    media_synonyms: tuple[str, ...] = ()

    def load(self, part: str) -> Any:
        """Import the ``"reader"``, ``"writer"`` or ``"arrays"`` function of the format."""
        module, _, name = getattr(self, part).partition(".")
        return getattr(import_module(f"skldl.data.{module}"), name)


CSV = Format(
    "CSV",
    (".csv", ".txt"),
    "_csv.CsvTable",
    "_csv.CsvWriter",
    media_type="text/csv",
    media_synonyms=("application/csv",),
)
PARQUET = Format(
    "Parquet",
    (".parquet", ".pq"),
    "_parquet.ParquetTable",
    "_parquet.ParquetWriter",
    first_bytes=b"PAR1",
    media_type="application/vnd.apache.parquet",
    media_synonyms=("application/parquet", "application/x-parquet"),
)
FORMATS = (
    CSV,
    Format("TSV", (".tsv",), "_csv.CsvTable", "_csv.TsvWriter"),
    PARQUET,
    Format("MATLAB", (".mat",), arrays="_arrays.mat_variables"),
    Format("NumPy", (".npz",), arrays="_arrays.npz_variables"),
)


def format_named(path: str | os.PathLike[str]) -> Format | None:
    """The format with the suffix of a file name, or None.

    Examples
    --------
    >>> format_named("ratings.PQ").name, format_named("ratings.xlsx")
    ('Parquet', None)
    """
    suffix = Path(path).suffix.lower()
    return next((format_ for format_ in FORMATS if suffix in format_.suffixes), None)


def format_of_content(start: bytes) -> Format:
    """The format of a table that begins with these bytes: a binary format that they identify, else CSV."""
    binary = (format_ for format_ in FORMATS if format_.first_bytes)
    return next((format_ for format_ in binary if start.startswith(format_.first_bytes)), CSV)


def holds_arrays(path: str | os.PathLike[str]) -> bool:
    """Whether a file holds arrays instead of a table, by its suffix."""
    format_ = format_named(path)
    return format_ is not None and bool(format_.arrays)


def suffixes_with(part: str) -> tuple[str, ...]:
    """Suffixes of all formats that have a ``"reader"``, a ``"writer"`` or ``"arrays"``.

    Examples
    --------
    >>> suffixes_with("arrays")
    ('.mat', '.npz')
    """
    return tuple(suffix for format_ in FORMATS if getattr(format_, part) for suffix in format_.suffixes)


def list_formats(part: str, *, suffixes: bool = False) -> str:
    """List, for a text, the formats that have a ``"reader"``, a ``"writer"`` or ``"arrays"``, perhaps with suffixes.

    Examples
    --------
    >>> list_formats("reader"), list_formats("arrays", suffixes=True)
    ('CSV, TSV or Parquet', 'MATLAB (.mat) or NumPy (.npz)')
    """
    found = [format_ for format_ in FORMATS if getattr(format_, part)]
    *first, last = (f"{one.name} ({', '.join(one.suffixes)})" if suffixes else one.name for one in found)
    return f"{', '.join(first)} or {last}" if first else last


def find_files(sources: Sequence[str | os.PathLike[str]], suffixes: Sequence[str]) -> list[str]:
    """List the files of paths, folders and patterns such as ``ratings/*.parquet``, without duplicates.

    A folder stands for the files with one of the suffixes in it and its subfolders, sorted by path. Files and
    subfolders whose names begin with a dot or an underscore are left out, since programs that write tables in parts use
    such names for metadata. ``-`` stands for standard input.
    """
    found: dict[str, None] = {}
    for source in (os.fspath(source) for source in sources):
        if not source.strip():
            raise TableError("The name of the table is empty.")  # Path would take it for the current folder
        path = Path(source)
        if source == "-" or path.is_file():
            files = [source]
        elif path.is_dir():
            inside = sorted(file for file in path.rglob("*") if file.suffix.lower() in suffixes and file.is_file())
            files = [str(file) for file in inside if not _is_hidden(file.relative_to(path))]
            if not files:
                raise DatasetNotFoundError(
                    f"{source} is a folder without tables: no file in it ends in {', '.join(suffixes)}."
                )
        elif not path.exists() and any(sign in source for sign in _WILDCARDS):
            files = sorted(name for name in glob.glob(source, recursive=True) if Path(name).is_file())
            if not files:
                raise DatasetNotFoundError(f"There is no file {source}: no name matches the pattern.")
        elif not path.exists():
            raise DatasetNotFoundError(f"There is no file {source}. Name a file, a folder, or a pattern.")
        else:
            files = [source]  # a pipe
        found |= dict.fromkeys(files)
    return list(found)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)

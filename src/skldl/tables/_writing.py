"""Tables to files, piece by piece and whole or not at all: a run that fails leaves nothing and changes nothing."""

import os
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd

from skldl.exceptions import TableError


class TableWriter:
    """Write a table in pieces; use it in a ``with`` block.

    The pieces go to a file beside the target, which takes the target's name when the block ends well and disappears when
    it does not. Standard output (``-``) is written as the pieces come.

    Parameters
    ----------
    target : str or path
        A file that ends in ``.csv``, ``.tsv`` or ``.parquet``, or ``-`` for CSV on standard output.
    """

    def __init__(self, target: str | os.PathLike[str]) -> None:
        self.target = str(target)
        ending = Path(self.target).suffix.lower()
        if self.target != "-" and ending not in (".csv", ".tsv", ".parquet"):
            raise TableError(f"{self.target}: the ending says how to write: use .csv, .tsv or .parquet.")
        self._parquet = ending == ".parquet"
        self._separator = "\t" if ending == ".tsv" else ","
        self._writer: Any = None
        self._first = True

    def __enter__(self) -> Self:
        if self.target == "-":
            self._stream: Any = sys.stdout
            return self
        folder = Path(self.target).parent
        if not folder.is_dir():
            raise TableError(f"There is no folder {folder}; make it first.")
        handle, self._partial = tempfile.mkstemp(dir=folder, prefix=f".{Path(self.target).name}.", suffix=".part")
        self._stream = (
            os.fdopen(handle, "wb") if self._parquet else os.fdopen(handle, "w", encoding="utf-8", newline="")
        )
        return self

    def write(self, piece: pd.DataFrame) -> None:
        """Append rows.

        Parameters
        ----------
        piece : DataFrame
            Rows with the same columns each time.
        """
        if self._parquet:
            import pyarrow as pa
            import pyarrow.parquet as pq

            content = pa.Table.from_pandas(piece, preserve_index=False)
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._stream, content.schema)
            self._writer.write_table(content)
        else:
            piece.to_csv(self._stream, sep=self._separator, index=False, header=self._first, lineterminator="\n")
        self._first = False

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.target == "-":
            if kind is None:
                self._stream.flush()
            return
        try:
            if self._writer is not None:
                self._writer.close()
            if kind is None:
                self._stream.flush()
                os.fsync(self._stream.fileno())
        finally:
            self._stream.close()
            if kind is None:
                mask = os.umask(0)
                os.umask(mask)
                os.chmod(self._partial, 0o666 & ~mask)
                os.replace(self._partial, self.target)
            else:
                Path(self._partial).unlink(missing_ok=True)

"""Tables to files, piece by piece and whole or not at all: a run that fails leaves nothing and changes nothing."""

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd

from skldl._whole_files import whole_file
from skldl.exceptions import TableError

ENDINGS = (".csv", ".tsv", ".parquet")


class TableWriter:
    """Write a table in pieces; use it in a ``with`` block.

    The pieces go to a file beside the target, which takes the target's name when the block ends well and disappears
    when it does not. Standard output (``-``) is written as the pieces come.

    Parameters
    ----------
    target : str or path
        A file that ends in ``.csv``, ``.tsv`` or ``.parquet``, or ``-`` for CSV on standard output.

    Attributes
    ----------
    written : bool
        Whether anything was written yet.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import TableWriter
    >>> with TableWriter("-") as writer:
    ...     writer.write(pd.DataFrame({"joy": [0.25]}))
    ...     writer.write(pd.DataFrame({"joy": [0.75]}))
    joy
    0.25
    0.75
    """

    def __init__(self, target: str | os.PathLike[str]) -> None:
        self.target = str(target)
        ending = Path(self.target).suffix.lower()
        if self.target != "-" and ending not in ENDINGS:
            raise TableError(f"{self.target}: the ending says how to write it. Use .csv, .tsv or .parquet.")
        self._parquet = ending == ".parquet"
        self._separator = "\t" if ending == ".tsv" else ","
        self._rows: Any = None
        self.written = False

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._stream: Any = sys.stdout if self.target == "-" else self._stack.enter_context(whole_file(self.target))
        return self

    def write(self, piece: pd.DataFrame) -> None:
        """Append rows.

        Parameters
        ----------
        piece : DataFrame
            Rows with the same columns each time.
        """
        if self._parquet:
            self._write_parquet(piece)
        else:
            text = piece.to_csv(sep=self._separator, index=False, header=not self.written, lineterminator="\n")
            self._stream.write(text if self.target == "-" else text.encode("utf-8"))
        self.written = True

    def _write_parquet(self, piece: pd.DataFrame) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._rows is None:
            schema = pa.Schema.from_pandas(piece, preserve_index=False).remove_metadata()
            for place, entry in enumerate(schema):
                if pa.types.is_null(entry.type):  # nothing but missing cells so far: text can hold whatever comes
                    schema = schema.set(place, entry.with_type(pa.string()))
            self._schema = schema
            self._rows = self._stack.enter_context(pq.ParquetWriter(self._stream, schema))
        try:
            self._rows.write_table(pa.Table.from_pandas(piece, schema=self._schema, preserve_index=False))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise TableError(
                f"{self.target}: the cells of a column changed their type on the way ({error}). Write .csv instead."
            ) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.target == "-" and kind is None:
            self._stream.flush()
        self._stack.__exit__(kind, error, trace)

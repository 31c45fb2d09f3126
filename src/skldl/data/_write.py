"""Tables to files, piece by piece and whole or not at all: a run that fails leaves nothing and changes nothing."""

import os
import re
import sys
from collections.abc import Collection
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pandas as pd

from skldl.data._cells import with_columns
from skldl.exceptions import TableError
from skldl.utils.files import whole_file

ENDINGS = (".csv", ".tsv", ".parquet")
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.,]+$)")


class TableWriter:
    """Write a table in pieces; use it in a ``with`` block.

    The pieces go to a temporary file in the same folder, which is renamed when the block ends without error and removed
    when it does not. Standard output (``-``) is written as the pieces come.

    Parameters
    ----------
    target : str or path
        A file that ends in ``.csv``, ``.tsv`` or ``.parquet``, or ``-`` for CSV on standard output.
    digits : int, default=None
        Significant digits of numbers in text; by default all. Parquet keeps numbers as they are.
    exact : collection of str, default=()
        Columns to which ``digits`` does not apply.
    escape_formulas : bool, default=False
        Put an apostrophe before text that a spreadsheet would take for a formula: text that begins with ``=``, ``+``,
        ``-`` or ``@`` and is no number.

    Attributes
    ----------
    written : bool
        Whether anything was written yet.

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
        target: str | os.PathLike[str],
        *,
        digits: int | None = None,
        exact: Collection[str] = (),
        escape_formulas: bool = False,
    ) -> None:
        self.target = str(target)
        self._digits, self._exact, self._escape = digits, exact, escape_formulas
        ending = Path(self.target).suffix.lower()
        if self.target != "-" and ending not in ENDINGS:
            raise TableError(f"{self.target}: the file extension determines the format. Use .csv, .tsv or .parquet.")
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
        self.append(self.rendered(piece, header=not self.written))

    def rendered(self, piece: pd.DataFrame, *, header: bool) -> str | pd.DataFrame:
        """Turn rows into what the file holds, without writing it: another process can do this.

        Parameters
        ----------
        piece : DataFrame
            The rows.
        header : bool
            Whether the names of the columns come first.

        Returns
        -------
        str or DataFrame
            Text, or the rows themselves for Parquet, whose types follow from the first piece. To be given to `append`.
        """
        if self._parquet:
            return piece
        return self._as_text(piece).to_csv(
            sep=self._separator,
            index=False,
            header=header,
            lineterminator="\n",
            float_format=None if self._digits is None else f"%.{self._digits}g",
        )

    def append(self, piece: Any) -> None:
        """Append what `rendered` made.

        Parameters
        ----------
        piece : str or DataFrame
            The next rows.
        """
        if self._parquet:
            self._write_parquet(piece)
        else:
            self._stream.write(piece if self.target == "-" else piece.encode("utf-8"))
        self.written = True

    def _as_text(self, piece: pd.DataFrame) -> pd.DataFrame:
        exact = [name for name in piece if name in self._exact and pd.api.types.is_float_dtype(piece[name])]
        if exact and self._digits is not None:
            written = {name: piece[name].map(lambda value: repr(float(value)), na_action="ignore") for name in exact}
            piece = with_columns(piece, written)
        if self._escape:
            words = [name for name in piece if not pd.api.types.is_numeric_dtype(piece[name])]
            piece = with_columns(piece, {name: piece[name].map(_harmless, na_action="ignore") for name in words})
            piece = piece.rename(columns=_harmless)
        return piece

    def _write_parquet(self, piece: pd.DataFrame) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if self._rows is None:
            schema = pa.Schema.from_pandas(piece, preserve_index=False).remove_metadata()
            for place, entry in enumerate(schema):
                if pa.types.is_null(entry.type):  # only missing cells so far: text can hold any later cell
                    schema = schema.set(place, entry.with_type(pa.string()))
            self._schema = schema
            self._rows = self._stack.enter_context(pq.ParquetWriter(self._stream, schema))
        try:
            self._rows.write_table(pa.Table.from_pandas(piece, schema=self._schema, preserve_index=False))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise TableError(
                f"{self.target}: the cells of a column changed their type between chunks ({error}). Write .csv instead."
            ) from error

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.target == "-" and kind is None:
            self._stream.flush()
        self._stack.__exit__(kind, error, trace)


def _harmless(cell: Any) -> Any:
    """Text that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell

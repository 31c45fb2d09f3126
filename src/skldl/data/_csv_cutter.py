"""The text of a CSV file, cut into rows by Arrow; every cell stays text."""

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from skldl.data._dialect import Beginning
from skldl.exceptions import TableError

BLOCK_BYTES = 2**23
CHUNKS_IN_PIECE = 4
END_OF_PIECE = "\x04end of piece\x04"
"""First cell of a row that is added after each piece: if it is missing, a quotation mark was not closed."""


class CsvCutter:
    """Cut what follows the header of a CSV file into rows.

    ``text`` is the file below its header, in UTF-8, in pieces of any length; ``name`` is what messages call the file,
    and ``path`` where it lies, if it can be read again to find the line of an error.
    """

    def __init__(self, text: Iterable[bytes], begun: Beginning, name: str, path: Path | None) -> None:
        self._text, self._dialect, self._columns = text, begun.dialect, begun.columns
        self._n_header_lines, self._name, self._path = begun.n_lines, name, path

    def batches(self, rows: int) -> Iterator[Any]:
        """Cut the rows, piece by piece: record batches of Arrow, every cell text, empty cells null.

        Arrow gets pieces in memory and does not read the file: its threads could not be interrupted while a pipe is
        silent. A piece has ``BLOCK_BYTES`` or, where lines are short, the lines of a few chunks of so many rows: memory
        depends on them there. It ends with a line; if that is inside quotation marks, the piece is made longer.
        """
        waiting, usual, enough, n_rows = b"", 0, 0, 0
        for block in self._text:
            waiting += block
            if not usual:
                usual = enough = min(BLOCK_BYTES, CHUNKS_IN_PIECE * rows * len(block) // max(1, block.count(b"\n")))
            if len(waiting) < enough:
                continue
            end = 1 + max(waiting.rfind(b"\n"), waiting.rfind(b"\r") if b"\n" not in waiting else -1)
            batch = self._cut(waiting[:end], n_rows) if end else None
            if batch is None:
                enough = 2 * len(waiting)
                continue
            waiting, enough, n_rows = waiting[end:], usual, n_rows + len(batch)
            yield batch
        if waiting:
            batch = self._cut(waiting if waiting[-1:] in b"\r\n" else waiting + b"\n", n_rows)
            if batch is None:
                raise TableError(
                    f"{self._name}: a quotation mark that opens a cell below row {n_rows} is never closed. The file "
                    "was cut off, or a mark is missing."
                )
            yield batch

    def _cut(self, lines: bytes, n_rows: int) -> Any:
        """Rows of text cells, or None if the lines end inside quotation marks."""
        import pyarrow as pa
        import pyarrow.csv

        separator = self._dialect.separator
        wrong: list[Any] = []

        def remember(row: Any) -> str:
            wrong.append(row)
            return "error"

        end = f"{END_OF_PIECE}{separator * (len(self._columns) - 1)}\n".encode()
        try:
            table = pyarrow.csv.read_csv(
                pa.py_buffer(lines + end),
                pyarrow.csv.ReadOptions(
                    column_names=self._columns, block_size=len(lines) + len(end), use_threads=False
                ),
                pyarrow.csv.ParseOptions(
                    delimiter=separator,
                    newlines_in_values=True,
                    ignore_empty_lines=len(self._columns) > 1,
                    invalid_row_handler=remember,
                ),
                pyarrow.csv.ConvertOptions(
                    column_types=dict.fromkeys(self._columns, pa.string()),
                    null_values=[""],
                    strings_can_be_null=True,
                    check_utf8=False,
                ),
            )
        except pa.ArrowException as error:
            if wrong and END_OF_PIECE in wrong[0].text:
                return None
            complaint = self._complaint(wrong[0], n_rows) if wrong else first_line(error)
            raise TableError(
                f"{self._name} cannot be read as a table: {complaint}. Text with the separator {separator!r} in it "
                "needs quotation marks; comments must be taken out."
            ) from error
        batch = table.combine_chunks().to_batches()[0]
        return batch.slice(0, len(batch) - 1) if batch.column(0)[-1].as_py() == END_OF_PIECE else None

    def _complaint(self, wrong: Any, n_rows: int) -> str:
        """Line of a row with a wrong number of cells: line breaks in cells and empty lines count too."""
        place = f"row {n_rows + wrong.number}"
        if self._path is not None and self._path.is_file():
            with self._path.open(encoding=self._dialect.encoding, newline="") as stream:
                for _ in range(self._n_header_lines):
                    stream.readline()
                reader = csv.reader(stream, delimiter=self._dialect.separator, skipinitialspace=True)
                for cells in reader:
                    if cells and len(cells) == wrong.actual_columns != wrong.expected_columns:
                        place = f"line {self._n_header_lines + reader.line_num}"
                        break
        return f"{place} has {wrong.actual_columns} cells, the header {wrong.expected_columns}"


def first_line(error: Exception) -> str:
    """The first line of a message of Arrow, or the class of the error if it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

"""CSV files: detection of the dialect, reading with Arrow, and writing.

Reading takes five steps. `detect` detects the dialect from the beginning of the file: encoding (UTF-8 with or without a
byte order mark, UTF-16, else Windows-1252), separator (comma, semicolon, tab or bar), header and decimal marks.
`_Utf8Text` decodes the rest, `_Quotes` checks its quotation marks, `_RowCutter` splits it into rows of text cells, and
a `_ColumnReader` for each column converts cells to numbers if all of them are numbers.

The decimal mark is determined for a column, then for the file, never for a cell. ``5.1`` can only have a decimal point
and ``5,1`` only a decimal comma, but ``5.123`` and ``5,123`` may be thousands: such a column follows the other columns
of the file. A column that stays ambiguous, or is inconsistent, is an error.
"""

import codecs
import contextlib
import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
import pandas as pd

from skldl.data._cells import CODE, MAX_DIGITS, with_columns
from skldl.data._formats import list_formats
from skldl.data._parquet import first_line
from skldl.exceptions import Message, Parameter, TableError
from skldl.utils.column_names import UNNAMED

SEPARATORS = (",", ";", "\t", "|")
MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A")
MOSTLY = 0.8
"""A column is treated as numbers with a few wrong cells if at least this fraction are numbers; chosen by hand."""

_MAX_SAMPLE_CELLS = 200_000  # cells in which decimal marks are searched, in at most 500 rows; chosen by hand

BLOCK_BYTES = 2**23
"""Maximum length of the text that Arrow parses at a time; chosen by hand."""
CHUNKS_PER_BLOCK = 4
"""With short lines, a block has the lines of this many chunks, so that memory depends on the size of the chunks."""

_GROUP = r"[+-]?[1-9]\d{0,2}"
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_PLAIN = re.compile(rf"[+-]?\d+{_EXPONENT}")
_WITH_COMMA = re.compile(rf"[+-]?\d*,\d+{_EXPONENT}|{_GROUP}(?:\.\d{{3}})+,\d+|{_GROUP}(?:\.\d{{3}}){{2,}}")
_WITH_POINT = re.compile(rf"[+-]?(?:\d+\.\d*|\.\d+){_EXPONENT}|{_GROUP}(?:,\d{{3}})+\.\d+|{_GROUP}(?:,\d{{3}}){{2,}}")
_THOUSANDS = {",": re.compile(rf"{_GROUP},\d{{3}}"), ".": re.compile(rf"{_GROUP}\.\d{{3}}")}
_GROUPED = r"^[+-]?(?:\d*|[1-9]\d{0,2}(?:%s\d{3})+)(?:%s\d*)?(?:[eE][+-]?\d+)?$"
_OTHER_FORMATS = {
    "JSON": re.compile(r'[{\[]\s*(?:[{\["]|-?\d[\d.eE+-]*\s*,)'),
    "HTML or XML": re.compile(r"<(?:!doctype|\?xml|html|table)\b", re.IGNORECASE),
}
_EITHER_MARK = Parameter("decimal", "."), " or ", Parameter("decimal", ","), "."
# Text that a spreadsheet would evaluate as a formula; a sign begins a formula unless only digits follow it.
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![\d.,]+$)")


@dataclass(frozen=True)
class Dialect:
    """Encoding, separator and decimal mark of a CSV file.

    ``by_column`` has the decimal mark of each column whose cells show it. ``certain`` is whether the decimal mark was
    given or is unambiguous, so that the other mark can only separate thousands.
    """

    encoding: str
    separator: str
    decimal: str
    by_column: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    certain: bool = field(default=False, compare=False, repr=False)


class CsvTable:
    """Reader of CSV files: the columns are known at once, rows are read when they are needed.

    Parameters
    ----------
    stream : binary stream
        The file after ``start``, which was already read from it.
    start : bytes
        The first bytes, all of them if ``whole``.
    name : str
        Name of the file in messages.
    path : Path or None
        The file, if it can be read again to find the line number of an error.
    whole : bool
        Whether ``start`` is the whole file.
    encoding, decimal : str or None
        Encoding and decimal mark; None to detect them.
    na_values : collection of str or None
        Words that mean a missing value; None for `MISSING_WORDS`.
    header : bool or None
        Whether the first line has the names of the columns; None to detect it.

    Attributes
    ----------
    columns : list of str
        Names of the columns; their numbers from 1 if ``has_header`` is False.
    dialect : Dialect
        Encoding, separator and decimal mark.
    notes : list of str
        Notes for the user; complete when all rows were read.
    """

    n_rows: int | None = None  # not known before all rows were read

    def __init__(
        self,
        stream: IO[bytes],
        start: bytes,
        name: str,
        *,
        path: Path | None,
        whole: bool,
        encoding: str | None = None,
        decimal: str | None = None,
        na_values: Collection[str] | None = None,
        header: bool | None = True,
    ) -> None:
        if decimal not in (None, ".", ","):
            raise TableError(Parameter("decimal", decimal), " is not known. Use a point or a comma.")
        self.name, self._path = name, path
        self._missing = MISSING_WORDS if na_values is None else tuple(na_values)
        found = detect(start, name, whole=whole, encoding=encoding, decimal=decimal, header=header)
        self.dialect, self.columns, self.has_header = found.dialect, found.columns, found.has_header
        self.notes = found.notes
        self._text = _Utf8Text(found, start, stream, name)
        self._rows = _RowCutter(self._text, found, name, path)

    @property
    def n_bytes_read(self) -> int:
        """Bytes of the file that have been read."""
        return self._text.n_bytes

    def size(self) -> tuple[int, int]:
        """Bytes of the file, 0 if unknown, and bytes of memory for reading besides the rows of a piece."""
        return self._path.stat().st_size if self._path is not None else 0, 8 * BLOCK_BYTES

    def empty(self) -> pd.DataFrame:
        """A table without rows, all its columns of text."""
        return pd.DataFrame(columns=self.columns, dtype=object)

    def close(self) -> None:
        """Nothing is open but the stream, which its owner closes."""

    def pieces(self, rows: int, text: Collection[str] = ()) -> Iterator[dict[str, Any]]:
        """Yield the columns of all rows, at most so many rows at a time; columns in ``text`` are not converted."""
        marks = self.dialect.by_column
        readers = [
            _ColumnReader(
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
        for batch in self._rows.batches(rows):
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


class CsvWriter:
    """Writer of CSV files: pieces of a table as text, in UTF-8.

    Parameters
    ----------
    target : str
        Name of the file in messages.
    digits : int or None
        Significant digits of numbers; None for all.
    exact : collection of str
        Columns to which ``digits`` does not apply.
    escape_formulas : bool
        Whether an apostrophe is added before text that a spreadsheet would evaluate as a formula.
    """

    separator = ","

    def __init__(
        self, target: str, *, digits: int | None = None, exact: Collection[str] = (), escape_formulas: bool = False
    ) -> None:
        self._digits, self._exact, self._escape = digits, frozenset(exact), escape_formulas

    def begin(self, stream: IO[Any]) -> None:
        """Write to a stream, of bytes or of text, from now on."""
        self._stream = stream

    def rendered(self, piece: pd.DataFrame, *, header: bool) -> str:
        """Format rows as text, after the names of the columns if ``header``."""
        piece = self._as_text(piece)
        columns = [self._cells(column) for _, column in piece.items()]
        if len(columns) > 1 and None not in columns:
            names = [_quoted(str(name), self.separator) for name in piece]
            patterns, cells = zip(*filter(None, columns), strict=True)
            line = self.separator.join(patterns) + "\n"
            lines = map(line.__mod__, zip(*cells, strict=True))
            return "".join(itertools.chain([self.separator.join(names) + "\n"] * header, lines))
        return piece.to_csv(
            sep=self.separator,
            index=False,
            header=header,
            lineterminator="\n",
            float_format=None if self._digits is None else f"%.{self._digits}g",
        )

    def _cells(self, column: pd.Series) -> tuple[str, list[Any]] | None:
        """Format pattern and cells of a column of floats or text; None for other types, which pandas formats.

        One pattern for each row takes a third of the time of pandas, which formats cell by cell.
        """
        cells: list[Any] = column.tolist()
        if column.dtype == np.float64:
            pattern = "%r" if self._digits is None else f"%.{self._digits}g"
            if column.notna().all():
                return pattern, cells
            return "%s", ["" if cell != cell else pattern % cell for cell in cells]
        if set(map(type, cells)) != {str}:
            return None
        quoted = {word: _quoted(word, self.separator) for word in set(cells)}
        return "%s", [quoted[word] for word in cells]

    def append(self, text: str) -> None:
        """Write rows."""
        self._stream.write(text if isinstance(self._stream, io.TextIOBase) else text.encode("utf-8"))

    def end(self) -> None:
        """Nothing follows the last row."""

    def _as_text(self, piece: pd.DataFrame) -> pd.DataFrame:
        exact = [name for name in piece if name in self._exact and pd.api.types.is_float_dtype(piece[name])]
        if exact and self._digits is not None:
            written = {name: piece[name].map(lambda value: repr(float(value)), na_action="ignore") for name in exact}
            piece = with_columns(piece, written)
        if self._escape:
            words = [name for name in piece if not pd.api.types.is_numeric_dtype(piece[name])]
            piece = with_columns(piece, {name: piece[name].map(_escaped, na_action="ignore") for name in words})
            piece = piece.rename(columns=_escaped)
        return piece


class TsvWriter(CsvWriter):
    """Writer of tables separated by tabs."""

    separator = "\t"


def _quoted(word: str, separator: str) -> str:
    """Text as a cell, in quotation marks if necessary."""
    stream = io.StringIO()
    csv.writer(stream, delimiter=separator, lineterminator="\n").writerow([word, ""])
    return stream.getvalue()[:-2]  # without the separator and the end of the line


def _escaped(cell: Any) -> Any:
    """Add an apostrophe to text that a spreadsheet would evaluate as a formula."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


@dataclass
class Detected:
    """Dialect and columns of a CSV file, and the ``rest`` of its beginning after ``n_lines`` lines of header.

    ``has_header`` is False if the header was to be detected and the first line has only numbers.
    """

    dialect: Dialect
    columns: list[str]
    has_header: bool
    rest: str
    n_lines: int
    notes: list[str]


def detect(
    start: bytes, name: str, *, whole: bool, encoding: str | None, decimal: str | None, header: bool | None
) -> Detected:
    """Detect the dialect of a CSV file from its beginning, whose last line may be incomplete unless ``whole``.

    An encoding or decimal mark that is given is not detected. With ``header`` None, a first line that has only numbers
    is treated as a row.
    """
    notes: list[str] = []
    encoding = _encoding(start, name, encoding, notes, whole=whole)
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(start, final=whole)
    except UnicodeError as error:
        raise _not_text(name, encoding, 1 + start.count(b"\n", 0, getattr(error, "start", 0))) from error
    if "\0" in text:
        raise TableError(f"{name} is not text. Export the table as {list_formats('reader')}.")
    body = text.lstrip(" \r\n")
    n_lines = len(_split_lines(text[: len(text) - len(body)]))
    declared = re.match(r"sep=(.)[ \r]*(?:\n|\r|$)", body)  # Excel writes and reads such a line
    if declared:
        body = body[declared.end() :]
        n_lines += 1
    if not body.strip():
        raise TableError(f"{name} is empty. A table needs a header line with the names of its columns.")
    _check_is_table(body, name)
    lines = _split_lines(body)
    sample = lines if whole or len(lines) == 1 else lines[:-1]
    separator = declared[1] if declared else _separator(sample[:50])
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        names = [cell.strip() for cell in next(reader)]
    except csv.Error as error:
        raise TableError(f"{name}: the header line cannot be cut into columns ({error}).") from error
    has_header = header is True or not all(map(is_number, names))
    used = reader.line_num if has_header else 0
    _Quotes(separator, name).checked("".join(lines[:used]).encode(), n_lines, last=True)
    names = _checked_names(names, name) if has_header else [str(place + 1) for place in range(len(names))]
    n_rows = max(20, min(500, _MAX_SAMPLE_CELLS // len(names)))
    rows = _cells_of(sample[used : used + n_rows], separator)
    by_column = {} if decimal else _decimals(rows, names, separator, name, notes)
    marks = {decimal} if decimal else set(by_column.values())
    mark = marks.pop() if len(marks) == 1 else "."
    dialect = Dialect(encoding, separator, mark, by_column, certain=bool(decimal or by_column) and not marks)
    return Detected(dialect, names, has_header, "".join(lines[used:]), n_lines + used, notes)


def _check_is_table(body: str, name: str) -> None:
    """Reject JSON and HTML: the errors about their columns would be misleading."""
    for kind, beginning in _OTHER_FORMATS.items():
        if beginning.match(body):
            raise TableError(f"{name} holds {kind}, not a table. Export the table as {list_formats('reader')}.")


def _encoding(start: bytes, name: str, given: str | None, notes: list[str], *, whole: bool) -> str:
    """The encoding that is given, or the one that the first bytes suggest; a guess adds a note."""
    if given is not None:
        try:
            encoding = codecs.lookup(given).name
        except LookupError:
            raise TableError(
                Parameter("encoding", given), " is not known. Usual are utf-8, cp1252, shift_jis, gb18030."
            ) from None
        return "utf-8-sig" if encoding == "utf-8" else encoding
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\x00" in start:
        raise TableError(f"{name} is not text. Export the table as {list_formats('reader')}.")
    if start.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        if whole or error.start < len(start) - 4:  # else only the last character is incomplete; it has up to 4 bytes
            notes.append(
                Message(
                    f"{name} is not UTF-8; it is read as cp1252 (Western European Windows), which is a guess. If "
                    "letters look wrong, name its encoding, such as ",
                    Parameter("encoding", "shift_jis"),
                    ".",
                )
            )
            return "cp1252"
    return "utf-8"


def _not_text(name: str, encoding: str, line: int) -> TableError:
    """The error for bytes that are invalid in the encoding."""
    return TableError(
        f"{name}: line {line} is not {encoding.removesuffix('-sig')} text. Save the table as 'CSV UTF-8', or name its "
        "encoding with ",
        Parameter("encoding"),
        ".",
    )


def is_number(cell: str) -> bool:
    """Whether a cell is a number in any format."""
    cell = cell.strip()
    return bool(_PLAIN.fullmatch(cell) or _WITH_POINT.fullmatch(cell) or _WITH_COMMA.fullmatch(cell))


def _cells_of(lines: Iterable[str], separator: str) -> list[list[str]]:
    """The cells of sample lines, up to the first cell that is too large for the csv module."""
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):
        rows.extend(row for row in csv.reader(lines, delimiter=separator, skipinitialspace=True) if row)
    return rows


def _split_lines(text: str) -> list[str]:
    r"""Split text into lines with their ends: only ``\n``, ``\r`` and ``\r\n``, unlike `str.splitlines`."""
    return list(io.StringIO(text, newline=""))


def _separator(lines: list[str]) -> str:
    """The separator that gives most cells, if nine of ten of the first lines then have as many as the header."""
    best, n_cells = ",", 1
    for separator in SEPARATORS:
        widths = [len(row) for row in _cells_of(lines, separator)]
        if widths and widths[0] > n_cells and widths.count(widths[0]) >= 0.9 * len(widths):  # .9 was chosen by hand
            best, n_cells = separator, widths[0]
    return best


def _checked_names(names: list[str], name: str) -> list[str]:
    unnamed = [position + 1 for position, cell in enumerate(names) if not cell]
    if unnamed == [1] and len(names) > 1:
        names[0] = UNNAMED
    elif unnamed:
        raise TableError(f"{name}: column {unnamed[0]} has no name in the header line. Give every column a name.")
    return names


def _decimals(rows: list[list[str]], columns: list[str], separator: str, name: str, notes: list[str]) -> dict[str, str]:
    """Decimal mark of each column whose cells show it; ambiguous columns are an error or add a note."""
    shown: dict[str, str] = {}
    unclear: dict[str, tuple[str, str]] = {}
    for place, column in enumerate(columns):
        cells = [row[place].strip() for row in rows if place < len(row) and row[place].strip()]
        marked = [cell for cell in cells if "," in cell or "." in cell]
        if not marked or sum(map(is_number, cells)) < MOSTLY * len(cells):
            continue
        maybe = {mark: [cell for cell in marked if way.fullmatch(cell)] for mark, way in _THOUSANDS.items()}
        with_comma = [cell for cell in marked if _WITH_COMMA.fullmatch(cell) and cell not in maybe[","]]
        with_point = [cell for cell in marked if _WITH_POINT.fullmatch(cell) and cell not in maybe["."]]
        if (with_comma and with_point) or (not (with_comma or with_point) and all(maybe.values())):
            pair = (with_comma or maybe[","])[0], (with_point or maybe["."])[0]
            raise TableError(
                f"{name}: column {column!r} holds {pair[0]!r} and {pair[1]!r}: which mark is the decimal one? Write "
                "all numbers in one way, or set ",
                *_EITHER_MARK,
            )
        if with_comma or with_point:
            shown[column] = "," if with_comma else "."
        elif any(maybe.values()):  # else the mark occurs only in cells that are not numbers, such as a single point
            mark = "," if maybe[","] else "."
            unclear[column] = mark, maybe[mark][0]
    marks = set(shown.values())
    for column, (mark, cell) in unclear.items():
        if len(marks) == 2 or (not marks and mark == ","):
            raise TableError(
                f"{name}: column {column!r} holds {cell!r}, which can be a number with thousands or one with a decimal "
                f"{'comma' if mark == ',' else 'point'}, and no other cell decides. Set ",
                *_EITHER_MARK,
            )
        if not marks and separator == ";":
            notes.append(
                Message(
                    f"Column {column!r} holds {cell!r}, read as a number with a decimal point. If the point separates "
                    "thousands, set ",
                    Parameter("decimal", ","),
                    ".",
                )
            )
    return shown


class _Utf8Text:
    """The text below the header of a CSV file, decoded, and encoded as UTF-8 for Arrow.

    Attributes
    ----------
    n_bytes : int
        How many bytes of the file have been read.
    ends_with_newline : bool
        Whether the last piece ended with a line break.
    """

    def __init__(self, begun: Detected, start: bytes, source: IO[bytes], name: str) -> None:
        self._begun, self._start, self._source, self._name = begun, start, source, name
        self.n_bytes = 0
        self.ends_with_newline = True

    def __iter__(self) -> Iterator[bytes]:
        return (text.encode() for text in self._texts())

    def _texts(self) -> Iterator[str]:
        encoding = self._begun.dialect.encoding
        decoder = codecs.getincrementaldecoder(encoding)()
        decoder.decode(self._start)
        text, block = self._begun.rest, self._start
        n_lines = self._begun.n_lines
        while block:
            self.n_bytes += len(block)
            if text:
                self.ends_with_newline = text[-1] in "\r\n"
                n_lines += text.count("\n")
                yield text
            block = self._source.read(2**20)
            try:
                text = decoder.decode(block, final=not block)
            except UnicodeError as error:
                line = 1 + n_lines + block.count(b"\n", 0, getattr(error, "start", 0))
                raise _not_text(self._name, encoding, line) from error
        if text:
            yield text


class _Quotes:
    """Check of the quotation marks of a CSV file, and removal of blanks around quoted cells.

    A reader such as Arrow's continues a cell after its closing quotation mark. So two cells that begin with a mark that
    is never closed become one cell, together with all rows between them. Text after a closing mark is therefore an
    error. Marks inside a cell that does not begin with one are text, as in ``6" pipe``.
    """

    def __init__(self, separator: str, name: str) -> None:
        self._name = name
        end = (re.escape(separator) + r"\r\n").encode()
        blanks = b"" if separator == " " else b" *+"
        # possessive quantifiers (such as *+) need no memory for backtracking, since no cell can be divided differently
        cell = rb'"(?:[^"]++|"")*+"'
        lines = rb'(?:[^"]++|(?<![^%b])%b(?![^%b])|(?<=[^%b])")*+'
        self._cell = re.compile(cell)
        self._lines = re.compile(lines % (end, cell, end, end))
        self._lines_without_blanks = re.compile(lines % (end, cell, end, end + b" "))
        self._cell_with_blanks = re.compile(rb"(?<![^%b])%b(%b)%b" % (end, blanks, cell, blanks))

    def checked(self, lines: bytes, n_lines: int, *, last: bool) -> bytes | None:
        """Return lines without blanks around quoted cells; None if they end inside a quoted cell and are not the last.

        ``n_lines`` lines of the file come before.
        """
        if b'"' not in lines or self._lines_without_blanks.fullmatch(lines):
            return lines
        lines = self._cell_with_blanks.sub(rb"\1", lines)  # for Arrow, quotation marks after blanks are text
        match = self._lines.match(lines)
        start = match.end() if match else 0
        if start == len(lines):
            return lines
        opened = n_lines + 1 + count_line_breaks(lines[:start])
        cell = self._cell.match(lines, start)
        if cell is not None:
            line = n_lines + 1 + count_line_breaks(lines[: cell.end()])
            where = "" if line == opened else f", which opens in line {opened}"
            raise TableError(
                f"{self._name}: line {line} has text after the closing quotation mark of a cell{where}. Close each "
                "cell that opens with a mark, and write marks inside such a cell twice."
            )
        if last:
            raise TableError(
                f"{self._name}: line {opened} has a cell that opens with a quotation mark, which is never closed. The "
                "file was cut off, or a mark is missing."
            )
        return None


def count_line_breaks(lines: bytes) -> int:
    """Number of line breaks, whether they are one character or two."""
    return lines.count(b"\n") or lines.count(b"\r")


class _RowCutter:
    """Split the text below the header of a CSV file into rows of text cells.

    ``text`` yields UTF-8 in pieces of any length; ``path`` is the file, if it can be read again to find the line number
    of an error.
    """

    def __init__(self, text: Iterable[bytes], begun: Detected, name: str, path: Path | None) -> None:
        self._text, self._dialect, self._columns = text, begun.dialect, begun.columns
        self._n_header_lines, self._name, self._path = begun.n_lines, name, path
        self._quotes = _Quotes(begun.dialect.separator, name)

    def batches(self, rows: int) -> Iterator[Any]:
        """Yield the rows as record batches of Arrow: all cells are text, empty cells are null.

        Arrow reads blocks in memory, not the file, since its threads cannot be interrupted while they wait for a pipe.
        A block has `BLOCK_BYTES` bytes or, if lines are short, the lines of a few chunks of ``rows`` rows. It ends with
        a line break; if this is inside quotation marks, the block is extended.
        """
        waiting, usual, enough, n_rows, n_lines = b"", 0, 0, 0, self._n_header_lines
        for block in self._text:
            waiting += block
            if not usual:
                usual = enough = min(BLOCK_BYTES, CHUNKS_PER_BLOCK * rows * len(block) // max(1, block.count(b"\n")))
            if len(waiting) < enough:
                continue
            end = 1 + max(waiting.rfind(b"\n"), waiting.rfind(b"\r") if b"\n" not in waiting else -1)
            lines = self._quotes.checked(waiting[:end], n_lines, last=False) if end else None
            if lines is None:
                enough = 2 * len(waiting)
                continue
            batch = self._cut(lines, n_rows)
            n_lines += count_line_breaks(waiting[:end])
            waiting, enough, n_rows = waiting[end:], usual, n_rows + len(batch)
            yield batch
        if waiting:
            yield self._cut(self._quotes.checked(waiting, n_lines, last=True), n_rows)

    def _cut(self, lines: Any, n_rows: int) -> Any:
        """Parse lines as rows of text cells."""
        import pyarrow as pa
        import pyarrow.csv

        separator = self._dialect.separator
        wrong: list[Any] = []

        def remember(row: Any) -> str:
            wrong.append(row)
            return "error"

        try:
            table = pyarrow.csv.read_csv(
                pa.py_buffer(lines),
                pyarrow.csv.ReadOptions(column_names=self._columns, block_size=len(lines), use_threads=False),
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
            reason = self._wrong_width(wrong[0], n_rows) if wrong else first_line(error)
            raise TableError(
                f"{self._name} cannot be read as a table: {reason}. Text with the separator {separator!r} in it "
                "needs quotation marks; comments must be taken out."
            ) from error
        batches = table.combine_chunks().to_batches()  # none for a table without rows
        return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)

    def _wrong_width(self, wrong: Any, n_rows: int) -> str:
        """Describe a row with a wrong number of cells, by its line: line breaks in cells and empty lines count, too."""
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


class _ColumnReader:
    """Convert the cells of one column to numbers, piece by piece, or keep them as text if ``as_written``.

    ``thousands`` is whether the mark that is not decimal can only separate thousands; otherwise a cell with this mark
    is not a number.
    """

    def __init__(
        self, name: str, *, decimal: str, thousands: bool, missing: tuple[str, ...], as_written: bool, file: str
    ) -> None:
        self.name, self.decimal, self.file = name, decimal, file
        self._thousands = thousands
        self._missing = missing
        self._as_written = as_written
        self._dropped: Counter[str | None] = Counter()
        self._has_codes = False

    def __call__(self, cells: Any, first_row: int) -> Any:
        """Convert cells of Arrow to numbers, or to text with None for missing cells; ``first_row`` rows come before."""
        import pyarrow.compute as pc

        if not self._as_written:
            if self.decimal == ".":
                numbers = self._numbers(cells, cells)
                if numbers is not None:
                    return numbers
            trimmed = pc.utf8_trim_whitespace(cells)
            cells = _without(trimmed, self._missing)
            # words such as NA always mean a missing number; in text, only the words that the user names do
            filled = _without(trimmed, {*MISSING_WORDS, *self._missing})
            if filled.null_count < len(filled) or cells.null_count == len(cells):
                numbers = self._numbers(self._with_decimal_points(filled, first_row), filled)
                if numbers is not None:
                    return numbers
            self._dropped.update(trimmed.filter(pc.is_null(cells)).to_pylist())
        return cells.to_pandas()

    def notes(self) -> list[str]:
        """Notes for the user: words treated as missing in a column of text, and codes that look like numbers."""
        found: list[str] = []
        words = {word: count for word, count in self._dropped.most_common() if word}
        if words:
            counts = ", ".join(f"{word!r} ({count} cells)" for word, count in words.items())
            found.append(
                Message(
                    f"Column {self.name!r}: {counts} taken as missing. If it is a name, define which words mean a "
                    "missing value with ",
                    Parameter("na_values"),
                    "; ",
                    Parameter("na_values", []),
                    " means none.",
                )
            )
        if self._has_codes:
            found.append(
                f"Column {self.name!r} holds codes with leading zeros or more than {MAX_DIGITS} digits, so it is "
                "taken as categories, not as numbers."
            )
        return found

    def _numbers(self, cells: Any, as_written: Any) -> Any:
        """Convert cells to numbers; None if a cell is not a plain number, or is a code such as 007."""
        import pyarrow as pa
        import pyarrow.compute as pc

        try:
            numbers = cells.cast(pa.float64())
        except pa.ArrowInvalid:
            return None
        values = numbers.to_numpy(zero_copy_only=False)
        # the search for codes is slow: it is left out if a cell has a fraction, since codes are whole numbers
        if cells.null_count < len(cells) and np.all((values == np.floor(values)) | np.isnan(values)):
            if pc.any(pc.match_substring_regex(as_written, CODE)).as_py():
                self._has_codes = True
                return None
            if not cells.null_count and np.abs(values).max(initial=0) < 2**53:  # exact as floats
                return values.astype(np.int64)
        return values

    def _with_decimal_points(self, cells: Any, first_row: int) -> Any:
        """Rewrite numbers with a decimal point and without marks between thousands; other cells are not changed."""
        import pyarrow.compute as pc

        other = "." if self.decimal == "," else ","
        marked = pc.match_substring_regex(cells, "^[+-]?[0-9.,]*[.,]")
        if not (pc.any(marked).as_py() and (self._thousands or self.decimal == ",")):
            return pc.if_else(pc.starts_with(cells, "+"), pc.utf8_slice_codeunits(cells, 1), cells)
        fits = pc.match_substring_regex(cells, _GROUPED % (f"[{other}]", f"[{self.decimal}]"))
        if self.decimal == ",":
            strange = pc.and_(pc.invert(fits), pc.match_substring_regex(cells, r"^[+-]?\d*\.\d*(?:[eE][+-]?\d+)?$"))
            if pc.any(strange).as_py():
                row = pc.index(strange, True).as_py()
                raise TableError(
                    f"{self.file}: row {first_row + row + 1} of column {self.name!r} holds {cells[row].as_py()!r}, "
                    "while other numbers have a decimal comma. Write all numbers in one way, or set which mark is the "
                    "decimal one with ",
                    *_EITHER_MARK,
                    row=first_row + row,
                )
        plain = pc.replace_substring(pc.replace_substring(cells, other, ""), ",", ".")
        plain = pc.if_else(pc.starts_with(plain, "+"), pc.utf8_slice_codeunits(plain, 1), plain)
        return pc.if_else(fits, plain, cells)


def _without(cells: Any, words: Collection[str]) -> Any:
    """Replace empty cells and these words by null."""
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.is_in(cells, value_set=pa.array(["", *words], type=pa.string()))
    return pc.if_else(missing, pa.scalar(None, pa.string()), cells)

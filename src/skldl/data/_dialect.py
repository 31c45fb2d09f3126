"""How a CSV file is written: encoding, separator, header and decimal marks, found out from its beginning.

The decimal mark is determined for a column, then for the file, never for a cell. ``5.1`` can only have a decimal point
and ``5,1`` only a decimal comma, but ``5.123`` and ``5,123`` may be thousands: such a column follows the other columns
of the file. What stays ambiguous, or contradicts itself, is refused.
"""

import codecs
import contextlib
import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from skldl.exceptions import TableError

SEPARATORS = (",", ";", "\t", "|")
UNNAMED = "Unnamed: 0"
MOSTLY = 0.8
_MOST_CELLS = 200_000
_GROUP = r"[+-]?[1-9]\d{0,2}"
_EXPONENT = r"(?:[eE][+-]?\d+)?"
_PLAIN = re.compile(rf"[+-]?\d+{_EXPONENT}")
_WITH_COMMA = re.compile(rf"[+-]?\d*,\d+{_EXPONENT}|{_GROUP}(?:\.\d{{3}})+,\d+|{_GROUP}(?:\.\d{{3}}){{2,}}")
_WITH_POINT = re.compile(rf"[+-]?(?:\d+\.\d*|\.\d+){_EXPONENT}|{_GROUP}(?:,\d{{3}})+\.\d+|{_GROUP}(?:,\d{{3}}){{2,}}")
_THOUSANDS = {",": re.compile(rf"{_GROUP},\d{{3}}"), ".": re.compile(rf"{_GROUP}\.\d{{3}}")}
_OTHER_FORMATS = {
    "JSON": re.compile(r'[{\[]\s*(?:[{\["]|-?\d[\d.eE+-]*\s*,)'),
    "HTML or XML": re.compile(r"<(?:!doctype|\?xml|html|table)\b", re.IGNORECASE),
}


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written: ``by_column`` is the decimal mark of the columns whose own cells show it.

    ``certain`` is whether the decimal mark was given or is unambiguous, so that the other can only separate thousands.
    """

    encoding: str
    separator: str
    decimal: str
    by_column: Mapping[str, str] = field(default_factory=dict, compare=False, repr=False)
    certain: bool = field(default=False, compare=False, repr=False)


@dataclass
class Beginning:
    """The first lines of a text file: dialect, header, and the ``rest`` behind it, after ``n_lines`` lines.

    ``has_header`` is False if the first line was asked to be looked at, and holds only numbers.
    """

    dialect: Dialect
    columns: list[str]
    has_header: bool
    rest: str
    n_lines: int
    notes: list[str]


def read_beginning(
    start: bytes, name: str, *, whole: bool, encoding: str | None, decimal: str | None, header: bool | None
) -> Beginning:
    """Find out how a CSV file is written, from its beginning; without ``whole`` the last line of that is cut.

    An encoding or decimal mark that is given replaces the detection. With ``header`` None, a first line that holds only
    numbers is no header.
    """
    notes: list[str] = []
    encoding = _encoding(start, name, encoding, notes, whole=whole)
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(start, final=whole)
    except UnicodeError as error:
        raise not_text(name, encoding, 1 + start.count(b"\n", 0, getattr(error, "start", 0))) from error
    if "\0" in text:
        raise TableError(f"{name} is neither text nor Parquet. Export the table as CSV (UTF-8) or Parquet.")
    body = text.lstrip(" \r\n")
    n_lines = len(split_lines(text[: len(text) - len(body)]))
    declared = re.match(r"sep=(.)[ \r]*(?:\n|\r|$)", body)  # Excel writes and reads such a line
    if declared:
        body = body[declared.end() :]
        n_lines += 1
    if not body.strip():
        raise TableError(f"{name} is empty. A table needs a header line with the names of its columns.")
    _refuse_other_formats(body, name)
    lines = split_lines(body)
    sample = lines if whole or len(lines) == 1 else lines[:-1]
    separator = declared[1] if declared else _separator(sample[:50])
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    try:
        names = [cell.strip() for cell in next(reader)]
    except csv.Error as error:
        raise TableError(f"{name}: the header line cannot be cut into columns ({error}).") from error
    has_header = header is True or not all(map(is_number, names))
    used = reader.line_num if has_header else 0
    names = _checked_names(names, name) if has_header else [str(place + 1) for place in range(len(names))]
    n_rows = max(20, min(500, _MOST_CELLS // len(names)))
    rows = cut(sample[used : used + n_rows], separator)
    by_column = {} if decimal else _decimals(rows, names, separator, name, notes)
    marks = {decimal} if decimal else set(by_column.values())
    mark = marks.pop() if len(marks) == 1 else "."
    dialect = Dialect(encoding, separator, mark, by_column, certain=bool(decimal or by_column) and not marks)
    return Beginning(dialect, names, has_header, "".join(lines[used:]), n_lines + used, notes)


def _refuse_other_formats(body: str, name: str) -> None:
    """Refuse text that is no table; cut into cells it gives messages about columns that nobody knows."""
    for kind, beginning in _OTHER_FORMATS.items():
        if beginning.match(body):
            raise TableError(f"{name} holds {kind}, not a table. Export the table as CSV (UTF-8) or Parquet.")


def _encoding(start: bytes, name: str, given: str | None, notes: list[str], *, whole: bool) -> str:
    """The encoding that the user names, or the one that the first bytes show; a guess is noted."""
    if given is not None:
        try:
            encoding = codecs.lookup(given).name
        except LookupError:
            raise TableError(f"encoding={given!r} is not known. Usual are utf-8, cp1252, shift_jis, gb18030.") from None
        return "utf-8-sig" if encoding == "utf-8" else encoding
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\x00" in start:
        raise TableError(f"{name} is neither text nor Parquet. Export the table as CSV (UTF-8) or Parquet.")
    if start.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    try:
        start.decode("utf-8")
    except UnicodeDecodeError as error:
        if whole or error.start < len(start) - 4:  # not just a character cut at the end of the sample
            notes.append(
                f"{name} is not UTF-8; it is read as cp1252 (Western European Windows), which is a guess. If letters "
                "look wrong, name its encoding, such as encoding='shift_jis'."
            )
            return "cp1252"
    return "utf-8"


def not_text(name: str, encoding: str, line: int) -> TableError:
    """The error for bytes that are invalid in the encoding."""
    return TableError(
        f"{name}: line {line} is not {encoding.removesuffix('-sig')} text. Save the table as 'CSV UTF-8', or name its "
        "encoding with encoding=."
    )


def is_number(cell: str) -> bool:
    """Whether a cell is a number in any format."""
    cell = cell.strip()
    return bool(_PLAIN.fullmatch(cell) or _WITH_POINT.fullmatch(cell) or _WITH_COMMA.fullmatch(cell))


def cut(lines: Iterable[str], separator: str) -> list[list[str]]:
    """Cut lines into cells; a cell larger than the csv module takes is no reason to fail, only to stop looking."""
    rows: list[list[str]] = []
    with contextlib.suppress(csv.Error):
        rows.extend(row for row in csv.reader(lines, delimiter=separator, skipinitialspace=True) if row)
    return rows


def split_lines(text: str) -> list[str]:
    """Lines with their ends: newline, carriage return or both, and nothing else that Unicode calls a line break."""
    return list(io.StringIO(text, newline=""))


def _separator(lines: list[str]) -> str:
    """The separator that cuts the first lines into the same number of fields, the more the better."""
    best, most = ",", 1
    for separator in SEPARATORS:
        widths = [len(row) for row in cut(lines, separator)]
        if widths and widths[0] > most and widths.count(widths[0]) >= 0.9 * len(widths):
            best, most = separator, widths[0]
    return best


def _checked_names(names: list[str], name: str) -> list[str]:
    unnamed = [position + 1 for position, cell in enumerate(names) if not cell]
    if unnamed == [1] and len(names) > 1:
        names[0] = UNNAMED  # R and pandas write row names under an empty heading
    elif unnamed:
        raise TableError(f"{name}: column {unnamed[0]} has no name in the header line. Give every column a name.")
    return names


def _decimals(rows: list[list[str]], columns: list[str], separator: str, name: str, notes: list[str]) -> dict[str, str]:
    """Decimal mark of each column whose cells show it."""
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
                "all numbers in one way, or set decimal='.' or decimal=','."
            )
        if with_comma or with_point:
            shown[column] = "," if with_comma else "."
        elif any(maybe.values()):  # else the mark stands in cells that are no numbers, such as a lone point
            mark = "," if maybe[","] else "."
            unclear[column] = mark, maybe[mark][0]
    marks = set(shown.values())
    for column, (mark, cell) in unclear.items():
        if len(marks) == 2 or (not marks and mark == ","):
            raise TableError(
                f"{name}: column {column!r} holds {cell!r}, which can be a number with thousands or one with a decimal "
                f"{'comma' if mark == ',' else 'point'}, and no other cell decides. Set decimal='.' or "
                "decimal=','."
            )
        if not marks and separator == ";":
            notes.append(
                f"Column {column!r} holds {cell!r}, read as a number with a decimal point. If the point separates "
                "thousands, set decimal=','."
            )
    return shown

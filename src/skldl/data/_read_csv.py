"""Read label distribution data from text files with separators: a header, then one line per instance.

The separator is found in the header (tab, semicolon or comma, in this order). Numbers may be written with a decimal
comma where the comma does not separate. Every complaint names line and column.
"""

import codecs
import csv
import fnmatch
import io
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from skldl.data._content import RawContent
from skldl.exceptions import DatasetError

LABEL_PREFIXES = ("label_", "label:", "label.", "d_", "y_")
_MISSING = {"", "?", "na", "n/a", "nan", "null", "none", "-"}
_WILDCARDS = re.compile(r"[*?\[]")

Columns = str | Sequence[str]


def read_csv(path: Path, features: Columns | None, labels: Columns | int | None, ignore: Columns) -> RawContent:
    """Read header and numbers, and tell features and labels apart."""
    if isinstance(labels, np.integer):
        labels = int(labels)
    header, lines, numbers = _split(path, _decoded(path))
    if header is None:
        return _without_header(path, lines, numbers, features, labels, ignore)
    ignored = set(_matching(path, header, ignore, "ignore")) if ignore else set()
    _check_header(path, header, ignored)
    label_columns, label_names = _label_columns(path, header, labels)
    if features is None:
        taken = ignored | set(label_columns)
        feature_columns = [column for column in range(len(header)) if column not in taken]
    else:
        feature_columns = _matching(path, header, features, "features")
    both = sorted((set(feature_columns) | ignored) & set(label_columns))
    if both:
        raise DatasetError(f"{path}: column {header[both[0]]!r} cannot be a label and also a feature or ignored.")
    if not feature_columns:
        raise DatasetError(f"{path}: no column is left for the features; all are labels or ignored.")
    feature_names = tuple(header[column] for column in feature_columns)
    return RawContent(
        features=_numbers(path, header, lines, numbers, feature_columns, "feature"),
        labels=_numbers(path, header, lines, numbers, label_columns, "label"),
        features_called="features",
        labels_called="labels",
        label_names=label_names,
        feature_names=feature_names,
        line_of_row=numbers,
    )


def _without_header(
    path: Path,
    lines: list[list[str]],
    numbers: list[int],
    features: Columns | None,
    labels: Columns | int | None,
    ignore: Columns,
) -> RawContent:
    """Only numbers from the first line on: the columns can only be told apart by counting."""
    width = len(lines[0])
    if features is not None or ignore or not isinstance(labels, int):
        raise DatasetError(
            f"{path} has no header: its first line holds only numbers. Add a line with the names of the columns "
            f"(labels begin with {LABEL_PREFIXES[0]!r}), or say how many of the last columns are labels: "
            "load_dataset(path, labels=3)."
        )
    _check_count(path, labels, width)
    columns = [str(column + 1) for column in range(width)]
    return RawContent(
        features=_numbers(path, columns, lines, numbers, list(range(width - labels)), "feature"),
        labels=_numbers(path, columns, lines, numbers, list(range(width - labels, width)), "label"),
        features_called="features",
        labels_called="labels",
        line_of_row=numbers,
    )


def _decoded(path: Path) -> str:
    data = path.read_bytes()
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    else:
        encoding = "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DatasetError(
            f"{path}: line {line} is not {encoding.upper().removesuffix('-SIG')} text. Save the table as 'CSV UTF-8'."
        ) from error
    if "\0" in text:
        raise DatasetError(f"{path} is not a text file (it holds zero bytes). Save the table as 'CSV UTF-8'.")
    if not text.strip():
        raise DatasetError(f"{path} is empty.")
    return text


def _split(path: Path, text: str) -> tuple[list[str] | None, list[list[str]], list[int]]:
    """Header (None if the first line is numbers), lines of cells, and where each line stands in the file."""
    first, _, rest = text.partition("\n")
    offset = 0
    declared = re.fullmatch(r"sep=(.)", first.strip(" \r"))  # Excel writes and reads such a line
    if declared:
        text, offset = rest, 1
        separator = declared[1]
    else:
        header_line = next(line for line in text.splitlines() if line.strip())
        unquoted = re.sub(r'"[^"]*"', "", header_line)
        separator = next((mark for mark in "\t;," if mark in unquoted), ",")
    cells: list[list[str]] = []
    numbers: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        for cells_of_line in reader:
            if any(cell.strip() for cell in cells_of_line):
                cells.append(cells_of_line)
                numbers.append(reader.line_num + offset)
    except csv.Error as error:
        raise DatasetError(f"{path}: line {reader.line_num + offset} cannot be split into cells ({error}).") from error
    if not cells:
        raise DatasetError(f"{path} is empty.")
    header = [cell.strip() for cell in cells[0]]
    if all(_is_number(cell) for cell in header):
        return None, _same_width(path, cells, numbers), numbers
    if len(cells) == 1:
        raise DatasetError(f"{path} has a header, but no line with numbers below it.")
    return header, _same_width(path, cells, numbers)[1:], numbers[1:]


def _same_width(path: Path, cells: list[list[str]], numbers: list[int]) -> list[list[str]]:
    width = len(cells[0])
    for cells_of_line, number in zip(cells, numbers, strict=True):
        if len(cells_of_line) != width:
            raise DatasetError(
                f"{path}: line {number} has {len(cells_of_line)} cells, but the first line has {width}. "
                "Decimal commas need another separator than the comma, or quotes; comments must be taken out."
            )
    return cells


def _is_number(cell: str) -> bool:
    try:
        float(cell.replace(",", ".") if cell.count(",") == 1 and "." not in cell else cell)
    except ValueError:
        return False
    return True


def _check_header(path: Path, header: list[str], ignored: set[int]) -> None:
    if len(header) == 1:
        raise DatasetError(
            f"{path} has only one column, {header[0]!r}. Columns must be separated by commas, semicolons or tabs."
        )
    seen: dict[str, int] = {}
    for column, name in enumerate(header):
        if column in ignored:
            continue
        if not name:
            raise DatasetError(
                f"{path}: column {column + 1} has no name in the header. If it is a row number (pandas writes one "
                'unless index=False), leave it out with load_dataset(path, ignore=[""]); otherwise name it.'
            )
        if name in seen:
            raise DatasetError(
                f"{path}: columns {seen[name] + 1} and {column + 1} are both called {name!r}. Rename one of them."
            )
        seen[name] = column


def _label_columns(path: Path, header: list[str], labels: Columns | int | None) -> tuple[list[int], tuple[str, ...]]:
    if isinstance(labels, int):
        _check_count(path, labels, len(header))
        columns = list(range(len(header) - labels, len(header)))
    elif labels is not None:
        columns = _matching(path, header, labels, "labels")
    else:
        candidates = [[j for j, name in enumerate(header) if name.lower().startswith(p)] for p in LABEL_PREFIXES]
        columns = next((found for found in candidates if len(found) > 1), [])
        if not columns:
            raise DatasetError(
                f"{path}: which columns are the labels? None or only one begins with "
                f"{' or '.join(map(repr, LABEL_PREFIXES))}. The columns are: {_shortened(header)}. "
                "Name the labels: load_dataset(path, labels=['happy', 'sad']), or by a common beginning "
                "(labels='emotion_'), or as the last so many columns (labels=3)."
            )
        labels = next(p for p, found in zip(LABEL_PREFIXES, candidates, strict=True) if found is columns)
    names = tuple(header[column] for column in columns)
    if isinstance(labels, str):  # what all the names begin with is no part of the label's own name
        beginning = len(_WILDCARDS.split(labels)[0])
        short = tuple(name[beginning:] for name in names)
        if all(short) and len(set(short)) == len(short):
            names = short
    return columns, names


def _check_count(path: Path, count: int, width: int) -> None:
    if isinstance(count, bool) or not 2 <= count < width:
        raise DatasetError(
            f"{path}: labels={count!r} means the last {count} of {width} columns, but there must be at least two "
            "labels and one feature."
        )


def _matching(path: Path, header: list[str], wanted: Columns, option: str) -> list[int]:
    """Columns by names, or by one text: a pattern with wildcards, or what the names begin with."""
    if isinstance(wanted, str):
        pattern = wanted if _WILDCARDS.search(wanted) else f"{wanted}*"
        found = [column for column, name in enumerate(header) if fnmatch.fnmatchcase(name, pattern)]
        if not found:
            raise DatasetError(f"{path}: no column matches {option}={wanted!r}. The columns are: {_shortened(header)}.")
        return found
    columns_of: dict[str, list[int]] = {}
    for column, name in enumerate(header):
        columns_of.setdefault(name, []).append(column)
    unknown = [name for name in wanted if name not in columns_of]
    if unknown:
        raise DatasetError(
            f"{path} has no column {unknown[0]!r}, which {option} names. The columns are: {_shortened(header)}."
        )
    return [column for name in wanted for column in columns_of[name]]


def _shortened(header: list[str], most: int = 12) -> str:
    shown = ", ".join(repr(name) for name in header[:most])
    return shown if len(header) <= most else f"{shown}, … ({len(header)} in all, the last is {header[-1]!r})"


def _numbers(
    path: Path, header: list[str], lines: list[list[str]], numbers: list[int], columns: list[int], role: str
) -> np.ndarray:
    table = np.empty((len(lines), len(columns)))
    try:
        for row, cells in enumerate(lines):
            table[row] = [float(cells[column]) for column in columns]
        plain = not any("_" in cells[column] for cells in lines for column in columns)  # float("1_0") is 10
        if plain and np.isfinite(table).all():
            return table
    except ValueError:
        pass
    chosen = [[cells[column].strip() for column in columns] for cells in lines]
    has_comma = any("," in cell for cells in chosen for cell in cells)
    if has_comma:  # "1,000" beside 0.25 is a thousand, and would be read as one
        _check_one_decimal_mark(path, header, lines, numbers)
    for row, cells in enumerate(chosen):
        for position, cell in enumerate(cells):
            place = f"{path}: line {numbers[row]}, column {header[columns[position]]!r}"
            if cell.lower() in _MISSING:
                raise DatasetError(f"{place} is missing ({cell!r}). Fill it in or drop the line.")
            try:
                if "_" in cell:
                    raise ValueError
                table[row, position] = float(cell.replace(",", "."))
            except ValueError as error:
                raise DatasetError(_not_a_number(place, cell, header[columns[position]], role)) from error
            if not np.isfinite(table[row, position]):
                raise DatasetError(f"{place} holds {cell!r}. Fill in a finite number or drop the line.")
    return table


def _check_one_decimal_mark(path: Path, header: list[str], lines: list[list[str]], numbers: list[int]) -> None:
    """Refuse points in a file whose numbers hold commas, wherever they stand."""
    for number, cells in zip(numbers, lines, strict=True):
        for name, cell in zip(header, cells, strict=True):
            if "." in cell and _is_number(cell.replace(",", "")):
                raise DatasetError(
                    f"{path}: line {number}, column {name!r} holds {cell.strip()!r}, while other cells hold a comma: "
                    "which of them is the decimal mark? Write all numbers in one way, without marks between thousands."
                )


def _not_a_number(place: str, cell: str, name: str, role: str) -> str:
    if role == "label":
        return f"{place} holds {cell!r}, but a label needs a number: the degree. Name the label columns with labels=."
    return (
        f"{place} holds {cell!r}, where a number belongs. Encode the column as numbers, or leave it out: "
        f"load_dataset(path, ignore=[{name!r}])."
    )

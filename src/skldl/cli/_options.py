"""Options that several commands share."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from skldl.data import Columns, TableFile
from skldl.data._formats import list_formats
from skldl.data._roles import open_file
from skldl.data._tables import ArrayTable
from skldl.exceptions import TableError
from skldl.utils.spelling import split_list


def _check_is_no_option(kind: Any, value: str) -> None:
    """Reject a misspelt option, which the parser takes for a file, since a hyphen alone is one."""
    if isinstance(value, str) and value.startswith("--"):
        raise ValueError(f"Unknown option: {value}. A file of this name is ./{value}.")


Source = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_check_is_no_option)]
"""A file, or - for standard input or output."""
Name = Annotated[str | None, Parameter(show_default=False)]
Words = Annotated[list[str], Parameter(negative="", show_default=False)]
Flag = Annotated[bool, Parameter(negative="")]


def naming_formats(command: Callable[..., Any]) -> Callable[..., Any]:
    """Complete the help of a command from the table of formats: a decorator.

    ``{tables}`` are the formats of tables, ``{outputs}`` those that can be written, with their suffixes, and
    ``{arrays}`` those of files with arrays.
    """
    names = {
        "tables": list_formats("reader"),
        "outputs": list_formats("writer", suffixes=True),
        "arrays": list_formats("arrays", suffixes=True),
    }
    for name, formats in names.items():
        command.__doc__ = (command.__doc__ or "").replace(f"{{{name}}}", formats)
    return command


@Parameter(name="*")
@dataclass(kw_only=True)
class Reading:
    """How a CSV file is written, instead of what is detected."""

    encoding: Name = None
    """Encoding of a CSV file, such as shift_jis."""
    decimal: Name = None
    """Decimal mark of a CSV file, a point or a comma; the other mark then separates thousands."""
    na: Annotated[list[str] | None, Parameter(negative="", show_default=False)] = None
    """Words that mean a missing value in columns of text, separated by commas; '' means only empty cells."""

    def as_arguments(self) -> dict[str, Any]:
        """The arguments of `skldl.data.TableFile`."""
        missing = None if self.na is None else words(self.na)
        return {"encoding": self.encoding, "decimal": self.decimal, "na_values": missing}

    def open(self, source: str) -> TableFile | ArrayTable:
        """Open a table of features, or the arrays of a .mat or .npz file as one."""
        return open_file(source, **self.as_arguments())


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ColumnOptions(Columns):
    """The roles of `Columns` as options, in which names are separated by commas."""

    __doc__ = Columns.__doc__
    labels: Words = field(default_factory=list)
    drop: Words = field(default_factory=list)
    text: Words = field(default_factory=list)
    categories: Words = field(default_factory=list)

    def __post_init__(self) -> None:
        for role in ("labels", "drop", "text", "categories"):
            object.__setattr__(self, role, tuple(words(getattr(self, role))))


def words(given: list[str] | None) -> list[str]:
    """Split each word at its commas.

    Examples
    --------
    >>> words(["joy,fear", "anger"])
    ['joy', 'fear', 'anger']
    """
    return [word for piece in given or [] for word in split_list(piece)]


def check_is_no_model(source: str) -> None:
    """Reject a model in the place of a table, for commands that take a model and then a table."""
    if source.endswith(".skldl"):
        raise TableError(f"{source} looks like a model. Give the model first, then the table.")


def check_targets(
    targets: Iterable[tuple[str, str | Path | None]], inputs: Iterable[str | Path], *, overwrite: bool
) -> None:
    """Raise an error if an output is an input, another output, or an existing file without ``overwrite``.

    A target is an option and its file; None for no output, ``-`` for standard output.
    """
    seen: dict[str, str] = {}
    for option, target in targets:
        if target is None:
            continue
        place = "-" if str(target) == "-" else os.path.realpath(target)
        if place in seen:
            raise TableError(f"{seen[place]} and {option} both write to {target}. Name two files.")
        seen[place] = option
        if place == "-" or not os.path.isfile(place):
            continue
        for name in inputs:
            if str(name) != "-" and os.path.exists(name) and os.path.samefile(place, name):
                raise TableError(f"{option} {target} is a file that this command reads. Write to another one.")
        if not overwrite:
            raise TableError(f"{option} {target} exists already. Name another file, or use --overwrite.")

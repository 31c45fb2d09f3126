"""Options that several commands share, and the one place where names of parameters become names of options."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from skldl.data import Dataset, TableFile, find_columns, from_table
from skldl.data._formats import holds_arrays
from skldl.data._tables import ArrayTable, TableFiles
from skldl.exceptions import DataError, TableError
from skldl.exceptions import Parameter as Named
from skldl.utils.spelling import split_list


def _refuse_unknown_option(kind: Any, value: str) -> None:
    """A hyphen is a file, so that the parser takes an option that it does not know as one, too."""
    if isinstance(value, str) and value.startswith("--"):
        raise ValueError(f"Unknown option: {value}. A file of this name is ./{value}.")


Source = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_refuse_unknown_option)]
"""A file, or - for standard input or output."""
Name = Annotated[str | None, Parameter(show_default=False)]
Words = Annotated[list[str], Parameter(negative="", show_default=False)]
Flag = Annotated[bool, Parameter(negative="")]
TextNgrams = Literal["auto", "words", "characters"]
Kind = Literal["distribution", "counts", "scores", "votes", "label"]


@Parameter(name="*")
@dataclass(kw_only=True)
class Reading:
    """How a CSV file is written, where this is not found out."""

    encoding: Name = None
    """Encoding of a CSV file, such as shift_jis."""
    decimal: Name = None
    """Decimal mark of a CSV file, a point or a comma; the other mark then separates thousands."""
    na: Annotated[list[str] | None, Parameter(negative="", show_default=False)] = None
    """Words that mean a missing value in columns of text, separated by commas; '' means none but empty cells."""

    def open(self, source: str) -> TableFile | ArrayTable:
        """Open a table, or the arrays of a .mat or .npz file as one."""
        return self._arrays(source) if holds_arrays(source) else TableFile(source, **self.as_reading())

    def _arrays(self, source: str, labels: str | None = None, also: Sequence[str] = ()) -> ArrayTable:
        for name, value in self.as_reading().items():
            if value is not None:
                raise TableError(Named(name), f" is about CSV files, and {source} holds arrays.")
        return ArrayTable(source, labels=labels, also=also)

    def as_reading(self) -> dict[str, Any]:
        """The arguments of `skldl.data.TableFile`."""
        missing = None if self.na is None else words(self.na)
        return {"encoding": self.encoding, "decimal": self.decimal, "na_values": missing}


@Parameter(name="*")
@dataclass(kw_only=True)
class Columns(Reading):
    """Roles of the columns of a table. All others are features."""

    labels: Words = field(default_factory=list)
    """The label columns: names, patterns such as 'emo_*', or what several names begin with, separated by commas; for a
    .mat or .npz file the name of the array of labels, if it has no usual one."""
    kind: Kind = "distribution"
    """What the label columns hold: shares that sum to one (distribution), counts or scores for each label, answers of
    annotators, one column for each (votes), or the one label of the row (label)."""
    weight: Name = None
    """Column with the weight of each row."""
    groups: Name = None
    """Column with the group of each row, such as the person: rows of one group are never split."""
    drop: Words = field(default_factory=list)
    """Columns to leave out, names or patterns."""
    text: Words = field(default_factory=list)
    """Columns with prose, to be cut into n-grams."""
    categories: Words = field(default_factory=list)
    """Columns to take as categories though they hold numbers, such as a postcode."""

    def open(self, source: str) -> TableFile | ArrayTable:
        """Open a table with labels, or the arrays of a .mat or .npz file as one."""
        labels = words(self.labels)
        if holds_arrays(source):
            if len(labels) > 1:
                raise TableError(Named("labels", labels), f": {source} holds arrays. Name the one array of labels.")
            also = [name for name in (self.weight, self.groups) if name is not None]
            table = self._arrays(source, labels[0] if labels else None, also)
            if not table.label_columns:
                raise TableError(f"{source} holds no array of labels. Name it with ", Named("labels"), ".")
            return table
        self.need_labels()
        return super().open(source)

    def open_all(self, sources: Sequence[str]) -> TableFile | TableFiles | ArrayTable:
        """Open a table with labels that consists of one file or several."""
        if len(sources) == 1:
            return self.open(sources[0])
        for name in sources:
            if name == "-" or holds_arrays(name):
                raise TableError(f"Several tables are named, and {name} is no CSV or Parquet file. Name it alone.")
        self.need_labels()
        return TableFiles(sources, **self.as_reading())

    def need_labels(self) -> None:
        """Demand that the label columns are named."""
        if not words(self.labels):
            raise TableError(
                Named("labels"),
                " is missing: say which columns of the table are labels, such as ",
                Named("labels", "emo_*"),
                ".",
            )

    def labels_in(self, table: TableFile | TableFiles | ArrayTable) -> list[str]:
        """The label columns of a table that was opened."""
        if isinstance(table, ArrayTable):
            return table.label_columns
        return find_columns(words(self.labels), table.columns, "labels")

    def dataset(
        self, table: TableFile | TableFiles | ArrayTable, *, name: str = "", splits: str | None = None, **more: Any
    ) -> Dataset:
        """Read a table that was opened, and the file of its splits if there is one."""
        roles = self.as_arguments() | {"labels": self.labels_in(table)}
        dataset = from_table(table.read(), name=name or table.name, source=table.name, **roles, **more)
        if splits is None:
            return dataset
        from skldl.experiments.loading import read_splits

        return dataset.changed(splits=read_splits(splits, dataset))

    def as_arguments(self) -> dict[str, Any]:
        """The arguments of `skldl.data.from_table` and `skldl.tabular.fit_table`, lists cut at their commas."""
        return {
            "labels": words(self.labels),
            "kind": self.kind,
            "weight": self.weight,
            "groups": self.groups,
            "drop": words(self.drop),
            "text": words(self.text),
            "categories": words(self.categories),
        }


@contextmanager
def placed_in(table: TableFile | TableFiles | ArrayTable) -> Iterator[None]:
    """Where a table consists of several files, say in which one the row lies that an error names."""
    try:
        yield
    except DataError as error:
        if error.row is None or not isinstance(table, TableFiles):
            raise
        file, row = table.place_of(error.row)
        place = f" (Row {error.row + 1} of the table is row {row + 1} of {file}.)"
        raise type(error)(*error.parts, place, row=error.row) from error


def words(given: list[str] | None) -> list[str]:
    """Cut each word at its commas.

    Examples
    --------
    >>> words(["joy,fear", "anger"])
    ['joy', 'fear', 'anger']
    """
    return [word for piece in given or [] for word in split_list(piece)]


def refuse_model_as_table(source: str) -> None:
    """Catch the two arguments of ``predict`` and ``explain`` in the wrong order."""
    if source.endswith(".skldl"):
        raise TableError(f"{source} looks like a model. The model comes first, then the table.")


def check_targets(
    targets: Iterable[tuple[str, str | Path | None]], inputs: Iterable[str | Path], *, overwrite: bool
) -> None:
    """Refuse to overwrite an input, to write twice into one file, or to overwrite an existing file without permission.

    A target is an option and where it makes the command write; None for no output, ``-`` for standard output.
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

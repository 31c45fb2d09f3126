"""Options that several commands share, and the one place where names of parameters become names of options."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from skldl.data import TableFile
from skldl.data._spelling import split_list
from skldl.exceptions import TableError

Source = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""A file, or - for standard input or output."""
Name = Annotated[str | None, Parameter(show_default=False)]
Words = Annotated[list[str], Parameter(negative="", show_default=False)]
Flag = Annotated[bool, Parameter(negative="")]
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

    def open(self, source: str) -> TableFile:
        """Open a table."""
        return TableFile(source, **self.as_reading())

    def as_reading(self) -> dict[str, Any]:
        """The arguments of `skldl.data.TableFile`."""
        missing = None if self.na is None else words(self.na)
        return {"encoding": self.encoding, "decimal": self.decimal, "na_values": missing}


@Parameter(name="*")
@dataclass(kw_only=True)
class Columns(Reading):
    """Which column of a table is what. All others are features."""

    labels: Words
    """The label columns: names, patterns such as 'emo_*', or what several names begin with, separated by commas."""
    kind: Kind = "distribution"
    """What the label columns hold: shares that sum to one (distribution), counts or scores for each label, answers of
    annotators, one column for each (votes), or the one label of the row (label)."""
    weight: Name = None
    """Column with the weight of each row."""
    groups: Name = None
    """Column that says which rows belong together, such as those of one person: they are never split."""
    drop: Words = field(default_factory=list)
    """Columns to leave out, names or patterns."""
    text: Words = field(default_factory=list)
    """Columns with prose, to be cut into n-grams."""
    categories: Words = field(default_factory=list)
    """Columns to take as categories though they hold numbers, such as a postcode."""

    def as_arguments(self) -> dict[str, object]:
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


def words(given: list[str] | None) -> list[str]:
    """Cut each word at its commas.

    Examples
    --------
    >>> words(["joy,fear", "anger"])
    ['joy', 'fear', 'anger']
    """
    return [word for piece in given or [] for word in split_list(piece)]


_OPTIONS = {"na_values": "--na", "random_state": "--seed", "source": "--from", "settings": "--set"} | {
    name: f"--{name.replace('_', '-')}"
    for name in (
        *(
            "annotator",
            "categories",
            "decimal",
            "drop",
            "encoding",
            "folds",
            "groups",
            "item",
            "keep",
            "keep_rows",
            "kind",
            "label",
        ),
        *(
            "labels",
            "prefix",
            "model",
            "repeats",
            "selection_rows",
            "separator",
            "text",
            "text_ngrams",
            "values",
            "weight",
        ),
    )
}
_PARAMETER = re.compile(rf"(?<![\w.(])({'|'.join(_OPTIONS)})=(\[[^\]]*\]|'[^']*'|\"[^\"]*\"|-?[\w.]+(?<!\.))?(?!\w)")


def as_options(text: str) -> str:
    """Rewrite the parameters that a message of the library names as options of the command line.

    Parameters
    ----------
    text : str
        A message such as ``Use kind='counts'``.

    Returns
    -------
    str
        The message with ``--kind counts`` instead.

    Examples
    --------
    >>> as_options("If these are counts, use kind='counts'; leave it out with drop=['a', 'b']; see labels=.")
    'If these are counts, use --kind counts; leave it out with --drop a,b; see --labels.'
    """

    def rewritten(match: re.Match[str]) -> str:
        option, value = _OPTIONS[match[1]], match[2]
        if value is None:
            return option
        if value.startswith("["):
            value = ",".join(word.strip().strip("'\"") for word in value[1:-1].split(","))
        else:
            value = value.strip("'\"")
        return f"{option} {_quoted(value)}"

    return _PARAMETER.sub(rewritten, text)


def _quoted(value: str) -> str:
    return value if re.fullmatch(r"[\w.,:+-]+", value) else f"'{value}'"


def refuse_model_as_table(source: str) -> None:
    """Catch the two arguments of ``predict`` and ``explain`` in the wrong order."""
    if source.endswith(".skldl"):
        raise TableError(f"{source} looks like a model. The model comes first, then the table.")


def check_target(out: str | Path, *inputs: str | Path, overwrite: bool) -> None:
    """Refuse to write over an input, and over a file that is already there unless this is wanted.

    Parameters
    ----------
    out : str or path
        Where a command is going to write; - is standard output.
    *inputs : str or path
        The files that it reads: never written over.
    overwrite : bool
        Whether the user said ``--overwrite``.
    """
    target = Path(out)
    if str(out) == "-" or not target.is_file():
        return
    for name in inputs:
        if str(name) != "-" and Path(name).exists() and target.samefile(name):
            raise TableError(f"--out {out} is a file that this command reads. Write to another one.")
    if not overwrite and not _is_model(target):
        raise TableError(f"--out {out} is there already. Name another file, or say --overwrite.")


def _is_model(path: Path) -> bool:
    from skldl.exceptions import ModelFileError
    from skldl.persistence import inspect

    try:
        inspect(path)
    except (ModelFileError, OSError):
        return False
    return True

"""Options that several commands share: which table, and which of its columns is what."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from cyclopts import Parameter

from skldl.data._spelling import split_list
from skldl.exceptions import TableError

Source = Annotated[str, Parameter(allow_leading_hyphen=True)]
"""A file, or - for standard input or output."""
Name = Annotated[str, Parameter(show_default=False)]
Words = Annotated[list[str], Parameter(negative="", show_default=False)]
Kind = Literal["distribution", "counts", "scores", "votes", "label"]


@Parameter(name="*")
@dataclass(kw_only=True)
class Columns:
    """Which column of a table is what. All others are features."""

    labels: Words
    """The label columns: names or patterns such as 'emo_*', separated by commas."""
    kind: Kind = "distribution"
    """What the label columns hold: shares that sum to one (distribution), counts or scores for each label, answers of
    annotators, one column for each (votes), or the one label of the row (label)."""
    weight: Name = ""
    """Column with the weight of each row."""
    groups: Name = ""
    """Column that says which rows belong together, such as those of one person: they are never split."""
    drop: Words = field(default_factory=list)
    """Columns to leave out, names or patterns."""
    text: Words = field(default_factory=list)
    """Columns with prose, to be cut into n-grams."""
    categories: Words = field(default_factory=list)
    """Columns to take as categories though they hold numbers, such as a postcode."""

    def as_arguments(self) -> dict[str, object]:
        """The arguments of `skldl.tabular.training_set` and `fit_table`, lists cut at their commas."""
        return {
            "labels": words(self.labels),
            "kind": self.kind,
            "weight": self.weight,
            "groups": self.groups,
            "drop": words(self.drop),
            "text": words(self.text),
            "categories": words(self.categories),
        }


def words(given: list[str]) -> list[str]:
    """Cut each word at its commas.

    Examples
    --------
    >>> words(["joy,fear", "anger"])
    ['joy', 'fear', 'anger']
    """
    return [word for piece in given for word in split_list(piece)]


def refuse_model_as_table(source: str) -> None:
    """Catch the two arguments of ``predict`` and ``explain`` in the wrong order."""
    if source.endswith(".skldl"):
        raise TableError(f"{source} looks like a model. The model comes first, then the table.")

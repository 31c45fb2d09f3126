"""`convert_table`: tables of votes, counts, scores, labels or rankings converted to tables of distributions."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from skldl.annotators import RaterSummary
from skldl.data._cells import as_frame, as_words, with_columns
from skldl.data._labels import (
    check_filled,
    in_order,
    label_numbers,
    label_values,
    look_like_shares,
    one_row_each,
    read_labels,
    read_votes,
)
from skldl.distributions import Votes, from_label_sets, from_rankings, from_votes
from skldl.exceptions import DataError, Message, MissingLabelError, Parameter, TableError
from skldl.utils.column_names import find_columns, list_names, no_column

_Parts = tuple[pd.DataFrame, pd.DataFrame, pd.Series | None, RaterSummary | None]
"""Other columns of the items, distributions, numbers of votes of each row, and the quality of the raters."""
SOURCES = ("votes", "counts", "scores", "label", "sets", "rankings")


@dataclass(frozen=True)
class Converted:
    """A table of distributions.

    Attributes
    ----------
    table : DataFrame
        One row for each item: its other columns, and then the degree of each label.
    labels : list of str
        The label columns.
    notes : list of str
        Notes for the user.
    raters : DataFrame or None
        Quality of each rater, if it was requested; see `skldl.annotators.rater_table`.
    summary : RaterSummary or None
        The same and the confusion matrix of all raters, for `skldl.plots.RatersDisplay.from_summary`.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.data import convert_table
    >>> table = pd.DataFrame({"id": [1, 2], "joy": [3, 0], "fear": [1, 2]})
    >>> converted = convert_table(table, "counts", labels=["joy", "fear"])
    >>> converted.labels
    ['joy', 'fear']
    """

    table: pd.DataFrame
    labels: list[str]
    notes: list[str]
    raters: pd.DataFrame | None = None
    summary: RaterSummary | None = None


def convert_table(
    table: Any,
    source: str,
    *,
    labels: str | Sequence[str] = (),
    label: str | None = None,
    item: str | None = None,
    annotator: str | None = None,
    separator: str | None = None,
    prefix: str = "",
    weight: str | None = None,
    raters: bool = False,
    weigh_raters: bool = False,
) -> Converted:
    """Convert a table of votes, counts, scores, labels, sets or rankings to a table of distributions.

    Parameters
    ----------
    table : DataFrame
        The table.
    source : {"votes", "counts", "scores", "label", "sets", "rankings"}
        Content of the table. Votes: either one row for each vote (``item``, ``annotator``, ``label``), or one row for
        each item and one column for each annotator (``labels``). Counts and scores: one column for each label
        (``labels``). Label, sets, rankings: one column (``label``) that holds a label, several labels, or labels in
        descending order; several rankings of one item share their ``item``.
    labels : str or sequence of str, default=()
        Columns, as names or patterns.
    label, item, annotator : str, default=None
        Columns, as names.
    separator : str, default=None
        Separator between the labels of a set (by default a bar) or of a ranking (by default ``>``).
    prefix : str, default=""
        Prefix of the label columns in the result. `load_dataset` finds labels that begin with ``label_``.
    weight : str, default=None
        Name of a new column with the number of votes or rankings of each row.
    raters : bool, default=False
        Whether to measure the quality of each rater; for votes.
    weigh_raters : bool, default=False
        Whether to weight the votes of each rater by that quality.

    Returns
    -------
    Converted
        The table of distributions. If an item has several rows, other columns are kept if they have one value for each
        item.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.data import convert_table
    >>> votes = pd.DataFrame({"id": [1, 1, 2], "who": ["a", "b", "a"], "says": ["joy", "fear", "joy"]})
    >>> convert_table(votes, "votes", item="id", annotator="who", label="says").table
       id  fear  joy
    0   1   0.5  0.5
    1   2   0.0  1.0
    """
    if source not in SOURCES:
        raise TableError(Parameter("source", source), f" is not known. Known are {', '.join(SOURCES)}.")
    notes = list(getattr(table, "attrs", {}).get("notes", ()))
    frame = as_frame(table)
    for role, name in (("label", label), ("item", item), ("annotator", annotator)):
        if name is not None and name not in frame.columns:
            raise no_column(role, name, frame.columns)
    if (raters or weigh_raters) and source != "votes":
        raise TableError(
            Parameter("raters"), " and ", Parameter("weigh_raters"), " belong to ", Parameter("source", "votes"), "."
        )
    if source == "votes" and item is not None:
        parts = _votes_in_rows(frame, item, annotator, label, notes, raters, weigh_raters)
        return _joined(*parts, prefix, weight, notes)
    if source == "rankings":
        return _joined(*_rankings(frame, item, label, separator or ">", notes), prefix, weight, notes)
    if weight is not None and source != "votes":
        raise TableError(
            Parameter("weight"),
            " counts votes or rankings: it needs ",
            Parameter("source", "votes"),
            " or ",
            Parameter("source", "rankings"),
            ".",
        )
    columns = find_columns(labels or ([] if label is None else [label]), frame.columns, "labels")
    if not columns:
        role = "label" if source in ("label", "sets") else "labels"
        raise TableError(
            Parameter("source", source),
            " needs ",
            Parameter(role),
            f", the columns to convert. The table has {list_names(frame.columns)}.",
        )
    counts = summary = None
    if source == "sets":
        D = from_label_sets(_cut(frame[columns[0]], separator or "|", notes))
    elif source == "votes":
        votes, answers = read_votes(frame[columns])
        if raters or weigh_raters:
            words = pd.DataFrame(answers, index=frame.index, columns=columns)
            votes, summary = _counted(words, votes.label_names, {}, raters, weigh_raters)
        D, counts = votes.D, pd.Series(votes.n_votes, index=frame.index)
        notes.append(_agreement(votes))
    else:
        D = read_labels(frame[columns], source)
        if source == "counts" and look_like_shares(label_numbers(frame[columns]).to_numpy()):
            notes.append(
                Message(
                    Parameter("source", "counts"),
                    ": the cells look like fractions, since they sum to 1 in every row. A table of "
                    "fractions needs no conversion.",
                )
            )
    return _joined(frame.drop(columns=columns), D.set_index(frame.index), counts, summary, prefix, weight, notes)


def _votes_in_rows(
    frame: pd.DataFrame,
    item: str,
    annotator: str | None,
    label: str | None,
    notes: list[str],
    raters: bool,
    weigh_raters: bool,
) -> _Parts:
    if annotator is None or label is None:
        raise TableError(
            "Votes in rows need three columns: ",
            Parameter("item"),
            ", ",
            Parameter("annotator"),
            " and ",
            Parameter("label"),
            ".",
        )
    check_filled(frame, item, annotator)
    answered = frame[frame[label].notna()]
    answered = with_columns(answered, {label: as_words(answered[label], "")})
    if len(answered) < len(frame):
        notes.append(f"{len(frame) - len(answered)} rows without an answer are left out.")
    if not len(answered):
        raise MissingLabelError(f"The column {label!r} is empty: there is not a single answer.")
    columns = {"item": item, "annotator": annotator, "label": label}
    votes, summary = _counted(answered, in_order(answered[label].unique()), columns, raters, weigh_raters)
    notes.append(_agreement(votes))
    items, more = one_row_each(answered, item, [annotator, label])
    notes += more
    return items.loc[votes.items], votes.D, pd.Series(votes.n_votes, index=votes.items), summary


def _counted(
    answers: pd.DataFrame, names: Sequence[str], columns: dict[str, Any], raters: bool, weigh: bool
) -> tuple[Votes, RaterSummary | None]:
    """Count votes, with ``weigh`` weighted by the quality of the raters; returns the votes and that quality."""
    summary = RaterSummary.from_votes(answers, labels=list(names), **columns) if raters or weigh else None
    weights = summary.table if summary is not None and weigh else None
    return from_votes(answers, labels=list(names), weights=weights, **columns), summary


def _agreement(votes: Votes) -> str:
    """Describe the number of answers and their agreement: ordinal if the labels are numbers, else nominal."""
    sizes = f"{len(votes.items)} items, {len(votes.annotators)} annotators, {int(votes.n_votes.sum())} votes."
    level = "nominal" if label_values(votes.label_names) is None else "ordinal"
    try:
        alpha = votes.alpha(level)
    except DataError as error:
        return f"{sizes} {error}"
    return f"{sizes} Agreement: Krippendorff's alpha ({level}) {alpha:.3f} (1 is perfect, 0 is chance)."


def _rankings(frame: pd.DataFrame, item: str | None, label: str | None, separator: str, notes: list[str]) -> _Parts:
    if label is None:
        raise TableError(
            Parameter("source", "rankings"),
            " needs ",
            Parameter("label"),
            ", the column with labels in descending order, such as joy>fear.",
        )
    cut = _cut(frame[label], separator, notes)
    if item is not None:
        check_filled(frame, item)
        lists = cut.groupby(frame[item], sort=False).agg(list)
        items, more = one_row_each(frame, item, [label])
        items = items.loc[lists.index]
        notes += more
    else:
        lists = cut.map(lambda ranking: [ranking])
        items = frame.drop(columns=label)
    names = in_order({name for ranking in cut for name in ranking})
    D = pd.DataFrame(from_rankings(list(lists), labels=names), index=items.index, columns=names)
    return items, D, lists.map(len), None


def _cut(column: pd.Series, separator: str, notes: list[str]) -> pd.Series:
    """Split each cell into a list of labels, empty for an empty cell; a separator that never occurs adds a note."""
    text = as_words(column, "")
    if not text.str.contains(separator, regex=False).any():
        notes.append(
            Message(
                f"No cell of column {column.name!r} holds the separator {separator!r}, so that each holds "
                "one label at most. If the labels are separated by something else, set ",
                Parameter("separator"),
                ".",
            )
        )
    return text.map(lambda cell: [word.strip() for word in cell.split(separator) if word.strip()])


def _joined(
    items: pd.DataFrame,
    D: pd.DataFrame,
    counts: pd.Series | None,
    summary: RaterSummary | None,
    prefix: str,
    weight: str | None,
    notes: list[str],
) -> Converted:
    D = D.rename(columns=lambda name: f"{prefix}{name}")
    parts = [items, D]
    if weight is not None and counts is not None:
        parts.append(counts.rename(weight).to_frame())
    for name in (*D.columns, *([weight] if weight else [])):
        if name in items.columns:
            raise TableError(
                f"The table has a column {name!r} already. Give the labels another name with ", Parameter("prefix"), "."
            )
    table = pd.concat([part.reset_index(drop=True) for part in parts], axis=1)
    raters = None if summary is None else pd.DataFrame(summary.table.columns())
    return Converted(table, [str(name) for name in D.columns], notes, raters, summary)

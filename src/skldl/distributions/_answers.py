"""Answers of annotators, from a wide or long table, as one list of item, annotator and labels."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np

from skldl.distributions._tables import (
    cells,
    check_label,
    check_names,
    check_not_empty,
    is_frame,
    is_missing,
    library,
    plain_label,
    position_of,
    sorted_names,
)
from skldl.exceptions import (
    DataError,
    DimensionError,
    DuplicateVoteError,
    MissingLabelError,
    Parameter,
    ParameterError,
    SampleWeightError,
)
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import as_real_array


@dataclass(frozen=True)
class Answers:
    """One entry per answer, that is, per item and annotator who answered.

    Attributes
    ----------
    item, annotator : ndarray of int
        Positions in ``items`` and ``annotators``.
    mass : ndarray of shape (n_answers, n_labels)
        Mass of the labels of the answer, which sums to one: 1 / number of its labels each.
    items, annotators, labels : list
        Their names.
    """

    item: IntArray
    annotator: IntArray
    mass: FloatArray
    items: list[Any]
    annotators: list[Any]
    labels: list[Any]


COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)
"""Types of a cell that holds several labels."""
NO_NAME = "Row {row} of votes has no {name!r}. Every vote names its item and annotator."
NO_ANSWER = "There is not a single answer in the table: every cell is empty."
MAX_LABELS = 100
"""With more labels, most of which occur in one column alone, columns of different kinds are those of a long table."""


def names_columns(item: Any, annotator: Any, label: Any) -> bool:
    """Whether the three columns of a long table are named; an error if only some of them are."""
    named = [column is not None for column in (item, annotator, label)]
    if any(named) and not all(named):
        raise ParameterError(
            "A long table needs the names of three columns: ",
            Parameter("item"),
            ", ",
            Parameter("annotator"),
            " and ",
            Parameter("label"),
            ". Leave all of them out for a wide table (one row per item, one column per annotator).",
        )
    return all(named)


def read_answers(votes: Any, *, item: Any, annotator: Any, label: Any, labels: Any) -> Answers:
    """Read a table of answers: a long one if its three columns are named, a wide one if none of them is."""
    is_long = names_columns(item, annotator, label)
    given, items, annotators = _read_long(votes, item, annotator, label) if is_long else _read_wide(votes)
    if not given:
        raise MissingLabelError(NO_ANSWER)
    if labels is None:
        names = sorted_names(entry for members in given.values() for entry in members)
    else:
        names = check_names(labels, name="labels")
    column = {entry: j for j, entry in enumerate(names)}
    mass = np.zeros((len(given), len(names)))
    for answer, ((i, r), members) in enumerate(given.items()):
        for entry in members:
            if entry not in column:
                where = f"The answer of annotator {annotators[r]!r} to item {items[i]!r}"
                position_of(names, entry, where=where, argument="labels")
            mass[answer, column[entry]] = 1.0 / len(members)
    places = np.array(list(given), dtype=np.intp)
    return Answers(places[:, 0], places[:, 1], mass, items, annotators, names)


Given = dict[tuple[int, int], list[Any]]


def _read_wide(votes: Any) -> tuple[Given, list[Any], list[Any]]:
    rows, items, annotators = wide_table(votes)
    given: Given = {}
    for i, row in enumerate(rows):
        for r, cell in enumerate(row):
            if is_missing(cell):
                continue
            where = f"The answer of annotator {annotators[r]!r} to item {items[i]!r}"
            members: list[Any] = []
            _add_labels(members, cell, where)
            if members:
                given[i, r] = members
    return given, items, annotators


def wide_table(votes: Any) -> tuple[list[list[Any]], list[Any], list[Any]]:
    """Return the cells of a wide table, all rows of one length, and the names of its items and annotators."""
    rows = table_rows(votes)
    check_not_empty(rows, name="votes")
    n_annotators = len(rows[0])
    for i, row in enumerate(rows):
        if len(row) != n_annotators:
            raise DimensionError(
                f"Row {i} of votes has {len(row)} cells and row 0 has {n_annotators}. A wide table has one cell for "
                "each annotator, None where there is no answer.",
                row=i,
            )
    items = list(votes.index) if library(votes) == "pandas" else list(range(len(rows)))
    annotators = list(votes.columns) if is_frame(votes) else list(range(n_annotators))
    _check_not_long(rows, annotators)
    return rows, items, annotators


def _check_not_long(rows: list[list[Any]], annotators: list[Any]) -> None:
    """Raise an error for a long table whose columns are not named: each of them would be taken for an annotator."""
    if {"item", "annotator", "label"} <= {name for name in annotators if isinstance(name, str)}:
        raise _looks_long("it has columns named 'item', 'annotator' and 'label'")
    columns = [[entry for cell in column for entry in _entries(cell)] for column in zip(*rows, strict=True)]
    kinds = [{_kind(entry) for entry in column} for column in columns if column]
    if not kinds or set.intersection(*kinds):
        return
    # an item has several votes, so that its name occurs several times, but in one column
    n_columns = Counter(entry for column in columns for entry in set(map(str, column)))
    n_once = sum(count == 1 for count in n_columns.values())
    if len(n_columns) > MAX_LABELS and 2 * n_once > len(n_columns):
        raise _looks_long(
            f"its columns are of different kinds, such as numbers and text, and hold {len(n_columns):,} labels, of "
            f"which {n_once:,} occur in one column alone"
        )


def _kind(entry: Any) -> str:
    return "number" if isinstance(entry, Number | np.number | np.bool_) else type(entry).__name__


def _entries(cell: Any) -> list[Any]:
    """The labels of a cell: none if it is empty."""
    if isinstance(cell, COLLECTIONS):
        return list(cell)
    return [] if is_missing(cell) else [cell]


def _looks_long(reason: str) -> DataError:
    return DataError(
        f"votes looks like a long table (one row per vote): {reason}. Name its columns with ",
        Parameter("item"),
        ", ",
        Parameter("annotator"),
        " and ",
        Parameter("label"),
        ". A wide table has one row per item and one column per annotator.",
    )


def table_rows(table: Any) -> list[list[Any]]:
    """Return a two-dimensional table as lists of cells of any type."""
    if library(table) == "polars":
        return [list(row) for row in table.rows()]
    if library(table) == "pandas" and is_frame(table):
        return [list(row) for row in table.itertuples(index=False, name=None)]
    rows = cells(table)
    for i, row in enumerate(rows):
        if isinstance(row, str | bytes) or not hasattr(row, "__len__"):
            raise DimensionError(
                f"Row {i} of the table is {row!r}, not a row of cells. Pass one row per item and one column per "
                "person, or name the columns item, annotator and label of a long table.",
                row=i,
            )
    return [list(row) for row in rows]


def _read_long(votes: Any, item: Any, annotator: Any, label: Any) -> tuple[Given, list[Any], list[Any]]:
    columns = long_columns(votes, (item, annotator, label), cells)
    items: dict[Any, int] = {}
    annotators: dict[Any, int] = {}
    given: Given = {}
    for row, (what, who, entry) in enumerate(zip(*columns, strict=True)):
        for name, key in ((item, what), (annotator, who)):
            if is_missing(key):
                raise MissingLabelError(NO_NAME.format(row=row, name=name), row=row)
        place = items.setdefault(what, len(items)), annotators.setdefault(who, len(annotators))
        if is_missing(entry):  # asked, but gave no answer
            continue
        where = f"Row {row} of votes: the answer of annotator {who!r} to item {what!r}"
        _add_labels(given.setdefault(place, []), entry, where)
    return {place: members for place, members in given.items() if members}, list(items), list(annotators)


def _add_labels(members: list[Any], cell: Any, where: str) -> None:
    """Append the label or labels of a cell to an answer; numbers that are equal are one label."""
    for entry in cell if isinstance(cell, COLLECTIONS) else [cell]:
        label = plain_label(check_label(entry, where=where))
        if label in members:
            raise _duplicate_vote(where, label)
        members.append(label)


def long_columns(votes: Any, names: tuple[Any, ...], convert: Callable[[Any], Any]) -> list[Any]:
    """Return the named columns of a long table, converted; they have one length and are not empty."""
    columns = [convert(_named_column(votes, name)) for name in names]
    if len({len(column) for column in columns}) != 1:
        raise DimensionError(f"The three columns of votes have different lengths: {[len(c) for c in columns]}.")
    check_not_empty(columns[0], name="votes")
    return columns


def _named_column(votes: Any, name: Any) -> Any:
    if not is_frame(votes) and not isinstance(votes, Mapping):
        raise DimensionError(
            f"A long table is a DataFrame or a dict of columns, not a {type(votes).__name__}: its columns have names."
        )
    known = list(votes.columns) if is_frame(votes) else list(votes)
    if name not in known:
        raise DataError(f"votes has no column {name!r}; its columns are {', '.join(map(repr, known))}.")
    return votes[name]


def _duplicate_vote(where: str, entry: Any) -> DuplicateVoteError:
    return DuplicateVoteError(
        f"{where} holds the label {entry!r} twice. An annotator votes for a label once: remove the copy, or name "
        "another annotator for it."
    )


def check_annotator_weights(weights: Any, annotators: list[Any]) -> FloatArray:
    """Validate the weights of the annotators, and return one for each."""
    if weights is None:
        return np.ones(len(annotators))
    if hasattr(weights, "rater_weights"):  # a model or table of skldl.annotators, which may know more raters
        known = weights.rater_weights()
        weights = {name: known[name] for name in annotators if name in known}
    if isinstance(weights, Mapping):
        present = set(annotators)
        unknown = [name for name in weights if name not in present]
        missing = [name for name in annotators if name not in weights]
        if unknown or missing:
            raise SampleWeightError(
                f"weights must name every annotator once: unknown are {unknown}, without a weight are {missing}."
            )
        weights = [weights[name] for name in annotators]
    values = as_real_array(weights, name="weights of annotators", error=SampleWeightError)
    if values.shape != (len(annotators),):
        raise SampleWeightError(
            f"weights has shape {values.shape}, but there are {len(annotators)} annotators: pass one number each, in "
            "the order of the columns, or a dict from annotator to weight."
        )
    if not np.isfinite(values).all() or (values < 0).any() or not values.any():
        raise SampleWeightError("weights of annotators must be finite, at least zero, and not all zero.")
    return values

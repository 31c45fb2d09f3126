"""Votes as three arrays of integers: item, rater and label; a long table is read without a loop over its rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldl.distributions._answers import NO_ANSWER, NO_NAME, long_columns, names_columns, wide_table
from skldl.distributions._tables import (
    check_label,
    check_names,
    is_missing,
    library,
    plain_label,
    position_of,
    sorted_names,
)
from skldl.exceptions import DimensionError, DuplicateVoteError, MissingLabelError, Parameter, UnknownLabelError
from skldl.utils.typing import AnyArray, IntArray


@dataclass
class Triples:
    """One entry for each vote.

    Attributes
    ----------
    item, rater, label : ndarray of int
        Positions in ``items``, ``raters`` and ``labels``.
    items, raters, labels : list
        Their names: items in the order of their first vote, raters as in `skldl.distributions.Votes.annotators` (in
        that of the columns of a wide table, of first appearance in a long one; also those without a vote), labels
        sorted or as the caller orders them.
    """

    item: IntArray
    rater: IntArray
    label: IntArray
    items: list[Any]
    raters: list[Any]
    labels: list[Any]

    def __len__(self) -> int:
        return len(self.item)

    def _check_fitted_state(self) -> None:
        """Check that votes from a model file are positions of names; raise `ValueError` otherwise."""
        parts = ((self.item, self.items), (self.rater, self.raters), (self.label, self.labels))
        for codes, names in parts:
            if not isinstance(codes, np.ndarray) or codes.dtype.kind != "i" or codes.shape != self.item.shape:
                raise ValueError("votes are not positions of items, raters and labels")
            if codes.size and not 0 <= codes.min() <= codes.max() < len(names):
                raise ValueError("a vote is outside of the items, raters and labels")


def read_triples(votes: Any, *, item: Any, annotator: Any, label: Any, labels: Any) -> Triples:
    """Read a long table if its three columns are named, a wide one if none of them is."""
    if names_columns(item, annotator, label):
        columns = long_columns(votes, (item, annotator, label), _as_array)
    else:
        columns = _unroll(votes)
    _check_names_given(columns[0], item)
    _check_names_given(columns[1], annotator)
    answered = ~_missing(columns[2])
    if not answered.any():
        raise MissingLabelError(NO_ANSWER)
    item_codes, items = _in_order_of_appearance(columns[0][answered])
    rater_codes, raters = _in_order_of_appearance(columns[1])  # also those who were asked and gave no answer
    label_codes, names = _label_codes(columns[2][answered], labels)
    triples = Triples(item_codes, rater_codes[answered], label_codes, items, raters, names)
    check_single(triples)
    return triples


def check_single(votes: Triples) -> None:
    """Raise an error unless each rater has at most one vote for each item."""
    pair = votes.item.astype(np.int64) * len(votes.raters) + votes.rater
    order = np.argsort(pair, kind="stable")
    twice = np.flatnonzero(pair[order][1:] == pair[order][:-1])
    if len(twice):
        first, second = order[twice[0]], order[twice[0] + 1]
        found = [votes.labels[votes.label[vote]] for vote in (first, second)]
        raise DuplicateVoteError(
            f"Annotator {votes.raters[votes.rater[first]]!r} answered twice to item "
            f"{votes.items[votes.item[first]]!r} ({found[0]!r} and {found[1]!r}; {len(twice)} such cases in all). "
            "The model takes one label of each annotator for each item: keep one of them."
        )


def _as_array(column: Any) -> AnyArray:
    """A column as an array; entries of several kinds, and collections, stay objects."""
    if hasattr(column, "to_numpy"):
        values = np.asarray(column.to_numpy())
    elif isinstance(column, np.ndarray):
        values = column
    else:
        entries = list(column)
        kinds = {type(entry) for entry in entries}
        if len(kinds) == 1 and kinds <= {int, float, str, bool}:
            return np.array(entries)
        values = _objects(entries)
    if values.ndim != 1:
        raise DimensionError(f"A column of votes has {values.ndim} dimensions, but needs one.")
    return np.asarray(values)


def _unroll(votes: Any) -> list[AnyArray]:
    """A wide table as three columns, in the order of its rows."""
    rows, items, raters = wide_table(votes)
    columns = [_objects(entries) for entries in (items, raters, [cell for row in rows for cell in row])]
    return [np.repeat(columns[0], len(raters)), np.tile(columns[1], len(items)), columns[2]]


def _objects(entries: list[Any]) -> AnyArray:
    """A one-dimensional array of objects, also of collections, which NumPy would make into further dimensions."""
    values = np.empty(len(entries), dtype=object)
    values[:] = entries
    return values


def _missing(values: AnyArray) -> AnyArray:
    """Which cells are empty."""
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values))
    if values.dtype.kind in "mM":
        return np.asarray(np.isnat(values))
    if values.dtype == object:
        return np.fromiter((is_missing(entry) for entry in values), dtype=bool, count=len(values))
    return np.zeros(len(values), dtype=bool)


def _check_names_given(values: AnyArray, name: Any) -> None:
    """Raise an error for a vote without item or without rater."""
    missing = _missing(values)
    if missing.any():
        row = int(np.argmax(missing))
        raise MissingLabelError(NO_NAME.format(row=row, name=name), row=row)


def _in_order_of_appearance(values: AnyArray) -> tuple[IntArray, list[Any]]:
    """Codes of the names, and the names in the order in which they appear."""
    if values.dtype == object:
        codes: dict[Any, int] = {}
        found = [codes.setdefault(entry, len(codes)) for entry in values.tolist()]
        return np.array(found, dtype=np.intp), list(codes)
    names, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank[inverse.ravel()], names[order].tolist()


def _label_codes(values: AnyArray, labels: Any) -> tuple[IntArray, list[Any]]:
    """Codes of the labels among the known ones, or among those that occur, sorted."""
    if values.dtype == object:
        for row, entry in enumerate(values):
            if isinstance(entry, list | tuple | set | frozenset | np.ndarray):
                raise DimensionError(
                    f"Vote {row} holds several labels, {entry!r}. The models of skldl.annotators take one label for "
                    "each vote; skldl.distributions.from_votes takes several.",
                    row=row,
                )
            check_label(entry, where=f"Vote {row}")
    found_codes, raw = _in_order_of_appearance(values)
    found = [plain_label(entry) for entry in raw]
    names = sorted_names(found) if labels is None else check_names(labels, name="labels")
    known = {entry: code for code, entry in enumerate(names)}
    codes = [
        known[entry] if entry in known else position_of(names, entry, where="A vote", argument="labels")
        for entry in found
    ]
    return np.array(codes, dtype=np.intp)[found_codes], names


def gold_codes(gold: Any, labels: list[Any]) -> dict[Any, int]:
    """Known true labels as codes, by the name of the item."""
    if gold is None:
        return {}
    if library(gold) == "pandas":
        gold = dict(zip(gold.index.tolist(), gold.tolist(), strict=True))
    if not isinstance(gold, Mapping):
        raise DimensionError(f"gold is a {type(gold).__name__}. Pass a dict from item to true label, or a Series.")
    known = {entry: code for code, entry in enumerate(labels)}
    codes = {}
    for name, entry in gold.items():
        if is_missing(entry):
            raise MissingLabelError(f"gold names no label for item {name!r}. Leave such items out.")
        if plain_label(entry) not in known:
            raise UnknownLabelError(
                f"gold says {entry!r} for item {name!r}, which is not among the labels {labels}. Name all labels with ",
                Parameter("labels"),
                ".",
            )
        codes[name] = known[plain_label(entry)]
    return codes

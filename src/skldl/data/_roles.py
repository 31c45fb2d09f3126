"""Who is who in a table: which columns are labels, weights, groups or nothing, and what is left to learn from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from skldl.data._cells import as_frame, as_numbers, cell_place, checked_numbers, is_plain_number, is_truth, list_names
from skldl.data._labels import read_labels, rows_with_labels
from skldl.exceptions import SampleWeightError, TableError

FloatArray = npt.NDArray[np.floating]
MOSTLY = 0.8


@dataclass(frozen=True)
class TrainingSet:
    """A table, taken apart into what a model learns from and what it learns.

    Attributes
    ----------
    X : DataFrame
        The features.
    D : DataFrame
        The label distributions; its columns are the labels.
    weight : ndarray of shape (n_rows,) or None
        Weight of each row.
    groups : ndarray of shape (n_rows,) or None
        Group of each row.
    label_columns : list of str
        The columns of the table that the labels came from.
    notes : list of str
        What the user should know about the table.
    """

    X: pd.DataFrame
    D: pd.DataFrame
    weight: FloatArray | None
    groups: npt.NDArray[Any] | None
    label_columns: list[str]
    notes: list[str]

    def take(self, rows: npt.NDArray[np.intp]) -> "TrainingSet":
        """Some rows of it.

        Parameters
        ----------
        rows : ndarray of int
            Positions of the rows.

        Returns
        -------
        TrainingSet
            These rows; the notes are those of the whole.
        """
        return TrainingSet(
            self.X.iloc[rows],
            self.D.iloc[rows],
            None if self.weight is None else self.weight[rows],
            None if self.groups is None else self.groups[rows],
            self.label_columns,
            self.notes,
        )


def training_set(
    table: Any,
    labels: str | Sequence[str],
    *,
    kind: str = "distribution",
    weight: str = "",
    groups: str = "",
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    categories: Sequence[str] = (),
) -> TrainingSet:
    """Take a table apart into features, label distributions, weights and groups.

    Parameters
    ----------
    table : DataFrame
        One row for each instance.
    labels : str or sequence of str
        The label columns: names or patterns such as ``emo_*``.
    kind : {"distribution", "counts", "scores", "votes", "label"}, default="distribution"
        What the label columns hold: see `read_labels`.
    weight : str, default=""
        Column with the weight of each row.
    groups : str, default=""
        Column that says which rows belong together, such as those of one person.
    drop : sequence of str, default=()
        Columns to leave out, names or patterns.
    text, categories : sequence of str, default=()
        Columns that `TableEncoder` takes as text or as categories; here only to leave their oddities unmentioned.

    Returns
    -------
    TrainingSet
        Features are all columns without another role. Rows without any label are left out, with a note.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import training_set
    >>> table = pd.DataFrame({"age": [31, 54], "emo_joy": [3, 0], "emo_fear": [1, 2]})
    >>> training = training_set(table, "emo_*", kind="counts")
    >>> training.D.to_dict("list")
    {'emo_joy': [0.75, 0.0], 'emo_fear': [0.25, 1.0]}
    >>> list(training.X)
    ['age']
    """
    frame = as_frame(table)
    label_columns = find_columns(labels, frame.columns, "--labels")
    others = [name for name in (weight, groups) if name]
    dropped = find_columns(drop, frame.columns, "--drop")
    for name in others:
        find_columns([name], frame.columns, "--weight" if name == weight else "--groups")
    for name in (*others, *text, *categories):
        if name in label_columns:
            raise TableError(f"The column {name!r} is a label; it cannot be something else as well.")
    notes = []
    labelled = rows_with_labels(frame[label_columns])
    if not labelled.all():
        if not labelled.any():
            raise TableError(f"No row has a label: the columns {list_names(label_columns)} are empty.")
        notes.append(f"{(~labelled).sum()} of {len(frame)} rows have no label and are left out.")
        frame = frame[labelled]
    weights = _weights(frame[weight]) if weight else None
    if weights is not None and not weights.all():
        notes.append(f"{(weights == 0).sum()} of {len(frame)} rows have weight zero and are left out.")
        frame, weights = frame[weights > 0], weights[weights > 0]
    D = read_labels(frame[label_columns], kind)
    X = frame.drop(columns=[*label_columns, *others, *dropped])
    if not len(X.columns):
        raise TableError("No column is left to learn from: all are labels, weights, groups or dropped.")
    notes += [note for name in X if name not in (*text, *categories) for note in _oddities(X[name])]
    return TrainingSet(
        X,
        D,
        weights,
        _groups(frame[groups]) if groups else None,
        label_columns,
        notes,
    )


def find_columns(patterns: str | Sequence[str], columns: Iterable[str], option: str) -> list[str]:
    """Find columns by names and patterns.

    Parameters
    ----------
    patterns : str or sequence of str
        Names, or patterns in which ``*`` stands for any text and ``?`` for any character.
    columns : iterable of str
        The columns of the table.
    option : str
        What the message calls the patterns.

    Returns
    -------
    list of str
        The columns, each once, in the order of the patterns and then of the table.

    Examples
    --------
    >>> find_columns(["c", "a*"], ["a2", "a1", "b", "c"], "--labels")
    ['c', 'a2', 'a1']
    """
    columns = list(columns)
    found: list[str] = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        matches = [pattern] if pattern in columns else [name for name in columns if fnmatchcase(name, pattern)]
        if not matches:
            raise TableError(f"{option}: the table has no column {pattern!r}. It has {list_names(columns)}.")
        found += matches
    return list(dict.fromkeys(found))


def _weights(column: pd.Series) -> FloatArray:
    weights = checked_numbers(column, "a weight belongs")
    for wrong, complaint in ((weights.isna(), "is empty"), (weights < 0, "is negative")):
        if wrong.any():
            place = cell_place(column, int(np.argmax(wrong.to_numpy())))
            raise SampleWeightError(f"{place} {complaint}. A weight is a number of at least zero.")
    if not weights.any():
        raise SampleWeightError(f"All weights in column {column.name!r} are zero: nothing is left to learn from.")
    return weights.to_numpy(dtype=np.float64)


def _groups(column: pd.Series) -> npt.NDArray[Any]:
    if column.isna().any():
        place = cell_place(column, int(np.argmax(column.isna().to_numpy())))
        raise TableError(f"{place} is empty. Every row needs a group.")
    return pd.factorize(column.astype(str))[0]


def _oddities(column: pd.Series) -> list[str]:
    """What is strange about a column that would become categories."""
    present = column.dropna()
    if len(present) < 5 or is_plain_number(column) or is_truth(column):
        return []
    numbers = as_numbers(present)
    if numbers.notna().all():
        return []
    if numbers.notna().mean() >= MOSTLY:
        bad = present[numbers.isna()]
        return [
            f"Column {column.name!r} is mostly numbers, but {cell_place(column, column.index.get_loc(bad.index[0]))} "
            f"holds {bad.iloc[0]!r} ({len(bad)} such cells), so it is taken as categories. Empty these cells "
            "if it is a number."
        ]
    if present.astype(str).nunique() == len(present):
        return [
            f"Column {column.name!r} holds a different text in every row. If it names the row, --drop it; if it is "
            "prose, name it with --text."
        ]
    return []

"""Roles of the columns of a table: labels, weights, groups or none; all others are features."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from skldl.data._arrays import Converter, fitting_type
from skldl.data._cells import CATEGORY, NUMBER, as_frame, cell_place, checked_numbers, refuse_missing, row_of
from skldl.data._column_kinds import ColumnKind, kind_of, notes_on_columns
from skldl.data._dataset import Dataset, with_note_of_gaps
from skldl.data._labels import (
    label_numbers,
    look_like_shares,
    read_labels,
    read_votes,
    rows_with_labels,
    votes_in_columns,
)
from skldl.data._leaks import label_leaks
from skldl.data._tables import TableFile
from skldl.exceptions import DataError, DatasetError, Message, Parameter, SampleWeightError, TableError
from skldl.utils.column_names import UNNAMED, find_columns, list_names, no_column
from skldl.utils.typing import AnyArray, FloatArray

LABEL_PREFIXES = ("label_", "label:", "label.", "d_", "y_")
_MANY_COLUMNS = 500  # of a table that was read column by column; a copy in one block takes rows much faster


def from_table(
    frame: Any,
    labels: str | Sequence[str],
    *,
    kind: str = "distribution",
    weight: str | None = None,
    groups: str | None = None,
    item: str | None = None,
    annotator: str | None = None,
    drop: str | Sequence[str] = (),
    text: Sequence[str] = (),
    categories: Sequence[str] = (),
    name: str = "table",
    source: str = "",
) -> Dataset:
    """Take a table apart into features, label distributions, weights and groups.

    Parameters
    ----------
    frame : DataFrame
        One row for each instance.
    labels : str or sequence of str
        The label columns: names, patterns such as ``emo_*``, or what several names begin with, such as ``emo_``.
    kind : {"distribution", "counts", "scores", "votes", "label"}, default="distribution"
        What the label columns hold: see `read_labels`.
    weight : str, default=None
        Column with the weight of each row.
    groups : str, default=None
        Column with the group of each row, such as the person.
    item, annotator : str, default=None
        For ``kind="votes"`` with one row for each vote: the columns with the item and the annotator; ``labels``
        is then the one column with the answer. The result has one row for each item, and the columns that have one
        value for each item are features.
    drop : str or sequence of str, default=()
        Columns to leave out, given like the labels.
    text, categories : sequence of str, default=()
        Columns that `skldl.tabular.TableEncoder` should treat as text or as categories; their cells are not checked.
    name, source : str
        Name of the dataset, and where it comes from.

    Returns
    -------
    Dataset
        X is a DataFrame of all columns without another role. ``counts`` and ``votes`` are filled if the labels are
        such; ``raters`` then names the columns of the votes. Rows without any label are left out; ``notes`` mentions
        this, and further observations.

    Raises
    ------
    TableError
        If a column is missing, or if a feature is mostly numbers but not everywhere: a few bad cells would turn it
        into categories. Name it in ``categories``, or correct the cells.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.data import from_table
    >>> table = pd.DataFrame({"age": [31, 54], "emo_joy": [3, 0], "emo_fear": [1, 2]})
    >>> dataset = from_table(table, "emo_*", kind="counts")
    >>> dataset.label_names, dataset.D.tolist()
    (('emo_joy', 'emo_fear'), [[0.75, 0.25], [0.0, 1.0]])
    >>> list(dataset.X)
    ['age']
    """
    notes = list(getattr(frame, "attrs", {}).get("notes", ()))
    frame = as_frame(frame)
    label_columns = find_columns(labels, frame.columns, "labels")
    if item is not None or annotator is not None:
        if kind != "votes":
            raise TableError(
                Parameter("item"), " and ", Parameter("annotator"), " belong to ", Parameter("kind", "votes"), "."
            )
        frame, label_columns, more = votes_in_columns(frame, item, annotator, label_columns)
        notes += more
    features, more = feature_columns(frame.columns, label_columns, weight, groups, drop, text, categories)
    notes += more
    frame, weights, left_out = usable_rows(frame, label_columns, weight)
    if not len(frame) and left_out["have weight zero"]:
        raise SampleWeightError(f"All weights in column {weight!r} are zero: nothing is left to learn from.")
    if not len(frame):
        raise TableError(f"No row has a label: the columns {list_names(label_columns)} are empty.")
    notes += notes_on_rows(len(frame), left_out)
    X, answers = frame[features], frame[label_columns]
    if len(features) > _MANY_COLUMNS:
        X = X.copy()
    counts = votes = raters = None
    if kind == "votes":
        read, votes = read_votes(answers)
        D, counts, raters = read.D, read.counts, label_columns
    else:
        D = read_labels(answers, kind)
        counts = label_numbers(answers).to_numpy() if kind == "counts" else None
        if counts is not None and look_like_shares(counts):
            notes.append(
                Message(
                    Parameter("kind", "counts"),
                    ": the label cells look like shares, since every row has fractions that sum to 1. For shares use ",
                    Parameter("kind", "distribution"),
                    ".",
                )
            )
    notes += _notes_on_features(X.drop(columns=[name for name in (*text, *categories) if name in X]))
    gaps = int(answers.isna().sum().sum()) if kind == "distribution" else 0
    notes += label_leaks(X, D.fillna(D.mean()))
    dataset = Dataset(
        name,
        X,
        D,
        feature_names=tuple(X.columns),
        source=source,
        groups=None if groups is None else _groups(frame[groups]),
        sample_weight=weights,
        counts=counts,
        votes=votes,
        raters=raters,
        notes=tuple(notes),
    )
    return with_note_of_gaps(dataset, gaps)


def feature_columns(
    columns: Iterable[str],
    label_columns: list[str],
    weight: str | None,
    groups: str | None,
    drop: str | Sequence[str],
    text: Sequence[str],
    categories: Sequence[str],
) -> tuple[list[str], list[str]]:
    """The columns without another role and what the user should know; roles that cannot be are refused."""
    present = list(columns)
    left_out = [*(name for name in (weight, groups) if name is not None), *find_columns(drop, present, "drop")]
    roles = {"weight": [weight], "groups": [groups], "text": text, "categories": categories}
    for role, named in roles.items():
        for column in named:
            if column is not None and column not in present:
                raise no_column(role, column, present)
            if role in ("text", "categories") and column in left_out:
                raise TableError(
                    Parameter(role, column), ": the column has another role, or is left out. Name it once."
                )
    for column in (*left_out, *text, *categories):
        if column in label_columns:
            raise TableError(f"The column {column!r} is a label; it cannot be something else as well.")
    notes = []
    if UNNAMED in present and UNNAMED not in (*label_columns, *left_out):
        left_out.append(UNNAMED)
        notes = ["The first column has no name: it is taken for names of rows and left out. Name it to use it."]
    features = [name for name in present if name not in {*label_columns, *left_out}]
    if not features:
        raise TableError("No column is left to learn from: all are labels, weights, groups or dropped.")
    return features, notes + _like_the_labels(label_columns, features)


def usable_rows(
    frame: pd.DataFrame, label_columns: Sequence[str], weight: str | None
) -> tuple[pd.DataFrame, FloatArray | None, Counter[str]]:
    """The rows that have a label and weight, their weights, and how many were left out for which reason."""
    labelled = rows_with_labels(frame[label_columns])
    left_out = Counter({"have no label": int((~labelled).sum())})
    frame = frame if labelled.all() else frame[labelled]
    if weight is None:
        return frame, None, left_out
    weights = _weights(frame[weight])
    left_out["have weight zero"] = int((weights == 0).sum())
    if weights.all():
        return frame, weights, left_out
    return frame[weights > 0], weights[weights > 0], left_out


def notes_on_rows(n_rows: int, left_out: Mapping[str, int]) -> list[str]:
    """What `usable_rows` has left out, in words."""
    notes, whole = [], n_rows + sum(left_out.values())
    for reason, number in left_out.items():
        if number:
            notes.append(f"{number} of {whole} rows {reason} and are left out.")
        whole -= number
    return notes


def _weights(column: pd.Series) -> FloatArray:
    weights = checked_numbers(column, "a weight belongs")
    refuse_missing(column, "A weight is a number of at least zero.", SampleWeightError)
    if (weights < 0).any():
        position = int(np.argmax(weights < 0))
        raise SampleWeightError(
            f"{cell_place(column, position)} is negative. A weight is a number of at least zero.",
            row=row_of(column, position),
            column=str(column.name),
        )
    return weights.to_numpy(dtype=np.float64)


def _groups(column: pd.Series) -> AnyArray:
    refuse_missing(column, "Every row needs a group.")
    return pd.factorize(column.astype(str))[0]


def _notes_on_features(X: pd.DataFrame) -> list[str]:
    """Notes about the features; one that is mostly numbers but not everywhere is refused."""
    kinds = {str(name): ColumnKind(str(name)) for name in X}
    for name, seen in kinds.items():
        seen.update(X[name])
    categories = [name for name, seen in kinds.items() if seen.kind() == CATEGORY]
    return notes_on_columns(kinds, {name: X[name].dropna().astype(str).nunique() for name in categories})


def _like_the_labels(labels: list[str], features: Iterable[str]) -> list[str]:
    """Features whose names begin like those of all labels: perhaps labels that were forgotten."""
    first, last = min(labels), max(labels)
    same = next((place for place, letter in enumerate(first) if not last.startswith(letter, place)), len(first))
    stem = re.match(r".*[_.:\- ]", first[:same])
    if len(labels) < 2 or stem is None or len(stem[0]) < 2:
        return []
    alike = [name for name in features if name.casefold().startswith(stem[0].casefold())]
    if not alike:
        return []
    return [
        Message(
            f"{list_names(alike)} begin with {stem[0]!r} as the labels do, but are taken as features. "
            "Are they labels too? If so, set ",
            Parameter("labels", f"{stem[0]}*"),
            "; otherwise leave them out with ",
            Parameter("drop"),
            ".",
        )
    ]


def load_table(
    path: Path,
    labels: Any,
    features: str | Sequence[str] | None,
    kind: str,
    roles: dict[str, Any],
    convert: Converter | None,
    writing: dict[str, Any],
) -> Dataset:
    """Load a table, with messages that name the file; the parameters are those of `load_dataset`."""
    try:
        with TableFile(path, header=None, **writing) as table:
            columns = table.columns
            if len(columns) == 1:
                raise DatasetError(
                    f"{path} has only one column, {columns[0]!r}. Columns must be separated by commas, semicolons, "
                    "tabs or bars."
                )
            label_columns, label_names = _labels_of(path, columns, labels, has_header=table.has_header)
            drop = find_columns(roles["drop"], columns, "drop")
            if features is not None:
                chosen = set(find_columns(features, columns, "features"))
                used = {*chosen, *label_columns, *(roles[role] for role in ("weight", "groups", "item", "annotator"))}
                drop += [name for name in columns if name not in used]
                if both := chosen & set(label_columns):
                    raise DatasetError(f"{path}: column {min(both)!r} cannot be a label and also a feature.")
            frame = table.read()
        if convert is not None:
            frame[label_columns] = np.asarray(convert(label_numbers(frame[label_columns]).to_numpy()))
        dataset = from_table(
            frame, label_columns, kind=kind, name=path.stem, source=str(path), **{**roles, "drop": drop}
        )
        X, notes = _features_of(dataset, as_table=bool(roles["text"] or roles["categories"]))
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}.") from error
    except DataError as error:
        if isinstance(error, DatasetError):
            raise
        place = () if str(path) in str(error) else (f"{path}: ",)
        raise DatasetError(*place, *error.parts, row=error.row) from error
    return dataset.changed(
        X=X,
        notes=notes,
        label_names=label_names if label_names and kind not in ("votes", "label") else dataset.label_names,
        feature_names=dataset.feature_names if table.has_header else None,
    )


def _features_of(dataset: Dataset, *, as_table: bool) -> tuple[Any, tuple[str, ...]]:
    """An array or sparse matrix if all features are numbers without gaps, else the table itself; and the notes."""
    X = dataset.X
    if as_table or any(kind_of(X[name]) != NUMBER for name in X):
        return X, dataset.notes
    numbers = {name: checked_numbers(X[name]).to_numpy() for name in X}
    gaps = [name for name, values in numbers.items() if np.isnan(values).any()]
    if gaps:
        note = f"X stays a table, since cells are empty in {list_names(gaps)}: models need them filled."
        return X, (*dataset.notes, note)
    return fitting_type(np.column_stack(list(numbers.values()))), dataset.notes


def _labels_of(path: Path, columns: list[str], labels: Any, *, has_header: bool) -> tuple[list[str], tuple[str, ...]]:
    """The label columns, and the names of the labels without their common beginning."""
    if isinstance(labels, int | np.integer):
        if isinstance(labels, bool) or not 2 <= labels < len(columns):
            raise DatasetError(
                f"{path}: ",
                Parameter("labels", labels),
                f" means the last {labels} of {len(columns)} columns, but there must be at least two labels "
                "and one feature.",
            )
        found = columns[-int(labels) :]
        return found, () if has_header else tuple(f"label_{place}" for place in range(len(found)))
    if not has_header:
        raise DatasetError(
            f"{path} has no header: its first line holds only numbers. Add a line with the names of the "
            f"columns (labels begin with {LABEL_PREFIXES[0]!r}), or give the number of label columns at "
            "the end: ",
            Parameter("labels", 3),
            ".",
        )
    if labels is None:
        for beginning in LABEL_PREFIXES:
            found = [name for name in columns if name.casefold().startswith(beginning)]
            if len(found) > 1:
                return found, _without_beginning(found, beginning)
        raise DatasetError(
            f"{path}: which columns are the labels? None or only one begins with "
            f"{' or '.join(map(repr, LABEL_PREFIXES))}. The columns are {list_names(columns)}. Name the "
            "labels with ",
            Parameter("labels", ["happy", "sad"]),
            ", by a pattern (",
            Parameter("labels", "emotion_*"),
            "), or by their number at the end (",
            Parameter("labels", 3),
            ").",
        )
    found = find_columns(labels, columns, "labels")
    return found, _without_beginning(found, labels) if isinstance(labels, str) else ()


def _without_beginning(names: list[str], pattern: str) -> tuple[str, ...]:
    """Remove the common prefix of all names from the names of the labels."""
    short = tuple(name[len(re.split(r"[*?\[]", pattern)[0]) :] for name in names)
    return short if all(short) and len(set(short)) == len(short) else ()

"""Roles of the columns of a table: `Columns`, and `from_table`, which splits a table by these roles.

`TableLayout` splits rows into features, labels, weights and groups, for whole tables and for tables in chunks.
"""

import contextlib
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from skldl.data._arrays import Converter, fitting_type
from skldl.data._cells import (
    CATEGORY,
    NUMBER,
    as_frame,
    as_words,
    cell_error,
    check_present,
    checked_numbers,
    first_of,
)
from skldl.data._dataset import Dataset, with_note_of_gaps
from skldl.data._formats import holds_arrays
from skldl.data._kinds import ColumnKind, kind_of, notes_on_columns
from skldl.data._labels import (
    known_labels,
    label_numbers,
    look_like_shares,
    read_labels,
    read_votes,
    rows_with_labels,
    votes_in_columns,
)
from skldl.data._leaks import label_leaks
from skldl.data._tables import ArrayTable, TableFile, TableFiles
from skldl.exceptions import DataError, DatasetError, Message, Parameter, SampleWeightError, TableError
from skldl.utils.column_names import UNNAMED, find_columns, list_names, no_column
from skldl.utils.typing import AnyArray, FloatArray

LABEL_PREFIXES = ("label_", "label:", "label.", "d_", "y_")
_MANY_COLUMNS = 500  # rows of a wide table, read column by column, are selected much faster after a copy to one block
_LABELS_IN_CELLS = ("votes", "label")  # kinds of label columns whose cells are names of labels


@dataclass(frozen=True)
class Columns:
    """Roles of the columns of a table; columns without a role are features.

    Parameters
    ----------
    labels : str or sequence of str
        The label columns: names, patterns such as 'emo_*', or prefixes of several names; for a .mat or .npz file the
        name of the array of labels, if it is not one of the usual names.
    kind : {"distribution", "counts", "scores", "votes", "label"}, default="distribution"
        Content of the label columns: fractions that sum to one (distribution), counts or scores for each label, answers
        of annotators, one column for each annotator (votes), or the label of the row in one column (label).
    weight : str, default=None
        Column with the weight of each row.
    groups : str, default=None
        Column with the group of each row, such as the person: rows of one group are never split.
    item : str, default=None
        Column that identifies the rated item, for a table with one row for each vote (kind votes; labels is the column
        of the answers). Each item becomes a row; columns that have one value for each item are its features.
    annotator : str, default=None
        Column that identifies the annotator, for such a table.
    drop : str or sequence of str, default=()
        Columns to leave out, names or patterns.
    text : str or sequence of str, default=()
        Columns of text, encoded by their n-grams.
    categories : str or sequence of str, default=()
        Columns of numbers to treat as categories, such as a postcode.
    text_ngrams : {"auto", "words", "characters"}, default="auto"
        N-grams of text columns: words (single words and pairs) or characters (two to four letters); auto uses words for
        prose and characters for single words.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.data import Columns, from_table
    >>> table = pd.DataFrame({"age": [31, 54], "emo_joy": [3, 0], "emo_fear": [1, 2]})
    >>> from_table(table, Columns("emo_*", kind="counts")).D.tolist()
    [[0.75, 0.25], [0.0, 1.0]]
    """

    labels: str | Sequence[str] = ()
    kind: Literal["distribution", "counts", "scores", "votes", "label"] = "distribution"
    weight: str | None = None
    groups: str | None = None
    item: str | None = None
    annotator: str | None = None
    drop: str | Sequence[str] = ()
    text: str | Sequence[str] = ()
    categories: str | Sequence[str] = ()
    text_ngrams: Literal["auto", "words", "characters"] = "auto"

    def __post_init__(self) -> None:
        for role in ("text", "categories"):
            names = getattr(self, role)
            object.__setattr__(self, role, (names,) if isinstance(names, str) else tuple(names))


def as_columns(columns: "Columns | str | Sequence[str]") -> Columns:
    """Convert names or patterns, which mean the label columns, to `Columns`; an error without label columns."""
    found = columns if isinstance(columns, Columns) else Columns(columns)
    if not found.labels:
        raise TableError(
            Parameter("labels"),
            " is missing: name the label columns of the table, such as ",
            Parameter("labels", "emo_*"),
            ".",
        )
    return found


@dataclass(frozen=True, eq=False)
class TablePart:
    """Rows of a table split by roles; ``left_out`` counts the rows without a label or weight, by the reason."""

    X: pd.DataFrame
    answers: pd.DataFrame
    weight: FloatArray | None
    groups: pd.Series | None
    left_out: Counter[str]


class TableLayout:
    """The label columns and features of a table, which split its rows.

    ``label_names`` are the label columns; for votes and single labels they are the words in the cells, or None until
    `name_labels` is called. ``notes`` are for the user.
    """

    def __init__(self, columns: Columns, present: Iterable[str]) -> None:
        self.columns = columns
        present = list(present)
        self.label_columns = find_columns(columns.labels, present, "labels")
        self.features, self.notes = _features(columns, self.label_columns, present)
        self.label_names = None if columns.kind in _LABELS_IN_CELLS else self.label_columns

    def split(self, frame: pd.DataFrame) -> TablePart:
        """Split rows by the roles of the columns; rows without a label or weight are left out."""
        labelled = rows_with_labels(frame[self.label_columns])
        left_out = Counter({"have no label": int((~labelled).sum())})
        frame = frame if labelled.all() else frame[labelled]
        weight = None
        if self.columns.weight is not None:
            weight = _weights(frame[self.columns.weight])
            left_out["have weight zero"] = int((weight == 0).sum())
            if not weight.all():
                frame, weight = frame[weight > 0], weight[weight > 0]
        groups = None if self.columns.groups is None else frame[self.columns.groups]
        if groups is not None:
            check_present(groups, "Every row needs a group.")
        return TablePart(frame[self.features], frame[self.label_columns], weight, groups, left_out)

    def words(self, answers: pd.DataFrame) -> set[str]:
        """Names of the labels in the cells of votes and single labels."""
        return {word for name in answers for word in as_words(answers[name], "")} - {""}

    def name_labels(self, words: set[str]) -> None:
        """Set the names of the labels from all words in the cells."""
        self.label_names = known_labels(words)

    def read_labels(self, answers: pd.DataFrame) -> tuple[pd.DataFrame, AnyArray | None, AnyArray | None]:
        """Distributions of some rows, and, where they are known, counts for each label and answers of each rater."""
        kind = self.columns.kind
        if kind == "votes":
            votes, words = read_votes(answers, self.label_names)
            return votes.D, votes.counts, words
        D = read_labels(answers, kind, names=self.label_names if kind in _LABELS_IN_CELLS else None)
        return D, label_numbers(answers).to_numpy(dtype=np.float64) if kind == "counts" else None, None


def notes_on_rows(n_rows: int, left_out: Mapping[str, int]) -> list[str]:
    """Notes on rows that were left out; ``n_rows`` remain."""
    notes, whole = [], n_rows + sum(left_out.values())
    for reason, number in left_out.items():
        if number:
            notes.append(f"{number} of {whole} rows {reason} and are left out.")
        whole -= number
    return notes


def from_table(frame: Any, columns: Columns | str | Sequence[str], *, name: str = "table", source: str = "") -> Dataset:
    """Split a table into features, label distributions, weights and groups.

    Parameters
    ----------
    frame : DataFrame
        One row for each instance.
    columns : Columns, str or sequence of str
        Roles of the columns; names or patterns without `Columns` are the label columns.
    name, source : str
        Name of the dataset, and the file it comes from.

    Returns
    -------
    Dataset
        X is a DataFrame of all columns without another role. ``counts``, and for votes ``votes`` and ``raters`` (the
        names of the columns), are set if they are known. Rows without any label are left out; ``notes`` mention this
        and further observations.

    Raises
    ------
    TableError
        If a column is missing, or if a few cells of a feature of numbers are not numbers, which would turn it into
        categories. Name it in ``categories``, or correct the cells.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.data import Columns, from_table
    >>> table = pd.DataFrame({"age": [31, 54], "emo_joy": [3, 0], "emo_fear": [1, 2]})
    >>> dataset = from_table(table, Columns("emo_*", kind="counts"))
    >>> dataset.label_names, dataset.D.tolist()
    (('emo_joy', 'emo_fear'), [[0.75, 0.25], [0.0, 1.0]])
    >>> list(dataset.X)
    ['age']
    """
    columns = as_columns(columns)
    notes = list(getattr(frame, "attrs", {}).get("notes", ()))
    frame = as_frame(frame)
    if columns.item is not None or columns.annotator is not None:
        if columns.kind != "votes":
            raise TableError(
                Parameter("item"), " and ", Parameter("annotator"), " belong to ", Parameter("kind", "votes"), "."
            )
        answer = find_columns(columns.labels, frame.columns, "labels")
        frame, raters, more = votes_in_columns(frame, columns.item, columns.annotator, answer)
        columns = replace(columns, labels=raters)
        notes += more
    layout = TableLayout(columns, frame.columns)
    part = layout.split(frame)
    X, answers = part.X, part.answers
    if not len(X) and part.left_out["have weight zero"]:
        raise SampleWeightError(f"All weights in column {columns.weight!r} are zero: nothing is left to learn from.")
    if not len(X):
        raise TableError(f"No row has a label: the columns {list_names(layout.label_columns)} are empty.")
    notes += [*layout.notes, *notes_on_rows(len(X), part.left_out)]
    if len(layout.features) > _MANY_COLUMNS:
        X = X.copy()
    D, counts, votes = layout.read_labels(answers)
    if columns.kind == "counts" and counts is not None and look_like_shares(counts):
        notes.append(
            Message(
                Parameter("kind", "counts"),
                ": the label cells look like fractions, since they sum to 1 in every row. For fractions use ",
                Parameter("kind", "distribution"),
                ".",
            )
        )
    given = {*columns.text, *columns.categories}
    notes += _notes_on_features(X.drop(columns=[name for name in X if name in given]))
    gaps = int(answers.isna().sum().sum()) if columns.kind == "distribution" else 0
    notes += label_leaks(X, D.fillna(D.mean()))
    dataset = Dataset(
        name,
        X,
        D,
        feature_names=tuple(X.columns),
        source=source,
        groups=None if part.groups is None else pd.factorize(part.groups.astype(str))[0],
        sample_weight=part.weight,
        counts=counts,
        votes=votes,
        raters=None if votes is None else layout.label_columns,
        columns=replace(columns, labels=layout.label_columns),
        notes=tuple(notes),
    )
    return with_note_of_gaps(dataset, gaps)


def open_table(
    sources: Sequence[str], columns: Columns | None = None, *, in_chunks: bool = False, **reading: Any
) -> TableFile | TableFiles | ArrayTable:
    """Open a table in one or several files; ``reading`` are options for CSV files.

    ``sources`` are files, folders and patterns for `TableFiles`, or a single source for `open_file`. With
    ``in_chunks``, a source that cannot be read several times is an error.
    """
    for source in sources if in_chunks else ():
        if holds_arrays(source):
            raise TableError(
                f"{source} holds arrays, which are read whole: ", Parameter("stream", True), " is for files of tables."
            )
        if not _is_readable_again(source):
            name = "Standard input" if source == "-" else source
            raise TableError(f"{name} can be read only once, but a fit in chunks reads it several times. Name a file.")
    if len(sources) == 1 and (holds_arrays(sources[0]) or not _is_readable_again(sources[0])):
        return open_file(sources[0], columns, **reading)
    for source in sources:
        if source == "-" or holds_arrays(source):
            raise TableError(f"Several files are named, and {source} is not a file of a table. Name it alone.")
    return TableFiles(sources, **reading)


def open_file(source: str, columns: Columns | None = None, **reading: Any) -> TableFile | ArrayTable:
    """Open a file or standard input (``-``) as a table that can be read once; a file of arrays becomes a table, too.

    Arrays need ``columns``, unless there are only features, to predict for.
    """
    if not holds_arrays(source):
        return TableFile(source, **reading)
    for name, value in reading.items():
        if value is not None:
            raise TableError(Parameter(name), f" is about CSV files, and {source} holds arrays.")
    if columns is None:
        return ArrayTable(source)
    labels = [columns.labels] if isinstance(columns.labels, str) else list(columns.labels)
    if len(labels) > 1:
        raise TableError(Parameter("labels", labels), f": {source} holds arrays. Name the one array of labels.")
    also = [name for name in (columns.weight, columns.groups) if name is not None]
    table = ArrayTable(source, labels=labels[0] if labels else None, also=also)
    if not table.label_columns:
        raise TableError(f"{source} holds no array of labels. Name it with ", Parameter("labels"), ".")
    return table


def _is_readable_again(source: str) -> bool:
    """Whether a source is one or several regular files, not standard input, a pipe or a device."""
    if source == "-":
        return False
    try:
        mode = os.stat(source).st_mode
    except OSError:  # a pattern, or no file
        return True
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def roles_in(table: Any, columns: "Columns | str | Sequence[str]") -> Columns:
    """The roles of the columns; the label columns of an `ArrayTable` are known."""
    if isinstance(table, ArrayTable):
        given = columns if isinstance(columns, Columns) else Columns(columns)
        return replace(given, labels=table.label_columns)
    return as_columns(columns)


def read_table(table: TableFile | TableFiles | ArrayTable, columns: Columns, *, name: str = "") -> Dataset:
    """Read an open table as a dataset; with several files, errors about a row name the file."""
    with table, table.naming_rows() if isinstance(table, TableFiles) else contextlib.nullcontext():
        return from_table(table.read(), roles_in(table, columns), name=name or table.name, source=table.name)


def _features(columns: Columns, label_columns: list[str], present: list[str]) -> tuple[list[str], list[str]]:
    """The columns without another role, and notes; conflicting roles are an error."""
    left_out = [name for name in (columns.weight, columns.groups) if name is not None]
    left_out += find_columns(columns.drop, present, "drop")
    names, without_role, labels = set(present), set(left_out), set(label_columns)
    roles = {
        "weight": [columns.weight],
        "groups": [columns.groups],
        "text": columns.text,
        "categories": columns.categories,
    }
    for role, named in roles.items():
        for column in named:
            if column is not None and column not in names:
                raise no_column(role, column, present)
            if role in ("text", "categories") and column in without_role:
                raise TableError(
                    Parameter(role, column), ": the column has another role, or is left out. Name it once."
                )
    for column in (*left_out, *columns.text, *columns.categories):
        if column in labels:
            raise TableError(f"The column {column!r} is a label; it cannot be something else as well.")
    notes = []
    if UNNAMED in names and UNNAMED not in labels | without_role:
        without_role.add(UNNAMED)
        notes = ["The first column has no name: it is treated as row labels and left out. Name it to use it."]
    used = labels | without_role
    features = [name for name in present if name not in used]
    if not features:
        raise TableError("No column is left to learn from: all are labels, weights, groups or dropped.")
    return features, notes + _like_the_labels(label_columns, features)


def _weights(column: pd.Series) -> FloatArray:
    weights, rule = checked_numbers(column, "a weight belongs"), "A weight is a number of at least zero."
    check_present(column, rule, SampleWeightError)
    if (weights < 0).any():
        raise cell_error(SampleWeightError, column, first_of(weights < 0), f" is negative. {rule}")
    return weights.to_numpy(dtype=np.float64)


def _notes_on_features(X: pd.DataFrame) -> list[str]:
    """Notes about the features; a column of numbers with a few other cells is an error."""
    kinds = {str(name): ColumnKind(str(name)) for name in X}
    for name, seen in kinds.items():
        seen.update(X[name])
    categories = [name for name, seen in kinds.items() if seen.kind() == CATEGORY]
    return notes_on_columns(kinds, {name: X[name].dropna().astype(str).nunique() for name in categories})


def _like_the_labels(labels: list[str], features: Iterable[str]) -> list[str]:
    """A note on features whose names have the common prefix of all labels: perhaps they are labels, too."""
    first, last = min(labels), max(labels)  # their common prefix is that of all labels
    n_same = next((place for place, letter in enumerate(first) if not last.startswith(letter, place)), len(first))
    stem = re.match(r".*[_.:\- ]", first[:n_same])
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
    columns: Columns,
    labels: Any,
    features: str | Sequence[str] | None,
    convert: Converter | None,
    reading: Mapping[str, Any],
) -> Dataset:
    """Load a table as `load_dataset` does, whose ``labels`` and ``features`` these are; errors name the file."""
    try:
        with TableFile(path, header=None, **reading) as table:
            present = table.columns
            if len(present) == 1:
                raise DatasetError(
                    f"{path} has only one column, {present[0]!r}. Columns must be separated by commas, semicolons, "
                    "tabs or bars."
                )
            label_columns, label_names = _labels_of(path, present, labels, has_header=table.has_header)
            drop = find_columns(columns.drop, present, "drop")
            if features is not None:
                chosen = set(find_columns(features, present, "features"))
                used = {columns.weight, columns.groups, columns.item, columns.annotator, *chosen, *label_columns}
                drop += [name for name in present if name not in used]
                if both := chosen & set(label_columns):
                    raise DatasetError(f"{path}: column {min(both)!r} cannot be a label and also a feature.")
            frame = table.read()
        if convert is not None:
            frame[label_columns] = np.asarray(convert(label_numbers(frame[label_columns]).to_numpy()))
        dataset = from_table(frame, replace(columns, labels=label_columns, drop=drop), name=path.stem, source=str(path))
        X, notes = _features_of(dataset, as_table=bool(columns.text or columns.categories))
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
        label_names=label_names if label_names and columns.kind not in _LABELS_IN_CELLS else dataset.label_names,
        feature_names=dataset.feature_names if table.has_header else None,
    )


def _features_of(dataset: Dataset, *, as_table: bool) -> tuple[Any, tuple[str, ...]]:
    """The features, as an array or sparse matrix if all are numbers without gaps, else as a table; and the notes."""
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
    """The label columns, and the names of the labels without their common prefix."""
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
        for prefix in LABEL_PREFIXES:
            found = [name for name in columns if name.casefold().startswith(prefix)]
            if len(found) > 1:
                return found, _without_prefix(found, prefix)
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
    return found, _without_prefix(found, labels) if isinstance(labels, str) else ()


def _without_prefix(names: list[str], pattern: str) -> tuple[str, ...]:
    """Remove the prefix before the first wildcard of a pattern; no names if the result is empty or not unique."""
    short = tuple(name[len(re.split(r"[*?\[]", pattern)[0]) :] for name in names)
    return short if all(short) and len(set(short)) == len(short) else ()

"""A table in a file as a `Dataset`: which columns are labels, and what kind of X the features make."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from skldl.data._arrays import Converter, fitting_type
from skldl.data._cells import NUMBER, checked_numbers
from skldl.data._column_kinds import kind_of
from skldl.data._dataset import Dataset
from skldl.data._labels import label_numbers
from skldl.data._roles import from_table
from skldl.data._tables import TableFile
from skldl.exceptions import DataError, DatasetError, Parameter
from skldl.utils.column_names import find_columns, list_names

LABEL_PREFIXES = ("label_", "label:", "label.", "d_", "y_")
Columns = str | Sequence[str]


def load_table(
    path: Path,
    labels: Any,
    features: Columns | None,
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

"""What a study file names besides tables: arrays in ``.mat`` and ``.npz`` files, and splits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from skldl import data
from skldl.data import Dataset
from skldl.data._arrays import array_variables, one_per_row
from skldl.distributions import from_counts, from_scores
from skldl.distributions._tables import is_missing, plain_label
from skldl.exceptions import StudyError
from skldl.experiments.fingerprint import READING
from skldl.experiments.study import DatasetSpec
from skldl.utils.typing import AnyArray, IntArray

CONVERSIONS: dict[str, Callable[..., Any] | None] = {
    "distribution": None,
    "counts": from_counts,
    "scores": from_scores,
}
ONLY_TRAINING = ("", "train")


def load_arrays(place: str, spec: DatasetSpec) -> Dataset:
    """Load a ``.mat`` or ``.npz`` file of a study: the names of arrays are used like the column names of a table."""
    if spec.kind not in CONVERSIONS:
        raise StudyError(
            f"{spec.name}: kind = {spec.kind!r} is for tables; an array of labels is one of {', '.join(CONVERSIONS)}."
        )
    for key in ("item", "annotator", "drop", "text", "categories", *READING):
        if getattr(spec, key):
            raise StudyError(f"{spec.name}: {key} is about the columns of a table, and {place} holds arrays.")
    names = {key: getattr(spec, key) for key in ("labels", "features") if getattr(spec, key) is not None}
    for key, value in names.items():
        if len(value) != 1:
            raise StudyError(f"{spec.name}: {key} must name one array of {place}, not {len(value)}.")
    dataset = data.load_dataset(
        Path(place), convert=CONVERSIONS[spec.kind], **{key: value[0] for key, value in names.items()}
    )
    given = {"groups": spec.groups, "sample_weight": spec.weight}
    wanted = {role: name for role, name in given.items() if name is not None}
    if wanted:
        path, variables = Path(place), array_variables(Path(place))
        per_row: dict[str, Any] = {
            role: _without_objects(one_per_row(path, variables, name, dataset.n_samples))
            for role, name in wanted.items()
        }
        dataset = Dataset(
            dataset.name,
            dataset.X,
            dataset.D,
            dataset.label_names,
            dataset.feature_names,
            source=place,
            notes=dataset.notes,
            **per_row,
        )
    return dataset.changed(X=_as_table(dataset)) if spec.encode else dataset


def _without_objects(values: AnyArray) -> AnyArray:
    """The texts of a cell array as an array of texts, which the fingerprint of the data depends on."""
    return np.array(["" if cell is None else cell for cell in values]) if values.dtype == object else values


def _as_table(dataset: Dataset) -> Any:
    """The features as a table, which the encoder takes."""
    import pandas as pd

    names = dataset.feature_names or [f"feature_{place}" for place in range(dataset.n_features)]
    X = dataset.X.toarray() if hasattr(dataset.X, "toarray") else dataset.X
    return pd.DataFrame(X, columns=list(names))


def read_splits(place: str, dataset: Dataset) -> IntArray:
    """Read which row is tested in which fold: a table with one line for each row, one column for each repeat.

    Folds are numbered from 0, in the order of their names; -1 stands for rows that are never tested.
    """
    if not Path(place).is_file():
        raise StudyError(f"{dataset.name}: there is no file of splits {place}.")
    table = data.TableFile(place).read()
    if len(table) != dataset.n_samples:
        raise StudyError(
            f"{place} has {len(table)} lines for the {dataset.n_samples} rows of {dataset.name}. A file of splits has "
            "a header and one line for each row, in the order of the data."
        )
    columns = [_folds_of(table[name], f"{place}, column {name!r}", dataset) for name in table]
    numbers = {int(column.max()) + 1 for column in columns}
    if len(numbers) > 1:
        raise StudyError(f"{place}: the repeats have {_listed(numbers)} folds; each needs the same number.")
    return np.column_stack(columns).astype(np.intp)


def _folds_of(cells: Any, where: str, dataset: Dataset) -> IntArray:
    """Number the folds that the cells of one column name."""
    words = ["" if is_missing(cell) else str(plain_label(cell)).strip() for cell in cells.tolist()]
    names = sorted({word for word in words if word.casefold() not in ONLY_TRAINING}, key=_numbers_first)
    if not names:
        raise StudyError(f"{where} names no fold: a cell holds the fold in which its row is tested.")
    number = {name: place for place, name in enumerate(names)}
    fold_of = np.array([number.get(word, -1) for word in words], dtype=np.intp)
    for place, name in enumerate(names):
        inside = fold_of == place
        if inside.all():
            raise StudyError(f"{where}: all rows are in the fold {name!r}, so that none is left to learn from.")
        if dataset.groups is not None:
            torn = np.flatnonzero(inside & np.isin(dataset.groups, dataset.groups[~inside]))
            if len(torn):
                raise StudyError(
                    f"{where}: row {torn[0] + 1} is in the fold {name!r}, and other rows of its group are not. Groups "
                    "stay together: change the splits, or leave groups out."
                )
    return fold_of


def _numbers_first(word: str) -> tuple[bool, int, str]:
    return (False, int(word), "") if word.isdecimal() else (True, 0, word)


def _listed(numbers: set[int]) -> str:
    return " and ".join(str(number) for number in sorted(numbers))

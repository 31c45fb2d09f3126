"""The data of a study: tables, arrays and splits by name or path, and the encoder for a table of mixed columns."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from skldl import data  # its readers of tables need pandas: they are looked up when a table is read
from skldl.data import Dataset
from skldl.data._arrays import array_variables, one_per_row
from skldl.data._dataset import rows_to_judge_by
from skldl.data._formats import holds_arrays
from skldl.distributions import from_counts, from_scores
from skldl.distributions._tables import is_missing, plain_label
from skldl.exceptions import DatasetNotFoundError, Parameter, StudyError, UnknownDatasetError
from skldl.experiments.study import READING, DatasetSpec
from skldl.utils.typing import AnyArray, IntArray

CONVERSIONS: dict[str, Callable[..., Any] | None] = {
    "distribution": None,
    "counts": from_counts,
    "scores": from_scores,
}
"""What an array of labels can hold, and the function that makes distributions of it."""

NEVER_TESTED = ("", "train")  # words for it in a file of splits
TABLE_ENCODER = "skldl.tabular:TableEncoder"


def load_datasets(specs: Sequence[DatasetSpec], *, data_home: Any = None) -> tuple[list[DatasetSpec], list[str]]:
    """Load the datasets of a study: those that were found, with their data, and the names of those that were not.

    The folder ``data_home`` comes before the one that ``SKLDL_DATA`` names.
    """
    found: list[DatasetSpec] = []
    missing: list[str] = []
    shared: dict[str, Any] = {}
    for spec in specs:
        if spec.data is not None:
            found.append(replace(spec, data=_prepared(spec, spec.data)))
            continue
        try:
            loaded = _load(spec, data_home)
        except UnknownDatasetError:  # a misspelt name, which no folder can resolve
            raise
        except DatasetNotFoundError:
            missing.append(spec.name)
            continue
        assert loaded.data is not None
        X = shared.setdefault(loaded.data.family, loaded.data.X)  # datasets of one family share it in memory
        found.append(replace(loaded, data=loaded.data.changed(X=X)))
    names = [spec.name for spec in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise StudyError(f"Two datasets are called {twice}. Give each a unique name in a study file.")
    return found, missing


def _load(spec: DatasetSpec, data_home: Any) -> DatasetSpec:
    place = _found(spec.source or spec.name, data_home)
    if holds_arrays(place):
        dataset = _load_arrays(place, spec)
    elif spec.encode:
        if spec.labels is None:
            raise StudyError(
                f"{spec.name}: ", Parameter("encode", True), " needs ", Parameter("labels"), ", the label columns."
            )
        if spec.features is not None:
            raise StudyError(
                f"{spec.name}: ",
                Parameter("encode", True),
                " takes ",
                Parameter("drop"),
                ", the columns to leave out, and no ",
                Parameter("features"),
                ".",
            )
        reading = {key: value for key, value in spec.columns.items() if key in READING}
        roles = {key: value for key, value in spec.columns.items() if key not in READING}
        table = data.TableFile(place, **reading).read()
        dataset = data.from_table(table, data.Columns(**roles), name=Path(place).stem, source=place)
    else:
        dataset = data.load_dataset(place, data_home, **spec.columns)
    if spec.splits:
        dataset = dataset.changed(splits=read_splits(_found(spec.splits, data_home), dataset))
    source = place if Path(place).is_file() or spec.hide is not None else ""
    name = spec.name if spec.source else dataset.name
    dataset = _prepared(spec, dataset).changed(name=name, apart=spec.apart, source=source)
    return replace(spec, name=name, source=source, data=dataset)


def _prepared(spec: DatasetSpec, dataset: Dataset) -> Dataset:
    """The dataset with part of its degrees hidden from the candidates, or tested on itself, as the study defines."""
    dataset = rows_to_judge_by(dataset)
    if spec.recover:
        dataset = dataset.changed(X_test=dataset.X, D_test=dataset.D)
    if not isinstance(spec.hide, int | float):  # a study has made one dataset of each of several fractions
        return dataset
    if not spec.hide:
        return dataset.changed(name=spec.name)
    observed = data.make_missing(dataset.D, spec.hide, mechanism=spec.mechanism, renormalise=spec.renormalise)
    return dataset.changed(name=spec.name, observed=observed, missing="renormalised" if spec.renormalise else "degrees")


def _found(place: str, data_home: Any) -> str:
    """A file here, else the one in the folder of the data; a name stays a name."""
    inside = None if data_home is None else Path(data_home) / place
    return str(inside) if inside is not None and not Path(place).exists() and inside.is_file() else place


def _load_arrays(place: str, spec: DatasetSpec) -> Dataset:
    """Load a ``.mat`` or ``.npz`` file: the names of arrays are used like the column names of a table."""
    if spec.kind not in CONVERSIONS:
        raise StudyError(
            f"{spec.name}: ",
            Parameter("kind", spec.kind),
            f" is for tables; an array of labels is one of {', '.join(CONVERSIONS)}.",
        )
    for key in ("item", "annotator", "drop", "text", "categories", *READING):
        if getattr(spec, key):
            raise StudyError(
                f"{spec.name}: ", Parameter(key), f" is about the columns of a table, and {place} holds arrays."
            )
    names = {key: getattr(spec, key) for key in ("labels", "features") if getattr(spec, key) is not None}
    for key, value in names.items():
        if len(value) != 1:
            raise StudyError(f"{spec.name}: ", Parameter(key), f" must name one array of {place}, not {len(value)}.")
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

    names = dataset.feature_names or [f"feature_{number}" for number in range(dataset.n_features)]
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
        listed = " and ".join(map(str, numbers))
        raise StudyError(f"{place}: the repeats have {listed} folds; each needs the same number.")
    return np.column_stack(columns).astype(np.intp)


def _folds_of(cells: Any, where: str, dataset: Dataset) -> IntArray:
    """Number the folds that the cells of one column name."""
    words = ["" if is_missing(cell) else str(plain_label(cell)).strip() for cell in cells.tolist()]
    names = sorted({word for word in words if word.casefold() not in NEVER_TESTED}, key=_numbers_first)
    if not names:
        raise StudyError(f"{where} names no fold: a cell holds the fold in which its row is tested.")
    number = {name: fold for fold, name in enumerate(names)}
    fold_of = np.array([number.get(word, -1) for word in words], dtype=np.intp)
    for fold, name in enumerate(names):
        inside = fold_of == fold
        if inside.all():
            raise StudyError(f"{where}: all rows are in the fold {name!r}, so that none is left to learn from.")
        if dataset.groups is not None:
            torn = np.flatnonzero(inside & np.isin(dataset.groups, dataset.groups[~inside]))
            if len(torn):
                raise StudyError(
                    f"{where}: row {torn[0] + 1} is in the fold {name!r}, and other rows of its group are not. Groups "
                    "stay together: change the splits, or leave groups out.",
                    row=int(torn[0]),
                )
    return fold_of


def _numbers_first(word: str) -> tuple[bool, int, str]:
    return (False, int(word), "") if word.isdecimal() else (True, 0, word)


def encoder_of(spec: DatasetSpec) -> Any:
    """The table encoder, where the data are a table that a study has read; data given in Python are taken as they are.

    It knows the kinds of the columns from all rows: a column with a single word in one fold would be one of numbers
    without it. It is found by its import path: the layer of the tables is on the same level as this one.
    """
    is_table = spec.data is not None and hasattr(spec.data.X, "columns")
    if not ((is_table and spec.source) or spec.encode or spec.text or spec.categories):
        return None
    module, _, name = TABLE_ENCODER.partition(":")
    encoder = getattr(import_module(module), name)(
        text=spec.text, categories=spec.categories, text_ngrams=spec.text_ngrams
    )
    return encoder.know_columns(spec.data.X) if is_table and spec.data is not None else encoder

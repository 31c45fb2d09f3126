"""The data of a study: loaded by name or path, with the encoder that a table of mixed columns needs."""

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from skldl import data  # its readers of tables need pandas: they are looked up when a table is read
from skldl.data._formats import holds_arrays
from skldl.data._gaps import rows_to_judge_by
from skldl.exceptions import DatasetNotFoundError, StudyError, UnknownDatasetError
from skldl.experiments.fingerprint import READING
from skldl.experiments.given_files import load_arrays, read_splits
from skldl.experiments.study import DatasetSpec

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
        dataset = load_arrays(place, spec)
    elif spec.encode:
        if spec.labels is None:
            raise StudyError(f"{spec.name}: encode = true needs labels, the label columns of the table.")
        if spec.features is not None:
            raise StudyError(f"{spec.name}: encode = true takes drop, the columns to leave out, and no features.")
        reading = {key: value for key, value in spec.columns.items() if key in READING}
        roles = {key: value for key, value in spec.columns.items() if key not in READING}
        dataset = data.from_table(data.TableFile(place, **reading).read(), name=Path(place).stem, source=place, **roles)
    else:
        dataset = data.load_dataset(place, data_home, **spec.columns)
    if spec.splits:
        dataset = dataset.changed(splits=read_splits(_found(spec.splits, data_home), dataset))
    source = place if Path(place).is_file() or spec.hide is not None else ""
    name = spec.name if spec.source else dataset.name
    dataset = _prepared(spec, dataset).changed(name=name, apart=spec.apart, source=source)
    return replace(spec, name=name, source=source, data=dataset)


def _prepared(spec: DatasetSpec, dataset: data.Dataset) -> data.Dataset:
    """The dataset with part of its degrees hidden from the candidates, or tested on itself, as the study defines."""
    dataset = rows_to_judge_by(dataset)
    if spec.recover:
        dataset = dataset.changed(X_test=dataset.X, D_test=dataset.D)
    if spec.hide is None or isinstance(spec.hide, tuple):  # a study has made one dataset of each of several shares
        return dataset
    if not spec.hide:
        return dataset.changed(name=spec.name)
    observed = data.make_missing(dataset.D, spec.hide, mechanism=spec.mechanism, renormalise=spec.renormalise)
    return dataset.changed(name=spec.name, observed=observed, reading="renormalised" if spec.renormalise else "degrees")


def _found(place: str, data_home: Any) -> str:
    """A file here, else the one in the folder of the data; a name stays a name."""
    inside = None if data_home is None else Path(data_home) / place
    return str(inside) if inside is not None and not Path(place).exists() and inside.is_file() else place


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

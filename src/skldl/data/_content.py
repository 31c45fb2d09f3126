"""Checks of X and D that were read from a file of any format; every error names the file."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from skldl.exceptions import DataError, DatasetError
from skldl.utils.missing import check_partial_distributions
from skldl.utils.typing import FloatArray

Converter = Callable[[Any], Any]

SPARSE_FROM_ZEROS = 0.9
SPARSE_FROM_FEATURES = 500


@dataclass(frozen=True)
class RawContent:
    """Arrays of features and labels as a file holds them, before any check."""

    features: Any
    labels: Any
    features_called: str
    labels_called: str
    label_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None


def checked_content(path: Path, raw: RawContent, convert: Converter | None) -> tuple[Any, FloatArray]:
    """Return X and D as the rest of the package expects them; an error describes what is wrong with the file.

    NaN in D is a degree that was not observed. It stays: `Dataset` fills in those that follow from the others.
    """
    X = numeric_table(path, raw.features, raw.features_called, keep_sparse=True)
    D = numeric_table(path, raw.labels, raw.labels_called, keep_sparse=False)
    if X.shape[0] != D.shape[0]:
        raise DatasetError(_length_message(path, raw, X, D))
    _check_features_finite(path, raw, X)
    distributions = _distributions(path, raw, D, convert)
    for names, width, what in (
        (raw.feature_names, X.shape[1], "feature_names"),
        (raw.label_names, distributions.shape[1], "label_names"),
    ):
        _check_names(path, names, width, what)
    return fitting_type(X), distributions


def numeric_table(path: Path, values: Any, called: str, *, keep_sparse: bool) -> Any:
    """Two dimensions of real numbers, or an error that describes what was found."""
    if sparse.issparse(values):
        values = sparse.csr_matrix(values) if keep_sparse else values.toarray()
    else:
        values = np.asarray(values)
    if values.dtype.kind not in "buif":
        kind = {"O": "cells or structs", "V": "structs", "c": "complex numbers", "U": "text", "S": "text"}
        got = kind.get(values.dtype.kind, f"values of type {values.dtype}")
        raise DatasetError(f"{path}: {called!r} holds {got}, not a table of real numbers. Save it as a numeric matrix.")
    if values.ndim != 2:
        raise DatasetError(
            f"{path}: {called!r} has the shape {values.shape}, but a table with one row per instance is needed "
            "(two dimensions)."
        )
    if 0 in values.shape:
        raise DatasetError(f"{path}: {called!r} is empty (shape {values.shape}).")
    return values


def _length_message(path: Path, raw: RawContent, X: Any, D: FloatArray) -> str:
    message = (
        f"{path}: {raw.features_called!r} has the shape {X.shape} and {raw.labels_called!r} {D.shape}, so their "
        "numbers of rows differ; each needs one row per instance."
    )
    if X.shape[1] == D.shape[1]:
        message += " They look transposed, with one column per instance: transpose both and save again."
    elif X.shape[0] == D.shape[1]:
        message += f" {raw.labels_called!r} looks transposed: transpose it and save again."
    elif X.shape[1] == D.shape[0]:
        message += f" {raw.features_called!r} looks transposed: transpose it and save again."
    return message


def _check_features_finite(path: Path, raw: RawContent, X: Any) -> None:
    values = X.data if sparse.issparse(X) else X
    if np.isfinite(values).all():
        return
    if sparse.issparse(X):
        coordinates = X.tocoo()
        first = int(np.argmin(np.isfinite(coordinates.data)))
        row, column, value = coordinates.row[first], coordinates.col[first], coordinates.data[first]
    else:
        row, column = np.argwhere(~np.isfinite(X))[0]
        value = X[row, column]
    place = raw.feature_names[column] if raw.feature_names else f"{column} (counted from 0)"
    raise DatasetError(
        f"{path}: {raw.features_called!r} holds {value} in row {row}, column {place}; "
        f"{int((~np.isfinite(values)).sum())} such values in all. Fill them in or drop these rows, and save again."
    )


def _distributions(path: Path, raw: RawContent, D: FloatArray, convert: Converter | None) -> FloatArray:
    try:
        converted = D if convert is None else convert(D)
        checked, _ = check_partial_distributions(converted, "auto", name=raw.labels_called, to_learn=False)
        return np.where(np.isnan(np.asarray(converted, dtype=np.float64)), np.nan, checked)
    except DataError as error:
        hint = ""
        if convert is None and D.shape[1] > 1 and np.isfinite(D).all() and D.min() >= 0:
            hint = " A converter can be handed in: load_dataset(path, convert=skldl.distributions.from_counts)."
        raise DatasetError(f"{path}: {error}{hint}") from error


def _check_names(path: Path, names: tuple[str, ...] | None, width: int, what: str) -> None:
    if names is None:
        return
    if len(names) != width:
        raise DatasetError(f"{path}: {what!r} has {len(names)} entries for {width} columns.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DatasetError(f"{path}: {what!r} holds {twice!r} more than once. Rename one of them.")


def fitting_type(X: Any) -> Any:
    """Double precision unless the file has single; a CSR matrix if nearly all is zero and there are many features."""
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    if sparse.issparse(X):
        X = X.astype(dtype)
        X.sum_duplicates()
        return X
    many = X.shape[1] >= SPARSE_FROM_FEATURES
    if many and np.count_nonzero(X) < (1.0 - SPARSE_FROM_ZEROS) * X.size:
        return sparse.csr_matrix(X, dtype=dtype)
    return np.ascontiguousarray(X, dtype=dtype)

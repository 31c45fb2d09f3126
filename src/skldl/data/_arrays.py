"""Files of named arrays, MATLAB and NumPy: reading, and checks of features and labels.

All errors name the file. Nothing here needs pandas or pyarrow.
"""

import warnings
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io, sparse

from skldl.data._formats import format_named
from skldl.exceptions import DataError, DatasetError
from skldl.utils.missing import check_partial_distributions
from skldl.utils.typing import AnyArray, FloatArray

Converter = Callable[[Any], Any]

# X of a dataset becomes a sparse matrix above this fraction of zeros, from this number of features; chosen by hand.
MIN_ZEROS_SPARSE = 0.9
MIN_FEATURES_SPARSE = 500

# Names of arrays in files of the field, in lower case. The first of each are the names in the files of the paper.
FEATURE_KEYS = ("features", "feature", "x", "data")
LABEL_KEYS = (
    "labels", "label", "d", "y", "distributions", "distribution", "labeldistribution", "label_distribution",
    "labeldistributions", "label_distributions", "target", "targets",
)  # fmt: skip

_DAMAGED = "It may be cut off or damaged: get it again."
_HDF5 = b"\x89HDF\r\n\x1a\n"


@dataclass(frozen=True)
class RawContent:
    """Arrays of features and labels in a file, before any check."""

    features: Any
    labels: Any
    features_called: str
    labels_called: str
    label_names: tuple[str, ...] | None = None
    feature_names: tuple[str, ...] | None = None


def read_arrays(path: Path, features: str | None, labels: str | None) -> RawContent:
    """Read the features and labels of a MATLAB file of version 7.2 or older, or of a NumPy archive."""
    return _choose(path, array_variables(path), features, labels)


def array_variables(path: Path) -> dict[str, Any]:
    """Read the arrays of a file, by name."""
    format_ = format_named(path)
    if format_ is None or not format_.arrays:
        raise DatasetError(f"{path} is not a file of arrays.")
    variables: dict[str, Any] = format_.load("arrays")(path)
    return variables


def mat_variables(path: Path) -> dict[str, Any]:
    """Read the variables of a MATLAB file of version 7.2 or older, by name."""
    with path.open("rb") as stream:
        head = stream.read(520)
    if head.startswith((b"MATLAB 7.3", _HDF5)) or head[512:520] == _HDF5:
        raise DatasetError(
            f"{path} is a MATLAB 7.3 (HDF5) file, which SciPy does not read. Save it again in MATLAB with "
            "save('file.mat', 'features', 'labels', '-v7')."
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", io.matlab.MatReadWarning)  # two variables of one name
            # SciPy 1.18 announces sparse arrays instead of matrices; both are supported
            warnings.filterwarnings("ignore", "The default value for `spmatrix`", DeprecationWarning)
            content = io.loadmat(path)
    except Exception as error:  # SciPy raises errors of many classes for a damaged file
        text = str(error) or type(error).__name__
        raise DatasetError(f"{path} cannot be read as a MATLAB file ({text}). {_what_it_is(head)}") from error
    return {key: value for key, value in content.items() if not key.startswith("__")}


def npz_variables(path: Path) -> dict[str, Any]:
    """Read the arrays of a NumPy archive, by name."""
    with path.open("rb") as stream:
        head = stream.read(520)
    if head.startswith(b"\x93NUMPY"):
        raise DatasetError(
            f"{path} holds a single array, as numpy.save writes it. Write features and labels together: "
            "numpy.savez_compressed('file.npz', X=X, D=D)."
        )
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("not a zip archive")
        with np.load(path, allow_pickle=False) as content:
            variables = {key: content[key] for key in content.files}
    except Exception as error:  # a broken archive raises errors of zipfile, zlib, struct and NumPy
        if "allow_pickle" in str(error):
            raise DatasetError(
                f"{path} holds pickled Python objects, which are not read because they can run any code. "
                "Save plain arrays of numbers: numpy.savez_compressed('file.npz', X=X, D=D)."
            ) from error
        raise DatasetError(f"{path} cannot be read as a NumPy archive ({error}). {_what_it_is(head)}") from error
    if {"format", "shape", "data"} <= set(variables):
        raise DatasetError(
            f"{path} holds one sparse matrix, as scipy.sparse.save_npz writes it, and no labels. Write both into one "
            "file with scipy.io.savemat('file.mat', {'features': X, 'labels': D}), which keeps X sparse."
        )
    return variables


def _what_it_is(head: bytes) -> str:
    """Guess the type of a file that could not be read, from its first bytes."""
    start = head.lstrip().lower()
    if not head:
        return "The file is empty: get it again."
    if start.startswith(b"version https://git-lfs"):
        return "It is a Git LFS pointer, not the data: run `git lfs pull`, or download the file itself."
    if start.startswith((b"<!doctype html", b"<html")):
        return "It is a web page: download the file itself (on GitHub: the button 'Raw')."
    if head.startswith(b"PK"):
        return "It is a zip archive: rename it to .npz if NumPy wrote it, or unpack it."
    if head.startswith(b"MATLAB"):
        return _DAMAGED
    return f"Its first bytes are {head[:12]!r}. {_DAMAGED}"


def _choose(path: Path, variables: dict[str, Any], features: str | None, labels: str | None) -> RawContent:
    """Choose the arrays of features and labels by their names: the usual ones, unless others are given."""
    if features is None and labels is None and {"features", "labels"} <= set(variables):
        features, labels = "features", "labels"
    features = find_key(path, variables, features, FEATURE_KEYS, "features")
    labels = find_key(path, variables, labels, LABEL_KEYS, "labels")
    return RawContent(
        features=variables[features],
        labels=variables[labels],
        features_called=features,
        labels_called=labels,
        label_names=names_in(path, variables, "label_names"),
        feature_names=names_in(path, variables, "feature_names"),
    )


def find_key(path: Path, variables: dict[str, Any], wanted: str | None, known: tuple[str, ...], role: str) -> str:
    """Name of the array of features or labels: ``wanted`` if it is given, else the only array with a usual name."""
    held = ", ".join(f"{key} {getattr(value, 'shape', '')}" for key, value in variables.items()) or "nothing"
    if wanted is not None:
        if wanted not in variables:
            raise DatasetError(f"{path} holds no {wanted!r}; it holds: {held}.")
        return wanted
    found = [key for key in variables if key.lower() in known]
    if len(found) == 1:
        return found[0]
    trouble = f"{' and '.join(found)} could all be the {role}" if found else f"none of which is known as the {role}"
    raise DatasetError(
        f"{path} holds: {held}; {trouble}. Name it, for example "
        f"load_dataset(path, {role}={(found or ['name'])[0]!r}). "
        f"The usual names are 'features' (n × q) and 'labels' (n × c), or X and D."
    )


def names_in(path: Path, variables: dict[str, Any], key: str) -> tuple[str, ...] | None:
    """Names of columns, from an array of text or a MATLAB cell array of texts."""
    if key not in variables:
        return None
    cells = np.asarray(variables[key]).ravel().tolist()
    texts = [cell.item() if isinstance(cell, np.ndarray) and cell.size == 1 else cell for cell in cells]
    if not all(isinstance(text, str) for text in texts):
        raise DatasetError(f"{path}: {key!r} must hold texts, one for each column.")
    return tuple(text.strip() for text in texts)


def one_per_row(path: Path, variables: dict[str, Any], key: str, n_rows: int) -> AnyArray:
    """An array with one value for each row, such as weights or groups."""
    if key not in variables:
        raise DatasetError(f"{path} holds no {key!r}; it holds {', '.join(variables)}.")
    values: AnyArray = np.asarray(variables[key]).ravel()
    if values.dtype == object:  # a cell array of MATLAB: each cell is an array of its own
        values = np.array([np.ravel(cell)[0] if np.size(cell) else None for cell in values], dtype=object)
    if len(values) != n_rows:
        raise DatasetError(f"{path}: {key!r} has {len(values)} values for {n_rows} rows; one for each is needed.")
    return values


def checked_content(path: Path, raw: RawContent, convert: Converter | None) -> tuple[Any, FloatArray]:
    """Check the content of a file and convert it to arrays X and D.

    NaN in D, a degree that was not observed, is kept: `Dataset` computes those that follow from the others.
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
        check_names(path, names, width, what)
    return fitting_type(X), distributions


def numeric_table(path: Path, values: Any, called: str, *, keep_sparse: bool) -> Any:
    """Check that the values are a table of real numbers; errors describe what they are instead."""
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
            hint = " A converter can be passed: load_dataset(path, convert=skldl.distributions.from_counts)."
        raise DatasetError(f"{path}: ", *error.parts, hint, row=error.row) from error


def check_names(path: Path, names: tuple[str, ...] | None, width: int, what: str) -> None:
    """Raise an error unless there is one name for each column, all of them different."""
    if names is None:
        return
    if len(names) != width:
        raise DatasetError(f"{path}: {what!r} has {len(names)} entries for {width} columns.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DatasetError(f"{path}: {what!r} holds {twice!r} more than once. Rename one of them.")


def fitting_type(X: Any) -> Any:
    """Convert X to double precision, unless it is single; to a CSR matrix if it has many features and mostly zeros."""
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    if sparse.issparse(X):
        X = X.astype(dtype)
        X.sum_duplicates()
        return X
    if X.shape[1] >= MIN_FEATURES_SPARSE and np.count_nonzero(X) < (1.0 - MIN_ZEROS_SPARSE) * X.size:
        return sparse.csr_matrix(X, dtype=dtype)
    return np.ascontiguousarray(X, dtype=dtype)

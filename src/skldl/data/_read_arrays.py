"""Read MATLAB and NumPy files: named arrays, of which one holds the features and one the labels."""

import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io

from skldl.data._content import RawContent
from skldl.exceptions import DatasetError
from skldl.utils.typing import AnyArray

# Spellings seen in files of the field, in lower case. The first of each is the paper's.
FEATURE_KEYS = ("features", "feature", "x", "data")
LABEL_KEYS = (
    "labels", "label", "d", "y", "distributions", "distribution", "labeldistribution", "label_distribution",
    "labeldistributions", "label_distributions", "target", "targets",
)  # fmt: skip

ARRAY_ENDINGS = (".mat", ".npz")
_DAMAGED = "It may be cut off or damaged: get it again."
_HDF5 = b"\x89HDF\r\n\x1a\n"


def read_arrays(path: Path, features: str | None, labels: str | None) -> RawContent:
    """Read the features and labels of a MATLAB file of version 7.2 or older, or of a NumPy archive."""
    return _choose(path, array_variables(path), features, labels)


def array_variables(path: Path) -> dict[str, Any]:
    """The arrays of a file with one of `ARRAY_ENDINGS`, by name."""
    return mat_variables(path) if path.suffix.lower() == ".mat" else npz_variables(path)


def mat_variables(path: Path) -> dict[str, Any]:
    """The variables of a MATLAB file of version 7.2 or older, by name."""
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
            # SciPy 1.18 announces sparse arrays in the place of matrices; both are taken
            warnings.filterwarnings("ignore", "The default value for `spmatrix`", DeprecationWarning)
            content = io.loadmat(path)
    except Exception as error:  # a broken file makes SciPy raise nearly anything
        text = str(error) or type(error).__name__
        raise DatasetError(f"{path} cannot be read as a MATLAB file ({text}). {_what_it_is(head)}") from error
    return {key: value for key, value in content.items() if not key.startswith("__")}


def npz_variables(path: Path) -> dict[str, Any]:
    """The arrays of a NumPy archive, by name."""
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
    """A guess at what the file is instead, from its first bytes."""
    start = head.lstrip().lower()
    if not head:
        return "The file is empty: get it again."
    if start.startswith(b"version https://git-lfs"):
        return "It is a Git LFS pointer, not the data: run `git lfs pull`, or download the file itself."
    if start.startswith((b"<!doctype html", b"<html")):
        return "It is a web page: download the file itself (on GitHub: the button 'Raw')."
    if head.startswith(b"PK"):
        return "It is a zip archive: give it the ending .npz if NumPy wrote it, or unpack it."
    if head.startswith(b"MATLAB"):
        return _DAMAGED
    return f"Its first bytes are {head[:12]!r}. {_DAMAGED}"


def _choose(path: Path, variables: dict[str, Any], features: str | None, labels: str | None) -> RawContent:
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
    """The name of the array of features or labels: the one that is wanted, or the only one with a usual name."""
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
        f"{path} holds: {held}; {trouble}. Say which to take, for example "
        f"load_dataset(path, {role}={(found or ['name'])[0]!r}). "
        f"The usual names are 'features' (n × q) and 'labels' (n × c), or X and D."
    )


def names_in(path: Path, variables: dict[str, Any], key: str) -> tuple[str, ...] | None:
    """Names of columns: an array of text, or a MATLAB cell array of texts."""
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

"""`load_dataset`: a dataset of the paper by its name, or anybody's data by the path of the file."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pooch

from skldl._validation import label_names as default_label_names
from skldl.data._artificial import make_artificial
from skldl.data._catalogue import CatalogueEntry, find_entry, in_catalogue, normalised_spelling, suggestion
from skldl.data._content import Converter, RawContent, checked_content
from skldl.data._dataset import Dataset
from skldl.data._lexicon import load_lexicon
from skldl.data._read_arrays import read_mat, read_npz
from skldl.data._read_csv import read_csv
from skldl.exceptions import DatasetError, DatasetNotFoundError, UnknownDatasetError

FOLDER_VARIABLE = "SKLDL_DATA"
_SUFFIXES = (".mat", ".npz", ".csv", ".tsv")


def load_dataset(
    name_or_path: str | os.PathLike[str],
    data_home: str | os.PathLike[str] | None = None,
    *,
    features: str | Sequence[str] | None = None,
    labels: str | Sequence[str] | int | None = None,
    ignore: str | Sequence[str] = (),
    convert: Converter | None = None,
    verify: bool = True,
) -> Dataset:
    """Load a dataset of the paper by name, or a file of your own by path.

    Parameters
    ----------
    name_or_path : str or path
        Either a name (see `list_datasets`; case, hyphens, underscores and blanks do not matter), or the path of a
        ``.mat``, ``.npz``, ``.csv`` or ``.tsv`` file.
    data_home : str or path, default=None
        Folder with the files of the paper's datasets. Looked at in this order: the folder that the environment
        variable ``SKLDL_DATA`` names, ``data_home``, the cache into which `fetch_dataset` downloads.
    features : str or list of str, default=None
        For ``.mat`` and ``.npz`` the name of the array of features. For CSV the feature columns: a list of names, or
        one text that their names begin with or that holds wildcards (``"x*"``); by default all that are left.
    labels : str, list of str or int, default=None
        For ``.mat`` and ``.npz`` the name of the array of labels. For CSV the label columns, given like ``features``,
        or as a number: the last so many columns. By default the columns that begin with ``label_`` (or else
        ``label:``, ``label.``, ``d_`` or ``y_``); the beginning is cut off from the labels' names.
    ignore : str or list of str, default=()
        Columns of a CSV file to leave out, given like ``features``.
    convert : callable, default=None
        Applied to the table of labels of a file given by path before it is checked, for files with counts or scores:
        ``convert=skldl.distributions.from_counts`` or ``convert=skldl.simplex.normalize``.
    verify : bool, default=True
        Refuse a file of the catalogue whose checksum is known and different. A file saved anew has other bytes:
        load it with ``verify=False``, or by its path.

    Returns
    -------
    Dataset
        ``X, D = load_dataset(...)`` unpacks it. X is a CSR matrix if the file holds a sparse one, or if it has at
        least 500 features and more than 90 % zeros (Movie). Features of the paper's datasets are in double precision;
        single precision in a file given by path stays.

    Raises
    ------
    DatasetNotFoundError
        If there is no such file; the message says where was looked and how to get it.
    UnknownDatasetError
        If the text is neither a known name nor a file.
    DatasetError
        If the file is not what it should be; the message says what is wrong and what to do.

    Notes
    -----
    MATLAB files hold ``features`` (n × q) and ``labels`` (n × c); ``.npz`` files X and D, or the same names. Some other
    spellings are understood too, and arrays ``label_names`` and ``feature_names`` are used if they are there. MATLAB
    7.3 files must be saved again with ``-v7``. CSV files have a header, separators ``,``, ``;`` or tab, and may use
    decimal commas where the comma does not separate.

    Two more names work without any file: "Lexicon" is `load_lexicon` and "Artificial" is `make_artificial` with
    ``random_state=0``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skldl.data import load_dataset
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "moods.csv")
    ...     lines = ["age,label_happy,label_sad", "31,0.75,0.25", "58,0.5,0.5"]
    ...     _ = path.write_text(chr(10).join(lines))
    ...     dataset = load_dataset(path)
    >>> dataset
    Dataset('moods', 2 samples, 1 features, 2 labels)
    >>> dataset.label_names
    ('happy', 'sad')
    """
    options = {"features": features, "labels": labels, "ignore": ignore or None, "convert": convert}
    if _is_name(name_or_path):
        given = [option for option, value in options.items() if value is not None]
        if given:
            raise DatasetError(
                f"{given[0]}= is for files given by path; {name_or_path!r} is a dataset with columns of its own."
            )
        return _load_by_name(str(name_or_path), data_home, verify=verify)
    return load_file(Path(name_or_path), features=features, labels=labels, ignore=ignore, convert=convert)


_BUILT_IN = ("lexicon", "artificial")


def _is_name(name_or_path: str | os.PathLike[str]) -> bool:
    """A name unless it can only be a path: a path object, a known ending, a separator, or a file that is there."""
    if not isinstance(name_or_path, str):
        return False
    if Path(name_or_path).suffix.lower() in _SUFFIXES or any(mark in name_or_path for mark in "/\\"):
        return False
    if in_catalogue(name_or_path) or normalised_spelling(name_or_path) in _BUILT_IN:
        return True
    if Path(name_or_path).is_file():
        return False
    raise UnknownDatasetError(f"{name_or_path!r} is neither a known dataset nor a file. {suggestion(name_or_path)}")


def _load_by_name(name: str, data_home: str | os.PathLike[str] | None, *, verify: bool) -> Dataset:
    if normalised_spelling(name) == "lexicon":
        return load_lexicon()
    if normalised_spelling(name) == "artificial":
        X, D = make_artificial(random_state=0)
        return Dataset(
            name="Artificial",
            X=X,
            D=D,
            label_names=tuple(default_label_names(D, D.shape[1])),
            description="Artificial data of Geng (2016): three features on a cube, degrees a function of them.",
            source="skldl.data.make_artificial(random_state=0)",
        )
    entry = find_entry(name)
    return load_entry_file(entry, find_file(entry, data_home), verify=verify)


def cache_folder() -> Path:
    """Folder into which `fetch_dataset` downloads unless told otherwise."""
    return Path(pooch.os_cache("skldl"))


def find_file(entry: CatalogueEntry, data_home: str | os.PathLike[str] | None) -> Path:
    """The file of a dataset of the paper, in the first of the places that has it."""
    places = [("data_home", data_home), ("the cache", cache_folder())]
    places.insert(0, (f"the environment variable {FOLDER_VARIABLE}", os.environ.get(FOLDER_VARIABLE) or None))
    looked = []
    for called, place in places:
        if place is None:
            looked.append(f"{called} is not set")
            continue
        folder = Path(place).expanduser()
        path = _file_in(folder, entry)
        if path is not None:
            return path
        looked.append(f"{called}: {folder}{'' if folder.is_dir() else ' (no such folder)'}")
    raise DatasetNotFoundError(
        f"{entry.file_name} was not found ({'; '.join(looked)}). Download it with "
        f"skldl.data.fetch_dataset({entry.name!r}{'' if entry.sha256 else ', verify=False'}), or set "
        f"{FOLDER_VARIABLE} to the folder that holds it. {entry.terms}"
    )


def _file_in(folder: Path, entry: CatalogueEntry) -> Path | None:
    """The dataset's file in a folder: under its own name, or under another spelling of it."""
    if (folder / entry.file_name).is_file():
        return folder / entry.file_name
    for path in sorted(folder.glob("*.[mM][aA][tT]")):
        if in_catalogue(path.stem) and find_entry(path.stem) is entry:
            return path
    return None


def load_entry_file(entry: CatalogueEntry, path: Path, *, verify: bool) -> Dataset:
    """Load a file of the catalogue and compare it with what the catalogue says."""
    dataset = load_file(path)
    expected = (entry.n_samples, entry.n_features, entry.n_labels)
    got = (dataset.n_samples, dataset.n_features, dataset.n_labels)
    if got != expected:
        sizes = (
            f"{path} holds {got[0]} rows, {got[1]} features and {got[2]} labels; {entry.name} of the paper has "
            f"{expected[0]}, {expected[1]} and {expected[2]}."
        )
        if got[1:] != expected[1:] or got[0] not in entry.other_n_samples:
            raise DatasetError(f"{sizes} If this is another dataset, load it by its path.")
        warnings.warn(f"{sizes} {entry.note} Results will differ from the paper's.", stacklevel=4)
    if verify and entry.sha256 is not None and (complaint := hash_complaint(entry, path)):
        raise DatasetError(
            f"{path} {complaint} If you saved it anew yourself, load it with verify=False or by its path; otherwise "
            f"delete it and call skldl.data.fetch_dataset({entry.name!r})."
        )
    return dataset.changed(
        name=entry.name,
        X=dataset.X.astype(np.float64, copy=False),
        label_names=entry.label_names or dataset.label_names,
        description=" ".join(filter(None, (entry.description, entry.note))),
        citation=entry.citation,
        terms=entry.terms,
    )


def hash_complaint(entry: CatalogueEntry, path: Path) -> str:
    """What is wrong with the file's checksum, or an empty text."""
    got = pooch.file_hash(str(path), alg="sha256")
    if got == entry.sha256:
        return ""
    return f"is not the published file of {entry.name}: its sha256 is {got}, not {entry.sha256}."


def load_file(
    path: Path,
    *,
    features: str | Sequence[str] | None = None,
    labels: str | Sequence[str] | int | None = None,
    ignore: str | Sequence[str] = (),
    convert: Converter | None = None,
) -> Dataset:
    """Load a file by its path; the ending tells the format."""
    path = path.expanduser()
    if path.is_dir():
        raise DatasetError(f"{path} is a folder; name the file in it.")
    if not path.exists():
        raise DatasetNotFoundError(f"There is no file {path} (looked at {path.absolute()}).")
    try:
        raw = _read(path, features, labels, ignore)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}.") from error
    X, D = checked_content(path, raw, convert)
    return Dataset(
        name=path.stem,
        X=X,
        D=D,
        label_names=raw.label_names or tuple(default_label_names(D, D.shape[1])),
        feature_names=raw.feature_names,
        source=str(path),
    )


def _read(path: Path, features: Any, labels: Any, ignore: Any) -> RawContent:
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        return read_csv(path, features, labels, ignore)
    if suffix not in (".mat", ".npz"):
        raise DatasetError(
            f"{path}: files ending in {suffix!r} are not known here. Known are {', '.join(_SUFFIXES)}; "
            "from a DataFrame pass X and D to the estimator directly."
        )
    for option, value in (("features", features), ("labels", labels)):
        if value is not None and not isinstance(value, str):
            raise DatasetError(f"{path}: {option}={value!r} must be the name of an array in a {suffix} file.")
    if ignore:
        raise DatasetError(f"{path}: ignore= leaves out columns of CSV files, and this is a {suffix} file.")
    return read_mat(path, features, labels) if suffix == ".mat" else read_npz(path, features, labels)

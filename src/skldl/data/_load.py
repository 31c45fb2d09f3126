"""`load_dataset`: a dataset of the paper by its name, or other data by the path of the file."""

import os
import warnings
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from skldl.data._arrays import Converter, checked_content, read_arrays
from skldl.data._catalogue import (
    BASE_URL,
    BUILT_IN,
    FETCHED_TEXTS,
    CatalogueEntry,
    find_entry,
    in_catalogue,
    suggestion,
)
from skldl.data._dataset import Dataset, with_note_of_gaps
from skldl.data._download import (
    FOLDER_VARIABLE,
    cache_folder,
    check_sha256,
    check_unpacked_size,
    fetch_whole,
    find_in_folders,
)
from skldl.data._formats import format_named, holds_arrays
from skldl.data._generated import artificial_manifold, make_artificial
from skldl.data._vader import fetch_vader_texts, load_lexicon, load_tweets, load_vader_texts
from skldl.exceptions import DatasetError, DatasetNotFoundError, Parameter, UnknownDatasetError
from skldl.utils.spelling import plain
from skldl.utils.warn import warn

MIRROR_VARIABLE = "SKLDL_MIRROR"
Names = str | Sequence[str]


def load_dataset(
    name_or_path: str | os.PathLike[str],
    data_home: str | os.PathLike[str] | None = None,
    *,
    labels: Names | int | None = None,
    features: Names | None = None,
    kind: str = "distribution",
    weight: str | None = None,
    groups: str | None = None,
    item: str | None = None,
    annotator: str | None = None,
    drop: Names = (),
    text: Sequence[str] = (),
    categories: Sequence[str] = (),
    convert: Converter | None = None,
    verify: bool = True,
    encoding: str | None = None,
    decimal: str | None = None,
    na_values: Collection[str] | None = None,
) -> Dataset:
    """Load a dataset of the paper by name, or a file of your own by path.

    Parameters
    ----------
    name_or_path : str or path
        Either a name (see `list_datasets`; case, hyphens, underscores and blanks do not matter), or the path of a file:
        ``.mat`` or ``.npz`` for arrays, any other for a table, CSV or Parquet (detected from its content).
    data_home : str or path, default=None
        Folder with the files of the paper's datasets. They are searched in ``data_home``, the folder in the environment
        variable ``SKLDL_DATA``, and the cache of `fetch_dataset`, in this order.
    labels : str, list of str or int, default=None
        For ``.mat`` and ``.npz`` the name of the array of labels. For a table the label columns: names, patterns
        (``"emo_*"``) or prefixes of several names (``"emo_"``); or a number n: the last n columns. By default the
        columns that begin with ``label_`` (or else ``label:``, ``label.``, ``d_`` or ``y_``), as ``skldl convert``
        writes them. The common prefix is removed from the names of the labels unless they are given as a list.
    features : str or list of str, default=None
        For ``.mat`` and ``.npz`` the name of the array of features. For a table the feature columns, given like the
        labels; by default all other columns.
    kind : {"distribution", "counts", "scores", "votes", "label"}, default="distribution"
        Content of the label columns of a table, see `Columns`.
    weight, groups : str, default=None
        Columns of a table with the weight and with the group of each row.
    item, annotator : str, default=None
        Columns of a table with one row for each vote (``kind="votes"``), see `from_table`.
    drop : str or list of str, default=()
        Columns of a table to leave out, given like the labels.
    text, categories : sequence of str, default=()
        Columns of a table with prose, and columns of numbers to treat as categories.
    convert : callable, default=None
        Function that is applied to the labels of a file given by path before they are checked, for counts or scores:
        ``convert=skldl.distributions.from_counts`` or ``convert=skldl.simplex.normalize``.
    verify : bool, default=True
        Whether a file of the catalogue whose checksum differs from the published one is an error. A file that was saved
        again has other bytes: load it with ``verify=False``, or by its path.
    encoding, decimal, na_values : default=None
        Format of a CSV file, see `TableFile`; detected by default.

    Returns
    -------
    Dataset
        ``X, D = load_dataset(...)`` unpacks it. X is a CSR matrix if the file holds a sparse one, or if it has at
        least 500 features and more than 90 % zeros (Movie). Features of the paper's datasets are in double precision;
        those of a file given by path keep single precision. X of a table is an array if all its features are numbers
        without gaps, else a DataFrame, which `skldl.tabular.TableEncoder` encodes.

    Raises
    ------
    DatasetNotFoundError
        If there is no such file; the message lists the folders that were searched and how to get it.
    UnknownDatasetError
        If the argument is neither a known name nor a file.
    DatasetError
        If the file is not valid; the message describes the problem and a solution.

    Notes
    -----
    MATLAB files have arrays ``features`` (n × q) and ``labels`` (n × c); ``.npz`` files X and D, or the same names.
    Some other names are accepted, too, and arrays ``label_names`` and ``feature_names`` are used if they exist. MATLAB
    7.3 files must be saved again with ``-v7``. CSV files have a header, separators ``,``, ``;`` or tab, and may use
    decimal commas if the comma is not the separator.

    Three more names need no file: "Lexicon" is `load_lexicon`, "Tweets" is `load_tweets` and "Artificial" is
    `make_artificial` with ``random_state=0``. "VADER products", "VADER films" and "VADER news" need the archive that
    `fetch_vader_texts` downloads.

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
    roles: dict[str, Any] = {"weight": weight, "groups": groups, "item": item, "annotator": annotator}
    roles |= {"drop": drop, "text": text, "categories": categories}
    reading = {"encoding": encoding, "decimal": decimal, "na_values": na_values}
    of_tables = roles | reading | {"kind": None if kind == "distribution" else kind}
    of_files = {"labels": labels, "features": features, "convert": convert}
    if _is_name(name_or_path):
        given = _first_given(of_files | of_tables)
        if given:
            raise DatasetError(Parameter(given), f" is for files given by path; {name_or_path!r} has fixed columns.")
        return _load_by_name(str(name_or_path), data_home, verify=verify)
    path = Path(name_or_path).expanduser()
    _check_file(path)
    if not holds_arrays(path):
        from skldl.data._roles import Columns, load_table

        return load_table(path, Columns(**roles | {"kind": kind}), labels, features, convert, reading)
    given = _first_given(of_tables)
    if given:
        raise DatasetError(
            f"{path}: ", Parameter(given), f" is about columns of tables, and this is a {path.suffix} file."
        )
    return _load_arrays(path, labels=labels, features=features, convert=convert)


def _first_given(options: dict[str, Any]) -> str | None:
    return next((name for name, value in options.items() if not (value is None or value == ())), None)


def _is_name(name_or_path: str | os.PathLike[str]) -> bool:
    """Whether the argument is a name; path objects, known suffixes, slashes and existing files are paths."""
    if not isinstance(name_or_path, str):
        return False
    if format_named(name_or_path) or any(mark in name_or_path for mark in "/\\"):
        return False
    if in_catalogue(name_or_path) or plain(name_or_path) in _LOADERS or plain(name_or_path) in _TEXTS:
        return True
    if Path(name_or_path).is_file():
        return False
    raise UnknownDatasetError(f"{name_or_path!r} is neither a known dataset nor a file. {suggestion(name_or_path)}")


def _load_by_name(name: str, data_home: str | os.PathLike[str] | None, *, verify: bool) -> Dataset:
    if plain(name) in _LOADERS:
        return _LOADERS[plain(name)]()
    if plain(name) in _TEXTS:
        return load_vader_texts(_TEXTS[plain(name)], data_home)
    entry = find_entry(name)
    return load_entry_file(entry, find_file(entry, data_home), verify=verify)


def _load_artificial() -> Dataset:
    X, D = make_artificial(random_state=0)
    X_test, D_test = artificial_manifold()
    return Dataset(
        name="Artificial",
        X=X,
        D=D,
        description="Artificial data of Geng (2016): three features on a cube, degrees a function of them.",
        source="skldl.data.make_artificial(random_state=0)",
        X_test=X_test,
        D_test=D_test,
    )


_LOADERS = dict(zip(map(plain, BUILT_IN), (load_lexicon, load_tweets, _load_artificial), strict=True))
_TEXTS = {plain(name): name for name in FETCHED_TEXTS}


def find_file(entry: CatalogueEntry, data_home: str | os.PathLike[str] | None) -> Path:
    """Find the file of a dataset of the paper in the folders that are searched."""
    call = f"skldl.data.fetch_dataset({entry.name!r}{'' if entry.sha256 else ', verify=False'})"
    return find_in_folders(lambda folder: _file_in(folder, entry), entry.file_name, data_home, call, entry.terms)


def _file_in(folder: Path, entry: CatalogueEntry) -> Path | None:
    """The file of a dataset in a folder, under any spelling of its name."""
    if (folder / entry.file_name).is_file():
        return folder / entry.file_name
    for path in sorted(folder.glob("*.[mM][aA][tT]")):
        if in_catalogue(path.stem) and find_entry(path.stem) is entry:
            return path
    return None


def load_entry_file(entry: CatalogueEntry, path: Path, *, verify: bool) -> Dataset:
    """Load the file of an entry of the catalogue, and compare it with the entry."""
    dataset = _load_arrays(path)
    expected = (entry.n_samples, entry.n_features, entry.n_labels)
    got = (dataset.n_samples, dataset.n_features, dataset.n_labels)
    if got != expected:
        sizes = (
            f"{path} holds {got[0]} rows, {got[1]} features and {got[2]} labels; {entry.name} of the paper has "
            f"{expected[0]}, {expected[1]} and {expected[2]}."
        )
        if got[1:] != expected[1:] or got[0] not in entry.other_n_samples:
            raise DatasetError(f"{sizes} If this is another dataset, load it by its path.")
        warn(f"{sizes} {entry.note} Results will differ from the paper's.")
    if verify and entry.sha256 is not None:
        hint = (
            "If you saved it again yourself, load it with verify=False or by its path; otherwise delete it and call "
            f"skldl.data.fetch_dataset({entry.name!r})."
        )
        check_sha256(path, entry.sha256, hint, of=f" of {entry.name}")
    return dataset.changed(
        name=entry.name,
        X=dataset.X.astype(np.float64, copy=False),
        label_names=entry.label_names or dataset.label_names,
        description=" ".join(filter(None, (entry.description, entry.note))),
        citation=entry.citation,
        terms=entry.terms,
    )


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise DatasetError(f"{path} is a folder; name the file in it.")
    if not path.exists():
        raise DatasetNotFoundError(f"There is no file {path} (looked at {path.absolute()}).")


def _load_arrays(path: Path, *, labels: Any = None, features: Any = None, convert: Converter | None = None) -> Dataset:
    for option, value in (("features", features), ("labels", labels)):
        if value is not None and not isinstance(value, str):
            raise DatasetError(
                f"{path}: ", Parameter(option, value), f" must be the name of an array in a {path.suffix} file."
            )
    try:
        raw = read_arrays(path, features, labels)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}.") from error
    X, D = checked_content(path, raw, convert)
    dataset = Dataset(
        name=path.stem,
        X=X,
        D=D,
        label_names=raw.label_names or (),
        feature_names=raw.feature_names,
        source=str(path),
    )
    return with_note_of_gaps(dataset, int(np.isnan(D).sum()))


def fetch_dataset(name: str, data_home: str | os.PathLike[str] | None = None, verify: bool = True) -> Dataset:
    """Download a dataset of the paper, unless it was downloaded before, and load it.

    The file is stored only after its checksum and its content were checked, so that an interrupted download leaves no
    incomplete file.

    Parameters
    ----------
    name : str
        Name of the dataset, as for `load_dataset`; also "VADER products", "VADER films" and "VADER news".
    data_home : str or path, default=None
        Folder for the file; by default the cache of this package, which `load_dataset` searches, too.
    verify : bool, default=True
        Whether to compare the sha256 with the published one. For Natural_Scene and Human_Gene none is known: they need
        ``verify=False``, which still checks sizes and row sums.

    Returns
    -------
    Dataset
        The dataset; ``source`` is the path of the file.

    Raises
    ------
    DatasetError
        If the download fails, the checksum is wrong, or a different file of this name exists (it is never overwritten).
        The message describes how to get the file manually.

    Notes
    -----
    A download that takes more than ten minutes or 200 MiB raises an error; the largest published file has 25 MB.

    The environment variable ``SKLDL_MIRROR`` is another address (``http://…`` or ``https://…``) of the files, for
    networks without access to GitHub. The data are free for academic, non-profit use and have no open licence.

    Examples
    --------
    >>> from skldl.data import fetch_dataset
    >>> X, D = fetch_dataset("SJAFFE")  # doctest: +SKIP
    """
    for texts in FETCHED_TEXTS:
        if plain(name) == plain(texts):
            return fetch_vader_texts(texts.removeprefix("VADER "), data_home=data_home)
    entry = find_entry(name)
    folder = cache_folder() if data_home is None else Path(data_home).expanduser()
    path = folder / entry.file_name
    if path.is_file():
        return _load_present(entry, path, verify=verify)
    if verify and entry.sha256 is None:
        raise DatasetError(
            f"No checksum of {entry.file_name} is known, so a download cannot be verified. {entry.note} "
            f"To download it all the same: fetch_dataset({entry.name!r}, verify=False)."
        )
    hint = (
        f"put it into {folder}, or into the folder that {FOLDER_VARIABLE} names; {MIRROR_VARIABLE} names another "
        "address to download from."
    )
    fetch_whole(f"{_base_url()}/{entry.file_name}", path, partial(_check_download, entry, verify=verify), hint=hint)
    return load_entry_file(entry, path, verify=verify)


def _base_url() -> str:
    mirror = os.environ.get(MIRROR_VARIABLE)
    if not mirror:
        return BASE_URL
    if not mirror.startswith(("http://", "https://")):
        raise DatasetError(f"{MIRROR_VARIABLE}={mirror!r} is not an address: it must begin with http:// or https://.")
    return mirror.rstrip("/")


def _load_present(entry: CatalogueEntry, path: Path, *, verify: bool) -> Dataset:
    """Load an existing file; an error if it is not the published one, which is never overwritten."""
    try:
        return load_entry_file(entry, path, verify=verify)
    except DatasetError as error:
        raise DatasetError(
            *error.parts,
            " Nothing was downloaded, because the file exists already and might be yours: delete or rename it, and "
            "fetch again.",
        ) from error


def _check_download(entry: CatalogueEntry, part: Path, *, verify: bool) -> None:
    if verify and entry.sha256 is not None:
        hint = (
            "Perhaps the connection was lost: try again. If the published file has changed, "
            f"fetch_dataset({entry.name!r}, verify=False) accepts it."
        )
        check_sha256(part, entry.sha256, hint, of=f" of {entry.name}")
    check_unpacked_size(part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the same warning follows when the stored file is loaded
        load_entry_file(entry, part, verify=False)

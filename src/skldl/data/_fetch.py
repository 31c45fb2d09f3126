"""`fetch_dataset`: download a file of the paper's datasets, so that it is there whole and right, or not at all."""

import os
import warnings
from functools import partial
from pathlib import Path

from skldl.data._catalogue import BASE_URL, FETCHED_TEXTS, CatalogueEntry, find_entry
from skldl.data._dataset import Dataset
from skldl.data._download import check_sha256, fetch_whole, refuse_bomb
from skldl.data._files import FOLDER_VARIABLE, cache_folder, load_entry_file
from skldl.data._spelling import plain
from skldl.data._vader_texts import fetch_vader_texts
from skldl.exceptions import DatasetError

MIRROR_VARIABLE = "SKLDL_MIRROR"


def fetch_dataset(name: str, data_home: str | os.PathLike[str] | None = None, verify: bool = True) -> Dataset:
    """Download a dataset of the paper, unless it is already there, and load it.

    The file gets its name only after its checksum and its content have been checked, so an interrupted download
    leaves nothing behind.

    Parameters
    ----------
    name : str
        Name of the dataset, as for `load_dataset`; also "VADER products", "VADER films" and "VADER news".
    data_home : str or path, default=None
        Folder for the file; by default the cache of this package, which `load_dataset` searches too.
    verify : bool, default=True
        Compare the sha256 with the published one. For Natural_Scene and Human_Gene none is known: they need
        ``verify=False``, which still checks sizes, row sums and so on.

    Returns
    -------
    Dataset
        The dataset; ``source`` is the path of the file.

    Raises
    ------
    DatasetError
        If the download fails, the checksum is wrong, or there is already a different file of this name (which is
        never overwritten). The message describes how to get the file manually.

    Notes
    -----
    A download ends with an error when it takes more than ten minutes or 200 MiB; the largest published file has 25 MB.

    The environment variable ``SKLDL_MIRROR`` names another address (``http://…`` or ``https://…``) under which the
    files are, for networks that do not reach GitHub. The data are free for academic, non-profit use and carry no open
    licence.

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
        raise DatasetError(f"{MIRROR_VARIABLE}={mirror!r} is no address; it must begin with http:// or https://.")
    return mirror.rstrip("/")


def _load_present(entry: CatalogueEntry, path: Path, *, verify: bool) -> Dataset:
    """An existing file is used if it is right, and never overwritten if it is not."""
    try:
        return load_entry_file(entry, path, verify=verify)
    except DatasetError as error:
        raise DatasetError(
            *error.parts,
            " Nothing was downloaded, because the file is already there and might be yours: delete or rename "
            "it, and fetch again.",
        ) from error


def _check_download(entry: CatalogueEntry, part: Path, *, verify: bool) -> None:
    if verify and entry.sha256 is not None:
        hint = (
            "Perhaps the connection broke off: try again. If the published file has changed, "
            f"fetch_dataset({entry.name!r}, verify=False) takes it as it is."
        )
        check_sha256(part, entry.sha256, hint, of=f" of {entry.name}")
    refuse_bomb(part)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the same warning comes when the file is in its place
        load_entry_file(entry, part, verify=False)

"""Rated sentences of product reviews, film reviews and newspaper editorials; downloaded, not part of the package.

The ratings are VADER's; the sentences belong to others (customers of a shop, Rotten Tomatoes, The New York Times).
"""

import json
import math
import os
import tarfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from skldl.data._dataset import Dataset
from skldl.data._download import check_sha256, fetch_whole
from skldl.data._files import cache_folder, find_in_places
from skldl.data._ngrams import word_presence
from skldl.data._rated import LICENCE, rated
from skldl.data._tweets import variant_groups
from skldl.exceptions import DatasetError, UnknownDatasetError
from skldl.utils.typing import IntArray

ARCHIVE = "hutto_ICWSM_2014.tar.gz"
ARCHIVE_SHA256 = "d5bb07d87474b3eb8d30b4deccbc23f19d742a6c5718fbacc65485b70b95c5fa"
_COMMIT = "18c86513ea60b02fce8f3b1b598da43042d91b08"
ARCHIVE_URL = f"https://raw.githubusercontent.com/cjhutto/vaderSentiment/{_COMMIT}/additional_resources/{ARCHIVE}"
_MAX_BYTES = 20 * 2**20  # of the archive, and of each file in it
FILM_BLOCK = 30
"""Number of consecutive sentences of the film reviews that the same people rated in the same order."""


@dataclass(frozen=True)
class _Source:
    """Path of one set of texts in the archive, and its description."""

    stem: str
    n_texts: int
    description: str


SOURCES = {
    "tweets": _Source("tweets", 4200, "Texts in the manner of tweets."),
    "products": _Source("amazonReviewSnippets", 3708, "Sentences of 309 customer reviews of five products."),
    "films": _Source("movieReviewSnippets", 10605, "Sentences of film reviews."),
    "news": _Source("nytEditorialSnippets", 5190, "Sentences of 500 newspaper editorials."),
}


@dataclass(frozen=True)
class RatedTexts:
    """Identifiers, texts and their ratings, in the order of the file of texts."""

    keys: list[str]
    texts: list[str]
    ratings: list[list[int]]


def read_archive(path: Path, name: str) -> RatedTexts:
    """Read one set of texts and ratings from the archive, whose content must be as expected."""
    source = SOURCES[name]
    try:
        with tarfile.open(path, "r:gz") as archive:
            lines = {part: _lines(archive, f"{source.stem}_{part}.txt") for part in ("GroundTruth", "anonDataRatings")}
    except (tarfile.TarError, OSError, EOFError, KeyError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} cannot be read as the archive {ARCHIVE} ({error}).") from error
    ratings = dict(_rating(line) for line in lines["anonDataRatings"])
    texts = dict(_text(line) for line in lines["GroundTruth"])
    if set(texts) != set(ratings) or len(texts) != source.n_texts:
        raise DatasetError(
            f"{path} holds {len(texts)} texts and {len(ratings)} rows of ratings for {name!r}; {source.n_texts} with "
            "the same identifiers are expected."
        )
    return RatedTexts(list(texts), list(texts.values()), [ratings[key] for key in texts])


def _lines(archive: tarfile.TarFile, file_name: str) -> list[str]:
    stream = archive.extractfile(f"hutto_ICWSM_2014/{file_name}")
    if stream is None:
        raise KeyError(f"{file_name} is no file")
    content = stream.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise DatasetError(f"{file_name} is larger than {_MAX_BYTES >> 20} MiB; that is not the published archive.")
    return [line for line in content.decode("utf-8-sig").replace("\r\n", "\n").split("\n") if line.strip()]


def _rating(line: str) -> tuple[str, list[int]]:
    """Identifier and ratings; the mean and the standard deviation between them are left out."""
    try:
        key, mean, _, votes = line.split("\t")
        values = json.loads(votes)
        good = len(values) > 0 and all(type(value) is int and -4 <= value <= 4 for value in values)
        good = good and math.isclose(float(mean), sum(values) / len(values), abs_tol=1e-6)
    except (ValueError, TypeError):
        good = False
    if not good:
        raise DatasetError(f"The line {line[:80]!r} holds no ratings from -4 to 4 that have the mean beside them.")
    return key, values


def _text(line: str) -> tuple[str, str]:
    parts = line.split("\t", 2)
    if len(parts) != 3 or not parts[2].strip():
        raise DatasetError(f"The line {line[:80]!r} holds no identifier, mean and text.")
    return parts[0], parts[2]


def _groups(name: str, read: RatedTexts) -> IntArray:
    """Sentences that belong together: of one review or article, rated by the same people, or variants of one text."""
    if name == "tweets":
        return variant_groups(read.texts)
    if name == "films":
        return np.arange(len(read.texts)) // FILM_BLOCK
    number = {key: place for place, key in enumerate(dict.fromkeys(key.split("_")[0] for key in read.keys))}
    return np.array([number[key.split("_")[0]] for key in read.keys], dtype=np.intp)


def load_vader_texts(name: str, data_home: str | os.PathLike[str] | None) -> Dataset:
    """Load one of the fetched sets by its name for `load_dataset`, if the archive is there; nothing is downloaded."""
    path = find_in_places(
        lambda folder: folder / ARCHIVE if (folder / ARCHIVE).is_file() else None,
        ARCHIVE,
        data_home,
        f"skldl.data.fetch_dataset({name!r})",
        "The sentences belong to their authors.",
    )
    return fetch_vader_texts(name.removeprefix("VADER "), path)


def fetch_vader_texts(
    name: str,
    archive: str | os.PathLike[str] | None = None,
    *,
    n_features: int = 1000,
    data_home: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Load rated sentences of product reviews, film reviews or newspaper editorials; download them if need be.

    The archive of 2.3 MB comes from the public repository of the VADER project at a fixed commit. It is used only if
    its sha256 is the known one, and kept for the next call.

    Parameters
    ----------
    name : {"products", "films", "news", "tweets"}
        Which texts. The tweets are bundled too: `load_tweets`.
    archive : str or path, default=None
        A copy of ``hutto_ICWSM_2014.tar.gz`` that you have already; it is in ``additional_resources`` of the source
        distribution of vaderSentiment 3.3.2. None searches ``data_home`` and downloads it otherwise.
    n_features : int, default=1000
        Number of words and pairs of words, as in `load_tweets`.
    data_home : str or path, default=None
        Folder for the archive; by default the cache of this package.

    Returns
    -------
    Dataset
        With the same parts as `load_tweets`: ``tokens``, ``votes``, ``counts``, sparse X, and D. 3,708 sentences on
        products and 5,190 of newspapers have 20 ratings each, 10,605 on films 15 to 29. ``groups`` holds, for products
        and news, the review or article of each sentence; for films, the block of sentences that the same people rated.

    Raises
    ------
    DatasetError
        If the download fails, or the archive is not the published one.

    Notes
    -----
    The sentences are the property of their authors and are not part of this package; the ratings are published under
    the MIT licence.

    In the film reviews, thirty sentences in a row have the same number of ratings, and the place of a rating in its row
    identifies the rater: within such a block, the means of the columns vary five times as much as after shuffling. So
    raters can be distinguished there: ``raters[i, j]`` is the number of the rater of ``votes[i, j]``. In the other sets
    the position carries no information, and ``raters`` is None.

    References
    ----------
    .. [1] C. J. Hutto and E. Gilbert, "VADER: A parsimonious rule-based model for sentiment analysis of social media
       text", ICWSM 2014.

    Examples
    --------
    >>> from skldl.data import fetch_vader_texts
    >>> films = fetch_vader_texts("films")  # doctest: +SKIP
    """
    if name not in SOURCES:
        raise UnknownDatasetError(f"No texts are called {name!r}. Known are {', '.join(SOURCES)}.")
    folder = cache_folder() if data_home is None else Path(data_home).expanduser()
    path = folder / ARCHIVE if archive is None else Path(archive).expanduser()
    if path.is_file():
        check_sha256(path, ARCHIVE_SHA256, "Delete or rename it, or name another copy with archive=.")
    elif archive is not None:
        raise DatasetError(f"There is no file {path}.")
    else:
        check = partial(check_sha256, sha256=ARCHIVE_SHA256, hint="Perhaps the connection broke off: try again.")
        fetch_whole(
            ARCHIVE_URL, path, check, hint=f"name it with archive=, or put it into {folder}.", max_bytes=_MAX_BYTES
        )
    read = read_archive(path, name)
    X, words = word_presence(read.texts, n_features, called=name)
    groups = _groups(name, read)
    dataset = rated(
        f"VADER {name}",
        X,
        read.ratings,
        feature_names=words,
        description=f"{SOURCES[name].description} Rated by at least 15 people from -4 (negative) to 4 (positive).",
        terms=f"Ratings: {LICENCE} The sentences belong to their authors.",
        source=str(path),
        groups=groups,
        tokens=tuple(read.texts),
    )
    if name != "films" or dataset.votes is None:
        return dataset
    return dataset.changed(raters=groups[:, None] * 100 + np.arange(dataset.votes.shape[1]))  # at most 29 in a row

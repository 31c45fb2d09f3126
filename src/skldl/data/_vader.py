"""The rated words and texts of VADER: the bundled lexicon and tweets, and sentences that are downloaded.

The ratings have the MIT licence (see ``data/PROVENANCE.md``); the downloaded sentences belong to others (customers of a
shop, Rotten Tomatoes, The New York Times) and are not part of the package. Features are n-grams of the texts.
"""

import html
import json
import math
import os
import re
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from skldl.data._dataset import Dataset
from skldl.data._download import cache_folder, check_sha256, fetch_whole, find_in_folders
from skldl.exceptions import DatasetError, ParameterError, UnknownDatasetError
from skldl.utils.parameters import COUNT, check_value
from skldl.utils.typing import IntArray

LABELS = tuple(range(-4, 5))
CITATION = (
    'C. J. Hutto and E. Gilbert, "VADER: A parsimonious rule-based model for sentiment analysis of social media text", '
    "ICWSM 2014."
)
LICENCE = "MIT licence, Copyright (c) 2016 C.J. Hutto."


@contextmanager
def open_bundled(file_name: str) -> Iterator[Any]:
    """Open a bundled archive of arrays."""
    try:
        stream = resources.files("skldl.data").joinpath("bundled", file_name).open("rb")
    except FileNotFoundError as error:
        raise DatasetError(
            f"The bundled file {file_name} is missing from this installation. Install the package again: "
            "pip install --force-reinstall scikit-ldl"
        ) from error
    with stream, np.load(stream, allow_pickle=False) as content:
        yield content


def rated(name: str, X: Any, ratings: Sequence[Sequence[int]], **facts: Any) -> Dataset:
    """Make a dataset of items rated from -4 to 4: the degree of a label is the fraction of raters who chose it.

    Rows can have different numbers of ratings; ``votes`` are NaN after the last one. ``facts`` are further attributes,
    and may include ``votes``.
    """
    counts = np.stack([np.bincount(np.array(row) + 4, minlength=len(LABELS)) for row in ratings])
    if "votes" not in facts:
        facts["votes"] = np.full((len(ratings), max(map(len, ratings))), np.nan)
        for votes, row in zip(facts["votes"], ratings, strict=True):
            votes[: len(row)] = row
    return Dataset(
        name,
        X,
        counts / counts.sum(axis=1, keepdims=True),
        label_names=tuple(str(label) for label in LABELS),
        citation=CITATION,
        counts=counts,
        **facts,
    )


# addresses; words with their apostrophes, @names and #tags; emoticons; runs of ! and ?
_TOKEN = r"https?://\S+|[@#]?\w+(?:['’]\w+)*|[:;=8xX][-o^']?[()\[\]DPpO/\\|*]+|<3|[!?]+"


def word_presence(texts: Sequence[str], n_features: int, *, called: str) -> tuple[sparse.csr_matrix, tuple[str, ...]]:
    """Presence of the ``n_features`` most frequent words and pairs of words as zeros and ones, and their names.

    Words are in lower case; emoticons and runs of exclamation and question marks count as words. Words of at least two
    letters in capitals are added in capitals, too, since capitals carry information. Character references such as
    ``&amp;`` are decoded. ``called`` is the name of the texts in messages.
    """
    check_value("n_features", n_features, COUNT)
    finder = CountVectorizer(token_pattern=_TOKEN, lowercase=False).build_tokenizer()

    def tokens(text: str) -> list[str]:
        words = finder(html.unescape(text))
        plain = [word.lower() if word[0].isalnum() or word[0] in "@#" else word for word in words]
        pairs = [f"{first} {second}" for first, second in pairwise(plain)]
        return plain + pairs + [word for word in words if len(word) > 1 and word.isalpha() and word.isupper()]

    vectorizer = CountVectorizer(analyzer=tokens, binary=True, dtype=np.float64)
    presence = vectorizer.fit_transform(texts)
    return most_frequent(presence, vectorizer.get_feature_names_out(), n_features, f"words and pairs of {called}")


def most_frequent(presence: Any, names: Any, n_features: int, what: str) -> tuple[sparse.csr_matrix, tuple[str, ...]]:
    """The columns that occur in most texts, in descending order, and their names; ties are in alphabetical order."""
    if n_features > len(names):
        raise ParameterError(f"n_features={n_features} is more than the {len(names)} different {what}.")
    n_texts = np.asarray(presence.sum(axis=0)).ravel()
    chosen = np.argsort(-n_texts, kind="stable")[: int(n_features)]
    X = sparse.csr_matrix(presence[:, chosen])
    X.sort_indices()
    return X, tuple(names[chosen].tolist())


_LEXICON = "vader_lexicon.npz"
_NGRAM_RANGE = (1, 4)


def read_lexicon() -> tuple[tuple[str, ...], npt.NDArray[np.int8]]:
    """Read the tokens and their ten ratings from the bundled file."""
    with open_bundled(_LEXICON) as content:
        tokens = content["tokens"].tobytes().decode("utf-8").split("\n")
        return tuple(tokens), content["votes"]


def _ngram_presence(tokens: tuple[str, ...], n_features: int) -> tuple[sparse.csr_matrix, tuple[str, ...]]:
    """Presence of the most frequent n-grams of characters as zeros and ones, and their names."""
    vectorizer = CountVectorizer(
        analyzer="char", ngram_range=_NGRAM_RANGE, lowercase=False, binary=True, dtype=np.float64
    )
    presence = vectorizer.fit_transform([f" {token} " for token in tokens])
    names = vectorizer.get_feature_names_out()
    informative = np.flatnonzero(names != " ")  # there are blanks around every token
    return most_frequent(presence[:, informative], names[informative], n_features, "n-grams of the lexicon")


def load_lexicon(n_features: int = 512) -> Dataset:
    """Load the bundled sentiment lexicon: words rated from -4 to 4 by ten people.

    Each of the 7,506 tokens was rated by ten people on a scale of nine ordered labels. The degree of a label is the
    fraction of the ten who chose it: ``D = counts / 10``. The features indicate which n-grams of one to four
    characters occur in the token; a blank marks its beginning and end.

    Parameters
    ----------
    n_features : int, default=512
        Number of n-grams: those that occur in most tokens, in descending order; ties are in alphabetical order.

    Returns
    -------
    Dataset
        With X (7506 × n_features, CSR, zeros and ones), D (7506 × 9), ``label_names`` "-4" to "4",
        ``feature_names`` (the n-grams), ``tokens``, ``votes`` (7506 × 10, the ratings) and ``counts``
        (7506 × 9, raters per label).

    Notes
    -----
    ``dataset.n_votes`` is the number of votes of each row, which can be used as ``sample_weight`` if rows have
    different numbers of votes, for example after votes were removed or other data were added.

    The position of a rating among the ten does not identify the rater. Fourteen tokens occur twice in the source; the
    second is kept, as in VADER itself. Some emoticons contain none of the frequent n-grams: their rows are empty.

    References
    ----------
    .. [1] C. J. Hutto and E. Gilbert, "VADER: A parsimonious rule-based model for sentiment analysis of social media
       text", ICWSM 2014.

    Examples
    --------
    >>> from skldl.data import load_lexicon
    >>> lexicon = load_lexicon()
    >>> lexicon
    Dataset('Lexicon', 7506 samples, 512 features, 9 labels)
    >>> row = lexicon.tokens.index("fabulous")
    >>> dict(zip(lexicon.label_names, lexicon.D[row].tolist()))
    {'-4': 0.0, '-3': 0.0, '-2': 0.0, '-1': 0.0, '0': 0.0, '1': 0.1, '2': 0.5, '3': 0.3, '4': 0.1}
    """
    check_value("n_features", n_features, COUNT)
    tokens, votes = read_lexicon()
    X, ngrams = _ngram_presence(tokens, n_features)
    return rated(
        "Lexicon",
        X,
        votes.tolist(),
        feature_names=ngrams,
        description="Words, emoticons and phrases, each rated by ten people from -4 (negative) to 4 (positive).",
        terms=LICENCE,
        source="vader_lexicon.txt of the package vaderSentiment 3.3.2; bundled.",
        votes=votes,
        tokens=tokens,
    )


_TWEETS = "vader_tweets.npz"
_INTENSIFIERS = {"absolutely", "especially", "extremely", "fucking", "major"}
_INTENSIFIERS |= {"really", "seriously", "super", "uber", "very"}


def read_tweets() -> tuple[tuple[str, ...], list[list[int]]]:
    """Read the texts and their ratings from the bundled file."""
    with open_bundled(_TWEETS) as content:
        texts = content["texts"].tobytes().decode("utf-8").split("\n")
        cuts = np.cumsum(content["n_ratings"].astype(np.intp))[:-1]
        return tuple(texts), [row.tolist() for row in np.split(content["ratings"], cuts)]


def variant_groups(texts: Sequence[str]) -> IntArray:
    """The same number for texts with the same words, irrespective of case, punctuation and intensifiers."""
    first: dict[frozenset[str], int] = {}
    groups = []
    for place, text in enumerate(texts):
        words = frozenset(re.findall(r"[a-z0-9']+", text.lower())) - _INTENSIFIERS
        groups.append(first.setdefault(words, place) if words else place)
    return np.array(groups, dtype=np.intp)


def load_tweets(n_features: int = 1000) -> Dataset:
    """Load the bundled texts in the style of tweets, whose sentiment was rated from -4 to 4.

    Each of the 4,200 texts was rated by at least 20 people, about a quarter of them by 92 to 99, on a scale of nine
    ordered labels. The degree of a label is the fraction of the people who chose it. The features indicate which words,
    pairs of words, emoticons and words in capitals occur in the text.

    Parameters
    ----------
    n_features : int, default=1000
        Number of words and pairs: those that occur in most texts, in descending order; ties are in alphabetical order.

    Returns
    -------
    Dataset
        With X (4200 × n_features, CSR, zeros and ones), D (4200 × 9), ``label_names`` "-4" to "4", ``feature_names``,
        ``tokens`` (the texts), ``votes`` (4200 × 99, the ratings, NaN after the last one), ``counts`` (4200 × 9,
        raters per label) and ``groups`` (one number for all variants of a text).

    Notes
    -----
    ``dataset.n_votes`` is the number of votes of each row, which can be used as ``sample_weight``.

    The position of a rating in its row does not identify the rater: the means of the columns over consecutive texts
    vary no more than after shuffling each row. So these votes show how much raters disagree, but not which of them are
    reliable.

    Thirty texts have six to eight variants that differ by punctuation, capitals and intensifiers ("Yay. Another good
    phone interview." and "YAY!!! Another good phone interview!!!"). They have the same number in ``groups``, so that
    they are on one side of a split. For 199 of these texts the means printed next to the texts in the source are not
    the means of the ratings (the correlation is .99); the ratings are used.

    References
    ----------
    .. [1] C. J. Hutto and E. Gilbert, "VADER: A parsimonious rule-based model for sentiment analysis of social media
       text", ICWSM 2014.

    Examples
    --------
    >>> from skldl.data import load_tweets
    >>> tweets = load_tweets()
    >>> tweets
    Dataset('Tweets', 4200 samples, 1000 features, 9 labels)
    >>> tweets.tokens[3], int(tweets.n_votes[3])
    ('LMAO, AMAZING!', 98)
    >>> dict(zip(tweets.label_names, tweets.D[3].round(2).tolist()))
    {'-4': 0.0, '-3': 0.0, '-2': 0.0, '-1': 0.0, '0': 0.0, '1': 0.11, '2': 0.15, '3': 0.5, '4': 0.23}
    """
    texts, ratings = read_tweets()
    X, words = word_presence(texts, n_features, called="the tweets")
    return rated(
        "Tweets",
        X,
        ratings,
        feature_names=words,
        description="Texts in the manner of tweets, each rated by 20 to 99 people from -4 (negative) to 4 (positive).",
        terms=LICENCE,
        source="hutto_ICWSM_2014.tar.gz of the package vaderSentiment 3.3.2; bundled.",
        groups=variant_groups(texts),
        tokens=texts,
    )


ARCHIVE = "hutto_ICWSM_2014.tar.gz"
ARCHIVE_SHA256 = "d5bb07d87474b3eb8d30b4deccbc23f19d742a6c5718fbacc65485b70b95c5fa"
_COMMIT = "18c86513ea60b02fce8f3b1b598da43042d91b08"
ARCHIVE_URL = f"https://raw.githubusercontent.com/cjhutto/vaderSentiment/{_COMMIT}/additional_resources/{ARCHIVE}"
_MAX_BYTES = 20 * 2**20  # of the archive, and of each file in it
FILM_BLOCK = 30
"""Number of consecutive sentences of the film reviews that were rated by the same people in the same order."""


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
    """Read one set of texts and ratings from the archive; unexpected content is an error."""
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
        raise KeyError(f"{file_name} is not a file")
    content = stream.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise DatasetError(f"{file_name} is larger than {_MAX_BYTES >> 20} MiB; that is not the published archive.")
    return [line for line in content.decode("utf-8-sig").replace("\r\n", "\n").split("\n") if line.strip()]


def _rating(line: str) -> tuple[str, list[int]]:
    """Parse the identifier and the ratings of a line; the mean in the line must be that of the ratings."""
    try:
        key, mean, _, votes = line.split("\t")
        values = json.loads(votes)
        good = len(values) > 0 and all(type(value) is int and -4 <= value <= 4 for value in values)
        good = good and math.isclose(float(mean), sum(values) / len(values), abs_tol=1e-6)  # means are rounded
    except (ValueError, TypeError):
        good = False
    if not good:
        raise DatasetError(f"The line {line[:80]!r} has no ratings from -4 to 4 with their mean.")
    return key, values


def _text(line: str) -> tuple[str, str]:
    parts = line.split("\t", 2)
    if len(parts) != 3 or not parts[2].strip():
        raise DatasetError(f"The line {line[:80]!r} has no identifier, mean and text.")
    return parts[0], parts[2]


def _groups(name: str, read: RatedTexts) -> IntArray:
    """Group of each text: its review or article, a block rated by the same people, or the variants of a text."""
    if name == "tweets":
        return variant_groups(read.texts)
    if name == "films":
        return np.arange(len(read.texts)) // FILM_BLOCK
    number = {key: place for place, key in enumerate(dict.fromkeys(key.split("_")[0] for key in read.keys))}
    return np.array([number[key.split("_")[0]] for key in read.keys], dtype=np.intp)


def load_vader_texts(name: str, data_home: str | os.PathLike[str] | None) -> Dataset:
    """Load a set of texts for `load_dataset` if the archive was downloaded before; nothing is downloaded."""
    path = find_in_folders(
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
    """Load rated sentences of product reviews, film reviews or newspaper editorials; download them if necessary.

    The archive of 2.3 MB is downloaded from the public repository of the VADER project at a fixed commit. Its sha256 is
    checked, and it is kept for the next call.

    Parameters
    ----------
    name : {"products", "films", "news", "tweets"}
        The set of texts. The tweets are also bundled: `load_tweets`.
    archive : str or path, default=None
        An existing copy of ``hutto_ICWSM_2014.tar.gz``, which is in ``additional_resources`` of the source distribution
        of vaderSentiment 3.3.2. None searches ``data_home``, and downloads it if it is not there.
    n_features : int, default=1000
        Number of words and pairs of words, as in `load_tweets`.
    data_home : str or path, default=None
        Folder for the archive; by default the cache of this package.

    Returns
    -------
    Dataset
        With the same attributes as `load_tweets`: ``tokens``, ``votes``, ``counts``, sparse X, and D. 3,708 sentences
        on products and 5,190 of newspapers have 20 ratings each, 10,605 on films 15 to 29. ``groups`` holds, for
        products and news, the review or article of each sentence; for films, the block of sentences that the same
        people rated.

    Raises
    ------
    DatasetError
        If the download fails, or the archive differs from the published one.

    Notes
    -----
    The sentences are the property of their authors and are not part of this package; the ratings are published under
    the MIT licence.

    In the film reviews, blocks of thirty consecutive sentences have the same number of ratings, and the position of a
    rating in its row identifies the rater: within a block, the means of the columns vary five times as much as after
    shuffling. So ``raters[i, j]`` is the number of the rater of ``votes[i, j]``. In the other sets the position
    carries no information, and ``raters`` is None.

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
    # numbers of raters are unique for up to 100 ratings in a row; there are at most 29
    return dataset.changed(raters=groups[:, None] * 100 + np.arange(dataset.votes.shape[1]))

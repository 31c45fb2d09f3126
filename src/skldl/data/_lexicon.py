"""The bundled real dataset: 7,506 words, emoticons and phrases, each rated by ten people from -4 to 4.

The ratings are those of the VADER sentiment lexicon (MIT licence, see ``data/PROVENANCE.md``); the features are the
character n-grams of the token itself, so that everything runs offline.
"""

import numbers
from importlib import resources

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from skldl.data._dataset import Dataset
from skldl.exceptions import DatasetError

LABELS = tuple(range(-4, 5))
_FILE = "vader_lexicon.npz"
_NGRAM_RANGE = (1, 4)


def read_votes() -> tuple[tuple[str, ...], npt.NDArray[np.int8]]:
    """Tokens and their ten ratings, from the bundled file."""
    with (
        resources.files("skldl.data").joinpath("bundled", _FILE).open("rb") as stream,
        np.load(stream, allow_pickle=False) as content,
    ):
        tokens = content["tokens"].tobytes().decode("utf-8").split("\n")
        return tuple(tokens), content["votes"]


def _ngram_presence(tokens: tuple[str, ...], n_features: int) -> tuple[sparse.csr_matrix, tuple[str, ...]]:
    """Presence of the n-grams that most tokens hold, as zeros and ones; ties go to the n-gram first in the alphabet."""
    vectorizer = CountVectorizer(
        analyzer="char", ngram_range=_NGRAM_RANGE, lowercase=False, binary=True, dtype=np.float64
    )
    presence = vectorizer.fit_transform([f" {token} " for token in tokens])
    names = vectorizer.get_feature_names_out()  # in alphabetical order
    n_tokens = np.asarray(presence.sum(axis=0)).ravel()
    n_tokens[names == " "] = 0  # a blank stands around every token and tells nothing
    order = np.argsort(-n_tokens, kind="stable")[: len(names) - 1]
    if n_features > len(order):
        raise ValueError(f"n_features={n_features} is more than the {len(order)} different n-grams of the lexicon.")
    chosen = order[:n_features]
    X = sparse.csr_matrix(presence[:, chosen])
    X.sort_indices()
    return X, tuple(names[chosen].tolist())


def load_lexicon(n_features: int = 512) -> Dataset:
    """Load the bundled sentiment lexicon: how do ten people rate a word, from -4 to 4?

    Each of the 7,506 tokens was rated by ten people on a scale of nine ordered labels. The degree of a label is the
    share of the ten who chose it: ``D = counts / 10``. The features say which character n-grams (one to four
    characters; a blank marks where the token begins and ends) the token holds.

    Parameters
    ----------
    n_features : int, default=512
        Number of n-grams: those found in most tokens, in falling order; ties in alphabetical order.

    Returns
    -------
    Dataset
        With X (7506 × n_features, CSR, zeros and ones), D (7506 × 9), ``label_names`` "-4" to "4",
        ``feature_names`` (the n-grams), ``tokens``, ``votes`` (7506 × 10, the ratings) and ``counts``
        (7506 × 9, raters per label).

    Notes
    -----
    ``dataset.counts.sum(axis=1)`` is the number of raters behind each row. It serves as ``sample_weight`` when rows
    rest on different numbers of votes: a row of ten votes then counts ten times a row of one. Here all rows rest on
    ten, so it matters after you have dropped votes or joined these data with others.

    The position of a rating among the ten does not tell who gave it. Fourteen tokens stand twice in the source; the
    second is kept, as VADER itself does. Some emoticons hold none of the frequent n-grams, and their rows are empty.

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
    if isinstance(n_features, bool) or not isinstance(n_features, numbers.Integral) or n_features < 1:
        raise ValueError(f"n_features={n_features!r} must be a whole number of at least 1.")
    try:
        tokens, votes = read_votes()
    except FileNotFoundError as error:
        raise DatasetError(
            f"The bundled file {_FILE} is missing from this installation. Install the package again: "
            "pip install --force-reinstall scikit-ldl"
        ) from error
    counts = np.stack([(votes == label).sum(axis=1) for label in LABELS], axis=1)
    X, ngrams = _ngram_presence(tokens, int(n_features))
    return Dataset(
        name="Lexicon",
        X=X,
        D=counts / counts.sum(axis=1, keepdims=True),
        label_names=tuple(str(label) for label in LABELS),
        feature_names=ngrams,
        description="Words, emoticons and phrases, each rated by ten people from -4 (negative) to 4 (positive).",
        citation='C. J. Hutto and E. Gilbert, "VADER: A parsimonious rule-based model for sentiment analysis of '
        'social media text", ICWSM 2014.',
        terms="MIT licence, Copyright (c) 2016 C.J. Hutto.",
        source="vader_lexicon.txt of the package vaderSentiment 3.3.2; bundled.",
        votes=votes,
        counts=counts,
        tokens=tokens,
    )

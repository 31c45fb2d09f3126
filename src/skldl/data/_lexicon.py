"""The bundled real dataset: 7,506 words, emoticons and phrases, each rated by ten people from -4 to 4.

The ratings are those of the VADER sentiment lexicon (MIT licence, see ``data/PROVENANCE.md``); the features are the
character n-grams of the token itself, so that everything runs offline.
"""

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from skldl.data._dataset import Dataset
from skldl.data._ngrams import most_frequent
from skldl.data._rated import LICENCE, open_bundled, rated
from skldl.utils.parameters import COUNT, check_value

_FILE = "vader_lexicon.npz"
_NGRAM_RANGE = (1, 4)


def read_votes() -> tuple[tuple[str, ...], npt.NDArray[np.int8]]:
    """Tokens and their ten ratings, from the bundled file."""
    with open_bundled(_FILE) as content:
        tokens = content["tokens"].tobytes().decode("utf-8").split("\n")
        return tuple(tokens), content["votes"]


def _ngram_presence(tokens: tuple[str, ...], n_features: int) -> tuple[sparse.csr_matrix, tuple[str, ...]]:
    """Presence of the n-grams that most tokens hold, as zeros and ones; ties go to the n-gram first in the alphabet."""
    vectorizer = CountVectorizer(
        analyzer="char", ngram_range=_NGRAM_RANGE, lowercase=False, binary=True, dtype=np.float64
    )
    presence = vectorizer.fit_transform([f" {token} " for token in tokens])
    names = vectorizer.get_feature_names_out()
    telling = np.flatnonzero(names != " ")  # there is a blank around every token, which carries no information
    return most_frequent(presence[:, telling], names[telling], n_features, "n-grams of the lexicon")


def load_lexicon(n_features: int = 512) -> Dataset:
    """Load the bundled sentiment lexicon: how do ten people rate a word, from -4 to 4?

    Each of the 7,506 tokens was rated by ten people on a scale of nine ordered labels. The degree of a label is the
    share of the ten who chose it: ``D = counts / 10``. The features indicate which character n-grams (one to four
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
    ``dataset.n_votes`` is the number of raters behind each row. It serves as ``sample_weight`` when rows
    rest on different numbers of votes: a row of ten votes then counts ten times a row of one. Here all rows rest on
    ten, so it matters after you have dropped votes or joined these data with others.

    The position of a rating among the ten does not identify the rater. Fourteen tokens occur twice in the source; the
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
    check_value("n_features", n_features, COUNT)
    tokens, votes = read_votes()
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

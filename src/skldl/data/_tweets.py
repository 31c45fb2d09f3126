"""The second bundled real dataset: 4,200 texts in the manner of tweets, each rated by 20 to 99 people from -4 to 4."""

import re
from collections.abc import Sequence

import numpy as np

from skldl.data._dataset import Dataset
from skldl.data._ngrams import word_presence
from skldl.data._rated import LICENCE, open_bundled, rated
from skldl.utils.typing import IntArray

_FILE = "vader_tweets.npz"
_INTENSIFIERS = {"absolutely", "especially", "extremely", "fucking", "major"}
_INTENSIFIERS |= {"really", "seriously", "super", "uber", "very"}


def read_tweets() -> tuple[tuple[str, ...], list[list[int]]]:
    """Texts and their ratings, from the bundled file."""
    with open_bundled(_FILE) as content:
        texts = content["texts"].tobytes().decode("utf-8").split("\n")
        cuts = np.cumsum(content["n_ratings"].astype(np.intp))[:-1]
        return tuple(texts), [row.tolist() for row in np.split(content["ratings"], cuts)]


def variant_groups(texts: Sequence[str]) -> IntArray:
    """One number for all texts with the same words, irrespective of case, punctuation and intensifiers."""
    first: dict[frozenset[str], int] = {}
    groups = []
    for place, text in enumerate(texts):
        words = frozenset(re.findall(r"[a-z0-9']+", text.lower())) - _INTENSIFIERS
        groups.append(first.setdefault(words, place) if words else place)
    return np.array(groups, dtype=np.intp)


def load_tweets(n_features: int = 1000) -> Dataset:
    """Load the bundled texts in the manner of tweets: how do people rate their sentiment, from -4 to 4?

    Each of the 4,200 texts was rated by at least 20 people, about a quarter of them by 92 to 99, on a scale of nine
    ordered labels. The degree of a label is the share of the people who chose it. The features indicate which words,
    pairs of words, emoticons and words in capitals the text holds.

    Parameters
    ----------
    n_features : int, default=1000
        Number of words and pairs: those found in most texts, in falling order; ties in alphabetical order.

    Returns
    -------
    Dataset
        With X (4200 × n_features, CSR, zeros and ones), D (4200 × 9), ``label_names`` "-4" to "4", ``feature_names``,
        ``tokens`` (the texts), ``votes`` (4200 × 99, the ratings, NaN where there are no more), ``counts`` (4200 × 9,
        raters per label) and ``groups`` (one number for all variants of a text).

    Notes
    -----
    ``dataset.n_votes`` is the number of votes behind each row; it serves as ``sample_weight``.

    The position of a rating in its row does not identify the rater: the means of the columns over consecutive texts
    vary no more than after shuffling each row. So these votes show how much raters disagree, but not which of them are
    reliable.

    Thirty texts come in six to eight variants that differ by punctuation, capitals and intensifiers ("Yay. Another
    good phone interview." and "YAY!!! Another good phone interview!!!"). They share a number in ``groups``, which keeps
    them on one side of a split. For 199 of these texts the means printed next to the texts in the source are not those
    of the ratings (they correlate by .99); the ratings are taken.

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

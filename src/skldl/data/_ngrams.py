"""Texts as features: which words and pairs of words they hold."""

import html
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from skldl.exceptions import ParameterError
from skldl.utils.parameters import COUNT, check_value

# addresses; words with their apostrophes, @names and #tags; emoticons; runs of ! and ?
_TOKEN = r"https?://\S+|[@#]?\w+(?:['’]\w+)*|[:;=8xX][-o^']?[()\[\]DPpO/\\|*]+|<3|[!?]+"


def word_presence(texts: Sequence[str], n_features: int, *, called: str) -> tuple[sparse.csr_matrix, tuple[str, ...]]:
    """Presence of the ``n_features`` words and pairs of words that most texts hold, as zeros and ones, and their names.

    Words are in lower case; emoticons and runs of exclamation and question marks count as words. Words in capitals of
    at least two letters count a second time, in capitals, since capitals carry information. Character references such
    as ``&amp;`` are decoded. ``called`` is what the message calls the texts.
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
    """The columns that most texts hold, in falling order, and their names; ties keep the order of the alphabet."""
    if n_features > len(names):
        raise ParameterError(f"n_features={n_features} is more than the {len(names)} different {what}.")
    n_texts = np.asarray(presence.sum(axis=0)).ravel()
    chosen = np.argsort(-n_texts, kind="stable")[: int(n_features)]
    X = sparse.csr_matrix(presence[:, chosen])
    X.sort_indices()
    return X, tuple(names[chosen].tolist())

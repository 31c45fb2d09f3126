"""The scikit-learn transformers that `TableEncoder` puts together, one for each kind of column."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skldl.data._dates import as_dates, date_format, date_parts

TEXT_NGRAMS: dict[str, dict[str, Any]] = {
    "words": {"analyzer": "word", "ngram_range": (1, 2)},
    "characters": {"analyzer": "char_wb", "ngram_range": (2, 4)},
}
EMPTY_TEXT = "The text column {!r} is empty in every row. Drop it."
PROSE_WORDS = 3
"""A text column whose cells have at least this mean number of words is treated as prose."""


def column_transformer(
    numbers: list[str],
    categories: list[str],
    text: dict[str, str],
    *,
    max_categories: int,
    max_text_features: int,
    hashed_text: int | None,
    dense: bool,
) -> ColumnTransformer:
    """The steps for the typed columns of a table, not yet fitted.

    Parameters
    ----------
    numbers, categories : list of str
        Columns of each kind.
    text : dict
        From the name of each text column to what it is cut into, "words" or "characters".
    max_categories, max_text_features, hashed_text, dense : int or bool
        As in `TableEncoder`.

    Returns
    -------
    ColumnTransformer
        With the steps "numbers", "categories" and "text <column>", as far as there are such columns.
    """
    steps: list[tuple[str, Any, Any]] = []
    if numbers:
        imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        steps.append(("numbers", make_pipeline(imputer, StandardScaler()), numbers))
    if categories:
        one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=max_categories, dtype=np.float64)
        steps.append(("categories", one_hot, categories))
    for name, cut in text.items():
        if hashed_text is None:
            grams: Any = TfidfVectorizer(**TEXT_NGRAMS[cut], max_features=max_text_features, sublinear_tf=True)
        else:
            hashes = HashingVectorizer(**TEXT_NGRAMS[cut], n_features=hashed_text, alternate_sign=False, norm=None)
            grams = make_pipeline(hashes, TfidfTransformer(sublinear_tf=True))
        steps.append((f"text {name}", grams, name))
    return ColumnTransformer(steps, sparse_threshold=0.0 if dense else 0.3, verbose_feature_names_out=False)


def text_cut(text_ngrams: str, mean_words: float) -> str:
    """What a text column is cut into, "words" or "characters", by the mean number of words in its cells."""
    if text_ngrams != "auto":
        return text_ngrams
    return "words" if mean_words >= PROSE_WORDS else "characters"


def text_features(step: Any) -> list[str]:
    """Names of the features of one text column: its n-grams, or the numbers of the hashes."""
    if isinstance(step, Pipeline):
        return [f"#{place}" for place in range(step[0].n_features)]
    return [str(gram).replace(" ", "_") for gram in step.get_feature_names_out()]


def written_and_varying(column: pd.Series) -> tuple[str, list[str]]:
    """How the dates of a column are written, and those of their parts that are not the same everywhere."""
    written = date_format(column)
    assert written is not None
    parts = date_parts(as_dates(column, written))
    return written, [name for name in parts if parts[name].nunique() > 1] or ["days"]

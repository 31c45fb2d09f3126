"""What `TableEncoder` does with columns by their kind: cells in the type of the kind, then scikit-learn's transformers.

The functions take the encoder, so that its fit to a whole table, its fit in chunks and what else reads tables for a
model share them.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skldl.data._cells import (
    BOOLEAN,
    CATEGORY,
    DATE,
    NUMBER,
    TEXT,
    as_words,
    checked_numbers,
    checked_truth,
    refuse_cells,
)
from skldl.data._dates import as_dates, date_parts, fitting_formats
from skldl.exceptions import TableError
from skldl.utils.column_names import list_names

FORMAT = 2
"""1: version 0.1, which took 3.0 in text for another category than 3, and dates for categories."""
MISSING_CATEGORY = "(missing)"
TEXT_NGRAMS: dict[str, dict[str, Any]] = {
    "words": {"analyzer": "word", "ngram_range": (1, 2)},
    "characters": {"analyzer": "char_wb", "ngram_range": (2, 4)},
}
LEAST_TEXT = {"words": r"\b\w\w", "characters": r"\S"}
"""What text must hold somewhere so that there is an n-gram of it."""
EMPTY_TEXT = "The text column {!r} is empty in every row. Drop it."
NO_WORDS = (
    "The text column {!r} holds no word of two letters or more. Cut it into letters with text_ngrams='characters', or "
    "take it as categories."
)
PROSE_WORDS = 3
"""A text column whose cells have at least this mean number of words is treated as prose."""


def begin_fit(encoder: Any, columns: list[str]) -> None:
    """Check the parameters of an encoder and the names of the columns of its table, and keep the names."""
    check_text_ngrams(encoder.text_ngrams)
    for name in (*encoder.text, *encoder.categories):
        if name not in columns:
            raise TableError(f"The table has no column {name!r}. Its columns are {list_names(columns)}.")
    if not columns:
        raise TableError("No column is left to learn from: all are labels, weights, groups or dropped.")
    for name, (kind, detail) in (encoder.known_columns or {}).items():
        if kind not in (NUMBER, BOOLEAN, DATE, CATEGORY, TEXT) or (kind in (DATE, TEXT) and not detail):
            raise TableError(
                f"known_columns: {name!r} is {(kind, detail)!r}, which is no kind of column. know_columns sets it."
            )
    encoder.format_ = FORMAT
    encoder.feature_names_in_, encoder.n_features_in_ = np.array(columns, dtype=object), len(columns)


def check_text_ngrams(text_ngrams: str) -> None:
    """Refuse unknown ways to cut text."""
    if text_ngrams not in ("auto", *TEXT_NGRAMS):
        raise TableError(f"text_ngrams={text_ngrams!r} must be one of auto, {', '.join(TEXT_NGRAMS)}.")


def given_kind(encoder: Any, name: str) -> str:
    """The kind of a column as far as the parameters say it, else an empty text."""
    if name in encoder.text:
        return TEXT
    if name in encoder.categories:
        return CATEGORY
    kind = (encoder.known_columns or {}).get(name, ("", ""))[0]
    return "" if kind == TEXT else kind


def known_detail(encoder: Any, name: str, kind: str) -> str:
    """How the dates of a column are written, or its text is cut, if ``known_columns`` says it of this kind."""
    known, detail = (encoder.known_columns or {}).get(name, ("", ""))
    return str(detail) if known == kind else ""


def columns_of(encoder: Any, *kinds: str) -> list[str]:
    """The columns of these kinds."""
    return [name for name, kind in encoder.kinds_.items() if kind in kinds]


def dates_of(encoder: Any) -> dict[str, tuple[str, list[str]]]:
    """How the dates of each column are written and which parts of them vary; version 0.1 knew no dates."""
    return getattr(encoder, "dates_", {})


def number_columns(encoder: Any) -> list[str]:
    """The columns of numbers after typing, the parts of dates among them."""
    parts = [f"{name}: {part}" for name, (_, varying) in dates_of(encoder).items() for part in varying]
    return [*columns_of(encoder, NUMBER, BOOLEAN), *parts]


def words_of(encoder: Any, column: pd.Series, filler: str) -> pd.Series:
    """The cells of a column as words, with a filler where they are missing."""
    return as_words(column, filler, as_written=getattr(encoder, "format_", 1) < FORMAT)


def typed_columns(encoder: Any, table: pd.DataFrame, names: Iterable[str] | None = None) -> pd.DataFrame:
    """The columns that the encoder knows, or some of them, each in the type of its kind; dates become several."""
    names = list(encoder.kinds_ if names is None else names)
    # Numbers that need no change are taken in one block: tables may have many thousands of them.
    dtypes = dict(zip(table.columns, table.dtypes, strict=True))
    ready = {name: None for name in names if encoder.kinds_[name] == NUMBER and dtypes[name] == np.float64}
    block = table[list(ready)]
    for place in np.flatnonzero(np.isinf(block.to_numpy()).any(axis=0)):
        checked_numbers(block.iloc[:, place])  # raises
    typed: dict[str, pd.Series] = {}
    for name in names:
        if name not in ready:
            typed |= typed_column(encoder, table[name])
    others = pd.DataFrame(typed, index=table.index)
    return pd.concat([block, others], axis=1) if ready else others


def typed_column(encoder: Any, column: pd.Series) -> dict[str, pd.Series]:
    """A column in the type of its kind, under its name; the parts of dates under names of their own."""
    name, kind = str(column.name), encoder.kinds_[column.name]
    if kind == NUMBER:
        return {name: checked_numbers(column, "the model expects a number")}
    if kind == BOOLEAN:
        return {name: checked_truth(column)}
    if kind == DATE:
        written, varying = dates_of(encoder)[name]
        dates = as_dates(column, written)
        refuse_cells(column, dates.isna() & column.notna(), "the model expects a date")
        parts = date_parts(dates)
        return {f"{name}: {part}": parts[part] for part in varying}
    return {name: words_of(encoder, column, MISSING_CATEGORY if kind == CATEGORY else "")}


def column_transformer(encoder: Any, numbers: list[str], text: dict[str, str]) -> ColumnTransformer:
    """The steps for the typed columns of a table, not yet fitted: "numbers", "categories" and "text <column>".

    ``text`` maps the name of each text column to what it is cut into, "words" or "characters".
    """
    steps: list[tuple[str, Any, Any]] = []
    if numbers:
        imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
        steps.append(("numbers", make_pipeline(imputer, StandardScaler()), numbers))
    if categories := columns_of(encoder, CATEGORY):
        one_hot = OneHotEncoder(
            handle_unknown="infrequent_if_exist", max_categories=encoder.max_categories, dtype=np.float64
        )
        steps.append(("categories", one_hot, categories))
    for name, cut in text.items():
        if encoder.hashed_text is None:
            grams: Any = TfidfVectorizer(**TEXT_NGRAMS[cut], max_features=encoder.max_text_features, sublinear_tf=True)
        else:
            hashes = HashingVectorizer(
                **TEXT_NGRAMS[cut], n_features=encoder.hashed_text, alternate_sign=False, norm=None
            )
            grams = make_pipeline(hashes, TfidfTransformer(sublinear_tf=True))
        steps.append((f"text {name}", grams, name))
    return ColumnTransformer(steps, sparse_threshold=0.0 if encoder.dense else 0.3, verbose_feature_names_out=False)


def text_cut(text_ngrams: str, mean_words: float) -> str:
    """What a text column is cut into, "words" or "characters", by the mean number of words in its cells."""
    if text_ngrams != "auto":
        return text_ngrams
    return "words" if mean_words >= PROSE_WORDS else "characters"


def cut_of(encoder: Any, column: pd.Series) -> str:
    """What a text column is cut into; one that has nothing to cut is refused."""
    words = words_of(encoder, column, "")
    cut = text_cut(encoder.text_ngrams, words.str.split().str.len().mean())
    if not has_text(words, cut):
        raise TableError((NO_WORDS if words.str.strip().any() else EMPTY_TEXT).format(str(column.name)))
    return cut


def has_text(words: pd.Series, cut: str) -> bool:
    """Whether there is anything to cut."""
    return bool(words.str.contains(LEAST_TEXT[cut]).any())


def text_features(step: Any) -> list[str]:
    """Names of the features of one text column: its n-grams, or the numbers of the hashes."""
    if isinstance(step, Pipeline):
        return [f"#{place}" for place in range(step[0].n_features)]
    return [str(gram).replace(" ", "_") for gram in step.get_feature_names_out()]


def written_and_varying(column: pd.Series, written: str = "") -> tuple[str, list[str]]:
    """How the dates of a column are written, if it is not known, and those of their parts that vary."""
    written = written or fitting_formats(column)[0]
    parts = date_parts(as_dates(column, written))
    return written, [name for name in parts if parts[name].nunique() > 1] or ["days"]

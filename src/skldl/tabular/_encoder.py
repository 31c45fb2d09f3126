"""`TableEncoder`: from a table of mixed columns to numbers, the first step of every pipeline that `skldl fit` makes.

Numbers are imputed by their median, with an indicator where values were missing, and standardised; categories become
one column each, and a category never seen in training becomes none of them; booleans are numbers; a date becomes its
year, month, weekday, hour and number of days; a text column becomes n-grams of words or letters. Columns are found by
name, so their order does not matter and further columns are ignored.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from skldl._typing import AnyArray
from skldl.data._cells import (
    BOOLEAN,
    CATEGORY,
    DATE,
    NUMBER,
    TEXT,
    as_frame,
    as_words,
    checked_numbers,
    checked_truth,
    kind_of,
    list_names,
    refuse_cells,
)
from skldl.data._dates import as_dates, date_format, date_parts
from skldl.exceptions import TableError

MISSING_CATEGORY = "(missing)"
BLOCK_ROWS = 10_000
LARGE = 50_000
TEXT_NGRAMS: dict[str, dict[str, Any]] = {
    "words": {"analyzer": "word", "ngram_range": (1, 2)},
    "characters": {"analyzer": "char_wb", "ngram_range": (2, 4)},
}
PROSE_WORDS = 3
"""A text column whose cells hold so many words, in the mean, is taken as prose."""
FORMAT = 2
"""1: version 0.1, which took 3.0 in text for another category than 3, and dates for categories."""


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a DataFrame with numbers, categories, booleans, text and missing values into features.

    Parameters
    ----------
    text : sequence of str, default=()
        Columns of prose, to be cut into n-grams.
    categories : sequence of str, default=()
        Columns to take as categories though they hold numbers, such as a postcode.
    max_categories : int, default=100
        At most so many features for each column of categories; the rarer categories share one of them.
    max_text_features : int, default=2000
        At most so many n-grams for each text column, the most frequent ones.
    dense : bool, default=False
        Whether the features must be an array; otherwise they are a sparse matrix where most of them are zero.
    text_ngrams : {"auto", "words", "characters"}, default="auto"
        What text is cut into: single words and pairs of neighbouring words; or pieces of two to four letters, which
        serve single words, languages without blanks between words, compounds and misspelt words. "auto" takes words
        for columns whose cells hold three words or more in the mean, and characters for others.

    Attributes
    ----------
    kinds_ : dict
        From the name of each column to "number", "boolean", "date", "category" or "text".
    dates_ : dict
        From the name of each column of dates to how they are written and which parts of them vary.
    ranges_ : dict
        From the name of each column of numbers to its least and greatest value.
    feature_names_in_ : ndarray of str
        Names of the columns, in the order of the training table.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import TableEncoder
    >>> table = pd.DataFrame({"age": ["31", None, "54"], "town": ["Ulm", "Bonn", "Ulm"]})
    >>> encoder = TableEncoder().fit(table)
    >>> encoder.kinds_
    {'age': 'number', 'town': 'category'}
    >>> list(encoder.get_feature_names_out())
    ['age', 'age is missing', 'town=Bonn', 'town=Ulm']
    """

    def __init__(
        self,
        text: Sequence[str] = (),
        categories: Sequence[str] = (),
        max_categories: int = 100,
        max_text_features: int = 2000,
        dense: bool = False,
        text_ngrams: str = "auto",
    ) -> None:
        self.text = text
        self.categories = categories
        self.max_categories = max_categories
        self.max_text_features = max_text_features
        self.dense = dense
        self.text_ngrams = text_ngrams

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find out the kind of each column and learn medians, scales, categories and n-grams.

        Parameters
        ----------
        X : DataFrame
            The training table, without its label columns.
        y : ignored
            There for scikit-learn.

        Returns
        -------
        self
            The fitted encoder.
        """
        table = as_frame(X)
        if self.text_ngrams not in ("auto", *TEXT_NGRAMS):
            raise TableError(f"text_ngrams={self.text_ngrams!r} must be one of auto, {', '.join(TEXT_NGRAMS)}.")
        for name in (*self.text, *self.categories):
            if name not in table.columns:
                raise TableError(f"The table has no column {name!r}. Its columns are {list_names(table.columns)}.")
        if not len(table.columns):
            raise TableError("No column is left to learn from: all are labels, weights, groups or dropped.")
        self.format_ = FORMAT
        self.kinds_ = {name: self._kind(table[name]) for name in table.columns}
        self.feature_names_in_ = np.array(list(table.columns), dtype=object)
        self.n_features_in_ = len(table.columns)
        self.dates_ = {name: _written_and_varying(table[name]) for name in self._of(DATE)}
        self.with_missing_, self.ranges_ = [], {}
        medians: dict[str, float] = {}
        for name in self.kinds_:  # one column at a time: a large table is large enough once
            for part, values in self._typed(table, [name]).items():
                if self.kinds_[name] in (NUMBER, BOOLEAN, DATE):
                    medians[str(part)] = float(values.median()) if values.notna().any() else np.nan  # pandas 2.2 warns
                    if values.isna().any():
                        self.with_missing_.append(str(part))
                    if self.kinds_[name] == NUMBER and values.notna().any():
                        self.ranges_[name] = (float(values.min()), float(values.max()))
        numbers = self._number_columns()
        self.with_missing_ = [name for name in numbers if name in set(self.with_missing_)]
        with config_context(transform_output="default"):  # what was said about the output is not for the parts
            if len(table) > LARGE and not self._of(CATEGORY, TEXT):
                self.encoder_ = self._fit_in_blocks(table, medians)
            else:
                typed = self._typed(table)
                self.encoder_ = self._fitted(self._encoder(typed, numbers), typed)
        return self

    def transform(self, X: Any) -> Any:
        """Turn a table into features.

        Parameters
        ----------
        X : DataFrame
            A table with the columns of the training table, in any order.

        Returns
        -------
        ndarray, sparse matrix or DataFrame
            One row of numbers for each row of the table; a DataFrame after ``set_output(transform="pandas")``.
        """
        check_is_fitted(self)
        table = as_frame(X)
        self.check_columns(table.columns)
        if not len(table):
            raise TableError("The table has no rows.")
        with config_context(transform_output="default"):
            features = self._in_blocks(table)
        output = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        return features.toarray() if sparse.issparse(features) and output != "default" else features

    def _fitted(self, encoder: ColumnTransformer, typed: pd.DataFrame) -> ColumnTransformer:
        try:
            return encoder.fit(typed)
        except ValueError as error:
            if "empty vocabulary" not in str(error):
                raise
            raise TableError(
                f"A text column ({list_names(self._of(TEXT))}) holds no word of two letters or more. Cut it into "
                "letters with text_ngrams='characters', or take it as categories."
            ) from error

    def _fit_in_blocks(self, table: pd.DataFrame, medians: dict[str, float]) -> ColumnTransformer:
        """Fit the steps for numbers without a copy of the table: from its medians, and some rows at a time.

        Three rows with the medians, and with gaps where a column has some, teach the imputer what all rows would.
        """
        numbers = self._number_columns()
        digest = pd.DataFrame([medians] * 3)[numbers]
        digest.loc[2, self.with_missing_] = np.nan
        encoder = self._encoder(digest, numbers).fit(digest)
        pipeline = encoder.named_transformers_["numbers"]
        imputer, scaler = pipeline[0], StandardScaler()
        for start in range(0, len(table), BLOCK_ROWS):
            scaler.partial_fit(imputer.transform(self._typed(table.iloc[start : start + BLOCK_ROWS])[numbers]))
        pipeline.steps[1] = (pipeline.steps[1][0], scaler)
        return encoder

    def _in_blocks(self, table: pd.DataFrame) -> Any:
        """Transform some rows at a time: the steps copy what they are given, and a large table is large enough once."""
        first = self.encoder_.transform(self._typed(table.iloc[:BLOCK_ROWS]))
        if len(table) <= BLOCK_ROWS:
            return first
        starts = range(BLOCK_ROWS, len(table), BLOCK_ROWS)
        others = (self.encoder_.transform(self._typed(table.iloc[at : at + BLOCK_ROWS])) for at in starts)
        if sparse.issparse(first):
            return sparse.vstack([first, *others], format="csr")
        features = np.empty((len(table), first.shape[1]), dtype=first.dtype)
        features[:BLOCK_ROWS] = first
        for start, part in zip(starts, others, strict=True):
            features[start : start + BLOCK_ROWS] = part
        return features

    def unusual(self, X: Any) -> dict[str, dict[str, int]]:
        """Count what the training table did not hold.

        Parameters
        ----------
        X : DataFrame
            A table as for `transform`.

        Returns
        -------
        dict
            ``"unknown_categories"`` and ``"far_outside_range"`` (a number farther from the range of the training table
            than this range is wide), by the name of the column; ``"empty_rows"``, under the name ``"rows"``.
        """
        check_is_fitted(self)
        table = as_frame(X)
        own = table[list(self.feature_names_in_)]
        unknown, outside = {}, {}
        for label, step, columns in self.encoder_.transformers_:
            if label == "categories":
                for name, known in zip(columns, step.categories_, strict=True):
                    words = self._words(own[name], MISSING_CATEGORY)
                    unknown[name] = int((own[name].notna() & ~words.isin(known)).sum())
        for name, (least, most) in getattr(self, "ranges_", {}).items():
            numbers, width = checked_numbers(own[name]), most - least
            outside[name] = int(((numbers < least - width) | (numbers > most + width)).sum())
        return {
            "unknown_categories": {name: count for name, count in unknown.items() if count},
            "far_outside_range": {name: count for name, count in outside.items() if count},
            "empty_rows": {"rows": count} if (count := int(own.isna().all(axis=1).sum())) else {},
        }

    def check_columns(self, columns: Iterable[str]) -> None:
        """Demand every column of the training table.

        Parameters
        ----------
        columns : iterable of str
            The columns that there are; further ones do not matter.
        """
        present = list(columns)
        known = set(present)
        lacking = [name for name in self.feature_names_in_ if name not in known]
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            raise TableError(
                f"The table lacks the column {lacking[0]!r}{more}, which the model was trained with. "
                f"It has {list_names(present)}."
            )

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Name the columns that `transform` gives.

        Parameters
        ----------
        input_features : ignored
            There for scikit-learn.

        Returns
        -------
        ndarray of str
            Such as ``age``, ``age is missing``, ``town=Ulm``, ``town=(rare)``, ``when: year``, ``when: Monday``,
            ``comment~goo_``, where the low line marks the end of a word.
        """
        check_is_fitted(self)
        names: list[str] = []
        for label, step, columns in self.encoder_.transformers_:
            if label == "numbers":
                names += [*columns, *(f"{name} is missing" for name in self.with_missing_)]
            elif label == "categories":
                names += [f"{n}={v}" for n, vs in zip(columns, _known_categories(step), strict=True) for v in vs]
            elif label.startswith("text "):
                names += [f"{columns}~{gram.replace(' ', '_')}" for gram in step.get_feature_names_out()]
        return np.array(names, dtype=object)

    def sources(self) -> list[str]:
        """Say for each feature that `transform` gives which column of the table it comes from.

        Returns
        -------
        list of str
            Names of columns, as many as there are features.
        """
        check_is_fitted(self)
        found: list[str] = []
        for label, step, columns in self.encoder_.transformers_:
            if label == "numbers":
                origin = {f"{name}: {part}": name for name, (_, parts) in self._dates().items() for part in parts}
                found += [origin.get(name, name) for name in (*columns, *self.with_missing_)]
            elif label == "categories":
                found += [n for n, vs in zip(columns, _known_categories(step), strict=True) for _ in vs]
            elif label.startswith("text "):
                found += [columns] * len(step.vocabulary_)
        return found

    def _kind(self, column: pd.Series) -> str:
        if column.name in self.text:
            return TEXT
        return CATEGORY if column.name in self.categories else kind_of(column)

    def _of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds_.items() if kind in kinds]

    def _dates(self) -> dict[str, tuple[str, list[str]]]:
        return getattr(self, "dates_", {})  # there were none in version 0.1

    def _number_columns(self) -> list[str]:
        parts = [f"{name}: {part}" for name, (_, varying) in self._dates().items() for part in varying]
        return [*self._of(NUMBER, BOOLEAN), *parts]

    def _words(self, column: pd.Series, filler: str) -> pd.Series:
        return as_words(column, filler, as_written=getattr(self, "format_", 1) < FORMAT)

    def _typed(self, table: pd.DataFrame, names: Iterable[str] | None = None) -> pd.DataFrame:
        """The columns of the schema, each in the type that its kind asks for; dates become several columns."""
        typed = {}
        for name in self.kinds_ if names is None else names:
            kind = self.kinds_[name]
            if kind == NUMBER:
                typed[name] = checked_numbers(table[name], "the model expects a number")
            elif kind == BOOLEAN:
                typed[name] = checked_truth(table[name])
            elif kind == DATE:
                written, varying = self._dates()[name]
                dates = as_dates(table[name], written)
                refuse_cells(table[name], dates.isna() & table[name].notna(), "the model expects a date")
                parts = date_parts(dates)
                typed |= {f"{name}: {part}": parts[part] for part in varying}
            else:
                typed[name] = self._words(table[name], MISSING_CATEGORY if kind == CATEGORY else "")
        return pd.DataFrame(typed, index=table.index)

    def _encoder(self, typed: pd.DataFrame, numbers: list[str]) -> ColumnTransformer:
        steps: list[tuple[str, Any, Any]] = []
        if numbers:
            imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
            steps.append(("numbers", make_pipeline(imputer, StandardScaler()), numbers))
        if categories := self._of(CATEGORY):
            one_hot = OneHotEncoder(
                handle_unknown="infrequent_if_exist", max_categories=self.max_categories, dtype=np.float64
            )
            steps.append(("categories", one_hot, categories))
        for name in self._of(TEXT):
            if not typed[name].str.strip().any():
                raise TableError(f"The text column {name!r} is empty in every row. Drop it.")
            words = typed[name].str.split().str.len().mean()
            cut = TEXT_NGRAMS[
                self.text_ngrams if self.text_ngrams != "auto" else "words" if words >= PROSE_WORDS else "characters"
            ]
            grams = TfidfVectorizer(**cut, max_features=self.max_text_features, sublinear_tf=True)
            steps.append((f"text {name}", grams, name))
        return ColumnTransformer(steps, sparse_threshold=0.0 if self.dense else 0.3, verbose_feature_names_out=False)


def _known_categories(one_hot: OneHotEncoder) -> list[list[str]]:
    """The categories of each column that have a feature of their own, and one name for the rare ones together."""
    known = []
    for values, rare in zip(one_hot.categories_, one_hot.infrequent_categories_, strict=True):
        if rare is None:
            known.append([str(value) for value in values])
        else:
            own = [str(value) for value in values if value not in set(rare)]
            known.append([*own, "(rare)"])
    return known


def _written_and_varying(column: pd.Series) -> tuple[str, list[str]]:
    """How the dates of a column are written, and those of their parts that are not the same everywhere."""
    written = date_format(column)
    assert written is not None
    parts = date_parts(as_dates(column, written))
    return written, [name for name in parts if parts[name].nunique() > 1] or ["days"]

"""`TableEncoder`: from a table of mixed columns to numbers, the first step of every pipeline that `skldl fit` makes.

Numbers are imputed by their median, with an indicator where values were missing, and standardised; categories become
one column each, and a category never seen in training becomes none of them; booleans are numbers; a text column becomes
character n-grams. Columns are found by name, so their order does not matter and further columns are ignored.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from skldl.data._cells import (
    as_frame,
    as_numbers,
    as_words,
    checked_numbers,
    checked_truth,
    is_plain_number,
    is_truth,
    list_names,
)
from skldl.exceptions import TableError

NUMBER, BOOLEAN, CATEGORY, TEXT = "number", "boolean", "category", "text"
MISSING_CATEGORY = "(missing)"


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a DataFrame with numbers, categories, booleans, text and missing values into features.

    Parameters
    ----------
    text : sequence of str, default=()
        Columns to cut into character n-grams.
    categories : sequence of str, default=()
        Columns to take as categories though they hold numbers, such as a postcode.
    max_categories : int, default=100
        At most so many features for each column of categories; the rarer categories share one of them.
    max_text_features : int, default=2000
        At most so many n-grams for each text column, the most frequent ones.
    dense : bool, default=False
        Whether the features must be an array; otherwise they are a sparse matrix where most of them are zero.

    Attributes
    ----------
    kinds_ : dict
        From the name of each column to "number", "boolean", "category" or "text".
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
    ) -> None:
        self.text = text
        self.categories = categories
        self.max_categories = max_categories
        self.max_text_features = max_text_features
        self.dense = dense

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
        for name in (*self.text, *self.categories):
            if name not in table.columns:
                raise TableError(f"The table has no column {name!r}. Its columns are {list_names(table.columns)}.")
        if not len(table.columns):
            raise TableError("No column is left to learn from: all are labels, weights, groups or dropped.")
        self.kinds_ = {name: self._kind(table[name]) for name in table.columns}
        self.feature_names_in_ = np.array(list(table.columns), dtype=object)
        self.n_features_in_ = len(table.columns)
        typed = self._typed(table)
        self.with_missing_ = [name for name in self._of(NUMBER, BOOLEAN) if typed[name].isna().any()]
        self.encoder_ = self._encoder(typed).fit(typed)
        return self

    def transform(self, X: Any) -> Any:
        """Turn a table into features.

        Parameters
        ----------
        X : DataFrame
            A table with the columns of the training table, in any order.

        Returns
        -------
        ndarray or sparse matrix
            One row of numbers for each row of the table.
        """
        check_is_fitted(self)
        table = as_frame(X)
        self.check_columns(table.columns)
        if not len(table):
            raise TableError("The table has no rows.")
        return self.encoder_.transform(self._typed(table))

    def check_columns(self, columns: Iterable[str]) -> None:
        """Demand every column of the training table.

        Parameters
        ----------
        columns : iterable of str
            The columns that there are; further ones do not matter.
        """
        present = list(columns)
        lacking = [name for name in self.feature_names_in_ if name not in present]
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            raise TableError(
                f"The table lacks the column {lacking[0]!r}{more}, which the model was trained with. "
                f"It has {list_names(present)}."
            )

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Name the columns that `transform` gives.

        Parameters
        ----------
        input_features : ignored
            There for scikit-learn.

        Returns
        -------
        ndarray of str
            Such as ``age``, ``age is missing``, ``town=Ulm``, ``town=(rare)``, ``comment~goo_``,
            where the low line marks the end of a word.
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
                found += [*columns, *self.with_missing_]
            elif label == "categories":
                found += [n for n, vs in zip(columns, _known_categories(step), strict=True) for _ in vs]
            elif label.startswith("text "):
                found += [columns] * len(step.vocabulary_)
        return found

    def _kind(self, column: pd.Series) -> str:
        if column.name in self.text:
            return TEXT
        if column.name in self.categories:
            return CATEGORY
        if is_truth(column):
            return BOOLEAN
        if is_plain_number(column):
            return NUMBER
        present = column.dropna()
        return CATEGORY if as_numbers(present).isna().any() else NUMBER

    def _of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds_.items() if kind in kinds]

    def _typed(self, table: pd.DataFrame) -> pd.DataFrame:
        """The columns of the schema, each in the type that its kind asks for."""
        typed = {}
        for name, kind in self.kinds_.items():
            if kind == NUMBER:
                typed[name] = checked_numbers(table[name], "the model expects a number")
            elif kind == BOOLEAN:
                typed[name] = checked_truth(table[name])
            else:
                typed[name] = as_words(table[name], MISSING_CATEGORY if kind == CATEGORY else "")
        return pd.DataFrame(typed, index=table.index)

    def _encoder(self, typed: pd.DataFrame) -> ColumnTransformer:
        steps: list[tuple[str, Any, Any]] = []
        if numbers := self._of(NUMBER, BOOLEAN):
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
            grams = TfidfVectorizer(
                analyzer="char_wb", ngram_range=(2, 4), max_features=self.max_text_features, sublinear_tf=True
            )
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

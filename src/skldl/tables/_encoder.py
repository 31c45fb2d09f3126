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
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from skldl.exceptions import NonFiniteError, NotNumericError, TableError

TRUE_WORDS = frozenset({"true", "yes", "t", "y"})
FALSE_WORDS = frozenset({"false", "no", "f", "n"})
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
    decimal : {".", ","}, default="."
        Decimal mark of numbers that come as text.
    max_text_features : int, default=2000
        At most so many n-grams for each text column, the most frequent ones.

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
    >>> from skldl.tables import TableEncoder
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
        decimal: str = ".",
        max_text_features: int = 2000,
    ) -> None:
        self.text = text
        self.categories = categories
        self.decimal = decimal
        self.max_text_features = max_text_features

    def fit(self, X: pd.DataFrame, y: Any = None) -> Self:
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
        table = _as_frame(X)
        for name in (*self.text, *self.categories):
            if name not in table.columns:
                raise TableError(f"The table has no column {name!r}. Its columns are {_names(table.columns)}.")
        if not len(table.columns):
            raise TableError("No column is left to learn from: all are labels, weights or dropped.")
        self.kinds_ = {name: self._kind(name, table[name]) for name in table.columns}
        self.feature_names_in_ = np.array(list(table.columns), dtype=object)
        self.n_features_in_ = len(table.columns)
        typed = self._typed(table)
        self.with_missing_ = [name for name in self._of(NUMBER, BOOLEAN) if typed[name].isna().any()]
        self.encoder_ = self._encoder().fit(typed)
        return self

    def transform(self, X: pd.DataFrame) -> Any:
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
        table = _as_frame(X)
        lacking = [name for name in self.feature_names_in_ if name not in table.columns]
        if lacking:
            more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            raise TableError(
                f"The table lacks the column {lacking[0]!r}{more}, which the model was trained with. "
                f"It has {_names(table.columns)}."
            )
        return self.encoder_.transform(self._typed(table))

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Name the columns that `transform` gives.

        Parameters
        ----------
        input_features : ignored
            There for scikit-learn.

        Returns
        -------
        ndarray of str
            Such as ``age``, ``age is missing``, ``town=Ulm``, ``comment~goo``.
        """
        check_is_fitted(self)
        names: list[str] = []
        for label, step, columns in self.encoder_.transformers_:
            if label == "numbers":
                names += [*columns, *(f"{name} is missing" for name in self.with_missing_)]
            elif label == "categories":
                names += [f"{n}={v}" for n, vs in zip(columns, step.categories_, strict=True) for v in vs]
            elif label.startswith("text "):
                names += [f"{columns}~{gram}" for gram in step.get_feature_names_out()]
        return np.array(names, dtype=object)

    def _kind(self, name: str, column: pd.Series) -> str:
        if name in self.text:
            return TEXT
        if name in self.categories:
            return CATEGORY
        if pd.api.types.is_bool_dtype(column):
            return BOOLEAN
        present = column.dropna()
        if pd.api.types.is_numeric_dtype(column):
            return NUMBER
        words = {str(value).strip().lower() for value in present.unique()}
        if words and words <= TRUE_WORDS | FALSE_WORDS:
            return BOOLEAN
        return CATEGORY if _numbers(present, self.decimal).isna().any() else NUMBER

    def _of(self, *kinds: str) -> list[str]:
        return [name for name, kind in self.kinds_.items() if kind in kinds]

    def _typed(self, table: pd.DataFrame) -> pd.DataFrame:
        """The columns of the schema, each in the type that its kind asks for."""
        typed = {}
        for name, kind in self.kinds_.items():
            column = table[name]
            if kind == NUMBER:
                typed[name] = _checked_numbers(name, column, self.decimal)
            elif kind == BOOLEAN:
                typed[name] = _checked_booleans(name, column)
            else:
                filler = MISSING_CATEGORY if kind == CATEGORY else ""
                typed[name] = _as_words(column, filler)
        return pd.DataFrame(typed, index=table.index)

    def _encoder(self) -> ColumnTransformer:
        steps: list[tuple[str, Any, Any]] = []
        if numbers := self._of(NUMBER, BOOLEAN):
            steps.append(("numbers", _number_pipeline(), numbers))
        if categories := self._of(CATEGORY):
            steps.append(("categories", OneHotEncoder(handle_unknown="ignore", dtype=np.float64), categories))
        for name in self._of(TEXT):
            grams = TfidfVectorizer(
                analyzer="char_wb", ngram_range=(2, 4), max_features=self.max_text_features, sublinear_tf=True
            )
            steps.append((f"text {name}", grams, name))
        return ColumnTransformer(steps, verbose_feature_names_out=False)


def _number_pipeline() -> Pipeline:
    return make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True), StandardScaler()
    )


def _as_frame(X: Any) -> pd.DataFrame:
    if hasattr(X, "to_pandas"):  # polars, pyarrow
        X = X.to_pandas()
    if not isinstance(X, pd.DataFrame):
        raise TableError(f"A table with named columns is needed (a DataFrame), not {type(X).__name__}.")
    return X.rename(columns=str)


def _names(columns: Iterable[str]) -> str:
    names = [repr(str(name)) for name in columns]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def _as_words(column: pd.Series, filler: str) -> pd.Series:
    """Text, the same for 3, 3.0 and "3", so that a category does not depend on how a file was written."""
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        words = column.map(lambda value: filler if pd.isna(value) else f"{value:.15g}")
    else:
        words = column.map(lambda value: filler if pd.isna(value) else str(value).strip())
    return words.astype(object)


def _numbers(column: pd.Series, decimal: str) -> pd.Series:
    """Numbers where text can be read as one, else NaN."""
    if pd.api.types.is_numeric_dtype(column):
        return column.astype(np.float64)
    text = column.astype(object).map(lambda value: value if pd.isna(value) else str(value).strip())
    if decimal == ",":
        text = text.map(lambda value: value.replace(",", ".") if isinstance(value, str) else value)
    return pd.to_numeric(text, errors="coerce").astype(np.float64)


def _checked_numbers(name: str, column: pd.Series, decimal: str) -> pd.Series:
    numbers = _numbers(column, decimal)
    if numbers.isna().sum() > column.isna().sum():
        row = int(np.argmax((numbers.isna() & column.notna()).to_numpy()))
        raise NotNumericError(
            f"Row {column.index[row] + 1} of column {name!r} holds {column.iloc[row]!r}, "
            "where the model expects a number."
        )
    if np.isinf(numbers.to_numpy()).any():
        row = int(np.argmax(np.isinf(numbers.to_numpy())))
        raise NonFiniteError(f"Row {column.index[row] + 1} of column {name!r} is infinite. Leave such cells empty.")
    return numbers


def _checked_booleans(name: str, column: pd.Series) -> pd.Series:
    if pd.api.types.is_bool_dtype(column) or pd.api.types.is_numeric_dtype(column):
        return column.astype(np.float64)
    words = column.map(lambda value: value if pd.isna(value) else str(value).strip().lower())
    meanings = {**dict.fromkeys(TRUE_WORDS, 1.0), "1": 1.0, **dict.fromkeys(FALSE_WORDS, 0.0), "0": 0.0}
    numbers = words.map(meanings).astype(np.float64)
    wrong = numbers.isna() & column.notna()
    if wrong.any():
        row = int(np.argmax(wrong.to_numpy()))
        raise NotNumericError(
            f"Row {column.index[row] + 1} of column {name!r} holds {column.iloc[row]!r}, "
            "where the model expects yes or no."
        )
    return numbers

"""`TableEncoder`: from a table of mixed columns to numbers, the first step of every pipeline that `skldl fit` makes.

Numbers are imputed by their median, with an indicator where values were missing, and standardised; categories become
one column each, and a category never seen in training becomes none of them; booleans are numbers; a date becomes its
year, month, weekday, hour and number of days; a text column becomes n-grams of words or letters. Columns are found by
name, so their order does not matter and further columns are ignored.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from skldl.data._cells import BOOLEAN, CATEGORY, DATE, NUMBER, TEXT, as_frame, checked_numbers
from skldl.data._column_kinds import kind_of
from skldl.data._dates import fitting_formats
from skldl.exceptions import TableError
from skldl.tabular._encoder_steps import (
    MISSING_CATEGORY,
    begin_fit,
    check_text_ngrams,
    column_transformer,
    columns_of,
    cut_of,
    dates_of,
    given_kind,
    has_text,
    known_detail,
    number_columns,
    text_features,
    typed_column,
    typed_columns,
    words_of,
    written_and_varying,
)
from skldl.tabular._known_categories import known_categories
from skldl.utils.column_names import check_columns, list_names
from skldl.utils.typing import AnyArray

BLOCK_ROWS = 10_000
LARGE = 50_000


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a DataFrame with numbers, categories, booleans, text and missing values into features.

    Parameters
    ----------
    text : sequence of str, default=()
        Columns of prose, to be cut into n-grams.
    categories : sequence of str, default=()
        Columns to take as categories though they hold numbers, such as a postcode.
    max_categories : int, default=100
        Maximum number of features for each column of categories; the rarer categories share one of them.
    max_text_features : int, default=2000
        Maximum number of n-grams for each text column; the most frequent ones are used.
    dense : bool, default=False
        Whether the features must be an array; otherwise they are a sparse matrix where most of them are zero.
    text_ngrams : {"auto", "words", "characters"}, default="auto"
        What text is cut into: single words and pairs of neighbouring words; or pieces of two to four letters, which
        serve single words, languages without blanks between words, compounds and misspelt words. "auto" takes words
        for columns whose cells hold three words or more in the mean, and characters for others.
    hashed_text : int, default=None
        Hash the n-grams of each text column to so many features, instead of keeping the most frequent ones; n-grams
        then have no names. `fit_chunks` needs it for text columns: counts of all n-grams can outgrow any memory.
    known_columns : dict, default=None
        From the name of a column to its kind and how its dates are written or its text is cut, as `know_columns` finds
        them in a whole table. A fit to some of its rows then takes each column for what it is in the whole table, and
        a text column without text in these rows gives no features. None: the fit finds the kinds in its own table.

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

    # for encoders in files from before the release of 0.2.0, which have no such parameters
    hashed_text: int | None = None
    known_columns: Mapping[str, tuple[str, str]] | None = None

    def __init__(
        self,
        text: Sequence[str] = (),
        categories: Sequence[str] = (),
        max_categories: int = 100,
        max_text_features: int = 2000,
        dense: bool = False,
        text_ngrams: str = "auto",
        hashed_text: int | None = None,
        known_columns: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self.text = text
        self.categories = categories
        self.max_categories = max_categories
        self.max_text_features = max_text_features
        self.dense = dense
        self.text_ngrams = text_ngrams
        self.hashed_text = hashed_text
        self.known_columns = known_columns

    def know_columns(self, X: Any) -> Self:
        """Set ``known_columns`` from a table, so that fits to some of its rows take every column for the same.

        A column may hold only numbers in most rows and a word in another: without the whole table, a fit to the former
        could not transform the latter.

        Parameters
        ----------
        X : DataFrame
            The whole table, without its label columns.

        Returns
        -------
        self
            The encoder, not fitted.

        Examples
        --------
        >>> import pandas as pd
        >>> from skldl.tabular import TableEncoder
        >>> table = pd.DataFrame({"remark": ["7", "8", "ill"]})
        >>> TableEncoder().fit(table[:2]).kinds_, TableEncoder().know_columns(table).fit(table[:2]).kinds_
        ({'remark': 'number'}, {'remark': 'category'})
        """
        check_text_ngrams(self.text_ngrams)
        table = as_frame(X)
        known: dict[str, tuple[str, str]] = {}
        for name in table.columns:
            if name in self.text:
                known[name] = (TEXT, cut_of(self, table[name]))
            elif name not in self.categories:
                kind = kind_of(table[name])
                known[name] = (kind, fitting_formats(table[name])[0] if kind == DATE else "")
        self.known_columns = known
        return self

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
        begin_fit(self, list(table.columns))
        self.kinds_ = {name: given_kind(self, name) or kind_of(table[name]) for name in table.columns}
        self.dates_ = {
            name: written_and_varying(table[name], known_detail(self, name, DATE)) for name in columns_of(self, DATE)
        }
        self.with_missing_, self.ranges_ = [], {}
        medians: dict[str, float] = {}
        for name in self.kinds_:  # one column at a time: a large table is large enough once
            if self.kinds_[name] not in (NUMBER, BOOLEAN, DATE):
                continue
            for part, column in typed_column(self, table[name]).items():
                values = column.to_numpy()
                present = values[~np.isnan(values)]
                medians[part] = float(np.median(present)) if len(present) else np.nan
                if len(present) < len(values):
                    self.with_missing_.append(part)
                if self.kinds_[name] == NUMBER and len(present):
                    self.ranges_[name] = (float(present.min()), float(present.max()))
        numbers = number_columns(self)
        self.with_missing_ = [name for name in numbers if name in set(self.with_missing_)]
        with config_context(transform_output="default"):  # the configured output container does not apply to the parts
            if len(table) > LARGE and not columns_of(self, CATEGORY, TEXT):
                self.encoder_ = self._fit_in_blocks(table, medians)
            else:
                typed = typed_columns(self, table)
                self.encoder_ = self._encoder(typed, numbers).fit(typed)
        return self

    def fit_chunks(self, read: Callable[[], Iterable[Any]]) -> Self:
        """Learn from a table that is read in chunks, two to four times: the same as `fit` learns from the whole.

        Parameters
        ----------
        read : callable
            Returns a new iterator over the chunks (DataFrames with the same columns) each time it is called.

        Returns
        -------
        self
            The fitted encoder. The memory needed does not depend on the number of rows.

        Examples
        --------
        >>> import pandas as pd
        >>> chunks = [pd.DataFrame({"age": [31, 54]}), pd.DataFrame({"age": [None, 40.0]})]
        >>> TableEncoder().fit_chunks(lambda: iter(chunks)).ranges_
        {'age': (31.0, 54.0)}
        """
        from skldl.tabular._chunked_encoder import ChunkedFit  # it needs this module

        fitting = ChunkedFit(self)
        while not fitting.done:
            for chunk in read():
                fitting.update(chunk)
            fitting.end_pass()
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

    def _fit_in_blocks(self, table: pd.DataFrame, medians: dict[str, float]) -> ColumnTransformer:
        """Fit the steps for numbers without a copy of the table: from its medians, and some rows at a time."""
        # three rows with the medians, and with gaps where a column has some, teach the imputer what all rows would
        numbers = number_columns(self)
        digest = pd.DataFrame([medians] * 3)[numbers]
        digest.loc[2, self.with_missing_] = np.nan
        encoder = self._encoder(digest, numbers).fit(digest)
        pipeline = encoder.named_transformers_["numbers"]
        imputer, scaler = pipeline[0], StandardScaler()
        for start in range(0, len(table), BLOCK_ROWS):
            scaler.partial_fit(imputer.transform(typed_columns(self, table.iloc[start : start + BLOCK_ROWS])[numbers]))
        pipeline.steps[1] = (pipeline.steps[1][0], scaler)
        return encoder

    def _in_blocks(self, table: pd.DataFrame) -> Any:
        """Transform some rows at a time: the steps copy their input, and large tables should not be copied."""
        first = self.encoder_.transform(typed_columns(self, table.iloc[:BLOCK_ROWS]))
        if len(table) <= BLOCK_ROWS:
            return first
        starts = range(BLOCK_ROWS, len(table), BLOCK_ROWS)
        others = (self.encoder_.transform(typed_columns(self, table.iloc[at : at + BLOCK_ROWS])) for at in starts)
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
        table = as_frame(X)[list(self.feature_names_in_)]
        unknown, outside = {}, {}
        for name, known in known_categories(self.encoder_).items():
            words = words_of(self, table[name], MISSING_CATEGORY)
            unknown[name] = int((table[name].notna() & ~words.isin(known.every)).sum())
        for name, (least, most) in getattr(self, "ranges_", {}).items():  # version 0.1 kept none
            numbers, width = checked_numbers(table[name]), most - least
            outside[name] = int(((numbers < least - width) | (numbers > most + width)).sum())
        return {
            "unknown_categories": {name: count for name, count in unknown.items() if count},
            "far_outside_range": {name: count for name, count in outside.items() if count},
            "empty_rows": {"rows": count} if (count := int(table.isna().all(axis=1).sum())) else {},
        }

    def check_columns(self, columns: Iterable[str]) -> None:
        """Demand every column of the training table.

        Parameters
        ----------
        columns : iterable of str
            The columns that there are; further ones do not matter.
        """
        check_columns(self.feature_names_in_, columns)

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
                names += [f"{n}={v}" for n, known in known_categories(self.encoder_).items() for v in known.features]
            elif label.startswith("text "):
                names += [f"{columns}~{gram}" for gram in text_features(step)]
        return np.array(names, dtype=object)

    def sources(self) -> list[str]:
        """Return the column of the table from which each feature of `transform` comes.

        Returns
        -------
        list of str
            Names of columns, as many as there are features.
        """
        check_is_fitted(self)
        found: list[str] = []
        for label, step, columns in self.encoder_.transformers_:
            if label == "numbers":
                origin = {f"{name}: {part}": name for name, (_, parts) in dates_of(self).items() for part in parts}
                found += [origin.get(name, name) for name in (*columns, *self.with_missing_)]
            elif label == "categories":
                found += [n for n, known in known_categories(self.encoder_).items() for _ in known.features]
            elif label.startswith("text "):
                found += [columns] * len(text_features(step))
        return found

    def _encoder(self, typed: pd.DataFrame, numbers: list[str]) -> ColumnTransformer:
        cuts = {}
        for name in columns_of(self, TEXT):
            known = known_detail(self, name, TEXT)
            if not known or has_text(typed[name], known):
                cuts[name] = known or cut_of(self, typed[name])
        if not (numbers or cuts or columns_of(self, CATEGORY)):
            raise TableError(
                f"Nothing is left to learn from: in these rows the text columns {list_names(self.text)} hold no text, "
                "and there are no others."
            )
        return column_transformer(self, numbers, cuts)

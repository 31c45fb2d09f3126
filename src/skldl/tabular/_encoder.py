"""`TableEncoder`: features of a table with columns of any kind, the first step of every pipeline of `skldl fit`.

Numbers are imputed by their median, with an indicator where values were missing, and standardised; categories become
one feature each, and a category never seen in training has none; truth values are numbers; a date becomes its year,
month, weekday, hour and number of days; a text column becomes n-grams of words or letters. Columns are found by name,
so their order does not matter and further columns are ignored.

The fitted state (see `skldl.tabular._encoder_fit`) consists of arrays and lists. Tables, JSON records and the export to
ONNX all use this state: there is no second encoder. Cells become typed cells (`_Cells`), then features.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, starmap
from operator import getitem, itemgetter, le, sub, truediv
from struct import Struct
from struct import error as StructError
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_is_fitted

from skldl.data._cells import (
    BOOLEAN,
    CATEGORY,
    DATE,
    NUMBER,
    TEXT,
    TRUTH_OR_DIGIT,
    as_frame,
    as_words,
    canonical_word,
)
from skldl.data._kinds import ColumnKind
from skldl.exceptions import TableError
from skldl.tabular._encoder_fit import (
    DATE_PARTS,
    KINDS,
    MISSING_CATEGORY,
    TEXT_NGRAMS,
    EncoderFit,
    Prose,
    check_encoder,
    ngram_counter,
    number_columns,
    typed_numbers,
)
from skldl.utils.column_names import check_columns
from skldl.utils.parameters import BOOLEAN as TRUE_OR_FALSE
from skldl.utils.parameters import NONE, integer
from skldl.utils.typing import AnyArray, BoolArray, FloatArray

RARE = "(rare)"
BLOCK_ROWS = 10_000
"""Number of rows encoded at a time: typed copies of all rows would take several times the memory of the table."""
MAX_DENSE_CELLS = 2**20
"""Features of records may be a dense array of up to 8 MiB: for a few rows, a sparse matrix takes longer to build."""
MAX_EXACT_INTEGER = 2**53
"""Larger integers are not all representable as floats."""
MAX_FLOAT = np.finfo(np.float64).max
NO_FEATURE = -1
Unusual = dict[str, dict[str, int]]


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a DataFrame with numbers, categories, booleans, dates, text and missing values as features.

    Parameters
    ----------
    text : sequence of str, default=()
        Columns of text, encoded by their n-grams.
    categories : sequence of str, default=()
        Columns of numbers to treat as categories, such as a postcode.
    max_categories : int, default=100
        Maximum number of features for each column of categories; the rarer categories share one of them.
    max_text_features : int, default=2000
        Maximum number of n-grams for each text column; the most frequent ones are used.
    dense : bool, default=False
        Whether the features must be an array; otherwise they are a sparse matrix if most of them are zero.
    text_ngrams : {"auto", "words", "characters"}, default="auto"
        N-grams of text columns: single words and pairs of neighbouring words; or two to four characters, for single
        words, languages without blanks between words, compounds and misspelt words. "auto" uses words for columns with
        a mean of three words or more in a cell, and characters for others.
    hashed_text : int, default=None
        Hash the n-grams of each text column to this number of features, instead of keeping the most frequent ones;
        n-grams then have no names. `fit_chunks` needs it for text columns: counts of all n-grams have no bound.
    known_columns : dict, default=None
        From the name of a column to its kind and how its dates are written or its text is cut, as `know_columns` finds
        them in a whole table. A fit to some of its rows then gives each column the kind that it has in the whole table,
        and a text column without text in these rows gets no features. None: the fit finds the kinds in its own table.

    Attributes
    ----------
    kinds_ : dict
        From the name of each column to "number", "boolean", "date", "category" or "text".
    dates_ : dict
        From the name of each column of dates to their format and to the list of their parts that vary.
    durations_ : list of str
        Names of the columns of numbers that held durations in the training table; the numbers are their seconds.
    ranges_ : dict
        From the name of each column of numbers to its minimum and maximum.
    typical_ : dict
        From the name of each column to its median, or its most frequent category or truth value; None if it is empty,
        and an empty text for columns of text, since a text is a row of the table.
    numbers_ : list of str
        Names of the first features: columns of numbers and of truth values, and parts of dates such as ``when: year``.
    medians_ : ndarray of shape (n_numbers,)
        Values that replace missing cells.
    with_missing_ : ndarray of shape (n_indicators,)
        Positions of the numbers that had missing cells in training. Each has an indicator, a feature after the numbers.
    means_, scales_ : ndarray of shape (n_numbers + n_indicators,)
        Means and standard deviations of imputed numbers and indicators, for their standardisation.
    categories_ : dict
        From the name of each column of categories to the categories with a feature of their own, in this order.
    rare_categories_ : dict
        From the name of each column of categories to the rare categories, which share the feature after the others.
    text_ngrams_ : dict
        From the name of each text column with features to the kind of its n-grams, "words" or "characters".
    vocabularies_ : dict
        From the name of each of these columns to its n-grams, in the order of its features; empty if they are hashed.
    idf_ : dict
        From the name of each of these columns to the inverse document frequencies of its features.
    is_sparse_ : bool
        Whether `transform` returns sparse matrices.
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

    _constraints: ClassVar = {
        "max_categories": integer(at_least=1),
        "max_text_features": integer(at_least=1),
        "dense": TRUE_OR_FALSE,
        "hashed_text": NONE | integer(at_least=1),
    }

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
        """Set ``known_columns`` from a table, so that fits to some of its rows use the same kinds of columns.

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
        check_encoder(self)
        table = as_frame(X)
        known: dict[str, tuple[str, str]] = {}
        texts, categories = set(self.text), set(self.categories)
        for name in table.columns:
            if name in texts:
                prose = Prose(name)
                prose.update(table[name])
                known[name] = (TEXT, prose.cut(self.text_ngrams))
            elif name not in categories:
                column = ColumnKind(name)
                column.update(table[name])
                kind = column.kind()
                known[name] = (kind, str(column.date_format()) if kind == DATE else "")
        self.known_columns = known
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Detect the kind of each column, and compute medians, scales, categories and n-grams.

        Medians of more than 200,000 rows are those of 200,000 rows drawn at random.

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
        fitting = EncoderFit(self, in_memory=True)
        fitting.update(table)
        fitting.end_pass()
        # the most frequent n-grams can only be found in all texts at once
        n_rows = len(table) if self.text and self.hashed_text is None else BLOCK_ROWS
        for start in range(0, len(table), n_rows):
            fitting.update(table.iloc[start : start + n_rows])
        fitting.end_pass()
        return self

    def fit_chunks(self, read: Callable[[], Iterable[Any]]) -> Self:
        """Fit the encoder to a table that is read twice in chunks.

        Medians of more than 200,000 rows are those of 200,000 rows drawn at random, or of 2²³ cells if there are more
        than 41 columns of numbers.

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
        fitting = EncoderFit(self)
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
            One row of numbers for each row of the table; a DataFrame after ``set_output(transform="pandas")`` or
            ``"polars"``.
        """
        table = self._checked_table(X)
        if not len(table):
            raise TableError("The table has no rows.")
        features = _joined((self._features(cells, not self.is_sparse_) for cells in self._blocks(table)), len(table))
        output = getattr(self, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
        return features.toarray() if sparse.issparse(features) and output != "default" else features

    def encode(self, X: Any) -> tuple[Any, Unusual]:
        """Turn a table into features, and count unusual cells.

        Parameters
        ----------
        X : DataFrame
            A table as for `transform`, with at least one row.

        Returns
        -------
        features : ndarray or sparse matrix
            As from `transform`.
        unusual : dict
            As from `unusual`.
        """
        table, unusual = self._checked_table(X), []

        def features() -> Iterator[Any]:
            for cells in self._blocks(table):
                unusual.append(self._unusual(cells))
                yield self._features(cells, not self.is_sparse_)

        return _joined(features(), len(table)), add_counts(unusual)

    def encode_records(self, records: Sequence[Any], *, dense: bool = False) -> tuple[Any, Unusual] | None:
        """Turn JSON records into features as `encode` does, without the overhead of a table.

        Parameters
        ----------
        records : sequence of mapping
            As a JSON parser returns them: mappings from the names of columns to cells.
        dense : bool, default=False
            Whether the features may be an array though `transform` returns sparse matrices, where that is faster.

        Returns
        -------
        features, unusual
            As from `encode`. None if the records must be made a table for `encode`: if the encoder has columns of
            dates, or a record has a number written as text, lacks a column or has a wrong cell.

        Examples
        --------
        >>> import pandas as pd
        >>> from skldl.tabular import TableEncoder
        >>> encoder = TableEncoder().fit(pd.DataFrame({"age": [1, 2, 3], "town": ["Ulm", "Bonn", "Ulm"]}))
        >>> encoder.encode_records([{"age": 2, "town": "Rome"}])
        (array([[0., 0., 0.]]), {'unknown_categories': {'town': 1}, 'far_outside_range': {}, 'empty_rows': {}})
        """
        cells = self._lookup.cells_of_records(records)
        if cells is None:
            return None
        dense = not self.is_sparse_ or (dense and len(records) * self._lookup.n_features <= MAX_DENSE_CELLS)
        return self._features(cells, dense), self._unusual(cells)

    def encode_usual(self, record: Mapping[str, Any]) -> tuple[list[float], list[int]] | None:
        """Turn one JSON record without unusual or missing cells into lists of Python numbers.

        For one row, most of the time of `encode_records` is the overhead of NumPy. With these lists, the service
        answers a request to a linear model in nine tenths of the time.

        Parameters
        ----------
        record : mapping
            As for `encode_records`.

        Returns
        -------
        tuple or None
            A list of floats, the first features (numbers and indicators of missing cells), and a list of the positions
            of further features that are one; all others are zero. None if a cell is missing, is an unknown category or
            is far outside the range of the training table, if the record needs a table, or if there are text columns.

        Examples
        --------
        >>> import pandas as pd
        >>> from skldl.tabular import TableEncoder
        >>> encoder = TableEncoder().fit(pd.DataFrame({"age": [1, 2, 3], "town": ["Ulm", "Bonn", "Ulm"]}))
        >>> encoder.encode_usual({"age": 2, "town": "Ulm"})
        ([0.0], [2])
        """
        return self._lookup.usual_cells(record)

    def unusual(self, X: Any) -> Unusual:
        """Count cells that are unlike the training table.

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
        return add_counts(map(self._unusual, self._blocks(self._checked_table(X))))

    def typed_cells(self, X: Any) -> dict[str, AnyArray]:
        """Return the cells of a table in the types of their columns, before they become features.

        Parameters
        ----------
        X : DataFrame
            A table as for `transform`.

        Returns
        -------
        dict of ndarray
            By the name of the column, or of the part of a date: floats, NaN where a cell is missing; words of columns
            of categories, ``(missing)`` where a cell is missing; text.

        Examples
        --------
        >>> import pandas as pd
        >>> from skldl.tabular import TableEncoder
        >>> table = pd.DataFrame({"age": ["31", "54.0"], "smoker": ["yes", "no"]})
        >>> TableEncoder().fit(table).typed_cells(table)
        {'age': array([31., 54.]), 'smoker': array([1., 0.])}
        """
        table = self._checked_table(X)
        cells: dict[str, AnyArray] = dict(
            zip(self.numbers_, typed_numbers(table, self.kinds_, self.dates_, self.durations_).T, strict=True)
        )
        for name, kind in self.kinds_.items():
            if kind in (CATEGORY, TEXT):
                cells[name] = as_words(table[name], MISSING_CATEGORY if kind == CATEGORY else "").to_numpy(dtype=object)
        return cells

    def check_columns(self, columns: Iterable[str]) -> None:
        """Raise an error unless all columns of the training table are present.

        Parameters
        ----------
        columns : iterable of str
            The columns that are present; further ones do not matter.
        """
        check_columns(self.feature_names_in_, columns)

    def get_feature_names_out(self, input_features: Any = None) -> AnyArray:
        """Return the names of the features.

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
        names = [*self.numbers_, *(f"{self.numbers_[at]} is missing" for at in self.with_missing_)]
        for name in self.categories_:
            names += [f"{name}={word}" for word in self.category_features(name)]
        for name, idf in self.idf_.items():
            grams = self.vocabularies_[name] or [f"#{number}" for number in range(len(idf))]
            names += [f"{name}~{gram.replace(' ', '_')}" for gram in grams]
        return np.array(names, dtype=object)

    def sources(self) -> list[str]:
        """Return the column of the table from which each feature of `transform` comes.

        Returns
        -------
        list of str
            Names of columns, as many as there are features.
        """
        check_is_fitted(self)
        found = number_columns(self.kinds_)
        for name, (_, parts) in self.dates_.items():
            found += [name] * len(parts)
        found += [found[at] for at in self.with_missing_]
        for name in self.categories_:
            found += [name] * len(self.category_features(name))
        for name, idf in self.idf_.items():
            found += [name] * len(idf)
        return found

    def category_features(self, name: str) -> list[str]:
        """Return the categories that the features of a column stand for.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        list of str
            Its categories that have a feature, and then ``(rare)`` if others share one.
        """
        return [*self.categories_[name], RARE] if self.rare_categories_[name] else self.categories_[name]

    def category_positions(self, name: str) -> tuple[dict[str, int], int]:
        """Return the position of the feature of each category among the features of its column.

        Parameters
        ----------
        name : str
            Name of the column.

        Returns
        -------
        positions : dict
            From each category of the training table to the position of its feature in `category_features`.
        of_unknown : int
            The position for any other category: that of the rare categories, or -1 if it has no feature.
        """
        own, rare = self.categories_[name], self.rare_categories_[name]
        positions = {word: at for at, word in enumerate(own)} | dict.fromkeys(rare, len(own))
        return positions, len(own) if rare else NO_FEATURE

    def _check_fitted_state(self) -> None:
        """Check that the attributes of an encoder from a model file fit together; raise `ValueError` otherwise."""
        kinds = self.kinds_
        n_numbers = sum(kind in (NUMBER, BOOLEAN) for kind in kinds.values())
        n_numbers += sum(len(parts) for _, parts in self.dates_.values())
        n_scaled = n_numbers + len(self.with_missing_)
        by_kind = {kind: [name for name in kinds if kinds[name] == kind] for kind in KINDS}
        n_grams = {name: len(self.vocabularies_.get(name, ())) or self.hashed_text for name in self.text_ngrams_}
        checks = {
            "kinds_": list(kinds) == list(self.feature_names_in_) and {*kinds.values()} <= {*KINDS},
            "dates_": list(self.dates_) == by_kind[DATE]
            and all({*parts} <= {*DATE_PARTS} for _, parts in self.dates_.values()),
            "durations_": {*self.durations_} <= {*by_kind[NUMBER]},
            "numbers_": len(self.numbers_) == n_numbers,
            "medians_": self.medians_.shape == (n_numbers,) and self.medians_.dtype == np.float64,
            "means_": self.means_.shape == (n_scaled,) and self.means_.dtype == np.float64,
            "scales_": self.scales_.shape == (n_scaled,) and self.scales_.dtype == np.float64,
            "with_missing_": {*self.with_missing_.tolist()} <= {*range(n_numbers)},
            "categories_": list(self.categories_) == by_kind[CATEGORY] == list(self.rare_categories_),
            "text_ngrams_": {*self.text_ngrams_} <= {*by_kind[TEXT]}
            and {*self.text_ngrams_.values()} <= {*TEXT_NGRAMS},
            "idf_": {name: idf.shape for name, idf in self.idf_.items()} == {name: (n,) for name, n in n_grams.items()},
            "_made_lookup": "_made_lookup" not in vars(self),
        }
        for name, is_right in checks.items():
            if not is_right:
                raise ValueError(f"{name} of a table encoder does not fit its other attributes")

    def _checked_table(self, X: Any) -> pd.DataFrame:
        check_is_fitted(self)
        table = as_frame(X)
        self.check_columns(table.columns)
        return table

    @property
    def _lookup(self) -> "_Lookup":
        """Lookup tables, made of the fitted attributes at first use; they are not written to model files."""
        if "_made_lookup" not in self.__dict__:
            check_is_fitted(self)
            self._made_lookup = _Lookup(self)
        return self._made_lookup

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_made_lookup"}

    def _blocks(self, table: pd.DataFrame) -> "Iterator[_Cells]":
        """Yield typed cells of a table, `BLOCK_ROWS` rows at a time."""
        lookup = self._lookup
        for start in range(0, len(table), BLOCK_ROWS):
            block = table.iloc[start : start + BLOCK_ROWS]
            numbers = typed_numbers(block, self.kinds_, self.dates_, self.durations_)
            words = [_words(block[name]) for name in lookup.categories]
            texts = [_words(block[name]) for name in lookup.texts]
            yield _Cells(numbers, *lookup.missing_and_outside(numbers), words, *lookup.codes(words), texts)

    def _features(self, cells: "_Cells", dense: bool) -> Any:
        """Turn typed cells into features, as an array or a sparse matrix."""
        scaled, n_rows = cells.numbers, len(cells.numbers)
        if cells.missing is not None:
            scaled = np.where(cells.missing, self.medians_, scaled)
        if len(self.with_missing_):
            shape = n_rows, len(self.with_missing_)
            gaps = np.zeros(shape) if cells.missing is None else cells.missing[:, self.with_missing_]
            scaled = np.concatenate([scaled, gaps], axis=1)
        scaled = np.subtract(scaled, self.means_, order="C")  # estimators and CSR matrices read rows
        scaled /= self.scales_
        if not (cells.codes or cells.texts):
            return scaled
        lookup = self._lookup
        grams = [self._tfidf(name, texts) for name, texts in zip(lookup.texts, cells.texts, strict=True)]
        grams = [matrix for matrix in grams if matrix is not None]
        if not dense:
            parts = [scaled] if self.numbers_ else []
            parts += [lookup.one_hot(cells.codes)] if cells.codes else []
            return sparse.hstack([*map(sparse.csr_matrix, parts), *grams], format="csr")
        X = np.zeros((n_rows, lookup.n_features))
        X[:, : scaled.shape[1]] = scaled
        if n_rows == 1:  # for one row, indexing with arrays takes longer than all other steps together
            for (code,) in cells.codes:
                if code != NO_FEATURE:
                    X[0, code] = 1.0
        elif cells.codes:
            codes = np.array(cells.codes).T
            X[np.nonzero(codes != NO_FEATURE)[0], codes[codes != NO_FEATURE]] = 1.0
        if grams:
            X[:, lookup.first_gram :] = sparse.hstack(grams).toarray()
        return X

    def _tfidf(self, name: str, texts: list[str | None]) -> Any:
        """Compute (1 + log count) · idf for the n-grams of each text, with rows of unit length."""
        if name not in self.idf_:
            return None  # the column held no text in the rows of the fit, see known_columns
        counts = self._lookup.counters[name].transform([text or "" for text in texts])
        np.log(counts.data, out=counts.data)
        counts.data += 1.0
        counts.data *= self.idf_[name][counts.indices]
        return normalize(counts, copy=False)

    def _unusual(self, cells: "_Cells") -> Unusual:
        """Count unusual cells, see `unusual`."""
        unusual: Unusual = {"unknown_categories": cells.unknown, "far_outside_range": {}, "empty_rows": {}}
        if cells.outside is not None:
            counts = zip(self.numbers_, cells.outside.sum(axis=0).tolist(), strict=True)
            unusual["far_outside_range"] = {name: count for name, count in counts if count}
        if cells.missing is not None or not self.numbers_:
            empty = range(len(cells.numbers)) if cells.missing is None else np.flatnonzero(cells.missing.all(axis=1))
            n_empty = sum(all(words[row] is None for words in (*cells.words, *cells.texts)) for row in empty)
            if n_empty:
                unusual["empty_rows"] = {"rows": n_empty}
        return unusual


class _Cells(NamedTuple):
    """Typed cells of some rows.

    ``numbers`` has the columns of `TableEncoder.numbers_`; ``missing`` marks the NaN in it and ``outside`` the numbers
    far outside the range of the training table (None: there are none). ``words`` and ``texts`` have one list for each
    column of categories and of text, with None for missing cells. ``codes`` are the positions of the features of the
    words, or `NO_FEATURE`; ``unknown`` counts the words that are not in the training table, by column.
    """

    numbers: FloatArray
    missing: BoolArray | None
    outside: BoolArray | None
    words: list[Any]
    codes: list[list[int]]
    unknown: dict[str, int]
    texts: list[list[str | None]]


class _Lookup:
    """Lookup tables of a fitted encoder, and the functions that read JSON records with them.

    ``positions`` maps, for each column of categories, each category to the position of its feature, and None to that of
    a missing cell. Numbers below ``lowest`` or above ``highest`` are far outside the range of the training table.
    """

    def __init__(self, encoder: TableEncoder) -> None:
        kinds, ranges = encoder.kinds_, encoder.ranges_
        self.numbers = number_columns(kinds)
        self.truth = [at for at, name in enumerate(self.numbers) if kinds[name] == BOOLEAN]
        self.has_dates = bool(encoder.dates_)
        # finite bounds for columns without a range, too: infinite numbers are then outside
        self.lowest, self.highest = np.full((2, len(encoder.numbers_)), [[-MAX_FLOAT], [MAX_FLOAT]])
        for at, name in enumerate(self.numbers):
            if name in ranges:
                low, high = ranges[name]
                self.lowest[at], self.highest[at] = low - (high - low), high + (high - low)
        self.categories, self.texts = list(encoder.categories_), [n for n, kind in kinds.items() if kind == TEXT]
        self.positions: list[dict[str | None, int]] = []
        self.of_unknown: list[int] = []
        self.first_code = end = len(encoder.means_)
        for name in self.categories:
            found, of_unknown = encoder.category_positions(name)
            positions: dict[str | None, int] = {word: end + at for word, at in found.items()}
            self.of_unknown.append(NO_FEATURE if of_unknown == NO_FEATURE else end + of_unknown)
            positions[None] = positions.get(MISSING_CATEGORY, self.of_unknown[-1])
            self.positions.append(positions)
            end += len(encoder.category_features(name))
        self.first_gram = end
        self.n_features = end + sum(map(len, encoder.idf_.values()))
        self.counters = {
            name: ngram_counter(cut, encoder.hashed_text, vocabulary=encoder.vocabularies_[name])
            for name, cut in encoder.text_ngrams_.items()
        }
        n_numbers = len(encoder.numbers_)
        # as lists for `usual_cells`, since single elements of NumPy arrays are slow
        self._lowest, self._highest = self.lowest.tolist(), self.highest.tolist()
        self._means, self._scales = encoder.means_[:n_numbers].tolist(), encoder.scales_[:n_numbers].tolist()
        self._no_gaps = ((0.0 - encoder.means_[n_numbers:]) / encoder.scales_[n_numbers:]).tolist()
        self._number_cells = _getter(self.numbers)
        self._word_cells = _getter(self.categories) if self.categories else None
        self._text_cells = _getter(self.texts) if self.texts else None
        self._pack = Struct(f"{len(self.numbers)}d").pack

    def codes(self, words: Sequence[Sequence[Any]]) -> tuple[list[list[int]], dict[str, int]]:
        """Return the positions of the features of the words of each column, and the numbers of unknown words.

        Raises `TypeError` for cells of JSON that are not plain values.
        """
        found: list[list[int]] = []
        unknown: dict[str, int] = {}
        for at, cells in enumerate(words):
            get = self.positions[at].get
            codes: list[Any] = list(map(get, cells))
            if None in codes:  # unknown, or written in another form, such as " 3.0" for 3
                codes = [get(_word_of(cell)) if code is None else code for code, cell in zip(codes, cells, strict=True)]
                if n_unknown := codes.count(None):
                    unknown[self.categories[at]] = n_unknown
                    codes = [self.of_unknown[at] if code is None else code for code in codes]
            found.append(codes)
        return found, unknown

    def missing_and_outside(self, numbers: FloatArray) -> tuple[BoolArray | None, BoolArray | None]:
        """Return masks of the missing numbers and of those far outside the range; None instead of an empty mask."""
        usual = (numbers >= self.lowest) & (numbers <= self.highest)
        if np.count_nonzero(usual) == usual.size:  # for one row three times as fast as all()
            return None, None
        missing = np.isnan(numbers)
        outside = ~(usual | missing)
        return missing if missing.any() else None, outside if outside.any() else None

    def one_hot(self, codes: list[list[int]]) -> Any:
        """Return the features of categories as a sparse matrix."""
        positions = np.array(codes).T
        has_feature = positions != NO_FEATURE
        ends = np.concatenate([[0], np.cumsum(has_feature.sum(axis=1))])
        indices = positions[has_feature] - self.first_code
        shape = (len(positions), self.first_gram - self.first_code)
        return sparse.csr_matrix((np.ones(len(indices)), indices, ends), shape=shape)

    def cells_of_records(self, records: Sequence[Any]) -> _Cells | None:
        """Return typed cells of JSON records; None if the records need a table."""
        if self.has_dates or not records:
            return None
        try:
            numbers = self._read_numbers(records)
            words = _columns(self._word_cells, records)
            codes, unknown = self.codes(words)
            texts = [list(map(_text_of, cells)) for cells in _columns(self._text_cells, records)]
        except (KeyError, TypeError, ValueError, OverflowError):
            return None  # a record is not an object or lacks a column, or a cell is not a plain value
        missing, outside = self.missing_and_outside(numbers)
        if outside is not None and np.isinf(numbers).any():
            return None
        return _Cells(numbers, missing, outside, words, codes, unknown, texts)

    def usual_cells(self, record: Any) -> tuple[list[float], list[int]] | None:
        """See `TableEncoder.encode_usual`."""
        if self._text_cells is not None or self.has_dates:
            return None
        codes: list[int] = []
        try:
            cells: Sequence[Any] = self._number_cells(record)
            if self.truth:
                cells = self._with_truth(cells)
            # comparing None or text with a number raises TypeError; comparisons with NaN are false
            if not (all(map(le, self._lowest, cells)) and all(map(le, cells, self._highest))):
                return None
            if self._word_cells is not None:
                words = self._word_cells(record)
                if None in words:
                    return None
                codes = list(map(getitem, self.positions, words))
            numbers = list(map(truediv, map(sub, cells, self._means), self._scales))
        except (KeyError, TypeError, OverflowError):
            return None
        return numbers + self._no_gaps, codes

    def _read_numbers(self, records: Sequence[Any]) -> FloatArray:
        """Read the numbers and truth values of JSON records, null as NaN; raise `TypeError` for any other cell."""
        rows: list[Sequence[Any]] = list(map(self._number_cells, records))
        if self.truth:
            rows = list(map(self._with_truth, rows))
        shape = (len(rows), len(self.numbers))
        try:  # np.array takes three times as long as packing the floats
            return np.frombuffer(b"".join(starmap(self._pack, rows))).reshape(shape)
        except (StructError, OverflowError):  # null, text, a list, or an integer that is too large for a float
            pass
        for cell in chain.from_iterable(rows):
            if not (
                cell is None or type(cell) in (float, bool) or (type(cell) is int and abs(cell) <= MAX_EXACT_INTEGER)
            ):
                raise TypeError
        return np.array(rows, dtype=np.float64).reshape(shape)

    def _with_truth(self, cells: Sequence[Any]) -> list[Any]:
        """Replace words such as "yes" in a record by truth values; raise `TypeError` or `KeyError` for other words."""
        found = list(cells)
        for at in self.truth:
            cell = found[at]
            if isinstance(cell, str):
                found[at] = TRUTH_OR_DIGIT[cell.strip().lower()]
            elif not (cell is None or isinstance(cell, bool) or cell in (0, 1)):
                raise TypeError
        return found


def _words(column: pd.Series) -> list[str | None]:
    """Return the words of a column, None for missing cells."""
    words: list[str | None] = as_words(column, "").tolist()
    for row in np.flatnonzero(column.isna()):
        words[row] = None
    return words


def _getter(names: list[str]) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
    """Return a function that returns the cells of a record with these names, as a tuple."""
    if len(names) > 1:
        return itemgetter(*names)
    return lambda record: tuple(record[name] for name in names)


def _columns(get: Callable[[Mapping[str, Any]], tuple[Any, ...]] | None, records: Sequence[Any]) -> list[Any]:
    """Return the cells of records column by column."""
    return [] if get is None else list(zip(*map(get, records), strict=True))


def _word_of(cell: Any) -> str | None:
    """Return a cell of JSON as `skldl.data` writes the same cell of a table as a word."""
    if isinstance(cell, str):
        return canonical_word(cell.strip())
    if (type(cell) is int and abs(cell) <= MAX_EXACT_INTEGER) or (type(cell) is float and math.isfinite(cell)):
        return f"{cell:.15g}"
    raise TypeError


def _text_of(cell: Any) -> str | None:
    return None if cell is None else _word_of(cell)


def _joined(parts: Iterable[Any], n_rows: int) -> Any:
    """Join the features of blocks of rows."""
    parts = iter(parts)
    first = next(parts)
    if first.shape[0] == n_rows:
        return first
    if sparse.issparse(first):
        return sparse.vstack([first, *parts], format="csr")
    features, at = np.empty((n_rows, first.shape[1])), 0
    for part in chain([first], parts):
        features[at : at + len(part)] = part
        at += len(part)
    return features


def add_counts(counted: Iterable[Unusual]) -> Unusual:
    """Add up what `TableEncoder.unusual` counted in several pieces of a table.

    Examples
    --------
    >>> pieces = [{"unknown_categories": {"town": 1}}, {"unknown_categories": {"town": 2, "code": 1}}]
    >>> add_counts(pieces)
    {'unknown_categories': {'town': 3, 'code': 1}, 'far_outside_range': {}, 'empty_rows': {}}
    """
    total: Unusual = {"unknown_categories": {}, "far_outside_range": {}, "empty_rows": {}}
    for unusual in counted:
        for what, counts in unusual.items():
            for name, count in counts.items():
                total[what][name] = total[what].get(name, 0) + count
    return total

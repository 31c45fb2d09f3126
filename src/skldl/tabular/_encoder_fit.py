r"""Fit of a `TableEncoder` in two passes over the rows of a table, which may come in chunks.

The first pass decides the kind of each column, the second adds up statistics of their cells. An imputed column of n
cells, m of them missing, with mean μ and sum of squared deviations S of the others and median h, has

.. math:: \bar x = \mu + \frac{m}{n}(h - \mu), \qquad \sum_i (x_i - \bar x)^2 = S + \frac{m (n - m)}{n} (h - \mu)^2 ,

so that means and scales need no third pass.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer

from skldl.data._cells import (
    BOOLEAN,
    CATEGORY,
    DATE,
    NUMBER,
    TEXT,
    as_frame,
    as_words,
    check_cells,
    checked_numbers,
    checked_truth,
    is_duration,
)
from skldl.data._kinds import ColumnKind, as_dates, date_parts, notes_on_columns, show_date
from skldl.exceptions import DataError, Parameter, TableError
from skldl.tabular._row_sample import RowSample
from skldl.utils.column_names import list_names
from skldl.utils.parameters import check_parameters
from skldl.utils.typing import AnyArray, FloatArray

KINDS = (NUMBER, BOOLEAN, DATE, CATEGORY, TEXT)
DATE_PARTS = list(date_parts(pd.Series(pd.to_datetime(["2024-05-31"]))))
MISSING_CATEGORY = "(missing)"
TEXT_NGRAMS: dict[str, dict[str, Any]] = {
    "words": {"analyzer": "word", "ngram_range": (1, 2)},
    "characters": {"analyzer": "char_wb", "ngram_range": (2, 4)},
}
_NGRAM = {"words": re.compile(r"\b\w\w"), "characters": re.compile(r"\S")}
"""Patterns of texts that have at least one n-gram of this kind."""
PROSE_WORDS = 3
"""A text column whose cells have at least this mean number of words is treated as prose; chosen by hand."""
MEDIAN_ROWS = 200_000
"""Medians of more rows are computed on a sample of this size; their standard error, 1.25 σ / √200,000, is .003 σ."""
MEDIAN_CELLS = 2**23
"""Maximum number of cells of this sample in a fit in chunks (64 MiB): with more than 41 columns, it has fewer rows."""
MAX_CATEGORIES_IN_CHUNKS = 100_000
"""Maximum number of different categories of a column in a fit in chunks, to bound memory; chosen by hand."""
SPARSE_BELOW = 0.3
"""Features are a sparse matrix if the fraction of nonzeros is smaller, as in scikit-learn's `ColumnTransformer`."""


def check_encoder(encoder: Any) -> None:
    """Check the parameters of an encoder that do not depend on a table."""
    check_parameters(encoder)
    check_text_ngrams(encoder.text_ngrams)


def check_text_ngrams(text_ngrams: str) -> None:
    """Reject unknown ways to cut text."""
    if text_ngrams not in ("auto", *TEXT_NGRAMS):
        raise TableError(Parameter("text_ngrams", text_ngrams), f" must be one of auto, {', '.join(TEXT_NGRAMS)}.")


def number_columns(kinds: Mapping[str, str]) -> list[str]:
    """Return the columns of numbers and of truth values; dates become numbers too, but several of them."""
    return [name for name, kind in kinds.items() if kind in (NUMBER, BOOLEAN)]


def part_names(dates: Mapping[str, tuple[str, Sequence[str]]]) -> list[str]:
    """Return the names of the parts of dates, such as ``when: year``."""
    return [f"{name}: {part}" for name, (_, parts) in dates.items() for part in parts]


def typed_numbers(
    table: pd.DataFrame,
    kinds: Mapping[str, str],
    dates: Mapping[str, tuple[str, Sequence[str]]],
    durations: Sequence[str],
) -> FloatArray:
    """Return the columns of numbers and of truth values, then the parts of dates; NaN for missing cells.

    Raises an error that names the first cell of another type. Durations in a column that is not one of ``durations``
    are an error, too: the unit of the numbers in the training table is unknown.
    """
    names, of_durations = number_columns(kinds), set(durations)
    dtypes = dict(zip(table.columns, table.dtypes, strict=True))
    n_parts = sum(len(parts) for _, parts in dates.values())
    # Fortran order: NumPy then adds up columns pairwise, with a rounding error that grows like log n instead of n
    numbers = np.empty((len(table), len(names) + n_parts), order="F")
    # columns of floats are copied as one block, since there may be thousands of them
    ready = [at for at, name in enumerate(names) if kinds[name] == NUMBER and dtypes[name] == np.float64]
    if ready:
        block = table[[names[at] for at in ready]].to_numpy()
        for column in np.flatnonzero(np.isinf(block).any(axis=0)):
            checked_numbers(table[names[ready[column]]])  # raises
        numbers[:, ready] = block
    for at in sorted({*range(len(names))}.difference(ready)):
        cells, is_number = table[names[at]], kinds[names[at]] == NUMBER
        if is_number and is_duration(cells) and names[at] not in of_durations:
            check_cells(cells, cells.notna(), "the model expects a number, in the unit of the training table")
        numbers[:, at] = checked_numbers(cells, "the model expects a number") if is_number else checked_truth(cells)
    at = len(names)
    for name, (written, parts) in dates.items():
        times = as_dates(table[name], written)
        check_cells(table[name], times.isna() & table[name].notna(), "the model expects a date")
        numbers[:, at : at + len(parts)] = date_parts(times)[parts]
        at += len(parts)
    return numbers


def ngram_counter(cut: str, hashed: int | None, **options: Any) -> Any:
    """Return a counter of n-grams: those of a vocabulary, or all of them by their hashes."""
    if hashed is not None:
        return HashingVectorizer(**TEXT_NGRAMS[cut], n_features=hashed, alternate_sign=False, norm=None)
    return CountVectorizer(**TEXT_NGRAMS[cut], **options, dtype=np.float64)


class EncoderFit:
    """Fit of a `TableEncoder` in two passes over the rows of a table, which may come in chunks.

    Call `update` with each chunk of a pass, then `end_pass`, until ``done`` is true. ``n_rows`` is known after the
    first pass.

    Parameters
    ----------
    encoder : TableEncoder
        The encoder to fit.
    in_memory : bool, default=False
        Whether the whole table is in memory, so that memory need not be bounded: n-grams of text are counted instead of
        hashed (all rows must then be one chunk), and medians of up to 200,000 rows are exact for any number of columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import TableEncoder
    >>> fitting = EncoderFit(TableEncoder())
    >>> while not fitting.done:
    ...     fitting.update(pd.DataFrame({"age": [31, 54]}))
    ...     fitting.update(pd.DataFrame({"age": [40.5, None]}))
    ...     fitting.end_pass()
    >>> fitting.n_rows, fitting.encoder.typical_
    (4, {'age': 40.5})
    """

    def __init__(self, encoder: Any, *, in_memory: bool = False) -> None:
        check_encoder(encoder)
        self.encoder, self.in_memory = encoder, in_memory
        self.n_rows = self.n_passes = 0
        self.done = False
        self._columns: list[str] | None = None
        self._kinds: dict[str, ColumnKind] = {}
        self._prose: dict[str, Prose] = {}
        self._durations: set[str] = set()
        self._statistics: _Statistics | None = None

    def update(self, chunk: Any, file: str = "") -> None:
        """Add a chunk of the table; ``file`` is the name of its file, for messages."""
        table = as_frame(chunk)
        if self._columns is None:
            self._begin(list(table.columns))
        elif list(table.columns) != self._columns:
            raise TableError("The chunks of the table have different columns. All need the same, in the same order.")
        if not len(table):
            return
        if self._statistics is not None:
            self._statistics.update(table)
            return
        self.n_rows += len(table)
        self._durations |= {name for name, dtype in table.dtypes.items() if dtype.kind == "m"}
        for name, kind in self._kinds.items():
            kind.update(table[name], file)
        for name, prose in self._prose.items():
            prose.update(table[name])

    def end_pass(self) -> None:
        """End a pass, after all chunks."""
        self.n_passes += 1
        if not self.n_rows:
            raise TableError("The table has no rows.")
        if self._statistics is None:
            self._decide_kinds()
            self._statistics = _Statistics(self.encoder, in_memory=self.in_memory)
        elif self._statistics.n_rows != self.n_rows:
            raise DataError(f"The table had {self.n_rows:,} rows, and now has {self._statistics.n_rows:,}: it changed.")
        else:
            self._statistics.finish()
            self.done = True

    def notes(self) -> list[str]:
        """Return notes for the user about the columns; raise an error for a column of numbers with a few words."""
        counts = {} if self._statistics is None else self._statistics.counts
        return notes_on_columns(
            self._kinds, {name: len(set(found) - {MISSING_CATEGORY}) for name, found in counts.items()}
        )

    def _begin(self, columns: list[str]) -> None:
        """Check the parameters of the encoder against the names of the columns."""
        encoder = self.encoder
        present, given = set(columns), {*encoder.text, *encoder.categories}
        for name in (*encoder.text, *encoder.categories):
            if name not in present:
                raise TableError(f"The table has no column {name!r}. Its columns are {list_names(columns)}.")
        if not columns:
            raise TableError("No column is left to learn from: all are labels, weights, groups or dropped.")
        for name, (kind, detail) in (encoder.known_columns or {}).items():
            if kind not in (NUMBER, BOOLEAN, DATE, CATEGORY, TEXT) or (kind in (DATE, TEXT) and not detail):
                shown = Parameter("known_columns", {name: (kind, detail)})
                raise TableError(shown, " is no kind of column. know_columns sets this parameter.")
        self._columns = columns
        self._prose = {name: Prose(name) for name in encoder.text}
        given |= {name for name, (kind, _) in (encoder.known_columns or {}).items() if kind != TEXT}
        self._kinds = {name: ColumnKind(name) for name in columns if name not in given}
        encoder.feature_names_in_, encoder.n_features_in_ = np.array(columns, dtype=object), len(columns)

    def _decide_kinds(self) -> None:
        """Set the kinds of the columns, the formats of dates and the n-grams of texts."""
        encoder = self.encoder
        known, categories = dict(encoder.known_columns or {}), set(encoder.categories)
        encoder.kinds_, encoder.dates_, encoder.text_ngrams_ = {}, {}, {}
        for name in self._columns or ():
            kind, detail = known.get(name, ("", ""))
            if name in self._prose:
                encoder.kinds_[name] = TEXT
                cut = detail if kind == TEXT else ""
                # a column that is known to be text gets no features if these rows have no text in it
                if not cut or cut in self._prose[name].holds:
                    encoder.text_ngrams_[name] = cut or self._prose[name].cut(encoder.text_ngrams)
            elif name in categories:
                encoder.kinds_[name] = CATEGORY
            else:
                if name in self._kinds:
                    kind, detail = self._kinds[name].kind(), str(self._kinds[name].date_format())
                encoder.kinds_[name] = kind
                if kind == DATE:
                    encoder.dates_[name] = (detail, DATE_PARTS)
        if encoder.text_ngrams_ and encoder.hashed_text is None and not self.in_memory:
            raise TableError(
                f"The text column {next(iter(encoder.text_ngrams_))!r} is read in chunks: set ",
                Parameter("hashed_text", 16384),
                ", or another number of features to which its n-grams are hashed.",
            )
        if not encoder.text_ngrams_ and set(encoder.kinds_.values()) == {TEXT}:
            raise TableError(
                f"Nothing is left to learn from: in these rows the text columns {list_names(encoder.text)} hold no "
                "text, and there are no others."
            )
        encoder.durations_ = [
            name for name, kind in encoder.kinds_.items() if kind == NUMBER and name in self._durations
        ]
        encoder.numbers_ = [*number_columns(encoder.kinds_), *part_names(encoder.dates_)]


class Prose:
    """Number of words and possible n-grams of a text column, chunk by chunk."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.n_rows = self.n_words = 0
        self.holds: set[str] = set()

    def update(self, column: pd.Series) -> None:
        """Add a chunk."""
        texts = as_words(column, "").tolist()
        self.n_rows += len(texts)
        self.n_words += sum(len(text.split()) for text in texts)
        self.holds |= {cut for cut in {*_NGRAM} - self.holds if any(map(_NGRAM[cut].search, texts))}

    def cut(self, text_ngrams: str) -> str:
        """Return the kind of n-grams, "words" or "characters"; raise an error if the column has none of this kind."""
        is_prose = self.n_words >= PROSE_WORDS * self.n_rows
        cut = text_ngrams if text_ngrams != "auto" else "words" if is_prose else "characters"
        if cut in self.holds:
            return cut
        if self.n_words:
            raise TableError(
                f"The text column {self.name!r} holds no word of two letters or more. Cut it into letters with ",
                Parameter("text_ngrams", "characters"),
                ", or take it as categories.",
            )
        raise TableError(
            f"The text column {self.name!r} is empty in every row. Leave it out with ",
            Parameter("drop", [self.name]),
            ".",
        )


class _Statistics:
    """Statistics of the columns, chunk by chunk, and the fitted attributes that follow from them.

    Means and squared deviations are updated by the formulas of Chan, Golub and LeVeque (1983).
    """

    def __init__(self, encoder: Any, *, in_memory: bool) -> None:
        self._encoder, self._in_memory = encoder, in_memory
        n_numbers = len(encoder.numbers_)
        self.n_rows = 0
        self.counts: dict[str, Counter[str]] = {
            name: Counter() for name, kind in encoder.kinds_.items() if kind == CATEGORY
        }
        self._n_values = np.zeros(n_numbers, dtype=np.int64)
        self._origin, self._mean, self._squares = np.zeros((3, n_numbers))  # means are relative to the origins
        self._minimum, self._maximum = np.full((2, n_numbers), np.nan)
        self._sample = RowSample(MEDIAN_ROWS if in_memory else min(MEDIAN_ROWS, MEDIAN_CELLS // max(1, n_numbers)))
        self._n_documents: dict[str, AnyArray] = {}
        self._vocabularies: dict[str, list[str]] = {}
        self._n_grams = 0

    def update(self, table: pd.DataFrame) -> None:
        """Add some rows."""
        encoder = self._encoder
        self.n_rows += len(table)
        if encoder.numbers_:
            self._add_numbers(typed_numbers(table, encoder.kinds_, encoder.dates_, encoder.durations_))
        for name, counts in self.counts.items():
            counts.update(as_words(table[name], MISSING_CATEGORY).tolist())
            if len(counts) > MAX_CATEGORIES_IN_CHUNKS and not self._in_memory:
                raise TableError(
                    f"Column {name!r} holds more than {MAX_CATEGORIES_IN_CHUNKS:,} different texts, too many for "
                    "categories. Leave it out with ",
                    Parameter("drop", [name]),
                    "; if it is prose, set ",
                    Parameter("text", [name]),
                    ".",
                )
        for name, cut in encoder.text_ngrams_.items():
            self._add_texts(name, cut, as_words(table[name], "").tolist())

    def _add_numbers(self, numbers: FloatArray) -> None:
        self._sample.update(pd.DataFrame(numbers, copy=False))
        present = ~np.isnan(numbers)
        n_new = present.sum(axis=0)
        # subtracting the first value first keeps digits of columns whose mean is large compared with their spread
        first = (self._n_values == 0) & (n_new > 0)
        self._origin[first] = numbers[present.argmax(axis=0), np.arange(numbers.shape[1])][first]
        self._minimum = np.fmin(self._minimum, np.fmin.reduce(numbers))
        self._maximum = np.fmax(self._maximum, np.fmax.reduce(numbers))
        distances = numbers - self._origin
        distances[~present] = 0.0
        mean = distances.sum(axis=0) / np.maximum(n_new, 1)
        distances -= mean
        distances[~present] = 0.0
        # mean and Σ(x − mean)² of both parts together (Chan, Golub and LeVeque): Σx² − (Σx)²/n would cancel digits
        change, fraction = mean - self._mean, n_new / np.maximum(self._n_values + n_new, 1)
        self._mean += change * fraction
        self._squares += (distances**2).sum(axis=0) + change**2 * self._n_values * fraction
        self._n_values += n_new

    def _add_texts(self, name: str, cut: str, texts: list[str]) -> None:
        encoder = self._encoder
        counter = ngram_counter(cut, encoder.hashed_text, max_features=encoder.max_text_features)
        grams = counter.fit_transform(texts)
        self._vocabularies[name] = [] if encoder.hashed_text else counter.get_feature_names_out().tolist()
        n_documents = np.bincount(grams.indices, minlength=grams.shape[1])
        self._n_documents[name] = self._n_documents.get(name, 0) + n_documents
        self._n_grams += grams.nnz

    def finish(self) -> None:
        """Set the fitted attributes, after all rows."""
        encoder, n_missing = self._encoder, self.n_rows - self._n_values
        sample = [values[~np.isnan(values)] for values in self._sampled()]
        medians = np.array([np.median(values) if len(values) else 0.0 for values in sample])
        encoder.typical_ = self._typical(sample, medians)
        change = np.where(self._n_values > 0, medians - self._origin - self._mean, 0.0)
        means = self._origin + (self._mean + change * n_missing / self.n_rows)
        variances = (self._squares + change**2 * n_missing * self._n_values / self.n_rows) / self.n_rows
        plain = number_columns(encoder.kinds_)
        encoder.ranges_ = {
            name: (float(self._minimum[at]), float(self._maximum[at]))
            for at, name in enumerate(plain)
            if encoder.kinds_[name] == NUMBER and self._n_values[at]
        }
        kept = list(range(len(plain)))
        for position, (name, (written, parts)) in enumerate(encoder.dates_.items()):
            first = len(plain) + position * len(parts)
            varying = [at for at in range(len(parts)) if self._minimum[first + at] < self._maximum[first + at]] or [0]
            encoder.dates_[name] = (written, [parts[at] for at in varying])
            kept += [first + at for at in varying]
        encoder.numbers_ = [*plain, *part_names(encoder.dates_)]
        encoder.medians_ = medians[kept]
        encoder.with_missing_ = np.flatnonzero(n_missing[kept])
        gaps = n_missing[kept][encoder.with_missing_] / self.n_rows
        encoder.means_ = np.concatenate([means[kept], gaps])
        variances = np.concatenate([variances[kept], gaps * (1.0 - gaps)])
        # scikit-learn's bound on the rounding error of the variance of a constant column, see StandardScaler
        eps = np.finfo(np.float64).eps
        rounding = self.n_rows * eps * variances + (self.n_rows * encoder.means_ * eps) ** 2
        encoder.scales_ = np.where(variances <= rounding, 1.0, np.sqrt(variances))
        self._set_categories()
        encoder.vocabularies_ = self._vocabularies
        encoder.idf_ = {name: np.log((1 + self.n_rows) / (1 + n)) + 1.0 for name, n in self._n_documents.items()}
        encoder.__dict__.pop("_made_lookup", None)
        n_filled = self.n_rows * (len(encoder.means_) + len(self.counts)) + self._n_grams
        fraction = n_filled / (self.n_rows * len(encoder.sources()))
        has_zeros = bool(self.counts or encoder.idf_)
        encoder.is_sparse_ = has_zeros and not encoder.dense and fraction < SPARSE_BELOW

    def _sampled(self) -> Iterator[FloatArray]:
        """Yield the sampled values of each column of numbers."""
        parts = [part.to_numpy() for part in self._sample.parts()]
        for at in range(len(self._n_values)):
            yield np.concatenate([part[:, at] for part in parts])

    def _typical(self, sample: list[FloatArray], medians: FloatArray) -> dict[str, Any]:
        """Return typical values in plain types; ``sample`` holds the sampled values that are not missing."""
        encoder, at = self._encoder, 0
        typical: dict[str, Any] = dict.fromkeys(encoder.kinds_)
        for name, kind in encoder.kinds_.items():
            if kind in (NUMBER, BOOLEAN):
                if self._n_values[at]:
                    is_mostly_true = bool(self._origin[at] + self._mean[at] > 0.5)
                    typical[name] = float(medians[at]) if kind == NUMBER else is_mostly_true
                at += 1
            elif kind == TEXT:
                typical[name] = ""
            elif kind == CATEGORY:
                words = {word: count for word, count in self.counts[name].items() if word != MISSING_CATEGORY}
                # ties are broken alphabetically, so that the order of the rows has no effect
                typical[name] = min(words, key=lambda word: (-words[word], word), default=None)
        for name, (written, parts) in encoder.dates_.items():
            days = sample[at]
            if len(days):  # the upper median: the mean of the two middle dates may be a date that is not in the table
                middle = np.partition(days, len(days) // 2)[len(days) // 2]
                typical[name] = show_date(pd.Timestamp(np.datetime64(round(middle * 86400), "s")), written)
            at += len(parts)
        return typical

    def _set_categories(self) -> None:
        """Divide the categories into rare ones and those with a feature of their own."""
        encoder = self._encoder
        encoder.categories_, encoder.rare_categories_ = {}, {}
        for name, counts in self.counts.items():
            words = sorted(counts)
            # a stable sort of sorted words: the order of the rows has no effect, as in scikit-learn's OneHotEncoder
            by_count = np.argsort([counts[word] for word in words], kind="stable").tolist()
            n_rare = len(words) - (encoder.max_categories - 1) if len(words) >= encoder.max_categories else 0
            rare = set(by_count[:n_rare])
            encoder.categories_[name] = [word for at, word in enumerate(words) if at not in rare]
            encoder.rare_categories_[name] = [words[at] for at in sorted(rare)]

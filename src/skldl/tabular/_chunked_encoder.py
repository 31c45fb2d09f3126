r"""Fit a `TableEncoder` by sums over chunks of a table.

The first pass decides the kind of each column (`ColumnKind`) and draws a sample of rows. The second adds up, with every
column in its type: numbers, means and squared deviations (by the update of Chan, Golub and LeVeque, 1983), counts of
categories, document frequencies of hashed n-grams, and where the medians lie. Further passes run only while a median is
not known exactly (`MedianSearch`). An imputed column of n cells, m of them missing, with mean μ and sum of squares S of
the others and median h, has

.. math:: \bar x = \mu + \frac{m}{n}(h - \mu), \qquad \sum_i (x_i - \bar x)^2 = S + \frac{m (n - m)}{n} (h - \mu)^2 ,

so that the scaler needs no pass of its own. The transformers themselves are fitted by scikit-learn to a few rows that
have the same medians, gaps, categories and order of their counts as the table; then the sums take their place.
"""

from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import StandardScaler

from skldl.data._cells import BOOLEAN, CATEGORY, DATE, NUMBER, TEXT, as_frame
from skldl.data._column_kinds import ColumnKind, notes_on_columns
from skldl.data._dates import date_parts, show_date
from skldl.exceptions import TableError
from skldl.tabular._encoder import TableEncoder
from skldl.tabular._encoder_steps import (
    EMPTY_TEXT,
    MISSING_CATEGORY,
    begin_fit,
    column_transformer,
    columns_of,
    given_kind,
    known_detail,
    number_columns,
    text_cut,
    typed_columns,
    words_of,
)
from skldl.tabular._known_categories import known_categories
from skldl.tabular._medians import BUCKETS, MedianSearch
from skldl.tabular._row_sample import RowSample
from skldl.utils.typing import FloatArray

SAMPLE_ROWS = 5000
MOST_CATEGORIES = 100_000
"""A column with more different categories is refused: they are all kept, in memory and in the model file."""
_MOST_BUCKETS = 2**19  # in the searches for medians of all columns together


class Moments:
    """Number, mean, squared deviations, range and gaps of a column of numbers, chunk by chunk.

    Parameters
    ----------
    reference : float, default=0.0
        A value near the mean: distances from it are added up, which keeps digits where the mean is large.
    """

    def __init__(self, reference: float = 0.0) -> None:
        self.reference = reference
        self.n_values = self.n_missing = 0
        self.shift = self.squares = 0.0
        self.least, self.most = np.inf, -np.inf

    def update(self, values: FloatArray) -> FloatArray:
        """Add numbers, NaN where they are missing; return those that are not."""
        present = values[~np.isnan(values)]
        self.n_missing += len(values) - len(present)
        n_new = len(present)
        if not n_new:
            return present
        distances = present - self.reference
        mean = float(distances.mean())
        total = self.n_values + n_new
        change = mean - self.shift
        self.shift += change * n_new / total
        self.squares += float(((distances - mean) ** 2).sum()) + change**2 * self.n_values * n_new / total
        self.n_values = total
        self.least, self.most = min(self.least, float(present.min())), max(self.most, float(present.max()))
        return present

    @property
    def mean(self) -> float:
        """Mean of the values that are not missing."""
        return self.reference + self.shift

    def imputed(self, median: float) -> tuple[float, float]:
        """Mean and variance with the median in the place of missing values; 0 and 0 if all are missing."""
        n_rows = self.n_values + self.n_missing
        if not self.n_values:
            return 0.0, 0.0
        change = median - self.reference - self.shift if self.n_missing else 0.0
        mean = self.reference + (self.shift + change * self.n_missing / n_rows)
        return mean, (self.squares + change**2 * self.n_missing * self.n_values / n_rows) / n_rows


class ChunkedFit:
    """The fit of an encoder to chunks: `update` with each chunk of a pass, then `end_pass`, until it is ``done``.

    ``n_rows`` and ``sample``, rows drawn from the table, are known after the first pass.
    """

    def __init__(self, encoder: TableEncoder, *, seed: int = 0) -> None:
        self.encoder = encoder
        self.done = False
        self.n_rows = self.n_passes = 0
        self.sample = RowSample(SAMPLE_ROWS, seed)
        self._kinds: dict[str, ColumnKind] = {}
        self._n_words: Counter[str] = Counter()
        self._moments: dict[str, Moments] = {}
        self._medians: dict[str, MedianSearch] = {}
        self._counts: dict[str, Counter[str]] = {}
        self._document_counts: dict[str, Any] = {}
        self._n_grams = 0

    def update(self, chunk: Any, place: str = "") -> None:
        """See a chunk of the table, with the same columns each time; ``place`` is the file, for messages."""
        table = as_frame(chunk)
        if not self._kinds:
            begin_fit(self.encoder, list(table.columns))
            self._kinds = {name: ColumnKind(name) for name in table.columns}
        elif list(table.columns) != list(self._kinds):
            raise TableError("The chunks of the table have different columns. All need the same, in the same order.")
        if not len(table):
            return
        if not self.n_passes:
            self._look_at_kinds(table, place)
        elif self.n_passes == 1:
            self._sum(table)
        else:
            self._search(table)

    def end_pass(self) -> None:
        """All chunks have been seen."""
        self.n_passes += 1
        if self.n_passes == 1:
            self.n_rows = self.sample.n_rows
            if not self.n_rows:
                raise TableError("The table has no rows.")
            self._decide()
            return
        for search in self._medians.values():
            search.end_pass()
        if all(search.median is not None for search in self._medians.values()):
            self._finish()

    def notes(self) -> list[str]:
        """What is worth knowing about the columns; one that is mostly numbers but not everywhere is refused."""
        different = {name: len(set(counts) - {MISSING_CATEGORY}) for name, counts in self._counts.items()}
        given = {*self.encoder.text, *self.encoder.categories}
        kinds = {name: kind for name, kind in self._kinds.items() if name not in given}
        return notes_on_columns(kinds, different)

    def typical(self) -> dict[str, Any]:
        """A typical value of each column, as `skldl.tabular._kept_rows.typical_values` gives it for the whole table."""
        found: dict[str, Any] = {}
        for name, kind in self.encoder.kinds_.items():
            if kind == TEXT:
                found[name] = ""
            elif not self._kinds[name].n_present and name not in self._counts:
                found[name] = None
            elif kind == NUMBER:
                found[name] = self._medians[name].median
            elif kind == BOOLEAN:
                found[name] = bool(self._moments[name].mean > 0.5)
            elif kind == CATEGORY:
                words = {word: count for word, count in self._counts[name].items() if word != MISSING_CATEGORY}
                most = max(words.values(), default=0)
                found[name] = min((word for word, count in words.items() if count == most), default=None)
            else:
                middle = self._medians[f"{name}: days"].upper
                date = pd.Timestamp(np.datetime64(round((middle or 0.0) * 86400), "s"))
                found[name] = show_date(date, self.encoder.dates_[name][0])
        return found

    def _look_at_kinds(self, table: pd.DataFrame, place: str) -> None:
        self.sample.update(table)
        for name in table.columns:
            if name in self.encoder.text:
                words = words_of(self.encoder, table[name], "")
                self._n_words[name] += int(words.str.split().str.len().sum())
            elif name not in self.encoder.categories:
                self._kinds[name].update(table[name], place)

    def _decide(self) -> None:
        """Fix the kinds, and begin the sums."""
        encoder = self.encoder
        encoder.kinds_ = {name: given_kind(encoder, name) or kind.kind() for name, kind in self._kinds.items()}
        every_part = list(date_parts(pd.Series(pd.to_datetime(["2024-05-31"]))))
        encoder.dates_ = {
            name: (known_detail(encoder, name, DATE) or str(self._kinds[name].date_format()), every_part)
            for name in columns_of(encoder, DATE)
        }
        texts = columns_of(encoder, TEXT)
        if texts and encoder.hashed_text is None:
            raise TableError(
                f"The text column {texts[0]!r} is read in chunks: say hashed_text=, the number of features that its "
                "n-grams are hashed to, such as 16384."
            )
        self._cuts = {}
        for name in texts:
            known = known_detail(encoder, name, TEXT)
            if self._n_words[name]:
                self._cuts[name] = known or text_cut(encoder.text_ngrams, self._n_words[name] / self.n_rows)
            elif not known:
                raise TableError(EMPTY_TEXT.format(name))
        hashes = column_transformer(encoder, [], self._cuts).transformers
        self._hashes = {columns: step[0] for label, step, columns in hashes if label.startswith("text ")}
        self._document_counts = {name: np.zeros(encoder.hashed_text or 0, dtype=np.int64) for name in self._cuts}
        self._counts = {name: Counter() for name in columns_of(encoder, CATEGORY)}
        drawn = typed_columns(encoder, self.sample.rows(), columns_of(encoder, NUMBER, BOOLEAN, DATE))
        n_buckets = int(np.clip(_MOST_BUCKETS // max(1, drawn.shape[1]), 256, BUCKETS))
        for name in drawn:
            values = drawn[name].dropna().to_numpy(dtype=np.float64)
            self._moments[str(name)] = Moments(float(values.mean()) if len(values) else 0.0)
            self._medians[str(name)] = MedianSearch(values, n_buckets)

    def _sum(self, table: pd.DataFrame) -> None:
        typed = typed_columns(self.encoder, table)
        for name, moments in self._moments.items():
            self._medians[name].update(moments.update(typed[name].to_numpy(dtype=np.float64)))
        for name, counts in self._counts.items():
            counts.update(typed[name].value_counts().to_dict())
            if len(counts) > MOST_CATEGORIES:
                raise TableError(
                    f"Column {name!r} holds more than {MOST_CATEGORIES:,} different texts, too many for categories. "
                    f"Leave it out with drop=[{name!r}]; if it is prose, say text=[{name!r}]."
                )
        for name, hashes in self._hashes.items():
            grams = hashes.transform(typed[name])
            self._document_counts[name] += np.bincount(grams.indices, minlength=grams.shape[1])
            self._n_grams += grams.nnz

    def _search(self, table: pd.DataFrame) -> None:
        """Look for the medians that are not known yet."""
        open_ = [name for name, search in self._medians.items() if search.median is None]
        sources = {name.partition(": ")[0] if name not in self.encoder.kinds_ else name for name in open_}
        typed = typed_columns(self.encoder, table, [name for name in self.encoder.kinds_ if name in sources])
        for name in open_:
            values = typed[name].to_numpy(dtype=np.float64)
            self._medians[name].update(values[~np.isnan(values)])

    def _finish(self) -> None:
        encoder = self.encoder
        for name, (written, parts) in encoder.dates_.items():
            moments = {part: self._moments[f"{name}: {part}"] for part in parts}
            encoder.dates_[name] = (written, [p for p in parts if moments[p].least < moments[p].most] or ["days"])
        numbers = number_columns(encoder)
        encoder.with_missing_ = [name for name in numbers if self._moments[name].n_missing]
        seen = {name: self._moments[name] for name in columns_of(encoder, NUMBER) if self._moments[name].n_values}
        encoder.ranges_ = {name: (moments.least, moments.most) for name, moments in seen.items()}
        with config_context(transform_output="default"):
            encoder.encoder_ = self._assembled(numbers)
        self.done = True

    def _assembled(self, numbers: list[str]) -> ColumnTransformer:
        """The transformers, fitted to a few rows and then given the sums."""
        encoder = self.encoder
        columns = column_transformer(encoder, numbers, self._cuts)
        words = {name: self._category_rows(counts) for name, counts in self._counts.items()}
        n_rows = max([3, *map(len, words.values())])
        rows: dict[str, Any] = {name: np.full(n_rows, self._medians[name].median) for name in numbers}
        for name in encoder.with_missing_:
            rows[name][-1] = np.nan
        # the most frequent category fills up: more of it changes no order
        rows |= {name: [*those, *[those[-1]] * (n_rows - len(those))] for name, those in words.items()}
        rows |= {name: ["any text"] * n_rows for name in self._cuts}
        columns.fit(pd.DataFrame(rows))
        for label, step, name in columns.transformers_:
            if label == "numbers":
                step.steps[1] = (
                    step.steps[1][0],
                    self._scaler(step[0].transform(pd.DataFrame(rows)[numbers]), numbers),
                )
            elif label.startswith("text "):
                step[1].idf_ = np.log((1 + self.n_rows) / (1.0 + self._document_counts[name])) + 1.0
        self._set_density(columns, len(numbers) + len(encoder.with_missing_))
        return columns

    def _category_rows(self, counts: Counter[str]) -> list[str]:
        """Each category once, those that keep a feature of their own twice, the most frequent last.

        One-hot encoding needs the order of the counts alone; ties are broken by the order of the words.
        """
        words = sorted(counts)
        order = np.argsort([counts[word] for word in words], kind="stable")
        frequent = order[max(0, len(words) - max(1, self.encoder.max_categories - 1)) :]
        return [*words, *(words[place] for place in frequent)]

    def _scaler(self, imputed: FloatArray, numbers: list[str]) -> StandardScaler:
        scaler = StandardScaler().fit(imputed)
        pairs = [self._moments[name].imputed(self._medians[name].median or 0.0) for name in numbers]
        gaps = [self._moments[name].n_missing / self.n_rows for name in self.encoder.with_missing_]
        scaler.mean_ = np.array([*(mean for mean, _ in pairs), *gaps])
        scaler.var_ = np.array([*(variance for _, variance in pairs), *(gap * (1 - gap) for gap in gaps)])
        scaler.n_samples_seen_ = np.int64(self.n_rows)
        # scikit-learn's bound on the rounding error of the variance of a constant column
        eps = np.finfo(np.float64).eps
        bound = self.n_rows * eps * scaler.var_ + (self.n_rows * scaler.mean_ * eps) ** 2
        scaler.scale_ = np.where(scaler.var_ <= bound, 1.0, np.sqrt(scaler.var_))
        return scaler

    def _set_density(self, columns: ColumnTransformer, n_dense: int) -> None:
        """Decide whether the features are sparse from what the whole table would give, not the few rows."""
        n_features = n_dense + len(self._cuts) * (self.encoder.hashed_text or 0)
        if self._counts:
            n_features += sum(len(known.features) for known in known_categories(columns).values())
        filled = (n_dense + len(self._counts)) * self.n_rows + self._n_grams
        only_numbers = not (self._counts or self._cuts)
        columns.sparse_output_ = not only_numbers and filled / (self.n_rows * n_features) < columns.sparse_threshold

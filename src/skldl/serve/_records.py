"""A fast path from JSON records to features, without pandas.

`skldl.tabular.TableEncoder` works on columns of a DataFrame; for a single row nearly all of its time is the overhead of
pandas. `RecordEncoder` reads the fitted state of such an encoder and computes the same features from a list of dicts
with a few NumPy operations. It takes plain records alone: numbers, truth values and text as JSON types, all columns
present. For anything else (numbers written as text, dates, prose, bad cells) it returns None, and the caller takes the
way through the encoder, which also words the error.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from operator import itemgetter
from struct import Struct
from struct import error as StructError
from typing import Any

import numpy as np

from skldl.data._cells import _TRUTH_OR_DIGIT, BOOLEAN, CATEGORY, NUMBER, _word
from skldl.tabular import TableEncoder
from skldl.tabular._encoder_steps import FORMAT, MISSING_CATEGORY
from skldl.tabular._known_categories import NO_FEATURE, known_categories
from skldl.utils.typing import BoolArray, FloatArray, IntArray

MOST_FEATURES = 5000
"""Encoders with more features make sparse matrices, which the fast path does not."""
LARGEST_EXACT_INTEGER = 2**53


@dataclass(frozen=True)
class EncodedRecords:
    """Features of some records, and what the training table did not hold.

    Attributes
    ----------
    X : ndarray of shape (n_records, n_features)
        What ``TableEncoder.transform`` gives.
    unusual : dict
        What ``TableEncoder.unusual`` gives.
    """

    X: FloatArray
    unusual: dict[str, dict[str, int]]


class RecordEncoder:
    """The work of a fitted `skldl.tabular.TableEncoder` on plain records, if it `supports` the columns.

    ``mean`` and ``scale`` are of the numbers and of the indicators of missing ones, which are the first features; a
    number outside ``least`` to ``most`` is far outside the training range.
    """

    def __init__(self, encoder: TableEncoder) -> None:
        self._kinds = encoder.kinds_
        self._numbers: list[str] = []
        self._categories: list[str] = []
        self.codes: list[dict[str, int]] = []
        self._fallback: list[int] = []
        self._known: list[frozenset[str]] = []
        self.mean, self.scale = np.zeros(0), np.ones(0)
        n_features = 0
        for label, step, columns in encoder.encoder_.transformers_:
            if label == "numbers":
                imputer, scaler = step[0], step[1]
                self._numbers = list(columns)
                statistics = np.asarray(imputer.statistics_, dtype=np.float64)
                self._medians = np.where(np.isnan(statistics), 0.0, statistics)
                self._indicators: IntArray = np.asarray(imputer.indicator_.features_, dtype=np.intp)
                self.mean, self.scale = scaler.mean_, scaler.scale_
                n_features += len(columns) + len(self._indicators)
            elif label == "categories":
                self._categories = list(columns)
                for known in known_categories(encoder.encoder_).values():
                    self.codes.append({word: n_features + place for word, place in known.places.items()})
                    self._fallback.append(n_features + known.place_of_unknown if known.rare else NO_FEATURE)
                    self._known.append(frozenset(known.every))
                    n_features += len(known.features)
        self.n_features = n_features
        self.is_boolean = [encoder.kinds_[name] == BOOLEAN for name in self._numbers]
        self._any_boolean = any(self.is_boolean)
        self._set_ranges(getattr(encoder, "ranges_", {}))
        self.number_cells = _getter(self._numbers)
        self._packed = Struct(f"{len(self._numbers)}d").pack  # floats one after another, as in an array
        self.category_cells = _getter(self._categories)

    def _set_ranges(self, ranges: Mapping[str, tuple[float, float]]) -> None:
        """Ends beyond which a number is far outside: one width of the training range on either side."""
        widths = {name: most - least for name, (least, most) in ranges.items()}
        self.least = np.array([ranges[n][0] - widths[n] if n in ranges else -np.inf for n in self._numbers])
        self.most = np.array([ranges[n][1] + widths[n] if n in ranges else np.inf for n in self._numbers])

    @staticmethod
    def supports(encoder: TableEncoder) -> bool:
        """Whether the columns of a fitted encoder are of kinds that the fast path knows.

        False for columns of text or dates, for encoders of version 0.1, and for very many features.
        """
        plain = set(encoder.kinds_.values()) <= {NUMBER, BOOLEAN, CATEGORY}
        return plain and getattr(encoder, "format_", 1) == FORMAT and len(encoder.sources()) <= MOST_FEATURES

    def __call__(self, records: Sequence[Mapping[str, Any]]) -> EncodedRecords | None:
        """Encode at least one record, as a JSON parser gives them, or return None if they are not plain."""
        try:
            numbers = self._read_numbers(records) if self._numbers else np.empty((len(records), 0))
            words = [self.category_cells(record) for record in records] if self._categories else None
        except (KeyError, TypeError, AttributeError):  # a column is missing, or a record is no object
            return None
        return None if numbers is None else self._encoded(numbers, words)

    def in_pieces(self, pieces: Iterable[Sequence[Mapping[str, Any]]]) -> EncodedRecords | None:
        """Encode the records of a long body piece by piece, so that the objects of one piece alone are in memory.

        None if a record is not plain.
        """
        features: list[FloatArray] = []
        unusual: dict[str, Counter[str]] = {}
        for records in pieces:
            encoded = self(records)
            if encoded is None:
                return None
            features.append(encoded.X)
            for what, counts in encoded.unusual.items():
                unusual.setdefault(what, Counter()).update(counts)
        return EncodedRecords(np.concatenate(features), {what: dict(counts) for what, counts in unusual.items()})

    def table(self, frame: Any) -> EncodedRecords | None:
        """Encode a DataFrame whose columns are numbers already; None if others are there, or the model has others."""
        if self._categories or self._any_boolean or not len(frame):
            return None
        dtypes = frame.dtypes
        if any(name not in dtypes or getattr(dtypes[name], "kind", "O") not in "fiu" for name in self._numbers):
            return None
        try:
            numbers = frame[self._numbers].to_numpy(dtype=np.float64, na_value=np.nan)
        except (TypeError, ValueError):  # missing cells of a nullable type
            return None
        return self._encoded(numbers, None) if numbers.shape[1] == len(self._numbers) else None

    def _encoded(self, numbers: FloatArray, words: list[Any] | None) -> EncodedRecords | None:
        unusual: dict[str, dict[str, int]] = {"unknown_categories": {}, "far_outside_range": {}, "empty_rows": {}}
        outside = (numbers < self.least) | (numbers > self.most)
        if outside.any():
            counts = outside.sum(axis=0)
            unusual["far_outside_range"] = {name: int(n) for name, n in zip(self._numbers, counts, strict=True) if n}
        total = numbers.sum()
        if not math.isfinite(total) and np.isinf(numbers).any():
            return None
        all_present = bool(self._numbers) and math.isfinite(total)
        width = len(self._numbers)
        if all_present and width == self.n_features:
            return EncodedRecords((numbers - self.mean) / self.scale, unusual)
        X = np.zeros((len(numbers), self.n_features))
        missing: BoolArray = np.isnan(numbers)
        if self._numbers:
            X[:, :width] = np.where(missing, self._medians, numbers)
            last = width + len(self._indicators)
            X[:, width:last] = missing[:, self._indicators]
            X[:, :last] -= self.mean
            X[:, :last] /= self.scale
        no_word: BoolArray | bool = True
        if words is not None:
            if not self._set_categories(words, X, unusual["unknown_categories"]):
                return None
            no_word = np.array([all(cell is None for cell in cells) for cells in words])
        empty = int((missing.all(axis=1) & no_word).sum())
        if empty:
            unusual["empty_rows"] = {"rows": empty}
        return EncodedRecords(X, unusual)

    def _read_numbers(self, records: Sequence[Mapping[str, Any]]) -> FloatArray | None:
        if not self._any_boolean:
            try:
                rows = b"".join(starmap(self._packed, map(self.number_cells, records)))
            except (StructError, OverflowError):  # a missing cell, a text, a list or a very large integer
                pass
            else:
                return np.frombuffer(rows).reshape(len(records), len(self._numbers))
        cells: list[Any] = [self.number_cells(record) for record in records]
        if self._any_boolean:
            cells = [
                [self.truth(cell) if boolean else cell for cell, boolean in zip(row, self.is_boolean, strict=True)]
                for row in cells
            ]
        try:
            numbers = np.array(cells)
        except (ValueError, OverflowError):  # a list inside a cell
            return None
        if numbers.dtype.kind not in "fiub":
            if not all(type(cell) in (float, bool) or cell is None or _is_exact(cell) for row in cells for cell in row):
                return None
            numbers = np.array(cells, dtype=np.float64)
        return numbers.astype(np.float64, copy=False) if numbers.ndim == 2 else None

    @staticmethod
    def truth(cell: Any) -> Any:
        """A truth value as JSON may have it, or None; KeyError or TypeError if it is not plain."""
        if cell is None or isinstance(cell, bool):
            return cell
        if isinstance(cell, str):
            return _TRUTH_OR_DIGIT[cell.strip().lower()]  # KeyError: not plain
        if cell in (0, 1):
            return cell
        raise TypeError

    def _set_categories(self, words: list[Any], X: FloatArray, unknown: dict[str, int]) -> bool:
        columns = zip(*words, strict=True)
        named = zip(self._categories, columns, self.codes, self._fallback, self._known, strict=True)
        for name, cells, codes, fallback, known in named:
            strange = 0
            places = []
            for cell in cells:
                code = codes.get(cell) if isinstance(cell, str) else None
                if code is None:
                    if cell is None:
                        code = codes.get(MISSING_CATEGORY, fallback)
                    elif isinstance(cell, str):
                        word = _word(cell.strip())
                        code = codes.get(word, fallback)
                        strange += word not in known
                    else:
                        return False
                places.append(code)
            at = np.array(places)
            rows = np.flatnonzero(at != NO_FEATURE)
            X[rows, at[rows]] = 1.0
            if strange:
                unknown[name] = strange
        return True


def _getter(names: list[str]) -> Any:
    """A function from a record to the tuple of these cells."""
    if len(names) == 1:
        only = names[0]
        return lambda record: (record[only],)
    return itemgetter(*names) if names else lambda record: ()


def _is_exact(cell: Any) -> bool:
    return type(cell) is int and abs(cell) <= LARGEST_EXACT_INTEGER

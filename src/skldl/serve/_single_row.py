"""One row for a linear model: softmax(xW + b) and its summary, mostly on Python floats.

For a single row the overhead of NumPy and of columns is most of the time. Anything unusual (a missing cell, a number in
a text, an unknown category, a number far outside the training range) is left to `RecordEncoder` and to the encoder
itself.
"""

import math
from collections.abc import Mapping, Sequence
from operator import gt, lt, mul
from typing import Any

import numpy as np

from skldl.serve._records import RecordEncoder
from skldl.utils.typing import FloatArray


class SingleRow:
    """Predictions for one record at a time, from weights W (n_features × n_labels) and b.

    ``names`` are the columns of an answer: labels, top, entropy and, if the labels have ``values``, expected.
    """

    def __init__(
        self,
        encoder: RecordEncoder,
        weights: tuple[FloatArray, FloatArray],
        labels: Sequence[str],
        names: Sequence[str],
        values: Sequence[float],
    ) -> None:
        W, b = weights
        self._number_cells, self._category_cells = encoder.number_cells, encoder.category_cells
        self._booleans = [place for place, is_boolean in enumerate(encoder.is_boolean) if is_boolean]
        self._lowest, self._highest = encoder.least.tolist(), encoder.most.tolist()
        width, last = len(self._lowest), len(encoder.mean)
        self._mean = encoder.mean[:width]
        self._W = W[:width] / encoder.scale[:width, np.newaxis]
        # no cell is missing here, so that the indicators of missing cells are constant: (0 - mean) / scale
        self._b = b - (encoder.mean[width:] / encoder.scale[width:]) @ W[width:last]
        self._categories = [{word: W[place] for word, place in codes.items()} for codes in encoder.codes]
        self._labels, self._names, self._values = list(labels), list(names), list(values)

    def __call__(self, record: Mapping[str, Any]) -> dict[str, Any] | None:
        """Predict one row of an answer, or None if the record is not plain or unusual."""
        try:
            cells = self._number_cells(record)
            if self._booleans:
                cells = list(cells)
                for place in self._booleans:
                    cells[place] = RecordEncoder.truth(cells[place])
            if not math.isfinite(sum(cells)) or any(map(lt, cells, self._lowest)) or any(map(gt, cells, self._highest)):
                return None
            sums = (np.array(cells, dtype=np.float64) - self._mean).dot(self._W) + self._b
            if self._categories:
                for word, weights in zip(self._category_cells(record), self._categories, strict=True):
                    sums += weights[word]
        except (KeyError, TypeError, OverflowError):
            return None
        scores: list[float] = sums.tolist()
        largest = max(scores)
        shifted = [score - largest for score in scores]
        powers = list(map(math.exp, shifted))
        total = sum(powers)
        row: list[Any] = [power / total for power in powers]
        # -sum d log d with log d = shifted - log total: two terms that are not negative, so that nothing cancels
        entropy = math.log(total) - sum(map(mul, row, shifted))
        expected = sum(map(mul, row, self._values)) if self._values else None
        row += (self._labels[scores.index(largest)], entropy)
        if expected is not None:
            row.append(expected)
        return dict(zip(self._names, row, strict=True))

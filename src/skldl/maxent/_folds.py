"""Which fold a row that is read in a chunk belongs to, and the rows of a chunk by folds."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from skldl.chunks import Chunk
from skldl.selection import assign_folds
from skldl.utils.typing import FloatArray, IntArray

MOST_SHUFFLED = 1 << 22
"""Up to this many rows the folds are those of scikit-learn's KFold, as in memory; one byte is kept for each row."""
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio


class Segment(NamedTuple):
    """The rows of a chunk that belong to one fold."""

    X: Any
    D: FloatArray | None
    rows: IntArray | slice


@dataclass(frozen=True)
class Folds:
    """A rule that gives each row with weight its fold, by its position.

    Parameters
    ----------
    n_folds : int
        Number of folds; 1 puts all rows together.
    fold_of : ndarray of small integers or None, default=None
        Fold of each row. None takes a hash of the position: folds of nearly the same size, without any memory.
    """

    n_folds: int
    fold_of: npt.NDArray[Any] | None = None

    @classmethod
    def shuffled(cls, n_folds: int, n_rows: int) -> "Folds":
        """The folds of ``KFold(n_folds, shuffle=True, random_state=0)``, or of a hash where there are too many rows."""
        if n_rows > MOST_SHUFFLED:
            return cls(n_folds)
        fold_of = assign_folds(n_rows, n_folds, random_state=np.random.RandomState(0))
        return cls(n_folds, fold_of.astype(np.uint8 if n_folds <= 256 else np.uint16))

    def of(self, first: int, count: int) -> IntArray:
        """Folds of ``count`` rows from position ``first`` on."""
        if self.n_folds == 1:
            return np.zeros(count, dtype=np.intp)
        if self.fold_of is not None:
            return self.fold_of[first : first + count].astype(np.intp)
        mixed = np.arange(first + 1, first + count + 1, dtype=np.uint64) * SPREAD
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # the finaliser of SplitMix64
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        return (mixed % np.uint64(self.n_folds)).astype(np.intp)

    def sorted_by_fold(self, chunk: Chunk) -> tuple[IntArray | slice, IntArray]:
        """An order in which the rows of each fold stand together, and where each fold begins and the last ends."""
        if self.n_folds == 1:
            return slice(None), np.array([0, len(chunk)])
        folds = self.of(chunk.first, len(chunk))
        ends = np.concatenate([[0], np.cumsum(np.bincount(folds, minlength=self.n_folds))])
        return np.argsort(folds, kind="stable"), ends

    def segments(self, chunk: Chunk) -> Iterator[Segment]:
        """The rows of each fold, some of which may be empty."""
        order, ends = self.sorted_by_fold(chunk)
        if isinstance(order, slice):
            yield Segment(chunk.X, chunk.D, order)
            return
        for first, last in pairwise(ends):
            rows = order[first:last]
            yield Segment(chunk.X[rows], None if chunk.D is None else chunk.D[rows], rows)


ALL_TOGETHER = Folds(1)

"""Folds of rows: which rows are held out together, in memory and in chunks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl.chunks import Chunk
from skldl.selection._folds import shuffled_folds
from skldl.utils.arrays import take_rows
from skldl.utils.typing import IntArray

MAX_SHUFFLED = 1 << 22
"""Rows in chunks up to which the folds are those of scikit-learn's KFold, as in memory; one byte is stored for each."""
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio


@dataclass(frozen=True)
class Folds:
    """Assignment of each row with positive weight to a fold, by its position.

    Parameters
    ----------
    n_folds : int
        Number of folds; 1 puts all rows together.
    fold_of : ndarray of small integers or None, default=None
        Fold of each row.
    ends : ndarray of shape (n_folds + 1,) or None, default=None
        If the rows are sorted by their folds: the position at which each fold begins, and the number of rows. Without
        ``fold_of`` and ``ends`` a hash of the position gives the fold: nearly equal sizes, and nothing is stored.
    """

    n_folds: int
    fold_of: npt.NDArray[Any] | None = None
    ends: IntArray | None = None

    @classmethod
    def shuffled(cls, n_folds: int, n_rows: int, groups: Any = None) -> "Folds":
        """The folds of ``KFold(n_folds, shuffle=True, random_state=0)``, or random folds that keep groups together."""
        fold_of = shuffled_folds(n_rows, n_folds, groups, np.random.RandomState(0))
        return cls._of_small_numbers(fold_of)

    @classmethod
    def _of_small_numbers(cls, fold_of: IntArray) -> "Folds":
        """Folds with numbers of one byte if possible, which NumPy sorts in linear time."""
        n_folds = int(fold_of.max()) + 1
        return cls(n_folds, fold_of.astype(np.min_scalar_type(n_folds - 1)))

    @classmethod
    def of_splits(cls, splits: Sequence[tuple[IntArray, IntArray]], n_rows: int) -> "Folds | None":
        """The folds that these splits hold out; None unless each row is held out once and trained on otherwise."""
        fold_of = np.full(n_rows, -1, dtype=np.intp)
        for fold, (train, test) in enumerate(splits):
            others = np.ones(n_rows, dtype=bool)
            others[test] = False
            if (fold_of[test] >= 0).any() or not np.array_equal(np.sort(train), np.flatnonzero(others)):
                return None
            fold_of[test] = fold
        return None if (fold_of < 0).any() else cls._of_small_numbers(fold_of)

    def of(self, first: int, count: int) -> npt.NDArray[Any]:
        """Folds of ``count`` rows from position ``first`` on."""
        if self.fold_of is not None:
            return self.fold_of[first : first + count]
        if self.ends is not None:
            return np.searchsorted(self.ends[1:], np.arange(first, first + count), side="right")
        mixed = np.arange(first + 1, first + count + 1, dtype=np.uint64) * SPREAD
        # the finaliser of SplitMix64: it makes the folds of neighbours independent
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        return (mixed % np.uint64(self.n_folds)).astype(np.intp)

    def in_order(self, n_rows: int) -> tuple[IntArray, "Folds"]:
        """Positions of the rows sorted by fold, and the folds of the rows in that order."""
        fold_of = self.of(0, n_rows)
        ends = np.concatenate([[0], np.cumsum(np.bincount(fold_of, minlength=self.n_folds))])
        return np.argsort(fold_of, kind="stable"), Folds(self.n_folds, ends=ends)

    def without(self, kept: npt.NDArray[np.bool_]) -> "Folds":
        """The folds of the rows that are kept."""
        return Folds(self.n_folds, self.of(0, len(kept))[kept])

    def segments(self, chunk: Chunk) -> Iterator[Chunk]:
        """The rows of each fold in a chunk, which may be none."""
        if self.n_folds == 1:
            yield chunk
            return
        if self.ends is None:
            fold_of = self.of(chunk.first, len(chunk))
            order = np.argsort(fold_of, kind="stable")
            ends = np.concatenate([[0], np.cumsum(np.bincount(fold_of, minlength=self.n_folds))])
            for first, last in pairwise(ends):
                yield take(chunk, order[first:last])
            return
        for first, last in pairwise(np.clip(self.ends - chunk.first, 0, len(chunk)).tolist()):
            some = slice(first, last)
            X = chunk.X[some] if not hasattr(chunk.X, "ndim") or chunk.X.ndim != 2 else chunk.X[some, ...]
            D = None if chunk.D is None else chunk.D[some, ...]
            yield replace(chunk, X=X, D=D, weight=None if chunk.weight is None else chunk.weight[some])


ALL_TOGETHER = Folds(1)


def take(chunk: Chunk, rows: IntArray) -> Chunk:
    """Some rows of a chunk, by their positions in it."""
    X, D, weight = (None if part is None else take_rows(part, rows) for part in (chunk.X, chunk.D, chunk.weight))
    return Chunk(X, D, weight)

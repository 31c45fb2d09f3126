"""Folds of rows: which rows are held out together.

`Folds` gives each row with weight a fold by its position, so that rows that are read in chunks can be in folds, too.
`splits_of` reads the (train, test) pairs of a caller, which need not be folds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl.chunks import Chunk
from skldl.exceptions import WordedError
from skldl.selection._folds import shuffled_folds
from skldl.utils.arrays import take_rows
from skldl.utils.typing import IntArray

Split = tuple[IntArray, IntArray]

MAX_SHUFFLED = 1 << 22
"""Rows in chunks up to which the folds are those of scikit-learn's KFold, as in memory: one byte is kept for each."""
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio


@dataclass(frozen=True)
class Folds:
    """A rule that gives each row with weight its fold, by its position.

    Parameters
    ----------
    n_folds : int
        Number of folds; 1 puts all rows together.
    fold_of : ndarray of small integers or None, default=None
        Fold of each row.
    ends : ndarray of shape (n_folds + 1,) or None, default=None
        If the rows are in the order of their folds: where each fold begins and the last ends. Without ``fold_of`` and
        ``ends``, a hash of the position says the fold: folds of nearly the same size, without any memory.
    """

    n_folds: int
    fold_of: npt.NDArray[Any] | None = None
    ends: IntArray | None = None

    @classmethod
    def shuffled(cls, n_folds: int, n_rows: int, groups: Any = None) -> "Folds":
        """The folds of ``KFold(n_folds, shuffle=True, random_state=0)``; with groups, each is in one fold."""
        fold_of = shuffled_folds(n_rows, n_folds, groups, np.random.RandomState(0))
        return cls._of_small_numbers(fold_of)

    @classmethod
    def _of_small_numbers(cls, fold_of: IntArray) -> "Folds":
        """Folds whose numbers have one byte where that is enough: NumPy sorts those fastest."""
        n_folds = int(fold_of.max()) + 1
        return cls(n_folds, fold_of.astype(np.min_scalar_type(n_folds - 1)))

    @classmethod
    def of_splits(cls, splits: Sequence[Split], n_rows: int) -> "Folds | None":
        """The folds that make these splits, each of which trains on the rows that it does not hold out; or None."""
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
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # the finaliser of SplitMix64
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
        return (mixed % np.uint64(self.n_folds)).astype(np.intp)

    def in_order(self, n_rows: int) -> tuple[IntArray, "Folds"]:
        """An order of the rows in which each fold stands together, and the same folds of the rows in that order."""
        fold_of = self.of(0, n_rows)
        ends = np.concatenate([[0], np.cumsum(np.bincount(fold_of, minlength=self.n_folds))])
        return np.argsort(fold_of, kind="stable"), Folds(self.n_folds, ends=ends)

    def without(self, kept: npt.NDArray[np.bool_]) -> "Folds":
        """The folds of the rows that are kept."""
        return Folds(self.n_folds, self.of(0, len(kept))[kept])

    def segments(self, chunk: Chunk) -> Iterator[Chunk]:
        """The rows of each fold in a chunk; of some folds there may be none."""
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


def splits_of(cv: Any, kept: IntArray, n_samples: int) -> list[Split]:
    """The (train, test) pairs that were given as cv, or that a splitter makes, as positions among the rows kept."""
    splits: list[Split] = []
    for fold, pair in enumerate(_items(cv, "cv")):
        parts = list(_items(pair, f"Item {fold} of cv"))
        if len(parts) != 2:
            raise WordedError(f"Item {fold} of cv holds {len(parts)} parts, not two: give (train, test) pairs.")
        train, test = (
            positions_of(rows, kept, n_samples, f"{name} of cv pair {fold}")
            for name, rows in zip(("train", "test"), parts, strict=True)
        )
        splits.append((train, test))
    if not splits:
        raise WordedError(
            "cv gives no (train, test) pair. Give at least one, or a number of folds. An iterator gives its pairs only "
            "once: pass a list to fit again."
        )
    return splits


def _items(values: Any, name: str) -> Iterator[Any]:
    """Iterate over values, or say that they are no (train, test) pairs."""
    try:
        return iter(values)
    except TypeError:
        raise WordedError(
            f"{name} is {values!r}: give (train, test) pairs of row numbers, a splitter, or a number of folds."
        ) from None


def positions_of(rows: Any, kept: IntArray, n_samples: int, where: str) -> npt.NDArray[np.intp]:
    """Map row numbers to positions among the rows with positive weight; repeats are kept."""
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n_samples,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise WordedError(
            f"{where} has shape {rows.shape} and type {rows.dtype}: give row numbers, or a mask of {n_samples} rows."
        )
    if rows.size and not (rows.min() >= 0 and rows.max() < n_samples):
        wrong = rows[(rows < 0) | (rows >= n_samples)][0]
        raise WordedError(f"{where} holds row {wrong}, but rows are numbered from 0 to {n_samples - 1}.")
    position = np.full(n_samples, -1, dtype=np.intp)
    position[kept] = np.arange(len(kept))
    positions = position[rows.astype(np.intp)]
    positions = positions[positions >= 0]
    if not positions.size:
        raise WordedError(f"{where} is empty (rows without weight do not count). Each part needs at least one row.")
    return positions

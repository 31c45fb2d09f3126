"""Rows drawn at random from a stream: which ones depends on their numbers and the seed, not on the chunks."""

from typing import Any

import numpy as np
import pandas as pd

from skldl.utils.typing import AnyArray, BoolArray


def row_keys(first: int, n_rows: int, seed: int) -> AnyArray:
    """A number from 0 to 2⁶⁴ − 1 for each row, as if drawn at random: SplitMix64 (Steele, Lea and Flood, 2014).

    It is the same for a row whatever comes before and after it; another seed gives other numbers.
    """
    step = np.uint64(0x9E3779B97F4A7C15)
    with np.errstate(over="ignore"):
        start = _mixed((np.uint64(seed) + np.uint64(1)) * step)
        return _mixed(start + (np.arange(first, first + n_rows, dtype=np.uint64) + np.uint64(1)) * step)


def mixed_keys(keys: AnyArray, seed: int) -> AnyArray:
    """Other numbers for other seeds, the same for the same key."""
    return _mixed(keys ^ row_keys(0, 1, seed)[0])


def _mixed(keys: Any) -> Any:
    """The finaliser of SplitMix64."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def drawn(keys: AnyArray, share: float) -> BoolArray:
    """Which rows belong to a share of all, drawn by their keys."""
    return keys < np.uint64(min(int(share * 2**64), 2**64 - 1))


class RowSample:
    """A fixed number of rows of a stream, each with the same chance.

    Examples
    --------
    >>> import pandas as pd
    >>> sample = RowSample(2)
    >>> sample.update(pd.DataFrame({"x": range(10)}))
    >>> sample.update(pd.DataFrame({"x": range(10, 20)}))
    >>> len(sample.rows()), sample.positions().tolist() == sample.rows()["x"].tolist()
    (2, True)
    """

    def __init__(self, size: int, seed: int = 0) -> None:
        self._size, self._seed = size, seed
        self.n_rows = 0
        self._parts: list[pd.DataFrame] = []
        self._keys = np.empty(0, dtype=np.uint64)
        self._places = np.empty(0, dtype=np.int64)

    def update(self, rows: pd.DataFrame) -> None:
        """See the rows that follow those seen before."""
        keys = row_keys(self.n_rows, len(rows), self._seed)
        places = np.arange(self.n_rows, self.n_rows + len(rows))
        self.n_rows += len(rows)
        if len(self._keys) >= self._size:
            chosen = np.flatnonzero(keys < np.partition(self._keys, self._size - 1)[self._size - 1])
            keys, places, rows = keys[chosen], places[chosen], rows.iloc[chosen]
        if len(rows):
            self._parts.append(rows.copy())
            self._keys, self._places = np.append(self._keys, keys), np.append(self._places, places)
        if len(self._keys) > 2 * self._size:
            self._shrink()

    def _shrink(self) -> None:
        if len(self._keys) > self._size or len(self._parts) > 1:
            kept = np.sort(np.argsort(self._keys, kind="stable")[: self._size])
            joined = pd.concat(self._parts, ignore_index=True).iloc[kept]
            self._parts = [joined.reset_index(drop=True)]
            self._keys, self._places = self._keys[kept], self._places[kept]

    def rows(self) -> pd.DataFrame:
        """The rows drawn so far, in the order of the stream."""
        self._shrink()
        return self._parts[0] if self._parts else pd.DataFrame()

    def positions(self) -> AnyArray:
        """Their numbers in the stream, from 0."""
        self._shrink()
        return self._places

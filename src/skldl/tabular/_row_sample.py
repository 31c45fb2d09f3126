"""Random samples of the rows of a stream, which depend on the positions of the rows and a seed, not on the chunks."""

from typing import Any

import numpy as np
import pandas as pd

from skldl.utils.typing import AnyArray, BoolArray


def row_keys(first: int, n_rows: int, seed: int) -> AnyArray:
    """Return a pseudorandom integer from 0 to 2⁶⁴ − 1 for each row, by SplitMix64 (Steele, Lea and Flood, 2014).

    It depends on the position of the row and the seed alone.
    """
    step = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ over the golden ratio: multiples of it are spread evenly
    with np.errstate(over="ignore"):  # arithmetic modulo 2⁶⁴ is intended
        start = _mixed((np.uint64(seed) + np.uint64(1)) * step)
        return _mixed(start + (np.arange(first, first + n_rows, dtype=np.uint64) + np.uint64(1)) * step)


def mixed_keys(keys: AnyArray, seed: int) -> AnyArray:
    """Return pseudorandom integers that depend on the keys and the seed."""
    return _mixed(keys ^ row_keys(0, 1, seed)[0])


def _mixed(keys: Any) -> Any:
    """Apply the finaliser of SplitMix64: a bijection in which each output bit depends on all input bits."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


def drawn(keys: AnyArray, fraction: float) -> BoolArray:
    """Mark the rows of a random fraction, drawn by their keys."""
    return keys < np.uint64(min(int(fraction * 2**64), 2**64 - 1))


class RowSample:
    """A uniform sample of a fixed number of rows of a stream: those with the smallest keys.

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
        self._keys = np.empty(0, dtype=np.uint64)
        self._positions = np.empty(0, dtype=np.int64)
        self._parts: list[pd.DataFrame] = []

    def update(self, rows: pd.DataFrame) -> None:
        """Add the next rows of the stream. They are not copied, and must not be changed afterwards."""
        keys = row_keys(self.n_rows, len(rows), self._seed)
        positions = np.arange(self.n_rows, self.n_rows + len(rows))
        self.n_rows += len(rows)
        if len(self._keys) >= self._size:
            chosen = keys < np.partition(self._keys, self._size - 1)[self._size - 1]
            keys, positions, rows = keys[chosen], positions[chosen], rows[chosen]
        if len(rows):
            self._parts.append(rows)
            self._keys, self._positions = np.append(self._keys, keys), np.append(self._positions, positions)
        if len(self._keys) > 1.25 * self._size:  # not after each update, since this copies all parts
            self._shrink()

    def _shrink(self) -> None:
        """Keep the rows with the smallest keys."""
        kept = np.sort(np.argsort(self._keys, kind="stable")[: self._size])
        self._parts = [pd.concat(self._parts, ignore_index=True).iloc[kept].reset_index(drop=True)]
        self._keys, self._positions = self._keys[kept], self._positions[kept]

    def parts(self) -> list[pd.DataFrame]:
        """Return the sampled rows, in the order of the stream, in pieces."""
        if len(self._keys) > self._size:
            self._shrink()
        return self._parts

    def rows(self) -> pd.DataFrame:
        """Return the sampled rows, in the order of the stream."""
        parts = self.parts()
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def positions(self) -> AnyArray:
        """Return the positions of the sampled rows in the stream."""
        self.parts()
        return self._positions

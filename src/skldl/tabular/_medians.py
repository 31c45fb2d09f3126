r"""Exact medians of columns that no memory holds, from a few passes over their values.

Floating-point numbers are put into the order of whole numbers from 0 to 2⁶⁴ − 1 (the sign bit is flipped, and for
negative numbers all other bits, too). A range of these keys that holds the middle rank is cut into buckets; a pass
counts the values in each, with their least and greatest, and the values below the range. Then the bucket that holds
the middle rank is the next range. It ends when the least and the greatest value of a bucket decide, or when so few
values are left that the next pass can collect them. A range that a sample suggests makes the first step smaller; if it
does not hold the middle rank, the pass has shown on which side that lies.
"""

import numpy as np

from skldl.exceptions import DataError
from skldl.utils.typing import AnyArray, FloatArray

BUCKETS = 4096
_HIGHEST = 2**64 - 1
_SIGN = np.uint64(1 << 63)


class MedianSearch:
    """The median of one column, found by reading its values several times; a ``sample`` says where to look first.

    ``median`` is None as long as it is not known, and NaN if there is no value; ``upper`` is the greater of the two
    middle values.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.random.default_rng(0).normal(size=1001)
    >>> search = MedianSearch(n_buckets=16)
    >>> while search.median is None:
    ...     for start in range(0, 1001, 100):
    ...         search.update(values[start : start + 100])
    ...     search.end_pass()
    >>> bool(search.median == np.median(values))
    True
    """

    def __init__(self, sample: FloatArray | None = None, n_buckets: int = BUCKETS) -> None:
        self.median: float | None = None
        self.upper: float | None = None
        self._n_buckets = n_buckets
        self._n_values: int | None = None
        self._collect = False
        self._begin(*_likely_range(sample))

    def _begin(self, low: int, high: int) -> None:
        """Prepare a pass that looks at the keys from low to high."""
        self._low, self._high = low, high
        self._width = -(-(high - low + 1) // self._n_buckets)
        self._n_below = self._n_seen = 0
        self._above = np.inf
        self._found: list[FloatArray] = []
        self._counts = np.zeros(self._n_buckets, dtype=np.int64)
        self._least = np.full(self._n_buckets, np.inf)
        self._most = np.full(self._n_buckets, -np.inf)

    def update(self, values: FloatArray) -> None:
        """Look at some values, all of them finite."""
        if self.median is not None:
            return
        values = np.asarray(values, dtype=np.float64) + 0.0  # there is one zero, not two
        keys = _keys(values)
        self._n_seen += len(keys)
        below, above = keys < np.uint64(self._low), keys > np.uint64(self._high)
        self._n_below += int(np.count_nonzero(below))
        if above.any():
            self._above = min(self._above, float(values[above].min()))
        inside = ~(below | above)
        values = values[inside]
        if self._collect:
            self._found.append(values)
            return
        places = ((keys[inside] - np.uint64(self._low)) // np.uint64(self._width)).astype(np.intp)
        self._counts += np.bincount(places, minlength=self._n_buckets)
        np.minimum.at(self._least, places, values)
        np.maximum.at(self._most, places, values)

    def end_pass(self) -> None:
        """All values have been looked at: the median is known now, or in which range it lies."""
        if self.median is not None:
            return
        if self._n_values is None:
            self._n_values = self._n_seen
        elif self._n_values != self._n_seen:
            raise DataError(f"A column had {self._n_values} values and has {self._n_seen} now: the table has changed.")
        if not self._n_seen:
            self.median = self.upper = float("nan")
            return
        rank = (self._n_seen - 1) // 2 - self._n_below
        n_inside = sum(map(len, self._found)) if self._collect else int(self._counts.sum())
        if rank < 0:
            self._begin(0, self._low - 1)
        elif rank >= n_inside:
            self._begin(self._high + 1, _HIGHEST)
        elif self._collect:
            values = np.sort(np.concatenate(self._found))
            self._end(float(values[rank]), float(values[rank + 1]) if rank + 1 < len(values) else self._above)
        else:
            self._look_into_bucket(rank)

    def _look_into_bucket(self, rank: int) -> None:
        sums = np.cumsum(self._counts)
        bucket = int(np.searchsorted(sums, rank, side="right"))
        least, most, count = float(self._least[bucket]), float(self._most[bucket]), int(self._counts[bucket])
        place = rank - (int(sums[bucket]) - count)
        known = {0: least, count - 1: most} if least < most else dict.fromkeys((place, place + 1), least)
        others = self._least[bucket + 1 :]
        known[count] = min(float(others.min(initial=np.inf)), self._above)  # the first value behind the bucket
        if place in known and (self._n_seen % 2 or place + 1 in known):
            self._end(known[place], known.get(place + 1, np.nan))
            return
        self._collect = count <= self._n_buckets
        low, high = _keys(np.array([least, most]))
        self._begin(int(low), int(high))

    def _end(self, lower: float, upper: float) -> None:
        self.upper = lower if self._n_seen % 2 else upper
        self.median = (lower + self.upper) / 2
        self._begin(0, 0)


def _keys(values: FloatArray) -> AnyArray:
    """Whole numbers in the order of the values."""
    bits = values.view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _likely_range(sample: FloatArray | None) -> tuple[int, int]:
    """Keys between which the median lies nearly certainly: four standard deviations of its rank in the sample."""
    if sample is None or len(sample) < 100:
        return 0, _HIGHEST
    values = np.sort(np.asarray(sample, dtype=np.float64) + 0.0)
    reach = 2 * np.sqrt(len(values))
    middle = (len(values) - 1) / 2
    ends = values[[max(0, int(middle - reach)), min(len(values) - 1, int(np.ceil(middle + reach)))]]
    low, high = _keys(ends)
    return int(low), int(high)

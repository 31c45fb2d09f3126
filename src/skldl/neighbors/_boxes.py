"""Rows sorted into boxes, so that a search can pass over whole boxes that are too far away."""

import numpy as np
import numpy.typing as npt

from skldl.utils.typing import FloatArray, IntArray

MOST_COORDINATES = 8
"""Boxes are measured in the first coordinates alone: a box of 2,048 among 10⁶ rows was cut nine times."""


class RowBoxes:
    """Cut rows in halves, each time at the median of the coordinate that varies most, until the parts are small.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_coordinates)
        Rows, with the coordinates that vary most in front.
    most_rows : int
        Most rows of a box.
    """

    def __init__(self, rows: npt.NDArray[np.float32], most_rows: int) -> None:
        first = np.ascontiguousarray(rows[:, :MOST_COORDINATES])
        parts: list[IntArray] = [np.arange(len(rows))]
        while max(map(len, parts)) > most_rows:
            parts = [half for part in parts for half in _halves(first, part)]
        self.order: IntArray = np.concatenate(parts)
        ends = np.cumsum([len(part) for part in parts])
        self.slices = [slice(int(end) - len(part), int(end)) for part, end in zip(parts, ends, strict=True)]
        self._low = np.array([first[part].min(axis=0) for part in parts])
        self._high = np.array([first[part].max(axis=0) for part in parts])

    def squared_distances(self, queries: FloatArray) -> npt.NDArray[np.float32]:
        """Squares of the least possible distances from queries to the rows of each box: one row for each query.

        They are exact to 32 ulp of single precision of the largest squared norms of query and row.
        """
        squares = np.zeros((len(queries), len(self.slices)), dtype=np.float32)
        outside = np.empty_like(squares)
        for place in range(self._low.shape[1]):
            at = queries[:, place, None].astype(np.float32)
            np.subtract(at, np.clip(at, self._low[:, place], self._high[:, place], out=outside), out=outside)
            squares += np.multiply(outside, outside, out=outside)
        return squares


def _halves(rows: npt.NDArray[np.float32], part: IntArray) -> tuple[IntArray, IntArray]:
    """The part on either side of the median; its rows keep their order."""
    some = rows[part[:: max(1, len(part) // 1000)]]
    values = rows[part, int(np.argmax(some.var(axis=0)))]
    middle = len(part) // 2
    places = np.argpartition(values, middle)
    return part[np.sort(places[:middle])], part[np.sort(places[middle:])]

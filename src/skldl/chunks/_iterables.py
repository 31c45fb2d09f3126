"""Rows from a function or an iterable that yields chunks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from skldl.chunks._rows import Layout, Piece, Rows
from skldl.exceptions import DataError

HINT = "Pass a function that returns a new iterator each time it is called."


class IterableRows(Rows):
    """Rows from a function that returns a new iterator over chunks with each call.

    Parameters
    ----------
    source : callable or iterable
        A function without arguments that returns an iterable of chunks, or an iterable that can be iterated over
        repeatedly, such as a list of chunks. A chunk is a tuple (X, y) or (X, y, weight), or X alone for rows to
        predict. Its parts are array-like or DataFrames; X can be a sparse matrix. A generator is rejected, because it
        can be read only once.
    feature_names, label_names : sequence of str, default=None
        Names, for arrays that have none.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl import SABFGS
    >>> from skldl.chunks import IterableRows
    >>> def simulate():
    ...     rng = np.random.default_rng(0)
    ...     for _ in range(3):
    ...         X = rng.normal(size=(100, 2))
    ...         D = np.exp(X @ [[1.0, 0.0], [0.0, 0.5]])
    ...         yield X, D / D.sum(axis=1, keepdims=True)
    >>> SABFGS(fit_intercept=True).fit(IterableRows(simulate)).predict([[0.5, 1.0]]).round(2)
    array([[0.5, 0.5]])
    """

    def __init__(
        self,
        source: Callable[[], Iterable[Any]] | Iterable[Any],
        *,
        feature_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        if not callable(source):
            if not hasattr(source, "__iter__"):
                raise DataError(f"source is a {type(source).__name__}, which holds no chunks. {HINT}")
            if iter(source) is source:
                raise DataError(f"source is a {type(source).__name__}, which can be read only once. {HINT}")
        self.source = source
        self.names = feature_names, label_names
        self._iterator: Iterator[Any] | None = None

    def _pieces(self, labels: bool) -> Iterator[Piece]:
        iterator = iter(self.source() if callable(self.source) else self.source)
        if iterator is self._iterator:
            raise DataError(
                f"The function {getattr(self.source, '__name__', self.source)!r} returned the same iterator again, "
                f"which can be read only once. {HINT}"
            )
        self._iterator = iterator
        for number, chunk in enumerate(iterator):
            parts = chunk if isinstance(chunk, tuple) else (chunk,)
            if not 1 <= len(parts) <= 3:
                raise DataError(f"Chunk {number} has {len(parts)} parts. A chunk is (X, y), (X, y, weight) or X alone.")
            X, y, weight = (*parts, None, None)[:3]
            yield Piece(X, y, weight)

    def _named(self, layout: Layout) -> Layout:
        return layout.named(*self.names)

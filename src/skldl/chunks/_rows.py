"""`Rows`: rows that are read in chunks, as often as needed, so that they never have to lie in memory together.

A learner that needs the rows only through sums writes its mathematics as a function of one chunk and calls `Rows.sum`
once for each pass. Chunks are added in the order of the rows, so that a result can be repeated to the last digit.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skldl.chunks._checks import check_piece
from skldl.chunks._layout import Layout, Piece
from skldl.exceptions import DataError, EmptyDataError, SampleWeightError
from skldl.utils.arrays import ones_for
from skldl.utils.typing import FloatArray

CHUNK_CELLS = 1 << 21
"""Numbers in a chunk if its number of rows is not given (16 MiB in double precision)."""

Sums = tuple[Any, ...]
"""What a pass over the rows gives: arrays and numbers."""
Merge = Callable[[Sums, Sums], Sums]
"""Makes one tuple of two, the earlier rows first; it may write into the first."""


@dataclass(frozen=True)
class Chunk:
    """Some rows that follow each other, checked.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Features in single or double precision.
    D : ndarray of shape (n_rows, n_labels) or None
        Rows that sum to one; None if labels were not asked for or are not there.
    weight : ndarray of shape (n_rows,) or None
        Weights, at least zero.
    first : int
        Position of the first row: among all rows in `Rows.read`, among those with weight in `Rows.sum`.

    Examples
    --------
    >>> from skldl.chunks import ArrayRows
    >>> rows = ArrayRows([[0.0], [1.0], [2.0]], [[0.5, 0.5], [0.1, 0.9], [0.0, 1.0]], chunk_rows=2)
    >>> [(chunk.first, len(chunk)) for chunk in rows.read()]
    [(0, 2), (2, 1)]
    """

    X: Any
    D: Any
    weight: Any
    first: int = 0

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def with_weight(self) -> "Chunk":
        """Leave out the rows whose weight is zero.

        Returns
        -------
        Chunk
            The rows with weight.
        """
        if self.weight is None or self.weight.all():
            return self
        kept = self.weight > 0
        return replace(self, X=self.X[kept], D=None if self.D is None else self.D[kept], weight=self.weight[kept])

    def weights(self) -> FloatArray:
        """Weights as an array.

        Returns
        -------
        ndarray of shape (n_rows,)
            The weights; ones if there are none.
        """
        return ones_for(self.X) if self.weight is None else self.weight


def add(total: Sums, part: Sums) -> Sums:
    """Add what a chunk contributes to the sums so far, in place where they are arrays."""
    return tuple(operator.iadd(one, other) for one, other in zip(total, part, strict=True))


def sum_chunks(
    chunks: Iterable[Chunk], function: Callable[..., Sums], arguments: tuple[Any, ...], merge: Merge, first: int = 0
) -> Sums | None:
    """The sum of a function over the rows with weight of some chunks; None if there are no such rows.

    ``first`` is the number of rows with weight before these.
    """
    total: Sums | None = None
    for chunk in chunks:
        chunk = replace(chunk.with_weight(), first=first)
        first += len(chunk)
        if len(chunk):
            part = function(chunk, *arguments)
            total = part if total is None else merge(total, part)
    return total


class Rows(ABC):
    """Rows of features, distributions and weights that can be read again and again, chunk by chunk.

    A source writes ``_pieces``, which yields what it holds in a fixed order, and ``_known_layout`` where numbers and
    names of columns can be known without reading, or ``_named`` where names can. Rows that come from other rows may
    write ``_chunks`` and ``_pass`` instead, what `read` and `sum` do. Iterating over rows gives checked triples
    (X, D, weight); D and weight are None where there are none.

    Attributes
    ----------
    progress : callable or None
        Called with the number of the pass (from 1) and the rows read in it, after each chunk of a pass.
    n_passes : int
        Passes over the rows so far.

    Examples
    --------
    >>> from skldl import MeanDistribution
    >>> from skldl.chunks import Piece, Rows
    >>> class Squares(Rows):
    ...     def _pieces(self, labels):
    ...         for k in range(3):
    ...             yield Piece([[k**2]], [[1 - k / 4, k / 4]])
    >>> MeanDistribution().fit(Squares()).predict([[4.0]])
    array([[0.75, 0.25]])
    """

    progress: Callable[[int, int], None] | None = None
    n_passes: int = 0
    _layout: Layout | None = None
    _n_read: int | None = None

    @abstractmethod
    def _pieces(self, labels: bool) -> Iterator[Piece]:
        """What there is, in a fixed order; ``labels`` says whether distributions are needed."""

    def _known_layout(self) -> Layout | None:
        """What is known about the columns without reading."""
        return None

    def _tasks(self, client: Any) -> list[tuple[Any, ...]] | None:
        """For a cluster: a function and its arguments for each part of the rows, which give its pieces on a worker.

        None if other processes cannot read the rows. With ``client`` None it is only asked whether they can.
        """
        return None

    def _named(self, layout: Layout) -> Layout:
        """What the first chunk shows about the columns, with the names that the source knows besides."""
        return layout

    def _name(self) -> str:
        return type(self).__name__

    @property
    def layout(self) -> Layout:
        """Numbers and names of the columns; the first chunk is read where they cannot be known otherwise."""
        if self._layout is None:
            self._layout = self._known_layout()
        if self._layout is None:
            next(self.read(), None)
        if self._layout is None:
            raise EmptyDataError(f"{self._name()} holds no rows. At least one is needed.")
        return self._layout

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.layout.n_features

    @property
    def n_labels(self) -> int | None:
        """Number of labels; None if there are no distributions."""
        return self.layout.n_labels

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features, where they are known."""
        return self.layout.feature_names

    @property
    def label_names(self) -> tuple[str, ...] | None:
        """Names of the labels, where they are known."""
        return self.layout.label_names

    @property
    def n_rows(self) -> int | None:
        """Number of rows, where it is known; it is after one pass."""
        return self._n_read

    def __iter__(self) -> Iterator[tuple[Any, FloatArray | None, FloatArray | None]]:
        return ((chunk.X, chunk.D, chunk.weight) for chunk in self.read())

    def read(self, *, labels: bool = True) -> Iterator[Chunk]:
        """Read all rows once.

        Parameters
        ----------
        labels : bool, default=True
            Whether distributions are needed; without them a source may read less.

        Yields
        ------
        Chunk
            Checked rows.

        Raises
        ------
        DataError
            If a chunk cannot be used, with its place, or if the rows are not those of the pass before.
        """
        return self._chunks(labels)

    def _chunks(self, labels: bool) -> Iterator[Chunk]:
        """What `read` gives."""
        first = 0
        known = self._layout or self._known_layout()
        for number, piece in enumerate(self._pieces(labels)):
            X, D, weight, layout = check_piece(piece, number, labels=labels, known=known)
            if known is None:
                known = self._named(layout) if labels else layout
                self._layout = known if labels else None  # else nothing is known about labels
            chunk = Chunk(X, D, weight, first)
            first += len(chunk)
            del piece, X, D, weight  # the consumer alone holds the rows
            yield chunk
            del chunk
        if self._n_read is not None and first != self._n_read:
            raise DataError(
                f"{self._name()} gave {self._n_read} rows in the first pass and {first} now: it cannot be read again, "
                "or it has changed meanwhile. Pass something that gives the same rows each time, such as a function "
                "that returns a new iterator."
            )
        self._n_read = first

    def sum(
        self,
        function: Callable[..., Sums],
        *arguments: Any,
        merge: Callable[[Any, Any], Any] = add,
        labels: bool = True,
    ) -> Sums:
        """One pass: the sum of a function of each chunk, in the order of the rows.

        Parameters
        ----------
        function : callable
            From a `Chunk` of rows with weight, and the arguments, to a tuple of new arrays and numbers. A function of
            a module, so that it can be sent to other processes.
        *arguments : any
            What the function needs besides; they can be pickled.
        merge : callable, default=add
            Makes one tuple of two, the earlier rows first; it may write into the first.
        labels : bool, default=True
            Whether the function needs distributions.

        Returns
        -------
        tuple
            The sum.
        """
        return self._pass(function, arguments, merge, labels)

    def _pass(self, function: Callable[..., Sums], arguments: tuple[Any, ...], merge: Merge, labels: bool) -> Sums:
        """Implementation of `sum`."""
        self.n_passes += 1
        total = sum_chunks(self._watched(labels), function, arguments, merge)
        if total is None:
            if next(self.read(labels=False), None) is not None:
                raise SampleWeightError(f"{self._name()}: the weight is zero for every row, so nothing is left.")
            raise EmptyDataError(f"{self._name()} holds no rows. At least one is needed.")
        return total

    def _watched(self, labels: bool) -> Iterator[Chunk]:
        """The chunks of a pass; ``progress`` is called when each has been used."""
        for chunk in self.read(labels=labels):
            n_read = chunk.first + len(chunk)
            yield chunk
            del chunk  # the consumer alone holds the rows
            if self.progress is not None:
                self.progress(self.n_passes, n_read)


def rows_in_chunk(n_columns: int, chunk_rows: int | None) -> int:
    """Number of rows in a chunk: as asked for, or about `CHUNK_CELLS` numbers."""
    return max(256, CHUNK_CELLS // max(n_columns, 1)) if chunk_rows is None else chunk_rows


def check_chunk_rows(chunk_rows: Any, name: str = "chunk_rows") -> int | None:
    """Demand a positive whole number, or None."""
    if chunk_rows is None:
        return None
    if isinstance(chunk_rows, bool) or not isinstance(chunk_rows, int | np.integer) or chunk_rows < 1:
        raise ValueError(f"{name}={chunk_rows!r}, but it must be a positive whole number of rows, or None.")
    return int(chunk_rows)

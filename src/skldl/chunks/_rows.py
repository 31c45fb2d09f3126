"""`Rows`: training rows that are read in chunks, as often as needed, and checked chunk by chunk.

An estimator that needs the rows only through sums is written as functions of one chunk and calls `Rows.sum` once for
each pass. Chunks are added in the order of the rows, so a result is reproducible to the last digit.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from skldl.exceptions import (
    DataError,
    EmptyDataError,
    FeatureMismatchError,
    LabelMismatchError,
    LengthMismatchError,
    SampleWeightError,
)
from skldl.utils.arrays import ones_for
from skldl.utils.column_names import column_names, label_names
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_distributions, check_features, check_same_length, check_weights, rows_from

CHUNK_CELLS = 1 << 21
"""Numbers in a chunk if its number of rows is not given (16 MiB in double precision)."""

Sums = tuple[Any, ...]
"""Result of a pass over the rows: arrays and numbers."""
Merge = Callable[[Sums, Sums], Sums]
"""Combines the results of two sets of rows, the earlier rows first; it may write into the first."""

NAN_HINT = "Rows in chunks need every degree: drop such rows, or fit in memory an estimator that takes missing degrees."


@dataclass(frozen=True)
class Layout:
    """Numbers and names of the columns.

    Attributes
    ----------
    n_features : int
        Number of features.
    n_labels : int or None
        Number of labels; None where there are no distributions.
    feature_names, label_names : tuple of str or None
        Names, where they are known.
    has_weight : bool
        Whether the rows carry weights.
    is_sparse : bool
        Whether features come as sparse matrices.

    Examples
    --------
    >>> from skldl.chunks import ArrayRows
    >>> ArrayRows([[0.0], [1.0]], [[0.5, 0.5], [0.1, 0.9]]).layout
    Layout(n_features=1, n_labels=2, feature_names=None, label_names=None, has_weight=False, is_sparse=False)
    """

    n_features: int
    n_labels: int | None = None
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    has_weight: bool = False
    is_sparse: bool = False

    def named(self, feature_names: Sequence[str] | None, label_names: Sequence[str] | None) -> "Layout":
        """Put in names that were given.

        Parameters
        ----------
        feature_names, label_names : sequence of str or None
            As many names as there are columns; None keeps those that are known.

        Returns
        -------
        Layout
            The layout with these names.
        """
        for names, count, what in (
            (feature_names, self.n_features, "feature_names"),
            (label_names, self.n_labels, "label_names"),
        ):
            if names is not None and len(names) != count:
                raise LengthMismatchError(f"{what} has {len(names)} names for {count} columns. Pass one name for each.")
        return replace(
            self,
            feature_names=self.feature_names if feature_names is None else tuple(map(str, feature_names)),
            label_names=self.label_names if label_names is None else tuple(map(str, label_names)),
        )


@dataclass(frozen=True)
class Piece:
    """Rows of a source, not yet checked.

    Attributes
    ----------
    X : any
        Features: array-like, DataFrame or sparse matrix.
    y : any
        Distributions, or None.
    weight : any
        Weights, or None.
    place : str
        Source of the rows for error messages, such as the name of a file.
    first_row : int
        Number of the first row in that source.

    Examples
    --------
    >>> Piece([[0.0]], [[0.5, 0.5]], place="ratings.csv", first_row=7).place
    'ratings.csv'
    """

    X: Any
    y: Any = None
    weight: Any = None
    place: str = ""
    first_row: int = 0


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows, checked.

    Attributes
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Features in single or double precision.
    D : ndarray of shape (n_rows, n_labels) or None
        Rows that sum to one; None if there are no labels, or if they were not requested.
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
        """Remove the rows whose weight is zero.

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
    """Add two results term by term, arrays in place."""
    return tuple(operator.iadd(one, other) for one, other in zip(total, part, strict=True))


def sum_chunks(
    chunks: Iterable[Chunk], function: Callable[..., Sums], arguments: tuple[Any, ...], merge: Merge, first: int = 0
) -> Sums | None:
    """Sum of a function over chunks without their rows of zero weight; None if no row is left.

    ``first`` is the number of rows with positive weight before these chunks.
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
    """Base class of sources of rows (features, distributions and weights) that can be read repeatedly in chunks.

    A subclass implements ``_pieces``, which yields the rows in a fixed order. It may also implement ``_known_layout``
    if numbers and names of the columns are known without reading, or ``_named`` if only names are. A source that wraps
    another one may override ``_chunks`` and ``_pass``, which implement `read` and `sum`. Iterating over a source yields
    checked triples (X, D, weight), in which D and weight can be None.

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
        """Yield the rows in a fixed order; ``labels``: whether distributions are needed."""

    def _known_layout(self) -> Layout | None:
        """The layout, if it is known without reading rows."""
        return None

    def _tasks(self, client: Any) -> list[tuple[Any, ...]] | None:
        """For a cluster: for each block of rows a function and its arguments, which return its pieces on a worker.

        None if other processes cannot read the rows. ``client`` None only asks whether they can.
        """
        return None

    def _named(self, layout: Layout) -> Layout:
        """Add names that the source knows to the layout of the first chunk."""
        return layout

    def _name(self) -> str:
        return type(self).__name__

    @property
    def layout(self) -> Layout:
        """Numbers and names of the columns; reads the first chunk if necessary."""
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
        """Number of rows; None before the first pass if it is not known."""
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
            If a chunk is invalid, or if the number of rows differs from that of the previous pass.
        """
        return self._chunks(labels)

    def _chunks(self, labels: bool) -> Iterator[Chunk]:
        """Implementation of `read`."""
        first = 0
        known = self._layout or self._known_layout()
        for number, piece in enumerate(self._pieces(labels)):
            X, D, weight, layout = check_piece(piece, number, labels=labels, known=known)
            if known is None:
                known = self._named(layout) if labels else layout
                self._layout = known if labels else None  # a layout without labels would be incomplete
            chunk = Chunk(X, D, weight, first)
            first += len(chunk)
            del piece, X, D, weight  # the consumer alone holds the rows
            yield chunk
            del chunk
        if self._n_read is not None and first != self._n_read:
            raise DataError(
                f"{self._name()} had {self._n_read} rows in the first pass and {first} now: it cannot be read again, "
                "or it has changed meanwhile. Pass a source that yields the same rows each time, such as a function "
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
            Maps a `Chunk` without rows of zero weight, and the arguments, to a tuple of new arrays and numbers. It is
            defined at the top level of a module, so that it can be sent to other processes.
        *arguments : any
            Further arguments of the function, which can be pickled.
        merge : callable, default=add
            Combines two results, the earlier rows first; it may write into the first.
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
        """The chunks of a pass; calls ``progress`` after each."""
        for chunk in self.read(labels=labels):
            n_read = chunk.first + len(chunk)
            yield chunk
            del chunk  # the consumer alone holds the rows
            if self.progress is not None:
                self.progress(self.n_passes, n_read)


class _Features(BaseEstimator):
    """Estimator on which `check_features` stores the names of the columns of one chunk."""


def check_piece(
    piece: Piece, number: int, *, labels: bool, known: Layout | None
) -> tuple[Any, FloatArray | None, FloatArray | None, Layout]:
    """Check a piece, and compare its columns with the known layout, if there is one.

    ``number`` counts the chunks from 0, for errors about pieces without a ``place``. Returns X, D, weights and the
    layout; D is None if there are no labels, or if they are not needed.
    """
    place = piece.place or f"chunk {number}"
    try:
        with rows_from(piece.first_row):
            return _checked(piece, labels=labels, known=known)
    except DataError as error:
        raise error.prefixed(f"In {place}: ") from error
    except TypeError as error:
        raise TypeError(f"In {place}: {error}") from error


def _checked(
    piece: Piece, *, labels: bool, known: Layout | None
) -> tuple[Any, FloatArray | None, FloatArray | None, Layout]:
    shape = np.shape(piece.X) if not hasattr(piece.X, "shape") else piece.X.shape
    if len(shape) == 2 and shape[0] == 0:
        raise EmptyDataError("the chunk is empty. Leave out chunks without rows.")
    if known is not None and len(shape) == 2 and shape[1] != known.n_features:
        raise FeatureMismatchError(
            f"X has {shape[1]} columns, but the chunks before have {known.n_features}. Every chunk needs the same "
            "columns in the same order."
        )
    features = _Features()
    X = check_features(features, piece.X, reset=True, accept_sparse=True, is_part=True)
    names = getattr(features, "feature_names_in_", None)
    found_names = None if names is None else tuple(str(name) for name in names)
    D = names_of_labels = None
    if labels and piece.y is not None:
        D = check_distributions(piece.y, nan_hint=NAN_HINT)
        check_same_length(X, D)
        if column_names(piece.y):
            names_of_labels = tuple(str(name) for name in label_names(piece.y, D.shape[1]))
    weight = check_weights(piece.weight, X.shape[0], is_part=True)
    n_labels = None if D is None else D.shape[1]
    layout = Layout(X.shape[1], n_labels, found_names, names_of_labels, weight is not None, sparse.issparse(X))
    if known is not None:
        _compare(layout, known, labels=labels)
    return X, D, weight, layout


def _compare(found: Layout, known: Layout, *, labels: bool) -> None:
    """Raise unless the layout of a chunk agrees with that of the chunks before."""
    names = zip(found.feature_names or (), known.feature_names or (), strict=False)  # as many, if both are known
    new, old = next((pair for pair in names if pair[0] != pair[1]), (None, None))
    if new is not None:
        raise FeatureMismatchError(
            f"X has a column {new!r} where the chunks before have {old!r}. Every chunk needs the same columns in the "
            "same order."
        )
    if found.is_sparse != known.is_sparse:
        kinds = ["a sparse matrix" if layout.is_sparse else "dense" for layout in (found, known)]
        raise DataError(
            f"X is {kinds[0]}, and in the chunks before it is {kinds[1]}. Give all chunks in the same form."
        )
    if found.has_weight != known.has_weight:
        raise LengthMismatchError(
            f"this chunk has {'weights' if found.has_weight else 'no weights'}, and the chunks before have "
            f"{'some' if known.has_weight else 'none'}. Give weights with every chunk or with none."
        )
    if not labels:
        return
    if found.n_labels != known.n_labels:
        counts = ["no distributions" if n is None else f"{n} labels" for n in (found.n_labels, known.n_labels)]
        raise LengthMismatchError(
            f"this chunk has {counts[0]}, and the chunks before have {counts[1]}. Every chunk needs one degree for "
            "each label."
        )
    if None not in (found.label_names, known.label_names) and found.label_names != known.label_names:
        raise LabelMismatchError(
            f"the labels are {', '.join(found.label_names or ())}, and those of the chunks before "
            f"{', '.join(known.label_names or ())}. Every chunk needs the same labels in the same order."
        )


def rows_in_chunk(n_columns: int, chunk_rows: int | None) -> int:
    """Number of rows in a chunk: ``chunk_rows``, or about `CHUNK_CELLS` numbers."""
    return max(256, CHUNK_CELLS // max(n_columns, 1)) if chunk_rows is None else chunk_rows


def check_chunk_rows(chunk_rows: Any, name: str = "chunk_rows") -> int | None:
    """Raise unless ``chunk_rows`` is a positive whole number or None."""
    if chunk_rows is None:
        return None
    if isinstance(chunk_rows, bool) or not isinstance(chunk_rows, int | np.integer) or chunk_rows < 1:
        raise ValueError(f"{name}={chunk_rows!r}, but it must be a positive whole number of rows, or None.")
    return int(chunk_rows)

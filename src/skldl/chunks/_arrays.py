"""Rows from arrays: in memory, memory-mapped, sparse, or on a device."""

from collections.abc import Callable, Iterator, Sequence
from os import PathLike, fspath
from typing import Any

import numpy as np
from scipy import sparse

from skldl.chunks._rows import Chunk, Layout, Merge, Piece, Rows, Sums, check_chunk_rows, rows_in_chunk
from skldl.exceptions import DatasetError, LengthMismatchError
from skldl.utils.arrays import is_device_array, rows_on_host, to_numpy_together
from skldl.utils.typing import FloatArray


class ArrayRows(Rows):
    """Rows of arrays, read in chunks.

    A memory-mapped array is read from disk chunk by chunk in every pass, so it can be larger than the memory.

    Parameters
    ----------
    X : array-like, DataFrame, sparse matrix or path of a ``.npy`` file, of shape (n_samples, n_features)
        Features. A path is opened as a memory map.
    y : array-like, DataFrame or path of a ``.npy`` file, of shape (n_samples, n_labels), default=None
        Label distributions; None if the rows are only predicted.
    weight : array-like of shape (n_samples,) or path of a ``.npy`` file, default=None
        Weight of each row.
    chunk_rows : int, default=None
        Rows in a chunk; None makes chunks of about two million numbers.
    feature_names, label_names : sequence of str, default=None
        Names, for arrays that have none.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl import SABFGS
    >>> from skldl.chunks import ArrayRows
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> D = np.tile([0.25, 0.75], (6, 1))
    >>> rows = ArrayRows(X, D, chunk_rows=4)
    >>> [chunk.X.shape for chunk in rows.read()]
    [(4, 2), (2, 2)]
    >>> rows.n_features, rows.n_labels
    (2, 2)
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        weight: Any = None,
        *,
        chunk_rows: int | None = None,
        feature_names: Sequence[str] | None = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        self.X, self.y, self.weight = (_opened(values) for values in (X, y, weight))
        if not hasattr(self.X, "shape"):
            self.X = np.asarray(self.X)
        elif sparse.issparse(self.X):
            self.X = self.X.tocsr()
        self.y = self.y if self.y is None or hasattr(self.y, "shape") else np.asarray(self.y)
        self.weight = None if self.weight is None else np.asarray(self.weight)
        for values, name in ((self.y, "y"), (self.weight, "weight")):
            if values is not None and values.shape and self.X.shape and values.shape[0] != self.X.shape[0]:
                raise LengthMismatchError(
                    f"X has {self.X.shape[0]} rows and {name} has {values.shape[0]}. Pass one entry for each row of X."
                )
        self.chunk_rows = check_chunk_rows(chunk_rows)
        self.names = feature_names, label_names

    def _pieces(self, labels: bool) -> Iterator[Piece]:
        size = self._chunk_size()
        for first in range(0, self.X.shape[0], size):
            some = slice(first, first + size)
            weight = self.weight[some] if self.weight is not None and self.weight.ndim else self.weight
            y = None if self.y is None or not labels else _some(self.y, some)
            yield Piece(_some(self.X, some), y, weight, self._name(), first)

    def _named(self, layout: Layout) -> Layout:
        return layout.named(*self.names)

    def _chunk_size(self) -> int:
        if sparse.issparse(self.X):
            n_cells = 1 + self.X.nnz // max(self.X.shape[0], 1)
        else:
            n_cells = self.X.shape[1] if len(self.X.shape) == 2 else 1
        return rows_in_chunk(n_cells, self.chunk_rows)

    @property
    def n_rows(self) -> int | None:
        """Number of rows."""
        return int(self.X.shape[0])


class CheckedRows(Rows):
    """Rows in memory or on a device that have been checked, all with positive weight.

    They are one chunk: a pass is one call of its function, without a copy and without further checks. Results on a
    device are converted to NumPy arrays.

    Parameters
    ----------
    X : ndarray, CSR matrix or array on a device, of shape (n_samples, n_features)
        Features.
    D : array of shape (n_samples, n_labels)
        Distributions, where X is.
    weight : array of shape (n_samples,) or None
        Positive weights, where X is; None means that all rows count the same.
    """

    def __init__(self, X: Any, D: Any, weight: Any = None) -> None:
        self.chunk = Chunk(X, D, weight)

    def _pieces(self, labels: bool) -> Iterator[Piece]:
        yield Piece(self.chunk.X, self.chunk.D if labels else None, self.chunk.weight)

    def _known_layout(self) -> Layout:
        X, D = self.chunk.X, self.chunk.D
        n_labels = None if D is None else int(D.shape[1])
        return Layout(int(X.shape[1]), n_labels, None, None, self.chunk.weight is not None, sparse.issparse(X))

    def _chunks(self, labels: bool) -> Iterator[Chunk]:
        yield self.chunk

    def _pass(self, function: Callable[..., Sums], arguments: tuple[Any, ...], merge: Merge, labels: bool) -> Sums:
        self.n_passes += 1
        return to_numpy_together(function(self.chunk, *arguments))

    @property
    def n_rows(self) -> int | None:
        """Number of rows."""
        return len(self.chunk)


def in_memory(rows: Rows) -> CheckedRows:
    """Load all rows with positive weight into main memory; for computations on few rows that need them all."""
    if isinstance(rows, CheckedRows):
        chunk = rows.chunk
        return CheckedRows(*rows_on_host(chunk.X, chunk.D, chunk.weight)) if is_device_array(chunk.X) else rows
    chunks = [chunk.with_weight() for chunk in rows.read()]
    X = [chunk.X for chunk in chunks]
    D: list[FloatArray] = [chunk.D for chunk in chunks if chunk.D is not None]
    weights = [chunk.weight for chunk in chunks if chunk.weight is not None]
    return CheckedRows(
        sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X),
        np.concatenate(D),
        np.concatenate(weights) if weights else None,
    )


def _opened(values: Any) -> Any:
    """Memory-map the file of a path; return anything else unchanged."""
    if not isinstance(values, str | PathLike):
        return values
    try:
        return np.load(fspath(values), mmap_mode="r", allow_pickle=False)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{fspath(values)} does not exist. Pass the path of a .npy file.") from error
    except (ValueError, OSError, EOFError) as error:
        raise DatasetError(
            f"{fspath(values)} cannot be opened as a .npy file ({error}). Write it with numpy.save, without objects."
        ) from error


def _some(table: Any, rows: slice) -> Any:
    """Some rows of an array, a sparse matrix or a DataFrame."""
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]

"""Rows of Dask arrays and DataFrames."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from skldl.chunks._cluster import ClusterRows, active_client
from skldl.chunks._columns import Columns, Names, assign_columns
from skldl.chunks._layout import Layout, Piece
from skldl.chunks._rows import Merge, Rows, Sums
from skldl.exceptions import DataError, LengthMismatchError, NotNumericError, Parameter
from skldl.utils.dependencies import import_with_extra


class DaskRows(Rows):
    """Rows of Dask arrays or of a Dask DataFrame: each block of rows, or partition, is a chunk.

    Without a cluster the blocks are computed one at a time, in every pass. Where there is a `distributed.Client`, they
    are computed once, stay on their workers, and the fit runs there; see `skldl.chunks.ClusterRows`.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        Features; or a DataFrame that holds labels and weights, too, if ``labels`` is given.
    y : dask.array.Array or dask.dataframe.DataFrame, default=None
        Label distributions in the same blocks of rows; None for rows to predict, or if ``labels`` is given.
    weight : dask.array.Array, dask Series or str, default=None
        Weight of each row; the name of a column if ``labels`` is given.
    labels : str or sequence of str, default=None
        Columns of a DataFrame X that are degrees: names, patterns such as ``"r_*"``, or what several names begin with.
    features : str or sequence of str, default=None
        Columns of a DataFrame X that are features; None takes every column that is neither a label nor the weight.
    client : distributed.Client, default=None
        The cluster; None takes the client that was made last, if there is one.

    Examples
    --------
    >>> import dask.array as da
    >>> from skldl import MeanDistribution
    >>> from skldl.chunks import DaskRows
    >>> X = da.ones((6, 2), chunks=(4, 2))
    >>> D = da.full((6, 2), 0.5, chunks=(4, 2))
    >>> MeanDistribution().fit(DaskRows(X, D)).predict([[1.0, 1.0]])
    array([[0.5, 0.5]])
    """

    def __init__(
        self,
        X: Any,
        y: Any = None,
        weight: Any = None,
        *,
        labels: Names = None,
        features: Names = None,
        client: Any = None,
    ) -> None:
        self.client = client
        self._on_cluster: ClusterRows | None = None
        self._dask = import_with_extra("dask", "dask", user="skldl.chunks.DaskRows")
        if not hasattr(X, "to_delayed") or not hasattr(X, "__dask_graph__"):
            raise DataError(f"X is a {type(X).__name__}, not a Dask array or DataFrame. For arrays use ArrayRows.")
        self.columns: Columns | None = None
        if hasattr(X, "columns"):
            X, y, weight = self._of_frame(X, y, weight, labels, features)
        elif labels is not None or features is not None:
            raise DataError(
                Parameter("labels"),
                " and ",
                Parameter("features"),
                " name the columns of a DataFrame, but X is an array. Pass y instead.",
            )
        blocks = [_row_blocks(values, X) for values in (X, y, weight)]
        for given, name in ((blocks[1], "y"), (blocks[2], "weight")):
            if given is not None and len(given) != len(blocks[0] or ()):
                raise LengthMismatchError(
                    f"X has {len(blocks[0] or ())} blocks of rows and {name} has {len(given)}. Rechunk {name} like X."
                )
        n_blocks = len(blocks[0] or ())
        self.blocks = list(zip(*([None] * n_blocks if given is None else given for given in blocks), strict=True))

    def _of_frame(self, X: Any, y: Any, weight: Any, labels: Names, features: Names) -> tuple[Any, Any, Any]:
        """Features, labels and weights of a DataFrame, as DataFrames and a Series."""
        names = [str(name) for name in X.columns]
        by_name = isinstance(weight, str)
        self.columns = columns = assign_columns(names, labels, features, weight if by_name else None, place="X")
        for name, kind in zip(X.columns, X.dtypes, strict=True):
            used = str(name) in columns.features or str(name) in columns.labels
            if used and getattr(kind, "kind", "O") not in "biuf" and not str(kind).lower().startswith(("int", "float")):
                raise NotNumericError(
                    f"Column {str(name)!r} of X holds {kind}, where numbers belong. Leave it out with ",
                    Parameter("features"),
                    ", or turn it into numbers first.",
                )
        if columns.labels and y is not None:
            raise DataError(
                "Both ", Parameter("labels"), " and y were given. Pass the labels as columns of X, or as y."
            )
        frame = X
        X = frame[list(columns.features)]
        y = frame[list(columns.labels)] if columns.labels else y
        return X, y, frame[weight] if by_name else weight

    def _pass(self, function: Callable[..., Sums], arguments: tuple[Any, ...], merge: Merge, labels: bool) -> Sums:
        """One pass, on the cluster if there is one."""
        client = self.client or active_client()
        if client is None:
            return super()._pass(function, arguments, merge, labels)
        if self._on_cluster is None or self._on_cluster.client is not client:
            self._on_cluster = ClusterRows(self, client)
        self._on_cluster.progress = self.progress
        sums = self._on_cluster.sum(function, *arguments, merge=merge, labels=labels)
        self.n_passes, self._n_read = self._on_cluster.n_passes, self._on_cluster.n_rows
        return sums

    def _tasks(self, client: Any) -> list[tuple[Any, ...]] | None:
        if client is None:
            return []
        parts = [[part for part in block if part is not None] for block in self.blocks]
        futures = iter(client.compute([part for block in parts for part in block]))
        return [
            (_piece, number, *(None if part is None else next(futures) for part in block))
            for number, block in enumerate(self.blocks)
        ]

    def _pieces(self, labels: bool) -> Iterator[Piece]:
        for number, (X, y, weight) in enumerate(self.blocks):
            yield from _piece(number, *self._dask.compute(X, y if labels else None, weight))

    def _named(self, layout: Layout) -> Layout:
        if self.columns is None:
            return layout
        labels = self.columns.labels or layout.label_names
        return replace(layout, feature_names=self.columns.features, label_names=labels)


def _piece(number: int, X: Any, y: Any, weight: Any) -> list[Piece]:
    """A computed block as a piece, on a worker."""
    return [Piece(X, y, weight, f"block {number} of the Dask collection")]


def _row_blocks(values: Any, like: Any) -> list[Any] | None:
    """Blocks of rows as delayed objects, all columns in each."""
    if values is None:
        return None
    if not hasattr(values, "to_delayed"):
        raise DataError(
            f"X is a Dask collection, but y or weight is a {type(values).__name__}. Make a Dask array of it with the "
            "blocks of X: dask.array.from_array(values, chunks=...)."
        )
    if not hasattr(values, "rechunk"):
        return list(values.to_delayed())
    own = values.chunks[0]
    rows = like.chunks[0] if hasattr(like, "chunks") else own
    chunks: dict[int, Any] = {axis: -1 for axis in range(1, values.ndim) if len(values.chunks[axis]) > 1}
    if own != rows and all(size == size for size in (*rows, *own)):  # sizes that are not known are nan
        if sum(own) != sum(rows):
            raise LengthMismatchError(f"X has {sum(rows)} rows and y or weight has {sum(own)}. Pass one for each row.")
        chunks[0] = rows
    return list((values.rechunk(chunks) if chunks else values).to_delayed().ravel())

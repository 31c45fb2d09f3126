"""Rows of Dask collections, and rows on a Dask cluster.

On a cluster, blocks of rows stay on their workers, and only sums are sent. Every block is a task that reads and checks
its rows and keeps them in the memory of a worker. A pass sends a function with its arguments to the workers, applies it
to each block there, and adds the results in a tree that depends on the number of blocks alone, so that a
result can be repeated to the last digit. When a worker is lost, the scheduler reads its blocks again on another one;
the sums stay the same.
"""

import asyncio
import concurrent.futures
import copy
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from skldl.chunks._rows import Chunk, Layout, Merge, Piece, Rows, Sums, check_piece, sum_chunks
from skldl.exceptions import (
    DataError,
    EmptyDataError,
    LengthMismatchError,
    NotNumericError,
    Parameter,
    SampleWeightError,
)
from skldl.utils.column_names import Columns, Names, assign_columns
from skldl.utils.dependencies import import_with_extra

POLL_SECONDS = 1.0
"""Time between two checks that the workers of a running pass are alive."""
MAX_SECONDS_WITHOUT_WORKERS = 60.0
"""A restarted worker is back after a few seconds; after a minute none is to be expected."""
FAN_IN = 8
"""Number of sums that are added by one task: few enough for a worker's memory, and three levels for 512 blocks."""
GO_ON = "with RecordedRows it is resumed where it stopped."

Block = tuple[list[Chunk], Layout | None]
"""Checked chunks of a block, and their columns."""


class DaskRows(Rows):
    """Rows of Dask arrays or of a Dask DataFrame: each block of rows, or partition, is a chunk.

    Without a cluster the blocks are computed one at a time, in every pass. With a `distributed.Client` they are
    computed once and stay on their workers, and the fit runs there; see `skldl.chunks.ClusterRows`.

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
        The cluster; None means the most recent client, if there is one.

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
                    f"Column {str(name)!r} of X holds {kind}, but must hold numbers. Leave it out with ",
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
    if own != rows and all(size == size for size in (*rows, *own)):  # unknown sizes are nan
        if sum(own) != sum(rows):
            raise LengthMismatchError(f"X has {sum(rows)} rows and y or weight has {sum(own)}. Pass one for each row.")
        chunks[0] = rows
    return list((values.rechunk(chunks) if chunks else values).to_delayed().ravel())


class ClusterRows(Rows):
    """Rows in the memory of the workers of a Dask cluster.

    A fit runs on the cluster; its result is that of one machine up to the order of summation.

    Parameters
    ----------
    rows : ParquetRows, DaskRows or another source that other processes can read
        The source of the rows. The workers read them: files must have the same path on all of them.
    client : distributed.Client, default=None
        The cluster; None means the most recent client.

    Notes
    -----
    The rows should fit into the memory of all workers together; Dask writes the excess to their disks. `DaskRows` uses
    the cluster by itself if there is a client.

    Examples
    --------
    >>> import dask.array as da
    >>> from distributed import Client
    >>> from skldl import MeanDistribution
    >>> from skldl.chunks import ClusterRows, DaskRows
    >>> rows = DaskRows(da.ones((6, 2), chunks=(3, 2)), da.full((6, 2), 0.5, chunks=(3, 2)))
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     MeanDistribution().fit(ClusterRows(rows, client)).predict([[1.0, 1.0]])
    array([[0.5, 0.5]])
    """

    def __init__(self, rows: Rows, client: Any = None) -> None:
        distributed = import_with_extra("distributed", "dask", user="skldl.chunks.ClusterRows")
        if not isinstance(rows, Rows) or rows._tasks(None) is None:
            raise DataError(
                f"The workers of a cluster cannot read a {type(rows).__name__}. Use ParquetRows with files that all of "
                "them see, or DaskRows."
            )
        self.rows = rows
        self.client = distributed.default_client() if client is None else client
        self._blocks: list[Any] = []  # futures of the blocks
        self._holders: list[str] = []  # address of the worker of each block; empty where it must be asked for
        self._firsts: list[int] = []  # number of rows with weight before each block

    def _name(self) -> str:
        return self.rows._name()

    def _pieces(self, labels: bool) -> Iterator[Piece]:
        return self.rows._pieces(labels)

    def _known_layout(self) -> Layout | None:
        self._load()
        return self._layout

    def _load(self) -> list[Any]:
        """Let the workers read and check the rows; compare the layouts of their blocks."""
        if self._blocks:
            return self._blocks
        known = self.rows._layout or self.rows._known_layout()
        prefix = f"skldl-read-{uuid.uuid4().hex}"
        blocks = [
            self.client.submit(_read, function, number, known, *arguments, pure=False, key=f"{prefix}-{number}")
            for number, (function, *arguments) in enumerate(self.rows._tasks(self.client) or ())
        ]
        found = self._results(self._on_holders(blocks, _describe, [()] * len(blocks))) if blocks else []
        first = next((layout for layout, *_ in found if layout is not None), None)
        if first is None:
            raise EmptyDataError(f"{self._name()} holds no rows. At least one is needed.")
        for number, (layout, *_) in enumerate(found):
            if layout not in (None, first):
                raise DataError(
                    f"In block {number} of {self._name()}: the columns differ from those of the blocks before "
                    f"({layout} instead of {first})."
                )
        weighted = np.cumsum([0, *(n_weighted for _, n_weighted, _ in found)])
        if not weighted[-1]:
            raise SampleWeightError(f"{self._name()}: the weight is zero for every row, so nothing is left.")
        self._firsts, self._n_read = weighted[:-1].tolist(), sum(n_rows for *_, n_rows in found)
        self._layout = self.rows._named(known or first)
        self._blocks = blocks
        return blocks

    def _on_holders(
        self, blocks: list[Any], function: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]
    ) -> list[Any]:
        """Futures of a function of each block, on the worker that holds it; elsewhere if that worker is lost."""
        while True:
            if not self._holders:
                self._wait(blocks)
                failed = [block for block in blocks if block.status in ("error", "cancelled")]
                self._results(failed[:1])  # raises the error of the block
                places = self.client.who_has(blocks)
                self._holders = [min(places.get(block.key) or [""]) for block in blocks]
            if all(self._holders):
                futures = [
                    self.client.submit(function, block, *further, workers=[holder], pure=False)
                    for block, holder, further in zip(blocks, self._holders, arguments, strict=True)
                ]
                if self._wait(futures, set(self._holders)):
                    return futures
            self._holders = []  # a worker was lost: its blocks are read again by another one

    def _wait(self, futures: list[Any], holders: Collection[str] = ()) -> bool:
        """Wait until all futures are done (True), or until one of the holders is lost (False).

        Raises if the cluster is lost, or has had no workers for a minute.
        """
        distributed = import_with_extra("distributed", "dask")
        last_seen = time.monotonic()
        while True:
            try:
                with self.client.as_current():
                    distributed.wait(futures, timeout=POLL_SECONDS)
                return True
            except TimeoutError:
                alive = set(self.client.nthreads()) if self.client.status == "running" else set()
            except (asyncio.CancelledError, concurrent.futures.CancelledError) as error:
                raise _lost_scheduler() from error
            if alive and not alive.issuperset(holders):
                return False
            last_seen = time.monotonic() if alive else last_seen
            if time.monotonic() - last_seen > MAX_SECONDS_WITHOUT_WORKERS:
                raise ConnectionError(
                    f"The Dask cluster has had no worker for {MAX_SECONDS_WITHOUT_WORKERS:.0f} s. Start workers, and "
                    f"fit again; {GO_ON}"
                )

    def _results(self, futures: list[Any]) -> list[Any]:
        self._wait(futures)
        try:
            return list(self.client.gather(futures))
        except (asyncio.CancelledError, concurrent.futures.CancelledError) as error:
            raise _lost_scheduler() from error

    def _chunks(self, labels: bool) -> Iterator[Chunk]:
        """Fetch the blocks, one at a time."""
        first = 0
        for block in self._load():
            for chunk in self._results([block])[0][0]:
                yield replace(chunk, first=first, D=chunk.D if labels else None)
                first += len(chunk)

    def _pass(self, function: Callable[..., Sums], arguments: tuple[Any, ...], merge: Merge, labels: bool) -> Sums:
        """One pass on the cluster, whose workers hold the distributions in any case."""
        blocks = self._load()
        self.n_passes += 1
        shared = self.client.submit(_identity, arguments, pure=False)  # a task can be repeated if its worker is lost
        further = [(function, merge, shared, first) for first in self._firsts]
        parts = self._on_holders(blocks, _sum_block, further)
        while len(parts) > 1:
            parts = [
                self.client.submit(_merge, merge, *parts[first : first + FAN_IN], pure=False)
                for first in range(0, len(parts), FAN_IN)
            ]
        sums: Sums = self._results(parts)[0]
        if self.progress is not None:
            self.progress(self.n_passes, self._n_read or 0)
        return sums


def active_client() -> Any:
    """The client of a cluster that this process has made, or None; imports nothing."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.default_client()
    except ValueError:
        return None


def _lost_scheduler() -> ConnectionError:
    return ConnectionError(
        f"The Dask scheduler was lost, and the rows on its workers with it. Start a cluster, and fit again; {GO_ON}"
    )


def _read(function: Callable[..., Any], number: int, known: Layout | None, *arguments: Any) -> Block:
    """Read and check the rows of one block, on a worker."""
    chunks = []
    for piece in function(*arguments):
        X, D, weight, layout = check_piece(piece, number, labels=True, known=known)
        known = known or layout
        chunks.append(Chunk(X, D, weight))
    return chunks, known if chunks else None


def _describe(block: Block) -> tuple[Layout | None, int, int]:
    """Columns, number of rows with weight and number of rows of a block."""
    chunks, layout = block
    n_weighted = sum(len(chunk) if chunk.weight is None else int((chunk.weight > 0).sum()) for chunk in chunks)
    return layout, n_weighted, sum(len(chunk) for chunk in chunks)


def _identity(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return arguments


def _sum_block(
    block: Block, function: Callable[..., Sums], merge: Merge, arguments: tuple[Any, ...], first: int
) -> Sums | None:
    """The sum over the chunks of one block, on a worker; None if no row has weight."""
    return sum_chunks(block[0], function, arguments, merge, first)


def _merge(merge: Merge, *parts: Sums | None) -> Sums | None:
    """Merge sums, in the order of the blocks; a copy, because a lost worker may ask for the parts again."""
    total: Sums | None = None
    for part in parts:
        if part is not None:
            total = copy.deepcopy(part) if total is None else merge(total, part)
    return total

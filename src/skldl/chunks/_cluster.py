"""Rows on a Dask cluster: blocks of rows stay on their workers, and only sums travel.

Every block is a task that reads and checks its rows and keeps them in the memory of a worker. A pass sends the
arguments of a function to the workers, applies it to each block where the block lies, and adds the results in a tree
that depends on the number of blocks alone, so that a result can be repeated to the last digit. When a worker is lost,
the scheduler reads its blocks again on another one; the sums stay the same.
"""

import asyncio
import concurrent.futures
import copy
import sys
import time
import uuid
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from skldl.chunks._checks import check_piece
from skldl.chunks._layout import Layout, Piece
from skldl.chunks._rows import Chunk, Merge, Rows, Sums, weight_exponent
from skldl.exceptions import DataError, EmptyDataError, SampleWeightError
from skldl.utils.dependencies import import_with_extra

SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_WITHOUT_WORKERS = 60.0
LOST = (
    "The Dask scheduler was lost, and the rows on its workers with it. Start a cluster, and fit again; with "
    "RecordedRows it goes on where it stopped."
)
FAN_IN = 8
"""How many sums are added by one task."""

Block = tuple[list[Chunk], Layout | None, float]
"""Checked chunks, their columns, and their largest weight."""


class ClusterRows(Rows):
    """Rows in the memory of the workers of a Dask cluster.

    A fit on them runs on the cluster; its result is the same as on one machine up to the order of summation.

    Parameters
    ----------
    rows : ParquetRows, DaskRows or other Rows with parts
        Where the rows come from. The workers read the parts themselves: files must be at the same place for all.
    client : distributed.Client, default=None
        The cluster; None takes the client that was made last.

    Notes
    -----
    The rows of all blocks should fit into the memory of all workers together; Dask writes what does not to their disks.
    `DaskRows` does this by itself where there is a client.

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
        self._blocks: list[Any] | None = None
        self._counts: list[int] = []
        self._holders: list[str] | None = None

    def _name(self) -> str:
        return self.rows._name()

    def _pieces(self, labels: bool) -> Iterator[Piece]:
        return self.rows._pieces(labels)

    def _known_layout(self) -> Layout:
        self._load()
        assert self._layout is not None
        return self._layout

    def _load(self) -> list[Any]:
        """Let the workers read and check the rows, and compare what they found; the futures of the blocks."""
        if self._blocks is not None:
            return self._blocks
        known = self.rows._layout or self.rows._known_layout()
        tasks = self.rows._tasks(self.client) or []
        name = uuid.uuid4().hex
        blocks = [
            self.client.submit(
                _read, function, number, known, *arguments, pure=False, key=f"skldl-read-{name}-{number}"
            )
            for number, (function, *arguments) in enumerate(tasks)
        ]
        if not blocks:
            raise EmptyDataError(f"{self._name()} holds no rows. At least one is needed.")
        found = self._results(self._on_holders(blocks, _describe, [()] * len(blocks)))
        first = next((layout for layout, *_ in found if layout is not None), None)
        if first is None:
            raise EmptyDataError(f"{self._name()} holds no rows. At least one is needed.")
        for number, (layout, *_) in enumerate(found):
            if layout is not None and layout != first:
                raise DataError(
                    f"In block {number} of {self._name()}: the columns differ from those of the blocks before "
                    f"({layout} instead of {first})."
                )
        self._counts = [count for _, count, _, _ in found]
        self._n_read = sum(n_rows for *_, n_rows in found)
        largest = max(weight for _, _, weight, _ in found)
        if largest == 0:
            raise SampleWeightError(f"{self._name()}: the weight is zero for every row, so nothing is left.")
        self._exponent = weight_exponent(largest)
        self._layout = self.rows._named(known or first)
        self._blocks = blocks
        return blocks

    def _on_holders(
        self, blocks: list[Any], function: Callable[..., Any], arguments: list[tuple[Any, ...]]
    ) -> list[Any]:
        """Futures of a function of each block, on the worker that holds the block; again where that worker is lost."""
        futures: list[Any] | None = None
        while True:
            if self._holders is None:
                self._wait(blocks)
                for block in blocks:
                    if block.status in ("error", "cancelled"):
                        self._results([block])  # raises
                places = self.client.who_has(blocks)
                self._holders = [min(places.get(block.key) or [""]) for block in blocks]
                futures = None
            if futures is None:
                futures = [
                    self.client.submit(function, block, *further, workers=[holder], pure=False)
                    for block, holder, further in zip(blocks, self._holders, arguments, strict=True)
                    if holder
                ]
            if len(futures) == len(blocks) and self._wait(futures, set(self._holders)):
                return futures
            self._holders = None  # a worker was lost: its blocks are read again, elsewhere

    def _wait(self, futures: list[Any], holders: Collection[str] = ()) -> bool:
        """Wait until all is done, or until one of the holders is lost: then False.

        A cluster that is gone, or has had no workers for a minute, is an error.
        """
        distributed = import_with_extra("distributed", "dask")
        last_seen = time.monotonic()
        while True:
            try:
                with self.client.as_current():
                    distributed.wait(futures, timeout=SECONDS_BETWEEN_LOOKS)
                return True
            except TimeoutError:
                alive = set(self.client.nthreads()) if self.client.status == "running" else set()
            except (asyncio.CancelledError, concurrent.futures.CancelledError) as error:
                raise ConnectionError(LOST) from error
            if not alive.issuperset(holders) and alive:
                return False
            last_seen = time.monotonic() if alive else last_seen
            if time.monotonic() - last_seen > SECONDS_WITHOUT_WORKERS:
                raise ConnectionError(
                    f"The Dask cluster has had no worker for {SECONDS_WITHOUT_WORKERS:.0f} s. Start workers, and fit "
                    "again; with RecordedRows it goes on where it stopped."
                )

    def _results(self, futures: list[Any]) -> list[Any]:
        self._wait(futures)
        try:
            return list(self.client.gather(futures))
        except (asyncio.CancelledError, concurrent.futures.CancelledError) as error:
            raise ConnectionError(LOST) from error

    def _chunks(self, labels: bool) -> Iterator[Chunk]:
        """Bring the blocks here, one at a time."""
        first = 0
        for block in self._load():
            for chunk in self._results([block])[0][0]:
                yield replace(chunk, first=first, D=chunk.D if labels else None)
                first += len(chunk)

    def _pass(self, function: Callable[..., Sums], arguments: tuple[Any, ...], merge: Merge, labels: bool) -> Sums:
        """One pass on the cluster, whose workers hold the distributions in any case."""
        blocks = self._load()
        self.n_passes += 1
        shared = self.client.submit(_hold, arguments, pure=False)  # a task, so that it can be repeated, too
        firsts = np.concatenate([[0], np.cumsum(self._counts)])
        further = [(function, merge, shared, int(first), self._exponent) for first in firsts[:-1]]
        parts = self._on_holders(blocks, _apply, further)
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


def _read(function: Callable[..., Any], number: int, known: Layout | None, *arguments: Any) -> Block:
    """Read and check the rows of one block, on a worker."""
    chunks, largest = [], 0.0
    for piece in function(*arguments):
        X, D, weight, layout = check_piece(piece, number, labels=True, known=known)
        known = known or layout
        chunks.append(Chunk(X, D, weight))
        largest = max(largest, 1.0 if weight is None else float(weight.max()))
    return chunks, known if chunks else None, largest


def _describe(block: Block) -> tuple[Layout | None, int, float, int]:
    """Columns, number of rows with weight, largest weight and number of rows of a block."""
    chunks, layout, largest = block
    n_weighted = sum(len(chunk) if chunk.weight is None else int((chunk.weight > 0).sum()) for chunk in chunks)
    return layout, n_weighted, largest, sum(len(chunk) for chunk in chunks)


def _hold(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return arguments


def _apply(
    block: Block,
    function: Callable[..., Sums],
    merge: Merge,
    arguments: tuple[Any, ...],
    first: int,
    exponent: int,
) -> Sums | None:
    """The sum over the chunks of one block, on a worker; None if no row has weight."""
    total: Sums | None = None
    for chunk in block[0]:
        chunk = replace(chunk.with_weight().reduced(exponent), first=first)
        first += len(chunk)
        if len(chunk):
            part = function(chunk, *arguments)
            total = part if total is None else merge(total, part)
    return total


def _merge(merge: Merge, *parts: Sums | None) -> Sums | None:
    """Put sums together; what was given stays as it is, because a lost worker may ask for it again."""
    total: Sums | None = None
    for part in parts:
        if part is not None:
            total = copy.deepcopy(part) if total is None else merge(total, part)
    return total

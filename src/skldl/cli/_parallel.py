"""Work on the chunks of a table in several processes, with results in the order of the chunks."""

import warnings
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from functools import partial
from itertools import chain
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

from skldl.exceptions import DataError
from skldl.utils.processes import Pool

CHUNKS_ALONE = 25
"""So many chunks are worked on in this process, unless a number of processes is asked for: to start two others took six
seconds, which another 1.2 million rows of twelve numbers brought in again."""


def in_order(chunks: Iterator[Any], work: Callable[[Any], Any], n_jobs: int | None) -> Generator[Any, None, None]:
    """Apply a function to chunks, in several processes where this pays, and yield the results in their order.

    Chunks are read here. Work, chunks and results must be picklable. BLAS uses one thread in each process, in this one
    too, so that results do not depend on the number of processes. ``n_jobs=None`` means as many as there are
    processors, after the first 25 chunks. An error in a chunk is raised when its turn comes.
    """
    alone = CHUNKS_ALONE if n_jobs is None else 0
    jobs = joblib.cpu_count() if n_jobs is None else n_jobs
    with threadpool_limits(limits=1):
        for number, chunk in enumerate(chunks):
            if jobs > 1 and number >= alone:
                yield from _in_processes(chain([chunk], chunks), work, jobs)
                return
            yield work(chunk)


def _in_processes(chunks: Iterator[Any], work: Callable[[Any], Any], n_jobs: int) -> Iterator[Any]:
    seen: set[tuple[type[Warning], str]] = set()
    with closing(Pool(partial(_result_and_warnings, work), n_jobs)) as pool:
        for outcome in pool.run_in_order(chunks):
            if outcome.lost:
                raise DataError(
                    f"A process that worked on a chunk has died ({outcome.reason}); perhaps it was killed because "
                    "memory ran out. Use fewer processes with --jobs; --jobs 1 uses none but this one."
                )
            if outcome.error is not None:
                raise outcome.error
            result, warned = outcome.result
            for category, text in warned:
                if (category, text) not in seen:
                    seen.add((category, text))
                    warnings.warn(text, category, stacklevel=2)
            yield result


def _result_and_warnings(work: Callable[[Any], Any], chunk: Any) -> tuple[Any, list[tuple[type[Warning], str]]]:
    """What a process does with a chunk: its warnings are shown by the first process, by its own filters."""
    with threadpool_limits(limits=1), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        result = work(chunk)
    return result, [(entry.category, str(entry.message)) for entry in caught]

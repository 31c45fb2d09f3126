"""Work on the chunks of a table in several processes, with results in the order of the chunks.

Chunk i goes to process i modulo the number of processes, and a process gets its next chunk when its result has been
taken: so the results come in order, each process holds one chunk, and neither side can wait for the other without end.
A process ends when its pipe is closed, which the system does however this process ends.
"""

import contextlib
import multiprocessing
import pickle
import warnings
from collections.abc import Callable, Generator, Iterator
from multiprocessing.connection import Connection
from typing import Any

import joblib
from threadpoolctl import threadpool_limits

from skldl.exceptions import DataError

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
        for place, chunk in enumerate(chunks):
            if jobs > 1 and place >= alone:
                with Processes(work, jobs) as processes:
                    yield from processes.run(chunk, chunks)
                return
            yield work(chunk)


class Processes:
    """Processes that apply one function; use them in a ``with`` block, which ends them.

    Parameters
    ----------
    work : callable
        The function.
    n_jobs : int
        Number of processes.
    """

    def __init__(self, work: Callable[[Any], Any], n_jobs: int) -> None:
        self._work, self._n_jobs = work, n_jobs
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        self._seen: set[tuple[type[Warning], str]] = set()

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *error: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.terminate()  # it may be in the middle of a chunk whose result is no longer needed
            process.join()

    def run(self, first: Any, others: Iterator[Any]) -> Iterator[Any]:
        """Apply the function to chunks; results come in order."""
        for _ in range(self._n_jobs):
            self._start()  # all at once: the first chunk is not taken before its process has imported what it needs
        sent = 0
        chunk: Any = first
        while chunk is not None:
            turn = sent % self._n_jobs
            result = self._receive(turn) if sent >= self._n_jobs else None
            self._send(turn, chunk)
            sent += 1
            if result is not None:
                yield self._checked(result)
            try:
                chunk = next(others, None)
            except Exception as error:  # results before the place that cannot be read come first, as in one process
                yield from self._last(sent)
                raise error
        yield from self._last(sent)

    def _last(self, sent: int) -> Iterator[Any]:
        for place in range(max(0, sent - self._n_jobs), sent):
            yield self._checked(self._receive(place % self._n_jobs))

    def _start(self) -> None:
        from skldl.experiments.workers import interrupts_blocked

        context = multiprocessing.get_context("spawn")  # threads of Arrow do not survive a fork
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs, self._work), daemon=True)
        with interrupts_blocked():  # Ctrl-C is for this process, which ends the others
            process.start()
        theirs.close()
        self._pipes.append(ours)
        self._processes.append(process)

    def _send(self, turn: int, chunk: Any) -> None:
        with contextlib.suppress(OSError):  # it has died: receiving will raise
            self._pipes[turn].send(chunk)

    def _receive(self, turn: int) -> tuple[Any, Exception | None, list[Any]]:
        try:
            return self._pipes[turn].recv()
        except (EOFError, OSError) as error:
            self._processes[turn].join()
            code = self._processes[turn].exitcode
            raise DataError(
                f"A process that worked on a chunk has died (exit status {code}); perhaps it was killed because memory "
                "ran out. Use fewer processes with --jobs; --jobs 1 uses none but this one."
            ) from error

    def _checked(self, answer: tuple[Any, Exception | None, list[Any]]) -> Any:
        result, error, warned = answer
        for category, text in warned:
            if (category, text) not in self._seen:
                self._seen.add((category, text))
                warnings.warn(text, category, stacklevel=2)
        if error is not None:
            raise error
        return result


def _serve(pipe: Connection, work: Callable[[Any], Any]) -> None:
    """What a process does: take a chunk, answer with its result, the error or None, and warnings; until the end."""
    with contextlib.suppress(EOFError, OSError), threadpool_limits(limits=1):
        while True:
            chunk = pipe.recv()
            result = failure = None
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("default")  # the first process shows them, by its own filters
                try:
                    result = work(chunk)
                except Exception as error:
                    failure = _sendable(error)
            pipe.send((result, failure, [(entry.category, str(entry.message)) for entry in caught]))


def _sendable(error: Exception) -> Exception:
    """The error, or one with its text if the error cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error

"""Processes that apply a function to independent tasks: one that crashes or does not end affects only its own task.

Each process is a fresh interpreter, which does not run the main script again. It gets the function and then task after
task, pickled, through its standard input, and answers through its standard output (what the tasks print goes to
standard error). It ends when this process ends, for any reason.
"""

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import cloudpickle  # type: ignore[import-untyped]  # it has no types

DIED, TIMEOUT, UNREADABLE = "died", "timeout", "unreadable"

_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from skldl.utils.processes import serve; serve()"
_STARTED = "started"
_INFINITY = float("inf")
_MAX_WAIT = 3600.0  # seconds; the system limits the time of a wait, and time limits may be longer


class Outcome(NamedTuple):
    """What became of a task.

    Attributes
    ----------
    number : int
        Position of the task, from 0.
    task : object
        The task.
    result : object
        What the function returned.
    error : Exception or None
        What it raised.
    lost : {"", "died", "timeout", "unreadable"}
        Why there is neither: the process died, was ended at the time limit, or could not unpickle the task.
    reason : str
        The same in words.
    """

    number: int
    task: Any
    result: Any = None
    error: Exception | None = None
    lost: str = ""
    reason: str = ""


class Pool:
    """Processes that are started when there is work for them, and ended by `close`.

    Parameters
    ----------
    function : callable
        What is applied to each task. It is sent to a process once.
    n_jobs : int
        Maximum number of processes.
    timeout : float, default=None
        Seconds after which the process of a task is ended.
    """

    def __init__(self, function: Callable[[Any], Any], n_jobs: int, timeout: float | None = None) -> None:
        self.n_jobs = n_jobs
        self.timeout = timeout
        self._function = cloudpickle.dumps(function)
        self._inbox: queue.Queue[tuple[_Worker, Any]] = queue.Queue()
        self._workers: list[_Worker] = []

    def run(self, tasks: Iterator[Any]) -> Iterator[Outcome]:
        """Run tasks; outcomes come in the order in which the tasks are done.

        A task whose process dies is tried once more when no other runs, so that it has all the memory.
        """
        suspects: list[Any] = []
        for outcome in self._run(tasks, self.n_jobs):
            if outcome.lost == DIED:
                suspects.append(outcome.task)
            else:
                yield outcome
        for task in suspects:
            self.close()  # idle processes hold memory, too
            for outcome in self._run(iter([task]), 1):
                twice = f"Its process died twice, the second time alone: {outcome.reason}. Out of memory?"
                yield outcome._replace(reason=twice) if outcome.lost == DIED else outcome

    def run_in_order(self, tasks: Iterator[Any]) -> Iterator[Outcome]:
        """Run tasks; outcomes come in the order of the tasks, of which few are in memory at the same time."""
        waiting: dict[int, Outcome] = {}
        turn = 0
        # one task for each process to work on, and one more, so that none waits for a slower one before it
        for outcome in self._run(tasks, self.n_jobs, max_ahead=2 * self.n_jobs):
            waiting[outcome.number] = outcome
            while turn in waiting:
                yield waiting.pop(turn)
                turn += 1

    def close(self) -> None:
        """Terminate the processes."""
        for worker in self._workers:
            worker.kill()
        self._workers.clear()

    def _run(self, tasks: Iterator[Any], n_jobs: int, max_ahead: float = _INFINITY) -> Iterator[Outcome]:
        """Run tasks; one is started only if it is less than ``max_ahead`` after the first that is not done."""
        numbered = enumerate(tasks)
        following, failure = _next_of(numbered)
        while following is not None or any(worker.is_busy for worker in self._workers):
            while following is not None and self._may_start(following[0], max_ahead):
                worker = self._free(n_jobs)
                if worker is None:
                    break
                worker.start(*following)
                following, failure = _next_of(numbered)
            try:
                worker, answer = self._inbox.get(timeout=self._seconds_to_wait())
            except queue.Empty:
                yield from self._end_late()
                continue
            if worker not in self._workers:
                continue  # it was ended here
            if answer is None:
                self._workers.remove(worker)
                reason = worker.how_it_ended()
                if worker.is_busy:
                    yield Outcome(worker.number, worker.task, lost=DIED, reason=reason)
            elif answer == _STARTED:
                worker.deadline = _INFINITY if self.timeout is None else time.monotonic() + self.timeout
            else:
                outcome = Outcome(worker.number, worker.task, *answer)
                worker.finish()
                yield outcome
        if failure is not None:  # outcomes of the tasks before the one that could not be made come first
            raise failure

    def _may_start(self, number: int, max_ahead: float) -> bool:
        first_open = min((worker.number for worker in self._workers if worker.is_busy), default=number)
        return number - first_open < max_ahead

    def _free(self, n_jobs: int) -> "_Worker | None":
        free = next((worker for worker in self._workers if not worker.is_busy), None)
        if free is None and len(self._workers) < n_jobs:
            free = _Worker(self._function, self._inbox)
            self._workers.append(free)
        return free

    def _end_late(self) -> Iterator[Outcome]:
        for late in [worker for worker in self._workers if time.monotonic() > worker.deadline]:
            self._workers.remove(late)
            late.kill()
            yield Outcome(late.number, late.task, lost=TIMEOUT, reason=f"Timeout: not done after {self.timeout:g} s")

    def _seconds_to_wait(self) -> float | None:
        first = min((worker.deadline for worker in self._workers), default=_INFINITY)
        if first == _INFINITY:
            return None
        # a hundredth of a second more than until the deadline, so that the wait does not end just before it
        return min(max(0.0, first - time.monotonic()) + 0.01, _MAX_WAIT)


def _next_of(tasks: Iterator[tuple[int, Any]]) -> tuple[tuple[int, Any] | None, Exception | None]:
    """The next task, if any, or the error that making it raised."""
    try:
        return next(tasks, None), None
    except Exception as error:
        return None, error


class _Worker:
    """One process and the task that it runs now; answers, and None at its end, go to the inbox with the worker."""

    def __init__(self, function: bytes, inbox: "queue.Queue[tuple[_Worker, Any]]") -> None:
        self.finish()
        with interrupts_blocked():
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()
        self._send(function)

    def _listen(self, inbox: "queue.Queue[tuple[_Worker, Any]]") -> None:
        assert self.process.stdout is not None
        with self.process.stdout, contextlib.suppress(Exception):  # the end, or what cannot be unpickled here
            while True:
                inbox.put((self, pickle.load(self.process.stdout)))
        inbox.put((self, None))

    def _send(self, payload: bytes) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it has died: its end arrives in the inbox
            self.process.stdin.write(len(payload).to_bytes(8, "big") + payload)
            self.process.stdin.flush()

    def start(self, number: int, task: Any) -> None:
        """Send a task."""
        self.number, self.task, self.is_busy = number, task, True
        self._send(cloudpickle.dumps(task))

    def finish(self) -> None:
        """Forget the task, which is done."""
        self.number, self.task, self.is_busy = -1, None, False
        self.deadline = _INFINITY

    def kill(self) -> str:
        """End the process, and return how it ended."""
        self.process.kill()
        code = self.process.wait()
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        return f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit status {code}"

    def how_it_ended(self) -> str:
        """Describe how a process ended that was not terminated here."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        return self.kill()


@contextlib.contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Let processes that start here inherit a blocked SIGINT: Ctrl-C during their imports would print tracebacks."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def serve() -> None:
    """Run tasks until the standard input ends: the main function of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process is interrupted, and it ends its workers
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    _end_with_the_parent()
    frames: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_receive, args=(source, frames), daemon=True).start()
    packed_function = frames.get()
    function: Any = None
    while True:
        packed_task = frames.get()
        try:
            function = function or pickle.loads(packed_function)
            task = pickle.loads(packed_task)
        except Exception as error:
            reason = f"The task cannot be unpacked in another process: {type(error).__name__}: {error}"
            _send(answers, (None, None, UNREADABLE, reason))
            continue
        _send(answers, _STARTED)
        try:
            _send(answers, (function(task), None))
        except Exception as error:
            _send(answers, (None, error))


def _send(answers: Any, answer: Any) -> None:
    try:
        payload = pickle.dumps(answer)
        if isinstance(answer[1], Exception):
            pickle.loads(payload)  # some errors can be pickled, but not unpickled
    except Exception as error:
        original = answer[1] or error
        payload = pickle.dumps((None, RuntimeError(f"{type(original).__name__}: {original}")))
    answers.write(payload)
    answers.flush()


def _receive(source: Any, frames: "queue.Queue[bytes]") -> None:
    """Queue what arrives. At its end this process ends, even during a task: the first process has ended."""
    while True:
        try:
            frames.put(_frame(source))
        except (EOFError, OSError):
            os._exit(0)


def _frame(source: Any) -> bytes:
    """One pickle, as bytes: it is unpickled where errors can be reported."""
    size = source.read(8)
    if len(size) < 8:
        raise EOFError
    return bytes(source.read(int.from_bytes(size, "big")))


def _end_with_the_parent() -> None:
    """On Linux the system ends this process when the first one is killed, even in the middle of a long computation."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

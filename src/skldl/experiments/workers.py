"""Processes that run tasks: one that crashes or does not end affects only its own task.

Each process is a fresh interpreter that gets pickled tasks through its standard input and answers through its standard
output (what the estimators print goes to standard error). It ends when the study ends, for any reason.
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
from typing import Any

from skldl.experiments.store import Record
from skldl.experiments.tasks import MACHINE, TIMEOUT, Call

try:
    import cloudpickle  # type: ignore[import-untyped]  # it has no types
except ModuleNotFoundError:  # joblib brought its own copy until 1.5
    from joblib.externals import cloudpickle

_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from skldl.experiments.workers import work; work()"
INFINITY = float("inf")
LONGEST_WAIT = 3600.0


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


class Worker:
    """One process and the task that it runs now; answers, None at its end, go to the inbox with the worker."""

    def __init__(self, inbox: "queue.Queue[tuple[Worker, Any]]") -> None:
        self.call: Call | None = None
        self.deadline = INFINITY
        with interrupts_blocked():
            self.process = subprocess.Popen(
                [sys.executable, "-c", _PROGRAM, json.dumps(sys.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        threading.Thread(target=self._listen, args=(inbox,), daemon=True).start()

    def _listen(self, inbox: "queue.Queue[tuple[Worker, Any]]") -> None:
        assert self.process.stdout is not None
        with self.process.stdout, contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
            while True:
                inbox.put((self, pickle.load(self.process.stdout)))
        inbox.put((self, None))

    def start(self, call: Call) -> None:
        """Send a task."""
        self.call = call
        assert self.process.stdin is not None
        payload = cloudpickle.dumps(call)
        with contextlib.suppress(OSError):  # it has died: its end arrives in the inbox
            self.process.stdin.write(len(payload).to_bytes(8, "big") + payload)
            self.process.stdin.flush()

    def kill(self) -> str:
        """End the process, and return how it ended."""
        self.process.kill()
        code = self.process.wait()
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        return f"signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"exit status {code}"

    def end_of_its_own(self) -> str:
        """Describe how a process ended that was not terminated here."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=5)
        return self.kill()


class Pool:
    """Processes that are started when there is work for them, and ended by `close`; ``timeout`` ends a task."""

    def __init__(self, n_jobs: int, timeout: float | None) -> None:
        self.n_jobs = n_jobs
        self.timeout = timeout
        self._inbox: queue.Queue[tuple[Worker, Any]] = queue.Queue()
        self._workers: list[Worker] = []

    def run(self, calls: Iterator[Call]) -> Iterator[Record]:
        """Run tasks; records come in the order in which the tasks are done.

        A task whose process dies is tried once more when no other runs, so that it has all the memory; if its process
        dies again it is recorded as failed.
        """
        suspects: list[Call] = []
        yield from self._run(calls, self.n_jobs, lambda call, how: suspects.append(call))
        failed: list[Record] = []

        def give_up(call: Call, how: str) -> None:
            reason = f"Its process died twice, the second time alone: {how}. Out of memory?"
            failed.append(call.not_run(reason, MACHINE))

        for call in suspects:
            self.close()
            yield from self._run(iter([call]), 1, give_up)
            yield from failed
            failed.clear()

    def close(self) -> None:
        """Terminate the processes."""
        for worker in self._workers:
            worker.kill()
        self._workers.clear()

    def _run(self, calls: Iterator[Call], n_jobs: int, on_death: Callable[[Call, str], None]) -> Iterator[Record]:
        call = next(calls, None)
        while call is not None or any(worker.call for worker in self._workers):
            while call is not None and (worker := self._free(n_jobs)) is not None:
                worker.start(call)
                call = next(calls, None)
            try:
                worker, answer = self._inbox.get(timeout=self._wait())
            except queue.Empty:
                yield from self._end_late()
                continue
            if worker not in self._workers:
                continue  # it was ended here
            if answer is None:
                self._workers.remove(worker)
                how = worker.end_of_its_own()
                if worker.call is not None:
                    on_death(worker.call, how)
            elif answer == "started":
                worker.deadline = INFINITY if self.timeout is None else time.monotonic() + self.timeout
            else:
                done, worker.call, worker.deadline = worker.call, None, INFINITY
                assert done is not None  # who answers had a task
                yield answer if isinstance(answer, dict) else done.not_run(str(answer), MACHINE)

    def _free(self, n_jobs: int) -> Worker | None:
        free = next((worker for worker in self._workers if worker.call is None), None)
        if free is None and len(self._workers) < n_jobs:
            free = Worker(self._inbox)
            self._workers.append(free)
        return free

    def _end_late(self) -> Iterator[Record]:
        for late in [worker for worker in self._workers if time.monotonic() > worker.deadline]:
            self._workers.remove(late)
            late.kill()
            assert late.call is not None  # a process with a deadline has a task
            yield late.call.not_run(f"Timeout: not done after {self.timeout:g} s", TIMEOUT)

    def _wait(self) -> float | None:
        first = min((worker.deadline for worker in self._workers), default=INFINITY)
        seconds = max(0.01, first - time.monotonic() + 0.01)
        return None if first == INFINITY else min(seconds, LONGEST_WAIT)  # the system limits the time of a wait


def work() -> None:
    """Run tasks until the standard input ends: what a worker process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the study is interrupted, and it ends its workers
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    _end_with_the_parent()
    calls: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_receive, args=(source, calls), daemon=True).start()
    while True:
        payload = calls.get()
        try:
            call = pickle.loads(payload)
        except Exception as error:
            answer: Any = f"The task cannot be unpacked in another process: {type(error).__name__}: {error}"
        else:
            _send(answers, "started")
            answer = call.run()
        _send(answers, answer)


def _send(answers: Any, answer: Any) -> None:
    answers.write(pickle.dumps(answer))
    answers.flush()


def _receive(source: Any, calls: "queue.Queue[bytes]") -> None:
    """Run tasks as they arrive. This process ends when the study has ended, even during a task."""
    while True:
        try:
            calls.put(_frame(source))
        except (EOFError, OSError):
            os._exit(0)


def _frame(source: Any) -> bytes:
    """One pickle, as bytes: it is unpacked where errors can be reported."""
    size = source.read(8)
    if len(size) < 8:
        raise EOFError
    return bytes(source.read(int.from_bytes(size, "big")))


def _end_with_the_parent() -> None:
    """On Linux the system ends this process when the study is killed, even in the middle of a long computation."""
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

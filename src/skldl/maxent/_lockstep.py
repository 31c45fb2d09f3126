"""Several searches that share each pass over the rows: all wait until every one of them has asked."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class _Stopped(BaseException):
    """Raised inside a search when another one, or the pass, has failed."""


def run_together(
    jobs: Sequence[Callable[[Callable[[Any], Any]], Any]], answer: Callable[[Mapping[int, Any]], Mapping[int, Any]]
) -> list[Any]:
    """Run searches side by side and answer what they ask together.

    Each job runs in a thread of its own and calls ``ask(request)`` wherever it needs a pass over the rows. When all
    jobs that have not ended are waiting, ``answer`` receives their requests, by the number of the job, in the calling
    thread, and its replies go back. What is asked together does not depend on the speed of the threads, so the result
    can be repeated to the last digit.

    Parameters
    ----------
    jobs : sequence of callable
        Each takes ``ask`` and returns its result.
    answer : callable
        From requests to replies, both by the number of the job.

    Returns
    -------
    list
        The results, in the order of the jobs.

    Examples
    --------
    >>> from skldl.maxent._lockstep import run_together
    >>> def job(ask):
    ...     return ask(1) + ask(2)
    >>> run_together([job, job], lambda requests: {k: 10 * value + k for k, value in requests.items()})
    [30, 32]
    """
    state = threading.Condition()
    requests: dict[int, Any] = {}
    replies: dict[int, Any] = {}
    results: dict[int, Any] = {}
    failures: dict[int, BaseException] = {}
    stopped = threading.Event()

    def ask(number: int, request: Any) -> Any:
        with state:
            requests[number] = request
            state.notify_all()
            state.wait_for(lambda: number in replies or stopped.is_set())
            if stopped.is_set():
                raise _Stopped
            return replies.pop(number)

    def run(number: int, job: Callable[[Callable[[Any], Any]], Any]) -> None:
        try:
            outcome = job(lambda request: ask(number, request))
        except BaseException as error:
            with state:
                failures[number] = error
                state.notify_all()
            return
        with state:
            results[number] = outcome
            state.notify_all()

    threads = [threading.Thread(target=run, args=(number, job), daemon=True) for number, job in enumerate(jobs)]
    try:
        for thread in threads:
            thread.start()
        while True:
            with state:
                state.wait_for(lambda: failures or len(requests) + len(results) == len(jobs))
                if failures:
                    raise failures[min(failures)]
                if not requests:
                    return [results[number] for number in range(len(jobs))]
                asked = {number: requests[number] for number in sorted(requests)}
                requests.clear()
            answers = answer(asked)
            with state:
                replies.update(answers)
                state.notify_all()
    finally:
        with state:
            stopped.set()
            state.notify_all()
        for thread in threads:
            thread.join()

"""Processes for independent tasks: results, errors, order, time limits, and processes that are killed."""

import os
import queue
import signal
import sys
import time
from contextlib import closing
from itertools import count, islice

import cloudpickle
import pytest

from skldl.utils.processes import DIED, TIMEOUT, UNREADABLE, Pool, _Worker

# Another package installs its own "tests", under which worker processes would look for the functions of this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")


def work(task):
    what, value = task
    if what == "raise":
        raise KeyError(value)
    if what == "sleep":
        time.sleep(value)
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "die once" and not os.path.exists(value):
        open(value, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)
    print("must not reach the standard output of the first process")
    return os.getpid(), value


class Unreadable:
    """Can be pickled, but not unpickled."""

    def __reduce__(self):
        return int, ("not a number",)


def test_results_errors_and_what_cannot_be_unpickled(capfd):
    tasks = [("return", 1), ("raise", "no"), Unreadable(), ("return", 2)]
    with closing(Pool(work, 1)) as pool:
        outcomes = list(pool.run(iter(tasks)))
    assert [outcome.number for outcome in outcomes] == [0, 1, 2, 3]
    assert [outcome.task for outcome in outcomes] == tasks
    assert (outcomes[0].result[1], outcomes[3].result[1]) == (1, 2)
    assert outcomes[0].result[0] == outcomes[3].result[0] != os.getpid()  # one process, and not this one
    assert repr(outcomes[1].error) == "KeyError('no')"
    assert outcomes[2].lost == UNREADABLE
    assert "cannot be unpacked in another process: ValueError" in outcomes[2].reason
    assert not capfd.readouterr().out


def test_an_error_that_cannot_be_pickled_keeps_its_text():
    def fail(_):
        error = ValueError("odd")
        error.pipe = open(os.devnull)  # noqa: SIM115 - an attribute without a pickle
        raise error

    with closing(Pool(fail, 1)) as pool:
        (outcome,) = pool.run(iter([0]))
    assert (type(outcome.error), str(outcome.error)) == (RuntimeError, "ValueError: odd")


def test_outcomes_in_order_with_few_tasks_in_memory():
    made = []

    def tasks():
        for number in range(20):
            made.append(number)
            yield ("sleep", 0.3 if number == 0 else 0.0)

    with closing(Pool(work, 2)) as pool:
        for number, outcome in enumerate(pool.run_in_order(tasks())):
            assert outcome.number == number
            assert len(made) <= number + 2 * 2 + 1 + 1  # the window, the next one, and the one that was yielded
    assert len(made) == 20


def test_an_error_while_tasks_are_made_comes_after_the_outcomes_before_it():
    def tasks():
        yield from (("return", number) for number in range(3))
        raise OSError("torn")

    with closing(Pool(work, 2)) as pool:
        outcomes = pool.run_in_order(tasks())
        assert [outcome.result[1] for outcome in islice(outcomes, 3)] == [0, 1, 2]
        with pytest.raises(OSError, match="torn"):
            next(outcomes)


def test_tasks_without_end_are_made_as_they_are_needed():
    with closing(Pool(work, 2)) as pool:
        found = islice(pool.run_in_order(("return", number) for number in count()), 5)
        assert [outcome.result[1] for outcome in found] == [0, 1, 2, 3, 4]


def test_a_process_that_dies_is_tried_again_alone_and_others_finish(tmp_path):
    tasks = [("die once", str(tmp_path / "mark")), ("die", 0), ("return", 1)]
    with closing(Pool(work, 2)) as pool:
        outcomes = {outcome.task: outcome for outcome in pool.run(iter(tasks))}
    assert outcomes["return", 1].result[1] == 1
    assert outcomes[tasks[0]].result[1] == tasks[0][1]
    died = outcomes["die", 0]
    assert (died.lost, died.result) == (DIED, None)
    assert died.reason == "Its process died twice, the second time alone: signal 9 (Killed). Out of memory?"


def test_in_order_a_process_that_dies_is_reported_at_its_turn():
    with closing(Pool(work, 1)) as pool:
        outcomes = list(pool.run_in_order(iter([("return", 0), ("die", 1), ("return", 2)])))
    assert [outcome.lost for outcome in outcomes] == ["", DIED, ""]
    assert outcomes[1].reason == "signal 9 (Killed)"


def test_a_time_limit_ends_its_task_alone():
    with closing(Pool(work, 2, timeout=0.5)) as pool:
        outcomes = {outcome.task: outcome for outcome in pool.run(iter([("sleep", 600), ("return", 1)]))}
    late = outcomes["sleep", 600]
    assert (late.lost, late.reason) == (TIMEOUT, "Timeout: not done after 0.5 s")
    assert outcomes["return", 1].result[1] == 1


def test_an_interrupt_does_not_reach_a_process_that_starts(capfd):
    """Ctrl-C goes to every process of a terminal; one that was still importing would print a traceback."""
    worker = _Worker(cloudpickle.dumps(work), queue.Queue())
    os.kill(worker.process.pid, signal.SIGINT)
    worker.process.stdin.close()  # the first process has ended, and so does this one
    assert worker.process.wait(timeout=60) == 0
    assert not capfd.readouterr().err
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())

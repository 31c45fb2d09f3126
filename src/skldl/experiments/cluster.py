"""Run the tasks of a study on a Dask cluster; tasks of a lost worker run again."""

import asyncio
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import closing
from itertools import islice
from typing import Any

from skldl.exceptions import Parameter, StudyError
from skldl.experiments.store import Record
from skldl.experiments.tasks import MACHINE, Call, record_of
from skldl.utils.processes import Pool

# All chosen by hand: a cluster that starts needs some seconds, one that restarts its workers up to a minute.
SECONDS_TO_CONNECT = 30
SECONDS_WITHOUT_WORKERS = 60.0
SECONDS_BETWEEN_CHECKS = 5.0
MAX_TASKS_SENT = 256  # tasks hold their data: sending all of a large study at once would fill the scheduler's memory


def run_on_cluster(calls: Iterator[Call], scheduler: str, timeout: float | None) -> Iterator[Record]:
    """Run tasks on the workers of a Dask scheduler, whose address is such as ``tcp://host:8786``.

    Records come in the order in which the tasks are done. Dask tries a task again whose worker died, and gives up after
    a few deaths: then the task is recorded as failed, as is one that takes more than ``timeout`` seconds.
    """
    from distributed import wait

    running: dict[Any, Call] = {}
    last_seen = time.monotonic()
    with connected(scheduler) as client, client.as_current():
        while True:
            for call in islice(calls, max(0, MAX_TASKS_SENT - len(running))):
                running[client.submit(_run_one, call, timeout, pure=False)] = call
            if not running:
                return
            try:
                done = wait(list(running), timeout=SECONDS_BETWEEN_CHECKS, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                done = set()
            except (OSError, asyncio.CancelledError, futures.CancelledError) as error:  # the connection is closed
                raise _lost(scheduler, "does not answer any more") from error
            for future in done:
                if future.status in ("cancelled", "lost"):
                    raise _lost(scheduler, "was lost, and the tasks with it")
                call = running.pop(future)
                if future.status == "error":
                    reason = future.exception()
                    yield call.not_run(f"{type(reason).__name__}: {reason}", MACHINE)
                else:
                    yield future.result()
            workers = client.scheduler_info(n_workers=-1)["workers"] if client.status == "running" else {}
            last_seen = time.monotonic() if workers or done else last_seen
            if client.status not in ("running", "connecting"):
                raise _lost(scheduler, "was lost")
            if time.monotonic() - last_seen > SECONDS_WITHOUT_WORKERS:
                raise _lost(scheduler, f"has had no worker for {SECONDS_WITHOUT_WORKERS:.0f} s")


def connected(scheduler: str) -> Any:
    """A client of the cluster whose scheduler has this address."""
    from distributed import Client

    try:
        return Client(scheduler, timeout=SECONDS_TO_CONNECT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StudyError(
            f"No Dask scheduler answers at {scheduler}: {error}. Start one with: dask scheduler"
        ) from error


def _run_one(call: Call, timeout: float | None) -> Record:
    """Run a task on a worker; with a time limit in a separate process, which can be terminated."""
    if timeout is None:
        return call.run()
    with closing(Pool(Call.run, 1, timeout)) as pool:
        return record_of(next(pool.run(iter([call]))))


def _lost(scheduler: str, what: str) -> StudyError:
    return StudyError(
        f"The Dask scheduler at {scheduler} {what}. What is recorded is safe. See that it runs and has workers (dask "
        f"worker {scheduler}), then continue with ",
        Parameter("resume", True),
        ".",
    )

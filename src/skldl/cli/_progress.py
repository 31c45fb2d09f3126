"""Progress and remaining time on standard error: a bar on a terminal, occasional lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from skldl.data import TableFile
from skldl.data._tables import ArrayTable
from skldl.experiments import Progress
from skldl.experiments.tasks import Task

SECONDS_BETWEEN_LINES = 30.0


class Forecast:
    """An estimate of the remaining time from the times of completed tasks.

    The time of a task is the mean over completed tasks of the same kind, candidate and dataset; where there are none,
    of the same candidate and dataset, then dataset, then candidate, then all. ``n_jobs`` tasks run at the same time.
    """

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = max(1, n_jobs)
        self._seen: dict[tuple[str, ...], list[float]] = {}

    def learn(self, task: Task, seconds: float) -> None:
        """Add the time of a completed task."""
        for key in self._keys(task):
            entry = self._seen.setdefault(key, [0.0, 0.0])
            entry[0] += seconds
            entry[1] += 1

    def seconds_left(self, left: tuple[Task, ...]) -> float | None:
        """Estimate the time for these tasks; None before the first task is completed."""
        if not self._seen:
            return None
        return sum(self._expect(task) for task in left) / self.n_jobs

    def _expect(self, task: Task) -> float:
        total, count = next(self._seen[key] for key in self._keys(task) if key in self._seen)
        return total / count

    @staticmethod
    def _keys(task: Task) -> list[tuple[str, ...]]:
        return [
            (task.kind, task.candidate, task.dataset),
            ("", task.candidate, task.dataset),
            ("", "", task.dataset),
            ("", task.candidate, ""),
            (),
        ]


def show_time(seconds: float | None) -> str:
    """Format the remaining time for people.

    Examples
    --------
    >>> show_time(42.0), show_time(600.0), show_time(None)
    ('about 42 s left', 'about 10 min left', '')
    """
    if seconds is None:
        return ""
    return f"about {seconds:.0f} s left" if seconds < 100 else f"about {seconds / 60:.0f} min left"


@contextmanager
def watch(n_jobs: int) -> Iterator[Callable[[Progress], None]]:
    """Show the progress of a study: yields a function to be called with each `Progress`."""
    forecast = Forecast(n_jobs)
    if not sys.stderr.isatty():
        yield _plain_lines(forecast)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
        TextColumn("{task.description}", markup=False),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task("", left="", total=None)

        def show(progress: Progress) -> None:
            if progress.record is not None:
                forecast.learn(Task.of(progress.record), progress.record["seconds"])
            running = ", ".join(f"{task.dataset} · {task.candidate}" for task in progress.left[: forecast.n_jobs])
            bar.update(
                row,
                completed=progress.done,
                total=progress.total,
                left=show_time(forecast.seconds_left(progress.left)),
                description=f"now: {running}" if running else "",
            )

        yield show


def _plain_lines(forecast: Forecast) -> Callable[[Progress], None]:
    is_due = _rate_limit()

    def show(progress: Progress) -> None:
        if progress.record is not None:
            forecast.learn(Task.of(progress.record), progress.record["seconds"])
        if is_due():
            left = show_time(forecast.seconds_left(progress.left))
            print(f"{progress.done} of {progress.total} tasks{', ' if left else ''}{left}", file=sys.stderr, flush=True)

    return show


def _rate_limit() -> Callable[[], bool]:
    """A function that is true at most once in `SECONDS_BETWEEN_LINES`."""
    last = time.monotonic()

    def is_due() -> bool:
        nonlocal last
        due = time.monotonic() - last >= SECONDS_BETWEEN_LINES
        last = time.monotonic() if due else last
        return due

    return is_due


@contextmanager
def working() -> Iterator[Callable[[str], None]]:
    """Show the current step of a long command: yields a function to be called with a short text.

    On a terminal the step is always shown, elsewhere in occasional lines.
    """
    if sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("reading") as spinner:
            yield spinner.update
        return
    started, is_due = time.monotonic(), _rate_limit()

    def show(text: str) -> None:
        if is_due():
            print(f"{text} (after {time.monotonic() - started:.0f} s)", file=sys.stderr, flush=True)

    yield show


@contextmanager
def progress_of(table: TableFile | ArrayTable, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show how much of a table was read: yields a function to be called with the number of completed rows.

    Shown only on a terminal, and not if ``quiet``, as where the result itself is printed there.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("0 rows", total=None if table.fraction_read() is None else 1.0)

        def show(rows: int) -> None:
            bar.update(task, completed=table.fraction_read() or 0.0, description=f"{rows:,} rows")

        yield show

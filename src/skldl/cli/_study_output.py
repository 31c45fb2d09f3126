"""Common code of `skldl bench` and `skldl evaluate`: the folder of a study, and its output."""

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from joblib import cpu_count

from skldl.cli._progress import watch
from skldl.cli._screen import note
from skldl.exceptions import StudyError
from skldl.experiments import Plan, Study, StudyResults, run_study
from skldl.experiments.output.files import failed_settings, failure_line, meaning, write_outputs
from skldl.experiments.output.grids import grid_end_notes
from skldl.experiments.output.layout import ResultTable
from skldl.experiments.output.skill_chart import skill_chart
from skldl.experiments.output.uncertainty import interval_table
from skldl.utils.files import DISK_IS_FULL

MOST_FAILURES = 10


def number_of_jobs(jobs: int) -> int:
    """Number of processes for the option ``--jobs``."""
    if jobs != -1 and jobs < 1:
        raise StudyError(f"--jobs {jobs} must be at least 1, or -1 for one per processor.")
    return cpu_count() if jobs == -1 else jobs


def new_folder(study: str) -> Path:
    """A folder here that does not exist yet, for any name of a study: ``skldl-demo``, ``skldl-demo-2``, …"""
    word = re.sub(r"[^\w.-]+", "-", study).strip(".-")
    name = f"skldl-{word or 'study'}"
    folder, number = Path(name), 1
    while folder.exists():
        number += 1
        folder = Path(f"{name}-{number}")
    return folder


def need_the_packages_of_the_tests() -> None:
    """Fail before hours of work, not after, if a package of the extra ``bench`` is missing."""
    import_module("baycomp")
    import_module("scikit_posthocs")


def run_and_show(study: Study | Plan, folder: Path, again: str, retry: str, *, n_jobs: int, **options: Any) -> int:
    """Run a study, show its progress, and write and print its results; the exit status is 1 if tasks failed.

    ``again`` is the command that continues the study if it is interrupted, ``retry`` the one that runs failed tasks
    again, and ``options`` are further arguments of `run_study`.
    """
    try:
        with watch(n_jobs) as on_progress:
            results = run_study(study, out=folder, n_jobs=n_jobs, on_progress=on_progress, **options)
        return show_results(results, folder, retry)
    except KeyboardInterrupt:
        print(f"Stopped. What is recorded is safe; continue with: {again}", file=sys.stderr)
        raise
    except OSError as error:
        if error.errno not in DISK_IS_FULL:
            raise
        raise StudyError(
            f"The disk of {folder} is full. What is recorded is safe: free some space, then continue with: {again}"
        ) from error


def show_results(results: StudyResults, folder: Path, retry: str) -> int:
    """Write tables, statistics and report, print the tables and the paths; the exit status is 1 if tasks failed."""
    for notice in results.notices:
        note(notice)
    write_outputs(results, folder)
    _print_results(results, folder, retry)
    print(_report_line(results, folder))
    return 1 if results.failures else 0


def _report_line(results: StudyResults, folder: Path) -> str:
    """Write the report and return a line with its path, or with the extra that is missing."""
    try:
        from skldl.report import write_report
    except ModuleNotFoundError as error:
        return f"No report: it needs the package {error.name}: pip install 'scikit-ldl[report]'"
    return f"Report, open it in a browser: {write_report(folder, results)}"


def _print_results(results: StudyResults, folder: Path, retry: str) -> None:
    from rich.console import Console

    wide = None if sys.stdout.isatty() else 200
    console = Console(width=wide, highlight=False, soft_wrap=False)
    intervals = interval_table(results)
    tables = [*(results.table(measure) for measure in results.measures), *([] if intervals is None else [intervals])]
    for table in tables:
        for part in table.fitted(console.width - 2):
            console.print(_rich(part))
    for line in dict.fromkeys(line for table in tables for line in table.notes):
        console.print(line, markup=False)
    console.print(f"Protocol {results.study['protocol']}. {' '.join(meaning(results))}", markup=False)
    for line in grid_end_notes(results):
        console.print(f"Note: {line}", markup=False)
    failed = [f"Failed: {failure_line(record)}" for record in results.failures]
    failed += [f"Setting that failed: {line}" for line in failed_settings(results)]
    for line in failed[:MOST_FAILURES]:
        console.print(line, markup=False)
    if len(failed) > MOST_FAILURES:
        console.print(f"… and {len(failed) - MOST_FAILURES} more; see README.md there.")
    if any(record.get("fault", "model") != "model" for record in results.failures):
        console.print(
            "Some tasks failed for lack of memory, disk or time; this is no property of their candidates. Run them "
            f"again: {retry}",
            markup=False,
            soft_wrap=True,  # a command that is cut in two cannot be copied
        )
    chart = skill_chart(results)
    if chart:
        console.print("\n".join(["", *chart]), markup=False, soft_wrap=True)
    console.print(f"\nRecords, tables and statistics: {folder}/ (start with README.md)", markup=False)


def _rich(table: ResultTable) -> Any:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(title=Text(table.title), box=box.SIMPLE_HEAD, title_justify="left")
    for place, heading in enumerate(table.head):
        shown.add_column(Text(heading), justify="left" if place == 0 else "right", no_wrap=place > 0)
    for part in (table.rows, table.foot):
        for name, cells in part:
            shown.add_row(Text(name), *(Text(cell.text, style="bold" if cell.best else "") for cell in cells))
        shown.add_section()
    return shown

"""The folder and the output of a study, for `skldl bench` and `skldl evaluate`."""

import math
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count

from skldl.cli._progress import watch
from skldl.cli._screen import framed, note
from skldl.exceptions import StudyError
from skldl.experiments import Plan, Study, StudyResults, run_study
from skldl.experiments.grids import grid_end_notes
from skldl.experiments.outputs import failed_settings, failure_line, meaning, write_outputs
from skldl.experiments.tables import format_percent, interval_table, noise_ceilings
from skldl.metrics import MEASURES
from skldl.utils.files import DISK_IS_FULL
from skldl.utils.tables import Cell, TextTable

MAX_FAILURES = 10  # lines on the screen; the page of the study has all
MAX_CHARTS = 4  # with more datasets, the chart has the median over them
MAX_BARS = 10
BAR_WIDTH = 40
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def number_of_jobs(jobs: int) -> int:
    """Number of processes for the option ``--jobs``."""
    if jobs != -1 and jobs < 1:
        raise StudyError(f"--jobs {jobs} must be at least 1, or -1 for one per processor.")
    return cpu_count() if jobs == -1 else jobs


def new_folder(study: str) -> Path:
    """A name for a folder that does not exist yet: ``skldl-demo``, ``skldl-demo-2``, …"""
    word = re.sub(r"[^\w.-]+", "-", study).strip(".-")
    name = f"skldl-{word or 'study'}"
    folder, number = Path(name), 1
    while folder.exists():
        number += 1
        folder = Path(f"{name}-{number}")
    return folder


def import_test_packages() -> None:
    """Import the packages of the statistical tests, so that a missing one is an error before the study runs."""
    import_module("baycomp")
    import_module("scikit_posthocs")


def run_and_show(study: Study | Plan, folder: Path, again: str, retry: str, *, n_jobs: int, **options: Any) -> int:
    """Run a study, show its progress, and write and print its results; return 1 if tasks failed, else 0.

    ``again`` is the command that continues the study if it is interrupted, ``retry`` the one that runs failed tasks
    again, and ``options`` are further arguments of `run_study`.
    """
    try:
        with watch(n_jobs) as on_progress:
            results = run_study(study, out=folder, n_jobs=n_jobs, on_progress=on_progress, **options)
        return show_results(results, folder, retry)
    except KeyboardInterrupt:
        print(f"Stopped. Completed tasks are recorded; continue with: {again}", file=sys.stderr)
        raise
    except OSError as error:
        if error.errno not in DISK_IS_FULL:
            raise
        raise StudyError(
            f"The disk of {folder} is full. Completed tasks are recorded: free some space and continue with: {again}"
        ) from error


def show_results(results: StudyResults, folder: Path, retry: str) -> int:
    """Write tables, statistics and report, print tables and paths; return 1 if tasks failed, else 0."""
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
    for line in failed[:MAX_FAILURES]:
        console.print(line, markup=False)
    if len(failed) > MAX_FAILURES:
        console.print(f"… and {len(failed) - MAX_FAILURES} more; see README.md there.")
    if any(record.get("fault", "model") != "model" for record in results.failures):
        console.print(
            "Some tasks failed for lack of memory, disk space or time, not because of their candidates. Run them "
            f"again: {retry}",
            markup=False,
            soft_wrap=True,  # a command that is cut in two cannot be copied
        )
    chart = skill_chart(results)
    if chart:
        console.print("\n".join(["", *chart]), markup=False, soft_wrap=True)
    console.print(f"\nRecords, tables and statistics: {folder}/ (start with README.md)", markup=False)


def _rich(table: TextTable) -> Any:
    from rich.text import Text

    def lines(rows: list[tuple[str, list[Cell]]]) -> list[list[Text]]:
        return [
            [Text(name), *(Text(cell.text, style="bold" if cell.best else "") for cell in cells)]
            for name, cells in rows
        ]

    left = [column == 0 for column in range(len(table.head))]
    return framed(table.head, [lines(table.rows), lines(table.foot)], left, title=table.title, no_wrap=True)


def skill_chart(results: StudyResults) -> list[str]:
    """Draw the skill by the criterion as bars of text, the best candidate first; empty if no candidate has a skill.

    A vertical line is the noise ceiling, the skill of a model whose loss is the noise floor.
    """
    criterion = results.study["criterion"]
    if criterion not in results.measures:
        return []
    skills = results.skills(criterion)
    ceilings = noise_ceilings(results, criterion)
    groups = {
        dataset: (dict(zip(results.candidates, row, strict=True)), ceilings.get(dataset, math.nan))
        for dataset, row in zip(results.datasets, skills, strict=True)
    }
    if len(groups) > MAX_CHARTS:
        known = {name: column[~np.isnan(column)] for name, column in zip(results.candidates, skills.T, strict=True)}
        medians = {name: float(np.median(column)) if len(column) else math.nan for name, column in known.items()}
        groups = {f"Median over {len(groups)} datasets": (medians, math.nan)}
    lines = []
    for title, (row, ceiling) in groups.items():
        shown = [name for name in row if name != results.baseline and not np.isnan(row[name])]
        shown = sorted(shown, key=lambda name: -row[name])[:MAX_BARS]
        if shown:
            note = "" if math.isnan(ceiling) else f" (│ noise ceiling {format_percent(ceiling)})"
            wide = max(len(name) for name in shown)
            lines += [f"  {title}{note}"]
            lines += [
                f"    {name.ljust(wide)} {format_percent(row[name]).rjust(7)}  {bar(row[name], ceiling)}"
                for name in shown
            ]
    if not lines:
        return []
    head = f"Skill by {MEASURES[criterion].title}: fraction of the loss of {results.baseline} that a candidate removes"
    return [head, *lines]


def bar(fraction: float, ceiling: float = math.nan, width: int = BAR_WIDTH) -> str:
    """Draw a fraction as a bar of text, ``width`` characters for 1, with a vertical line at the ceiling.

    Examples
    --------
    >>> from skldl.cli._study_output import bar
    >>> bar(0.55, 0.8, width=10)
    '█████▌  │'
    >>> bar(-0.2, width=10)
    ''
    """
    eighths = round(8 * width * min(max(fraction, 0.0), 1.0))
    text = "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")
    if 0 <= ceiling <= 1:
        place = min(int(ceiling * width), width - 1)
        text = text.ljust(place)
        text = text[:place] + "│" + text[place + 1 :]
    return text.rstrip()

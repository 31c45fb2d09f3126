"""The page: its tables and the other variables of the template, and a content security policy without requests."""

import base64
import hashlib
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from shlex import quote
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import skldl
from skldl.experiments import StudyResults
from skldl.experiments.grids import parameter_titles
from skldl.experiments.outputs import failed_settings, failure_line, meaning, repeats_from_file
from skldl.experiments.statistics import ROPE, Comparison, compare
from skldl.experiments.statistics_text import comparison_sentences, comparison_table
from skldl.experiments.tables import (
    NOTHING,
    dataset_table,
    interval_table,
    measure_table,
    settings_table,
    time_table,
)
from skldl.metrics import MEASURES
from skldl.report._figures import figure_groups
from skldl.report._instances import browsers
from skldl.report._summary import (
    MAX_ROWS,
    headline,
    skill_figure,
    skill_summary_figure,
    skill_table_with_intervals,
    skills_with_intervals,
    trusted_tests,
)
from skldl.utils.files import whole_file
from skldl.utils.tables import TextTable

FILE_NAME = "report.html"
_UNITS = {"ms": 1e-3, "s": 1.0, "%": 1e-2}
_LEADING_NUMBER = re.compile(r"\s*(-?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*(ms\b|s\b|%)?", re.IGNORECASE)


def write_report(folder: str | Path, results: StudyResults | None = None) -> Path:
    """Write the report of a study into its folder.

    Parameters
    ----------
    folder : path
        The folder of the study, with its records.
    results : StudyResults, default=None
        The results, if they are loaded already; else they are read from the records.

    Returns
    -------
    Path
        Path of the page, ``report.html`` in the folder. It is written atomically.

    Examples
    --------
    >>> import tempfile
    >>> from skldl.data import Dataset
    >>> from skldl.experiments import Candidate, Study, run_study
    >>> from skldl.report import write_report
    >>> from skldl.testing import make_distributions
    >>> dataset = Dataset("toy", *make_distributions(20))
    >>> study = Study([dataset], [Candidate("Mean", "skldl:MeanDistribution")], folds=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = run_study(study, out=folder)
    ...     path = write_report(folder)
    >>> path.name
    'report.html'
    """
    folder = Path(folder)
    text = render_report(StudyResults.load(folder) if results is None else results, folder)
    path = folder / FILE_NAME
    with whole_file(path) as stream:
        stream.write(text.encode())
    return path


def render_report(results: StudyResults, folder: str | Path = "DIR") -> str:
    """Make the page.

    Parameters
    ----------
    results : StudyResults
        The results.
    folder : path, default="DIR"
        The folder of the study, for the commands that the page names.

    Returns
    -------
    str
        HTML that needs no other file.

    Examples
    --------
    >>> from skldl.data import Dataset
    >>> from skldl.experiments import Candidate, Study, run_study
    >>> from skldl.report import render_report
    >>> from skldl.testing import make_distributions
    >>> dataset = Dataset("toy", *make_distributions(20))
    >>> study = Study([dataset], [Candidate("Mean", "skldl:MeanDistribution")], folds=2)
    >>> page = render_report(run_study(study))
    >>> page.startswith("<!doctype html>")
    True
    """
    environment = Environment(
        loader=PackageLoader("skldl.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"sort_key": sort_key, "columns_of_words": columns_of_words}
    css, script = (_asset(name) for name in ("report.css", "report.js"))
    policy = (
        f"default-src 'none'; style-src '{_hash(css)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    tests = {measure: compare(results, measure) for measure in results.measures}
    criterion = results.study["criterion"]
    skills = skills_with_intervals(results, criterion) if criterion in results.measures else []
    is_long = len(results.datasets) > MAX_ROWS
    return environment.get_template("report.html").render(
        policy=policy,
        css=css,
        script=script,
        version=skldl.__version__,
        results=results,
        study=results.study,
        headline=headline(results, trusted_tests(results, criterion) if criterion in tests else None, skills),
        answer=list((skill_summary_figure if is_long else skill_figure)(results, skills)) if skills else [],
        meaning=meaning(results),
        measures=[MEASURES[name] for name in results.measures],
        criterion=MEASURES[criterion],
        tables=page_tables(results, skills),
        statistics=page_statistics(results, tests),
        rope=f"{100 * ROPE:g} %",
        families=[family for family in results.families if len(family) > 1],
        figures=figure_groups(results, tests, skill_figure(results, skills) if is_long and skills else iter(())),
        browsers=browsers(results),
        failures=[*(failure_line(record) for record in results.failures), *failed_settings(results)],
        folder=quote(Path(folder).name or "DIR"),
        repeats_from_file=repeats_from_file(results),
        grids={entry["name"]: _grid(entry) for entry in results.study["candidates"]},
    )


def sort_key(text: str) -> float | str:
    """The number by which a cell sorts: the first in it, in seconds or as a share where a unit follows; or nothing.

    Examples
    --------
    >>> sort_key("0.232 ± 0.012 (3)"), sort_key("12 ms / 3 s"), sort_key("1,869"), sort_key("failed 2/10")
    (0.232, 0.012, 1869.0, '')
    """
    found = _LEADING_NUMBER.match(text)
    if not found:
        return ""
    return float(found[1].replace(",", "")) * _UNITS.get((found[2] or "").lower(), 1.0)


def columns_of_words(table: TextTable) -> set[int]:
    """Columns, from 0 after the names of the rows, in which no cell begins with a number and one at least has words.

    They are aligned to the left, all others to the right, so that an empty cell is below the numbers of its column.

    Examples
    --------
    >>> from skldl.utils.tables import Cell, TextTable
    >>> columns_of_words(TextTable("", ["", "a", "b"], [("x", [Cell("0.5"), Cell("k = 3")]), ("y", [Cell("–")] * 2)]))
    {1}
    """
    columns = zip(*(cells for _, cells in table.rows), strict=True)
    return {
        place
        for place, cells in enumerate(columns)
        if all(sort_key(cell.text) == "" for cell in cells) and any(cell.text != NOTHING for cell in cells)
    }


def _asset(name: str) -> str:
    return (resources.files("skldl.report") / "templates" / name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _grid(entry: dict[str, Any]) -> str:
    params, grid = entry.get("params", {}), entry.get("grid", {})
    titles = parameter_titles({**params, **grid})
    parts = [f"{titles[name]} = {value}" for name, value in params.items()]
    parts += [f"{titles[name]} from {', '.join(str(v) for v in values)}" for name, values in grid.items()]
    return "; ".join(parts) or "no hyper-parameters to select"


def page_tables(results: StudyResults, skills: list[list[float]]) -> dict[str, Any]:
    """Make the tables of a page; ``skills`` as in `skldl.report._summary.headline`.

    ``measures`` (the criterion first), ``notes`` (those that all of them share), ``skill``, ``datasets``, ``settings``,
    ``time`` and ``intervals``.
    """
    criterion = results.study["criterion"]
    names = sorted(results.measures, key=lambda name: name != criterion)  # stable: the others keep their order
    tables = {name: measure_table(results, name) for name in names}
    if skills:
        tables[criterion] = without_column(tables[criterion], "Skill")  # the table of skills has all of them
    shown, notes = with_shared_notes(list(tables.values()))
    return {
        "measures": [(MEASURES[name].title, table) for name, table in zip(names, shown, strict=True)],
        "notes": notes,
        "skill": skill_table_with_intervals(results, skills) if skills else None,
        "datasets": dataset_table(results),
        "settings": settings_table(results),
        "time": time_table(results),
        "intervals": interval_table(results),
    }


def with_shared_notes(tables: list[TextTable]) -> tuple[list[TextTable], list[str]]:
    """Separate the notes that all tables share, so that the page shows them once: the tables without them, and these.

    Examples
    --------
    >>> from skldl.utils.tables import TextTable
    >>> given = [TextTable("", [], [], notes=["a", "b"]), TextTable("", [], [], notes=["a"])]
    >>> tables, notes = with_shared_notes(given)
    >>> [table.notes for table in tables], notes
    ([['b'], []], ['a'])
    """
    shared = [note for note in tables[0].notes if all(note in table.notes for table in tables)]
    return [replace(table, notes=[note for note in table.notes if note not in shared]) for table in tables], shared


def without_column(table: TextTable, heading: str) -> TextTable:
    """Leave a column of a table out, if the table has it.

    Examples
    --------
    >>> from skldl.utils.tables import Cell, TextTable
    >>> without_column(TextTable("", ["", "a", "b"], [("x", [Cell("1"), Cell("2")])]), "a").rows
    [('x', [Cell(text='2', best=False)])]
    """
    if heading not in table.head[1:]:
        return table
    place = table.head.index(heading, 1)

    def cut(rows: list[Any]) -> list[Any]:
        return [(name, [*cells[: place - 1], *cells[place:]]) for name, cells in rows]

    head = [*table.head[:place], *table.head[place + 1 :]]
    return replace(table, head=head, rows=cut(table.rows), foot=cut(table.foot))


def page_statistics(results: StudyResults, tests: dict[str, Comparison]) -> list[dict[str, Any]]:
    """Make the tests of each measure for the page, the criterion first: ``title``, ``text`` and ``table``.

    Average ranks are left out: they are in the table of the measure.
    """
    names = sorted(tests, key=lambda name: name != results.study["criterion"])
    found = []
    for name in names:
        table = comparison_table(tests[name])
        found.append(
            {
                "title": MEASURES[name].title,
                "text": " ".join(comparison_sentences(tests[name])),
                "table": None if table is None else without_column(table, "Average rank"),
            }
        )
    return found

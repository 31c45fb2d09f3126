"""The page: the variables of the template, and a content security policy that allows no requests."""

import base64
import hashlib
import re
from importlib import resources
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

import skldl
from skldl.experiments import StudyResults
from skldl.experiments.grids import parameter_titles
from skldl.experiments.outputs import failed_settings, failure_line, meaning, repeats_from_file
from skldl.experiments.statistics import ROPE, Comparison, compare
from skldl.experiments.tables import NOTHING
from skldl.metrics import MEASURES
from skldl.report._correction_figures import correction_figures
from skldl.report._figures import overview_figures
from skldl.report._headline import headline, trusted_tests
from skldl.report._instances import browsers
from skldl.report._prediction_figures import prediction_figures
from skldl.report._rater_figures import rater_figures
from skldl.report._sensitivity_figures import sensitivity_figures
from skldl.report._skill import MOST_ROWS, skill_figure, skill_summary_figure, skills_with_intervals
from skldl.report._tables import page_statistics, page_tables
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
    is_long = len(results.datasets) > MOST_ROWS
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
        figures=_figures(results, tests, skills if is_long else []),
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


def _figures(results: StudyResults, tests: dict[str, Comparison], skills: list[list[float]]) -> list[dict[str, Any]]:
    """All figures but that of the summary, in groups; groups without a figure are left out."""
    compared = chain(skill_figure(results, skills) if skills else (), overview_figures(results, tests))
    groups = {
        ("comparison", "Candidates compared"): compared,
        ("predictions", "Distributions and predictions"): prediction_figures(results),
        ("raters", "Raters"): rater_figures(results),
        ("corrections", "Corrected predictions"): correction_figures(results),
        ("sensitivity", "Sensitivity to hyper-parameters"): sensitivity_figures(results),
    }
    found = [{"name": name, "title": title, "figures": list(drawn)} for (name, title), drawn in groups.items()]
    return [group for group in found if group["figures"]]


def _grid(entry: dict[str, Any]) -> str:
    params, grid = entry.get("params", {}), entry.get("grid", {})
    titles = parameter_titles({**params, **grid})
    parts = [f"{titles[name]} = {value}" for name, value in params.items()]
    parts += [f"{titles[name]} from {', '.join(str(v) for v in values)}" for name, values in grid.items()]
    return "; ".join(parts) or "no hyper-parameters to select"

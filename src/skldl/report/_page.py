"""The report of a study, one HTML page: summary, tables, tests and instances; its figures are in `_figures`."""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined

import skldl
from skldl.experiments import StudyResults
from skldl.experiments.grids import parameter_titles
from skldl.experiments.outputs import failed_settings, failure_line, meaning, repeats_from_file
from skldl.experiments.statistics import ROPE, Comparison, compare
from skldl.experiments.statistics_text import comparison_sentences, comparison_table
from skldl.experiments.tables import (
    NOTHING,
    average_ranks,
    dataset_table,
    floor_columns,
    format_percent,
    interval_table,
    measure_table,
    noise_ceilings,
    settings_table,
    skill_table,
    time_table,
)
from skldl.metrics import MEASURES, Skill
from skldl.metrics._skill import LossSums
from skldl.plots import SkillDisplay
from skldl.plots._display import evenly_spaced
from skldl.plots._style import looks
from skldl.report._figures import MIN_DATASETS, ReportFigure, best_candidates, draw, figure_groups
from skldl.utils.files import whole_file
from skldl.utils.tables import Cell, TextTable
from skldl.utils.typing import FloatArray

FILE_NAME = "report.html"
MAX_WORDS = 6  # of an enumeration
MAX_DATASETS = 3  # more datasets are summed up in one sentence
CONFIDENCE = 0.95
MAX_MARKS = 400  # with more marks the figure shows only the best candidates; the table has all of them
MIN_SHOWN = 3  # candidates in that figure, whatever the number of datasets
MAX_ROWS = 30  # with more datasets, the page opens with one row for each candidate instead of each dataset
_CEILING = "the skill of a model whose loss is the noise floor"
MAX_INSTANCES = 20  # of each dataset: with all predictions kept, a page of every row would be too large
MAX_NUMBERS = 60_000  # of the page: large studies show fewer instances of each dataset, but at least one
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
    """The key by which a cell is sorted: its first number, with ms and % converted; empty text if it has none.

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
    """Positions of the columns of text, in which no cell begins with a number; 0 is the column after the row names.

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
    """Make the tables of a page; ``skills`` are those of `skills_with_intervals`, or empty.

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
    """Separate the notes that all tables share from the tables, so that the page shows them once.

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
    """Remove a column from a table, if the table has it.

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


# The summary that opens the page: findings in sentences, and the skill with intervals


def headline(results: StudyResults, tests: Comparison | None, skills: list[list[float]]) -> list[str]:
    """Sentences on the best candidate, the tests of the criterion, the skill, the noise floor, and failures.

    ``tests`` are those of `trusted_tests`, or None if the study does not compute the criterion; ``skills`` is what
    `skills_with_intervals` returns, or empty then.
    """
    sentences = [*_winner(results), *_skill_of_the_best(results, skills), *_against_the_mean(results, skills)]
    sentences += [*_against_the_floor(results), *_trust(results, tests)]
    if results.missing:
        sentences.append(f"Datasets that were not found and not run: {enumerate_words(results.missing)}.")
    if results.failures:
        sentences.append(f"{_count(len(results.failures), 'task')} failed; the section on the protocol lists them.")
    return sentences


def _winner(results: StudyResults) -> list[str]:
    criterion = results.study["criterion"]
    title = MEASURES[criterion].title
    ranks = average_ranks(results, criterion) if criterion in results.measures else np.full(1, np.nan)
    if np.isnan(ranks).any():
        return []
    order = np.argsort(ranks, kind="stable")
    n_datasets = len([d for d in results.averaged if not any(results.state(d, c) for c in results.candidates)])
    first = [results.candidates[j] for j in order if ranks[j] == ranks[order[0]]]
    text = f"By {title}, {enumerate_words(first)}"
    is_or_are, has_or_have = ("is", "has") if len(first) == 1 else ("are", "have")
    if n_datasets == 1:
        return [f"{text} {is_or_are} best on {results.averaged[0]}."]
    text += f" {has_or_have} the best average rank over {n_datasets} datasets"
    if len(first) < len(order):
        next_rank = ranks[order[len(first)]]
        text += f", followed by {enumerate_words([results.candidates[j] for j in order if ranks[j] == next_rank])}"
    return [text + "."]


def _skill_of_the_best(results: StudyResults, skills: list[list[float]]) -> list[str]:
    best: dict[str, tuple[str, float]] = {}
    for dataset, line in zip(results.datasets, skills, strict=False):
        known = {
            n: s for n, s in zip(results.candidates, line, strict=True) if n != results.baseline and not np.isnan(s)
        }
        if known:
            name = max(known, key=lambda candidate: known[candidate])
            best[dataset] = (name, known[name])
    if len(best) > MAX_DATASETS:
        values = [value for _, value in best.values()]
        return [
            f"The best candidate of each dataset has a skill (fraction of the loss of {results.baseline} that it "
            f"removes) of {format_percent(min(values))} to {format_percent(max(values))}, "
            f"{format_percent(float(np.median(values)))} in the median over {len(best)} datasets."
        ]
    sentences = []
    for dataset, (name, value) in best.items():
        interval = ""
        if isinstance(value, Skill):
            interval = f" ({value.confidence:.0%} interval {format_percent(value.low)} to {format_percent(value.high)})"
        if value >= 0:
            text = f"{name} removes {format_percent(value)} of the loss of {results.baseline}{interval}"
        else:
            text = f"the best skill is that of {name}, {format_percent(value)}{interval}"
        sentences.append(f"On {dataset}, {text}.")
    return sentences


def trusted_tests(results: StudyResults, measure: str) -> Comparison:
    """Test the candidates without the baseline, and count datasets that share their features as one.

    Otherwise a baseline that is always last, or features that are counted many times, would make differences
    significant.
    """
    rivals = [name for name in results.candidates if name != results.baseline]
    shared = any(len(family) > 1 for family in results.families)
    return compare(results, measure, candidates=rivals if len(rivals) > 1 else None, by_family=shared)


def _trust(results: StudyResults, tests: Comparison | None) -> list[str]:
    if tests is None or not np.isfinite(tests.nemenyi_difference):
        return []
    n_datasets = len(tests.datasets)
    shared = len(results.families) < len(results.averaged)
    frame = f"datasets with the same features counted once, as {n_datasets}" if shared else f"{n_datasets} datasets"
    if n_datasets < MIN_DATASETS:
        counted = f" ({frame})" if shared else ""
        return [f"{n_datasets} datasets are too few for a test of average ranks{counted}."]
    if results.baseline not in tests.candidates:
        frame += f", and without {results.baseline}"
    ranks = tests.average_ranks - tests.average_ranks.min()
    best, near = [], []
    for j in np.argsort(ranks, kind="stable"):
        if np.isclose(ranks[j], 0.0):
            best.append(tests.candidates[j])
        elif ranks[j] <= tests.nemenyi_difference:
            near.append(tests.candidates[j])
    if near:
        verdict = f"does not distinguish {enumerate_words(best)} from {enumerate_words(near)}"
    elif len(best) == 1:
        verdict = f"distinguishes {best[0]} from all other candidates"
    else:
        verdict = f"cannot distinguish {enumerate_words(best)}, whose average ranks are equal"
    return [f"With {frame}, the Nemenyi test {verdict}."]


def _against_the_mean(results: StudyResults, known_skills: list[list[float]]) -> list[str]:
    if not known_skills:
        return []
    title, skills = MEASURES[results.study["criterion"]].title, np.array(known_skills, dtype=np.float64)
    others = [j for j, name in enumerate(results.candidates) if name != results.baseline]
    if not others or np.isnan(skills[:, others]).all():
        return []
    wins = [(int(np.sum(skills[:, j] > 0)), results.candidates[j]) for j in others]
    most = max(count for count, _ in wins)
    names = [name for count, name in wins if count == most]
    known = ~np.isnan(skills[:, others]).all(axis=1)
    n_known = int(known.sum())
    sentences = [
        f"By {title}, better than always predicting the mean: {enumerate_words(names)} "
        f"on {most} of {_count(n_known, 'dataset')}"
        + ("; every other candidate on fewer." if len(names) < len(others) else ".")
    ]
    best = np.nanmax(skills[known][:, others], axis=1)
    lost = [name for name, value in zip(np.array(results.datasets)[known], best, strict=True) if value <= 0]
    if lost:
        sentences.append(f"No candidate is better than the mean on {enumerate_words(lost)}.")
    return sentences


def _against_the_floor(results: StudyResults) -> list[str]:
    criterion = results.study["criterion"]
    if criterion not in results.measures:
        return []
    known = floor_columns(results, criterion)
    rated = {dataset: line for dataset, line in known.items() if np.isfinite(line["noise floor"])}
    if len(rated) > MAX_DATASETS:
        explained = [line["explained by the best"] for line in rated.values()]
        if not np.isfinite(explained).any():
            return [f"On {len(rated)} datasets made of votes, the loss of the mean is the noise floor."]
        return [
            f"On {len(rated)} datasets made of votes the noise floor is known. Of the loss above it, the best "
            f"candidate explains {format_percent(float(np.nanmedian(explained)))} in the median."
        ]
    sentences = []
    for dataset, line in rated.items():
        explained_here = line["explained by the best"]
        outcome = "there is none"
        if np.isfinite(explained_here):
            outcome = f"the best candidate explains {format_percent(explained_here)}"
        end = line["noise floor smoothed"]
        sentences.append(
            f"On {dataset}, made of votes, the noise floor of {MEASURES[criterion].title} is "
            f"{line['noise floor']:.4g}{'' if np.isnan(end) else f' to {end:.4g}'}; of the loss above it, {outcome}."
        )
    return sentences


def enumerate_words(words: Sequence[str]) -> str:
    """Join words as in a sentence; after the first few, the others are counted.

    Examples
    --------
    >>> enumerate_words(["a", "b", "c"])
    'a, b and c'
    >>> enumerate_words(["a", "b", "c", "d", "e", "f", "g", "h"])
    'a, b, c, d, e and 3 others'
    """
    if len(words) > MAX_WORDS:
        words = [*words[: MAX_WORDS - 1], f"{len(words) - MAX_WORDS + 1} others"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def skill_interval(losses: FloatArray, reference: FloatArray, n_folds: int) -> tuple[float, float]:
    """Confidence interval of the skill from the mean losses of J tests; NaN for fewer than two folds, or without loss.

    It is that of `skldl.metrics.skill_of_losses`, with the variance times 1 + J / (k − 1), where k is the number of
    folds of one repeat: the correction of Nadeau and Bengio (2003) for training sets that overlap.

    Examples
    --------
    >>> import numpy as np
    >>> low, high = skill_interval(np.array([0.4, 0.5, 0.6]), np.array([1.0, 1.1, 1.2]), n_folds=3)
    >>> round(low, 3), round(high, 3)
    (0.302, 0.704)
    """
    n_tests = len(losses)
    if n_folds < 2 or n_tests < 2 or losses.sum() <= 0 or reference.sum() <= 0:
        return np.nan, np.nan
    found = LossSums.of(losses, reference).skill(CONFIDENCE, inflation=1 + n_tests / (n_folds - 1))
    return found.low, found.high


def skills_with_intervals(results: StudyResults, measure: str) -> list[list[float]]:
    """Skill of each candidate on each dataset: a `skldl.metrics.Skill` where an interval is known; NaN if unknown."""
    known, repeats = MEASURES[measure], int(results.study["repeats"])
    table: list[list[float]] = []
    for dataset, row in zip(results.datasets, results.skills(measure), strict=True):
        n_labels, n_folds = results.info[dataset]["n_labels"], results.n_expected(dataset) // repeats
        reference = known.loss(results.values(measure, dataset, results.baseline), n_labels)
        line: list[float] = []
        for candidate, value in zip(results.candidates, row, strict=True):
            low = high = np.nan
            if np.isfinite(value) and candidate != results.baseline:
                losses = known.loss(results.values(measure, dataset, candidate), n_labels)
                low, high = skill_interval(losses, reference, n_folds)
            line.append(Skill(float(value), low, high, CONFIDENCE) if np.isfinite(low) else float(value))
        table.append(line)
    return table


def skill_figure(results: StudyResults, skills: list[list[float]]) -> Iterator[ReportFigure]:
    """Draw the skill of the candidates, which `skills_with_intervals` returns, with intervals and noise ceilings.

    There is no figure if no candidate other than the baseline has a skill.
    """
    criterion = results.study["criterion"]
    most = max(MIN_SHOWN, MAX_MARKS // max(1, len(results.datasets)))
    shown = [name for name in best_candidates(results, most + 1) if name != results.baseline]
    rows: dict[str, dict[str, Any]] = {}
    for dataset, line in zip(results.datasets, skills, strict=True):
        known = dict(zip(results.candidates, line, strict=True))
        row = {name: known[name] for name in shown if not np.isnan(known[name])}
        if row:
            rows[dataset] = row
    if not rows:
        return
    ceilings = {name: value for name, value in noise_ceilings(results, criterion).items() if name in rows}
    n_others = len(results.candidates) - 1
    notes = [_meaning(results)]
    if any(isinstance(value, Skill) for row in rows.values() for value in row.values()):
        notes.append(f"A line is the {CONFIDENCE:.0%} confidence interval over the folds.")
    notes += _outside(rows)
    if ceilings:
        notes.append(f"A black bar is the noise ceiling: {_CEILING}.")
    if len(shown) < n_others:
        notes.append(f"Shown are the {len(shown)} of {n_others} candidates with the best average rank.")
    yield draw(
        "skill",
        f"Skill by {MEASURES[criterion].title}",
        " ".join(notes),
        SkillDisplay(rows, ceilings),
    )


def skill_summary_figure(results: StudyResults, skills: list[list[float]]) -> Iterator[ReportFigure]:
    """Draw the distribution of the skill over many datasets, one row for each candidate; see `skill_figure`."""
    rows: dict[str, dict[str, Any]] = {}
    for name, column in zip(results.candidates, np.array(skills, dtype=np.float64).T, strict=True):
        known = column[~np.isnan(column)]
        if len(known) and name != results.baseline:
            with np.errstate(invalid="ignore"):  # a quantile between −∞ and another skill is NaN
                quartiles = np.quantile(known, [0.25, 0.5, 0.75])
            low, middle, high = (float(value) for value in np.where(np.isnan(quartiles), -np.inf, quartiles))
            rows[name] = {"median": Skill(middle, low, high, 0.5)}
    if not rows:
        return
    ordered = dict(sorted(rows.items(), key=lambda row: -row[1]["median"]))
    notes = [_meaning(results), "A mark is the median over the datasets, a line the middle half of them."]
    notes += _outside(ordered)
    shown_ceilings: dict[str, float] = {}
    if ceilings := noise_ceilings(results, results.study["criterion"]):
        notes.append(
            f"The black bar is the median noise ceiling of the datasets made of votes ({len(ceilings)}): {_CEILING}."
        )
        shown_ceilings = dict.fromkeys(ordered, float(np.median(list(ceilings.values()))))
    yield draw(
        "skill-summary",
        f"Skill by {MEASURES[results.study['criterion']].title} over {len(skills)} datasets",
        " ".join(notes),
        SkillDisplay(ordered, shown_ceilings),
    )


def _outside(rows: dict[str, dict[str, Any]]) -> list[str]:
    """Explain the marks at the edge of the figure, if there are any."""
    if any(value < SkillDisplay.lowest for row in rows.values() for value in row.values()):
        return ["An arrow head at the left edge is a value outside the figure."]
    return []


def _meaning(results: StudyResults) -> str:
    return (
        f"Fraction of the loss of {results.baseline} that a candidate removes: 1 is perfect, 0 is no better than the "
        "mean of the training distributions."
    )


def skill_table_with_intervals(results: StudyResults, skills: list[list[float]]) -> TextTable:
    """Make the table of skills, with the interval beside each skill."""
    table = skill_table(results, results.study["criterion"])
    rows = []
    for (name, cells), line in zip(table.rows, skills, strict=True):
        texts = [Cell(f"{cell.text}{interval_text(s)}", cell.best) for cell, s in zip(cells, line, strict=False)]
        rows.append((name, [*texts, *cells[len(line) :]]))
    notes = list(table.notes)
    if any(isinstance(value, Skill) for line in skills for value in line):
        notes.append(
            f"In brackets the {CONFIDENCE:.0%} confidence interval over the folds, corrected for training sets that "
            "overlap (Nadeau and Bengio, 2003). A single test set gives no interval."
        )
    return replace(table, rows=rows, notes=notes)


def interval_text(skill: float) -> str:
    """Write the interval of a skill in brackets, or nothing if there is none.

    Examples
    --------
    >>> from skldl.metrics import Skill
    >>> interval_text(Skill(0.3, 0.25, 0.351, 0.95)), interval_text(0.3)
    (' [25.0%, 35.1%]', '')
    """
    return f" [{format_percent(skill.low)}, {format_percent(skill.high)}]" if isinstance(skill, Skill) else ""


# The instance browser: one table for each instance with predictions; the script shows one of them at a time


@dataclass(frozen=True)
class Instance:
    """One instance: ``row`` counts in the dataset or the fixed test set.

    ``degrees`` has for each label its name, the real degree and the predicted ones; ``measures`` for each measure its
    title and the values of the candidates, the best marked.
    """

    row: int
    degrees: list[tuple[str, str, list[str]]]
    measures: list[tuple[str, list[tuple[str, bool]]]]


@dataclass(frozen=True)
class Browser:
    """The instances of one dataset; ``candidates`` has name, colour and marker of each."""

    dataset: str
    candidates: list[tuple[str, str, str]]
    instances: list[Instance]


def browsers(results: StudyResults) -> list[Browser]:
    """Collect the instances of every dataset whose predictions were kept."""
    given = [(name, look.colour, look.marker) for name, look in looks(results.candidates).items()]
    found = {name: results.predictions(name) for name in results.datasets}
    known = {name: kept for name, kept in found.items() if kept is not None}
    n_lines = sum(len(kept["labels"]) + len(results.measures) for kept in known.values())
    most = min(MAX_INSTANCES, MAX_NUMBERS // max(1, n_lines * (len(given) + 1))) or 1
    return [
        Browser(name, given, _instances(kept, results.measures, results.candidates, most))
        for name, kept in known.items()
    ]


def _instances(kept: dict[str, Any], measures: list[str], candidates: list[str], most: int) -> list[Instance]:
    chosen = evenly_spaced(len(kept["rows"]), most)
    truth = kept["truth"][chosen]
    predicted = [kept["predicted"][name][chosen] for name in candidates]
    values = {measure: _values(measure, truth, predicted) for measure in measures}
    instances = []
    for place, row in enumerate(kept["rows"][chosen]):
        degrees = [
            (label, _number(truth[place, j]), [_number(table[place, j]) for table in predicted])
            for j, label in enumerate(kept["labels"])
        ]
        rows = [(MEASURES[m].title, _marked(m, [v[place] for v in values[m]])) for m in measures]
        instances.append(Instance(int(row), degrees, rows))
    return instances


def _values(measure: str, truth: FloatArray, predicted: list[FloatArray]) -> FloatArray:
    """Values of a measure, candidates × rows; NaN without a prediction. All candidates are measured in one call."""
    true, guessed = np.tile(truth, (len(predicted), 1)), np.concatenate(predicted)
    values = np.full(len(true), np.nan)
    known = np.isfinite(guessed).all(axis=1)
    if known.any():
        values[known] = MEASURES[measure].rowwise(true[known], guessed[known])
    return values.reshape(len(predicted), len(truth))


def _marked(measure: str, values: list[float]) -> list[tuple[str, bool]]:
    finite = [value for value in values if np.isfinite(value)]
    best = (max if MEASURES[measure].higher_is_better else min)(finite, default=np.nan)
    return [(_number(value), bool(value == best)) for value in values]


def _number(value: float) -> str:
    return NOTHING if np.isnan(value) else f"{value:.4f}"

"""The tables of a study: each measure as in the paper, skill, intervals, chosen settings, datasets and time."""

import math
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from skldl.experiments.grids import grid_end_notes, natural_limit_notes, parameter_titles, short
from skldl.experiments.results import StudyResults
from skldl.experiments.statistics import is_tie, rank_rows
from skldl.metrics import MEASURES, skill_ratio
from skldl.uncertainty import explainable_share
from skldl.uncertainty._intervals import coverage_of_folds
from skldl.utils.tables import Cell, TextTable
from skldl.utils.typing import FloatArray, IntArray

DECIMALS = 3  # of means and deviations, as in the paper
MAX_DECIMALS = 8
NOTHING = "–"
LEVEL = 0.9  # of the intervals
MIN_ROWS = 40  # for intervals; chosen by hand: fewer rows say little about coverage
FLOOR_HEADINGS = ("Noise floor", "Explained")

_RANK_NOTE = "Ranks are those of the means before rounding."
_SKILL_NOTE = (
    "Skill: the fraction of the loss of {baseline} that the best other candidate removes; below 0 % the mean is better."
)
_FLOOR_NOTE = (
    "Noise floor: the value (± standard error) that the true distributions would have on rows from as many votes. "
    "Explained: the fraction of the explainable loss, between the mean and the floor, that the best other candidate "
    "removes. Above 100%: the expected value of the measure is not lowest for the true distributions, so that the "
    "floor is no bound."
)
_DATASET_COLUMNS = {
    **{name: name for name in ("n_samples", "n_test", "n_features", "n_labels", "near_zero_share")},
    "entropy_share": "mean_entropy_share",
    "family": "family",
    "fingerprint": "fingerprint",
}
"""Columns of the CSV file of datasets, and the keys of a dataset's record that they show."""


def measure_table(results: StudyResults, measure: str) -> TextTable:
    """Make the table of one measure: mean ± std (rank), the best in bold, average ranks below."""
    known = MEASURES[measure]
    names = results.candidates
    parts = {"mean": results.means(measure), "std": results.deviations(measure)}
    parts["rank"] = rank_rows(parts["mean"], higher_is_better=known.higher_is_better)
    rivals = np.delete(results.skills(measure), names.index(results.baseline), axis=1)
    floors = floor_columns(results, measure)
    lines: dict[str, dict[str, Any]] = {}
    for i, dataset in enumerate(results.datasets):
        lines[dataset] = {f"{name} {part}": parts[part][i, j] for j, name in enumerate(names) for part in parts}
        lines[dataset]["skill of the best"] = np.nan if np.isnan(rivals[i]).all() else np.nanmax(rivals[i])
        lines[dataset] |= floors.get(dataset, {})

    def show(dataset: str, line: Mapping[str, Any]) -> list[Cell]:
        means, deviations = (np.array([line[f"{name} {part}"] for name in names]) for part in ("mean", "std"))
        decimals = decimals_to_distinguish(means, deviations)
        first = min((line[f"{name} rank"] for name in names if not np.isnan(line[f"{name} rank"])), default=np.nan)
        cells = []
        for name in names:
            mean, std, rank = (line[f"{name} {part}"] for part in parts)
            if wrong := results.state(dataset, name):
                cells.append(Cell(wrong))
                continue
            spread = "" if np.isnan(std) else f" ± {format_deviation(std)}"
            place = "" if np.isnan(rank) else f" ({format_rank(rank)})"
            cells.append(Cell(f"{mean:.{decimals}f}{spread}{place}", bool(rank == first)))
        skill = line["skill of the best"]
        return [*cells, Cell(NOTHING if np.isnan(skill) else format_percent(skill)), *_floor_cells(line)]

    average = average_ranks(results, measure)
    best = np.nanmin(average) if np.isfinite(average).any() else np.nan
    foot = [Cell(NOTHING) if np.isnan(r) else Cell(f"{r:.2f}", bool(r == best)) for r in average]
    return TextTable.of(
        lines,
        show,
        f"{known.title} {known.arrow}: mean ± std (rank)",
        ["Dataset", *names, "Skill", *(FLOOR_HEADINGS if floors else ())],
        foot=[("Average rank", [*foot, Cell(""), *(Cell("") for _ in floors and FLOOR_HEADINGS)])]
        if len(results.datasets) > 1
        else [],
        notes=[
            *_which_are_averaged(results),
            *_incomplete(results),
            _RANK_NOTE,
            _SKILL_NOTE.format(baseline=results.baseline),
            *([_FLOOR_NOTE] if floors else []),
        ],
    )


def average_ranks(results: StudyResults, measure: str) -> FloatArray:
    """Average rank of each candidate over the averaged datasets with all results; NaN without such a dataset."""
    means = results.means(measure, results.averaged)
    complete = means[~np.isnan(means).any(axis=1)]
    if not len(complete):
        return np.full(len(results.candidates), np.nan)
    return np.asarray(rank_rows(complete, higher_is_better=MEASURES[measure].higher_is_better).mean(axis=0))


def _which_are_averaged(results: StudyResults) -> list[str]:
    apart = [name for name in results.datasets if name not in results.averaged]
    return [f"Not in the average rank: {', '.join(apart)}."] if apart else []


def _incomplete(results: StudyResults) -> list[str]:
    wrong = [name for name in results.averaged if any(results.state(name, c) for c in results.candidates)]
    if not wrong:
        return []
    return [f"Incomplete, and so not in the average rank: {', '.join(wrong)}. The records have the reasons."]


def floor_columns(results: StudyResults, measure: str) -> dict[str, dict[str, float]]:
    """The noise floor of each dataset and the fraction of the explainable loss; empty if no dataset has votes."""
    known, column = MEASURES[measure], results.candidates.index(results.baseline)
    losses = results.losses(measure)
    rivals = np.delete(losses, column, axis=1)
    table = {}
    for row, dataset in enumerate(results.datasets):
        info = results.info[dataset]
        floor = info.get("noise_ceiling", {}).get(measure, np.nan)
        smoothed = info.get("noise_ceiling_smoothed", {}).get(measure, np.nan)
        least = known.upper(info["n_labels"]) - floor if known.higher_is_better else floor
        best = np.nan if np.isnan(rivals[row]).all() else float(np.nanmin(rivals[row]))
        explained = explainable_share(best, losses[row, column], least) if np.isfinite(least) else np.nan
        table[dataset] = {"noise floor": floor, "noise floor smoothed": smoothed, "explained by the best": explained}
    return table if any(np.isfinite(line["noise floor"]) for line in table.values()) else {}


def _floor_cells(line: Mapping[str, Any]) -> list[Cell]:
    """The two cells of `floor_columns` in one row of a table; none if the table has no such columns."""
    if "noise floor" not in line:
        return []
    floor, end, explained = (line[name] for name in ("noise floor", "noise floor smoothed", "explained by the best"))
    if np.isnan(floor):
        return [Cell(NOTHING), Cell(NOTHING)]
    end = "" if np.isnan(end) else f" to {end:.4g}"
    return [Cell(f"{floor:.4g}{end}"), Cell(_show_explained(explained))]


def _show_explained(fraction: float) -> str:
    """The fraction of the explainable loss; how far it is above one does not depend on the candidate."""
    if np.isnan(fraction):
        return NOTHING
    return ">100%" if fraction >= 1.0005 else format_percent(fraction)  # what prints as more than 100.0%


def noise_ceilings(results: StudyResults, measure: str) -> dict[str, float]:
    """The skill of a model at the noise floor, on each dataset whose votes are known and whose baseline has a result.

    Where the baseline has no loss, and so nothing can be gained, it is −∞ or 0, as every skill.
    """
    known, ceilings = MEASURES[measure], {}
    reference = results.losses(measure)[:, results.candidates.index(results.baseline)]
    for dataset, loss in zip(results.datasets, reference, strict=True):
        floor = results.info[dataset].get("noise_ceiling", {}).get(measure)
        if floor is not None and known.has_zero_loss and np.isfinite(loss):
            ceilings[dataset] = float(skill_ratio(known.loss(floor, results.info[dataset]["n_labels"]), loss))
    return ceilings


def skill_table(results: StudyResults, measure: str) -> TextTable:
    """Make the table of skills: the fraction of the loss of the baseline that each candidate removes."""
    skills = results.skills(measure)
    lines = {
        dataset: dict(zip(results.candidates, line, strict=True))
        for dataset, line in zip(results.datasets, skills, strict=True)
    }
    ceilings = noise_ceilings(results, measure)
    for dataset, line in lines.items() if ceilings else ():
        line["noise ceiling"] = ceilings.get(dataset, np.nan)

    def show(_: str, line: Mapping[str, Any]) -> list[Cell]:
        best = max((line[name] for name in results.candidates if not np.isnan(line[name])), default=np.nan)
        return [
            Cell(NOTHING) if np.isnan(s) else Cell(format_percent(s), bool(s == best and name in results.candidates))
            for name, s in line.items()
        ]

    return TextTable.of(
        lines,
        show,
        f"Skill against {results.baseline}, by {MEASURES[measure].title}",
        ["Dataset", *results.candidates, *(["Noise ceiling"] if ceilings else [])],
        notes=[
            f"1 − loss / loss of {results.baseline}: 100 % is perfect, 0 % no better than predicting the mean of the "
            "training distributions for every instance.",
            *(["Noise ceiling: the skill of a model at the noise floor of the votes."] if ceilings else []),
        ],
    )


def predictions_with_folds(results: StudyResults, dataset: str) -> tuple[dict[str, Any], IntArray] | None:
    """The kept predictions for a dataset, see `StudyResults.predictions`, and the fold in which each row was tested.

    Rows of a fixed test set are assigned to five folds. None if there are fewer than 40 rows.
    """
    found = results.predictions(dataset)
    if found is None or len(found["rows"]) < MIN_ROWS:
        return None
    rows = found["rows"]
    folds = np.full(len(rows), -1, dtype=np.intp)
    for record in results.evaluations:
        if record["dataset"] == dataset and record["repeat"] == 0 and "predictions" in record:
            folds[np.searchsorted(rows, record["predictions"]["rows"])] = record["fold"]
    if len(np.unique(folds)) < 2:
        folds = np.arange(len(rows)) % 5
    return found, folds


def interval_table(results: StudyResults, level: float = LEVEL) -> TextTable | None:
    """Make the table of coverage and width of the intervals of each candidate.

    None if the records keep fewer than 40 predictions of every dataset.
    """
    lines: dict[str, dict[str, Any]] = {}
    grouped = False
    for dataset in results.datasets:
        kept = predictions_with_folds(results, dataset)
        if kept is None:
            continue
        found, folds = kept
        grouped = grouped or found["groups"] is not None
        for candidate, P in found["predicted"].items():
            if np.isfinite(P).all():
                coverage, width = coverage_of_folds(found["truth"], P, folds, level, found["groups"])
                name = candidate if len(results.datasets) == 1 else f"{dataset}: {candidate}"
                lines[name] = {"coverage": coverage, "width": width, "rows": len(P)}
    if not lines:
        return None

    notes = [
        f"Coverage: fraction of rows whose degrees are all inside their intervals, which are calibrated on the "
        f"other folds; {level:.0%} is right. Width: mean length of an interval."
    ]
    if grouped:
        notes.append("Where rows have groups, intervals are for rows of a new group, and every group counts the same.")
    if any("noise_ceiling" in results.info[dataset] for dataset in results.datasets):
        notes.append("Where rows are made of votes, intervals are for the shares of as many votes on a new row.")
    if any(line["width"] > 1 - 1e-9 for line in lines.values()):  # a mean over intervals, with its rounding error
        notes.append("A width of 1: the other folds have too few rows, or groups, for this level.")

    def show(_: str, line: Mapping[str, Any]) -> list[Cell]:
        return [Cell(format_percent(line["coverage"])), Cell(f"{line['width']:.3f}"), Cell(f"{line['rows']:,}")]

    return TextTable.of(
        lines,
        show,
        f"Intervals of level {level:.0%}",
        ["Candidate", "Coverage", "Width", "Rows"],
        index="candidate",
        notes=notes,
    )


def dataset_table(results: StudyResults) -> TextTable:
    """Make the table of dataset statistics."""
    lines = {
        str(number): {"dataset": name} | {key: results.info[name][found] for key, found in _DATASET_COLUMNS.items()}
        for number, name in enumerate(results.datasets, start=1)
    }

    def show(_: str, line: Mapping[str, Any]) -> list[Cell]:
        size = f"{line['n_samples']:,}" + (f" (train), {line['n_test']:,} (test)" if line["n_test"] else "")
        fractions = (f"{line[key]:.1%}" for key in ("near_zero_share", "entropy_share"))
        texts = (line["dataset"], size, f"{line['n_features']:,}", str(line["n_labels"]), *fractions)
        return [Cell(text) for text in texts]

    return TextTable.of(
        lines,
        show,
        "Datasets",
        ["No.", "Dataset", "Examples", "Features", "Labels", "Degrees below 0.01", "Entropy"],
        index="number",
        notes=[
            "Entropy: mean over the rows, as a fraction of that of the uniform distribution.",
            *(f"These share their features: {', '.join(some)}." for some in results.families if len(some) > 1),
        ],
    )


def settings_table(results: StudyResults) -> TextTable:
    """Make the table of the settings that selection chose; of several, the most frequent with its count."""
    tuned = [entry["name"] for entry in results.study["candidates"] if entry.get("grid")]
    lines = {
        dataset: {name: _usual_setting(results.chosen(dataset, name)) for name in tuned} for dataset in results.datasets
    }
    return TextTable.of(
        lines,
        lambda _, line: [Cell(text) for text in line.values()],
        "Chosen settings",
        ["Dataset", *tuned],
        notes=[
            "Where the tests of a dataset chose different settings: the most frequent one, and in how many tests.",
            *grid_end_notes(results),
            *natural_limit_notes(results),
        ],
    )


def _usual_setting(settings: list[dict[str, Any]]) -> str:
    if not settings:
        return NOTHING
    titles = parameter_titles(settings[0])
    texts = [", ".join(f"{titles[name]}={short(value)}" for name, value in setting.items()) for setting in settings]
    (text, count), *others = Counter(texts).most_common()
    return f"{text} ({count}/{len(texts)})" if others else text


def time_table(results: StudyResults) -> TextTable:
    """Make the table of times: seconds to fit and to predict, as in the paper's table of the artificial dataset."""
    names = results.candidates
    parts = {"fit": results.means("fit_seconds"), "predict": results.means("predict_seconds")}
    parts["all selection"] = np.array([[_selection_seconds(results, d, c) for c in names] for d in results.datasets])
    lines = {
        dataset: {f"{name} {part}": parts[part][i, j] for j, name in enumerate(names) for part in parts}
        for i, dataset in enumerate(results.datasets)
    }

    def show(_: str, line: Mapping[str, Any]) -> list[Cell]:
        times = [(line[f"{name} fit"], line[f"{name} predict"]) for name in names]
        return [Cell(NOTHING if np.isnan(f) else f"{_format_seconds(f)} / {_format_seconds(p)}") for f, p in times]

    return TextTable.of(
        lines,
        show,
        "Time: fit / predict of one test, mean",
        ["Dataset", *names],
        foot=[("All selection", [Cell(_format_seconds(total)) for total in np.nansum(parts["all selection"], axis=0)])],
        notes=[
            "Measured with one thread, while other tasks may have run in parallel. Last row: total time of selection."
        ],
    )


def _selection_seconds(results: StudyResults, dataset: str, candidate: str) -> float:
    shared = [r["seconds"] for r in results.selections if (r["dataset"], r["candidate"]) == (dataset, candidate)]
    return float(sum(shared) + results.values("selection_seconds", dataset, candidate).sum())


def _format_seconds(seconds: float) -> str:
    """Write a time in milliseconds or seconds.

    Examples
    --------
    >>> _format_seconds(0.00123), _format_seconds(2.346), _format_seconds(1234.6)
    ('1.23 ms', '2.35 s', '1235 s')
    """
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"


def decimals_to_distinguish(values: FloatArray, deviations: FloatArray) -> int:
    """Number of decimals for the means of a row: three, and more where two would be printed equal, or one as zero.

    All means of a row have the same number, so that no difference between them seems larger than it is; and at most two
    more than the deviations, since what comes after that is chance. Means with different ranks may then be printed
    equal.

    Examples
    --------
    >>> import numpy as np
    >>> decimals_to_distinguish(np.array([0.174, 0.01472, 0.01483, 0.036]), np.array([0.02, 0.001, 0.001, 0.002]))
    4
    """
    most = min([MAX_DECIMALS, *(2 + _decimals(value) for value in deviations[deviations > 0])])
    decimals = max((_decimals(value) for value in values), default=DECIMALS)
    order = np.sort(values[np.isfinite(values)])
    for lower, upper in pairwise(order):
        while decimals < most and not is_tie(lower, upper) and f"{lower:.{decimals}f}" == f"{upper:.{decimals}f}":
            decimals += 1
    return decimals


def _decimals(value: float) -> int:
    """Three, or up to the first digit that is not zero; rounding noise shows as zero."""
    if not 0.5 * 10**-MAX_DECIMALS <= value < 0.5 * 10**-DECIMALS:
        return DECIMALS
    return min(MAX_DECIMALS, -math.floor(math.log10(value)))


def format_deviation(value: float) -> str:
    """Write a standard deviation: three decimals, or the first digit that is not zero.

    Examples
    --------
    >>> format_deviation(0.0124), format_deviation(0.00043), format_deviation(0.0)
    ('0.012', '0.0004', '0.000')
    """
    return f"{value:.{_decimals(value)}f}"


def format_rank(rank: float) -> str:
    """Write a rank: an integer if it is one, a tie with one decimal.

    Examples
    --------
    >>> format_rank(2.0), format_rank(2.5)
    ('2', '2.5')
    """
    return f"{rank:.0f}" if rank == int(rank) else f"{rank:.1f}"


def format_percent(value: float) -> str:
    """Write a fraction in per cent, without the sign of a zero.

    Examples
    --------
    >>> format_percent(0.123), format_percent(-0.0001)
    ('12.3%', '0.0%')
    """
    return "−∞" if value == -math.inf else f"{round(value, 3) + 0.0:.1%}"  # + 0.0 turns −0.0 into 0.0

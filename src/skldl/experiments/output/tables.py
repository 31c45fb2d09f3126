"""The tables of a study: one per measure as in the paper, skill, chosen settings, datasets, and time."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np

from skldl.experiments.output.grids import grid_end_notes, natural_limit_notes, short
from skldl.experiments.output.layout import (
    NOTHING,
    Cell,
    Frame,
    ResultTable,
    decimals_to_tell_apart,
    show_deviation,
    show_rank,
    show_share,
)
from skldl.experiments.output.scores import rank_rows, skill_of
from skldl.experiments.output.texts import parameter_titles
from skldl.experiments.output.uncertainty import FLOOR_HEADINGS, FLOOR_NOTE, floor_cells, floor_columns, noise_ceilings
from skldl.experiments.results import StudyResults
from skldl.metrics import MEASURES
from skldl.utils.typing import FloatArray


def measure_table(results: StudyResults, measure: str) -> ResultTable:
    """Make the table of one measure: mean ± std (rank), the best in bold, average ranks below."""
    known = MEASURES[measure]
    names = results.candidates
    parts = {"mean": results.means(measure), "std": results.deviations(measure)}
    parts["rank"] = rank_rows(parts["mean"], higher_is_better=known.higher_is_better)
    rivals = np.delete(skill_of(results, measure), names.index(results.baseline), axis=1)
    floors = floor_columns(results, measure)
    lines: dict[str, dict[str, Any]] = {}
    for i, dataset in enumerate(results.datasets):
        lines[dataset] = {f"{name} {part}": parts[part][i, j] for j, name in enumerate(names) for part in parts}
        lines[dataset]["skill of the best"] = np.nan if np.isnan(rivals[i]).all() else np.nanmax(rivals[i])
        lines[dataset] |= floors.get(dataset, {})

    def show(dataset: str, line: Mapping[str, Any]) -> list[Cell]:
        means, deviations = (np.array([line[f"{name} {part}"] for name in names]) for part in ("mean", "std"))
        decimals = decimals_to_tell_apart(means, deviations)
        first = min((line[f"{name} rank"] for name in names if not np.isnan(line[f"{name} rank"])), default=np.nan)
        cells = []
        for name in names:
            mean, std, rank = (line[f"{name} {part}"] for part in parts)
            if wrong := results.state(dataset, name):
                cells.append(Cell(wrong))
                continue
            spread = "" if np.isnan(std) else f" ± {show_deviation(std)}"
            place = "" if np.isnan(rank) else f" ({show_rank(rank)})"
            cells.append(Cell(f"{mean:.{decimals}f}{spread}{place}", bool(rank == first)))
        skill = line["skill of the best"]
        return [*cells, Cell(NOTHING if np.isnan(skill) else show_share(skill)), *floor_cells(line)]

    average = average_ranks(results, measure)
    best = np.nanmin(average) if np.isfinite(average).any() else np.nan
    foot = [Cell(NOTHING) if np.isnan(r) else Cell(f"{r:.2f}", bool(r == best)) for r in average]
    return ResultTable.of(
        Frame("dataset", lines),
        show,
        f"{known.title} {known.arrow}: mean ± std (rank)",
        ["Dataset", *names, "Skill", *(FLOOR_HEADINGS if floors else ())],
        foot=[("Average rank", [*foot, Cell(""), *(Cell("") for _ in floors and FLOOR_HEADINGS)])]
        if len(results.datasets) > 1
        else [],
        notes=[
            *_which_are_averaged(results),
            *_failures(results),
            _RANK_NOTE,
            _SKILL_NOTE.format(baseline=results.baseline),
            *([FLOOR_NOTE] if floors else []),
        ],
    )


_RANK_NOTE = "Ranks are those of the means before rounding."
_SKILL_NOTE = (
    "Skill: the share of the loss of {baseline} that the best other candidate removes; below 0 % the mean is better."
)


def average_ranks(results: StudyResults, measure: str) -> FloatArray:
    """Average rank of each candidate over the averaged datasets on which nothing is missing; NaN if there is none."""
    means = results.means(measure, results.averaged)
    whole = means[~np.isnan(means).any(axis=1)]
    if not len(whole):
        return np.full(len(results.candidates), np.nan)
    return np.asarray(rank_rows(whole, higher_is_better=MEASURES[measure].higher_is_better).mean(axis=0))


def _which_are_averaged(results: StudyResults) -> list[str]:
    apart = [name for name in results.datasets if name not in results.averaged]
    return [f"Not in the average rank: {', '.join(apart)}."] if apart else []


def _failures(results: StudyResults) -> list[str]:
    wrong = [name for name in results.averaged if any(results.state(name, c) for c in results.candidates)]
    if not wrong:
        return []
    return [f"Incomplete, and so not in the average rank: {', '.join(wrong)}. The records have the reasons."]


def skill_table(results: StudyResults, measure: str) -> ResultTable:
    """Make the table of skills: the share of the loss of the baseline that each candidate removes."""
    skills = skill_of(results, measure)
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
            Cell(NOTHING) if np.isnan(s) else Cell(show_share(s), bool(s == best and name in results.candidates))
            for name, s in line.items()
        ]

    return ResultTable.of(
        Frame("dataset", lines),
        show,
        f"Skill against {results.baseline}, by {MEASURES[measure].title}",
        ["Dataset", *results.candidates, *(["Noise ceiling"] if ceilings else [])],
        notes=[
            f"1 − loss / loss of {results.baseline}: 100 % is perfect, 0 % no better than predicting the mean of the "
            "training distributions for every instance.",
            *(["Noise ceiling: the skill of a model at the noise floor of the votes."] if ceilings else []),
        ],
    )


_DATASET_COLUMNS = {
    **{name: name for name in ("n_samples", "n_test", "n_features", "n_labels", "near_zero_share")},
    "entropy_share": "mean_entropy_share",
    "family": "family",
    "fingerprint": "fingerprint",
}


def dataset_table(results: StudyResults) -> ResultTable:
    """Make the table of dataset statistics."""
    lines = {
        str(number): {"dataset": name} | {key: results.info[name][found] for key, found in _DATASET_COLUMNS.items()}
        for number, name in enumerate(results.datasets, start=1)
    }

    def show(_: str, line: Mapping[str, Any]) -> list[Cell]:
        size = f"{line['n_samples']:,}" + (f" (train), {line['n_test']:,} (test)" if line["n_test"] else "")
        shares = (f"{line[key]:.1%}" for key in ("near_zero_share", "entropy_share"))
        texts = (line["dataset"], size, f"{line['n_features']:,}", str(line["n_labels"]), *shares)
        return [Cell(text) for text in texts]

    return ResultTable.of(
        Frame("number", lines),
        show,
        "Datasets",
        ["No.", "Dataset", "Examples", "Features", "Labels", "Degrees below 0.01", "Entropy"],
        notes=[
            "Entropy: mean over the rows, as a share of that of the uniform distribution.",
            *(f"These share their features: {', '.join(some)}." for some in results.families if len(some) > 1),
        ],
    )


def settings_table(results: StudyResults) -> ResultTable:
    """Make the table of the settings that selection chose; of several, the most frequent with its count."""
    tuned = [entry["name"] for entry in results.study["candidates"] if entry.get("grid")]
    lines = {
        dataset: {name: _usual_setting(results.chosen(dataset, name)) for name in tuned} for dataset in results.datasets
    }
    return ResultTable.of(
        Frame("dataset", lines),
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


def time_table(results: StudyResults) -> ResultTable:
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
        return [Cell(NOTHING if np.isnan(f) else f"{_seconds(f)} / {_seconds(p)}") for f, p in times]

    return ResultTable.of(
        Frame("dataset", lines),
        show,
        "Time: fit / predict of one test, mean",
        ["Dataset", *names],
        foot=[("All selection", [Cell(_seconds(total)) for total in np.nansum(parts["all selection"], axis=0)])],
        notes=[
            "Measured with one thread, while other tasks may have run in parallel. Last row: total time of selection."
        ],
    )


def _selection_seconds(results: StudyResults, dataset: str, candidate: str) -> float:
    shared = [r["seconds"] for r in results.selections if (r["dataset"], r["candidate"]) == (dataset, candidate)]
    return float(sum(shared) + results.values("selection_seconds", dataset, candidate).sum())


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"

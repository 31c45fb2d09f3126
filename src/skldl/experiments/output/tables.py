"""The tables of a study: one per measure as in the paper, skill, chosen settings, datasets, and time."""

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata

from skldl.experiments.output.rendering import (
    NOTHING,
    Cell,
    Table,
    decimals_to_tell_apart,
    same,
    show_deviation,
    show_rank,
    show_share,
)
from skldl.experiments.results import StudyResults
from skldl.metrics import MEASURES

FloatArray = npt.NDArray[np.floating]


def rank_rows(means: FloatArray, *, higher_is_better: bool) -> FloatArray:
    """Rank the columns of each row, 1 for the best; ties get the average rank, NaN no rank.

    Parameters
    ----------
    means : ndarray of shape (n_datasets, n_candidates)
        The values.
    higher_is_better : bool
        The arrow of the measure.

    Returns
    -------
    ndarray of the same shape
        The ranks.

    Examples
    --------
    >>> import numpy as np
    >>> rank_rows(np.array([[0.2, 0.1, 0.2]]), higher_is_better=False)
    array([[2.5, 1. , 2.5]])
    """
    ranks = np.full(means.shape, np.nan)
    for row, values in enumerate(means):
        places = [int(place) for place in np.argsort(values) if not np.isnan(values[place])]
        levels = np.empty(len(places))  # equal up to rounding errors means equal
        level = 0
        for i, place in enumerate(places):
            level += bool(i and not same(values[places[i - 1]], values[place]))
            levels[i] = level
        ranks[row, places] = rankdata(-levels if higher_is_better else levels)
    return ranks


def skill_of(results: StudyResults, measure: str) -> FloatArray:
    """What part of the mean baseline's loss each candidate takes away: 1 is perfect, below 0 is worse than the mean.

    Parameters
    ----------
    results : StudyResults
        The results.
    measure : str
        The measure; the loss is the distance, or for a similarity what it lacks to its upper bound.

    Returns
    -------
    ndarray of shape (n_datasets, n_candidates)
        The skills; NaN where there is none.
    """
    losses = losses_of(results, measure)
    reference = losses[:, [results.candidates.index(results.baseline)]]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(1 - losses / np.where(reference > 0, reference, np.nan))


def losses_of(results: StudyResults, measure: str) -> FloatArray:
    """Mean losses: a distance as it is, a similarity as what it lacks to its upper bound, or else below zero."""
    means = results.means(measure)
    known = MEASURES[measure]
    if not known.higher_is_better:
        return means
    bounds = np.array([[known.upper(results.info[dataset]["n_labels"])] for dataset in results.datasets])
    return np.asarray(np.where(np.isfinite(bounds), bounds, 0.0) - means)


def measure_table(results: StudyResults, measure: str) -> Table:
    """Make the table of one measure: mean ± std (rank), the best in bold, average ranks below.

    Parameters
    ----------
    results : StudyResults
        The results.
    measure : str
        The measure.

    Returns
    -------
    Table
        The table.
    """
    known = MEASURES[measure]
    means, deviations = results.means(measure), results.deviations(measure)
    ranks = rank_rows(means, higher_is_better=known.higher_is_better)
    skills = skill_of(results, measure)
    baseline = results.candidates.index(results.baseline)
    candidates = results.candidates
    rows, data = [], []
    for i, dataset in enumerate(results.datasets):
        decimals = decimals_to_tell_apart(means[i])
        cells = [_cell(results, i, j, means, deviations, ranks, decimals[j]) for j in range(len(candidates))]
        rivals = np.delete(skills[i], baseline)
        top = np.nanmax(rivals) if np.isfinite(rivals).any() else np.nan
        rows.append((dataset, [*cells, Cell(NOTHING if np.isnan(top) else show_share(top))]))
        numbers = [n for j in range(len(candidates)) for n in (means[i, j], deviations[i, j], ranks[i, j])]
        data.append([dataset, *("" if np.isnan(n) else float(n) for n in [*numbers, top])])
    average = average_ranks(results, measure)
    best = np.nanmin(average) if np.isfinite(average).any() else np.nan
    foot_cells = [Cell(NOTHING) if np.isnan(r) else Cell(f"{r:.2f}", bool(r == best)) for r in average]
    headings = [f"{name} {what}" for name in candidates for what in ("mean", "std", "rank")]
    notes = [*_which_are_averaged(results), *_failures(results), _SKILL_NOTE.format(baseline=results.baseline)]
    return Table(
        title=f"{known.title} {known.arrow}: mean ± std (rank)",
        head=["Dataset", *candidates, "Skill"],
        rows=rows,
        foot=[("Average rank", [*foot_cells, Cell("")])],
        notes=notes,
        data=[["dataset", *headings, "skill of the best"], *data],
    )


_SKILL_NOTE = (
    "Skill: the part of the loss of {baseline} that the best other candidate takes away; below 0 % the mean is better."
)


def _cell(
    results: StudyResults, i: int, j: int, means: FloatArray, deviations: FloatArray, ranks: FloatArray, decimals: int
) -> Cell:
    wrong = results.state(results.datasets[i], results.candidates[j])
    if wrong:
        return Cell(wrong)
    spread = "" if np.isnan(deviations[i, j]) else f" ± {show_deviation(deviations[i, j])}"
    rank = "" if np.isnan(ranks[i, j]) else f" ({show_rank(ranks[i, j])})"
    return Cell(f"{means[i, j]:.{decimals}f}{spread}{rank}", bool(ranks[i, j] == np.nanmin(ranks[i])))


def average_ranks(results: StudyResults, measure: str) -> FloatArray:
    """Average rank of each candidate over the averaged datasets on which nothing is missing.

    Parameters
    ----------
    results : StudyResults
        The results.
    measure : str
        The measure.

    Returns
    -------
    ndarray of shape (n_candidates,)
        The averages; NaN if there is no dataset to average over.
    """
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
    return [f"Incomplete, and so not in the average rank: {', '.join(wrong)}. The records say why."]


def skill_table(results: StudyResults, measure: str) -> Table:
    """Make the table of skills: what part of the baseline's loss each candidate takes away."""
    skills = skill_of(results, measure)
    rows = []
    for dataset, line in zip(results.datasets, skills, strict=True):
        best = np.nanmax(line) if np.isfinite(line).any() else np.nan
        rows.append((dataset, [Cell(NOTHING) if np.isnan(s) else Cell(show_share(s), bool(s == best)) for s in line]))
    data = [
        [name, *("" if np.isnan(s) else float(s) for s in line)]
        for name, line in zip(results.datasets, skills, strict=True)
    ]
    return Table(
        title=f"Skill against {results.baseline}, by {MEASURES[measure].title}",
        head=["Dataset", *results.candidates],
        rows=rows,
        notes=[
            f"1 − loss / loss of {results.baseline}: 100 % is perfect, 0 % no better than predicting the mean of the "
            "training distributions for every instance."
        ],
        data=[["dataset", *results.candidates], *data],
    )


_DATASET_COLUMNS = (
    *("number", "dataset", "n_samples", "n_test", "n_features", "n_labels", "near_zero_share", "entropy_share"),
)


def dataset_table(results: StudyResults) -> Table:
    """Make the table of dataset statistics."""
    rows, data = [], []
    for number, name in enumerate(results.datasets, start=1):
        info = results.info[name]
        size = f"{info['n_samples']:,}" + (f" (train), {info['n_test']:,} (test)" if info["n_test"] else "")
        shares = (info["near_zero_share"], info["mean_entropy_share"])
        numbers = [info[key] for key in ("n_samples", "n_test", "n_features", "n_labels")]
        texts = [name, size, f"{info['n_features']:,}", str(info["n_labels"]), *(f"{s:.1%}" for s in shares)]
        rows.append((str(number), [Cell(text) for text in texts]))
        data.append([number, name, *numbers, *shares, info["family"], info["fingerprint"]])
    return Table(
        title="Datasets",
        head=["No.", "Dataset", "Examples", "Features", "Labels", "Degrees below 0.01", "Entropy"],
        rows=rows,
        notes=[
            "Entropy: mean over the rows, as a share of that of the uniform distribution.",
            *(f"These share their features: {', '.join(some)}." for some in results.families if len(some) > 1),
        ],
        data=[[*_DATASET_COLUMNS, "family", "fingerprint"], *data],
    )


def settings_table(results: StudyResults) -> Table:
    """Make the table of the settings that selection chose; of several, the most frequent with its count."""
    tuned = [entry["name"] for entry in results.study["candidates"] if entry.get("grid")]
    rows, data = [], []
    for dataset in results.datasets:
        texts = [_usual_setting(results.chosen(dataset, candidate)) for candidate in tuned]
        rows.append((dataset, [Cell(text) for text in texts]))
        data.append([dataset, *texts])
    return Table(
        title="Chosen settings",
        head=["Dataset", *tuned],
        rows=rows,
        notes=["Where the tests of a dataset chose different settings: the most frequent one, and in how many tests."],
        data=[["dataset", *tuned], *data],
    )


def _usual_setting(settings: list[dict[str, Any]]) -> str:
    if not settings:
        return NOTHING
    texts = [", ".join(f"{name}={_short(value)}" for name, value in setting.items()) for setting in settings]
    (text, count), *others = Counter(texts).most_common()
    return f"{text} ({count}/{len(texts)})" if others else text


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value).replace(" ", "")


def time_table(results: StudyResults) -> Table:
    """Make the table of times: seconds to fit and to predict, as in the paper's table of the artificial dataset."""
    fit, predict = results.means("fit_seconds"), results.means("predict_seconds")
    select = np.array([[_selection_seconds(results, d, c) for c in results.candidates] for d in results.datasets])
    rows, data = [], []
    for i, dataset in enumerate(results.datasets):
        cells = []
        for j in range(len(results.candidates)):
            missing = np.isnan(fit[i, j])
            cells.append(Cell(NOTHING if missing else f"{_seconds(fit[i, j])} / {_seconds(predict[i, j])}"))
        rows.append((dataset, cells))
        numbers = [n for j in range(len(results.candidates)) for n in (fit[i, j], predict[i, j], select[i, j])]
        data.append([dataset, *("" if np.isnan(n) else float(n) for n in numbers)])
    totals = [Cell(_seconds(total)) for total in np.nansum(select, axis=0)]
    headings = [f"{name} {what}" for name in results.candidates for what in ("fit", "predict", "all selection")]
    return Table(
        title="Time: fit / predict of one test, mean",
        head=["Dataset", *results.candidates],
        rows=rows,
        foot=[("All selection", totals)],
        notes=["Measured with one thread, while other tasks may have run beside. The last row adds up all selection."],
        data=[["dataset", *headings], *data],
    )


def _selection_seconds(results: StudyResults, dataset: str, candidate: str) -> float:
    shared = [r["seconds"] for r in results.selections if (r["dataset"], r["candidate"]) == (dataset, candidate)]
    return float(sum(shared) + results.values("selection_seconds", dataset, candidate).sum())


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{1000 * seconds:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"

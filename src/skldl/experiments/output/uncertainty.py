"""Uncertainty in the tables of a study: the noise floor, and the coverage and width of intervals."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from skldl.experiments.output.layout import NOTHING, Cell, Frame, ResultTable, show_deviation, show_share
from skldl.experiments.output.scores import losses_of
from skldl.experiments.results import StudyResults
from skldl.metrics import MEASURES, skill_ratio
from skldl.uncertainty import explainable_share
from skldl.uncertainty._intervals import coverage_of_folds
from skldl.utils.typing import IntArray

LEVEL = 0.9
FEWEST_ROWS = 40
FLOOR_HEADINGS = ("Noise floor", "Explained")
FLOOR_NOTE = (
    "Noise floor: the value (± standard error) that the true distributions would have on rows from as many votes. "
    "Explained: the part of the explainable loss, between the mean and the floor, that the best other candidate takes "
    "away. Above 100%: the measure is not lowest, in expectation, for the true distributions, so that the floor is no "
    "bound."
)


def floor_columns(results: StudyResults, measure: str) -> dict[str, dict[str, float]]:
    """The noise floor of each dataset and the share of the explainable loss; empty if no dataset has votes."""
    known, column = MEASURES[measure], results.candidates.index(results.baseline)
    losses = losses_of(results, measure)
    rivals = np.delete(losses, column, axis=1)
    table = {}
    for place, dataset in enumerate(results.datasets):
        info = results.info[dataset]
        floor = info.get("noise_ceiling", {}).get(measure, np.nan)
        error = info.get("noise_ceiling_error", {}).get(measure, np.nan)
        least = known.upper(info["n_labels"]) - floor if known.higher_is_better else floor
        best = np.nan if np.isnan(rivals[place]).all() else float(np.nanmin(rivals[place]))
        share = explainable_share(best, losses[place, column], least) if np.isfinite(least) else np.nan
        table[dataset] = {"noise floor": floor, "noise floor error": error, "explained by the best": share}
    return table if any(np.isfinite(line["noise floor"]) for line in table.values()) else {}


def noise_ceilings(results: StudyResults, measure: str) -> dict[str, float]:
    """The skill of a model at the noise floor, on each dataset whose votes are known and whose baseline has a result.

    Where the baseline has no loss, and so nothing can be gained, it is −∞ or 0, as every skill.
    """
    known, ceilings = MEASURES[measure], {}
    reference = losses_of(results, measure)[:, results.candidates.index(results.baseline)]
    for dataset, loss in zip(results.datasets, reference, strict=True):
        floor = results.info[dataset].get("noise_ceiling", {}).get(measure)
        if floor is not None and known.has_least_loss and np.isfinite(loss):
            ceilings[dataset] = float(skill_ratio(known.loss(floor, results.info[dataset]["n_labels"]), loss))
    return ceilings


def floor_cells(line: Mapping[str, Any]) -> list[Cell]:
    """The two cells of `floor_columns` in one row of a table; none if the table has no such columns."""
    if "noise floor" not in line:
        return []
    floor, error, share = (line[name] for name in ("noise floor", "noise floor error", "explained by the best"))
    if np.isnan(floor):
        return [Cell(NOTHING), Cell(NOTHING)]
    spread = "" if np.isnan(error) else f" ± {show_deviation(error)}"
    return [Cell(f"{floor:.4g}{spread}"), Cell(_show_explained(share))]


def _show_explained(share: float) -> str:
    """The share of the explainable loss; how far it is above one does not depend on the candidate."""
    if np.isnan(share):
        return NOTHING
    return ">100%" if share >= 1.0005 else show_share(share)


def kept_predictions(results: StudyResults, dataset: str) -> tuple[dict[str, Any], IntArray] | None:
    """What `StudyResults.predictions` gives for a dataset, and the fold in which each row was tested.

    Rows of a fixed test set are assigned to five folds. None if there are fewer than 40 rows.
    """
    found = results.predictions(dataset)
    if found is None or len(found["rows"]) < FEWEST_ROWS:
        return None
    rows = found["rows"]
    folds = np.full(len(rows), -1, dtype=np.intp)
    for record in results.evaluations:
        if record["dataset"] == dataset and record["repeat"] == 0 and "predictions" in record:
            folds[np.searchsorted(rows, record["predictions"]["rows"])] = record["fold"]
    if len(np.unique(folds)) < 2:
        folds = np.arange(len(rows)) % 5
    return found, folds


def interval_table(results: StudyResults, level: float = LEVEL) -> ResultTable | None:
    """Make the table of coverage and width of the intervals of each candidate.

    None if the records keep fewer than 40 predictions of every dataset.
    """
    lines: dict[str, dict[str, Any]] = {}
    grouped = False
    for dataset in results.datasets:
        kept = kept_predictions(results, dataset)
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
        f"Coverage: share of rows whose degrees are all inside their intervals, which are calibrated on the "
        f"other folds; {level:.0%} is right. Width: mean length of an interval."
    ]
    if grouped:
        notes.append("Where rows have groups, intervals are for rows of a new group, and every group counts the same.")
    if any("noise_ceiling" in results.info[dataset] for dataset in results.datasets):
        notes.append("Where rows are made of votes, intervals are for the shares of as many votes on a new row.")
    if any(line["width"] > 1 - 1e-9 for line in lines.values()):
        notes.append("A width of 1: the other folds have too few rows, or groups, for this level.")

    def show(_: str, line: Mapping[str, Any]) -> list[Cell]:
        return [Cell(show_share(line["coverage"])), Cell(f"{line['width']:.3f}"), Cell(f"{line['rows']:,}")]

    return ResultTable.of(
        Frame("candidate", lines),
        show,
        f"Intervals of level {level:.0%}",
        ["Candidate", "Coverage", "Width", "Rows"],
        notes=notes,
    )

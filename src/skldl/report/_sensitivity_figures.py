"""Figures of how the criterion depends on a hyper-parameter, from the values that the selection recorded."""

from collections.abc import Iterator

import numpy as np

from skldl.experiments import StudyResults
from skldl.experiments.grids import best_by_value, candidate_of, parameter_titles, validation_losses
from skldl.metrics import MEASURES
from skldl.plots import SensitivityDisplay
from skldl.report._figures import ReportFigure, best_candidates, draw
from skldl.utils.typing import FloatArray

MOST_FIGURES = 8  # in studies with more candidates, those with the best average rank
MOST_CURVES = 12  # with more datasets, the figure shows the median and the quartiles over them


def sensitivity_figures(results: StudyResults) -> Iterator[ReportFigure]:
    """Draw how the criterion depends on the hyper-parameter that selection searched.

    There is one figure for each candidate with a grid; in large studies for those with the best average rank.
    """
    known = MEASURES[results.study["criterion"]]
    shown = best_candidates(results, MOST_FIGURES + 1)
    for number, entry in enumerate(results.study["candidates"]):
        candidate = candidate_of(entry)
        if not candidate.needs_selection or entry["name"] not in shown:
            continue
        name = candidate.path or max(candidate.grid, key=lambda param: len(candidate.grid[param]))
        others = (value for grid in candidate.grids.values() for value in grid.get(name, ()))
        values = list(dict.fromkeys([*candidate.grid[name], *others]))
        if candidate.grids:  # the values of several grids, as one axis
            values = sorted(values, key=lambda value: (isinstance(value, str), value))
        title = parameter_titles(candidate.grid)[name]
        curves = {}
        for dataset in results.datasets:
            used = candidate.on(dataset)
            losses = validation_losses(results, dataset, used)
            if losses is None:
                continue
            best = best_by_value(losses.mean(axis=0), used, name)
            least = min(best.values())
            if np.isfinite(list(best.values())).all() and least > 0:
                curves[dataset] = np.array([[best.get(value, np.nan) / least] for value in values])
        if curves and len(values) > 1:
            lines = _few_curves(curves)
            summary = "" if lines is curves else f" The lines summarise {len(curves)} datasets."
            yield draw(
                f"sensitivity-{number}",
                f"{entry['name']}: sensitivity to {title}",
                f"{known.title} on validation rows for each value of {title} that was tried, as a "
                f"multiple of the best value on the same dataset; other hyper-parameters at their best.{summary}",
                SensitivityDisplay(title, values, lines, "relative loss").plot,
                6.8,
                3.2,
            )


def _few_curves(curves: dict[str, FloatArray]) -> dict[str, FloatArray]:
    """The curves themselves, or the median and the quartiles of many."""
    if len(curves) <= MOST_CURVES:
        return curves
    table = np.hstack(list(curves.values()))  # values × datasets; NaN where a dataset has another grid
    known = [row[np.isfinite(row)] for row in table]
    return {
        name: np.array([[np.quantile(row, share) if len(row) else np.nan] for row in known])
        for name, share in {"upper quartile": 0.75, "median": 0.5, "lower quartile": 0.25}.items()
    }

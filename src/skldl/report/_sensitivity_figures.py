"""Figures of how the criterion depends on a hyper-parameter, from the values that the selection recorded."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from skldl._typing import FloatArray
from skldl.experiments import Candidate, StudyResults
from skldl.experiments.output.texts import parameter_titles
from skldl.metrics import MEASURES
from skldl.plots import SensitivityDisplay
from skldl.report._figures import ReportFigure, best_candidates, draw

MOST_FIGURES = 8  # in studies with more candidates, those with the best average rank
MOST_CURVES = 12  # with more datasets, the figure shows the median and the quartiles over them


def sensitivity_figures(results: StudyResults) -> Iterator[ReportFigure]:
    """Draw how the criterion depends on the hyper-parameter that selection searched.

    There is one figure for each candidate with a grid; in large studies for those with the best average rank.
    """
    known = MEASURES[results.study["criterion"]]
    trials = _trials(results)
    shown = best_candidates(results, MOST_FIGURES + 1)
    for number, entry in enumerate(results.study["candidates"]):
        grid, grids = entry.get("grid", {}), entry.get("grids", {})
        candidate = Candidate(entry["name"], "", grid=grid, path=entry.get("path", ""), grids=grids)
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
            rows = trials.get((dataset, entry["name"]), [])
            if rows:
                table = np.array(rows, dtype=np.float64).reshape(-1, len(used.settings))
                loss = known.loss(table.mean(axis=0), results.info[dataset]["n_labels"])
                best = _best_by_value(loss, used, name)
                if np.isfinite(best).all() and best.min() > 0:
                    relative = dict(zip(used.grid[name], best / best.min(), strict=True))
                    curves[dataset] = np.array([[relative.get(value, np.nan)] for value in values])
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


def _trials(results: StudyResults) -> dict[tuple[str, str], list[list[float]]]:
    """Values of the criterion that selection recorded, by dataset and candidate: one row for each selection."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    for record in [*results.selections, *(r for r in results.evaluations if "selection" in r)]:
        if record["status"] == "ok":
            values: list[Any] = (record.get("selection") or record)["values"]
            row = [np.nan if value is None else float(value) for value in values]
            found.setdefault((record["dataset"], record["candidate"]), []).append(row)
    return found


def _best_by_value(losses: FloatArray, candidate: Candidate, name: str) -> FloatArray:
    """For each value of one hyper-parameter the least loss over all others that could be fitted."""
    settings = [setting[name] for setting in candidate.settings]
    rows = [
        [loss for loss, used in zip(losses, settings, strict=True) if used == value] for value in candidate.grid[name]
    ]
    return np.asarray(np.fmin.reduce(np.array(rows, dtype=np.float64), axis=1))  # settings that failed are NaN

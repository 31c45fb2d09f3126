"""The chosen model before and after calibration: reliability figures of its held-out predictions."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.special import rel_entr

from skldl.experiments import StudyResults
from skldl.experiments.tables import predictions_with_folds
from skldl.plots import CalibrationDisplay, CoverageDisplay
from skldl.report._figures import ReportFigure, draw
from skldl.selection import pairs_of
from skldl.uncertainty import coverage_curve
from skldl.uncertainty._calibration_maps import METHODS, cross_fit_maps
from skldl.uncertainty._coverage import dirichlet_ranks
from skldl.uncertainty._dirichlet import fill_zeros, fit_concentration
from skldl.utils.mean_mixture import means_without
from skldl.utils.typing import FloatArray

ENOUGH_ROWS = 100
_WORDS = {
    "temperature": "temperature scaling",
    "vector": "vector scaling",
    "shrink": "shrinkage towards the mean",
}


def correction_figures(results: StudyResults) -> Iterator[ReportFigure]:
    """Draw, for the best candidate on each dataset, calibration before and after, and the coverage of its spread.

    There are none for a dataset of which the records keep fewer than 100 predictions.
    """
    criterion = results.study["criterion"]
    if criterion not in results.measures:
        return
    losses = results.losses(criterion)
    for number, dataset in enumerate(results.datasets):
        kept = predictions_with_folds(results, dataset)
        if kept is None or len(kept[0]["truth"]) < ENOUGH_ROWS or np.isnan(losses[number]).all():
            continue
        found, fold_of = kept
        best = results.candidates[int(np.nanargmin(losses[number]))]
        P = found["predicted"][best]
        if np.isfinite(P).all():
            yield from _before_and_after(number, dataset, best, found, P, fold_of)


def _before_and_after(
    number: int, dataset: str, best: str, found: dict[str, Any], P: FloatArray, fold_of: Any
) -> Iterator[ReportFigure]:
    D, labels = found["truth"], found["labels"]
    codes = np.unique(fold_of, return_inverse=True)[1]
    means, pairs = means_without(D, None, codes), list(pairs_of(codes))
    corrected = cross_fit_maps(METHODS, D, np.maximum(P, 1e-12), means, None, pairs)
    divergence = {name: float(rel_entr(D, table).sum(axis=1).mean()) for name, table in corrected.items()}
    method = min(divergence, key=lambda name: divergence[name])
    outcome = "none lowers the divergence: the predictions are calibrated already."
    if method != "none":
        outcome = (
            f"{_WORDS[method]} is the best: it takes the Kullback-Leibler divergence from {divergence['none']:.4g} to "
            f"{divergence[method]:.4g}."
        )
    stages = {"before": P, "after": corrected[method]} if method != "none" else {"unchanged": P}
    shown = min(len(labels), 12)
    yield draw(
        f"correction-{number}",
        f"{dataset}: {best} before and after calibration",
        "Mean real degree against mean predicted degree. Of temperature scaling, vector scaling and shrinkage towards "
        f"the mean, fitted without the fold of the row, {outcome}",
        partial(CalibrationDisplay.from_predictions, D, stages, label_names=labels),
        1.6 + 2.0 * min(shown, 4),
        0.6 + 1.85 * -(-shown // 4),
        phone_height=0.6 + 1.85 * -(-shown // 2),
    )
    filled = fill_zeros(D)
    curves = {}
    for name in stages:
        table = corrected[method if name == "after" else "none"]
        ranks = np.empty_like(D)
        for train, test in pairs:
            tau = fit_concentration(table[train], D=filled[train])
            ranks[test] = dirichlet_ranks(filled[test], table[test], np.full(len(test), tau))
        curves[name] = coverage_curve(ranks)
    yield draw(
        f"spread-{number}",
        f"{dataset}: spread around {best}",
        "Share of the degrees inside the intervals of a Dirichlet distribution around the prediction, against the "
        "level of the intervals; its concentration was fitted without the fold of the row. Above the dotted line the "
        "intervals are too wide, below it too narrow.",
        CoverageDisplay(curves).plot,
        6.4,  # room for the legend
        3.8,
    )

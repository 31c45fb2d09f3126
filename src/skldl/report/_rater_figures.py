"""The raters behind the votes of a dataset: how informed, how severe and how confused they are."""

from collections.abc import Iterator

import numpy as np

from skldl.annotators import RaterSummary
from skldl.experiments import StudyResults
from skldl.plots import RatersDisplay
from skldl.report._figures import ReportFigure, draw

MOST_NAMED = 8
"""Maximum number of flagged raters that the caption names."""


def rater_figures(results: StudyResults) -> Iterator[ReportFigure]:
    """Draw the raters of each dataset whose record has a summary of them.

    There is one figure for each set of raters: datasets that differ only in hidden degrees share them.
    """
    known = {name: results.info[name].get("raters") for name in results.datasets}
    drawn = []
    for number, (dataset, raters) in enumerate(known.items()):
        if not raters or raters in drawn:
            continue
        drawn.append(raters)
        summary = RaterSummary.from_dict(raters)
        display = RatersDisplay(summary.table, summary.confusion, summary.label_names, summary.n_raters)
        if np.isfinite(summary.table.informedness).any():
            width, height = display.size
            yield draw(
                f"raters-{number}",
                f"{dataset}: the raters",
                _caption(summary),
                display.plot,
                width,
                height,
                phone_height=display._n_panels * height,
            )


def _caption(summary: RaterSummary) -> str:
    """Caption: what the panels show, and which raters are flagged."""
    table = summary.table
    severity = "Severity is the mean difference between the answer and the truth as the others see it. "
    text = (
        f"{summary.n_raters:,} raters gave {summary.n_votes:,} votes. Informedness is the agreement with the other "
        "raters beyond chance: the share of answers that come from the item and not from habit or chance. "
        f"{severity if np.isfinite(table.severity).any() else ''}Lines are intervals of 95 %. On the right, how often "
        f'each true label gets each answer, by the model "{summary.model}" of Dawid and Skene. '
    )
    if not summary.flagged:
        return text + "No rater is flagged."
    if summary.n_raters == len(table):
        flagged = [f"{rater} ({flags})" for rater, flags in zip(table.rater, table.flags, strict=True) if flags]
        more = len(flagged) - MOST_NAMED
        names = ", ".join(flagged[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    else:
        names = ", ".join(f"{number:,} as {name}" for name, number in summary.flagged.items())
    return f"{text}Flagged: {names}. The flags are hints: inspect the votes before drawing conclusions."

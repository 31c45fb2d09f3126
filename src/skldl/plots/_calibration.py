"""`CalibrationDisplay`: mean true degree against mean predicted degree of each label."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from skldl.plots._display import PredictionDisplay, named_predictions, names_of_labels
from skldl.plots._style import MUTED, columns_that_fit, legend_beside, looks, panels, plain, width_of
from skldl.utils.typing import FloatArray


@dataclass(frozen=True)
class CalibrationCurve:
    """Means of predicted and true degrees in bins with equal numbers of rows, and the mean difference between them.

    Attributes
    ----------
    predicted, true : ndarray of shape (n_bins,)
        Means of each bin.
    error : float
        Mean over rows of the absolute difference between the two means of the row's bin.

    Examples
    --------
    >>> from skldl.plots import CalibrationDisplay
    >>> display = CalibrationDisplay.from_predictions([[0.2, 0.8], [0.4, 0.6]], [[0.2, 0.8], [0.4, 0.6]])
    >>> curve = next(iter(display.curves.values()))[0]
    >>> round(curve.error, 6)
    0.0
    """

    predicted: FloatArray
    true: FloatArray
    error: float


def calibration_curve(true: npt.ArrayLike, predicted: npt.ArrayLike, n_bins: int = 10) -> CalibrationCurve:
    """Cut the predicted degrees of one label into bins with equal numbers of rows, and compute the means of each bin.

    Parameters
    ----------
    true, predicted : array-like of shape (n_samples,)
        True and predicted degrees of the label.
    n_bins : int, default=10
        Number of bins; with fewer rows there are fewer. Equal predictions are in the same bin.

    Returns
    -------
    CalibrationCurve
        The means and the error.

    Examples
    --------
    >>> from skldl.plots import calibration_curve
    >>> calibration_curve([0.1, 0.3, 0.6, 0.8], [0.2, 0.2, 0.6, 0.6], n_bins=2)
    CalibrationCurve(predicted=array([0.2, 0.6]), true=array([0.2, 0.7]), error=0.05)
    """
    if n_bins < 1:
        raise ValueError(f"n_bins={n_bins!r} must be at least 1.")
    guess, real = np.asarray(predicted, dtype=np.float64), np.asarray(true, dtype=np.float64)
    edges = np.unique(np.quantile(guess, np.linspace(0, 1, n_bins + 1)[1:-1]))
    bins = np.searchsorted(edges, guess, side="left")
    counts = np.bincount(bins, minlength=len(edges) + 1)
    filled = counts > 0
    means = [
        np.bincount(bins, weights=values, minlength=len(counts))[filled] / counts[filled] for values in (guess, real)
    ]
    error = float(np.average(np.abs(means[0] - means[1]), weights=counts[filled]))
    return CalibrationCurve(means[0], means[1], round(error, 12))


def calibration_curves(
    true: FloatArray, predicted: Mapping[str, FloatArray], n_bins: int = 10
) -> dict[str, list[CalibrationCurve]]:
    """Compute the curve of each label for each table of predictions."""
    return {
        name: [calibration_curve(true[:, j], table[:, j], n_bins) for j in range(true.shape[1])]
        for name, table in predicted.items()
    }


@dataclass(eq=False)
class CalibrationDisplay(PredictionDisplay):
    """One panel for each label: mean real degree against mean predicted degree, in bins with equal numbers of rows.

    Points below the diagonal mean that predicted degrees are too large. With many labels, those with the largest error
    are drawn, and the title of the figure mentions it.

    Parameters
    ----------
    curves : dict of list of CalibrationCurve
        From the name of each model to its curves, one for each label.
    label_names : list of str
        Names of the labels.
    max_panels : int
        With more labels than this, only those with the largest errors are drawn.

    Attributes
    ----------
    shown_ : list of int
        The labels that were drawn.
    axes_ : list of Axes
        Their panels.
    figure_ : Figure
        The figure.

    Examples
    --------
    >>> from skldl.plots import CalibrationDisplay
    >>> D = [[0.1, 0.9], [0.3, 0.7], [0.6, 0.4], [0.8, 0.2]]
    >>> display = CalibrationDisplay.from_predictions(D, D, label_names=["no", "yes"])
    >>> display.curves["predicted"][0].error
    0.0
    """

    curves: dict[str, list[CalibrationCurve]]
    label_names: list[str]
    max_panels: int = 12

    @classmethod
    def from_predictions(
        cls,
        D_true: Any,
        D_pred: Any,
        *,
        n_bins: int = 10,
        max_panels: int = 12,
        label_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the figure from true and predicted distributions.

        Parameters
        ----------
        D_true : array-like or DataFrame of shape (n_samples, n_labels)
            True distributions.
        D_pred : array-like or mapping
            Predicted distributions, or several tables of them by name.
        n_bins : int, default=10
            Number of bins.
        max_panels : int, default=12
            With more labels than this, only those with the largest errors are drawn.
        label_names : sequence of str, default=None
            Names of the labels.
        ax : Axes, default=None
            Where to draw; its area is divided into panels. A new figure if None.

        Returns
        -------
        CalibrationDisplay
            The figure, drawn.
        """
        true, predicted = named_predictions(D_true, D_pred)
        curves = calibration_curves(true, predicted, n_bins)
        return cls(curves, names_of_labels(D_true, label_names, true.shape[1]), max_panels).plot(ax)

    def _shape(self, width: float | None) -> tuple[int, int]:
        """Numbers of rows and columns of panels."""
        n_shown = min(len(self.label_names), self.max_panels)
        n_columns = columns_that_fit(width, min(n_shown, 4))
        return math.ceil(n_shown / n_columns), n_columns

    def _size(self, width: float | None) -> tuple[float, float]:
        n_rows, n_columns = self._shape(width)
        return 1.6 + 2.0 * n_columns, 0.6 + 1.85 * n_rows

    def _draw(self, ax: Axes | None) -> None:
        n_labels = len(self.label_names)
        errors = np.mean([[curve.error for curve in curves] for curves in self.curves.values()], axis=0)
        worst = np.argsort(-errors, kind="stable")[: self.max_panels]
        self.shown_ = [int(label) for label in (np.sort(worst) if n_labels <= self.max_panels else worst)]
        n_rows, n_columns = self._shape(width_of(ax))
        self.figure_, grid = panels(ax, n_rows, n_columns, self.size())
        cells = [panel for row in grid for panel in row]
        self.axes_ = cells[: len(self.shown_)]
        for panel, label in zip(self.axes_, self.shown_, strict=True):
            self._draw_panel(panel, label)
            if n_columns < min(len(self.shown_), 4):
                panel.locator_params(axis="x", nbins=2)
        for panel in cells[len(self.shown_) :]:
            panel.set_axis_off()
        for row in grid:
            row[0].set_ylabel("mean real degree")
        for column in range(n_columns):
            self.axes_[column::n_columns][-1].set_xlabel("mean predicted degree")
        if ax is None and n_labels > self.max_panels:
            note = f"The {len(self.shown_)} of {n_labels} labels with the largest error, worst first."
            self.figure_.suptitle(note, fontsize=9.5)
        if len(self.curves) > 1:
            legend_beside(self.axes_[min(n_columns, len(self.axes_)) - 1])

    def _draw_panel(self, panel: Axes, label: int) -> None:
        for name, look in looks(self.curves).items():
            curve = self.curves[name][label]
            panel.plot(curve.predicted, curve.true, **look.line, linewidth=1.0, markersize=3.5, label=plain(name))
        low = min(*panel.get_xlim(), *panel.get_ylim())
        high = max(*panel.get_xlim(), *panel.get_ylim())
        panel.plot([low, high], [low, high], color=MUTED, linewidth=0.8, linestyle=":", zorder=1)
        panel.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        panel.locator_params(nbins=3)
        panel.set_title(plain(self.label_names[label], 22))

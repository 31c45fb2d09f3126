"""`CoverageDisplay`: how often intervals of each level hold the truth."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from matplotlib.axes import Axes

from skldl.plots._style import MUTED, figure_of, legend_beside, looks, new_axes, plain, style
from skldl.uncertainty import CoverageCurve


@dataclass(eq=False)
class CoverageDisplay:
    """Share of degrees inside the intervals against the level of the intervals, one line for each model.

    On the diagonal both agree. A line above it: the intervals are wider than they need to be; below it: too narrow.

    Parameters
    ----------
    curves : dict of CoverageCurve
        By the name of the model.

    Attributes
    ----------
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> from skldl.plots import CoverageDisplay
    >>> from skldl.uncertainty import coverage_curve
    >>> display = CoverageDisplay({"model": coverage_curve([0.1, 0.4, 0.5, 0.9])}).plot()
    >>> display.ax_.get_xlabel()
    'level of the intervals'
    """

    curves: Mapping[str, CoverageCurve]

    @classmethod
    def from_spread(cls, model: Any, X: Any, y: Any = None, counts: Any = None, *, ax: Axes | None = None) -> Self:
        """Draw the curve of a fitted `skldl.uncertainty.DirichletSpread` on new rows.

        Parameters
        ----------
        model : DirichletSpread or mapping
            The model, or several by name.
        X : array-like of shape (n_samples, n_features)
            Features.
        y, counts : array-like of shape (n_samples, n_labels), default=None
            Distributions, or votes.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        CoverageDisplay
            The figure, drawn.
        """
        models = model if isinstance(model, Mapping) else {"Dirichlet spread": model}
        return cls({name: one.coverage(X, y, counts) for name, one in models.items()}).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the figure.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        CoverageDisplay
            This object, with ``ax_`` and ``figure_``.
        """
        with style():
            self.ax_ = new_axes(ax, 4.6, 3.8)
            self.figure_ = figure_of(self.ax_)
            self.ax_.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle=":", zorder=1)
            for name, look in looks(list(self.curves)).items():
                curve = self.curves[name]
                self.ax_.plot(
                    curve.levels,
                    curve.observed,
                    **look.line,
                    linewidth=1.0,
                    markersize=3.5,
                    label=f"{plain(name)} (error {curve.error:.3f})",
                )
            self.ax_.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
            self.ax_.set_xlabel("level of the intervals")
            self.ax_.set_ylabel("share of degrees inside")
            legend_beside(self.ax_)
        return self

"""`CoverageDisplay`: fraction of true degrees inside the intervals of each level."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from matplotlib.axes import Axes

from skldl.plots._display import Display
from skldl.plots._style import MUTED, legend_beside, looks, plain
from skldl.uncertainty import CoverageCurve


@dataclass(eq=False)
class CoverageDisplay(Display):
    """Fraction of degrees inside the intervals against the level of the intervals, one line for each model.

    On the diagonal both agree. Above it the intervals are wider than necessary, below it they are too narrow.

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
    _inches: ClassVar[tuple[float, float]] = (6.4, 3.8)  # with the legend

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

    def _draw(self, ax: Axes | None) -> None:
        ax = self._axes(ax)
        ax.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, linestyle=":", zorder=1)
        for name, look in looks(list(self.curves)).items():
            curve = self.curves[name]
            ax.plot(
                curve.levels,
                curve.observed,
                **look.line,
                linewidth=1.0,
                markersize=3.5,
                label=f"{plain(name)} (error {curve.error:.3f})",
            )
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        ax.set_xlabel("level of the intervals")
        ax.set_ylabel("fraction of degrees inside")
        legend_beside(ax)

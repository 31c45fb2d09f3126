"""`ConvergenceDisplay`: how fast solvers reach the optimum."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from skldl.plots._display import Display, named_estimators
from skldl.plots._style import legend_beside, looks, plain


@dataclass(eq=False)
class ConvergenceDisplay(Display):
    """Objective minus the smallest value that any of the solvers found, by iteration; both axes are logarithmic.

    SA-IIS and SA-BFGS minimise the same function, so that their curves can be compared.

    Parameters
    ----------
    curves : dict of ndarray of shape (n_iterations,)
        From the name of each model to its objective after each iteration, beginning with the start.

    Attributes
    ----------
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> from skldl.plots import ConvergenceDisplay
    >>> display = ConvergenceDisplay({"SA-IIS": [1.0, 0.6, 0.52], "SA-BFGS": [1.0, 0.51, 0.5]}).plot()
    >>> display.ax_.get_yscale()
    'log'
    """

    curves: Mapping[str, npt.ArrayLike]

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the ``loss_curve_`` of one or several fitted estimators.

        Parameters
        ----------
        estimator : estimator or mapping
            A fitted estimator with the attribute ``loss_curve_``, or several by name.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        ConvergenceDisplay
            The figure, drawn.
        """
        curves = {}
        for name, model in named_estimators(estimator).items():
            last = model.steps[-1][1] if hasattr(model, "steps") else model
            if not hasattr(last, "loss_curve_"):
                raise ValueError(f"{name} has no loss_curve_. Pass a fitted estimator with an iterative solver.")
            curves[name] = last.loss_curve_
        return cls(curves).plot(ax)

    def _draw(self, ax: Axes | None) -> None:
        values = {name: np.asarray(curve, dtype=np.float64) for name, curve in self.curves.items()}
        minimum = min(float(curve.min()) for curve in values.values())
        ax = self._axes(ax)
        for name, look in looks(values).items():
            gap = values[name] - minimum
            above = gap > 0  # the minimum itself cannot be drawn on a logarithmic axis
            steps = np.arange(1, len(gap) + 1)[above]
            ax.plot(steps, gap[above], **look.line, markevery=0.08, label=plain(name))
        ax.set(xscale="log", yscale="log")
        ax.set_xlabel("iteration")
        ax.set_ylabel("objective above the minimum found")
        ax.grid(axis="y")
        legend_beside(ax)

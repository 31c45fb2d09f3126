"""`Display`: common code of the figures, whose numbers are the fields of the derived classes."""

from typing import Self

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skldl.plots._style import figure_of, style


class Display:
    """Base of the figures: ``plot`` draws in the common style; derived classes say what, in ``_draw``."""

    ax_: Axes
    figure_: Figure

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the figure.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; several panels divide its place among them. A new figure if None.

        Returns
        -------
        display
            This object, with ``figure_`` and with ``ax_``, or ``axes_`` if there are several panels.
        """
        with style():
            self._draw(ax)
        return self

    def _draw(self, ax: Axes | None) -> None:
        raise NotImplementedError

    def _take(self, ax: Axes | None, width: float, height: float) -> Axes:
        """The given axes, or those of a new figure of this size in inches, as ``ax_`` of the display."""
        self.ax_ = plt.figure(figsize=(width, height), layout="constrained").add_subplot() if ax is None else ax
        self.figure_ = figure_of(self.ax_)
        return self.ax_

"""`QualityTimeDisplay`: quality against time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from matplotlib.axes import Axes
from sklearn.model_selection import cross_validate

from skldl.metrics import SCORERS, Measure
from skldl.plots._display import Display, as_values, axis_title, find_measure, is_higher_better, named_estimators
from skldl.plots._style import few_log_ticks, legend_beside, looks, plain


@dataclass(eq=False)
class QualityTimeDisplay(Display):
    """One point for each model: time to fit and predict across, on a logarithmic axis, quality upwards.

    Parameters
    ----------
    seconds : dict of float or sequence of float
        From the name of each model to its time in seconds, of each fold or dataset.
    values : dict of float or sequence of float
        From the name of each model to its values of the measure.
    measure : str or Measure
        The measure; its better end is drawn upwards. Any other text names a quantity of which less is better.
    time_name : str
        What the time is about.

    Attributes
    ----------
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> from skldl.plots import QualityTimeDisplay
    >>> display = QualityTimeDisplay({"A": 0.1, "B": 2.0}, {"A": 0.3, "B": 0.2}, "clark").plot()
    >>> display.ax_.get_ylabel()
    'Clark (lower is better)'
    """

    seconds: dict[str, float | Sequence[float]]
    values: dict[str, float | Sequence[float]]
    measure: str | Measure = "kullback_leibler"
    time_name: str = "time to fit and predict"
    _inches: ClassVar[tuple[float, float]] = (6.4, 3.6)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, measure: str = "kullback_leibler", cv: Any = 5, ax: Axes | None = None
    ) -> Self:
        """Cross-validate one or several estimators, one fit at a time, and draw the figure.

        Parameters
        ----------
        estimator : estimator or mapping
            An estimator, or several by name. They are cloned.
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features.
        y : array-like or DataFrame of shape (n_samples, n_labels)
            Distributions.
        measure : str, default="kullback_leibler"
            Name of the measure.
        cv : int or splitter, default=5
            The folds, as scikit-learn takes them.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        QualityTimeDisplay
            The figure, drawn.
        """
        found = find_measure(measure)
        seconds: dict[str, float | Sequence[float]] = {}
        values: dict[str, float | Sequence[float]] = {}
        for name, model in named_estimators(estimator).items():
            result = cross_validate(model, X, y, scoring=SCORERS[found.name], cv=cv)
            seconds[name] = list(result["fit_time"] + result["score_time"])
            values[name] = list(as_values(result["test_score"], found))
        return cls(seconds, values, found).plot(ax)

    def _draw(self, ax: Axes | None) -> None:
        ax = self._axes(ax)
        for name, look in looks(self.values).items():
            values, seconds = np.atleast_1d(self.values[name]), np.atleast_1d(self.seconds[name])
            spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
            ax.errorbar(
                # the geometric mean; clocks can measure 0 s
                float(np.exp(np.log(np.maximum(seconds, 1e-9)).mean())),
                float(values.mean()),
                yerr=spread,
                color=look.colour,
                marker=look.marker,
                markersize=8,
                linestyle="none",
                elinewidth=0.8,
                capsize=2,
                label=plain(name),
            )
        ax.set_xscale("log")
        few_log_ticks(ax)
        ax.set_xlabel(f"{self.time_name} in seconds (further left is faster)")
        ax.set_ylabel(axis_title(self.measure))
        if not is_higher_better(self.measure):
            ax.invert_yaxis()
        ax.grid(axis="y")
        legend_beside(ax)

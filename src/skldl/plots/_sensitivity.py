"""`SensitivityDisplay`: quality against the values of one hyper-parameter."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes
from sklearn.model_selection import validation_curve

from skldl.metrics import SCORERS, Measure
from skldl.plots._display import BandDisplay, as_values, find_measure, named_estimators
from skldl.plots._style import name_axis, plain
from skldl.utils.typing import FloatArray


@dataclass(eq=False)
class SensitivityDisplay(BandDisplay):
    """Quality on unseen rows against the values of one hyper-parameter.

    Parameters
    ----------
    param : str
        Name of the hyper-parameter.
    values : list
        Its values, in the order of the axis.
    curves : dict of ndarray of shape (n_values, n_folds)
        From the name of each model to its values of the measure.
    measure : str or Measure
        The measure. Any other text is the name of a quantity that is better if it is lower.

    Attributes
    ----------
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.plots import SensitivityDisplay
    >>> values = [1, 10, 100]
    >>> display = SensitivityDisplay("k", values, {"AA-kNN": np.array([[0.4, 0.5], [0.2, 0.3], [0.3, 0.3]])}).plot()
    >>> display.ax_.get_xscale()
    'log'
    """

    param: str
    values: list[Any]
    curves: dict[str, FloatArray]
    measure: str | Measure = "kullback_leibler"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        param: str,
        values: Sequence[Any],
        measure: str = "kullback_leibler",
        cv: Any = 5,
        n_jobs: int | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Fit one or several estimators with each value, by cross-validation, and draw the figure.

        Parameters
        ----------
        estimator : estimator or mapping
            An estimator, or several by name. They are cloned.
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features.
        y : array-like or DataFrame of shape (n_samples, n_labels)
            Distributions.
        param : str
            Name of the hyper-parameter.
        values : sequence
            Its values.
        measure : str, default="kullback_leibler"
            Name of the measure.
        cv : int or splitter, default=5
            The folds, as scikit-learn takes them.
        n_jobs : int, default=None
            Number of fits at the same time, as joblib takes it.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        SensitivityDisplay
            The figure, drawn.
        """
        found = find_measure(measure)
        curves = {}
        for name, model in named_estimators(estimator).items():
            scores = validation_curve(
                model,
                X,
                y,
                param_name=param,
                param_range=list(values),
                cv=cv,
                scoring=SCORERS[found.name],
                n_jobs=n_jobs,
            )[1]
            curves[name] = as_values(scores, found)
        return cls(param, list(values), curves, found).plot(ax)

    def _draw(self, ax: Axes | None) -> None:
        numbers = all(isinstance(value, int | float | np.number) and value is not True for value in self.values)
        x = np.asarray(self.values if numbers else range(len(self.values)), dtype=np.float64)
        ax = self._draw_bands(ax, x, plain(self.param, 60))
        if not numbers:
            name_axis(ax, [str(value) for value in self.values], "x")
        elif x.min() > 0 and x.max() / x.min() >= 20:
            ax.set_xscale("log")
        elif x.min() == 0 and x.max() > 0:
            ax.set_xscale("symlog", linthresh=float(x[x > 0].min()))

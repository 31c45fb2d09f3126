"""`LearningCurveDisplay`: quality against the number of training rows."""

from dataclasses import dataclass
from typing import Any, Self

from matplotlib.axes import Axes
from sklearn.model_selection import learning_curve

from skldl.metrics import SCORERS, Measure
from skldl.plots._display import BandDisplay, as_values, find_measure, named_estimators
from skldl.utils.typing import FloatArray


@dataclass(eq=False)
class LearningCurveDisplay(BandDisplay):
    """Quality on unseen rows against the number of training rows, which shows whether more data would help.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of training rows.
    curves : dict of ndarray of shape (n_sizes, n_folds)
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
    >>> from skldl import MeanDistribution
    >>> from skldl.plots import LearningCurveDisplay
    >>> from skldl.testing import make_distributions
    >>> X, D = make_distributions()
    >>> display = LearningCurveDisplay.from_estimator(MeanDistribution(), X, D, train_sizes=[5, 10, 20], cv=2)
    >>> display.sizes
    array([ 5, 10, 20])
    """

    sizes: FloatArray
    curves: dict[str, FloatArray]
    measure: str | Measure = "kullback_leibler"

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        measure: str = "kullback_leibler",
        train_sizes: Any = (0.1, 0.2, 0.4, 0.7, 1.0),
        cv: Any = 5,
        n_jobs: int | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Fit one or several estimators to growing parts of the data, by cross-validation, and draw the figure.

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
        train_sizes : sequence, default=(0.1, 0.2, 0.4, 0.7, 1.0)
            Numbers of rows, or fractions of the rows of a training part.
        cv : int or splitter, default=5
            The folds, as scikit-learn takes them.
        n_jobs : int, default=None
            Number of fits at the same time, as joblib takes it.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        LearningCurveDisplay
            The figure, drawn.
        """
        found = find_measure(measure)
        curves = {}
        for name, model in named_estimators(estimator).items():
            sizes, _, scores = learning_curve(
                model, X, y, train_sizes=train_sizes, cv=cv, scoring=SCORERS[found.name], n_jobs=n_jobs
            )
            curves[name] = as_values(scores, found)
        return cls(sizes, curves, found).plot(ax)

    def _draw(self, ax: Axes | None) -> None:
        self._draw_bands(ax, self.sizes, "rows learned from")

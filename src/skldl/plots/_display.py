"""Base classes of the figures, and functions that validate their input."""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, ClassVar, Self

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skldl.exceptions import LengthMismatchError
from skldl.metrics import MEASURES, Measure
from skldl.plots._style import figure_of, legend_beside, looks, plain, style
from skldl.utils.column_names import column_names, label_names
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_distributions, check_pair


class Display:
    """Base class of the figures. A derived class has the numbers as fields, and draws them in ``_draw``."""

    ax_: Axes
    figure_: Figure
    _inches: ClassVar[tuple[float, float]] = (6.2, 3.4)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the figure.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; a figure with several panels divides its area. A new figure if None.

        Returns
        -------
        display
            This object, with ``figure_`` and with ``ax_``, or ``axes_`` if there are several panels.
        """
        with style():
            self._draw(ax)
        return self

    def size(self, width: float | None = None) -> tuple[float, float]:
        """Recommended width and height of the figure in inches.

        Parameters
        ----------
        width : float, default=None
            The width, if it is fixed, such as that of a column of text; None for the recommended one.

        Returns
        -------
        width, height : float
            The size.
        """
        best, height = self._size(width)
        return best if width is None else width, height

    def _draw(self, ax: Axes | None) -> None:
        raise NotImplementedError

    def _size(self, width: float | None) -> tuple[float, float]:
        """The recommended width, and the height for it or for the given width."""
        return self._inches

    def _axes(self, ax: Axes | None) -> Axes:
        """Set ``ax_`` to the given axes, or to those of a new figure."""
        self.ax_ = plt.figure(figsize=self.size(), layout="constrained").add_subplot() if ax is None else ax
        self.figure_ = figure_of(self.ax_)
        return self.ax_


class PredictionDisplay(Display):
    """Base class of the figures of true and predicted distributions."""

    from_predictions: ClassVar[Callable[..., Any]]

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **options: Any) -> Any:
        """Draw the figure from the predictions of one or several fitted estimators.

        Parameters
        ----------
        estimator : estimator or mapping
            A fitted estimator, or several by name.
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features.
        y : array-like or DataFrame of shape (n_samples, n_labels)
            Their true distributions.
        **options : dict
            Arguments of ``from_predictions``.

        Returns
        -------
        display
            The figure, drawn.
        """
        models = named_estimators(estimator)
        if "label_names" in signature(cls.from_predictions).parameters and not hasattr(y, "columns"):
            options.setdefault("label_names", label_names_of(next(iter(models.values()))))
        return cls.from_predictions(y, {name: model.predict(X) for name, model in models.items()}, **options)


class BandDisplay(Display):
    """Base class of figures of curves: the mean over folds as a line, with a band of one standard deviation."""

    curves: dict[str, FloatArray]
    measure: str | Measure
    _inches: ClassVar[tuple[float, float]] = (6.8, 3.4)

    def _draw_bands(self, ax: Axes | None, x: npt.ArrayLike, x_title: str) -> Axes:
        """Draw the bands of all curves, titles and legend."""
        ax = self._axes(ax)
        for name, look in looks(self.curves).items():
            values = self.curves[name]
            mean = values.mean(axis=1)
            spread = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(mean))
            ax.fill_between(x, mean - spread, mean + spread, color=look.colour, alpha=0.15, linewidth=0)
            ax.plot(x, mean, **look.line, label=plain(name))
        ax.set_xlabel(x_title)
        ax.set_ylabel(axis_title(self.measure))
        ax.grid(axis="y")
        legend_beside(ax)
        return ax


def as_values(scores: npt.ArrayLike, measure: Measure) -> FloatArray:
    """Turn values of a scorer, which are negative for distances, into values of the measure."""
    return np.asarray(scores, dtype=np.float64) * (1.0 if measure.higher_is_better else -1.0)


def named_estimators(estimator: Any) -> dict[str, Any]:
    """Estimators by name; a single one is named after its class, a pipeline after the class of its last step.

    Examples
    --------
    >>> from skldl import MeanDistribution
    >>> named_estimators(MeanDistribution())
    {'MeanDistribution': MeanDistribution()}
    """
    if isinstance(estimator, Mapping):
        if not estimator:
            raise ValueError("The mapping of estimators is empty. Pass at least one.")
        return {str(name): model for name, model in estimator.items()}
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    return {type(last).__name__: estimator}


def evenly_spaced(n_rows: int, max_rows: int) -> IntArray:
    """Positions of all rows, or of ``max_rows`` evenly spaced ones from the first to the last."""
    return np.unique(np.linspace(0, n_rows - 1, min(n_rows, max_rows)).astype(np.intp))


def label_names_of(estimator: Any) -> list[str] | None:
    """Names of the labels in the training data of a fitted estimator; None if they had no names."""
    names = getattr(estimator, "label_names_", None)
    return None if names is None else [str(name) for name in names]


def named_predictions(D_true: Any, D_pred: Any) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Validate true and predicted distributions; a single table of predictions gets the name "predicted"."""
    tables = dict(D_pred) if isinstance(D_pred, Mapping) else {"predicted": D_pred}
    if not tables:
        raise ValueError("The mapping of predictions is empty. Pass at least one table.")
    checked = {str(name): check_pair(D_true, table)[1] for name, table in tables.items()}
    return check_distributions(D_true, name="D_true"), checked


def names_of_labels(D_true: Any, given: Sequence[str] | None, n_labels: int) -> list[str]:
    """Names of the labels: the given ones, else the columns of D_true, else label_0, label_1, …."""
    if given is None:
        return [str(name) for name in label_names(D_true, n_labels)]
    if len(given) != n_labels:
        raise LengthMismatchError(f"{len(given)} label names were given for {n_labels} labels. Pass one for each.")
    return [str(name) for name in given]


def names_of_columns(table: Any, names: Sequence[str] | None) -> list[str]:
    """Names of the models: the given ones, or else the columns of a DataFrame."""
    found = [str(name) for name in (names if names is not None else column_names(table))]
    n_columns = np.shape(table)[1]
    if len(found) != n_columns:
        raise LengthMismatchError(f"The table has {n_columns} columns, but {len(found)} names were given for them.")
    return found


def find_measure(measure: str | Measure) -> Measure:
    """Find a measure by name."""
    found = _known_measure(measure)
    if found is None:
        raise ValueError(f"measure={measure!r} is not known. Known: {', '.join(MEASURES)}.")
    return found


def is_higher_better(quantity: str | Measure) -> bool:
    """Whether higher is better; for other quantities, such as a rank or a loss, lower is better."""
    found = _known_measure(quantity)
    return found is not None and found.higher_is_better


def axis_title(quantity: str | Measure) -> str:
    """Title of an axis: the name of a measure or another quantity, and whether higher or lower is better."""
    title = getattr(_known_measure(quantity), "title", str(quantity))
    return f"{plain(title, 60)} ({'higher' if is_higher_better(quantity) else 'lower'} is better)"


def _known_measure(quantity: str | Measure) -> Measure | None:
    return quantity if isinstance(quantity, Measure) else MEASURES.get(quantity)

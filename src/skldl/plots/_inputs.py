"""Input of the figures: one estimator or several by name, one table of predictions or several by name."""

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, ClassVar

import numpy as np

from skldl.exceptions import LengthMismatchError
from skldl.metrics import MEASURES, Measure
from skldl.plots._display import Display
from skldl.plots._style import plain
from skldl.utils.column_names import column_names, label_names
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_distributions, check_pair


class PredictionDisplay(Display):
    """Base of the figures that need only true and predicted distributions: predictions of an estimator are computed."""

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
            What ``from_predictions`` takes.

        Returns
        -------
        display
            The figure, drawn.
        """
        models = named_estimators(estimator)
        if "label_names" in signature(cls.from_predictions).parameters and not hasattr(y, "columns"):
            options.setdefault("label_names", labels_known_to(next(iter(models.values()))))
        return cls.from_predictions(y, {name: model.predict(X) for name, model in models.items()}, **options)


def named_estimators(estimator: Any) -> dict[str, Any]:
    """Several estimators by name; one alone is called by its class, a pipeline by its last step.

    Examples
    --------
    >>> from skldl import MeanDistribution
    >>> named_estimators(MeanDistribution())
    {'MeanDistribution': MeanDistribution()}
    """
    if isinstance(estimator, Mapping):
        if not estimator:
            raise ValueError("The mapping of estimators is empty: give at least one.")
        return {str(name): model for name, model in estimator.items()}
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    return {type(last).__name__: estimator}


def labels_known_to(estimator: Any) -> list[str] | None:
    """Names of the labels that a fitted estimator was given."""
    names = getattr(estimator, "label_names_", None)
    return None if names is None else [str(name) for name in names]


def named_predictions(D_true: Any, D_pred: Any) -> tuple[FloatArray, dict[str, FloatArray]]:
    """Check true and predicted distributions; one table alone is called "predicted"."""
    tables = dict(D_pred) if isinstance(D_pred, Mapping) else {"predicted": D_pred}
    if not tables:
        raise ValueError("The mapping of predictions is empty: give at least one table.")
    checked = {str(name): check_pair(D_true, table)[1] for name, table in tables.items()}
    return check_distributions(D_true, name="D_true"), checked


def names_of_labels(D_true: Any, given: Sequence[str] | None, n_labels: int) -> list[str]:
    """Take the names of the labels as given, or else the columns of D_true, or else label_0, label_1, …."""
    if given is None:
        return [str(name) for name in label_names(D_true, n_labels)]
    if len(given) != n_labels:
        raise LengthMismatchError(f"{len(given)} label names were given for {n_labels} labels. Give one for each.")
    return [str(name) for name in given]


def names_of_columns(table: Any, names: Sequence[str] | None) -> list[str]:
    """Names of the models: those given, or else the columns of a DataFrame."""
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
    """The name of a measure, or of what else is drawn, with the direction in words, for an axis."""
    title = getattr(_known_measure(quantity), "title", str(quantity))
    return f"{plain(title, 60)} ({'higher' if is_higher_better(quantity) else 'lower'} is better)"


def _known_measure(quantity: str | Measure) -> Measure | None:
    return quantity if isinstance(quantity, Measure) else MEASURES.get(quantity)

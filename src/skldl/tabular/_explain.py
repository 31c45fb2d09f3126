"""Which columns move which label: by shuffling columns for any model, and by weights for maximum entropy.

`column_effects` shuffles one column at a time, which removes its information, and measures what that does to the
predictions. `feature_weights` reads the weights of a maximum entropy model, centred over labels.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from skldl.data._cells import as_frame, with_columns
from skldl.exceptions import LengthMismatchError
from skldl.metrics import kullback_leibler
from skldl.utils.missing import check_partial_distributions, has_gaps, observed_pair
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_weights


@dataclass(frozen=True)
class ColumnEffects:
    """Effects of shuffling each column.

    Attributes
    ----------
    columns : list of str
        Columns of the table, the most important one first.
    labels : list of str
        Names of the labels.
    importance : ndarray of shape (n_columns,)
        How much the mean Kullback-Leibler divergence rises when the column is shuffled.
    spread : ndarray of shape (n_columns,)
        Standard deviation of that over the repeats.
    movement : ndarray of shape (n_columns, n_labels)
        Mean absolute change of each predicted degree.
    divergence : float or None
        Mean Kullback-Leibler divergence before any shuffling; None if the true distributions are not known.
    n_rows : int
        Number of rows used.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import column_effects, fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> effects = column_effects(fit_table(table, ["no", "yes"], model="sa-bfgs").model, table)
    >>> effects.columns, effects.movement.shape
    (['x'], (1, 2))
    """

    columns: list[str]
    labels: list[str]
    importance: FloatArray
    spread: FloatArray
    movement: FloatArray
    divergence: float | None
    n_rows: int

    def to_pandas(self) -> pd.DataFrame:
        """One row for each column of the table.

        Returns
        -------
        DataFrame
            Importance, its spread, and the movement of each label, named ``moves <label>``.
        """
        table = pd.DataFrame({"column": self.columns, "importance": self.importance, "std": self.spread})
        moves = pd.DataFrame(self.movement, columns=[f"moves {label}" for label in self.labels])
        return pd.concat([table, moves], axis=1)


def column_effects(
    model: Any,
    table: Any,
    D: Any = None,
    *,
    sample_weight: Any = None,
    n_repeats: int = 5,
    max_rows: int = 5000,
    random_state: int | None = 0,
) -> ColumnEffects:
    """Shuffle one column at a time and measure the change of the predictions.

    Parameters
    ----------
    model : fitted pipeline
        Its ``predict`` takes the table.
    table : DataFrame
        Rows to explain; rows that the model was not trained on give the less biased answer.
    D : array-like or DataFrame of shape (n_rows, n_labels), default=None
        Their true distributions, with NaN where a degree was not observed; rows are then compared on what was, see
        `skldl.SABFGS`. Without them, importance is the mean divergence from the prediction before the
        shuffling to that after it.
    sample_weight : array-like of shape (n_rows,), default=None
        Weight of each row.
    n_repeats : int, default=5
        How often each column is shuffled.
    max_rows : int, default=5000
        Maximum number of rows, drawn at random.
    random_state : int or None, default=0
        Seed of the shuffling.

    Returns
    -------
    ColumnEffects
        Importance on Kullback-Leibler and movement of each label.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import column_effects, fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> model = fit_table(table, ["no", "yes"], model="sa-bfgs").model
    >>> column_effects(model, table, table[["no", "yes"]], n_repeats=2).n_rows
    40
    """
    frame = as_frame(table)
    generator = np.random.default_rng(random_state)
    truth, reading = (None, "") if D is None else check_partial_distributions(D, "auto", name="D", to_learn=False)
    if truth is not None and len(truth) != len(frame):
        raise LengthMismatchError(f"The table has {len(frame)} rows and D has {len(truth)}. Pass one for each.")
    weight = check_weights(sample_weight, len(frame))
    if len(frame) > max_rows:
        rows = np.sort(generator.choice(len(frame), size=max_rows, replace=False))
        frame = frame.iloc[rows]
        truth, weight = (None if some is None else some[rows] for some in (truth, weight))
    before = np.asarray(model.predict(frame))
    reference = before if truth is None else truth
    divergence = _divergence(reference, before, weight, reading)
    names = columns_used(model, frame)
    rises, movement = np.empty((len(names), n_repeats)), np.zeros((len(names), before.shape[1]))
    for position, name in enumerate(names):
        for repeat in range(n_repeats):
            order = generator.permutation(len(frame))
            shuffled = with_columns(frame, {name: frame[name].iloc[order].set_axis(frame.index)})
            after = np.asarray(model.predict(shuffled))
            rises[position, repeat] = _divergence(reference, after, weight, reading) - divergence
            movement[position] += np.average(np.abs(after - before), axis=0, weights=weight) / n_repeats
    importance = rises.mean(axis=1)
    order = np.argsort(-importance, kind="stable")
    return ColumnEffects(
        columns=[names[place] for place in order],
        labels=label_names(model),
        importance=importance[order],
        spread=rises.std(axis=1, ddof=1 if n_repeats > 1 else 0)[order],
        movement=movement[order],
        divergence=None if truth is None else divergence,
        n_rows=len(frame),
    )


def _divergence(D: FloatArray, P: FloatArray, weight: FloatArray | None, reading: str) -> float:
    """Mean Kullback-Leibler divergence, of what was observed where D has gaps."""
    if has_gaps(D):
        D, P, kept = observed_pair(D, P, reading)
        weight = None if weight is None else weight[kept]
    return float(kullback_leibler(D, P, sample_weight=weight))


def feature_weights(model: Any) -> pd.DataFrame | None:
    """Weights of a maximum entropy model, centred over labels.

    Parameters
    ----------
    model : fitted pipeline
        Any model.

    Returns
    -------
    DataFrame or None
        One row for each feature after encoding, one column for each label, the heaviest feature first; None if the
        model has no weights.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import feature_weights, fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> feature_weights(fit_table(table, ["no", "yes"], model="sa-bfgs").model).shape
    (1, 2)
    """
    step = last_step(model)
    if not hasattr(step, "coef_"):
        return None
    table = pd.DataFrame(centred_weights(step), index=feature_names(model), columns=label_names(model))
    return heaviest_first(table)


def centred_weights(step: Any) -> FloatArray:
    """Weights of shape (n_features, n_labels), less their mean over labels, which changes no prediction."""
    weights = np.asarray(step.coef_, dtype=np.float64).T
    return np.asarray(weights - weights.mean(axis=1, keepdims=True))


def heaviest_first(table: pd.DataFrame) -> pd.DataFrame:
    """Order rows by their largest absolute value."""
    order = np.argsort(-table.abs().max(axis=1).to_numpy(), kind="stable")
    return table.iloc[order]


def last_step(model: Any) -> Any:
    """The estimator at the end of a pipeline, or the model itself."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def label_names(model: Any) -> list[str]:
    """Names of the labels of a fitted model."""
    return [str(name) for name in last_step(model).label_names_]


def columns_used(model: Any, table: pd.DataFrame) -> list[str]:
    """Columns of the table that the model uses."""
    names = getattr(model, "feature_names_in_", None)
    return [str(name) for name in (table.columns if names is None else names)]


def feature_names(model: Any) -> list[str]:
    """Names of the features that the last step sees."""
    step = last_step(model)
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        return [str(name) for name in model[:-1].get_feature_names_out()]
    return [str(name) for name in getattr(step, "feature_names_in_", range(step.n_features_in_))]

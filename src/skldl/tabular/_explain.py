"""Explanations of models of tables and of single predictions.

`column_effects` shuffles one column at a time, which removes its information, and measures how the predictions change,
for any model. `feature_weights` returns the weights of a maximum entropy model, centred over labels. `explain_row`
explains the prediction for one row: by weights, by neighbours, or by replacing cells by typical values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from skldl.data._cells import NUMBER, as_frame, as_numbers, as_words, with_columns
from skldl.data._kinds import kind_of
from skldl.exceptions import LengthMismatchError, TableError
from skldl.metrics import kullback_leibler
from skldl.utils.missing import check_partial_distributions, has_gaps, observed_pair
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_weights

CONTRIBUTIONS, NEIGHBOURS, REPLACEMENT = "contributions", "neighbours", "replacement"
EXPLANATION_TITLES = {
    CONTRIBUTIONS: (
        "Contribution of each feature to the logarithm of each degree (weight × value, centred over labels)",
        "contribution to the log-degree",
    ),
    NEIGHBOURS: ("Rows of the training table of which the prediction is the mean", "their degrees"),
    REPLACEMENT: (
        "Contribution of each column to each degree, compared with its typical value",
        "change of the degree",
    ),
}
"""For each method of explaining a row, the title of its table and the name of the quantity in the cells."""


@dataclass(frozen=True)
class ColumnEffects:
    """Effects of shuffling each column.

    Attributes
    ----------
    columns : list of str
        Columns of the table, in descending order of importance.
    labels : list of str
        Names of the labels.
    importance : ndarray of shape (n_columns,)
        Increase of the mean Kullback-Leibler divergence when the column is shuffled.
    spread : ndarray of shape (n_columns,)
        Standard deviation of the increase over the repeats.
    movement : ndarray of shape (n_columns, n_labels)
        Mean absolute change of each predicted degree.
    divergence : float or None
        Mean Kullback-Leibler divergence before shuffling; None if the true distributions are unknown.
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
        """Return a table with one row for each column of the explained table.

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
        The rows; rows that the model was not fitted to give less biased results.
    D : array-like or DataFrame of shape (n_rows, n_labels), default=None
        Their true distributions, with NaN for degrees that were not observed; rows are then compared on the observed
        degrees, see `skldl.SABFGS`. Without D, importance is the mean divergence of the predictions after shuffling
        from those before.
    sample_weight : array-like of shape (n_rows,), default=None
        Weight of each row.
    n_repeats : int, default=5
        Number of times that each column is shuffled.
    max_rows : int, default=5000
        Maximum number of rows; if there are more, rows are drawn at random.
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
    truth, meaning = (None, "") if D is None else check_partial_distributions(D, "auto", name="D", to_learn=False)
    if truth is not None and len(truth) != len(frame):
        raise LengthMismatchError(f"The table has {len(frame)} rows and D has {len(truth)}. Pass one for each.")
    weight = check_weights(sample_weight, len(frame))
    if len(frame) > max_rows:
        rows = np.sort(generator.choice(len(frame), size=max_rows, replace=False))
        frame = frame.iloc[rows]
        truth, weight = (None if some is None else some[rows] for some in (truth, weight))
    before = np.asarray(model.predict(frame))
    reference = before if truth is None else truth
    divergence = _divergence(reference, before, weight, meaning)
    names = columns_used(model, frame)
    rises, movement = np.empty((len(names), n_repeats)), np.zeros((len(names), before.shape[1]))
    for position, name in enumerate(names):
        for repeat in range(n_repeats):
            order = generator.permutation(len(frame))
            shuffled = with_columns(frame, {name: frame[name].iloc[order].set_axis(frame.index)})
            after = np.asarray(model.predict(shuffled))
            rises[position, repeat] = _divergence(reference, after, weight, meaning) - divergence
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


def _divergence(D: FloatArray, P: FloatArray, weight: FloatArray | None, meaning: str) -> float:
    """Mean Kullback-Leibler divergence, on the observed degrees if D has gaps."""
    if has_gaps(D):
        D, P, kept = observed_pair(D, P, meaning)
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
        One row for each encoded feature, in descending order of the largest absolute weight, and one column for each
        label; None if the model has no weights.

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
    """Weights (n_features, n_labels) minus their mean over labels, which does not change predictions."""
    weights = np.asarray(step.coef_, dtype=np.float64).T
    return np.asarray(weights - weights.mean(axis=1, keepdims=True))


def heaviest_first(table: pd.DataFrame) -> pd.DataFrame:
    """Sort rows by their largest absolute value, in descending order."""
    order = np.argsort(-table.abs().max(axis=1).to_numpy(), kind="stable")
    return table.iloc[order]


def last_step(model: Any) -> Any:
    """The estimator at the end of a pipeline, or the model itself."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def label_names(model: Any) -> list[str]:
    """Names of the labels of a fitted model."""
    return [str(name) for name in last_step(model).label_names_]


def columns_used(model: Any, table: pd.DataFrame) -> list[str]:
    """Names of the columns that the model uses."""
    names = getattr(model, "feature_names_in_", None)
    return [str(name) for name in (table.columns if names is None else names)]


def feature_names(model: Any) -> list[str]:
    """Names of the features of the last step."""
    step = last_step(model)
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        return [str(name) for name in model[:-1].get_feature_names_out()]
    return [str(name) for name in getattr(step, "feature_names_in_", range(step.n_features_in_))]


@dataclass(frozen=True)
class RowExplanation:
    """Explanation of the prediction for one row.

    Attributes
    ----------
    prediction : Series
        The predicted distribution.
    how : {"contributions", "neighbours", "replacement"}
        Content of ``table``.
    table : DataFrame
        Contributions: the products of the value and the weights of each feature, centred over labels; together with the
        row ``(intercept)`` they sum to the logarithms of the degrees, up to a constant. Neighbours: rows of the
        training table, their distances, and their distributions. Replacement: for each column, the degree of each label
        minus the degree that is predicted if the column has its typical value.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import explain_row, fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> explanation = explain_row(fit_table(table, ["no", "yes"], model="sa-bfgs").model, table, 0)
    >>> explanation.how, list(explanation.prediction.index)
    ('contributions', ['no', 'yes'])
    """

    prediction: pd.Series
    how: str
    table: pd.DataFrame


def explain_row(model: Any, table: Any, row: int, *, typical: Mapping[str, Any] | None = None) -> RowExplanation:
    """Explain the prediction for one row.

    Parameters
    ----------
    model : fitted pipeline
        Any model.
    table : DataFrame
        The table that contains the row.
    row : int
        Position of the row, from 0.
    typical : mapping, default=None
        From the name of each column to its typical value; by default its median or most frequent value in this table.

    Returns
    -------
    RowExplanation
        The prediction with contributions for a maximum entropy model, neighbours for a model with a method
        ``kneighbors``, or replacement for any other model.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import explain_row, fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> explanation = explain_row(fit_table(table, ["no", "yes"], model="sa-bfgs").model, table, 0)
    >>> "(intercept)" in explanation.table.index
    True
    """
    frame = as_frame(table)
    if not 0 <= row < len(frame):
        raise TableError(f"There is no row {row + 1}: the table has {len(frame)} rows.")
    one = frame.iloc[[row]]
    step = last_step(model)
    labels = label_names(model)
    prediction = pd.Series(np.asarray(model.predict(one))[0], index=labels)
    if hasattr(step, "coef_"):
        return RowExplanation(prediction, CONTRIBUTIONS, _contributions(model, one))
    if hasattr(step, "kneighbors"):
        distances, rows = step.kneighbors(_encoded(model, one))
        neighbours = pd.DataFrame({"training row": np.asarray(rows)[0] + 1, "distance": np.asarray(distances)[0]})
        known = pd.DataFrame(step.distributions_[np.asarray(rows)[0]], columns=labels)
        return RowExplanation(prediction, NEIGHBOURS, pd.concat([neighbours, known], axis=1))
    if typical is None:
        kinds = _kinds(model, frame)
        typical = {name: _typical(frame[name], kinds[name]) for name in columns_used(model, frame)}
    return RowExplanation(prediction, REPLACEMENT, replacement_effects(model, one, prediction, typical))


def _contributions(model: Any, one: pd.DataFrame) -> pd.DataFrame:
    step = last_step(model)
    features = _encoded(model, one)
    values = np.asarray(features.toarray() if hasattr(features, "toarray") else features, dtype=np.float64)[0]
    labels = label_names(model)
    table = pd.DataFrame(values[:, None] * centred_weights(step), index=feature_names(model), columns=labels)
    intercept = np.asarray(getattr(step, "intercept_", np.zeros(len(labels))), dtype=np.float64)
    start = pd.DataFrame([intercept - intercept.mean()], index=["(intercept)"], columns=labels)
    return pd.concat([start, heaviest_first(table[(table != 0).any(axis=1)])])


def replacement_effects(
    model: Any, one: pd.DataFrame, prediction: pd.Series, typical: Mapping[str, Any]
) -> pd.DataFrame:
    """Change of each degree by each column of one row, compared with its typical value; the largest changes first.

    ``prediction`` is the prediction for the row; a typical value of None is a missing cell.
    """
    names = columns_used(model, one)
    variants = pd.concat([with_columns(one, {name: typical[name]}).astype(object) for name in names])
    table = prediction.to_numpy() - np.asarray(model.predict(variants))
    return heaviest_first(pd.DataFrame(table, index=names, columns=list(prediction.index)))


def _encoded(model: Any, table: pd.DataFrame) -> Any:
    return model[:-1].transform(table) if isinstance(model, Pipeline) and len(model.steps) > 1 else table


def _kinds(model: Any, table: pd.DataFrame) -> dict[str, str]:
    """Kind of each column according to the encoder of the model; without an encoder, the kind of its cells."""
    encoder = model.steps[0][1] if isinstance(model, Pipeline) else None
    return getattr(encoder, "kinds_", None) or {name: kind_of(table[name]) for name in columns_used(model, table)}


def _typical(column: pd.Series, kind: str) -> Any:
    """The median of numbers, also of numbers as text; else the most frequent value."""
    present = column.dropna()
    if not len(present):
        return None
    if kind == NUMBER:
        return float(as_numbers(present).median())
    if pd.api.types.is_datetime64_any_dtype(column):
        return present.mode().iloc[0]
    return as_words(present, "").mode().iloc[0]


def softmax_weights(estimator: Any) -> tuple[FloatArray, FloatArray] | None:
    """Weights W (n_features, n_labels) and intercepts b of an estimator that predicts softmax(X W + b), else None.

    Examples
    --------
    >>> import skldl
    >>> W, b = softmax_weights(skldl.SABFGS().fit([[0.0], [1.0]], [[0.5, 0.5], [0.2, 0.8]]))
    >>> W.shape, b.shape
    ((1, 2), (2,))
    >>> softmax_weights(skldl.MeanDistribution()) is None
    True
    """
    if not getattr(type(estimator), "_linear_scores", False):
        return None
    coef = np.asarray(estimator.coef_, dtype=np.float64)
    intercept = getattr(estimator, "intercept_", np.zeros(len(coef)))
    return np.ascontiguousarray(coef.T), np.asarray(intercept, dtype=np.float64)

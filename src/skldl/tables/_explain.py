"""Which columns move which label: by shuffling columns for any model, by weights for maximum entropy, row by row.

`column_effects` shuffles one column at a time, so that it tells nothing any more, and looks at what that does to the
predictions. `feature_weights` reads the weights of a maximum entropy model, centred over labels. `explain_row` says for
one row what each column contributes: for a maximum entropy model exactly (weight times value), for neighbours by naming
them, for any other model by putting the column's typical value in its place.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.pipeline import Pipeline

from skldl._validation import check_distributions, check_weights
from skldl.metrics import kullback_leibler
from skldl.simplex import entropy

FloatArray = npt.NDArray[np.floating]


@dataclass(frozen=True)
class ColumnEffects:
    """What shuffling each column does.

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
    divergence : float
        Mean Kullback-Leibler divergence before any shuffling.
    """

    columns: list[str]
    labels: list[str]
    importance: FloatArray
    spread: FloatArray
    movement: FloatArray
    divergence: float

    def to_pandas(self) -> pd.DataFrame:
        """One row for each column of the table.

        Returns
        -------
        DataFrame
            Importance, its spread, and the movement of each label.
        """
        table = pd.DataFrame({"column": self.columns, "importance": self.importance, "std": self.spread})
        return pd.concat([table, pd.DataFrame(self.movement, columns=self.labels)], axis=1)


def column_effects(
    model: Any,
    table: pd.DataFrame,
    D: Any,
    *,
    sample_weight: Any = None,
    n_repeats: int = 5,
    max_rows: int = 5000,
    random_state: int | None = 0,
) -> ColumnEffects:
    """Shuffle one column at a time and see what happens to the predictions.

    Parameters
    ----------
    model : fitted estimator or pipeline
        Its ``predict`` takes the table.
    table : DataFrame
        Rows to explain; rows that the model was not trained on give the more honest answer.
    D : array-like or DataFrame of shape (n_rows, n_labels)
        Their true distributions.
    sample_weight : array-like of shape (n_rows,), default=None
        Weight of each row.
    n_repeats : int, default=5
        How often each column is shuffled.
    max_rows : int, default=5000
        At most so many rows are used, drawn at random.
    random_state : int or None, default=0
        Seed of the shuffling.

    Returns
    -------
    ColumnEffects
        Importance on Kullback-Leibler and movement of each label.
    """
    generator = np.random.default_rng(random_state)
    D, weight = check_distributions(D), check_weights(sample_weight, len(table))
    if len(table) > max_rows:
        rows = np.sort(generator.choice(len(table), size=max_rows, replace=False))
        table, D = table.iloc[rows], D[rows]
        weight = None if weight is None else weight[rows]
    before = model.predict(table)
    divergence = kullback_leibler(D, before, sample_weight=weight)
    names = [str(name) for name in columns_used(model, table)]
    rises, movement = np.empty((len(names), n_repeats)), np.zeros((len(names), D.shape[1]))
    for position, name in enumerate(names):
        for repeat in range(n_repeats):
            shuffled = table.copy()
            shuffled[name] = table[name].to_numpy()[generator.permutation(len(table))]
            after = model.predict(shuffled)
            rises[position, repeat] = kullback_leibler(D, after, sample_weight=weight) - divergence
            movement[position] += np.average(np.abs(after - before), axis=0, weights=weight) / n_repeats
    importance = rises.mean(axis=1)
    order = np.argsort(-importance, kind="stable")
    return ColumnEffects(
        columns=[names[i] for i in order],
        labels=[str(name) for name in last_step(model).label_names_],
        importance=importance[order],
        spread=rises.std(axis=1, ddof=1 if n_repeats > 1 else 0)[order],
        movement=movement[order],
        divergence=divergence,
    )


def feature_weights(model: Any) -> pd.DataFrame | None:
    """Weights of a maximum entropy model, centred over labels.

    Parameters
    ----------
    model : fitted estimator or pipeline
        Any model.

    Returns
    -------
    DataFrame or None
        One row for each feature after encoding, one column for each label, the heaviest feature first; None if the
        model has no weights.
    """
    step = last_step(model)
    if not hasattr(step, "coef_"):
        return None
    weights = step.coef_.T - step.coef_.T.mean(axis=1, keepdims=True)
    table = pd.DataFrame(weights, index=feature_names(model), columns=[str(name) for name in step.label_names_])
    return table.loc[table.abs().max(axis=1).sort_values(ascending=False, kind="stable").index]


@dataclass(frozen=True)
class RowExplanation:
    """Why one row is predicted as it is.

    Attributes
    ----------
    prediction : Series
        The predicted distribution.
    how : str
        "contributions" (weight times value, which add up to the log-degrees up to a constant), "neighbours" (rows of
        the training table and their weights) or "replacement" (change of each degree when the column takes its typical
        value).
    table : DataFrame
        The contributions, neighbours or changes.
    """

    prediction: pd.Series
    how: str
    table: pd.DataFrame


def explain_row(model: Any, table: pd.DataFrame, row: int, background: pd.DataFrame | None = None) -> RowExplanation:
    """Say what makes the prediction of one row.

    Parameters
    ----------
    model : fitted estimator or pipeline
        Any model.
    table : DataFrame
        The table that holds the row.
    row : int
        Position of the row.
    background : DataFrame, default=None
        Where typical values come from; the table itself if None.

    Returns
    -------
    RowExplanation
        The prediction and what made it.
    """
    one = table.iloc[[row]]
    step = last_step(model)
    labels = [str(name) for name in step.label_names_]
    prediction = pd.Series(model.predict(one)[0], index=labels)
    if hasattr(step, "coef_"):
        values = _encoded(model, one)
        weights = step.coef_.T - step.coef_.T.mean(axis=1, keepdims=True)
        contributions = pd.DataFrame(values[0][:, None] * weights, index=feature_names(model), columns=labels)
        contributions = contributions[(contributions != 0).any(axis=1)]
        order = contributions.abs().max(axis=1).sort_values(ascending=False, kind="stable").index
        return RowExplanation(prediction, "contributions", contributions.loc[order])
    if hasattr(step, "kneighbors"):
        distances, rows = step.kneighbors(_encoded(model, one, keep_sparse=True))
        neighbours = pd.DataFrame({"training row": np.asarray(rows)[0] + 1, "distance": np.asarray(distances)[0]})
        return RowExplanation(prediction, "neighbours", neighbours)
    background = table if background is None else background
    changes = {}
    for name in columns_used(model, table):
        changed = one.copy()
        changed[name] = _typical(background[name])
        changes[str(name)] = prediction.to_numpy() - model.predict(changed)[0]
    effect = pd.DataFrame.from_dict(changes, orient="index", columns=labels)
    order = effect.abs().max(axis=1).sort_values(ascending=False, kind="stable").index
    return RowExplanation(prediction, "replacement", effect.loc[order])


def last_step(model: Any) -> Any:
    """The estimator at the end of a pipeline, or the model itself."""
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def columns_used(model: Any, table: pd.DataFrame) -> list[Any]:
    """Columns of the table that the model looks at."""
    names = getattr(model, "feature_names_in_", None)
    return list(table.columns) if names is None else list(names)


def feature_names(model: Any) -> list[str]:
    """Names of the features that the last step sees."""
    step = last_step(model)
    if isinstance(model, Pipeline) and len(model.steps) > 1:
        return [str(name) for name in model[:-1].get_feature_names_out()]
    return [str(name) for name in getattr(step, "feature_names_in_", range(step.n_features_in_))]


def summary(D: FloatArray, labels: list[str], values: FloatArray | None) -> pd.DataFrame:
    """What stands beside each prediction: the top label, the entropy and, for ordered labels, the expected value."""
    columns: dict[str, Any] = {"top": np.asarray(labels, dtype=object)[D.argmax(axis=1)], "entropy": entropy(D)}
    if values is not None:
        columns["expected"] = D @ values
    return pd.DataFrame(columns)


def _encoded(model: Any, table: pd.DataFrame, *, keep_sparse: bool = False) -> Any:
    features = model[:-1].transform(table) if isinstance(model, Pipeline) and len(model.steps) > 1 else table
    if keep_sparse:
        return features
    return features.toarray() if hasattr(features, "toarray") else np.asarray(features, dtype=np.float64)


def _typical(column: pd.Series) -> Any:
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        return column.median()
    numbers = pd.to_numeric(column, errors="coerce")
    if numbers.notna().sum() == column.notna().sum() and column.notna().any():
        return str(numbers.median())
    modes = column.mode()
    return modes.iloc[0] if len(modes) else None

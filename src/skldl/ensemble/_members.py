"""Common code of `StackingLDL` and `AutoLDL`: members with held-out predictions, the pool over them, and prediction."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from skldl.base import GroupedLDL
from skldl.data._dataset import rows_of
from skldl.ensemble._pool import Pool, fit_pool
from skldl.exceptions import EmptyDataError
from skldl.metrics import kullback_leibler
from skldl.metrics._measure import without_rounding
from skldl.selection import _folds, pairs_of
from skldl.selection._fitting import fit_arguments
from skldl.utils.arrays import row_blocks
from skldl.utils.mean_mixture import MEAN_FRACTIONS as LARGER_FRACTIONS
from skldl.utils.mean_mixture import best_fraction, mean_distribution, means_without, mix
from skldl.utils.typing import FloatArray, IntArray

KEPT_BY_ESTIMATORS = ("loo_predictions_", "oob_predictions_", "oof_predictions_")
"""Attributes under which a fitted estimator keeps held-out predictions: leave-one-out, out-of-bag, out-of-fold."""
BLOCK_CELLS = 2**21
"""Maximum number of predicted values of all members in memory: 16 MiB."""
MAX_POOL_ROWS = 100_000
"""Maximum number of rows on which the weights of a pool are fitted: there are few weights, so that more rows would only
take time."""
MEAN_FRACTIONS = (1e-4, *LARGER_FRACTIONS)
"""All above 0, so that a pool assigns mass to labels that its members have not seen."""


@dataclass(frozen=True)
class TrainingRows:
    """A checked training set with its folds.

    Attributes
    ----------
    X, D, sample_weight, groups : arrays
        The rows; weights and groups may be None.
    fold_of : ndarray of int of shape (n_samples,)
        The fold in which each row is held out.
    """

    X: Any
    D: FloatArray
    sample_weight: FloatArray | None
    groups: IntArray | None
    fold_of: IntArray

    @classmethod
    def split(
        cls,
        X: Any,
        D: FloatArray,
        sample_weight: FloatArray | None,
        groups: IntArray | None,
        *,
        n_folds: int,
        seed: int,
    ) -> "TrainingRows":
        """Shuffle the rows into folds."""
        return cls(X, D, sample_weight, groups, shuffled_folds(len(D), n_folds, groups, seed))

    @property
    def folds(self) -> list[tuple[IntArray, IntArray]]:
        """Training rows and held-out rows of each fold."""
        return list(pairs_of(self.fold_of))


def shuffled_folds(n_rows: int, n_folds: int, groups: IntArray | None, seed: int) -> IntArray:
    """Assign a fold to each row, or to each group; with fewer rows or groups there are fewer folds."""
    if n_rows < 2:
        raise EmptyDataError("n_samples = 1: no row can be held out. At least two rows are needed.")
    return _folds.shuffled_folds(n_rows, n_folds, groups, seed)


@dataclass(frozen=True)
class Member:
    """A fitted member with its held-out predictions.

    Attributes
    ----------
    name : str
        Its name.
    model : estimator
        Fitted on all rows.
    mean_share : float
        Fraction of the mean distribution mixed into its predictions.
    held_out : ndarray of shape (n_samples, n_labels)
        Held-out predictions, with that fraction of the mean.
    divergence : float
        Mean Kullback-Leibler divergence of these.
    seconds : float
        Wall time of its fits.
    """

    name: str
    model: Any
    mean_share: float
    held_out: FloatArray
    divergence: float
    seconds: float


def fit_member(name: str, model: Any, rows: TrainingRows) -> Member:
    """Fit one member and evaluate its held-out predictions.

    Parameters
    ----------
    name : str
        Its name.
    model : estimator
        A label distribution learner, unfitted.
    rows : TrainingRows
        The training set.

    Returns
    -------
    Member
        The member.
    """
    started = time.perf_counter()
    fitted, predictions = out_of_sample(model, rows)
    return judge_member(name, fitted, predictions, rows, time.perf_counter() - started)


def out_of_sample(model: Any, rows: TrainingRows) -> tuple[Any, FloatArray]:
    """Fit a model on all rows, and predict each row by a model that was fitted without it.

    Parameters
    ----------
    model : estimator
        A label distribution learner, unfitted.
    rows : TrainingRows
        The training set; its folds are used where the estimator does not keep held-out predictions itself.

    Returns
    -------
    fitted : estimator
        The model, fitted on all rows.
    predictions : ndarray of shape (n_samples, n_labels)
        Held-out predictions; NaN in rows without one: an estimator may predict only some of very many rows.
    """
    fitted = fit_rows(model, rows.X, rows.D, rows.sample_weight, rows.groups)
    for attribute in KEPT_BY_ESTIMATORS:
        kept = getattr(fitted, attribute, None)
        if kept is not None:
            predictions = np.full(rows.D.shape, np.nan)
            predictions[getattr(fitted, "loo_rows_", slice(None))] = kept
            return fitted, predictions
    predictions = np.empty_like(rows.D)
    for train, test in rows.folds:
        part = fit_rows(model, rows.X, rows.D, rows.sample_weight, rows.groups, train)
        predictions[test] = np.asarray(part.predict(rows_of(rows.X, test)))
    return fitted, predictions


def fit_rows(
    model: Any, X: Any, y: Any, sample_weight: FloatArray | None, groups: IntArray | None, rows: IntArray | None = None
) -> Any:
    """Fit a copy of a model on the given rows, or on all, with their weights and groups if there are any."""
    if rows is not None:
        X, y, sample_weight, groups = (rows_of(part, rows) for part in (X, y, sample_weight, groups))
    return clone(model).fit(X, y, **fit_arguments(model, sample_weight, groups))


def judge_member(name: str, fitted: Any, predictions: FloatArray, rows: TrainingRows, seconds: float) -> Member:
    """Choose the fraction of the mean distribution in a member's predictions, and evaluate it on its held-out rows.

    Parameters
    ----------
    name : str
        Its name.
    fitted : estimator
        The member, fitted on all rows.
    predictions : ndarray of shape (n_samples, n_labels)
        Its held-out predictions; NaN in rows without one.
    rows : TrainingRows
        The training set.
    seconds : float
        Time that its fits took.

    Returns
    -------
    Member
        The member.
    """
    means = means_without(rows.D, rows.sample_weight, rows.groups)
    known = np.flatnonzero(np.isfinite(predictions[:, 0]))
    divergence, mean_share = best_fraction(
        rows.D[known], predictions[known], means[known], rows_of(rows.sample_weight, known), MEAN_FRACTIONS
    )
    held_out = mix(predictions, means, mean_share)
    return Member(name, fitted, mean_share, held_out, float(without_rounding(divergence)), seconds)


def cross_fit_pool(
    members: Sequence[Member], rows: TrainingRows, *, kind: str, penalty: float
) -> tuple[Pool, FloatArray]:
    """Fit the pool on all held-out predictions, and predict each row by a pool that was fitted without its fold.

    Parameters
    ----------
    members : sequence of Member
        The members.
    rows : TrainingRows
        The training set.
    kind : {"log-linear", "linear"}
        Form of the pool.
    penalty : float
        Strength of the penalty towards equal weights.

    Returns
    -------
    pool : Pool
        Fitted on all rows, or on at most 100,000 evenly spaced ones.
    predictions : ndarray of shape (n_samples, n_labels)
        Pooled predictions with cross-fitted weights; NaN in rows for which a member has no held-out prediction.
    """
    held_out = np.stack([member.held_out for member in members])

    def fitted_on(part: IntArray) -> Pool:
        part = part[:: -(-len(part) // MAX_POOL_ROWS)]  # evenly spaced, because files are often sorted
        return fit_pool(held_out[:, part], rows.D[part], rows_of(rows.sample_weight, part), kind=kind, penalty=penalty)

    known = np.asarray(np.isfinite(held_out[:, :, 0]).all(axis=0))
    predictions = np.full(rows.D.shape, np.nan)
    for train, test in rows.folds:
        test = test[known[test]]
        predictions[test] = fitted_on(train[known[train]]).apply(held_out[:, test])
    return fitted_on(np.flatnonzero(known)), predictions


def row_losses(rows: TrainingRows, held_out: FloatArray) -> FloatArray:
    """Kullback-Leibler divergence of each row from its held-out prediction; NaN without one."""
    losses = np.full(len(rows.D), np.nan)
    known = np.isfinite(held_out[:, 0])
    losses[known] = kullback_leibler.rowwise(rows.D[known], held_out[known])
    return losses


def divergence_of(rows: TrainingRows, held_out: FloatArray) -> float:
    """Mean Kullback-Leibler divergence of held-out predictions, over the rows that have one."""
    losses = row_losses(rows, held_out)
    known = np.isfinite(losses)
    mean = np.average(losses[known], weights=rows_of(rows.sample_weight, np.flatnonzero(known)))
    return float(without_rounding(mean))


class PooledLDL(GroupedLDL):
    """Base class of estimators that pool members: it predicts, and subclasses fit."""

    _onnx = "pool"

    def _keep(self, members: Sequence[Member], pool: Pool, held_out: FloatArray, rows: TrainingRows) -> None:
        """Set the fitted attributes from the members, their pool, and the held-out predictions."""
        self.member_names_ = [member.name for member in members]
        self.members_ = [member.model for member in members]
        self.mean_shares_ = np.array([member.mean_share for member in members])
        self.member_weights_ = pool.weights
        self.offset_ = pool.offset
        self.pool_kind_ = pool.kind
        self.mean_distribution_ = mean_distribution(rows.D, rows.sample_weight)
        self.member_scores_ = np.array([member.divergence for member in members])
        self.oof_predictions_ = held_out
        self.pool_score_ = divergence_of(rows, held_out)

    def _predict(self, X: Any) -> FloatArray:
        pool = Pool(self.pool_kind_, self.member_weights_, self.offset_)
        P = np.empty((X.shape[0], self.n_labels_))
        for block in row_blocks(X.shape[0], len(self.members_) * self.n_labels_, BLOCK_CELLS):
            P[block] = pool.apply(self._member_predictions(X[block]))
        return P

    def _member_predictions(self, X: Any) -> FloatArray:
        predictions = np.empty((len(self.members_), X.shape[0], self.n_labels_))
        for index, (member, mean_share) in enumerate(zip(self.members_, self.mean_shares_, strict=True)):
            if self.member_weights_[index] > 0:
                predictions[index] = mix(np.asarray(member.predict(X)), self.mean_distribution_, mean_share)
            else:
                predictions[index] = self.mean_distribution_  # any finite values: the weight is 0
        return predictions


def seed_of(random_state: Any) -> int:
    """An integer seed from any ``random_state``."""
    return int(check_random_state(random_state).randint(2**31 - 1))

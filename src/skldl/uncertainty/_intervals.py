"""`Intervals`: split conformal intervals without the model, as a model file of a table contains them."""

from typing import Any, Self

import numpy as np

from skldl.uncertainty._dirichlet import N_PLAUSIBLE, plausible_truths
from skldl.uncertainty._region import bounds, conformal_quantile, score_rows
from skldl.utils.typing import FloatArray
from skldl.utils.validation import group_codes

MAX_SCORES = 20_000
"""Approximate number of scores of plausible true distributions in a model file: many rows get fewer draws each."""


class Intervals:
    """Split conformal calibration of a model, without the model.

    Two regions are calibrated, each at the requested level: a box of intervals, one for each label, that contain all
    degrees of a new row at once (the score "label" of `skldl.uncertainty.ConformalLDL`), and a ball in total variation.

    Parameters
    ----------
    D, P : ndarray of shape (n_samples, n_labels)
        Distributions of rows that the model did not learn from, and its predictions for them.
    scale : ndarray of shape (n_labels,)
        Unit of each label's deviation: its standard deviation over the rows that the model learned from.
    groups : array-like of shape (n_samples,), default=None
        Group of each row; the coverage then holds for rows of a new group.

    Attributes
    ----------
    n_rows_ : int
        Number of calibration rows.

    See Also
    --------
    Intervals.of_the_truth : Intervals for the distribution behind votes.

    Examples
    --------
    >>> import numpy as np
    >>> D = np.random.default_rng(0).dirichlet([5, 5], size=99)
    >>> intervals = Intervals(D, np.full((99, 2), 0.5), np.ones(2))
    >>> lower, upper, radius = intervals.around(np.array([[0.5, 0.5]]), 0.9)
    >>> bool(lower[0, 0] < 0.3), bool(radius[0] > 0.2)
    (True, True)
    """

    def __init__(self, D: FloatArray, P: FloatArray, scale: FloatArray, groups: Any = None) -> None:
        self.label_scale_ = np.maximum(np.asarray(scale, dtype=np.float64), 1e-6)  # a constant label has scale 0
        self.box_scores_ = score_rows("label", D, P, self.label_scale_)
        self.ball_scores_ = score_rows("total_variation", D, P, self.label_scale_)
        self.groups_ = None if groups is None else group_codes(groups, len(D))
        self.n_rows_ = len(D)

    @classmethod
    def of_the_truth(
        cls, votes: FloatArray, P: FloatArray, scale: FloatArray, groups: Any = None, seed: int = 0
    ) -> Self:
        """Intervals that cover the distributions behind the votes, not the fractions of as many votes.

        They are calibrated on plausible true distributions of each row, as `skldl.uncertainty.ConformalLDL` with
        ``covers="true"`` does it: the guarantee is about 1 − 2α for the level 1 − α, and rests on their posterior.

        Parameters
        ----------
        votes : ndarray of shape (n_samples, n_labels)
            Number of votes for each label, of rows that the model did not learn from.
        P, scale, groups
            As for the class.
        seed : int, default=0
            Seed of the draws.

        Returns
        -------
        Intervals
            The calibration.
        """
        n_rows = len(votes)
        truths = plausible_truths(P, votes, seed, int(np.clip(MAX_SCORES // max(n_rows, 1), 1, N_PLAUSIBLE)))
        units = np.arange(n_rows) if groups is None else np.asarray(groups)  # the draws of a row divide its mass
        made = cls(np.concatenate(truths), np.tile(P, (len(truths), 1)), scale, np.tile(units, len(truths)))
        made.n_rows_ = n_rows
        return made

    def around(self, P: FloatArray, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Intervals and radius around predictions.

        Parameters
        ----------
        P : ndarray of shape (n_samples, n_labels)
            Predictions.
        level : float
            Probability of coverage.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_labels)
            Smallest and largest degree of each label: all degrees are inside jointly with that probability.
        radius : ndarray of shape (n_samples,)
            Total variation distance that is not exceeded with that probability; 1, the whole simplex, if there are too
            few calibration rows (see `is_enough_for`).
        """
        box = conformal_quantile(self.box_scores_, level, self.groups_)
        ball = conformal_quantile(self.ball_scores_, level, self.groups_)
        lower, upper = bounds("label", P, np.full(len(P), box), self.label_scale_)
        return lower, upper, np.full(len(P), min(ball, 1.0))

    def is_enough_for(self, level: float) -> bool:
        """Whether there are enough calibration rows, or groups, for a level."""
        return bool(np.isfinite(conformal_quantile(self.box_scores_, level, self.groups_)))

    def _check_fitted_state(self) -> None:
        arrays = (self.label_scale_, self.box_scores_, self.ball_scores_)
        if not all(isinstance(a, np.ndarray) and a.ndim == 1 and a.dtype == np.float64 for a in arrays):
            raise ValueError("calibration scores are not arrays of numbers")
        n_scores = len(self.box_scores_)
        n_groups = n_scores if self.groups_ is None else len(self.groups_)
        draws, rest = divmod(n_scores, self.n_rows_) if type(self.n_rows_) is int and self.n_rows_ else (0, n_scores)
        if not n_scores == len(self.ball_scores_) == n_groups or rest or draws > N_PLAUSIBLE:
            raise ValueError("the number of calibration scores does not match the number of calibration rows")


def coverage_of_folds(
    D: FloatArray, P: FloatArray, fold_of: Any, level: float, groups: Any = None
) -> tuple[float, float]:
    """Coverage and mean width that the intervals of `Intervals` have in a cross-validation.

    Each row was predicted by a model that did not learn from its fold. The intervals of a fold are calibrated on all
    other folds, and evaluated on its own rows.

    Parameters
    ----------
    D, P : ndarray of shape (n_samples, n_labels)
        Distributions and held-out predictions.
    fold_of : array-like of shape (n_samples,)
        Fold of each row; two at least.
    level : float
        Level of the intervals.
    groups : array-like of shape (n_samples,), default=None
        Group of each row. Intervals are then calibrated for rows of a new group, and every group counts the same.

    Returns
    -------
    coverage : float
        Fraction of rows with all degrees inside; with groups the mean of their fractions.
    width : float
        Mean length of the intervals, over rows (groups) and labels.
    """
    folds, group_of = np.asarray(fold_of), None if groups is None else np.asarray(groups)
    inside, width = np.zeros(len(D), dtype=bool), np.zeros(len(D))
    for fold in np.unique(folds):
        own = folds == fold
        others = Intervals(D[~own], P[~own], D[~own].std(axis=0), None if group_of is None else group_of[~own])
        lower, upper, _ = others.around(P[own], level)
        # 1e-9: the bound of the row whose score is the quantile equals its degree up to rounding
        inside[own] = ((lower - 1e-9 <= D[own]) & (D[own] <= upper + 1e-9)).all(axis=1)
        width[own] = (upper - lower).mean(axis=1)
    if group_of is None:
        return float(inside.mean()), float(width.mean())
    _, code, size = np.unique(group_of, return_inverse=True, return_counts=True)
    mass = 1.0 / (len(size) * size[code])
    return float(mass @ inside), float(mass @ width)

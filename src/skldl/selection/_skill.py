"""Skill: which part of the loss of a reference a model takes away."""

from typing import Any

import numpy as np

from skldl._typing import FloatArray
from skldl._validation import check_weights
from skldl.metrics import Skill

CONFIDENCE = 0.95
N_RESAMPLES = 1000


def skill_of_losses(losses: Any, reference_losses: Any, sample_weight: Any = None, groups: Any = None) -> Skill:
    """Compute the skill from the losses of each row, with a 95 % bootstrap interval.

    Parameters
    ----------
    losses, reference_losses : array-like of shape (n_samples,)
        Loss of each row under the model and under the reference.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.
    groups : array-like of shape (n_samples,), default=None
        Group of each row; rows of one group are drawn together.

    Returns
    -------
    Skill
        A float with the attributes ``low`` and ``high``.

    Examples
    --------
    >>> from skldl.selection import skill_of_losses
    >>> float(skill_of_losses([0.1, 0.2], [0.3, 0.3]))
    0.5
    """
    own, other = (np.asarray(table, dtype=np.float64) for table in (losses, reference_losses))
    weight = check_weights(sample_weight, len(own))
    if weight is not None:
        own, other = own * weight, other * weight
    if groups is not None:
        unit_of = np.unique(groups, return_inverse=True)[1]
        own, other = (np.bincount(unit_of, table).astype(np.float64) for table in (own, other))
    generator = np.random.default_rng(0)
    draws = np.empty(N_RESAMPLES)
    for number in range(N_RESAMPLES):
        drawn = generator.integers(len(own), size=len(own))
        draws[number] = skill_ratio(own[drawn].sum(), other[drawn].sum())
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(draws, [tail, 1 - tail], method="nearest")
    return Skill(float(skill_ratio(own.sum(), other.sum())), float(low), float(high), CONFIDENCE)


def skill_ratio(losses: Any, reference: Any) -> FloatArray:
    """1 − loss / reference loss; where the reference has no loss, 0 for a model without loss and else −∞.

    Parameters
    ----------
    losses, reference : array-like
        Mean losses, of shapes that can be broadcast; NaN stays NaN.

    Returns
    -------
    ndarray
        The skills.

    Examples
    --------
    >>> skill_ratio([0.1, 0.0, 0.2], [0.2, 0.0, 0.0])
    array([ 0.5,  0. , -inf])
    """
    own, other = np.broadcast_arrays(np.asarray(losses, dtype=np.float64), np.asarray(reference, dtype=np.float64))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = 1.0 - own / other
    no_loss = other <= 0  # below zero only by rounding
    return np.asarray(np.where(no_loss & ~np.isnan(own), np.where(own <= 0, 0.0, -np.inf), ratio))

"""`CoverageCurve`: how often intervals of each level hold the truth."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.utils import check_random_state

from skldl.utils.typing import FloatArray

LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
_LEAST = 1e-12


@dataclass(frozen=True, eq=False)
class CoverageCurve:
    """Shares of cases that intervals of given levels hold.

    Attributes
    ----------
    levels : ndarray of shape (n_levels,)
        Levels of the intervals.
    observed : ndarray of shape (n_levels,)
        Share of the degrees inside. Above the level: the spread is too wide; below: too narrow.
    error : float
        Mean distance between the two: 0 is perfect.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.uncertainty import CoverageCurve
    >>> CoverageCurve(levels=np.array([0.5, 0.9]), observed=np.array([0.48, 0.92]), error=0.02).error
    0.02
    """

    levels: FloatArray
    observed: FloatArray
    error: float


def coverage_curve(ranks: Any, levels: Any = LEVELS) -> CoverageCurve:
    """Coverage of central intervals, from the ranks of the truth in its predicted distribution.

    Parameters
    ----------
    ranks : array-like
        Values of the predicted distribution function at the truth, in [0, 1]; of any shape.
    levels : array-like, default=0.05, 0.1, 0.2, …, 0.9, 0.95
        Levels of the intervals.

    Returns
    -------
    CoverageCurve
        The curve.

    Examples
    --------
    >>> from skldl.uncertainty import coverage_curve
    >>> coverage_curve([0.1, 0.3, 0.5, 0.7, 0.9], levels=[0.5]).observed
    array([0.6])
    """
    u, steps = np.ravel(np.asarray(ranks, dtype=np.float64)), np.asarray(levels, dtype=np.float64)
    observed = np.array([np.mean(np.abs(u - 0.5) <= level / 2 + 1e-12) for level in steps])
    return CoverageCurve(steps, observed, float(np.mean(np.abs(observed - steps))))


def dirichlet_ranks(D: FloatArray, P: FloatArray, concentration: FloatArray) -> FloatArray:
    r"""Ranks of degrees: each is :math:`\mathrm{Beta}(\tau p_j, \tau(1-p_j))` under a Dirichlet distribution.

    Parameters
    ----------
    D, P : ndarray of shape (n_samples, n_labels)
        Distributions and predicted means.
    concentration : ndarray of shape (n_samples,)
        Sum of the Dirichlet parameters.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Uniform on [0, 1] if the spread is right.
    """
    a, b = beta_parameters(P, concentration)
    return np.asarray(stats.beta.cdf(D, a, b))


def votes_ranks(counts: FloatArray, P: FloatArray, concentration: FloatArray, random_state: Any = 0) -> FloatArray:
    """Ranks of votes under the beta-binomial distribution, drawn at random within the step of the votes.

    Parameters
    ----------
    counts, P : ndarray of shape (n_samples, n_labels)
        Votes and predicted means.
    concentration : ndarray of shape (n_samples,)
        Sum of the Dirichlet parameters.
    random_state : int, RandomState or None, default=0
        Random generator for the position within a step.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Uniform on [0, 1] if the spread is right.
    """
    a, b = beta_parameters(P, concentration)
    totals = counts.sum(axis=1, keepdims=True)
    step = stats.betabinom.pmf(counts, totals, a, b)
    below = np.where(counts > 0, stats.betabinom.cdf(counts - 1, totals, a, b), 0.0)
    return np.asarray(below + check_random_state(random_state).uniform(size=counts.shape) * step)


def beta_parameters(P: FloatArray, concentration: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both parameters of the beta distribution of each degree under a Dirichlet distribution."""
    p = np.clip(P, _LEAST, 1 - _LEAST)
    return concentration[:, None] * p, concentration[:, None] * (1 - p)

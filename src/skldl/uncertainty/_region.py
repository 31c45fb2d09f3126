"""Conformal prediction regions: scores of distributions, the quantile of scores, bounds, and `Region`."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import rel_entr

from skldl.utils.parameters import number
from skldl.utils.typing import AnyArray, BoolArray, FloatArray, IntArray
from skldl.utils.validation import check_truth

LEVEL = number(above=0, below=1, hint="it is a probability, for instance 0.9")
SCORES = ("total_variation", "kullback_leibler", "label")
N_BISECTIONS = 60  # halvings of an interval of at most one: its length then is below machine epsilon


class TooFewCalibrationRowsWarning(UserWarning):
    """There are too few calibration rows for the requested level, so the region is the whole simplex.

    Examples
    --------
    >>> import warnings
    >>> from skldl import SABFGS
    >>> from skldl.testing import make_distributions
    >>> from skldl.uncertainty import ConformalLDL
    >>> X, D = make_distributions(20)
    >>> model = ConformalLDL(SABFGS(), method="split", random_state=0).fit(X, D)
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     region = model.predict_region(X[:1], level=0.99)
    >>> [warning.category.__name__ for warning in caught]
    ['TooFewCalibrationRowsWarning']
    """


@dataclass(frozen=True, eq=False)
class Region:
    """One region of distributions for each row.

    Attributes
    ----------
    center : ndarray of shape (n_samples, n_labels)
        The predictions.
    radius : ndarray of shape (n_samples,)
        Largest score inside the region; infinite where the region is the whole simplex.
    lower, upper : ndarray of shape (n_samples, n_labels)
        Smallest and largest degree of each label inside the region. Each is attained by some distribution of the
        region (with "cv+", of the ball of this radius, which contains the region).
    level : float
        The requested level.
    score : {"total_variation", "kullback_leibler", "label"}
        The score that the radius is measured in.
    label_names : ndarray of str
        Names of the labels.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl import SABFGS
    >>> from skldl.testing import make_distributions
    >>> from skldl.uncertainty import ConformalLDL
    >>> X, D = make_distributions(100)
    >>> region = ConformalLDL(SABFGS(), method="split", random_state=0).fit(X, D).predict_region(X[:2], level=0.8)
    >>> region.center.shape, region.radius.shape
    ((2, 3), (2,))
    """

    center: FloatArray
    radius: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    score: str
    label_names: AnyArray
    _inside: Any = field(repr=False)

    def contains(self, D: Any) -> BoolArray:
        """Return for each row whether a distribution is in its region.

        Parameters
        ----------
        D : array-like or DataFrame of shape (n_samples, n_labels)
            One distribution for each row that the region was predicted for. Columns with the names of the labels may be
            in another order.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
            True where it is.
        """
        return np.asarray(self._inside(check_truth(D, self.label_names, len(self.center), name="D")))


def score_rows(name: str, D: FloatArray, P: FloatArray, label_scale: FloatArray) -> FloatArray:
    """Score of each row: how far the distribution is from the prediction.

    Parameters
    ----------
    name : {"total_variation", "kullback_leibler", "label"}
        Which score.
    D, P : ndarray of shape (n_samples, n_labels)
        Distributions and predictions.
    label_scale : ndarray of shape (n_labels,)
        Unit of each label's deviation, for the score "label".

    Returns
    -------
    ndarray of shape (n_samples,)
        At least 0; infinite where a label with mass was predicted to have none, for "kullback_leibler".
    """
    if name == "total_variation":
        return np.asarray(0.5 * np.abs(D - P).sum(axis=1))
    if name == "kullback_leibler":
        return np.maximum(rel_entr(D, P).sum(axis=1), 0.0)
    return np.asarray((np.abs(D - P) / label_scale).max(axis=1))


def bounds(name: str, P: FloatArray, radius: FloatArray, label_scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest degree of each label in the region of distributions with a score of at most ``radius``.

    For total variation, the degree of a label can change by the radius, at the cost of the others. For
    Kullback-Leibler, the nearest distribution with a given degree of one label keeps the proportions of the others:
    the bounds are the two degrees at which the divergence over two labels, this one and the rest, equals the radius.
    For "label", the region is the intersection of the box with the simplex.

    Parameters
    ----------
    name : {"total_variation", "kullback_leibler", "label"}
        Which score.
    P : ndarray of shape (n_samples, n_labels)
        Predictions: the centres of the regions.
    radius : ndarray of shape (n_samples,)
        Radius of each region; infinity means the whole simplex.
    label_scale : ndarray of shape (n_labels,)
        Unit of each label's deviation, for the score "label".

    Returns
    -------
    lower, upper : ndarray of shape (n_samples, n_labels)
        Bounds that some distribution of the region attains.
    """
    everything = ~np.isfinite(radius)
    r = np.where(everything, 1.0, radius)[:, None]
    if name == "kullback_leibler":
        lower, upper = _kullback_leibler_bounds(P, r)
    else:
        reach = r if name == "total_variation" else r * label_scale
        lower, upper = np.maximum(P - reach, 0.0), np.minimum(P + reach, 1.0)
        if name == "label":  # the degree of a label is one minus those of the others, which are bounded, too
            max_of_others = upper.sum(axis=1, keepdims=True) - upper
            min_of_others = lower.sum(axis=1, keepdims=True) - lower
            lower, upper = np.maximum(lower, 1.0 - max_of_others), np.minimum(upper, 1.0 - min_of_others)
            lower, upper = np.minimum(lower, P), np.maximum(upper, P)  # rounding must not exclude the centre
    lower[everything], upper[everything] = 0.0, 1.0
    return lower, upper


def _kullback_leibler_bounds(P: FloatArray, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both degrees of each label at which the divergence reaches the radius, by bisection."""

    def within(t: FloatArray) -> BoolArray:
        return np.asarray(rel_entr(t, P) + rel_entr(1.0 - t, 1.0 - P) <= radius)

    ends = []
    for end in (0.0, 1.0):
        outside, inside = np.full_like(P, end), P.copy()
        for _ in range(N_BISECTIONS):
            middle = 0.5 * (outside + inside)
            good = within(middle)
            inside, outside = np.where(good, middle, inside), np.where(good, outside, middle)
        # bisection comes near an end that is inside, but does not reach it
        ends.append(np.where(within(np.full_like(P, end)), end, inside))
    return ends[0], ends[1]


def conformal_quantile(scores: FloatArray, level: float, groups: IntArray | None = None) -> float:
    r"""Conformal quantile: the score that a new row does not exceed with probability ``level``.

    Without groups this is the :math:`\lceil (n+1)\, level \rceil`-th smallest score. With G groups each group has the
    mass 1/(G + 1), divided among its rows, and the remaining mass lies at infinity (Lee, Barber & Willett, 2023): the
    statement then holds for a row of a new group.

    Parameters
    ----------
    scores : ndarray of shape (n_samples,)
        Scores of calibration rows.
    level : float
        Probability to be reached.
    groups : ndarray of int of shape (n_samples,), default=None
        Group of each row.

    Returns
    -------
    float
        The quantile; infinity if there are too few rows or groups for the level.

    Examples
    --------
    >>> import numpy as np
    >>> conformal_quantile(np.arange(1.0, 10.0), 0.9), conformal_quantile(np.arange(1.0, 10.0), 0.95)
    (9.0, inf)
    """
    if groups is None:
        # rounded first: 25 · 0.56 is 14.000000000000002 in floating point
        rank = int(np.ceil(round((len(scores) + 1) * level, 9)))
        return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else float("inf")
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.argsort(scores, kind="stable")
    mass = np.cumsum(1.0 / ((len(sizes) + 1) * sizes[codes[order]]))
    reached = np.flatnonzero(mass >= level - 1e-12)  # a sum that misses the level by rounding reaches it
    return float(scores[order[reached[0]]]) if len(reached) else float("inf")

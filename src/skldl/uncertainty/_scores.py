"""Distance of a distribution from its prediction, and the region of all distributions within a distance."""

import numpy as np
from scipy.special import rel_entr

from skldl.utils.typing import BoolArray, FloatArray

SCORES = ("total_variation", "kullback_leibler", "label")
_BISECTIONS = 60


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
    """Least and greatest degree of each label in the region of distributions with a score of at most ``radius``.

    For total variation a label can take the radius from the others or give it to them. For Kullback-Leibler the
    nearest distribution with a given degree of one label keeps the proportions of the others, so that the bounds
    are the two ends at which the divergence between two labels, this one and the rest, equals the radius. For
    "label" the box is cut by the simplex.

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
        if name == "label":
            others_most = upper.sum(axis=1, keepdims=True) - upper
            others_least = lower.sum(axis=1, keepdims=True) - lower
            lower, upper = np.maximum(lower, 1.0 - others_most), np.minimum(upper, 1.0 - others_least)
            lower, upper = np.minimum(lower, P), np.maximum(upper, P)  # a cut crosses the centre only by rounding
    lower[everything], upper[everything] = 0.0, 1.0
    return lower, upper


def _kullback_leibler_bounds(P: FloatArray, radius: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both ends at which the divergence of two labels reaches the radius, by bisection."""

    def within(t: FloatArray) -> BoolArray:
        return np.asarray(rel_entr(t, P) + rel_entr(1.0 - t, 1.0 - P) <= radius)

    ends = []
    for end in (0.0, 1.0):
        outside, inside = np.full_like(P, end), P.copy()
        for _ in range(_BISECTIONS):
            middle = 0.5 * (outside + inside)
            good = within(middle)
            inside, outside = np.where(good, middle, inside), np.where(good, outside, middle)
        ends.append(np.where(within(np.full_like(P, end)), end, inside))
    return ends[0], ends[1]


def conformal_quantile(scores: FloatArray, level: float, groups: np.ndarray | None = None) -> float:
    r"""The score that a new row does not exceed with probability ``level``.

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
        rank = int(np.ceil(round((len(scores) + 1) * level, 9)))
        return float(np.sort(scores)[rank - 1]) if rank <= len(scores) else float("inf")
    _, codes, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    order = np.argsort(scores, kind="stable")
    mass = np.cumsum(1.0 / ((len(sizes) + 1) * sizes[codes[order]]))
    reached = np.flatnonzero(mass >= level - 1e-12)
    return float(scores[order[reached[0]]]) if len(reached) else float("inf")

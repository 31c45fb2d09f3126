"""The two targets of the regression, and the conversion back to distributions.

"degrees" regresses on D itself and projects the prediction on the simplex. "clr" regresses on the centred log-ratio
ln d_j − mean_k ln d_k, with degrees below a floor raised to it, and applies the softmax.
"""

from collections.abc import Sequence

from skldl.utils.arrays import as_double, at_least, namespace
from skldl.utils.mean_mixture import first_best, mixture_divergences
from skldl.utils.simplex import project, softmax
from skldl.utils.typing import FloatArray

TARGETS = ("degrees", "clr")


def to_target(D: FloatArray, target: str) -> FloatArray:
    """Return the table to regress on."""
    if target == "degrees":
        return as_double(D)
    floor = max(1e-4, 1e-3 / D.shape[1])
    xp = namespace(D)
    logs = xp.log(at_least(as_double(D), floor))
    return logs - xp.mean(logs, axis=1, keepdims=True)


def to_distributions(scores: FloatArray, target: str) -> FloatArray:
    """Return distributions for predictions of the regression."""
    return project(scores) if target == "degrees" else softmax(scores)


def choose(
    D: FloatArray,
    scores: FloatArray,
    target: str,
    means: FloatArray,
    weight: FloatArray | None,
    shares: Sequence[float],
) -> tuple[float, int, float]:
    """Choose penalty and mean share by the divergence of left-out predictions.

    Parameters
    ----------
    D : ndarray of shape (n, n_labels)
        Distributions.
    scores : ndarray of shape (n_penalties, n, n_labels)
        Predictions of the regression for left-out rows; of equally good penalties the last is taken.
    target : {"degrees", "clr"}
        What was regressed on.
    means : ndarray of shape (n, n_labels)
        Mean distribution of the rows that remain, for each left-out row.
    weight : ndarray of shape (n,) or None
        Weights of the rows.
    shares : sequence of float
        Mean shares to choose from.

    Returns
    -------
    divergence : float
        The least mean Kullback-Leibler divergence.
    place : int
        Place of the penalty.
    share : float
        The mean share.
    """
    divergences = mixture_divergences(D, to_distributions(scores, target), means, weight, shares)
    least = divergences.min(axis=1)[::-1]  # of equals the largest penalty: the simplest model
    place = len(least) - 1 - first_best(least)
    column = first_best(divergences[place])
    return float(divergences[place, column]), place, float(shares[column])

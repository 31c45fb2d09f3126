r"""Maps that correct predicted distributions: temperature, vector scaling, and shrinkage towards the mean.

With a prediction p,

.. math:: q_j \propto p_j^{w_j} e^{b_j}, \qquad q' = (1-s)\,q + s\,\bar d.

Temperature scaling [1]_ has one w for all labels (its reciprocal is the temperature) and b = 0; vector scaling has a
weight and an offset for each label; shrinkage has w = 1, b = 0 and a fraction s of the mean distribution. The
parameters minimise the mean Kullback-Leibler divergence on held-out predictions, which is convex in w and b. Vector
scaling is drawn towards w = 1, b = 0 by the penalty :math:`\frac{1}{n}(\|w-1\|^2 + \|b\|^2)`.

References
----------
.. [1] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On calibration of modern neural networks", ICML 2017.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from skldl.data._dataset import rows_of
from skldl.utils.mean_mixture import MIN_DEGREE, best_fraction, mix, row_weights
from skldl.utils.typing import FloatArray, IntArray

METHODS = ("none", "temperature", "vector", "shrink")
SHARES = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)


@dataclass(frozen=True)
class CalibrationMap:
    """A fitted map.

    Attributes
    ----------
    weights, offset : ndarray of shape (n_labels,)
        Exponent and offset of each label.
    mean_share : float
        Share of the mean distribution.
    """

    weights: FloatArray
    offset: FloatArray
    mean_share: float = 0.0

    def apply(self, P: FloatArray, mean: FloatArray) -> FloatArray:
        """Correct predictions.

        Parameters
        ----------
        P : ndarray of shape (n_samples, n_labels)
            Predictions.
        mean : ndarray of shape (n_labels,) or (n_samples, n_labels)
            Mean distribution.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Corrected predictions.
        """
        if not ((self.weights == 1).all() and (self.offset == 0).all()):
            P = softmax(self.weights * _logarithms(P) + self.offset, axis=1)
        return mix(P, mean, self.mean_share) if self.mean_share else P


def fit_map(method: str, D: FloatArray, P: FloatArray, means: FloatArray, weight: FloatArray | None) -> CalibrationMap:
    """Fit a map to held-out predictions.

    Parameters
    ----------
    method : {"none", "temperature", "vector", "shrink"}
        Which map.
    D, P : ndarray of shape (n_samples, n_labels)
        Distributions and their held-out predictions.
    means : ndarray of shape (n_samples, n_labels)
        Mean distribution of the rows that each prediction was learned from.
    weight : ndarray of shape (n_samples,) or None
        Weight of each row.

    Returns
    -------
    CalibrationMap
        The map.

    Examples
    --------
    >>> import numpy as np
    >>> P = np.random.default_rng(0).dirichlet(np.ones(3), size=50)
    >>> too_sharp = P**2 / (P**2).sum(axis=1, keepdims=True)
    >>> fit_map("temperature", P, too_sharp, P, None).weights.round(3)
    array([0.5, 0.5, 0.5])
    """
    n_labels = D.shape[1]
    ones, zeros = np.ones(n_labels), np.zeros(n_labels)
    if method == "shrink":
        return CalibrationMap(ones, zeros, best_fraction(D, P, means, weight, SHARES)[1])
    if method == "none":
        return CalibrationMap(ones, zeros)
    mass, logarithms = row_weights(len(D), weight), _logarithms(P)
    shared = method == "temperature"
    penalty = 0.0 if shared else 1 / len(D)

    def loss(parameters: FloatArray) -> tuple[float, FloatArray]:
        w, b = (np.full(n_labels, parameters[0]), zeros) if shared else np.split(parameters, 2)
        scores = log_softmax(w * logarithms + b, axis=1)
        residual = mass[:, None] * (np.exp(scores) - D)
        slope, shift = (residual * logarithms).sum(axis=0), residual.sum(axis=0)
        value = -float(mass @ (D * scores).sum(axis=1)) + penalty * float((w - 1) @ (w - 1) + b @ b)
        if shared:
            return value, np.array([slope.sum()])
        return value, np.concatenate([slope + 2 * penalty * (w - 1), shift + 2 * penalty * b])

    start = np.ones(1) if shared else np.concatenate([ones, zeros])
    least = [(0.0, None)] * (1 if shared else n_labels) + [(None, None)] * (0 if shared else n_labels)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=least, options={"ftol": 1e-14, "gtol": 1e-9})
    if shared:
        return CalibrationMap(np.full(n_labels, found.x[0]), zeros)
    w, b = np.split(found.x, 2)
    return CalibrationMap(w, b)


def cross_fit_maps(
    methods: Sequence[str],
    D: FloatArray,
    P: FloatArray,
    means: FloatArray,
    weight: FloatArray | None,
    folds: Iterable[tuple[IntArray, IntArray]],
) -> dict[str, FloatArray]:
    """Correct held-out predictions by maps that were fitted without the row's fold.

    Parameters
    ----------
    methods : sequence of str
        Which maps.
    D, P, means, weight : as in `fit_map`
        Rows of P that hold NaN are left out.
    folds : iterable of pairs
        Rows to fit on, and rows to correct.

    Returns
    -------
    dict
        From each map to the corrected predictions.
    """
    known = np.asarray(np.isfinite(P[:, 0]))
    corrected = {method: np.full_like(P, np.nan) for method in methods}
    for train, test in folds:
        fit_on, apply_to = train[known[train]], test[known[test]]
        own = rows_of(weight, fit_on)
        for method, table in corrected.items():
            found = fit_map(method, D[fit_on], P[fit_on], means[fit_on], own)
            table[apply_to] = found.apply(P[apply_to], means[apply_to])
    return corrected


def _logarithms(P: FloatArray) -> FloatArray:
    return np.log(np.maximum(P, MIN_DEGREE))

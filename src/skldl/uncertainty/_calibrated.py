r"""`CalibratedLDL`: predictions corrected by a map that is fitted to predictions for held-out rows.

With a prediction p,

.. math:: q_j \propto p_j^{w_j} e^{b_j}, \qquad q' = (1-s)\,q + s\,\bar d.

Temperature scaling [1]_ has one w for all labels (its reciprocal is the temperature) and b = 0; vector scaling has a
weight and an offset for each label; shrinkage has w = 1, b = 0 and a fraction s of the mean distribution. The
parameters minimise the mean Kullback-Leibler divergence on held-out predictions, which is convex in w and b. Vector
scaling has the penalty :math:`\frac{1}{n}(\|w-1\|^2 + \|b\|^2)`, whose minimum changes nothing.

References
----------
.. [1] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On calibration of modern neural networks", ICML 2017.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, rel_entr, softmax

from skldl.data._dataset import rows_of
from skldl.ensemble._members import seed_of
from skldl.uncertainty._wrapper import LEARNER, HeldOutWrapper
from skldl.utils.mean_mixture import (
    MIN_DEGREE,
    best_fraction,
    first_best,
    mean_distribution,
    means_without,
    mix,
    row_weights,
)
from skldl.utils.parameters import RANDOM_STATE, integer, one_of
from skldl.utils.typing import FloatArray, IntArray

METHODS = ("none", "temperature", "vector", "shrink")
FRACTIONS = (0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
"""Fractions of the mean distribution to choose from; chosen by hand."""


@dataclass(frozen=True)
class CalibrationMap:
    """A fitted correction of predictions.

    Attributes
    ----------
    weights, offset : ndarray of shape (n_labels,)
        Exponent and offset of each label.
    mean_share : float
        Fraction of the mean distribution.
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
        # the identity keeps degrees of zero, which the logarithm would raise
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
        return CalibrationMap(ones, zeros, best_fraction(D, P, means, weight, FRACTIONS)[1])
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
    # no negative exponents: they would reverse the order of the labels
    bounds = [(0.0, None)] * (1 if shared else n_labels) + [(None, None)] * (0 if shared else n_labels)
    # far below the differences of divergences that matter, so that the result does not depend on the path of the search
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9})
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
        From each map to the corrected predictions; NaN in rows without a held-out prediction.
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
    """Logarithms of degrees, finite for degrees of zero."""
    return np.log(np.maximum(P, MIN_DEGREE))


class CalibratedLDL(HeldOutWrapper):
    """Correct the predictions of a label distribution learner by a map fitted to held-out predictions.

    The learner is fitted on all rows; the map is fitted to predictions of models that did not learn from the row
    (leave-one-out, out-of-bag or out-of-fold ones where the learner keeps them, else by cross-validation).

    Parameters
    ----------
    estimator : estimator
        A label distribution learner.
    method : {"auto", "temperature", "vector", "shrink", "none"}, default="auto"
        Which map: one exponent for all labels, an exponent and an offset for each label [1]_, or a fraction of the mean
        distribution. "auto" is the one with the smallest cross-validated Kullback-Leibler divergence; "none", which
        changes nothing, is among them.
    n_folds : int, default=5
        Number of folds for held-out predictions, and for the choice among the maps.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds, and of an estimator whose ``random_state`` is None.

    Attributes
    ----------
    estimator_ : estimator
        The learner, fitted on all rows.
    method_ : str
        The map that was chosen.
    scores_ : dict
        From each map that was tried to its cross-validated Kullback-Leibler divergence: each row is corrected by a map
        that was fitted without its fold.
    weights_, offset_ : ndarray of shape (n_labels,)
        Exponent and offset of each label.
    mean_share_ : float
        Fraction of the mean distribution.
    mean_distribution_ : ndarray of shape (n_labels,)
        The mean distribution of the training rows.
    oof_predictions_ : ndarray of shape (n_samples, n_labels)
        Held-out predictions after calibration, by maps fitted without the row's fold; NaN in rows without one.
    uncalibrated_ : ndarray of shape (n_samples, n_labels)
        The same before calibration.

    See Also
    --------
    skldl.plots.CalibrationDisplay : Draws both: ``from_predictions(y, {"before": m.uncalibrated_, "after":
        m.oof_predictions_})``.

    References
    ----------
    .. [1] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger, "On calibration of modern neural networks", ICML 2017.

    Examples
    --------
    >>> from skldl import AAKNN
    >>> from skldl.testing import make_distributions
    >>> from skldl.uncertainty import CalibratedLDL
    >>> X, D = make_distributions(n_samples=200)
    >>> model = CalibratedLDL(AAKNN(n_neighbors=1), random_state=0).fit(X, D)
    >>> model.method_, model.scores_[model.method_] < model.scores_["none"]
    ('vector', True)
    """

    _constraints: ClassVar = {
        "estimator": LEARNER,
        "method": one_of("auto", *METHODS),
        "n_folds": integer(at_least=2),
        "random_state": RANDOM_STATE,
    }

    def __init__(self, estimator: Any, *, method: str = "auto", n_folds: int = 5, random_state: Any = None) -> None:
        self.estimator = estimator
        self.method = method
        self.n_folds = n_folds
        self.random_state = random_state

    def _fit_grouped(self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None) -> None:
        rows, held_out = self._fit_estimator(X, D, sample_weight, groups, seed_of(self.random_state))
        means = means_without(D, sample_weight, groups)
        known = np.asarray(np.isfinite(held_out[:, 0]))
        methods = METHODS if self.method == "auto" else tuple(dict.fromkeys(("none", self.method)))
        corrected = cross_fit_maps(methods, D, held_out, means, sample_weight, rows.folds)
        weight = rows_of(sample_weight, np.flatnonzero(known))
        self.scores_ = {
            method: float(np.average(rel_entr(D[known], table[known]).sum(axis=1), weights=weight))
            for method, table in corrected.items()
        }
        self.method_ = self.method
        if self.method == "auto":
            self.method_ = methods[first_best(list(self.scores_.values()))]
        chosen = fit_map(self.method_, D[known], held_out[known], means[known], weight)
        self.weights_, self.offset_, self.mean_share_ = chosen.weights, chosen.offset, chosen.mean_share
        self.mean_distribution_ = mean_distribution(D, sample_weight)
        self.uncalibrated_, self.oof_predictions_ = held_out, corrected[self.method_]

    def _predict(self, X: Any) -> FloatArray:
        chosen = CalibrationMap(self.weights_, self.offset_, self.mean_share_)
        return chosen.apply(np.asarray(self.estimator_.predict(X)), self.mean_distribution_)

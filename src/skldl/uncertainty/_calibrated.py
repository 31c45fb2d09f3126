"""`CalibratedLDL`: predictions corrected by a map that was fitted to held-out rows."""

from typing import Any, ClassVar

import numpy as np
from scipy.special import rel_entr

from skldl.data._dataset import rows_of
from skldl.ensemble._members import seed_of
from skldl.uncertainty._calibration_maps import METHODS, CalibrationMap, cross_fit_maps, fit_map
from skldl.uncertainty._wrapper import LEARNER, HeldOutWrapper
from skldl.utils.mean_mixture import first_best, mean_distribution, means_without
from skldl.utils.parameters import RANDOM_STATE, integer, one_of
from skldl.utils.typing import FloatArray, IntArray


class CalibratedLDL(HeldOutWrapper):
    """Correct the predictions of a label distribution learner with a map fitted on held-out rows.

    The learner is fitted on all rows; the map is fitted to predictions of models that did not learn from the row
    (leave-one-out, out-of-bag or out-of-fold ones where the learner keeps them, else by cross-validation).

    Parameters
    ----------
    estimator : estimator
        A label distribution learner.
    method : {"auto", "temperature", "vector", "shrink", "none"}, default="auto"
        Which map: one exponent for all labels, an exponent and an offset for each label [1]_, or a fraction of the mean
        distribution. "auto" takes the one with the least cross-validated Kullback-Leibler divergence; "none", which
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
        From each map that was tried to its Kullback-Leibler divergence, cross-validated: the map was fitted without
        the row's fold.
    weights_, offset_ : ndarray of shape (n_labels,)
        Exponent and offset of each label.
    mean_share_ : float
        Share of the mean distribution.
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

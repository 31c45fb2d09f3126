"""LDL-DPA: label distribution learning by description-degree percentile average (Jia et al., 2024).

A label whose true degree has rank r_j among the c labels of its row has the percentile r_j / c. The percentile
average of a prediction is Σ_j p_j r_j / c: it is large if much mass is on labels of high rank. A second term keeps the
variance of the degrees, which maximising the average alone would increase:

    mean KL(d_i ‖ p_i) − λ_r mean Σ_j p_ij r_ij / c + λ_v mean (var d_i − var p_i)² + alpha/2 ‖W‖².
"""

from typing import ClassVar

import numpy as np
from scipy import stats

from skldl.losses._linear_softmax import (
    LinearSoftmaxLDL,
    ScoreObjective,
    TrainingSet,
    mean_of,
)
from skldl.losses._rows import divergence_plus
from skldl.utils.parameters import NOT_NEGATIVE
from skldl.utils.typing import FloatArray


class LDLDPA(LinearSoftmaxLDL):
    r"""Maximum entropy model that raises the description-degree percentile average (LDL-DPA).

    It minimises, with p = softmax(Wᵀx + b), ranks :math:`r_{ij}` of the degrees :math:`d_{ij}` inside row i (1 for the
    smallest, ties share their mean rank) and means over rows,

    .. math:: \overline{\mathrm{KL}(d_i \,\|\, p_i)}
        - \mathtt{rank\_weight}\; \overline{\tfrac1c \textstyle\sum_j r_{ij} p_{ij}}
        + \mathtt{variance\_weight}\; \overline{(\mathrm{var}\, d_i - \mathrm{var}\, p_i)^2}
        + \frac{\mathtt{alpha}}{2} \lVert W \rVert^2.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the squared penalty on the weights; "auto" chooses it by generalised cross-validation of the model
        linearised at the mean distribution, so that the unit of the features hardly matters.
    rank_weight : float, default=1e-2
        Weight of the percentile average.
    variance_weight : float, default=1e-2
        Weight of the squared gap between the variances of the degrees.
    fit_intercept : bool, default=True
        Whether to learn one free score for each label, without penalty. Without it a penalty pulls the predictions to
        the uniform distribution in place of the mean.
    max_iter : int, default=1000
        Largest number of steps.
    tol : float, default=1e-8
        Estimated excess of the objective over the optimum at which the search ends; the true excess can be larger,
        see `skldl.SABFGS`.

    Attributes
    ----------
    alpha_ : float
        The penalty that was used.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights; each column sums to zero.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts, which sum to zero.
    n_iter_ : int
        Number of steps after the first phase.
    loss_curve_ : list of float
        Objective after the first phase and after each step.

    Notes
    -----
    With both weights zero it is SA-BFGS. The paper's text and the authors' code were not available: that the percentile
    average divides by c, and that the variance is the one over labels with divisor c, follows python-ldl.

    References
    ----------
    .. [1] X. Jia et al., "Label distribution learning by utilizing the description-degree percentile average"
       (LDL-DPA), IEEE Transactions on Neural Networks and Learning Systems, 2024.

    Examples
    --------
    >>> from skldl.correlation import LDLDPA
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]]
    >>> LDLDPA().fit(X, D).predict([[1.0, 1.0]]).round(1)
    array([[0.3, 0.4, 0.3]])
    """

    _constraints: ClassVar = {
        **LinearSoftmaxLDL._constraints,
        "rank_weight": NOT_NEGATIVE,
        "variance_weight": NOT_NEGATIVE,
    }

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        rank_weight: float = 1e-2,
        variance_weight: float = 1e-2,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-8,
    ) -> None:
        self.alpha = alpha
        self.rank_weight = rank_weight
        self.variance_weight = variance_weight
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _objective(self, training: TrainingSet) -> tuple[ScoreObjective, float]:
        n_labels = training.D.shape[1]
        percentiles = training.shared("percentiles", lambda: stats.rankdata(training.D, axis=1) / n_labels)
        variances = training.D.var(axis=1)

        def term(p: FloatArray) -> tuple[FloatArray, FloatArray]:
            centred = p - 1.0 / n_labels  # the mean of a distribution over c labels
            gap = np.einsum("ij,ij->i", centred, centred) / n_labels - variances
            values = self.variance_weight * gap**2 - self.rank_weight * np.einsum("ij,ij->i", percentiles, p)
            slope = (4.0 * self.variance_weight / n_labels * gap)[:, None] * centred - self.rank_weight * percentiles
            return values, slope

        # divergence and variance term are at least 0, and the percentile average is at most the largest percentile
        largest = float(training.weight @ percentiles.max(axis=1))
        return mean_of(divergence_plus(training.D, term), training.D, training.weight), -self.rank_weight * largest

"""LDLM: the label distribution learning machine (Wang and Geng, 2021).

Errors below a margin cost nothing; the margin of the other labels is that between the second and the third of each row:

    mean max(0, ‖e_i − p_i‖₁ − ρ) + λ_m mean Σ_{j≠first} max(0, ρ − (p_i,first − p_ij))
    + λ_r mean max(0, Σ_{j≠first} |d_ij − p_ij| − ρ_i) + alpha/2 ‖W‖²,        ρ_i = d_i(2) − d_i(3).
"""

from typing import ClassVar

import numpy as np

from skldl._parameters import NOT_NEGATIVE, POSITIVE
from skldl._typing import FloatArray
from skldl.decision._terms import TopLabels, absolute_error, insensitive, margin_to_all
from skldl.losses._linear_softmax import (
    LinearSoftmaxLDL,
    ScoreObjective,
    TrainingSet,
    mean_of,
)
from skldl.losses._rows import through_softmax


class LDLM(LinearSoftmaxLDL):
    r"""Label distribution learning machine: insensitive absolute errors and a large margin (LDLM).

    It minimises, with p = softmax(Wᵀx + b), the one-hot row :math:`e_i` of the label (1) with the largest true degree,
    :math:`\rho_i = d_{i(2)} - d_{i(3)}` and means over rows,

    .. math:: \overline{\max(0, \lVert e_i - p_i \rVert_1 - \rho)}
        + \mathtt{margin\_weight}\; \overline{\textstyle\sum_{j \neq (1)} \max(0, \rho - p_{i(1)} + p_{ij})}
        + \mathtt{rest\_weight}\; \overline{\max\big(0, \textstyle\sum_{j \neq (1)} |d_{ij} - p_{ij}| - \rho_i\big)}
        + \frac{\mathtt{alpha}}{2} \lVert W \rVert^2.

    ``predict`` returns distributions; the decision is their largest degree.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the squared penalty on the weights. The paper has a sum over n rows in place of the mean: its
        penalty is n · alpha.
    margin_weight : float, default=1.0
        Weight of the margin term.
    rest_weight : float, default=1.0
        Weight of the error in the other labels.
    rho : float, default=0.01
        Margin.
    fit_intercept : bool, default=False
        Whether to learn one free score for each label, without penalty.
    smoothing : float, default=1e-3
        Scale at which absolute values and max(0, ·) are smoothed; the paper's objective is the limit 0.
    max_iter : int, default=1000
        Largest number of steps.
    tol : float, default=1e-9
        Bound on the excess of the objective over the optimum at which the search ends.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights; each column sums to zero.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts, which sum to zero.
    n_iter_ : int
        Number of steps after the first phase.
    loss_curve_ : list of float
        Objective after the first phase and after each step.

    See Also
    --------
    skldl.metrics.error_probability : The measure that goes with a decision for one label.
    skldl.LDLClassifier : Turns any label distribution learner into a classifier.

    Notes
    -----
    Checked against the authors' code; there the intercept is penalised like a weight. With two labels there is no
    third: ρ_i is the degree of the second.

    References
    ----------
    .. [1] J. Wang and X. Geng, "Label distribution learning machine", ICML 2021.

    Examples
    --------
    >>> from skldl.decision import LDLM
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.1, 0.3, 0.6]]
    >>> LDLM().fit(X, D).predict(X).argmax(axis=1)
    array([0, 0, 2, 2])
    """

    _constraints: ClassVar = {
        **LinearSoftmaxLDL._constraints,
        "margin_weight": NOT_NEGATIVE,
        "rest_weight": NOT_NEGATIVE,
        "rho": POSITIVE,
        "smoothing": POSITIVE,
    }

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        margin_weight: float = 1.0,
        rest_weight: float = 1.0,
        rho: float = 0.01,
        fit_intercept: bool = False,
        smoothing: float = 1e-3,
        max_iter: int = 1000,
        tol: float = 1e-9,
    ) -> None:
        self.alpha = alpha
        self.margin_weight = margin_weight
        self.rest_weight = rest_weight
        self.rho = rho
        self.fit_intercept = fit_intercept
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol

    def _objective(self, training: TrainingSet) -> tuple[ScoreObjective, float]:
        top = training.shared("top labels", lambda: TopLabels.of(training.D))
        others = 1.0 - top.one_hot

        def loss(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
            p = np.exp(log_p)
            values, slope = insensitive(*absolute_error(p, top.one_hot, self.smoothing), self.rho, self.smoothing)
            margin, margin_slope = margin_to_all(p, top, self.rho, self.smoothing)
            rest, rest_slope = insensitive(*absolute_error(p, d, self.smoothing, others), top.gap, self.smoothing)
            values = values + self.margin_weight * margin + self.rest_weight * rest
            slope = slope + self.margin_weight * margin_slope + self.rest_weight * rest_slope
            return values, through_softmax(p, slope)

        return mean_of(loss, training.D, training.weight), 0.0

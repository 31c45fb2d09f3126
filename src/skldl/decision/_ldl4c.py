"""LDL4C: label distribution learning for classification (Wang and Geng, 2019).

The decision is the label with the largest predicted degree. Absolute errors are weighted by the entropy of the true
distribution, and the top label should exceed the second by a margin ρ:

    mean H(d_i) ‖d_i − p_i‖₁ + λ mean max(0, 1 − (p_i,first − p_i,second) / ρ) + alpha/2 ‖W‖².
"""

from typing import ClassVar

import numpy as np

from skldl.decision._terms import TopLabels, absolute_error, margin_to_second
from skldl.losses._linear_softmax import (
    LinearSoftmaxLDL,
    ScoreObjective,
    TrainingSet,
    mean_of,
)
from skldl.losses._rows import through_softmax
from skldl.utils.parameters import NOT_NEGATIVE, POSITIVE
from skldl.utils.simplex import entropy
from skldl.utils.typing import FloatArray


class LDL4C(LinearSoftmaxLDL):
    r"""Linear softmax model for decisions: weighted absolute error and a large margin (LDL4C).

    It minimises, with p = softmax(Wᵀx + b), entropy H and means over rows,

    .. math:: \overline{H(d_i) \lVert d_i - p_i \rVert_1} + \mathtt{margin\_weight}\;
        \overline{\max\big(0, 1 - (p_{i(1)} - p_{i(2)}) / \rho\big)}
        + \frac{\mathtt{alpha}}{2} \lVert W \rVert^2,

    where (1) and (2) are the labels with the two largest true degrees. ``predict`` returns distributions; the decision
    is their largest degree.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the squared penalty on the weights; "auto" chooses it by generalised cross-validation of the model
        linearised at the mean distribution, so that the unit of the features hardly matters. The paper has a sum over n
        rows in place of the mean and no factor ½: its λ2 is n · alpha / 2.
    margin_weight : float, default=1e-2
        Weight of the margin term, λ1 of the paper.
    rho : float, default=0.01
        Margin.
    fit_intercept : bool, default=True
        Whether to learn one free score for each label, without penalty. Without it a penalty pulls the predictions to
        the uniform distribution in place of the mean.
    smoothing : float, default=1e-3
        Scale at which absolute values and max(0, ·) are smoothed; the paper's objective is the limit 0.
    max_iter : int, default=1000
        Largest number of steps.
    tol : float, default=1e-9
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

    See Also
    --------
    skldl.metrics.error_probability : The measure for decisions for one label.
    skldl.LDLClassifier : Turns any label distribution learner into a classifier.

    Notes
    -----
    The paper's text and the authors' code were not available; the objective follows its citations. The entropy is in
    nats.

    References
    ----------
    .. [1] J. Wang and X. Geng, "Classification with label distribution learning", IJCAI 2019.

    Examples
    --------
    >>> from skldl.decision import LDL4C
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.1, 0.3, 0.6]]
    >>> LDL4C().fit(X, D).predict(X).argmax(axis=1)
    array([0, 0, 2, 2])
    """

    _constraints: ClassVar = {
        **LinearSoftmaxLDL._constraints,
        "margin_weight": NOT_NEGATIVE,
        "rho": POSITIVE,
        "smoothing": POSITIVE,
    }

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        margin_weight: float = 1e-2,
        rho: float = 0.01,
        fit_intercept: bool = True,
        smoothing: float = 1e-3,
        max_iter: int = 1000,
        tol: float = 1e-9,
    ) -> None:
        self.alpha = alpha
        self.margin_weight = margin_weight
        self.rho = rho
        self.fit_intercept = fit_intercept
        self.smoothing = smoothing
        self.max_iter = max_iter
        self.tol = tol

    def _objective(self, training: TrainingSet) -> tuple[ScoreObjective, float]:
        top = training.shared("top labels", lambda: TopLabels.of(training.D))
        uncertainty = entropy(training.D)

        def loss(log_p: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
            p = np.exp(log_p)
            error, slope = absolute_error(p, d, self.smoothing)
            margin, margin_slope = margin_to_second(p, top, self.rho, self.smoothing)
            slope = uncertainty[:, None] * slope + self.margin_weight * margin_slope
            return uncertainty * error + self.margin_weight * margin, through_softmax(p, slope)

        return mean_of(loss, training.D, training.weight), 0.0

"""`SmoothLossLDL`: the maximum entropy model with any smooth loss, such as losses for ordered labels."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from skldl.losses._linear_softmax import LinearSoftmaxLDL, ScoreObjective, TrainingSet, mean_of
from skldl.losses._rows import LOSS, RowLoss, divergence_plus, resolve_loss


class SmoothLossLDL(LinearSoftmaxLDL):
    r"""Maximum entropy model p = softmax(Wᵀx + b) fitted to any smooth loss.

    It minimises the weighted mean of the loss over rows plus :math:`\frac{\mathtt{alpha}}{2} \lVert W \rVert^2`. With
    the Kullback-Leibler divergence it is SA-BFGS. The other losses depend on the order of the labels: an error between
    neighbouring labels costs less than one between distant labels. With running sums :math:`F_j = \sum_{k \leq j} d_k`
    and :math:`\hat F_j` of the prediction they are

    - ``"cad"``, the cumulative absolute distance :math:`\sum_j |F_j - \hat F_j|` [1]_;
    - ``"qfd2"``, the quadratic form distance :math:`(d - p)^\top A (d - p)`, :math:`A_{jk} = 1 - |j - k|/(c - 1)` [1]_;
    - ``"cjs"``, the cumulative Jensen-Shannon divergence :math:`\frac12 \sum_j F_j \ln \frac{2 F_j}{F_j + \hat F_j} +
      \hat F_j \ln \frac{2 \hat F_j}{F_j + \hat F_j}` [1]_;
    - ``"expectation"``, :math:`|\sum_j j p_j - \sum_j j d_j|`; ``"dldl_v2"`` is the divergence plus this term [2]_;
    - ``"unimodal"``, :math:`\sum_j \max(0, -(p_j - p_{j+1})\,\mathrm{sgn}(j - y))` with y the top label of d [3]_;
    - ``"concentrated"``, :math:`\frac12 \ln v + (\mu - y)^2 / 2v` with mean μ and variance v of the prediction and y
      the mean of d [3]_;
    - ``"squared_error"``, :math:`\lVert p - d \rVert^2`, for labels without order.

    Parameters
    ----------
    loss : str, mapping from str to float, or callable, default="kullback_leibler"
        A name from the list above; a mapping from names to coefficients, such as ``{"kullback_leibler": 1, "unimodal":
        0.1}``, for their sum; or a function from (log p, d), both (n_rows, n_labels), to one value per row and the
        gradient in the scores (n_rows, n_labels). "expectation", "unimodal" and "concentrated" are penalties: alone
        they fit no distribution, and are rejected without another loss beside them.
    alpha : float or "auto", default="auto"
        Strength of the squared penalty on the weights, not on the intercept; "auto" chooses it by generalised
        cross-validation of the model linearised at the mean distribution, so that the unit of the features hardly
        matters.
    fit_intercept : bool, default=True
        Whether to learn one free score for each label. Without it a penalty pulls the predictions to the uniform
        distribution in place of the mean.
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

    See Also
    --------
    skldl.SABFGS : The Kullback-Leibler divergence alone, with all its options.

    Notes
    -----
    The search starts near the optimum of the cross-entropy. All losses but the divergence are not convex in W, so the
    result is a local optimum. Absolute values and max(0, ·) are smoothed at a scale of 1e-3. Names and formulae of the
    losses follow the papers as cited by their successors; whether CJS of [1]_ has the factor ½ could not be checked.
    In [2]_ and [3]_ the target y is one label; with one-hot rows the terms here are theirs.

    References
    ----------
    .. [1] C. Wen, X. Zhang, X. Yao and J. Yang, "Ordinal label distribution learning", ICCV 2023.
    .. [2] B.-B. Gao, H.-Y. Zhou, J. Wu and X. Geng, "Age estimation using expectation of label distribution
       learning", IJCAI 2018.
    .. [3] Q. Li et al., "Unimodal-concentrated loss: fully adaptive label distribution learning for ordinal
       regression", CVPR 2022.

    Examples
    --------
    >>> from skldl.losses import SmoothLossLDL
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]]
    >>> SmoothLossLDL("cad", alpha=1e-6).fit(X, D).predict([[1.0, 1.0]]).round(1)
    array([[0.3, 0.4, 0.3]])
    """

    _constraints: ClassVar = {"loss": LOSS, **LinearSoftmaxLDL._constraints}

    def __init__(
        self,
        loss: str | Mapping[str, float] | RowLoss = "kullback_leibler",
        *,
        alpha: float | str = "auto",
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-8,
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _objective(self, training: TrainingSet) -> tuple[ScoreObjective, float]:
        # a user's function and the Gaussian likelihood of "concentrated" have no known lower bound
        lower_bound = -np.inf if callable(self.loss) or "concentrated" in self.loss else 0.0
        plain = isinstance(self.loss, str) and self.loss == "kullback_leibler"
        loss = divergence_plus(training.D) if plain else resolve_loss(self.loss)
        return mean_of(loss, training.D, training.weight), lower_bound

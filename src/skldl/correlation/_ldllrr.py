"""LDL-LRR: label distribution learning by maintaining the label ranking relation (Jia et al., 2023).

For a pair of labels the predicted probability that label j comes first is σ(κ (p_j − p_k)), κ = 100. The
cross-entropy of that with the true order, weighted by the squared gap of the true degrees, is added to the divergence:

    mean KL(d_i ‖ p_i) + λ mean Σ_{j<k} (d_ij − d_ik)² ln(1 + exp(−κ s_jk (p_ij − p_ik))) + alpha/2 ‖W‖²

with s_jk = sgn(d_ij − d_ik). The paper sums over all ordered pairs and halves: each unordered pair then counts once.
"""

from typing import ClassVar

import numpy as np
from scipy import special

from skldl.losses._linear_softmax import (
    LinearSoftmaxLDL,
    ScoreObjective,
    TrainingSet,
    mean_of,
)
from skldl.losses._rows import divergence_plus
from skldl.utils.parameters import NOT_NEGATIVE, POSITIVE
from skldl.utils.typing import FloatArray

BLOCK_CELLS = 1 << 16  # numbers in a temporary array (512 KiB), which stays in the cache
MIN_BLOCK_ROWS = 64  # so that the work in NumPy outweighs the cost of calling it


def ranking_loss(p: FloatArray, d: FloatArray, sharpness: float) -> tuple[FloatArray, FloatArray]:
    """Σ_{j<k} (d_j − d_k)² ln(1 + exp(−κ s_jk (p_j − p_k))) of each row and its slope in p.

    Each label is compared with all later ones, in blocks of rows, so that temporary arrays are no larger than a block.
    Labels are the first axis: operations over rows then run over adjacent numbers.
    """
    n_samples, n_labels = p.shape
    values, slope = np.zeros(n_samples), np.zeros_like(p)
    size = max(MIN_BLOCK_ROWS, BLOCK_CELLS // n_labels)
    for first in range(0, n_samples, size):
        rows = slice(first, first + size)
        pred, true = np.ascontiguousarray(p[rows].T), np.ascontiguousarray(d[rows].T)
        of_block = np.zeros_like(pred)
        for j in range(n_labels - 1):
            gap = true[j] - true[j + 1 :]
            sign = np.sign(gap)
            gap *= gap
            margin = sharpness * sign * (pred[j] - pred[j + 1 :])
            values[rows] += np.einsum("ki,ki->i", gap, np.logaddexp(0.0, -margin))
            gap *= -sharpness * sign * special.expit(-margin)
            of_block[j] += gap.sum(axis=0)
            of_block[j + 1 :] -= gap
        slope[rows] = of_block.T
    return values, slope


class LDLLRR(LinearSoftmaxLDL):
    r"""Maximum entropy model that keeps the order of the labels (LDL-LRR).

    It minimises, with p = softmax(Wᵀx + b) and means over rows,

    .. math:: \overline{\mathrm{KL}(d_i \,\|\, p_i)} + \frac{\mathtt{ranking\_weight}}{2}\;
        \overline{\sum_{j,k} (d_{ij} - d_{ik})^2\, \mathrm{CE}\big([d_{ij} > d_{ik}],
        \sigma(\mathtt{sharpness}\,(p_{ij} - p_{ik}))\big)} + \frac{\mathtt{alpha}}{2} \lVert W \rVert^2.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the squared penalty on the weights; "auto" chooses it by generalised cross-validation of the model
        linearised at the mean distribution, so that the unit of the features hardly matters, β of the paper.
    ranking_weight : float, default=1e-2
        Weight of the ranking loss, λ of the paper.
    sharpness : float, default=100.0
        How steeply a difference of degrees becomes a preference; 100 is the paper's.
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
    With ``ranking_weight=0`` it is SA-BFGS. The cost of an evaluation grows with the square of the number of labels.
    The formula was not checked against the authors' code, of which no copy was found.

    References
    ----------
    .. [1] X. Jia, X. Shen, W. Li, Y. Lu and J. Zhu, "Label distribution learning by maintaining label ranking
       relation", IEEE Transactions on Knowledge and Data Engineering 35(2), 2023.

    Examples
    --------
    >>> from skldl.correlation import LDLLRR
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]]
    >>> LDLLRR().fit(X, D).predict([[1.0, 1.0]]).round(1)
    array([[0.3, 0.4, 0.3]])
    """

    _constraints: ClassVar = {
        **LinearSoftmaxLDL._constraints,
        "ranking_weight": NOT_NEGATIVE,
        "sharpness": POSITIVE,
    }

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        ranking_weight: float = 1e-2,
        sharpness: float = 100.0,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-8,
    ) -> None:
        self.alpha = alpha
        self.ranking_weight = ranking_weight
        self.sharpness = sharpness
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _objective(self, training: TrainingSet) -> tuple[ScoreObjective, float]:
        def term(p: FloatArray) -> tuple[FloatArray, FloatArray]:
            values, slope = ranking_loss(p, training.D, self.sharpness)
            return self.ranking_weight * values, self.ranking_weight * slope

        loss = divergence_plus(training.D, term if self.ranking_weight > 0 else None)
        return mean_of(loss, training.D, training.weight), 0.0

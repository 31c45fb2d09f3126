"""LDLLC: label distribution learning by exploiting label correlations (Jia et al., 2018).

The weight vectors of two labels should be close if the labels are positively correlated, and far apart if negatively:

    mean KL(d_i ‖ p_i) + alpha/2 ‖W‖² + λ Σ_{i<j} sgn(ρ_ij) ‖w_i − w_j‖,        ρ_ij = Pearson(w_i, w_j).

The objective is discontinuous where a correlation changes its sign. The fit therefore alternates between computing the
signs from the weights and solving a smooth problem with fixed signs, until the signs no longer change.
"""

from typing import Any, ClassVar

import numpy as np

from skldl.losses._linear_softmax import (
    LinearSoftmaxLDL,
    Penalty,
    ScoreObjective,
    TrainingSet,
    fit_linear,
    mean_of,
)
from skldl.losses._rows import divergence_plus
from skldl.utils.parameters import COUNT, NOT_NEGATIVE
from skldl.utils.typing import FloatArray

SMOOTHING = 1e-6  # ε in √(‖v‖² + ε²) − ε, which replaces ‖v‖; chosen by hand, far below distances of weights
MIN_CORRELATION = 1e-12  # smaller correlations are rounding errors, whose sign is arbitrary


def correlation_signs(W: FloatArray) -> FloatArray:
    """sgn of the Pearson correlation between the columns of W; 0 on the diagonal and for constant columns."""
    centred = W - W.mean(axis=0)
    products = centred.T @ centred
    lengths = np.sqrt(np.diag(products))
    signs = np.sign(np.where(np.abs(products) <= MIN_CORRELATION * np.multiply.outer(lengths, lengths), 0.0, products))
    np.fill_diagonal(signs, 0.0)
    return np.asarray(signs)


def signed_distances(signs: FloatArray, strength: float) -> Penalty:
    """strength · Σ_{i<j} signs_ij ‖u_i − u_j‖ over the columns of U, smoothed, and its gradient."""

    def penalty(U: FloatArray) -> tuple[float, FloatArray]:
        products = U.T @ U
        squares = np.diag(products)[:, None] + np.diag(products) - 2.0 * products
        roots = np.sqrt(np.maximum(squares, 0.0) + SMOOTHING**2)  # squares are negative only by rounding
        pull = strength * signs / roots
        value = 0.5 * strength * float(np.vdot(signs, roots - SMOOTHING))
        return value, U * pull.sum(axis=0) - U @ pull

    return penalty


class LDLLC(LinearSoftmaxLDL):
    r"""Maximum entropy model whose weight vectors follow the correlation of the labels (LDLLC).

    It minimises, with p = softmax(Wᵀx + b) and the mean over rows,

    .. math:: \overline{\mathrm{KL}(d_i \,\|\, p_i)} + \frac{\mathtt{alpha}}{2} \lVert W \rVert^2
        + \mathtt{correlation\_weight} \sum_{i<j} \mathrm{sgn}(\rho_{ij}) \lVert w_i - w_j \rVert,

    where :math:`\rho_{ij}` is the Pearson correlation between the weight vectors of labels i and j. The first signs are
    those of the solution of SA-BFGS; they are computed again from each solution until they no longer change.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the squared penalty on the weights; "auto" chooses it by generalised cross-validation of the model
        linearised at the mean distribution, so that the unit of the features hardly matters. The paper has a sum over n
        rows in place of the mean and no factor ½: its λ1 is n · alpha / 2, its λ2 is n · correlation_weight.
    correlation_weight : float, default=1e-7
        Weight of the distances.
    max_rounds : int, default=10
        Maximum number of times that the signs are computed.
    fit_intercept : bool, default=True
        Whether to learn one free score for each label, without penalty. Without it a penalty pulls the predictions to
        the uniform distribution in place of the mean.
    max_iter : int, default=1000
        Largest number of steps of each round.
    tol : float, default=1e-8
        Estimated excess of the objective over the optimum at which a round ends; the true excess can be larger, see
        `skldl.SABFGS`.

    Attributes
    ----------
    alpha_ : float
        The penalty that was used.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights; each column sums to zero.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts, which sum to zero.
    signs_ : ndarray of shape (n_labels, n_labels)
        The signs of the last round.
    n_rounds_ : int
        Number of rounds.
    n_iter_ : int
        Number of steps of the last round.
    loss_curve_ : list of float
        Objective of the last round, before and after each step.

    Notes
    -----
    With ``correlation_weight=0`` it is SA-BFGS. A negative sign makes the objective concave in a direction; without
    ``alpha`` it may then be unbounded below. Adding one vector to all columns of W does not change the predictions, but
    the correlations: these are computed from the weights as stored, whose mean over labels is zero, as the squared
    penalty requires. The paper's text was not available; whether it computes the signs again at each step, as
    python-ldl does, could not be checked.

    References
    ----------
    .. [1] X. Jia, W. Li, J. Liu and Y. Zhang, "Label distribution learning by exploiting label correlations", AAAI
       2018.

    Examples
    --------
    >>> from skldl.correlation import LDLLC
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]]
    >>> LDLLC().fit(X, D).predict([[1.0, 1.0]]).round(1)
    array([[0.3, 0.4, 0.3]])
    """

    _constraints: ClassVar = {
        **LinearSoftmaxLDL._constraints,
        "correlation_weight": NOT_NEGATIVE,
        "max_rounds": COUNT,
    }

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        correlation_weight: float = 1e-7,
        max_rounds: int = 10,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-8,
    ) -> None:
        self.alpha = alpha
        self.correlation_weight = correlation_weight
        self.max_rounds = max_rounds
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _objective(self, training: TrainingSet) -> tuple[ScoreObjective, float]:
        return mean_of(divergence_plus(training.D), training.D, training.weight), 0.0

    def _fit_shared(self, training: TrainingSet) -> None:
        objective, lower_bound = self._objective(training)
        # columns keep their scale, so that distances between weights of the design are those of the features
        factorisation = training.factorisation(scale_free=False)
        self.alpha_ = training.alpha(self.alpha)
        settings: dict[str, Any] = {"alpha": self.alpha_, "tol": self.tol, "max_iter": self.max_iter}
        fit = training.shared(
            ("plain", *settings.values()),
            lambda: fit_linear(
                factorisation, training.D, training.weight, objective, lower_bound=lower_bound, **settings
            ),
        )
        signs, n_rounds = correlation_signs(fit.W), 0
        while self.correlation_weight > 0:
            fit = fit_linear(
                factorisation,
                training.D,
                training.weight,
                objective,
                penalty=signed_distances(signs, self.correlation_weight),
                start=fit.parameters,
                **settings,
            )
            n_rounds += 1
            signs_now = correlation_signs(fit.W)
            if n_rounds == self.max_rounds or np.array_equal(signs, signs_now):
                break
            signs = signs_now
        self.signs_, self.n_rounds_ = signs, n_rounds
        self._store(fit)

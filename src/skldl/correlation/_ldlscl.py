"""LDL-SCL: label distribution learning by exploiting sample correlations locally (Zheng, Jia and Li, 2018).

Each training row has a code c_i > 0, one number for each cluster of the distributions, that measures how much the
cluster influences it. Codes are additional features, s_i = Θᵀx_i + Vᵀc_i, and are learned with the weights:

    mean KL(d_i ‖ p_i) + alpha/2 ‖Θ‖² + δ/2 ‖V‖² + λ mean Σ_j c_ij ‖p_i − p̄_j‖² + µ mean Σ_j 1/c_ij

with the centres p̄_j of the clusters. The fit alternates: weights for fixed codes, codes for fixed weights (one small
problem for each row, solved for all rows together), then the barrier µ falls by a factor of ten. New rows get their
codes from a ridge regression of the codes on the features.
"""

from typing import Any, ClassVar

import numpy as np

from skldl.correlation._clusters import cluster_rows
from skldl.correlation._joined import column_penalties, column_scale, join, split_parameters
from skldl.losses._automatic_alpha import ALPHA, ridge_penalty
from skldl.losses._linear_softmax import (
    LinearSoftmaxLDL,
    TrainingSet,
    fit_linear,
    mean_of,
)
from skldl.losses._rows import PredictionTerm, divergence_plus, through_softmax
from skldl.maxent._whitening import Factorisation
from skldl.utils.parameters import COUNT, NOT_NEGATIVE, POSITIVE
from skldl.utils.simplex import log_softmax, softmax
from skldl.utils.typing import FloatArray

FIRST_CODES = (1.0, 0.1)  # of a row's own cluster and of the others: near one for its own, as in the authors' code
BARRIER_FACTOR = 0.1  # of the barrier from round to round, as in the authors' code
MAX_NEWTON_STEPS = 100  # chosen by hand: quadratic convergence needs far fewer
MAX_STEP = 2.0  # of the logarithm of a code: a Newton step far from the solution may overflow exp
MIN_DECREMENT = 1e-16  # half the squared Newton decrement, relative to the value: below it no step lowers the value
SUFFICIENT_DECREASE = 1e-4  # the usual constant of Armijo's condition
MIN_LENGTH = 1e-6  # fraction of a Newton step: if no longer one lowers the value, the search of the row ends


def attraction(codes: FloatArray, centres: FloatArray, strength: float) -> PredictionTerm:
    """Distance term λ Σ_j c_ij ‖p_i − p̄_j‖² and its slope in p, for fixed codes."""
    totals, pull = codes.sum(axis=1), codes @ centres
    constants = codes @ (centres**2).sum(axis=1)

    def term(p: FloatArray) -> tuple[FloatArray, FloatArray]:
        values = strength * (totals * (p**2).sum(axis=1) - 2.0 * np.einsum("ij,ij->i", p, pull) + constants)
        return values, 2.0 * strength * (totals[:, None] * p - pull)

    return term


def code_loss(
    S: FloatArray, V: FloatArray, codes: FloatArray, D: FloatArray, centres: FloatArray, strength: float, barrier: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Terms of the objective that depend on the codes: values, gradient and curvature in the logarithms of the codes.

    S are the scores without the codes.

    The curvature (n_samples, n_clusters, n_clusters) is c_j c_k v_jᵀ (diag p − p pᵀ) v_k, plus 2µ/c_j and the gradient,
    where it is positive, on the diagonal. It leaves out the second derivatives of the attraction, which could make it
    indefinite.
    """
    log_p = log_softmax(S + codes @ V)
    p = np.exp(log_p)
    distances = (p**2).sum(axis=1)[:, None] - 2.0 * p @ centres.T + (centres**2).sum(axis=1)
    distances = np.maximum(distances, 0.0)  # negative only by rounding
    values = -(D * log_p).sum(axis=1) + strength * (codes * distances).sum(axis=1) + barrier * (1.0 / codes).sum(axis=1)
    slope = 2.0 * strength * (codes.sum(axis=1)[:, None] * p - codes @ centres)
    of_codes = (p - D + through_softmax(p, slope)) @ V.T + strength * distances - barrier / codes**2
    mean = p @ V.T
    gradient = codes * of_codes
    # Σ_l p_l v_jl v_kl for all pairs of clusters as one product of matrices
    curvature = (p @ (V[:, None] * V).reshape(-1, V.shape[1]).T).reshape(len(p), len(V), len(V))
    curvature -= mean[:, :, None] * mean[:, None, :]
    curvature *= codes[:, :, None] * codes[:, None, :]
    diagonal = np.arange(len(V))
    curvature[:, diagonal, diagonal] += 2.0 * barrier / codes + np.maximum(gradient, 0.0)
    return values, gradient, curvature


def minimise_codes(
    S: FloatArray, V: FloatArray, codes: FloatArray, D: FloatArray, centres: FloatArray, strength: float, barrier: float
) -> FloatArray:
    """Minimise over the logarithms of the codes of each row, by Newton's method with step halving, all rows at once."""
    codes = codes.copy()
    active = np.arange(len(codes))
    values, gradient, curvature = code_loss(S, V, codes, D, centres, strength, barrier)
    for _ in range(MAX_NEWTON_STEPS):
        step = -np.linalg.solve(curvature, gradient[:, :, None])[:, :, 0]
        decrement = -0.5 * np.einsum("ij,ij->i", step, gradient)
        longest = np.maximum(np.abs(step).max(axis=1), 1e-300)  # 1e-300 avoids 0/0 at a minimum
        step *= np.minimum(1.0, MAX_STEP / longest)[:, None]
        going = decrement > MIN_DECREMENT * (1.0 + np.abs(values))
        active, step, before = active[going], step[going], values[going]
        if not len(active):
            break
        slope = 2.0 * decrement[going]
        length = np.ones(len(active))
        while True:
            trial = codes[active] * np.exp(length[:, None] * step)
            values, gradient, curvature = code_loss(S[active], V, trial, D[active], centres, strength, barrier)
            # 1e-14: rounding of the value must not shorten a step near the minimum
            rising = values > before - SUFFICIENT_DECREASE * length * np.minimum(slope, 1.0) + 1e-14 * np.abs(before)
            rising &= length > MIN_LENGTH
            if not rising.any():
                break
            length[rising] *= 0.5
        moved = length > MIN_LENGTH
        codes[active[moved]] = trial[moved]
        active, values, gradient, curvature = active[moved], values[moved], gradient[moved], curvature[moved]
    return codes


class LDLSCL(LinearSoftmaxLDL):
    r"""Maximum entropy model with local codes of the samples (LDL-SCL).

    With codes :math:`c_i > 0` of the training rows, :math:`p = \mathrm{softmax}(\Theta^\top x + V^\top c)`, centres
    :math:`\bar p_j` of the clusters of the distributions and means over rows it minimises

    .. math:: \overline{\mathrm{KL}(d_i \,\|\, p_i)} + \frac{\mathtt{alpha}}{2} \lVert \Theta \rVert^2
        + \frac{\mathtt{alpha\_codes}}{2} \lVert V \rVert^2
        + \mathtt{local\_weight}\; \overline{\textstyle\sum_j c_{ij} \lVert p_i - \bar p_j \rVert^2}
        + \mu\, \overline{\textstyle\sum_j 1 / c_{ij}}

    in turn over Θ and V and over the codes, with μ = ``barrier``, ``barrier / 10``, … from round to round. New rows get
    codes by ridge regression from the features, with the penalty from generalised cross-validation.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the squared penalty on Θ; "auto" chooses it by generalised cross-validation of the model linearised
        at the mean distribution, so that the unit of the features hardly matters. The paper has sums over n rows in
        place of the means and no factor ½: its λ1 is n · alpha / 2 and its λ2 n · alpha_codes / 2; λ3 is
        ``local_weight``.
    alpha_codes : float, default=1e-3
        Strength of the squared penalty on V.
    local_weight : float, default=1e-2
        Weight of the distances to the centres.
    n_clusters : int, default=5
        Number of clusters, and so the length of a code.
    barrier : float, default=0.1
        First value of μ, which keeps codes positive.
    n_rounds : int, default=5
        Number of rounds, each with a tenth of the barrier of the one before; the weights are fitted once more at the
        end.
    max_iter : int, default=1000
        Largest number of steps for the weights in each round.
    tol : float, default=1e-8
        Estimated excess of the objective over the optimum at which the search for the weights ends; the true excess can
        be larger, see `skldl.SABFGS`.

    Attributes
    ----------
    alpha_ : float
        The penalty that was used.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights of the features: Θᵀ.
    code_coef_ : ndarray of shape (n_labels, n_found)
        Weights of the codes: Vᵀ.
    codes_ : ndarray of shape (n_samples, n_found)
        Codes of the training rows.
    centres_ : ndarray of shape (n_found, n_labels)
        Centres of the clusters.
    regression_coef_ : ndarray of shape (n_found, n_features)
        Weights by which features predict codes.
    regression_intercept_ : ndarray of shape (n_found,)
        Intercepts of that regression.
    intercept_ : ndarray of shape (n_labels,)
        Intercept of each label.
    n_iter_ : int
        Number of steps for the weights in the last round.
    loss_curve_ : list of float
        Objective without the barrier in the last round, before and after each step.

    Notes
    -----
    Checked against the authors' code: objective, k-means on D, codes near one for a row's own cluster at the start,
    regression of the codes, barrier lowered by ten in each step. Different here: a step minimises over weights and over
    codes where the authors take one gradient step; μ begins at 0.1 in place of 1; the gradient of the attraction is
    that of the objective, which the one in their code is not; the regression has a penalty, without which codes of new
    rows are far off where there are many features.

    References
    ----------
    .. [1] X. Zheng, X. Jia and W. Li, "Label distribution learning by exploiting sample correlations locally", AAAI
       2018.
    .. [2] X. Jia, Z. Li, X. Zheng, W. Li and S.-J. Huang, "Label distribution learning with label correlations on local
       samples", IEEE Transactions on Knowledge and Data Engineering 33(4), 2021.

    Examples
    --------
    >>> from skldl.correlation import LDLSCL
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]
    >>> D = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]]
    >>> LDLSCL(n_clusters=2).fit(X, D).predict([[1.5, 1.0]]).round(1)
    array([[0.5, 0.5]])
    """

    fit_intercept = False  # the codes hold what an intercept would

    _constraints: ClassVar = {
        "alpha": ALPHA,
        "alpha_codes": NOT_NEGATIVE,
        "local_weight": POSITIVE,
        "n_clusters": COUNT,
        "barrier": POSITIVE,
        "n_rounds": COUNT,
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
    }

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        alpha_codes: float = 1e-3,
        local_weight: float = 1e-2,
        n_clusters: int = 5,
        barrier: float = 0.1,
        n_rounds: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-8,
    ) -> None:
        self.alpha = alpha
        self.alpha_codes = alpha_codes
        self.local_weight = local_weight
        self.n_clusters = n_clusters
        self.barrier = barrier
        self.n_rounds = n_rounds
        self.max_iter = max_iter
        self.tol = tol

    def _fit_shared(self, training: TrainingSet) -> None:
        D, weight = training.D, training.weight
        assignment, centres = training.shared(
            ("clusters", int(self.n_clusters)), lambda: cluster_rows(D, weight, int(self.n_clusters))
        )
        plain = training.factorisation(scale_free=False)
        n_columns = plain.design.shape[1]
        self.alpha_ = training.alpha(self.alpha)
        scale = column_scale(self.alpha_, self.alpha_codes)
        codes = np.where(np.arange(len(centres)) == assignment[:, None], *FIRST_CODES)
        barrier, start = float(self.barrier), None
        for number in range(self.n_rounds + 1):
            fit = fit_linear(
                join(plain, scale * codes, weight),
                D,
                weight,
                mean_of(divergence_plus(D, attraction(codes, centres, self.local_weight)), D, weight),
                alpha=column_penalties(plain, len(centres), self.alpha_, self.alpha_codes),
                tol=self.tol,
                max_iter=self.max_iter,
                start=start,
                lower_bound=0.0,
            )
            if number < self.n_rounds:
                start = fit.parameters
                S = np.asarray(plain.design @ start[:n_columns])
                codes = minimise_codes(S, scale * start[n_columns:], codes, D, centres, self.local_weight, barrier)
                barrier *= BARRIER_FACTOR
        fit.W, V, fit.b = split_parameters(fit.parameters, plain)
        self._store(fit)
        self.code_coef_ = np.ascontiguousarray(scale * V.T)
        self.codes_, self.centres_ = codes, centres
        self.regression_coef_, self.regression_intercept_ = _regress(training, codes)

    def _predict(self, X: Any) -> FloatArray:
        codes = np.asarray(X @ self.regression_coef_.T) + self.regression_intercept_
        return softmax(np.asarray(X @ self.coef_.T) + codes @ self.code_coef_.T)


def _regress(training: TrainingSet, codes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ridge regression of the codes on the features with a free intercept, penalty by generalised cross-validation."""

    def compute() -> Factorisation:
        return TrainingSet(training.X, training.D, training.weight, fit_intercept=True).factorisation(scale_free=False)

    factorisation = training.shared("factorisation of the regression", compute)
    mean = training.weight @ codes
    centred = codes - mean
    alpha = ridge_penalty(factorisation, centred, training.weight, np.ones(codes.shape[1]), training.n_different)
    whitening = factorisation.whitening(alpha, np.ones(1))
    moments = np.asarray(factorisation.design.T @ (centred * training.weight[:, None]))
    A = np.column_stack([whitening.solve(moment) for moment in moments.T])
    W, b = factorisation.to_features(np.vstack([A, mean - factorisation.centre @ A]))
    return np.ascontiguousarray(W.T), b

"""`DirichletLDL`: predictions are means of Dirichlet distributions, whose precision is learned, too.

With scores f = Wᵀx + b and concentrations a = 1 + softplus(f) the loss of a row is the expected divergence

    E_{p ~ Dir(a)} KL(d ‖ p) = Σ_j d_j ln d_j − Σ_j d_j (ψ(a_j) − ψ(a_0)),        a_0 = Σ_j a_j,

or minus the log density of d under Dir(a), plus a small multiple of KL(Dir(a) ‖ Dir(1)). Without the latter the
precision a_0 would grow without bound under the first loss: a sharper Dirichlet distribution with the same mean has a
smaller expected divergence. The first loss is linear in d apart from a constant, so it depends on the mean of the rows
alone and not on their spread; the second depends on both.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import special
from sklearn.utils.validation import check_is_fitted

from skldl.losses._automatic_alpha import ridge_penalty
from skldl.losses._linear_softmax import MIN_MEAN_DEGREE, LinearFit, LinearSoftmaxLDL, TrainingSet
from skldl.simplex import smooth_zeros
from skldl.utils.parameters import NOT_NEGATIVE, number, one_of
from skldl.utils.solvers import minimise
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_features

MAX_CONCENTRATION = 1e12  # beyond it slopes, about 1/a, are below the rounding error
MIN_SPREAD = 1e-6  # total variance of the rows, so that equal rows can be divided by; MAX_START limits the result
MIN_START_WEIGHT = 1e-3  # smaller weights of the prior start at the precision of this one
MAX_START = 1e3  # precision of the start: slopes of a larger one are tiny
MIN_EXCESS = 0.5  # of a concentration above 1 at the start: nearer to 1 softplus is flat

RowLossOfConcentrations = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


def expected_divergence(a: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E KL(d ‖ p) for p ~ Dir(a), one value per row, and its slope in a."""
    total = a.sum(axis=1, keepdims=True)
    values = special.xlogy(d, d) - d * (special.digamma(a) - special.digamma(total))
    return values.sum(axis=1), special.polygamma(1, total) - d * special.polygamma(1, a)


def negative_log_density(a: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
    """−ln of the density of Dir(a) at d, one value per row, and its slope in a; d must be positive."""
    total, log_d = a.sum(axis=1, keepdims=True), np.log(d)
    values = special.gammaln(a).sum(axis=1) - special.gammaln(total[:, 0]) - ((a - 1.0) * log_d).sum(axis=1)
    return values, special.digamma(a) - special.digamma(total) - log_d


def divergence_from_uniform(a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """KL(Dir(a) ‖ Dir(1)), one value per row, and its slope in a."""
    n_labels = a.shape[1]
    total = a.sum(axis=1, keepdims=True)
    values = special.gammaln(total[:, 0]) - special.gammaln(a).sum(axis=1) - special.gammaln(n_labels)
    values += ((a - 1.0) * (special.digamma(a) - special.digamma(total))).sum(axis=1)
    return values, (a - 1.0) * special.polygamma(1, a) - special.polygamma(1, total) * (total - n_labels)


class DirichletLDL(LinearSoftmaxLDL):
    r"""Linear model that predicts Dirichlet distributions: their means and their precisions.

    With concentrations :math:`a = 1 + \mathrm{softplus}(W^\top x + b)` and means over rows it minimises

    .. math:: \overline{\mathbb{E}_{p \sim \mathrm{Dir}(a_i)} \mathrm{KL}(d_i \,\|\, p)}
        + \mathtt{prior\_weight}\; \overline{\mathrm{KL}(\mathrm{Dir}(a_i) \,\|\, \mathrm{Dir}(1))}
        + \frac{\mathtt{alpha}}{2} \lVert W \rVert^2.

    With ``loss="likelihood"`` the first term is minus the log density of :math:`d_i` under :math:`\mathrm{Dir}(a_i)`.
    ``predict`` returns the mean :math:`a / a_0` of the Dirichlet distribution, `predict_precision` its precision
    :math:`a_0 = \sum_j a_j`: the variance of degree j is :math:`m_j (1 - m_j) / (a_0 + 1)` for mean m.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the squared penalty on the weights, not on the intercept; "auto" chooses it by generalised
        cross-validation of this model linearised at the mean distribution, so that neither the unit of the features
        nor that of the scores, which grow with the precision, matters much.
    loss : {"expected_divergence", "likelihood"}, default="expected_divergence"
        The expected divergence estimates the mean alone, and its precision depends on ``prior_weight``. The likelihood
        estimates how widely the true distributions scatter around the mean.
    prior_weight : float, default=1e-2
        Weight of the divergence from the uniform Dirichlet distribution; the precision under the expected divergence
        is about its inverse.
    floor : float, default=1e-4
        Fraction of the uniform distribution that the likelihood mixes into the true rows, whose zeros would make it
        infinite.
    fit_intercept : bool, default=True
        Whether to learn one free score for each label. Here a common shift of the scores changes the precision.
    max_iter : int, default=1000
        Largest number of steps.
    tol : float, default=1e-10
        Estimated excess of the objective over the optimum at which the search ends; the true excess can be larger,
        see `skldl.SABFGS`.

    Attributes
    ----------
    alpha_ : float
        The penalty that was used.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts.
    n_iter_ : int
        Number of steps.
    loss_curve_ : list of float
        Objective at the start and after each step.

    Notes
    -----
    The expected divergence is linear in d up to a constant: rows that agree and rows that scatter around the same mean
    give the same model. Use the likelihood if the precision should distinguish them. The divergence from the uniform
    Dirichlet distribution is that of evidential learning [1]_.

    References
    ----------
    .. [1] M. Sensoy, L. Kaplan and M. Kandemir, "Evidential deep learning to quantify classification uncertainty",
       NeurIPS 2018.

    Examples
    --------
    >>> from skldl.losses import DirichletLDL
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]]
    >>> model = DirichletLDL().fit(X, D)
    >>> model.predict([[1.5]]).round(1)
    array([[0.5, 0.5]])
    >>> model.predict_precision([[1.5]]).shape
    (1,)
    """

    _constraints: ClassVar = {
        **LinearSoftmaxLDL._constraints,
        "loss": one_of("expected_divergence", "likelihood"),
        "prior_weight": NOT_NEGATIVE,
        "floor": number(above=0, below=1),
    }

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        loss: Literal["expected_divergence", "likelihood"] = "expected_divergence",
        prior_weight: float = 1e-2,
        floor: float = 1e-4,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-10,
    ) -> None:
        self.alpha = alpha
        self.loss = loss
        self.prior_weight = prior_weight
        self.floor = floor
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _fit_shared(self, training: TrainingSet) -> None:
        D, weight = training.D, training.weight
        row_loss, lower_bound = expected_divergence, 0.0
        if self.loss == "likelihood":
            row_loss, lower_bound, D = negative_log_density, -np.inf, smooth_zeros(D, self.floor)
        scores = self._scores_of_mean(D, weight)
        curvature, response = linearised(row_loss, self.prior_weight, scores, D, weight)
        self.alpha_ = alpha = self._strength(training, curvature, response)
        factorisation = training.factorisation(scale_free=alpha == 0)
        design = factorisation.design
        n_columns, n_labels = design.shape[1], D.shape[1]
        # not centred over labels: a common shift of the scores matters here
        whitening = factorisation.whitening(alpha, curvature, centred=False)
        shape = (n_columns + (factorisation.centre is not None), n_labels)

        def evaluate(flat: FloatArray) -> tuple[float, FloatArray]:
            parameters = whitening.expand(flat.reshape(shape))
            U = parameters[:n_columns]
            scores = np.asarray(design @ U)
            if factorisation.centre is not None:
                scores = scores + parameters[-1]
            a = concentrations(scores)
            values, slope = row_loss(a, D)
            more, more_slope = divergence_from_uniform(a)
            # the derivative of softplus is the logistic function
            of_scores = (slope + self.prior_weight * more_slope) * special.expit(scores) * weight[:, None]
            value = float(weight @ (values + self.prior_weight * more)) + 0.5 * alpha * float(np.vdot(U, U))
            gradient = np.asarray(design.T @ of_scores) + alpha * U
            if factorisation.centre is not None:
                gradient = np.vstack([gradient, of_scores.sum(axis=0)])
            return value, whitening.contract(gradient).ravel()

        start = np.zeros(shape)
        if factorisation.centre is not None:
            start[-1] = scores / whitening.scale[-1]
        run = minimise(evaluate, start.ravel(), tol=self.tol, max_iter=self.max_iter, lower_bound=lower_bound)
        parameters = whitening.expand(run.x.reshape(shape))
        self._store(LinearFit(*factorisation.to_features(parameters), parameters, run))

    def _scores_of_mean(self, D: FloatArray, weight: FloatArray) -> FloatArray:
        """Scores of a Dirichlet distribution with the mean of D, at which the search starts.

        Its precision is about the best without features: the expected divergence exceeds its minimum by (c − 1) /
        (2 a₀), and the prior adds (c − 1)/2 · ln a₀; under the likelihood, the total variance is that of D. The scores
        are not far below zero, where softplus is flat and a search makes no progress.
        """
        mean = weight @ D
        if self.loss == "likelihood":
            spread = max(float(weight @ ((D - mean) ** 2).sum(axis=1)), MIN_SPREAD)
            precision = float((mean * (1.0 - mean)).sum()) / spread - 1.0
        else:
            precision = 1.0 / max(self.prior_weight, MIN_START_WEIGHT)
        a = mean * min(max(precision, 1.0), MAX_START)
        return np.asarray(np.log(np.expm1(np.maximum(a - 1.0, MIN_EXCESS))))  # the inverse of 1 + softplus

    def _strength(self, training: TrainingSet, curvature: FloatArray, response: FloatArray) -> float:
        """``alpha``, or its choice by generalised cross-validation of the model linearised at the mean distribution."""
        if self.alpha != "auto":
            return float(self.alpha)
        factorisation = training.factorisation(scale_free=False)
        return ridge_penalty(factorisation, response, training.weight, curvature, training.n_different)

    def _concentrations(self, X: Any) -> FloatArray:
        return concentrations(np.asarray(X @ self.coef_.T) + self.intercept_)

    def _predict(self, X: Any) -> FloatArray:
        a = self._concentrations(X)
        return np.asarray(a / a.sum(axis=1, keepdims=True))

    def predict_precision(self, X: Any) -> FloatArray:
        """Predict the precision of the Dirichlet distribution of each row.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features, in the columns that ``fit`` saw.

        Returns
        -------
        ndarray of shape (n_samples,)
            The sums of the concentrations, at least the number of labels; large for certain predictions.
        """
        check_is_fitted(self)
        X = check_features(self, X, reset=False, accept_sparse=self._accept_sparse)
        return np.asarray(self._concentrations(X).sum(axis=1))


def linearised(
    row_loss: RowLossOfConcentrations, prior_weight: float, scores: FloatArray, D: FloatArray, weight: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Curvature of the mean loss in each score, and the Newton step of the scores for each row.

    Terms common to all labels are left out, as in `skldl.losses._automatic_alpha`.
    """
    a, slope = concentrations(scores), special.expit(scores)
    of_rows = row_loss(np.broadcast_to(a, D.shape), D)[1] * slope
    trigamma, tetragamma = special.polygamma(1, a), special.polygamma(2, a)
    curvature = trigamma if row_loss is negative_log_density else -np.maximum(weight @ D, MIN_MEAN_DEGREE) * tetragamma
    curvature = (curvature + prior_weight * (trigamma + (a - 1.0) * tetragamma)) * slope**2
    return curvature, (weight @ of_rows - of_rows) / curvature


def concentrations(scores: FloatArray) -> FloatArray:
    """1 + softplus(scores), without overflow."""
    return np.asarray(np.minimum(1.0 + np.logaddexp(0.0, scores), MAX_CONCENTRATION))

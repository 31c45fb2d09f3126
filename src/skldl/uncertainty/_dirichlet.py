r"""How widely true distributions scatter around predictions: the concentration of a Dirichlet distribution.

The model is :math:`d \sim \mathrm{Dirichlet}(\tau\, p(x))`, with mean p(x) and variance :math:`p_j(1-p_j)/(\tau+1)`.
Where only votes are known, counts n of m votes, the likelihood is that of the Dirichlet-multinomial,

.. math:: \ln L = \ln\Gamma(\tau) - \ln\Gamma(\tau+m) + \sum_j \ln\Gamma(\tau p_j + n_j) - \ln\Gamma(\tau p_j),

which separates the scatter of the true distributions from the noise of the votes. Zeros in d have no density under
the Dirichlet distribution, so without counts they are replaced by a small degree first.
"""

from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize, minimize_scalar
from scipy.special import digamma, gammaln

from skldl.utils.mean_mixture import row_weights
from skldl.utils.typing import FloatArray

REPLACEMENT = 1e-4  # of a degree of zero where no votes are known; chosen by hand
N_PLAUSIBLE = 20  # draws for each row; chosen by hand
LOG_RANGE = (-4.0, 14.0)  # concentrations from .02, nearly one-hot rows, to 1.2 million, no visible scatter
HALF_CHI_SQUARE = 1.3528  # half of the 90 % quantile of the chi-square distribution with one degree of freedom
MIN_DEGREE = 1e-12  # of a predicted mean: a Dirichlet distribution has positive parameters


def fill_zeros(D: FloatArray, floor: float = REPLACEMENT) -> FloatArray:
    """Replace zeros by a small positive value and divide the rows by their sums; other degrees keep their ratios.

    Small positive degrees are not raised: that would underestimate the scatter.
    """
    raised = np.where(D > 0, D, floor)
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def dirichlet_log_density(D: FloatArray, P: FloatArray, concentration: FloatArray | float) -> FloatArray:
    """Log-density of each row of D under the Dirichlet distribution with mean P.

    Parameters
    ----------
    D : ndarray of shape (n_samples, n_labels)
        Distributions without zeros.
    P : ndarray of shape (n_samples, n_labels)
        Predicted means.
    concentration : float or ndarray of shape (n_samples,)
        Sum of the Dirichlet parameters.

    Returns
    -------
    ndarray of shape (n_samples,)
        Log-densities on the simplex.
    """
    tau = np.broadcast_to(np.asarray(concentration, dtype=np.float64), len(P))
    alpha = tau[:, None] * np.maximum(P, MIN_DEGREE)
    return np.asarray(gammaln(alpha.sum(axis=1)) + ((alpha - 1.0) * np.log(D) - gammaln(alpha)).sum(axis=1))


def votes_log_likelihood(counts: FloatArray, P: FloatArray, concentration: FloatArray | float) -> FloatArray:
    """Log-likelihood of the votes of each row under the Dirichlet-multinomial, without the multinomial coefficient.

    Parameters
    ----------
    counts : ndarray of shape (n_samples, n_labels)
        Votes for each label.
    P : ndarray of shape (n_samples, n_labels)
        Predicted means.
    concentration : float or ndarray of shape (n_samples,)
        Sum of the Dirichlet parameters.

    Returns
    -------
    ndarray of shape (n_samples,)
        Log-likelihoods.
    """
    tau = np.broadcast_to(np.asarray(concentration, dtype=np.float64), len(P))
    alpha = tau[:, None] * np.maximum(P, MIN_DEGREE)
    total = alpha.sum(axis=1)
    within = (gammaln(alpha + counts) - gammaln(alpha)).sum(axis=1)
    return np.asarray(gammaln(total) - gammaln(total + counts.sum(axis=1)) + within)


def log_likelihood(
    P: FloatArray,
    concentration: FloatArray | float,
    *,
    D: FloatArray | None = None,
    counts: FloatArray | None = None,
) -> FloatArray:
    """Log-likelihood of each row: of its votes where there are any, else of its distribution.

    Parameters
    ----------
    P : ndarray of shape (n_samples, n_labels)
        Predicted means.
    concentration : float or ndarray of shape (n_samples,)
        Sum of the Dirichlet parameters.
    D, counts : ndarray of shape (n_samples, n_labels), default=None
        Distributions without zeros, or votes.

    Returns
    -------
    ndarray of shape (n_samples,)
        Log-likelihoods.
    """
    if counts is not None:
        return votes_log_likelihood(counts, P, concentration)
    assert D is not None
    return dirichlet_log_density(D, P, concentration)


def fit_concentration(
    P: FloatArray,
    *,
    D: FloatArray | None = None,
    counts: FloatArray | None = None,
    weight: FloatArray | None = None,
    cautious: bool = False,
) -> float:
    """Maximum-likelihood concentration, from distributions or from votes.

    Parameters
    ----------
    P : ndarray of shape (n_samples, n_labels)
        Held-out predictions.
    D : ndarray of shape (n_samples, n_labels), default=None
        True distributions without zeros.
    counts : ndarray of shape (n_samples, n_labels), default=None
        Votes, instead of D.
    weight : ndarray of shape (n_samples,), default=None
        Weight of each row.
    cautious : bool, default=False
        Return the lower end of the one-sided 95 % interval by the likelihood ratio instead. Few votes often cannot
        distinguish a large concentration from an infinite one, and the estimate alone would claim no scatter at all.

    Returns
    -------
    float
        The concentration, between exp(-4) and exp(14).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> P = rng.dirichlet([2.0, 3.0, 5.0], size=2000)
    >>> D = np.array([rng.dirichlet(30.0 * p) for p in P])
    >>> bool(28 < fit_concentration(P, D=D) < 32)
    True
    """
    weight = np.ones(len(P)) if weight is None else weight

    def loss(log_concentration: float) -> float:
        return -float(weight @ log_likelihood(P, float(np.exp(log_concentration)), D=D, counts=counts))

    # an error of 1e-6 in the logarithm is one millionth of the concentration, far below its standard error
    found = minimize_scalar(loss, bounds=LOG_RANGE, method="bounded", options={"xatol": 1e-6})
    best = float(found.x)
    if cautious:
        limit = float(found.fun) + HALF_CHI_SQUARE
        best = brentq(lambda x: loss(x) - limit, LOG_RANGE[0], best) if loss(LOG_RANGE[0]) > limit else LOG_RANGE[0]
    return float(np.exp(best))


def log_concentration_slope(
    P: FloatArray, concentration: FloatArray, *, D: FloatArray | None = None, counts: FloatArray | None = None
) -> FloatArray:
    r"""Derivative of the log-likelihood of each row by the logarithm of its concentration.

    From distributions :math:`\tau[\psi(\tau) + \sum_j p_j(\ln d_j - \psi(\tau p_j))]`, from votes
    :math:`\tau[\psi(\tau) - \psi(\tau + m) + \sum_j p_j(\psi(\tau p_j + n_j) - \psi(\tau p_j))]`.

    Parameters
    ----------
    P : ndarray of shape (n_samples, n_labels)
        Predicted means.
    concentration : ndarray of shape (n_samples,)
        Concentration of each row.
    D, counts : ndarray of shape (n_samples, n_labels), default=None
        Distributions without zeros, or votes.

    Returns
    -------
    ndarray of shape (n_samples,)
        Derivatives.
    """
    p = np.maximum(P, MIN_DEGREE)
    alpha = concentration[:, None] * p
    total = alpha.sum(axis=1)
    if counts is not None:
        inner = (p * (digamma(alpha + counts) - digamma(alpha))).sum(axis=1)
        return np.asarray(concentration * (digamma(total) - digamma(total + counts.sum(axis=1)) + inner))
    assert D is not None
    return np.asarray(concentration * (digamma(total) + (p * (np.log(D) - digamma(alpha))).sum(axis=1)))


def fit_concentration_model(
    Z: Any,
    P: FloatArray,
    penalty: float,
    *,
    D: FloatArray | None = None,
    counts: FloatArray | None = None,
    weight: FloatArray | None = None,
) -> FloatArray:
    r"""Fit :math:`\ln\tau(x) = w_0 + z(x)\cdot w` by penalised maximum likelihood.

    Parameters
    ----------
    Z : ndarray or sparse matrix of shape (n_samples, n_features)
        Features.
    P : ndarray of shape (n_samples, n_labels)
        Held-out predictions.
    penalty : float
        Factor of the squared norm of w, without w₀; the likelihood is averaged over the rows.
    D, counts, weight : as in `fit_concentration`

    Returns
    -------
    ndarray of shape (n_features + 1,)
        w₀ and w.
    """
    mass = row_weights(len(P), weight)
    start = np.zeros(Z.shape[1] + 1)
    start[0] = np.log(fit_concentration(P, D=D, counts=counts, weight=weight))

    def loss(w: FloatArray) -> tuple[float, FloatArray]:
        tau = concentration_of(w, Z)
        likelihood = log_likelihood(P, tau, D=D, counts=counts)
        slope = mass * log_concentration_slope(P, tau, D=D, counts=counts)
        gradient = -np.concatenate([[slope.sum()], np.asarray(Z.T @ slope)])
        gradient[1:] += 2 * penalty * w[1:]
        return -float(mass @ likelihood) + penalty * float(w[1:] @ w[1:]), gradient

    return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x)


def concentration_of(w: FloatArray, Z: Any) -> FloatArray:
    """Concentration of each row, kept between exp(-4) and exp(14)."""
    return np.asarray(np.exp(np.clip(w[0] + Z @ w[1:], *LOG_RANGE)))


def plausible_truths(P: FloatArray, votes: FloatArray, seed: int, n_draws: int = N_PLAUSIBLE) -> list[FloatArray]:
    """Draw true distributions behind the votes, from a posterior whose Dirichlet prior has the predictions as means."""
    posterior = fit_concentration(P, counts=votes, cautious=True) * np.maximum(P, MIN_DEGREE) + votes
    gammas = np.random.default_rng(seed).standard_gamma(posterior, size=(n_draws, *posterior.shape))
    gammas = np.maximum(gammas, 1e-300)  # all draws of a row may underflow, and 0/0 is NaN
    return list(gammas / gammas.sum(axis=2, keepdims=True))

r"""The mixing distribution behind counts: which true distributions the rows of a table of votes were drawn from.

Each row of counts is multinomial given its true distribution, and true distributions are draws from an unknown mixing
distribution G. `fit_mixing` estimates G by nonparametric maximum likelihood [1]_ [2]_ on
a finite set of support points: its weights maximise :math:`\sum_i \ln \sum_k g_k \prod_j s_{kj}^{n_{ij}}`, a concave
problem, by the EM algorithm. No shape of G is assumed.

References
----------
.. [1] J. Kiefer and J. Wolfowitz, "Consistency of the maximum likelihood estimator in the presence of infinitely many
   incidental parameters", Annals of Mathematical Statistics 27(4), 1956.
.. [2] N. Laird, "Nonparametric maximum likelihood estimation of a mixing distribution", Journal of the American
   Statistical Association 73(364), 1978.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from skldl.utils.typing import FloatArray

N_SUPPORT_ROWS = 200
DRAWS_PER_ROW = 2
_LEAST_DEGREE = 1e-9
_ITERATIONS = 200
_TINY = 1e-300  # keeps draws and densities that vanish from a division by zero


@dataclass(frozen=True)
class Mixing:
    """Support points of the mixing distribution, and the likelihood of each row of counts under each of them.

    Attributes
    ----------
    support : ndarray of shape (n_support, n_labels)
        Distributions.
    likelihood : ndarray of shape (n_rows, n_support)
        Likelihood of the counts of each row, divided by its greatest value.
    """

    support: FloatArray
    likelihood: FloatArray

    def weights(
        self, row_weight: FloatArray, start: FloatArray | None = None, iterations: int = _ITERATIONS
    ) -> FloatArray:
        """Maximum-likelihood weights of the support points, by EM.

        Parameters
        ----------
        row_weight : ndarray of shape (n_rows,)
            Weight of each row in the likelihood; zero leaves it out.
        start : ndarray of shape (n_support,), default=None
            Weights to start from; equal ones if None.
        iterations : int, default=200
            Number of EM steps. The likelihood grows with each of them.

        Returns
        -------
        ndarray of shape (n_support,)
            Weights that sum to one.
        """
        n_support = len(self.support)
        share = row_weight / row_weight.sum()
        weights = np.full(n_support, 1.0 / n_support) if start is None else start
        for _ in range(iterations):
            density = np.maximum(self.likelihood @ weights, _TINY)
            weights = weights * (self.likelihood.T @ (share / density))
            weights /= weights.sum()
        return weights

    def posterior(self, weights: FloatArray) -> FloatArray:
        """Probability of each support point for each row.

        Parameters
        ----------
        weights : ndarray of shape (n_support,)
            Weights of the support points.

        Returns
        -------
        ndarray of shape (n_rows, n_support)
            Rows that sum to one.
        """
        joint = self.likelihood * weights
        return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), _TINY))


def fit_mixing(counts: FloatArray, row_weight: FloatArray, prior: FloatArray, seed: int) -> Mixing:
    """Choose the support points of the mixing distribution, and compute the likelihoods.

    Parameters
    ----------
    counts : ndarray of shape (n_rows, n_labels)
        Votes; every row has one at least.
    row_weight : ndarray of shape (n_rows,)
        Weight of each row.
    prior : ndarray of shape (n_labels,)
        Parameters of a Dirichlet distribution fitted to the counts, as a first guess at G.
    seed : int
        Seed of the rows, and of the draws from their posteriors.

    Returns
    -------
    Mixing
        Support points (draws from the first guess, and from the posteriors of rows under it) and the likelihoods.
        Means of posteriors would give every label without a vote the same small degree, and the floor would be too
        high.
    """
    generator = np.random.default_rng(seed)
    rows = counts[generator.choice(len(counts), N_SUPPORT_ROWS, p=row_weight / row_weight.sum())]
    points = [prior[None], generator.standard_gamma(np.maximum(prior, 1e-2), size=(N_SUPPORT_ROWS, len(prior)))]
    points += [generator.standard_gamma(np.maximum(rows + prior, 1e-3)) for _ in range(DRAWS_PER_ROW)]
    support = np.maximum(
        np.concatenate([p / np.maximum(p.sum(axis=1, keepdims=True), _TINY) for p in points]), _LEAST_DEGREE
    )
    support /= support.sum(axis=1, keepdims=True)
    log_likelihood = counts @ np.log(support).T
    return Mixing(support, np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True)))


def fit_dirichlet(counts: FloatArray) -> FloatArray:
    """Fit a Dirichlet distribution to the distributions behind counts: their mean as it is, the precision by
    maximum likelihood of the counts.
    """
    pooled = counts.sum(axis=0) + 0.5
    mean = pooled / pooled.sum()
    totals = counts.sum(axis=1)

    def minus_log_likelihood(log_precision: float) -> float:
        alpha = np.exp(log_precision) * mean
        likelihood = special.gammaln(alpha.sum()) - special.gammaln(totals + alpha.sum())
        return -float((likelihood + (special.gammaln(counts + alpha) - special.gammaln(alpha)).sum(axis=1)).sum())

    best = optimize.minimize_scalar(minus_log_likelihood, bounds=(np.log(1e-2), np.log(1e4)), method="bounded")
    return np.asarray(np.exp(best.x) * mean)

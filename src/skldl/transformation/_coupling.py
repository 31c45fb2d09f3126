"""Pairwise coupling: from the probability of each label against each other one to one distribution per row.

Let r_ij be the probability of label i where only i and j are possible. The second method of Wu, Lin and Weng [1]_ takes

    p = argmin ½ Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)²   with   Σ_i p_i = 1,

which is ½ pᵀQp with Q_ii = Σ_{j≠i} r_ji² and Q_ij = −r_ji r_ij. Its optimum satisfies Qp = −b·1, so p is the solution
of (Q + τ11ᵀ) x = 1 for any τ > 0, divided by its sum: one linear system for each row, all rows at once.

References
----------
.. [1] T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability estimates for multi-class classification by pairwise
   coupling", Journal of Machine Learning Research 5, 2004, 975-1005.
"""

import numpy as np
import numpy.typing as npt

from skldl.utils.typing import FloatArray

SMALLEST_PROBABILITY = 1e-7
"""Pair probabilities are kept this far from 0 and 1, as LIBSVM does, so that every system has one solution."""


def couple(pair_probabilities: npt.ArrayLike, n_labels: int) -> FloatArray:
    """Couple the probabilities of all pairs of labels into distributions.

    Parameters
    ----------
    pair_probabilities : array-like of shape (n_samples, n_labels * (n_labels - 1) / 2)
        Probability of label a against label b for a < b, in the order of ``np.triu_indices(n_labels, 1)``.
    n_labels : int
        Number of labels, at least two.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Non-negative rows that sum to one.

    Examples
    --------
    The odds 1 : 2 : 1 agree on all three pairs, so coupling finds them again.

    >>> from skldl.transformation._coupling import couple
    >>> couple([[1 / 3, 1 / 2, 2 / 3]], n_labels=3)
    array([[0.25, 0.5 , 0.25]])
    """
    won = np.clip(np.asarray(pair_probabilities, dtype=np.float64), SMALLEST_PROBABILITY, 1.0 - SMALLEST_PROBABILITY)
    if n_labels == 2:
        return np.hstack([won, 1.0 - won])
    first, second = np.triu_indices(n_labels, 1)
    quadratic = np.zeros((len(won), n_labels, n_labels))
    quadratic[:, first, second] = won  # r_ij
    quadratic[:, second, first] = 1.0 - won
    diagonal = np.einsum("sji,sji->si", quadratic, quadratic)
    cross = won * (won - 1.0)
    quadratic[:, first, second] = cross
    quadratic[:, second, first] = cross
    labels = np.arange(n_labels)
    quadratic[:, labels, labels] = diagonal
    quadratic += diagonal.mean(axis=1)[:, None, None] / n_labels  # τ of the size of Q keeps the system well scaled
    solution = np.linalg.solve(quadratic, np.ones((len(won), n_labels, 1)))[:, :, 0]
    np.maximum(solution, 0.0, out=solution)  # non-negative in exact arithmetic
    return np.asarray(solution / solution.sum(axis=1, keepdims=True))

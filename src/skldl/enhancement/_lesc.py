r"""LESC: label enhancement with sample correlations by low-rank representation (Tang et al., 2020).

Each row is approximated by a combination of all rows, X ≈ Z X, with Z of low rank, and the degrees are combined in the
same way:

    min_Z  ‖Z‖_* + τ/2 ‖X − Z X‖²,      min_F  ‖F − L‖² + λ ‖F − Z F‖².

With X = U diag(s) Vᵀ the first has a closed form (Favaro, Vidal and Ravichandran, 2011),

    Z = U₁ diag(γ) U₁ᵀ,  γ_k = 1 − 1/(τ s_k²) for the k with s_k² > 1/τ,

and so has the second: F = L/(1 + λ) off the span of U₁, and 1/(1 + λ(1 − γ_k)²) times the coefficient along u_k.
No matrix of n × n numbers is computed. Distributions are the softmax of F.
"""

from typing import ClassVar

import numpy as np
from scipy import linalg

from skldl.enhancement._base import LabelEnhancer
from skldl.utils.parameters import NOT_NEGATIVE, POSITIVE
from skldl.utils.typing import FloatArray


class LESC(LabelEnhancer):
    """Label enhancement with sample correlations of low rank, in closed form.

    Parameters
    ----------
    alpha : float, default=1.0
        λ, weight of the term by which degrees are reconstructed as the features are.
    tau : float, default=1.0
        Weight of the reconstruction of the features: directions of the features whose sum of squares is below 1 / tau
        are left out.

    Attributes
    ----------
    distributions_ : ndarray of shape (n_samples, n_labels)
        Distributions of the training rows.
    rank_ : int
        Rank of Z.
    classes_ : list
        Names of the labels.

    Notes
    -----
    The paper measures the noise of the features by the sum of the norms of its rows and needs an iteration; the sum of
    squares has a closed form. A constant column is added to the standardised features, so that the mean of the
    labels is reconstructed, too.

    References
    ----------
    .. [1] H. Tang, J. Zhu, Q. Zheng, J. Wang, S. Pang and Z. Li, "Label enhancement with sample correlations via
       low-rank representation", AAAI 2020.
    .. [2] P. Favaro, R. Vidal and A. Ravichandran, "A closed form solution to robust subspace estimation and
       clustering", CVPR 2011.

    Examples
    --------
    >>> from skldl.enhancement import LESC
    >>> X = [[0.0], [0.1], [0.2], [3.0], [3.1], [3.2]]
    >>> L = [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 1]]
    >>> LESC().fit_transform(X, L).round(2)[:3]
    array([[0.7 , 0.3 ],
           [0.69, 0.31],
           [0.57, 0.43]])
    """

    _constraints: ClassVar = {"alpha": NOT_NEGATIVE, "tau": POSITIVE}

    def __init__(self, alpha: float = 1.0, *, tau: float = 1.0) -> None:
        self.alpha = alpha
        self.tau = tau

    def _enhance(self, X: FloatArray, L: FloatArray) -> FloatArray:
        U, values, _ = linalg.svd(np.column_stack([X, np.ones(len(X))]), full_matrices=False)
        kept = self.tau * values**2 > 1.0
        U, gamma = U[:, kept], 1.0 - 1.0 / (self.tau * values[kept] ** 2)
        self.rank_ = int(kept.sum())
        # off the span of the directions that are kept, and along each of them in addition
        off = 1.0 / (1.0 + self.alpha)
        along = 1.0 / (1.0 + self.alpha * (1.0 - gamma) ** 2) - off
        return np.asarray(off * L + U @ (along[:, None] * (U.T @ L)))

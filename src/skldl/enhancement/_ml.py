r"""ML: label enhancement by the manifold of the features (Hou, Geng and Zhang, 2016).

Each row is reconstructed from its k nearest rows by weights that sum to one (locally linear embedding): W minimises
Σ_i ‖x_i − Σ_j w_ij x_j‖². The degrees µ of each label, on a scale where relevant is positive and irrelevant negative,
are reconstructed by the same weights, under the constraint that they have the right sign with a margin λ:

    min_µ  µᵀ M µ,  M = (I − W)ᵀ (I − W),    subject to  l_i µ_i ≥ λ,  l_i = ±1.

With ν = l ∘ µ the constraints are bounds ν ≥ λ. The problem is convex and sparse; all labels share W, and L-BFGS-B
needs only products with I − W. Distributions are the softmax of µ.
"""

from typing import Any, ClassVar

import numpy as np
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning

from skldl.enhancement._base import LabelEnhancer, neighbours
from skldl.kernel._kernels import row_blocks
from skldl.utils.parameters import COUNT, POSITIVE
from skldl.utils.typing import FloatArray
from skldl.utils.warn import warn

REGULARISATION = 1e-3  # of local Gram matrices, as a fraction of their trace: default of locally linear embedding


class ML(LabelEnhancer):
    """Label enhancement by manifold learning.

    Parameters
    ----------
    n_neighbors : int, default=20
        Number of rows that each row is reconstructed from.
    margin : float, default=1.0
        λ: relevant labels have a score of at least λ, irrelevant ones of at most −λ.
    max_iter : int, default=1000
        Maximum number of steps for each label; a `ConvergenceWarning` is issued if that was not enough.
    tol : float, default=1e-3
        The search of a label ends when no component of the projected gradient exceeds this, divided by the number of
        rows.

    Attributes
    ----------
    distributions_ : ndarray of shape (n_samples, n_labels)
        Distributions of the training rows.
    n_iter_ : int
        Largest number of steps over the labels.
    classes_ : list
        Names of the labels.

    References
    ----------
    .. [1] P. Hou, X. Geng and M.-L. Zhang, "Multi-label manifold learning", AAAI 2016.

    Examples
    --------
    >>> from skldl.enhancement import ML
    >>> X = [[0.0], [0.1], [0.2], [3.0], [3.1], [3.2]]
    >>> L = [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 1]]
    >>> ML(n_neighbors=2).fit_transform(X, L).round(2)[2]
    array([0.5, 0.5])
    """

    _constraints: ClassVar = {"n_neighbors": COUNT, "margin": POSITIVE, "max_iter": COUNT, "tol": POSITIVE}

    def __init__(self, n_neighbors: int = 20, *, margin: float = 1.0, max_iter: int = 1000, tol: float = 1e-3) -> None:
        self.n_neighbors = n_neighbors
        self.margin = margin
        self.max_iter = max_iter
        self.tol = tol

    def _enhance(self, X: FloatArray, L: FloatArray) -> FloatArray:
        signs = np.where(L > 0, 1.0, -1.0)
        residual = (sparse.identity(len(X)) - reconstruction_weights(X, self.n_neighbors)).tocsr()
        back = residual.T.tocsr()
        scores, self.n_iter_ = np.empty_like(signs), 0
        for label in range(L.shape[1]):
            sign = signs[:, label]

            def loss(nu: FloatArray, sign: FloatArray = sign) -> tuple[float, FloatArray]:
                rows = residual @ (sign * nu)
                return float(rows @ rows) / len(rows), 2.0 / len(rows) * sign * (back @ rows)

            found = optimize.minimize(
                loss,
                np.full(len(X), float(self.margin)),
                jac=True,
                method="L-BFGS-B",
                bounds=[(self.margin, None)] * len(X),
                options={
                    "maxiter": self.max_iter,
                    "gtol": self.tol / len(X),
                    "ftol": 0.0,  # the gradient alone decides
                    "maxfun": 10 * self.max_iter,  # far more than line searches need: max_iter is the limit
                },
            )
            scores[:, label] = sign * found.x
            self.n_iter_ = max(self.n_iter_, int(found.nit))
            if found.status == 1:
                warn(
                    f"ML stopped at max_iter={self.max_iter} for label {label}. Raise max_iter or tol.",
                    ConvergenceWarning,
                )
        return scores


def reconstruction_weights(X: FloatArray, n_neighbors: int) -> Any:
    """Sparse W of locally linear embedding: weights of the nearest rows, which sum to one.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Rows.
    n_neighbors : int
        Number of neighbours; of rows that are equally near, the first ones.

    Returns
    -------
    CSR matrix of shape (n_samples, n_samples)
        The weights.
    """
    n_samples = len(X)
    n_neighbors = min(n_neighbors, n_samples - 1)
    if n_neighbors < 1:
        return sparse.csr_matrix((n_samples, n_samples))
    rows, columns, distances = neighbours(X, n_neighbors)
    # by row, distance and column: of rows that are equally near, the first ones are taken
    order = np.lexsort((columns, distances, rows))
    rows, columns = rows[order], columns[order]
    first = np.searchsorted(rows, np.arange(n_samples))
    near = columns[first[:, None] + np.arange(n_neighbors)]
    weights = np.empty((n_samples, n_neighbors))
    for part in row_blocks(n_samples, n_neighbors * max(X.shape[1], n_neighbors)):
        offsets = X[near[part]] - X[part, None, :]
        gram = offsets @ offsets.transpose(0, 2, 1)
        trace = np.trace(gram, axis1=1, axis2=2)
        ridge = REGULARISATION * np.where(trace > 0, trace, 1.0)  # copies of a row have a trace of 0
        gram[:, np.arange(n_neighbors), np.arange(n_neighbors)] += ridge[:, None]
        weights[part] = np.linalg.solve(gram, np.ones((len(gram), n_neighbors, 1)))[..., 0]
    weights /= weights.sum(axis=1, keepdims=True)
    rows = np.repeat(np.arange(n_samples), n_neighbors)
    return sparse.csr_matrix((weights.ravel(), (rows, near.ravel())), shape=(n_samples, n_samples))

r"""GLLE: graph Laplacian label enhancement (Xu, Tao and Geng, 2018).

With Φ the kernel matrix of the rows, G the Laplacian of their graph of neighbours and F = ΦW:

    min_W  ‖ΦW − L‖² + λ tr(Fᵀ G F)

is quadratic. If the kernel matrix is invertible, F can be any matrix, so that the kernel cancels:

    F = (I + λG)⁻¹ L,

one sparse system with a condition number of at most 1 + 2λ·(largest degree of the graph), for which conjugate gradients
need few products. Distributions are the softmax of F. The kernel matters for new rows: φ(x)ᵀW with ΦW = F.
"""

from typing import ClassVar

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.linalg import cg

from skldl.enhancement._base import InductiveEnhancer, laplacian, mean_distance
from skldl.exceptions import DataError, Parameter
from skldl.kernel._kernels import kernel_times, kernel_values
from skldl.utils.parameters import COUNT, NONE, NOT_NEGATIVE, POSITIVE
from skldl.utils.typing import FloatArray

MAX_KERNEL_ROWS = 10_000  # the kernel matrix then takes 800 MB
JITTER = 1e-10  # times the number of rows: kernel matrices of near rows are singular up to rounding
CG_TOL = 1e-12  # relative residual: the last digits cost a few products; chosen by hand


class GLLE(InductiveEnhancer):
    r"""Graph Laplacian label enhancement, in closed form.

    Parameters
    ----------
    alpha : float, default=0.01
        λ, weight of the smoothness over the graph.
    n_neighbors : int, default=20
        Number of neighbours of each row in the graph.
    width : float, default=None
        σ of the Gaussian weights of the graph and of the kernel, in standardised features; None means the mean
        distance.

    Attributes
    ----------
    distributions_ : ndarray of shape (n_samples, n_labels)
        Distributions of the training rows.
    scores_ : ndarray of shape (n_samples, n_labels)
        F, before the softmax.
    width_ : float
        Width in use.
    classes_ : list
        Names of the labels.

    Notes
    -----
    ``transform`` is for new rows: its scores are φ(x)ᵀW. The kernel matrix of the training rows is numerically singular
    where there are many rows and few features; then no W attains ΦW = F, and ``transform`` of the training rows is
    smoother than ``distributions_``. On 400 random rows with 1 to 5 features single degrees differed by up to .15 to
    .23, with 10 features by 7e-5; on sets of the paper by up to .16 (Yeast_spo5), and by at most .005 in mean total
    variation. For training rows use ``fit_transform`` or ``distributions_``.

    The paper minimises over W by a quasi-Newton method; this is the minimum. The journal version [2]_ adds a term for
    label correlations, :math:`\sum_i \mathrm{tr}(F_i P_i F_i^T)` over clusters i of rows, with matrices
    :math:`P_i = E_i E_i^T` of unit diagonal learned with F. It is left out: the problem is then no longer
    convex and has no closed form. docs/enhancement.md describes what it would change.

    References
    ----------
    .. [1] N. Xu, A. Tao and X. Geng, "Label enhancement for label distribution learning", IJCAI 2018.
    .. [2] N. Xu, Y.-P. Liu and X. Geng, "Label enhancement for label distribution learning", IEEE Transactions on
       Knowledge and Data Engineering 33(4), 2021.

    Examples
    --------
    >>> from skldl.enhancement import GLLE
    >>> X = [[0.0], [0.1], [0.2], [3.0], [3.1], [3.2]]
    >>> L = [[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 1]]
    >>> GLLE(alpha=1.0, n_neighbors=2).fit_transform(X, L).round(2)[:3]
    array([[0.68, 0.32],
           [0.68, 0.32],
           [0.62, 0.38]])
    """

    _constraints: ClassVar = {"alpha": NOT_NEGATIVE, "n_neighbors": COUNT, "width": NONE | POSITIVE}

    def __init__(self, alpha: float = 0.01, *, n_neighbors: int = 20, width: float | None = None) -> None:
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.width = width

    def _enhance(self, X: FloatArray, L: FloatArray) -> FloatArray:
        self.width_ = self.width or mean_distance(X)
        system = sparse.identity(len(X)) + self.alpha * laplacian(X, self.n_neighbors, self.width_)
        self._X = X
        self._weights: FloatArray | None = None
        self.scores_ = np.empty_like(L)
        for label in range(L.shape[1]):
            self.scores_[:, label], failed = cg(system, L[:, label], x0=L[:, label], rtol=CG_TOL, atol=0.0)
            if failed:
                raise DataError(f"Label {label} did not converge. Choose a smaller ", Parameter("alpha"), ".")
        return self.scores_

    def _score(self, X: FloatArray) -> FloatArray:
        if len(self._X) > MAX_KERNEL_ROWS:
            raise DataError(
                f"GLLE.transform solves a kernel system over {len(self._X):,} training rows; at most "
                f"{MAX_KERNEL_ROWS:,} are accepted. Fit a label distribution learner to distributions_ instead."
            )
        if self._weights is None:
            system = kernel_values("rbf", self._X, self._X, self.width_)
            system[np.diag_indices(len(system))] += JITTER * len(system)
            self._weights = np.asarray(linalg.solve(system, self.scores_, assume_a="pos"))
        return kernel_times("rbf", X, self._X, self.width_, self._weights)

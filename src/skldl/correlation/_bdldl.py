"""BD-LDL: bidirectional label distribution learning (Liu et al., 2021).

One matrix W maps features to distributions, and its transpose maps distributions back to features:

    min  mean ‖x_i W − d_i‖² + λ mean ‖x_i − d_i Wᵀ‖² + alpha ‖W‖².

Setting the gradient to zero gives the Sylvester equation (G + alpha I) W + λ W H = (1 + λ) B with G = Xᵀ diag(ω) X, H =
Dᵀ diag(ω) D and B = Xᵀ diag(ω) D. With eigenvectors U of G and V of H it is solved entry by entry,

    (UᵀWV)_kj = (1 + λ) (UᵀBV)_kj / (g_k + alpha + λ h_j),

so that one pair of decompositions serves every alpha and λ.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from skldl.base import BaseLDL
from skldl.exceptions import DataError
from skldl.losses._automatic_alpha import ALPHA, count_different_rows, generalised_cross_validation
from skldl.maxent import _moments
from skldl.maxent._whitening import Factorisation, factorise
from skldl.utils.mean_mixture import row_weights
from skldl.utils.parameters import NOT_NEGATIVE
from skldl.utils.simplex import project
from skldl.utils.typing import FloatArray

RANK_CUT = 1e-12  # relative to the largest denominator: directions below it have no data but rounding errors


class BDLDL(BaseLDL):
    r"""Bidirectional label distribution learning: ridge regression there and back (BD-LDL).

    It minimises, with means over rows,

    .. math:: \overline{\lVert x_i W - d_i \rVert^2} + \mathtt{backward\_weight}\; \overline{\lVert x_i - d_i W^\top
        \rVert^2} + \mathtt{alpha}\, \lVert W \rVert^2

    in closed form, and projects the predictions x W onto the simplex.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the squared penalty; "auto" chooses it by generalised cross-validation of the forward regression.
        The paper has sums over n rows in place of the means: its penalty is n · alpha.
    backward_weight : float, default=1e-3
        Weight of the reconstruction of the features from the distributions.

    Attributes
    ----------
    alpha_ : float
        The penalty that was used.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights, one row for each label.

    Notes
    -----
    With ``backward_weight=0`` it is ridge regression without intercept. The paper's text was not available: the
    objective and the projection onto the simplex follow python-ldl.

    References
    ----------
    .. [1] X. Liu et al., "Bidirectional loss function for label enhancement and distribution learning",
       Knowledge-Based Systems 213, 2021.

    Examples
    --------
    >>> from skldl.correlation import BDLDL
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]]
    >>> BDLDL(1e-4, backward_weight=0).fit(X, D).predict([[1.0, 1.0]]).round(2)
    array([[0.33, 0.33, 0.33]])
    """

    _constraints: ClassVar = {"alpha": ALPHA, "backward_weight": NOT_NEGATIVE}

    def __init__(self, alpha: float | str = "auto", *, backward_weight: float = 1e-3) -> None:
        self.alpha = alpha
        self.backward_weight = backward_weight

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        self._solve(_Decomposed(X, D, sample_weight))

    def _solve(self, decomposed: "_Decomposed") -> None:
        self.alpha_ = decomposed.automatic_alpha() if self.alpha == "auto" else float(self.alpha)
        self.coef_ = decomposed.solve(self.alpha_, self.backward_weight).T

    def _predict(self, X: Any) -> FloatArray:
        return project(np.asarray(X @ self.coef_.T, dtype=np.float64))

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """Predict for all values of a hyper-parameter from one pair of decompositions."""
        decomposed = _Decomposed(X, D, sample_weight)
        for value in values:
            self.set_params(**{param: value})
            self._solve(decomposed)
            yield self._predict(X_new)


class _Decomposed:
    """Eigendecompositions of G and H, and B in their coordinates."""

    def __init__(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        X = X.astype(np.float64, copy=False)
        if sample_weight is None:  # equal weights need no weighted copy of D: for few features it costs as much as G
            unit = 1.0 / X.shape[0]
            weighted = D
        else:
            unit = 1.0
            weighted = D * row_weights(X.shape[0], sample_weight)[:, None]
        self.factorisation = _factorise(X, sample_weight)
        design = self.factorisation.design
        self.U: FloatArray | None = None
        if self.factorisation.gram is not None:
            self.g, self.U = np.linalg.eigh(self.factorisation.gram)
        elif self.factorisation.rows is not None:
            self.g = self.factorisation.rows.eigenvalues
        else:
            raise DataError(
                "BDLDL decomposes a matrix over the features or over the rows, of one of which there must be at most "
                f"{_moments.MAX_MATRIX} (n_samples={X.shape[0]}, n_features={X.shape[1]}). Reduce the features, for "
                "example with sklearn.decomposition.TruncatedSVD."
            )
        products = unit * (D.T @ weighted)
        self.h, self.V = np.linalg.eigh(products)
        self.squares, self.X, self.D = float(products.trace()), X, D
        B = unit * np.asarray(design.T @ weighted)
        self.B = (B if self.U is None else self.U.T @ B) @ self.V

    def automatic_alpha(self) -> float:
        """Penalty by generalised cross-validation without the backward term, whose weight is small.

        All labels have curvature one and so the same degrees of freedom: their residuals and moments add up to those
        of one response, and V, which is orthogonal, does not change the sums of squares.
        """
        moments = np.sqrt(np.einsum("kj,kj->k", self.B, self.B))[:, None]
        n_rows = count_different_rows(self.X, self.D)
        return generalised_cross_validation(  # eigenvalues are negative only by rounding
            np.maximum(self.g, 0.0), moments, np.array([self.squares]), np.ones(1), n_rows
        )

    def solve(self, alpha: float, backward_weight: float) -> FloatArray:
        """W of shape (n_features, n_labels); its coordinates are zero in directions without data."""
        g, h = np.maximum(self.g, 0.0), np.maximum(self.h, 0.0)  # negative only by rounding
        denominator = g[:, None] + alpha + backward_weight * h
        smallest = RANK_CUT * (g.max(initial=0.0) + alpha + backward_weight * h.max())
        numerator = (1.0 + backward_weight) * self.B
        inner = np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > smallest)
        rotated = inner @ self.V.T
        return self.factorisation.to_features(rotated if self.U is None else self.U @ rotated)[0]


def _factorise(X: Any, sample_weight: FloatArray | None) -> Factorisation:
    """Factorise X over its features (G) or over its rows; dense rows of equal weights are not copied."""
    n_samples, n_features = X.shape
    if sample_weight is None and not sparse.issparse(X) and n_features <= min(n_samples, _moments.MAX_MATRIX):
        return Factorisation(X, None, gram=X.T @ X / n_samples)
    return factorise(X, row_weights(n_samples, sample_weight), fit_intercept=False, scale_free=False)

"""Coordinates in which the Hessian of the maximum entropy objective is near the identity: quasi-Newton needs few steps.

The Hessian of the mean cross-entropy is Σ ω_i (diag p_i − p_i p_iᵀ) ⊗ x_i x_iᵀ. Label distributions are far from
one-hot, so it changes little with the parameters and is close to (diag p̄ − p̄ p̄ᵀ) ⊗ G + alpha I, with G = Xᵀ
diag(ω) X and p̄ the mean prediction. Gradients sum to zero over labels, and there it acts as M_j = p̄_j G + alpha I
on the weights of label j. In coordinates V with u_j = T_j v_j and T_j T_jᵀ = M_j⁻¹ it is near the identity, whatever
the scale of the features and however rare a label. T changes the path to the optimum, but not the optimum.

T depends on the shape of X:

- at most 5000 columns, no more columns than rows: the Cholesky factor of G, or with a penalty the eigenvectors of G,
  which serve every alpha and label;
- fewer rows than columns, at most 5000 rows: the optimum lies in the span of the rows, so X is replaced by its
  n × n coordinates there, from the eigenvectors of X Xᵀ;
- otherwise, and for a sparse X whose values are few beside such a matrix (`skldl.maxent._moments.fits_matrix`): the
  diagonal of G. More steps of a sparse X are cheaper than the matrix, and X is never converted to a dense one.

Without a penalty the optimum does not depend on the scale of a feature, so columns are first scaled to length one.
Columns of length zero keep weight zero. Directions with less than 1e-10 of the scaled G (1e-12 in the row space) count
as rank deficient: along them the weights keep their initial values.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from skldl.chunks._arrays import CheckedRows
from skldl.maxent._moments import MAX_MATRIX, Moments, read_moments
from skldl.utils.arrays import sparse_minus
from skldl.utils.typing import FloatArray

RIDGES = (1e-10, 1e-6, 1e-2)
"""Added to the diagonal of G with columns of length one before its Cholesky decomposition: 1e-10 is the rank rule, and
the next value is used only if rounding leaves G indefinite."""
RANK_CUT = 1e-12
"""Eigenvalues of X Xᵀ below this fraction of the largest are rounding error, some hundred times its relative error."""
RESOLUTION = 1e-13
"""Below this fraction of the trace of G its eigenvectors, with errors of 1e-16 of the trace, do not resolve alpha."""


@dataclass
class Whitening:
    """The map between whitened coordinates V and parameters U (and b) of a design: U = basis (scale ∘ V).

    basisᵀ G basis is diagonal and holds ``spectrum``, so scale_kj = (spectrum_k p̄_j + alpha)^(−½). Scaled
    coordinates are also centred over labels: a common shift changes no prediction, and its curvature would be alpha
    only. With an intercept the columns are centred by ``centre``, so that b and U hardly interact: b = b' − centreᵀ U.
    """

    basis: FloatArray | None
    spectrum: FloatArray
    alpha: float
    centre: FloatArray | None
    labels: FloatArray  # p̄
    centred: bool = True  # over labels; False for models in which a common shift of the scores changes the loss

    def __post_init__(self) -> None:
        self.hessian = self.diagonal(self.labels)  # where it is zero nothing can be learned: such weights stay
        self.scale = np.divide(1.0, np.sqrt(self.hessian), out=np.zeros_like(self.hessian), where=self.hessian > 0)

    def diagonal(self, labels: FloatArray) -> FloatArray:
        """The Hessian in the basis, for a mean prediction p̄, one entry for each parameter."""
        hessian = np.multiply.outer(self.spectrum, labels) + self.alpha
        return hessian if self.centre is None else np.vstack([hessian, labels])

    def solve(self, vector: FloatArray) -> FloatArray:
        """(G + alpha I)⁻¹ times a vector over the design's columns."""
        inner = vector if self.basis is None else self.basis.T @ vector
        spectrum = self.spectrum + self.alpha
        inner = np.divide(inner, spectrum, out=np.zeros_like(inner), where=spectrum > 0)
        return inner if self.basis is None else self.basis @ inner

    def expand(self, V: FloatArray) -> FloatArray:
        """Parameters of the design from whitened coordinates."""
        scaled = V * self.scale
        if self.centred:
            scaled -= scaled.mean(axis=1, keepdims=True)
        U = scaled if self.centre is None else scaled[:-1]
        if self.basis is not None:
            U = self.basis @ U
        return U if self.centre is None else np.vstack([U, scaled[-1] - self.centre @ U])

    def contract(self, gradient: FloatArray) -> FloatArray:
        """Gradient in whitened coordinates: the transpose of `expand`."""
        G = gradient if self.centre is None else gradient[:-1] - np.multiply.outer(self.centre, gradient[-1])
        if self.basis is not None:
            G = self.basis.T @ G
        if self.centre is not None:
            G = np.vstack([G, gradient[-1]])
        return (G - G.mean(axis=1, keepdims=True) if self.centred else G) * self.scale


@dataclass
class Factorisation:
    """Factorisation of a training set, which is computed once for all alphas.

    Attributes
    ----------
    design : ndarray or CSR matrix of shape (n_samples, n_columns) or None
        The matrix in place of X in the objective: X, or its coordinates in the space of its rows; None if the rows are
        read in passes.
    centre : ndarray of shape (n_columns,) or None
        Mean of the design's columns if there is an intercept.
    gram : ndarray or None
        G, if it is small enough.
    eigenvalues : ndarray or None
        Of G, along the columns of ``basis``; with ``basis`` None, along the columns of the design.
    basis : ndarray or None
        Eigenvectors of G.
    rows : RowSpace or None
        Maps between the space of the rows and the features.
    factors : ndarray of shape (n_columns,) or None
        Numbers by which the features were multiplied; not in the space of the rows.
    """

    design: Any
    centre: FloatArray | None
    gram: FloatArray | None = None
    eigenvalues: FloatArray | None = None
    basis: FloatArray | None = None
    rows: "RowSpace | None" = None
    factors: FloatArray | None = None

    def whitening(self, alpha: float, labels: FloatArray, *, centred: bool = True) -> Whitening:
        """Whitened coordinates for one alpha and a mean prediction."""
        if self.gram is not None and alpha <= RESOLUTION * float(np.trace(self.gram)):
            basis = _inverse_root(self.gram, alpha * len(labels))
            return Whitening(basis, np.ones(len(basis)), 0.0, self.centre, labels, centred)
        if self.eigenvalues is None:
            eigenvalues, self.basis = linalg.eigh(self.gram, driver="evd", check_finite=False)
            self.eigenvalues = np.maximum(eigenvalues, 0.0)
        return Whitening(self.basis, self.eigenvalues, alpha, self.centre, labels, centred)

    def to_features(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of the features (n_features, n_labels) and intercept (n_labels,) from the design's parameters."""
        U, b = parameters, np.zeros(parameters.shape[1])
        if self.centre is not None:
            U, b = parameters[:-1], parameters[-1]
        if self.rows is None:
            return U if self.factors is None else U * self.factors[:, None], b
        W = self.rows.to_features(U)
        return W, b - self.rows.mean @ W if self.centre is not None else b

    def from_features(self, W: FloatArray, b: FloatArray) -> FloatArray:
        """Parameters of the design from weights of the features, projected to the space of the rows."""
        U = W
        if self.rows is not None:
            U = self.rows.from_features(W)
            b = b + self.rows.mean @ W
        return U if self.centre is None else np.vstack([U, b])

    def gradient_from_features(self, gradient: FloatArray) -> FloatArray:
        """Gradient over the design's parameters from the gradient over weights of the features and intercept."""
        if self.rows is None:
            return gradient
        if self.centre is None:
            return self.rows.gradient_from_features(gradient)
        G = gradient[:-1] - np.multiply.outer(self.rows.mean, gradient[-1])
        return np.vstack([self.rows.gradient_from_features(G), gradient[-1]])

    def squared_scores(self, W: FloatArray, b: FloatArray, mean: FloatArray, labels: FloatArray) -> float | None:
        """Σ_i ω_i Σ_j p̄_j s_ij² for weights of features with this mean; None if products of columns are not known."""
        if self.rows is not None:
            centred = self.rows.eigenvalues @ self.rows.from_features(W) ** 2
        elif self.gram is not None:
            centred = np.einsum("kj,kj->j", W, self.gram @ W)
        else:
            return None
        return float((centred + (mean @ W + b) ** 2) @ labels)


@dataclass
class RowSpace:
    """Coordinates of n rows in the space that they span: A = √ω (X − 1 meanᵀ) diag(scale) = left √λ rightᵀ.

    ``right`` = Aᵀ left / √λ has orthonormal columns. It is not stored: with many features it would be large. Sparse
    rows in ``X`` are minus the common values of their columns, and have the mean ``about``.
    """

    X: Any
    root_weight: FloatArray
    mean: FloatArray
    about: FloatArray
    scale: FloatArray
    left: FloatArray
    eigenvalues: FloatArray

    def to_features(self, U: FloatArray) -> FloatArray:
        """Return diag(scale) right U."""
        Y = self.left @ (U / np.sqrt(self.eigenvalues)[:, None]) * self.root_weight[:, None]
        # the mean is subtracted from the product, because centred sparse rows would not be sparse
        return np.asarray((self.X.T @ Y - np.multiply.outer(self.about, Y.sum(axis=0))) * self.scale[:, None] ** 2)

    def from_features(self, W: FloatArray) -> FloatArray:
        """Return rightᵀ diag(1/scale) W."""
        scaled = np.divide(W, self.scale[:, None], out=np.zeros_like(W), where=self.scale[:, None] > 0)
        return self._rightwards(scaled)

    def gradient_from_features(self, gradient: FloatArray) -> FloatArray:
        """Return rightᵀ diag(scale) gradient: the transpose of `to_features`."""
        return self._rightwards(gradient * self.scale[:, None])

    def _rightwards(self, scaled: FloatArray) -> FloatArray:
        unscaled = scaled * self.scale[:, None]
        Y = (self.X @ unscaled - self.about @ unscaled) * self.root_weight[:, None]
        return np.asarray(self.left.T @ Y / np.sqrt(self.eigenvalues)[:, None])


def factorise(X: Any, weight: FloatArray, *, fit_intercept: bool, scale_free: bool) -> Factorisation:
    """Factorise rows in memory, in the form that their shape allows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Features.
    weight : ndarray of shape (n_samples,)
        Positive row weights that sum to one.
    fit_intercept : bool
        Whether columns are centred.
    scale_free : bool
        Whether columns may be scaled in the space of the rows, as they may without a penalty.
    """
    if X.shape[0] < X.shape[1] and X.shape[0] <= MAX_MATRIX:
        return factorise_row_space(X, weight, None, fit_intercept=fit_intercept, scale_free=scale_free, total=1.0)
    factorisation = factorise_moments(
        _moments_of_columns(X, weight, centred=fit_intercept, total=1.0), None, fit_intercept=fit_intercept
    )
    factorisation.design = X
    return factorisation


def _moments_of_columns(X: Any, weight: Any, **plan: Any) -> Moments:
    """Moments of rows in memory, without those of labels."""
    return read_moments(CheckedRows(X, np.zeros((X.shape[0], 0)), weight), **plan)[0]


def factorise_moments(moments: Moments, factors: FloatArray | None, *, fit_intercept: bool) -> Factorisation:
    """Factorise rows by their moments, with columns multiplied by ``factors``."""
    second = moments.second(centred=fit_intercept)
    centre = moments.mean if fit_intercept else None
    if factors is not None:
        second *= np.multiply.outer(factors, factors) if second.ndim == 2 else factors**2
        centre = None if centre is None else centre * factors
    if second.ndim == 2:
        return Factorisation(None, centre, gram=second, factors=factors)
    return Factorisation(None, centre, eigenvalues=second, factors=factors)


def factorise_row_space(
    X: Any,
    weight: FloatArray | None,
    factors: FloatArray | None,
    *,
    fit_intercept: bool,
    scale_free: bool,
    total: float | None = None,
) -> Factorisation:
    """Factorise few rows of many features in the space of the rows, with columns multiplied by ``factors``."""
    n_features = X.shape[1]
    needs_variances = scale_free or (sparse.issparse(X) and fit_intercept)
    products = "variances" if needs_variances else "none"
    moments = _moments_of_columns(X, weight, centred=fit_intercept, products=products, total=total)
    scale = np.ones(n_features) if factors is None else factors
    if needs_variances:
        length = np.sqrt(moments.second(centred=fit_intercept))
        scale = np.where(length == 0, 0.0, scale)  # else the rounding error of a constant column stays in the products
        if scale_free:
            scale = np.divide(scale > 0, length, out=np.zeros_like(length), where=length > 0)
    mean = moments.mean if fit_intercept else np.zeros(n_features)
    about = moments.measured / moments.total if fit_intercept else mean
    root = np.sqrt(np.full(X.shape[0], 1.0 / moments.total) if weight is None else weight / moments.total)
    if sparse.issparse(X):
        X = sparse_minus(X, moments.origin) if moments.origin.any() else X
        A = X.multiply(root[:, None]).tocsr().astype(np.float64).multiply(scale).tocsr()
        across = A @ (about * scale)
        squares = (A @ A.T).toarray()
        squares -= np.multiply.outer(across, root) + np.multiply.outer(root, across)
        squares += float((about * scale) @ (about * scale)) * np.multiply.outer(root, root)
    else:
        A = X - mean
        A *= scale
        A *= root[:, None]
        squares = A @ A.T
    del A  # the decomposition reuses its memory: page faults cost as much as the arithmetic
    # the transpose is the same matrix in the order of LAPACK, which then overwrites it without a copy
    eigenvalues, left = linalg.eigh(squares.T, driver="evd", overwrite_a=True, check_finite=False)
    first = np.searchsorted(eigenvalues, RANK_CUT * max(eigenvalues[-1], np.finfo(np.float64).tiny), side="right")
    space = RowSpace(X, root, mean, about, scale, left[:, first:], eigenvalues[first:])
    design = np.multiply(space.left, np.sqrt(space.eigenvalues), order="C")
    design /= root[:, None]
    centre = np.zeros(design.shape[1]) if fit_intercept else None
    return Factorisation(design, centre, eigenvalues=space.eigenvalues, rows=space)


def _inverse_root(gram: FloatArray, ridge: float) -> FloatArray:
    """T with T Tᵀ = (gram + ridge I)⁻¹, up to the rank rule; columns of length zero get weight zero."""
    length = np.sqrt(np.diag(gram) + ridge)
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    scaled = gram * scale
    scaled *= scale[:, None]
    diagonal = np.diag(scaled) + ridge * scale**2
    for small in RIDGES:
        np.fill_diagonal(scaled, diagonal + small)
        factor, failed = linalg.lapack.dpotrf(scaled, lower=1)
        if not failed:
            break
    inverse, _ = linalg.lapack.dtrtri(factor, lower=1, overwrite_c=1)
    return np.asarray(inverse.T * scale[:, None])

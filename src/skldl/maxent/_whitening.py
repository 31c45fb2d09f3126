"""Coordinates in which the maximum entropy objective is nearly round, so that a quasi-Newton run needs few steps.

The Hessian of the mean cross-entropy is Σ ω_i (diag p_i − p_i p_iᵀ) ⊗ x_i x_iᵀ. Label distributions are far from
one-hot, so it changes little with the parameters and is close to (diag p̄ − p̄ p̄ᵀ) ⊗ G + alpha I, with G = Xᵀ
diag(ω) X and p̄ the mean prediction. Gradients sum to zero over labels, and there it acts as M_j = p̄_j G + alpha I
on the weights of label j. In coordinates V with u_j = T_j v_j and T_j T_jᵀ = M_j⁻¹ it is near the identity, whatever
the scale of the features and however rare a label. T only changes the path to the optimum, never the optimum itself.

What T is depends on the shape of X:

- at most 5000 columns, no more columns than rows: the Cholesky factor of G, or with a penalty the eigenvectors of G,
  which serve every alpha and label;
- fewer rows than columns, at most 5000 rows: the optimum lies in the span of the rows, so X is replaced by its
  n × n coordinates there, from the eigenvectors of X Xᵀ;
- neither: the diagonal of G. X is never made dense.

Without penalty the scale of a feature means nothing, so columns are scaled to length one first. Columns without
length keep weight zero. Directions whose share of the scaled G is below 1e-10 (1e-12 in the row space) count as rank
deficiency: there the weights stay where they began.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from skldl.maxent import _blocks
from skldl.maxent._constant_columns import CONSTANT_COLUMN, constant_columns, facts_of, without_common_values
from skldl.utils.typing import BoolArray, FloatArray

LARGEST_MATRIX = 5000
RIDGES = (1e-10, 1e-6, 1e-2)  # the next one only where rounding in G defeats the Cholesky factor
RANK_CUT = 1e-12
RESOLUTION = 1e-13  # below this share of the trace of G, its eigenvectors do not resolve alpha


@dataclass
class Whitening:
    """The map between whitened coordinates V and parameters U (and b) of a design: U = basis (scale ∘ V).

    basisᵀ G basis is diagonal and holds ``spectrum``, so scale_kj = (spectrum_k p̄_j + alpha)^(−½). What is scaled is
    also centred over labels: a common shift changes nothing, and its curvature would be alpha alone. With an
    intercept the columns are centred by ``centre``, so that b and U hardly interact: b = b' − centreᵀ U.
    """

    basis: FloatArray | None
    spectrum: FloatArray
    alpha: float
    centre: FloatArray | None
    labels: FloatArray  # p̄
    centred: bool = True  # over labels; False for models in which a common shift of the scores changes the loss

    def __post_init__(self) -> None:
        self.hessian = self.diagonal(self.labels)
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
    """What is computed once for a training set and serves every alpha.

    Attributes
    ----------
    design : ndarray or CSR matrix of shape (n_samples, n_columns)
        The matrix that stands for X in the objective: X, or its coordinates in the space of its rows.
    centre : ndarray of shape (n_columns,) or None
        Mean of the design's columns if there is an intercept.
    gram : ndarray or None
        G, where it is small enough.
    eigenvalues : ndarray or None
        Of G, along the columns of ``basis``; with ``basis`` None, along the columns of the design.
    basis : ndarray or None
        Eigenvectors of G.
    rows : RowSpace or None
        How to come back from the space of the rows.
    """

    design: Any
    centre: FloatArray | None
    gram: FloatArray | None = None
    eigenvalues: FloatArray | None = None
    basis: FloatArray | None = None
    rows: "RowSpace | None" = None

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
            return U, b
        W = self.rows.to_features(U)
        return W, b - self.rows.mean @ W if self.centre is not None else b

    def from_features(self, W: FloatArray, b: FloatArray) -> FloatArray:
        """Parameters of the design from weights of the features; what the rows do not span is left out."""
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


@dataclass
class RowSpace:
    """Coordinates of n rows in the space that they span: A = √ω (X − 1 meanᵀ) diag(scale) = left √λ rightᵀ.

    ``right`` = Aᵀ left / √λ has orthonormal columns. It is not stored: with many features it would be large. Sparse
    rows in ``X`` are measured from the common values of their columns, and have the mean ``about``.
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


def factorise(
    X: Any, weight: FloatArray, *, fit_intercept: bool, scale_free: bool, n_threads: int = 1
) -> Factorisation:
    """Factorise a training set once, in the way that its shape allows.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Features.
    weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    fit_intercept : bool
        Whether columns are centred.
    scale_free : bool
        Whether columns may be scaled in the space of the rows, as they may without a penalty.
    n_threads : int, default=1
        Number of blocks of dense rows to work on at once.
    """
    n_samples, n_features = X.shape
    mean = np.asarray(weight @ X, dtype=np.float64) if fit_intercept else np.zeros(n_features)
    centre = mean if fit_intercept else None
    if n_samples < n_features and n_samples <= LARGEST_MATRIX:
        rows = _row_space(X, weight, mean, scale_free)
        design = np.ascontiguousarray(rows.left * np.sqrt(rows.eigenvalues) / rows.root_weight[:, None])
        centre = np.zeros(design.shape[1]) if fit_intercept else None
        return Factorisation(design, centre, eigenvalues=rows.eigenvalues, rows=rows)
    if n_features > LARGEST_MATRIX:
        return Factorisation(X, centre, eigenvalues=_variances(X, weight, mean))
    return Factorisation(X, centre, gram=_gram(X, weight, mean, n_threads))


def column_deviations(X: Any, weight: FloatArray) -> FloatArray:
    """Weighted standard deviation of each column; exactly zero for a constant one."""
    return np.sqrt(_variances(X, weight, np.asarray(weight @ X, dtype=np.float64)))


def _inverse_root(gram: FloatArray, ridge: float) -> FloatArray:
    """T with T Tᵀ = (gram + ridge I)⁻¹, up to the rank rule; columns without length get weight zero."""
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


def _gram(X: Any, weight: FloatArray, mean: FloatArray, n_threads: int) -> FloatArray:
    """Σ ω_i (x_i − mean)(x_i − mean)ᵀ; for dense X without the cancellation of subtracting afterwards."""
    rows, about = _measured(X, weight, mean)
    gram = _blocks.gram(rows, weight, about, n_threads)
    if sparse.issparse(X) and about.any():
        gram -= np.multiply.outer(about, about)
    constant = _is_constant(np.diag(gram), X, mean, about)
    gram[constant] = gram[:, constant] = 0.0
    return gram


def _variances(X: Any, weight: FloatArray, mean: FloatArray) -> FloatArray:
    """Σ ω_i (x_ik − mean_k)² for each column k."""
    return _variances_of(X, weight, mean, *_measured(X, weight, mean))


def _variances_of(X: Any, weight: FloatArray, mean: FloatArray, rows: Any, about: FloatArray) -> FloatArray:
    variances = _blocks.variances(rows, weight, about)
    if sparse.issparse(X):
        variances -= about**2
    variances[_is_constant(variances, X, mean, about)] = 0.0
    return variances


def _measured(X: Any, weight: FloatArray, mean: FloatArray) -> tuple[Any, FloatArray]:
    """Rows and their mean; where columns of sparse rows are to be centred, measured so that digits are kept."""
    return without_common_values(X, weight, mean) if sparse.issparse(X) and mean.any() else (X, mean)


def _is_constant(variances: FloatArray, X: Any, mean: FloatArray, about: FloatArray) -> BoolArray:
    """Which columns have a variance that is nothing but rounding error."""
    if not sparse.issparse(X):
        return np.asarray(variances <= CONSTANT_COLUMN * mean**2)
    return constant_columns(variances, mean, about, np.bincount(X.indices, minlength=X.shape[1]) > 0, facts_of(X))


def _row_space(X: Any, weight: FloatArray, mean: FloatArray, scale_free: bool) -> RowSpace:
    scale = np.ones(X.shape[1])
    rows, about = _measured(X, weight, mean)
    if scale_free:
        length = np.sqrt(_variances_of(X, weight, mean, rows, about))
        scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    elif sparse.issparse(X) and mean.any():  # a constant column would leave its rounding error in the products
        scale[_variances_of(X, weight, mean, rows, about) == 0] = 0.0
    root = np.sqrt(weight)
    if sparse.issparse(X):
        A = rows.multiply(root[:, None]).tocsr().astype(np.float64).multiply(scale).tocsr()
        across = A @ (about * scale)
        products = (A @ A.T).toarray()
        products -= np.multiply.outer(across, root) + np.multiply.outer(root, across)
        products += float((about * scale) @ (about * scale)) * np.multiply.outer(root, root)
    else:
        A = (X - mean) * scale
        A *= root[:, None]
        products = A @ A.T
    eigenvalues, left = linalg.eigh(products, driver="evd", overwrite_a=True, check_finite=False)
    kept = eigenvalues > RANK_CUT * max(eigenvalues[-1], np.finfo(np.float64).tiny)
    return RowSpace(rows, root, mean, about, scale, left[:, kept], eigenvalues[kept])

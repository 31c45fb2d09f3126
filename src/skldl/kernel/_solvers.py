"""Solvers of kernel ridge regression with an intercept, and their predictions of left-out rows.

For weights w (S = diag(√w), u = √w / ‖√w‖) the kernel is centred on both sides by P = I − uuᵀ: A = P S K S P. The model
y = b + Σ_j k(x, x_j) a_j with the penalty λ‖f‖² and the loss Σ_i w_i ‖y_i − b − f(x_i)‖² has, with A = VΛVᵀ and the
columns of V orthogonal to u,

    z = V (Λ + λ)⁻¹ Vᵀ S Y,   a = S z,   residuals S(Y − Ŷ) = λ z,   M = I − H = λ V (Λ + λ)⁻¹ Vᵀ.

H contains uuᵀ, the part of the intercept: for equal weights h_i = 1/n + Σ_k V_ik² Λ_k / (Λ_k + λ). If the rows B are
left out, the residuals of the model fitted without them are S_B⁻¹ M_BB⁻¹ λ z_B: exactly what a new fit with the same λ
has, its intercept included.

There are four solvers:

- eigenvectors (`decompose`), which serve every penalty;
- a Cholesky factorisation (`ExactInverse`) for one penalty, in a third of the time. On a device (`DeviceInverse`) the
  factor and its inverse take the memory of the matrix itself: library routines return a new matrix, which for 100,000
  rows in double precision means 160 GB. Nearly all arithmetic is in matrix products of blocks, n³/3 multiplications for
  the factor and as many for its inverse;
- Nyström features (`nystroem`) where the kernel matrix does not fit into memory. Those of m landmark rows,
  Φ = K_nm L⁻ᵀ with K_mm = LLᵀ, give K ≈ ΦΦᵀ. The singular vectors of PSΦ are an incomplete basis, for which the
  formulae above hold with M = I − uuᵀ − VVᵀ + λ V (Λ + λ)⁻¹ Vᵀ: leave-one-out predictions are exact for that model;
- conjugate gradients (`solve_iteratively`) on the full problem (A + λI) z = S Y for all columns of Y at once,
  preconditioned with the basis of the Nyström features [1]_. Kernel values are computed block by block in each step and
  never stored.

References
----------
.. [1] Z. Frangella, J. A. Tropp and M. Udell, "Randomized Nyström preconditioning", SIAM Journal on Matrix Analysis and
   Applications 44(2), 2023.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.extmath import row_norms

from skldl.kernel._kernels import KernelFunction, kernel_times, kernel_values
from skldl.kernel._kernels import row_blocks as kernel_blocks
from skldl.utils.arrays import (
    as_type_of,
    at_least,
    is_device_array,
    namespace,
    ones_for,
    row_blocks,
    space,
    subtract_outer,
    take_rows,
    to_numpy,
)
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.warn import warn

MAX_BLOCK = 2**24
"""Group blocks of the matrix M are formed for at most about this many numbers at a time (128 MiB)."""
BLOCK = 1024
"""Columns of a block in products on a device: enough for full speed, and few enough that what is computed above the
diagonal, where all is zero, costs little."""
SMALL_TRIANGLE = 256
"""Triangles of at most so many rows are inverted by the library: then the recursion costs more than it saves. Chosen by
hand."""
N_PROBES = 64
"""Number of columns of random signs; chosen by hand. Their sampling error falls with the root of it."""
PROBE_TOL = 1e-3
"""Relative residual to which they are solved, well below their sampling error."""


@dataclass(frozen=True)
class Weighting:
    """Square roots of the weights, and the unit vector that belongs to the intercept."""

    root: FloatArray
    unit: FloatArray
    share: FloatArray

    @classmethod
    def of(cls, weight: FloatArray | None, rows: Any) -> "Weighting":
        """Take the weights as they are; None counts every row once. They live where ``rows`` are."""
        w = ones_for(rows) if weight is None else weight
        xp = namespace(w)
        root, total = xp.sqrt(w), xp.sum(w)
        return cls(root, root / xp.sqrt(total), w / total)

    def centred_targets(self, Y: FloatArray) -> FloatArray:
        """S(Y − 1ȳ), orthogonal to u."""
        return self.root[:, None] * (Y - self.share @ Y)


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of the centred, weighted kernel, complete or not."""

    weighting: Weighting
    values: FloatArray
    vectors: FloatArray
    complete: bool

    def fit(self, Y: FloatArray, penalties: FloatArray) -> FloatArray:
        """Return the weighted residuals S(Y − Ŷ) for all penalties, of shape (n_penalties, n, n_targets)."""
        xp = namespace(self.vectors)
        targets = self.weighting.centred_targets(Y)
        projected = self.vectors.T @ targets
        filters = self._filters(penalties)
        # one product for all penalties and targets: the vectors, the largest array, are read once
        shape = (self.values.shape[0], len(penalties) * Y.shape[1])
        stacked = xp.reshape(filters[:, :, None] * projected[:, None, :], shape)
        residuals = xp.reshape(self.vectors @ stacked, (Y.shape[0], len(penalties), Y.shape[1]))
        if not self.complete:  # what the basis does not span is residual whatever the penalty
            residuals += (targets - self.vectors @ projected)[:, None, :]
        if xp is np:
            return np.ascontiguousarray(residuals.transpose(1, 0, 2))
        return xp.permute_dims(residuals, (1, 0, 2))

    def _filters(self, penalties: FloatArray) -> FloatArray:
        """λ / (Λ + λ), of shape (n_values, n_penalties)."""
        of_device = as_type_of(penalties, self.values)
        return of_device / (self.values[:, None] + of_device)

    def diagonal(self, penalties: FloatArray) -> FloatArray:
        """Diagonal of M = I − H for all penalties, of shape (n_penalties, n)."""
        squares = self.vectors**2
        diagonal = squares @ self._filters(penalties)
        if not self.complete:
            diagonal += (1 - self.weighting.unit**2 - squares.sum(axis=1))[:, None]
        return np.ascontiguousarray(diagonal.T) if isinstance(diagonal, np.ndarray) else diagonal.T

    def block(self, rows: IntArray, penalties: FloatArray) -> FloatArray:
        """Block of M for some rows and all penalties, of shape (n_penalties, n_rows, n_rows)."""
        V, u = take_rows(self.vectors, rows), take_rows(self.weighting.unit, rows)
        rest = 0.0 if self.complete else np.eye(len(rows)) - np.outer(u, u) - V @ V.T  # on a device it is complete
        blocks = [(V * (penalty / (self.values + penalty))) @ V.T + rest for penalty in penalties.tolist()]
        return namespace(V).stack(blocks)

    def left_out(self, Y: FloatArray, penalties: FloatArray, codes: IntArray | None) -> FloatArray:
        """Predict each row from a fit without it (or without its group) for all penalties.

        Parameters
        ----------
        Y : ndarray of shape (n, n_targets)
            Targets.
        penalties : ndarray of shape (n_penalties,)
            Values of λ.
        codes : ndarray of shape (n,) or None
            Groups, numbered from 0; None leaves out one row at a time.

        Returns
        -------
        ndarray of shape (n_penalties, n, n_targets)
            The predictions.
        """
        residuals = self.fit(Y, penalties)
        if codes is None:
            return left_out_rows(Y, residuals, self.diagonal(penalties), self.weighting)
        for rows in group_rows(codes):
            step = max(1, MAX_BLOCK // len(rows) ** 2)
            for start in range(0, len(penalties), step):
                chosen = slice(start, min(start + step, len(penalties)))
                blocks = self.block(rows, penalties[chosen])
                if isinstance(residuals, np.ndarray):
                    residuals[chosen, rows] = np.linalg.solve(blocks, residuals[chosen, rows])
                else:
                    residuals = _solved(residuals, blocks, chosen, rows)
        return Y - residuals / self.weighting.root[:, None]

    def dual(self, Y: FloatArray, penalty: float) -> FloatArray:
        """Return a, the coefficients of the kernel functions; they sum to zero (complete basis only)."""
        residuals = self.fit(Y, np.array([penalty]))[0, ...]
        return self.weighting.root[:, None] * residuals / penalty


def _solved(residuals: Any, blocks: Any, chosen: slice, rows: IntArray) -> Any:
    """Replace the residuals of some rows by those of a fit without them, on a device."""
    xp, device = space(residuals)
    part = xp.linalg.solve(blocks, xp.take(residuals[chosen, ...], xp.asarray(rows, device=device), axis=1))
    inside = np.zeros(residuals.shape[1], dtype=bool)
    inside[rows] = True
    positions = np.zeros(residuals.shape[1], dtype=np.int64)
    positions[rows] = np.arange(len(rows))
    spread = xp.take(part, xp.asarray(positions, device=device), axis=1)
    mask = xp.asarray(inside, device=device)[None, :, None]
    residuals[chosen, ...] = xp.where(mask, spread, residuals[chosen, ...])
    return residuals


def left_out_rows(Y: FloatArray, residuals: FloatArray, diagonal: FloatArray, weighting: Weighting) -> FloatArray:
    """Predictions of left-out rows from weighted residuals and the diagonal of M, one table for each penalty."""
    return Y - residuals / (diagonal * weighting.root)[:, :, None]


def group_rows(codes: IntArray) -> list[IntArray]:
    """Rows of each group."""
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)


def centre(K: FloatArray, weighting: Weighting) -> tuple[FloatArray, float]:
    """Turn K into A + c·uuᵀ in place, with c above every eigenvalue of A: u is then the last eigenvector.

    A itself is singular in the direction u, so that it has no Cholesky factor without c.
    """
    root, u = weighting.root, weighting.unit
    if is_device_array(K):
        return _centre_on_device(K, root, u)
    K *= root[:, None]
    K *= root
    product = K @ u
    product -= 0.5 * (u @ product) * u
    total = float(np.trace(K))  # of S K S, whose trace less uᵀSKSu is that of A
    # twice the trace of A, which is above its eigenvalues; the second term covers rounding, 1 a kernel of zeros
    c = max(2 * (total - 2 * float(u @ product)), 1e-6 * total) or 1.0
    product -= 0.5 * c * u
    K -= product[:, None] * u  # a symmetric change of rank two, without another n × n array
    K -= u[:, None] * product
    return K, c


def _centre_on_device(K: Any, root: Any, u: Any) -> tuple[Any, float]:
    """`centre` on a device, by blocks of rows: no other array of the size of K is allocated."""
    xp = namespace(K)
    products, weighted = [], bool(xp.any(root != 1.0))
    for rows in row_blocks(K.shape[0], K.shape[1]):
        part = K[rows, ...]
        if weighted:
            part *= root[rows, None]
            part *= root
        products.append(part @ u)
    product = xp.concat(products)
    product = product - 0.5 * xp.sum(u * product) * u
    total = float(xp.sum(xp.linalg.diagonal(K)))
    c = max(2 * (total - 2 * float(xp.sum(u * product))), 1e-6 * total) or 1.0  # as in `centre`
    product = product - 0.5 * c * u
    for rows in row_blocks(K.shape[0], K.shape[1]):
        part = K[rows, ...]
        subtract_outer(part, product[rows], u)
        subtract_outer(part, u[rows], product)
    return K, c


def decompose(K: FloatArray, weight: FloatArray | None) -> Spectrum:
    """Decompose a kernel matrix, which is overwritten."""
    weighting = Weighting.of(weight, K)
    A, c = centre(K, weighting)
    if is_device_array(A):
        values, vectors = namespace(A).linalg.eigh(A)
    else:
        # "evd" is divide and conquer, made for all eigenvectors of a large matrix
        values, vectors = linalg.eigh(A, driver="evd", overwrite_a=True, check_finite=False)
    values, vectors = values[:-1], vectors[:, :-1]  # eigenvalues ascend: the last vector is u, with c
    check_positive(to_numpy(values), c)
    return Spectrum(weighting, at_least(values, 0.0), vectors, complete=True)  # rounding makes some of zero negative


def check_positive(values: FloatArray, size: float) -> None:
    """Reject a kernel whose matrix has negative eigenvalues beyond rounding, which is a small part of ``size``."""
    # rounding moves eigenvalues by about n machine epsilons of the size: 1e-8 is far above that for any n that fits
    if values.size and values.min() < -1e-8 * size:
        raise ValueError(
            f"The kernel matrix has the eigenvalue {values.min():.3g} besides {values.max():.3g}, so the kernel is not "
            "positive semi-definite. Pass another kernel function."
        )


class ExactInverse:
    """The inverse of A + λI for one penalty by Cholesky factorisation.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix; it is overwritten.
    weight : ndarray of shape (n,) or None
        Weights.
    penalty : float
        λ.
    """

    def __init__(self, K: FloatArray, weight: FloatArray | None, penalty: float) -> None:
        self.weighting = Weighting.of(weight, K)
        self.penalty = penalty
        A, self._c = centre(K, self.weighting)
        A.flat[:: len(A) + 1] += penalty
        # LAPACK works on columns: the transpose of a symmetric matrix in C order is the matrix, without a copy
        factor, failed = linalg.lapack.dpotrf(A.T, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise ValueError(not_definite(penalty))
        inverse, _ = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
        self._lower = inverse

    def residuals(self, Y: FloatArray) -> FloatArray:
        """Return the weighted residuals S(Y − Ŷ) = λ z."""
        targets = self.weighting.centred_targets(Y)
        # only the lower triangle of the inverse was computed, and dsymv reads no other
        columns = [linalg.blas.dsymv(self.penalty, self._lower, y, lower=1) for y in targets.T]
        return np.column_stack(columns)

    def left_out(self, Y: FloatArray, residuals: FloatArray, codes: IntArray | None) -> FloatArray:
        """Predict each row from a fit without it or without its group."""
        u, shrink = self.weighting.unit, 1 / (self._c + self.penalty)
        if codes is None:
            # (A + c uuᵀ + λI)⁻¹ less uuᵀ/(c + λ) is V(Λ + λ)⁻¹Vᵀ: M does not contain c
            diagonal = self.penalty * (np.diagonal(self._lower) - u**2 * shrink)
            return left_out_rows(Y, residuals[None], diagonal[None], self.weighting)[0]
        left = np.empty_like(residuals)
        for rows in group_rows(codes):
            lower = np.tril(self._lower[np.ix_(rows, rows)])  # rows ascend, so the block's triangle is the whole's
            block = lower + np.tril(lower, -1).T - shrink * np.outer(u[rows], u[rows])
            left[rows] = np.linalg.solve(self.penalty * block, residuals[rows])
        return np.asarray(Y - left / self.weighting.root[:, None])


class DeviceInverse(ExactInverse):
    """`ExactInverse` on a device: the inverse V of the Cholesky factor in the memory of K, (A + λI)⁻¹ = VᵀV.

    Parameters
    ----------
    K : array of shape (n, n)
        Kernel matrix; it is overwritten.
    weight : array of shape (n,) or None
        Weights.
    penalty : float
        λ.
    """

    def __init__(self, K: Any, weight: Any, penalty: float) -> None:
        self.weighting = Weighting.of(weight, K)
        self.penalty = penalty
        self._factor, self._c = centre(K, self.weighting)
        _add_to_diagonal(self._factor, penalty)
        try:
            factorise_in_place(self._factor)
        except NotPositiveDefinite as error:
            raise ValueError(not_definite(penalty)) from error
        invert_in_place(self._factor)

    def residuals(self, Y: Any) -> Any:
        """Return the weighted residuals S(Y − Ŷ) = λ z."""
        return self.penalty * (self._factor.T @ (self._factor @ self.weighting.centred_targets(Y)))

    def left_out(self, Y: Any, residuals: Any, codes: IntArray | None) -> Any:
        """Predict each row from a fit without it or without its group."""
        xp, device = space(self._factor)
        u, shrink = self.weighting.unit, 1 / (self._c + self.penalty)
        if codes is None:
            squares = xp.zeros_like(u)
            for rows in row_blocks(u.shape[0], u.shape[0]):
                squares = squares + xp.sum(self._factor[rows, ...] ** 2, axis=0)
            diagonal = self.penalty * (squares - u**2 * shrink)
            return left_out_rows(Y, residuals[None, ...], diagonal[None, :], self.weighting)[0, ...]
        left = residuals[None, ...]
        for group in group_rows(codes):
            columns = xp.take(self._factor, xp.asarray(group, device=device), axis=1)
            part = take_rows(u, group)
            block = columns.T @ columns - shrink * part[:, None] * part
            left = _solved(left, self.penalty * block[None, ...], slice(None), group)
        return Y - left[0, ...] / self.weighting.root[:, None]


class NotPositiveDefinite(ValueError):
    """The matrix has no Cholesky factor."""


def factorise_in_place(A: Any, block: int = BLOCK) -> None:
    """Replace a symmetric positive definite matrix by its lower Cholesky factor, with zeros above the diagonal.

    Parameters
    ----------
    A : array of shape (n, n)
        Only its lower triangle is read.
    block : int, default=1024
        Columns of a block.

    Raises
    ------
    NotPositiveDefinite
        If there is no factor.
    """
    n = A.shape[0]
    for start in range(0, n, block):
        end = min(start + block, n)
        if start:  # subtract the part of the columns on their left: one long product
            _subtract_product(A[start:, start:end], A[start:, :start], A[start:end, :start].T)
        corner = _factor(A[start:end, start:end])
        A[start:end, start:end] = corner
        A[start:end, end:] = 0.0
        if end < n:
            A[end:, start:end] = A[end:, start:end] @ inverse_of_lower(corner).T


def _subtract_product(values: Any, left: Any, right: Any) -> None:
    """Values minus left times right, in the memory of the values."""
    if hasattr(values, "addmm_"):
        values.addmm_(left, right, alpha=-1.0)
    else:
        values -= left @ right


def _negative_product(values: Any, left: Any, right: Any) -> None:
    """Write −left times right into an array that shares no memory with the factors."""
    if hasattr(values, "addmm_"):
        values.addmm_(left, right, beta=0.0, alpha=-1.0)
    else:
        values[...] = -(left @ right)


def _factor(block: Any) -> Any:
    xp = namespace(block)
    try:
        factor = xp.linalg.cholesky(block)
    except Exception as error:  # each library has an error of its own for this
        if "LinAlgError" not in type(error).__name__:
            raise
        raise NotPositiveDefinite from error
    if not bool(xp.all(xp.isfinite(xp.linalg.diagonal(factor)))):  # some return NaN instead
        raise NotPositiveDefinite
    return factor


def inverse_of_lower(L: Any) -> Any:
    """Inverse of a lower triangular matrix, by halves: (A 0; B C)⁻¹ = (A⁻¹ 0; −C⁻¹BA⁻¹ C⁻¹)."""
    xp, device = space(L)
    n = L.shape[0]
    if hasattr(xp.linalg, "solve_triangular"):  # torch
        return xp.linalg.solve_triangular(L, xp.eye(n, dtype=L.dtype, device=device), upper=False)
    if n <= SMALL_TRIANGLE:
        return xp.tril(xp.linalg.inv(L))
    half = n // 2
    inverse = xp.zeros_like(L)
    upper, lower = inverse_of_lower(L[:half, :half]), inverse_of_lower(L[half:, half:])
    inverse[:half, :half] = upper
    inverse[half:, half:] = lower
    inverse[half:, :half] = -(lower @ (L[half:, :half] @ upper))
    return inverse


def invert_in_place(L: Any, block: int = BLOCK) -> None:
    """Replace a lower triangular matrix, zero above, by its inverse.

    Block columns are inverted from the last to the first: of (A 0; B C), with C⁻¹ in the place of C already, the block
    column becomes A⁻¹ and −C⁻¹ (B A⁻¹).
    """
    n = L.shape[0]
    for start in reversed(range(0, n, block)):
        end = min(start + block, n)
        corner = inverse_of_lower(L[start:end, start:end])
        below = L[end:, start:end] @ corner
        for first in range(end, n, 2 * block):
            last = min(first + 2 * block, n)
            _negative_product(L[first:last, start:end], L[first:last, end:last], below[: last - end, :])
        L[start:end, start:end] = corner


def _add_to_diagonal(A: Any, value: float) -> None:
    """Add a number to the diagonal in place, block by block."""
    xp, device = space(A)
    for rows in row_blocks(A.shape[0], 1024, 2**20):  # 1,024 rows: an identity matrix of all would not fit
        corner = A[rows, rows]
        corner += value * xp.eye(corner.shape[0], dtype=A.dtype, device=device)


def not_definite(penalty: float) -> str:
    """Message of the error about a matrix without Cholesky factor."""
    return (
        f"The kernel matrix plus {penalty:.3g} on its diagonal is not positive definite. Pass a larger alpha, "
        "or another kernel if it is a function of yours."
    )


def intercept(Y: FloatArray, dual: FloatArray, kernel_means: FloatArray, weighting: Weighting) -> FloatArray:
    """Return b = ȳ − Σ_j k̄_j a_j, where k̄_j is the weighted mean of the kernel between row j and all rows."""
    return weighting.share @ Y - kernel_means @ dual


def kernel_means(K: Any, weighting: Weighting) -> FloatArray:
    """Weighted mean of each column of the kernel matrix."""
    return weighting.share @ K


@dataclass(frozen=True)
class Nystroem:
    """Nyström features as a spectrum, with the transformations that predict from the landmarks.

    ``spectrum.vectors = (S Φ − u uᵀ S Φ) to_basis`` and ``K_nm to_features = Φ``.
    """

    spectrum: Spectrum
    landmarks: IntArray
    to_features: FloatArray
    to_basis: FloatArray
    feature_means: FloatArray
    missing_diagonal: FloatArray

    def dual(self, Y: FloatArray, penalty: float) -> tuple[FloatArray, FloatArray]:
        """Coefficients of the kernel functions of the landmarks, and the intercept."""
        weighting = self.spectrum.weighting
        projected = self.spectrum.vectors.T @ weighting.centred_targets(Y)
        values = self.spectrum.values[:, None]
        coefficients = self.to_basis @ (values / (values + penalty) * projected)
        return self.to_features @ coefficients, weighting.share @ Y - self.feature_means @ coefficients


def nystroem(
    kernel: str | KernelFunction,
    X: Any,
    length_scale: float,
    weight: FloatArray | None,
    landmarks: IntArray,
) -> Nystroem:
    """Make the Nyström features of some landmark rows.

    Parameters
    ----------
    kernel : str or callable
        The kernel.
    X : ndarray or CSR matrix of shape (n, n_features)
        Scaled features.
    length_scale : float
        Length scale of the kernel.
    weight : ndarray of shape (n,) or None
        Weights.
    landmarks : ndarray of shape (m,)
        Rows that serve as landmarks.
    """
    weighting = Weighting.of(weight, X)
    points = X[landmarks]
    values, vectors = linalg.eigh(kernel_values(kernel, points, points, length_scale), check_finite=False)
    # smaller eigenvalues are rounding errors of the kernel of the landmarks; their inverse roots would magnify these
    kept = values > 1e-10 * max(values[-1], np.finfo(float).tiny)
    to_features = vectors[:, kept] / np.sqrt(values[kept])
    features = np.empty((X.shape[0], int(kept.sum())))
    missing = np.empty(X.shape[0])
    for block in kernel_blocks(X.shape[0], len(landmarks)):
        features[block] = kernel_values(kernel, X[block], points, length_scale) @ to_features
        missing[block] = _diagonal(kernel, X[block], length_scale) - (features[block] ** 2).sum(axis=1)
    means = weighting.share @ features
    features -= means
    features *= weighting.root[:, None]
    # eigenvectors of the small Gram matrix instead of singular vectors of the tall table, which need a copy of it
    squares, rotation = linalg.eigh(features.T @ features, check_finite=False)
    kept = squares > 1e-12 * max(squares[-1], np.finfo(float).tiny)  # directions in which the features do not vary
    to_basis = rotation[:, kept] / np.sqrt(squares[kept])
    for block in kernel_blocks(X.shape[0], len(means)):  # in place: a second table of this size may not fit
        features[block, : to_basis.shape[1]] = features[block] @ to_basis
    spectrum = Spectrum(weighting, squares[kept], features[:, : to_basis.shape[1]], complete=False)
    # features never exceed the kernel's diagonal in exact arithmetic
    return Nystroem(spectrum, landmarks, to_features, to_basis, means, np.maximum(missing, 0.0))


def _diagonal(kernel: str | KernelFunction, X: Any, length_scale: float) -> FloatArray:
    """k(x, x) for each row."""
    if not callable(kernel):
        return row_norms(X, squared=True) / length_scale if kernel == "linear" else np.ones(X.shape[0])
    return np.array([kernel_values(kernel, X[[i]], X[[i]], length_scale)[0, 0] for i in range(X.shape[0])])


@dataclass(frozen=True)
class IterativeFit:
    """Solution by conjugate gradients: coefficients, intercept, weighted residuals, and M r for random signs r."""

    dual: FloatArray
    intercept: FloatArray
    residuals: FloatArray
    probes: FloatArray
    probed: FloatArray
    n_iter: int


def solve_iteratively(
    kernel: str | KernelFunction,
    X: Any,
    length_scale: float,
    sketch: Nystroem,
    Y: FloatArray,
    penalty: float,
    *,
    tol: float,
    max_iter: int,
    random_state: np.random.RandomState,
) -> IterativeFit:
    """Solve (A + λI) z = S Y by preconditioned conjugate gradients.

    Random signs r are further columns of the right-hand side, at little cost: they estimate the diagonal of
    M = λ(A + λI)⁻¹P, which the leave-one-out predictions need, by the mean of r ∘ M r.

    Parameters
    ----------
    kernel : str or callable
        The kernel.
    X : ndarray or CSR matrix of shape (n, n_features)
        Scaled features.
    length_scale : float
        Length scale of the kernel.
    sketch : Nystroem
        Nyström features, for the preconditioner.
    Y : ndarray of shape (n, n_targets)
        Targets.
    penalty : float
        λ.
    tol : float
        Relative residual of the solution.
    max_iter : int
        Maximum number of steps.
    random_state : RandomState
        Draws the signs.
    """
    weighting = sketch.spectrum.weighting
    root, u = weighting.root[:, None], weighting.unit[:, None]

    def operator(z: FloatArray) -> FloatArray:
        product = root * kernel_times(kernel, X, X, length_scale, root * z)
        return product - u * (u.T @ product) + penalty * z

    n_targets = Y.shape[1]
    probes = random_state.choice([-1.0, 1.0], size=(len(Y), N_PROBES))
    right = np.hstack([weighting.centred_targets(Y), probes - u * (u.T @ probes)])
    goals = np.r_[np.full(n_targets, tol), np.full(N_PROBES, max(tol, PROBE_TOL))]  # more digits of probes are noise
    z, n_iter = conjugate_gradients(operator, preconditioner(sketch.spectrum, penalty), right, goals, max_iter)
    z -= u * (u.T @ z)  # orthogonal to u but for rounding, so that the coefficients sum to zero
    dual = root * z[:, :n_targets]
    fitted = kernel_times(kernel, X, X, length_scale, dual)
    b = weighting.share @ (Y - fitted)
    return IterativeFit(dual, b, root * (Y - fitted - b), probes, penalty * z[:, n_targets:], n_iter)


def preconditioner(spectrum: Spectrum, penalty: float) -> Callable[[FloatArray], FloatArray]:
    """Invert A + λI in the span of the basis; outside, with the smallest known eigenvalue in place of the others."""
    values, vectors = spectrum.values, spectrum.vectors
    smallest = float(values.min()) if values.size else 0.0
    shrink = ((smallest + penalty) / (values + penalty) - 1)[:, None]

    def apply(residuals: FloatArray) -> FloatArray:
        return np.asarray(residuals + vectors @ (shrink * (vectors.T @ residuals)))

    return apply


def conjugate_gradients(
    operator: Callable[[FloatArray], FloatArray],
    precondition: Callable[[FloatArray], FloatArray],
    targets: FloatArray,
    tol: FloatArray,
    max_iter: int,
) -> tuple[FloatArray, int]:
    """Solve for all columns at once; each has its own step lengths, and one product serves all.

    It stops when every column's residual is at most its ``tol`` times its target, and warns if ``max_iter`` comes
    first.
    """
    solution = np.zeros_like(targets)
    residuals = targets.copy()
    goal = tol * np.linalg.norm(targets, axis=0)
    preconditioned = precondition(residuals)
    direction = preconditioned.copy()
    energy = (residuals * preconditioned).sum(axis=0)
    for n_iter in range(max_iter + 1):
        if (np.linalg.norm(residuals, axis=0) <= goal).all():
            return solution, n_iter
        if n_iter == max_iter:
            break
        product = operator(direction)
        curvature = (direction * product).sum(axis=0)
        # a column that is solved to the last digit has curvature 0, and stays where it is
        step = np.divide(energy, curvature, out=np.zeros_like(energy), where=curvature > 0)
        solution += step * direction
        residuals -= step * product
        preconditioned = precondition(residuals)
        before, energy = energy, (residuals * preconditioned).sum(axis=0)
        direction *= np.divide(energy, before, out=np.zeros_like(energy), where=before > 0)
        direction += preconditioned
    norms = np.maximum(np.linalg.norm(targets, axis=0), np.finfo(float).tiny)
    worst = float((np.linalg.norm(residuals, axis=0) / norms).max())
    warn(
        f"KernelRidgeLDL stopped after {max_iter} steps of conjugate gradients with a relative residual of {worst:.1e} "
        f"instead of {tol.min():.1e}. Raise max_iter or alpha, or set solver='nystroem'.",
        ConvergenceWarning,
    )
    return solution, max_iter


def left_out_iteratively(
    Y: FloatArray, fit: IterativeFit, sketch: Nystroem, penalty: float, codes: IntArray | None
) -> FloatArray:
    """Predict left-out rows from the residuals of the fit and an estimate of M = I − H.

    A first approximation F adds to the Nyström features what they miss of the kernel's diagonal, δ: A ≈ BBᵀ + diag(wδ),
    whose inverse has a closed form. The random signs correct its diagonal: diag(F) + mean of r ∘ (M − F) r. The blocks
    of groups are those of F, with rows and columns multiplied so that they have that diagonal.
    """
    weighting = sketch.spectrum.weighting
    d = weighting.root**2 * sketch.missing_diagonal + penalty
    B = sketch.spectrum.vectors * np.sqrt(sketch.spectrum.values)
    scaled = B / d[:, None]
    inner = B.T @ scaled
    inner.flat[:: len(inner) + 1] += 1
    half = linalg.solve_triangular(linalg.cholesky(inner, lower=True), scaled.T, lower=True).T
    of_unit = weighting.unit / d - half @ (half.T @ weighting.unit)
    half = np.column_stack([half, of_unit / np.sqrt(weighting.unit @ of_unit)])  # F = λ(diag(1/d) − half halfᵀ)
    first = penalty * (1 / d - (half**2).sum(axis=1))
    missing = fit.probed - penalty * (fit.probes / d[:, None] - half @ (half.T @ fit.probes))
    # M has its diagonal in (0, 1]; sampling errors must not bring it near 0, by which residuals are divided (0.2 was
    # chosen by hand)
    diagonal = np.clip(first + (fit.probes * missing).mean(axis=1), 0.2 * first, 1.0)
    if codes is None:
        return np.asarray(Y - fit.residuals / (diagonal * weighting.root)[:, None])
    factor = np.sqrt(diagonal / first)
    left = np.empty_like(fit.residuals)
    for rows in group_rows(codes):
        block = penalty * (np.diag(1 / d[rows]) - half[rows] @ half[rows].T)
        left[rows] = np.linalg.solve(factor[rows, None] * block * factor[rows], fit.residuals[rows])
    return np.asarray(Y - left / weighting.root[:, None])

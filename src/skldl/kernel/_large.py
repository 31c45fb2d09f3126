"""Kernel ridge where the kernel matrix does not fit into memory: Nyström features and preconditioned CG.

Nyström features of m landmark rows, Φ = K_nm L⁻ᵀ with K_mm = LLᵀ, give K ≈ ΦΦᵀ. The singular vectors of PSΦ are the
incomplete basis of a `Spectrum`: penalties are chosen by its exact leave-one-out predictions. The full problem
(A + λI) z = S Y is then solved by conjugate gradients for all columns of Y at once, preconditioned with that
basis [1]_: kernel values are computed block by block in each step and never stored.

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

from skldl.kernel._kernels import KernelFunction, kernel_times, kernel_values, row_blocks
from skldl.kernel._leave_out import Spectrum, Weighting, group_rows
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.warn import warn

N_PROBES = 64
"""Number of columns of random signs; chosen by hand. Their sampling error falls with the root of it."""
PROBE_TOL = 1e-3
"""Relative residual to which they are solved, well below their sampling error."""


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
    for block in row_blocks(X.shape[0], len(landmarks)):
        features[block] = kernel_values(kernel, X[block], points, length_scale) @ to_features
        missing[block] = _diagonal(kernel, X[block], length_scale) - (features[block] ** 2).sum(axis=1)
    means = weighting.share @ features
    features -= means
    features *= weighting.root[:, None]
    squares, rotation = linalg.eigh(features.T @ features, check_finite=False)
    kept = squares > 1e-12 * max(squares[-1], np.finfo(float).tiny)  # directions in which the features do not vary
    to_basis = rotation[:, kept] / np.sqrt(squares[kept])
    for block in row_blocks(X.shape[0], len(means)):  # in place: a second table of this size may not fit
        features[block, : to_basis.shape[1]] = features[block] @ to_basis
    spectrum = Spectrum(weighting, squares[kept], features[:, : to_basis.shape[1]], complete=False)
    return Nystroem(spectrum, landmarks, to_features, to_basis, means, np.maximum(missing, 0.0))


def _diagonal(kernel: str | KernelFunction, X: Any, length_scale: float) -> FloatArray:
    """k(x, x) for each row."""
    if not callable(kernel):
        return row_norms(X, squared=True) / length_scale if kernel == "linear" else np.ones(X.shape[0])
    return np.array([kernel_values(kernel, X[[i]], X[[i]], length_scale)[0, 0] for i in range(X.shape[0])])


@dataclass(frozen=True)
class LargeFit:
    """Solution by conjugate gradients: coefficients, intercept, weighted residuals, and M r for random signs r."""

    dual: FloatArray
    intercept: FloatArray
    residuals: FloatArray
    probes: FloatArray
    probed: FloatArray
    n_iter: int


def solve(
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
) -> LargeFit:
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
    goals = np.r_[np.full(n_targets, tol), np.full(N_PROBES, max(tol, PROBE_TOL))]
    z, n_iter = conjugate_gradients(operator, preconditioner(sketch.spectrum, penalty), right, goals, max_iter)
    z -= u * (u.T @ z)
    dual = root * z[:, :n_targets]
    fitted = kernel_times(kernel, X, X, length_scale, dual)
    b = weighting.share @ (Y - fitted)
    return LargeFit(dual, b, root * (Y - fitted - b), probes, penalty * z[:, n_targets:], n_iter)


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


def left_out(Y: FloatArray, fit: LargeFit, sketch: Nystroem, penalty: float, codes: IntArray | None) -> FloatArray:
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
    # M has its diagonal in (0, 1]; sampling errors must not bring it near 0, by which residuals are divided
    diagonal = np.clip(first + (fit.probes * missing).mean(axis=1), 0.2 * first, 1.0)
    if codes is None:
        return np.asarray(Y - fit.residuals / (diagonal * weighting.root)[:, None])
    factor = np.sqrt(diagonal / first)
    left = np.empty_like(fit.residuals)
    for rows in group_rows(codes):
        block = penalty * (np.diag(1 / d[rows]) - half[rows] @ half[rows].T)
        left[rows] = np.linalg.solve(factor[rows, None] * block * factor[rows], fit.residuals[rows])
    return np.asarray(Y - left / weighting.root[:, None])

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

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg
from sklearn.exceptions import ConvergenceWarning

from skldl.kernel._kernels import KernelFunction, kernel_values, row_blocks
from skldl.kernel._leave_out import IndexArray, Spectrum, Weighting, group_rows

FloatArray = npt.NDArray[np.floating]


@dataclass(frozen=True)
class Nystroem:
    """Nyström features as a spectrum, with what is needed to predict from the landmarks.

    ``spectrum.vectors = (S Φ − u uᵀ S Φ) to_basis`` and ``K_nm to_features = Φ``.
    """

    spectrum: Spectrum
    landmarks: IndexArray
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
    landmarks: IndexArray,
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
    weighting = Weighting.of(weight, X.shape[0])
    points = X[landmarks]
    values, vectors = linalg.eigh(kernel_values(kernel, points, points, length_scale), check_finite=False)
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
    kept = squares > 1e-12 * max(squares[-1], np.finfo(float).tiny)
    to_basis = rotation[:, kept] / np.sqrt(squares[kept])
    for block in row_blocks(X.shape[0], len(means)):  # in place: a second table of this size may not fit
        features[block, : to_basis.shape[1]] = features[block] @ to_basis
    spectrum = Spectrum(weighting, squares[kept], features[:, : to_basis.shape[1]], complete=False)
    return Nystroem(spectrum, landmarks, to_features, to_basis, means, np.maximum(missing, 0.0))


def _diagonal(kernel: str | KernelFunction, X: Any, length_scale: float) -> FloatArray:
    """k(x, x) for each row."""
    if not callable(kernel) and kernel != "linear":
        return np.ones(X.shape[0])
    return np.array([kernel_values(kernel, X[[i]], X[[i]], length_scale)[0, 0] for i in range(X.shape[0])])


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
) -> tuple[FloatArray, FloatArray, FloatArray, int]:
    """Solve (A + λI) z = S Y by preconditioned conjugate gradients.

    Returns
    -------
    dual : ndarray of shape (n, n_targets)
        Coefficients a = S z of the kernel functions, which sum to zero.
    intercept : ndarray of shape (n_targets,)
        The intercept b.
    residuals : ndarray of shape (n, n_targets)
        Weighted residuals S(Y − Ŷ).
    n_iter : int
        Number of steps.
    """
    weighting = sketch.spectrum.weighting
    root, u = weighting.root[:, None], weighting.unit[:, None]

    def times_kernel(dual: FloatArray) -> FloatArray:
        product = np.empty_like(dual)
        for block in row_blocks(X.shape[0], X.shape[0]):
            product[block] = kernel_values(kernel, X[block], X, length_scale) @ dual
        return product

    def operator(z: FloatArray) -> FloatArray:
        product = root * times_kernel(root * z)
        return product - u * (u.T @ product) + penalty * z

    targets = weighting.centred_targets(Y)
    z, n_iter = conjugate_gradients(operator, preconditioner(sketch.spectrum, penalty), targets, tol, max_iter)
    z -= u * (u.T @ z)
    dual = root * z
    fitted = times_kernel(dual)
    b = weighting.share @ (Y - fitted)
    return dual, b, root * (Y - fitted - b), n_iter


def preconditioner(spectrum: Spectrum, penalty: float) -> Callable[[FloatArray], FloatArray]:
    """Invert A + λI where the basis knows A; elsewhere, where the least known eigenvalue stands for the others."""
    values, vectors = spectrum.values, spectrum.vectors
    least = float(values.min()) if values.size else 0.0
    shrink = ((least + penalty) / (values + penalty) - 1)[:, None]

    def apply(residuals: FloatArray) -> FloatArray:
        return np.asarray(residuals + vectors @ (shrink * (vectors.T @ residuals)))

    return apply


def conjugate_gradients(
    operator: Callable[[FloatArray], FloatArray],
    precondition: Callable[[FloatArray], FloatArray],
    targets: FloatArray,
    tol: float,
    max_iter: int,
) -> tuple[FloatArray, int]:
    """Solve for all columns at once; each has its own step lengths, and one product serves all.

    It stops when every column's residual is at most ``tol`` times its target, and warns if ``max_iter`` comes first.
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
    worst = float((np.linalg.norm(residuals, axis=0) / np.maximum(goal, np.finfo(float).tiny)).max()) * tol
    warnings.warn(
        f"KernelRidgeLDL stopped after {max_iter} steps of conjugate gradients with a relative residual of {worst:.1e} "
        f"instead of {tol:.1e}. Raise max_iter or alpha, or set solver='nystroem'.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return solution, max_iter


def left_out(
    Y: FloatArray, residuals: FloatArray, sketch: Nystroem, penalty: float, codes: IndexArray | None
) -> FloatArray:
    """Predict left-out rows from the residuals of the full fit and an approximation of M = λ(A + λI)⁻¹.

    What the Nyström features miss of the kernel's diagonal, δ, is added to it: A ≈ BBᵀ + diag(wδ), whose inverse has
    a closed form. Without δ the rows would seem to have less influence on their own predictions than they have.
    """
    weighting = sketch.spectrum.weighting
    d = weighting.root**2 * sketch.missing_diagonal + penalty
    B = sketch.spectrum.vectors * np.sqrt(sketch.spectrum.values)
    scaled = B / d[:, None]
    inner = B.T @ scaled
    inner.flat[:: len(inner) + 1] += 1
    half = linalg.solve_triangular(linalg.cholesky(inner, lower=True), scaled.T, lower=True).T  # G⁻¹ = 1/d − half halfᵀ
    of_unit = weighting.unit / d - half @ (half.T @ weighting.unit)
    of_unit /= np.sqrt(weighting.unit @ of_unit)
    if codes is None:
        diagonal = penalty * (1 / d - (half**2).sum(axis=1) - of_unit**2)
        return np.asarray(Y - residuals / (diagonal * weighting.root)[:, None])
    left = np.empty_like(residuals)
    for rows in group_rows(codes):
        block = np.diag(1 / d[rows]) - half[rows] @ half[rows].T - np.outer(of_unit[rows], of_unit[rows])
        left[rows] = np.linalg.solve(penalty * block, residuals[rows])
    return np.asarray(Y - left / weighting.root[:, None])

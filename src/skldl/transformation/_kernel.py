"""The kernel matrix of the training rows as the solver of PT-SVM needs it: whole, or as a low-rank factor.

The factor comes from the Cholesky decomposition with complete pivoting, which needs one column of the kernel for each
step and stops by itself: after r steps K − LLᵀ is positive semidefinite, so that no entry of it is larger than the
largest one on its diagonal, and the diagonal is known. LLᵀ is also the Nyström approximation on the pivot rows, so an
expansion over all rows is one over the pivot rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from skldl.utils.typing import FloatArray, IntArray


class System(NamedTuple):
    """The linear system (K[rows][:, rows] + ridge·I) x = columns."""

    rows: IntArray
    ridge: float
    columns: FloatArray


class Kernel(ABC):
    """A kernel matrix K of n rows, or a representation of it."""

    error: float

    @property
    @abstractmethod
    def scale(self) -> float:
        """Largest entry of K on the diagonal, and so anywhere."""

    @abstractmethod
    def times(self, coefficients: FloatArray) -> FloatArray:
        """Return coefficients @ K for coefficients of shape (n_functions, n); rows without coefficients cost little."""

    @abstractmethod
    def block(self, rows: IntArray) -> FloatArray:
        """Return a new array K[rows][:, rows]."""

    def solve(self, systems: Sequence[System]) -> list[FloatArray]:
        """Return the solutions of linear systems, one after the other."""
        return [solve_regularised(self.block(rows), ridge, columns) for rows, ridge, columns in systems]

    @abstractmethod
    def expansion(self, coefficients: FloatArray) -> FloatArray:
        """Return coefficients of the same functions for the kernel itself, also for rows that are not in K."""

    @abstractmethod
    def features(self) -> FloatArray | None:
        """Return rows whose inner products are K, or None."""


def solve_regularised(matrix: FloatArray, ridge: float, columns: FloatArray) -> FloatArray:
    """(matrix + ridge I)⁻¹ columns; a larger ridge where rounding needs one, which still gives a way downwards."""
    diagonal = matrix.diagonal().copy()
    while True:
        np.fill_diagonal(matrix, diagonal + ridge)
        _, solution, failed = linalg.lapack.dposv(matrix, columns, lower=1)
        if not failed:
            return np.asarray(solution)
        ridge = 100.0 * max(ridge, np.finfo(np.float64).eps * float(diagonal.max()))


def ridge_inverse(matrix: FloatArray, ridge: float) -> FloatArray:
    """Return ridge · (matrix + ridge·I)⁻¹ of a positive semidefinite matrix, in single precision."""
    regularised = matrix.copy(order="F")
    regularised[np.diag_indices_from(regularised)] += ridge
    factor, failed = linalg.lapack.dpotrf(regularised, lower=1, overwrite_a=1)
    if failed:
        raise linalg.LinAlgError(f"the kernel matrix with {ridge:.3g} on its diagonal is not positive definite")
    inverse, _ = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse *= ridge
    half = inverse.astype(np.float32, order="F")
    for column in range(1, len(half)):  # the other half: a transposed copy of all would double the memory
        half[:column, column] = half[column, :column]
    return half


class KernelMatrix(Kernel):
    """The matrix itself."""

    def __init__(self, matrix: FloatArray) -> None:
        self.matrix = matrix
        self.error = 0.0
        self._smoother: tuple[float, FloatArray] | None = None

    @property
    def scale(self) -> float:
        return float(self.matrix.diagonal().max())

    def times(self, coefficients: FloatArray) -> FloatArray:
        rows = np.flatnonzero(coefficients.any(axis=0))
        if 2 * len(rows) > len(self.matrix):
            return np.asarray(coefficients @ self.matrix)
        return np.asarray(coefficients[:, rows] @ self.matrix[rows])

    def smooth(self, coefficients: FloatArray, ridge: float) -> FloatArray:
        """Return ridge · coefficients @ (K + ridge·I)⁻¹; the inverse is kept for the next call with the same ridge."""
        smoother = self._smoother  # another thread may exchange it at any time
        if smoother is None or smoother[0] != ridge:
            self._smoother = smoother = None  # before the next one is made: memory
            self._smoother = smoother = ridge, ridge_inverse(self.matrix, ridge)
        return np.asarray(coefficients @ smoother[1])

    def block(self, rows: IntArray) -> FloatArray:
        # Twice as fast as an index of both axes; with mode="clip" NumPy does not check each index.
        return self.matrix.take(rows, axis=0, mode="clip").take(rows, axis=1, mode="clip")

    def expansion(self, coefficients: FloatArray) -> FloatArray:
        return coefficients

    def features(self) -> FloatArray | None:
        return None


@dataclass
class KernelFactor(Kernel):
    """K ≈ LLᵀ with |K − LLᵀ| ≤ error everywhere; ``pivots`` None means that L are the features of a linear kernel."""

    factor: FloatArray
    error: float
    pivots: IntArray | None = None

    @property
    def scale(self) -> float:
        return float(np.einsum("ij,ij->i", self.factor, self.factor).max())

    def times(self, coefficients: FloatArray) -> FloatArray:
        return np.asarray((coefficients @ self.factor) @ self.factor.T)

    def block(self, rows: IntArray) -> FloatArray:
        part = self.factor[rows]
        return np.asarray(part @ part.T)

    def expansion(self, coefficients: FloatArray) -> FloatArray:
        if self.pivots is None:
            return coefficients
        normals = coefficients @ self.factor  # f(x) = φ(x)ᵀ normal, and φ(x) = L_P⁻¹ k(P, x)
        at_pivots = linalg.solve_triangular(self.factor[self.pivots], normals.T, lower=True, trans="T")
        moved = np.zeros_like(coefficients)
        moved[:, self.pivots] = at_pivots.T
        return moved

    def features(self) -> FloatArray | None:
        return self.factor


def pivoted_cholesky(
    column: Callable[[int], FloatArray], diagonal: FloatArray, *, max_rank: int, tol: float
) -> KernelFactor:
    """Factor a kernel by its columns.

    Parameters
    ----------
    column : callable
        From a row number to that column of K.
    diagonal : ndarray of shape (n_samples,)
        Diagonal of K.
    max_rank : int
        Largest number of columns of L.
    tol : float
        Stop when no entry of K − LLᵀ exceeds this share of the largest entry of K.

    Returns
    -------
    KernelFactor
        L, the pivots and the error that is left.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.transformation._kernel import pivoted_cholesky
    >>> X = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, 1.0], [0.0, 3.0]])
    >>> K = X @ X.T
    >>> factor = pivoted_cholesky(lambda row: K[row], np.diag(K), max_rank=4, tol=1e-12)
    >>> factor.factor.shape, np.allclose(factor.factor @ factor.factor.T, K)
    ((4, 2), True)
    """
    rest = diagonal.astype(np.float64)
    limit = tol * float(rest.max())
    max_rank = min(max_rank, len(rest))
    factor = np.zeros((len(rest), max_rank))
    pivots: list[int] = []
    while len(pivots) < max_rank:
        pivot = int(np.argmax(rest))
        if rest[pivot] <= limit:
            break
        rank = len(pivots)
        new = column(pivot) - factor[:, :rank] @ factor[pivot, :rank]
        new /= np.sqrt(rest[pivot])
        new[pivots] = 0.0  # exactly triangular in the order of the pivots
        new[pivot] = np.sqrt(rest[pivot])
        factor[:, rank] = new
        rest -= new**2
        pivots.append(pivot)
        rest[pivots] = 0.0
    return KernelFactor(
        np.ascontiguousarray(factor[:, : len(pivots)]), float(max(rest.max(), 0.0)), np.array(pivots, dtype=np.intp)
    )

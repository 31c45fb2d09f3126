"""What PT-SVM keeps of its training set and of its fit: weighted single-label examples, machines and posteriors."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.metrics.pairwise import linear_kernel

from skldl.transformation._coupling import couple
from skldl.transformation._gaussian import blocks, gaussian_kernel
from skldl.transformation._kernel import Kernel, KernelFactor, KernelMatrix, pivoted_cholesky
from skldl.transformation._origin import measured_from
from skldl.transformation._pairwise_svm import Machines
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.warn import warn

LARGEST_RANK = 1000
"""Of the factor that takes the place of a kernel matrix which does not fit into memory."""
FACTOR_TOLERANCE = 1e-8
"""The factor ends earlier if it is exact to this share of the largest entry of the kernel."""


@dataclass(frozen=True)
class Examples:
    """Weighted single-label examples.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_samples, n_features)
        Distinct instances, ordered by fold and measured from the origin.
    weights : ndarray of shape (n_samples, n_labels)
        Weight (or count) of each instance with each label.
    folds : list of slice
        The folds of the out-of-fold step; one fold means no such step.
    gamma : float or None
        Width of the Gaussian kernel exp(−gamma·‖x − z‖²); None is the linear kernel.
    memory_limit : float, default=inf
        Most bytes that a kernel matrix may take.
    origin : ndarray of shape (n_features,) or None, default=None
        The point that the rows are measured from; None is zero, as in older model files.
    """

    rows: Any
    weights: FloatArray
    folds: list[slice]
    gamma: float | None
    memory_limit: float = np.inf
    origin: FloatArray | None = None

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """First and second label of each pair."""
        first, second = np.triu_indices(self.weights.shape[1], 1)
        return first, second

    @cached_property
    def fold_sums(self) -> FloatArray:
        """K[:, fold] @ weights[fold] for each fold: shape (n_folds, n_samples, n_labels)."""
        return np.stack([self.expansion(fold, self.weights[fold])(self.rows) for fold in self.folds])

    @cached_property
    def solver_kernel(self) -> Kernel:
        """Kernel matrix of the rows, or a factor of it; computed only if some pair needs a solver."""
        n_samples = self.rows.shape[0]
        if self.gamma is None and self.rows.shape[1] < n_samples and not sparse.issparse(self.rows):
            return KernelFactor(self.rows, error=0.0)
        needed = 8.0 * n_samples**2
        if needed <= self.memory_limit:
            return KernelMatrix(self.kernel(self.rows, self.rows))
        rank = int(min(LARGEST_RANK, max(1, self.memory_limit // (8 * n_samples))))
        if self.gamma is None:
            diagonal = np.asarray(
                (self.rows.multiply(self.rows) if sparse.issparse(self.rows) else self.rows**2).sum(1)
            )
        else:
            diagonal = np.ones(n_samples)
        factor = pivoted_cholesky(
            lambda row: self.kernel(self.rows, self.rows[row : row + 1])[:, 0],
            diagonal.ravel(),
            max_rank=rank,
            tol=FACTOR_TOLERANCE,
        )
        warn(
            f"PTSVM: the kernel matrix of {n_samples:,} rows needs {needed / 2**30:.3g} GiB, more than "
            f"memory_limit={self.memory_limit / 2**30:.3g}. For the pairs of labels without a closed form a factor of "
            f"rank {factor.factor.shape[1]} takes its place; no entry of the kernel is off by more than "
            f"{factor.error:.2g} (kernel_error_). Raise memory_limit, or set max_samples.",
        )
        return factor

    def measured(self, new: Any) -> Any:
        """New rows as `kernel` and `expansion` take them: measured from the origin."""
        return measured_from(self.origin, new)

    def kernel(self, new: Any, rows: Any) -> FloatArray:
        """Kernel between two sets of measured rows."""
        if self.gamma is None:
            return np.asarray(linear_kernel(new, rows, dense_output=True))
        return gaussian_kernel(new, rows, self.gamma)

    def expansion(self, where: Any, coefficients: FloatArray) -> Callable[[Any], FloatArray]:
        """Return Σ_i coefficients[i]·k(x_i, ·) over the training rows ``where`` as a function of measured rows."""
        rows = self.rows[where]
        if coefficients.shape[1] == 0:
            return lambda new: np.empty((new.shape[0], 0))
        if self.gamma is None:
            normals = rows.T @ coefficients
            return lambda new: np.asarray(new @ normals)
        return lambda new: np.concatenate(
            [self.kernel(new[block], rows) @ coefficients for block in blocks(new.shape[0], rows.shape[0])]
        )


@dataclass(frozen=True)
class PairModel:
    """Machines and posteriors of all pairs; `solved` names those without a closed form, with their coefficients."""

    costs: FloatArray
    machines: Machines
    solved: IntArray
    coefficients: FloatArray
    slope: FloatArray
    intercept: FloatArray

    def predict(self, examples: Examples, new: Any, sums: FloatArray | None = None) -> Iterator[FloatArray]:
        """Distributions of new rows, block by block; ``sums`` are their kernel products with the weights, if known."""
        n_labels = len(self.costs)
        shared = 0 if sums is not None else n_labels
        expansion = examples.expansion(slice(None), np.hstack([examples.weights[:, :shared], self.coefficients]))
        for block in blocks(new.shape[0], n_labels**2):
            values = expansion(examples.measured(new[block]))
            own, solved = values[:, :shared] if sums is None else sums[block], values[:, shared:]
            decisions = decide(self.machines, own * self.costs, examples.pairs)
            decisions[:, self.solved] = solved + self.machines.offset[self.solved]
            decisions *= self.slope
            decisions += self.intercept
            yield couple(expit(decisions, out=decisions), n_labels)


def decide(machines: Machines, sums: FloatArray, pairs: tuple[IntArray, IntArray]) -> FloatArray:
    """Decision values of machines with γ = m for rows with the given kernel products K @ costs."""
    decisions = sums[:, pairs[0]]
    decisions -= sums[:, pairs[1]]
    decisions *= machines.factor
    decisions += machines.offset
    return decisions

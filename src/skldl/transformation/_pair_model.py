"""From weighted single-label examples to the fitted pairs of PT-SVM: machines, held-out decision values, posteriors.

The kernel enters almost only through its products with the weights. They are taken once, fold by fold: the machine of
any union of folds, the full training set among them, is a difference of two columns of a sum of these products. So the
out-of-fold fits that Platt's posterior needs cost next to nothing, and so does another value of C.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from scipy.special import expit
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from skldl.transformation._coupling import couple
from skldl.transformation._pairwise_svm import Machines, machines_between_margins, solve_pairs
from skldl.transformation._platt import fit_sigmoids

FloatArray = npt.NDArray[np.floating]
IndexArray = npt.NDArray[np.intp]

BLOCK = 2**21
"""Numbers in the largest temporary array, 16 MiB; only LIBSVM's kernel of the training rows may be larger."""
MOST_KERNEL_ROWS = 2048
"""Up to here LIBSVM is given the kernel of the copies, at most 128 MiB; beyond, it computes what it needs."""
ROUNDING = 1e-10
"""Decision values that vary by less than this share of their terms vary by rounding only."""


@dataclass(frozen=True)
class Examples:
    """Weighted single-label examples.

    Parameters
    ----------
    rows : ndarray or CSR matrix of shape (n_samples, n_features)
        Distinct instances, ordered by fold.
    weights : ndarray of shape (n_samples, n_labels)
        Weight (or count) of each instance with each label.
    folds : list of slice
        The folds of the out-of-fold step; one fold stands for no such step.
    gamma : float or None
        Width of the Gaussian kernel exp(−gamma·‖x − z‖²); None is the linear kernel.
    """

    rows: Any
    weights: FloatArray
    folds: list[slice]
    gamma: float | None

    @cached_property
    def pairs(self) -> tuple[IndexArray, IndexArray]:
        """First and second label of each pair."""
        first, second = np.triu_indices(self.weights.shape[1], 1)
        return first, second

    @cached_property
    def fold_sums(self) -> FloatArray:
        """K[:, fold] @ weights[fold] for each fold: shape (n_folds, n_samples, n_labels)."""
        return np.stack([self.product(self.rows, fold, self.weights[fold]) for fold in self.folds])

    def kernel(self, new: Any, rows: Any) -> FloatArray:
        """Kernel between two sets of rows."""
        return np.asarray(
            linear_kernel(new, rows, dense_output=True) if self.gamma is None else rbf_kernel(new, rows, self.gamma)
        )

    def product(self, new: Any, where: Any, coefficients: FloatArray) -> FloatArray:
        """Kernel of new rows with the training rows ``where``, times coefficients, in blocks."""
        rows = self.rows[where]
        if self.gamma is None:
            return np.asarray(new @ (rows.T @ coefficients))
        return np.concatenate(
            [self.kernel(new[block], rows) @ coefficients for block in blocks(new.shape[0], rows.shape[0])]
        )


@dataclass(frozen=True)
class PairModel:
    """Machines and posteriors of all pairs; `solved` names those that LIBSVM found, with their coefficients γ."""

    machines: Machines
    solved: IndexArray
    coefficients: FloatArray
    slope: FloatArray
    intercept: FloatArray

    def predict(self, examples: Examples, new: Any, sums: FloatArray | None = None) -> Iterator[FloatArray]:
        """Distributions of new rows, block by block; ``sums`` are their kernel products with the weights, if known."""
        n_labels = examples.weights.shape[1]
        for block in blocks(new.shape[0], max(examples.rows.shape[0], n_labels**2)):
            if sums is None:
                products = examples.product(new[block], slice(None), np.hstack([examples.weights, self.coefficients]))
                own, solved = products[:, :n_labels], products[:, n_labels:]
            else:
                own, solved = sums[block], examples.product(new[block], slice(None), self.coefficients)
            decisions = decide(self.machines, own, examples.pairs)
            decisions[:, self.solved] = solved + self.machines.offset[self.solved]
            decisions *= self.slope
            decisions += self.intercept
            yield couple(expit(decisions, out=decisions), n_labels)


def blocks(n_items: int, item_size: int) -> Iterator[slice]:
    """Cut a range so that each piece holds at most `BLOCK` numbers, and at least one item."""
    length = max(1, BLOCK // max(1, item_size))
    for start in range(0, n_items, length):
        yield slice(start, start + length)


def decide(machines: Machines, sums: FloatArray, pairs: tuple[IndexArray, IndexArray]) -> FloatArray:
    """Decision values of machines with γ = m for rows with the given kernel products."""
    decisions = sums[:, pairs[0]]
    decisions *= machines.first_factor
    other = sums[:, pairs[1]]
    other *= machines.second_factor
    decisions -= other
    decisions += machines.offset
    return decisions


def fit_pair_model(examples: Examples, C: float, *, equal_mass: bool, n_jobs: int | None = None) -> PairModel:
    """Fit machines on all rows, and posteriors on the decision values of machines that have not seen the row."""
    everything = np.arange(examples.rows.shape[0])
    total = examples.fold_sums.sum(axis=0)
    machines, solved, coefficients = _fit_machines(examples, total, everything, C, equal_mass, n_jobs)
    held_out = []
    for k, fold in enumerate(examples.folds):
        if len(examples.folds) == 1:  # too few rows to hold any out
            train, sums, cost = everything, total, C
        else:
            train, sums = np.delete(everything, fold), np.delete(examples.fold_sums, k, axis=0).sum(axis=0)
            # Fewer rows, each as much dearer, so that decision values have the scale of the final ones.
            cost = C * examples.weights.sum() / examples.weights[train].sum()
        fit = _fit_machines(examples, sums, train, cost, equal_mass, n_jobs)
        solved_values = examples.product(examples.rows[fold], train, fit[2]) + fit[0].offset[fit[1]]
        held_out.append((fit[0], sums[fold], fit[1], solved_values))

    slope, intercept = np.empty_like(machines.offset), np.empty_like(machines.offset)
    size = np.abs(total).max(axis=0)
    for block in blocks(len(slope), len(everything)):
        a, b = (labels[block] for labels in examples.pairs)
        decisions = np.concatenate([_held_out_decisions(*parts, (a, b), block) for parts in held_out])
        noise = ROUNDING * (machines.first_factor[block] * size[a] + machines.second_factor[block] * size[b])
        weights = examples.weights
        slope[block], intercept[block] = fit_sigmoids(decisions, weights[:, a], weights[:, b], noise=noise)
    return PairModel(machines, solved, coefficients, slope, intercept)


def _held_out_decisions(
    machines: Machines,
    sums: FloatArray,
    solved: IndexArray,
    solved_values: FloatArray,
    pairs: tuple[IndexArray, IndexArray],
    block: slice,
) -> FloatArray:
    """Decision values of one fold for a block of pairs."""
    decisions = decide(machines.take(block), sums, pairs)
    inside = (solved >= block.start) & (solved < block.stop)
    decisions[:, solved[inside] - block.start] = solved_values[:, inside]
    return decisions


def _fit_machines(
    examples: Examples, sums: FloatArray, train: IndexArray, C: float, equal_mass: bool, n_jobs: int | None
) -> tuple[Machines, IndexArray, FloatArray]:
    """Machines of all pairs on some rows, which of them LIBSVM solved, and the coefficients of those."""
    a, b = examples.pairs
    weights = examples.weights[train]
    machines = Machines.join(
        [
            machines_between_margins(sums[train], weights, (a[block], b[block]), C, equal_mass=equal_mass)
            for block in blocks(len(a), len(train))
        ]
    )
    solved = np.flatnonzero(~machines.optimal)
    if not solved.size:
        return machines, solved, np.empty((len(train), 0))
    u = machines.first_factor[solved] * weights[:, a[solved]]
    v = machines.second_factor[solved] * weights[:, b[solved]]
    copies, kernel = _copies_for_libsvm(examples, examples.rows[train])
    n_tasks = min(len(solved), 4 * effective_n_jobs(n_jobs))
    parts = Parallel(n_jobs=n_jobs)(
        delayed(solve_pairs)(copies, u[:, task], v[:, task], **kernel)
        for task in np.array_split(np.arange(len(solved)), n_tasks)
    )
    machines.offset[solved] = np.concatenate([offset for _, offset in parts])
    return machines, solved, np.hstack([coefficients for coefficients, _ in parts])


def _copies_for_libsvm(examples: Examples, rows: Any) -> tuple[Any, dict[str, Any]]:
    """Each row twice, as LIBSVM needs it: the kernel of few rows, the rows themselves if there are many."""
    if rows.shape[0] <= MOST_KERNEL_ROWS:
        return np.tile(examples.kernel(rows, rows), (2, 2)), {"kernel": "precomputed"}
    stack = sparse.vstack if sparse.issparse(rows) else np.vstack
    if examples.gamma is None:
        return stack([rows, rows]), {"kernel": "linear"}
    return stack([rows, rows]), {"kernel": "rbf", "gamma": examples.gamma}

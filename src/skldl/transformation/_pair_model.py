"""From weighted single-label examples to the fitted pairs of PT-SVM: machines, held-out decision values, posteriors.

The kernel enters almost only through its products with the weights. They are taken once, fold by fold: the machine of
any union of folds, the full training set among them, is a difference of two columns of a sum of these products. So the
out-of-fold fits that Platt's posterior needs cost next to nothing, and so does another value of C.
"""

import warnings
from collections.abc import Callable, Iterator
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
from skldl.transformation._pairwise_svm import Machines, label_costs, machines_between_margins, solve_pairs
from skldl.transformation._platt import fit_sigmoids

FloatArray = npt.NDArray[np.floating]
IndexArray = npt.NDArray[np.intp]

BLOCK = 2**19
"""Numbers in the largest temporary array, 4 MiB; only LIBSVM's kernel of the training rows may be larger."""
MOST_KERNEL_ROWS = 2048
"""Up to here LIBSVM is given the kernel of the copies, at most 128 MiB; beyond, it computes what it needs."""
MANY_MACHINES = 20_000
"""From here on a user should know before LIBSVM starts."""
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
        return np.stack([self.expansion(fold, self.weights[fold])(self.rows) for fold in self.folds])

    def kernel(self, new: Any, rows: Any) -> FloatArray:
        """Kernel between two sets of rows."""
        return np.asarray(
            linear_kernel(new, rows, dense_output=True) if self.gamma is None else rbf_kernel(new, rows, self.gamma)
        )

    def expansion(self, where: Any, coefficients: FloatArray) -> Callable[[Any], FloatArray]:
        """Return Σ_i coefficients[i]·k(x_i, ·) over the training rows ``where`` as a function of new rows."""
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
    """Machines and posteriors of all pairs; `solved` names those that LIBSVM found, with their coefficients γ."""

    costs: FloatArray
    machines: Machines
    solved: IndexArray
    coefficients: FloatArray
    slope: FloatArray
    intercept: FloatArray

    def predict(self, examples: Examples, new: Any, sums: FloatArray | None = None) -> Iterator[FloatArray]:
        """Distributions of new rows, block by block; ``sums`` are their kernel products with the weights, if known."""
        n_labels = len(self.costs)
        shared = 0 if sums is not None else n_labels
        expansion = examples.expansion(slice(None), np.hstack([examples.weights[:, :shared], self.coefficients]))
        for block in blocks(new.shape[0], n_labels**2):
            values = expansion(new[block])
            own, solved = values[:, :shared] if sums is None else sums[block], values[:, shared:]
            decisions = decide(self.machines, own * self.costs, examples.pairs)
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
    """Decision values of machines with γ = m for rows with the given kernel products K @ costs."""
    decisions = sums[:, pairs[0]]
    decisions -= sums[:, pairs[1]]
    decisions *= machines.factor
    decisions += machines.offset
    return decisions


@dataclass(frozen=True)
class _Fit:
    """Machines of all pairs on some of the rows."""

    train: IndexArray
    sums: FloatArray  # K[:, train] @ costs of these rows, for all rows
    costs: FloatArray  # of one unit of weight of each label
    machines: Machines
    solved: IndexArray
    coefficients: FloatArray


def fit_pair_model(examples: Examples, C: float, *, equal_mass: bool, n_jobs: int | None = None) -> PairModel:
    """Fit machines on all rows, and posteriors on the decision values of machines that have not seen the row."""
    everything = np.arange(examples.rows.shape[0])
    final = _fit_machines(examples, everything, examples.fold_sums.sum(axis=0), C, equal_mass, n_jobs)
    if len(examples.folds) == 1:  # too few rows to hold any out
        held_out = [_held_out(examples, final, slice(None))]
    else:
        held_out = []
        for k, fold in enumerate(examples.folds):
            sums = np.delete(examples.fold_sums, k, axis=0).sum(axis=0)
            fit = _fit_machines(examples, np.delete(everything, fold), sums, C, equal_mass, n_jobs)
            held_out.append(_held_out(examples, fit, fold))
    slope, intercept = np.empty_like(final.machines.offset), np.empty_like(final.machines.offset)
    size = ROUNDING * np.abs(final.sums).max(axis=0)
    for block in blocks(len(slope), len(everything)):
        a, b = (labels[block] for labels in examples.pairs)
        decisions = np.concatenate([decide_block(block) for decide_block in held_out])
        weights = examples.weights
        slope[block], intercept[block] = fit_sigmoids(
            decisions, weights[:, a], weights[:, b], noise=np.maximum(size[a], size[b])
        )
    return PairModel(final.costs, final.machines, final.solved, final.coefficients, slope, intercept)


def _held_out(examples: Examples, fit: _Fit, rows: slice) -> Callable[[slice], FloatArray]:
    """Prepare the decision values of a fit for other rows; the function returns them for a block of pairs."""
    machines, solved, sums = fit.machines, fit.solved, fit.sums[rows].copy()
    solved_values = examples.expansion(fit.train, fit.coefficients)(examples.rows[rows]) + machines.offset[solved]

    def decide_block(block: slice) -> FloatArray:
        a, b = (labels[block] for labels in examples.pairs)
        decisions = decide(machines.take(block), sums, (a, b))
        inside = (solved >= block.start) & (solved < block.stop)
        decisions[:, solved[inside] - block.start] = solved_values[:, inside]
        return decisions

    return decide_block


def _fit_machines(
    examples: Examples, train: IndexArray, products: FloatArray, C: float, equal_mass: bool, n_jobs: int | None
) -> _Fit:
    """Fit all pairs on the rows ``train``, whose kernel products with their weights are known."""
    a, b = examples.pairs
    mass = examples.weights[train].sum(axis=0)
    each = examples.weights.sum() / len(mass)
    unit = label_costs(mass, each, C, equal_mass=equal_mass)
    costs, sums = examples.weights[train] * unit, products * unit
    machines = Machines.join(
        [machines_between_margins(sums[train], costs, (a[block], b[block])) for block in blocks(len(a), len(train))]
    )
    solved = np.flatnonzero(~machines.optimal)
    if not solved.size:
        return _Fit(train, sums, unit, machines, solved, np.empty((len(train), 0)))
    if len(train) == len(examples.weights):
        _warn_if_many(len(solved) * (1 + len(examples.folds)))
    copies, kernel = _copies_for_libsvm(examples, examples.rows[train])
    n_tasks = min(len(solved), 4 * effective_n_jobs(n_jobs))
    parts = Parallel(n_jobs=n_jobs)(
        delayed(solve_pairs)(copies, costs, (a[task], b[task]), **kernel) for task in np.array_split(solved, n_tasks)
    )
    machines.offset[solved] = np.concatenate([offset for _, offset in parts])
    return _Fit(train, sums, unit, machines, solved, np.hstack([coefficients for coefficients, _ in parts]))


def _warn_if_many(n_machines: int) -> None:
    if n_machines > MANY_MACHINES:
        warnings.warn(
            f"PTSVM leaves about {n_machines} machines of pairs of labels to LIBSVM, which may take very long. "
            "A smaller C needs fewer, C=1e-3 next to none; smaller max_samples or gamma help too.",
            UserWarning,
            stacklevel=2,
        )


def _copies_for_libsvm(examples: Examples, rows: Any) -> tuple[Any, dict[str, Any]]:
    """Each row twice, as LIBSVM needs it: the kernel of few rows, the rows themselves if there are many."""
    if rows.shape[0] <= MOST_KERNEL_ROWS:
        return np.tile(examples.kernel(rows, rows), (2, 2)), {"kernel": "precomputed"}
    twice = (sparse.vstack if sparse.issparse(rows) else np.vstack)([rows, rows])
    return twice, {"kernel": "linear"} if examples.gamma is None else {"kernel": "rbf", "gamma": examples.gamma}

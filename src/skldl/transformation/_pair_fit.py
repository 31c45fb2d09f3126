"""From weighted single-label examples to the fitted pairs of PT-SVM: machines, held-out decision values, posteriors.

The kernel enters almost only through its products with the weights. They are taken once, fold by fold: the machine of
any union of folds, the full training set among them, is a difference of two columns of a sum of these products. So the
out-of-fold fits that Platt's posterior needs cost next to nothing, and so does another value of C. The pairs that this
does not solve share one kernel matrix, or a low-rank factor of it, in all folds: rows that are left out have no cost.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from skldl._typing import FloatArray, IntArray
from skldl.transformation._kernel import Kernel, KernelMatrix
from skldl.transformation._newton_svm import Solutions, solve_machines
from skldl.transformation._pair_model import Examples, PairModel, blocks, decide
from skldl.transformation._pairwise_svm import (
    LIBSVM_MOST_STEPS,
    Machines,
    label_costs,
    machines_between_margins,
    solve_pairs,
)
from skldl.transformation._platt import fit_sigmoids

SOLVER_BLOCK = 2**20
"""Numbers in each of the arrays of machines that are solved together, 8 MiB."""
FEW_ROWS = 300
"""With fewer rows than this LIBSVM is faster than batches of Newton steps."""
MOST_KERNEL_ROWS = 2048
"""Up to here LIBSVM is given the kernel of the copies, at most 128 MiB; beyond, it computes what it needs."""
LONG_FIT = 3e8
"""Decision values, all pairs on all rows, from which on a user should know before the fit begins."""
SECONDS_PER_DECISION = 7e-7
"""What one of them costs in Platt's posterior, measured on one core."""
ROUNDING = 1e-10
"""Decision values that vary by less than this share of their terms vary by rounding only."""


@dataclass(frozen=True)
class PairFit:
    """Machines of all pairs on the rows that are not held out."""

    C: float
    sums: FloatArray  # K @ costs, for all rows
    costs: FloatArray  # of one unit of weight of each label
    machines: Machines
    solved: IntArray
    gamma: FloatArray  # of the solved pairs: (n_solved, n_samples)
    values: FloatArray  # decision values of the solved pairs on all rows


def fit_pair_model(
    examples: Examples,
    C: float,
    *,
    equal_mass: bool,
    max_machines: float = np.inf,
    n_jobs: int | None = None,
    previous: PairFit | None = None,
) -> tuple[PairModel, PairFit]:
    """Fit machines on all rows, and posteriors on the decision values of machines that have not seen the row.

    Parameters
    ----------
    examples : Examples
        What to learn from.
    C : float
        Cost of one unit of weight.
    equal_mass : bool
        Whether every label gets the same total cost.
    max_machines : float, default=inf
        For more machines than this a ValueError is raised before the solver starts.
    n_jobs : int, default=None
        Batches of machines to solve at the same time.
    previous : PairFit, default=None
        The fit on all rows for another C, from which the solver begins.

    Returns
    -------
    model : PairModel
        What predicts.
    final : PairFit
        The fit on all rows.
    """
    _warn_if_long(len(examples.pairs[0]), len(examples.weights))
    final = _fit_machines(examples, None, C, equal_mass, max_machines, n_jobs, previous)
    held_out = [(final, slice(None))]
    if len(examples.folds) > 1:  # else there are too few rows to hold any out
        # Most rows are those of the final fit, which is nearer than the fit of the same rows for another C.
        held_out = [
            (_fit_machines(examples, fold, C, equal_mass, max_machines, n_jobs, final), fold) for fold in examples.folds
        ]
    slope, intercept = np.empty_like(final.machines.offset), np.empty_like(final.machines.offset)
    size = ROUNDING * np.abs(final.sums).max(axis=0)
    for block in blocks(len(slope), len(examples.weights)):
        a, b = (labels[block] for labels in examples.pairs)
        decisions = np.concatenate([_decisions(fit, rows, block, (a, b)) for fit, rows in held_out])
        weights = examples.weights
        slope[block], intercept[block] = fit_sigmoids(
            decisions, weights[:, a], weights[:, b], noise=np.maximum(size[a], size[b])
        )
    coefficients = np.empty((len(examples.weights), 0))
    if final.solved.size:
        coefficients = np.ascontiguousarray(examples.solver_kernel.expansion(final.gamma).T)
    return PairModel(final.costs, final.machines, final.solved, coefficients, slope, intercept), final


def _decisions(fit: PairFit, rows: slice, block: slice, pairs: tuple[IntArray, IntArray]) -> FloatArray:
    """Decision values of a block of pairs for some of the rows."""
    decisions = decide(fit.machines.take(block), fit.sums[rows], pairs)
    inside = (fit.solved >= block.start) & (fit.solved < block.stop)
    decisions[:, fit.solved[inside] - block.start] = fit.values[inside, rows].T
    return decisions


def _fit_machines(
    examples: Examples,
    fold: slice | None,
    C: float,
    equal_mass: bool,
    max_machines: float,
    n_jobs: int | None,
    start: PairFit | None,
) -> PairFit:
    """Fit all pairs on the rows that are not in the fold."""
    a, b = examples.pairs
    weights, products = examples.weights, examples.fold_sums.sum(axis=0)
    if fold is not None:
        weights = weights.copy()
        weights[fold] = 0.0
        products = products - examples.fold_sums[examples.folds.index(fold)]
    unit = label_costs(weights.sum(axis=0), examples.weights.sum() / weights.shape[1], C, equal_mass=equal_mass)
    costs, sums = weights * unit, products * unit
    machines = Machines.join(
        [machines_between_margins(sums, costs, (a[block], b[block])) for block in blocks(len(a), len(costs))]
    )
    solved = np.flatnonzero(~machines.optimal)
    if not solved.size:
        nothing = np.empty((0, len(costs)))
        return PairFit(C, sums, unit, machines, solved, nothing, nothing)
    if fold is None:
        _refuse_too_many(len(solved) * (1 + len(examples.folds)), max_machines)
    gamma, offset = _starting_point(machines, solved, start, C)
    costs = np.ascontiguousarray(costs.T)
    solutions = _solve(examples, costs, (a[solved], b[solved]), gamma, offset, n_jobs)
    machines.offset[solved] = solutions.offset
    return PairFit(C, sums, unit, machines, solved, solutions.gamma, solutions.values)


def _starting_point(
    machines: Machines, solved: IntArray, start: PairFit | None, C: float
) -> tuple[FloatArray | None, FloatArray]:
    """γ and b of another fit where it has them; nan in γ means the closed form γ = m."""
    offset = machines.offset[solved].copy()
    if start is None or not start.solved.size:
        return None, offset
    _, here, there = np.intersect1d(solved, start.solved, assume_unique=True, return_indices=True)
    gamma = np.full((len(solved), start.gamma.shape[1]), np.nan)
    gamma[here] = (C / start.C) * start.gamma[there]
    offset[here] = start.machines.offset[start.solved[there]]
    return gamma, offset


def _solve(
    examples: Examples,
    costs: FloatArray,
    pairs: tuple[IntArray, IntArray],
    gamma: FloatArray | None,
    offset: FloatArray,
    n_jobs: int | None,
) -> Solutions:
    """Solve pairs together, batch by batch; those that need many steps one after the other, by LIBSVM."""
    a, b = pairs
    kernel = examples.solver_kernel
    n_batches = max(-(-len(a) * costs.shape[1] // SOLVER_BLOCK), min(len(a), effective_n_jobs(n_jobs)))

    def task(batch: IntArray) -> Any:
        u, v = costs[a[batch]], costs[b[batch]]
        start = u - v if gamma is None else np.where(np.isnan(gamma[batch]), u - v, gamma[batch])
        return delayed(solve_machines)(kernel, u, v, start, offset[batch])

    if costs.shape[1] < FEW_ROWS:
        shape = (len(a), costs.shape[1])
        solutions = Solutions(np.empty(shape), np.empty(len(a)), np.empty(shape), np.zeros(len(a), dtype=bool))
    else:
        parts = Parallel(n_jobs=n_jobs)(task(batch) for batch in np.array_split(np.arange(len(a)), n_batches))
        found = zip(*((part.gamma, part.offset, part.values, part.solved) for part in parts), strict=True)
        solutions = Solutions(*(np.concatenate(arrays) for arrays in found))
    left = np.flatnonzero(~solutions.solved)
    if left.size:
        copies, options = _copies_for_libsvm(examples, kernel)
        tasks = np.array_split(left, min(len(left), 4 * effective_n_jobs(n_jobs)))
        machines = Parallel(n_jobs=n_jobs)(
            delayed(solve_pairs)(copies, costs.T, (a[part], b[part]), **options) for part in tasks
        )
        of_libsvm, offsets, stopped = zip(*machines, strict=True)
        _warn_if_stopped(sum(stopped), len(left))
        solutions.gamma[left], solutions.offset[left] = np.hstack(of_libsvm).T, np.concatenate(offsets)
        solutions.values[left] = kernel.times(solutions.gamma[left]) + solutions.offset[left, None]
    return solutions


def _warn_if_long(n_pairs: int, n_samples: int) -> None:
    n_decisions = n_pairs * n_samples
    if n_decisions >= LONG_FIT:
        warnings.warn(
            f"PTSVM fits {n_pairs:,} pairs of labels on {n_samples:,} rows: expect about "
            f"{n_decisions * SECONDS_PER_DECISION / 60:.0f} minutes. Fewer labels or a smaller max_samples take less.",
            UserWarning,
            stacklevel=2,
        )


def _refuse_too_many(n_machines: int, max_machines: float) -> None:
    if n_machines > max_machines:
        raise ValueError(
            f"PTSVM would have to solve about {n_machines:,} support vector machines one by one, more than "
            f"max_machines={max_machines:,}: that many pairs of labels, in every fold, have no closed form. Choose a "
            "smaller C (C=1e-3 leaves next to none), a smaller gamma or fewer n_folds, or raise max_machines."
        )


def _warn_if_stopped(n_stopped: int, n_solved: int) -> None:
    if n_stopped:
        warnings.warn(
            f"PTSVM stopped {n_stopped} of {n_solved} machines after {LIBSVM_MOST_STEPS:,} steps of LIBSVM, short of "
            "their optimum. Scale the features (sklearn.preprocessing.StandardScaler), or choose a smaller C.",
            ConvergenceWarning,
            stacklevel=2,
        )


def _copies_for_libsvm(examples: Examples, kernel: Kernel) -> tuple[Any, dict[str, Any]]:
    """Each row twice, as LIBSVM needs it: the kernel of few rows, the rows or their factor if there are many."""
    if isinstance(kernel, KernelMatrix) and len(kernel.matrix) <= MOST_KERNEL_ROWS:
        return np.tile(kernel.matrix, (2, 2)), {"kernel": "precomputed"}
    features = kernel.features()
    rows = examples.rows if features is None else features
    twice = (sparse.vstack if sparse.issparse(rows) else np.vstack)([rows, rows])
    linear = examples.gamma is None or features is not None
    return twice, {"kernel": "linear"} if linear else {"kernel": "rbf", "gamma": examples.gamma}

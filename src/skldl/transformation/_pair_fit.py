"""From weighted single-label examples to the fitted pairs of PT-SVM: machines, held-out decision values, posteriors.

The kernel enters almost only through its products with the weights. They are taken once, fold by fold: the machine of
any union of folds, the full training set among them, is a difference of two columns of a sum of these products. So the
out-of-fold fits that Platt's posterior needs cost next to nothing, and so does another value of C. The pairs that this
does not solve share one kernel matrix, or a low-rank factor of it, in all folds: rows that are left out have no cost.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from skldl.transformation._gaussian import blocks
from skldl.transformation._kernel import Kernel, KernelMatrix
from skldl.transformation._newton_svm import Solutions, primal_objective, solve_machines
from skldl.transformation._pair_model import Examples, PairModel, decide
from skldl.transformation._pairwise_svm import (
    LIBSVM_ALL_STEPS,
    LIBSVM_LEAST_STEPS,
    LIBSVM_MOST_STEPS,
    Machines,
    label_costs,
    machines_between_margins,
    solve_pairs,
)
from skldl.transformation._platt import fit_sigmoids
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.warn import warn

SOLVER_BLOCK = 2**20
"""Numbers in each of the arrays of machines that are solved together, 8 MiB."""
FEW_ROWS = 300
"""With fewer rows, Newton's method begins where LIBSVM arrives soon: this takes less time than the steps it saves."""
ROUGH_TOLERANCE = 1e-3
ROUGH_STEPS = 10
"""That is within this tolerance, or after this many steps of LIBSVM for each row."""
MOST_KERNEL_ROWS = 2048
"""Up to here LIBSVM is given the kernel of the copies, at most 128 MiB; beyond, it computes what it needs."""
LONG_FIT = 1e8
"""Decision values, all pairs on all rows, from which on a user should know before the fit begins."""
SECONDS_PER_DECISION = 7e-7
"""What one of them costs in Platt's posterior, measured on one core."""
ROUNDING = 1e-10
"""Decision values that vary by less than this share of their terms vary by rounding only."""


@dataclass(frozen=True)
class PairFit:
    """Machines of all pairs on the rows that are not held out; ``gamma`` and ``values`` are empty until solved."""

    C: float
    fold: slice | None  # the rows that are held out
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
        For more machines than this, those of the folds included, a ValueError is raised before the solver starts.
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
    closed: list[PairFit] = []
    for fold in (None, *(examples.folds if len(examples.folds) > 1 else [])):  # one row cannot be held out
        closed.append(_closed_forms(examples, fold, C, equal_mass=equal_mass))
        _refuse_too_many(sum(len(fit.solved) for fit in closed), max_machines)
    (final,) = _solve_rest(examples, closed[:1], n_jobs, previous)
    held_out = [(final, slice(None))]
    if len(closed) > 1:
        # Most rows are those of the final fit, which is nearer than the fit of the same rows for another C.
        groups = [_solve_rest(examples, group, n_jobs, final) for group in _together(closed[1:])]
        held_out = [(fit, fit.fold) for group in groups for fit in group if fit.fold is not None]
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


def _closed_forms(examples: Examples, fold: slice | None, C: float, *, equal_mass: bool) -> PairFit:
    """Fit all pairs in closed form on the rows that are not in the fold, and find those that need a solver."""
    a, b = examples.pairs
    weights, products = _without(fold, examples.weights), examples.fold_sums.sum(axis=0)
    if fold is not None:
        products = products - examples.fold_sums[examples.folds.index(fold)]
    unit = label_costs(weights.sum(axis=0), examples.weights.sum() / weights.shape[1], C, equal_mass=equal_mass)
    costs, sums = weights * unit, products * unit
    machines = Machines.join(
        [machines_between_margins(sums, costs, (a[block], b[block])) for block in blocks(len(a), len(costs))]
    )
    nothing = np.empty((0, len(costs)))
    return PairFit(C, fold, sums, unit, machines, np.flatnonzero(~machines.optimal), nothing, nothing)


def _without(fold: slice | None, weights: FloatArray) -> FloatArray:
    """Weights of the rows that are not held out."""
    if fold is None:
        return weights
    weights = weights.copy()
    weights[fold] = 0.0
    return weights


def _together(fits: Sequence[PairFit]) -> Iterator[Sequence[PairFit]]:
    """Cut a list of fits into groups whose machines make one batch of the solver, or single fits with more."""
    first, size = 0, 0
    for place, fit in enumerate(fits):
        new = fit.solved.size * len(fit.sums)
        if place > first and size + new > SOLVER_BLOCK:
            yield fits[first:place]
            first, size = place, 0
        size += new
    yield fits[first:]


def _solve_rest(
    examples: Examples, fits: Sequence[PairFit], n_jobs: int | None, start: PairFit | None
) -> Sequence[PairFit]:
    """Solve the pairs of some fits that have no closed form, all of them together."""
    n_labels = examples.weights.shape[1]
    if not any(fit.solved.size for fit in fits):
        return fits
    # One row for each label of each fit, so that a pair of one fit is a pair of rows.
    costs = np.concatenate([(_without(fit.fold, examples.weights) * fit.costs).T for fit in fits])
    a, b = (
        np.concatenate([place * n_labels + labels[fit.solved] for place, fit in enumerate(fits)])
        for labels in examples.pairs
    )
    starts = [_starting_point(fit, start) for fit in fits]
    gamma, offset = (np.concatenate(parts) for parts in zip(*starts, strict=True))
    solutions = _solve(examples, costs, (a, b), gamma, offset, n_jobs)
    solved = []
    ends = np.cumsum([len(fit.solved) for fit in fits])
    for fit, end in zip(fits, ends, strict=True):
        own = slice(end - len(fit.solved), end)
        fit.machines.offset[fit.solved] = solutions.offset[own]
        solved.append(replace(fit, gamma=solutions.gamma[own], values=solutions.values[own]))
    return solved


def _starting_point(fit: PairFit, start: PairFit | None) -> tuple[FloatArray, FloatArray]:
    """γ and b of another fit where it has them; nan in γ means the closed form γ = m."""
    offset = fit.machines.offset[fit.solved].copy()
    gamma = np.full((len(fit.solved), len(fit.sums)), np.nan)
    if start is not None and start.solved.size:
        _, here, there = np.intersect1d(fit.solved, start.solved, assume_unique=True, return_indices=True)
        gamma[here] = (fit.C / start.C) * start.gamma[there]
        offset[here] = start.machines.offset[start.solved[there]]
    return gamma, offset


def _solve(
    examples: Examples,
    costs: FloatArray,
    pairs: tuple[IntArray, IntArray],
    gamma: FloatArray,
    offset: FloatArray,
    n_jobs: int | None,
) -> Solutions:
    """Solve pairs of rows of costs together, batch by batch; those that need many steps by LIBSVM."""
    a, b = pairs
    kernel = examples.solver_kernel
    n_rows = costs.shape[1]
    n_batches = max(-(-len(a) * n_rows // SOLVER_BLOCK), min(len(a), effective_n_jobs(n_jobs)))
    if n_rows < FEW_ROWS:
        rough = {"tol": ROUGH_TOLERANCE, "max_iter": ROUGH_STEPS * n_rows}
        gamma, offset, _ = _solve_by_libsvm(examples, costs, pairs, n_jobs, **rough)

    def task(batch: IntArray) -> Any:
        u, v = costs[a[batch]], costs[b[batch]]
        start = np.where(np.isnan(gamma[batch]), u - v, gamma[batch])
        return delayed(solve_machines)(kernel, u, v, start, offset[batch])

    parts = Parallel(n_jobs=n_jobs)(task(batch) for batch in np.array_split(np.arange(len(a)), n_batches))
    found = zip(*((part.gamma, part.offset, part.values, part.solved) for part in parts), strict=True)
    solutions = Solutions(*(np.concatenate(arrays) for arrays in found))
    left = np.flatnonzero(~solutions.solved)
    if left.size:
        most = min(LIBSVM_MOST_STEPS, max(LIBSVM_LEAST_STEPS, LIBSVM_ALL_STEPS // left.size))
        gamma, offset, n_stopped = _solve_by_libsvm(examples, costs, (a[left], b[left]), n_jobs, max_iter=most)
        _warn_if_stopped(n_stopped, len(left), most)
        for block in blocks(len(left), n_rows):
            some = left[block]
            _keep_better(solutions, some, gamma[block], offset[block], kernel, (costs[a[some]], costs[b[some]]))
    return solutions


def _keep_better(
    solutions: Solutions,
    left: IntArray,
    gamma: FloatArray,
    offset: FloatArray,
    kernel: Kernel,
    pair_costs: tuple[FloatArray, FloatArray],
) -> None:
    """Take γ and b for those of the pairs ``left`` where the primal objective is not larger than at what is known."""
    products = kernel.times(gamma)
    values = products + offset[:, None]
    known = solutions.values[left]
    known_products = known - solutions.offset[left][:, None]
    before = primal_objective(solutions.gamma[left], known_products, known, *pair_costs)
    better = primal_objective(gamma, products, values, *pair_costs) <= before
    for old, new in ((solutions.gamma, gamma), (solutions.offset, offset), (solutions.values, values)):
        old[left[better]] = new[better]


def _solve_by_libsvm(
    examples: Examples, costs: FloatArray, pairs: tuple[IntArray, IntArray], n_jobs: int | None, **options: Any
) -> tuple[FloatArray, FloatArray, int]:
    """γ and b of pairs of rows of costs, and how many of them LIBSVM did not bring to their optimum."""
    a, b = pairs
    copies, kernel = _copies_for_libsvm(examples, examples.solver_kernel)
    tasks = np.array_split(np.arange(len(a)), min(len(a), 4 * effective_n_jobs(n_jobs)))
    machines = Parallel(n_jobs=n_jobs)(
        delayed(solve_pairs)(copies, costs.T, (a[part], b[part]), **options, **kernel) for part in tasks
    )
    coefficients, offsets, stopped = zip(*machines, strict=True)
    return np.hstack(coefficients).T, np.concatenate(offsets), sum(stopped)


def _warn_if_long(n_pairs: int, n_samples: int) -> None:
    n_decisions = n_pairs * n_samples
    if n_decisions >= LONG_FIT:
        minutes = round(n_decisions * SECONDS_PER_DECISION / 60)
        warn(
            f"PTSVM fits {n_pairs:,} pairs of labels on {n_samples:,} rows: expect about "
            f"{f'{minutes} minutes' if minutes > 1 else 'a minute'}. Fewer labels or a smaller max_samples take less.",
        )


def _refuse_too_many(n_machines: int, max_machines: float) -> None:
    if n_machines > max_machines:
        raise ValueError(
            f"PTSVM would have to solve at least {n_machines:,} support vector machines, more than "
            f"max_machines={max_machines:,}: that many pairs of labels, of all rows and of the folds, have no closed "
            "form. Choose a smaller C (C=1e-3 leaves next to none), a smaller gamma or fewer n_folds, or raise "
            "max_machines."
        )


def _warn_if_stopped(n_stopped: int, n_solved: int, most: int) -> None:
    if n_stopped:
        warn(
            f"PTSVM stopped {n_stopped} of {n_solved} machines after {most:,} steps of LIBSVM, short of "
            "their optimum. Scale the features (sklearn.preprocessing.StandardScaler), or choose a smaller C.",
            ConvergenceWarning,
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

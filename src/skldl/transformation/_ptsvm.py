"""`PTSVM`: problem transformation with support vector machines, Platt's posterior and pairwise coupling.

Each training example becomes c single-label examples, weighted by the description degrees. On these, every pair of
labels gets a support vector machine (`_svm_solver`). Its decision values on rows that it has not seen are turned into
probabilities, and the probabilities of all pairs are coupled into one distribution.

The kernel is used almost only in products with the weights. They are computed once, fold by fold: the machine of any
union of folds, the full training set among them, is a difference of two columns of a sum of these products. So the
out-of-fold fits that Platt's posterior needs cost next to nothing, and so does another value of C. The pairs that this
does not solve share one kernel matrix in all folds: rows that are held out have no cost.

Platt's posterior is the logistic function that turns decision values into probabilities. For one pair of labels with
decision values f_i, and row i seen u_i times with the first label and v_i times with the second, its parameters
minimise the cross-entropy

    Σ_i u_i·H(t₊, p_i) + v_i·H(t₋, p_i),   p_i = 1 / (1 + exp(−(slope·f_i + intercept))),

with Platt's targets t₊ = (Σu + 1) / (Σu + 2) and t₋ = 1 / (Σv + 2) in place of 1 and 0, by Newton's method with
backtracking as Lin, Lin and Weng [1]_ write it: no exponential of a positive number is ever taken.

Let r_ij be the probability of label i where only i and j are possible. The second method of Wu, Lin and Weng [2]_
couples them into

    p = argmin ½ Σ_i Σ_{j≠i} (r_ji p_i − r_ij p_j)²   with   Σ_i p_i = 1,

which is ½ pᵀQp with Q_ii = Σ_{j≠i} r_ji² and Q_ij = −r_ji r_ij. Its optimum satisfies Qp = −b·1, so p is the solution
of (Q + τ11ᵀ) x = 1 for any τ > 0, divided by its sum: one linear system for each row, all rows at once.

References
----------
.. [1] H.-T. Lin, C.-J. Lin and R. C. Weng, "A note on Platt's probabilistic outputs for support vector machines",
   Machine Learning 68, 2007, 267-276.
.. [2] T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability estimates for multi-class classification by pairwise
   coupling", Journal of Machine Learning Research 5, 2004, 975-1005.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed, effective_n_jobs
from scipy import sparse
from scipy.special import expit, log_expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances, linear_kernel
from sklearn.utils import check_random_state

from skldl.base import BaseLDL
from skldl.exceptions import Parameter, ParameterError
from skldl.transformation._origin import column_medians, measured_from
from skldl.transformation._resampling import multinomial_counts
from skldl.transformation._svm_solver import (
    MAX_STEPS,
    KernelMatrix,
    LinearKernel,
    label_costs,
    solve_between_margins,
    solve_machines,
)
from skldl.utils.arrays import row_blocks
from skldl.utils.parameters import BOOLEAN, COUNT, N_JOBS, NONE, POSITIVE, RANDOM_STATE, integer, number, one_of
from skldl.utils.typing import BoolArray, FloatArray, IntArray
from skldl.utils.warn import warn

BLOCK = 2**19
"""Maximum number of values in a temporary array, 4 MiB."""
SOLVER_BLOCK = 2**20
"""Maximum number of values in each array of machines that are solved together, 8 MiB."""
LONG_FIT = 1e8
"""Number of decision values, all pairs on all rows, from which on a warning announces a long fit."""
SECONDS_PER_DECISION = 7e-7
"""CPU time of Platt's posterior for each decision value, measured on one core."""
ROUNDING = 1e-10
"""Decision values that vary by less than this fraction of the largest kernel sum vary by rounding only."""
MAX_PLATT_STEPS = 100
"""Maximum number of Newton steps of Platt's posterior, as in LIBSVM."""
MAX_HALVINGS = 40
"""A step of 2⁻⁴⁰ of Newton's changes a cross-entropy by rounding only."""
PLATT_TOLERANCE = 1e-12
"""A pair is done when the predicted improvement per unit of weight is below this."""

MIN_PROBABILITY = 1e-7
"""Pair probabilities are kept this far from 0 and 1, as LIBSVM does, so that every system has one solution."""


def _choose_rows(
    n_samples: int, sample_weight: FloatArray | None, max_samples: int | None, generator: np.random.RandomState
) -> tuple[IntArray, FloatArray]:
    """Choose the rows to learn from, and their weights; rows that are drawn by weight have equal weights afterwards."""
    weight = np.ones(n_samples) if sample_weight is None else sample_weight
    if max_samples is None or n_samples <= max_samples:
        return np.arange(n_samples), weight
    drawn = generator.choice(n_samples, size=max_samples, replace=False, p=weight / weight.sum())
    return np.sort(drawn), np.ones(max_samples)


def _kernel_width(rows: Any, gamma: Literal["auto", "scale"] | float) -> float:
    """The number that gamma stands for; features that are all the same number have no scale, and any width will do."""
    if gamma == "auto":
        return 1.0 / rows.shape[1]
    if gamma == "scale":
        if rows.min() == rows.max():  # rounding may leave their computed variance above 0
            return 1.0
        return float(1.0 / max(rows.shape[1] * _variance(rows), np.finfo(np.float64).tiny))
    return float(gamma)


def _variance(rows: Any) -> float:
    """Variance of all numbers, from squared differences from the mean, which keep their digits where it is large."""
    if not sparse.issparse(rows):
        return float(np.var(rows, dtype=np.float64))
    n_cells = rows.shape[0] * rows.shape[1]
    data = rows.data.astype(np.float64)
    mean = data.sum() / n_cells
    return float((np.square(data - mean).sum() + (n_cells - len(data)) * mean**2) / n_cells)


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
    memory_limit : float
        Maximum number of bytes of a kernel matrix.
    origin : ndarray of shape (n_features,) or None
        The point that the rows are measured from; None is zero.
    """

    rows: Any
    weights: FloatArray
    folds: list[slice]
    gamma: float | None
    memory_limit: float
    origin: FloatArray | None

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
    def solver_kernel(self) -> KernelMatrix:
        """Kernel of the rows as the solver needs it; computed only if some pair needs a solver."""
        n_samples, n_features = self.rows.shape
        needed = 8.0 * n_samples**2
        if self.gamma is None and (needed > self.memory_limit or (n_features < n_samples and not self._is_sparse)):
            return LinearKernel(self.rows)
        if needed > self.memory_limit:
            raise ParameterError(
                Parameter("memory_limit", self.memory_limit / 2**30),
                f" is too small: some pairs of labels have no closed form, and their solver needs a kernel matrix of "
                f"{n_samples:,} rows, {needed / 2**30:.3g} GiB. Raise it, set ",
                Parameter("max_samples", int(np.sqrt(self.memory_limit / 8))),
                " to learn from so many rows, or choose a smaller C (",
                Parameter("C", 1e-3),
                " leaves next to no such pairs).",
            )
        return KernelMatrix(self._kernel(self.rows, self.rows))

    @property
    def _is_sparse(self) -> bool:
        return bool(sparse.issparse(self.rows))

    def _kernel(self, new: Any, rows: Any) -> FloatArray:
        """Kernel between two sets of rows that are measured from the origin."""
        if self.gamma is None:
            return np.asarray(linear_kernel(new, rows, dense_output=True))
        squares = np.asarray(euclidean_distances(new, rows, squared=True))
        squares *= -self.gamma
        return np.exp(squares, out=squares)

    def expansion(self, where: slice, coefficients: FloatArray) -> Callable[[Any], FloatArray]:
        """Return Σ_i coefficients[i]·k(x_i, ·) over the training rows ``where`` as a function of measured rows."""
        rows = self.rows[where]
        if coefficients.shape[1] == 0:
            return lambda new: np.empty((new.shape[0], 0))
        if self.gamma is None:
            normals = rows.T @ coefficients
            return lambda new: np.asarray(new @ normals)
        return lambda new: np.concatenate(
            [self._kernel(new[block], rows) @ coefficients for block in row_blocks(new.shape[0], rows.shape[0], BLOCK)]
        )


@dataclass(frozen=True)
class PairFit:
    """Machines of all pairs on the rows that are not held out; ``gamma`` and ``values`` are empty until solved."""

    C: float
    fold: slice | None  # the rows that are held out
    sums: FloatArray  # K @ costs, for all rows
    costs: FloatArray  # of one unit of weight of each label
    factor: FloatArray
    offset: FloatArray
    solved: IntArray  # the pairs without a closed form
    gamma: FloatArray  # of the solved pairs: (n_solved, n_samples)
    values: FloatArray  # decision values of the solved pairs on all rows

    def decisions(self, rows: slice, block: slice, pairs: tuple[IntArray, IntArray]) -> FloatArray:
        """Decision values of a block of pairs for some of the rows."""
        decisions = _decide(self.factor[block], self.offset[block], self.sums[rows], pairs)
        inside = (self.solved >= block.start) & (self.solved < block.stop)
        decisions[:, self.solved[inside] - block.start] = self.values[inside, rows].T
        return decisions


@dataclass(frozen=True)
class PairModel:
    """Machines and posteriors of all pairs; `solved` are those without a closed form, with their coefficients."""

    costs: FloatArray
    factor: FloatArray
    offset: FloatArray
    solved: IntArray
    coefficients: FloatArray
    slope: FloatArray
    intercept: FloatArray

    def predict(self, examples: Examples, new: Any, sums: FloatArray | None = None) -> Iterator[FloatArray]:
        """Distributions of new rows, block by block; ``sums`` are their kernel products with the weights, if known."""
        n_labels = len(self.costs)
        shared = 0 if sums is not None else n_labels
        expansion = examples.expansion(slice(None), np.hstack([examples.weights[:, :shared], self.coefficients]))
        for block in row_blocks(new.shape[0], n_labels**2, BLOCK):
            values = expansion(measured_from(examples.origin, new[block]))
            own, solved = values[:, :shared] if sums is None else sums[block], values[:, shared:]
            decisions = _decide(self.factor, self.offset, own * self.costs, examples.pairs)
            decisions[:, self.solved] = solved + self.offset[self.solved]
            decisions *= self.slope
            decisions += self.intercept
            yield couple(expit(decisions, out=decisions), n_labels)


def _decide(factor: FloatArray, offset: FloatArray, sums: FloatArray, pairs: tuple[IntArray, IntArray]) -> FloatArray:
    """Decision values of machines with γ = m for rows with the given kernel products K @ costs."""
    decisions = sums[:, pairs[0]]
    decisions -= sums[:, pairs[1]]
    decisions *= factor
    decisions += offset
    return decisions


def fit_pairs(
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
        For more machines than this, those of the folds included, an error is raised before the solver starts.
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
        _check_number(sum(len(fit.solved) for fit in closed), max_machines)
    (final,) = _solve(examples, closed[:1], n_jobs, previous)
    held_out = [(final, slice(None))]
    if len(closed) > 1:
        # most rows are those of the final fit, which is nearer than the fit of the same rows for another C
        held_out = [(fit, fit.fold) for fit in _solve(examples, closed[1:], n_jobs, final) if fit.fold is not None]
    slope, intercept = np.empty_like(final.offset), np.empty_like(final.offset)
    size = ROUNDING * np.abs(final.sums).max(axis=0)
    for block in row_blocks(len(slope), len(examples.weights), BLOCK):
        a, b = (labels[block] for labels in examples.pairs)
        decisions = np.concatenate([fit.decisions(rows, block, (a, b)) for fit, rows in held_out])
        weights = examples.weights
        slope[block], intercept[block] = fit_sigmoids(
            decisions, weights[:, a], weights[:, b], noise=np.maximum(size[a], size[b])
        )
    coefficients = np.ascontiguousarray(final.gamma.T)
    return PairModel(final.costs, final.factor, final.offset, final.solved, coefficients, slope, intercept), final


def _closed_forms(examples: Examples, fold: slice | None, C: float, *, equal_mass: bool) -> PairFit:
    """Fit all pairs in closed form on the rows that are not in the fold, and find those that need a solver."""
    a, b = examples.pairs
    weights, products = _without(fold, examples.weights), examples.fold_sums.sum(axis=0)
    if fold is not None:
        products = products - examples.fold_sums[examples.folds.index(fold)]
    unit = label_costs(weights.sum(axis=0), examples.weights.sum() / weights.shape[1], C, equal_mass=equal_mass)
    costs, sums = weights * unit, products * unit
    blocks = row_blocks(len(a), len(costs), BLOCK)
    parts = [solve_between_margins(sums, costs, (a[block], b[block])) for block in blocks]
    factor, offset, optimal = (np.concatenate(part) for part in zip(*parts, strict=True))
    nothing = np.empty((0, len(costs)))
    return PairFit(C, fold, sums, unit, factor, offset, np.flatnonzero(~optimal), nothing, nothing)


def _without(fold: slice | None, weights: FloatArray) -> FloatArray:
    """Weights of the rows that are not held out."""
    if fold is None:
        return weights
    weights = weights.copy()
    weights[fold] = 0.0
    return weights


def _solve(examples: Examples, fits: Sequence[PairFit], n_jobs: int | None, start: PairFit | None) -> Sequence[PairFit]:
    """Solve the pairs of some fits that have no closed form, all of them together, batch by batch."""
    n_samples, n_labels = examples.weights.shape
    n_machines = sum(len(fit.solved) for fit in fits)
    if not n_machines:
        return fits
    # One row for each label of each fit, so that a pair of one fit is a pair of rows.
    costs = np.concatenate([(_without(fit.fold, examples.weights) * fit.costs).T for fit in fits])
    a, b = (
        np.concatenate([position * n_labels + labels[fit.solved] for position, fit in enumerate(fits)])
        for labels in examples.pairs
    )
    pairs = np.concatenate([fit.solved for fit in fits])
    offset = np.concatenate([fit.offset[fit.solved] for fit in fits])

    def task(batch: IntArray) -> Any:
        u, v = costs[a[batch]], costs[b[batch]]
        gamma, first_offset = u - v, offset[batch]
        if start is not None and len(start.solved):  # begin at its machines, with γ in proportion to C
            found = np.minimum(np.searchsorted(start.solved, pairs[batch]), len(start.solved) - 1)
            known = start.solved[found] == pairs[batch]
            gamma[known] = (fits[0].C / start.C) * start.gamma[found[known]]
            first_offset[known] = start.offset[pairs[batch][known]]
        return delayed(solve_machines)(examples.solver_kernel, u, v, gamma, first_offset)

    n_batches = max(-(-n_machines * n_samples // SOLVER_BLOCK), min(n_machines, effective_n_jobs(n_jobs)))
    parts = Parallel(n_jobs=n_jobs)(task(batch) for batch in np.array_split(np.arange(n_machines), n_batches))
    gamma, values = (np.concatenate([getattr(part, name) for part in parts]) for name in ("gamma", "values"))
    offset = np.concatenate([part.offset for part in parts])
    _warn_if_stopped(n_machines - sum(int(part.solved.sum()) for part in parts), n_machines)
    solved = []
    ends = np.cumsum([len(fit.solved) for fit in fits])
    for fit, end in zip(fits, ends, strict=True):
        own = slice(end - len(fit.solved), end)
        all_offsets = fit.offset.copy()
        all_offsets[fit.solved] = offset[own]
        solved.append(replace(fit, offset=all_offsets, gamma=gamma[own], values=values[own]))
    return solved


def _warn_if_long(n_pairs: int, n_samples: int) -> None:
    n_decisions = n_pairs * n_samples
    if n_decisions >= LONG_FIT:
        minutes = round(n_decisions * SECONDS_PER_DECISION / 60)
        warn(
            f"PTSVM fits {n_pairs:,} pairs of labels on {n_samples:,} rows: expect about "
            f"{f'{minutes} minutes' if minutes > 1 else 'a minute'}. Fewer labels or a smaller max_samples take less.",
        )


def _check_number(n_machines: int, max_machines: float) -> None:
    if n_machines > max_machines:
        raise ParameterError(
            f"PTSVM would have to solve at least {n_machines:,} support vector machines, more than ",
            Parameter("max_machines", max_machines),
            ": that many pairs of labels, of all rows and of the folds, have no closed form. Choose a smaller C (",
            Parameter("C", 1e-3),
            " leaves next to none), a smaller gamma or fewer n_folds, or raise max_machines.",
        )


def _warn_if_stopped(n_stopped: int, n_machines: int) -> None:
    if n_stopped:
        warn(
            f"PTSVM stopped {n_stopped} of {n_machines} machines after {MAX_STEPS} steps of Newton's method, short of "
            "their optimum. Scale the features (sklearn.preprocessing.StandardScaler), or choose a smaller C.",
            ConvergenceWarning,
        )


def fit_sigmoids(
    decisions: FloatArray, positive: FloatArray, negative: FloatArray, *, noise: npt.ArrayLike = 0.0
) -> tuple[FloatArray, FloatArray]:
    """Fit slope and intercept of one logistic function for each column.

    Parameters
    ----------
    decisions : ndarray of shape (n_samples, n_pairs)
        Decision values.
    positive, negative : ndarray of shape (n_samples, n_pairs)
        How often each row was seen with the first and with the second label of the pair.
    noise : float or array-like of shape (n_pairs,), default=0
        Decision values whose standard deviation is not above this are taken as constant, so that rounding errors are
        not learned from.

    Returns
    -------
    slope, intercept : ndarray of shape (n_pairs,)
        The probability of the first label is ``expit(slope * decision + intercept)``.

    Warns
    -----
    ConvergenceWarning
        If `MAX_PLATT_STEPS` are not enough for some pair.

    """
    mass_positive, mass_negative = positive.sum(axis=0), negative.sum(axis=0)
    weight = positive + negative
    total = np.maximum(mass_positive + mass_negative, np.finfo(np.float64).tiny)
    pull = positive * ((mass_positive + 1) / (mass_positive + 2)) + negative / (mass_negative + 2)  # weight × target
    # in standard units the Hessian is near a multiple of the identity, however small the decision values are
    centre = (weight * decisions).sum(axis=0) / total
    spread = np.sqrt((weight * (decisions - centre) ** 2).sum(axis=0) / total)
    informative = spread > noise
    unit = np.where(informative, spread, 1.0)
    standard = np.where(informative, (decisions - centre) / unit, 0.0)
    slope = np.zeros(decisions.shape[1])
    intercept = np.log((mass_positive + 1) / (mass_negative + 1))
    active = np.flatnonzero(mass_positive + mass_negative > 0)  # without any row, the even odds above are kept
    for _ in range(MAX_PLATT_STEPS):
        if not active.size:
            break
        z, w, t = standard[:, active], weight[:, active], pull[:, active]
        slope[active], intercept[active], done = _platt_step(z, w, t, slope[active], intercept[active], total[active])
        active = active[~done]
    if active.size:
        warn(
            f"Platt's posterior of {active.size} of {len(slope)} pairs of labels has not converged after "
            f"{MAX_PLATT_STEPS} steps. Look for extreme sample weights or features, or lower C.",
            ConvergenceWarning,
        )
    slope = slope / unit
    return slope, intercept - slope * np.where(informative, centre, 0.0)


def _platt_step(
    z: FloatArray, weight: FloatArray, pull: FloatArray, slope: FloatArray, intercept: FloatArray, total: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Take one damped Newton step for each pair; return slopes, intercepts and which pairs had converged."""
    # the 2 × 2 systems of all pairs, solved by Cramer's rule
    score = slope * z + intercept
    probability = expit(score)
    residual = weight * probability - pull
    curvature = weight * probability * (1.0 - probability)
    ridge = 1e-12 * total  # keeps the Hessian positive definite where all decision values are equal
    h_ss = (curvature * z * z).sum(axis=0) + ridge
    h_si = (curvature * z).sum(axis=0)
    h_ii = curvature.sum(axis=0) + ridge
    g_s, g_i = (residual * z).sum(axis=0), residual.sum(axis=0)
    determinant = h_ss * h_ii - h_si**2
    d_s = -(h_ii * g_s - h_si * g_i) / determinant
    d_i = -(h_ss * g_i - h_si * g_s) / determinant
    promise = -(g_s * d_s + g_i * d_i)
    done = promise <= PLATT_TOLERANCE * total
    step = np.ones_like(slope)
    change = d_s * z + d_i
    pending = np.flatnonzero(~done)  # a step with almost no predicted improvement is taken as it is
    before = _loss(score[:, pending], weight[:, pending], pull[:, pending])
    for _ in range(MAX_HALVINGS):
        # Armijo's condition: at least 1e-4 of the improvement that the slope promises, the usual constant
        after = _loss((score + step * change)[:, pending], weight[:, pending], pull[:, pending])
        worse = after > before - 1e-4 * (step * promise)[pending]
        if not worse.any():
            break
        pending, before = pending[worse], before[worse]
        step[pending] /= 2.0
    return slope + step * d_s, intercept + step * d_i, done


def _loss(score: FloatArray, weight: FloatArray, pull: FloatArray) -> FloatArray:
    """Cross-entropy of each pair: −log p = −score − log(1 − p), and both logarithms are safe."""
    return np.asarray(-(weight * log_expit(-score)).sum(axis=0) - (pull * score).sum(axis=0))


def couple(pair_probabilities: npt.ArrayLike, n_labels: int) -> FloatArray:
    """Couple the probabilities of all pairs of labels into distributions.

    Parameters
    ----------
    pair_probabilities : array-like of shape (n_samples, n_labels * (n_labels - 1) / 2)
        Probability of label a against label b for a < b, in the order of ``np.triu_indices(n_labels, 1)``.
    n_labels : int
        Number of labels, at least two.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Non-negative rows that sum to one.

    """
    won = np.clip(np.asarray(pair_probabilities, dtype=np.float64), MIN_PROBABILITY, 1.0 - MIN_PROBABILITY)
    if n_labels == 2:
        return np.hstack([won, 1.0 - won])
    first, second = np.triu_indices(n_labels, 1)
    quadratic = np.zeros((len(won), n_labels, n_labels))
    quadratic[:, first, second] = won  # r_ij
    quadratic[:, second, first] = 1.0 - won
    diagonal = np.einsum("sji,sji->si", quadratic, quadratic)
    cross = won * (won - 1.0)
    quadratic[:, first, second] = cross
    quadratic[:, second, first] = cross
    labels = np.arange(n_labels)
    quadratic[:, labels, labels] = diagonal
    quadratic += diagonal.mean(axis=1)[:, None, None] / n_labels  # τ of the size of Q keeps the system well scaled
    solution = np.linalg.solve(quadratic, np.ones((len(won), n_labels, 1)))[:, :, 0]
    np.maximum(solution, 0.0, out=solution)  # non-negative in exact arithmetic
    return np.asarray(solution / solution.sum(axis=1, keepdims=True))


class PTSVM(BaseLDL):
    r"""Problem transformation to support vector machines (PT-SVM).

    The n training rows become weighted single-label examples: row i counts :math:`m_{ij} = c\,w_i d_{ij} / \bar w`
    times with label j, the expected number of copies when c·n examples are drawn with replacement in proportion to
    weight and description degree, as the paper does [1]_. For each pair of labels (a, b) a machine f minimises

    .. math:: \tfrac12 \|f\|^2 + C \sum_i s_a m_{ia} \max(0, 1 - f(x_i)) + s_b m_{ib} \max(0, 1 + f(x_i)),

    the objective of LIBSVM on those copies. The factors :math:`s_j = n / \sum_i m_{ij}` let each label count as n
    examples (``equal_mass``; scikit-learn's ``class_weight="balanced"``). How frequent each label is returns with
    Platt's posterior [2]_, which is fitted with the unscaled weights to decision values of rows that were left out. The
    second method of Wu, Lin and Weng [3]_ couples the posteriors of all pairs into one distribution.

    Label distributions that change gently with x leave every row between the margins. Then each machine is known in
    closed form, and all pairs together cost one product of the kernel with the distributions. An interval of offsets is
    optimal then; of these the one that brings the mean decision value nearest to 0 is taken. That condition is tested
    pair by pair; the pairs that fail it (`solved_pairs_`) need a solver, once for each fold and once for all rows. They
    share one kernel matrix, and a semismooth Newton method solves all of them together, to within 1e-8 of the
    optimality conditions, where the margins are at ±1. A pair that needs more than 400 steps stops there, with a
    warning. With very many labels choose C so small (1e-3, say) that no pair needs a solver: as long as that is so, the
    value of C changes nothing, because Platt's posterior sets the scale.

    Features are taken as they are: scale them first if they have different units. Adding a number to a feature changes
    nothing, except with ``gamma="scale"``: then it changes the variance of all numbers in X, and so the width.

    Parameters
    ----------
    kernel : {"rbf", "linear"}, default="rbf"
        ``exp(-gamma * ||x - z||²)`` or ``x @ z``. With ``"linear"`` and more rows than features no kernel matrix is
        built, so that it serves any number of rows; put `sklearn.kernel_approximation.Nystroem` or `RBFSampler` before
        it for a Gaussian kernel on many rows.
    C : float, default=1.0
        Cost of an example on the wrong side of its margin.
    gamma : {"auto", "scale"} or float, default="auto"
        Width of the Gaussian kernel: ``1 / n_features`` (LIBSVM's default, which the paper's published code uses),
        ``1 / (n_features * X.var())``, or the number itself. The linear kernel has none.
    equal_mass : bool, default=True
        Let every label count as n examples in the machines. False takes the weights as they are, which is
        the plain LIBSVM of the paper's published code: a more frequent label then draws f to its own margin, hardly
        any pair is known in closed form, and the decision values are less informative.
    resample : {None, "multinomial"}, default=None
        None uses the expected numbers of copies; ``"multinomial"`` draws them, as in the paper.
    max_samples : int or None, default=None
        Maximum number of rows to learn from; None takes all rows. From more rows, this many are drawn without
        replacement with probabilities in proportion to their weights, and then count the same. The time of the closed
        form grows with the square of this number, and so does the memory of the solver.
    n_folds : int, default=5
        Parts of the out-of-fold step; row i is in part ``i % n_folds``.
    memory_limit : float, default=2.0
        Maximum size of a kernel matrix, in GiB. The closed form stores none; if a pair needs a solver and its matrix
        would be larger, ``fit`` raises an error. 2 GiB are enough for 16,384 rows. Up to 8,192 rows the solver may hold
        an inverse of the same size in single precision besides.
    max_machines : int or None, default=20000
        Maximum number of machines to solve: pairs without a closed form, times ``n_folds + 1``. More raise an error
        instead of a fit that takes hours; None sets no limit.
    n_jobs : int, default=None
        Number of batches of pairs that are solved at the same time.
    random_state : int, RandomState instance or None, default=None
        Seed for drawing rows if there are more than ``max_samples``, and copies with ``resample="multinomial"``. In all
        other cases nothing is random.

    Attributes
    ----------
    support_ : ndarray of shape (n_used,)
        Rows of the training set that were learned from. Rows with weight zero are not counted.
    gamma_ : float or None
        Width of the Gaussian kernel; None for the linear kernel.
    solved_pairs_ : ndarray of shape (n_solved, 2)
        Pairs of labels whose final machine is not known in closed form.
    n_features_in_ : int
        Number of features seen by ``fit``.
    n_labels_ : int
        Number of labels.
    label_names_ : ndarray of str
        Names of the labels.

    Notes
    -----
    A label without any mass is allowed: Platt's targets give it a small degree, about one part in the number of
    examples. In the out-of-fold fits the remaining rows count as n too, so that decision values have the scale of the
    final ones.

    A row with weight two is not the same as the row twice: copies of a row may end up in different folds.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.
    .. [2] H.-T. Lin, C.-J. Lin and R. C. Weng, "A note on Platt's probabilistic outputs for support vector machines",
       Machine Learning 68, 2007.
    .. [3] T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability estimates for multi-class classification by pairwise
       coupling", Journal of Machine Learning Research 5, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl import PTSVM
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> D = np.hstack([0.2 + 0.6 * X, 0.6 - 0.5 * X, 0.2 - 0.1 * X])
    >>> PTSVM().fit(X, D).predict([[0.0], [0.5], [1.0]]).round(1)
    array([[0.2, 0.6, 0.2],
           [0.5, 0.3, 0.2],
           [0.8, 0.1, 0.1]])

    Many rows, with an approximate kernel:

    >>> from sklearn.kernel_approximation import Nystroem
    >>> from sklearn.pipeline import make_pipeline
    >>> features = Nystroem(gamma=2.0, n_components=20, random_state=0)
    >>> model = make_pipeline(features, PTSVM(kernel="linear")).fit(X, D)
    >>> model.predict(X).shape
    (50, 3)
    """

    _keeps_rows = True
    _model_parts = (Examples, PairModel)
    _constraints: ClassVar = {
        "kernel": one_of(
            "rbf",
            "linear",
            hint="for another kernel put its feature map, such as sklearn.kernel_approximation.Nystroem, before a "
            "PTSVM(kernel='linear')",
        ),
        "C": number(above=0, at_most=1e30, hint="sums over all rows must not overflow"),
        "gamma": one_of("auto", "scale") | POSITIVE,
        "equal_mass": BOOLEAN,
        "resample": NONE | one_of("multinomial"),
        "max_samples": NONE | integer(at_least=2),
        "n_folds": integer(at_least=2),
        "memory_limit": number(above=0, hint="it is in GiB"),
        "max_machines": NONE | COUNT,
        "n_jobs": N_JOBS,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        kernel: Literal["rbf", "linear"] = "rbf",
        C: float = 1.0,
        gamma: Literal["auto", "scale"] | float = "auto",
        equal_mass: bool = True,
        resample: Literal["multinomial"] | None = None,
        max_samples: int | None = None,
        n_folds: int = 5,
        memory_limit: float = 2.0,
        max_machines: int | None = 20_000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.equal_mass = equal_mass
        self.resample = resample
        self.max_samples = max_samples
        self.n_folds = n_folds
        self.memory_limit = memory_limit
        self.max_machines = max_machines
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        self._fit_pairs(self._make_examples(X, D, sample_weight))

    def _make_examples(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> Examples:
        """Choose rows, weight them and order them by fold: everything that does not depend on C."""
        generator = check_random_state(self.random_state)
        chosen, weight = _choose_rows(X.shape[0], sample_weight, self.max_samples, generator)
        fold_of = np.arange(len(chosen)) % min(self.n_folds, len(chosen))
        order = np.argsort(fold_of, kind="stable")
        ends = np.cumsum(np.bincount(fold_of))
        self.support_ = chosen[order]
        rows = X[self.support_]
        counts: FloatArray = weight[order, None] * D[self.support_]
        counts *= counts.size / counts.sum()
        if self.resample == "multinomial":
            counts = multinomial_counts(counts, counts.size, random_state=generator)
        self.gamma_ = None if self.kernel == "linear" else _kernel_width(rows, self.gamma)
        origin = column_medians(rows)
        folds = [slice(int(start), int(end)) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        limit = self.memory_limit * 2.0**30
        return Examples(measured_from(origin, rows), counts, folds, self.gamma_, limit, origin)

    def _fit_pairs(self, examples: Examples, previous: PairFit | None = None) -> PairFit:
        """Fit the pairs for the current C; return the fit on all rows, from which that for another C can begin."""
        self._model: PairModel
        self._model, final = fit_pairs(
            examples,
            self.C,
            equal_mass=self.equal_mass,
            max_machines=np.inf if self.max_machines is None else self.max_machines,
            n_jobs=self.n_jobs,
            previous=previous,
        )
        self._examples = replace(examples)  # a copy without the kernel matrix and sums that were cached for fitting
        self.solved_pairs_ = np.column_stack(examples.pairs)[self._model.solved]
        return final

    def _predict(self, X: Any) -> FloatArray:
        return np.concatenate(list(self._model.predict(self._examples, X)))

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """All values of C share the rows and their kernel; each begins where the next smaller one ended."""
        if param != "C":
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        if not values:
            return
        examples = self._make_examples(X, D, sample_weight)
        sums = examples.expansion(slice(None), examples.weights)(measured_from(examples.origin, X_new))
        predictions: dict[float, FloatArray] = {}
        final = None
        for value in sorted(set(values)):
            self.set_params(C=value)
            final = self._fit_pairs(examples, final)
            predictions[value] = np.concatenate(list(self._model.predict(examples, X_new, sums)))
        yield from (predictions[value] for value in values)

"""The support vector machines of all pairs of labels, on weighted examples whose two copies share one row.

For one pair, row i has the cost u_i of missing the first label and v_i of missing the second. With f = g + b the
machine (C-SVC) minimises

    ½‖g‖² + Σ_i u_i·max(0, 1 − f_i) + v_i·max(0, 1 + f_i).

Both copies of a row share x_i, so one dual variable per row is enough: g = Σ_i γ_i k(x_i, ·), and γ minimises

    ½ γᵀKγ + Σ_i h_i(γ_i)   with   Σ_i γ_i = 0,      h_i(γ_i) = |γ_i − m_i| on −v_i ≤ γ_i ≤ u_i,   m = u − v.

At the optimum −f_i ∈ ∂h_i(γ_i). Where |f_i| < 1, between the margins, both hinges of row i are active and γ_i = m_i. If
that holds for every row, as it does for most label distributions once u and v have equal sums, the machine is known
without a solver: g = Km. `solve_between_margins` tests this condition exactly, for all pairs at once.

`solve_machines` solves the other pairs, all together, by a semismooth Newton method: between the margins γ_i = m_i,
outside of them γ_i is at a bound, and only the rows exactly on a margin are free, which are few. A proximal term
δ/2 ‖γ − γ°‖² turns the inclusion into a function,

    γ_i(f_i) = m_i + clip(soft(γ°_i − m_i − f_i/δ, 1/δ), −u_i, v_i),      soft(y, t) = y − clip(y, −t, t),

and the problem in f into the minimisation of a convex, once differentiable, piecewise quadratic function. Each step of
Newton's method with an exact line search takes one linear system in the free rows, and one product with the rows of K
whose γ has changed, for all pairs at once. Then γ° moves to the solution and δ shrinks, until δ·max|γ − γ°|, which
bounds the violation of the inclusion, is below the tolerance. δ stays as it is after an inner problem that took many
steps, and grows within one that takes too many: with a large C and a small δ the steps would not come to an end. After
that it shrinks more slowly. This is the proximal point algorithm [1]_ with the inner solver of [2]_; it ends at the
optimum itself, not at that of a smoothed problem.

Where many rows are free, most of the time would go into the first inner problem. Once its steps have taken long, the
alternating direction method of multipliers [3]_ provides a better starting point. It introduces a copy z of γ and
draws both together with a penalty ρ,

    γ ← argmin ½ γᵀKγ + ρ/2 ‖γ − z + y‖²  with  Σ_i γ_i = 0,
    z ← argmin Σ_i h_i(z_i) + ρ/2 ‖γ − z + y‖²,
    y ← y + γ − z.

The first needs (K + ρI)⁻¹, which all pairs and folds share, the second is known in closed form; −ρy tends to f. These
steps converge slowly, but they usually come near the optimum soon.

References
----------
.. [1] R. T. Rockafellar, "Monotone operators and the proximal point algorithm", SIAM Journal on Control and
   Optimization 14(5), 1976.
.. [2] X. Li, D. Sun and K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
   problems", SIAM Journal on Optimization 28(1), 2018.
.. [3] S. Boyd, N. Parikh, E. Chu, B. Peleato and J. Eckstein, "Distributed optimization and statistical learning via
   the alternating direction method of multipliers", Foundations and Trends in Machine Learning 3(1), 2011.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import linalg, sparse

from skldl.utils.typing import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-8
"""Largest violation of the optimality condition, in units of f, where the margins are at ±1."""
LAST_TOLERANCE = 1e-6
"""The same for pairs that have taken all steps: where K is singular, the last digits can take very many."""
SUM_TOLERANCE = 1e-9
"""Largest |Σγ|, as a fraction of the mass of the costs."""
MAX_STEPS = 400
"""Newton steps, those of all inner problems together."""
FIRST_SMOOTHING = 0.3
"""First δ, divided by the largest cost: so the first step can move γ through its bounds where |f| is of order 1."""
MIN_FIRST_SMOOTHING = 0.003
"""Smallest first δ, as a fraction of the largest entry of K: of the order of the free γ where C is large."""
SHRINKAGE = 0.3
"""Factor of δ after an inner problem that took few steps; its square root once δ had to grow, and so on."""
GROWTH = 4.0
"""Factor of δ where an inner problem takes too many steps."""
FEW_STEPS = 20
"""δ shrinks after inner problems of at most this many Newton steps. Without this limit, about 79 of the 216 machines of
Natural_Scene at C = 10 were not solved."""
MANY_STEPS = 60
"""After this many Newton steps an inner problem starts again where they ended, with a larger δ."""
MIN_SMOOTHING = 1e-7
"""Smallest δ, as a fraction of the largest entry of K: where K is singular, rounding decides γ with a smaller one."""
OFFSET_SMOOTHING = 1e-6
"""Weight of the proximal term of b, as a fraction of the mass of the costs."""
MAX_OFFSET_SMOOTHING = 0.01
"""Largest weight of it, divided by the largest entry of K: a large C needs no larger one."""
MIN_SLOPE = 1e-10
"""A step along which the slope is less than this fraction of Σ|change of γ| is taken whole: errors of f of that size
decide it. Where K is singular, such a step hardly changes f, but it may have to change γ much."""
SLOPE_REDUCTION = 0.5
"""The line search ends where the slope has fallen to this fraction of the first one."""
MAX_TRIALS = 40
"""Points that a line search tries; chosen by hand."""

SPLITTING_START = 0.1
"""The splitting steps start when Newton's steps have taken this fraction of the operations that those may take; chosen
by measured times (.25 was slower). Without these steps a fit at C = 100 takes 2.7 times as long on Yeast_spoem and 2.2
times as long on Natural_Scene."""
MAX_SPLITTING_STEPS = 500
"""Chosen by hand; Newton's method continues from the last point, converged or not."""
MIN_SPLITTING_PAIRS = 10
"""With fewer pairs a splitting step takes no less time: it waits for the inverse to be read from memory."""
MAX_SPLITTING_ROWS = 8192
"""With more rows there are no such steps: the inverse that they need takes 768 MiB besides K while it is computed."""
PENALTY = 0.3
"""ρ where the largest entry of K times the mean cost of a row is 1, as a fraction of that entry; the fraction falls
with the root of that product. Chosen by hand."""
MIN_PENALTY = 1e-5
"""Smallest ρ, as a fraction of the largest entry of K: the inverse is kept in single precision."""
RELAXATION = 1.6
"""γ is replaced by a point beyond it, seen from z: with 1.5 to 1.8 the steps are fewer (section 3.4.3 of [3]_)."""
NEAR = 3e-4
"""The splitting steps end where ρ|γ − z| and ρ times the change of z are below it: the largest entry of each pair, on
average over the pairs, in units of f, where the margins are at ±1. Chosen by hand: only a start for Newton's method."""

TINY = float(np.finfo(np.float64).tiny)
"""Replaces costs and kernel values of 0 in denominators."""


class System(NamedTuple):
    """The linear system (K[rows][:, rows] + ridge·I) x = columns."""

    rows: IntArray
    ridge: float
    columns: FloatArray


class KernelMatrix:
    """Kernel matrix K of n rows."""

    def __init__(self, matrix: FloatArray) -> None:
        self.matrix = matrix
        self._smoother: tuple[float, FloatArray] | None = None

    @property
    def scale(self) -> float:
        """Largest entry of K: on the diagonal, since K is positive semidefinite."""
        return float(self.matrix.diagonal().max())

    def times(self, coefficients: FloatArray) -> FloatArray:
        """Return coefficients @ K for coefficients of shape (n_functions, n)."""
        rows = np.flatnonzero(coefficients.any(axis=0))
        if 2 * len(rows) > len(self.matrix):
            return np.asarray(coefficients @ self.matrix)
        return np.asarray(coefficients[:, rows] @ self.matrix[rows])

    def block(self, rows: IntArray) -> FloatArray:
        """Return a new array K[rows][:, rows]."""
        # Twice as fast as an index of both axes; with mode="clip" NumPy does not check each index.
        return self.matrix.take(rows, axis=0, mode="clip").take(rows, axis=1, mode="clip")

    def solve(self, systems: Sequence[System]) -> list[FloatArray]:
        """Return the solutions of linear systems."""
        return [solve_regularised(self.block(rows), ridge, columns) for rows, ridge, columns in systems]

    def smooth(self, coefficients: FloatArray, ridge: float) -> FloatArray:
        """Return ridge · coefficients @ (K + ridge·I)⁻¹; the inverse is kept for the next call with the same ridge."""
        smoother = self._smoother  # another thread may replace it at any time
        if smoother is None or smoother[0] != ridge:
            self._smoother = smoother = None  # frees memory before the next one is computed
            self._smoother = smoother = ridge, _ridge_inverse(self.matrix, ridge)
        return np.asarray(coefficients @ smoother[1])


class LinearKernel(KernelMatrix):
    """K = XXᵀ of more rows than features, which is never stored."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    @property
    def scale(self) -> float:
        squares = self.rows.multiply(self.rows) if sparse.issparse(self.rows) else self.rows**2
        return float(squares.sum(axis=1).max())

    def times(self, coefficients: FloatArray) -> FloatArray:
        return np.asarray((coefficients @ self.rows) @ self.rows.T)

    def block(self, rows: IntArray) -> FloatArray:
        part = self.rows[rows]
        product = part @ part.T
        return np.asarray(product.toarray() if sparse.issparse(product) else product)


def solve_regularised(matrix: FloatArray, ridge: float, columns: FloatArray) -> FloatArray:
    """(matrix + ridge·I)⁻¹ columns; with a larger ridge if rounding made the matrix indefinite: steps still descend."""
    diagonal = matrix.diagonal().copy()
    while True:
        np.fill_diagonal(matrix, diagonal + ridge)
        _, solution, failed = linalg.lapack.dposv(matrix, columns, lower=1)
        if not failed:
            return np.asarray(solution)
        # a hundredfold each time, from the rounding errors of the diagonal on: a few attempts are enough
        ridge = 100.0 * max(ridge, np.finfo(np.float64).eps * float(diagonal.max()))


def _ridge_inverse(matrix: FloatArray, ridge: float) -> FloatArray:
    """Return ridge · (matrix + ridge·I)⁻¹ of a positive semidefinite matrix, in single precision."""
    regularised = matrix.copy(order="F")
    regularised[np.diag_indices_from(regularised)] += ridge
    factor, failed = linalg.lapack.dpotrf(regularised, lower=1, overwrite_a=1)
    if failed:
        raise linalg.LinAlgError(f"the kernel matrix with {ridge:.3g} on its diagonal is not positive definite")
    inverse, _ = linalg.lapack.dpotri(factor, lower=1, overwrite_c=1)
    inverse *= ridge
    half = inverse.astype(np.float32, order="F")
    for column in range(1, len(half)):  # the other triangle: a transposed copy of all would double the memory
        half[:column, column] = half[column, :column]
    return half


def label_costs(mass: FloatArray, each: float, C: float, *, equal_mass: bool) -> FloatArray:
    """Cost of one unit of weight of each label.

    Parameters
    ----------
    mass : ndarray of shape (n_labels,)
        Total weight of each label in the training rows.
    each : float
        The average mass of the labels, in a part of the rows as in all of them.
    C : float
        Cost of one unit of weight.
    equal_mass : bool
        Scale every label to this mass, not only their average.
    """
    if equal_mass:
        return C * each / np.where(mass > 0, mass, 1.0)
    return np.full(len(mass), C * each / mass.mean())


def solve_between_margins(
    sums: FloatArray, costs: FloatArray, pairs: tuple[IntArray, IntArray]
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Machines f = factor·(Ku − Kv) + offset with γ = m, and whether each is optimal.

    An offset is optimal if f ≤ 1 wherever the first label has a cost and f ≥ −1 wherever the second has. That leaves an
    interval, which may be empty. Of its points the one nearest to minus the mean of g is taken: unlike the middle of
    the interval, which two extreme rows decide, it hardly changes from one training set to the next.

    Parameters
    ----------
    sums : ndarray of shape (n_samples, n_labels)
        K @ costs over the training rows.
    costs : ndarray of shape (n_samples, n_labels)
        Cost of missing each label in each row: u and v are two columns of it.
    pairs : pair of ndarray of shape (n_pairs,)
        First and second label of each pair.

    Returns
    -------
    factor, offset : ndarray of shape (n_pairs,)
        The factor is 1, or 0 for a pair of which one label has no mass: then there is nothing to separate.
    optimal : ndarray of shape (n_pairs,)
        Which pairs need no solver.
    """
    a, b = pairs
    mass = costs.sum(axis=0)
    factor = ((mass[a] > 0) & (mass[b] > 0)).astype(np.float64)
    values = sums[:, a] - sums[:, b]
    values *= factor
    inner = costs.T @ sums
    total = mass[a] + mass[b]
    mean = factor * (inner[a, a] - inner[a, b] + inner[b, a] - inner[b, b]) / np.where(total > 0, total, 1.0)
    highest = np.max(values, axis=0, where=costs[:, a] > 0, initial=-np.inf)
    lowest = np.min(values, axis=0, where=costs[:, b] > 0, initial=np.inf)
    offset = np.clip(-mean, -1.0 - lowest, 1.0 - highest)
    # Σγ = 0 holds for γ = m if both labels have the same mass, up to the rounding of sums over the rows
    balanced = factor * np.abs(mass[a] - mass[b]) <= 1e-12 * total
    return factor, offset, (highest - lowest <= 2.0) & balanced


@dataclass(frozen=True)
class Solutions:
    """Solved machines: γ of shape (n_pairs, n_samples), offsets b, f on all rows, and which pairs are solved."""

    gamma: FloatArray
    offset: FloatArray
    values: FloatArray
    solved: BoolArray


@dataclass
class _Problems:
    """The pairs that are still being solved; first axis: pairs."""

    position: IntArray
    u: FloatArray
    v: FloatArray
    gamma: FloatArray
    offset: FloatArray
    products: FloatArray  # Kγ
    center: FloatArray  # γ°
    offset_center: FloatArray
    smoothing: FloatArray  # δ
    shrinkage: FloatArray
    offset_smoothing: FloatArray
    mass: FloatArray
    n_steps: IntArray  # Newton steps of the inner problem

    def take(self, keep: BoolArray | IntArray) -> Self:
        """Return some of the pairs."""
        return replace(self, **{field.name: getattr(self, field.name)[keep] for field in fields(self)})

    @property
    def values(self) -> FloatArray:
        """f on all rows."""
        return np.asarray(self.products + self.offset[:, None])

    def inside(self) -> FloatArray:
        """γ moved into its bounds."""
        return np.clip(self.gamma, -self.v, self.u)

    def respond(self, values: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return γ(f), and which rows are free: on a margin and not at a bound."""
        middle = self.u - self.v
        width = 1.0 / self.smoothing[:, None]
        soft = self.center - middle - values * width
        soft -= np.clip(soft, -width, width)
        response = np.clip(soft, -self.u, self.v)
        free = (response == soft) & (soft != 0)
        response += middle
        return response, free

    def primal_objective(self, gamma: FloatArray, offset: FloatArray, products: FloatArray) -> FloatArray:
        """½ γᵀKγ + Σ_i u_i·max(0, 1 − f_i) + v_i·max(0, 1 + f_i) of each pair at some point; products are Kγ."""
        values = products + offset[:, None]
        losses = _dot(self.u, np.maximum(0.0, 1.0 - values)) + _dot(self.v, np.maximum(0.0, 1.0 + values))
        return np.asarray(0.5 * _dot(gamma, products) + losses)


def solve_machines(
    kernel: KernelMatrix, first: FloatArray, second: FloatArray, start: FloatArray, offset: FloatArray
) -> Solutions:
    """Solve the machines of many pairs.

    Parameters
    ----------
    kernel : KernelMatrix
        Kernel of the rows.
    first, second : ndarray of shape (n_pairs, n_samples)
        Costs u and v of missing the first and the second label. Rows without cost take no part.
    start : ndarray of shape (n_pairs, n_samples)
        Where γ begins; it is moved into its bounds.
    offset : ndarray of shape (n_pairs,)
        Where b begins.

    Returns
    -------
    Solutions
        A pair that needs more than `MAX_STEPS` Newton steps is not ``solved``, and where the last step ended.
    """
    gamma = np.clip(start, -second, first)
    mass = np.maximum((first + second).sum(axis=1), TINY)
    largest = np.maximum((first + second).max(axis=1), TINY)
    scale = max(kernel.scale, TINY)
    problems = _Problems(
        position=np.arange(len(first)),
        u=first,
        v=second,
        gamma=gamma,
        offset=offset.astype(np.float64),
        products=kernel.times(gamma),
        center=gamma.copy(),
        offset_center=offset.astype(np.float64),
        smoothing=np.maximum(FIRST_SMOOTHING / largest, MIN_FIRST_SMOOTHING * scale),
        shrinkage=np.full(len(first), SHRINKAGE),
        offset_smoothing=np.minimum(OFFSET_SMOOTHING * mass, MAX_OFFSET_SMOOTHING / scale),
        mass=mass,
        n_steps=np.zeros(len(first), dtype=np.intp),
    )
    found = Solutions(gamma.copy(), offset.copy(), np.zeros_like(gamma), np.zeros(len(first), dtype=bool))
    response, free = problems.respond(problems.values)
    work, max_work = 0.0, _work_before_splitting(kernel, *gamma.shape)
    for _ in range(MAX_STEPS):
        work += float((free.sum(axis=1) ** 3.0).sum()) / 3  # operations of the Cholesky factors
        if work > max_work:
            max_work = np.inf  # once
            _start_nearer(kernel, problems)
            response, free = problems.respond(problems.values)
        response, free, inner_done = _newton_step(kernel, problems, response, free)
        finished, moved = _move_centers(problems, response, inner_done, MIN_SMOOTHING * scale)
        if finished.any():
            finished[finished] = _record(problems.take(finished), free[finished], kernel, found, TOLERANCE)
            problems, response, free = problems.take(~finished), response[~finished], free[~finished]
        if not len(problems.position):
            return found
        if moved.any():  # with other centers, f requires another γ
            response, free = problems.respond(problems.values)
    gamma = problems.inside()
    found.gamma[problems.position], found.offset[problems.position] = gamma, problems.offset
    found.values[problems.position] = kernel.times(gamma) + problems.offset[:, None]
    near = _violation(problems, response) <= LAST_TOLERANCE
    _record(problems.take(near), free[near], kernel, found, LAST_TOLERANCE)
    return found


def _newton_step(
    kernel: KernelMatrix, problems: _Problems, response: FloatArray, free: BoolArray
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Take one step; return γ(f) and the free rows where it ends, and whether the inner problem is solved there."""
    change = np.where(free, 0.0, response - problems.gamma)  # of the rows that are not free
    product_change = kernel.times(change)
    offset_change = np.empty_like(problems.offset)
    free_change = np.zeros_like(change)
    margin = np.where(response > problems.u - problems.v, -1.0, 1.0)  # the margin of a free row
    total = problems.gamma.sum(axis=1) + change.sum(axis=1)
    total -= problems.offset_smoothing * (problems.offset - problems.offset_center)
    pairs, systems = [], []
    for pair, is_free in enumerate(free):
        rows = np.flatnonzero(is_free)
        if not len(rows):  # only b can change; the line search determines how much
            reach = np.abs(problems.values[pair]).max() + 2.0
            offset_change[pair] = np.clip(total[pair] / problems.offset_smoothing[pair], -reach, reach)
            continue
        gamma, smoothing = problems.gamma[pair, rows], problems.smoothing[pair]
        values = problems.products[pair, rows] + product_change[pair, rows] + problems.offset[pair]
        lack = margin[pair, rows] - values - smoothing * (gamma - problems.center[pair, rows])
        pairs.append(pair)
        systems.append(System(rows, smoothing, np.column_stack([lack, np.ones(len(rows))])))
    for pair, system, both in zip(pairs, systems, kernel.solve(systems), strict=True):
        # the second column is the response of γ to b: the condition Σγ = 0 determines the change of b
        pull = problems.offset_smoothing[pair]
        offset_change[pair] = (both[:, 0].sum() + total[pair]) / (both[:, 1].sum() + pull)
        free_change[pair, system.rows] = both[:, 0] - offset_change[pair] * both[:, 1]
    product_change += kernel.times(free_change)
    change += free_change
    return _line_search(problems, change, product_change, offset_change, response, free, kernel.scale)


def _line_search(
    problems: _Problems,
    change: FloatArray,
    product_change: FloatArray,
    offset_change: FloatArray,
    response: FloatArray,
    free: BoolArray,
    scale: float,
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Take a step whose length makes the slope of the convex function small enough; usually 1."""
    values, value_change = problems.values, product_change + offset_change[:, None]
    linear, quadratic = _dot(change, problems.products), _dot(change, product_change)
    linear += problems.offset_smoothing * (problems.offset - problems.offset_center) * offset_change
    quadratic += problems.offset_smoothing * offset_change**2
    first_slope = linear - _dot(response, value_change)
    new_response, new_free = problems.respond(values + value_change)
    slope = linear + quadratic - _dot(new_response, value_change)
    length = np.ones(len(values))
    is_known = np.abs(first_slope) > MIN_SLOPE * np.abs(change).sum(axis=1)
    search = np.flatnonzero(is_known & (slope > SLOPE_REDUCTION * np.abs(first_slope)))
    low, high = np.zeros(len(search)), np.ones(len(search))
    slope_low, slope_high = first_slope[search], slope[search]
    for _ in range(MAX_TRIALS):
        if not len(search):
            break
        # regula falsi on the slope, which is piecewise linear; kept away from both ends, so that the interval shrinks
        rise = slope_high - slope_low  # which rounding may hide
        fraction = np.clip(np.divide(-slope_low, rise, out=np.ones_like(rise), where=rise > 0), 0.1, 0.9)
        middle = low + (high - low) * fraction
        some = problems.take(search)
        tried, tried_free = some.respond(values[search] + middle[:, None] * value_change[search])
        here = linear[search] + middle * quadratic[search] - _dot(tried, value_change[search])
        length[search], new_response[search], new_free[search] = middle, tried, tried_free
        beyond = here > 0
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        slope_low, slope_high = np.where(beyond, slope_low, here), np.where(beyond, here, slope_high)
        more = np.abs(here) > SLOPE_REDUCTION * np.abs(first_slope[search])
        search, low, high = search[more], low[more], high[more]
        slope_low, slope_high = slope_low[more], slope_high[more]
    problems.gamma += length[:, None] * change
    problems.products += length[:, None] * product_change
    problems.offset += length * offset_change
    # in units of f: what γ lacks of its response moves f by at most so much through K, or through the proximal term
    error = np.maximum(problems.smoothing, scale) * np.abs(new_response - problems.gamma).max(axis=1)
    # a whole step is exact if it stays in one quadratic piece: the same rows are free, the others where they were
    same = (length == 1.0) & ((new_free == free) & (free | (new_response == response))).all(axis=1)
    # a tenth of the tolerance leaves the rest to what the proximal term moves
    return new_response, new_free, same | (error <= 0.1 * TOLERANCE)


def _move_centers(
    problems: _Problems, response: FloatArray, inner_done: BoolArray, min_smoothing: float
) -> tuple[BoolArray, BoolArray]:
    """Begin the next inner problem of the pairs whose inner problem is solved or takes too long.

    Return which pairs seem optimal, and which begin another inner problem.
    """
    balanced = np.abs(problems.gamma.sum(axis=1)) <= SUM_TOLERANCE * problems.mass
    finished = inner_done & balanced & (_violation(problems, response) <= TOLERANCE)
    problems.n_steps += 1
    too_long = ~inner_done & (problems.n_steps >= MANY_STEPS)
    begin = inner_done | too_long
    problems.center[inner_done] = response[inner_done]
    problems.center[too_long] = problems.gamma[too_long]
    problems.offset_center[begin] = problems.offset[begin]
    shrinks = inner_done & (problems.n_steps <= FEW_STEPS)
    problems.smoothing[shrinks] *= problems.shrinkage[shrinks]
    problems.smoothing[too_long] *= GROWTH
    problems.shrinkage[too_long] **= 0.5
    np.maximum(problems.smoothing, min_smoothing, out=problems.smoothing)
    problems.n_steps[begin] = 0
    return np.asarray(finished), np.asarray(begin)


def _violation(problems: _Problems, response: FloatArray) -> FloatArray:
    """Bound on the violation of the optimality condition where the response to f is γ, or nearly so."""
    moved = np.abs(response - problems.center).max(axis=1)
    apart = np.abs(response - problems.gamma).max(axis=1)
    return np.asarray(problems.smoothing * (moved + apart))


def _record(
    problems: _Problems, free: BoolArray, kernel: KernelMatrix, found: Solutions, tolerance: float
) -> BoolArray:
    """Store the solutions that are optimal; return which pairs these are.

    γ is moved into its bounds, and its products are computed again: errors of the sums of steps must not count.
    """
    gamma = problems.inside()
    products = kernel.times(gamma)
    balanced = np.abs(gamma.sum(axis=1)) <= SUM_TOLERANCE * problems.mass
    unmoved = np.abs(products - problems.products).max(axis=1) <= tolerance * max(1.0, np.abs(products).max(initial=0))
    optimal = np.asarray(balanced & unmoved)
    problems, free, gamma, products = problems.take(optimal), free[optimal], gamma[optimal], products[optimal]
    offset = problems.offset.copy()
    for pair in np.flatnonzero(~free.any(axis=1)):
        offset[pair] = _middle_offset(products[pair], gamma[pair], problems.u[pair], problems.v[pair], offset[pair])
    found.gamma[problems.position], found.offset[problems.position] = gamma, offset
    found.values[problems.position] = products + offset[:, None]
    found.solved[problems.position] = True
    return optimal


def _middle_offset(products: FloatArray, gamma: FloatArray, u: FloatArray, v: FloatArray, offset: float) -> float:
    """Without a row on a margin every b of an interval is optimal: take its middle, as LIBSVM does."""
    above = -v < gamma  # these rows demand f ≤ 1, and f ≤ −1 if γ > m
    below = gamma < u  # these demand f ≥ −1, and f ≥ 1 if γ < m
    middle = u - v
    highest = np.min(np.where(gamma > middle, -1.0, 1.0) - products, where=above, initial=np.inf)
    lowest = np.max(np.where(gamma < middle, 1.0, -1.0) - products, where=below, initial=-np.inf)
    return float(0.5 * (highest + lowest)) if np.isfinite(highest - lowest) else float(offset)


def _work_before_splitting(kernel: KernelMatrix, n_pairs: int, n_samples: int) -> float:
    """Operations of Newton's steps after which the splitting steps start; infinite where they are never taken."""
    if isinstance(kernel, LinearKernel) or n_samples > MAX_SPLITTING_ROWS:
        return np.inf
    # an inverse, and a product with it for all pairs in each step
    most = n_samples**3.0 + 2.0 * MAX_SPLITTING_STEPS * n_samples**2 * max(n_pairs, MIN_SPLITTING_PAIRS)
    return SPLITTING_START * most


def _start_nearer(kernel: KernelMatrix, problems: _Problems) -> None:
    """Begin the inner problem again at the end of the splitting steps, for pairs with a smaller objective there.

    The primal objective decides: the dual one does not compare points with Σγ ≠ 0, since far from that condition it
    falls below the optimum.
    """
    inside = problems.inside()
    try:
        gamma, offset = _split(kernel, problems.u, problems.v, inside, problems.values)
    except linalg.LinAlgError:  # rounding has made K indefinite: Newton's method goes on from where it is
        return
    products = kernel.times(gamma)
    here = problems.primal_objective(inside, problems.offset, kernel.times(inside))
    better = problems.primal_objective(gamma, offset, products) < here
    problems.gamma[better], problems.offset[better] = gamma[better], offset[better]
    problems.products[better] = products[better]
    problems.center[better], problems.offset_center[better] = gamma[better], offset[better]
    problems.n_steps[better] = 0


def _split(
    kernel: KernelMatrix, first: FloatArray, second: FloatArray, gamma: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Take the splitting steps from γ and f, in single precision; return γ inside its bounds, and the offsets."""
    costs = first + second
    cost = float(costs.sum() / np.count_nonzero(costs))
    scale = max(kernel.scale, TINY)
    # a power of two, so that all folds have the same penalty and share the inverse
    penalty = scale * 2.0 ** round(float(np.log2(max(MIN_PENALTY, PENALTY / float(np.sqrt(scale * cost))))))
    unit = penalty * cost  # of f, where z and y are divided by the mean cost
    u, v = (first / cost).astype(np.float32), (second / cost).astype(np.float32)
    z, y = (gamma / cost).astype(np.float32), (values / -unit).astype(np.float32)
    middle, width = u - v, np.float32(1.0 / unit)
    ones = kernel.smooth(np.ones((1, u.shape[1]), dtype=np.float32), penalty)
    offset = np.zeros(len(u), dtype=np.float32)
    for _ in range(MAX_SPLITTING_STEPS):
        near = kernel.smooth(z - y, penalty)
        offset = near.sum(axis=1) / ones.sum()
        near -= offset[:, None] * ones
        beyond = RELAXATION * near + (1.0 - RELAXATION) * z
        soft = beyond + y - middle
        soft -= np.clip(soft, -width, width)
        previous, z = z, middle + np.clip(soft, -u, v)
        y += beyond - z
        apart = np.maximum(np.abs(near - z).max(axis=1), np.abs(z - previous).max(axis=1))
        if unit * apart.mean() <= NEAR:
            break
    return np.clip(cost * z.astype(np.float64), -second, first), unit * offset.astype(np.float64)


def _dot(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", left, right))

"""Many support vector machines that share one kernel matrix, solved together by a semismooth Newton method.

The machine of one pair (see `_pairwise_svm`) minimises over one dual variable per row

    ½ γᵀKγ + Σ_i h_i(γ_i)   with   Σ_i γ_i = 0,      h_i(γ_i) = |γ_i − m_i| on −v_i ≤ γ_i ≤ u_i,   m = u − v.

With f = Kγ + b the optimum satisfies −f_i ∈ ∂h_i(γ_i): between the margins γ_i = m_i, outside of them γ_i is at a
bound, and only the few rows exactly on a margin are free. A proximal term δ/2 ‖γ − γ°‖² makes the inclusion a function,

    γ_i(f_i) = m_i + clip(soft(γ°_i − m_i − f_i/δ, 1/δ), −u_i, v_i),      soft(y, t) = y − clip(y, −t, t),

and the problem in f the minimisation of a convex, once differentiable, piecewise quadratic function. Newton's method
with an exact line search solves it: one linear system in the free rows, and one product with the rows of K whose γ has
changed, taken for all pairs at once. Then γ° moves to the solution and δ shrinks, until δ·max|γ − γ°|, which bounds the
violation of the inclusion above, is below the tolerance. δ stays as it is after an inner problem that took many steps,
and grows within one that takes too many: with a large C and a small δ the steps would find no end. After that it
shrinks more slowly. Where many rows are free most of the time would go into the first inner problem: once its steps
have taken long, cheaper ones (`_splitting`) come near the optimum. This is the proximal point algorithm [1]_ with the
inner solver of [2]_; it ends at the optimum itself, not at that of a smoothed problem.

References
----------
.. [1] R. T. Rockafellar, "Monotone operators and the proximal point algorithm", SIAM Journal on Control and
   Optimization 14(5), 1976.
.. [2] X. Li, D. Sun and K.-C. Toh, "A highly efficient semismooth Newton augmented Lagrangian method for solving Lasso
   problems", SIAM Journal on Optimization 28(1), 2018.
"""

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError

from skldl.transformation._kernel import Kernel, KernelMatrix, System
from skldl.transformation._splitting import MOST_STEPS as SPLIT_STEPS
from skldl.transformation._splitting import come_near
from skldl.utils.typing import FloatArray, IntArray

TOLERANCE = 1e-8
"""Largest violation of the optimality condition, in units of f, where the margins are at ±1."""
SUM_TOLERANCE = 1e-9
"""Largest |Σγ|, as a share of the mass of the costs."""
MOST_STEPS = 400
"""Newton steps; pairs that need more are left to LIBSVM."""
MOST_FREE_ROWS = 4096
"""Pairs with more rows on the margins are left to LIBSVM: the system of one Newton step would exceed 128 MiB."""
FIRST_SMOOTHING = 0.3
"""First δ, divided by the largest cost: so the first step can move γ through its bounds where |f| is of order 1."""
LEAST_FIRST_SMOOTHING = 0.003
"""Least first δ, as a share of the largest entry of K: of the order of the free γ where C is large."""
SHRINKAGE = 0.3
"""What δ is multiplied by after an inner problem that took few steps; its square root once δ had to grow, and so on."""
GROWTH = 4.0
"""What δ is multiplied by where an inner problem takes too many."""
FEW_STEPS = 20
"""δ shrinks after inner problems of at most this many Newton steps."""
MANY_STEPS = 60
"""After this many Newton steps in one inner problem, another one begins where they ended, with a larger δ."""
LEAST_SMOOTHING = 1e-7
"""Least δ, as a share of the largest entry of K: a smaller one leaves γ to rounding errors where K is singular."""
OFFSET_SMOOTHING = 1e-6
"""Weight of the proximal term of b, as a share of the mass of the costs."""
MOST_OFFSET_SMOOTHING = 0.01
"""Largest weight of it, divided by the largest entry of K: a large C needs no larger one."""
SMALLEST_SLOPE = 1e-10
"""A step along which the slope is less than this share of Σ|change of γ| is taken whole: errors of f of that size
decide it. Where K is singular, such a step hardly changes f, but it may have to change γ much."""
SLOPE_REDUCTION = 0.5
MOST_TRIALS = 40
LONG = 0.1
"""Steps of `_splitting` come in when Newton's steps have taken this share of the operations that those may take."""
FEWEST_PAIRS = 10
"""With fewer pairs the steps of `_splitting` are no faster: they wait for the inverse to be read from memory."""
MOST_SPLIT_ROWS = 8192
"""With more rows there are no such steps: the inverse that they need takes 768 MiB besides K while it is made."""


@dataclass(frozen=True)
class Solutions:
    """Solved machines: γ of shape (n_pairs, n_samples), offsets b, f on all rows, and which pairs are solved."""

    gamma: FloatArray
    offset: FloatArray
    values: FloatArray
    solved: npt.NDArray[np.bool_]


@dataclass
class _Problems:
    """The pairs that are still being solved; first axis: pairs."""

    place: IntArray
    u: FloatArray
    v: FloatArray
    gamma: FloatArray
    offset: FloatArray
    products: FloatArray  # Kγ
    center: FloatArray
    offset_center: FloatArray
    smoothing: FloatArray  # δ
    shrinkage: FloatArray
    offset_smoothing: FloatArray
    mass: FloatArray
    n_steps: IntArray  # Newton steps of the inner problem

    def take(self, keep: npt.NDArray[np.bool_] | IntArray) -> Self:
        """Return some of the pairs."""
        return replace(self, **{field.name: getattr(self, field.name)[keep] for field in fields(self)})

    @property
    def values(self) -> FloatArray:
        """f on all rows."""
        return np.asarray(self.products + self.offset[:, None])

    def inside(self) -> FloatArray:
        """γ moved into its bounds."""
        return np.clip(self.gamma, -self.v, self.u)

    def begin_where_better(self, gamma: FloatArray, offset: FloatArray, kernel: Kernel) -> None:
        """Begin the inner problem of a pair again, at another point, if the primal objective is smaller there.

        The dual one does not compare points with Σγ ≠ 0: far from that condition it falls below the optimum.
        """
        inside, products = self.inside(), kernel.times(gamma)
        there = self._primal(gamma, offset, products)
        better = there < self._primal(inside, self.offset, kernel.times(inside))
        self.gamma[better], self.offset[better], self.products[better] = gamma[better], offset[better], products[better]
        self.center[better], self.offset_center[better] = gamma[better], offset[better]
        self.n_steps[better] = 0

    def _primal(self, gamma: FloatArray, offset: FloatArray, products: FloatArray) -> FloatArray:
        return primal_objective(gamma, products, products + offset[:, None], self.u, self.v)

    def respond(self, values: FloatArray) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
        """Return γ(f), and which rows are free: on a margin and not at a bound."""
        middle = self.u - self.v
        width = 1.0 / self.smoothing[:, None]
        soft = self.center - middle - values * width
        soft -= np.clip(soft, -width, width)
        response = np.clip(soft, -self.u, self.v)
        free = (response == soft) & (soft != 0)
        response += middle
        return response, free


def primal_objective(
    gamma: FloatArray, products: FloatArray, values: FloatArray, first: FloatArray, second: FloatArray
) -> FloatArray:
    """½ γᵀKγ + Σ_i u_i·max(0, 1 − f_i) + v_i·max(0, 1 + f_i) of each pair, which needs no condition on γ and b.

    ``products`` are Kγ, ``values`` f, ``first`` and ``second`` the costs u and v, all of shape (n_pairs, n_samples).
    """
    losses = _dot(first, np.maximum(0.0, 1.0 - values)) + _dot(second, np.maximum(0.0, 1.0 + values))
    return np.asarray(0.5 * _dot(gamma, products) + losses)


def solve_machines(
    kernel: Kernel, first: FloatArray, second: FloatArray, start: FloatArray, offset: FloatArray
) -> Solutions:
    """Solve the machines of many pairs.

    Parameters
    ----------
    kernel : Kernel
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
        A pair is not ``solved`` if it has more than `MOST_FREE_ROWS` free rows in any step or needs more than
        `MOST_STEPS` Newton steps. Then the others are where the last step ended.
    """
    gamma = np.clip(start, -second, first)
    mass = np.maximum((first + second).sum(axis=1), np.finfo(np.float64).tiny)
    largest = np.maximum((first + second).max(axis=1), np.finfo(np.float64).tiny)
    scale = max(kernel.scale, np.finfo(np.float64).tiny)
    problems = _Problems(
        place=np.arange(len(first)),
        u=first,
        v=second,
        gamma=gamma,
        offset=offset.astype(np.float64),
        products=kernel.times(gamma),
        center=gamma.copy(),
        offset_center=offset.astype(np.float64),
        smoothing=np.maximum(FIRST_SMOOTHING / largest, LEAST_FIRST_SMOOTHING * scale),
        shrinkage=np.full(len(first), SHRINKAGE),
        offset_smoothing=np.minimum(OFFSET_SMOOTHING * mass, MOST_OFFSET_SMOOTHING / scale),
        mass=mass,
        n_steps=np.zeros(len(first), dtype=np.intp),
    )
    found = Solutions(gamma.copy(), offset.copy(), np.zeros_like(gamma), np.zeros(len(first), dtype=bool))
    response, free = problems.respond(problems.values)
    work, most_work = 0.0, np.inf  # operations of Newton's steps, and after how many there are other ones first
    if gamma.shape[1] <= MOST_SPLIT_ROWS:
        most_work = LONG * _work_of_splitting(*gamma.shape)
    for _ in range(MOST_STEPS):
        small = free.sum(axis=1) <= MOST_FREE_ROWS
        if not small.all():
            _leave(problems.take(~small), kernel, found)
            problems, response, free = problems.take(small), response[small], free[small]
        if not len(problems.place):
            break
        work += float((free.sum(axis=1) ** 3.0).sum()) / 3
        if work > most_work and isinstance(kernel, KernelMatrix):
            most_work = np.inf
            with suppress(LinAlgError):  # K has negative eigenvalues: Newton's method begins where it is
                near = come_near(kernel, problems.u, problems.v, problems.inside(), problems.values)
                problems.begin_where_better(*near, kernel)
            response, free = problems.respond(problems.values)
        response, free, inner_done = _newton_step(kernel, problems, response, free)
        finished, moved = _move_centers(problems, response, inner_done, LEAST_SMOOTHING * scale)
        if finished.any():
            finished[finished] = _record(problems.take(finished), free[finished], kernel, found)
            problems, response, free = problems.take(~finished), response[~finished], free[~finished]
        if moved.any() and len(problems.place):  # with other centers, f requires another γ
            response, free = problems.respond(problems.values)
    _leave(problems, kernel, found)
    return found


def _leave(problems: _Problems, kernel: Kernel, found: Solutions) -> None:
    """Keep where pairs are that are left to LIBSVM."""
    if len(problems.place):
        gamma = problems.inside()
        found.gamma[problems.place], found.offset[problems.place] = gamma, problems.offset
        found.values[problems.place] = kernel.times(gamma) + problems.offset[:, None]


def _work_of_splitting(n_pairs: int, n_samples: int) -> float:
    """Operations of `come_near`, at most: an inverse, and a product with it for all pairs in each step."""
    return n_samples**3.0 + 2.0 * SPLIT_STEPS * n_samples**2 * max(n_pairs, FEWEST_PAIRS)


def _newton_step(
    kernel: Kernel, problems: _Problems, response: FloatArray, free: npt.NDArray[np.bool_]
) -> tuple[FloatArray, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
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
        pull = problems.offset_smoothing[pair]
        offset_change[pair] = (both[:, 0].sum() + total[pair]) / (both[:, 1].sum() + pull)
        free_change[pair, system.rows] = both[:, 0] - offset_change[pair] * both[:, 1]
    product_change += kernel.times(free_change)
    change += free_change
    return _line_search(problems, change, product_change, offset_change, response, free)


def _line_search(
    problems: _Problems,
    change: FloatArray,
    product_change: FloatArray,
    offset_change: FloatArray,
    response: FloatArray,
    free: npt.NDArray[np.bool_],
) -> tuple[FloatArray, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Step length along the change at which the slope of the convex function is small enough; usually 1."""
    values, value_change = problems.values, product_change + offset_change[:, None]
    linear, quadratic = _dot(change, problems.products), _dot(change, product_change)
    linear += problems.offset_smoothing * (problems.offset - problems.offset_center) * offset_change
    quadratic += problems.offset_smoothing * offset_change**2
    first_slope = linear - _dot(response, value_change)
    new_response, new_free = problems.respond(values + value_change)
    slope = linear + quadratic - _dot(new_response, value_change)
    length = np.ones(len(values))
    is_known = np.abs(first_slope) > SMALLEST_SLOPE * np.abs(change).sum(axis=1)
    search = np.flatnonzero(is_known & (slope > SLOPE_REDUCTION * np.abs(first_slope)))
    low, high = np.zeros(len(search)), np.ones(len(search))
    slope_low, slope_high = first_slope[search], slope[search]
    for _ in range(MOST_TRIALS):
        if not len(search):
            break
        rise = slope_high - slope_low  # which rounding may hide
        share = np.clip(np.divide(-slope_low, rise, out=np.ones_like(rise), where=rise > 0), 0.1, 0.9)
        middle = low + (high - low) * share
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
    error = problems.smoothing * np.abs(new_response - problems.gamma).max(axis=1)
    same = (length == 1.0) & (new_free == free).all(axis=1)
    return new_response, new_free, same | (error <= 0.1 * TOLERANCE)


def _move_centers(
    problems: _Problems, response: FloatArray, inner_done: npt.NDArray[np.bool_], least: float
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Begin the next inner problem of the pairs whose inner problem is solved or takes too long.

    Return which pairs seem optimal, and which begin another inner problem.
    """
    moved = np.abs(response - problems.center).max(axis=1)
    apart = np.abs(response - problems.gamma).max(axis=1)
    violation = problems.smoothing * (moved + apart)
    unbalanced = np.abs(problems.gamma.sum(axis=1))
    finished = inner_done & (violation <= TOLERANCE) & (unbalanced <= SUM_TOLERANCE * problems.mass)
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
    np.maximum(problems.smoothing, least, out=problems.smoothing)
    problems.n_steps[begin] = 0
    return np.asarray(finished), np.asarray(begin)


def _record(
    problems: _Problems, free: npt.NDArray[np.bool_], kernel: Kernel, found: Solutions
) -> npt.NDArray[np.bool_]:
    """Keep what is optimal, with γ inside its bounds and products computed anew; return which pairs are."""
    gamma = problems.inside()
    products = kernel.times(gamma)
    balanced = np.abs(gamma.sum(axis=1)) <= SUM_TOLERANCE * problems.mass
    unmoved = np.abs(products - problems.products).max(axis=1) <= TOLERANCE * max(1.0, np.abs(products).max())
    optimal = np.asarray(balanced & unmoved)
    problems, free, gamma, products = problems.take(optimal), free[optimal], gamma[optimal], products[optimal]
    offset = problems.offset.copy()
    for pair in np.flatnonzero(~free.any(axis=1)):
        offset[pair] = _middle_offset(products[pair], gamma[pair], problems.u[pair], problems.v[pair], offset[pair])
    found.gamma[problems.place], found.offset[problems.place] = gamma, offset
    found.values[problems.place] = products + offset[:, None]
    found.solved[problems.place] = True
    return optimal


def _middle_offset(products: FloatArray, gamma: FloatArray, u: FloatArray, v: FloatArray, offset: float) -> float:
    """Without a row on a margin every b of an interval is optimal: take its middle, as LIBSVM does."""
    above = -v < gamma  # these rows demand f ≤ 1, and f ≤ −1 if γ > m
    below = gamma < u  # these demand f ≥ −1, and f ≥ 1 if γ < m
    middle = u - v
    highest = np.min(np.where(gamma > middle, -1.0, 1.0) - products, where=above, initial=np.inf)
    lowest = np.max(np.where(gamma < middle, 1.0, -1.0) - products, where=below, initial=-np.inf)
    return float(0.5 * (highest + lowest)) if np.isfinite(highest - lowest) else float(offset)


def _dot(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("ij,ij->i", left, right))

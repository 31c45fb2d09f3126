"""SA-IIS: the maximum entropy model with soft targets, fitted by improved iterative scaling (Geng 2016, algorithm 1).

Each iteration maximises a lower bound of the gain in T(θ) = Σ_i ω_i [Σ_j d_ij θ_jᵀx_i − ln Σ_j exp(θ_jᵀx_i)] that is
separable over the weights. So T never decreases, and its maximum is that of SA-BFGS.

For feature k and label j the increment δ solves equation 8 of Geng (2016), with rows weighted by ω,

    Σ_i ω_i p_ij x_ik exp(δ sign(x_ik) g_i) = Σ_i ω_i d_ij x_ik,        g_i = Σ_k |x_ik|.

Split by sign this is A(δ) − B(δ) = C, with A = Σ_{x>0} ω p x e^{δg} rising and B = Σ_{x<0} ω p |x| e^{−δg} falling,
so there is at most one root. Newton's method finds it on φ(δ) = ln(A + max(−C, 0)) − ln(B + max(C, 0)), whose slope
lies between the smallest g and twice the largest: φ is nearly a straight line, and no exponential overflows.

A and B are computed in the cheapest of four ways:

- one value of g: closed form;
- few values of g: sums over the rows of each value;
- any g: e^{δg} is interpolated at Chebyshev nodes γ_r of [min g, max g], so that A(δ) = Σ_r m_r e^{δγ_r} with m_r =
  Σ_i ω_i p_ij x_ik ℓ_r(g_i): a few matrix products, after which Newton's method does not need the rows. With half width
  h of the interval and κ = |δ|h, R nodes leave a relative error of at most κ^R e^{2κ} / (2^{R−1} R!); R is the least
  that keeps it below 1e-14;
- weights with κ > 3, where nodes lose digits: sums over all rows.

The rows are accessed in passes only. A pass at weights θ computes the loss and the moments that the equations of the
next increments probably need (`Nodes`); further passes are made only if more nodes, or sums over all rows, are needed.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse, special
from sklearn.exceptions import ConvergenceWarning

from skldl.base import BaseLDL
from skldl.chunks import Chunk, Rows
from skldl.chunks._arrays import CheckedRows
from skldl.chunks._rows import Sums
from skldl.exceptions import Message, Parameter, WordedError
from skldl.maxent._blocks import SAFE_SCORES, blocks, row_products, weighted_softmax
from skldl.maxent._objective import probabilities
from skldl.maxent._search import INIT, Init, starting_weights
from skldl.utils.arrays import (
    as_double,
    as_type_of,
    at_least,
    is_device_array,
    least_number,
    namespace,
    take_rows,
    to_numpy,
    to_numpy_together,
)
from skldl.utils.parameters import BOOLEAN, COUNT, NOT_NEGATIVE
from skldl.utils.typing import BoolArray, FloatArray
from skldl.utils.warn import warn

CONSTANT = 1e-13
"""Relative range below which g is one value up to rounding."""
FEW_VALUES = 8
"""Values of g up to which each has its own sums: about as many as there would be nodes otherwise."""
MAX_EXPONENT = 3.0
"""κ up to which nodes are used: the moments have both signs, and e^{2κ} of their digits are lost, fewer than three."""
NODE_ERROR = 1e-14
"""Relative error of the interpolation at nodes, some rounding errors of double precision."""
NEWTON_STEPS = 60
"""Maximum number; two to five are usual, and bisection halves the interval where Newton's method fails."""
NEWTON_ERROR = 1e-14
"""Newton's method ends at this value of φ, or when a step changes δ by this fraction."""
MAX_ERROR = 2e-13
"""Largest |φ| at a root found at nodes, twenty times the error of Newton's method; beyond it all rows are summed."""
MIN_EXTRAPOLATION = 1.5
"""An extrapolation by a factor of 1 is the third state itself; one by a factor near it is not worth a pass."""
CAP = 10.0
"""An increment without a root is cut at CAP / max g, so that it multiplies a probability by e^10 at most."""
FAR_CELLS = 1 << 20
"""Numbers in a temporary array of the sums over all rows in memory: 8 MiB."""
MOMENT_CELLS = 1 << 18
"""Numbers of a block of rows in memory with its masses at all nodes, which should stay in the cache."""
LOG_OF_NOTHING = -1e30
"""Stands for ln 0; finite, so that differences of two of them are numbers."""
TINY = float(np.finfo(np.float64).tiny)

Pair = tuple[FloatArray, FloatArray]
"""One array for the positive part of X, and one for the negative part."""
MAX_START_LOSS = 1e9
"""The rounding error of a larger loss at the start exceeds 1e-7, the default of ``tol``."""


class SAIIS(BaseLDL):
    """Maximum entropy model with soft targets, fitted by improved iterative scaling (SA-IIS of Geng, 2016).

    Each iteration computes the increments of all weights, each a root of the paper's equation 8 up to a relative
    residual of 1e-12, and the mean of T never decreases. Many iterations are needed to reach the optimum, and the
    result depends on when they stop, so ``max_iter`` acts as a regulariser. `skldl.SABFGS` reaches the same optimum in
    a few steps.

    Parameters
    ----------
    max_iter : int, default=500
        Maximum number of iterations.
    tol : float, default=1e-7
        The iterations stop when the mean of T grows by less than this (the paper's ε, divided by the number of rows).
    accelerate : bool, default=False
        Whether to extrapolate every second step (SQUAREM) if that increases T. The optimum stays the same and is
        reached in fewer iterations.
    init : {"zeros", "eye"} or array-like of shape (n_features, n_labels), default="zeros"
        The weights θ⁰ at which the iterations begin. "eye" is ``numpy.eye(n_features, n_labels)``, the start of the
        code published with the paper: from there 150 iterations on folds in file order give the published means of
        all ten Yeast sets.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        Weights, one row for each label; each column sums to zero, since a common shift changes nothing.
    intercept_ : ndarray of shape (n_labels,)
        Zeros: the model has no intercept; for code that uses the coefficients of any maximum entropy model.
    n_iter_ : int
        Number of iterations.
    loss_curve_ : list of float
        Minus the mean of T, which is the mean cross-entropy, at the start and after each iteration.

    See Also
    --------
    skldl.SABFGS : The same model, fitted by a quasi-Newton method.

    Notes
    -----
    Features may be negative. A row of zeros does not enter the equations, and the weight of a feature that is always
    zero stays zero. If a feature of one sign has target zero for a label, the optimal weight is infinite: one iteration
    moves it by at most 10 / max g. Single precision is computed in double.

    Rows in chunks take about one pass for each iteration, and more if increments are so large that their equations need
    sums over all rows.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.
    .. [2] S. Della Pietra, V. Della Pietra and J. Lafferty, "Inducing features of random fields", IEEE Transactions on
       Pattern Analysis and Machine Intelligence 19(4), 1997.
    .. [3] R. Varadhan and C. Roland, "Simple and globally convergent methods for accelerating the convergence of any EM
       algorithm", Scandinavian Journal of Statistics 35(2), 2008.

    Examples
    --------
    >>> from skldl import SAIIS
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> D = [[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]]
    >>> SAIIS().fit(X, D).predict([[1.5, 1.0]]).round(2)
    array([[0.65, 0.35]])
    """

    _array_api = True
    _linear_scores = True
    _onnx = "linear"
    _constraints: ClassVar = {"max_iter": COUNT, "tol": NOT_NEGATIVE, "accelerate": BOOLEAN, "init": INIT}

    def __init__(
        self, max_iter: int = 500, *, tol: float = 1e-7, accelerate: bool = False, init: Init = "zeros"
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.init = init

    def _fit_rows(self, rows: Rows) -> None:
        start = self._start(rows.n_features, self.n_labels_)
        run = run_iterations(Scaling(rows), start, self.max_iter, self.tol, self.accelerate)
        if not run.converged:
            more = Message("Raise max_iter.")
            if not self.accelerate:
                more = Message("Raise max_iter, set ", Parameter("accelerate", True), ", or use SABFGS.")
            gain = f", where the mean of T still grew by {run.loss_curve[-2] - run.loss_curve[-1]:.1g} ("
            parts = (Parameter("max_iter", self.max_iter), gain, Parameter("tol", self.tol), "). ", more)
            warn(Message("SAIIS stopped at ", *parts), ConvergenceWarning)
        self.coef_ = _centred(run.state.theta)
        self.intercept_ = np.zeros(self.n_labels_)
        self.n_iter_ = len(run.loss_curve) - 1
        self.loss_curve_ = run.loss_curve

    def _start(self, n_features: int, n_labels: int) -> FloatArray:
        theta = starting_weights(self.init, n_features, n_labels)
        return np.zeros((n_features, n_labels)) if theta is None else theta

    def _predict(self, X: Any) -> FloatArray:
        return probabilities(X, self.coef_.T)

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """All ``max_iter`` from one run."""
        if param != "max_iter":
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        scaling, start = Scaling(CheckedRows(X, D, sample_weight)), self._start(X.shape[1], D.shape[1])
        run = run_iterations(scaling, start, max(values), self.tol, self.accelerate, frozenset(values))
        for value in values:
            yield probabilities(X_new, _centred(run.kept.get(value, run.state.theta)).T)


def _centred(theta: FloatArray) -> FloatArray:
    """Coefficients (n_labels, n_features) without the mean over labels, which changes no probability."""
    return np.ascontiguousarray((theta - theta.mean(axis=1, keepdims=True)).T)


@dataclass(frozen=True)
class Nodes:
    """The points at which a pass computes moments.

    Attributes
    ----------
    kind : {"none", "sums", "values", "nodes"}
        No moments; m = Σ_i ω_i p_ij x_ik alone; for each value of g; or at Chebyshev nodes in the range of g.
    has_negative : bool
        Whether any feature is negative.
    values : ndarray or None
        The values of g, for "values".
    middle, half_width : float
        The range of g, for "nodes".
    count : int
        Number of nodes.
    """

    kind: str
    has_negative: bool = False
    values: FloatArray | None = None
    middle: float = 0.0
    half_width: float = 1.0
    count: int = 1

    def interpolation_weights(self, g: Any) -> Any:
        """Weight of each row of X (columns) in the moment of each value or node (rows); they sum to one over nodes.

        For nodes these are the Lagrange polynomials at g, as sums of Chebyshev polynomials.
        """
        if self.values is not None:  # the nearest value, since equal sums can differ in the last digit
            middles = 0.5 * (self.values[1:] + self.values[:-1])
            bounds = as_type_of(np.r_[-np.inf, middles, np.inf], g)[:, None]
            return as_double((g > bounds[:-1, ...]) & (g <= bounds[1:, ...]))
        xp = namespace(g)
        _, at_nodes = chebyshev_nodes(self.middle, self.half_width, self.count)
        t = xp.clip((g - self.middle) / self.half_width, -1.0, 1.0)
        polynomials = [xp.ones_like(t), t]  # by their recurrence, which costs a tenth of the cosines
        while len(polynomials) < self.count:
            polynomials.append(2.0 * t * polynomials[-1] - polynomials[-2])
        return as_type_of(at_nodes.T, g) @ xp.stack(polynomials)


@dataclass(frozen=True)
class State:
    """Weights (n_features, n_labels), the loss −T, and the moments at some nodes.

    The nodes are sufficient for increments up to κ = ``exponent``.
    """

    theta: FloatArray
    loss: float
    nodes: Nodes
    moments: Pair
    exponent: float


class Scaling:
    """Improved iterative scaling on one training set.

    Parameters
    ----------
    rows : Rows
        The rows; rows of zeros do not enter the equations.

    Attributes
    ----------
    target : ndarray of shape (n_features, n_labels)
        C = Xᵀ diag(ω) D.
    is_empty : bool
        Whether all features of all rows are zero.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        total, target, values, negative = rows.sum(_scan, merge=_merge_scans)
        self.total, self.target = float(total), target / total
        self.values, self.has_negative = values, bool(negative)
        self.is_empty = not len(values)
        low, high = (0.0, 0.0) if self.is_empty else (float(values[0]), float(values[-1]))
        self.smallest, self.largest = low, high
        self.middle, self.half_width = 0.5 * (low + high), 0.5 * (high - low)
        self.is_constant = high - low <= CONSTANT * high
        self.up, self.down = np.maximum(self.target, 0.0), np.maximum(-self.target, 0.0)
        self.log_up, self.log_down = log_of(self.up), log_of(self.down)

    def state(self, theta: FloatArray, exponent: float = 0.0) -> State:
        """Loss and moments at θ, in one pass."""
        nodes = self._nodes(exponent)
        log_partition, moments = self._moments(theta, nodes)
        return State(theta, log_partition - float(np.vdot(self.target, theta)), nodes, moments, exponent)

    def improve(self, state: State) -> State:
        """One iteration of algorithm 1; the next pass uses as many nodes as these increments needed."""
        delta, exponent = self.increments(state)
        return self.state(state.theta + delta, exponent)

    def extrapolate(self, first: State, second: State, third: State) -> State:
        """SQUAREM: extrapolate the last two steps if that lowers the loss; otherwise return the third state."""
        step = second.theta - first.theta
        bend = third.theta - second.theta - step
        length = float(np.linalg.norm(bend))
        factor = float(np.linalg.norm(step)) / length if length > 0 else 1.0
        while factor > MIN_EXTRAPOLATION:
            # Varadhan and Roland (2008) with step length −factor: 1 leads to the third state
            candidate = self.state(first.theta + 2.0 * factor * step + factor**2 * bend, third.exponent)
            if candidate.loss < third.loss:
                return candidate
            factor = 0.5 * (factor + 1.0)
        return third

    def increments(self, state: State) -> tuple[FloatArray, float]:
        """The increments δ (n_features, n_labels) at a state, and the κ of the nodes that they needed.

        If the equation has no root, because the target of a feature with one sign is zero, the optimal weight is
        infinite: the increment is CAP / max g in that direction, which still increases T. Features that are always zero
        have increment zero.
        """
        if self.is_constant:
            A, B = state.moments
            return self._without_root(A, B, _closed_form(A, B, self.up, self.down, self.middle)), 0.0
        if len(self.values) <= FEW_VALUES:
            A, B = (m.sum(axis=0) for m in state.moments)
            at = np.nonzero(self._has_root(A, B))
            log_masses = [log_of(m[:, at[0], at[1]]) for m in state.moments]

            def evaluate(delta: FloatArray) -> tuple[FloatArray, FloatArray]:
                sides = [
                    exponential_sums(log_mass, self.values, sign * delta)
                    for log_mass, sign in zip(log_masses, (1.0, -1.0), strict=True)
                ]
                return _balance_of_sums(sides, self.log_up[at], self.log_down[at])

            delta = np.zeros_like(A)
            delta[at] = newton(evaluate, delta[at], np.inf)[0]
            return self._without_root(A, B, delta), 0.0
        return self._increments_at_nodes(state)

    def _increments_at_nodes(self, state: State) -> tuple[FloatArray, float]:
        limit = MAX_EXPONENT / self.half_width
        while True:
            nodes = state.nodes
            A, B = (m.sum(axis=0) for m in state.moments)  # Σ_r ℓ_r = 1
            has_root = self._has_root(A, B)
            delta, error = self._newton_at_nodes(state, limit, has_root)
            # interpolation is accurate below the limit only, and at the limit Newton's method was stopped
            near = (error <= MAX_ERROR) & (np.abs(delta) < 0.99 * limit)
            exponent = float(np.abs(delta[near & has_root]).max(initial=0.0)) * self.half_width
            if nodes.count >= node_count(exponent):
                break
            # the exponent was found with too few nodes: a tenth more, so that the next count is sufficient
            more = self._nodes(min(1.1 * exponent, MAX_EXPONENT))
            state = replace(state, nodes=more, moments=self._moments(state.theta, more)[1])
        far = np.argwhere(~near & has_root)
        if len(far):
            at = far[:, 0], far[:, 1]

            def evaluate(delta: FloatArray) -> tuple[FloatArray, FloatArray]:
                top, total, weighted = self.rows.sum(_far_sums, state.theta, far, delta, merge=_merge_far, labels=False)
                sides = [(top[k] - np.log(self.total), total[k], weighted[k]) for k in range(2)]
                return _balance_of_sums(sides, self.log_up[at], self.log_down[at])

            delta[at] = newton(evaluate, delta[at], np.inf)[0]
        return self._without_root(A, B, delta), exponent

    def _newton_at_nodes(self, state: State, limit: float, has_root: BoolArray) -> Pair:
        """Roots inside ±limit, and |φ| there; moments have both signs, but up to the limit few digits cancel."""
        nodes, _ = chebyshev_nodes(self.middle, self.half_width, state.nodes.count)
        offsets = nodes - self.middle

        def one_side(m: FloatArray, delta: FloatArray) -> Pair:
            terms = np.exp(np.multiply.outer(offsets, delta))
            terms *= m
            total, derivative = terms.sum(axis=0), np.tensordot(nodes, terms, axes=1)
            slope = np.divide(derivative, total, out=np.full_like(total, self.largest), where=total > TINY)
            return log_of(total) + self.middle * delta, np.clip(slope, self.smallest, self.largest)

        def evaluate(delta: FloatArray) -> Pair:
            value, slope = one_side(state.moments[0], delta)
            if not self.has_negative:
                value = value - self.log_up
            else:
                other = one_side(state.moments[1], -delta)
                value, slope = balance(value, slope, *other, self.log_up, self.log_down)
            return np.where(has_root, value, 0.0), slope

        return newton(evaluate, np.zeros_like(self.up), limit)

    def _nodes(self, exponent: float) -> Nodes:
        """The nodes for increments up to κ = exponent."""
        if self.is_empty:
            return Nodes("none")
        if self.is_constant:
            return Nodes("sums", self.has_negative)
        if len(self.values) <= FEW_VALUES:
            return Nodes("values", self.has_negative, self.values, count=len(self.values))
        return Nodes("nodes", self.has_negative, None, self.middle, self.half_width, node_count(exponent))

    def _moments(self, theta: FloatArray, nodes: Nodes) -> tuple[float, Pair]:
        """Log-partition at θ, and the moments of the positive and of the negative part of X: one pass."""
        is_safe = self.largest * float(np.abs(theta).max()) < SAFE_SCORES[8]  # a bound for all scores
        log_partition, A, B = self.rows.sum(_pass, theta, nodes, is_safe, labels=False)
        return float(log_partition) / self.total, (A / self.total, B / self.total)

    def _has_root(self, A: FloatArray, B: FloatArray) -> BoolArray:
        return ((A > 0) | (self.down > 0)) & ((B > 0) | (self.up > 0))

    def _without_root(self, A: FloatArray, B: FloatArray, delta: FloatArray) -> FloatArray:
        """Replace the increments of those weights whose equation has no root."""
        step = CAP / self.largest
        return np.where(self._has_root(A, B), delta, step * ((B > 0).astype(np.float64) - (A > 0)))


@dataclass
class Run:
    """The last state, the loss at the start and after each iteration, and the weights that were kept."""

    state: State
    loss_curve: list[float]
    converged: bool
    kept: dict[int, FloatArray]


def run_iterations(
    scaling: Scaling, theta: FloatArray, max_iter: int, tol: float, accelerate: bool, keep: Collection[int] = ()
) -> Run:
    """Iterate until the gain of one iteration falls below ``tol``; keep the weights after some iterations."""
    state = scaling.state(theta)
    if not abs(state.loss) <= MAX_START_LOSS:
        raise WordedError(
            f"init gives a loss of {state.loss:.3g}, in which rounding hides what an iteration gains. Begin at smaller "
            "weights, or multiply X by a power of ten, so that its features are of the order of 1."
        )
    curve = [state.loss]
    kept = {}
    converged = scaling.is_empty
    history = [state]
    while not converged and len(curve) <= max_iter:
        before, state = state, scaling.improve(state)
        converged = before.loss - state.loss < tol
        if state.loss > before.loss:  # only rounding can raise the loss: keep the better state
            state = before
        if accelerate:
            history.append(state)
            if len(history) == 3 and not converged:
                state = scaling.extrapolate(*history)
                history = [state]
        curve.append(state.loss)
        if len(curve) - 1 in keep:
            kept[len(curve) - 1] = state.theta
    return Run(state, curve, converged, kept)


def _scan(chunk: Chunk) -> Sums:
    """Weight, Xᵀ diag(w) D, the first values of g and its ends, and whether any feature is negative."""
    X, weight = chunk.X, chunk.weight
    negative, total = least_number(X) < 0, 0.0
    target: Any = 0.0
    values: FloatArray = np.zeros(0)
    for some in _pieces(X, X.shape[1] + chunk.D.shape[1]):
        rows, own = _double(X, some), None if weight is None else weight[some]
        total += float(rows.shape[0] if own is None else namespace(own).sum(own))
        target = target + row_products(rows, as_double(chunk.D[some, ...]), own)
        g = _lengths(*_parts(rows, negative))
        found = np.unique(g) if isinstance(g, np.ndarray) else to_numpy(namespace(g).unique_values(g))
        values = few_values(np.concatenate([values, found[found > 0]]))
    return total, target, values, negative


def few_values(values: FloatArray) -> FloatArray:
    """At most FEW_VALUES + 1 different values, with the minimum and the maximum."""
    values = np.unique(values)
    return values if len(values) <= FEW_VALUES else np.concatenate([values[:FEW_VALUES], values[-1:]])


def _merge_scans(total: Sums, part: Sums) -> Sums:
    values = few_values(np.concatenate([total[2], part[2]]))
    return total[0] + part[0], total[1] + part[1], values, total[3] or part[3]


def _pass(chunk: Chunk, theta: FloatArray, nodes: Nodes, is_safe: bool) -> Sums:
    """Σ_i w_i ln Σ_j exp s_ij of one chunk, and its moments: (n_features, n_labels), for values and nodes one each."""
    X, (n_features, n_labels), count = chunk.X, theta.shape, nodes.count
    log_partition: Any = 0.0
    sides: list[Any] = [0.0, 0.0]
    for some in _pieces(X, (count + 1) * n_labels + 2 * n_features * nodes.has_negative):
        rows = _double(X, some)
        masses, part = _masses(rows, theta, None if chunk.weight is None else chunk.weight[some], is_safe)
        log_partition = log_partition + part
        if nodes.kind == "none":
            continue
        parts = _parts(rows, nodes.has_negative)
        at_nodes = None if nodes.kind == "sums" else nodes.interpolation_weights(_lengths(*parts))
        for side, of_sign in enumerate(parts):
            if of_sign is not None:
                sides[side] = sides[side] + _moments_of(of_sign, masses, at_nodes)
    log_partition, *sides = to_numpy_together((log_partition, *sides))
    shape = count, n_labels, n_features
    tables = [np.zeros(shape) if np.ndim(side) == 0 else side.reshape(shape) for side in sides]
    tables = [np.ascontiguousarray(table.swapaxes(1, 2)) for table in tables]
    if nodes.kind in ("none", "sums"):
        tables = [table[0] for table in tables]
    return float(log_partition), *tables


def _moments_of(part: Any, masses: Any, at_nodes: Any) -> Any:
    """Σ_i ℓ_r(g_i) w_i p_ij x_ik of some rows, of which ``part`` has the features of one sign.

    Dense rows take all nodes in one product; sparse ones a product for each, since a table of all masses would be
    larger than they are.
    """
    if sparse.issparse(part):
        columns = [masses] if at_nodes is None else [masses * of_node for of_node in at_nodes]
        return np.stack([np.asarray(part.T @ column.T).T for column in columns])
    if at_nodes is not None:
        masses = namespace(masses).reshape(at_nodes[:, None, :] * masses, (-1, part.shape[0]))
    return masses @ part if is_device_array(part) else (part.T @ masses.T).T  # this order is up to twice as fast


def _far_sums(chunk: Chunk, theta: FloatArray, far: npt.NDArray[np.intp], delta: FloatArray) -> Sums:
    """`exponential_sums` over the rows of one chunk for some features and labels, for both signs of the features."""
    sums: Sums | None = None
    for some in blocks(chunk.X, theta.shape[1] + 4 * len(far), FAR_CELLS):
        rows = chunk.X[some].astype(np.float64) if sparse.issparse(chunk.X) else _double(chunk.X, some)
        g = _lengths(*_parts(rows, has_negative=True))
        masses, _ = _masses(rows, theta, None if chunk.weight is None else chunk.weight[some], False)
        if sparse.issparse(rows):
            columns = rows[:, far[:, 0]].toarray()
        else:
            columns = take_rows(rows.T, far[:, 0]).T
        masses = take_rows(masses, far[:, 1]).T * columns
        parts = [
            exponential_sums(log_of(at_least(sign * masses, 0.0)), g, as_type_of(sign * delta, g))
            for sign in (1.0, -1.0)
        ]
        found = tuple(np.stack([to_numpy(part[k]) for part in parts]) for k in range(3))
        sums = found if sums is None else _merge_far(sums, found)
    assert sums is not None  # a chunk has rows
    return sums


def _merge_far(total: Sums, part: Sums) -> Sums:
    """Add two sums of exponentials, each divided by the exponential of its largest exponent."""
    top = np.maximum(total[0], part[0])
    own, other = (np.exp(np.maximum(one[0] - top, LOG_OF_NOTHING)) for one in (total, part))
    return top, total[1] * own + part[1] * other, total[2] * own + part[2] * other


def _pieces(X: Any, cells_per_row: int) -> Iterable[slice]:
    """Blocks of dense rows; sparse rows are one block, because the sums of a block are dense tables of all columns."""
    return [slice(None)] if sparse.issparse(X) else blocks(X, cells_per_row, MOMENT_CELLS)


def _double(X: Any, some: slice) -> Any:
    """Some rows in double precision."""
    return X.astype(np.float64, copy=False) if sparse.issparse(X) else as_double(X[some, ...])


def _masses(rows: Any, theta: FloatArray, weight: Any, is_safe: bool) -> tuple[Any, Any]:
    """w_i p_ij (labels × rows), and Σ_i w_i ln Σ_j exp s_ij; ``is_safe``: no exponential can overflow."""
    if sparse.issparse(rows):
        scores = np.ascontiguousarray(np.asarray(rows @ theta).T)
    else:
        scores = as_type_of(np.ascontiguousarray(theta.T), rows) @ rows.T
    return scores, weighted_softmax(scores, weight, safe=is_safe)


def _parts(rows: Any, has_negative: bool) -> tuple[Any, Any]:
    """The positive part of rows and, if any feature is negative, the negative part, both at least zero."""
    if not has_negative:
        return rows, None
    positive = rows.maximum(0) if sparse.issparse(rows) else at_least(rows, 0.0)
    return positive, positive - rows


def _lengths(positive: Any, negative: Any) -> Any:
    """g_i = Σ_k |x_ik| from the two parts."""
    lengths = [
        np.asarray(part.sum(axis=1)).ravel() if sparse.issparse(part) else namespace(part).sum(part, axis=1)
        for part in (positive, negative)
        if part is not None
    ]
    return lengths[0] if len(lengths) == 1 else lengths[0] + lengths[1]


def _balance_of_sums(sides: Sequence[Sums], log_up: FloatArray, log_down: FloatArray) -> Pair:
    """`balance` from the `exponential_sums` of both parts."""
    positive, negative = ((np.log(total) + top, weighted / total) for top, total, weighted in sides)
    return balance(*positive, *negative, log_up, log_down)


def node_count(exponent: float) -> int:
    """Least number of Chebyshev nodes that interpolates exp(κt) on [−1, 1] to a relative error below 1e-14."""
    if exponent == 0:
        return 2
    counts = np.arange(2, 40)
    log_error = counts * np.log(exponent) + 2 * exponent - (counts - 1) * np.log(2) - special.gammaln(counts + 1)
    return int(counts[np.argmax(log_error <= np.log(NODE_ERROR))])


def chebyshev_nodes(middle: float, half_width: float, count: int) -> tuple[FloatArray, FloatArray]:
    """Chebyshev nodes, and the matrix that turns Chebyshev polynomials into Lagrange polynomials of the nodes."""
    angles = (np.arange(count) + 0.5) * np.pi / count
    at_nodes = np.cos(np.multiply.outer(np.arange(count), angles)) * (2.0 / count)
    at_nodes[0] *= 0.5  # the constant polynomial has twice the norm of the others at the nodes
    return middle + half_width * np.cos(angles), at_nodes


def balance(
    log_A: FloatArray,
    slope_A: FloatArray,
    log_B: FloatArray,
    slope_B: FloatArray,
    log_up: FloatArray,
    log_down: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """φ and its slope from the logarithms of A, B, max(C, 0) and max(−C, 0), and the slopes of the first two."""
    left, right = np.logaddexp(log_A, log_down), np.logaddexp(log_B, log_up)
    # fractions of A and B in the two sums; without the minimum rounding could make one larger than 1
    slope = slope_A * np.exp(np.minimum(log_A - left, 0)) + slope_B * np.exp(np.minimum(log_B - right, 0))
    return left - right, np.maximum(slope, TINY)


def exponential_sums(
    log_masses: FloatArray, g: FloatArray, delta: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Largest exponent of m e^{δg}, and the sums of m e^{δg} and g m e^{δg} over rows divided by its exponential."""
    xp = namespace(g)
    exponents = log_masses + g[:, None] * delta
    top = xp.max(exponents, axis=0)
    terms = xp.exp(exponents - top)  # at most 1: no overflow
    return top, xp.sum(terms, axis=0), g @ terms


def log_of(values: FloatArray) -> FloatArray:
    """Logarithms, with LOG_OF_NOTHING for zero."""
    if is_device_array(values):
        xp = namespace(values)
        return xp.where(values > 0, xp.log(xp.where(values > 0, values, 1.0)), LOG_OF_NOTHING)
    return np.asarray(np.log(values, out=np.full_like(values, LOG_OF_NOTHING), where=values > 0))


def _closed_form(A: FloatArray, B: FloatArray, up: FloatArray, down: FloatArray, g: float) -> FloatArray:
    """With one value of g, e^{δg} is the positive root of A z² − C z − B = 0."""
    root = np.sqrt((up + down) ** 2 + 4.0 * A * B)
    # of the two forms of the root the one that adds numbers of one sign, so that no digits cancel
    above, below = np.where(up >= down, up + root, 2.0 * B), np.where(up >= down, 2.0 * A, down + root)
    return np.log(np.maximum(above, TINY) / np.maximum(below, TINY)) / g


def newton(
    evaluate: Callable[[FloatArray], tuple[FloatArray, FloatArray]], start: FloatArray, limit: float
) -> tuple[FloatArray, FloatArray]:
    """Roots of increasing functions inside ±limit, and the absolute values of the functions there.

    Newton's method, with bisection if it would leave the interval in which the root is known to lie.
    """
    delta = start
    low, high = np.full_like(start, -limit), np.full_like(start, limit)
    best, error = delta, np.full_like(start, np.inf)
    for _ in range(NEWTON_STEPS):
        value, slope = evaluate(delta)
        better = np.abs(value) < error
        best, error = np.where(better, delta, best), np.where(better, np.abs(value), error)
        low, high = np.where(value < 0, delta, low), np.where(value > 0, delta, high)
        following = delta - value / slope
        if np.all((error <= NEWTON_ERROR) | (np.abs(following - delta) <= NEWTON_ERROR * np.abs(delta))):
            break
        outside = ((following < low) | (following > high)) & np.isfinite(low) & np.isfinite(high)
        following[outside] = 0.5 * (low[outside] + high[outside])
        delta = np.clip(following, -limit, limit)
    return best, error

"""Choice of kernel, scaling, width, penalty and mean share by leaving rows out, and the fit on all rows.

There are two targets. "degrees" regresses on D itself and projects the prediction on the simplex; "clr" regresses on
the centred log-ratio ln d_j − mean_k ln d_k, with small degrees raised to a minimum, and applies the softmax.

Candidates are compared in two rounds on few rows, and the best are fitted on all rows by one of four solvers. One
decomposition serves every penalty, every mean share and both targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from skldl.kernel import _large
from skldl.kernel._kernels import (
    FAMILIES,
    KernelFunction,
    distances,
    from_distances,
    kernel_values,
    row_blocks,
    typical_distance,
)
from skldl.kernel._leave_out import DeviceInverse, ExactInverse, Weighting, decompose, intercept, kernel_means
from skldl.utils.arrays import (
    as_double,
    as_type_of,
    at_least,
    count_true,
    is_device_array,
    namespace,
    rows_on_host,
    space,
    take_rows,
)
from skldl.utils.arrays import row_blocks as device_blocks
from skldl.utils.mean_mixture import (
    MEAN_FRACTIONS,
    SCREENING_FRACTIONS,
    first_best,
    means_without,
    mix,
    mixture_divergences,
)
from skldl.utils.scaling import SCALINGS, Scaling, is_non_negative, two_valued_columns
from skldl.utils.simplex import project, softmax
from skldl.utils.typing import FloatArray, IntArray

TARGETS = ("degrees", "clr")
MAX_OPERATIONS = 5e10
"""Operations for the L1 distances of all rows, some 20 s, beyond which they are not tried."""
SPARSE_DENSITY = 0.05
"""Features with a smaller fraction of non-zeros are stored as a sparse matrix: products are faster, χ² is not tried."""
ALPHAS = tuple(float(alpha) for alpha in np.logspace(-11, 0, 23))
EIGEN_ROWS = 3500
"""Up to this many rows all penalties are compared on all rows by eigenvectors; beyond, by Nyström features."""
CG_ROWS = 30_000
"""Beyond this many rows, a step of conjugate gradients takes minutes: the Nyström features are the model."""
FIRST_ROUND_ROWS = 300
FIRST_ROUND_KEEPS = 5
MAX_WIDTH = 8.0
"""Wider exponentials are straight lines at all distances, which only alpha changes."""
WIDTH_STEPS = ((2.0, 2), (2.0**0.5, 1))
"""Factors by which widths are refined, and for how many kernels of each target."""


@dataclass(frozen=True)
class Candidate:
    """A kernel on scaled features; the width is in units of the median distance."""

    kernel: str | KernelFunction
    scaling: str
    width: float

    @property
    def metric(self) -> str:
        """Distance that a kernel with a name is computed from."""
        return FAMILIES[str(self.kernel)].distance

    @property
    def has_width(self) -> bool:
        """Whether the kernel has a width to choose."""
        return not callable(self.kernel) and self.kernel != "linear"


@dataclass(frozen=True)
class Options:
    """Checked hyper-parameters; of several candidates, targets, alphas or mean shares the best are chosen."""

    candidates: Sequence[Candidate]
    targets: Sequence[str]
    alphas: Sequence[float]
    shares: Sequence[float]
    refine_width: bool
    n_screen: int
    n_landmarks: int
    solver: str
    tol: float
    max_iter: int
    random_state: np.random.RandomState


@dataclass(frozen=True)
class Data:
    """Training rows, checked, with weights and groups."""

    X: Any
    D: FloatArray
    weight: FloatArray | None
    codes: IntArray | None

    def take(self, rows: IntArray) -> "Data":
        """Return some of the rows, in NumPy: few rows are compared there whatever device all rows are on."""
        X, D = take_rows(self.X, rows), take_rows(self.D, rows)
        weight = None if self.weight is None else take_rows(self.weight, rows)
        codes = None if self.codes is None else np.unique(self.codes[rows], return_inverse=True)[1]
        if is_device_array(X):
            X, D, weight = rows_on_host(as_double(X), D, weight)
        return Data(X, D, weight, codes)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.D.shape[0])

    @property
    def total_weight(self) -> float:
        """Sum of the weights, which turns alpha into a penalty."""
        return float(self.n_rows) if self.weight is None else float(namespace(self.weight).sum(self.weight))

    @property
    def means(self) -> FloatArray:
        """Mean distribution of the rows that remain when each row, or its group, is left out."""
        return means_without(self.D, self.weight, self.codes)


@dataclass(frozen=True)
class Choice:
    """The best settings for one target with one candidate on ``n_rows`` rows, and the divergence that they reach."""

    candidate: Candidate
    target: str
    n_rows: int
    alpha: float
    share: float
    divergence: float


@dataclass(frozen=True)
class Solution:
    """A fitted model: f(x) = intercept + Σ_j k(x, x_j) dual_j over the rows in ``support`` (None: all rows)."""

    choice: Choice
    length_scale: float
    dual: FloatArray
    intercept: FloatArray
    support: IntArray | None
    left_out: FloatArray
    n_iter: int


def fit_targets(data: Data, options: Options) -> tuple[dict[str, Solution], list[Choice]]:
    """Choose and fit for each target; return the models and everything that was tried."""
    rows = _screening_rows(data, options)
    part = _ScreeningRows(data, rows)
    finalists = list(options.candidates)
    tried: list[Choice] = []
    if len(finalists) > 1:
        shares = SCREENING_FRACTIONS if tuple(options.shares) == MEAN_FRACTIONS else options.shares
        screening = replace(options, alphas=tuple(options.alphas)[::2], shares=shares)
        if len(rows) > 2 * FIRST_ROUND_ROWS and len(finalists) > FIRST_ROUND_KEEPS:
            tried += part.compare(finalists, screening, first_round=True)
            finalists = _best(tried, FIRST_ROUND_KEEPS)
        found = part.compare(finalists, screening)
        if options.refine_width:
            found += _refine(part, found, screening)
        # only few are decomposed on all rows where that takes seconds
        finalists = _best(found, 3 if data.n_rows <= 1000 else 1)
        tried += found
    solutions: dict[str, Solution] = {}
    for candidate in finalists:
        scaled = part.scalings[candidate.scaling].apply(data.X)
        for solution in _SOLVERS[options.solver](data, scaled, candidate, part.length_scale(candidate), options):
            choice = solution.choice
            tried.append(choice)
            known = solutions.get(choice.target)
            if known is None or choice.divergence < known.choice.divergence:
                solutions[choice.target] = solution
    return solutions, tried


def candidates_for(X: Any, kernel: str | KernelFunction, scaling: str, width: float | None) -> list[Candidate]:
    """List the candidates that suit the data; settings that are given are fixed."""
    non_negative = is_non_negative(X)
    if scaling != "auto":
        scalings: tuple[str, ...] = (scaling,)
    elif callable(kernel):
        scalings = ("raw",)
    else:
        scalings = SCALINGS if non_negative else SCALINGS[:2]
    if kernel == "auto":
        kernels: tuple[str | KernelFunction, ...] = _families_for(X, non_negative)
    else:
        kernels = (kernel,)
    found = []
    for name in kernels:
        widths = (1.0,) if callable(name) else FAMILIES[name].widths
        for scale in scalings:
            if name == "chi2" and scaling == "auto" and scale != "raw":
                continue  # χ² divides each feature by its own size already
            found += [Candidate(name, scale, w) for w in (widths if width is None or name == "linear" else (width,))]
    return found


def density(X: Any) -> float:
    """Fraction of features that are not zero."""
    return _n_non_zero(X) / (X.shape[0] * X.shape[1])


def _n_non_zero(X: Any) -> int:
    return int(X.count_nonzero()) if sparse.issparse(X) else count_true(X != 0)


def _families_for(X: Any, non_negative: bool) -> tuple[str, ...]:
    """Kernels that the features allow, and whose distances between all rows do not take too long.

    L2 distances, and L1 distances of two-valued features, are matrix products; for other features L1 and χ² take one
    operation for each pair of rows and each of a row's non-zeros.
    """
    many_valued = ~two_valued_columns(X)
    if is_device_array(X):
        part = namespace(X).take(X, as_type_of(np.flatnonzero(many_valued), X, namespace(X).int64), axis=1)
    else:
        part = X[:, many_valued]
    operations = X.shape[0] * _n_non_zero(part)
    excluded = set()
    if operations > MAX_OPERATIONS:
        excluded.add("laplacian")
    # one operation of χ² takes about four times as long as one of L1
    if not (non_negative and many_valued.any() and density(X) > SPARSE_DENSITY and operations <= MAX_OPERATIONS / 4):
        excluded.add("chi2")
    return tuple(name for name in FAMILIES if name not in excluded)


def to_target(D: FloatArray, target: str) -> FloatArray:
    """Return the table to regress on."""
    if target == "degrees":
        return as_double(D)
    minimum = max(1e-4, 1e-3 / D.shape[1])  # the logarithm of 0 is infinite; chosen by hand
    xp = namespace(D)
    logs = xp.log(at_least(as_double(D), minimum))
    return logs - xp.mean(logs, axis=1, keepdims=True)


def to_distributions(scores: FloatArray, target: str) -> FloatArray:
    """Return distributions for predictions of the regression."""
    return project(scores) if target == "degrees" else softmax(scores)


def _choose(
    data: Data,
    scores: FloatArray,
    means: FloatArray,
    candidate: Candidate,
    target: str,
    alphas: Sequence[float],
    shares: Sequence[float],
) -> tuple[Choice, FloatArray]:
    """Choose penalty and mean share by the divergence of left-out predictions.

    Parameters
    ----------
    data : Data
        The rows.
    scores : ndarray of shape (n_alphas, n, n_labels)
        Predictions of the regression for left-out rows.
    means : ndarray of shape (n, n_labels)
        Mean distribution of the rows that remain, for each left-out row.
    candidate : Candidate
        The kernel that was used.
    target : {"degrees", "clr"}
        What was regressed on.
    alphas, shares : sequence of float
        Penalties of the scores, and mean shares to choose from.

    Returns
    -------
    choice : Choice
        The best settings.
    scores : ndarray of shape (n, n_labels)
        The scores of the chosen penalty.
    """
    divergences = mixture_divergences(data.D, to_distributions(scores, target), means, data.weight, shares)
    smallest = divergences.min(axis=1)[::-1]  # of equals the largest penalty: the simplest model
    row = len(smallest) - 1 - first_best(smallest)
    column = first_best(divergences[row])
    choice = Choice(
        candidate, target, data.n_rows, float(alphas[row]), float(shares[column]), float(divergences[row, column])
    )
    return choice, scores[row, ...]


def _mixed(scores: FloatArray, means: FloatArray, choice: Choice) -> FloatArray:
    return mix(to_distributions(scores, choice.target), means, choice.share)


def _screening_rows(data: Data, options: Options) -> IntArray:
    """Rows to screen on and to take the median distance from; with groups, rows of at least two."""
    if data.n_rows <= options.n_screen:
        return np.arange(data.n_rows)
    rows = np.sort(options.random_state.permutation(data.n_rows)[: options.n_screen])
    if data.codes is not None and (data.codes[rows] == data.codes[rows[0]]).all():
        rows[-1] = np.flatnonzero(data.codes != data.codes[rows[0]])[0]
    return np.asarray(rows)


class _ScreeningRows:
    """The rows on which candidates are compared; scalings and distances are computed once for each."""

    def __init__(self, data: Data, rows: IntArray) -> None:
        self.scalings = {name: Scaling.fit(name, data.X, data.weight) for name in SCALINGS}
        self._part = data.take(rows)
        self._known: dict[tuple[str, str], tuple[FloatArray, float]] = {}
        step = max(1, len(rows) // FIRST_ROUND_ROWS)
        first = np.arange(0, len(rows), step)[:FIRST_ROUND_ROWS]
        if data.codes is not None and len(np.unique(data.codes[rows[first]])) == 1:
            other = np.flatnonzero(data.codes[rows] != data.codes[rows[0]])[0]  # one group must remain
            first = np.sort(np.r_[first[:-1], other])
        self._first_round = first

    def _distances(self, candidate: Candidate) -> tuple[FloatArray, float]:
        key = candidate.scaling, candidate.metric
        if key not in self._known:
            scaled = self.scalings[candidate.scaling].apply(self._part.X)
            values = distances(scaled, scaled, candidate.metric)
            self._known[key] = values, typical_distance(values, self._part.weight, candidate.metric)
        return self._known[key]

    def length_scale(self, candidate: Candidate) -> float:
        """Width times the median distance; a function has none."""
        return 1.0 if callable(candidate.kernel) else candidate.width * self._distances(candidate)[1]

    def compare(self, candidates: Sequence[Candidate], options: Options, *, first_round: bool = False) -> list[Choice]:
        """Choose penalty and share for each candidate, a kernel with a name, and each target."""
        part = self._part.take(self._first_round) if first_round else self._part
        means, alphas = part.means, np.asarray(options.alphas)
        found = []
        for candidate in candidates:
            values = self._distances(candidate)[0]
            if first_round:
                values = values[np.ix_(self._first_round, self._first_round)]
            K = from_distances(str(candidate.kernel), values, self.length_scale(candidate))
            spectrum = decompose(K, part.weight)
            for target in options.targets:
                scores = spectrum.left_out(to_target(part.D, target), alphas * part.total_weight, part.codes)
                found.append(_choose(part, scores, means, candidate, target, options.alphas, options.shares)[0])
        return found


def _refine(part: _ScreeningRows, found: list[Choice], options: Options) -> list[Choice]:
    """Try widths around the best candidates of each target: for two of them in steps of 2, for the best of √2."""
    refined: list[Choice] = []
    for factor, n_best in WIDTH_STEPS:
        for target in options.targets:
            known = {choice.candidate for choice in found + refined}
            best = _best([choice for choice in found + refined if choice.target == target], n_best)
            near = [replace(c, width=c.width * step) for c in best if c.has_width for step in (factor, 1 / factor)]
            near = [candidate for candidate in near if candidate not in known and candidate.width <= MAX_WIDTH]
            refined += part.compare(near, options)
    return refined


def _best(found: list[Choice], n_best: int) -> list[Candidate]:
    """Return the best candidates of each target, of each kernel and scaling only that with the best width."""
    best: dict[Candidate, None] = {}
    for target in dict.fromkeys(choice.target for choice in found):
        ranked = sorted((choice for choice in found if choice.target == target), key=lambda choice: choice.divergence)
        first: dict[tuple[object, str], Candidate] = {}
        for choice in ranked:
            first.setdefault((choice.candidate.kernel, choice.candidate.scaling), choice.candidate)
        best |= dict.fromkeys(list(first.values())[:n_best])
    return list(best)


def _solve_eigen(
    data: Data, scaled: Any, candidate: Candidate, length_scale: float, options: Options
) -> list[Solution]:
    """Compare all penalties on all rows, by eigenvectors."""
    K = _kernel_matrix(candidate, scaled, length_scale)
    weighting = Weighting.of(data.weight, K)
    columns = kernel_means(K, weighting)
    spectrum = decompose(K, data.weight)
    means, penalties = data.means, np.asarray(options.alphas) * data.total_weight
    solutions = []
    for target in options.targets:
        Y = to_target(data.D, target)
        scores = spectrum.left_out(Y, penalties, data.codes)
        choice, scores = _choose(data, scores, means, candidate, target, options.alphas, options.shares)
        dual = spectrum.dual(Y, choice.alpha * data.total_weight)
        b = intercept(Y, dual, columns, weighting)
        solutions.append(Solution(choice, length_scale, dual, b, None, _mixed(scores, means, choice), 1))
    return solutions


def _solve_cholesky(
    data: Data, scaled: Any, candidate: Candidate, length_scale: float, options: Options
) -> list[Solution]:
    """Choose the penalty by Nyström features; the solution and the left-out predictions are exact for that penalty."""
    means = data.means
    if len(options.alphas) > 1:
        spectrum = _sketch(data, scaled, candidate, length_scale, options).spectrum
        penalties = np.asarray(options.alphas) * data.total_weight
        chosen = {}
        for target in options.targets:
            scores = spectrum.left_out(to_target(data.D, target), penalties, data.codes)
            choice = _choose(data, scores, means, candidate, target, options.alphas, options.shares)[0]
            chosen[target] = choice.alpha
        del spectrum, scores  # frees memory before the kernel matrix is computed
    else:
        chosen = dict.fromkeys(options.targets, float(options.alphas[0]))
    solutions = []
    for alpha in sorted(set(chosen.values())):
        K = _kernel_matrix(candidate, scaled, length_scale, in_blocks=True)
        columns = kernel_means(K, Weighting.of(data.weight, K))
        penalty = alpha * data.total_weight
        inverse = (DeviceInverse if is_device_array(K) else ExactInverse)(K, data.weight, penalty)
        del K  # its memory holds the inverse
        for target in [target for target in options.targets if chosen[target] == alpha]:
            Y = to_target(data.D, target)
            residuals = inverse.residuals(Y)
            dual = inverse.weighting.root[:, None] * residuals / penalty
            scores = inverse.left_out(Y, residuals, data.codes)[None, ...]
            choice, scores = _choose(data, scores, means, candidate, target, (alpha,), options.shares)
            b = intercept(Y, dual, columns, inverse.weighting)
            solutions.append(Solution(choice, length_scale, dual, b, None, _mixed(scores, means, choice), 1))
    return solutions


def _solve_large(
    data: Data, scaled: Any, candidate: Candidate, length_scale: float, options: Options
) -> list[Solution]:
    """Choose the penalty by Nyström features; the solution is that of conjugate gradients, or of the features."""
    means = data.means
    sketch = _sketch(data, scaled, candidate, length_scale, options)
    penalties = np.asarray(options.alphas) * data.total_weight
    solutions = []
    for target in options.targets:
        Y = to_target(data.D, target)
        scores = sketch.spectrum.left_out(Y, penalties, data.codes)
        choice, scores = _choose(data, scores, means, candidate, target, options.alphas, options.shares)
        penalty = choice.alpha * data.total_weight
        if options.solver == "nystroem":
            dual, b = sketch.dual(Y, penalty)
            left_out = _mixed(scores, means, choice)
            solutions.append(Solution(choice, length_scale, dual, b, sketch.landmarks, left_out, 1))
            continue
        fit = _large.solve(
            candidate.kernel,
            scaled,
            length_scale,
            sketch,
            Y,
            penalty,
            tol=options.tol,
            max_iter=options.max_iter,
            random_state=options.random_state,
        )
        scores = _large.left_out(Y, fit, sketch, penalty, data.codes)[None, ...]
        choice, scores = _choose(data, scores, means, candidate, target, (choice.alpha,), options.shares)
        left_out = _mixed(scores, means, choice)
        solutions.append(Solution(choice, length_scale, fit.dual, fit.intercept, None, left_out, fit.n_iter))
    return solutions


_SOLVERS = {"eigen": _solve_eigen, "cholesky": _solve_cholesky, "cg": _solve_large, "nystroem": _solve_large}


def _kernel_matrix(candidate: Candidate, scaled: Any, length_scale: float, *, in_blocks: bool = False) -> FloatArray:
    """Kernel between all rows; on a device and with ``in_blocks`` no other array of its size is made."""
    n_rows = scaled.shape[0]
    if is_device_array(scaled):
        xp, device = space(scaled)
        K = xp.empty((n_rows, n_rows), dtype=xp.float64, device=device)
        for block in device_blocks(n_rows, n_rows):
            K[block, ...] = kernel_values(candidate.kernel, scaled[block, ...], scaled, length_scale)
        return K
    if not in_blocks:
        return kernel_values(candidate.kernel, scaled, scaled, length_scale)
    K = np.empty((n_rows, n_rows))
    for block in row_blocks(n_rows, n_rows):
        K[block] = kernel_values(candidate.kernel, scaled[block], scaled, length_scale)
    return K


def _sketch(data: Data, scaled: Any, candidate: Candidate, length_scale: float, options: Options) -> _large.Nystroem:
    landmarks = np.sort(options.random_state.permutation(data.n_rows)[: options.n_landmarks])
    return _large.nystroem(candidate.kernel, scaled, length_scale, data.weight, landmarks)

"""`KernelRidgeLDL`: kernel ridge regression on distributions, with every setting chosen by exact leave-one-out.

There are two targets. "degrees" regresses on D itself and projects the prediction on the simplex; "clr" regresses on
the centred log-ratio ln d_j − mean_k ln d_k, with small degrees raised to a minimum, and applies the softmax.

Candidates (a kernel, a scaling of the features and a width) are compared in two rounds on few rows, and the best are
fitted on all rows by one of four solvers (`_solvers`). One decomposition serves every penalty, every fraction of the
mean distribution and both targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from skldl.base import GroupedLDL
from skldl.exceptions import DeviceError, Parameter, ParameterError
from skldl.kernel._kernels import (
    FAMILIES,
    KernelFunction,
    distances,
    from_distances,
    kernel_values,
    row_blocks,
    typical_distance,
)
from skldl.kernel._solvers import (
    DeviceInverse,
    ExactInverse,
    Nystroem,
    Weighting,
    decompose,
    intercept,
    kernel_means,
    left_out_iteratively,
    nystroem,
    solve_iteratively,
)
from skldl.utils.arrays import (
    as_double,
    as_type_of,
    at_least,
    count_true,
    is_device_array,
    least_number,
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
    mean_distribution,
    means_without,
    mix,
    mixture_divergences,
)
from skldl.utils.parameters import CALLABLE, FRACTION, NONE, POSITIVE, RANDOM_STATE, integer, one_of
from skldl.utils.scaling import SCALINGS, Scaling, is_non_negative, two_valued_columns
from skldl.utils.simplex import project, softmax
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_same_space

TARGETS = ("degrees", "clr")
MAX_OPERATIONS = 5e10
"""Operations for the L1 distances of all rows, some 20 s, beyond which they are not tried."""
SPARSE_DENSITY = 0.05
"""Features with a smaller fraction of non-zeros are stored as a sparse matrix: products are faster, χ² is not tried.
Chosen by hand."""
ALPHAS = tuple(float(alpha) for alpha in np.logspace(-11, 0, 23))
"""Penalties to choose from, two per decade."""
EIGEN_ROWS = 3500
"""Up to this many rows all penalties are compared on all rows by eigenvectors; beyond, by Nyström features."""
CG_ROWS = 30_000
"""Beyond this many rows, a step of conjugate gradients takes minutes: the Nyström features are the model."""
FIRST_ROUND_ROWS = 300
"""Rows of the first round, which takes place where there are more than twice as many: a decomposition takes time in
proportion to the cube of the rows."""
FIRST_ROUND_KEEPS = 5
"""Candidates of each target that the first round keeps. Chosen by hand."""
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
    """Choose the settings and fit a model for each target; return the models and all comparisons."""
    rows = _screening_rows(data, options)
    part = _ScreeningRows(data, rows)
    finalists = list(options.candidates)
    tried: list[Choice] = []
    if len(finalists) > 1:
        shares = SCREENING_FRACTIONS if tuple(options.shares) == MEAN_FRACTIONS else options.shares
        # half of the penalties are enough to rank kernels
        screening = replace(options, alphas=tuple(options.alphas)[::2], shares=shares)
        if len(rows) > 2 * FIRST_ROUND_ROWS and len(finalists) > FIRST_ROUND_KEEPS:
            tried += part.compare(finalists, screening, first_round=True)
            finalists = _best(tried, FIRST_ROUND_KEEPS)
        found = part.compare(finalists, screening)
        if options.refine_width:
            found += _refine(part, found, screening)
        # only the best is decomposed on all rows where a decomposition takes long
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
    """Transform distributions into the target of the regression."""
    if target == "degrees":
        return as_double(D)
    minimum = max(1e-4, 1e-3 / D.shape[1])  # the logarithm of 0 is infinite; chosen by hand
    xp = namespace(D)
    logs = xp.log(at_least(as_double(D), minimum))
    return logs - xp.mean(logs, axis=1, keepdims=True)


def to_distributions(scores: FloatArray, target: str) -> FloatArray:
    """Transform predictions of the regression into distributions."""
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
        step = max(1, len(rows) // FIRST_ROUND_ROWS)  # evenly spaced, because files are often sorted
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
        fit = solve_iteratively(
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
        scores = left_out_iteratively(Y, fit, sketch, penalty, data.codes)[None, ...]
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


def _sketch(data: Data, scaled: Any, candidate: Candidate, length_scale: float, options: Options) -> Nystroem:
    landmarks = np.sort(options.random_state.permutation(data.n_rows)[: options.n_landmarks])
    return nystroem(candidate.kernel, scaled, length_scale, data.weight, landmarks)


class KernelRidgeLDL(GroupedLDL):
    """Kernel ridge regression on label distributions, with kernel, scaling and penalties chosen by leave-one-out.

    The regression minimises, over functions f of the kernel's space and an intercept b,

        Σ_i w_i ‖y_i − b − f(x_i)‖² / Σ_i w_i + alpha·‖f‖²,

    where y is the distribution d itself (target "degrees") or its centred log-ratio (target "clr"). Predictions are
    projected on the simplex, or converted by the softmax. Then they are mixed with the mean distribution of the
    training rows, (1 − s)·P + s·mean with a small fraction s, which makes every degree positive.

    Settings that are not fixed are chosen by the mean Kullback-Leibler divergence of leave-one-out predictions. They
    are exact: with the kernel matrix centred, K = VΛVᵀ and λ = alpha·n, the residual of the model without row i is the
    residual of row i divided by 1 − h_i, h_i = 1/n + Σ_k V_ik² Λ_k / (Λ_k + λ), the intercept re-estimated too [1]_.
    One decomposition serves all penalties and both targets. Kernels are screened on ``n_screen`` rows; the best one (on
    up to 1,000 rows the best three, of each target) is decomposed on all rows.

    Parameters
    ----------
    target : {"auto", "degrees", "clr"}, default="auto"
        What to regress on. "auto" chooses the better one. For "clr", degrees are raised to at least
        max(0.0001, 0.001 / n_labels) first.
    kernel : {"auto", "exponential", "laplacian", "rbf", "chi2", "linear"} or callable, default="auto"
        exp(−‖x − z‖₂/ℓ), exp(−‖x − z‖₁/ℓ), exp(−‖x − z‖₂²/(2ℓ²)), exp(−χ²(x, z)/ℓ) with
        χ² = Σ_j (x_j − z_j)²/(x_j + z_j) for non-negative features such as histograms, xᵀz/ℓ, or a function that
        takes two tables of scaled features and returns the kernel of all pairs of their rows. "auto" compares those
        that the features allow, but "laplacian" and "chi2" only where their distances take at most about 20 s.
    width : float, default=None
        Length scale ℓ in units of the median distance between rows. None chooses among several. "linear" (whose ℓ is
        the mean squared norm of the centred rows) and functions have none.
    scaling : {"auto", "raw", "standard", "sqrt"}, default="auto"
        Scaling of the features: none, division by the standard deviation (of a two-valued feature by the difference of
        its values), or square roots, for non-negative features. "auto" chooses; for a function it is "raw".
    alpha : float, default=None
        Penalty. None chooses among 23 from 1e-11 to 1, two per decade.
    mean_share : float, default=None
        Fraction of the mean distribution in predictions, from 0 to 1; with 0, predicted degrees can be zero. None
        chooses among ten values from 0.001 to 0.5.
    solver : {"auto", "exact", "cg", "nystroem"}, default="auto"
        "exact" solves the regression directly, with exact leave-one-out predictions; it needs 12·n² bytes. "cg" uses
        conjugate gradients with a Nyström preconditioner [2]_ and never stores the kernel matrix; leave-one-out
        predictions rest on its residuals and on leverages estimated by random signs. "nystroem" restricts f to the
        kernel functions of ``n_landmarks`` rows; leave-one-out predictions are exact for that model. "auto" is "exact"
        if 12·n² is at most ``max_bytes``, else "cg" up to 30,000 rows, else "nystroem". The penalty is chosen on all
        rows by eigenvectors up to 3,500 rows, and by Nyström features beyond.
    max_bytes : int, default=2_700_000_000
        Memory for the kernel matrix or the Nyström features; the default is "exact" up to 15,000 rows.
    n_screen : int, default=900
        Number of rows, drawn at random, on which kernels are compared and the median distance is computed.
    n_landmarks : int, default=1500
        Maximum number of Nyström landmarks.
    tol : float, default=1e-4
        Relative residual at which conjugate gradients stop.
    max_iter : int, default=100
        Maximum number of steps of conjugate gradients.
    random_state : int, RandomState instance or None, default=0
        Seed for drawing the screening rows and the landmarks. With the default, every fit returns the same model.

    Attributes
    ----------
    target_, kernel_, scaling_, width_, alpha_, mean_share_ : str, str or callable, str, float, float, float
        The settings used.
    length_scale_ : float
        ℓ, in units of the scaled features.
    solver_ : {"eigen", "cholesky", "cg", "nystroem"}
        How the regression was solved; the first two are exact.
    loo_predictions_ : ndarray of shape (n_samples, n_labels)
        For each training row of positive weight, the prediction of the model fitted without it (with ``groups``,
        without its group) at the chosen settings.
    loo_divergence_ : float
        Their mean Kullback-Leibler divergence: slightly optimistic, because the settings were chosen by it.
    candidates_ : list of dict
        All comparisons: kernel, scaling, width, target, number of rows, alpha, mean share, divergence.
    X_fit_ : ndarray or CSR matrix of shape (n_support, n_features)
        Scaled training rows of the kernel functions: all of them, or the landmarks.
    dual_coef_ : ndarray of shape (n_support, n_labels)
        Coefficients of their kernel functions.
    intercept_ : ndarray of shape (n_labels,)
        The intercept b.
    distribution_ : ndarray of shape (n_labels,)
        Mean distribution of the training rows.
    n_iter_ : int
        Number of steps of conjugate gradients; 1 for other solvers.

    Notes
    -----
    Integer weights equal copies of the rows for fixed settings (up to ``n_screen`` rows: beyond that the median
    distance is that of a sample). When settings are chosen, a row is left out with its whole weight, while a copy of
    it would stay.

    With ``groups`` given to ``fit``, the settings are chosen by leaving out whole groups, and ``loo_predictions_``
    predicts each row without its group.

    When rows are left out, alpha·Σw, the scaling of the features and the length scale stay as they are.

    Predictions are computed in blocks, so that memory does not grow with the number of new rows.

    With scikit-learn's setting ``array_api_dispatch``, X and y on a device stay there, and so do ``X_fit_``,
    ``dual_coef_``, ``intercept_`` and ``loo_predictions_``, in double precision. Kernels are screened on ``n_screen``
    rows in NumPy; all rows are solved on the device, always exactly: by eigenvectors if ``alpha`` is to be chosen, else
    (beyond 3,500 rows) by a Cholesky factorisation in the memory of the kernel matrix, 8·n² bytes. ``max_bytes`` has no
    effect there.

    See Also
    --------
    skldl.kernel.fit_each_target : Both targets from shared decompositions.

    References
    ----------
    .. [1] R. D. Cook and S. Weisberg, "Residuals and influence in regression", Chapman and Hall, 1982.
    .. [2] Z. Frangella, J. A. Tropp and M. Udell, "Randomized Nyström preconditioning", SIAM Journal on Matrix Analysis
       and Applications 44(2), 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.kernel import KernelRidgeLDL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(80, 2))
    >>> D = np.exp(np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2 / 2, np.zeros(80)]))
    >>> D /= D.sum(axis=1, keepdims=True)
    >>> model = KernelRidgeLDL().fit(X, D)
    >>> model.solver_, model.loo_predictions_.shape
    ('eigen', (80, 3))
    >>> model.loo_divergence_ < 0.01
    True
    """

    _array_api = True
    _keeps_rows = True
    _constraints: ClassVar = {
        "target": one_of("auto", *TARGETS),
        "kernel": one_of("auto", *FAMILIES) | CALLABLE,
        "width": NONE | POSITIVE,
        "scaling": one_of("auto", *SCALINGS),
        "alpha": NONE | POSITIVE,
        "mean_share": NONE | FRACTION,
        "solver": one_of("auto", "exact", "cg", "nystroem"),
        "max_bytes": integer(at_least=2),
        "n_screen": integer(at_least=2),
        "n_landmarks": integer(at_least=2),
        "tol": POSITIVE,
        "max_iter": integer(at_least=2),
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        target: str = "auto",
        *,
        kernel: str | KernelFunction = "auto",
        width: float | None = None,
        scaling: str = "auto",
        alpha: float | None = None,
        mean_share: float | None = None,
        solver: str = "auto",
        max_bytes: int = 2_700_000_000,
        n_screen: int = 900,
        n_landmarks: int = 1500,
        tol: float = 1e-4,
        max_iter: int = 100,
        random_state: Any = 0,
    ) -> None:
        self.target = target
        self.kernel = kernel
        self.width = width
        self.scaling = scaling
        self.alpha = alpha
        self.mean_share = mean_share
        self.solver = solver
        self.max_bytes = max_bytes
        self.n_screen = n_screen
        self.n_landmarks = n_landmarks
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit_grouped(self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None) -> None:
        data = Data(_compact(X), D, sample_weight, groups)
        solutions, tried = fit_targets(data, self._options(data))
        self._keep(data, min(solutions.values(), key=lambda solution: solution.choice.divergence), tried)

    def _keep(self, data: Data, solution: Solution, tried: list[Choice]) -> Self:
        """Set the fitted attributes."""
        choice = solution.choice
        self.target_ = choice.target
        self.kernel_ = choice.candidate.kernel
        self.scaling_ = choice.candidate.scaling
        self.width_ = choice.candidate.width
        self.alpha_ = choice.alpha
        self.mean_share_ = choice.share
        self.length_scale_ = solution.length_scale
        self.solver_ = self._solver(data)
        self.loo_predictions_ = solution.left_out
        self.loo_divergence_ = choice.divergence
        self.candidates_ = [_record(each) for each in tried]
        scaling = Scaling.fit(self.scaling_, data.X, data.weight)
        self._divisor = scaling.divisor
        support = data.X if solution.support is None else data.X[solution.support]  # on a device all rows
        self.X_fit_ = scaling.apply(support, copy=True)  # the caller may change the original
        self.dual_coef_ = solution.dual
        self.intercept_ = solution.intercept
        self.distribution_ = mean_distribution(data.D, data.weight)
        self.n_iter_ = solution.n_iter
        return self

    def _predict(self, X: Any) -> FloatArray:
        scaling = Scaling(self.scaling_, self._divisor)
        check_same_space(self, X, self.X_fit_)
        if is_device_array(X):
            return self._predict_on_device(X, scaling)
        scores = np.empty((X.shape[0], self.n_labels_))
        for block in row_blocks(X.shape[0], max(self.X_fit_.shape)):
            K = kernel_values(self.kernel_, scaling.apply(X[block]), self.X_fit_, self.length_scale_)
            scores[block] = K @ self.dual_coef_
        scores += self.intercept_
        return mix(to_distributions(scores, self.target_), self.distribution_, self.mean_share_)

    def _predict_on_device(self, X: Any, scaling: Scaling) -> Any:
        xp, parts = namespace(X), []
        mean = as_type_of(self.distribution_, self.dual_coef_)
        for block in device_blocks(X.shape[0], max(self.X_fit_.shape)):
            K = kernel_values(self.kernel_, scaling.apply(X[block, ...]), self.X_fit_, self.length_scale_)
            scores = K @ self.dual_coef_ + self.intercept_
            parts.append(mix(to_distributions(scores, self.target_), mean, self.mean_share_))
        return xp.astype(xp.concat(parts), X.dtype, copy=False)

    def _solver(self, data: Data) -> str:
        n_rows = data.n_rows
        if is_device_array(data.X):
            if self.solver not in ("auto", "exact"):
                raise DeviceError(
                    Parameter("solver", self.solver),
                    " computes with NumPy alone: on a device set ",
                    Parameter("solver", "exact"),
                    " or 'auto', or pass NumPy arrays.",
                )
            return "eigen" if self.alpha is None or n_rows <= EIGEN_ROWS else "cholesky"
        if self.solver == "exact" or (self.solver == "auto" and 12 * n_rows**2 <= self.max_bytes):
            return "eigen" if n_rows <= EIGEN_ROWS else "cholesky"
        if self.solver == "auto":
            return "cg" if n_rows <= CG_ROWS else "nystroem"
        return self.solver

    def _options(self, data: Data) -> Options:
        """Check the hyper-parameters against the data."""
        X = data.X
        if data.n_rows < 2:
            raise ValueError("KernelRidgeLDL leaves rows out, so it needs at least two rows, but n_samples=1.")
        for name, value in (("kernel", "chi2"), ("scaling", "sqrt")):
            if getattr(self, name) == value and not is_non_negative(X):
                raise ParameterError(
                    Parameter(name, value),
                    f" needs non-negative features, but X holds {least_number(X):g}. Choose another {name}, or 'auto'.",
                )
        solver = self._solver(data)
        # the other solvers need penalties above rounding errors, from 1e-9 on; .9 allows for the rounding of the grid
        alphas = ALPHAS if solver == "eigen" else tuple(alpha for alpha in ALPHAS if alpha > 0.9e-9)
        # three tables of features in double precision
        max_landmarks = max(2, int(self.max_bytes // (24 * data.n_rows)))
        return Options(
            candidates=candidates_for(X, self.kernel, self.scaling, self.width),
            targets=TARGETS if self.target == "auto" else (self.target,),
            alphas=alphas if self.alpha is None else (float(self.alpha),),
            shares=MEAN_FRACTIONS if self.mean_share is None else (float(self.mean_share),),
            refine_width=self.width is None,
            n_screen=int(self.n_screen),
            n_landmarks=min(int(self.n_landmarks), max_landmarks),
            solver=solver,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            random_state=check_random_state(self.random_state),
        )


def fit_each_target(
    estimator: KernelRidgeLDL, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
) -> dict[str, KernelRidgeLDL]:
    """Fit one model on the degrees and one on the log-ratios, from shared distances and decompositions.

    It takes little longer than one of them where both choose the same kernel. A pool of models can use both.

    Parameters
    ----------
    estimator : KernelRidgeLDL
        The settings; it is cloned, and its ``target`` is not used.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        Features.
    y : array-like or DataFrame of shape (n_samples, n_labels)
        Label distributions.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.
    groups : array-like of shape (n_samples,), default=None
        Group of each row; whole groups are left out.

    Returns
    -------
    dict
        Fitted estimators by target, "degrees" and "clr".

    Examples
    --------
    >>> from skldl.kernel import KernelRidgeLDL, fit_each_target
    >>> from skldl.testing import make_distributions
    >>> X, D = make_distributions()
    >>> models = fit_each_target(KernelRidgeLDL(), X, D)
    >>> {target: model.loo_predictions_.shape for target, model in models.items()}
    {'degrees': (40, 3), 'clr': (40, 3)}
    """
    models = {target: clone(estimator).set_params(target=target) for target in TARGETS}
    both = clone(estimator).set_params(target="auto")
    checked, *rest = both._check_grouped_set(X, y, sample_weight, groups)
    data = Data(_compact(checked), *rest)
    solutions, tried = fit_targets(data, both._options(data))
    names = {name: value for name, value in vars(both).items() if name not in both.get_params(deep=False)}
    for target, model in models.items():
        vars(model).update(names)  # of features and labels
        model._keep(data, solutions[target], [choice for choice in tried if choice.target == target])
    return models


def _compact(X: Any) -> Any:
    """Store features that are nearly all zero as a sparse matrix."""
    return X if sparse.issparse(X) or is_device_array(X) or density(X) > SPARSE_DENSITY else sparse.csr_matrix(X)


def _record(choice: Choice) -> dict[str, Any]:
    kernel = choice.candidate.kernel
    return {
        "kernel": getattr(kernel, "__name__", type(kernel).__name__) if callable(kernel) else kernel,
        "scaling": choice.candidate.scaling,
        "width": choice.candidate.width,
        "target": choice.target,
        "n_rows": choice.n_rows,
        "alpha": choice.alpha,
        "mean_share": choice.share,
        "divergence": choice.divergence,
    }

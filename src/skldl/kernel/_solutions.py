"""Fit one kernel on all rows by one of four solvers, and choose penalty and mean share by leaving rows out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldl.kernel import _large
from skldl.kernel._candidates import Candidate
from skldl.kernel._kernels import kernel_values, row_blocks
from skldl.kernel._leave_out import DeviceInverse, ExactInverse, Spectrum, Weighting, decompose, intercept, kernel_means
from skldl.kernel._targets import choose, to_distributions, to_target
from skldl.utils.arrays import as_double, is_device_array, namespace, rows_on_host, space, take_rows
from skldl.utils.arrays import row_blocks as device_blocks
from skldl.utils.mean_mixture import means_without, mix
from skldl.utils.typing import FloatArray, IntArray

ALPHAS = tuple(float(alpha) for alpha in np.logspace(-11, 0, 23))
EIGEN_ROWS = 3500
"""Up to this many rows all penalties are compared on all rows by eigenvectors; beyond, by Nyström features."""
CG_ROWS = 30_000
"""Beyond this many rows, a step of conjugate gradients takes minutes: the Nyström features are the model."""


@dataclass(frozen=True)
class Options:
    """What is fixed and what is chosen: several candidates, alphas or shares are chosen from."""

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
    """Training rows, checked."""

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


@dataclass(frozen=True)
class Choice:
    """Result for one target with one candidate on ``n_rows`` rows."""

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


def choose_penalty(
    data: Data, means: FloatArray, spectrum: Spectrum, candidate: Candidate, target: str, options: Options
) -> tuple[Choice, FloatArray]:
    """Choose alpha and share from a decomposition; return also the scores of left-out rows."""
    alphas = np.asarray(options.alphas)
    scores = spectrum.left_out(to_target(data.D, target), alphas * data.total_weight, data.codes)
    divergence, place, share = choose(data.D, scores, target, means, data.weight, options.shares)
    return Choice(candidate, target, data.n_rows, float(alphas[place]), share, divergence), scores[place, ...]


def _mixed(scores: FloatArray, means: FloatArray, choice: Choice) -> FloatArray:
    return mix(to_distributions(scores, choice.target), means, choice.share)


def _solve_eigen(
    data: Data, scaled: Any, candidate: Candidate, length_scale: float, options: Options
) -> list[tuple[str, Solution]]:
    """All penalties on all rows, by eigenvectors."""
    K = _kernel_matrix(candidate, scaled, length_scale)
    weighting = Weighting.of(data.weight, K)
    columns = kernel_means(K, weighting)
    spectrum = decompose(K, data.weight)
    means = means_without(data.D, data.weight, data.codes)
    solutions = []
    for target in options.targets:
        choice, scores = choose_penalty(data, means, spectrum, candidate, target, options)
        Y = to_target(data.D, target)
        dual = spectrum.dual(Y, choice.alpha * data.total_weight)
        b = intercept(Y, dual, columns, weighting)
        solutions.append((target, Solution(choice, length_scale, dual, b, None, _mixed(scores, means, choice), 1)))
    return solutions


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
    n_rows = len(data.D)
    landmarks = np.sort(options.random_state.permutation(n_rows)[: options.n_landmarks])
    return _large.nystroem(candidate.kernel, scaled, length_scale, data.weight, landmarks)


def _solve_cholesky(
    data: Data, scaled: Any, candidate: Candidate, length_scale: float, options: Options
) -> list[tuple[str, Solution]]:
    """The penalty by Nyström features, the solution and the left-out predictions exactly, for that penalty."""
    means = means_without(data.D, data.weight, data.codes)
    if len(options.alphas) > 1:
        spectrum = _sketch(data, scaled, candidate, length_scale, options).spectrum
        chosen = {t: choose_penalty(data, means, spectrum, candidate, t, options)[0].alpha for t in options.targets}
        del spectrum
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
            scores = inverse.left_out(Y, residuals, data.codes)
            choice, left_out = _choose_share(data, means, scores, candidate, target, alpha, options)
            b = intercept(Y, dual, columns, inverse.weighting)
            solutions.append((target, Solution(choice, length_scale, dual, b, None, left_out, 1)))
    return solutions


def _choose_share(
    data: Data,
    means: FloatArray,
    scores: FloatArray,
    candidate: Candidate,
    target: str,
    alpha: float,
    options: Options,
) -> tuple[Choice, FloatArray]:
    divergence, _, share = choose(data.D, scores[None, ...], target, means, data.weight, options.shares)
    choice = Choice(candidate, target, data.n_rows, alpha, share, divergence)
    return choice, _mixed(scores, means, choice)


def _solve_large(
    data: Data, scaled: Any, candidate: Candidate, length_scale: float, options: Options
) -> list[tuple[str, Solution]]:
    """The penalty by Nyström features; the solution by conjugate gradients, or the features' own."""
    means = means_without(data.D, data.weight, data.codes)
    sketch = _sketch(data, scaled, candidate, length_scale, options)
    solutions = []
    for target in options.targets:
        Y = to_target(data.D, target)
        choice, scores = choose_penalty(data, means, sketch.spectrum, candidate, target, options)
        penalty = choice.alpha * data.total_weight
        if options.solver == "nystroem":
            dual, b = sketch.dual(Y, penalty)
            left_out = _mixed(scores, means, choice)
            solutions.append((target, Solution(choice, length_scale, dual, b, sketch.landmarks, left_out, 1)))
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
        scores = _large.left_out(Y, fit, sketch, penalty, data.codes)
        choice, left_out = _choose_share(data, means, scores, candidate, target, choice.alpha, options)
        solutions.append((target, Solution(choice, length_scale, fit.dual, fit.intercept, None, left_out, fit.n_iter)))
    return solutions


SOLVERS = {"eigen": _solve_eigen, "cholesky": _solve_cholesky, "cg": _solve_large, "nystroem": _solve_large}
"""The solvers by name."""

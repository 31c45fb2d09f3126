"""Choose kernel, scaling, width, penalty and mean share by leaving rows out, then fit on all rows.

Candidates are screened in two rounds on few rows; the best are decomposed on all rows. One decomposition serves every
penalty, every mean share and both targets.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from skldl._held_out import MEAN_SHARES, SCALINGS, Scaling, means_without
from skldl.kernel._candidates import Candidate
from skldl.kernel._kernels import distances, from_distances, kernel_values, typical_distance
from skldl.kernel._leave_out import decompose
from skldl.kernel._solutions import SOLVERS, Choice, Data, Options, Solution, choose_penalty

FloatArray = npt.NDArray[np.floating]
IndexArray = npt.NDArray[np.intp]

SCREENING_SHARES = (0.001, 0.01, 0.05, 0.2)
FIRST_ROUND_ROWS = 300
FIRST_ROUND_KEEPS = 5
WIDEST = 64.0
WIDTH_FACTORS = (2.0, 2.0**0.5)
"""Steps of the refinement of the best width."""


def fit_targets(data: Data, options: Options) -> tuple[dict[str, Solution], list[Choice]]:
    """Choose and fit for each target; return the models and all that was tried."""
    n_rows = len(data.D)
    rows = _some_rows(data, options)
    units = _Distances(data, rows)
    finalists = list(options.candidates)
    tried: list[Choice] = []
    if len(finalists) > 1:
        screening = replace(options, alphas=tuple(options.alphas)[::2], shares=_few(options.shares))
        if len(rows) > 2 * FIRST_ROUND_ROWS and len(finalists) > FIRST_ROUND_KEEPS:
            found = _screen(data, rows[units.first_round], finalists, screening, units, first_round=True)
            finalists = _best(found, FIRST_ROUND_KEEPS)
            tried += found
        found = _screen(data, rows, finalists, screening, units, first_round=False)
        if options.refine_width:
            found += _refine(data, rows, found, screening, units)
        finalists = _best(found, _n_finalists(n_rows))
        tried += found
    solutions: dict[str, Solution] = {}
    for candidate in finalists:
        scaled = units.scalings[candidate.scaling].apply(data.X)
        for target, solution in SOLVERS[options.solver](
            data, scaled, candidate, units.length_scale(candidate), options
        ):
            tried.append(solution.choice)
            if target not in solutions or solution.choice.divergence < solutions[target].choice.divergence:
                solutions[target] = solution
    return solutions, tried


def _n_finalists(n_rows: int) -> int:
    """How many candidates are decomposed on all rows: few where that takes seconds."""
    return 3 if n_rows <= 1000 else 1


def _few(shares: Sequence[float]) -> Sequence[float]:
    return SCREENING_SHARES if tuple(shares) == MEAN_SHARES else shares


def _some_rows(data: Data, options: Options) -> IndexArray:
    """Rows to screen on and to take the median distance from; with groups, rows of at least two."""
    n_rows = len(data.D)
    if n_rows <= options.n_screen:
        return np.arange(n_rows)
    rows = np.sort(options.random_state.permutation(n_rows)[: options.n_screen])
    if data.codes is not None and (data.codes[rows] == data.codes[rows[0]]).all():
        rows[-1] = np.flatnonzero(data.codes != data.codes[rows[0]])[0]
    return np.asarray(rows)


class _Distances:
    """Scalings and distances of the screening rows, each computed once."""

    def __init__(self, data: Data, rows: IndexArray) -> None:
        self.scalings = {name: Scaling.fit(name, data.X, data.weight) for name in SCALINGS}
        self._rows = data.take(rows)
        self._known: dict[tuple[str, str], tuple[FloatArray, float]] = {}
        step = max(1, len(rows) // FIRST_ROUND_ROWS)
        self.first_round = np.arange(0, len(rows), step)[:FIRST_ROUND_ROWS]
        if data.codes is not None and len(np.unique(data.codes[rows[self.first_round]])) == 1:
            other = np.flatnonzero(data.codes[rows] != data.codes[rows[0]])[0]
            self.first_round = np.sort(np.r_[self.first_round[:-1], other])

    def _of(self, candidate: Candidate) -> tuple[FloatArray, float]:
        key = candidate.scaling, candidate.metric
        if key not in self._known:
            scaled = self.scalings[candidate.scaling].apply(self._rows.X)
            if candidate.metric == "function":
                self._known[key] = kernel_values(candidate.kernel, scaled, scaled, 1.0), 1.0
            else:
                values = distances(scaled, scaled, candidate.metric)
                self._known[key] = values, typical_distance(values, self._rows.weight, candidate.metric)
        return self._known[key]

    def length_scale(self, candidate: Candidate) -> float:
        """Width times the median distance."""
        return candidate.width * self._of(candidate)[1]

    def kernel(self, candidate: Candidate, *, first_round: bool) -> FloatArray:
        """Kernel matrix of the screening rows, or of those of the first round."""
        values = self._of(candidate)[0]
        if first_round:
            values = values[np.ix_(self.first_round, self.first_round)]
        if callable(candidate.kernel):
            return values.copy()
        return from_distances(candidate.kernel, values, self.length_scale(candidate))


def _screen(
    data: Data, rows: IndexArray, candidates: list[Candidate], options: Options, units: _Distances, *, first_round: bool
) -> list[Choice]:
    part = data.take(rows)
    means = means_without(part.D, part.weight, part.codes)
    found = []
    for candidate in candidates:
        spectrum = decompose(units.kernel(candidate, first_round=first_round), part.weight)
        found += [choose_penalty(part, means, spectrum, candidate, target, options)[0] for target in options.targets]
    return found


def _refine(data: Data, rows: IndexArray, found: list[Choice], options: Options, units: _Distances) -> list[Choice]:
    """Try the widths between those of the grid around the best candidate of each target, by halving the step."""
    refined: list[Choice] = []
    for factor in WIDTH_FACTORS:
        for target in options.targets:
            best = _best([choice for choice in found + refined if choice.target == target], 1)[0]
            if callable(best.kernel) or best.kernel == "linear":
                continue
            known = {choice.candidate for choice in found + refined}
            near = [replace(best, width=best.width * factor), replace(best, width=best.width / factor)]
            near = [c for c in near if c not in known and c.width <= WIDEST]
            refined += _screen(data, rows, near, options, units, first_round=False)
    return refined


def _best(found: list[Choice], n_best: int) -> list[Candidate]:
    """Return the best candidates of each target, without repetition."""
    best: dict[Candidate, None] = {}
    for target in dict.fromkeys(choice.target for choice in found):
        ranked = sorted((choice for choice in found if choice.target == target), key=lambda choice: choice.divergence)
        best |= dict.fromkeys(choice.candidate for choice in ranked[:n_best])
    return list(best)

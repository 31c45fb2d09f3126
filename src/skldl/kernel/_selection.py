"""Choose kernel, scaling, width, penalty and mean share by leaving rows out, then fit on all rows.

Candidates are screened in two rounds on few rows; the best are decomposed on all rows. One decomposition serves every
penalty, every mean share and both targets.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from skldl.kernel._candidates import Candidate, has_width
from skldl.kernel._kernels import distances, from_distances, typical_distance
from skldl.kernel._leave_out import decompose
from skldl.kernel._solutions import SOLVERS, Choice, Data, Options, Solution, choose_penalty
from skldl.utils.mean_mixture import MEAN_FRACTIONS, SCREENING_FRACTIONS, means_without
from skldl.utils.scaling import SCALINGS, Scaling
from skldl.utils.typing import FloatArray, IntArray

FIRST_ROUND_ROWS = 300
FIRST_ROUND_KEEPS = 5
WIDEST = 8.0
"""Wider exponentials are straight lines at all distances: a matter of alpha alone."""
WIDTH_STEPS = ((2.0, 2), (2.0**0.5, 1))
"""Steps in which widths are refined, and for how many kernels of each target."""


def fit_targets(data: Data, options: Options) -> tuple[dict[str, Solution], list[Choice]]:
    """Choose and fit for each target; return the models and all that was tried."""
    n_rows = data.n_rows
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
    return SCREENING_FRACTIONS if tuple(shares) == MEAN_FRACTIONS else shares


def _some_rows(data: Data, options: Options) -> IntArray:
    """Rows to screen on and to take the median distance from; with groups, rows of at least two."""
    n_rows = data.n_rows
    if n_rows <= options.n_screen:
        return np.arange(n_rows)
    rows = np.sort(options.random_state.permutation(n_rows)[: options.n_screen])
    if data.codes is not None and (data.codes[rows] == data.codes[rows[0]]).all():
        rows[-1] = np.flatnonzero(data.codes != data.codes[rows[0]])[0]
    return np.asarray(rows)


class _Distances:
    """Scalings and distances of the screening rows, each computed once."""

    def __init__(self, data: Data, rows: IntArray) -> None:
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
            values = distances(scaled, scaled, candidate.metric)
            self._known[key] = values, typical_distance(values, self._rows.weight, candidate.metric)
        return self._known[key]

    def length_scale(self, candidate: Candidate) -> float:
        """Width times the median distance; a function has none."""
        return 1.0 if callable(candidate.kernel) else candidate.width * self._of(candidate)[1]

    def kernel(self, candidate: Candidate, *, first_round: bool) -> FloatArray:
        """Kernel matrix of the screening rows, or of those of the first round."""
        values = self._of(candidate)[0]
        if first_round:
            values = values[np.ix_(self.first_round, self.first_round)]
        return from_distances(
            str(candidate.kernel), values, self.length_scale(candidate)
        )  # functions need no screening


def _screen(
    data: Data, rows: IntArray, candidates: list[Candidate], options: Options, units: _Distances, *, first_round: bool
) -> list[Choice]:
    part = data.take(rows)
    means = means_without(part.D, part.weight, part.codes)
    found = []
    for candidate in candidates:
        spectrum = decompose(units.kernel(candidate, first_round=first_round), part.weight)
        found += [choose_penalty(part, means, spectrum, candidate, target, options)[0] for target in options.targets]
    return found


def _refine(data: Data, rows: IntArray, found: list[Choice], options: Options, units: _Distances) -> list[Choice]:
    """Try widths around the best candidates of each target: for two of them in steps of 2, for the best of √2."""
    refined: list[Choice] = []
    for factor, n_best in WIDTH_STEPS:
        for target in options.targets:
            known = {choice.candidate for choice in found + refined}
            best = _best([choice for choice in found + refined if choice.target == target], n_best)
            near = [replace(c, width=c.width * step) for c in best if has_width(c) for step in (factor, 1 / factor)]
            near = [candidate for candidate in near if candidate not in known and candidate.width <= WIDEST]
            refined += _screen(data, rows, near, options, units, first_round=False)
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

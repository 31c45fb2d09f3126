"""The choice of alpha by cross-validation over rows that are read in chunks.

All folds and scalings walk along their paths of alphas side by side, and each pass over the rows serves all of them.
The paths are those of `skldl.SABFGSCV` in memory, so that the scores are the same up to rounding. The held-out
divergences of all alphas, folds and scalings come from one last pass.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skldl.chunks import Chunk, Rows
from skldl.chunks._rows import Sums
from skldl.maxent._fitting import Settings, Weights, fit_objective, walk_path
from skldl.maxent._folds import Folds
from skldl.maxent._lockstep import run_together
from skldl.maxent._row_moments import Moments, merged, read_moments
from skldl.maxent._rows_objective import Evaluate, RowsCrossEntropy, few_rows, pass_over, sums_of_rows
from skldl.utils.simplex import entropy, log_softmax
from skldl.utils.typing import FloatArray

NUMBERS_OF_A_SEARCH = 40
"""Arrays of the size of the weights that a search keeps."""
MOST_NUMBERS = 1 << 27
"""Numbers that searches which share passes may keep together (1 GiB); with very many weights fewer run side by side."""

Request = tuple[int, FloatArray, FloatArray]
"""A fold to leave out, U and b."""


def scaled_path(
    evaluate: Evaluate, moments: Moments, alphas: FloatArray, scaling: str, settings: Settings
) -> Iterator[tuple[int, FloatArray, FloatArray]]:
    """Fit a path of alphas on scaled features: place, weights of the features as they are, and intercepts of each."""
    factors = moments.factors(scaling)
    objective = RowsCrossEntropy(evaluate, moments, factors=factors, fit_intercept=True)
    factorisation = moments.factorisation(factors, fit_intercept=True)
    for place, weights in walk_path(objective, factorisation, list(alphas), settings):
        yield place, weights.W * factors[:, None], weights.b


def fit_scaled(
    evaluate: Evaluate, moments: Moments, alpha: float, scaling: str, settings: Settings
) -> tuple[Weights, FloatArray]:
    """Fit one alpha on scaled features: their weights, and what the columns were multiplied by."""
    factors = moments.factors(scaling)
    objective = RowsCrossEntropy(evaluate, moments, factors=factors, alpha=alpha, fit_intercept=True)
    return fit_objective(objective, moments.factorisation(factors, fit_intercept=True), settings), factors


@dataclass
class FoldedRows:
    """Rows in folds, with the moments of each fold and of all rows."""

    rows: Rows
    folds: Folds
    of_folds: list[Moments]

    def __post_init__(self) -> None:
        self.of_all = merged(self.of_folds)
        n_folds = self.folds.n_folds
        self.without = [merged([self.of_folds[g] for g in range(n_folds) if g != fold]) for fold in range(n_folds)]

    def held_out_scores(self, alphas: FloatArray, scalings: list[str], settings: Settings) -> FloatArray:
        """Held-out mean divergences (n_scalings, n_alphas, n_folds)."""
        n_folds = self.folds.n_folds
        pairs = [(scaling, fold) for scaling in scalings for fold in range(n_folds)]
        together = max(1, MOST_NUMBERS // ((NUMBERS_OF_A_SEARCH + len(alphas)) * self.of_all.target.size))
        scores = [
            self._scores_of(pairs[first : first + together], alphas, settings)
            for first in range(0, len(pairs), together)
        ]
        return np.concatenate(scores).reshape(len(scalings), n_folds, len(alphas)).transpose(0, 2, 1)

    def _scores_of(self, pairs: list[tuple[str, int]], alphas: FloatArray, settings: Settings) -> FloatArray:
        """Held-out mean divergences (n_pairs, n_alphas) of some scalings and folds, which share each pass."""
        totals = np.array([moments.total for moments in self.without])

        def answer(requests: Mapping[int, Request]) -> dict[int, tuple[float, FloatArray, FloatArray]]:
            sums = self.rows.sum(_fold_sums, list(requests.values()), self.folds, totals, labels=False)
            parts = zip(*sums, strict=True)
            return {
                job: (float(part), gradient, mean) for job, (part, gradient, mean) in zip(requests, parts, strict=True)
            }

        paths = run_together([self._job(scaling, fold, alphas, settings) for scaling, fold in pairs], answer)
        to_score = [(fold, U, b) for (_, fold), (U, b) in zip(pairs, paths, strict=True)]
        held_out = np.array([moments.total for moments in self.of_folds])
        (scores,) = self.rows.sum(_held_out_sums, to_score, self.folds, held_out)
        return np.asarray(scores)

    def _job(
        self, scaling: str, fold: int, alphas: FloatArray, settings: Settings
    ) -> Callable[[Callable[[Request], Any]], tuple[FloatArray, FloatArray]]:
        """The path of one fold and scaling: weights of the features as they are, and intercepts, for each alpha."""
        moments = self.without[fold]

        def job(ask: Callable[[Request], Any]) -> tuple[FloatArray, FloatArray]:
            def evaluate(U: FloatArray, b: FloatArray | None) -> tuple[float, FloatArray, FloatArray]:
                return ask((fold, U, np.asarray(b)))

            U = np.empty((len(alphas), *moments.target.shape))
            b = np.empty((len(alphas), len(moments.mass)))
            for place, weights, intercept in scaled_path(evaluate, moments, alphas, scaling, settings):
                U[place], b[place] = weights, intercept
            return U, b

        return job

    def fit(self, alpha: float, scaling: str, settings: Settings) -> tuple[Weights, FloatArray]:
        """Fit all rows; see `fit_scaled`."""
        return fit_scaled(pass_over(self.rows, self.of_all), self.of_all, alpha, scaling, settings)


def fold_rows(rows: Rows, n_folds: int) -> FoldedRows | None:
    """Put rows into folds and read their moments; None if the rows of a fold are too few for that."""
    count = rows.n_rows
    if count is None or rows.layout.has_weight:
        count = int(rows.sum(_count, labels=False)[0])
    if n_folds > count:
        raise ValueError(
            f"cv={n_folds} folds need at least {n_folds} rows with weight, but there are n_samples={count}. Set a "
            "smaller cv, or use SABFGS with an alpha of your choice."
        )
    if few_rows(count - -(-count // n_folds), rows.n_features):
        return None
    folds = Folds.shuffled(n_folds, count)
    return FoldedRows(rows, folds, read_moments(rows, folds, about_mean=True))


def fold_settings(settings: Settings, tol: float) -> Settings:
    """Settings of the fits of the folds."""
    return replace(settings, tol=max(settings.tol, tol))


def _count(chunk: Chunk) -> Sums:
    return (len(chunk),)


def _fold_sums(chunk: Chunk, requests: list[Request], folds: Folds, totals: FloatArray) -> Sums:
    """What one chunk contributes to the evaluations of several searches, each of which leaves one fold out."""
    order, ends = folds.sorted_by_fold(chunk)
    X, weight = chunk.X[order], chunk.weights()[order]
    outcomes = []
    for fold, U, b in requests:
        log_partition, gradient, mean = 0.0, np.zeros(U.shape), np.zeros(U.shape[1])
        for some in (slice(0, ends[fold]), slice(ends[fold + 1], None)):
            if X[some].shape[0]:
                part, products, sums = sums_of_rows(X[some], weight[some] / totals[fold], U, b)
                log_partition, gradient, mean = log_partition + part, gradient + products, mean + sums
        outcomes.append((log_partition, gradient, mean))
    return tuple(np.stack([np.asarray(outcome[k]) for outcome in outcomes]) for k in range(3))


def _held_out_sums(
    chunk: Chunk, paths: list[tuple[int, FloatArray, FloatArray]], folds: Folds, totals: FloatArray
) -> Sums:
    """What one chunk contributes to the held-out divergences (n_paths, n_alphas)."""
    scores = np.zeros((len(paths), len(paths[0][1])))
    weights = chunk.weights()
    for fold, some in enumerate(folds.segments(chunk)):
        if not some.X.shape[0]:
            continue
        D, weight = np.asarray(some.D), weights[some.rows] / totals[fold]
        weighted = D * weight[:, None]
        minus_entropy = -float(weight @ entropy(D))
        for number, (left_out, U, b) in enumerate(paths):
            if left_out == fold:
                for place in range(len(U)):
                    log_P = log_softmax(some.X @ U[place] + b[place])
                    scores[number, place] = minus_entropy - float(np.vdot(weighted, log_P))
    return (scores,)

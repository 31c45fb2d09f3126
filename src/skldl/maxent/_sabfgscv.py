"""SABFGSCV: the maximum entropy model with its penalty chosen by cross-validation and features scaled inside."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs

from skldl.base import MISSING, PartialLDL, kept_rows, unchanged_on_failure
from skldl.chunks import Chunk, Rows
from skldl.chunks._arrays import CheckedRows, in_memory
from skldl.chunks._rows import Sums
from skldl.exceptions import DataError, Parameter, WordedError
from skldl.maxent._blocks import in_threads
from skldl.maxent._folds import ALL_TOGETHER, MAX_SHUFFLED, Folds, take
from skldl.maxent._moments import Moments, few_rows, merged, products_of, read_moments
from skldl.maxent._objective import CrossEntropy, Passes, probabilities
from skldl.maxent._sabfgs import ALPHA
from skldl.maxent._search import (
    Problem,
    Settings,
    Weights,
    fit,
    fit_path,
    fit_path_of_rows,
    fit_rows,
    informative_rows,
    precise_rows,
)
from skldl.maxent._whitening import factorise_moments
from skldl.selection._folds import pairs_of
from skldl.utils.arrays import computing_on, is_device_array, namespace, take_rows
from skldl.utils.missing import COMPLETE, informative
from skldl.utils.parameters import BOOLEAN, COUNT, FOLDS, N_JOBS, NONE, NOT_NEGATIVE, one_of, sequence_of
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_groups

Split = tuple[IntArray, IntArray]
"""Positions of the rows to train on and to hold out."""

DEFAULT_ALPHAS = tuple(float(alpha) for alpha in np.logspace(-5, 3, 17))
MAX_KEPT_NUMBERS = 20_000_000
"""Predictions (rows × labels × alphas) up to which those of the chosen alpha are stored; chosen by hand."""
FOLD_TOL = 1e-6
"""Smallest ``tol`` of the fits of the folds: held-out divergences of two alphas differ by far more than this."""
NUMBERS_OF_A_SEARCH = 40
"""Arrays of the size of the weights that a search keeps: L-BFGS has 20 steps and as many changes of the gradient."""
MAX_NUMBERS = 1 << 28
"""Numbers that searches which share passes may keep together (2 GiB); with very many weights fewer run side by side."""


class SABFGSCV(PartialLDL):
    """Maximum entropy model whose penalty is chosen by cross-validation: the model to begin with.

    The model is that of `skldl.SABFGS` [1]_ with an intercept and with features that are scaled internally, so that the
    penalty treats them alike. In each fold all ``alphas`` share one factorisation of the training rows, and each fit
    begins where the one before ended. The alpha with the smallest held-out Kullback-Leibler divergence is chosen,
    and the model is fitted again on all rows. The largest default alphas predict the mean distribution, so the result
    is never much worse than that.

    Parameters
    ----------
    alphas : sequence of float, default=None
        Penalties to choose from. None means 17 values from 1e-5 to 1e3, two per decade.
    cv : int, splitter or iterable of (train, test) pairs, default=5
        Splitting strategy. A number of folds splits the rows at random, identically in each fit. Splitters of
        scikit-learn can be used, those for groups if ``groups`` is passed to ``fit``. Pairs hold row numbers or masks;
        a row that appears several times counts that often. With ``groups`` passed to ``fit``, a number of folds keeps
        the rows of each group together.
    scaling : {"auto", "standard", "mixed", "raw"}, default="auto"
        How features are scaled inside. "standard" divides each by its standard deviation, "raw" leaves them as they
        are, and "mixed" leaves features with two values, or with more than 90 % zeros, and divides the others: rare
        features would become large otherwise. "auto" tries "standard", and "mixed" if it differs, and chooses the one
        with the smaller held-out divergence.
    one_standard_error : bool, default=False
        Whether to choose the largest alpha whose divergence is within one standard error (over folds) of the smallest.
    max_iter : int, default=1000
        Maximum number of steps for each alpha.
    tol : float, default=1e-8
        Largest estimated excess of the mean Kullback-Leibler divergence over the optimum in the final fit; see
        `skldl.SABFGS`.
    n_jobs : int, default=None
        Number of threads that work on blocks of dense rows in memory, or on splits that are no folds; None is one, -1
        all cores. It changes no digit of the result.
    missing : {"auto", "degrees", "renormalised"}, default="auto"
        Meaning of NaN in y; see `skldl.SABFGS`. The held-out divergence is that of the observed degrees.

    Attributes
    ----------
    alpha_ : float
        The alpha chosen.
    alphas_ : ndarray of shape (n_alphas,)
        The alphas tried.
    scaling_ : str
        The scaling used.
    cv_scores_ : ndarray of shape (n_alphas, n_folds)
        Held-out mean Kullback-Leibler divergence with that scaling: lower is better.
    oof_predictions_ : ndarray of shape (n_samples, n_labels)
        Predictions of each row of positive weight by the model of its fold, at the chosen alpha; only if the folds hold
        out each row once, and up to 20 million numbers over all alphas.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights of the unscaled features, one row for each label; each column sums to zero.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts, which sum to zero.
    n_iter_ : int
        Number of steps of the final fit.
    loss_curve_ : list of float
        The loss of the final fit at the start and after each step.
    missing_ : {"complete", "degrees", "renormalised"}
        Meaning of NaN in y; "complete" if there was none, or if all missing degrees follow from the other cells.

    Notes
    -----
    A row with weight two is not exactly the same as the row twice: two copies can be in different folds.

    All folds and scalings share each pass over the rows. For rows in chunks ``cv`` is a number of folds: up to
    4,194,304 rows they are the same folds as in memory; beyond that a hash of its position assigns a row to a fold, and
    nothing is stored for each row. There are no ``oof_predictions_``, unless rows are so few that they are fitted in
    memory.

    See Also
    --------
    skldl.SABFGS : One alpha, the paper's objective by default.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl import SABFGSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 3))
    >>> D = np.exp(X @ [[1.0, 0.0], [0.0, 0.5], [0.0, 0.0]] + 0.1 * rng.normal(size=(60, 2)))
    >>> D /= D.sum(axis=1, keepdims=True)
    >>> model = SABFGSCV().fit(X, D)
    >>> model.alpha_ < 0.1
    True
    >>> model.cv_scores_.shape
    (17, 5)
    >>> model.score(X, D) > -0.01
    True
    """

    _array_api = True
    _linear_scores = True
    _onnx = "linear"
    _constraints: ClassVar = {
        "alphas": NONE | sequence_of(ALPHA) | ALPHA,
        "cv": FOLDS,
        "scaling": one_of("auto", "standard", "mixed", "raw"),
        "one_standard_error": BOOLEAN,
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "n_jobs": N_JOBS,
        "missing": MISSING,
    }

    def __init__(
        self,
        alphas: Sequence[float] | None = None,
        *,
        cv: Any = 5,
        scaling: str = "auto",
        one_standard_error: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-8,
        n_jobs: int | None = None,
        missing: str = "auto",
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.scaling = scaling
        self.one_standard_error = one_standard_error
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.missing = missing

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Choose alpha and fit.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features), or Rows
            Features; or rows that are read in chunks, with their distributions and weights, from `skldl.chunks`.
        y : array-like or DataFrame of shape (n_samples, n_labels), default=None
            Label distributions: non-negative rows that sum to one. None if X is a `skldl.chunks.Rows`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, in training and in the held-out divergence; None means that all count the same.
        groups : array-like of shape (n_samples,), default=None
            Group of each row; rows of one group are held out together.

        Returns
        -------
        self
            The fitted estimator.
        """
        if isinstance(X, Rows):
            if groups is not None:
                raise DataError("groups need all rows in memory. Leave them out, or pass X and y as arrays.")
            return super().fit(X, y, sample_weight)
        with unchanged_on_failure(self), computing_on(X, "SABFGSCV.fit"):
            X, D, weight = self._check_training_set(X, y, sample_weight)
            kept, n_samples = kept_rows(sample_weight, D.shape[0])
            self._learn(CheckedRows(X, D, weight), self._folds(D.shape[0], groups, kept, n_samples))
        return self

    def _fit_rows(self, rows: Rows) -> None:
        if isinstance(rows, CheckedRows):
            n_rows = len(rows.chunk)
            self._learn(rows, self._folds(n_rows, None, np.arange(n_rows), n_rows))
            return
        if not isinstance(self.cv, Integral):
            raise DataError(
                Parameter("cv", self.cv), ", but rows in chunks need a number of folds. Set one, or pass arrays."
            )
        n_folds, count = int(self.cv), rows.n_rows
        if count is None or rows.layout.has_weight:  # rows of zero weight are in no fold
            count = int(rows.sum(_count, labels=False)[0])
        _check_folds(n_folds, count)
        self._learn(rows, Folds(n_folds) if count > MAX_SHUFFLED else Folds.shuffled(n_folds, count))

    def _learn(self, rows: Rows, folds: Folds | list[Split]) -> None:
        """Choose scaling and alpha by folds, or by splits that are not a partition, and fit all rows."""
        alphas, settings = self._alphas(), self._settings()
        loose = replace(settings, tol=max(settings.tol, FOLD_TOL))
        trials = _make_trials(rows, folds, loose)
        scalings = [self.scaling]
        if self.scaling == "auto":
            scalings = ["standard", "mixed"] if trials.of_all.rare_columns().any() else ["standard"]
        outcomes = trials.run(alphas, scalings)
        best = min(outcomes, key=lambda outcome: outcome.scores.mean(axis=1).min())
        position = _choose(alphas, best.scores, self.one_standard_error)
        self.alphas_, self.scaling_, self.cv_scores_ = alphas, best.scaling, best.scores
        self.alpha_ = float(alphas[position])
        self._keep_predictions(trials, [path[position] for path in best.paths])
        weights = trials.fit(self.alpha_, best.scaling, settings)
        weights.warn_unless_converged(type(self).__name__, self.alpha_, settings)
        self.coef_ = np.ascontiguousarray(weights.W.T)
        self.intercept_ = weights.b
        self.n_iter_ = weights.run.n_iter
        self.loss_curve_ = weights.run.loss_curve

    def _keep_predictions(self, trials: "Trials", weights: "Path") -> None:
        """Store the held-out predictions if there are any, and remove those of a previous fit."""
        self.__dict__.pop("oof_predictions_", None)
        rows = trials.rows
        if not isinstance(rows, CheckedRows):
            return
        if len(self.alphas_) * len(rows.chunk) * self.n_labels_ > MAX_KEPT_NUMBERS:
            return
        held_out = trials.predictions(weights)
        if held_out is not None:
            self.oof_predictions_ = held_out

    def _alphas(self) -> FloatArray:
        return np.atleast_1d(np.asarray(DEFAULT_ALPHAS if self.alphas is None else self.alphas, dtype=np.float64))

    def _settings(self) -> Settings:
        return Settings(
            True, True, "lbfgs", int(self.max_iter), float(self.tol), self.missing_, effective_n_jobs(self.n_jobs)
        )

    def _folds(self, n_rows: int, groups: Any, kept: IntArray, n_samples: int) -> Folds | list[Split]:
        """Folds of the rows with positive weight; (train, test) pairs if these are not a partition of the rows."""
        cv, codes = self.cv, check_groups(groups, kept, n_samples)
        if isinstance(cv, Integral):
            _check_folds(int(cv), n_rows)
            return Folds.shuffled(int(cv), n_rows, codes)
        if hasattr(cv, "split"):  # it splits the rows with positive weight, and receives the groups as they were passed
            of_rows = None if groups is None else np.asarray(groups)[kept]
            splits = _splits_of(cv.split(np.empty((n_rows, 1)), groups=of_rows), np.arange(n_rows), n_rows)
        else:
            splits = _splits_of(cv, kept, n_samples)
        return Folds.of_splits(splits, n_rows) or splits

    def _predict(self, X: Any) -> FloatArray:
        return probabilities(X, self.coef_.T, self.intercept_)


Path = list[tuple[FloatArray, FloatArray]]
"""Weights of the features and intercepts for each alpha."""


@dataclass
class Outcome:
    """The fits of all splits with one scaling.

    Attributes
    ----------
    scaling : str
        The scaling.
    paths : list of Path
        The weights of each split.
    scores : ndarray of shape (n_alphas, n_splits)
        Mean divergence on the rows that each split holds out.
    """

    scaling: str
    paths: list[Path]
    scores: FloatArray


class Trials:
    """Fits of many alphas and scalings on splits of rows.

    Parameters
    ----------
    rows : Rows
        The rows.
    settings : Settings
        Settings of the fits of the splits.
    of_all : Moments
        Moments of all rows: the variances, and which columns are rare.
    """

    def __init__(self, rows: Rows, settings: Settings, of_all: Moments) -> None:
        self.rows, self.settings, self.of_all = rows, settings, of_all

    def run(self, alphas: FloatArray, scalings: list[str]) -> list[Outcome]:
        """Fit all alphas on all splits, once for each scaling."""
        raise NotImplementedError

    def predictions(self, weights: Path) -> Any:
        """Held-out predictions of all rows, in their order; None unless each row is held out exactly once.

        On a device they have the precision of the rows.
        """
        raise NotImplementedError

    def fit(self, alpha: float, scaling: str, settings: Settings) -> Weights:
        """Fit all rows."""
        raise NotImplementedError


class FoldTrials(Trials):
    """Trials on folds of rows: one pass computes the moments of all folds, and all searches share each pass.

    Rows with too few observed degrees to learn from are used for the scaling only.

    Parameters
    ----------
    rows : Rows
        The rows.
    folds : Folds
        Their folds.
    settings : Settings
        Settings of the fits of the folds.
    order : ndarray of shape (n_rows,), default=None
        The original position of each row, if the rows were sorted by their folds.
    """

    def __init__(self, rows: Rows, folds: Folds, settings: Settings, order: IntArray | None = None) -> None:
        self.folds, self.order = folds, order
        precise = precise_rows(rows)  # predictions keep the precision of the rows
        self.of_folds = self.of_learners = _moments_of(precise, folds, settings)
        super().__init__(rows, settings, merged(self.of_folds))
        self.learners, self.learner_folds = informative_rows(precise, settings.missing), folds
        if self.learners is not precise:
            kept = informative(np.asarray(in_memory(rows).chunk.D), settings.missing)
            self.learner_folds = folds.without(kept)
            self.of_learners = _moments_of(self.learners, self.learner_folds, settings)
        self.passes = Passes(
            self.learners, self.learner_folds, self.of_all.largest, settings.missing, settings.n_threads
        )

    def run(self, alphas: FloatArray, scalings: list[str]) -> list[Outcome]:
        tasks = [(fold, scaling) for fold in range(self.folds.n_folds) for scaling in scalings]
        size = (NUMBERS_OF_A_SEARCH + len(alphas)) * self.of_all.target.size + self.of_all.products.size
        together = max(1, MAX_NUMBERS // size)
        paths: list[Path] = []
        for first in range(0, len(tasks), together):
            some = tasks[first : first + together]
            searches = [fit_path(self._problem(*task), list(alphas), self.settings) for task in some]
            uses = np.array([np.arange(self.folds.n_folds) != fold for fold, _ in some])
            found = self.passes.run_together(searches, uses)
            paths += [[(weights.W, weights.b) for weights in path] for path in found]
        scores = self._scores(paths, [fold for fold, _ in tasks])
        n_scalings = len(scalings)
        return [Outcome(scaling, paths[k::n_scalings], scores[k::n_scalings].T) for k, scaling in enumerate(scalings)]

    def _problem(self, fold: int, scaling: str) -> Problem:
        """The problem of all rows except those of one fold (-1: of all rows)."""
        others = [k for k in range(self.folds.n_folds) if k != fold]
        moments = merged([self.of_learners[k] for k in others])
        of_scaling = moments if self.of_learners is self.of_folds else merged([self.of_folds[k] for k in others])
        factors = of_scaling.factors(scaling)
        objective = _objective(moments, factors, self.learners, self.learner_folds, others, self.settings.missing)
        return Problem(objective, factorise_moments(moments, factors, fit_intercept=True), self.passes)

    def _scores(self, paths: list[Path], held_out: list[int]) -> FloatArray:
        """Mean divergences (n_paths, n_alphas) on the fold that each path holds out, in one pass."""
        W, b = (np.stack([part[k] for path in paths for part in path]) for k in (0, 1))
        uses = np.repeat(np.equal.outer(held_out, np.arange(self.folds.n_folds)), len(paths[0]), axis=0)
        sums = self.passes.sums(uses, W, b, gradient=False)
        scores = np.zeros(len(W))
        for fold, moments in enumerate(self.of_learners):
            if moments.n_rows:
                used, missing = uses[:, fold], self.settings.missing
                objective = _objective(moments, None, self.learners, self.learner_folds, [fold], missing)
                scores[used] = objective.divergences(sums, W, b)[used]
        return scores.reshape(len(paths), -1)

    def predictions(self, weights: Path) -> Any:
        assert isinstance(self.rows, CheckedRows)
        assert self.order is not None
        segments = self.folds.segments(self.rows.chunk)
        return _in_order([probabilities(some.X, *own) for some, own in zip(segments, weights, strict=True)], self.order)

    def fit(self, alpha: float, scaling: str, settings: Settings) -> Weights:
        problem = self._problem(-1, scaling)
        problem.passes = replace(self.passes, folds=ALL_TOGETHER)
        return problem.passes.run(fit(problem, alpha, settings))


class SplitTrials(Trials):
    """Trials on splits of rows in memory, one split after the other.

    For splits that are not a partition, and for rows so few that they are fitted in the space of the rows.
    """

    def __init__(self, rows: Rows, splits: list[Split], settings: Settings) -> None:
        rows = rows if isinstance(rows, CheckedRows) else in_memory(rows)
        super().__init__(rows, settings, _moments_of(rows, ALL_TOGETHER, settings, products="variances")[0])
        self.splits, self.chunk = splits, rows.chunk

    def run(self, alphas: FloatArray, scalings: list[str]) -> list[Outcome]:
        alone = replace(self.settings, n_threads=1)  # the threads are for the splits

        def of_split(split: Split) -> list[tuple[Path, FloatArray]]:
            train, test = (_rows_of(take(self.chunk, part)) for part in split)
            (moments,) = _moments_of(train, ALL_TOGETHER, alone, products="variances")
            held_out = informative_rows(test, self.settings.missing)
            found = []
            for scaling in scalings:
                path = fit_path_of_rows(train, list(alphas), alone, moments.factors(scaling))
                found.append(([(weights.W, weights.b) for weights in path], self._scores(path, held_out)))
            return found

        by_split = list(in_threads(of_split, self.splits, self.settings.n_threads))
        outcomes = []
        for k, scaling in enumerate(scalings):
            paths, scores = zip(*(found[k] for found in by_split), strict=True)
            outcomes.append(Outcome(scaling, list(paths), np.column_stack(scores)))
        return outcomes

    def _scores(self, path: list[Weights], rows: Rows) -> FloatArray:
        """Mean divergence on some rows for each alpha."""
        if not rows.n_rows:
            return np.zeros(len(path))
        (moments,) = _moments_of(rows, ALL_TOGETHER, self.settings, products="none")
        W, b = np.stack([weights.W for weights in path]), np.stack([weights.b for weights in path])
        passes = Passes(rows, missing=self.settings.missing)
        sums = passes.sums(np.ones((len(path), 1), dtype=bool), W, b, gradient=False)
        return _objective(moments, None, rows, ALL_TOGETHER, [0], passes.missing).divergences(sums, W, b)

    def predictions(self, weights: Path) -> Any:
        tests = [test for _, test in self.splits]
        order = np.concatenate(tests)
        if not np.array_equal(np.sort(order), np.arange(len(self.chunk))):
            return None
        X = self.chunk.X
        return _in_order([probabilities(take_rows(X, t), *own) for t, own in zip(tests, weights, strict=True)], order)

    def fit(self, alpha: float, scaling: str, settings: Settings) -> Weights:
        return fit_rows(self.rows, alpha, settings, factors=self.of_all.factors(scaling))


def _make_trials(rows: Rows, folds: Folds | list[Split], settings: Settings) -> Trials:
    """Choose the class of the trials."""
    if isinstance(folds, list):
        return SplitTrials(rows, folds, settings)
    if folds.fold_of is not None:
        learners: Any = slice(None)
        if settings.missing != COMPLETE:
            learners = informative(np.asarray(in_memory(rows).chunk.D), settings.missing)
        counts = np.bincount(folds.fold_of[learners])
        if few_rows(int(counts.sum() - counts.max()), rows):
            return SplitTrials(rows, list(pairs_of(folds.fold_of)), settings)
    if not isinstance(rows, CheckedRows):
        return FoldTrials(rows, folds, settings)
    order, folds = folds.in_order(len(rows.chunk))  # so that the rows of a fold are a slice in each pass
    return FoldTrials(_rows_of(take(rows.chunk, order)), folds, settings, order)


def _count(chunk: Chunk) -> Sums:
    return (len(chunk),)


def _check_folds(n_folds: int, count: int) -> None:
    if n_folds > count:
        raise WordedError(
            Parameter("cv", n_folds),
            f" folds need at least {n_folds} rows with weight, but there are n_samples={count}. Set a smaller cv, or "
            "use SABFGS with an alpha of your choice.",
        )


def _splits_of(cv: Any, kept: IntArray, n_samples: int) -> list[Split]:
    """The (train, test) pairs of cv as positions among the rows with positive weight."""
    splits: list[Split] = []
    for fold, pair in enumerate(_items(cv, "cv")):
        parts = list(_items(pair, f"Item {fold} of cv"))
        if len(parts) != 2:
            raise WordedError(f"Item {fold} of cv holds {len(parts)} parts, not two: pass (train, test) pairs.")
        train, test = (
            _positions_of(rows, kept, n_samples, f"{name} of cv pair {fold}")
            for name, rows in zip(("train", "test"), parts, strict=True)
        )
        splits.append((train, test))
    if not splits:
        raise WordedError(
            "cv holds no (train, test) pair. Pass at least one, or a number of folds. An iterator yields its pairs "
            "only once: pass a list to fit again."
        )
    return splits


def _items(values: Any, name: str) -> Iterator[Any]:
    """Iterate over values; raise if they cannot be (train, test) pairs."""
    try:
        return iter(values)
    except TypeError:
        raise WordedError(
            f"{name} is {values!r}: pass (train, test) pairs of row numbers, a splitter, or a number of folds."
        ) from None


def _positions_of(rows: Any, kept: IntArray, n_samples: int, where: str) -> npt.NDArray[np.intp]:
    """Map row numbers, or a mask, to positions among the rows with positive weight; repeated rows stay repeated."""
    rows = np.asarray(rows)
    if rows.dtype == bool and rows.shape == (n_samples,):
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise WordedError(
            f"{where} has shape {rows.shape} and type {rows.dtype}: pass row numbers, or a mask of {n_samples} rows."
        )
    if rows.size and not (rows.min() >= 0 and rows.max() < n_samples):
        wrong = rows[(rows < 0) | (rows >= n_samples)][0]
        raise WordedError(f"{where} holds row {wrong}, but rows are numbered from 0 to {n_samples - 1}.")
    position = np.full(n_samples, -1, dtype=np.intp)
    position[kept] = np.arange(len(kept))
    positions = position[rows.astype(np.intp)]
    positions = positions[positions >= 0]
    if not positions.size:
        raise WordedError(f"{where} is empty (rows without weight do not count). Each part needs at least one row.")
    return positions


def _rows_of(chunk: Chunk) -> CheckedRows:
    return CheckedRows(chunk.X, chunk.D, chunk.weight)


def _moments_of(rows: Rows, folds: Folds, settings: Settings, *, products: str | None = None) -> list[Moments]:
    products = products or products_of(rows)
    return read_moments(rows, folds, centred=True, products=products, facts=True, n_threads=settings.n_threads)


def _objective(
    moments: Moments, factors: FloatArray | None, rows: Rows, folds: Folds, used: list[int], missing: str
) -> CrossEntropy:
    """The objective of the rows of some folds, whose moments these are."""
    objective = CrossEntropy.of(moments, factors, fit_intercept=True)
    if missing == COMPLETE:
        return objective
    chunk = in_memory(rows).chunk
    some = np.isin(folds.of(0, len(chunk)), used) if folds.n_folds > 1 else np.ones(len(chunk), dtype=bool)
    return objective.with_missing(np.asarray(chunk.D)[some], chunk.weights()[some], missing)


def _in_order(parts: list[Any], order: IntArray) -> Any:
    """Concatenate tables of rows and restore the original order of the rows, given their original positions."""
    back = np.argsort(order)
    if not is_device_array(parts[0]):
        return np.concatenate(parts)[back]
    return take_rows(namespace(parts[0]).concat(parts), back)


def _choose(alphas: FloatArray, scores: FloatArray, one_standard_error: bool) -> int:
    """Position of the best alpha; of the largest among equals."""
    means = scores.mean(axis=1)
    bound = means.min()
    if one_standard_error and scores.shape[1] > 1:
        bound += scores[means.argmin()].std(ddof=1) / np.sqrt(scores.shape[1])
    return int(np.argmax(np.where(means <= bound, alphas, -np.inf)))

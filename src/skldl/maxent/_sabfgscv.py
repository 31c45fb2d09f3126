"""SABFGSCV: the maximum entropy model with its penalty chosen by cross-validation and features scaled inside."""

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed
from scipy import sparse

from skldl.base import MISSING, PartialLDL, kept_rows
from skldl.chunks import Rows
from skldl.chunks._arrays import in_memory
from skldl.exceptions import DataError
from skldl.maxent._device_selection import device_rare_columns, fit_on_device, held_out_on_device, together
from skldl.maxent._feature_scaling import rare_columns, scaling_factors
from skldl.maxent._fitting import Settings, Weights, fit_path, fit_weights
from skldl.maxent._objective import probabilities, row_weights
from skldl.maxent._rows_objective import few_rows
from skldl.maxent._rows_selection import fold_rows, fold_settings
from skldl.maxent._sabfgs import ALPHA
from skldl.maxent._splits import Split, holds_out_once, splits_of
from skldl.maxent._whitening import column_deviations
from skldl.selection._folds import pairs_of, shuffled_folds
from skldl.utils.arrays import as_type_of, computing_on, is_device_array, rows_on_host
from skldl.utils.groups import check_groups
from skldl.utils.missing import has_gaps, informative, row_divergences
from skldl.utils.parameters import BOOLEAN, COUNT, FOLDS, N_JOBS, NONE, NOT_NEGATIVE, one_of, sequence_of
from skldl.utils.scaling import two_valued_columns
from skldl.utils.simplex import entropy, log_softmax
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_weights

DEFAULT_ALPHAS = tuple(float(alpha) for alpha in np.logspace(-5, 3, 17))
MOST_KEPT_NUMBERS = 20_000_000
FOLD_TOL = 1e-6  # the choice of alpha does not see smaller differences


class SABFGSCV(PartialLDL):
    """Maximum entropy model whose penalty is chosen by cross-validation: the model to begin with.

    The model is that of `skldl.SABFGS` [1]_ with an intercept and with features scaled inside, so that the penalty
    treats them alike. For each fold, the whole path of ``alphas`` comes from one factorisation of the training rows,
    each fit beginning where the one before ended. The alpha with the least held-out Kullback-Leibler divergence is
    taken, and the model is fitted again on all rows. The largest default alphas predict the mean distribution, so the
    choice is never much worse than that.

    Parameters
    ----------
    alphas : sequence of float, default=None
        Penalties to choose from. None takes 17 from 1e-5 to 1e3, two per decade.
    cv : int, splitter or iterable of (train, test) pairs, default=5
        How to split. A number of folds splits the rows at random, the same way in every fit; any splitter of
        scikit-learn does too, those for groups with ``groups`` given to ``fit``. In pairs, rows are numbers or masks; a
        row that is given more than once counts that often. With ``groups`` given to ``fit``, a number of folds keeps
        the rows of each group together.
    scaling : {"auto", "standard", "mixed", "raw"}, default="auto"
        How features are scaled inside. "standard" divides each by its standard deviation, "raw" leaves them as they
        are, and "mixed" leaves features with two values, or with more than nine zeros in ten, and divides the others:
        rare features would grow large otherwise. "auto" tries "standard", and "mixed" where it differs, and takes the
        one with the lesser held-out divergence.
    one_standard_error : bool, default=False
        Whether to take the largest alpha whose divergence is within one standard error (over folds) of the least.
    max_iter : int, default=1000
        Largest number of steps for each alpha.
    tol : float, default=1e-8
        Largest estimated excess of the mean Kullback-Leibler divergence over the optimum in the final fit; see
        `skldl.SABFGS`.
    n_jobs : int, default=None
        Number of folds to work on at once, through joblib.
    missing : {"auto", "degrees", "renormalised"}, default="auto"
        What NaN in y means; see `skldl.SABFGS`. The held-out divergence is that of what was observed, too.

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
        Predictions of each row of positive weight by the model of its fold, at the chosen alpha; only where the folds
        hold out each row once, and up to 20 million numbers over all alphas.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights of the features as they came in, one row for each label; each column sums to zero.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts, which sum to zero.
    n_iter_ : int
        Number of steps of the final fit.
    loss_curve_ : list of float
        The loss of the final fit at the start and after each step.
    missing_ : {"complete", "degrees", "renormalised"}
        What NaN in y means; "complete" if there was none, or none that does not follow from the other cells.

    Notes
    -----
    A row with weight two is not quite the same row twice: the two copies can fall into different folds.

    Rows in chunks take a number of folds. Up to 4,194,304 rows the folds are those in memory, and so are the scores up
    to rounding; beyond that a hash of its position says which fold a row belongs to, and nothing is kept for each row.
    All folds and scalings share each pass over the rows. There are no ``oof_predictions_``; ``n_jobs`` has no effect.

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
        with self._unchanged_on_failure(), computing_on(X, "SABFGSCV.fit"):
            X, D, weight = self._check_training_set(X, y, sample_weight)
            kept, n_samples = kept_rows(sample_weight, D.shape[0])
            self._select(X, D, weight, self._splits(D.shape[0], groups, kept, n_samples))
        return self

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        n_rows = D.shape[0]
        self._select(X, D, sample_weight, self._splits(n_rows, None, np.arange(n_rows), n_rows))

    def _select(self, X: Any, D: FloatArray, sample_weight: FloatArray | None, splits: list[Split]) -> None:
        alphas, settings = self._alphas(), self._settings()
        if is_device_array(X):
            self._select_on_device(X, D, sample_weight, splits, alphas, settings)
            return
        keep = len(alphas) * D.size <= MOST_KEPT_NUMBERS and holds_out_once(splits, len(D))
        candidates = self._scalings(_rare_columns(X) if self.scaling == "auto" else np.zeros(0, dtype=bool))
        loose = fold_settings(settings, FOLD_TOL)
        outcomes = Parallel(n_jobs=self.n_jobs)(
            delayed(_held_out)(X, D, sample_weight, *split, alphas, loose, scaling, keep)
            for scaling in candidates
            for split in splits
        )
        by_scaling = [outcomes[start : start + len(splits)] for start in range(0, len(outcomes), len(splits))]
        scores = [np.column_stack([divergences for divergences, _ in folds]) for folds in by_scaling]
        best, place = self._choose(alphas, candidates, scores)
        if keep:
            self.oof_predictions_ = np.empty_like(D)
            for (_, test), (_, predictions) in zip(splits, by_scaling[best], strict=True):
                self.oof_predictions_[test] = predictions[place]
        scaled, inverse = _scaled(X, sample_weight, self.scaling_)
        self._store(fit_weights(scaled, D, sample_weight, self.alpha_, settings), inverse, settings)

    def _select_on_device(
        self, X: Any, D: Any, sample_weight: Any, splits: list[Split], alphas: FloatArray, settings: Settings
    ) -> None:
        """The same on a device, one fold after the other; few rows of many features on the host."""
        n_rows, n_labels = D.shape
        if few_rows(min(len(train) for train, _ in splits), X.shape[1]):
            self._select(*rows_on_host(X, D, sample_weight), splits)
            if hasattr(self, "oof_predictions_"):
                self.oof_predictions_ = as_type_of(self.oof_predictions_, X)
            return
        keep = len(alphas) * n_rows * n_labels <= MOST_KEPT_NUMBERS and holds_out_once(splits, n_rows)
        candidates = self._scalings(device_rare_columns(X) if self.scaling == "auto" else np.zeros(0, dtype=bool))
        loose = fold_settings(settings, FOLD_TOL)
        by_scaling = [
            [held_out_on_device(X, D, sample_weight, *split, alphas, loose, scaling, keep) for split in splits]
            for scaling in candidates
        ]
        scores = [np.column_stack([divergences for divergences, _ in folds]) for folds in by_scaling]
        best, place = self._choose(alphas, candidates, scores)
        if keep:
            parts = [predictions[place] for _, predictions in by_scaling[best]]
            self.oof_predictions_ = together([test for _, test in splits], parts)
        self._store(*fit_on_device(X, D, sample_weight, self.alpha_, self.scaling_, settings), settings)

    def _fit_rows(self, rows: Rows) -> None:
        if not isinstance(self.cv, Integral):
            raise DataError(f"cv={self.cv!r}, but rows in chunks take a number of folds. Set one, or pass arrays.")
        folded = fold_rows(rows, int(self.cv))
        if folded is None:  # few rows of many features are whitened in the space of the rows
            chunk = in_memory(rows).chunk
            X, D, weight = chunk.X, np.asarray(chunk.D), chunk.weight
            self._fit(X, D, check_weights(weight, len(D)))
            return
        alphas, settings = self._alphas(), self._settings()
        candidates = self._scalings(folded.of_all.rare_columns())
        scores = folded.held_out_scores(alphas, candidates, fold_settings(settings, FOLD_TOL))
        self._choose(alphas, candidates, list(scores))
        self._store(*folded.fit(self.alpha_, self.scaling_, settings), settings)

    def _alphas(self) -> FloatArray:
        return np.atleast_1d(np.asarray(DEFAULT_ALPHAS if self.alphas is None else self.alphas, dtype=np.float64))

    def _settings(self) -> Settings:
        return Settings(True, True, "lbfgs", int(self.max_iter), float(self.tol), self.missing_)

    def _scalings(self, rare: npt.NDArray[np.bool_]) -> list[str]:
        """The scalings to try, given which columns are rare."""
        if self.scaling != "auto":
            return [self.scaling]
        return ["standard", "mixed"] if rare.any() else ["standard"]

    def _choose(self, alphas: FloatArray, candidates: list[str], scores: list[FloatArray]) -> tuple[int, int]:
        """Choose scaling and alpha from held-out divergences (n_alphas, n_folds) for each scaling; their places."""
        best = int(np.argmin([table.mean(axis=1).min() for table in scores]))
        self.__dict__.pop("oof_predictions_", None)  # those of a fit before
        self.alphas_ = alphas
        self.scaling_ = candidates[best]
        self.cv_scores_ = scores[best]
        place = _choose(alphas, self.cv_scores_, self.one_standard_error)
        self.alpha_ = float(alphas[place])
        return best, place

    def _store(self, weights: Weights, factors: FloatArray, settings: Settings) -> None:
        """Keep the weights of the features as they came in."""
        weights.warn_unless_converged(type(self).__name__, self.alpha_, settings)
        self.coef_ = np.ascontiguousarray(weights.W.T * factors)
        self.intercept_ = weights.b
        self.n_iter_ = weights.run.n_iter
        self.loss_curve_ = weights.run.loss_curve

    def _splits(self, n_rows: int, groups: Any, kept: IntArray, n_samples: int) -> list[Split]:
        """Training and test rows of each fold among the rows kept, which are those with weight."""
        cv, codes = self.cv, check_groups(groups, kept, n_samples)
        if groups is not None:  # splitters see the groups as they were given, not numbered
            groups = np.asarray(groups)[kept]
        if isinstance(cv, Integral):
            if int(cv) > n_rows:
                raise ValueError(
                    f"cv={cv} folds need at least {cv} rows with weight, but there are n_samples={n_rows}. Set a "
                    "smaller cv, or use SABFGS with an alpha of your choice."
                )
            return list(pairs_of(shuffled_folds(n_rows, int(cv), codes, np.random.RandomState(0))))
        pairs = cv
        if hasattr(cv, "split"):  # a splitter sees the rows with weight alone
            pairs, kept, n_samples = cv.split(np.empty((n_rows, 1)), groups=groups), np.arange(n_rows), n_rows
        return splits_of(pairs, kept, n_samples)

    def _predict(self, X: Any) -> FloatArray:
        return probabilities(X, self.coef_.T, self.intercept_)


def _rare_columns(X: Any) -> npt.NDArray[np.bool_]:
    """The rare columns of rows in memory."""
    if sparse.issparse(X):
        n_nonzero = np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    else:
        n_nonzero = np.count_nonzero(X, axis=0)
    return rare_columns(two_valued_columns(X), n_nonzero, X.shape[0])


def _scaled(X: Any, sample_weight: FloatArray | None, scaling: str) -> tuple[Any, FloatArray]:
    """X scaled but not centred, and what its columns were multiplied by; 0 for constant ones."""
    deviations = column_deviations(X, row_weights(X.shape[0], sample_weight))
    factors = scaling_factors(deviations, scaling, lambda: _rare_columns(X))
    return (X.multiply(factors).tocsr() if hasattr(X, "tocsr") else X * factors), factors


def _held_out(
    X: Any,
    D: FloatArray,
    sample_weight: FloatArray | None,
    train: IntArray,
    test: IntArray,
    alphas: FloatArray,
    settings: Settings,
    scaling: str,
    keep: bool,
) -> tuple[FloatArray, FloatArray]:
    """Held-out mean Kullback-Leibler divergence of one fold for each alpha, and the predictions if they are kept."""
    weight = None if sample_weight is None else sample_weight[train]
    scaled, factors = _scaled(X[train], weight, scaling)
    X_test, D_test = X[test], D[test]
    test_weight = row_weights(len(test), None if sample_weight is None else sample_weight[test])
    gaps = has_gaps(D_test)
    if gaps:  # rows without information do not count
        test_weight = test_weight * informative(D_test, settings.reading)
        test_weight /= test_weight.sum() or 1.0
    minus_entropy = 0.0 if gaps else -float(test_weight @ entropy(D_test))
    divergences = np.empty(len(alphas))
    predictions = np.empty((len(alphas), *D_test.shape) if keep else 0)
    for place, weights in fit_path(scaled, D[train], weight, list(alphas), settings):
        log_P = log_softmax(X_test @ (weights.W * factors[:, None]) + weights.b)
        if gaps:
            divergences[place] = float(test_weight @ row_divergences(D_test, log_P, settings.reading))
        else:
            divergences[place] = minus_entropy - float(test_weight @ (D_test * log_P).sum(axis=1))
        if keep:
            predictions[place] = np.exp(log_P)
    return divergences, predictions


def _choose(alphas: FloatArray, scores: FloatArray, one_standard_error: bool) -> int:
    """Place of the best alpha; among equals, of the largest."""
    means = scores.mean(axis=1)
    bound = means.min()
    if one_standard_error and scores.shape[1] > 1:
        bound += scores[means.argmin()].std(ddof=1) / np.sqrt(scores.shape[1])
    return int(np.argmax(np.where(means <= bound, alphas, -np.inf)))

"""GradientBoostingLDL: additive trees behind a softmax, stopped by held-out divergence, bagged over folds."""

from importlib.util import find_spec
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from scipy.special import softmax
from sklearn.utils import check_random_state

from skldl.base import GroupedLDL, kept_rows
from skldl.selection import assign_folds, pairs_of
from skldl.trees._bag import of_all_rows
from skldl.trees._boosting_fold import BoostingSettings, Fold, divergences, log_mean
from skldl.trees._flat_trees import ROWS_AT_ONCE, FlatTrees, single_precision
from skldl.trees._label_order import put_in_order
from skldl.trees._vector_booster import VectorLeafFold
from skldl.utils.parameters import BOOLEAN, COUNT, N_JOBS, NOT_NEGATIVE, POSITIVE, RANDOM_STATE, integer, number, one_of
from skldl.utils.typing import FloatArray, IntArray

ROUNDS_AT_ONCE = 10  # between two evaluations of the held-out divergence
DIGITS = 10  # of the degrees, so that the rounding errors of a division cannot decide between equally good splits
MANY_ROWS = 20_000  # for more rows fewer folds, and at most this many rows for each tree
FEW_ROWS = 5_000  # below, thresholds drawn at random are better than the best ones


class GradientBoostingLDL(GroupedLDL):
    r"""Gradient boosting with a softmax and label distributions as soft targets.

    Scores :math:`F` begin at the logarithm of the mean training distribution; each round [1]_ [2]_ adds
    ``learning_rate`` times trees fitted to the gradient and the (diagonal) Hessian of the Kullback-Leibler divergence
    from :math:`d` to :math:`p = \mathrm{softmax}(F)`,

    .. math:: g_j = p_j - d_j, \qquad h_j = \tfrac{c}{c-1}\, p_j (1 - p_j), \qquad
        \text{leaf value}_j = -\frac{\sum_i g_{ij}}{\lambda + \sum_i h_{ij}} .

    The rows are split into folds. One model is boosted on all rows but those of each fold, all of them round by round;
    the number of rounds is the one with the least mean divergence on the rows held out, and boosting ends after
    ``patience`` rounds without improvement. The prediction is the mean of the models of all folds.

    Two engines grow the trees. "lightgbm" [3]_ (the extra ``boost``: ``pip install 'scikit-ldl[boost]'``) grows one
    tree per label and round on histograms. "sklearn" grows one tree per round for all labels, whose leaves hold a
    vector, and needs no other package. Their divergences were within 2 % of each other on SJAFFE (.0436 and .0445) and
    Natural_Scene (.547 and .545, two folds); at 100,000 rows LightGBM takes 40 % of the time.

    Parameters
    ----------
    max_iter : int, default=500
        Largest number of rounds; 0 predicts the mean distribution.
    learning_rate : float, default=0.1
        Factor of each tree's contribution.
    max_leaf_nodes : int or "auto", default="auto"
        Largest number of leaves of a tree; "auto" is 15 for the engine "lightgbm" and 31 for "sklearn", whose trees
        serve all labels.
    min_samples_leaf : int or "auto", default="auto"
        Least number of rows in a leaf; "auto" is a twentieth of the rows, but at least 3 and at most 20.
    max_features : float or "auto", default="auto"
        Share of the features to consider, drawn for each tree ("lightgbm") or each split ("sklearn"); "auto" is .3, but
        at least eight features.
    subsample : float, default=0.7
        Share of the training rows that each round sees, drawn without replacement. On many rows it is lowered so that a
        round sees at most 20,000.
    l2_regularization : float, default=1.0
        The penalty λ in the leaf values.
    random_splits : bool or "auto", default="auto"
        Whether thresholds are drawn at random, one per feature, instead of taking the best one; "auto" does so for
        less than 5,000 rows.
    n_folds : int or "auto", default="auto"
        Number of folds and of models; "auto" is 5, and 3 for more than 20,000 rows.
    patience : int, default=30
        Rounds without a smaller held-out divergence after which boosting stops.
    engine : {"auto", "lightgbm", "sklearn"}, default="auto"
        What grows the trees; "auto" takes LightGBM if it is installed.
    n_jobs : int, default=None
        Number of folds to work on at once, in threads, through joblib. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Source of the folds, the rows and features that trees see, and random thresholds.

    Attributes
    ----------
    engine_ : str
        The engine that was used.
    n_iter_ : int
        Number of rounds kept.
    oof_curve_ : ndarray of shape (n_rounds + 1,)
        Mean Kullback-Leibler divergence on held-out rows before the first and after each round.
    oof_predictions_ : ndarray of shape (n_samples, n_labels)
        Prediction for each training row by the model that did not see its fold; for rows of weight 0, which no model
        saw, by all of them.
    oof_score_ : float
        Minus the mean Kullback-Leibler divergence of the out-of-fold predictions.
    feature_importances_ : ndarray of shape (n_features,)
        Share of the total gain of all splits that each feature brings; they sum to one.
    trees_ : list
        The trees of each fold's model.
    bases_ : ndarray of shape (n_models, n_labels)
        Logarithm of the mean distribution from which each fold's model starts.
    label_order_ : ndarray of int of shape (n_labels,)
        Order in which the labels are given to the engine.

    Notes
    -----
    The number of rounds is chosen on the rows that ``oof_score_`` judges, so that it is very slightly optimistic.

    Missing values: NaN in dense X is sent to the better side of each split. Categories have to be encoded as numbers.
    Features are compared in single precision. Sparse X gives an equivalent model, but among splits that are equally
    good the engine "sklearn" can take others than on dense X.

    A row with weight two is not quite the same row twice: the two copies are drawn, and fall into folds,
    independently. With ``groups``, all rows of a group are in one fold.

    A fitted model holds its trees as plain arrays and needs LightGBM no longer.

    References
    ----------
    .. [1] J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of Statistics 29, 2001.
    .. [2] C. Xing, X. Geng and H. Xue, "Logistic boosting regression for label distribution learning", CVPR 2016.
    .. [3] G. Ke et al., "LightGBM: a highly efficient gradient boosting decision tree", NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.trees import GradientBoostingLDL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 3))
    >>> D = np.column_stack([X[:, 0], 1 - X[:, 0], np.ones(200)]) / 2
    >>> model = GradientBoostingLDL(100, engine="sklearn", random_state=0).fit(X, D)
    >>> bool(model.oof_curve_[0] > 5 * model.oof_curve_[model.n_iter_])
    True
    >>> int(model.feature_importances_.argmax())
    0
    """

    _allow_nan = True
    oof_predictions_: FloatArray

    _onnx = "boosting"
    _model_parts = (FlatTrees,)
    _constraints: ClassVar = {
        "max_iter": integer(at_least=0),
        "learning_rate": POSITIVE,
        "max_leaf_nodes": one_of("auto") | integer(at_least=2),
        "min_samples_leaf": one_of("auto") | COUNT,
        "max_features": one_of("auto") | number(above=0, at_most=1),
        "subsample": number(above=0, at_most=1),
        "l2_regularization": NOT_NEGATIVE,
        "random_splits": one_of("auto") | BOOLEAN,
        "n_folds": one_of("auto") | integer(at_least=2),
        "patience": COUNT,
        "engine": one_of("auto", "lightgbm", "sklearn"),
        "n_jobs": N_JOBS,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        max_iter: int = 500,
        *,
        learning_rate: float = 0.1,
        max_leaf_nodes: int | str = "auto",
        min_samples_leaf: int | str = "auto",
        max_features: float | str = "auto",
        subsample: float = 0.7,
        l2_regularization: float = 1.0,
        random_splits: bool | str = "auto",
        n_folds: int | str = "auto",
        patience: int = 30,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.subsample = subsample
        self.l2_regularization = l2_regularization
        self.random_splits = random_splits
        self.n_folds = n_folds
        self.patience = patience
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Boost one model for each fold.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features; NaN marks a missing value (dense X only).
        y : array-like or DataFrame of shape (n_samples, n_labels)
            Label distributions: non-negative rows that sum to one.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, in training and in the held-out divergence.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as the person it comes from. All rows of a group are in one fold.

        Returns
        -------
        self
            The fitted estimator.
        """
        super().fit(X, y, sample_weight, groups)
        seen, n_samples = kept_rows(sample_weight, len(self.oof_predictions_))
        if len(seen) < n_samples:  # rows without weight are in no fold
            self.oof_predictions_ = of_all_rows(self, X, self.oof_predictions_, seen, n_samples)
        return self

    def _fit_grouped(self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None) -> None:
        X = single_precision(X, fitting=True)
        weight = np.ones(len(D)) if sample_weight is None else sample_weight / sample_weight.mean()
        self.label_order_ = put_in_order(D)  # so that permuting the labels permutes the prediction
        exact = np.ascontiguousarray(D[:, self.label_order_])
        D = np.round(exact, DIGITS)
        random = check_random_state(self.random_state)
        tests = self._held_out_rows(len(D), groups, random)
        trains = [np.setdiff1d(np.arange(len(D)), test) for test in tests]
        self.engine_ = self._engine()
        kind: type[Fold] = VectorLeafFold
        if self.engine_ == "lightgbm":
            from skldl.trees._lightgbm_booster import LightGBMFold

            kind = LightGBMFold
        seeds = random.randint(np.iinfo(np.int32).max, size=len(tests))
        folds = [
            kind(X, D, weight, train, test, self._settings(len(train), X.shape[1]), int(seed))
            for train, test, seed in zip(trains, tests, seeds, strict=True)
        ]
        self.oof_curve_ = self._run(folds, D, weight, trains, tests)
        self.n_iter_ = int(self.oof_curve_.argmin())
        self.bases_ = np.array([log_mean(D[train], weight[train]) for train in trains or [np.arange(len(D))]])
        no_trees = FlatTrees.none(X.shape[1])
        self.trees_ = [fold.trees(self.n_iter_) for fold in folds] if self.n_iter_ else [no_trees] * len(self.bases_)
        gains = sum((fold.gains(self.n_iter_) for fold in folds), np.zeros(X.shape[1]))
        self.feature_importances_ = gains / gains.sum() if gains.sum() > 0 else gains
        out_of_fold = np.tile(softmax(self.bases_[0]), (len(D), 1))  # for a single row, which cannot be held out
        for base, trees, test in zip(self.bases_, self.trees_, tests, strict=bool(tests)):
            out_of_fold[test] = softmax(_scores(base, trees, X[test]), axis=1)
        self.oof_score_ = -float(np.average(divergences(exact, np.log(out_of_fold)), weights=weight))
        self.oof_predictions_ = out_of_fold[:, np.argsort(self.label_order_)]

    def _run(
        self, folds: list[Fold], D: FloatArray, weight: FloatArray, trains: list[IntArray], tests: list[IntArray]
    ) -> FloatArray:
        """Boost all folds together until the held-out divergence no longer decreases; return its values."""
        start = sum(
            weight[test] @ divergences(D[test], np.broadcast_to(log_mean(D[train], weight[train]), D[test].shape))
            for train, test in zip(trains, tests, strict=True)
        )
        curve = [float(start / weight.sum())]
        # a fold keeps its state between rounds, so that only threads can work on it
        with Parallel(n_jobs=self.n_jobs, require="sharedmem") as parallel:
            while folds and len(curve) <= self.max_iter and len(curve) - 1 - np.argmin(curve) < self.patience:
                n_rounds = min(ROUNDS_AT_ONCE, self.max_iter - len(curve) + 1)
                sums = parallel(delayed(fold.advance)(n_rounds) for fold in folds)
                curve += [float(total / weight.sum()) for total in np.sum(sums, axis=0)]
        return np.array(curve)

    def _held_out_rows(self, n_samples: int, groups: IntArray | None, random: np.random.RandomState) -> list[IntArray]:
        """Rows of each fold; no fold if there is but one row."""
        n_folds = (5 if n_samples <= MANY_ROWS else 3) if isinstance(self.n_folds, str) else int(self.n_folds)
        if groups is not None:
            n_folds = min(n_folds, int(groups.max()) + 1)
            shuffled = random.permutation(int(groups.max()) + 1)[groups]  # which of equally large groups comes first
            fold_of = assign_folds(n_samples, n_folds, groups=shuffled)
        elif n_samples < 2:
            return []
        else:
            fold_of = assign_folds(n_samples, min(n_folds, n_samples), random_state=random)
        return [test for _, test in pairs_of(fold_of)]

    def _settings(self, n_train: int, n_features: int) -> BoostingSettings:
        leaves, least = self.max_leaf_nodes, self.min_samples_leaf
        share, random_splits = self.max_features, self.random_splits
        return BoostingSettings(
            learning_rate=float(self.learning_rate),
            max_leaf_nodes=(15 if self.engine_ == "lightgbm" else 31) if isinstance(leaves, str) else int(leaves),
            min_samples_leaf=int(np.clip(n_train // 16, 3, 20)) if isinstance(least, str) else int(least),
            max_features=min(1.0, max(0.3, 8 / n_features)) if isinstance(share, str) else float(share),
            subsample=min(float(self.subsample), MANY_ROWS / n_train),
            l2=float(self.l2_regularization),
            random_splits=n_train < FEW_ROWS if isinstance(random_splits, str) else bool(random_splits),
        )

    def _engine(self) -> str:
        installed = find_spec("lightgbm") is not None
        if self.engine == "lightgbm" and not installed:
            raise ImportError(
                "engine='lightgbm' needs LightGBM, which is not installed: pip install 'scikit-ldl[boost]'. "
                "engine='sklearn' needs nothing more."
            )
        if self.engine != "auto":
            return self.engine
        return "lightgbm" if installed else "sklearn"

    def _predict(self, X: Any) -> FloatArray:
        P = np.zeros((X.shape[0], self.n_labels_))
        for start in range(0, X.shape[0], ROWS_AT_ONCE):
            block = single_precision(X[start : start + ROWS_AT_ONCE])
            for base, trees in zip(self.bases_, self.trees_, strict=True):
                P[start : start + ROWS_AT_ONCE] += softmax(_scores(base, trees, block), axis=1)
        return P[:, np.argsort(self.label_order_)] / len(self.bases_)


def _scores(base: FloatArray, trees: FlatTrees, X: Any) -> FloatArray:
    """Scores of each label: trees with one vector per leaf, or trees that serve the labels in turn."""
    one_for_each_label = trees.values.shape[1] == 1
    return np.asarray(base + trees.total(X, len(base) if one_for_each_label else 1))

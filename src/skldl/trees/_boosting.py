"""`GradientBoostingLDL`: additive trees behind a softmax, stopped by held-out divergence, averaged over folds.

Two engines grow the trees of a fold: scikit-learn's regression trees, one for all labels in each round, whose leaves
hold a vector of scores; and LightGBM's, one histogram tree for each label and round, which are read back into plain
arrays. Both take the derivatives of the loss from here.
"""

from importlib.util import find_spec
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from scipy.special import log_softmax, softmax, xlogy
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.utils import check_random_state

from skldl.base import GroupedLDL, kept_rows
from skldl.selection import assign_folds, pairs_of
from skldl.trees._flat_trees import ROWS_AT_ONCE, FlatTrees, of_all_rows, put_in_order, single_precision
from skldl.utils.mean_mixture import mean_distribution
from skldl.utils.parameters import BOOLEAN, COUNT, N_JOBS, NOT_NEGATIVE, POSITIVE, RANDOM_STATE, integer, number, one_of
from skldl.utils.typing import FloatArray, IntArray

ROUNDS_AT_ONCE = 10
"""Rounds of all folds between two looks at their held-out divergences: threads start and end as rarely."""
DIGITS = 10
"""Decimals of the degrees, so that the rounding errors of a division cannot decide between equally good splits."""
MANY_ROWS = 20_000
"""For more rows there are fewer folds, and at most this many rows for each tree. Chosen by hand."""
FEW_ROWS = 5_000
"""For fewer rows, thresholds drawn at random are better than the best ones."""
N_BINS = 63
"""Bins of LightGBM's histograms. Chosen by hand."""
_DEFAULT_LEFT, _MISSING_SHIFT, _MISSING_IS_NAN = 2, 2, 2
"""Bits of LightGBM's decision_type. Bit 1, a categorical split, never occurs: the features are a plain array."""


class BoostingSettings(NamedTuple):
    """Hyper-parameters with "auto" replaced by values."""

    learning_rate: float
    max_leaf_nodes: int
    min_samples_leaf: int
    max_features: float
    subsample: float
    l2: float
    random_splits: bool


def log_mean(D: FloatArray, weight: FloatArray) -> FloatArray:
    """Scores of the weighted mean distribution, from which boosting starts."""
    return np.log(mean_distribution(D, weight))


def divergences(D: FloatArray, scores: FloatArray) -> FloatArray:
    """Kullback-Leibler divergence of each row from D to the softmax of the scores."""
    return np.asarray((xlogy(D, D) - D * log_softmax(scores, axis=1)).sum(axis=1))


def derivatives(D: FloatArray, scores: FloatArray, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    r"""Gradient p - d and scaled diagonal Hessian p (1 - p) c / (c - 1) of the weighted divergence in the scores.

    The factor c / (c - 1) compensates for the off-diagonal part of the Hessian, diag(p) - p pᵀ: on vectors that sum to
    zero, and for uniform p, the scaled diagonal is exact.
    """
    P = np.exp(log_softmax(scores, axis=1))
    n_labels = D.shape[1]
    return (P - D) * weight[:, None], P * (1.0 - P) * (n_labels / (n_labels - 1) * weight)[:, None]


def newton_steps(leaf: IntArray, n_nodes: int, gradient: FloatArray, hessian: FloatArray, l2: float) -> FloatArray:
    """Minus summed gradient over penalised summed Hessian for each node and label; 0 in nodes without rows."""
    total = np.column_stack([np.bincount(leaf, column, n_nodes) for column in gradient.T])
    curvature = l2 + np.column_stack([np.bincount(leaf, column, n_nodes) for column in hessian.T])
    return np.divide(-total, curvature, out=np.zeros_like(total), where=curvature > 0)


class Fold:
    """A model that is boosted on the training rows of one fold, round by round.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Features of all rows, as `single_precision` returns them.
    D : ndarray of shape (n_samples, n_labels)
        Distributions.
    weight : ndarray of shape (n_samples,)
        Weights.
    train, test : ndarray of int
        Rows to learn from, and rows that are held out.
    settings : BoostingSettings
        Hyper-parameters.
    seed : int
        Seed of the rows, features and thresholds that are drawn.
    """

    def __init__(
        self,
        X: Any,
        D: FloatArray,
        weight: FloatArray,
        train: IntArray,
        test: IntArray,
        settings: BoostingSettings,
        seed: int,
    ) -> None:
        self.D, self.D_test = D[train], D[test]
        self.weight, self.test_weight = weight[train], weight[test]
        self.base = log_mean(self.D, self.weight)
        self.settings = settings
        self.n_features = X.shape[1]
        self._start(X, train, test, seed)

    def _start(self, X: Any, train: IntArray, test: IntArray, seed: int) -> None:
        """Prepare the features."""
        raise NotImplementedError

    def add_round(self) -> float:
        """Add a round; return the weighted sum of held-out divergences after it."""
        raise NotImplementedError

    def trees(self, n_rounds: int) -> FlatTrees:
        """The trees of the first rounds."""
        raise NotImplementedError

    def gains(self, n_rounds: int) -> FloatArray:
        """Total gain of the splits on each feature in the first rounds."""
        raise NotImplementedError

    def advance(self, n_rounds: int) -> list[float]:
        """Add rounds; return the weighted sum of held-out divergences after each of them."""
        return [self.add_round() for _ in range(n_rounds)]

    def held_out(self, scores: FloatArray) -> float:
        """Weighted sum of the divergences of the held-out rows with these scores."""
        return float(self.test_weight @ divergences(self.D_test, scores))


class VectorLeafFold(Fold):
    r"""A model boosted on the training rows of one fold by multi-output regression trees.

    The gain of a split in the second-order expansion of the loss is :math:`\sum_j G_j^2 / H_j` over both sides. A
    regression tree maximises :math:`\sum_j (\sum_i t_{ij})^2 / n` for targets t, which is nearly the same for
    :math:`t_{ij} = -g_{ij} / \sqrt{\bar h_j}`, with the mean Hessian of each label. The values of the leaves are then
    exact Newton steps with penalty, shrunk by the learning rate.

    Parameters are those of `Fold`.
    """

    def _start(self, X: Any, train: IntArray, test: IntArray, seed: int) -> None:
        self.random = np.random.RandomState(seed)
        self.X, self.X_test = X[train], X[test]
        self.X_columns = self.X
        if sparse.issparse(X):  # scikit-learn grows on CSC and predicts on CSR
            self.X_columns = self.X.tocsc()
            self.X_columns.sort_indices()
        self.has_missing = not sparse.issparse(X) and bool(np.isnan(self.X).any())
        self.scores = np.tile(self.base, (len(train), 1))
        self.test_scores = np.tile(self.base, (len(test), 1))
        self.grown: list[tuple[Any, FloatArray]] = []

    def add_round(self) -> float:
        """Add a tree; return the weighted sum of held-out divergences after it."""
        settings = self.settings
        gradient, hessian = derivatives(self.D, self.scores, self.weight)
        n_drawn = max(1, round(settings.subsample * len(self.D)))
        drawn = self.random.permutation(len(self.D)) < n_drawn
        in_bag = np.where(drawn, self.weight, 0.0)
        # a label that is predicted with certainty has a Hessian of 0, by whose root the targets are divided
        per_weight = np.maximum(hessian[drawn].sum(axis=0) / in_bag.sum(), 1e-12)
        grow = ExtraTreeRegressor if settings.random_splits else DecisionTreeRegressor
        model = grow(
            max_features=settings.max_features,
            max_leaf_nodes=settings.max_leaf_nodes,
            min_samples_leaf=settings.min_samples_leaf,
            random_state=self.random,
        )
        targets = -gradient / self.weight[:, None] / np.sqrt(per_weight)
        # X is checked once; in every round the check is needed only to find the features with missing values
        tree = model.fit(self.X_columns, targets, sample_weight=in_bag, check_input=self.has_missing).tree_
        leaf = tree.apply(self.X)
        values = settings.learning_rate * newton_steps(
            leaf[drawn], tree.node_count, gradient[drawn], hessian[drawn], settings.l2
        )
        self.scores += values[leaf]
        self.test_scores += values[tree.apply(self.X_test)]
        self.grown.append((tree, values))
        return self.held_out(self.test_scores)

    def trees(self, n_rounds: int) -> FlatTrees:
        """The trees of the first rounds."""
        return FlatTrees.from_scikit_learn(*zip(*self.grown[:n_rounds], strict=True))

    def gains(self, n_rounds: int) -> FloatArray:
        """Total gain of the splits on each feature in the first rounds."""
        gains = np.zeros(self.X.shape[1])
        for tree, _ in self.grown[:n_rounds]:
            gains += tree.compute_feature_importances(normalize=False) * tree.weighted_n_node_samples[0]
        return gains


class LightGBMFold(Fold):
    """A model boosted on the training rows of one fold by LightGBM, one thread, deterministic.

    Parameters are those of `Fold`.
    """

    def _start(self, X: Any, train: IntArray, test: IntArray, seed: int) -> None:
        import lightgbm  # an optional dependency

        settings = self.settings
        self.finished = False
        parameters = {
            "objective": "none",  # gradient and Hessian are ours
            "num_class": self.D.shape[1],
            "metric": "None",
            "learning_rate": settings.learning_rate,
            "num_leaves": settings.max_leaf_nodes,
            "min_data_in_leaf": settings.min_samples_leaf,
            "feature_fraction": settings.max_features,
            # LightGBM would draw no row where the fraction is of less than one
            "bagging_fraction": settings.subsample if settings.subsample * len(train) >= 1 else 1.0,
            "bagging_freq": 1,
            "lambda_l2": settings.l2,
            "extra_trees": settings.random_splits,
            "max_bin": N_BINS,
            "feature_pre_filter": False,
            "seed": seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbose": -1,
        }
        training, held_out = (
            lightgbm.Dataset(
                X[rows],
                label=np.zeros(len(rows)),
                init_score=np.tile(self.base, (len(rows), 1)),
                feature_name=[f"x{j}" for j in range(self.n_features)],
                params=parameters,
            )
            for rows in (train, test)
        )
        held_out.set_reference(training)
        # LightGBM fails if it finds no bins in any feature, where next to all values are 0: there is nothing to split
        self.has_bins = any(training.construct().feature_num_bin(j) > 0 for j in range(self.n_features))
        if self.has_bins:
            self.booster = lightgbm.Booster(parameters, training)
            self.booster.add_valid(held_out, "held-out")
        else:
            self.without_trees = self.held_out(np.tile(self.base, (len(test), 1)))

    def _loss(self, scores: FloatArray, _: Any) -> tuple[FloatArray, FloatArray]:
        return derivatives(self.D, scores, self.weight)

    def _measure(self, scores: FloatArray, _: Any) -> tuple[str, float, bool]:
        return "divergence", self.held_out(scores), False

    def add_round(self) -> float:
        """Add a tree for each label; return the weighted sum of held-out divergences after them."""
        if not self.has_bins:
            return self.without_trees
        # once no label's tree can be split, LightGBM adds no more trees
        self.finished = self.finished or self.booster.update(fobj=self._loss)
        return float(self.booster.eval_valid(feval=self._measure)[0][2])

    def trees(self, n_rounds: int) -> FlatTrees:
        """The trees of the first rounds, those of one round in the order of the labels."""
        n_rounds = min(n_rounds, self.booster.current_iteration()) if self.has_bins else 0
        if n_rounds == 0:
            return FlatTrees.none(self.n_features)
        return read_trees(self.booster.model_to_string(num_iteration=n_rounds), self.n_features)

    def gains(self, n_rounds: int) -> FloatArray:
        """Total gain of the splits on each feature in the first rounds."""
        n_rounds = min(n_rounds, self.booster.current_iteration()) if self.has_bins else 0
        if n_rounds == 0:
            return np.zeros(self.n_features)
        return np.asarray(self.booster.feature_importance("gain", iteration=n_rounds), dtype=np.float64)


def read_trees(model: str, n_features: int) -> FlatTrees:
    """Trees of a model that LightGBM wrote as text; inner nodes come first in each tree, then its leaves."""
    columns: dict[str, list[Any]] = {name: [] for name in ("left", "right", "feature", "threshold", "missing_left")}
    sizes, leaves, values, n_leaves = [], [], [], 0
    for text in model.split("\nTree=")[1:]:
        fields = dict(line.split("=", 1) for line in text.split("\n\n", 1)[0].splitlines() if "=" in line)
        leaf_value = np.array(fields["leaf_value"].split(), dtype=np.float64)
        n_inner = len(leaf_value) - 1
        inner: dict[str, Any] = {
            name: np.array(fields[name].split() if n_inner else [], dtype=kind)
            for name, kind in (
                ("left_child", np.int64),
                ("right_child", np.int64),
                ("split_feature", np.int64),
                ("threshold", np.float64),
                ("decision_type", np.int64),
            )
        }
        decision = inner["decision_type"]
        # where training saw no missing value, LightGBM reads NaN as 0
        learned = (decision >> _MISSING_SHIFT) == _MISSING_IS_NAN
        missing_left = np.where(learned, (decision & _DEFAULT_LEFT) > 0, inner["threshold"] >= 0.0)
        padding = np.full(len(leaf_value), -1)
        for side in ("left", "right"):
            child = inner[f"{side}_child"]
            columns[side].append(np.concatenate([np.where(child >= 0, child, n_inner + ~child), padding]))
        columns["feature"].append(np.concatenate([inner["split_feature"], padding]))
        columns["threshold"].append(np.concatenate([inner["threshold"], np.zeros(len(leaf_value))]))
        columns["missing_left"].append(np.concatenate([missing_left, padding == 0]))
        leaves.append(np.concatenate([np.full(n_inner, -1), n_leaves + np.arange(len(leaf_value))]))
        sizes.append(n_inner + len(leaf_value))
        values.append(leaf_value)
        n_leaves += len(leaf_value)
    return FlatTrees(
        n_features,
        sizes=np.array(sizes),
        leaf=np.concatenate(leaves),
        values=np.concatenate(values)[:, None],
        **{name: np.concatenate(parts) for name, parts in columns.items()},
    )


def _scores(base: FloatArray, trees: FlatTrees, X: Any) -> FloatArray:
    """Scores of each label: trees with one vector per leaf, or trees that serve the labels in turn."""
    one_for_each_label = trees.values.shape[1] == 1
    return np.asarray(base + trees.total(X, len(base) if one_for_each_label else 1))


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
        Maximum number of rounds; 0 predicts the mean distribution.
    learning_rate : float, default=0.1
        Factor of each tree's contribution.
    max_leaf_nodes : int or "auto", default="auto"
        Maximum number of leaves of a tree; "auto" is 15 for the engine "lightgbm" and 31 for "sklearn", whose trees
        serve all labels.
    min_samples_leaf : int or "auto", default="auto"
        Minimum number of rows in a leaf; "auto" is a twentieth of the rows, but at least 3 and at most 20.
    max_features : float or "auto", default="auto"
        Fraction of the features to consider, drawn for each tree ("lightgbm") or each split ("sklearn"); "auto" is .3,
        but at least eight features.
    subsample : float, default=0.7
        Fraction of the training rows that each round sees, drawn without replacement. On many rows it is lowered so
        that a round sees at most 20,000.
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
        Fraction of the total gain of all splits that each feature brings; they sum to one.
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
        # a mean weight of one: the penalty on leaf values counts as in a fit without weights
        weight = np.ones(len(D)) if sample_weight is None else sample_weight / sample_weight.mean()
        self.label_order_ = put_in_order(D)  # so that permuting the labels permutes the prediction
        exact = np.ascontiguousarray(D[:, self.label_order_])
        D = np.round(exact, DIGITS)
        random = check_random_state(self.random_state)
        tests = self._held_out_rows(len(D), groups, random)
        trains = [np.setdiff1d(np.arange(len(D)), test) for test in tests]
        self.engine_ = self._engine()
        kind: type[Fold] = LightGBMFold if self.engine_ == "lightgbm" else VectorLeafFold
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
        """Rows of each fold; no fold if there is only one row."""
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
        leaves, min_rows = self.max_leaf_nodes, self.min_samples_leaf
        fraction, random_splits = self.max_features, self.random_splits
        return BoostingSettings(
            learning_rate=float(self.learning_rate),
            max_leaf_nodes=(15 if self.engine_ == "lightgbm" else 31) if isinstance(leaves, str) else int(leaves),
            # with five folds a sixteenth of the training rows is a twentieth of all
            min_samples_leaf=int(np.clip(n_train // 16, 3, 20)) if isinstance(min_rows, str) else int(min_rows),
            max_features=min(1.0, max(0.3, 8 / n_features)) if isinstance(fraction, str) else float(fraction),
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

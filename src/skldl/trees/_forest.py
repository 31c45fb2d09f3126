"""`RandomForestLDL`: trees whose leaves hold mean distributions, averaged, with all settings chosen out of bag.

Trees are grown on bootstrap samples of rows or groups. Rows that a tree did not see get votes from it, and on these
out-of-bag predictions the settings are chosen, and two numbers that calibrate the average: it is less concentrated than
its members, and a leaf without mass for a label votes zero. Both are corrected by

    p_s,b = (1 − s) · p^b / Σ_j p_j^b + s · mean,

where b is the sharpness (1 leaves p as it is, more concentrates it), s the mean share (more than 0 makes the prediction
strictly positive) and mean the mean training distribution.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from scipy.special import xlogy
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor
from sklearn.utils import check_random_state

from skldl.base import GroupedLDL, kept_rows
from skldl.trees._flat_trees import ROWS_AT_ONCE, FlatTrees, of_all_rows, put_in_order, single_precision
from skldl.utils.mean_mixture import mean_distribution, means_without, row_weights
from skldl.utils.parameters import COUNT, FRACTION, N_JOBS, NONE, POSITIVE, RANDOM_STATE, number, one_of
from skldl.utils.typing import FloatArray, IntArray

LEAF_SIZES = (1, 8, 3, 20)
"""Leaf sizes to try: the first two with every kind and ``max_features``, the others with the best of these."""
KINDS = ("extra", "random")
MAX_FEATURES: dict[str, tuple[float | str, ...]] = {"extra": (0.33, 1.0), "random": ("sqrt", 0.33)}
TREES_AT_ONCE = 10
"""Trees of one task of joblib. Sums run over tasks in order, so that ``n_jobs`` never changes a result."""
TARGET_DIGITS = 10
"""Decimals of the targets: rounding errors cannot decide between equally good splits."""
MANY_ROWS = 20_000
"""Maximum number of rows for each tree and for the choice of settings. Chosen by hand."""
SHARPNESSES = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0)
"""Exponents to try; most are above 1, because averaging flattens. Chosen by hand."""
MEAN_SHARES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


class Settings(NamedTuple):
    """Settings that are chosen out of bag."""

    kind: str
    max_features: float | str | int | None
    min_samples_leaf: int


class Bag(NamedTuple):
    """Trees grown on bootstrap samples and, for each training row, the votes of the trees that did not see it."""

    trees: FlatTrees | None
    importances: FloatArray
    votes: FloatArray  # sum of the leaf means over the trees that did not see the row
    squares: FloatArray  # sum of their squares
    n_votes: IntArray


def grow_trees(
    X: Any,
    X_columns: Any,
    D: FloatArray,
    targets: FloatArray,
    weight: FloatArray | None,
    groups: IntArray | None,
    settings: Settings,
    n_drawn: int,
    seeds: Sequence[int],
    keep: bool,
) -> Bag:
    """Grow a few trees of a forest and collect their votes for the rows that they did not see."""
    grow = ExtraTreeRegressor if settings.kind == "extra" else DecisionTreeRegressor
    trees, values = [], []
    # scikit-learn's check of the rows finds the features with missing values, which only dense rows can have
    is_plain = not sparse.issparse(X) and bool(np.isfinite(X).all())
    votes, squares = np.zeros(D.shape), np.zeros(D.shape)
    n_votes, importances = np.zeros(len(D), dtype=np.int64), np.zeros(X.shape[1])
    for seed in seeds:
        random = np.random.RandomState(seed)
        counts = draw_counts(len(D), n_drawn, groups, random)
        in_bag = counts if weight is None else counts * weight
        model = grow(
            max_features=settings.max_features, min_samples_leaf=settings.min_samples_leaf, random_state=random
        )
        # checking parameters and rows again takes longer than growing a small tree
        with config_context(skip_parameter_validation=True):
            tree = model.fit(X_columns, targets, sample_weight=in_bag, check_input=not is_plain).tree_
        leaf = tree.apply(X)
        means = leaf_means(leaf, tree.node_count, D, in_bag)
        unseen = np.flatnonzero(counts == 0)
        vote = means[leaf[unseen]]
        votes[unseen] += vote
        squares[unseen] += vote**2
        n_votes[unseen] += 1
        importances += tree.compute_feature_importances()
        trees.append(tree)
        values.append(means)
    return Bag(FlatTrees.from_scikit_learn(trees, values) if keep else None, importances, votes, squares, n_votes)


def draw_counts(n_samples: int, n_drawn: int, groups: IntArray | None, random: np.random.RandomState) -> FloatArray:
    """Number of copies of each row in a bootstrap sample of about ``n_drawn`` rows, drawn by rows or whole groups."""
    if groups is None:
        return np.bincount(random.randint(n_samples, size=n_drawn), minlength=n_samples).astype(np.float64)
    n_groups = int(groups.max()) + 1
    drawn = random.randint(n_groups, size=max(1, round(n_groups * n_drawn / n_samples)))
    return np.bincount(drawn, minlength=n_groups).astype(np.float64)[groups]


def leaf_means(leaf: IntArray, n_nodes: int, D: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted mean distribution of the rows in each leaf; 0 in nodes without rows."""
    mass = np.bincount(leaf, weight, n_nodes)
    sums = np.column_stack([np.bincount(leaf, weight * column, n_nodes) for column in D.T])
    return np.divide(sums, mass[:, None], out=np.zeros_like(sums), where=mass[:, None] > 0)


def add_up(bags: Iterable[Bag]) -> Bag:
    """Join bags; their sums are added in order, so that rounding does not depend on which is ready first."""
    trees: list[FlatTrees] = []
    total: Bag | None = None
    for bag in bags:
        trees += [] if bag.trees is None else [bag.trees]
        if total is not None:
            pairs: Any = zip(total[1:], bag[1:], strict=True)
            bag = Bag(None, *(before + new for before, new in pairs))
        total = bag
    assert total is not None
    return total._replace(trees=FlatTrees.join(trees) if trees else None)


def out_of_bag(bag: Bag, D: FloatArray, weight: FloatArray | None, groups: IntArray | None) -> FloatArray:
    """Mean vote for each row; for rows without votes the mean distribution of all other rows, or groups."""
    P = bag.votes / np.maximum(bag.n_votes, 1)[:, None]
    missing = bag.n_votes == 0
    if missing.any():
        P[missing] = means_without(D, weight, groups)[missing]
    return P


def calibrate(P: FloatArray, sharpness: float, mean_share: float, mean: FloatArray) -> FloatArray:
    """The distributions p_s,b for rows of P that sum to one."""
    if sharpness != 1.0:
        P = P**sharpness
        P = P / P.sum(axis=1, keepdims=True)
    return np.asarray((1.0 - mean_share) * P + mean_share * mean)


def mean_divergence(D: FloatArray, P: FloatArray, weight: FloatArray | None) -> float:
    """Weighted mean Kullback-Leibler divergence from D to P, whose rows are positive."""
    with np.errstate(divide="ignore"):
        divergence = (xlogy(D, D) - xlogy(D, P)).sum(axis=1)
    return float(np.average(divergence, weights=weight))


def choose_calibration(
    D: FloatArray,
    P: FloatArray,
    variance: FloatArray,
    mean: FloatArray,
    weight: FloatArray | None,
    sharpnesses: tuple[float, ...] = SHARPNESSES,
    mean_shares: tuple[float, ...] = MEAN_SHARES,
) -> tuple[float, float, float]:
    """Smallest mean divergence over both grids, with its sharpness and mean share.

    ``variance`` is the part of the variance of P that the final prediction, a mean over more trees, will not have. It
    raises the divergence by Σ_j var_j / (2 p_j) to second order. This is subtracted: with few trees it would favour
    large leaves and low sharpness.
    """
    results = []
    # by the delta method: p^b has the relative variance b² var/p², which mixing multiplies by (1 − s)²
    relative_variance = np.divide(variance, P**2, out=np.zeros_like(P), where=P > 0)
    weight = row_weights(len(D), weight)
    minus_entropy = float(weight @ xlogy(D, D).sum(axis=1))
    weighted = D * weight[:, None]
    for sharpness in sharpnesses:
        sharp = calibrate(P, sharpness, 0.0, mean)
        noise = relative_variance * (sharpness * sharp) ** 2 * (0.5 * weight[:, None])
        for share in mean_shares:
            calibrated = calibrate(sharp, 1.0, share, mean)
            with np.errstate(divide="ignore"):
                divergence = minus_entropy - float(xlogy(weighted, calibrated).sum())
            excess = np.divide(noise, calibrated, out=np.zeros_like(P), where=calibrated > 0).sum()
            results.append((divergence - float(excess) * (1.0 - share) ** 2, sharpness, share))
    return min(results)


class RandomForestLDL(GroupedLDL):
    r"""Forest of multi-output regression trees whose leaves hold mean label distributions.

    Each tree is grown on a bootstrap sample of the rows [1]_. A split is the one that most reduces
    :math:`\sum_i \|\sqrt{d_i} - \overline{\sqrt d}\|^2`, the spread of the distributions in Hellinger distance, or
    the spread of the degrees themselves (``criterion="squared_error"``). A leaf predicts the mean distribution of its
    rows, the forest the mean :math:`p` over its trees, calibrated as

    .. math:: \hat d = (1-s)\, p^{\,b} \big/ \textstyle\sum_j p_j^{\,b} + s\,\bar d .

    The sharpness :math:`b` corrects the flattening by averaging, and the mean share :math:`s` of the mean
    training distribution :math:`\bar d` makes each prediction strictly positive.

    All that is ``"auto"`` is chosen by the Kullback-Leibler divergence of out-of-bag predictions, in which each row is
    predicted by the trees that did not see it: first the kind of trees together with ``max_features`` at one and at
    eight rows per leaf, then the number of rows per leaf for the best of them, each with ``n_trial_estimators`` trees;
    last sharpness and mean share, with the whole forest. What the small number of trees adds to the out-of-bag
    divergence is estimated from the spread of their votes and subtracted.

    Parameters
    ----------
    n_estimators : int, default=200
        Number of trees.
    kind : {"auto", "extra", "random", "both"}, default="auto"
        "extra" draws one threshold per feature at random (extremely randomised trees [2]_), "random" takes the best one
        (random forest), "auto" chooses between them. "both" grows one half of the trees of each kind, each with its own
        settings: the divergences of the kinds often differ by less than the noise of the choice, and their errors are
        not the same.
    min_samples_leaf : int or "auto", default="auto"
        Minimum number of rows in a leaf; "auto" tries 1, 3, 8 and 20.
    max_features : float, int, "sqrt", None or "auto", default="auto"
        Features to consider for each split, as in scikit-learn (a float is a fraction, None means all). "auto" tries
        .33 and 1.0 for extra trees, "sqrt" and .33 for random ones.
    criterion : {"hellinger", "squared_error"}, default="hellinger"
        Distance that a split minimises within its nodes.
    max_samples : int, float or "auto", default="auto"
        Size of a bootstrap sample: a number of rows, or a fraction of them. "auto" takes as many as there are rows, but
        at most 20,000.
    sharpness : float or "auto", default="auto"
        Exponent b, 1 for none; "auto" tries ten from .7 to 2.
    mean_share : float or "auto", default="auto"
        Fraction s, from 0 to 1; "auto" tries ten from .001 to .5. With 0, a label can be predicted with probability 0.
    n_trial_estimators : int, default=30
        Number of trees for each setting that is tried.
    n_jobs : int, default=None
        Number of threads that grow trees, through joblib. The result does not depend on it.
    random_state : int, RandomState instance or None, default=None
        Source of the bootstrap samples and of the randomness in splits.

    Attributes
    ----------
    oob_predictions_ : ndarray of shape (n_samples, n_labels)
        Prediction for each training row by the trees that did not see it. A row that every tree saw gets the mean
        distribution of the other rows (of other groups, if there are groups); a row of weight 0, which no tree saw, the
        prediction of the whole forest.
    oob_score_ : float
        Minus the mean Kullback-Leibler divergence of the out-of-bag predictions.
    n_votes_ : ndarray of shape (n_samples,)
        Number of trees that did not see the row.
    kind_, min_samples_leaf_, max_features_ : str, int, float
        The settings in use; with ``kind="both"`` tuples, that of the extra trees first.
    trials_ : list of tuple
        Every setting tried: kind, max_features, min_samples_leaf and its out-of-bag divergence.
    sharpness_, mean_share_ : float
        The exponent and the fraction in use.
    mean_ : ndarray of shape (n_labels,)
        Mean training distribution.
    feature_importances_ : ndarray of shape (n_features,)
        Mean over the trees of the normalised reduction in spread that each feature brings; they sum to one.
    trees_ : FlatTrees
        All trees of the forest, in arrays.

    Notes
    -----
    Missing values: NaN in dense X goes to the side of a split on which it reduces the spread most. Categories have to
    be encoded as numbers (ordinal or one-hot), as for scikit-learn's trees. Features are compared in single precision.
    Sparse X gives an equivalent forest, but among splits that are equally good it can take others than dense X does.

    Weights multiply the counts of the bootstrap sample, so that a row of weight two is not quite the same row twice:
    two copies are drawn independently.

    With ``groups``, whole groups are drawn, so that out-of-bag predictions are unbiased for new groups.

    Time grows with rows × log(rows) × features looked at. On 20,000 rows and more each tree sees 20,000, and settings
    are chosen on 20,000 rows drawn at random.

    References
    ----------
    .. [1] L. Breiman, "Random forests", Machine Learning 45, 5-32, 2001.
    .. [2] P. Geurts, D. Ernst and L. Wehenkel, "Extremely randomized trees", Machine Learning 63, 3-42, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.trees import RandomForestLDL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(200, 3))
    >>> D = np.column_stack([X[:, 0] > 0.5, X[:, 0] <= 0.5, np.ones(200)]) + 0.1
    >>> D /= D.sum(axis=1, keepdims=True)
    >>> forest = RandomForestLDL(n_estimators=50, random_state=0).fit(X, D)
    >>> forest.oob_score_ > -0.01
    True
    >>> int(forest.feature_importances_.argmax())
    0
    """

    _allow_nan = True
    oob_predictions_: FloatArray
    n_votes_: IntArray

    _onnx = "forest"
    _model_parts = (FlatTrees,)
    _constraints: ClassVar = {
        "n_estimators": COUNT,
        "kind": one_of("auto", "extra", "random", "both"),
        "min_samples_leaf": one_of("auto") | COUNT,
        "max_features": one_of("auto", "sqrt", "log2") | NONE | COUNT | number(above=0, at_most=1),
        "criterion": one_of("hellinger", "squared_error"),
        "max_samples": one_of("auto") | COUNT | number(above=0, at_most=1),
        "sharpness": one_of("auto") | POSITIVE,
        "mean_share": one_of("auto") | FRACTION,
        "n_trial_estimators": COUNT,
        "n_jobs": N_JOBS,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        n_estimators: int = 200,
        *,
        kind: str = "auto",
        min_samples_leaf: int | str = "auto",
        max_features: float | str | int | None = "auto",
        criterion: str = "hellinger",
        max_samples: int | float | str = "auto",
        sharpness: float | str = "auto",
        mean_share: float | str = "auto",
        n_trial_estimators: int = 30,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.kind = kind
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.criterion = criterion
        self.max_samples = max_samples
        self.sharpness = sharpness
        self.mean_share = mean_share
        self.n_trial_estimators = n_trial_estimators
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose the settings and grow the forest.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features; NaN marks a missing value (dense X only).
        y : array-like or DataFrame of shape (n_samples, n_labels)
            Label distributions: non-negative rows that sum to one.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, in the trees and in the out-of-bag divergence.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as the person it comes from. Bootstrap samples take whole groups.

        Returns
        -------
        self
            The fitted estimator.
        """
        super().fit(X, y, sample_weight, groups)
        seen, n_samples = kept_rows(sample_weight, len(self.n_votes_))
        if len(seen) < n_samples:  # rows without weight are in no bag at all
            n_votes = np.full(n_samples, self.n_estimators)
            n_votes[seen] = self.n_votes_
            self.oob_predictions_, self.n_votes_ = of_all_rows(self, X, self.oob_predictions_, seen, n_samples), n_votes
        return self

    def _fit_grouped(self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None) -> None:
        X = single_precision(X, fitting=True)
        # only ratios of weights count
        weight = None if sample_weight is None else sample_weight / sample_weight.mean()
        order = put_in_order(D)  # so that permuting the labels permutes the prediction
        back = np.argsort(order)
        D = np.ascontiguousarray(D[:, order])
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_estimators)
        mean = mean_distribution(D, weight)
        self.trials_: list[tuple[Any, ...]] = []
        kinds = KINDS if self.kind == "both" else (self.kind,)
        chosen = [self._choose(X, D, weight, groups, mean, random, kind) for kind in kinds]
        parts = zip(chosen, np.array_split(seeds, len(chosen)), strict=True)
        bag = add_up(
            self._grow_bag(X, D, weight, groups, settings, part, keep=True) for settings, part in parts if len(part)
        )
        votes = out_of_bag(bag, D, weight, groups)
        _, self.sharpness_, self.mean_share_ = self._calibration(D, votes, bag, mean, weight)
        in_use: Any = zip(*chosen, strict=True) if self.kind == "both" else chosen[0]
        self.kind_, self.max_features_, self.min_samples_leaf_ = in_use
        self.mean_ = mean[back]
        self.oob_predictions_ = calibrate(votes[:, back], self.sharpness_, self.mean_share_, self.mean_)
        self.oob_score_ = -mean_divergence(D[:, back], self.oob_predictions_, weight)
        self.n_votes_ = bag.n_votes
        total = bag.importances.sum()
        self.feature_importances_ = bag.importances / total if total > 0 else bag.importances
        assert bag.trees is not None
        bag.trees.values = np.ascontiguousarray(bag.trees.values[:, back])
        self.trees_ = bag.trees

    def _choose(
        self,
        X: Any,
        D: FloatArray,
        weight: FloatArray | None,
        groups: IntArray | None,
        mean: FloatArray,
        random: np.random.RandomState,
        kind: str,
    ) -> Settings:
        """Kind with features at two leaf sizes, then all leaf sizes; settings that are fixed are not tried."""
        if len(D) > MANY_ROWS:
            rows = np.sort(random.permutation(len(D))[:MANY_ROWS])
            X, D = X[rows], D[rows]
            weight = None if weight is None else weight[rows]
            groups = None if groups is None else np.unique(groups[rows], return_inverse=True)[1]
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_trial_estimators)

        def best(candidates: list[Settings]) -> Settings:
            if len(candidates) == 1:
                return candidates[0]
            for candidate in candidates:
                if not any(candidate == trial[:3] for trial in self.trials_):
                    bag = self._grow_bag(X, D, weight, groups, candidate, seeds, keep=False)
                    votes = out_of_bag(bag, D, weight, groups)
                    self.trials_.append((*candidate, self._calibration(D, votes, bag, mean, weight)[0]))
            scores = {Settings(*trial[:3]): trial[3] for trial in self.trials_}
            return min(candidates, key=scores.__getitem__)

        sizes = LEAF_SIZES if self.min_samples_leaf == "auto" else (int(self.min_samples_leaf),)
        chosen = best(
            [
                Settings(each, max_features, size)
                for size in sizes[:2]
                for each in (KINDS if kind == "auto" else (kind,))
                for max_features in (MAX_FEATURES[each] if self.max_features == "auto" else (self.max_features,))
            ]
        )
        return best([chosen._replace(min_samples_leaf=size) for size in sizes])

    def _calibration(
        self, D: FloatArray, P: FloatArray, bag: Bag, mean: FloatArray, weight: FloatArray | None
    ) -> tuple[float, float, float]:
        """Divergence that the whole forest should have, sharpness and mean share, on rows that were out of bag."""
        rows = np.flatnonzero(bag.n_votes) if bag.n_votes.any() else np.arange(len(D))
        rows = rows[:: -(-len(rows) // MANY_ROWS)]  # evenly spaced, because files are often sorted
        sharpnesses = SHARPNESSES if self.sharpness == "auto" else (float(self.sharpness),)
        shares = MEAN_SHARES if self.mean_share == "auto" else (float(self.mean_share),)
        votes = bag.n_votes[rows, None]
        # the variance of one tree's votes; a mean of v trees has 1/v of it, the mean of all trees 1/n_estimators
        spread = (bag.squares[rows] - bag.votes[rows] ** 2 / np.maximum(votes, 1)) / np.maximum(votes - 1, 1)
        excess = np.maximum(1.0 / np.maximum(votes, 1) - 1.0 / self.n_estimators, 0.0)
        weight = None if weight is None else weight[rows]
        return choose_calibration(D[rows], P[rows], np.maximum(spread, 0.0) * excess, mean, weight, sharpnesses, shares)

    def _grow_bag(
        self,
        X: Any,
        D: FloatArray,
        weight: FloatArray | None,
        groups: IntArray | None,
        settings: Settings,
        seeds: IntArray,
        *,
        keep: bool,
    ) -> Bag:
        """Grow one tree for each seed; with ``keep`` the trees are returned, otherwise only their votes."""
        # rounded, so that the rounding errors of a division cannot decide between splits that are equally good
        targets = np.round(np.sqrt(D) if self.criterion == "hellinger" else D, TARGET_DIGITS)
        X_columns = X.tocsc() if hasattr(X, "tocsc") else X  # scikit-learn grows on CSC and predicts on CSR
        n_drawn = self._n_drawn(len(D))
        tasks = Parallel(n_jobs=self.n_jobs, require="sharedmem", return_as="generator")(
            delayed(grow_trees)(
                X, X_columns, D, targets, weight, groups, settings, n_drawn, seeds[i : i + TREES_AT_ONCE], keep
            )
            for i in range(0, len(seeds), TREES_AT_ONCE)
        )
        return add_up(tasks)

    def _n_drawn(self, n_samples: int) -> int:
        if isinstance(self.max_samples, str):
            return min(n_samples, MANY_ROWS)
        if isinstance(self.max_samples, float | np.floating):
            return max(1, round(self.max_samples * n_samples))
        return min(int(self.max_samples), n_samples)

    def _predict(self, X: Any) -> FloatArray:
        P = np.empty((X.shape[0], self.n_labels_))
        for start in range(0, X.shape[0], ROWS_AT_ONCE):
            block = single_precision(X[start : start + ROWS_AT_ONCE])
            mean_vote = self.trees_.total(block) / len(self.trees_)
            P[start : start + ROWS_AT_ONCE] = calibrate(mean_vote, self.sharpness_, self.mean_share_, self.mean_)
        return P

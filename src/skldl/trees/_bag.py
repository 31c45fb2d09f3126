"""Trees grown on bootstrap samples of rows or groups, and their votes for the rows that they did not see."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn import config_context
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from skldl.data._dataset import rows_of
from skldl.trees._flat_trees import FlatTrees
from skldl.utils.mean_mixture import means_without
from skldl.utils.typing import FloatArray, IntArray


class Settings(NamedTuple):
    """Settings that are chosen out of bag."""

    kind: str
    max_features: float | str | int | None
    min_samples_leaf: int


class Bag(NamedTuple):
    """Trees grown on bootstrap samples and, for each training row, what the trees that did not see it predict."""

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
    """A few trees of a forest, with their votes for the rows that they did not see."""
    grow = ExtraTreeRegressor if settings.kind == "extra" else DecisionTreeRegressor
    trees, values = [], []
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
    """Count of each row in a bootstrap sample of about ``n_drawn`` rows, drawn by rows or by whole groups."""
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
    """One bag of several, whose sums are added in their order."""
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


def of_all_rows(model: Any, X: Any, held_out: FloatArray, seen: IntArray, n_samples: int) -> FloatArray:
    """Held-out predictions of the rows in ``seen``, and what the fitted model predicts for the others."""
    P = np.empty((n_samples, held_out.shape[1]))
    unseen = np.setdiff1d(np.arange(n_samples), seen)
    P[seen] = held_out
    P[unseen] = np.asarray(model.predict(rows_of(X.tocsr() if sparse.issparse(X) else X, unseen)))
    return P

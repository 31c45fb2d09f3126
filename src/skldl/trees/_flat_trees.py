"""Binary trees as plain arrays, the leaves that rows reach in them, and other code of both tree ensembles.

The forest and the gradient boosting keep their trees in this form, whichever library grew them. Plain arrays can be
written to a file and checked when they are read: each child comes after its parent inside its own tree, and each
feature exists. A damaged or malicious file can therefore neither loop forever nor read outside the arrays.

Rows are sent down by scikit-learn's compiled ``Tree``, rebuilt from the checked arrays, one tree at a time over blocks
of rows; for a handful of rows and very many trees, one NumPy pass over all trees is faster. Features are
compared in single precision, as scikit-learn's trees do.
"""

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor

from skldl.data._dataset import rows_of
from skldl.exceptions import DataError, NonFiniteError
from skldl.utils.typing import FloatArray, IntArray

ROWS_AT_ONCE = 16384
"""Rows of a block in predictions: few enough that a block in single precision is a small array."""
FEW_ROWS = 32
"""Up to so many rows one NumPy pass over all trees is faster than one call for each tree."""
_TYPES: dict[str, type] = {
    "sizes": np.int64,
    "left": np.int32,
    "right": np.int32,
    "feature": np.int32,
    "threshold": np.float64,
    "missing_left": np.bool_,
    "leaf": np.int32,
    "values": np.float64,
}


class FlatTrees:
    """Several trees in arrays, one after the other.

    Parameters
    ----------
    n_features : int
        Number of features of the rows.
    sizes : ndarray of shape (n_trees,)
        Number of nodes of each tree.
    left, right : ndarray of shape (n_nodes,)
        Children of each node, counted from the root of its tree, always larger than the node itself; -1 in a leaf.
    feature : ndarray of shape (n_nodes,)
        Feature that a node compares; any number in a leaf.
    threshold : ndarray of shape (n_nodes,)
        Rows with ``x <= threshold`` go left.
    missing_left : ndarray of shape (n_nodes,)
        Whether rows with a missing value (NaN) go left.
    leaf : ndarray of shape (n_nodes,)
        Row of ``values`` that belongs to a leaf; any number in an inner node.
    values : ndarray of shape (n_leaves, n_outputs)
        Predictions of the leaves.
    """

    sizes: IntArray
    left: IntArray
    right: IntArray
    feature: IntArray
    threshold: FloatArray
    missing_left: npt.NDArray[np.bool_]
    leaf: IntArray
    values: FloatArray

    def __init__(self, n_features: int, **arrays: Any) -> None:
        self.__setstate__({"n_features": n_features, **arrays})

    def __getstate__(self) -> dict[str, Any]:
        return {"n_features": self.n_features, **{name: getattr(self, name) for name in _TYPES}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.n_features = int(state["n_features"])
        for name, kind in _TYPES.items():
            setattr(self, name, np.ascontiguousarray(state[name], dtype=kind))
        self._check()
        self.starts = np.cumsum(self.sizes) - self.sizes

    @cached_property
    def _trees(self) -> list[Any]:
        """The trees as scikit-learn's compiled class, made when the first rows come."""
        return [self._compile(start, start + size) for start, size in zip(self.starts, self.sizes, strict=True)]

    def _check(self) -> None:
        """Reject arrays that do not describe trees, so that compiled code can rely on them."""
        n_nodes = len(self.left)
        right_shape = all(
            getattr(self, name).shape == (n_nodes,)
            for name in ("right", "feature", "threshold", "missing_left", "leaf")
        )
        sizes = self.sizes
        if not right_shape or sizes.ndim != 1 or self.values.ndim != 2 or (sizes < 1).any() or sizes.sum() != n_nodes:
            raise DataError(
                "These arrays do not describe trees: their shapes do not fit each other. Fit the model again."
            )
        node = np.arange(n_nodes) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        size = np.repeat(sizes, sizes)
        is_leaf = self.left == -1
        inner = ~is_leaf
        good = np.where(is_leaf, (self.right == -1) & (self.leaf >= 0) & (self.leaf < len(self.values)), True)
        for child in (self.left, self.right):
            good &= is_leaf | ((child > node) & (child < size))
        good &= is_leaf | ((self.feature >= 0) & (self.feature < self.n_features))
        if not good.all() or np.isnan(self.threshold[inner]).any():
            raise DataError(
                f"Node {int(np.argmin(good))} of these trees points outside its tree or names a feature that does not "
                "exist: the model is damaged. Fit it again."
            )

    def _compile(self, start: int, stop: int) -> Any:
        """One tree as scikit-learn's compiled class, which finds leaves an order of magnitude faster than NumPy."""
        make, dtype = _compiled_tree()
        part = slice(start, stop)
        nodes = np.zeros(stop - start, dtype=dtype)
        is_leaf = self.left[part] == -1
        nodes["left_child"], nodes["right_child"] = self.left[part], self.right[part]
        nodes["feature"] = np.where(is_leaf, -2, self.feature[part])
        nodes["threshold"] = np.where(is_leaf, -2.0, self.threshold[part])
        nodes["missing_go_to_left"] = self.missing_left[part]
        tree = make(self.n_features, np.ones(1, dtype=np.intp), 1)
        state = {"max_depth": 0, "node_count": len(nodes), "nodes": nodes, "values": np.zeros((len(nodes), 1, 1))}
        tree.__setstate__(state)
        return tree

    def __len__(self) -> int:
        return len(self.sizes)

    @classmethod
    def none(cls, n_features: int) -> Self:
        """A collection without any tree."""
        empty = dict.fromkeys(_TYPES, np.zeros(0))
        return cls(n_features, **(empty | {"values": np.zeros((0, 1))}))

    @classmethod
    def join(cls, parts: Sequence["FlatTrees"]) -> Self:
        """All trees of several collections, in order."""
        arrays = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _TYPES}
        n_leaves = np.array([len(part.values) for part in parts])
        shifts = np.cumsum(n_leaves) - n_leaves
        arrays["leaf"] = np.concatenate(
            [np.where(part.left == -1, part.leaf + shift, -1) for part, shift in zip(parts, shifts, strict=True)]
        )
        return cls(parts[0].n_features, **arrays)

    @classmethod
    def from_scikit_learn(cls, trees: Sequence[Any], leaf_values: Sequence[FloatArray]) -> Self:
        """Trees grown by scikit-learn, and for each of them one row of values per node (those of leaves are kept)."""
        is_leaf = [tree.children_left == -1 for tree in trees]
        missing = [getattr(tree, "missing_go_to_left", np.zeros(tree.node_count)) for tree in trees]
        every_leaf = np.concatenate(is_leaf)
        return cls(
            int(trees[0].n_features),
            sizes=np.array([tree.node_count for tree in trees]),
            left=np.concatenate([tree.children_left for tree in trees]),
            right=np.concatenate([tree.children_right for tree in trees]),
            feature=np.concatenate([tree.feature for tree in trees]),
            threshold=np.concatenate([tree.threshold for tree in trees]),
            missing_left=np.concatenate(missing),
            leaf=np.where(every_leaf, np.cumsum(every_leaf) - 1, -1),
            values=np.concatenate([values[rows] for values, rows in zip(leaf_values, is_leaf, strict=True)]),
        )

    def leaves(self, X: Any) -> Iterator[IntArray]:
        """For each tree in turn the row of ``values`` that each row of X (from `single_precision`) reaches."""
        if X.shape[1] != self.n_features:
            raise DataError(f"X has {X.shape[1]} features, but the trees were grown on {self.n_features}.")
        if X.shape[0] <= FEW_ROWS and not sparse.issparse(X):
            yield from self._leaves_of_few(X)
            return
        for tree, start, size in zip(self._trees, self.starts, self.sizes, strict=True):
            yield self.leaf[start : start + size][tree.apply(X)]

    def total(self, X: Any, n_turns: int = 1) -> FloatArray:
        """Sum of the values over the trees for each row of X; tree t adds to the columns of turn t mod ``n_turns``."""
        n_rows, n_outputs = X.shape[0], self.values.shape[1]
        total = np.zeros((n_turns, n_rows, n_outputs))
        if n_rows <= FEW_ROWS and len(self):
            values = self.values[np.stack(list(self.leaves(X)))]
            total += values.reshape(-1, n_turns, n_rows, n_outputs).sum(axis=0)
        else:
            for number, leaf in enumerate(self.leaves(X)):
                total[number % n_turns] += self.values[leaf]
        return total.transpose(1, 0, 2).reshape(n_rows, n_turns * n_outputs)

    def _leaves_of_few(self, X: FloatArray) -> IntArray:
        """All trees and rows at once: one step down for every pair that has not reached a leaf yet."""
        n_rows = X.shape[0]
        node_of: npt.NDArray[np.int64] = np.repeat(self.starts, n_rows)
        root = node_of.copy()
        row = np.tile(np.arange(n_rows), len(self))
        active = np.flatnonzero(self.left[node_of] != -1)
        while len(active):
            node = node_of[active]
            x = X[row[active], self.feature[node]]
            goes_left = np.where(np.isnan(x), self.missing_left[node], x <= self.threshold[node])
            node_of[active] = root[active] + np.where(goes_left, self.left[node], self.right[node])
            active = active[self.left[node_of[active]] != -1]
        return self.leaf[node_of].reshape(len(self), n_rows)


def single_precision(X: Any, *, fitting: bool = False) -> Any:
    """X as scikit-learn's trees take it: C-contiguous float32, or a CSR matrix of float32 with 32-bit indices.

    In training, values beyond the range of single precision are rejected, and so are missing values in sparse X.
    """
    with np.errstate(over="ignore"):
        if not sparse.issparse(X):
            X = np.ascontiguousarray(X, dtype=np.float32)
            values = X
        else:
            X = sparse.csr_array(
                (X.data.astype(np.float32), X.indices.astype(np.intc), X.indptr.astype(np.intc)), X.shape
            )
            X.sort_indices()
            values = X.data
    if sparse.issparse(X) and np.isnan(values).any():
        raise NonFiniteError("X is sparse and contains NaN. Trees take missing values in dense features only.")
    if fitting and np.isinf(values).any():
        raise NonFiniteError(
            "X contains a value too large for dtype('float32'), in which trees compare features. Rescale that column."
        )
    return X


@cache
def _compiled_tree() -> tuple[type, np.dtype[Any]]:
    """scikit-learn's compiled tree and the layout of its nodes, which depends on its version."""
    tree = DecisionTreeRegressor(max_depth=1).fit([[0.0], [1.0]], [0.0, 1.0]).tree_
    return type(tree), tree.__getstate__()["nodes"].dtype


def put_in_order(D: FloatArray) -> IntArray:
    """Order of the labels by their degrees, so that a fit does not depend on the order in which they are given.

    They are sorted by the sum of degrees, and where these are equal by sums that weight rows by their position.
    """
    ramp = np.arange(1, len(D) + 1) / len(D)
    return np.lexsort((ramp**2 @ D, ramp @ D, D.sum(axis=0)))


def of_all_rows(model: Any, X: Any, held_out: FloatArray, seen: IntArray, n_samples: int) -> FloatArray:
    """Predictions of all rows: held-out ones for the rows in ``seen``, those of the fitted model for the others."""
    P = np.empty((n_samples, held_out.shape[1]))
    unseen = np.setdiff1d(np.arange(n_samples), seen)
    P[seen] = held_out
    P[unseen] = np.asarray(model.predict(rows_of(X.tocsr() if sparse.issparse(X) else X, unseen)))
    return P

"""Trees as arrays, the type of `trees_`: leaves as in scikit-learn, found in both ways, and damage that is rejected."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from skldl.exceptions import DataError, NonFiniteError
from skldl.testing import make_distributions
from skldl.trees._flat_trees import FlatTrees, single_precision  # their checks protect compiled code: tested alone

X, D = make_distributions(120, 5, 3)
X_MISSING = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.2, np.nan, X)


def grow(X, kind=DecisionTreeRegressor, n_trees=3):
    return [kind(max_depth=depth + 1, random_state=depth).fit(X, D).tree_ for depth in range(n_trees)]


def flat(trees):
    return FlatTrees.from_scikit_learn(trees, [tree.value[:, :, 0] for tree in trees])


@pytest.mark.parametrize("kind", [DecisionTreeRegressor, ExtraTreeRegressor])
@pytest.mark.parametrize("features", [X, X_MISSING])
@pytest.mark.parametrize("few_rows", [0, 1000])
def test_rows_reach_the_leaves_of_scikit_learn(monkeypatch, kind, features, few_rows):
    monkeypatch.setattr("skldl.trees._flat_trees.FEW_ROWS", few_rows)
    trees = grow(features, kind)
    table = flat(trees)
    rows = single_precision(np.vstack([features, X_MISSING[::-1]]))
    for tree, leaf in zip(trees, table.leaves(rows), strict=True):
        np.testing.assert_array_equal(table.values[leaf], tree.predict(rows)[:, :, 0])


def test_sparse_rows_reach_the_same_leaves():
    features = np.where(X < 0.4, 0.0, X)
    table = flat(grow(features))
    dense, csr = single_precision(features), single_precision(sparse.csr_matrix(features))
    for expected, leaf in zip(table.leaves(dense), table.leaves(csr), strict=True):
        np.testing.assert_array_equal(leaf, expected)


def test_joined_and_pickled_trees_are_the_same():
    trees = grow(X)
    together = pickle.loads(pickle.dumps(flat(trees)))
    joined = FlatTrees.join([flat(trees[:1]), flat(trees[1:])])
    assert len(joined) == len(together) == 3
    for name, value in together.__getstate__().items():
        np.testing.assert_array_equal(getattr(joined, name), value)


def test_totals_by_turns_of_many_and_few_rows():
    table = flat(grow(X, n_trees=6))
    leaves = list(table.leaves(single_precision(X)))
    expected = np.hstack([sum(table.values[leaves[t]] for t in range(turn, 6, 3)) for turn in range(3)])
    np.testing.assert_allclose(table.total(single_precision(X), 3), expected, atol=1e-14)
    np.testing.assert_allclose(table.total(single_precision(X[:9]), 3), expected[:9], atol=1e-14)
    np.testing.assert_allclose(table.total(single_precision(X)), sum(table.values[leaf] for leaf in leaves), atol=1e-14)


def test_no_trees():
    empty = FlatTrees.none(5)
    assert len(empty) == 0
    assert not empty.total(single_precision(X[:2]), 3).any()
    assert list(empty.leaves(single_precision(X))) == list(empty.leaves(single_precision(X[:2]))) == []


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("left", 0, 0),  # a cycle
        ("left", 0, 10**6),  # outside
        ("right", 0, -5),
        ("right", 2, 1),
        ("feature", 0, 5),
        ("feature", 0, -1),
        ("threshold", 0, np.nan),
        ("leaf", "leaf", 10**6),
        ("leaf", "leaf", -1),
        ("sizes", 0, 1),
        ("sizes", 0, -3),
    ],
)
def test_damaged_trees_are_rejected(name, place, value):
    state = flat(grow(X)).__getstate__()
    state[name] = state[name].copy()
    state[name][int(np.argmax(state["left"] == -1)) if place == "leaf" else place] = value
    with pytest.raises(DataError, match="Fit"):
        FlatTrees.__new__(FlatTrees).__setstate__(state)


def test_arrays_of_different_length_are_rejected():
    state = flat(grow(X)).__getstate__()
    with pytest.raises(DataError, match="shapes"):
        FlatTrees(**(state | {"feature": state["feature"][:-1]}))


def test_another_number_of_features_is_rejected():
    with pytest.raises(DataError, match="4 features"):
        next(flat(grow(X)).leaves(single_precision(X[:, :4])))


def test_values_beyond_single_precision_are_rejected_in_training_only():
    huge = np.array([[1e300, 0.0]])
    with pytest.raises(NonFiniteError, match="too large"):
        single_precision(huge, fitting=True)
    with pytest.raises(NonFiniteError, match="too large"):
        single_precision(sparse.csr_matrix(huge), fitting=True)
    assert single_precision(huge)[0, 0] == np.inf


def test_missing_values_in_sparse_features_are_rejected():
    with pytest.raises(NonFiniteError, match="sparse"):
        single_precision(sparse.csr_matrix([[np.nan, 1.0]]))

"""Propagation: the closed form against the iteration, graphs, new rows, bad input."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.metrics import pairwise_distances
from sklearn.utils.estimator_checks import check_estimator

from skldl.distributions import PropagationEnhancer, from_label_sets
from skldl.exceptions import DataError, LengthMismatchError, SingleLabelError, ZeroRowError

X, Y = make_multilabel_classification(n_samples=60, n_classes=4, allow_unlabeled=False, random_state=0)


def _iterate(A, L, alpha):
    root = 1 / np.sqrt(A.sum(axis=1))
    P = root[:, None] * A * root[None]
    F = L.copy()
    for _ in range(2000):
        F = alpha * P @ F + (1 - alpha) * L
    return F


@pytest.mark.parametrize("n_neighbors", [5, None])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.9])
def test_closed_form_is_where_the_iteration_ends(alpha, n_neighbors):
    distances = pairwise_distances(X) + np.diag(np.full(60, np.inf))
    tied = distances <= np.sort(distances, axis=1)[:, [(n_neighbors or 59) - 1]]
    A = np.where(tied | tied.T, np.exp(-0.5 * (distances / 9.0) ** 2), 0.0)
    expected = _iterate(A, Y.astype(float), alpha)
    model = PropagationEnhancer(alpha, n_neighbors, bandwidth=9.0).fit(X, Y)
    np.testing.assert_allclose(model.distributions_, expected / expected.sum(axis=1, keepdims=True), atol=1e-10)


def test_all_neighbours_are_the_full_graph():
    full = PropagationEnhancer(n_neighbors=None, bandwidth=5.0).fit(X, Y)
    tied = PropagationEnhancer(n_neighbors=59, bandwidth=5.0).fit(X, Y)
    np.testing.assert_allclose(tied.distributions_, full.distributions_, atol=1e-10)
    new = X[:5] + 0.3
    np.testing.assert_allclose(
        PropagationEnhancer(n_neighbors=60, bandwidth=5.0).fit(X, Y).transform(new), full.transform(new), atol=1e-10
    )


@pytest.mark.parametrize("n_neighbors", [5, None])
def test_rows_are_distributions_that_favour_the_own_labels(n_neighbors):
    enhancer = PropagationEnhancer(n_neighbors=n_neighbors)
    D = enhancer.fit_transform(X, Y)
    np.testing.assert_allclose(D.sum(axis=1), 1)
    assert D.min() >= 0
    own = np.where(Y == 1, D, np.inf).min(axis=1)
    others = np.where(Y == 1, -np.inf, D).max(axis=1)
    assert (own > others).mean() > 0.9
    P = enhancer.transform(X + 0.1)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert np.corrcoef(P.ravel(), D.ravel())[0, 1] > 0.4
    assert np.isfinite(enhancer.transform(1e6 * X)).all()


def test_no_neighbours_is_an_equal_share_and_a_new_row_beside_one_takes_its_labels():
    np.testing.assert_allclose(PropagationEnhancer(alpha=0.0).fit_transform(X, Y), from_label_sets(Y))
    enhancer = PropagationEnhancer(alpha=0.0, n_neighbors=1).fit(X, Y)
    np.testing.assert_allclose(enhancer.transform(X + 1e-6), from_label_sets(Y), atol=1e-9)


def test_copies_of_a_row_are_tied_and_isolated_rows_keep_their_labels():
    twins = PropagationEnhancer(n_neighbors=1, bandwidth=0.1).fit([[0.0], [0.0], [99.0]], [[1, 0], [1, 1], [0, 1]])
    assert 0 < twins.distributions_[0, 1] < twins.distributions_[1, 1]
    np.testing.assert_allclose(twins.distributions_[2], [0, 1])
    np.testing.assert_allclose(twins.transform([[99.0]]), [[0, 1]])
    same = PropagationEnhancer().fit(np.zeros((3, 2)), [[1, 0], [0, 1], [1, 1]])
    assert same.bandwidth_ == 1
    alone = PropagationEnhancer().fit([[1.0, 2.0]], [[1, 1, 0]])
    np.testing.assert_allclose(alone.distributions_, [[0.5, 0.5, 0]])
    np.testing.assert_allclose(alone.transform([[3.0, 4.0]]), [[0.5, 0.5, 0]])
    assert np.isfinite(same.distributions_).all()


def test_rows_without_labels_take_those_of_their_neighbours():
    D = PropagationEnhancer(n_neighbors=1).fit_transform([[0.0], [0.1], [5.0], [5.1]], [[1, 0], [0, 0], [0, 1], [0, 1]])
    np.testing.assert_allclose(D[1], [1, 0])
    with pytest.raises(ZeroRowError, match="Row 1 holds no label"):
        PropagationEnhancer(alpha=0.0).fit(X[:3], [[1, 0], [0, 0], [0, 1]])


def test_sparse_features_sets_single_labels_and_names():
    X = np.random.default_rng(0).normal(size=(60, 5))  # no two distances alike, so every search finds the same rows
    expected = PropagationEnhancer().fit_transform(X, Y)
    np.testing.assert_allclose(PropagationEnhancer().fit_transform(sparse.csr_matrix(X), Y), expected)
    np.testing.assert_allclose(PropagationEnhancer().fit_transform(X, sparse.csr_matrix(Y)), expected)
    names = np.array(list("abcd"))
    by_sets = PropagationEnhancer().fit(X, [set(names[row == 1]) for row in Y])
    np.testing.assert_allclose(by_sets.distributions_, expected)
    assert by_sets.classes_ == ["a", "b", "c", "d"]
    single = PropagationEnhancer().fit(X, ["a" if row[0] else "b" for row in Y])
    assert single.distributions_.shape == (60, 2)
    frame = PropagationEnhancer().fit_transform(X, pd.DataFrame(Y, columns=list("abcd"), index=range(100, 160)))
    assert (list(frame.columns), frame.index[0]) == (["a", "b", "c", "d"], 100)


def test_bad_input(monkeypatch):
    for name, value in [("alpha", 1.0), ("alpha", -0.1), ("n_neighbors", 0), ("n_neighbors", 2.5), ("bandwidth", 0.0)]:
        with pytest.raises(ValueError, match=f"{name}={value}"):
            PropagationEnhancer(**{name: value}).fit(X, Y)
    with pytest.raises(DataError, match="None"):
        PropagationEnhancer().fit(X, None)
    with pytest.raises(LengthMismatchError):
        PropagationEnhancer().fit(X, Y[:-1])
    with pytest.raises(SingleLabelError):
        PropagationEnhancer().fit(X, Y[:, :1])
    with pytest.raises(DataError):
        PropagationEnhancer().fit(X, Y).transform(X[:, :3])
    monkeypatch.setattr("skldl.distributions._propagation.cg", lambda *_, **__: (np.zeros(60), 1))
    with pytest.raises(DataError, match="did not converge"):
        PropagationEnhancer().fit(X, Y)


def test_estimator_checks_of_scikit_learn():
    results = check_estimator(clone(PropagationEnhancer()), on_fail=None, on_skip=None)
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


def test_ties_depend_neither_on_row_order_nor_on_sparsity():
    generator = np.random.default_rng(0)
    X = generator.integers(0, 2, size=(60, 4)).astype(float)  # copies and equal distances everywhere
    Y = (generator.random((60, 3)) < 0.5).astype(int)
    Y[Y.sum(axis=1) == 0, 0] = 1
    new = generator.integers(0, 2, size=(20, 4)) + 0.5
    plain = PropagationEnhancer(n_neighbors=3).fit(X, Y)
    order = generator.permutation(60)
    shuffled = PropagationEnhancer(n_neighbors=3).fit(X[order], Y[order])
    np.testing.assert_allclose(shuffled.distributions_, plain.distributions_[order], atol=1e-9)
    np.testing.assert_allclose(shuffled.transform(new), plain.transform(new), atol=1e-9)
    stored = PropagationEnhancer(n_neighbors=3).fit(sparse.csr_matrix(X), Y)
    np.testing.assert_allclose(stored.distributions_, plain.distributions_, atol=1e-9)
    np.testing.assert_allclose(stored.transform(sparse.csr_matrix(new)), plain.transform(new), atol=1e-9)
    np.testing.assert_allclose(stored.transform(new), plain.transform(new), atol=1e-9)
    np.testing.assert_allclose(plain.transform(sparse.csr_matrix(new)), plain.transform(new), atol=1e-9)

"""The filter of large searches finds what a look at every pair finds, ties in the order of the rows included."""

import pickle
import threading

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.utils.extmath import row_norms

from skldl import AAKNN
from skldl.neighbors import _filter, _search
from skldl.neighbors._filter import LowerBoundFilter
from skldl.neighbors._search import StableSearch


def every_pair(X, queries, n_neighbors):
    difference = queries[:, None].astype(np.float64) - X.astype(np.float64)
    squares = np.einsum("ijk,ijk->ij", difference, difference)
    found = np.lexsort((np.broadcast_to(np.arange(len(X)), squares.shape), squares), axis=1)[:, :n_neighbors]
    return np.take_along_axis(squares, found, axis=1), found


def tables():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12))
    return {
        "independent": X,
        "few directions": X @ (rng.normal(size=(12, 12)) * 0.5 ** np.arange(12)[:, None]),
        "single precision": X.astype(np.float32),
        "far from zero": X + 1e7,
        "whole numbers with ties": rng.integers(0, 3, size=(3000, 12)).astype(float),
        "one constant column": np.column_stack([X, np.ones(3000)]),
    }


@pytest.mark.parametrize("kind", tables())
@pytest.mark.parametrize("n_used", [None, 1, 6])
def test_the_filter_agrees_with_every_pair(kind, n_used, monkeypatch):
    monkeypatch.setattr(_filter, "ROWS", 500)
    monkeypatch.setattr(_filter, "QUERIES", 30)
    X = tables()[kind]
    if n_used is not None:
        monkeypatch.setattr(LowerBoundFilter, "_trial", lambda self, rotated: n_used)
    queries = np.vstack([X[:20], X[40:80] + X.dtype.type(0.1)])
    squares, found = LowerBoundFilter(X).query(queries, 7)
    expected_squares, expected = every_pair(X, queries, 7)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(squares, expected_squares, rtol=1e-12)


def test_few_coordinates_take_part_where_the_columns_depend_on_each_other():
    assert LowerBoundFilter(tables()["few directions"])._n_used < LowerBoundFilter(tables()["independent"])._n_used


def test_a_filter_that_lets_everything_through_gives_up():
    X = np.zeros((3000, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_filter, "MOST_CANDIDATES", 1000)
        assert LowerBoundFilter(X).query(X[:40], 3) is None


def test_predictions_are_the_same_with_and_without_the_filter(monkeypatch):
    monkeypatch.setattr(_search, "LEAST_ROWS", 500)
    rng = np.random.default_rng(1)
    X, D = rng.normal(size=(3000, 20)), rng.dirichlet(np.ones(4), 3000)
    queries = rng.normal(size=(100, 20))
    for weights in ("uniform", "distance"):
        model = AAKNN(weights=weights).fit(X, D)
        predicted = model.predict(queries)
        assert isinstance(model._search._filter, LowerBoundFilter)
        assert pickle.loads(pickle.dumps(model))._search._filter is None
        monkeypatch.setattr(_search, "LEAST_QUERIES", 1000)
        np.testing.assert_allclose(model.predict(queries), predicted, rtol=1e-12)
        monkeypatch.undo()
        monkeypatch.setattr(_search, "LEAST_ROWS", 500)


def test_huge_numbers_are_left_to_the_search_in_double_precision(monkeypatch):
    monkeypatch.setattr(_search, "LEAST_ROWS", 500)
    rng = np.random.default_rng(2)
    X, D = rng.normal(size=(1000, 20)) * 1e20, rng.dirichlet(np.ones(3), 1000)
    model = AAKNN().fit(X, D)
    model.predict(X[:50])
    assert model._search._filter is None


@pytest.mark.parametrize("size", [1e16, 1e20, 1e100])
def test_one_huge_query_changes_no_other(size, monkeypatch):
    monkeypatch.setattr(_search, "LEAST_ROWS", 500)
    rng = np.random.default_rng(2)
    X, D = rng.normal(size=(1000, 20)), rng.dirichlet(np.ones(3), 1000)
    model = AAKNN().fit(X, D)
    queries = rng.normal(size=(50, 20))
    expected = model.predict(queries)
    queries[7] *= size
    np.testing.assert_array_equal(np.delete(model.predict(queries), 7, axis=0), np.delete(expected, 7, axis=0))


@pytest.mark.parametrize("n_rows", [50, 1000])
@pytest.mark.parametrize("algorithm", ["auto", "kd_tree"])
def test_distances_that_overflow_are_refused(algorithm, n_rows):
    X, D = np.random.default_rng(2).normal(size=(n_rows, 20)), np.full((n_rows, 2), 0.5)
    queries = X[:40].copy()
    queries[7] *= 1e160
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="Row 7 of X is too far"):
        AAKNN(algorithm=algorithm).fit(X, D).predict(queries)


@pytest.mark.parametrize("count", [1, 7, 60])
@pytest.mark.parametrize("n_places", [960, 1000, 1007, 2400])
def test_least_numbers_by_groups_equal_a_sort(count, n_places):
    values = np.random.default_rng(0).integers(0, 3000, size=(11, n_places)).astype(float)  # with ties
    values[3] = 5.0  # one row is nothing but ties
    least, places = _search._first_of_groups(values, count)
    np.testing.assert_array_equal(least, np.sort(values, axis=1)[:, :count])
    np.testing.assert_array_equal(np.take_along_axis(values, places, axis=1), least)
    np.testing.assert_array_equal(places, np.argsort(values, axis=1, kind="stable")[:, :count])


@pytest.mark.parametrize("n_places", range(16, 160, 3))
def test_groups_of_different_size_hold_every_place(n_places):
    """The least number of each row is in another place: none is left out, whatever the number of places."""
    values = np.ones((n_places, n_places)) - np.eye(n_places)
    least, places = _search._first_of_groups(values, 1)
    np.testing.assert_array_equal(least, 0.0)
    np.testing.assert_array_equal(places[:, 0], np.arange(n_places))


@pytest.mark.parametrize("rows_in_block", [4, 7])  # with 4, the training rows are too many to be copied beside norms
def test_searches_of_middle_size_equal_a_loop(monkeypatch, rows_in_block):
    """Duplicates, a large common offset and blocks of few rows: ties still go to the lower row number."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(1500, 5)).astype(float) + 1e4
    queries = np.concatenate([X[:20], X[:20] + 0.5])
    monkeypatch.setattr(_search, "GROUPED_CELLS", 1500 * rows_in_block)
    called = []
    plain = _search._first_of_groups
    monkeypatch.setattr(_search, "_first_of_groups", lambda *args: called.append(1) or plain(*args))
    search = StableSearch(X, metric="euclidean", metric_params=None, algorithm="brute", n_jobs=None)
    distances, neighbors = search.query(queries, 9, exact=True)
    exact = np.sqrt(((queries[:, None] - X) ** 2).sum(axis=2))
    expected = np.argsort(exact, axis=1, kind="stable")[:, :9]
    assert called
    np.testing.assert_array_equal(neighbors, expected)
    np.testing.assert_allclose(distances, np.take_along_axis(exact, expected, axis=1), atol=1e-12)


def test_the_search_of_scikit_learn_is_fitted_when_it_is_needed():
    """Not for distances that are computed here, but for a file, and for more neighbours than groups can serve."""
    rng = np.random.default_rng(3)
    X, D = rng.normal(size=(400, 20)), rng.dirichlet(np.ones(4), 400)
    queries = rng.normal(size=(300, 20))
    model = AAKNN().fit(X, D)
    predicted = model.predict(queries)
    assert not hasattr(model._search._index, "_fit_X")
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded._search._index._fit_X, X)
    np.testing.assert_array_equal(loaded.predict(queries), predicted)
    fresh = AAKNN().fit(X, D)
    distances, neighbors = fresh.kneighbors(queries, 100)
    exact = cdist(queries, X)
    np.testing.assert_array_equal(neighbors, np.argsort(exact, axis=1, kind="stable")[:, :100])
    np.testing.assert_allclose(distances, np.sort(exact, axis=1)[:, :100], rtol=1e-12)
    assert hasattr(fresh._search._index, "_fit_X")


def test_a_search_of_scikit_learn_refuses_wrong_settings_in_fit():
    X, D = np.random.default_rng(4).normal(size=(40, 20)), np.full((40, 2), 0.5)
    with pytest.raises(ValueError, match="metric"):
        AAKNN(metric="no such metric").fit(X, D)
    with pytest.raises(ValueError, match="sqeuclidean"):
        AAKNN(metric="sqeuclidean", algorithm="kd_tree").fit(X, D)
    with pytest.raises(ValueError, match="'p' parameter"):
        AAKNN(metric="euclidean", metric_params={"p": -3}, algorithm="brute").fit(X, D)


@pytest.mark.parametrize("n_queries", [3, 300], ids=["all at once", "in groups"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_single_precision_far_from_zero_loses_no_neighbours(n_queries, kind):
    """‖x‖² − 2xᵀy + ‖y‖² is right only if each of its terms is in double precision."""
    rng = np.random.default_rng(5)
    X, queries = ((rng.normal(size=(n, 4)) + 3000).astype(np.float32) for n in (400, n_queries))
    model = AAKNN(algorithm="brute").fit(kind(X), rng.dirichlet(np.ones(3), 400))
    exact = cdist(queries.astype(np.float64), X.astype(np.float64))
    expected = np.argsort(exact, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(model.kneighbors(kind(queries), 5)[1], expected)
    model._search._norms = row_norms(X, squared=True).astype(np.float64)  # as in older files
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.kneighbors(kind(queries), 5)[1], expected)


def test_a_metric_need_not_be_copied():
    class Counting:
        def __init__(self):
            self.n_calls, self.lock = 0, threading.Lock()  # a lock cannot be copied

        def __call__(self, left, right):
            with self.lock:
                self.n_calls += 1
            return float(np.abs(left - right).sum())

    rng = np.random.default_rng(6)
    X, D, metric = rng.normal(size=(20, 3)), rng.dirichlet(np.ones(3), 20), Counting()
    same = AAKNN(metric="manhattan").fit(X, D).predict(X)
    np.testing.assert_allclose(AAKNN(metric=metric).fit(X, D).predict(X), same, rtol=1e-12)
    assert metric.n_calls >= 20


@pytest.mark.parametrize("algorithm", ["brute", "auto"])
@pytest.mark.parametrize("power", [{}, {"p": 2}, {"p": 3}])
def test_weights_of_features_reach_the_metric(power, algorithm):
    """With p = 2 too, which without weights is the Euclidean distance."""
    rng = np.random.default_rng(7)
    X, D, params = rng.normal(size=(50, 20)), rng.dirichlet(np.ones(3), 50), {"w": np.linspace(0.0, 5.0, 20)}
    model = AAKNN(metric="minkowski", metric_params=power | params, algorithm=algorithm).fit(X, D)
    exact = cdist(X, X, "minkowski", **({"p": 2} | power | params))
    distances, neighbors = model.kneighbors(X, 4)
    np.testing.assert_array_equal(neighbors, np.argsort(exact, axis=1)[:, :4])
    np.testing.assert_allclose(distances, np.sort(exact, axis=1)[:, :4], atol=1e-12)

"""AAKNN against brute force in plain Python, its ties, all k at once, leave-one-out, and the paper's numbers."""

import pickle
import threading

import numpy as np
import pytest
import sklearn
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsRegressor

from skldl import AAKNN
from skldl.metrics import PAPER_MEASURES, evaluate
from skldl.testing import CHECKS, check_estimator, make_distributions

TWO_PLACES = "a copied row takes two of the k places"


def by_brute_force(distances, D, k, weigh=np.ones_like, sample_weight=None):
    """One row after another: sort by distance, then index; average the first k."""
    sample_weight = np.ones(len(D)) if sample_weight is None else sample_weight
    rows = []
    for row in distances:
        nearest = sorted(range(len(row)), key=lambda i, row=row: (row[i], i))[:k]
        weights = weigh(row[nearest]) * sample_weight[nearest]
        rows.append(weights @ D[nearest] / weights.sum())
    return np.array(rows)


def with_duplicates(n_samples=60, n_features=5, seed=0):
    """Rows that come three times each, far apart in the file, and off the grid of exact binary fractions."""
    X, D = make_distributions(n_samples, n_features, 3, random_state=seed)
    X = 0.1 + X / 3
    return np.tile(X[: n_samples // 3], (3, 1)), D


def test_passes_the_common_checks():
    expected = {
        "check_weight_two_is_row_twice": TWO_PLACES,
        "check_sample_weight_equivalence_on_dense_data": TWO_PLACES,
        "check_sample_weight_equivalence_on_sparse_data": TWO_PLACES,
    }
    check_estimator(AAKNN(), expected_failed_checks=expected)


def by_closeness(distances):
    """A smooth weight that keeps some mass at any distance."""
    return 1 / (1 + distances)


@pytest.mark.parametrize("weights", ["distance", by_closeness])
@pytest.mark.parametrize("check", sorted(CHECKS.keys() - {"check_weight_two_is_row_twice", "check_model_selection"}))
def test_passes_our_checks_with_other_weights(weights, check):
    CHECKS[check](AAKNN(weights=weights))


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "manhattan", "chebyshev", "cosine", "canberra"])
@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_equals_brute_force(metric, weights):
    X, D = make_distributions(50, 4, 3)
    X_new = make_distributions(20, 4, 3, random_state=1)[0]
    weigh = np.ones_like if weights == "uniform" else lambda distances: 1 / distances
    expected = by_brute_force(pairwise_distances(X_new, X, metric=metric), D, 7, weigh)
    np.testing.assert_allclose(AAKNN(7, weights=weights, metric=metric).fit(X, D).predict(X_new), expected, atol=1e-12)


def test_equals_scikit_learn_where_nothing_is_tied():
    X, D = make_distributions(200, 6, 5)
    X_new = make_distributions(50, 6, 5, random_state=1)[0]
    for k in (1, 4, 200):
        expected = KNeighborsRegressor(k).fit(X, D).predict(X_new)
        np.testing.assert_allclose(AAKNN(k).fit(X, D).predict(X_new), expected, atol=1e-13)


def test_metric_params_reach_the_metric():
    X, D = make_distributions(50, 4, 3)
    model = AAKNN(3, metric="minkowski", metric_params={"p": 3}).fit(X, D)
    np.testing.assert_allclose(model.predict(X), by_brute_force(cdist(X, X, "minkowski", p=3), D, 3), atol=1e-12)
    scale = {"V": np.array([1.0, 4.0, 9.0, 0.1])}
    model = AAKNN(3, metric="seuclidean", metric_params=scale).fit(X, D)
    np.testing.assert_allclose(model.predict(X), by_brute_force(cdist(X, X, "seuclidean", **scale), D, 3), atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("algorithm", ["brute", "auto"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_duplicates_stand_in_the_order_of_the_file(metric, algorithm, dtype):
    X, D = with_duplicates()
    X = X.astype(dtype)
    exact = np.tile(pairwise_distances(X[:20].astype(float), metric=metric), (3, 3))
    for k in (1, 2, 4, 5, 7):
        model = AAKNN(k, metric=metric, algorithm=algorithm).fit(X, D)
        np.testing.assert_allclose(model.predict(X), by_brute_force(exact, D, k), atol=1e-12)
        distances, neighbors = model.kneighbors(X, 6)
        np.testing.assert_array_equal(neighbors[:, :3] % 20, np.arange(60)[:, None] % 20 + np.zeros(3, int))
        assert np.all(np.diff(neighbors[:, :3]) == 20)
        assert np.all(np.diff(neighbors[:, 3:]) == 20)
        assert distances[:, :3].max() < (1e-6 if metric == "cosine" else 1e-300)


def test_sparse_duplicates_stand_in_the_order_of_the_file():
    X, D = with_duplicates()
    X[X < 0.2] = 0.0
    for metric in ("euclidean", "cosine", "manhattan"):
        dense = AAKNN(4, metric=metric).fit(X, D)
        scarce = AAKNN(4, metric=metric).fit(sparse.csr_matrix(X), D)
        for rows in (X, sparse.csr_matrix(X)):
            np.testing.assert_array_equal(scarce.kneighbors(rows)[1], dense.kneighbors(rows)[1])
            np.testing.assert_allclose(scarce.predict(rows), dense.predict(rows), atol=1e-13)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
def test_a_prediction_does_not_depend_on_the_batch(weights):
    generator = np.random.default_rng(0)
    X = generator.integers(0, 3, size=(300, 4)) / 10  # a coarse grid: many exact and near ties
    D = generator.dirichlet(np.ones(4), size=300)
    model = AAKNN(5, weights=weights).fit(X, D)
    alone = np.vstack([model.predict(row[None]) for row in X])
    for size in (7, 50, 300):
        parts = np.vstack([model.predict(part) for part in np.array_split(X, len(X) // size)])
        np.testing.assert_allclose(parts, alone, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_features", [3, 36])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_ties_on_a_grid_of_whole_numbers(dtype, n_features, form):
    generator = np.random.default_rng(0)
    for n_samples in (20, 61, 90):
        X = generator.integers(0, 3, size=(n_samples, n_features)).astype(dtype)
        X_new = generator.integers(0, 3, size=(15, n_features)).astype(dtype)
        model = AAKNN().fit(form(X), np.full((n_samples, 2), 0.5))
        exact = cdist(X_new, X)
        for k in (1, 7, n_samples - 1, n_samples):
            distances, neighbors = model.kneighbors(form(X_new), k)
            np.testing.assert_array_equal(neighbors, np.argsort(exact, axis=1, kind="stable")[:, :k])
            np.testing.assert_allclose(distances, np.sort(exact, axis=1)[:, :k], atol=1e-12)


def test_ties_beyond_all_candidates_are_settled():
    """All but 600 of 3,000 rows are at the same distance from 1,000 queries, which are settled in several blocks."""
    X, D = np.ones((3000, 3)), make_distributions(3000, 2, 3)[1]
    X[::5] = 2.0
    P = AAKNN(3).fit(X, D).predict(np.ones((1000, 3)))
    np.testing.assert_allclose(P, np.tile(D[1:4].mean(axis=0), (1000, 1)), atol=1e-14)


def tables():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 12))
    return {
        "independent": X,
        "few directions": X @ (rng.normal(size=(12, 12)) * 0.5 ** np.arange(12)[:, None]),
        "single precision": X.astype(np.float32),
        "far from zero": X + 1e7,
        "whole numbers with ties": rng.integers(0, 3, size=(3000, 12)).astype(float),
        "whole numbers far from zero": rng.integers(0, 3, size=(3000, 4)) + 1e5,
        "one constant column": np.column_stack([X, np.ones(3000)]),
        "nothing but ties": np.ones((3000, 5)),
    }


@pytest.mark.parametrize("kind", tables())
@pytest.mark.parametrize("algorithm", ["brute", "auto"])
@pytest.mark.parametrize("n_neighbors", [1, 7, 190])
def test_every_table_is_searched_as_by_a_look_at_every_pair(kind, algorithm, n_neighbors):
    X = tables()[kind]
    queries = np.vstack([X[:20], X[40:80] + X.dtype.type(0.1)])
    difference = queries[:, None].astype(np.float64) - X.astype(np.float64)
    exact = np.sqrt(np.einsum("ijk,ijk->ij", difference, difference))
    distances, neighbors = AAKNN(algorithm=algorithm).fit(X, np.full((3000, 2), 0.5)).kneighbors(queries, n_neighbors)
    np.testing.assert_array_equal(neighbors, np.argsort(exact, axis=1, kind="stable")[:, :n_neighbors])
    np.testing.assert_allclose(distances, np.sort(exact, axis=1)[:, :n_neighbors], rtol=1e-12)


@pytest.mark.parametrize("n_samples", [*range(130, 160, 3), 331, 1500, 2049])
def test_no_training_row_is_left_out(n_samples):
    """Rows on a circle, so that the nearest of each is itself and then the two beside it, whatever their positions."""
    angles = 2 * np.pi * np.arange(n_samples) / n_samples
    X = np.column_stack([np.cos(angles), np.sin(angles), *np.zeros((14, n_samples))])
    model = AAKNN(1).fit(X, np.full((n_samples, 2), 0.5))
    rows = np.arange(n_samples)
    np.testing.assert_array_equal(model.kneighbors(X, 1)[1][:, 0], rows)
    beside = np.sort(np.column_stack([(rows - 1) % n_samples, (rows + 1) % n_samples]))
    np.testing.assert_array_equal(np.sort(model.kneighbors(X, 3)[1][:, 1:]), beside)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_training_rows_are_searched_like_few(metric, dtype):
    """The 5 nearest of 20,000 rows are those among the 400 rows that are not far away, duplicates included."""
    X, D = make_distributions(20_000, 20, 3)
    X[200:400] = X[:200]
    X[400:] += 1000.0
    X = X.astype(dtype)
    many = AAKNN(metric=metric, weights="distance").fit(X, D)
    few = AAKNN(metric=metric, weights="distance").fit(X[:400], D[:400])
    queries = X[:300] + dtype(0.01)
    np.testing.assert_array_equal(many.kneighbors(queries)[1], few.kneighbors(queries)[1])
    np.testing.assert_allclose(many.predict(queries), few.predict(queries), atol=1e-12)
    np.testing.assert_allclose(many.predict_all(queries, 9), few.predict_all(queries, 9), atol=1e-12)


@pytest.mark.parametrize("size", [1e16, 1e20, 1e100])
def test_one_huge_query_changes_no_other(size):
    rng = np.random.default_rng(2)
    X, D = rng.normal(size=(1000, 20)), rng.dirichlet(np.ones(3), 1000)
    model = AAKNN().fit(X, D)
    queries = rng.normal(size=(50, 20))
    expected = model.predict(queries)
    queries[7] *= size
    np.testing.assert_array_equal(np.delete(model.predict(queries), 7, axis=0), np.delete(expected, 7, axis=0))


@pytest.mark.parametrize("n_queries", [3, 300])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_single_precision_far_from_zero_loses_no_neighbours(n_queries, form):
    """‖x‖² − 2xᵀy + ‖y‖² is right only if each of its terms is in double precision."""
    rng = np.random.default_rng(5)
    X, queries = ((rng.normal(size=(n, 4)) + 3000).astype(np.float32) for n in (400, n_queries))
    model = AAKNN(algorithm="brute").fit(form(X), rng.dirichlet(np.ones(3), 400))
    exact = cdist(queries.astype(np.float64), X.astype(np.float64))
    expected = np.argsort(exact, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(model.kneighbors(form(queries), 5)[1], expected)


@pytest.mark.parametrize("n_features", [3, 20])
def test_models_can_be_pickled(n_features):
    X, D = make_distributions(300, n_features, 3)
    model = AAKNN().fit(X, D)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_a_far_origin_does_not_change_the_neighbours():
    X, D = make_distributions(80, 3, 3)
    shifted = np.round(X * 2**20) / 2**20 + 2.0**30  # ‖x‖² − 2xᵀy + ‖y‖² keeps no digit of the distance here
    expected = AAKNN(4).fit(shifted - 2.0**30, D).predict(shifted - 2.0**30)
    np.testing.assert_allclose(AAKNN(4).fit(shifted, D).predict(shifted), expected, atol=1e-12)


def test_a_row_at_distance_zero_takes_all_the_weight():
    X, D = with_duplicates()
    P = AAKNN(5, weights="distance").fit(X, D).predict(X[:20])
    np.testing.assert_allclose(P, (D[:20] + D[20:40] + D[40:]) / 3, atol=1e-12)


def test_tiny_distances_do_not_overflow():
    X = np.array([[0.0], [1e-310], [3e-310], [1.0]])
    D = np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0], [1.0, 0.0]])
    P = AAKNN(2, weights="distance", metric="manhattan").fit(X[1:], D[1:]).predict(X[:1])
    np.testing.assert_allclose(P, [[0.375, 0.625]], atol=1e-6)


@pytest.mark.parametrize("weights", ["uniform", "distance", by_closeness])
def test_sample_weight_multiplies_the_weights_of_the_neighbours(weights):
    X, D = make_distributions(40, 3, 3)
    weight = np.random.default_rng(0).uniform(0.1, 5, size=40)
    weigh = {"uniform": np.ones_like, "distance": lambda d: (d == 0.0) * 1.0}.get(str(weights), weights)
    expected = by_brute_force(cdist(X, X), D, 6, weigh, weight)
    np.testing.assert_allclose(AAKNN(6, weights=weights).fit(X, D, weight).predict(X), expected, atol=1e-12)


def by_median(distances):
    """A weight that sees the whole row of distances."""
    return 1 / (0.1 + np.median(distances, axis=1, keepdims=True) + distances)


@pytest.mark.parametrize("weights", ["uniform", "distance", by_median])
def test_all_k_from_one_search(weights):
    X, D = with_duplicates()
    weight = np.linspace(1, 2, len(X))
    X_new = np.vstack([X[:7], make_distributions(10, 5, 3, random_state=2)[0]])
    tables = AAKNN(1, weights=weights).fit(X, D, weight).predict_all(X_new, 20)
    assert tables.shape == (20, 17, 3)
    for k in range(1, 21):
        expected = AAKNN(k, weights=weights).fit(X, D, weight).predict(X_new)
        np.testing.assert_allclose(tables[k - 1], expected, atol=1e-13)
    np.testing.assert_allclose(tables.sum(axis=2), 1, atol=1e-12)


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_leave_one_out_is_a_fit_without_the_row(weights, form):
    X, D = with_duplicates(30)
    X[:25] = X[0]  # more duplicates than neighbours: a row need not be in its own list
    weight = np.linspace(1, 2, len(X))
    tables = AAKNN(weights=weights).fit(form(X), D, weight).leave_one_out(8)
    assert tables.shape == (8, 30, 3)
    for row in range(len(X)):
        rest = np.arange(len(X)) != row
        model = AAKNN(weights=weights).fit(form(X[rest]), D[rest], weight[rest])
        np.testing.assert_allclose(tables[:, row], model.predict_all(form(X[row : row + 1]), 8)[:, 0], atol=1e-12)


def test_predict_path_searches_once():
    X, D = with_duplicates()
    values = [7, 1, 3, 3]
    calls = []
    metric = lambda a, b: calls.append(1) or float(np.abs(a - b).sum())  # noqa: E731
    AAKNN(7, metric=metric).fit(X, D).predict(X[:9])
    n_calls = len(calls)
    path = list(AAKNN(metric=metric).predict_path(X, D, X[:9], param="n_neighbors", values=values))
    assert len(calls) == 2 * n_calls
    expected = [AAKNN(k, metric="manhattan").fit(X, D).predict(X[:9]) for k in values]
    np.testing.assert_allclose(path, expected, atol=1e-13)
    metrics = list(AAKNN().predict_path(X, D, X[:9], param="metric", values=["euclidean", "cosine"]))
    np.testing.assert_allclose(metrics[1], AAKNN(metric="cosine").fit(X, D).predict(X[:9]), atol=1e-13)
    with pytest.raises(ValueError, match="n_neighbors=99"):
        list(AAKNN().predict_path(X, D, X[:9], param="n_neighbors", values=[1, 99]))


def test_precomputed_distances():
    X, D = with_duplicates()
    X_new = make_distributions(10, 5, 3, random_state=2)[0]
    model = AAKNN(4, metric="precomputed").fit(cdist(X, X), D)
    np.testing.assert_allclose(model.predict(cdist(X_new, X)), AAKNN(4).fit(X, D).predict(X_new), atol=1e-13)
    np.testing.assert_allclose(model.leave_one_out(4), AAKNN(4).fit(X, D).leave_one_out(4), atol=1e-13)
    scores = cross_val_score(AAKNN(4, metric="precomputed"), cdist(X, X), D, cv=3)
    np.testing.assert_allclose(scores, cross_val_score(AAKNN(4), X, D, cv=3), atol=1e-12)


def test_precomputed_distances_to_rows_of_weight_zero_are_not_used():
    X, D = make_distributions(30, 3, 3)
    weight = np.where(np.arange(30) % 3 == 0, 0.0, 1.0)
    model = AAKNN(4, metric="precomputed").fit(cdist(X, X), D, weight)
    expected = AAKNN(4).fit(X, D, weight)
    np.testing.assert_allclose(model.predict(cdist(X, X)), expected.predict(X), atol=1e-13)
    np.testing.assert_array_equal(model.kneighbors(cdist(X, X))[1], expected.kneighbors(X)[1])


def test_precomputed_rejects_what_is_not_a_distance_matrix():
    X, D = make_distributions(30, 3, 3)
    with pytest.raises(ValueError, match="square matrix"):
        AAKNN(metric="precomputed").fit(X, D)
    with pytest.raises(TypeError, match="dense"):
        AAKNN(metric="precomputed").fit(sparse.csr_matrix(cdist(X, X)), D)


def test_memory_stays_within_blocks_of_scikit_learn():
    X, D = make_distributions(400, 20, 3)
    expected = AAKNN(5, metric="cosine").fit(X, D).predict(X)
    with sklearn.config_context(working_memory=0.1):
        np.testing.assert_allclose(AAKNN(5, metric="cosine").fit(X, D).predict(X), expected, atol=1e-13)


def test_grid_search_over_k():
    X, D = make_distributions(60, 3, 3)
    search = GridSearchCV(AAKNN(), {"n_neighbors": [1, 5, 20]}, cv=3).fit(X, D)
    assert search.best_params_["n_neighbors"] in (5, 20)


def test_callable_metric():
    X, D = make_distributions(25, 3, 3)
    model = AAKNN(3, metric=lambda a, b: np.abs(a - b).max()).fit(X, D)
    np.testing.assert_allclose(
        model.predict(X), by_brute_force(pairwise_distances(X, metric="chebyshev"), D, 3), atol=1e-12
    )


def test_scikit_learn_rejects_wrong_settings_in_fit():
    X, D = np.random.default_rng(4).normal(size=(40, 20)), np.full((40, 2), 0.5)
    with pytest.raises(ValueError, match="metric"):
        AAKNN(metric="no such metric").fit(X, D)
    with pytest.raises(ValueError, match="sqeuclidean"):
        AAKNN(metric="sqeuclidean", algorithm="kd_tree").fit(X, D)
    with pytest.raises(ValueError, match="'p' parameter"):
        AAKNN(metric="euclidean", metric_params={"p": -3}, algorithm="brute").fit(X, D)


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


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0"),
        ({"n_neighbors": 2.5}, "n_neighbors=2.5"),
        ({"n_neighbors": True}, "n_neighbors=True"),
        ({"n_neighbors": 41}, "more than the 40 rows"),
        ({"weights": "far"}, "weights='far'"),
    ],
)
def test_bad_parameters_are_rejected_in_fit(params, message):
    with pytest.raises(ValueError, match=message):
        AAKNN(**params).fit(*make_distributions())


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (lambda distances: distances[:, 0], "shape"),
        (lambda distances: distances - 10, "negative"),
        (lambda distances: np.where(distances > 0.01, 0.0, 1.0), "row 1"),
    ],
)
def test_bad_weights_are_rejected(weights, message):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=message):
        AAKNN(weights=weights).fit(X, D).predict(np.vstack([X[0], X[0] + 5]))


def test_too_many_neighbours():
    model = AAKNN().fit(*make_distributions())
    X = make_distributions()[0]
    with pytest.raises(ValueError, match="max_neighbors=41"):
        model.predict_all(X, 41)
    with pytest.raises(ValueError, match="max_neighbors=40"):
        model.leave_one_out(40)
    with pytest.raises(ValueError, match="n_neighbors=41"):
        model.kneighbors(X, 41)


PUBLISHED = {
    "Yeast_alpha": ("0.0147", "0.232", "0.758", "0.0066", "0.9935", "0.9581"),
    "Yeast_cdc": ("0.0177", "0.237", "0.717", "0.0083", "0.9920", "0.9528"),
    "Yeast_elu": ("0.0177", "0.218", "0.644", "0.0074", "0.99286", "0.9546"),
    "Yeast_diau": ("0.0392", "0.212", "0.455", "0.015", "0.986", "0.937"),
    "Yeast_heat": ("0.045", "0.195", "0.392", "0.0145", "0.98612", "0.936"),
    "Yeast_spo": ("0.064", "0.271", "0.559", "0.0302", "0.972", "0.908"),
    "Yeast_cold": ("0.055", "0.150", "0.260", "0.014", "0.987", "0.936"),
    "Yeast_dtt": ("0.0392", "0.106", "0.182", "0.0072", "0.9931", "0.9549"),
    "Yeast_spo5": ("0.096", "0.193", "0.297", "0.033", "0.970", "0.904"),
    "Yeast_spoem": ("0.093", "0.137", "0.191", "0.0285", "0.975", "0.907"),
}
"""Column AA-kNN of the result tables of Geng (2016), as printed, in the order of `PAPER_MEASURES`."""


@pytest.mark.parametrize("dataset", PUBLISHED)
def test_the_papers_numbers(paper_data, dataset):
    X, D = paper_data(dataset)
    folds = []
    for test in np.array_split(np.arange(len(X)), 10):
        train = np.setdiff1d(np.arange(len(X)), test)
        folds.append(evaluate(D[test], AAKNN(4).fit(X[train], D[train]).predict(X[test])))
    for measure, printed in zip(PAPER_MEASURES, PUBLISHED[dataset], strict=True):
        mean = np.mean([fold[measure] for fold in folds])
        last_digit = 10.0 ** -len(printed.partition(".")[2])
        assert abs(mean - float(printed)) <= max(0.02 * float(printed), last_digit), (measure, printed, mean)


def test_cosine_ties_follow_the_lower_row_number():
    """Parallel rows have the same cosine distance, which rounding would separate."""
    rows = np.array([[15.0, 10.0, 15.0], [9.0, 6.0, 9.0], [3.0, 2.0, 3.0], [30.0, 20.0, 30.0]])
    for dtype in (np.float64, np.float32):
        for order in ([0, 1, 2, 3], [1, 0, 3, 2], [3, 2, 1, 0]):
            model = AAKNN(1, metric="cosine").fit(rows[order].astype(dtype), np.eye(4))
            np.testing.assert_array_equal(model.predict([[3, 1, 1], [1, 1, 1], [7, 3, 2]]), np.eye(4)[[0, 0, 0]])
    rng = np.random.default_rng(0)
    base = rng.normal(size=(5, 4))
    many = np.vstack([base[i % 5] * factor for i, factor in enumerate(rng.uniform(0.1, 9, size=60))])
    model = AAKNN(3, metric="cosine").fit(many, np.eye(60))
    nearest = model.predict(rng.normal(size=(40, 4))) > 0
    np.testing.assert_array_equal(nearest[:, :15].sum(axis=1), 3)  # the first three of twelve parallel rows


@pytest.mark.parametrize("scale", [1.0, 1.0005], ids=["sums of one", "other sums"])
def test_the_model_keeps_copies(scale):
    """Also where the validation of y has made no copy of it, since all its rows sum to one exactly."""
    X, _ = make_distributions()
    D = np.random.default_rng(0).permuted(np.tile([0.5, 0.375, 0.125], (len(X), 1)), axis=1) * scale
    model, new = AAKNN(3).fit(X, D), X[:5] + 0.1
    expected, own = model.predict(new), model.leave_one_out(2)
    X[:] = 0.0
    D[:] = 1 / 3
    np.testing.assert_array_equal(model.predict(new), expected)
    np.testing.assert_array_equal(model.leave_one_out(2), own)


def test_extreme_weights():
    X, D = make_distributions()
    weight = np.linspace(1, 3, len(D))
    expected = AAKNN(5).fit(X, D, weight).predict(X)
    for factor in (1e-300, 1e300, 1e-310):
        np.testing.assert_allclose(AAKNN(5).fit(X, D, weight * factor).predict(X), expected, atol=1e-8)

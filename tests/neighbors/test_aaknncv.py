"""`AAKNNCV`: refits, a plain implementation, AAKNN, groups, errors."""

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

from skldl.metrics import kullback_leibler
from skldl.neighbors import AAKNN, AAKNNCV
from skldl.testing import check_estimator, check_keeps_copies, make_distributions
from skldl.utils.mean_mixture import MEAN_FRACTIONS

COPIES = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
        "check_weight_two_is_row_twice",
    ),
    "a copy of a row takes a second of the k places",
)


def left_out_plainly(X, D, weight, groups, k, weights, metric):
    """Leave-one-out averages by a loop over rows."""
    distances = pairwise_distances(X, metric=metric)
    P = np.empty_like(D)
    for row in range(len(X)):
        others = [j for j in range(len(X)) if groups[j] != groups[row]]
        others.sort(key=lambda j: (distances[row, j], j))  # called at once
        near = others[:k]
        v = np.ones(len(near))
        if weights == "epanechnikov" and len(others) > k:
            v = 1 - (distances[row, near] / distances[row, others[k]]) ** 2
        v = v * weight[near]
        P[row] = v @ D[near] / v.sum()
    return P


def test_estimator_checks():
    check_estimator(AAKNNCV(), expected_failed_checks=COPIES)


@pytest.mark.parametrize("weights", ["uniform", "epanechnikov"])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
@pytest.mark.parametrize("grouped", [False, True])
def test_left_out_predictions_equal_a_loop_and_refits(weights, metric, grouped):
    X, D = make_distributions(30)
    weight = np.arange(30) % 3 + 0.5
    groups = np.arange(30) % 8 if grouped else np.arange(30)
    model = AAKNNCV(5, weights=weights, metric=metric, scaling="raw")
    model.fit(X, D, weight, groups=groups if grouped else None)
    averages = left_out_plainly(X, D, weight, groups, 5, weights, metric)
    means = np.array([np.average(D[groups != g], axis=0, weights=weight[groups != g]) for g in groups])
    expected = (1 - model.mean_share_) * averages + model.mean_share_ * means
    np.testing.assert_allclose(model.loo_predictions_, expected, atol=1e-10)
    assert model.loo_divergence_ == pytest.approx(kullback_leibler(D, expected, sample_weight=weight), rel=1e-10)
    for group in np.unique(groups)[:4]:
        out = groups == group
        refit = AAKNNCV(5, weights=weights, metric=metric, scaling="raw", mean_share=model.mean_share_)
        refit.fit(X[~out], D[~out], weight[~out])
        np.testing.assert_allclose(model.loo_predictions_[out], refit.predict(X[out]), atol=1e-10)


def test_uniform_weights_without_a_share_are_aaknn():
    X, D = make_distributions(50)
    model = AAKNNCV(7, weights="uniform", metric="euclidean", scaling="raw", mean_share=0.0).fit(X, D)
    plain = AAKNN(7).fit(X, D)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-12)
    np.testing.assert_allclose(model.loo_predictions_, plain.leave_one_out(7)[-1], atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_best_of_all_settings_is_chosen(weighted):
    X, D = make_distributions(11, random_state=4)
    weight = np.arange(11) % 3 + 1.0 if weighted else np.ones(11)
    means = np.array([np.average(np.delete(D, i, 0), axis=0, weights=np.delete(weight, i)) for i in range(11)])
    scores = {}
    for k in range(1, 11):
        for weights in ("epanechnikov", "uniform"):
            P = left_out_plainly(X, D, weight, np.arange(11), k, weights, "manhattan")
            for share in MEAN_FRACTIONS:
                mixture = (1 - share) * P + share * means
                scores[k, weights, share] = kullback_leibler(D, mixture, sample_weight=weight)
    model = AAKNNCV(metric="manhattan", scaling="raw").fit(X, D, weight if weighted else None)
    assert model.loo_divergence_ == pytest.approx(min(scores.values()), rel=1e-9)
    assert scores[model.n_neighbors_, model.weights_, model.mean_share_] == pytest.approx(min(scores.values()))


def test_weights_of_neighbors_equal_copies_that_take_no_place():
    X, D = make_distributions(30)
    weight = np.arange(30) % 4 + 1
    everyone = {"weights": "uniform", "metric": "euclidean", "scaling": "raw", "mean_share": 0.1}
    model = AAKNNCV(29, **everyone).fit(X, D, weight)  # all others are neighbours, so copies cannot displace any
    rows = np.repeat(np.arange(30), weight)
    for row in (0, 3):
        rest = rows != row
        expected = D[rows[rest]].mean(axis=0)
        np.testing.assert_allclose(model.loo_predictions_[row], expected, atol=1e-12)


def test_equal_distances_go_by_index_and_count_the_same():
    X = np.array([[0.0], [1.0], [-1.0], [1.0], [-1.0], [0.0]])
    D = np.eye(6)[:, :6] * 0.9 + 0.1 / 6
    D /= D.sum(axis=1, keepdims=True)
    fixed = {"metric": "manhattan", "scaling": "raw", "mean_share": 0.0}
    model = AAKNNCV(2, weights="epanechnikov", **fixed).fit(X, D)
    np.testing.assert_allclose(model.predict([[1.0]])[0], (D[1] + D[3]) / 2)
    np.testing.assert_allclose(model.predict([[0.0]])[0], (D[0] + D[5]) / 2)
    np.testing.assert_allclose(AAKNNCV(1, weights="epanechnikov", **fixed).fit(X, D).predict([[0.5]])[0], D[0])


def test_order_of_features_and_units_do_not_matter():
    X, D = make_distributions(60)
    model = AAKNNCV(scaling="standard").fit(X, D)
    columns, units = [2, 0, 3, 1], np.array([1.0, 10.0, 0.01, 300.0])
    other = AAKNNCV(scaling="standard").fit((X * units)[:, columns], D)
    assert (other.n_neighbors_, other.metric_, other.weights_) == (model.n_neighbors_, model.metric_, model.weights_)
    np.testing.assert_allclose(other.loo_predictions_, model.loo_predictions_, atol=1e-9)
    np.testing.assert_allclose(other.predict((X * units)[:, columns]), model.predict(X), atol=1e-9)


def test_drawn_rows():
    X, D = make_distributions(200)
    whole = AAKNNCV().fit(X, D)
    few = AAKNNCV(
        whole.n_neighbors_,
        weights=whole.weights_,
        metric=whole.metric_,
        scaling=whole.scaling_,
        mean_share=whole.mean_share_,
        max_loo_rows=30,
        n_queries=40,
    ).fit(X, D)
    np.testing.assert_array_equal(whole.loo_rows_, np.arange(200))
    assert len(few.loo_rows_) == 30
    np.testing.assert_allclose(few.loo_predictions_, whole.loo_predictions_[few.loo_rows_], atol=1e-12)
    assert [record["n_rows"] for record in whole.candidates_] == [200] * 8


def test_many_rows_are_compared_and_left_out_in_blocks():
    X, D = make_distributions(2500)
    fixed = {"weights": "uniform", "metric": "euclidean", "scaling": "raw", "mean_share": 0.0}
    model = AAKNNCV(7, **fixed).fit(X, D)
    np.testing.assert_allclose(model.loo_predictions_, AAKNN(7).fit(X, D).leave_one_out(7)[-1], atol=1e-12)
    assert model.candidates_[0]["divergence"] == pytest.approx(model.loo_divergence_, rel=1e-12)


def test_degrees_are_positive_even_of_labels_never_seen():
    X, D = make_distributions(40)
    one_hot = np.eye(4)[D.argmax(axis=1)]
    model = AAKNNCV().fit(X, one_hot)
    assert (model.predict(X) > 0).all()
    assert (model.loo_predictions_ > 0).all()
    assert np.isfinite(model.score(X, one_hot))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0 must be None or a whole number"),
        ({"n_neighbors": 40}, "more than the 39 rows that remain"),
        ({"weights": "distance"}, "weights='distance' must be 'auto' or 'epanechnikov' or 'uniform'"),
        ({"metric": "cosine"}, "metric='cosine' must be 'auto' or"),
        ({"scaling": None}, "scaling=None must be 'auto' or"),
        ({"scaling": "sqrt"}, "needs non-negative features"),
        ({"mean_share": -0.1}, "mean_share=-0.1 must be None or a finite number of at least 0 and of at most 1"),
        ({"n_queries": 2.5}, "n_queries=2.5 must be a whole number"),
    ],
)
def test_bad_settings_are_rejected(params, message):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=message):
        AAKNNCV(**params).fit(X - 0.5, D)


def test_one_row_cannot_be_left_out():
    with pytest.raises(ValueError, match="n_samples=1"):
        AAKNNCV().fit([[1.0]], [[0.5, 0.5]])


def test_accuracy_on_faces(paper_data):
    X, D = paper_data("SJAFFE")
    folds = np.array_split(np.random.default_rng(0).permutation(len(D)), 10)
    scores = []
    for fold, test in enumerate(folds[:5]):
        train = np.concatenate([rows for place, rows in enumerate(folds) if place != fold])
        scores.append(-AAKNNCV().fit(X[train], D[train]).score(X[test], D[test]))
    assert np.mean(scores) < 0.0315


@pytest.mark.parametrize("scaling", ["raw", "standard", "sqrt"])
def test_keeps_copies(scaling):
    check_keeps_copies(AAKNNCV(scaling=scaling))


def test_one_weight_may_outweigh_all_others():
    X, D = make_distributions()
    model = AAKNNCV().fit(X, D, np.where(np.arange(len(X)) == 7, 1e20, 1.0))
    assert np.isfinite(model.loo_predictions_).all()
    assert np.isfinite(model.loo_divergence_)

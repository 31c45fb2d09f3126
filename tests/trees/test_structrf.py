"""StructRF: common checks, 2-means against scikit-learn, splits against scikit-learn's trees and brute force."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.tree import DecisionTreeClassifier

from skldl.baseline import MeanDistribution
from skldl.metrics import kullback_leibler
from skldl.testing import check_estimator, make_distributions
from skldl.trees import StructRF
from skldl.trees._structrf import RankedColumns, best_split, two_clusters

DRAWN = "which rows a tree sees depends on their number"


def test_common_checks_on_all_rows():
    check_estimator(StructRF(2, max_depth=2, sampling_share=1.0, max_features=1.0, random_state=0))


@pytest.mark.slow
def test_common_checks_on_drawn_rows():
    names = ("check_weight_two_is_row_twice", "check_sample_weight_equivalence_on_dense_data")
    model = StructRF(3, max_depth=3, max_features=1.0, random_state=0)
    check_estimator(model, expected_failed_checks=dict.fromkeys(names, DRAWN))


def test_two_clusters_are_those_of_k_means():
    rng = np.random.default_rng(0)
    D = np.vstack([rng.dirichlet([20, 3, 3], 40), rng.dirichlet([3, 3, 20], 30)])
    weight = rng.uniform(0.5, 2, 70)
    ours, theirs = two_clusters(D, weight), KMeans(2, n_init=10, random_state=0).fit(D, sample_weight=weight).labels_
    assert np.array_equal(ours, theirs == 1) or np.array_equal(ours, theirs == 0)
    assert not two_clusters(np.tile([0.5, 0.5], (5, 1)), np.ones(5)).any()


def test_a_cluster_of_almost_no_weight_has_its_own_centre():
    """Not the difference of two sums that are equal up to rounding."""
    D = np.array([[0.1, 0.2, 0.7]] * 5 + [[0.5, 0.25, 0.25], [0.6, 0.3, 0.1]])
    weight = np.array([1.0] * 5 + [1e-20] * 2)
    assert np.isfinite(StructRF(2, sampling_share=1.0, random_state=0).fit(D, D, weight).predict(D)).all()
    turned = D[:, ::-1]
    np.testing.assert_array_equal(two_clusters(turned, weight), [False] * 5 + [True] * 2)


@pytest.mark.parametrize(
    "values", [[-1.7e308, -1.7e308, 1.7e308, 1.7e308], [-1.7e308, -1.6e308, 1.6e308, 1.7e308], [0, 0, 5e-324, 5e-324]]
)
def test_thresholds_of_extreme_numbers_separate_them(values):
    """Neither the difference of the values nor its half needs to be a number."""
    X, second = np.array(values)[:, None], np.array([False, False, True, True])
    gain, column, threshold = best_split(RankedColumns.of(X), np.arange(4), second, None, np.arange(1), 0.0)
    assert (gain, column) == (pytest.approx(np.log(2)), 0)
    np.testing.assert_array_equal(X[:, 0] > threshold, second)


@pytest.mark.parametrize("n_values", [2, 3, 6])
@pytest.mark.parametrize("weighted", [True, False])
def test_split_by_brute_force(n_values, weighted):
    rng = np.random.default_rng(n_values)
    X, weight = rng.integers(0, n_values, size=(40, 4)).astype(float), rng.uniform(0.5, 2, 40)
    X[:, 2] = rng.integers(0, 2, size=40)  # columns of two values beside others
    if not weighted:
        weight = np.ones(40)
    table, rows = RankedColumns.of(X), np.sort(rng.permutation(40)[:25])
    second = rng.uniform(size=25) < 0.4
    node, w = X[rows], weight[rows]

    def entropy(rows):
        share = w[rows & second].sum() / w[rows].sum()
        return -sum(x * np.log(x) for x in (share, 1 - share) if x > 0)

    def brute_force(columns, least):
        best = (0.0, 0, 0.0)
        for column in columns:
            values = np.unique(node[:, column])
            for threshold in values[:-1] + 0.5 * np.diff(values):
                left = node[:, column] <= threshold
                if min(w[left].sum(), w[~left].sum()) >= least:
                    share = w[left].sum() / w.sum()
                    gain = entropy(np.ones(25, dtype=bool)) - share * entropy(left) - (1 - share) * entropy(~left)
                    if gain > best[0] + 1e-12:
                        best = (gain, column, threshold)
        return best

    given = w if weighted else None
    for columns in ([0, 1, 2, 3], [1, 3], [2], [0, 2]):
        for least in (0.0, 0.3 * w.sum(), 0.6 * w.sum()):
            found = best_split(table, rows, second, given, np.array(columns), least)
            assert found == pytest.approx(brute_force(columns, least))
    assert best_split(table, rows, second, given, np.arange(4), 0.6 * w.sum())[0] == 0.0


def test_equal_weights_grow_the_trees_of_no_weights():
    X, D = make_distributions(80, 4, 3)
    X[:, 1] = X[:, 1] > 0.5
    plain = StructRF(3, min_leaf_share=0.03, random_state=0).fit(X, D)
    weighted = StructRF(3, min_leaf_share=0.03, random_state=0).fit(X, D, np.full(80, 2.0))
    for ours, theirs in zip(plain.trees_, weighted.trees_, strict=True):
        assert ours.feature == theirs.feature
        assert ours.threshold == theirs.threshold


def test_one_split_is_that_of_a_classification_tree():
    X, D = make_distributions(60, 4, 3)
    forest = StructRF(1, max_depth=1, sampling_share=1.0, max_features=1.0, random_state=0).fit(X, D)
    tree = DecisionTreeClassifier(criterion="entropy", max_depth=1).fit(X, two_clusters(D, np.full(60, 1 / 60)))
    assert forest.trees_[0].feature[0] == tree.tree_.feature[0]
    assert forest.trees_[0].threshold[0] == pytest.approx(tree.tree_.threshold[0], abs=1e-6)
    left = X[:, tree.tree_.feature[0]] <= tree.tree_.threshold[0]
    np.testing.assert_allclose(forest.predict(X)[left], np.tile(D[left].mean(axis=0), (left.sum(), 1)), atol=1e-12)


def test_leaves_that_may_not_be_split_give_the_mean():
    X, D = make_distributions(40, 3, 3)
    forest = StructRF(3, min_leaf_share=0.6, sampling_share=1.0, random_state=0).fit(X, D)
    np.testing.assert_allclose(forest.predict(X), MeanDistribution().fit(X, D).predict(X), atol=1e-12)


def test_learns_a_step():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(300, 3))
    D = np.where(X[:, :1] + 0.1 * X[:, 1:2] > 0, [0.8, 0.1, 0.1], [0.1, 0.2, 0.7])
    forest = StructRF(10, random_state=0).fit(X[:200], D[:200])
    mean = MeanDistribution().fit(X[:200], D[:200])
    error, error_of_mean = (kullback_leibler(D[200:], m.predict(X[200:])) for m in (forest, mean))
    assert error < 0.3 * error_of_mean


def test_path_of_sizes():
    X, D = make_distributions(30, 3, 3)
    model = StructRF(9, random_state=0)
    for value, P in zip([1, 4], model.predict_path(X, D, X[:4], param="n_estimators", values=[1, 4]), strict=True):
        np.testing.assert_allclose(P, StructRF(value, random_state=0).fit(X, D).predict(X[:4]), atol=1e-12)
    assert len(list(model.predict_path(X, D, X[:4], param="max_depth", values=[1, 2]))) == 2


@pytest.mark.parametrize(
    "bad", [{"n_estimators": 0}, {"max_features": 0}, {"sampling_share": 2}, {"min_leaf_share": 1}]
)
def test_bad_hyperparameters(bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        StructRF(**bad).fit(X, D)

"""StructRF: common checks, 2-means against scikit-learn, splits against scikit-learn's trees and brute force."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.tree import DecisionTreeClassifier

from skldl.baseline import MeanDistribution
from skldl.metrics import kullback_leibler
from skldl.testing import check_estimator, make_distributions
from skldl.trees import StructRF

DRAWN = "which rows a tree sees depends on their number"


def test_common_checks_on_all_rows():
    check_estimator(StructRF(2, max_depth=2, sampling_share=1.0, max_features=1.0, random_state=0))


@pytest.mark.slow
def test_common_checks_on_drawn_rows():
    names = ("check_weight_two_is_row_twice", "check_sample_weight_equivalence_on_dense_data")
    model = StructRF(3, max_depth=3, max_features=1.0, random_state=0)
    check_estimator(model, expected_failed_checks=dict.fromkeys(names, DRAWN))


def grow(X, D, weight=None, **settings):
    """One tree with one split, for which all rows and features are looked at."""
    settings = {"max_depth": 1, "sampling_share": 1.0, "max_features": 1.0, "random_state": 0} | settings
    return StructRF(1, **settings).fit(X, D, weight)


def test_two_clusters_are_those_of_k_means():
    """Of features that hold the cluster with one error each, the split takes the one without."""
    rng = np.random.default_rng(0)
    D = np.vstack([rng.dirichlet([20, 3, 3], 40), rng.dirichlet([3, 3, 20], 30)])
    weight = rng.uniform(0.5, 2, 70)
    clusters = KMeans(2, n_init=10, random_state=0).fit(D, sample_weight=weight).labels_
    X = np.column_stack([np.where(np.eye(70, dtype=bool), 1 - clusters, clusters).T, clusters]).astype(float)
    assert grow(X, D, weight).trees_[0].feature[0] == 70
    assert grow(X, np.tile([0.5, 0.5], (70, 1))).trees_[0].feature == [-1]


def test_a_cluster_of_almost_no_weight_has_its_own_centre():
    """Not the difference of two sums that are equal up to rounding."""
    D = np.array([[0.1, 0.2, 0.7]] * 5 + [[0.5, 0.25, 0.25], [0.6, 0.3, 0.1]])
    weight = np.array([1.0] * 5 + [1e-20] * 2)
    for order in (D, D[:, ::-1]):
        assert np.isfinite(StructRF(2, sampling_share=1.0, random_state=0).fit(D, order, weight).predict(D)).all()


@pytest.mark.parametrize("n_values", [2, 3, 6])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("least", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("columns", [[0, 1, 2, 3], [1, 3], [2], [0, 2]])
def test_split_by_brute_force(n_values, weighted, least, columns):
    rng = np.random.default_rng(n_values)
    X, weight = rng.integers(0, n_values, size=(25, 4)).astype(float), rng.uniform(0.5, 2, 25)
    X[:, 2] = rng.integers(0, 2, size=25)  # columns of two values beside others
    X, w = X[:, columns], weight if weighted else np.ones(25)
    second = rng.uniform(size=25) < 0.4
    D = np.where(second[:, None], [0.2, 0.8], [0.7, 0.3])  # two clusters that no algorithm can miss

    def entropy(rows):
        fraction = w[rows & second].sum() / w[rows].sum()
        return -sum(x * np.log(x) for x in (fraction, 1 - fraction) if x > 0)

    best = (1e-12, -1, 0.0)
    for column in range(len(columns)):
        values = np.unique(X[:, column])
        for threshold in values[:-1] + 0.5 * np.diff(values):
            left = X[:, column] <= threshold
            fraction = w[left].sum() / w.sum()
            gain = entropy(np.ones(25, dtype=bool)) - fraction * entropy(left) - (1 - fraction) * entropy(~left)
            if min(fraction, 1 - fraction) >= least and gain > best[0] + 1e-12:
                best = (gain, column, threshold)
    (tree,) = grow(X, D, weight if weighted else None, min_leaf_share=least).trees_
    assert (tree.feature[0], tree.threshold[0]) == pytest.approx(best[1:])


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
    forest = grow(X, D)
    clusters = KMeans(2, n_init=10, random_state=0).fit_predict(D)
    tree = DecisionTreeClassifier(criterion="entropy", max_depth=1).fit(X, clusters)
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

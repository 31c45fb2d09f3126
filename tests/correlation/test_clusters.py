"""Clusters of distributions: a fixed point of k-means, as good as scikit-learn's, without random numbers."""

import numpy as np
from sklearn.cluster import KMeans

from skldl.correlation._clusters import cluster_rows
from skldl.testing import make_distributions


def _inertia(D, weight, assignment):
    return sum(
        (
            weight[assignment == g]
            * ((D[assignment == g] - np.average(D[assignment == g], axis=0, weights=weight[assignment == g])) ** 2).sum(
                1
            )
        ).sum()
        for g in np.unique(assignment)
    )


def test_near_the_best_of_many_random_starts():
    _, D = make_distributions(300, 4, 5)
    weight = np.random.default_rng(0).uniform(0.5, 2, 300)
    for k in (2, 4, 8):
        assignment, centres = cluster_rows(D, weight, k)
        best = KMeans(k, n_init=20, random_state=0).fit(D, sample_weight=weight)
        assert _inertia(D, weight, assignment) < 1.15 * best.inertia_
        assert len(centres) == k
        distances = ((D[:, None] - centres) ** 2).sum(axis=2)
        np.testing.assert_array_equal(distances.argmin(axis=1), assignment)


def test_separated_groups_are_found():
    rng = np.random.default_rng(1)
    centres = rng.dirichlet(np.full(6, 0.3), size=4)
    groups = rng.integers(4, size=200)
    D = 0.95 * centres[groups] + 0.05 * rng.dirichlet(np.ones(6), size=200)
    assignment, _ = cluster_rows(D, np.ones(200), 4)
    for g in range(4):
        assert len(np.unique(assignment[groups == g])) == 1


def test_weight_two_is_row_twice_and_labels_may_be_permuted():
    _, D = make_distributions(60, 4, 5)
    weight = np.where(np.arange(60) < 20, 2.0, 1.0)
    twice = np.r_[np.arange(20), np.arange(60)]
    _, centres = cluster_rows(D, weight, 4)
    np.testing.assert_allclose(cluster_rows(D[twice], np.ones(80), 4)[1], centres, atol=1e-12)
    order = [3, 0, 4, 1, 2]
    np.testing.assert_allclose(cluster_rows(D[:, order], weight, 4)[1], centres[:, order], atol=1e-12)


def test_no_more_clusters_than_different_rows():
    D = np.repeat([[0.2, 0.8], [0.5, 0.5]], 5, axis=0)
    assignment, centres = cluster_rows(D, np.ones(10), 6)
    assert len(centres) == 2
    np.testing.assert_allclose(centres[assignment], D)

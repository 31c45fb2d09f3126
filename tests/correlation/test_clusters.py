"""Clusters of distributions, by the centres of LDLSCL: a fixed point of k-means, as good as scikit-learn's."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from skldl.correlation import LDLSCL
from skldl.testing import make_distributions


def centres_of(D, n_clusters, weight=None):
    X = np.arange(len(D))[:, None] / len(D)
    return LDLSCL(1.0, n_clusters=n_clusters, n_rounds=1).fit(X, D, weight).centres_


def assign(D, centres):
    distances = ((D[:, None] - centres) ** 2).sum(axis=2)
    return distances.argmin(axis=1), distances.min(axis=1)


@pytest.mark.parametrize("n_clusters", [2, 4, 8])
def test_near_the_best_of_many_random_starts(n_clusters):
    _, D = make_distributions(300, 4, 5)
    weight = np.random.default_rng(0).uniform(0.5, 2, 300)
    centres = centres_of(D, n_clusters, weight)
    nearest, squares = assign(D, centres)
    best = KMeans(n_clusters, n_init=20, random_state=0).fit(D, sample_weight=weight)
    assert weight @ squares < 1.15 * best.inertia_
    means = [np.average(D[nearest == g], axis=0, weights=weight[nearest == g]) for g in range(n_clusters)]
    np.testing.assert_allclose(centres, means, atol=1e-12)


def test_separated_groups_are_found():
    rng = np.random.default_rng(1)
    groups = rng.integers(4, size=200)
    D = 0.95 * rng.dirichlet(np.full(6, 0.3), size=4)[groups] + 0.05 * rng.dirichlet(np.ones(6), size=200)
    found, _ = assign(D, centres_of(D, 4))
    assert len(np.unique(found)) == 4
    assert all(len(np.unique(found[groups == g])) == 1 for g in range(4))


def test_weight_two_is_row_twice_and_labels_may_be_permuted():
    _, D = make_distributions(60, 4, 5)
    weight = np.where(np.arange(60) < 20, 2.0, 1.0)
    centres = centres_of(D, 4, weight)
    np.testing.assert_allclose(centres_of(D[np.r_[np.arange(20), np.arange(60)]], 4), centres, atol=1e-12)
    order = [3, 0, 4, 1, 2]
    np.testing.assert_allclose(centres_of(D[:, order], 4, weight), centres[:, order], atol=1e-12)


def test_no_more_clusters_than_different_rows():
    D = np.repeat([[0.2, 0.8], [0.5, 0.5]], 5, axis=0)
    np.testing.assert_allclose(np.unique(centres_of(D, 6), axis=0), D[[0, 5]])

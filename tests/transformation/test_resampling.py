"""Draws of single-label examples: which pairs come, and by which law, as a classifier sees them."""

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import BaseEstimator, ClassifierMixin

from skldl import PTBayes, PTClassifier
from skldl.testing import make_distributions


class Recorder(ClassifierMixin, BaseEstimator):
    """A classifier that keeps its examples."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, y, sample_weight
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.full((X.shape[0], len(self.classes_)), 1 / len(self.classes_))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def drawn(D, n_draws=None, weight=None, random_state=0):
    """How often each pair was drawn."""
    rows = np.arange(len(D))[:, None]
    model = PTClassifier(Recorder(), resample="multinomial", max_samples=n_draws, random_state=random_state)
    found = model.fit(rows, D, weight).classifier_
    counts = np.zeros(np.shape(D), dtype=int)
    np.add.at(counts, (found.X_[:, 0].astype(int), found.y_), 1)
    return counts


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_positive_pair_comes_once_with_its_mass(form, dtype):
    X, D = make_distributions(n_labels=3)
    D[:5] = np.eye(3)[[0, 1, 2, 0, 1]]
    weight = np.linspace(1, 2, len(D))
    found = PTClassifier(Recorder()).fit(form(X.astype(dtype)), D, weight).classifier_
    assert sparse.issparse(found.X_) == (form is sparse.csr_matrix)
    assert found.X_.dtype == dtype
    assert found.X_.shape == (5 + 35 * 3, X.shape[1])
    rows, labels = np.nonzero(D)
    dense = found.X_.toarray() if sparse.issparse(found.X_) else found.X_
    np.testing.assert_array_equal(dense, X.astype(dtype)[rows])
    np.testing.assert_array_equal(found.y_, labels)
    np.testing.assert_allclose(found.weight_, (weight[:, None] * D)[rows, labels])


def test_draws_follow_the_law_of_the_weights():
    D = np.tile([[0.1, 0.2, 0.7], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]], (3000, 1))
    weight = np.tile([1.0, 4.0, 0.5], 3000)
    counts = drawn(D, 20_000, weight).reshape(3000, 3, 3).sum(axis=0)
    expected = weight[:3, None] * D[:3] / weight[:3].sum() * 20_000
    possible = expected > 0
    assert counts[~possible].sum() == 0
    assert stats.chisquare(counts[possible], expected[possible]).pvalue > 0.001


def test_draws_depend_on_the_seed_alone():
    _, D = make_distributions()
    first, again, other = (drawn(D, 50, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_a_point_at_the_very_end_is_the_last_possible_pair():
    class AlwaysOne(np.random.RandomState):
        def uniform(self, low=0.0, high=1.0, size=None):
            return np.full(size, high)

    np.testing.assert_array_equal(drawn([[0.5, 0.5, 0.0]], 2, random_state=AlwaysOne()), [[0, 2, 0]])


def test_the_bayes_classifier_counts_the_same_draws():
    X, D = make_distributions(60)
    weight = np.linspace(1, 2, 60)
    counts = drawn(D, weight=weight, random_state=2)
    assert counts.sum() == D.size
    rows = counts.any(axis=1)
    expected = PTBayes().fit(X[rows], counts[rows] / counts[rows].sum(axis=1, keepdims=True), counts[rows].sum(axis=1))
    found = PTBayes(resample="multinomial", random_state=2).fit(X, D, weight)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), atol=1e-10)

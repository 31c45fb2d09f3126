"""Weighted pairs and draws: which pairs come, with which weight, and by which law."""

import numpy as np
import pytest
from scipy import sparse, stats

from skldl.testing import make_distributions
from skldl.transformation._resampling import multinomial_counts, multinomial_examples, weighted_examples, weighted_pairs


def test_every_positive_pair_comes_once_with_its_mass():
    D = np.array([[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]])
    rows, labels, weights = weighted_pairs(D, np.array([2.0, 3.0]))
    back = np.zeros_like(D)
    np.add.at(back, (rows, labels), weights)
    np.testing.assert_array_equal(back, [[1.0, 0.0, 1.0], [0.0, 3.0, 0.0]])
    assert len(rows) == 3


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_examples_repeat_the_rows_in_their_own_form_and_precision(form, dtype):
    X, D = make_distributions(n_labels=3)
    D[:5] = np.eye(3)[[0, 1, 2, 0, 1]]
    X_examples, labels, weights = weighted_examples(form(X.astype(dtype)), D)
    assert sparse.issparse(X_examples) == (form is sparse.csr_matrix)
    assert X_examples.dtype == dtype
    assert X_examples.shape == (5 + 35 * 3, X.shape[1])
    dense = X_examples.toarray() if sparse.issparse(X_examples) else X_examples
    np.testing.assert_array_equal(dense[5:8], np.tile(X[5].astype(dtype), (3, 1)))
    np.testing.assert_array_equal(labels[:8], [0, 1, 2, 0, 1, 0, 1, 2])
    np.testing.assert_allclose(weights.sum(), len(D))


def test_draws_follow_the_law_of_the_weights():
    D = np.array([[0.1, 0.2, 0.7], [0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    weight = np.array([1.0, 4.0, 0.5])
    n_draws = 20_000
    rows, labels = multinomial_examples(D, n_draws, weight, random_state=0)
    counts = np.zeros_like(D)
    np.add.at(counts, (rows, labels), 1)
    expected = weight[:, None] * D / weight.sum() * n_draws
    possible = expected > 0
    assert counts[~possible].sum() == 0
    assert stats.chisquare(counts[possible], expected[possible]).pvalue > 0.001


def test_draws_depend_on_the_seed_alone():
    _, D = make_distributions()
    first, again, other = (multinomial_examples(D, 50, random_state=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert np.any(np.array(first) != np.array(other))


def test_a_point_at_the_very_end_is_the_last_possible_pair():
    class AlwaysOne(np.random.RandomState):
        def uniform(self, low=0.0, high=1.0, size=None):
            return np.full(size, high)

    rows, labels = multinomial_examples(np.array([[0.5, 0.5, 0.0]]), 2, random_state=AlwaysOne())
    np.testing.assert_array_equal((rows, labels), [[0, 0], [1, 1]])


def test_no_draw_is_refused():
    with pytest.raises(ValueError, match="n_draws=0"):
        multinomial_examples(np.array([[0.5, 0.5]]), 0)


def test_counts_are_the_draws_counted():
    _, D = make_distributions()
    rows, labels = multinomial_examples(D, 70, random_state=2)
    counts = multinomial_counts(D, 70, random_state=2)
    expected = np.zeros_like(D)
    np.add.at(expected, (rows, labels), 1)
    np.testing.assert_array_equal(counts, expected)

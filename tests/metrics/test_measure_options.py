"""Options of measures, and the families that compare orders and decisions."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import top_k_accuracy_score

import skldl.metrics as metrics


def test_power_leads_from_city_block_to_chebyshev(pair):
    power = {p: metrics.minkowski.with_options(power=p).rowwise(*pair) for p in (1, 2, 3.5, 500)}
    np.testing.assert_allclose(power[1], metrics.city_block.rowwise(*pair))
    np.testing.assert_allclose(power[2], metrics.euclidean.rowwise(*pair))
    np.testing.assert_allclose(power[3.5], (np.abs(pair[0] - pair[1]) ** 3.5).sum(axis=1) ** (1 / 3.5))
    np.testing.assert_allclose(power[500], metrics.chebyshev.rowwise(*pair), rtol=0.01)
    assert metrics.minkowski.with_options(power=4).upper(9) == 2**0.25
    assert metrics.minkowski.options == {"power": 3}


@pytest.mark.parametrize("power", [0.5, np.inf, np.nan])
def test_bad_power_is_rejected(power):
    with pytest.raises(ValueError, match="power="):
        metrics.minkowski.with_options(power=power)


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "2"])
def test_bad_k_is_rejected(k):
    with pytest.raises(ValueError, match="k="):
        metrics.top_k.with_options(k=k)


def test_unknown_option_is_rejected():
    with pytest.raises(TypeError, match=r"top_k has no option 'j'. Its options: k."):
        metrics.top_k.with_options(j=3)
    with pytest.raises(TypeError, match=r"clark has no option 'eps'. Its options: none."):
        metrics.clark.with_options(eps=0)


def test_values_of_ordered_labels(pair):
    ages = [18, 25, 30, 50, 80]
    for true, pred, distance, error in zip(
        *pair,
        metrics.earth_mover.with_options(values=ages).rowwise(*pair),
        metrics.error_of_mean.with_options(values=np.array(ages)).rowwise(*pair),
        strict=True,
    ):
        assert distance == pytest.approx(stats.wasserstein_distance(ages, ages, true, pred))
        assert error == pytest.approx(abs(true @ ages - pred @ ages))
        assert error <= distance + 1e-12
    falling = metrics.earth_mover.with_options(values=ages[::-1])
    assert falling(pair[0][:, ::-1], pair[1][:, ::-1]) == pytest.approx(
        metrics.earth_mover.with_options(values=ages)(*pair)
    )
    assert falling.upper(5) == 62
    assert metrics.earth_mover.upper(5) == 4


@pytest.mark.parametrize("values", [[1], [1, 1, 2], [1, 3, 2], [0, np.nan], [[1, 2]]])
def test_bad_values_are_rejected(values):
    with pytest.raises(ValueError, match="values="):
        metrics.earth_mover.with_options(values=values)


def test_values_and_labels_must_match(pair):
    with pytest.raises(ValueError, match="has 3 entries, but there are 5 labels"):
        metrics.earth_mover.with_options(values=[1, 2, 3])(*pair)
    assert metrics.earth_mover.with_options(values=None)(*pair) == metrics.earth_mover(*pair)


def test_rank_correlations_equal_scipys():
    generator = np.random.default_rng(0)
    true, pred = (generator.multinomial(13, np.ones(6) / 6, 60) / 13 for _ in range(2))  # many ties
    for row, rho, tau in zip(
        range(60), metrics.spearman.rowwise(true, pred), metrics.kendall.rowwise(true, pred), strict=True
    ):
        assert rho == pytest.approx(stats.spearmanr(true[row], pred[row])[0], abs=1e-12)
        assert tau == pytest.approx(stats.kendalltau(true[row], pred[row])[0], abs=1e-12)


def test_a_row_without_order_has_no_rank_correlation():
    flat, other = [[0.25] * 4], [[0.1, 0.2, 0.3, 0.4]]
    for measure in (metrics.spearman, metrics.kendall):
        assert measure(flat, other) == measure(other, flat) == measure(flat, flat) == 0
        assert measure(other, other) == 1


def test_decisions_without_ties(pair):
    true, pred = pair
    assert metrics.argmax_accuracy(true, pred) == (true.argmax(axis=1) == pred.argmax(axis=1)).mean()
    chosen = true[np.arange(40), pred.argmax(axis=1)]
    np.testing.assert_allclose(metrics.error_probability.rowwise(true, pred), 1 - chosen)
    for k in (1, 2, 3, 4):
        expected = top_k_accuracy_score(true.argmax(axis=1), pred, k=k)
        assert metrics.top_k.with_options(k=k)(true, pred) == pytest.approx(expected)
    for k in (5, 9):
        assert metrics.top_k.with_options(k=k)(true, pred) == 1


def test_decisions_with_ties_are_fair():
    flat, true = [[0.25] * 4], [[0.7, 0.1, 0.1, 0.1]]
    assert metrics.argmax_accuracy(true, flat) == 0.25
    assert metrics.error_probability(true, flat) == 0.75
    assert metrics.top_k(true, flat) == pytest.approx(0.5)
    assert metrics.top_k.with_options(k=3)(true, flat) == pytest.approx(0.75)
    tied_truth = [[0.4, 0.4, 0.1, 0.1]]
    assert metrics.argmax_accuracy(tied_truth, [[0.1, 0.9, 0.0, 0.0]]) == 1
    assert metrics.top_k(tied_truth, flat) == pytest.approx(1 - 1 / 6)  # misses only with the pair of the other two
    assert metrics.top_k(tied_truth, [[0.1, 0.9, 0.0, 0.0]]) == 1


# -- what comes in

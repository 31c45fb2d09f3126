"""Predictions and measures over chunks: what `skldl.metrics` gives for all rows at once."""

import numpy as np
import pandas as pd
import pytest

from skldl import SABFGS, MeanDistribution
from skldl.chunks import ArrayRows, evaluate, evaluate_pairs, predict, skill, skill_of_pairs
from skldl.exceptions import (
    DataError,
    EmptyDataError,
    FeatureMismatchError,
    LabelMismatchError,
    LengthMismatchError,
    RowSumError,
)
from skldl.metrics import MEASURES
from skldl.metrics import evaluate as evaluate_all
from skldl.metrics import skill as skill_of_all


def _cut(*tables, size=30):
    return [tuple(table[first : first + size] for table in tables) for first in range(0, len(tables[0]), size)]


def test_predictions_come_in_the_order_of_the_rows(table):
    X, D, weight = table(100)
    model = SABFGS(1e-3, fit_intercept=True).fit(X, D)
    rows = ArrayRows(X, D, weight, chunk_rows=30)
    parts = list(predict(model, rows))
    assert [len(part) for part in parts] == [30, 30, 30, 10]  # rows without weight, too
    np.testing.assert_array_equal(np.concatenate(parts), model.predict(rows))
    np.testing.assert_allclose(model.predict(rows), model.predict(X), rtol=1e-14)
    frame = model.set_output(predict="pandas").predict(rows)
    assert list(frame.columns) == list(model.label_names_)


def test_features_are_compared_by_name(table):
    X, D, _ = table(50, 3)
    model = MeanDistribution().fit(pd.DataFrame(X, columns=list("abc")), D)
    assert model.predict(ArrayRows(X, feature_names=list("abc"))).shape == (50, 4)
    assert model.predict(ArrayRows(X)).shape == (50, 4)
    with pytest.raises(FeatureMismatchError, match="they lack 'c'"):
        model.predict(ArrayRows(X, feature_names=list("abd")))
    with pytest.raises(FeatureMismatchError, match="in another order"):
        model.predict(ArrayRows(X, feature_names=list("cba")))


def test_measures_are_those_of_all_rows(table):
    X, D, weight = table(100)
    model = SABFGS(1e-3, fit_intercept=True).fit(X, D)
    P = model.predict(X)
    for w in (None, weight):
        expected = evaluate_all(D, P, w, measures=MEASURES)
        found = evaluate(model, ArrayRows(X, D, w, chunk_rows=30), measures=MEASURES)
        assert found == pytest.approx(expected, rel=1e-12)
        pairs = _cut(D, P) if w is None else _cut(D, P, w)
        assert evaluate_pairs(iter(pairs), measures=MEASURES) == pytest.approx(expected, rel=1e-12)
        assert model.score(ArrayRows(X, D, w, chunk_rows=30)) == pytest.approx(model.score(X, D, w), rel=1e-12)
    with pytest.raises(DataError, match="leave y and sample_weight out"):
        model.score(ArrayRows(X, D), D)
    assert list(evaluate_pairs(_cut(D, P))) == list(evaluate_all(D, P))


def test_labels_are_compared_by_name(table):
    X, D, _ = table(50, 3, 3)
    model = SABFGS(1e-3, fit_intercept=True).fit(X, pd.DataFrame(D, columns=list("abc")))
    turned = ArrayRows(X, D[:, ::-1], label_names=list("cba"), chunk_rows=20)
    straight = ArrayRows(X, D, chunk_rows=20)
    assert evaluate(model, turned) == pytest.approx(evaluate(model, straight), rel=1e-12)


def test_skill_is_that_of_all_rows(table):
    X, D, weight = table(100)
    model, mean = SABFGS(1e-3, fit_intercept=True).fit(X, D), MeanDistribution().fit(X, D)
    P, reference = model.predict(X), mean.predict(X)
    for w in (None, weight):
        expected = skill_of_all(D, P, reference, w, confidence=0.9)
        rows = ArrayRows(X, D, w, chunk_rows=30)
        chunks = _cut(D, P, reference) if w is None else _cut(D, P, reference, w)
        for found in (
            skill(model, rows, mean, confidence=0.9),
            skill(model, rows, mean.distribution_, confidence=0.9),
            skill_of_pairs(chunks, confidence=0.9),
        ):
            assert found == pytest.approx(expected, rel=1e-12)
            assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    perfect = skill_of_pairs([(D, D, mean.distribution_[None])])
    assert (perfect, perfect.low) == (1.0, 1.0)


@pytest.mark.parametrize("distance", [1e-3, 1e-9, 0.0])
def test_the_interval_of_chunks_keeps_its_digits_where_model_and_reference_are_close(table, distance):
    """Differences of sums of squares would lose half of them or more."""
    _, D, weight = table(100)
    reference = 0.5 * D + 0.5 / D.shape[1]
    P = reference * (1 - distance * np.arange(100)[:, None] / 100) + distance * np.arange(100)[:, None] / 100 * D
    expected = skill_of_all(D, P, reference, weight)
    found = skill_of_pairs(_cut(D, P, reference, weight))
    assert [found, found.low, found.high] == pytest.approx([expected, expected.low, expected.high], rel=1e-9, abs=1e-14)
    assert found.high - found.low == pytest.approx(expected.high - expected.low, rel=1e-9, abs=1e-14)


def test_bad_chunks_are_named(table):
    X, D, _ = table(40)
    model = MeanDistribution().fit(X, D)
    with pytest.raises(RowSumError, match="In chunk 1: Row 0 of D_pred sums to 2"):
        evaluate_pairs([(D, D), (D[:1], 2 * D[:1])])
    with pytest.raises(DataError, match=r"Chunk 0 is not a tuple \(D_true, D_pred\)"):
        evaluate_pairs([D])
    with pytest.raises(DataError, match="Chunk 0 is not a tuple"):
        skill_of_pairs([(D, D)])
    with pytest.raises(EmptyDataError, match="no row with a weight above 0"):
        evaluate_pairs([(D, D, np.zeros(40))])
    with pytest.raises(DataError, match="contain no distributions"):
        evaluate(model, ArrayRows(X))
    with pytest.raises(LengthMismatchError, match="reference has shape"):
        skill(model, ArrayRows(X, D), D[:2])
    with pytest.raises(DataError, match="at least two rows"):
        skill_of_pairs([(D[:1], D[:1], D[:1])])


def test_the_labels_of_a_reference_are_put_in_order(table):
    _, D, _ = table(50, 3, 3)
    P, reference = 0.7 * D + 0.1, D.mean(axis=0, keepdims=True)
    expected = skill_of_all(D, P, reference)
    D, P, reference = (pd.DataFrame(some, columns=list("abc")) for some in (D, P, reference))
    turned = reference[["c", "a", "b"]]
    assert skill_of_pairs([(D[:20], P[:20], turned), (D[20:], P[20:], turned)]) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(LabelMismatchError, match="In chunk 1: There should be a label 'a'"):
        skill_of_pairs([(D, P, reference), (D, P, reference.rename(columns={"a": "x"}))])
    with pytest.raises(LengthMismatchError, match=r"In chunk 0: D_true has shape \(50, 3\) and D_reference \(50, 2\)"):
        skill_of_pairs([(D, P, [[0.5, 0.5]])])


@pytest.mark.parametrize("scale", [1e-98, 1e-60, 1e60, 1e98])
def test_the_scale_of_weights_is_free(table, scale):
    _, D, weight = table(100)
    P, reference = 0.7 * D + 0.3 / D.shape[1], np.tile(D.mean(axis=0), (100, 1))
    weight = np.round(weight, 2)
    expected = skill_of_all(D, P, reference, weight)
    found = skill_of_pairs(_cut(D, P, reference, scale * weight))
    assert [found, found.low, found.high] == pytest.approx([expected, expected.low, expected.high], rel=1e-12)
    assert evaluate_pairs(_cut(D, P, scale * weight)) == pytest.approx(evaluate_all(D, P, weight), rel=1e-12)


def test_later_chunks_may_have_other_weights(table):
    _, D, _ = table(90)
    P, reference = 0.7 * D + 0.3 / D.shape[1], np.tile(D.mean(axis=0), (90, 1))
    weight = np.repeat([1e-40, 1.0, 1e40], 30)
    found = skill_of_pairs(_cut(D, P, reference, weight))
    assert found == pytest.approx(skill_of_all(D, P, reference, weight), rel=1e-12)
    assert found == pytest.approx(skill_of_all(D[60:], P[60:], reference[60:]), rel=1e-12)

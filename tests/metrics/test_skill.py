"""Skill against a reference, with its bootstrap interval."""

import pickle

import numpy as np
import pytest

from skldl.exceptions import LengthMismatchError, RowSumError
from skldl.metrics import Skill, kullback_leibler, skill


@pytest.fixture
def data():
    generator = np.random.default_rng(5)
    D = generator.dirichlet(np.ones(4), 200)
    return D, 0.7 * D + 0.3 / 4, D.mean(axis=0, keepdims=True)


def test_is_one_minus_the_ratio_of_divergences(data):
    D, P, reference = data
    everywhere = np.tile(reference, (200, 1))
    weight = np.linspace(0, 1, 200)
    for w in (None, weight):
        expected = 1 - kullback_leibler(D, P, w) / kullback_leibler(D, everywhere, w)
        assert skill(D, P, reference, w) == pytest.approx(expected, rel=1e-12)
    assert skill(D, P, reference) == skill(D, P, everywhere)


def test_landmarks(data):
    D, P, reference = data
    assert skill(D, D, reference) == 1
    assert skill(D, np.tile(reference, (200, 1)), reference) == 0
    assert skill(D, D[::-1], reference) < 0
    assert skill(D, D, D) == 0
    assert skill(D, P, D) == -np.inf


def test_interval_is_reproducible_and_holds_the_value(data):
    D, P, reference = data
    first, second = skill(D, P, reference), skill(D, P, reference)
    assert (first.low, first.high) == (second.low, second.high)
    assert first.low <= first <= first.high
    assert first.confidence == 0.95
    other = skill(D, P, reference, random_state=1)
    assert other == first
    assert other.low != first.low
    wide, narrow = (skill(D, P, reference, confidence=c) for c in (0.99, 0.5))
    assert wide.low < narrow.low <= narrow.high < wide.high
    state = skill(D, P, reference, random_state=np.random.RandomState(3))
    assert state.low == skill(D, P, reference, random_state=np.random.RandomState(3)).low


def test_interval_covers_about_as_often_as_it_says():
    generator = np.random.default_rng(0)
    D = generator.dirichlet(np.ones(3), 40_000)
    P = 0.5 * D + 0.5 * generator.dirichlet(np.ones(3), 40_000)
    reference = D.mean(axis=0, keepdims=True)
    truth = skill(D, P, reference, n_resamples=1)
    hits = 0
    for i in range(200):
        rows = slice(200 * i, 200 * (i + 1))
        estimate = skill(D[rows], P[rows], reference, n_resamples=200, confidence=0.8)
        hits += estimate.low <= truth <= estimate.high
    assert 0.70 <= hits / 200 <= 0.88


def test_is_a_float_that_prints_and_pickles(data):
    value = skill(*data)
    assert isinstance(value, Skill)
    assert isinstance(value + 1, float)
    assert repr(value).startswith(f"Skill({float(value):.4f}, 95% interval ")
    back = pickle.loads(pickle.dumps(value))
    assert (back, back.low, back.high, back.confidence) == (value, value.low, value.high, value.confidence)


def test_bad_arguments_get_a_clear_error(data):
    D, P, reference = data
    with pytest.raises(ValueError, match="confidence=1"):
        skill(D, P, reference, confidence=1)
    with pytest.raises(ValueError, match="n_resamples=0"):
        skill(D, P, reference, n_resamples=0)
    with pytest.raises(LengthMismatchError, match=r"D_reference \(3, 4\)"):
        skill(D, P, D[:3])
    with pytest.raises(LengthMismatchError, match=r"D_reference \(200, 2\)"):
        skill(D, P, [[0.5, 0.5]])
    with pytest.raises(RowSumError, match="D_reference"):
        skill(D, P, [[1, 1, 1, 1]])


def test_many_rows_are_resampled_by_the_group(monkeypatch):
    generator = np.random.default_rng(0)
    D = generator.dirichlet([1.0, 2.0, 3.0], size=3000)
    P = 0.8 * D + 0.2 / 3
    one_by_one = skill(D, P, D.mean(axis=0, keepdims=True))
    monkeypatch.setattr("skldl.metrics._evaluate.MAX_GROUPS", 500)
    grouped = skill(D, P, D.mean(axis=0, keepdims=True))
    assert grouped == one_by_one
    width = one_by_one.high - one_by_one.low
    assert 0.8 * width < grouped.high - grouped.low < 1.2 * width
    assert (grouped.low, grouped.high) != (one_by_one.low, one_by_one.high)

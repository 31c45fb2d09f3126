"""Skill against a reference, with its interval."""

import pickle

import numpy as np
import pytest

from skldl.exceptions import DataError, LengthMismatchError, ParameterError, RowSumError
from skldl.metrics import Skill, kullback_leibler, skill, skill_of_losses


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


def test_interval_holds_the_value(data):
    D, P, reference = data
    first = skill(D, P, reference)
    assert first.low < first < first.high < 1
    assert first.confidence == 0.95
    wide, narrow = (skill(D, P, reference, confidence=c) for c in (0.99, 0.5))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_standard_error_is_that_of_the_bootstrap():
    generator = np.random.default_rng(0)
    own, reference = generator.gamma(2.0, size=(2, 300))
    own *= 0.5
    found = skill_of_losses(own, reference, confidence=0.6827)
    drawn = generator.integers(300, size=(4000, 300))
    logarithms = np.log(own[drawn].mean(axis=1) / reference[drawn].mean(axis=1))
    half_width = (np.log(1 - found.low) - np.log(1 - found.high)) / 2
    assert half_width == pytest.approx(logarithms.std(), rel=0.05)


def simulated_losses(generator, shape, *, precision, noise, n_labels, zeros=0.0):
    """Kullback-Leibler divergences of a noisy model and of a constant reference from noisy distributions."""
    mean = np.arange(1, n_labels + 1) / np.arange(1, n_labels + 1).sum()
    expected = mean * np.exp(0.6 * generator.normal(size=(*shape, n_labels)))
    expected /= expected.sum(axis=-1, keepdims=True)
    D = generator.standard_gamma(precision * expected) + 1e-12
    D /= D.sum(axis=-1, keepdims=True)
    P = expected * np.exp(noise * generator.normal(size=expected.shape))
    P[..., 0][generator.uniform(size=shape) < zeros] = 0.0
    P /= P.sum(axis=-1, keepdims=True)
    flat = D.reshape(-1, n_labels)
    own = kullback_leibler.rowwise(flat, P.reshape(-1, n_labels)).reshape(shape)
    return own, kullback_leibler.rowwise(flat, np.tile(mean, (len(flat), 1))).reshape(shape)


def coverage(n_samples, n_simulations, **problem):
    generator = np.random.default_rng(n_samples)
    own, reference = simulated_losses(generator, (400_000,), **problem)
    truth = 1 - own.mean() / reference.mean()
    own, reference = simulated_losses(generator, (n_simulations, n_samples), **problem)
    intervals = [skill_of_losses(m, r) for m, r in zip(own, reference, strict=True)]
    return np.mean([found.low <= truth <= found.high for found in intervals])


PROBLEMS = [
    {"precision": 20.0, "noise": 0.3, "n_labels": 4},
    {"precision": 100.0, "noise": 0.1, "n_labels": 6},
    {"precision": 5.0, "noise": 0.5, "n_labels": 3},
]


def test_interval_covers_about_as_often_as_it_says():
    assert 0.92 <= coverage(60, 500, **PROBLEMS[0]) <= 0.98


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("n_samples", [30, 100, 300])
def test_coverage_of_the_interval(n_samples, problem):
    assert 0.93 <= coverage(n_samples, 4000, **problem) <= 0.97


@pytest.mark.slow
def test_rare_predictions_of_zero_defeat_every_interval():
    """What the notes say: a sample without such a row, nine of ten with ten rows, knows nothing of it."""
    problem = PROBLEMS[1] | {"zeros": 0.01}
    found = {n_samples: coverage(n_samples, 2000, **problem) for n_samples in (30, 100, 3000)}
    assert found[30] < 0.5
    assert found[100] < 0.75
    assert found[3000] > 0.9


def test_groups_count_as_units(data):
    D, P, reference = data
    pairs = np.repeat(np.arange(200), 2)
    twice = skill(D[pairs], P[pairs], reference, groups=pairs)
    once = skill(D, P, reference)
    assert twice == pytest.approx(once, rel=1e-12)
    assert (twice.low, twice.high) == pytest.approx((once.low, once.high), rel=1e-9)
    assert skill(D[pairs], P[pairs], reference).low > once.low
    names = np.array([f"person {i % 7}" for i in range(200)])
    assert skill(D, P, reference, groups=names) == pytest.approx(once, rel=1e-12)


def test_weights(data):
    D, P, reference = data
    weight = np.random.default_rng(0).integers(0, 3, size=200)
    rows = np.repeat(np.arange(200), weight)
    weighted = skill(D, P, reference, weight)
    assert weighted == pytest.approx(skill(D[rows], P[rows], reference), rel=1e-12)
    for factor in (1e-300, 1e300):
        other = skill(D, P, reference, weight * factor)
        assert (other, other.low) == pytest.approx((weighted, weighted.low), rel=1e-12)
    left_out = skill(D[weight > 0], P[weight > 0], reference, weight[weight > 0])
    assert weighted.low == pytest.approx(left_out.low, rel=1e-12)
    losses = np.array([0.1, 0.2, np.inf])
    assert skill_of_losses(losses, [1.0, 1.0, 1.0], [1, 1, 0]) == pytest.approx(0.85)
    assert skill_of_losses(losses, [1.0, 1.0, 1.0]) == -np.inf


def test_degenerate_intervals():
    perfect = skill_of_losses([0.0, 0.0], [1.0, 2.0])
    assert (perfect.low, perfect, perfect.high) == (1, 1, 1)
    nothing_to_gain = skill_of_losses([0.0, 0.0], [0.0, 0.0])
    assert (nothing_to_gain.low, nothing_to_gain, nothing_to_gain.high) == (0, 0, 0)
    worse = skill_of_losses([0.0, 0.1], [0.0, 0.0])
    assert (worse.low, worse) == (-np.inf, -np.inf)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0]), "at least two rows .* there is 1"),
        (([1.0, 2.0], [1.0, 2.0], [1, 0]), "at least two rows"),
        (([1.0, 2.0], [1.0, 2.0], None, ["a", "a"]), "at least two groups"),
        (([1.0, 2.0], [1.0]), "losses has 2 rows and reference_losses 1"),
        (([1.0, 2.0], [1.0, 2.0], None, ["a"]), "groups has shape"),
        (([1.0, 2.0], [1.0, 2.0], [1, 2], ["a"]), "groups has shape"),
        (([1.0, -2.0], [1.0, 2.0]), "losses of row 1 is -2"),
        (([1.0, 2.0], [np.nan, 2.0]), "reference_losses of row 0 is nan"),
        (([[1.0]], [[2.0]]), "losses has shape"),
    ],
)
def test_bad_losses(arguments, message):
    with pytest.raises(DataError, match=message):
        skill_of_losses(*arguments)


def test_is_a_float_that_prints_and_pickles(data):
    value = skill(*data)
    assert isinstance(value, Skill)
    assert isinstance(value + 1, float)
    assert repr(value).startswith(f"Skill({float(value):.4f}, 95% interval ")
    back = pickle.loads(pickle.dumps(value))
    assert (back, back.low, back.high, back.confidence) == (value, value.low, value.high, value.confidence)


def test_bad_arguments_get_a_clear_error(data):
    D, P, reference = data
    for confidence in (1, 0.0, "0.95", None, np.nan, True):
        with pytest.raises(ParameterError, match=f"confidence={confidence!r} must be a finite number above 0"):
            skill(D, P, reference, confidence=confidence)
    with pytest.raises(DataError, match="at least two rows"):
        skill(D[:1], P[:1], reference)
    with pytest.raises(LengthMismatchError, match=r"D_reference \(3, 4\)"):
        skill(D, P, D[:3])
    with pytest.raises(LengthMismatchError, match=r"D_reference \(200, 2\)"):
        skill(D, P, [[0.5, 0.5]])
    with pytest.raises(RowSumError, match="D_reference"):
        skill(D, P, [[1, 1, 1, 1]])


def test_missing_groups_are_refused(data):
    D, P, reference = data
    groups = np.array(["a", "b", np.nan] + ["c"] * (len(D) - 3), dtype=object)
    with pytest.raises(DataError, match="missing values, the first in row 2"):
        skill(D, P, reference, groups=groups)

"""Skill against a reference, with its interval."""

import pickle

import numpy as np
import pytest

from skldl import SABFGSCV, MeanDistribution
from skldl.chunks import skill_of_pairs
from skldl.exceptions import DataError, LengthMismatchError, ParameterError, RowSumError
from skldl.metrics import MEASURES, Skill, clark, kullback_leibler, mu, skill, skill_of_losses, skill_ratio
from skldl.uncertainty import explainable_share


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


def test_an_infinite_loss():
    """Of the model: the worst skill. Of the reference: no skill, unless the row does not count."""
    assert skill_of_losses([np.inf, 1.0], [1.0, 1.0]) == -np.inf
    assert skill_of_losses([1.0, 1.0, 1.0], [np.inf, 2.0, 2.0], [0, 1, 1]) == 0.5
    np.testing.assert_array_equal(skill_ratio([1.0, np.inf, np.inf], [np.inf, np.inf, 1.0]), [np.nan, np.nan, -np.inf])


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


ROUNDED = [([0.0, 0.0], [5e-17, 6e-17]), ([1e-16, 1e-16], [0.0, 0.0]), ([1e-16, 0.0], [2e-17, 5e-17])]


@pytest.mark.parametrize(("own", "reference"), ROUNDED)
def test_losses_of_rounding_error_are_none(own, reference):
    found = skill_of_losses(own, reference)
    assert (found.low, found, found.high) == (0, 0, 0)
    assert skill_of_losses(own, reference, [1e-9, 3.0]) == 0
    assert skill_of_losses([*own, 0.0], [*reference, 0.0], groups=["a", "a", "b"]) == 0
    np.testing.assert_array_equal(skill_ratio(own, reference), [0, 0])
    perfect = skill_of_losses(own, [0.1, 0.2])
    assert (perfect.low, perfect, perfect.high) == (1, 1, 1)
    assert skill_of_losses([0.1, 0.2], reference) == -np.inf
    assert np.isnan(explainable_share(0.0, reference[0] + 0.1, 0.1))


def test_small_losses_that_are_no_rounding_error_count():
    assert skill_of_losses([1e-13, 1e-13], [2e-13, 2e-13]) == pytest.approx(0.5)
    assert skill_ratio(1e-13, 2e-13) == pytest.approx(0.5)
    np.testing.assert_array_equal(clark.loss([np.nan, np.inf, 2e-14, -1e-16], 1), [np.nan, np.inf, 2e-14, 0])
    np.testing.assert_array_equal(clark.loss([[1e-12], [1e-12]], [[50], [200]]), [[1e-12], [0]])


@pytest.mark.parametrize("degrees", [(0.3, 0.7), (0.1, 0.2, 0.7), (1 / 3, 1 / 3, 1 / 3)])
def test_equal_rows_leave_nothing_to_gain_by_any_road(degrees):
    """The rounding of one prediction, a few units in the last place, decides nothing."""
    D = np.tile(degrees, (40, 1))
    noise = np.random.default_rng(0).choice([-1, 0, 1], size=D.shape) * 2.0**-52
    exact, rounded = D[:1], D * (1 + noise)
    for P, reference in ((rounded, exact), (D, rounded), (rounded, rounded[::-1])):
        found = skill(D, P, reference)
        assert (found.low, found, found.high) == (0, 0, 0)
        assert skill_of_pairs([(D[:9], P[:9], reference[:9]), (D[9:], P[9:], reference[-31:])]) == 0
    uniform = np.full_like(D, 1 / len(degrees))
    assert mu(uniform, uniform * (1 + noise)) == 1
    assert mu(uniform, uniform * (1 + 1e-4 * noise * 2**52)) == 0


@pytest.mark.parametrize("n_labels", [2, 68, 1000])
def test_the_loss_of_a_rounded_prediction_is_none_by_every_measure(n_labels):
    """The scale of the rounding is that of the measure: Canberra adds up one term for each label."""
    generator = np.random.default_rng(1)
    D = generator.dirichlet(np.ones(n_labels), 30)
    P = D * (1 + generator.integers(-4, 5, size=D.shape) * 2.0**-53)
    for measure in MEASURES.values():
        if measure.has_zero_loss and (measure.loss(measure.rowwise(D, D), n_labels) == 0).all():
            assert measure.loss(measure.rowwise(D, P), n_labels).max() == 0, measure.name


@pytest.mark.parametrize("n_samples", [60, 30_000])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_of_equal_rows_has_no_loss_by_any_measure(n_samples, weighted):
    D = np.tile(np.random.default_rng(3).dirichlet(np.ones(9)), (n_samples, 1))
    weight = np.linspace(0.1, 1, n_samples) if weighted else None
    P = MeanDistribution().fit(np.zeros((n_samples, 1)), D, weight).predict([[0.0]])
    for name in ("canberra", "clark", "chebyshev", "intersection", "wave_hedges"):
        assert MEASURES[name].loss(MEASURES[name].rowwise(D[:1], P), 9) == 0, name


@pytest.mark.slow
def test_coverage_on_rows_of_a_real_dataset(paper_data):
    """What the notes say of Movie, where the interval is worst of the paper's sets that we have."""
    X, D = paper_data("Movie")
    generator = np.random.default_rng(0)
    train, test = np.array_split(generator.permutation(len(D)), 2)
    own = kullback_leibler.rowwise(D[test], SABFGSCV().fit(X[train], D[train]).predict(X[test]))
    reference = kullback_leibler.rowwise(D[test], np.tile(D[train].mean(axis=0), (len(test), 1)))
    truth = 1 - own.mean() / reference.mean()
    for n_samples, least, most in ((30, 0.915, 0.945), (50, 0.925, 0.95), (100, 0.93, 0.955)):
        drawn = generator.integers(len(test), size=(4000, n_samples))
        intervals = [skill_of_losses(own[rows], reference[rows]) for rows in drawn]
        assert least <= np.mean([found.low <= truth <= found.high for found in intervals]) <= most


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0, 1.0], [np.inf, 1.0]), "The loss of the reference is infinite"),
        (([np.inf, 1.0], [np.inf, 1.0]), "The loss of the reference is infinite"),
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


def test_missing_groups_are_rejected(data):
    D, P, reference = data
    groups = np.array(["a", "b", np.nan] + ["c"] * (len(D) - 3), dtype=object)
    with pytest.raises(DataError, match="missing values, the first in row 2"):
        skill(D, P, reference, groups=groups)

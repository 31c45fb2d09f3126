"""The noise floor: against known truth by simulation, against enumeration, and against a closed form."""

import itertools
import pickle
from math import factorial

import numpy as np
import pandas as pd
import pytest
from scipy.special import rel_entr

from skldl.data import Dataset, load_lexicon, load_tweets
from skldl.distributions import from_votes
from skldl.exceptions import DataError, LengthMismatchError, UnknownNameError
from skldl.metrics import MEASURES, PAPER_MEASURES, evaluate, kullback_leibler, skill
from skldl.metrics._noise_floor import (  # parts of the estimate that no public result shows exactly
    Mixing,
    _entropy_of_first_terms,
    _entropy_of_other_terms,
)
from skldl.uncertainty import explainable_share, noise_floor


def true_distributions(kind, n_rows, generator):
    if kind == "dirichlet":
        return generator.dirichlet(np.ones(4), n_rows)
    if kind == "sparse":
        return generator.dirichlet(np.full(4, 0.3), n_rows)
    offset = (np.arange(4) - generator.uniform(0, 3, n_rows)[:, None]) / generator.uniform(0.7, 2, n_rows)[:, None]
    bells = np.exp(-0.5 * offset**2)
    return bells / bells.sum(axis=1, keepdims=True)


def loss(measure, value):
    return 1.0 - value if measure.higher_is_better else value


@pytest.mark.parametrize(("kind", "n_votes", "tolerance"), [("dirichlet", 10, 0.05), ("bells", 20, 0.06)])
def test_the_floor_is_the_score_of_the_true_distributions(kind, n_votes, tolerance):
    errors = []
    for seed in range(5):
        generator = np.random.default_rng(seed)
        truth = true_distributions(kind, 400, generator)
        floors = noise_floor(generator.multinomial(n_votes, truth), PAPER_MEASURES, random_state=seed)
        many = np.repeat(truth, 20, axis=0)
        fractions = generator.multinomial(n_votes, many) / n_votes
        errors.append(
            [loss(m, floors[name].value) / loss(m, m(fractions, many)) - 1 for name, m in PAPER_MEASURES.items()]
        )
    assert np.abs(np.mean(errors, axis=0)).max() < tolerance


@pytest.mark.parametrize("n_votes", [10, 20])
def test_the_range_holds_the_floor_of_nearly_unanimous_rows(n_votes):
    """Its lower end is a third too low, far beyond its standard error."""
    generator = np.random.default_rng(0)
    truth = np.full((400, 6), 0.01)
    truth[np.arange(400), generator.integers(0, 6, 400)] = 0.95
    found = noise_floor(generator.multinomial(n_votes, truth), ["kullback_leibler", "cosine"])
    many = np.repeat(truth, 40, axis=0)
    fractions = generator.multinomial(n_votes, many) / n_votes
    floor = found["kullback_leibler"]
    expected = MEASURES["kullback_leibler"](fractions, many)
    assert floor.value < 0.7 * expected
    assert floor.smoothed == pytest.approx(expected, rel=0.05)
    assert (expected - floor.value) > 10 * floor.standard_error
    assert str(floor) == f"{floor.value:.4g} to {floor.smoothed:.4g}"
    assert found["cosine"].smoothed <= found["cosine"].value  # of a similarity it is the lower end


@pytest.mark.parametrize("kind", ["dirichlet", "sparse", "bells"])
@pytest.mark.parametrize("n_votes", [3, 20])
def test_the_smoothed_end_is_not_below_the_floor(kind, n_votes):
    generator = np.random.default_rng(0)
    truth = true_distributions(kind, 400, generator)
    floor = noise_floor(generator.multinomial(n_votes, truth), "kullback_leibler")["kullback_leibler"]
    many = np.repeat(truth, 40, axis=0)
    expected = MEASURES["kullback_leibler"](generator.multinomial(n_votes, many) / n_votes, many)
    assert 0.99 * expected < floor.smoothed < 1.6 * expected


@pytest.mark.parametrize(("counts", "groups"), [([[3, 1]], None), ([[3, 1], [2, 2]], ["a", "a"])])
def test_one_row_or_group_has_a_floor_without_standard_error(counts, groups):
    floor = noise_floor(counts, "kullback_leibler", groups=groups)["kullback_leibler"]
    assert 0 < floor.value <= floor.smoothed
    assert np.isnan(floor.standard_error)
    if groups is None:
        score = evaluate([[0.75, 0.25]], [[0.5, 0.5]], counts=counts, measures=["kullback_leibler"])["kullback_leibler"]
        assert score.floor == floor.value
        assert "nan" not in repr(score)


def test_a_few_unanimous_rows_do_not_show_that_nothing_is_missing():
    floor = noise_floor([[3, 0, 0], [0, 3, 0], [0, 3, 0]], "kullback_leibler")["kullback_leibler"]
    assert floor.value < 0.05 < floor.smoothed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dirichlet", "sparse", "bells"])
@pytest.mark.parametrize(("n_votes", "tolerance"), [(3, 0.05), (20, 0.03)])
def test_bias_of_the_divergence_and_its_standard_error_over_forty_tables(kind, n_votes, tolerance):
    relative, ratio = [], []
    for seed in range(40):
        generator = np.random.default_rng(seed)
        truth = true_distributions(kind, 400, generator)
        floor = noise_floor(generator.multinomial(n_votes, truth), "kullback_leibler", random_state=seed)
        many = np.repeat(truth, 40, axis=0)
        expected = MEASURES["kullback_leibler"](generator.multinomial(n_votes, many) / n_votes, many)
        relative.append(floor["kullback_leibler"].value / expected - 1)
        ratio.append(floor["kullback_leibler"].standard_error / expected)
    assert abs(np.mean(relative)) < tolerance
    assert 0.5 < np.mean(ratio) / np.std(relative) < 3  # the truth is drawn anew, the floor is that of this table


def test_twenty_votes_and_three_labels_leave_five_hundredths():
    counts = np.random.default_rng(0).multinomial(20, [0.3, 0.3, 0.4], size=1000)
    floor = noise_floor(counts, ["kullback_leibler"])["kullback_leibler"]
    assert floor.value == pytest.approx(2 / 40, abs=0.003)
    assert abs(floor.value - _enumerated_floor([0.3, 0.3, 0.4], 20)) < 3 * floor.standard_error
    assert (floor.n_rows, floor.n_votes) == (1000, 20.0)


def outcomes(n_votes, n_labels):
    return np.array([n for n in itertools.product(range(n_votes + 1), repeat=n_labels) if sum(n) == n_votes], float)


def probabilities(counts, d):
    n_votes = int(counts[0].sum())
    coefficient = [factorial(n_votes) / np.prod([factorial(int(k)) for k in row]) for row in counts]
    return np.array(coefficient) * np.prod(np.asarray(d) ** counts, axis=1)


def _enumerated_floor(d, n_votes):
    counts = outcomes(n_votes, len(d))
    return float(probabilities(counts, d) @ rel_entr(counts / n_votes, np.asarray(d)).sum(axis=1))


def test_both_parts_of_the_entropy_add_up_exactly():
    d = np.array([0.15, 0.25, 0.6])
    for n_votes in (1, 2, 5, 9):
        counts = outcomes(n_votes, 3)
        first = probabilities(counts, d) @ _entropy_of_first_terms(counts)
        other = _entropy_of_other_terms(d[None], np.array([n_votes]))[0, 0]
        assert first + other == pytest.approx(-(d * np.log(d)).sum(), abs=1e-12)


def test_polynomials_are_unbiased_whatever_the_truth():
    d = np.array([0.1, 0.3, 0.6])
    counts = outcomes(6, 3)
    repeated = np.repeat(counts, np.rint(900 * probabilities(counts, d)).astype(int), axis=0)
    floors = noise_floor(repeated, ["squared_euclidean", "inner_product"])
    second = ((repeated * (repeated - 1)).sum(axis=1) / 30).mean()
    assert floors["inner_product"].value == pytest.approx(second)
    assert floors["squared_euclidean"].value == pytest.approx((1 - second) / 6)
    assert second == pytest.approx((d**2).sum(), rel=0.02)


def test_two_votes_are_one_pair():
    floors = noise_floor(np.array([[2, 0], [1, 1], [0, 2], [1, 1]]), ["squared_euclidean", "inner_product"])
    assert floors["inner_product"].value == 0.5  # half of the pairs agree
    assert floors["squared_euclidean"].value == 0.25


def test_rows_with_different_numbers_of_votes_and_single_votes():
    generator = np.random.default_rng(0)
    truth = generator.dirichlet([2.0, 3.0, 4.0], 1000)
    numbers = np.arange(1000) % 30 + 1
    counts = np.array([generator.multinomial(n, d) for n, d in zip(numbers, truth, strict=True)])
    names = ["kullback_leibler", "squared_euclidean", "inner_product", "chebyshev"]
    floors = noise_floor(counts, names)
    for name in names:
        draws = []
        for _ in range(20):
            again = np.array([generator.multinomial(n, d) for n, d in zip(numbers, truth, strict=True)])
            draws.append(MEASURES[name](again / numbers[:, None], truth))
        assert floors[name].value == pytest.approx(np.mean(draws), rel=0.06)


def test_a_few_true_distributions_that_no_dirichlet_distribution_describes():
    """Without support points near the rows, the floor would be a quarter too low."""
    generator = np.random.default_rng(0)
    truth = np.repeat(generator.dirichlet(np.ones(6), 3), 150, axis=0)
    counts = generator.multinomial(50, truth)
    many = np.repeat(truth, 20, axis=0)
    expected = MEASURES["clark"](generator.multinomial(50, many) / 50, many)
    assert noise_floor(counts, "clark")["clark"].value == pytest.approx(expected, rel=0.1)


def test_every_measure_has_a_floor():
    counts = np.random.default_rng(0).multinomial(8, [0.2, 0.3, 0.5], size=60)
    floors = noise_floor(counts, MEASURES)
    assert set(floors) <= set(MEASURES)
    assert len(floors) == len(MEASURES)
    assert all(np.isfinite(floor.value) for floor in floors.values())


def test_weights_groups_and_samples_of_many_rows():
    generator = np.random.default_rng(0)
    sharp, flat = (
        generator.multinomial(9, [0.98, 0.01, 0.01], size=700),
        generator.multinomial(9, [1 / 3] * 3, size=700),
    )
    counts = np.concatenate([sharp, flat])
    weight = np.r_[np.ones(700), np.full(700, 1e-9)]
    alone = noise_floor(sharp, "kullback_leibler")["kullback_leibler"]
    weighted = noise_floor(counts, "kullback_leibler", sample_weight=weight)["kullback_leibler"]
    assert weighted.n_rows == 1000
    assert weighted.value == pytest.approx(alone.value, rel=0.1)
    grouped = noise_floor(counts, "kullback_leibler", groups=np.repeat(["a", "b", "c", "d"], 350))["kullback_leibler"]
    single = noise_floor(counts, "kullback_leibler")["kullback_leibler"]
    assert grouped.standard_error > 2 * single.standard_error  # groups that differ leave few independent units


def test_em_reaches_weights_at_which_no_support_point_gains():
    generator = np.random.default_rng(0)
    likelihood = generator.uniform(0.1, 1.0, size=(50, 4))
    mixing = Mixing(np.eye(4), likelihood)
    weights = mixing.weights(np.ones(50), iterations=5000)
    gradient = (likelihood / (likelihood @ weights)[:, None]).mean(axis=0)
    assert gradient.max() < 1 + 1e-3  # the condition of Karush, Kuhn and Tucker for the mixing weights
    np.testing.assert_allclose(mixing.posterior(weights).sum(axis=1), 1.0)


def test_share_of_the_explainable_loss():
    assert explainable_share(0.05, 0.10, 0.05) == 1.0
    assert explainable_share(0.10, 0.10, 0.05) == 0.0
    assert np.isnan(explainable_share(0.10, 0.10, 0.10))


def test_what_has_no_floor():
    with pytest.raises(DataError, match="whole numbers"):
        noise_floor([[0.5, 1.5]])
    with pytest.raises(DataError, match="no vote in row 1"):
        noise_floor([[1, 1], [0, 0]])
    with pytest.raises(DataError, match="two votes"):
        noise_floor([[1, 0], [0, 1]])
    with pytest.raises(DataError, match="shape"):
        noise_floor([1, 2])
    with pytest.raises(LengthMismatchError, match="groups"):
        noise_floor([[1, 1], [2, 0]], groups=[1])
    with pytest.raises(DataError, match="groups holds missing values, the first in row 1"):
        noise_floor([[1, 1], [2, 0]], groups=["a", None])
    with pytest.raises(UnknownNameError, match="wrong"):
        noise_floor([[1, 1], [2, 0]], "wrong")


def test_datasets_know_their_floor():
    counts = np.random.default_rng(0).multinomial(5, [0.2, 0.8], size=40)
    X, D = np.zeros((40, 1)), counts / 5
    dataset = Dataset("d", X, D, counts=counts)
    assert list(dataset.noise_floor()) == list(PAPER_MEASURES)
    assert dataset.noise_floor(["clark"]) == noise_floor(counts, ["clark"])
    assert Dataset("d", X, D).noise_floor() == {}
    assert Dataset("d", X, D, counts=D).noise_floor() == {}  # weighted votes
    assert Dataset("d", X, (counts + 1) / 7, counts=counts).noise_floor() == {}  # smoothed
    assert Dataset("d", X, np.eye(2)[[0] * 40], counts=np.eye(2)[[0] * 40]).noise_floor() == {}


def test_votes_know_their_floor_if_they_are_whole():
    generator = np.random.default_rng(0)
    answers = generator.integers(0, 3, size=(50, 6))
    votes = from_votes(answers, labels=range(3))
    counts = np.array([np.bincount(row, minlength=3) for row in answers])
    assert votes.noise_floor(["clark"]) == noise_floor(counts, ["clark"])
    for options in ({"weights": [2, 1, 1, 1, 1, 1]}, {"smoothing": 0.5}):
        with pytest.raises(DataError, match="without smoothing"):
            from_votes(answers, labels=range(3), **options).noise_floor()
    with pytest.raises(DataError, match="whole numbers"):
        from_votes([["a", ["a", "b"]], ["b", "a"]]).noise_floor()


def test_scores_carry_the_floor():
    generator = np.random.default_rng(0)
    truth = generator.dirichlet(np.ones(3), 300)
    counts = generator.multinomial(20, truth)
    weight = generator.uniform(0.5, 2.0, 300)
    plain = evaluate(counts / 20, truth, weight)
    scores = evaluate(counts / 20, truth, weight, counts=counts)
    floors = noise_floor(counts, sample_weight=weight)
    assert scores == plain  # they stay numbers
    for name, score in scores.items():
        assert (score.floor, score.floor_error) == (floors[name].value, floors[name].standard_error)
        assert score.floor_smoothed == floors[name].smoothed
        assert abs(score - score.floor) < 0.1 * max(score.floor, 1 - score.floor)  # the truth is at the floor
        assert vars(pickle.loads(pickle.dumps(score))) == vars(score)
    assert repr(scores["clark"]).startswith("Score(")
    assert not hasattr(plain["clark"], "floor")


def test_skill_carries_the_floor_and_the_share_explained():
    generator = np.random.default_rng(0)
    truth = generator.dirichlet(np.ones(3), 300)
    counts = generator.multinomial(20, truth)
    D, mean = counts / 20, np.full((1, 3), 1 / 3)
    halfway = 0.5 * truth + 0.5 * mean
    for weight in (None, generator.uniform(0.5, 2.0, 300)):
        for groups in (None, np.arange(300) // 3):
            found = skill(D, halfway, mean, weight, groups=groups, counts=counts)
            loss, reference = (kullback_leibler(D, P, weight) for P in (halfway, np.tile(mean, (300, 1))))
            floor = noise_floor(counts, "kullback_leibler", sample_weight=weight, groups=groups)["kullback_leibler"]
            assert found == skill(D, halfway, mean, weight, groups=groups)
            assert (found.floor, found.floor_smoothed) == (floor.value, floor.smoothed)
            assert found.explained == pytest.approx((reference - loss) / (reference - floor.value))
            assert found < found.explained < 1
    assert pickle.loads(pickle.dumps(found)).explained == found.explained
    assert "explained" in repr(found)
    without = skill(D, halfway, mean)
    assert np.isnan([without.floor, without.explained]).all()
    assert "explained" not in repr(without)


def test_votes_that_are_not_those_of_the_rows_are_rejected():
    counts = np.array([[3, 1], [2, 2], [0, 4]])
    D, P = counts / 4, np.full((3, 2), 0.5)
    with pytest.raises(DataError, match=r"Row 2 of D_true .* without smoothing"):
        evaluate([*D[:2], [0.1, 0.9]], P, counts=counts)
    with pytest.raises(LengthMismatchError, match=r"counts has shape \(2, 2\), but needs \(3, 2\)"):
        skill(D, P, P, counts=counts[:2])
    frame = pd.DataFrame(D, columns=["no", "yes"])
    swapped = pd.DataFrame(counts[:, ::-1], columns=["yes", "no"])
    assert evaluate(frame, P, counts=swapped)["clark"].floor == evaluate(D, P, counts=counts)["clark"].floor


@pytest.mark.parametrize("load", [load_lexicon, load_tweets])
def test_bundled_sets_come_with_the_votes_that_scores_need(load):
    data = load()
    rows = slice(0, 200)
    mean = np.tile(data.D.mean(axis=0), (200, 1))
    score = evaluate(data.D[rows], mean, measures=["kullback_leibler"], counts=data.counts[rows])["kullback_leibler"]
    assert 0.02 < score.floor < 0.5 * score

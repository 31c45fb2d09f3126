"""The choice of measures: experiments, tree, the four principles, and how robust it is."""

import numpy as np
import pytest
from scipy.cluster import hierarchy

from skldl.exceptions import LengthMismatchError, UnknownNameError
from skldl.metrics import CHA_MEASURES, MEASURES, PAPER_MEASURES, VICISSITUDE_MEASURES, Measure
from skldl.metrics.selection import LIBRARIES, USAGE, choose, instability, robustness, select_measures


@pytest.fixture(scope="module")
def selection():
    return select_measures()


def index(selection, name):
    return [measure.name for measure in selection.measures].index(name)


# -- the tree


def test_all_51_take_part(selection):
    assert [m.name for m in selection.measures] == [*CHA_MEASURES, *VICISSITUDE_MEASURES]
    assert selection.linkage.shape == (50, 4)
    assert set(selection.clusters) == set(selection.reasons) == set(selection.instability)
    assert selection.settings["experiments"] == 30


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("sorensen", "city_block"),
        ("sorensen", "czekanowski"),
        ("gower", "intersection"),
        ("topsoe", "jensen_shannon"),
        ("squared_chi2", "probabilistic_symmetric_chi2"),
        ("ruzicka", "soergel"),
        ("jaccard", "kumar_hassebrook"),
        ("harmonic_mean", "squared_chi2"),
    ],
)
def test_measures_that_are_one_lie_together(selection, one, other):
    i, j = index(selection, one), index(selection, other)
    assert abs(selection.correlation[i, j]) == pytest.approx(1)
    assert selection.distances[i, j] < 1e-6
    assert selection.clusters[one] == selection.clusters[other]


def test_distances_follow_from_correlations(selection):
    np.testing.assert_allclose(selection.distances, np.sqrt(np.maximum(1 - selection.correlation**2, 0)))
    plain = select_measures(dissimilarity="one_minus_r")
    np.testing.assert_allclose(plain.correlation, selection.correlation)
    np.testing.assert_allclose(plain.distances, 1 - np.abs(plain.correlation))


def test_correlation_is_the_mean_over_experiments():
    names = ["clark", "canberra", "intersection"]
    one = select_measures(measures=names, n_experiments=1, n_pairs=50, random_state=4)
    generator = np.random.default_rng(4)
    true = generator.dirichlet(np.ones(10))
    pred = generator.dirichlet(np.ones(10), 50)
    values = [MEASURES[name].rowwise(np.tile(true, (50, 1)), pred) for name in names]
    np.testing.assert_allclose(one.correlation, np.corrcoef(values), atol=1e-12)
    ranks = select_measures(measures=names, n_experiments=1, n_pairs=50, random_state=4, correlation="spearman")
    np.testing.assert_allclose(ranks.correlation, np.corrcoef(np.argsort(np.argsort(values))), atol=1e-12)


def test_clusters_are_further_apart_than_the_cut(selection):
    numbers = np.array(list(selection.clusters.values()))
    apart = numbers[:, None] != numbers[None, :]
    assert selection.distances[apart].min() > 0.1
    single = hierarchy.linkage(selection.distances[np.triu_indices(51, 1)], "single")
    np.testing.assert_allclose(selection.linkage[:, 2], single[:, 2], atol=1e-7)
    assert len(set(select_measures(cut=10.0).clusters.values())) == 1


def test_a_measure_that_never_varies_stands_alone():
    flat = Measure("flat", "Flat", "L1", "1", "1", False, lambda pair: np.ones(pair.p.shape[1]))
    selection = select_measures(measures=["clark", "canberra", flat], n_experiments=2)
    np.testing.assert_array_equal(selection.correlation[2], [0, 0, 1])
    assert not np.isnan(selection.linkage).any()


# -- the principles


def test_chosen_keep_the_principles(selection):
    assert len(selection.chosen) == 6
    assert selection.judge(selection.chosen) == {"clusters": "", "families": "", "stability": ""}
    for name in selection.chosen:
        assert selection.reasons[name].startswith("chosen")


def test_the_papers_six_keep_the_first_three_and_lose_on_use(selection):
    assert selection.judge() == {"clusters": "", "families": "", "stability": ""}
    assert {MEASURES[name].family for name in selection.chosen} == {m.family for m in PAPER_MEASURES.values()}
    assert set(PAPER_MEASURES) - set(selection.chosen) == {"chebyshev", "clark"}
    ours, theirs = (sum(USAGE.get(name, 0) for name in names) for names in (selection.chosen, PAPER_MEASURES))
    assert ours > theirs


def test_use_decides_within_what_the_rest_allows(selection):
    usage = dict.fromkeys(PAPER_MEASURES, 1)
    assert set(select_measures(usage=usage).chosen) == set(PAPER_MEASURES)


def test_one_minus_r_leaves_no_room_for_six():
    plain = select_measures(dissimilarity="one_minus_r")
    assert len(plain.chosen) < 6
    assert "share a cluster" in plain.judge()["clusters"]


def test_violations_are_named(selection):
    judged = selection.judge(["clark", "divergence", "pearson_chi2", "cosine"])
    assert judged["clusters"] == "clark, divergence share a cluster"
    assert judged["families"] == "clark, divergence, pearson_chi2 share a family"
    assert judged["stability"].startswith("pearson_chi2 grows")
    with pytest.raises(UnknownNameError, match="spearman"):
        selection.judge(["spearman"])


def test_reasons_tell_why_a_measure_was_left(selection):
    assert selection.reasons["vicis_wave_hedges"] == "outside the eight families"
    assert selection.reasons["neyman_chi2"].startswith("unstable")
    assert "same family as euclidean (6)" in selection.reasons["chebyshev"]
    assert "same family and cluster as intersection" in selection.reasons["motyka"]
    assert "its family was not among those chosen" in selection.reasons["hellinger"]
    assert "same cluster as intersection" in selection.reasons["city_block"]


def test_instability_tells_division_from_logarithm():
    generator = np.random.default_rng(0)
    true, pred = (generator.dirichlet(np.ones(8), 300) for _ in range(2))
    growth = instability(list(MEASURES.values()), true, pred, generator)
    assert {name for name in CHA_MEASURES if growth[name] > 100} == {
        "kulczynski_s",
        "pearson_chi2",
        "neyman_chi2",
        "additive_symmetric_chi2",
        "kumar_johnson",
    }
    for name in ("kullback_leibler", "jeffreys", "taneja"):
        assert 1.5 < growth[name] < 20
    for name in ("clark", "canberra", "chebyshev", "euclidean", "jensen_shannon"):
        assert growth[name] < 1.5
    assert instability([MEASURES["clark"]], true, true, generator)["clark"] == 0  # never had a usual size


def test_usage_counts_libraries():
    known = set(MEASURES)
    assert all(set(names) <= known for names in LIBRARIES.values())
    assert USAGE["euclidean"] == 6
    assert max(USAGE.values()) <= len(LIBRARIES)


def test_choice_is_the_best_of_all():
    """Against trying every set, on small made-up trees."""
    from itertools import combinations

    generator = np.random.default_rng(0)
    for _ in range(20):
        candidates = [
            Measure(f"m{i}", "", f"family {generator.integers(4)}", "", "", False, lambda pair: pair.p[0])
            for i in range(9)
        ]
        clusters = {m.name: int(generator.integers(4)) for m in candidates}
        usage = {m.name: int(generator.integers(5)) for m in candidates}
        chosen = choose(candidates, clusters, usage, 3)
        allowed = [
            names
            for size in (1, 2, 3)
            for names in combinations(candidates, size)
            if len({m.family for m in names}) == len({clusters[m.name] for m in names}) == size
        ]
        size = max(map(len, allowed))
        best = max(sum(usage[m.name] for m in names) for names in allowed if len(names) == size)
        assert len(chosen) == size
        assert sum(usage[name] for name in chosen) == best
    assert choose([], {}, {}, 6) == ()


# -- one's own data, reproducibility, errors


def test_own_predictions():
    generator = np.random.default_rng(2)
    true = generator.dirichlet(np.ones(5), 200)
    pred = 0.5 * true + 0.5 * generator.dirichlet(np.ones(5), 200)
    selection = select_measures(true, pred)
    assert selection.settings["source"] == "own data, 200 rows over 5 labels"
    assert 1 <= len(selection.chosen) <= 6
    holes = np.where(true < 0.1, 0.0, true)
    holes /= holes.sum(axis=1, keepdims=True)
    with_zeros = select_measures(true, holes)
    assert not np.isnan(with_zeros.distances).any()
    assert with_zeros.instability["pearson_chi2"] > 100


def test_same_seed_same_choice(selection):
    again, other = select_measures(), select_measures(random_state=1)
    np.testing.assert_array_equal(again.linkage, selection.linkage)
    assert again.chosen == selection.chosen
    assert not np.array_equal(other.linkage, selection.linkage)


@pytest.mark.parametrize(
    "settings",
    [
        {"n_measures": 0},
        {"n_experiments": 0},
        {"n_pairs": 5},
        {"n_labels": 1},
        {"concentration": 0},
        {"cut": -0.1},
        {"limit": np.inf},
        {"correlation": "kendall"},
        {"dissimilarity": "cosine"},
    ],
)
def test_bad_settings_are_rejected(settings):
    with pytest.raises(ValueError, match=next(iter(settings))):
        select_measures(**settings)


def test_bad_data_are_rejected():
    rows = [[0.5, 0.5]] * 12
    with pytest.raises(ValueError, match="Pass both D_true and D_pred"):
        select_measures(rows)
    with pytest.raises(ValueError, match="2 rows are too few"):
        select_measures(rows[:2], rows[:2])
    with pytest.raises(LengthMismatchError):
        select_measures(rows, rows[:11])
    with pytest.raises(ValueError, match="at least two measures"):
        select_measures(measures=["clark"])
    with pytest.raises(UnknownNameError):
        select_measures(measures=["clark", "clarke"])


def test_robustness_sums_up_its_runs():
    outcome = robustness(n_labels=[5, 8], concentrations=[1.0], seeds=[0, 1], n_experiments=5, n_pairs=100)
    assert [(run.n_labels, run.seed) for run in outcome.runs] == [(5, 0), (5, 1), (8, 0), (8, 1)]
    assert max(outcome.frequency.values()) <= 1
    assert sum(outcome.frequency.values()) == pytest.approx(sum(len(run.chosen) for run in outcome.runs) / 4)
    names, share = outcome.usual
    assert 0 < share <= 1
    assert list(names) == sorted(names)
    assert 0 <= outcome.agreement <= 6
    assert outcome.paper_admissible["families"] == outcome.paper_admissible["stability"] == 1
    assert outcome.paper_admissible["all"] <= outcome.paper_admissible["clusters"]
    with pytest.raises(ValueError, match="at least one value"):
        robustness(seeds=[])


@pytest.mark.slow
def test_documented_robustness():
    """The figures in the docstring of select_measures."""
    assert robustness().paper_admissible["all"] == 1
    plain = robustness(dissimilarity="one_minus_r")
    assert plain.paper_admissible["clusters"] == 0
    assert max(len(run.chosen) for run in plain.runs) < 6

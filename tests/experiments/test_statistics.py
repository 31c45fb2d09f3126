"""Statistical tests: compared with other implementations, closed forms and published values; reasons for none."""

import numpy as np
import pytest
from scipy import stats

from skldl.exceptions import ParameterError, UnknownNameError
from skldl.experiments import Candidate, Study, run_study, statistics
from skldl.experiments.statistics import compare, pair_tests
from skldl.experiments.statistics_text import comparison_sentences, comparison_table, statistics_text

RNG = np.random.default_rng(3)
LOSSES = np.abs(RNG.normal(1.0, 0.1, size=(9, 4)) * np.array([0.6, 0.8, 0.98, 1.0])) * RNG.uniform(0.01, 5, size=(9, 1))


def test_friedman_and_iman_davenport(fake):
    tests = compare(fake(LOSSES), "clark")
    chi2, p = stats.friedmanchisquare(*LOSSES.T)
    assert tests.friedman["chi2"] == pytest.approx(chi2)
    assert tests.friedman["chi2_p"] == pytest.approx(p)
    n, k = LOSSES.shape
    F = (n - 1) * chi2 / (n * (k - 1) - chi2)
    assert tests.friedman["F"] == pytest.approx(F)
    assert tests.friedman["F_p"] == pytest.approx(stats.f.sf(F, k - 1, (k - 1) * (n - 1)))
    np.testing.assert_allclose(tests.average_ranks, stats.rankdata(LOSSES, axis=1).mean(axis=0))


def test_similarities_are_ranked_the_other_way_round(fake):
    one, other = (compare(fake(LOSSES / 30), measure) for measure in ("clark", "cosine"))
    np.testing.assert_allclose(one.average_ranks, other.average_ranks)
    np.testing.assert_allclose(one.wilcoxon, other.wilcoxon)


@pytest.mark.parametrize(("k", "q_nemenyi", "q_dunn"), [(2, 1.960, 1.960), (4, 2.569, 2.394), (7, 2.949, 2.638)])
def test_critical_differences_are_those_of_demsar(fake, k, q_nemenyi, q_dunn):
    losses = RNG.uniform(0.1, 1, size=(10, k))
    tests = compare(fake(losses), "clark")
    spread = np.sqrt(k * (k + 1) / 60)
    assert tests.nemenyi_difference == pytest.approx(q_nemenyi * spread, abs=2e-3)
    assert tests.dunn_difference == pytest.approx(q_dunn * spread, abs=2e-3)


def test_p_values_agree_with_the_critical_differences(fake):
    tests = compare(fake(LOSSES), "clark")
    for i in range(4):
        for j in range(4):
            apart = abs(tests.average_ranks[i] - tests.average_ranks[j]) > tests.nemenyi_difference
            assert (tests.nemenyi[i, j] < 0.05) == apart
    for j, name in enumerate(tests.candidates[:-1]):
        apart = abs(tests.average_ranks[j] - tests.average_ranks[-1]) > tests.dunn_difference
        assert (tests.dunn[name] < 0.05) == apart


def test_wilcoxon_with_holm(fake):
    tests = compare(fake(LOSSES), "clark")
    relative = LOSSES / LOSSES[:, [3]]
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    raw = {(i, j): stats.wilcoxon(relative[:, i], relative[:, j]).pvalue for i, j in pairs}
    running = 0.0
    for place, pair in enumerate(sorted(raw, key=raw.get)):
        running = max(running, min(1.0, raw[pair] * (len(pairs) - place)))
        assert tests.wilcoxon[pair] == pytest.approx(running)


def test_the_bayesian_test_distinguishes_better_equal_and_worse(fake):
    base = RNG.uniform(0.1, 3, size=(12, 1))
    jitter = RNG.uniform(0.999, 1.001, size=(12, 4))  # equal differences would be ties, which are slow to test
    losses = np.hstack([base * 0.5, base * 1.001, base * 2.0, base]) * jitter
    tests = compare(fake(losses), "clark")
    better, equal, worse = (tests.bayes[f"algorithm {j}"] for j in range(3))
    assert better[0] > 0.99
    assert equal[1] > 0.99
    assert worse[2] > 0.99
    assert tests.bayes == compare(fake(losses), "clark").bayes  # drawn with the seed of the study


def test_a_named_control(fake):
    tests = compare(fake(LOSSES), "clark", control="Algorithm-0")
    assert tests.control == "algorithm 0"
    assert set(tests.dunn) == {"algorithm 1", "algorithm 2", "Mean"}
    with pytest.raises(UnknownNameError, match="No candidate is called 'nobody'"):
        compare(fake(LOSSES), "clark", control="nobody")


def test_a_baseline_need_not_take_part(fake):
    """A baseline that is always last makes every test significant."""
    equal = RNG.uniform(0.1, 0.2, size=(9, 3))
    results = fake(np.hstack([equal, np.full((9, 1), 0.9)]))
    assert compare(results, "clark").friedman["F_p"] < 1e-3
    names = ["algorithm 0", "Algorithm-1", "algorithm 2", "algorithm 0"]
    tests = compare(results, "clark", candidates=names)
    chi2, _ = stats.friedmanchisquare(*equal.T)
    assert tests.friedman["chi2"] == pytest.approx(chi2)
    assert tests.friedman["F_p"] > 0.05
    assert tests.candidates == ["algorithm 0", "algorithm 1", "algorithm 2"]
    assert (tests.control, tests.dunn, tests.bayes) == ("", {}, {})  # the best one would look better than it is
    assert tests.reasons == {"control": "The control of the study, Mean, takes no part, and no other is named."}
    assert tests.wilcoxon.shape == (3, 3)
    assert comparison_table(tests) is None
    assert "Bonferroni" not in " ".join(comparison_sentences(tests))
    assert compare(results, "clark", candidates=names, control="algorithm 2").control == "algorithm 2"
    with pytest.raises(UnknownNameError, match="No candidate is called 'Mean'"):
        compare(results, "clark", candidates=names, control="Mean")
    with pytest.raises(UnknownNameError, match="No candidate is called 'nobody'"):
        compare(results, "clark", candidates=["nobody"])
    for wrong in ([], "SA"):
        with pytest.raises(ParameterError, match="candidates must be a list of names"):
            compare(results, "clark", candidates=wrong)
    with pytest.raises(ParameterError, match="datasets must be a list of names"):
        compare(results, "clark", [])
    with pytest.raises(UnknownNameError, match="No dataset is called 'nowhere'"):
        compare(results, "clark", ["nowhere"])


@pytest.mark.parametrize(
    ("losses", "reason"),
    [
        (np.array([[0.1, 0.2, 0.3]]), "1 dataset: a test over datasets needs at least 2"),
        (np.full((5, 3), 0.25), "All candidates are tied on every dataset"),
        (np.array([[0.1], [0.2]]), "One candidate"),
    ],
)
def test_the_reason_why_there_is_no_test_is_reported(fake, losses, reason):
    results = fake(losses)
    tests = compare(results, "clark")
    assert reason in tests.reasons["all"]
    assert tests.friedman == {}
    assert np.isnan(tests.nemenyi_difference)
    assert reason in statistics_text(results)


def test_two_candidates_have_no_friedman_test_but_all_others(fake):
    results = fake(np.array([[0.1, 0.2], [0.3, 0.5], [0.2, 0.6]]))
    tests = compare(results, "clark")
    assert "Two candidates" in tests.reasons["friedman"]
    assert tests.wilcoxon[0, 1] == pytest.approx(0.25)
    assert "No Friedman test. Two candidates" in statistics_text(results)
    assert "p values are approximate" in statistics_text(results)
    assert "p values are approximate" not in statistics_text(fake(LOSSES))


def test_a_perfect_order_and_ties(fake):
    perfect = compare(fake(np.tile([0.1, 0.2, 0.3], (4, 1)) * np.arange(1, 5)[:, None]), "clark")
    assert perfect.friedman["F"] == np.inf
    assert perfect.friedman["F_p"] == pytest.approx(6.0**-3)  # of four orders of three, all the same
    with_tie = compare(fake(np.array([[0.1, 0.1, 0.3], [0.2, 0.2, 0.4]])), "clark")
    assert with_tie.friedman["F"] == np.inf
    assert with_tie.friedman["F_p"] == pytest.approx(1 / 3)
    tied = compare(fake(np.array([[0.1, 0.1, 0.3], [0.2, 0.2, 0.4], [0.1, 0.1, 0.2]])), "clark")
    assert tied.wilcoxon[0, 1] == pytest.approx(1.0)
    assert not np.isnan(tied.wilcoxon).any()
    zero = compare(fake(np.array([[0.0, 0.1, 0.0], [0.2, 0.1, 0.3]])), "clark")  # a control without any loss
    assert not np.isnan(list(zero.bayes["algorithm 0"])).any()


def test_datasets_with_a_failure_are_left_out(failing_results):
    tests = compare(failing_results, "clark")
    assert tests.datasets == []
    assert "0 datasets" in tests.reasons["all"]
    text = statistics_text(failing_results)
    assert "No test: 0 datasets" in text
    assert "| one |" in text


def test_corrected_resampled_t(fake):
    results = fake(np.array([[0.2, 0.3, 0.3], [0.5, 0.1, 0.4]]), folds=10, noise=0.01)
    tests = pair_tests(results, "clark")
    difference = results.values("clark", "set 0", "algorithm 0") - results.values("clark", "set 0", "Mean")
    t = difference.mean() / np.sqrt((1 / 10 + 1 / 9) * difference.var(ddof=1))
    assert tests.p_values["set 0", "algorithm 0", "Mean"] == pytest.approx(2 * stats.t.sf(abs(t), 9))
    assert tests.mark("set 0", "algorithm 0", "Mean") == "win"
    assert tests.mark("set 0", "Mean", "algorithm 0") == "loss"
    assert tests.mark("set 0", "algorithm 1", "Mean") == "tie"
    assert tests.mark("set 0", "Mean", "Mean") == ""
    assert tests.count("algorithm 0", "Mean") == (1, 0, 1)
    assert pair_tests(results, "cosine").mark("set 0", "algorithm 0", "Mean") == "win"


def test_corrected_resampled_t_without_variance(fake):
    results = fake(np.array([[0.2, 0.3, 0.3]]), folds=4)
    tests = pair_tests(results, "clark")
    assert tests.mark("set 0", "algorithm 0", "Mean") == "win"
    assert tests.mark("set 0", "algorithm 1", "Mean") == "tie"


def test_one_test_set_has_no_t_test(fake):
    tests = pair_tests(fake(LOSSES), "clark")
    assert tests.p_values == {}
    assert "at least two folds" in tests.reasons["set 0"]
    assert "set 0: no test" in statistics_text(fake(LOSSES))


def test_repeats_count_in_the_correction(problem, candidates):
    results = run_study(Study([problem("d")], [candidates["tree"]], folds=3, repeats=2, measures=["clark"]))
    difference = results.values("clark", "d", "Tree") - results.values("clark", "d", "Mean")
    assert len(difference) == 6
    t = difference.mean() / np.sqrt((1 / 6 + 1 / 2) * difference.var(ddof=1))
    assert pair_tests(results, "clark").p_values["d", "Tree", "Mean"] == pytest.approx(2 * stats.t.sf(abs(t), 5))


def test_datasets_that_share_features_are_announced_and_tested_once(fake):
    results = fake(LOSSES, families="aaaabcdef")
    assert results.families == [[f"set {i}" for i in range(4)], *([f"set {i}"] for i in range(4, 9))]
    text = statistics_text(results)
    assert "**Not independent:** set 0, set 1" in text
    assert "### All datasets (9)" in text
    assert "### Every family counted once (6)" in text
    assert "Every family counted once" not in statistics_text(fake(LOSSES))
    relative = LOSSES / LOSSES[:, -1:]
    table = np.vstack([relative[:4].mean(axis=0), relative[4:]])
    tests = compare(results, "clark", by_family=True)
    assert tests.datasets == ["set", *(f"set {i}" for i in range(4, 9))]
    assert tests.friedman["chi2"] == pytest.approx(stats.friedmanchisquare(*table.T)[0])
    rivals = ["algorithm 0", "algorithm 1", "algorithm 2"]
    few = compare(results, "clark", candidates=rivals, by_family=True)
    assert few.friedman["chi2"] == pytest.approx(stats.friedmanchisquare(*table[:, :3].T)[0])
    assert f"Without Mean: Friedman: χ² = {few.friedman['chi2']:.3f}" in text


def test_tests_without_the_baseline_name_the_pairs(fake):
    losses = np.tile([0.1, 0.2, 0.3, 0.4], (12, 1)) * np.arange(1, 13)[:, None]
    text = statistics_text(fake(losses))
    assert text.count("Without Mean: ") == 2
    pairs = "algorithm 0 ≻ algorithm 1, algorithm 0 ≻ algorithm 2, "
    assert f"Pairs whose average ranks differ by more than that: {pairs}" in text
    assert "Without Mean" not in statistics_text(fake(losses[:, 1:]))  # two others: nothing to rank


def test_the_text_names_pairs_that_differ(fake):
    text = statistics_text(fake(np.tile([0.1, 0.2, 0.3], (12, 1)) * np.arange(1, 13)[:, None], folds=5, noise=1e-4))
    assert "algorithm 0 ≻ Mean" in text
    assert "| win/tie/loss | 12/0/0 | 12/0/0 |" in text
    assert "p < 0.0001" in text


def test_the_text_on_the_mean_alone(problem):
    results = run_study(Study([problem("d")], [Candidate("Mean", "skldl:MeanDistribution")], folds=3))
    assert "No test: 1 dataset" in statistics_text(results)


@pytest.mark.parametrize("seed", range(4))
def test_the_bayesian_test_is_that_of_baycomp(seed):
    import baycomp

    rng = np.random.default_rng(seed)
    one, control = rng.normal(size=(2, 12)) * 0.02
    control[:3] = one[:3] + np.array([0.0, 0.01, -0.01])  # no difference, and differences of exactly the rope
    expected = baycomp.SignedRankTest(one, control, 0.01, nsamples=statistics.POSTERIOR_DRAWS, random_state=seed)
    worse, equal, better = expected.probs()
    found = statistics._bayes(one, control, 0.01, seed)
    np.testing.assert_allclose(found, (better, equal, worse), atol=1.5 / statistics.POSTERIOR_DRAWS)
    assert sum(found) == pytest.approx(1)


def test_the_control_is_found_in_any_spelling(small_study):
    one, other = (
        statistics_text(run_study(small_study(control=word, datasets=small_study().datasets[:1])))
        for word in ("kNN", "k-nn")
    )
    assert one == other
    assert "The control is kNN." in one
    assert "| one | " in one.partition("corrected resampled t-test against kNN")[2]

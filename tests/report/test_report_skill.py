"""Intervals of the skill over folds, and the figure and table that show them."""

import numpy as np
import pytest
from baycomp.single import CorrelatedTTest
from scipy import stats

from skldl.experiments import StudyResults
from skldl.metrics import Skill
from skldl.report._figures import best_candidates  # needs results of many candidates, which no test can run
from skldl.report._page import (  # the page shows rounded numbers, and draws them; here they have an oracle
    _against_the_mean,
    skill_figure,
    skill_interval,
    skill_summary_figure,
    skill_table_with_intervals,
    skills_with_intervals,
)


@pytest.mark.parametrize("runs", [1, 3])
def test_the_interval_is_that_of_the_corrected_t_test_on_the_linearised_ratio(runs):
    rng = np.random.default_rng(runs)
    folds = 5
    own, reference = rng.uniform(0.2, 0.4, runs * folds), rng.uniform(0.5, 0.9, runs * folds)
    scaled = own / own.mean(), reference / reference.mean()
    mean, variance, degrees = CorrelatedTTest.compute_statistics(*scaled, runs)
    assert mean == pytest.approx(0, abs=1e-12)
    reach = stats.t.ppf(0.975, degrees) * np.sqrt(variance)
    ratio = own.mean() / reference.mean()
    expected = 1 - ratio * np.exp(reach), 1 - ratio * np.exp(-reach)
    assert skill_interval(own, reference, folds) == pytest.approx(expected, rel=1e-9)


def test_the_interval_is_invariant_to_the_scale_and_closes_without_spread():
    own, reference = np.array([0.1, 0.2, 0.15]), np.array([0.3, 0.5, 0.2])
    assert skill_interval(1e3 * own, 1e3 * reference, 3) == pytest.approx(skill_interval(own, reference, 3))
    assert skill_interval(0.4 * reference, reference, 3) == pytest.approx((0.6, 0.6))


@pytest.mark.parametrize(
    ("own", "reference", "folds"), [([0.1], [0.2], 1), ([0.0, 0.0], [1.0, 1.0], 2), ([1.0, 1.0], [0.0, 0.0], 2)]
)
def test_there_is_no_interval_for_one_test_or_without_loss(own, reference, folds):
    assert np.isnan(skill_interval(np.array(own), np.array(reference), folds)).all()


def test_table_and_figure_show_the_intervals(healthy):
    results = StudyResults.load(healthy)
    skills = skills_with_intervals(results, "kullback_leibler")
    first = skills[0][0]
    assert isinstance(first, Skill)
    assert first.low < first < first.high
    assert skills[0][results.candidates.index("Mean")] == 0
    table = skill_table_with_intervals(results, skills)
    assert table.rows[0][1][0].text == f"{first:.1%} [{first.low:.1%}, {first.high:.1%}]"
    assert table.rows[0][1][results.candidates.index("Mean")].text == "0.0%"
    (figure,) = skill_figure(results, skills)
    assert "95% confidence interval" in figure.caption


def test_a_dataset_with_one_test_set_has_marks_without_intervals(broken):
    results = StudyResults.load(broken)
    skills = dict(zip(results.datasets, skills_with_intervals(results, "kullback_leibler"), strict=True))
    assert not any(isinstance(value, Skill) for value in skills["square"])
    assert any(isinstance(value, Skill) for value in skills["many"])


def test_a_limited_number_of_candidates_is_the_best_and_the_baseline(healthy):
    results = StudyResults.load(healthy)
    assert best_candidates(results, 3) == results.candidates
    results.candidates = [*(f"c{i}" for i in range(9)), "Mean"]
    estimators = [*["skldl:AAKNN"] * 9, "skldl:MeanDistribution"]
    results.study["candidates"] = [
        {"name": name, "estimator": estimator} for name, estimator in zip(results.candidates, estimators, strict=True)
    ]
    results.means = lambda measure, datasets=None: np.tile(np.arange(10.0)[::-1], (3, 1))  # c8 is the best but one
    assert best_candidates(results, 4) == ["c6", "c7", "c8", "Mean"]


def test_many_datasets_are_summed_up_by_candidate(healthy):
    results = StudyResults.load(healthy)
    results.info["three"]["noise_ceiling"] = {"kullback_leibler": 0.001}
    skills = skills_with_intervals(results, "kullback_leibler")
    (figure,) = skill_summary_figure(results, skills)
    assert "median noise ceiling of the datasets made of votes (1)" in figure.caption
    assert "Skill by Kullback-Leibler over 3 datasets" in figure.title
    assert figure.svg.count(">AA-kNN<") == 1
    assert ">Mean<" not in figure.svg
    assert list(skill_summary_figure(results, [[np.nan] * 3] * 3)) == []


def test_a_skill_of_minus_infinity_is_known(healthy):
    """Datasets on which the mean has no loss were left out, which flattered who has one."""
    results = StudyResults.load(healthy)
    n_datasets = len(results.datasets)
    skills = [[0.0 if name == results.baseline else 0.2 for name in results.candidates] for _ in range(n_datasets)]
    column = next(j for j, name in enumerate(results.candidates) if name != results.baseline)
    for row in skills[: n_datasets // 2 + 1]:
        row[column] = -np.inf
    (figure,) = skill_summary_figure(results, skills)
    assert "An arrow head" in figure.caption
    skills = [[0.0 if name == results.baseline else -np.inf for name in results.candidates] for _ in range(n_datasets)]
    sentences = _against_the_mean(results, skills)
    assert f"on 0 of {n_datasets} dataset" in sentences[0]
    assert sentences[1].startswith("No candidate is better than the mean on ")
    (figure,) = skill_figure(results, skills)
    assert "An arrow head" in figure.caption

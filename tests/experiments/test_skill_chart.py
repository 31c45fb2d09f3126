"""The chart of the skill in a terminal."""

import math

import pytest

from skldl.cli._study_output import MAX_CHARTS, bar, show_results, skill_chart
from skldl.data import Dataset
from skldl.experiments import Candidate, Study, run_study
from skldl.testing import make_distributions


@pytest.fixture(scope="module")
def results():
    datasets = [Dataset(f"d{seed}", *make_distributions(30, random_state=seed)) for seed in range(MAX_CHARTS + 1)]
    candidates = [
        Candidate("AA-kNN", "skldl:AAKNN", params={"n_neighbors": 3}),
        Candidate("Mean", "skldl:MeanDistribution"),
    ]
    return run_study(Study(datasets, candidates, folds=2, measures=["kullback_leibler", "clark"]))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99, 1.0])
def test_a_bar_is_as_long_as_its_share(share):
    text = bar(share, width=80)
    eighths = sum(" ▏▎▍▌▋▊▉█".index(sign) for sign in text)
    assert eighths == pytest.approx(share * 640, abs=0.5)


def test_the_ceiling_has_its_place_and_the_bar_its_limits():
    assert bar(0.1, 1.0, width=10) == "█        │"
    assert bar(0.9, 0.5, width=10) == "█████│███"
    assert bar(-math.inf, width=10) == ""
    assert bar(3.0, width=4) == "████"


def test_many_datasets_are_one_median(results):
    lines = skill_chart(results)
    column = sorted(results.skills("kullback_leibler")[:, 0])
    assert lines[1:2] == [f"  Median over {MAX_CHARTS + 1} datasets"]
    assert f" {column[len(column) // 2]:.1%} " in lines[2]
    assert len(lines) == 3


def test_the_output_of_a_study_ends_with_the_chart_and_the_report(results, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("skldl.cli._study_output._report_line", lambda results, folder: "Report: here")
    assert show_results(results, tmp_path, "skldl bench --resume") == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index(skill_chart(results)[0])
    assert lines[start : start + 3] == skill_chart(results)
    assert lines[start + 4].startswith("Records, tables and statistics: ")
    assert lines[-1] == "Report: here"
    assert len(lines) - start == 6


def test_few_datasets_have_a_part_each_with_their_noise_ceiling(results):
    results.datasets = results.datasets[:2]
    results.info["d0"]["noise_ceiling"] = {"kullback_leibler": 1e-9}
    lines = skill_chart(results)
    assert lines[0].startswith("Skill by Kullback-Leibler: ")
    assert lines[1] == "  d0 (│ noise ceiling 100.0%)"
    assert "│" in lines[2]
    assert lines[3] == "  d1"
    results.measures = ["clark"]
    assert skill_chart(results) == []

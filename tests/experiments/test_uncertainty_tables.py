"""Noise floor, coverage and width in the tables of a study, its files and its report."""

import re

import numpy as np
import pytest
from scipy.special import softmax

from skldl.data import Dataset
from skldl.experiments import Candidate, Study, StudyResults, run_study
from skldl.experiments.outputs import output_texts, write_outputs
from skldl.experiments.tables import interval_table, measure_table, noise_ceilings, predictions_with_folds, skill_table
from skldl.report import render_report
from skldl.uncertainty import noise_floor


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 3))
    counts = rng.multinomial(15, softmax(X @ rng.normal(size=(3, 3)), axis=1))
    return Dataset("votes", X, counts / 15, counts=counts)


def figures_of(page):
    """The figures of a report: from the name of each to its HTML."""
    return dict(re.findall(r'<figure id="figure-([^"]*)"(.*?)</figure>', page, flags=re.DOTALL))


def study(datasets, keep="all"):
    candidates = [
        Candidate("linear", "skldl:SABFGS", {"alpha": 1e-4, "fit_intercept": True}),
        Candidate("sharp", "skldl:AAKNN", {"n_neighbors": 2}),
        Candidate("Mean", "skldl:MeanDistribution"),
    ]
    plan = Study(datasets, candidates, measures=["kullback_leibler", "intersection"], folds=4)
    return run_study(plan, keep_predictions=keep)


@pytest.fixture(scope="module")
def results(data):
    plain = Dataset("plain", data.X[:60], data.D[:60])
    return study([data, plain])


def test_tables_show_the_floor_and_what_is_explained(results, data):
    for measure, best in (("kullback_leibler", 0.0), ("intersection", 1.0)):
        table = measure_table(results, measure)
        assert table.head[-2:] == ["Noise floor", "Explained"]
        floor = noise_floor(data.counts, [measure])[measure]
        line = table.values["votes"]
        assert line["noise floor"] == pytest.approx(floor.value, rel=0.02)
        assert (line["noise floor smoothed"] - line["noise floor"]) * (0.5 - best) >= 0  # the worse end
        model, mean = (abs(best - line[f"{name} mean"]) for name in ("linear", "Mean"))
        assert line["explained by the best"] == pytest.approx((mean - model) / (mean - abs(best - line["noise floor"])))
        assert line["explained by the best"] > 0.9
        assert [cell.text for cell in table.rows[1][1][-2:]] == ["–", "–"]  # no votes are known there
        assert len(table.foot[0][1]) == len(table.head) - 1
        assert any("Noise floor" in note for note in table.notes)


def test_a_study_without_votes_has_no_such_columns(results, data):
    plain = study([Dataset("plain", data.X, data.D)], keep="none")
    assert measure_table(plain, "kullback_leibler").head[-1] == "Skill"
    assert interval_table(plain) is None
    assert "noise floor" not in render_report(plain)


def test_the_table_of_skill_has_the_ceiling_of_the_votes(results):
    for measure, best in (("kullback_leibler", 0.0), ("intersection", 1.0)):
        table = skill_table(results, measure)
        floor, line = (results.info["votes"]["noise_ceiling"][measure], measure_table(results, measure).values["votes"])
        assert table.head[-1] == "Noise ceiling"
        ceiling = table.values["votes"]["noise ceiling"]
        assert ceiling == pytest.approx(1 - abs(best - floor) / abs(best - line["Mean mean"]))
        assert table.values["votes"]["linear"] < ceiling + 0.02
        assert not table.rows[0][1][-1].best
        assert table.rows[1][1][-1].text == "–"  # no votes are known there


def test_the_ceiling_of_a_baseline_without_loss_follows_the_definition_of_skill():
    counts = np.tile([[2, 8]], (60, 1))
    X = np.random.default_rng(0).normal(size=(60, 3))
    results = study([Dataset("same", X, counts / 10, counts=counts)])
    assert results.info["same"]["noise_ceiling"]["kullback_leibler"] > 0.01
    for measure in ("kullback_leibler", "intersection"):
        assert noise_ceilings(results, measure) == {"same": -np.inf}
        lines = skill_table(results, measure).rows[0][1]
        assert [cell.text for cell in lines] == ["0.0%", "0.0%", "0.0%", "−∞"]
    assert "<svg" in figures_of(render_report(results))["skill"]
    widths = [row[1][1].text for row in interval_table(results).rows]
    assert widths == ["0.000"] * 3


def test_the_report_says_if_nothing_can_be_explained():
    counts = np.random.default_rng(3).multinomial(4, [0.2, 0.3, 0.5], size=60)
    results = study([Dataset("same", np.zeros((60, 1)), counts / 4, counts=counts)], keep="none")
    results.info["same"]["noise_ceiling"]["kullback_leibler"] = 10.0
    assert re.search(r" to [^<]*of the loss above it, there is none", render_report(results))


def test_coverage_and_width_are_columns(results):
    table = interval_table(results)
    assert table.head == ["Candidate", "Coverage", "Width", "Rows"]
    line = table.values["votes: linear"]
    assert 0.84 <= line["coverage"] <= 0.96
    assert 0 < line["width"] < table.values["votes: Mean"]["width"]
    assert line["rows"] == 240
    assert any("the shares of as many votes" in note for note in table.notes)
    found, folds = predictions_with_folds(results, "votes")
    assert sorted(set(folds)) == [0, 1, 2, 3]
    np.testing.assert_allclose(found["predicted"]["linear"].sum(axis=1), 1.0, atol=1e-12)


def coverage_and_width(D, P, folds, level, groups):
    """Coverage and width from the definition; without groups, each row is a group of its own.

    Each of G groups of the other folds has the mass 1 / (G + 1), divided among its rows; the quantile is the smallest
    score below which the mass is ``level``. On its own fold every group counts the same.
    """
    inside, width = np.zeros(len(D)), np.zeros(len(D))
    for fold in set(folds):
        own, others = folds == fold, folds != fold
        scale = D[others].std(axis=0)
        scores = (np.abs(D - P) / scale).max(axis=1)
        sizes = {group: np.sum(groups[others] == group) for group in set(groups[others])}
        reached, quantile = 0.0, np.inf
        for row in sorted(np.flatnonzero(others), key=scores.__getitem__):
            reached += 1 / (len(sizes) + 1) / sizes[groups[row]]
            if reached >= level - 1e-12:
                quantile = scores[row]
                break
        inside[own] = scores[own] <= quantile + 1e-9
        lower, upper = (np.clip(P[own] + sign * quantile * scale, 0, 1) for sign in (-1, 1))
        width[own] = (upper - lower).mean(axis=1)
    mass = np.array([1 / np.sum(groups == group) for group in groups]) / len(set(groups))
    return mass @ inside, mass @ width


def test_intervals_of_rows_in_groups_are_for_a_new_group(tmp_path):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), rng.integers(2, 12, 40))
    logits = rng.normal(size=(40, 3))[groups]  # persons differ, and the features do not distinguish them
    D = softmax(logits + 0.1 * rng.normal(size=(len(groups), 3)), axis=1)
    names = np.array([f"person {number}" for number in groups])
    outcomes = {}
    for given in (None, names):
        data = Dataset("d", rng.normal(size=(len(groups), 2)), D, groups=given)
        plan = Study([data], [Candidate("Mean", "skldl:MeanDistribution")], measures=["kullback_leibler"], folds=4)
        run_study(plan, out=tmp_path / str(given is None), keep_predictions="all")
        outcomes[given is None] = StudyResults.load(tmp_path / str(given is None))
    found, folds = predictions_with_folds(outcomes[False], "d")
    assert len(np.unique(found["groups"])) == 40
    assert all(len(set(groups[found["groups"] == code])) == 1 for code in range(40))
    assert "person 1" not in (tmp_path / "False" / "records.jsonl").read_text()
    table = interval_table(outcomes[False])
    line = table.values["Mean"]
    expected = coverage_and_width(found["truth"], found["predicted"]["Mean"], folds, 0.9, names)
    assert (line["coverage"], line["width"]) == pytest.approx(expected, rel=1e-12)
    found, folds = predictions_with_folds(outcomes[True], "d")
    line = interval_table(outcomes[True]).values["Mean"]
    expected = coverage_and_width(found["truth"], found["predicted"]["Mean"], folds, 0.9, np.arange(len(D)))
    assert (line["coverage"], line["width"]) == pytest.approx(expected, rel=1e-12)
    assert any("new group" in note for note in table.notes)
    assert not any("made of votes" in note or "width of 1" in note for note in table.notes)
    assert any("A width of 1" in note for note in interval_table(outcomes[False], 0.99).notes)  # of 30 groups
    assert not any("new group" in note for note in interval_table(outcomes[True]).notes)
    assert found["groups"] is None


def test_a_fixed_test_set_is_dealt_out(data):
    fixed = Dataset("fixed", data.X[:100], data.D[:100], X_test=data.X[100:], D_test=data.D[100:])
    outcome = study([fixed])
    _, folds = predictions_with_folds(outcome, "fixed")
    assert sorted(set(folds)) == [0, 1, 2, 3, 4]
    assert list(interval_table(outcome).values) == ["linear", "sharp", "Mean"]


def test_files_and_page_hold_them(results, tmp_path):
    write_outputs(results, tmp_path)
    assert "coverage" in (tmp_path / "tables" / "intervals.csv").read_text()
    assert "`tables/intervals.*`" in (tmp_path / "README.md").read_text()
    plain = study([Dataset("plain", np.zeros((20, 1)), np.full((20, 2), 0.5))], "none")
    assert "intervals" not in output_texts(plain)["README.md"]


def test_the_chosen_model_is_shown_before_and_after_calibration(results, monkeypatch):
    page = render_report(results)
    figures = figures_of(page)
    assert "noise ceiling" in figures["skill"]
    assert [name for name in figures if "correction" in name] == ["correction-0"]  # the second dataset has few rows
    assert "linear before and after calibration" in page
    assert "none lowers the divergence" in page  # the model is the true one: there is one curve only
    assert all(">after" not in figure and ">before" not in figure for figure in figures.values())
    assert ">unchanged (error" in figures["spread-0"]
    assert "Intervals of level 90%" in page
    assert re.search(r"noise floor of Kullback-Leibler is 0\.0\d+ to 0\.0\d+; of .* explains 9\d\.\d%", page)
    monkeypatch.setattr(StudyResults, "losses", lambda *_: np.array([[2.0, 1, 3], [2, 1, 3]]))
    page = render_report(results)
    for name in ("correction-0", "spread-0"):
        figure = figures_of(page)[name]
        assert figure.count(">before") == figure.count(">after") == 2  # for wide and narrow screens
    assert "sharp before and after calibration" in page
    assert "takes the Kullback-Leibler divergence from" in page  # two neighbours are too sharp


@pytest.mark.parametrize(("floor", "explained"), [(0.3, ">100%"), (0.1, "75.0%"), (0.5, "–")])
def test_a_fraction_above_one_is_not_printed_as_an_achievement(fake, floor, explained):
    results = fake(np.array([[0.2, 0.5]]))
    results.info["set 0"] |= {"noise_ceiling": {"clark": floor}, "noise_ceiling_smoothed": {"clark": 0.6}}
    cells = measure_table(results, "clark").rows[0][1]
    assert [cell.text for cell in cells[-2:]] == [f"{floor} to 0.6", explained]

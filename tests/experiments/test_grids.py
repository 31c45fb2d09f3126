"""Grids of single datasets, ends of grids and natural limits."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from skldl.data import Dataset
from skldl.exceptions import StudyError, UnknownNameError
from skldl.experiments import Candidate, Study, run_study
from skldl.experiments.grids import grid_end_notes, natural_limit_notes
from skldl.experiments.study_file import dump_study, parse_study
from skldl.experiments.tables import settings_table
from skldl.plots import SensitivityDisplay
from skldl.report import render_report

FILE = """
datasets = ["Artificial", "Lexicon"]
folds = 3
[[candidates]]
name = "AA-kNN"
estimator = "skldl:AAKNN"
grid = {{ n_neighbors = [1, 2] }}
grids = {{ {grids} }}
"""


@pytest.fixture(scope="module")
def study():
    """Two datasets, the second with larger values in its grid."""
    rng = np.random.default_rng(0)
    data = [Dataset(name, rng.normal(size=(40, 3)), rng.dirichlet(np.ones(3), 40)) for name in ("small", "Big_one")]
    grids = {"big one": {"n_neighbors": (3, 8, 20)}}
    candidate = Candidate("kNN", "skldl:AAKNN", grid={"n_neighbors": (1, 2)}, path="n_neighbors", grids=grids)
    return Study(data, [candidate], protocol="geng2016", folds=4)


@pytest.fixture(scope="module")
def limited(study):
    """The same with a largest value that is a natural limit."""
    return study.with_options(candidates=[replace(study.candidates[0], natural={"n_neighbors": (20,)})])


def test_each_dataset_is_searched_over_its_own_values(study):
    assert study.n_fits == 4 * (1 + 2) + 4 * (1 + 3) + 2 * 4  # and the mean
    results = run_study(study)
    lengths = {record["dataset"]: len(record["values"]) for record in results.selections}
    assert lengths == {"small": 2, "Big_one": 3}
    assert {setting["n_neighbors"] for setting in results.chosen("small", "kNN")} <= {1, 2}
    assert {setting["n_neighbors"] for setting in results.chosen("Big_one", "kNN")} <= {3, 8, 20}


def test_the_end_of_a_grid_is_that_of_the_dataset(study):
    results = run_study(study)
    chosen = next(iter(results.chosen("Big_one", "kNN")))["n_neighbors"]
    assert chosen == 20  # noise: the most neighbours are best
    assert any("n_neighbors = 20 is the largest value tried on Big_one" in note for note in grid_end_notes(results))


def test_a_natural_limit_is_shown_with_the_change_of_the_loss_before_it(limited):
    results = run_study(limited)
    assert not grid_end_notes(results)
    values = np.array([r["values"] for r in results.selections if r["dataset"] == "Big_one"])
    changes = (values[:, 2] - values[:, 1]) / values[:, 1].mean()
    (note,) = natural_limit_notes(results)
    assert note == (
        "kNN: n_neighbors = 20, the largest value tried, was chosen; the study takes it for a limit, beyond which "
        f"nothing changes. From 8 to it the loss on validation rows changes by {changes.mean():+.2%} ± "
        f"{stats.sem(changes):.2%} on Big_one (mean ± standard error over selections); a fall of up to 1% is taken for "
        "no change."
    )
    assert note in settings_table(results).notes
    assert not grid_end_notes(with_losses(results, [[0.5, 0.4, 0.397]] * 4))  # within 1 %
    by_chance = [[0.5, 0.4, 0.5], [0.5, 0.4, 0.2], [0.5, 0.4, 0.4], [0.5, 0.4, 0.4]]
    assert not grid_end_notes(with_losses(results, by_chance))
    fallen = with_losses(results, [[0.5, 0.4, 0.39]] * 4)
    (note,) = grid_end_notes(fallen)
    assert "n_neighbors = 20 is the largest value tried on Big_one" in note
    assert not natural_limit_notes(fallen)  # then it is none


def with_losses(results, values):
    """The results if the selections on Big_one had found other losses."""
    selections = iter(values)
    records = [record | {"values": next(selections)} for record in results.selections if record["dataset"] == "Big_one"]
    other = copy(results)
    other.selections = records
    return other


@pytest.mark.parametrize(
    "values", [[[0.4, 0.0, 0.1]] * 4, [[0.4, None, 0.1]] * 4, [[0.4, 0.3, None], *[[0.4, 0.3, 0.1]] * 3]]
)
def test_a_step_that_is_not_known_is_reported(limited, values):
    """No loss at the value before it, or a setting that failed."""
    results = with_losses(run_study(limited), values)
    assert not grid_end_notes(results)
    assert "changes by an unknown fraction on Big_one" in natural_limit_notes(results)[0]


def test_a_criterion_without_a_smallest_loss_has_no_relative_changes(limited):
    results = run_study(limited.with_options(criterion="kulczynski_s"))
    assert all("changes by an unknown fraction" in note for note in natural_limit_notes(results))


def test_without_a_natural_limit_there_is_no_note(study):
    assert not natural_limit_notes(run_study(study))


@pytest.mark.parametrize(("chosen", "said"), [([8], "hidden_layer_sizes = 8 is the largest"), ([4], ""), ([1], "")])
def test_a_list_of_one_number_can_be_the_end_of_a_grid(study, monkeypatch, chosen, said):
    grid = {"hidden_layer_sizes": ([1], [4], [8])}
    candidate = Candidate("BP", "skldl:AABP", params={"max_iter": 1}, grid=grid)
    results = run_study(study.with_options(candidates=[candidate]))
    monkeypatch.setattr(results, "chosen", lambda dataset, name: [{"hidden_layer_sizes": chosen}] * (name == "BP"))
    notes = grid_end_notes(results)
    assert len(notes) == bool(said)
    assert all(said in note for note in notes)


def test_the_figure_of_sensitivity_shows_all_values(study, monkeypatch):
    drawn, plot = [], SensitivityDisplay.plot
    monkeypatch.setattr(
        SensitivityDisplay, "plot", lambda display, *axes: drawn.append(display) or plot(display, *axes)
    )
    assert "figure-sensitivity" in render_report(run_study(study, keep_predictions="none"))
    assert drawn[0].values == [1, 2, 3, 8, 20]
    assert np.isnan(drawn[0].curves["small"][2:]).all()
    assert np.isnan(drawn[0].curves["Big_one"][:2]).all()


def test_grids_of_datasets_in_a_study_file():
    read = parse_study(FILE.format(grids="lexicon = { n_neighbors = [4, 5, 6] }"))
    assert read.candidates[0].on("Lexicon").n_settings == 3
    assert parse_study(dump_study(read)) == read
    assert parse_study(FILE.format(grids="")).fingerprint() != read.fingerprint()


@pytest.mark.parametrize(
    ("grids", "message"),
    [
        ("Lexicon = [1]", "the grid for Lexicon must be a table"),
        ("Lexicon = { n_neighbors = 1 }", "the grid for Lexicon of n_neighbors must be a list"),
        ("Lexicon = { n_neighbors = [] }", "has no value to try"),
        ("Lexicon = { k = [1] }", "'k' of the grid for Lexicon is not a hyper-parameter"),
    ],
)
def test_bad_grids_are_rejected(grids, message):
    with pytest.raises(StudyError, match=message):
        parse_study(FILE.format(grids=grids))


def test_a_misspelt_dataset_is_reported():
    with pytest.raises(UnknownNameError, match="Lexikon"):
        parse_study(FILE.format(grids="Lexikon = { n_neighbors = [1] }"))

"""Raters in the record of a dataset: who is there, under which name, and what the report draws of them."""

from dataclasses import replace

import numpy as np
import pytest

from skldl.cli._app import run
from skldl.data import Dataset, from_table, load_dataset
from skldl.exceptions import LengthMismatchError
from skldl.experiments import Candidate, DatasetSpec, Study, StudyResults, load_study, run_study
from skldl.experiments.output.tables import measure_table
from skldl.experiments.raters import raters_of
from skldl.report import render_report

pd = pytest.importorskip("pandas")
MEAN = Candidate("Mean", "skldl:MeanDistribution")


def votes_table(n_items=80):
    generator = np.random.default_rng(0)
    truth = generator.integers(1, 6, n_items)
    table = {"x": generator.normal(size=n_items) + truth}
    for name in ("ann", "bob", "cid"):
        table[f"r_{name}"] = np.clip(truth + generator.integers(-1, 2, n_items), 1, 5).astype(float)
    table["r_<i>dan"] = generator.integers(1, 6, n_items).astype(float)
    table["r_ann"][:5] = np.nan
    return pd.DataFrame(table)


@pytest.fixture(scope="module")
def dataset():
    return from_table(votes_table(), "r_*", kind="votes", name="stars")


def test_a_table_of_votes_names_its_raters(dataset):
    assert dataset.raters.tolist() == ["r_ann", "r_bob", "r_cid", "r_<i>dan"]
    assert dataset.take(np.arange(3)).raters.shape == (4,)
    assert from_table(votes_table().assign(y_a=1, y_b=2), "y_*", kind="counts").raters is None


@pytest.mark.parametrize("shape", [(3,), (80, 3), (5,)])
def test_raters_must_fit_the_votes(shape, dataset):
    with pytest.raises(LengthMismatchError, match="one name for each column of votes"):
        Dataset("d", dataset.X, dataset.D, votes=dataset.votes, raters=np.zeros(shape))
    with pytest.raises(LengthMismatchError, match="one name"):
        Dataset("d", dataset.X, dataset.D, raters=np.zeros(shape))


def test_one_name_for_each_cell_gives_the_same_summary(dataset):
    names = np.tile(dataset.raters, (dataset.n_samples, 1))
    each = Dataset("d", dataset.X, dataset.D, dataset.label_names, votes=dataset.votes, raters=names)
    assert raters_of(each) == raters_of(dataset)
    numbers = np.array([[np.nan if vote is None else float(vote) for vote in row] for row in dataset.votes])
    assert raters_of(each.changed(votes=numbers)) == raters_of(dataset)
    half = each.take(np.arange(0, 80, 2))
    assert raters_of(half)["raters"]["n_votes"] == sum(vote is not None for vote in dataset.votes[::2].ravel())


def test_no_raters_no_summary(dataset):
    assert raters_of(dataset.changed(raters=None)) == {}
    assert raters_of(dataset.changed(votes=None)) == {}
    assert raters_of(dataset.changed(votes=dataset.votes[:, :1], raters=["r_ann"])) == {}


def test_records_keep_raters_and_the_report_draws_them_once(dataset, tmp_path):
    specs = [DatasetSpec(f"stars {share}", data=dataset, hide=share) for share in (0.0, 0.25)]
    run_study(Study(specs, [MEAN], folds=2, measures=["clark"], criterion="clark"), out=tmp_path)
    results = StudyResults.load(tmp_path)
    told = results.info["stars 0.0"]["raters"]
    assert told["raters"]["rater"][told["raters"]["flags"].index("spammer")] == "r_<i>dan"
    assert told["n_votes"] == 4 * 80 - 5
    page = render_report(results)
    assert page.count('<figure id="figure-raters-') == 1
    assert "r_&lt;i&gt;dan (spammer)" in page
    assert "4 raters gave 315 votes" in page
    assert "<i>dan" not in page


def test_data_that_may_not_be_passed_on_have_no_names(dataset):
    results = run_study(Study([dataset], [MEAN], folds=2), keep_predictions="predictions")
    assert results.info["stars"]["raters"]["raters"]["rater"] == ["1", "2", "3", "4"]
    assert "r_bob" not in render_report(results)


def test_raters_nobody_can_be_compared_with_are_not_drawn(dataset):
    """No row has two different truths: informedness is not defined, and there is nothing to draw."""
    same = np.full((20, 2), "1", dtype=object)
    flat = Dataset("flat", np.eye(20), np.tile([1.0, 0.0], (20, 1)), ("1", "2"), votes=same, raters=["a", "b"])
    results = run_study(Study([flat], [MEAN], folds=2, measures=["clark"]))
    assert "raters" in results.info["flat"]
    assert "figure-raters" not in render_report(results)


def test_evaluate_shows_the_raters_of_a_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    votes_table().to_csv("stars.csv", index=False)
    line = "evaluate stars.csv --labels r_* --kind votes --models mean --folds 2 --inner-folds 2 --jobs 1 --out o"
    assert run(line.split()) == 0
    page = (tmp_path / "o" / "report.html").read_text(encoding="utf-8")
    assert "stars: the raters" in page
    assert "4 raters gave 315 votes" in page


def test_the_built_in_study_of_votes():
    """The bundled sets and the fetched ones by name; the tables tell noise floor and explained share."""
    study = load_study("votes")
    assert [spec.name for spec in study.datasets] == [
        "Tweets",
        "Lexicon",
        "VADER products",
        "VADER films",
        "VADER news",
    ]
    rows = np.arange(0, 4200, 21)
    some = [DatasetSpec(name, data=load_dataset(name).take(rows)) for name in ("Tweets", "Lexicon")]
    results = run_study(replace(study, datasets=some, folds=2, inner_folds=2), n_jobs=1)
    assert not results.failures
    assert results.means("kullback_leibler").shape == (2, 4)
    table = str(measure_table(results, "kullback_leibler"))
    assert "Noise floor" in table
    assert "Explained" in table
    for name in ("Tweets", "Lexicon"):
        floor = results.info[name]["noise_ceiling"]["kullback_leibler"]
        assert 0 < floor < results.means("kullback_leibler").min()
        assert "raters" not in results.info[name]  # who gave a vote is not known


@pytest.mark.usefixtures("no_archive")
def test_the_study_of_votes_runs_without_the_archive(capsys):
    line = "bench votes --datasets lexicon,vader-films --dry-run"
    assert run(line.split()) == 0
    assert "VADER films" in "".join(capsys.readouterr())


@pytest.fixture
def no_archive(tmp_path, monkeypatch):
    monkeypatch.delenv("SKLDL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

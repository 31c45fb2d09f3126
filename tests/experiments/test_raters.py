"""Raters in the record of a dataset: who is there, under which name, and what the report draws of them."""

import re
from dataclasses import replace

import numpy as np
import pytest

from skldl.annotators import RaterSummary
from skldl.cli import main
from skldl.data import Columns, Dataset, from_table, load_dataset
from skldl.exceptions import DuplicateVoteError, LengthMismatchError, MissingLabelError, TableError
from skldl.experiments import Candidate, DatasetSpec, Study, StudyResults, dump_study, load_study, run_study
from skldl.experiments.header import raters_of
from skldl.experiments.study_file import parse_study
from skldl.experiments.tables import measure_table
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
    return from_table(votes_table(), Columns("r_*", kind="votes"), name="stars")


def test_a_table_of_votes_names_its_raters(dataset):
    assert dataset.raters.tolist() == ["r_ann", "r_bob", "r_cid", "r_<i>dan"]
    assert dataset.take(np.arange(3)).raters.shape == (4,)
    assert from_table(votes_table().assign(y_a=1, y_b=2), Columns("y_*", kind="counts")).raters is None


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
    reported = results.info["stars 0.0"]["raters"]
    assert reported["raters"]["rater"][reported["raters"]["flags"].index("spammer")] == "r_<i>dan"
    assert reported["n_votes"] == 4 * 80 - 5
    page = render_report(results)
    assert page.count('<figure id="figure-raters-') == 1
    assert "r_&lt;i&gt;dan (spammer)" in page
    assert "4 raters gave 315 votes" in page
    assert "<i>dan" not in page


def caption(summary):
    """The caption of the figure of the raters in the report of a study whose records have this summary."""
    data = Dataset("d", np.eye(4), [[0.5, 0.5], [0.2, 0.8]] * 2)
    results = run_study(Study([data], [MEAN], folds=2, measures=["clark"]), keep_predictions="none")
    results.info["d"]["raters"] = summary.to_dict()
    return re.search(r"raters-0.*?<figcaption>(.*?)</figcaption>", render_report(results), flags=re.DOTALL)[1]


@pytest.mark.parametrize(
    ("n_random", "reported"), [(0, "No rater is flagged."), (9, "8 (spammer) and 1 more. The flags")]
)
def test_captions_of_words_without_a_scale(n_random, reported):
    """No word on severity; the first flagged raters are named, the others counted."""
    generator = np.random.default_rng(0)
    truth = generator.integers(0, 3, 200)
    right = np.where(generator.random((200, 12)) < 0.9, truth[:, None], generator.integers(0, 3, (200, 12)))
    votes = np.array(["a", "b", "c"])[np.hstack([generator.integers(0, 3, (200, n_random)), right])]
    summary = RaterSummary.from_votes(votes, labels=["a", "b", "c"])
    text = caption(replace(summary, table=replace(summary.table, rater=list(range(1, n_random + 13)))))
    assert "Severity" not in text
    assert ". Lines are intervals" in text
    assert text.count("(spammer)") == min(n_random, 8)
    assert reported in text


def test_captions_of_many_raters_count_the_flags():
    votes = np.random.default_rng(0).integers(1, 6, (30, 1))
    crowd = np.hstack([np.repeat(votes, 210, axis=1), np.random.default_rng(1).integers(1, 6, (30, 30))])
    summary = RaterSummary.from_votes(crowd)
    assert summary.flagged["spammer"] > 15
    text = caption(summary)
    assert f"{summary.flagged['spammer']} as spammer" in text
    assert "(spammer)" not in text


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


@pytest.mark.parametrize("roles", ["--labels r_*", "--labels says --item id --annotator who"])
def test_evaluate_shows_the_raters_of_a_table(roles, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = long_table() if "--item" in roles else votes_table()
    table.to_csv("stars.csv", index=False)
    line = f"evaluate stars.csv {roles} --kind votes --models mean --folds 2 --inner-folds 2 --jobs 1 --out o"
    assert main(line.split()) == 0
    page = (tmp_path / "o" / "report.html").read_text(encoding="utf-8")
    assert "stars: the raters" in page
    assert "4 raters gave 315 votes" in page


def long_table():
    table = votes_table().reset_index(names="id")
    return table.melt(id_vars=["id", "x"], var_name="who", value_name="says")


def test_one_row_for_each_vote_is_the_same_data(dataset, tmp_path):
    """In Python, and in a study file; the order of the rows does not matter beyond that of the items."""
    long = from_table(long_table().dropna(), Columns("says", kind="votes", item="id", annotator="who"))
    order = np.argsort(long.X["x"].to_numpy())
    same = np.argsort(dataset.X["x"].to_numpy())
    np.testing.assert_array_equal(long.D[order], dataset.D[same])
    assert list(long.X) == ["x"]
    assert set(long.raters) == set(dataset.raters)
    long_table().to_csv(tmp_path / "v.csv", index=False)
    roles = {"labels": "says", "kind": "votes", "item": "id", "annotator": "who"}
    loaded = load_dataset(tmp_path / "v.csv", **roles)
    np.testing.assert_array_equal(loaded.D, dataset.D)  # rows without an answer keep their place
    assert raters_of(loaded)["raters"]["n_votes"] == raters_of(dataset)["raters"]["n_votes"] == 315
    text = dump_study(Study([DatasetSpec("v", source=str(tmp_path / "v.csv"), **roles)], [MEAN], folds=2))
    assert run_study(parse_study(text)).info["v"]["raters"]["n_raters"] == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"item": "id"}, "need three columns"),
        ({"annotator": "who"}, "need three columns"),
        ({"item": "id", "annotator": "who", "labels": ["says", "x"]}, "need three columns"),
        ({"item": "id", "annotator": "nobody"}, "annotator='nobody': the table has no such column"),
        ({"item": "id", "annotator": "id"}, "must be three columns"),
        ({"item": "id", "annotator": "who", "kind": "label"}, "belong to kind='votes'"),
    ],
)
def test_votes_in_rows_need_their_columns(options, message):
    with pytest.raises(TableError, match=message):
        from_table(long_table(), Columns(**({"labels": "says", "kind": "votes"} | options)))


def test_votes_in_rows_that_contradict_each_other(monkeypatch):
    roles = Columns("says", kind="votes", item="id", annotator="who")
    table = long_table().dropna()
    with pytest.raises(DuplicateVoteError, match=r"answered twice to item 7 \(1 such.* use skldl.data.convert_table"):
        from_table(pd.concat([table, table[(table["id"] == 7) & (table["who"] == "r_bob")]]), roles)
    with pytest.raises(MissingLabelError, match="Every row needs a value there"):
        from_table(table.assign(who=table["who"].where(table["id"] != 7)), roles)
    with pytest.raises(TableError, match="The rater 'x' has the name of a column"):
        from_table(table.assign(who="x"), roles)
    with pytest.raises(TableError, match="No row has a label"):
        from_table(table.assign(says=None), roles)
    monkeypatch.setattr("skldl.data._labels.MAX_CELLS", 100)  # private: else the table needs gigabytes
    with pytest.raises(TableError, match=r"80 items of 4 raters make too large a table.*skldl.data.convert_table"):
        from_table(table, roles)


def test_columns_that_differ_within_an_item_are_left_out_and_items_without_answers():
    table = long_table()
    table["second"] = np.arange(len(table))
    table.loc[table["id"] == 3, "says"] = np.nan
    dataset = from_table(table, Columns("says", kind="votes", item="id", annotator="who"))
    assert list(dataset.X) == ["x"]
    assert dataset.n_samples == 79
    assert any("Left out, since they differ" in note and "second" in note for note in dataset.notes)
    assert any("1 of 80 rows have no label" in note for note in dataset.notes)


def test_number_of_votes(dataset):
    assert dataset.n_votes.tolist() == [3] * 5 + [4] * 75
    assert load_dataset("Artificial").n_votes is None


def test_the_built_in_study_of_votes():
    """The bundled sets and the fetched ones by name; the tables show noise floor and explained fraction."""
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
    assert main(line.split()) == 0
    assert "VADER films" in "".join(capsys.readouterr())


@pytest.fixture
def no_archive(tmp_path, monkeypatch):
    monkeypatch.delenv("SKLDL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

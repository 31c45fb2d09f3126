"""``skldl bench`` on tables as they are: which column is what, text and categories, what ``skldl convert`` writes."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

from skldl.cli import main
from skldl.exceptions import StudyError
from skldl.experiments import Candidate, DatasetSpec, Study, StudyResults, load_study, plan_study, run_study
from skldl.experiments.outputs import failed_settings
from skldl.tabular import TableEncoder

MEAN = Candidate("Mean", "skldl:MeanDistribution")


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("skldl.report.write_report", lambda folder, results: "")
    rng = np.random.default_rng(0)
    n = 48
    x, town = rng.normal(size=n), rng.choice(["Ulm", "Bonn", "Kiel"], size=n)
    joy = rng.binomial(10, 1 / (1 + np.exp(-2 * x - (town == "Ulm"))))
    table = pd.DataFrame({"item": [f"i{i}" for i in range(n)], "person": np.arange(n) // 3, "x": x, "town": town})
    table = table.assign(emo_joy=joy, emo_fear=10 - joy)
    table.to_csv("data.csv", index=False)
    table.drop(columns="town").to_parquet("more.parquet")
    return tmp_path


OPTIONS = ["--labels", "emo_*", "--drop", "item", "--groups", "person", "--kind", "counts"]


def test_tables_as_they_are(workplace):
    command = [
        "bench",
        "--datasets",
        "data.csv,more.parquet",
        *OPTIONS,
        "--algorithms",
        "aa-knn,sa-bfgs",
        "--jobs",
        "1",
    ]
    assert main([*command, "--folds", "3", "--out", "run"]) == 0
    results = StudyResults.load("run")
    assert results.datasets == ["data", "more"]
    assert not results.failures
    assert [results.info[name]["n_groups"] for name in results.datasets] == [16, 16]
    assert [results.info[name]["n_features"] for name in results.datasets] == [2, 1]
    assert results.info["data"]["label_names"] == ["emo_joy", "emo_fear"]
    assert 0 < results.info["data"]["noise_ceiling"]["kullback_leibler"] < 0.2  # ten votes a row
    again = load_study("run/study.toml")
    assert again.datasets[0].columns == {"labels": ("emo_*",), "kind": "counts", "groups": "person", "drop": ("item",)}
    assert main(["bench", "run/study.toml", "--jobs", "1", "--out", "again"]) == 0
    for one, other in zip(results.evaluations, StudyResults.load("again").evaluations, strict=True):
        assert (one["measures"], one["params"]) == (other["measures"], other["params"])
    before = (workplace / "run" / "records.jsonl").read_bytes()
    assert main(["bench", "--resume", "--out", "run", "--jobs", "1"]) == 0
    assert main([*command, "--folds", "3", "--out", "run", "--resume"]) == 0  # the command of the first run
    assert (workplace / "run" / "records.jsonl").read_bytes() == before


def test_each_fold_learns_its_own_encoding():
    spec = DatasetSpec("faces", source="data.csv", labels="emo_*", kind="counts", drop="item", groups="person")
    study = Study([spec], [Candidate("k", "skldl:AAKNN", {"n_neighbors": 4}), MEAN], folds=3, measures=["clark"])
    plan = plan_study(study)
    assert isinstance(plan.encoders["faces"], TableEncoder)
    results = run_study(plan)
    from skldl import AAKNN
    from skldl.metrics import clark
    from skldl.selection import rounds_of

    data = plan.datasets["faces"]
    for round_, value in zip(rounds_of(data, study.layout), results.values("clark", "faces", "k"), strict=True):
        model = make_pipeline(TableEncoder(), AAKNN(4)).fit(data.X.iloc[round_.train], data.D[round_.train])
        assert value == clark(data.D[round_.test], model.predict(data.X.iloc[round_.test]))


def test_a_study_file_says_which_column_is_what(workplace):
    (workplace / "study.toml").write_text(
        """
        folds = 3
        measures = ["clark"]
        candidates = ["Mean"]
        [[datasets]]
        name = "faces"
        source = "data.csv"
        labels = ["emo_joy", "emo_fear"]
        kind = "counts"
        groups = "person"
        drop = ["item"]
        categories = ["town"]
        weight = "x2"
        """
    )
    table = pd.read_csv("data.csv").assign(x2=lambda t: t.x**2 + 1)
    table.to_csv("data.csv", index=False)
    plan = plan_study(load_study("study.toml"))
    data = plan.datasets["faces"]
    np.testing.assert_allclose(data.sample_weight, table.x2)
    assert list(data.X) == ["x", "town"]
    assert plan.encoders["faces"].categories == ("town",)
    assert not run_study(plan).failures


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("name = 'd', labels = ['a', 3]", "labels must be names in quotes, not 3"),
        ("name = 'd', drop = [true]", "drop must be names in quotes, not True"),
        ("name = 'd', kind = " + repr([1] * 2000), r"kind = \[1, 1, .{60,120}… must be text in quotes"),
        ("name = 'd', labels = 3", "labels = 3 must be text in quotes, or a list of such"),
        ("name = 'd', groups = ['a']", "groups = .* must be text in quotes"),
        ("name = 'd', encode = 'yes'", "encode = 'yes' must be true or false"),
        ("name = 'd', data = 'x'", "unknown key 'data'"),
    ],
)
def test_bad_columns_in_a_study_file(workplace, entry, message):
    (workplace / "bad.toml").write_text(f"datasets = [{{ {entry} }}]\ncandidates = ['Mean']")
    with pytest.raises(StudyError, match=message):
        load_study("bad.toml")


def test_what_convert_writes_runs_without_any_option(workplace, capsys):
    votes = pd.DataFrame({"text": [f"t{i}" for i in range(24)], "size": np.arange(24.0)})
    rng = np.random.default_rng(1)
    for rater in ("ann", "bob", "eve"):
        votes[rater] = rng.choice(["yes", "no"], size=24)
    votes.drop(columns="text").to_csv("votes.csv", index=False)
    assert main(["convert", "votes.csv", "--from", "votes", "--labels", "ann,bob,eve", "--out", "converted.csv"]) == 0
    capsys.readouterr()
    assert main(["bench", "--datasets", "converted.csv", "--algorithms", "aa-knn", "--jobs", "1", "--folds", "3"]) == 0
    assert "converted" in capsys.readouterr().out


def test_arrays_in_files_run_too(workplace):
    rng = np.random.default_rng(2)
    np.savez("arrays.npz", X=rng.normal(size=(30, 2)), D=rng.dirichlet([1, 1, 1], size=30))
    from scipy import io

    io.savemat("arrays2.mat", {"features": rng.normal(size=(30, 2)), "labels": rng.dirichlet([1, 1], size=30)})
    command = ["bench", "--datasets", "arrays.npz,arrays2.mat", "--algorithms", "aa-knn", "--folds", "3", "--jobs", "1"]
    assert main([*command, "--out", "run"]) == 0
    assert StudyResults.load("run").datasets == ["arrays", "arrays2"]


def test_columns_without_a_table(capsys):
    assert main(["bench", "--labels", "emo_*"]) == 2
    assert "Give the paths of the tables with --datasets" in capsys.readouterr().err


def test_what_evaluate_wrote_can_be_run_again(workplace):
    command = ["evaluate", "data.csv", *OPTIONS, "--models", "aa-knn,sa-bfgs", "--folds", "3", "--inner-folds", "2"]
    assert main([*command, "--jobs", "1", "--out", "first"]) == 0
    first = StudyResults.load("first")
    assert first.candidates == ["AA-kNN", "SA-BFGS", "Mean"]
    assert set(first.chosen("data", "SA-BFGS")[0]) == {"alpha"}  # no name of a step of the pipeline
    assert "refined" in next(r for r in first.evaluations if r["candidate"] == "SA-BFGS")["selection"]
    assert "`skldl bench study.toml` runs it again" in (workplace / "first" / "README.md").read_text()
    assert main(["bench", "first/study.toml", "--jobs", "1", "--out", "second"]) == 0
    second = StudyResults.load("second")
    for one, other in zip(first.evaluations, second.evaluations, strict=True):
        assert (one["measures"], one["params"]) == (other["measures"], other["params"])
    assert first.header["datasets"] == second.header["datasets"]


def test_failed_settings_and_ends_of_grids_are_shown(workplace, capsys):
    (workplace / "study.toml").write_text(
        """
        folds = 3
        measures = ["clark"]
        [[datasets]]
        name = "more.parquet"
        labels = "emo_*"
        kind = "counts"
        drop = "item"
        [[candidates]]
        name = "kNN"
        estimator = "skldl:AAKNN"
        grid = { n_neighbors = [1, 2, 3, -4] }
        [[candidates]]
        name = "natural"
        estimator = "skldl:AAKNN"
        grid = { n_neighbors = [1, 2, 3] }
        natural = { n_neighbors = [3] }
        """
    )
    assert main(["bench", "study.toml", "--jobs", "1", "--out", "run"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    readme = (workplace / "run" / "README.md").read_text()
    for text in (said, readme):
        assert "n_neighbors = 3 is the largest value tried on more, and was chosen there" in text
        assert "natural: n_neighbors" not in text
        assert "more · kNN: {'n_neighbors': -4}: ParameterError" in text
    assert "(15 times)" in readme
    record = json.loads((workplace / "run" / "records.jsonl").read_text().splitlines()[2])
    assert record["selection"]["values"][3] == "nan"


def test_failures_that_differ_in_numbers_are_one_line():
    record = {"dataset": "d", "candidate": "kNN"}
    errors = [f"{{'k': {k}}}: ValueError: k={k} is more than {rows} rows" for k in (50, 60) for rows in (40, 41)]
    results = SimpleNamespace(failed_settings=[(record, error) for error in errors])
    assert failed_settings(results) == [
        "d · kNN: {'k': 50}: ValueError: k=50 is more than 40 rows (2 times)",
        "d · kNN: {'k': 60}: ValueError: k=60 is more than 40 rows (2 times)",
    ]


def test_a_word_in_a_single_fold_makes_a_column_of_categories_in_all(workplace):
    table = pd.read_csv("data.csv").assign(remark="")
    table.loc[[1, 20], "remark"] = "7"
    table.loc[40, "remark"] = "ill"
    table.to_csv("remarks.csv", index=False)
    command = ["bench", "--datasets", "remarks.csv", *OPTIONS, "--algorithms", "sa-bfgs", "--jobs", "1"]
    assert main([*command, "--folds", "3", "--out", "words"]) == 0
    assert not StudyResults.load("words").failures

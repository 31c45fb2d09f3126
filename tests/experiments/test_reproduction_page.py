"""The page on the paper's experiment, its figures, and the script that runs its studies: all from records."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from skldl.data import Dataset
from skldl.exceptions import DatasetNotFoundError
from skldl.experiments import Candidate, Study, StudyResults, run_study
from skldl.metrics import PAPER_MEASURES
from skldl.metrics.selection import select_measures

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "docs").exists(), reason="the pages are in the repository, not in the package"
)


@pytest.fixture(scope="module")
def page(load_script):
    return load_script("docs/make_reproduction.py")


def test_the_page_and_the_paragraph_of_the_readme_are_up_to_date(page):
    assert (ROOT / "docs/reproduction.md").read_text(encoding="utf-8") == page.render(), (
        "run: python docs/make_reproduction.py"
    )
    assert page.summary() in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_page_says_what_the_records_say(page):
    text = (ROOT / "docs/reproduction.md").read_text(encoding="utf-8")
    fixed = page.load("tkde2016-fixed")
    mean = page.cells_of(fixed, "Mean", "Yeast", column="SA-BFGS")
    agree, loosely = sum(m.agrees for m in mean), sum(m.agrees_loosely for m in mean)
    assert f"the mean, which learns nothing from the features, {agree} of 60 (loosely {loosely})" in text
    assert "studies/tkde2016/study.toml" in text


def test_other_settings_do_not_give_the_columns_of_neighbours_and_of_scaling(page):
    """Twice as many means are equal to the last digit as with any other candidate; in the column of SA-BFGS not."""
    paper, fixed, start = (page.load(name) for name in ("tkde2016", "tkde2016-fixed", "tkde2016-start"))
    table = [line for line in page.controls(paper, fixed, start).splitlines() if line.startswith("|")]
    head, _, *rows = [line.strip("| ").split(" | ") for line in table]
    cells = {name: [[int(number) for number in cell.split(" / ")] for cell in row] for name, *row in rows}
    assert head == ["Candidate", "AA-kNN", "SA-IIS", "SA-BFGS"]
    assert cells.pop("Number of cells") == [[60, 60, 43], [60, 60, 42], [60, 60, 43]]
    assert len(cells) == len(paper.candidates) + len(fixed.candidates) + len(start.candidates) - 2  # the mean once
    equal = {name: [numbers[1] for numbers in row] for name, row in cells.items()}
    for column, setting in ((0, "AA-kNN (k=4)"), (1, "SA-IIS (eye, 150)")):
        others = max(row[column] for name, row in equal.items() if name != setting)
        assert equal[setting][column] > 2 * others
        assert cells[setting][column][0] == 60
    assert sum(row[2] > 0.8 * equal["SA-BFGS (alpha = 0.0)"][2] for row in equal.values()) > 5


def test_the_records_of_two_machines_agree_as_the_readme_of_the_studies_says():
    given, nested = (
        {
            (record["dataset"], record["fold"]): record
            for record in StudyResults.load(ROOT / "studies" / name).evaluations
            if record["candidate"] == "PT-SVM"
        }
        for name in ("tkde2016", "tkde2016-nested")
    )
    pairs = [(given[key], nested[key]) for key in given]
    pairs = [(a, b) for a, b in pairs if a["params"] == b["params"] and a["versions"] != b["versions"]]
    text = " ".join((ROOT / "studies/README.md").read_text(encoding="utf-8").split())
    assert f"chose the same setting on different machines, {len(pairs)} tests, no measure differs by more" in text
    for a, b in pairs:
        np.testing.assert_allclose(list(a["measures"].values()), list(b["measures"].values()), rtol=5e-10)


def tiny_study(**options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    scores = np.exp(X @ rng.normal(size=(3, 4)))
    datasets = [
        Dataset("Wide", X, scores / scores.sum(axis=1, keepdims=True)),
        Dataset("Narrow", X, scores[:, :2] / scores[:, :2].sum(axis=1, keepdims=True)),
    ]
    knn = Candidate("AA-kNN", "skldl:AAKNN", grid={"n_neighbors": (1, 3, 8)}, path="n_neighbors")
    reported = {"protocol": "geng2016", "folds": 4, "order": "file", "name": "tkde2016"}
    return Study(datasets, [knn], **reported | options)


def test_both_protocols_stand_side_by_side_on_the_same_chunks(page):
    protocols = sys.modules["protocols"]  # one of the files that the page is made of
    first = run_study(tiny_study(), keep_predictions="none")
    nested = run_study(tiny_study(protocol="nested", inner_folds=3), keep_predictions="none")
    np.testing.assert_array_equal(first.means("clark")[:, 1], nested.means("clark")[:, 1])  # the mean chooses nothing
    nested.evaluations[0]["measures"]["clark"] *= 1 + 1e-12  # another machine
    table = protocols.protocol_table(first, nested, "clark", first.datasets, first.candidates)
    one, other = (results.means("clark")[0, 0] for results in (first, nested))
    assert table.rows[0][1][0].text == f"{one:.4f} / {other:.4f}"
    rises = nested.means("clark")[:, 0] / first.means("clark")[:, 0] - 1
    assert table.foot[0][1][0].text == f"{sum(rises > 1e-9)} of 2"
    assert table.foot[0][1][1].text == "0 of 2"
    assert table.foot[1][1][0].text == f"{rises.mean():+.2%} (most {rises.max():+.1%})"
    assert table.foot[1][1][1].text == "+0.00% (most +0.0%)"
    text = page.protocols(first, nested)
    assert "geng2016 / nested" in text
    assert "**It is older than the one" in text
    assert "holds no records yet" in page.protocols(first, None)


def test_the_page_names_ends_of_grids_under_nested_and_records_of_another_machine(page, monkeypatch):
    first = run_study(tiny_study(), keep_predictions="none")
    nested = run_study(tiny_study(protocol="nested", inner_folds=3), keep_predictions="none")
    monkeypatch.setattr(nested, "chosen", lambda dataset, candidate: [{"n_neighbors": 8}] * (dataset == "Wide"))
    assert "- AA-kNN: n_neighbors = 8 is the largest value tried on Wide, and" in page.protocols(first, nested)
    monkeypatch.setattr(nested, "chosen", lambda dataset, candidate: [{"n_neighbors": 3}])
    text = page.protocols(first, nested)
    assert "- none was chosen" in text
    assert "another machine" not in text
    nested.evaluations[0]["versions"] = {**nested.evaluations[0]["versions"], "numpy": "0.0"}
    assert "1 of the 16 tasks (AA-kNN on Wide) ran on another machine" in page.protocols(first, nested)
    nested.evaluations[1]["selection"]["versions"] = {"numpy": "0.0"}
    nested.evaluations[2]["selection_seconds"] = 0.0  # in steps whose versions were not kept
    assert "3 of the 16 tasks (AA-kNN on Wide) ran on another machine" in page.protocols(first, nested)


def test_grids_of_single_datasets_are_on_the_page(page):
    grids = {"Narrow": {"n_neighbors": (2, 5)}, "Wide": {"n_neighbors": (2, 5)}}
    knn = Candidate("AA-kNN", "skldl:AAKNN", grid={"n_neighbors": (1, 3)}, grids=grids)
    results = run_study(replace(tiny_study(), candidates=[knn]), keep_predictions="none")
    assert page.own_grids(results)[-1] == "- Narrow, Wide: AA-kNN with n_neighbors: 2, 5"
    assert page.own_grids(run_study(tiny_study(), keep_predictions="none")) == []
    assert "- Narrow, Wide: AA-kNN with n_neighbors: 2, 5" in page.how(results)


def test_a_study_that_is_not_complete_is_not_shown(page, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "STUDIES", tmp_path)
    assert page.load("some") is None
    run_study(tiny_study(), out=tmp_path / "some", keep_predictions="none")
    assert page.load("some").datasets == ["Wide", "Narrow"]
    records = tmp_path / "some" / "records.jsonl"
    records.write_text("".join(records.read_text().splitlines(keepends=True)[:-1]))
    assert page.load("some") is None


def test_predictions_are_kept_without_the_truth():
    study = tiny_study()
    results = run_study(study, keep_predictions="predictions")
    whole = run_study(study, keep_predictions="sample")
    assert not any("truth" in info for info in results.info.values())
    assert results.predictions("Wide") is None
    D = study.datasets[0].data.D
    found, expected = results.predictions("Wide", D_true=D), whole.predictions("Wide")
    assert results.kept_rows("Wide") == found["rows"].tolist() == expected["rows"].tolist()
    np.testing.assert_array_equal(found["truth"], D[found["rows"]])
    for candidate, table in found["predicted"].items():
        np.testing.assert_array_equal(table, expected["predicted"][candidate])
    assert run_study(study, keep_predictions="none").predictions("Wide", D_true=D) is None


def test_figures_are_drawn_where_predictions_and_truth_are_at_hand(page, tmp_path, monkeypatch, capsys, load_script):
    figures = load_script("docs/make_study_figures.py")
    study = tiny_study()
    run_study(study, out=tmp_path / "study", keep_predictions="predictions")
    monkeypatch.setattr(figures, "STUDY", tmp_path / "study")
    monkeypatch.setattr(figures, "FOLDER", tmp_path / "figures")
    known = {}

    def load_dataset(name):
        if name not in known:
            raise DatasetNotFoundError(name)
        return known[name]

    monkeypatch.setattr(figures, "load_dataset", load_dataset)
    figures.main()
    assert "No figures drawn: Wide, Narrow not found" in capsys.readouterr().out
    known["Wide"] = study.datasets[0].data
    figures.main()
    assert "No figures drawn: Narrow not found" in capsys.readouterr().out
    assert not (tmp_path / "figures").exists()
    known |= {spec.name: spec.data for spec in study.datasets}
    figures.main()
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {"measures.json", *(f"{name}.png" for name in page.PICTURES)}
    results = StudyResults.load(tmp_path / "study")
    monkeypatch.setattr(page, "HERE", tmp_path)
    text = page.figures(results)
    assert text.count("![") == 2
    assert "whose predictions the records keep: Wide (4 labels), Narrow (2 labels)." in text
    found = results.predictions("Wide", D_true=known["Wide"].D)
    predicted = np.concatenate(list(found["predicted"].values()))
    selection = select_measures(np.tile(found["truth"], (2, 1)), predicted)
    n_clusters = len({selection.clusters[measure] for measure in PAPER_MEASURES})
    assert "It is that of Wide: 20 rows predicted by 2 candidates. The distance is the sine" in text
    assert f"Here the six lie in {n_clusters} clusters" in text
    assert "hold no predictions" in page.figures(run_study(study, keep_predictions="none"))
    known["Wide"] = Dataset("Wide", known["Wide"].X + 1, known["Wide"].D)  # other data of the same name
    assert figures.true_distributions(results, "Wide") is None


def test_the_figures_of_the_page_are_of_all_datasets_of_the_study():
    """They were once drawn on a machine without the data, of the artificial dataset alone."""
    found = json.loads((ROOT / "docs/figures/measures.json").read_text(encoding="utf-8"))
    results = StudyResults.load(ROOT / "studies/tkde2016")
    assert found["n_datasets"] == sum(bool(results.kept_rows(name)) for name in results.datasets)
    assert list(found["examples"].values()) == [18, 7, 4, 2]


TINY = """
name = "tiny"
protocol = "geng2016"
folds = 4
order = "file"
measures = ["clark", "kullback_leibler"]
datasets = [{{ name = "Small", source = "{source}" }}]

[[candidates]]
name = "AA-kNN"
estimator = "skldl:AAKNN"
grid = {{ n_neighbors = [1, 3] }}

[[candidates]]
name = "Mean"
estimator = "skldl:MeanDistribution"
"""


@pytest.mark.slow
def test_studies_are_run_resumed_and_put_in_their_place(tmp_path, capfd, load_script):
    runs = load_script("tools/run_studies.py")
    file = tmp_path / "tiny.toml"
    file.write_text(TINY.format(source=ROOT / "tests/compatibility/files_0_1/small.csv"))
    studies = tmp_path / "studies"
    run = runs.Run("tiny-nested", str(file), "nested")
    assert run.load().order == "file"
    assert runs.complete(run, studies, "", 1) == 0
    results = StudyResults.load(studies / "tiny-nested")
    assert results.study["protocol"] == "nested"
    assert results.kept_rows("Small")
    assert not any("truth" in info for info in results.info.values())
    assert (studies / "tiny-nested" / "statistics.md").exists()
    assert "beginning, " in capfd.readouterr().out
    assert runs.complete(run, studies, "", 1) == 0  # nothing left to do
    assert "complete, and made by the present study file" in capfd.readouterr().out

    # a study that was stopped goes on; until then the old folder stays
    running = studies / "unfinished" / "tiny-nested"
    (studies / "tiny-nested").rename(running)
    records = running / "records.jsonl"
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join(lines[:-2]))
    assert not runs.is_current(run, running)
    assert runs.complete(run, studies, "", 1) == 0
    assert "going on, " in capfd.readouterr().out
    assert (studies / "tiny-nested" / "records.jsonl").read_text().startswith("".join(lines[:-2]))
    assert not running.exists()

    # another study file: the records are no longer those of the study, except those of a candidate without a change
    before = StudyResults.load(studies / "tiny-nested")
    file.write_text(file.read_text().replace("[1, 3]", "[1, 3, 5]"))
    assert not runs.is_current(run, studies / "tiny-nested")
    assert runs.complete(run, studies, "", 1) == 0
    assert "4 records of the earlier study file are still valid" in capfd.readouterr().out
    after = StudyResults.load(studies / "tiny-nested")
    assert {len(r["selection"]["values"]) for r in after.evaluations if r["candidate"] == "AA-kNN"} == {3}
    assert [r for r in before.evaluations if r["candidate"] == "Mean"] == [
        r for r in after.evaluations if r["candidate"] == "Mean"
    ]
    file.write_text(file.read_text().replace("[1, 3, 5]", "[1, 3]"))
    assert runs.complete(run, studies, "", 1, afresh=True) == 0
    assert "records of the earlier" not in capfd.readouterr().out

    # also one that was changed after it had been stopped
    (studies / "tiny-nested").rename(running)
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join(lines[:-1]))
    left = sum(json.loads(line).get("candidate") == "Mean" for line in lines[:-1])
    file.write_text(file.read_text().replace("[1, 3]", "[1, 5]"))
    assert runs.complete(run, studies, "", 1) == 0
    assert f"{left} records of the earlier study file are still valid" in capfd.readouterr().out
    after = StudyResults.load(studies / "tiny-nested")
    assert not any(after.state("Small", candidate) for candidate in after.candidates)
    assert not list((studies / "unfinished").iterdir())


def test_a_study_is_not_replaced_by_one_of_fewer_datasets(tmp_path, capsys, load_script, paper_data, monkeypatch):
    paper_data("SJAFFE")
    runs = load_script("tools/run_studies.py")
    file = tmp_path / "study.toml"
    file.write_text(TINY.replace('{{ name = "Small", source = "{source}" }}', '"Artificial", "SJAFFE"').format())
    run = runs.Run("jaffe", str(file))
    run_study(run.load(), out=tmp_path / "jaffe", keep_predictions="predictions")
    before = (tmp_path / "jaffe/records.jsonl").read_bytes()
    file.write_text(file.read_text().replace("[1, 3]", "[1, 3, 5]"))
    monkeypatch.delenv("SKLDL_DATA")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert runs.complete(run, tmp_path, str(empty), 1) == 2
    assert "jaffe: SJAFFE not found, which the records in" in capsys.readouterr().out
    assert (tmp_path / "jaffe/records.jsonl").read_bytes() == before


def test_a_study_that_was_stopped_keeps_its_records_while_a_dataset_is_not_found(
    tmp_path, capsys, load_script, paper_data, monkeypatch
):
    paper_data("SJAFFE")
    runs = load_script("tools/run_studies.py")
    file = tmp_path / "study.toml"
    file.write_text(TINY.replace('{{ name = "Small", source = "{source}" }}', '"Artificial", "SJAFFE"').format())
    run = runs.Run("jaffe", str(file))
    running = tmp_path / "unfinished" / "jaffe"
    run_study(run.load(), out=running, keep_predictions="predictions")
    lines = (running / "records.jsonl").read_text().splitlines(keepends=True)
    (running / "records.jsonl").write_text("".join(lines[:-1]))
    monkeypatch.delenv("SKLDL_DATA")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert runs.complete(run, tmp_path, str(empty), 1) == 2
    assert "jaffe: SJAFFE not found, which the records in" in capsys.readouterr().out
    assert (running / "records.jsonl").read_text() == "".join(lines[:-1])


@pytest.mark.slow
def test_records_of_a_stopped_study_are_set_aside_where_they_cannot_be_used(tmp_path, capfd, load_script):
    runs = load_script("tools/run_studies.py")
    file = tmp_path / "tiny.toml"
    file.write_text(TINY.format(source=ROOT / "tests/compatibility/files_0_1/small.csv"))
    run = runs.Run("tiny", str(file))
    running = tmp_path / "unfinished" / "tiny"
    records = running / "records.jsonl"
    run_study(run.load(), out=running, keep_predictions="predictions")
    lines = records.read_text().splitlines(keepends=True)
    records.write_text("".join(lines[:-1]))
    stopped = records.read_bytes()
    (running / "steps.jsonl").write_text("a step\n")

    # another number of folds: no record is valid; a leftover of a call that was killed is in the way
    shutil.copytree(running, running.with_name("tiny-carried"))
    monkey = pytest.MonkeyPatch()
    monkey.setattr(runs.subprocess, "run", lambda *args, **kwargs: subprocess.CompletedProcess(args, 130))
    file.write_text(file.read_text().replace("folds = 4", "folds = 3"))
    assert runs.complete(run, tmp_path, "", 1) == 130
    assert "0 records of the earlier study file are still valid" in capfd.readouterr().out
    assert (runs.before(running) / "records.jsonl").read_bytes() == stopped

    # killed at that point, and the change is taken back: the records come back, with the steps beside them
    file.write_text(file.read_text().replace("folds = 3", "folds = 4"))
    assert runs.complete(run, tmp_path, "", 1) == 130
    tasks = [line for line in lines[:-1] if "candidate" in json.loads(line)]
    assert f"{len(tasks)} records of the earlier study file are still valid" in capfd.readouterr().out
    assert set(records.read_text().splitlines(keepends=True)) >= set(tasks)
    assert (running / "steps.jsonl").read_text() == "a step\n"

    # afresh means with none, also of a study that was stopped, if its file has changed; then nothing is left behind
    monkey.undo()
    file.write_text(file.read_text().replace("[1, 3]", "[1, 3, 5]"))
    assert runs.complete(run, tmp_path, "", 1, afresh=True) == 0
    assert "records of the earlier" not in capfd.readouterr().out
    assert runs.is_current(run, tmp_path / "tiny")
    assert not list((tmp_path / "unfinished").iterdir())


def test_records_that_other_rules_made_are_not_carried_over(tmp_path, load_script, monkeypatch):
    runs = load_script("tools/run_studies.py")
    file = tmp_path / "tiny.toml"
    source = ROOT / "tests/compatibility/files_0_1/small.csv"
    file.write_text(TINY.format(source=source))
    run = runs.Run("tiny", str(file))
    run_study(run.load(), out=tmp_path / "tiny", keep_predictions="predictions")
    n_tasks = len(StudyResults.load(tmp_path / "tiny").selections) + len(
        StudyResults.load(tmp_path / "tiny").evaluations
    )
    assert runs.carry_over(run, tmp_path / "tiny", tmp_path / "same", "") == n_tasks
    moved = StudyResults.load(tmp_path / "same")
    assert not any(moved.state("Small", candidate) for candidate in moved.candidates)
    for change in ("folds = 3", 'folds = 4\ncriterion = "clark"'):
        file.write_text(TINY.format(source=source).replace("folds = 4", change))
        assert runs.carry_over(run, tmp_path / "tiny", tmp_path / "other", "") == 0
    assert not (tmp_path / "other").exists()

    # a selection in which a setting failed is made again, and what depends on it
    file.write_text(TINY.format(source=source))
    read_records = runs.read_records

    def one_failed(path):
        records, *rest = read_records(path)
        next(r for r in records if r["kind"] == "selection" and r["candidate"] == "AA-kNN")["errors"] = ["no memory"]
        return records, *rest

    with monkeypatch.context() as patched:
        patched.setattr(runs, "read_records", one_failed)
        assert runs.carry_over(run, tmp_path / "tiny", tmp_path / "failed", "") == 4
    assert {r["candidate"] for r in StudyResults.load(tmp_path / "failed").evaluations} == {"Mean"}

    # a grid for the dataset in another spelling: only the candidate without a change is carried over
    knn = 'estimator = "skldl:AAKNN"\ngrids = {{ small = {{ n_neighbors = [1, 5] }} }}'
    file.write_text(TINY.replace('estimator = "skldl:AAKNN"', knn).format(source=source))
    assert runs.carry_over(run, tmp_path / "tiny", tmp_path / "grids", "") == 4
    assert {r["candidate"] for r in StudyResults.load(tmp_path / "grids").evaluations} == {"Mean"}

    # a dataset that is left out takes its records with it
    copy = tmp_path / "copy.csv"
    copy.write_bytes(source.read_bytes())
    two = TINY.replace("datasets = [", 'datasets = [{{ name = "Copy", source = "{copy}" }}, ')
    file.write_text(two.format(source=source, copy=copy))
    run_study(run.load(), out=tmp_path / "two", keep_predictions="predictions")
    file.write_text(TINY.format(source=source))
    assert runs.carry_over(run, tmp_path / "two", tmp_path / "one", "") == n_tasks

    # records of other versions of the packages are not mixed with ones of today
    monkeypatch.setattr(runs, "versions", lambda: {"skldl": "0.0.0"})
    assert runs.carry_over(run, tmp_path / "tiny", tmp_path / "later", "") == 0


def test_an_unknown_study_is_refused(capsys, load_script):
    with pytest.raises(SystemExit):
        load_script("tools/run_studies.py").main(["nothing"])
    assert "no study is called nothing" in capsys.readouterr().err

"""The tool that runs the studies of ``studies/``: it can be stopped or killed, and its study files can change."""

import json
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from skldl.experiments import StudyResults, run_study

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "tools").exists(), reason="the tool is in the repository, not in the package"
)

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


@pytest.fixture
def source(tmp_path, load_script):
    """A small table of numbers and words."""
    path = tmp_path / "small.csv"
    load_script("tools/write_compatibility_files.py").training_table().to_csv(path, index=False)
    return path


@pytest.mark.slow
def test_studies_are_run_resumed_and_put_in_their_place(tmp_path, capfd, load_script, source):
    runs = load_script("tools/run_studies.py")
    file = tmp_path / "tiny.toml"
    file.write_text(TINY.format(source=source))
    studies = tmp_path / "studies"
    run = runs.Run("tiny-nested", str(file), {"protocol": "nested", "order": "file"})
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
    run = runs.Run("jaffe", str(file), {})
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
    run = runs.Run("jaffe", str(file), {})
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


@pytest.fixture
def tiny(tmp_path, load_script, monkeypatch, source):
    """A study that was stopped, its file, and a tool whose studies are killed when their header is written."""
    runs = load_script("tools/run_studies.py")
    file = tmp_path / "tiny.toml"
    file.write_text(TINY.format(source=source))
    run = runs.Run("tiny", str(file), {})
    running = tmp_path / "unfinished" / "tiny"
    run_study(run.load(), out=running, keep_predictions="predictions")
    records = running / "records.jsonl"
    records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:-1]))

    def begin(command, **options):
        if not (running / "records.jsonl").exists():
            plan = runs.plan_study(run.load())
            store = runs.FileStore(running, resume=False)
            runs.open_store(store, plan.study, plan.datasets, plan.rules(runs.KEEP), plan.missing, running)
            store.close()
        return subprocess.CompletedProcess(command, 130)

    monkeypatch.setattr(runs.subprocess, "run", begin)
    return SimpleNamespace(runs=runs, run=run, file=file, running=running, records=records, studies=tmp_path)


def change(study, old, new, *, afresh=False):
    """Change the study file and call the tool, which is killed."""
    text = study.file.read_text()
    assert old in text
    study.file.write_text(text.replace(old, new))
    assert study.runs.complete(study.run, study.studies, "", 1, afresh=afresh) == 130


def tasks(folder):
    """Lines of tasks in a folder."""
    lines = (folder / "records.jsonl").read_text().splitlines()
    return {line for line in lines if "candidate" in json.loads(line)}


def test_a_change_that_is_taken_back_finds_the_records(tiny, capfd):
    stopped = tasks(tiny.running)
    assert len(stopped) == 11
    shutil.copytree(tiny.running, tiny.running.with_name("tiny-carried"))  # of a call that was killed
    change(tiny, "folds = 4", "folds = 3")  # no record is valid, and the new study begins
    assert "0 records of the earlier study file are still valid" in capfd.readouterr().out
    assert not tasks(tiny.running)
    change(tiny, "folds = 3", "folds = 5")
    assert len(tiny.runs.set_aside(tiny.running)) == 2
    change(tiny, "folds = 5", "folds = 4")
    assert "11 records of the earlier study file are still valid" in capfd.readouterr().out
    assert tasks(tiny.running) == stopped


def test_a_call_that_is_killed_while_it_moves_records_loses_none(tiny):
    stopped = tasks(tiny.running)
    tiny.running.rename(tiny.running.with_name("tiny-before"))
    change(tiny, "folds = 4", "folds = 4")
    assert tasks(tiny.running) == stopped


def test_records_that_were_set_aside_are_not_given_up_for_fewer_datasets(tiny, capsys, monkeypatch):
    tiny.running.rename(tiny.running.with_name("tiny-before"))
    monkeypatch.setattr(tiny.runs, "lost_datasets", lambda _, folder, data: ["Small"] * folder.name.endswith("-before"))
    assert tiny.runs.complete(tiny.run, tiny.studies, "", 1) == 2
    assert "tiny: Small not found, which the records in" in capsys.readouterr().out
    assert len(tasks(tiny.running.with_name("tiny-before"))) == 11


def test_records_of_several_folders_are_joined(tiny):
    of_mean = {line for line in tasks(tiny.running) if json.loads(line)["candidate"] == "Mean"}
    change(tiny, "[1, 3]", "[1, 5]")
    assert tasks(tiny.running) == of_mean
    change(tiny, "[1, 5]", "[1, 3]")
    assert len(tasks(tiny.running)) == 11


def test_steps_of_long_tasks_are_kept_with_and_without_records(tiny):
    steps = tiny.running / "steps.jsonl"
    steps.write_text('{"step": 0}\n{"st')
    change(tiny, "folds = 4", "folds = 3")
    assert steps.read_text() == '{"step": 0}\n'
    steps.write_text('{"step": 0}\n{"step": 1}\n')
    change(tiny, "folds = 3", "folds = 4")
    assert steps.read_text() == '{"step": 0}\n{"step": 1}\n'


@pytest.mark.parametrize("left", [b"", b'{"kind": "header", "form'])
def test_a_file_without_a_whole_header_is_no_obstacle(tiny, left, capfd):
    tiny.records.write_bytes(left)
    change(tiny, "folds = 4", "folds = 4")
    assert "tiny: beginning, " in capfd.readouterr().out
    assert tiny.records.read_bytes().endswith(b"\n")


@pytest.mark.slow
def test_afresh_means_without_earlier_records_and_nothing_is_left_behind(tiny, monkeypatch, capfd):
    change(tiny, "[1, 3]", "[1, 3, 5]", afresh=True)
    assert "records of the earlier" not in capfd.readouterr().out
    assert not tasks(tiny.running)
    monkeypatch.undo()
    assert tiny.runs.complete(tiny.run, tiny.studies, "", 1) == 0
    assert tiny.runs.is_current(tiny.run, tiny.studies / "tiny")
    assert not list((tiny.studies / "unfinished").iterdir())


def test_records_that_other_rules_made_are_not_carried_over(tmp_path, load_script, monkeypatch, source):
    runs = load_script("tools/run_studies.py")
    file = tmp_path / "tiny.toml"
    file.write_text(TINY.format(source=source))
    run = runs.Run("tiny", str(file), {})
    run_study(run.load(), out=tmp_path / "tiny", keep_predictions="predictions")
    n_tasks = len(StudyResults.load(tmp_path / "tiny").selections) + len(
        StudyResults.load(tmp_path / "tiny").evaluations
    )
    assert runs.carry_over(run, [tmp_path / "tiny"], tmp_path / "same", "") == n_tasks
    moved = StudyResults.load(tmp_path / "same")
    assert not any(moved.state("Small", candidate) for candidate in moved.candidates)
    for number, change in enumerate(("folds = 3", 'folds = 4\ncriterion = "clark"')):
        file.write_text(TINY.format(source=source).replace("folds = 4", change))
        assert runs.carry_over(run, [tmp_path / "tiny"], tmp_path / f"other{number}", "") == 0
        assert not StudyResults.load(tmp_path / f"other{number}").evaluations

    # a selection in which a setting failed is made again, and what depends on it
    file.write_text(TINY.format(source=source))
    read_records = runs.read_records

    def one_failed(path):
        records, *rest = read_records(path)
        next(r for r in records if r["kind"] == "selection" and r["candidate"] == "AA-kNN")["errors"] = ["no memory"]
        return records, *rest

    with monkeypatch.context() as patched:
        patched.setattr(runs, "read_records", one_failed)
        assert runs.carry_over(run, [tmp_path / "tiny"], tmp_path / "failed", "") == 4
    assert {r["candidate"] for r in StudyResults.load(tmp_path / "failed").evaluations} == {"Mean"}

    # a grid for the dataset in another spelling: only the candidate without a change is carried over
    knn = 'estimator = "skldl:AAKNN"\ngrids = {{ small = {{ n_neighbors = [1, 5] }} }}'
    file.write_text(TINY.replace('estimator = "skldl:AAKNN"', knn).format(source=source))
    assert runs.carry_over(run, [tmp_path / "tiny"], tmp_path / "grids", "") == 4
    assert {r["candidate"] for r in StudyResults.load(tmp_path / "grids").evaluations} == {"Mean"}

    # a dataset that is left out takes its records with it
    copy = tmp_path / "copy.csv"
    copy.write_bytes(source.read_bytes())
    two = TINY.replace("datasets = [", 'datasets = [{{ name = "Copy", source = "{copy}" }}, ')
    file.write_text(two.format(source=source, copy=copy))
    run_study(run.load(), out=tmp_path / "two", keep_predictions="predictions")
    file.write_text(TINY.format(source=source))
    assert runs.carry_over(run, [tmp_path / "two"], tmp_path / "one", "") == n_tasks

    # records of other versions of the packages are not mixed with ones of today
    monkeypatch.setattr(runs, "versions", lambda: {"skldl": "0.0.0"})
    assert runs.carry_over(run, [tmp_path / "tiny"], tmp_path / "later", "") == 0


def test_an_unknown_study_is_rejected(capsys, load_script):
    with pytest.raises(SystemExit):
        load_script("tools/run_studies.py").main(["nothing"])
    assert "no study is called nothing" in capsys.readouterr().err

"""Studies that a version wrote are read, shown and continued, and their numbers stay."""

import json
import shutil

import pytest

from skldl.experiments import StudyResults, load_study, plan_study, run_study
from skldl.experiments.outputs import write_outputs

KEYS = ("dataset", "candidate", "repeat", "fold", "seed", "params", "measures")


@pytest.fixture
def folder(written, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("small.csv", "study_as_written.toml"):
        shutil.copy(written / name, tmp_path)
    shutil.copytree(written / "study", tmp_path / "study")
    return tmp_path / "study"


def numbers(results):
    return [{key: record[key] for key in KEYS} for record in results.evaluations]


def test_fingerprints_of_study_and_data_are_the_same(folder):
    recorded = json.loads((folder / "records.jsonl").read_text().splitlines()[0])
    assert load_study(folder / "study.toml").fingerprint() == recorded["fingerprint"]
    plan = plan_study(load_study("study_as_written.toml"))
    assert plan.study.fingerprint() == recorded["fingerprint"]
    assert {name: dataset.fingerprint for name, dataset in plan.datasets.items()} == recorded["datasets"]


def test_the_tables_come_out_as_they_were_written(folder, written):
    write_outputs(StudyResults.load(folder), folder)
    paths = sorted((written / "study" / "tables").glob("*.csv"))
    assert len(paths) > 5
    for path in paths:
        assert (folder / "tables" / path.name).read_text() == path.read_text(), path.name


def test_the_study_goes_on_where_it_was_stopped(folder):
    whole = StudyResults.load(folder)
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "records.jsonl").write_bytes(b"".join(lines[:5]) + lines[5][:30])
    resumed = run_study(load_study(folder / "study.toml"), out=folder, resume=True)
    again = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    assert again[:5] == lines[:5]
    assert len(again) == len(lines)
    for record, old in zip(numbers(resumed), numbers(whole), strict=True):
        assert record["measures"] == pytest.approx(old["measures"], abs=1e-9)
        assert {**record, "measures": 0} == {**old, "measures": 0}

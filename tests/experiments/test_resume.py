"""Resuming a study: after a cut at any byte, with other options, by another version."""

import json
import tomllib

import numpy as np
import pytest

from skldl.exceptions import RecordsError
from skldl.experiments import Candidate, Study, StudyResults, run_study
from skldl.experiments.outputs import write_outputs
from skldl.experiments.store import FileStore, encode


def run_to(folder, study, **options):
    found = run_study(study, out=folder, **options)
    write_outputs(found, folder)
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*.*")) if not path.name.startswith("time.")}


@pytest.mark.parametrize("protocol", ["nested", "geng2016"])
def test_resuming_after_a_cut_at_any_byte_repeats_nothing_and_gives_the_same_tables(tmp_path, small_study, protocol):
    study = small_study(protocol=protocol, datasets=small_study().datasets[:1])
    expected = run_to(tmp_path / "whole", study)
    content = (tmp_path / "whole" / "records.jsonl").read_bytes()
    rng = np.random.default_rng(0)
    for i, cut in enumerate([0, 5, len(content), *rng.integers(0, len(content), size=7).tolist()]):
        folder = tmp_path / f"cut{i}"
        folder.mkdir()
        kept = content[: content[:cut].rfind(b"\n") + 1]
        (folder / "records.jsonl").write_bytes(content[:cut])
        files = run_to(folder, study, resume=True)
        assert files["records.jsonl"].startswith(kept)
        assert files["records.jsonl"].count(b"\n") == content.count(b"\n")
        for name in expected:
            if name != "records.jsonl":
                assert files[name] == expected[name], name


def test_the_study_is_there_before_the_first_record(tmp_path, small_study, monkeypatch):
    def killed(store, record):
        raise KeyboardInterrupt

    monkeypatch.setattr(FileStore, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        run_study(small_study(), out=tmp_path)
    assert (tmp_path / "records.jsonl").read_bytes() == b""
    assert tomllib.loads((tmp_path / "study.toml").read_text(encoding="utf-8"))["folds"] == 3


@pytest.mark.parametrize("content", [b"", b'{"kind": "head'])
@pytest.mark.parametrize("resume", [False, True])
def test_a_study_that_was_killed_when_it_began_starts(tmp_path, small_study, content, resume):
    study = small_study(datasets=small_study().datasets[:1])
    (tmp_path / "records.jsonl").write_bytes(content)
    assert len(run_study(study, out=tmp_path, resume=resume).evaluations) == 9
    with pytest.raises(RecordsError, match="holds the records of a study"):
        run_study(study, out=tmp_path)


def test_resuming_a_finished_study_runs_nothing(tmp_path, small_study):
    run_study(small_study(), out=tmp_path)
    before = (tmp_path / "records.jsonl").read_bytes()
    reported = []
    run_study(small_study(), out=tmp_path, resume=True, on_progress=reported.append)
    assert (tmp_path / "records.jsonl").read_bytes() == before
    assert [(p.done, p.total, p.record, p.left) for p in reported] == [(18, 18, None, ())]


def test_failed_tasks_are_repeated_only_on_request(tmp_path, problem, candidates):
    study = Study([problem("d")], [candidates["broken"]], folds=2)
    run_study(study, out=tmp_path)
    size = (tmp_path / "records.jsonl").read_bytes().count(b"\n")
    run_study(study, out=tmp_path, resume=True)
    assert (tmp_path / "records.jsonl").read_bytes().count(b"\n") == size
    found = run_study(study, out=tmp_path, resume=True, retry_failed=True)
    assert (tmp_path / "records.jsonl").read_bytes().count(b"\n") == size + 2
    assert len(found.failures) == 2


def test_records_of_another_study_are_rejected_with_the_difference(tmp_path, small_study, problem, candidates):
    run_study(small_study(), out=tmp_path)

    def resume(**options):
        run_study(small_study(**options), out=tmp_path, resume=True)

    with pytest.raises(RecordsError, match="another study: seed was 0, now 5"):
        resume(random_state=5)
    with pytest.raises(RecordsError, match="datasets were one, two, now one"):
        resume(datasets=small_study().datasets[:1])
    with pytest.raises(RecordsError, match="candidates have other parameters"):
        resume(candidates=[Candidate("kNN", "sklearn.neighbors:KNeighborsRegressor"), candidates["tree"]])
    with pytest.raises(RecordsError, match="The data of two have changed"):
        resume(datasets=[problem("one"), problem("two", seed=2, labels=4)])
    with pytest.raises(RecordsError, match="keep predictions: sample, not all"):
        run_study(small_study(), out=tmp_path, resume=True, keep_predictions="all")


def test_records_of_other_versions_are_recognised(tmp_path, small_study):
    run_study(small_study(), out=tmp_path)
    path = tmp_path / "records.jsonl"
    header, *rest = path.read_bytes().splitlines(keepends=True)
    reported = json.loads(header)
    reported["versions"]["numpy"] = "0.9"
    path.write_bytes(encode(reported) + b"".join(rest))
    found = run_study(small_study(), out=tmp_path, resume=True)
    assert "numpy 0.9 → " in found.notices[0]
    path.write_bytes(encode(reported | {"skldl": "99.0"}) + b"".join(rest))
    with pytest.raises(RecordsError, match=r"written by scikit-ldl 99\.0.*must not mix"):
        run_study(small_study(), out=tmp_path, resume=True)
    assert StudyResults.load(tmp_path).means("clark").shape == (2, 3)  # reading is another matter


def test_an_empty_record_file_is_explained(tmp_path):
    (tmp_path / "records.jsonl").touch()
    with pytest.raises(RecordsError, match="stopped before it began"):
        StudyResults.load(tmp_path)

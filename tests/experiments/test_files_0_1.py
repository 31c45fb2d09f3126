"""A study that version 0.1 wrote: it is read, shown, continued and extended, and its numbers stay."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from skldl.exceptions import RecordsError
from skldl.experiments import StudyResults, load_study, plan_study, run_study
from skldl.experiments.output.files import write_outputs

WRITTEN = Path(__file__).parents[1] / "compatibility" / "files_0_1"
pytestmark = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.0.0",
    reason="the study holds the artificial set, whose last digits are those of numpy 2",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("small.csv", "study_as_written.toml"):
        shutil.copy(WRITTEN / name, tmp_path)
    shutil.copytree(WRITTEN / "study", tmp_path / "study")
    return tmp_path / "study"


def test_the_study_file_is_read_with_the_same_fingerprint(folder):
    recorded = json.loads((folder / "records.jsonl").read_text().splitlines()[0])
    study = load_study(folder / "study.toml")
    assert study.fingerprint() == recorded["fingerprint"]
    assert [candidate.name for candidate in study.candidates] == ["AA-kNN", "SA-BFGS", "Mean"]
    plan = plan_study(load_study("study_as_written.toml"))
    assert plan.study.fingerprint() == recorded["fingerprint"]
    assert {name: dataset.fingerprint for name, dataset in plan.datasets.items()} == recorded["datasets"]


def test_the_tables_come_out_as_0_1_wrote_them(folder):
    results = StudyResults.load(folder)
    assert results.candidates == ["AA-kNN", "SA-BFGS", "Mean"]
    write_outputs(results, folder)
    for path in sorted((WRITTEN / "study" / "tables").glob("*.csv")):
        assert (folder / "tables" / path.name).read_text() == path.read_text(), path.name


@pytest.mark.slow
def test_the_report_of_the_study(folder):
    from skldl.report import write_report

    assert "written-by-0.1" in write_report(folder).read_text(encoding="utf-8")


def numbers(results):
    return [
        {key: record[key] for key in ("dataset", "candidate", "repeat", "fold", "seed", "params", "measures")}
        for record in results.evaluations
    ]


def assert_same_numbers(computed, written):
    """Losses up to rounding: 6e-16 between the kernels that OpenBLAS takes for Haswell and for SkylakeX."""
    assert len(computed) == len(written)
    for now, then in zip(computed, written, strict=True):
        assert {**now, "measures": None} == {**then, "measures": None}
        assert now["measures"] == pytest.approx(then["measures"], rel=1e-14, abs=0)


@pytest.mark.parametrize("kept", [1, 7])
def test_the_study_resumes_where_0_1_was_stopped(folder, kept):
    whole = StudyResults.load(folder)
    lines = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "records.jsonl").write_bytes(b"".join(lines[:kept]) + lines[kept][:30])
    resumed = run_study(load_study(folder / "study.toml"), out=folder, resume=True)
    assert_same_numbers(numbers(resumed), numbers(whole))
    again = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    assert again[:kept] == lines[:kept]  # what 0.1 wrote stays as it is
    assert len(again) == len(lines)
    assert b'"candidate"' in again[-1]
    assert b'"checksum"' in again[-1]
    assert numbers(StudyResults.load(folder)) == numbers(resumed)


def test_repeats_are_added_to_a_finished_study(folder):
    whole = StudyResults.load(folder)
    more = run_study(load_study(folder / "study.toml").with_options(repeats=2), out=folder, resume=True)
    assert len(more.evaluations) == 2 * len(whole.evaluations)
    first = [record for record in numbers(more) if record["repeat"] == 0]
    assert first == numbers(whole)
    read = StudyResults.load(folder)
    assert read.n_expected("small") == 6
    assert read.study["repeats"] == 2
    assert numbers(read) == numbers(more)
    assert load_study(folder / "study.toml").repeats == 2
    with pytest.raises(RecordsError, match="another study: repeats was 2, now 1"):
        run_study(load_study(folder / "study.toml").with_options(repeats=1), out=folder, resume=True)

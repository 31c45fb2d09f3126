"""The command that compares the studies in the repository with the paper."""

import shutil
from pathlib import Path

import pytest

import compare
from skldl.data import Dataset
from skldl.experiments import Candidate, Study, run_study
from skldl.testing import make_distributions

STUDIES = Path(compare.__file__).parent
RECORDED = sorted(path.parent.name for path in STUDIES.glob("*/records.jsonl"))


@pytest.mark.parametrize("name", RECORDED)
def test_the_files_in_the_repository_are_those_that_the_command_writes(name, tmp_path, capsys):
    shutil.copy(STUDIES / name / "records.jsonl", tmp_path)
    assert compare.main([str(tmp_path)]) == 0
    written = {path.relative_to(tmp_path) for path in tmp_path.rglob("*.*")} - {Path("records.jsonl")}
    has_claims = (STUDIES / name / "claims.md").exists()
    claims = {"claims.md", "tables/time.md"} if has_claims else set()
    assert {str(path) for path in written} == {"README.md", "published.md", "published.csv", *claims}
    assert len(capsys.readouterr().out.splitlines()) == len(written)
    for path in written:
        assert (tmp_path / path).read_bytes() == (STUDIES / name / path).read_bytes(), path
    assert compare.main([str(tmp_path)]) == 0  # once more changes nothing
    assert (tmp_path / "README.md").read_bytes() == (STUDIES / name / "README.md").read_bytes()


def test_other_data_and_folders_without_records_are_reported(tmp_path, capsys):
    study = Study([Dataset("toy", *make_distributions(20))], [Candidate("Mean", "skldl:MeanDistribution")], folds=2)
    run_study(study, out=tmp_path / "toy")
    files = set((tmp_path / "toy").iterdir())
    assert compare.main([str(tmp_path / "toy")]) == 1
    assert "the paper has none of the datasets" in capsys.readouterr().out
    assert set((tmp_path / "toy").iterdir()) == files
    assert compare.main([str(tmp_path)]) == 1
    assert "There are no records in" in capsys.readouterr().err

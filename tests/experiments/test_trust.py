"""Study files may build estimators of skldl and scikit-learn, and of packages that the user trusts."""

import os
import sys

import numpy as np
import pytest

from skldl.cli import main
from skldl.data import Dataset
from skldl.exceptions import RecordsError, StudyError
from skldl.experiments import Candidate, Study, StudyResults, dump_study, plan_study, run_study
from skldl.experiments.store import encode, read_records
from skldl.experiments.study_file import parse_study

MEAN = Candidate("Mean", "skldl:MeanDistribution")


def study_text(estimator, more=""):
    return f"datasets = ['artificial']\n[[candidates]]\nname = 'x'\nestimator = '{estimator}'\n{more}"


@pytest.mark.parametrize(
    ("estimator", "more"),
    [
        ("os:system", "params = { command = 'touch hacked' }"),
        ("skldl:AARegressor", "params = { regressor = { estimator = 'os:system', command = 'touch hacked' } }"),
        ("skldl:AARegressor", "grid = { regressor = [{ estimator = 'os:system', command = 'touch hacked' }] }"),
        ("hack_module:Thing", ""),
    ],
)
def test_a_study_file_runs_no_code_of_others(estimator, more, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hack_module.py").write_text("open('hacked', 'w').close()")
    monkeypatch.syspath_prepend(tmp_path)
    study = parse_study(study_text(estimator, more))
    for build in (True, False):
        with pytest.raises(StudyError, match=r"which can run any code\. If you trust it, add trust="):
            plan_study(study, build=build)
    assert not (tmp_path / "hacked").exists()


@pytest.mark.parametrize("estimator", ["sklearn.utils:shuffle", "sklearn.base:clone", "skldl.exceptions:StudyError"])
def test_only_estimators_are_built(estimator):
    with pytest.raises(StudyError, match=r"is not a class derived from sklearn\.base\.BaseEstimator"):
        plan_study(parse_study(study_text(estimator)))
    with pytest.raises(StudyError, match="is not a class derived"):
        Candidate("x", "os:system", {"command": "true"}).make()


def test_a_dry_plan_imports_nothing(tmp_path, monkeypatch):
    (tmp_path / "watched_module.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    plan = plan_study(parse_study(study_text("watched_module:Thing"), trust=["watched_module"]), build=False)
    assert plan.n_tasks == 2
    assert "watched_module" not in sys.modules


def test_modules_beside_a_study_file_are_found_if_trusted(tmp_path, monkeypatch, capsys):
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "my_lab_9.py").write_text("from skldl import MeanDistribution as Mine")
    (tmp_path / "lab" / "my.toml").write_text(study_text("my_lab_9:Mine", "").replace("name = 'x'", "name = 'Mine'"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("skldl.report.write_report", lambda folder, results: "")
    assert main(["bench", "lab/my.toml", "--jobs", "1"]) == 2
    assert "add --trust my_lab_9" in capsys.readouterr().err
    assert main(["bench", "lab/my.toml", "--dry-run", "--trust", "my_lab_9"]) == 0
    assert main(["bench", "lab/my.toml", "--jobs", "1", "--trust", "my_lab_9", "--out", "run"]) == 0
    assert main(["bench", "--resume", "--out", "run", "--jobs", "1"]) == 2
    assert "add --trust my_lab_9" in capsys.readouterr().err


def test_text_is_no_truth_value():
    with pytest.raises(StudyError, match="fit_intercept = 'no' must be true or false, without quotes"):
        plan_study(parse_study(study_text("skldl:SABFGS", "params = { fit_intercept = 'no' }")))
    with pytest.raises(StudyError, match="fit_intercept = 'False' must be true or false"):
        plan_study(parse_study(study_text("skldl:SABFGS", "grid = { fit_intercept = ['False', 'True'] }")))
    nested = "params = { regressor = { estimator = 'sklearn.linear_model:Ridge', fit_intercept = 'yes' } }"
    with pytest.raises(StudyError, match="fit_intercept = 'yes' must be true or false"):
        plan_study(parse_study(study_text("skldl:AARegressor", nested)))


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"folds": 10**9}, "1,000,000,000"),
        ({"repeats": 10**9}, "10,000,000,000"),
        ({"candidates": [Candidate("c", "m:C", grid={n: tuple(range(100)) for n in "abcd"})], "folds": 2}, "1,000,000"),
    ],
)
def test_too_many_fits_are_rejected_with_their_number(options, count):
    with pytest.raises(StudyError, match=f"would fit {count}.* models; at most 10,000,000"):
        Study(**{"datasets": ["a"], "candidates": [MEAN]} | options)


def test_infinity_in_a_grid_survives_the_file(tmp_path):
    study = Study(["a"], [Candidate("c", "m:C", {"low": -np.inf}, {"C": (1.0, np.inf)}), MEAN])
    assert parse_study(dump_study(study)) == study
    assert "inf" in dump_study(study)


def test_the_name_of_a_study_cannot_name_another_folder(tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr("skldl.report.write_report", lambda folder, results: "")
    for name in ("../../../x", "/etc/x", "..", "a/b", "a b"):
        (here / "s.toml").write_text(f"name = '{name}'\ndatasets = ['artificial']\ncandidates = ['Mean']\nfolds = 2")
        assert main(["bench", "s.toml", "--jobs", "1"]) == 0
    folders = sorted(path.name for path in here.iterdir() if path.is_dir())
    assert folders == ["skldl-a-b", "skldl-a-b-2", "skldl-etc-x", "skldl-study", "skldl-x"]
    assert [path.name for path in tmp_path.iterdir()] == ["here"]


def tiny(**options):
    rng = np.random.default_rng(0)
    return Study(**{"datasets": [Dataset("d", rng.normal(size=(12, 2)), rng.dirichlet([1, 1], 12))]} | options, folds=2)


def test_damaged_and_foreign_records_are_rejected(tmp_path):
    run_study(tiny(), out=tmp_path)
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    place = lines[-1].index(b'"chebyshev": 0.') + 15
    path.write_bytes(b"".join(lines[:-1]) + lines[-1][:place] + b"9" + lines[-1][place + 1 :])
    with pytest.raises(RecordsError, match=r"Line 4 of .* is not a record: the file was changed or damaged"):
        StudyResults.load(tmp_path)
    with pytest.raises(RecordsError, match="Line 4 of"):
        run_study(tiny(), out=tmp_path, resume=True)
    path.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b', "checksum"', b', "check"'))
    with pytest.raises(RecordsError, match="Line 4 of"):
        StudyResults.load(tmp_path)
    (header, *others), _ = read_records_of(whole, tmp_path)
    path.write_bytes(encode(header | {"study": header["study"] | {"seed": 9}}) + b"".join(map(encode, others)))
    with pytest.raises(RecordsError, match="is not the one that its fingerprint belongs to"):
        StudyResults.load(tmp_path)
    others[-1] = others[-1] | {"fingerprint": "0" * 16}
    path.write_bytes(encode(header) + b"".join(map(encode, others)))
    with pytest.raises(RecordsError, match="A record of d belongs to other data"):
        StudyResults.load(tmp_path)


def read_records_of(content, folder):
    (folder / "copy.jsonl").write_bytes(content)
    return read_records(folder / "copy.jsonl")


def test_a_full_disk_is_one_line_that_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text("datasets = ['artificial']\ncandidates = ['Mean']\nmeasures = ['clark']")
    writes = []

    def full(descriptor, content, write=os.write):
        writes.append(content)
        if len(writes) > 2:
            raise OSError(28, "No space left on device")
        return write(descriptor, content)

    with monkeypatch.context() as patch:
        patch.setattr("skldl.experiments.store.os.write", full)
        assert main(["bench", "s.toml", "--jobs", "1", "--out", "run"]) == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said
    assert "--resume" in said
    monkeypatch.setattr("skldl.report.write_report", lambda folder, results: "")
    assert main(["bench", "--resume", "--out", "run", "--jobs", "1"]) == 0
    with monkeypatch.context() as patch:
        patch.setattr("skldl.report.write_report", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
        assert main(["bench", "--resume", "--out", "run", "--jobs", "1"]) == 2
    assert "disk of run is full" in capsys.readouterr().err

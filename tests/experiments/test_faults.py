"""Failing tasks: settings and candidates that fail, lack of memory, processes that are killed or do not end."""

import os
import signal
import sys
import time
import tomllib
from dataclasses import replace

import cloudpickle
import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.neighbors import KNeighborsRegressor

from skldl import MeanDistribution
from skldl.exceptions import StudyError
from skldl.experiments import Candidate, Study, run_study, tasks


class Moody(BaseEstimator):
    """Fails for some settings, or returns what is no distribution."""

    def __init__(self, mood="good"):
        self.mood = mood

    def fit(self, X, y):
        if self.mood == "bad":
            raise ValueError("no way\nat all")
        self.y_ = np.asarray(y)
        return self

    def predict(self, X):
        rows = np.tile(self.y_.mean(axis=0), (len(X), 1))
        return rows * 2 if self.mood == "odd" else rows


@pytest.mark.parametrize("protocol", ["nested", "geng2016"])
def test_settings_that_fail_are_not_chosen(protocol, problem):
    candidate = Candidate("m", Moody(), grid={"mood": ("bad", "odd", "good")})
    found = run_study(Study([problem("d")], [candidate], folds=3, protocol=protocol))
    assert not found.failures
    assert found.chosen("d", "m") == [{"mood": "good"}] * 3
    reported = found.selections[0] if protocol == "geng2016" else found.evaluations[0]["selection"]
    assert [str(value) for value in reported["values"][:2]] == ["nan", "nan"]
    assert "ValueError: no way" in reported["errors"][0]
    assert "sums to 2" in reported["errors"][1]


@pytest.mark.parametrize("protocol", ["nested", "geng2016"])
def test_a_candidate_without_a_setting_that_works_fails_and_the_study_goes_on(protocol, problem):
    candidate = Candidate("m", Moody(), grid={"mood": ("bad", "odd")})
    found = run_study(Study([problem("d")], [candidate], folds=3, protocol=protocol))
    assert found.state("d", "m") == "failed 3/3"
    assert all("No setting of m could be fitted" in record["error"] for record in found.failures)
    assert found.state("d", "Mean") == ""


def test_failures_are_recorded_with_their_reason(failing_results):
    records = [r for r in failing_results.evaluations if r["candidate"] == "Broken"]
    assert len(records) == 6
    assert all(record["status"] == "failed" for record in records)
    assert "ValueError: Expected n_neighbors" in records[0]["error"]
    assert "Traceback" in records[0]["traceback"]
    assert np.isnan(failing_results.means("clark")[:, 1]).all()


class Forgetful(MeanDistribution):
    """Has no memory left for one setting, and ends the program in another."""

    def __init__(self, mood="good"):
        self.mood = mood

    def fit(self, X, y, sample_weight=None):
        if self.mood == "memory":
            raise MemoryError("too big")
        if self.mood == "exit":
            sys.exit(3)
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("protocol", ["nested", "geng2016"])
def test_lack_of_memory_never_chooses_a_setting(protocol, problem, tmp_path):
    study = Study(
        [problem("d")], [Candidate("m", Forgetful(), grid={"mood": ("memory", "good")})], folds=3, protocol=protocol
    )
    found = run_study(study, out=tmp_path)
    assert found.state("d", "m") == "failed 3/3"
    assert {record["fault"] for record in found.failures} == {"machine"}
    assert all("MemoryError: too big" in record["error"] for record in found.failures)
    assert found.state("d", "Mean") == ""
    size = len(found.evaluations)
    again = run_study(study, out=tmp_path, resume=True, retry_failed=True)
    assert len(again.evaluations) == size
    assert (tmp_path / "records.jsonl").read_bytes().count(b"\n") > 2 + size + len(found.selections)


@pytest.mark.parametrize("protocol", ["nested", "geng2016"])
def test_an_estimator_that_calls_exit_does_not_end_the_study(protocol, problem):
    data = problem("d")
    found = run_study(Study([data], [Candidate("m", Forgetful(mood="exit"))], folds=3, protocol=protocol))
    assert found.state("d", "m") == "failed 3/3"
    assert found.failures[0]["error"] == "SystemExit: the estimator called exit(3)"
    assert found.failures[0]["fault"] == "model"
    grid = Candidate("m", Forgetful(), grid={"mood": ("exit", "good")})
    found = run_study(Study([data], [grid], folds=3, protocol=protocol))
    assert not found.failures
    assert {error for _, error in found.failed_settings} == {"{'mood': 'exit'}: the estimator called exit(3)"}


# Another package installs its own "tests", under which worker processes would look for the classes of this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


class Deadly(MeanDistribution):
    """Kills its process, as the system does when memory runs out; only the first time, if there is a file."""

    def __init__(self, mark=None):
        self.mark = mark

    def fit(self, X, y, sample_weight=None):
        if self.mark is None or not os.path.exists(self.mark):
            if self.mark is not None:
                open(self.mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y, sample_weight)


class Sleepy(KNeighborsRegressor):
    """Does not end in time."""

    def fit(self, X, y):
        time.sleep(60)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is of POSIX")
def test_a_task_whose_process_dies_is_tried_once_more_and_the_study_goes_on(tmp_path, problem):
    candidates = [Candidate("once", Deadly(str(tmp_path / "mark"))), Candidate("dead", Deadly())]
    candidates.append(Candidate("Mean", "skldl:MeanDistribution"))
    found = run_study(Study([problem("d")], candidates, protocol="holdout"), n_jobs=2)
    assert [found.state("d", name) for name in found.candidates] == ["", "failed 1/1", ""]
    (record,) = found.failures
    assert record["error"] == "Its process died twice, the second time alone: signal 9 (Killed). Out of memory?"
    assert record["fault"] == "machine"


def test_a_huge_time_limit(problem):
    study = Study([problem("d")], [Candidate("Mean", "skldl:MeanDistribution")], protocol="holdout", timeout=10**30)
    assert not run_study(study).failures  # the system cannot wait that long, but a shorter time again and again


@pytest.mark.slow
def test_a_task_that_does_not_end_is_recorded(tmp_path, problem):
    study = Study([problem("d")], [Candidate("late", Sleepy())], protocol="holdout", timeout=1)
    found = run_study(study, out=tmp_path)
    late = next(record for record in found.failures if record["candidate"] == "late")
    assert (late["error"], late["fault"]) == ("Timeout: not done after 1 s", "timeout")
    assert tomllib.loads((tmp_path / "study.toml").read_text())["timeout"] == 1
    resumed = run_study(replace(study, timeout=None), out=tmp_path, resume=True)  # a time limit changes no result
    assert resumed.evaluations == found.evaluations
    with pytest.raises(StudyError, match="timeout=0 must be a number of seconds above 0"):
        replace(study, timeout=0)


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_memory_where_its_maximum_cannot_be_reset(monkeypatch, platform):
    def fail(*arguments, **options):
        raise PermissionError("no")

    monkeypatch.setattr("builtins.open", fail)
    monkeypatch.setattr(tasks.sys, "platform", platform)
    with tasks.peak_memory() as found:
        pass
    assert found["mib"] > 0
    monkeypatch.setattr(tasks, "resource", None)
    with tasks.peak_memory() as found:
        pass
    assert found["mib"] is None

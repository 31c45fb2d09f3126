"""Studies that are killed: with SIGKILL at random moments, and on a cluster whose workers die."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from skldl.exceptions import StudyError
from skldl.experiments import StudyResults, run_study
from skldl.experiments.outputs import write_outputs
from skldl.experiments.study_file import parse_study

STUDY = """
protocol = "geng2016"
folds = 4
measures = ["clark"]
datasets = ["data.csv"]

[[candidates]]
name = "kNN"
estimator = "slow_models:Slow"
grid = { n_neighbors = [1, 5] }
"""
MODELS = """
import time
from sklearn.neighbors import KNeighborsRegressor
class Slow(KNeighborsRegressor):
    def fit(self, X, y):
        time.sleep(0.03)
        return super().fit(X, y)
"""
PROGRAM = """
import sys
from skldl.experiments import load_study, run_study
if __name__ == "__main__":
    run_study(load_study("study.toml", trust=["slow_models"]), out="killed", resume=True, n_jobs=int(sys.argv[1]))
"""


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    lines = ["a,label_x,label_y", *(f"{i % 17},{0.2 + i % 13 / 30},{0.8 - i % 13 / 30}" for i in range(80))]
    (tmp_path / "data.csv").write_text("\n".join(lines))
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "slow_models.py").write_text(MODELS)
    (tmp_path / "program.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    monkeypatch.setenv("PYTHONPATH", path)
    return tmp_path


def tables(folder):
    write_outputs(StudyResults.load(folder), folder)
    files = [path for path in folder.rglob("*.*") if path.name != "records.jsonl" and not path.name.startswith("time.")]
    return {path.name: path.read_bytes() for path in files if path.suffix != ".torn"}


def keep_killing(n_jobs, kills, seed):
    chance = random.Random(seed)
    records = "killed/records.jsonl"
    for _ in range(kills):
        process = subprocess.Popen([sys.executable, "program.py", str(n_jobs)], start_new_session=True)
        deadline = time.monotonic() + 60
        before = os.path.getsize(records) if os.path.exists(records) else 0
        while process.poll() is None and time.monotonic() < deadline:
            if os.path.exists(records) and os.path.getsize(records) > before:  # it has begun to write
                break
            time.sleep(0.005)
        time.sleep(chance.random() * 0.2)
        recorded = Path(records).read_bytes()
        with suppress(ProcessLookupError):  # it may have come to its end
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        after = Path(records).read_bytes()
        assert after.startswith(recorded)  # nothing that was written is lost


def finish_and_compare(workplace):
    study = parse_study(STUDY, trust=["slow_models"])
    run_study(study, out="whole")
    before = Path("killed/records.jsonl").read_bytes()
    run_study(study, out="killed", resume=True)
    whole = Path("whole/records.jsonl").read_bytes()
    after = Path("killed/records.jsonl").read_bytes()
    assert after.startswith(before[: before.rfind(b"\n") + 1])
    assert after.count(b"\n") == whole.count(b"\n")  # nothing ran twice
    assert tables(workplace / "killed") == tables(workplace / "whole")


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is of POSIX")
def test_a_killed_study_resumes_where_it_was(workplace):
    keep_killing(1, kills=2, seed=0)
    finish_and_compare(workplace)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is of POSIX")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_study_killed_many_times_resumes_where_it_was(workplace, n_jobs):
    keep_killing(n_jobs, kills=8, seed=n_jobs)
    finish_and_compare(workplace)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of a cluster whose worker was shot
def test_a_cluster_that_loses_a_worker_gives_the_numbers_of_a_serial_run(workplace):
    import distributed

    study = parse_study(STUDY, trust=["slow_models"])
    serial = run_study(study, out="whole")
    with distributed.LocalCluster(n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        victims = [worker.pid for worker in cluster.workers.values()]
        shot = threading.Event()

        def shoot(progress):
            if progress.done >= 3 and not shot.is_set():
                shot.set()
                os.kill(victims[0], signal.SIGKILL)

        on_cluster = run_study(study, out="cluster", scheduler=cluster.scheduler_address, on_progress=shoot)
        assert shot.is_set()
    assert not on_cluster.failures
    assert tables(workplace / "cluster") == tables(workplace / "whole")
    for one, other in zip(serial.evaluations, on_cluster.evaluations, strict=True):
        assert one["measures"] == other["measures"]
        assert one["params"] == other["params"]


def processes_of(mark):
    """Numbers of the running processes whose command line holds a text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (entry / "cmdline").read_bytes() and "Z" not in (entry / "stat").read_text().split()[2]:
                found.append(int(entry.name))
    return found


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")
def test_sigterm_ends_the_workers_too(workplace):
    (workplace / "slow_models.py").write_text(MODELS.replace("0.03", "600"))
    program = "import sys; from skldl.cli import main; sys.exit(main())"
    command = ["bench", "study.toml", "--trust", "slow_models", "--jobs", "2", "--out", "killed"]
    process = subprocess.Popen([sys.executable, "-c", program, *command])
    mark = str(workplace)  # in the path that is handed to each worker
    deadline = time.monotonic() + 120
    while len(processes_of(f'skldl.utils.processes import serve; serve()\0["{mark}')) < 2:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    workers = [number for number in processes_of(mark) if number != process.pid]
    assert len(workers) >= 2
    process.terminate()
    assert process.wait(timeout=60) == 143
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{number}").exists() for number in workers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not processes_of(mark)


# a cluster that is torn down leaves sockets and loops to the garbage collector, which Dask does not close itself
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_cluster_without_workers_ends_with_what_to_do(workplace, monkeypatch):
    import distributed

    monkeypatch.setattr("skldl.experiments.cluster.SECONDS_WITHOUT_WORKERS", 1.0)
    monkeypatch.setattr("skldl.experiments.cluster.SECONDS_BETWEEN_CHECKS", 0.2)
    study = parse_study(STUDY, trust=["slow_models"])
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        with pytest.raises(
            StudyError, match=r"has had no worker for 1 s.*safe.*dask worker .*continue with resume=True"
        ):
            run_study(study, out="cluster", scheduler=address)
    assert not run_study(study, out="cluster", resume=True).failures


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")  # as above
def test_a_scheduler_that_is_lost_ends_the_study_and_loses_nothing(workplace, monkeypatch):
    monkeypatch.setattr("skldl.experiments.cluster.SECONDS_WITHOUT_WORKERS", 3.0)
    program = (
        "import time; from distributed import LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    options = dict(processes=False, dashboard_address=None, protocol='tcp')\n"
        "    c = LocalCluster(n_workers=1, threads_per_worker=1, **options)\n"
        "    print(c.scheduler_address, flush=True); time.sleep(600)\n"
    )
    (workplace / "cluster_program.py").write_text(program)
    process = subprocess.Popen([sys.executable, "cluster_program.py"], stdout=subprocess.PIPE, text=True)
    address = process.stdout.readline().strip()

    def shoot(progress):
        if progress.done >= 2:
            process.kill()

    study = parse_study(STUDY, trust=["slow_models"])
    try:
        with pytest.raises(StudyError, match=r"^The Dask scheduler at .*continue with resume=True\.$"):  # in one line
            run_study(study, out="cluster", scheduler=address, on_progress=shoot)
    finally:
        process.kill()
        process.communicate()
    resumed = run_study(study, out="cluster", resume=True)
    assert not resumed.failures

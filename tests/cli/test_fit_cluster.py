"""`skldl fit --scheduler`: the model of one process, fitted by the workers of a Dask cluster."""

import os
import signal

import numpy as np
import pandas as pd
import pytest

import skldl
from skldl.cli import fit as command

distributed = pytest.importorskip("distributed", reason="distributed is in the extra dask")
pytestmark = [
    pytest.mark.slow,
    # a cluster that is torn down leaves sockets and loops to the garbage collector, which Dask does not close itself
    pytest.mark.filterwarnings("ignore:.*:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
FIT = "--labels 'r_*' --model sa-bfgs-cv --set alphas=[0.1,0.001]"


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes, in another folder than the command."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=900)
    yes = 1 / (1 + np.exp(-x - 0.3 * rng.normal(size=900)))
    table = pd.DataFrame({"x": x, "town": rng.choice(["Ulm", "Bonn"], 900), "r_no": 1 - yes, "r_yes": yes})
    (tmp_path / "parts").mkdir()
    for place in range(3):
        table.iloc[300 * place : 300 * place + 300].to_csv(f"parts/{place}.csv", index=False)
    return tmp_path


def test_the_model_is_the_same(here, cluster, cli):
    cli(f"fit parts {FIT} --stream --out one.skldl")
    cli(f"fit parts {FIT} --scheduler {cluster.scheduler_address} --out many.skldl")
    one, many = skldl.load("one.skldl"), skldl.load("many.skldl")
    np.testing.assert_allclose(many[-1].coef_, one[-1].coef_, rtol=0, atol=1e-9)
    assert not list(here.glob("*.resume"))


def test_a_worker_that_is_killed_changes_nothing(here, cluster, monkeypatch, cli):
    cli(f"fit parts {FIT} --scheduler {cluster.scheduler_address} --out before.skldl")
    real, killed = command.fit_table, []

    def with_a_kill(*table, **arguments):
        """Kill a worker when the fifth pass reports its progress."""
        report = arguments["on_progress"]

        def show(text):
            report(text)
            if text.startswith("fit, pass 5") and not killed:
                with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
                    killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        return real(*table, **(arguments | {"on_progress": show}))

    monkeypatch.setattr(command, "fit_table", with_a_kill)
    cli(f"fit parts {FIT} --scheduler {cluster.scheduler_address} --out after.skldl")
    assert len(killed) == 1
    before, after = skldl.load("before.skldl"), skldl.load("after.skldl")
    assert (before[-1].coef_ == after[-1].coef_).all()


def test_no_scheduler(here, monkeypatch, cli):
    monkeypatch.setattr("skldl.experiments.cluster.SECONDS_TO_CONNECT", 1)
    printed = cli(f"fit parts {FIT} --scheduler tcp://127.0.0.1:9 --out m.skldl", status=2)
    assert "No Dask scheduler answers at tcp://127.0.0.1:9" in printed.err
    assert not list(here.glob("m.skldl*"))

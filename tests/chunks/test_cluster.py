"""Fits on real worker processes: the same numbers, blocks that stay where they are, and a worker that is killed."""

import os
import signal
import threading
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skldl import SABFGS, SABFGSCV, SAIIS, MeanDistribution, PTBayes
from skldl.chunks import ArrayRows, ClusterRows, DaskRows, ParquetRows, RecordedRows, evaluate
from skldl.chunks import _dask as module
from skldl.exceptions import DataError, EmptyDataError, FeatureMismatchError, RowSumError, SampleWeightError, TableError

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),  # few iterations are enough
    # sockets that distributed leaves open when a cluster ends are no matter of these tests
    pytest.mark.filterwarnings("ignore:.*:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Sending large graph"),  # small tables stand in Dask's graph itself
]


@pytest.fixture(scope="module")
def client():
    """Two worker processes, each with a nanny that starts it again."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def threads():
    """A cluster inside this process, for what needs no processes."""
    with distributed.Client(
        processes=False,
        n_workers=2,
        threads_per_worker=1,
        dashboard_address=":0",
        silence_logs=50,
        set_as_default=False,
    ) as client:
        yield client


def _dask(X, D, weight=None, size=70, client=None):
    blocks = [da.from_array(values, chunks=(size, *values.shape[1:])) for values in (X, D)]
    return DaskRows(*blocks, None if weight is None else da.from_array(weight, chunks=size), client=client)


def test_in_one_process(table, parquet_folder, threads):
    X, D, weight = table(250)
    folder = parquet_folder(X, D, weight, row_group_size=30)
    parquet = ParquetRows(folder, labels="r_*", weight="w", batch_rows=20)
    assert parquet._tasks(None) == []
    expected = MeanDistribution().fit(X, D, weight)
    rows = ClusterRows(parquet, threads)
    found = MeanDistribution().fit(rows)
    np.testing.assert_allclose(found.distribution_, expected.distribution_, rtol=1e-13)
    assert list(found.feature_names_in_) == [f"x{k}" for k in range(6)]
    assert rows.n_rows == 250
    np.testing.assert_array_equal(np.concatenate([X for X, _, _ in rows]), X)
    on_dask = _dask(X, D, weight, client=threads)
    np.testing.assert_allclose(MeanDistribution().fit(on_dask).distribution_, expected.distribution_, rtol=1e-13)
    assert on_dask.n_passes == 1
    assert on_dask.n_rows == 250
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.concat([pd.read_parquet(folder / f"part-{k}.parquet") for k in range(3)], ignore_index=True)
    on_frame = DaskRows(dd.from_pandas(frame, npartitions=3), weight="w", labels="r_*", client=threads)
    found = MeanDistribution().fit(on_frame)
    np.testing.assert_allclose(found.distribution_, expected.distribution_, rtol=1e-13)
    assert list(found.label_names_) == [f"r_{k}" for k in range(4)]
    assert evaluate(expected, rows) == pytest.approx(evaluate(expected, parquet), rel=1e-12)
    few = ClusterRows(_dask(X[:30, :6].repeat(8, axis=1), D[:30], size=7), threads)  # fewer rows than columns
    np.testing.assert_array_equal(
        SABFGS(1e-3).fit(few).coef_, SABFGS(1e-3).fit(X[:30, :6].repeat(8, axis=1), D[:30]).coef_
    )


def test_bad_input_is_said_where_the_workers_find_it(table, parquet_folder, threads):
    X, D, _ = table(250)
    with pytest.raises(DataError, match="cannot read a ArrayRows"):
        ClusterRows(ArrayRows(X, D), threads)
    wrong = D.copy()
    wrong[100] *= 2
    with pytest.raises(RowSumError, match="In block 1 of the Dask collection: Row 30 of y sums to 2"):
        MeanDistribution().fit(ClusterRows(_dask(X, wrong), threads))
    folder = parquet_folder(X, wrong, row_group_size=30)
    with pytest.raises(RowSumError, match=r"part-1.parquet: Row 16 of y sums to 2"):
        MeanDistribution().fit(ClusterRows(ParquetRows(folder, labels="r_*", batch_rows=30), threads))
    rows = ParquetRows(parquet_folder(X, D, row_group_size=30), labels="r_*")
    whole = (folder / "part-1.parquet").read_bytes()
    (folder / "part-1.parquet").write_bytes(whole[:100])
    with pytest.raises(TableError, match=r"part-1.parquet cannot be read as Parquet"):
        MeanDistribution().fit(ClusterRows(rows, threads))
    with pytest.raises(SampleWeightError, match="zero for every row"):
        MeanDistribution().fit(ClusterRows(_dask(X, D, np.zeros(250)), threads))
    import dask

    ragged = _dask(X, D)
    ragged.blocks[2] = (dask.delayed(X[140:210, :5]), *ragged.blocks[2][1:])
    with pytest.raises((DataError, FeatureMismatchError), match="In block 2"):
        MeanDistribution().fit(ClusterRows(ragged, threads))
    ragged.blocks[2] = (dask.delayed(X[:0]), dask.delayed(D[:0]), None)
    with pytest.raises(EmptyDataError, match="the chunk is empty"):
        MeanDistribution().fit(ClusterRows(ragged, threads))
    ragged.blocks.clear()
    with pytest.raises(EmptyDataError, match="holds no rows"):
        MeanDistribution().fit(ClusterRows(ragged, threads))


def test_a_cluster_without_workers_is_an_error(table, monkeypatch):
    monkeypatch.setattr(module, "POLL_SECONDS", 0.1)
    monkeypatch.setattr(module, "MAX_SECONDS_WITHOUT_WORKERS", 0.3)
    X, D, _ = table(20)
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0", silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(ConnectionError, match="no worker for"),
    ):
        MeanDistribution().fit(ClusterRows(_dask(X, D), client))


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        SABFGS(1e-3, fit_intercept=True),
        SABFGSCV([1e-3, 0.1], cv=3),
        SAIIS(max_iter=3),
        PTBayes("full"),
        MeanDistribution(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_numbers_are_those_in_memory_and_repeat(model, table, parquet_folder, client):
    X, D, weight = table(700)
    expected = clone(model).fit(X, D, weight).predict(X)
    folder = parquet_folder(X, D, weight, row_group_size=50)
    found = []
    for _ in range(2):
        rows = ClusterRows(ParquetRows(folder, labels="r_*", weight="w", batch_rows=40), client)
        found.append(clone(model).fit(rows).predict(rows))
        np.testing.assert_allclose(found[-1], expected, atol=1e-9)
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(clone(model).fit(_dask(X, D, weight)).predict(X), expected, atol=1e-9)


@pytest.mark.slow
def test_blocks_stay_on_their_workers(table, client):
    X, D, _ = table(700)
    rows = _dask(X, D)
    SABFGS(1e-3, fit_intercept=True).fit(rows)
    on_cluster = rows._on_cluster
    before = client.who_has(on_cluster._blocks)
    assert all(len(holders) == 1 for holders in before.values())
    assert len({holder for holders in before.values() for holder in holders}) == 2  # both workers hold some
    SABFGS(1e-2, fit_intercept=True).fit(rows)
    assert client.who_has(on_cluster._blocks) == before


@pytest.mark.slow
def test_a_killed_worker_changes_nothing_but_the_time(table, parquet_folder, client, tmp_path):
    X, D, weight = table(700)
    folder = parquet_folder(X, D, weight, row_group_size=50)
    model = SAIIS(max_iter=12)

    def rows():
        return ClusterRows(ParquetRows(folder, labels="r_*", weight="w", batch_rows=40), client)

    expected = clone(model).fit(rows()).coef_
    killed = []

    def kill(passes, _):
        if passes in (2, 5) and len(killed) < 2:
            client.wait_for_workers(2, timeout=60)
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[-1], signal.SIGKILL)

    hit = rows()
    hit.progress = kill
    np.testing.assert_array_equal(clone(model).fit(hit).coef_, expected)
    assert len(killed) == 2
    client.wait_for_workers(2, timeout=60)
    assert not set(killed) & set(client.run(os.getpid).values())

    # in the middle of a pass, and with a record
    hit = RecordedRows(rows(), tmp_path / "record")
    hit.layout  # noqa: B018  # the blocks are read
    found = []

    def slowly(chunk):  # inside, because the workers cannot import this file
        time.sleep(0.3)
        return (chunk.weights() @ chunk.D,)

    thread = threading.Thread(target=lambda: found.append(hit.sum(slowly)))
    thread.start()
    time.sleep(1.0)
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    thread.join(timeout=120)
    np.testing.assert_allclose(found[0][0], (weight[:, None] * D).sum(axis=0), rtol=1e-12)

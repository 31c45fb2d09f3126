"""Sources of rows in chunks: each gives the same rows, again and again, with names."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from skldl import MeanDistribution
from skldl.chunks import ArrayRows, DaskRows, IterableRows, ParquetRows
from skldl.exceptions import (
    DataError,
    DatasetError,
    DatasetNotFoundError,
    EmptyDataError,
    FeatureMismatchError,
    LabelMismatchError,
    LengthMismatchError,
    NonFiniteError,
    NotNumericError,
    RowSumError,
    SampleWeightError,
    TableError,
)


def _all(rows, labels=True):
    chunks = list(rows.read(labels=labels))
    X = [chunk.X for chunk in chunks]
    X = sparse.vstack(X).toarray() if sparse.issparse(X[0]) else np.concatenate(X)
    D = None if chunks[0].D is None else np.concatenate([chunk.D for chunk in chunks])
    weight = None if chunks[0].weight is None else np.concatenate([chunk.weight for chunk in chunks])
    return X, D, weight


def _assert_same(rows, X, D, weight):
    for _ in range(2):  # twice: rows can be read again
        found = _all(rows)
        for values, expected in zip(found, (X, D, weight), strict=True):
            np.testing.assert_array_equal(values, expected)
        assert rows.n_rows == len(X)
    assert _all(rows, labels=False)[1] is None


def test_arrays_memory_maps_and_sparse_matrices(table, tmp_path):
    X, D, weight = table(100)
    D = np.round(D * 64) / 64  # sums of one to the last digit
    D[:, 0] += 1 - D.sum(axis=1)
    _assert_same(ArrayRows(X, D, weight, chunk_rows=30), X, D, weight)
    _assert_same(ArrayRows(sparse.csr_matrix(X), D, weight, chunk_rows=30), X, D, weight)
    _assert_same(ArrayRows(X.tolist(), D.tolist(), weight.tolist(), chunk_rows=1000), X, D, weight)
    for name, values in (("X", X), ("D", D), ("w", weight)):
        np.save(tmp_path / name, values)
    rows = ArrayRows(tmp_path / "X.npy", str(tmp_path / "D.npy"), tmp_path / "w.npy", chunk_rows=7)
    assert isinstance(rows.X, np.memmap)
    _assert_same(rows, X, D, weight)


def test_names_come_from_data_frames_or_are_given(table):
    X, D, _ = table(10, 3, 2)
    frame, labels = pd.DataFrame(X, columns=list("abc")), pd.DataFrame(D, columns=["no", "yes"])
    rows = ArrayRows(frame, labels, chunk_rows=4)
    assert rows.feature_names == ("a", "b", "c")
    assert rows.label_names == ("no", "yes")
    rows = ArrayRows(X, D, feature_names=list("abc"), label_names=["no", "yes"])
    model = MeanDistribution().fit(rows)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    assert list(model.label_names_) == ["no", "yes"]
    assert model.n_features_in_ == 3
    assert list(MeanDistribution().fit(ArrayRows(X, D)).label_names_) == ["label_0", "label_1"]
    with pytest.raises(LengthMismatchError, match="label_names has 1 names for 2 columns"):
        MeanDistribution().fit(ArrayRows(X, D, label_names=["no"]))


def test_iterables(table):
    X, D, weight = table(50)
    chunks = [(X[:20], D[:20], weight[:20]), (X[20:], D[20:], weight[20:])]
    for source in (chunks, lambda: iter(chunks)):
        rows = IterableRows(source)
        found = _all(rows)
        np.testing.assert_array_equal(found[0], X)
        assert rows.n_rows == 50
    unlabelled = IterableRows([X[:20], X[20:]])
    assert unlabelled.n_labels is None
    np.testing.assert_array_equal(_all(unlabelled)[0], X)


def test_parquet(table, parquet_folder):
    X, D, weight = table(250)
    folder = parquet_folder(X, D, weight)
    (folder / "_metadata.parquet").write_bytes(b"not a table")  # hidden: left alone
    for path in (folder, f"{folder}/part-*.parquet", [folder / f"part-{k}.parquet" for k in range(3)]):
        rows = ParquetRows(path, labels="r_*", weight="w", batch_rows=33)
        found = _all(rows)
        np.testing.assert_array_equal(found[0], X)
        np.testing.assert_allclose(found[1], D, atol=1e-15)
        np.testing.assert_array_equal(found[2], weight)
        assert (rows.n_rows, rows.n_features, rows.n_labels) == (250, 6, 4)
        assert rows.label_names == ("r_0", "r_1", "r_2", "r_3")
    assert ParquetRows(folder, labels="r_", weight="w").label_names == rows.label_names  # as for tables in memory
    some = ParquetRows(folder, labels=["r_1", "r_0", "r_2", "r_3"], features=["x3", "x1"])
    np.testing.assert_array_equal(_all(some)[0], X[:, [3, 1]])
    assert some.label_names == ("r_1", "r_0", "r_2", "r_3")
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(pq.read_table(folder / "part-0.parquet").slice(0, 0), folder / "part-3.parquet")
    assert len(_all(ParquetRows(folder, labels="r_*", weight="w"))[0]) == 250  # a file without rows is passed over
    with pytest.raises(EmptyDataError, match=r"no rows in .*part-3"):
        ParquetRows(folder / "part-3.parquet", labels="r_*")
    unlabelled = ParquetRows(folder, features="x*")
    assert unlabelled.n_labels is None
    assert _all(unlabelled)[0].shape == (250, 6)


def test_parquet_in_single_precision_stays_so(table, parquet_folder):
    X, D, _ = table(50)
    rows = ParquetRows(parquet_folder(X.astype(np.float32), D, n_files=1), labels="r_*")
    assert next(rows.read()).X.dtype == np.float32


def test_dask_arrays_and_frames(table):
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    X, D, weight = table(90)
    rows = DaskRows(da.from_array(X, chunks=(40, 2)), da.from_array(D, chunks=(30, 4)), da.from_array(weight, chunks=9))
    found = _all(rows)
    np.testing.assert_array_equal(found[0], X)
    np.testing.assert_array_equal(found[2], weight)
    frame = pd.DataFrame(
        np.column_stack([X, D, weight]), columns=[*(f"x{k}" for k in range(6)), *(f"r_{k}" for k in range(4)), "w"]
    )
    rows = DaskRows(dd.from_pandas(frame, npartitions=3), labels="r_*", weight="w")
    found = _all(rows)
    np.testing.assert_array_equal(found[0], X)
    np.testing.assert_array_equal(found[2], weight)
    assert rows.feature_names == tuple(f"x{k}" for k in range(6))
    assert rows.label_names == ("r_0", "r_1", "r_2", "r_3")
    with pytest.raises(DataError, match="Both labels= and y"):
        DaskRows(dd.from_pandas(frame, npartitions=3), da.from_array(D), labels="r_*")
    with pytest.raises(DataError, match="not a Dask array"):
        DaskRows(X, D)
    with pytest.raises(DataError, match="y or weight is a ndarray"):
        DaskRows(da.from_array(X), D)
    with pytest.raises(LengthMismatchError, match="90 rows and y or weight has 80"):
        DaskRows(da.from_array(X), da.from_array(D[:80]))
    with pytest.raises(DataError, match="name the columns of a DataFrame"):
        DaskRows(da.from_array(X), labels="r_*")
    frame["city"] = "Nanjing"
    with pytest.raises(NotNumericError, match="'city'"):
        DaskRows(dd.from_pandas(frame, npartitions=3), labels="r_*")


def _read(source, **names):
    return list(IterableRows(source, **names).read())


def test_bad_chunks_are_named(table):
    X, D, weight = table(40)
    good, bad = (X[:20], D[:20]), X[20:].copy()
    with pytest.raises(FeatureMismatchError, match=r"In chunk 1: X has 5 columns, but the chunks before have 6"):
        _read([good, (bad[:, :5], D[20:])])
    with pytest.raises(EmptyDataError, match="In chunk 1: the chunk is empty"):
        _read([good, (X[:0], D[:0])])
    with pytest.raises(RowSumError, match="In chunk 1: Row 3 of y sums to 2, not 1"):
        _read([good, (X[20:], D[20:] * (1 + (np.arange(20) == 3))[:, None])])
    bad[4, 2] = np.nan
    with pytest.raises(NonFiniteError, match=r"In chunk 1: .* row 4, column 2"):
        _read([good, (bad, D[20:])])
    with pytest.raises(NonFiniteError, match=r"In chunk 0: .*Rows in chunks need every degree"):
        _read([(X, np.where(np.arange(4) == 1, np.nan, D))])
    with pytest.raises(LengthMismatchError, match="this chunk has 3 labels, and the chunks before have 4"):
        _read([good, (X[20:], D[20:, :3] / D[20:, :3].sum(axis=1, keepdims=True))])
    with pytest.raises(LengthMismatchError, match="this chunk has no distributions"):
        _read([good, (X[20:],)])
    with pytest.raises(LengthMismatchError, match="this chunk has weights"):
        _read([good, (X[20:], D[20:], weight[20:])])
    with pytest.raises(LengthMismatchError, match="In chunk 0: X has 20 rows and y has 10"):
        _read([(X[:20], D[:10])])
    with pytest.raises(SampleWeightError, match="In chunk 0: sample_weight of row 1 is -1"):
        _read([(X[:2], D[:2], [1.0, -1.0])])
    with pytest.raises(DataError, match="X is a sparse matrix, and in the chunks before it is dense"):
        _read([good, (sparse.csr_matrix(X[20:]), D[20:])])
    frames = [(pd.DataFrame(X[:20]).add_prefix("f"), D[:20]), (pd.DataFrame(X[20:]).add_prefix("g"), D[20:])]
    with pytest.raises(FeatureMismatchError, match="a column 'g0' where the chunks before have 'f0'"):
        _read(frames)
    labelled = [(X[:20], pd.DataFrame(D[:20]).add_prefix("a")), (X[20:], pd.DataFrame(D[20:]).add_prefix("b"))]
    with pytest.raises(LabelMismatchError, match="the labels are b0"):
        _read(labelled)
    with pytest.raises(DataError, match="Chunk 0 has 4 parts"):
        _read([(X, D, weight, weight)])
    with pytest.raises(NotNumericError, match="In chunk 0: X holds 'a' in row 0"):
        _read([(np.array([["a", "b"]], dtype=object), D[:1])])


def test_rows_without_weight_are_left_out_and_all_of_them_are_an_error(table):
    X, D, _ = table(40)
    chunks = [(X[:20], D[:20], np.zeros(20)), (X[20:], D[20:], np.ones(20))]
    np.testing.assert_allclose(MeanDistribution().fit(IterableRows(chunks)).distribution_, D[20:].mean(axis=0))
    with pytest.raises(SampleWeightError, match="zero for every row"):
        MeanDistribution().fit(IterableRows(chunks[:1]))
    with pytest.raises(EmptyDataError, match="holds no rows"):
        MeanDistribution().fit(IterableRows([]))


def test_what_can_be_read_only_once_is_rejected(table):
    X, D, _ = table(40)
    once = iter([(X, D)])
    with pytest.raises(DataError, match=r"which can be read only once. Pass a function"):
        IterableRows(once)
    with pytest.raises(DataError, match="holds no chunks"):
        IterableRows(3)
    rows = IterableRows(lambda: once)
    list(rows.read())
    with pytest.raises(DataError, match="returned the same iterator again"):
        list(rows.read())
    shrinking = [(X[:20], D[:20]), (X[20:], D[20:])]

    def taken():
        while shrinking:
            yield shrinking.pop(0)

    rows = IterableRows(taken)
    list(rows.read())
    with pytest.raises(DataError, match="had 40 rows in the first pass and 0 now"):
        list(rows.read())


def test_parquet_errors_name_the_file(table, parquet_folder):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, D, weight = table(250)
    folder = parquet_folder(X, D, weight)
    middle = folder / "part-1.parquet"
    whole = middle.read_bytes()
    whole_table = pq.read_table(middle)

    def rows(**options):
        return ParquetRows(folder, **{"labels": "r_*", "weight": "w"} | options)

    with pytest.raises(TableError, match=r"part-0.parquet: labels='q_\*': the table has no such column"):
        rows(labels="q_*")
    with pytest.raises(TableError, match="weight='v': the table has no such column"):
        rows(weight="v")
    with pytest.raises(TableError, match=r"column 'r_0' is named as a feature and as a label"):
        rows(features=["x0", "r_0"])
    with pytest.raises(TableError, match="no column is left for features"):
        rows(labels=["x*", "r_*"])
    with pytest.raises(ValueError, match="batch_rows=0"):
        rows(batch_rows=0)
    with pytest.raises(DatasetNotFoundError, match="There is no file"):
        ParquetRows(folder / "nothing", labels="r_*")
    with pytest.raises(DatasetNotFoundError, match="No Parquet file was named"):
        ParquetRows([], labels="r_*")

    middle.write_bytes(whole[:400])  # cut off: the foot is gone
    with pytest.raises(TableError, match=r"part-1.parquet cannot be read as Parquet"):
        rows()
    damaged = bytearray(whole)
    damaged[60:1500] = bytes(1440)  # the foot is whole, the pages are not
    middle.write_bytes(damaged)
    with pytest.raises((TableError, DataError), match=r"part-1.parquet"):
        MeanDistribution().fit(rows())

    pq.write_table(whole_table.drop(["w"]), middle)
    with pytest.raises(TableError, match=r"part-1.parquet lacks the column 'w'"):
        rows()
    pq.write_table(whole_table.rename_columns(["x0", "x0", *whole_table.column_names[2:]]), middle)
    with pytest.raises(TableError, match=r"part-1.parquet: two columns are named 'x0'"):
        ParquetRows(middle, labels="r_*", weight="w")
    pq.write_table(whole_table.drop(["x2"]), middle)
    with pytest.raises(TableError, match=r"part-1.parquet lacks the column 'x2'"):
        rows()
    pq.write_table(whole_table.append_column("extra", pa.array(np.zeros(len(whole_table)))), middle)
    with pytest.raises(TableError, match=r"part-1.parquet has a column 'extra'"):
        rows()
    assert rows(features="x*").n_rows == 250  # named features: others do not matter
    text = whole_table.set_column(0, "x0", pa.array(["a"] * len(whole_table)))
    pq.write_table(text, middle)
    with pytest.raises(NotNumericError, match=r"Column 'x0' of .*part-1.parquet holds string.*skldl fit --stream"):
        rows()
    holes = whole_table.set_column(0, "x0", pa.array([None if k == 9 else 1.0 for k in range(len(whole_table))]))
    pq.write_table(holes, middle)
    with pytest.raises(NonFiniteError, match=r"part-1.parquet: column 'x0' has no value in row 9"):
        MeanDistribution().fit(rows())
    wrong = whole_table["r_0"].to_numpy().copy()
    wrong[70] += 0.5
    pq.write_table(whole_table.set_column(whole_table.schema.get_field_index("r_0"), "r_0", pa.array(wrong)), middle)
    with pytest.raises(RowSumError, match=r"part-1.parquet: Row 70 of y sums to 1.5"):
        MeanDistribution().fit(rows(batch_rows=30))
    middle.write_bytes(whole)
    middle.rename(folder / "part-9.parquet")
    found = rows()
    (folder / "part-9.parquet").unlink()
    with pytest.raises(DatasetNotFoundError, match="does not exist any more"):
        MeanDistribution().fit(found)


def test_array_errors(table, tmp_path):
    X, D, weight = table(10)
    with pytest.raises(LengthMismatchError, match="X has 10 rows and y has 9"):
        ArrayRows(X, D[:9])
    with pytest.raises(LengthMismatchError, match="X has 10 rows and weight has 3"):
        ArrayRows(X, D, weight[:3])
    with pytest.raises(ValueError, match="chunk_rows=True"):
        ArrayRows(X, D, chunk_rows=True)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        ArrayRows(tmp_path / "no.npy")
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    with pytest.raises(DatasetError, match=r"cannot be opened as a .npy file"):
        ArrayRows(tmp_path / "bad.npy")
    D = D.copy()
    D[7, 0] += 1
    with pytest.raises(RowSumError, match="Row 7 of y"):  # counted in the whole array
        list(ArrayRows(X, D, chunk_rows=3).read())

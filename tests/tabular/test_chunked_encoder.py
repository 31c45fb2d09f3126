"""The encoder fitted to chunks beside the encoder fitted to the whole table."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import skldl
from skldl.chunks import Piece
from skldl.data import TableFile, from_table
from skldl.exceptions import DataError, TableError
from skldl.tabular import FitOptions, TableEncoder, fit_table
from skldl.tabular._chunked_fit import ChunkCache  # that a broken or full disk changes no fit is a contract of its own


def mixed_table(n_rows=3000, seed=0):
    """Numbers, gaps, categories (rare ones among them), truth values, dates and text."""
    rng = np.random.default_rng(seed)
    dates = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D")
    table = pd.DataFrame(
        {
            "income": rng.lognormal(10, 1, n_rows),
            "age": rng.integers(18, 90, n_rows),
            "constant": 1e6 + 0.1,
            "nothing": np.nan,
            "offset": 1e6 + rng.normal(size=n_rows),
            "town": rng.choice([f"town {k}" for k in range(40)], n_rows, p=np.arange(1, 41) / 820),
            "smoker": rng.choice(["yes", "no"], n_rows),
            "since": dates.strftime("%d.%m.%Y"),
            "typed": dates,
            "comment": rng.choice(["all is well here", "nothing works as it should", "", "fine"], n_rows),
            "code": rng.choice([7, 8, 9], n_rows),
        }
    )
    for name in ("income", "town", "smoker", "since", "comment"):
        table.loc[rng.random(n_rows) < 0.1, name] = None
    return table


def chunks_of(table, sizes):
    """Pieces of a table, of the given sizes in turn."""
    start = place = 0
    while start < len(table):
        size = sizes[place % len(sizes)]
        yield table.iloc[start : start + size]
        start, place = start + size, place + 1


def both(table, sizes, **parameters):
    """An encoder of the whole and one of chunks."""
    whole = TableEncoder(**parameters).fit(table)
    return whole, TableEncoder(**parameters).fit_chunks(lambda: chunks_of(table, sizes))


def as_array(features):
    return features.toarray() if hasattr(features, "toarray") else features


@pytest.mark.parametrize("sizes", [pytest.param((3000,), marks=pytest.mark.slow), (700, 11, 256)])
def test_every_kind_of_column(sizes):
    table = mixed_table()
    whole, chunked = both(
        table, sizes, text=["comment"], categories=["code"], max_categories=12, hashed_text=64, text_ngrams="words"
    )
    new = mixed_table(200, seed=1)
    new.loc[:20, ["age", "offset"]] = np.nan  # missing where the training table had no gaps: the medians must agree
    new.loc[5, "town"] = "elsewhere"
    assert chunked.kinds_ == whole.kinds_
    assert chunked.dates_ == whole.dates_
    np.testing.assert_array_equal(chunked.with_missing_, whole.with_missing_)
    assert chunked.ranges_ == whole.ranges_
    assert list(chunked.get_feature_names_out()) == list(whole.get_feature_names_out())
    assert chunked.sources() == whole.sources()
    assert chunked.unusual(new) == whole.unusual(new)
    expected = as_array(whole.transform(new))
    np.testing.assert_allclose(as_array(chunked.transform(new)), expected, rtol=1e-9, atol=1e-9)
    assert type(chunked.transform(new)) is type(whole.transform(new))


@pytest.mark.parametrize("max_categories", [1, 2, 3, 5, 40, 100])
def test_rare_categories_with_ties(max_categories):
    words = [w for w, n in zip("abcdefgh", (3, 1, 4, 1, 5, 3, 3, 1), strict=True) for _ in range(n)]
    table = pd.DataFrame({"word": words})
    whole, chunked = both(table, (5,), max_categories=max_categories)
    assert list(chunked.get_feature_names_out()) == list(whole.get_feature_names_out())
    new = pd.DataFrame({"word": [*"abcdefgh", "new", None]})
    np.testing.assert_array_equal(as_array(chunked.transform(new)), as_array(whole.transform(new)))


@pytest.mark.parametrize("n_categories", [2, 90])
def test_sparse_where_the_whole_is_sparse(n_categories):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=500), "k": rng.integers(0, n_categories, 500).astype(str)})
    table["k"] = "k" + table["k"]
    whole, chunked = both(table, (123,))
    assert type(chunked.transform(table)) is type(whole.transform(table))
    assert hasattr(chunked.transform(table), "toarray") == (n_categories == 90)


CELLS = {
    "numbers and a late word": [1, 2, 3, 4, "x"],
    "numbers as text": ["1", "2.5", " 3", None, "4e2"],
    "codes late": [1, 2, 3, 4, "007"],
    "truth": ["yes", "NO", None, "true", "f"],
    "truth, then a number": ["yes", "no", "yes", 1, 0],
    "typed truth and words": [True, False, "yes", None, "no"],
    "dates": ["31.12.2024", "01.02.2024", None, "3.4.2020", "5.6.2021"],
    "ambiguous dates": ["03/04/2024", "05/06/2024", None, "01/02/2024", "01/02/2020"],
    "decided dates": ["03/04/2024", "05/06/2024", None, "01/02/2024", "31/01/2020"],
    "dates and a word": ["2024-01-01", "2024-01-02", "2024-01-03", "soon", None],
    "datetimes": list(pd.date_range("2024-01-01", periods=5)),
    "nothing": [None] * 5,
    "no datetime": pd.Series([None] * 5, dtype="datetime64[ns]"),
    "no truth value": pd.Series([None] * 5, dtype="boolean"),
    "bool": [True, False, True, True, False],
}


@pytest.mark.parametrize("cells", CELLS.values(), ids=CELLS)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_kinds_are_decided_over_all_chunks(cells, size):
    """Each chunk has the type that a reader would give it; the whole has the type of all of them together."""
    whole = pd.DataFrame({"c": cells}).assign(x=range(5))
    parts = [
        pd.DataFrame({"c": pd.Series(cells[start : start + size])}).assign(x=range(start, min(5, start + size)))
        for start in range(0, 5, size)
    ]
    chunked = TableEncoder().fit_chunks(lambda: iter(parts))
    assert chunked.kinds_ == TableEncoder().fit(whole).kinds_


def with_labels(table):
    share = np.linspace(0.2, 0.8, len(table))
    return table.assign(l_a=share, l_b=1 - share)


IN_CHUNKS = FitOptions(stream=True)


def test_a_column_that_is_mostly_numbers_is_refused_with_file_and_row(tmp_path):
    first = with_labels(pd.DataFrame({"price": [1.5] * 200}))
    first.to_csv(tmp_path / "a.csv", index=False)
    first[:2].assign(price=["3", "unknown"]).to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(TableError, match=r"Column 'price' is mostly numbers, but holds 'unknown' \(row 2 of .*b.csv\)"):
        fit_table(tmp_path, "l_*", options=IN_CHUNKS)


def test_typical_values_and_notes(tmp_path, monkeypatch):
    monkeypatch.setattr("skldl.tabular._chunked_fit.MAX_CHUNK_ROWS", 200)
    table = with_labels(mixed_table(500).drop(columns="comment"))
    table = table.assign(number=range(500), who=[f"person {row}" for row in range(500)])
    table.to_csv(tmp_path / "t.csv", index=False)
    whole = from_table(TableFile(tmp_path / "t.csv").read(), "l_*")
    chunked = fit_table(tmp_path / "t.csv", "l_*", options=IN_CHUNKS)
    assert set(whole.notes) <= set(chunked.warnings)
    for said in ("'since' holds dates", "'nothing': empty", "'number' goes up by one", "'who' holds a different text"):
        assert any(said in note for note in whole.notes)
    assert chunked.description["typical"] == TableEncoder().fit(whole.X).typical_
    assert chunked.description["typical"]["nothing"] is None
    n_held = chunked.description["held_out"]
    assert abs(n_held - 100) < 4 * np.sqrt(500 * 0.2 * 0.8)
    monkeypatch.setattr("skldl.tabular._chunked_fit.MAX_CHUNK_ROWS", 500)  # the same rows are held out
    other = fit_table(tmp_path / "t.csv", "l_*", options=IN_CHUNKS)
    assert other.description["score"]["kullback_leibler"] == pytest.approx(
        chunked.description["score"]["kullback_leibler"], rel=1e-6
    )
    seeded = fit_table(tmp_path / "t.csv", "l_*", options=IN_CHUNKS, random_state=1)
    assert not set(seeded.choice.estimate.losses) & set(other.choice.estimate.losses)


def test_a_table_that_changes_between_the_passes():
    passes = iter([5, 4])
    with pytest.raises(DataError, match="had 5 rows, and now has 4"):
        TableEncoder().fit_chunks(lambda: [pd.DataFrame({"x": np.arange(next(passes))})])


@pytest.mark.parametrize("fit", ["whole", "chunks"])
def test_means_and_scales_are_exact_where_the_mean_is_large(fit):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": 1e9 + rng.normal(size=10_000)})
    encoder = (
        TableEncoder().fit(table) if fit == "whole" else TableEncoder().fit_chunks(lambda: chunks_of(table, (1501,)))
    )
    values = [Fraction(value) for value in table["x"].tolist()]
    exact = sum(values) / len(values)
    assert abs(encoder.means_[0] - float(exact)) <= np.spacing(1e9)
    assert encoder.scales_[0] ** 2 == pytest.approx(
        float(sum((value - exact) ** 2 for value in values) / len(values)), rel=1e-13
    )


MEDIANS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "whole": lambda rng, n: rng.integers(18, 90, n).astype(float),
    "two values": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "constant": lambda rng, n: np.full(n, 3.7),
    "years of seconds": lambda rng, n: rng.uniform(1.6e9, 1.7e9, n).round(),
    "mostly zero": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.lognormal(size=n)),
    "gaps": lambda rng, n: np.where(rng.random(n) < 0.4, np.nan, rng.normal(size=n)),
}


@pytest.mark.parametrize("n_rows", [2000, 2001])
def test_medians_are_exact(n_rows):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: make(rng, n_rows) for name, make in MEDIANS.items()})
    for encoder in both(table, (700, 11)):
        np.testing.assert_array_equal(encoder.medians_, np.nanmedian(table, axis=0))


def test_medians_of_very_many_rows_are_those_of_a_sample(monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({name: make(rng, 20_000) for name, make in MEDIANS.items()})
    monkeypatch.setattr("skldl.tabular._encoder_fit.MEDIAN_ROWS", 4000)
    whole, chunked = both(table, (1999, 1, 700))
    np.testing.assert_array_equal(chunked.medians_, whole.medians_)
    medians = dict(zip(whole.numbers_, whole.medians_, strict=True))
    assert 0 < abs(medians["normal"] - table["normal"].median()) < 5 * 1.2533 / np.sqrt(4000)
    assert medians["mostly zero"] == 0
    monkeypatch.setattr("skldl.tabular._encoder_fit.MEDIAN_CELLS", 1000 * table.shape[1])
    fewer = TableEncoder().fit_chunks(lambda: chunks_of(table, (1999,)))
    assert dict(zip(fewer.numbers_, fewer.medians_, strict=True))["normal"] != medians["normal"]


def test_what_cannot_be_fitted_in_chunks(monkeypatch):
    table = mixed_table(100)
    with pytest.raises(TableError, match=r"'comment' is read in chunks: set hashed_text="):
        TableEncoder(text=["comment"]).fit_chunks(lambda: chunks_of(table, (30,)))
    with pytest.raises(TableError, match="The text column 'nothing' is empty in every row"):
        TableEncoder(text=["nothing"], hashed_text=8).fit_chunks(lambda: chunks_of(table, (30,)))
    with pytest.raises(TableError, match="The table has no rows"):
        TableEncoder().fit_chunks(lambda: iter([table.iloc[:0]]))
    with pytest.raises(TableError, match="different columns"):
        TableEncoder().fit_chunks(lambda: iter([table, table.drop(columns="age")]))
    with pytest.raises(DataError, match="Row 41 of column 'income' is infinite"):
        TableEncoder().fit_chunks(
            lambda: chunks_of(table.assign(income=table["income"].where(table.index != 40, np.inf)), (30,))
        )
    monkeypatch.setattr("skldl.tabular._encoder_fit.MAX_CATEGORIES_IN_CHUNKS", 20)
    with pytest.raises(TableError, match="'town' holds more than 20 different texts"):
        TableEncoder().fit_chunks(lambda: chunks_of(table.drop(columns=["comment", "since"]), (30,)))


def test_hashed_text_is_kept_in_model_files(tmp_path):
    table = mixed_table(60)[["comment", "age"]]
    encoder = TableEncoder(text=["comment"], hashed_text=32).fit(table)
    file = skldl.save(encoder, tmp_path / "encoder.skldl")
    np.testing.assert_array_equal(as_array(skldl.load(file).transform(table)), as_array(encoder.transform(table)))
    assert [name for name in encoder.get_feature_names_out() if name.startswith("comment")][:2] == [
        "comment~#0",
        "comment~#1",
    ]


def files_as_people_have_them(n_rows=400):
    """Columns that look like something else at first, and types that Parquet has and CSV has not."""
    rng = np.random.default_rng(0)
    whole = rng.integers(0, 50, n_rows)
    text = pd.DataFrame(
        {
            "number, then a word": [*map(str, whole[:-3]), "many", "few", "some"],
            "number, then a code": [*map(str, whole[:-1]), "007"],
            "missing words": np.where(whole % 7 == 0, "NA", (whole + 0.5).astype(str)),
            "comma": [f"{value / 8:.3f}".replace(".", ",") for value in whole],
            "late date": [*["03/04/2024"] * (n_rows - 1), "31/12/2023"],
            "late truth": [*["yes", "no"] * (n_rows // 2 - 1), "yes", "perhaps"],
            "empty at first": [*[""] * 300, *map(str, whole[300:])],
            "never": [""] * n_rows,
        }
    )
    times = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 10**6, n_rows), unit="min")
    typed = pd.DataFrame(
        {
            "whole with gaps": pd.array(np.where(whole % 5 == 0, None, whole), dtype="Int64"),
            "truth with gaps": pd.array(np.where(whole % 5 == 0, None, whole % 2 == 0), dtype="boolean"),
            "kind": pd.Categorical(np.array(["a", "b", "c"])[whole % 3]),
            "when": times.tz_localize("Europe/Berlin", ambiguous="NaT", nonexistent="NaT"),
            "single": rng.normal(size=n_rows).astype(np.float32),
            "span": pd.to_timedelta(whole, unit="s"),
            "never": pd.Series([None] * n_rows, dtype=object),
        }
    )
    return {"csv": text, "parquet": typed}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_read_in_chunks_as_they_are_in_one_go(tmp_path, ending):
    table = files_as_people_have_them()[ending]
    file = tmp_path / f"table.{ending}"
    table.to_csv(file, index=False, sep=";") if ending == "csv" else table.to_parquet(file, index=False)
    frame = TableFile(file).read()
    whole = TableEncoder().fit(frame)
    chunked = TableEncoder().fit_chunks(lambda: TableFile(file).chunks(rows=37))
    assert chunked.kinds_ == whole.kinds_
    assert chunked.dates_ == whole.dates_
    expected = as_array(whole.transform(frame))
    parts = [as_array(chunked.transform(chunk)) for chunk in TableFile(file).chunks(rows=37)]
    np.testing.assert_allclose(np.vstack(parts), expected, rtol=1e-9, atol=1e-9)


def pieces(n_pieces=3):
    """Dense and sparse chunks, with and without weights."""
    for place in range(n_pieces):
        X = np.arange(6.0).reshape(3, 2) + place
        yield Piece(
            sparse.csr_matrix(X) if place % 2 else X,
            np.full((3, 2), 0.5),
            None if place else np.ones(3),
            "é.csv",
            3 * place,
        )


def test_a_cache_gives_back_what_it_was_given(tmp_path):
    cache = ChunkCache(tmp_path, "one", 2**20)
    assert not cache.is_complete()
    assert len(list(cache.kept(pieces()))) == 3
    assert cache.is_complete()
    for given, found in zip(pieces(), cache.read(), strict=True):
        assert sparse.issparse(given.X) == sparse.issparse(found.X)
        np.testing.assert_array_equal(as_array(found.X), as_array(given.X))
        np.testing.assert_array_equal(found.y, given.y)
        assert (found.weight is None) == (given.weight is None)
        assert (found.place, found.first_row) == (given.place, given.first_row)
    assert not ChunkCache(tmp_path, "another", 2**20).is_complete()
    cache.remove()
    assert not list(tmp_path.iterdir())


def test_a_cache_that_is_not_complete_leaves_nothing(tmp_path):
    cache = ChunkCache(tmp_path, "one", 2**20)
    reading = cache.kept(pieces())
    next(reading)
    reading.close()  # a pass that was broken off
    assert not list(tmp_path.iterdir())
    assert not cache.given_up
    small = ChunkCache(tmp_path, "one", 100)
    assert len(list(small.kept(pieces()))) == 3
    assert "more than" in small.given_up
    assert not list(tmp_path.iterdir())
    nowhere = ChunkCache(tmp_path / "no" / "folder", "one", 2**20)
    assert len(list(nowhere.kept(pieces()))) == 3
    assert "could not be written: No such file" in nowhere.given_up
    assert ChunkCache(tmp_path, "one", 0).given_up


def test_an_error_of_the_rows_is_no_error_of_the_cache(tmp_path):
    def broken():
        yield from pieces(2)
        raise OSError("the disk with the table is gone")

    cache = ChunkCache(tmp_path, "one", 2**20)
    with pytest.raises(OSError, match="the table is gone"):
        list(cache.kept(broken()))
    assert not cache.given_up
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("n_bytes", "given_up"), [(500, False), (501, True)])
def test_a_cache_takes_half_of_the_free_disk_space(tmp_path, monkeypatch, n_bytes, given_up):
    """1000 bytes were free before the cache was written."""
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1000 - n_bytes))
    cache = ChunkCache(tmp_path, "one", 2**20)
    cache._check_size(n_bytes)
    assert ("half of the free disk space" in cache.given_up) == given_up

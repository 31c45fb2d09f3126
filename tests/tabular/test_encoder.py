"""From mixed columns to features: kinds, missing cells, unknown categories, other files of the same table."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone

import skldl
from skldl.exceptions import DataError, ModelFileError, NonFiniteError, NotNumericError, TableError
from skldl.tabular import TableEncoder

TABLE = pd.DataFrame(
    {
        "age": [31.0, np.nan, 54.0, 40.0],
        "town": ["Ulm", "Bonn", None, "Ulm"],
        "smoker": ["yes", "no", "No ", None],
        "word": ["good day", "bad day", "", "good night"],
        "post": [89073, 53111, 89073, 24103],
    }
)
KINDS = {"age": "number", "town": "category", "smoker": "boolean", "word": "text", "post": "category"}


@pytest.fixture
def encoder():
    return TableEncoder(text=["word"], categories=["post"], text_ngrams="characters").fit(TABLE)


def dense(features):
    return features.toarray() if sparse.issparse(features) else features


def test_kinds_and_names(encoder):
    assert encoder.kinds_ == KINDS
    names = list(encoder.get_feature_names_out())
    assert names[:4] == ["age", "smoker", "age is missing", "smoker is missing"]
    assert [name for name in names if name.startswith(("town", "post"))] == [
        *("town=(missing)", "town=Bonn", "town=Ulm", "post=24103", "post=53111", "post=89073")
    ]
    assert "word~_goo" in names
    features = encoder.transform(TABLE)
    assert features.shape == (4, len(names)) == (4, len(encoder.sources()))
    assert set(encoder.sources()) == set(TABLE)
    assert encoder.sources()[names.index("word~_goo")] == "word"


def test_numbers_are_imputed_and_standardised(encoder):
    values = dense(encoder.transform(TABLE))
    filled = np.array([31.0, 40.0, 54.0, 40.0])
    np.testing.assert_allclose(values[:, 0], (filled - filled.mean()) / filled.std())


def test_order_types_and_further_columns_do_not_matter(encoder):
    expected = dense(encoder.transform(TABLE))
    as_text = TABLE.astype(object).map(lambda cell: cell if pd.isna(cell) else str(cell)).iloc[:, ::-1]
    as_text["post"] = ["89073", "53111.0", " 89073", "24103"]
    np.testing.assert_allclose(dense(encoder.transform(as_text.assign(more=1).assign(post=TABLE["post"]))), expected)
    np.testing.assert_allclose(dense(encoder.transform(pl.from_pandas(TABLE))), expected)
    renamed = TABLE.set_axis(list("wxyz"), axis=0)
    np.testing.assert_allclose(dense(encoder.transform(renamed)), expected)


def test_categories_that_are_numbers_are_the_same_as_int_float_and_text():
    encoder = TableEncoder(categories=["post"]).fit(TABLE[["post"]])
    for other in (TABLE["post"].astype(float), TABLE["post"].astype(str)):
        np.testing.assert_array_equal(
            dense(encoder.transform(other.to_frame())), dense(encoder.transform(TABLE[["post"]]))
        )


def test_unknown_categories_are_none_of_the_known_ones(encoder):
    new = TABLE.iloc[[0]].assign(town="Rome")
    places = [place for place, source in enumerate(encoder.sources()) if source == "town"]
    assert not dense(encoder.transform(new))[0, places].any()


def test_rare_categories_share_one_feature():
    words = ["a"] * 5 + ["b"] * 4 + ["c", "d", "e"]
    encoder = TableEncoder(max_categories=3).fit(pd.DataFrame({"w": words}))
    assert list(encoder.get_feature_names_out()) == ["w=a", "w=b", "w=(rare)"]
    values = dense(encoder.transform(pd.DataFrame({"w": ["b", "d", "never seen"]})))
    np.testing.assert_array_equal(values, [[0, 1, 0], [0, 0, 1], [0, 0, 1]])


def test_dense_on_request():
    table = pd.DataFrame({"w": [f"w{i % 10}" for i in range(40)]})
    assert sparse.issparse(TableEncoder().fit_transform(table))
    assert isinstance(TableEncoder(dense=True).fit_transform(table), np.ndarray)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.Series([True, False]), "boolean"),
        (pd.Series([True, None], dtype="boolean"), "boolean"),
        (pd.Series([True, None], dtype=object), "boolean"),
        (pd.Series([1, None], dtype="Int64"), "number"),
        (pd.Series(["1", " 2.5 "]), "number"),
        (pd.Series([None, None], dtype=object), "number"),
        (pd.Series(["1", "two"]), "category"),
        (pd.Series(pd.to_datetime(["2024-01-01", "2024-01-02"])), "date"),
        (pd.Series([1 + 2j, 3j]), "category"),
        (pd.Series(["a", "b"], dtype="category"), "category"),
        (pd.Series([b"a", b"b"]), "category"),
    ],
)
def test_kinds_of_columns(column, kind):
    table = column.to_frame("c")
    encoder = TableEncoder().fit(table)
    assert encoder.kinds_ == {"c": kind}
    values = dense(encoder.transform(table))
    assert np.isfinite(values).all()
    assert len(values) == 2


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"age": ["x", 1, 2, 3]}, NotNumericError, "Row 1 of column 'age' holds 'x', where the model expects a number"),
        ({"age": ["x" * 99, 1, 2, 3]}, NotNumericError, "…"),
        ({"age": [1, 2, np.inf, 3]}, NonFiniteError, "Row 3 of column 'age' is infinite"),
        ({"smoker": ["yes", "maybe", "no", "no"]}, NotNumericError, "Row 2 of column 'smoker' holds 'maybe'"),
    ],
)
def test_bad_cells_are_named(encoder, change, error, message):
    with pytest.raises(error, match=message):
        encoder.transform(TABLE.assign(**change))


def test_rows_count_through_the_file(encoder):
    piece = TABLE.assign(age=["x", 1, 2, 3]).set_axis(range(20_000, 20_004), axis=0)
    with pytest.raises(NotNumericError, match="Row 20001 of column 'age'"):
        encoder.transform(piece)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (TABLE.drop(columns="age"), "lacks the column 'age', which the model"),
        (TABLE[["age"]], "lacks the column 'town' and 3 more"),
        (TABLE.iloc[:0], "has no rows"),
        (pd.concat([TABLE, TABLE[["age"]]], axis=1), "Two columns of the table are called 'age'"),
        (TABLE.to_numpy(), "not ndarray"),
    ],
)
def test_wrong_tables(encoder, table, message):
    with pytest.raises(TableError, match=message):
        encoder.transform(table)


def test_wrong_training_tables():
    with pytest.raises(TableError, match="no column 'prose'"):
        TableEncoder(text=["prose"]).fit(TABLE)
    with pytest.raises(TableError, match="No column is left"):
        TableEncoder().fit(TABLE[[]])
    with pytest.raises(TableError, match="'word' is empty in every row"):
        TableEncoder(text=["word"]).fit(TABLE.assign(word=[None, "", " ", None]))


def test_is_a_scikit_learn_transformer(encoder):
    assert clone(encoder).get_params() == encoder.get_params()
    assert not hasattr(clone(encoder), "kinds_")


def test_set_output(encoder):
    expected = dense(encoder.transform(TABLE))
    for text in (["word"], []):
        framed = TableEncoder(text=text, categories=["post"]).set_output(transform="pandas")
        result = framed.fit(TABLE).transform(TABLE.set_axis(list("wxyz")))
        assert list(result.index) == list("wxyz")
        assert list(result) == list(framed.get_feature_names_out())
    framed = clone(encoder).set_output(transform="pandas").fit(TABLE)
    np.testing.assert_allclose(framed.transform(TABLE), expected)
    with config_context(transform_output="polars"):
        assert encoder.transform(TABLE).shape == expected.shape


def test_columns_with_numbers_as_names_are_found_by_name():
    table = pd.DataFrame({0: [1.0, 2.0, 3.0], 1: [30.0, 10.0, 20.0]})
    encoder = TableEncoder().fit(table)
    np.testing.assert_array_equal(encoder.transform(table[[1, 0]]), encoder.transform(table))


DATES = pd.Series(pd.to_datetime(["2023-12-31 06:00", "2024-01-01 12:00", None, "2024-07-01 18:30"]), name="when")


def test_parts_of_dates():
    encoder = TableEncoder().fit(DATES.to_frame())
    names = list(encoder.get_feature_names_out())
    assert names[:2] == ["when: days", "when: year"]
    assert {"when: month, sine", "when: hour, cosine", "when: Monday", "when: Sunday", "when: year is missing"} < set(
        names
    )
    assert "when: Tuesday" not in names  # it is the same in every row
    assert set(encoder.sources()[: len(names)]) >= {"when"}
    features = pd.DataFrame(dense(encoder.transform(DATES.to_frame())), columns=names)
    assert features["when: Monday"].iloc[1] > features["when: Monday"].iloc[0]
    assert features["when: year"].iloc[0] < features["when: year"].iloc[1]


@pytest.mark.parametrize(
    "written",
    ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%SZ", "%Y/%m/%d %H:%M", "%d.%m.%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M",
     "%d %b %Y %H:%M", "%b %d, %Y %H:%M:%S"],
)  # fmt: skip
def test_dates_as_text_are_the_same_as_typed_ones(written):
    expected = TableEncoder().fit_transform(DATES.to_frame())
    text = DATES.dt.strftime(written).astype(object).where(DATES.notna(), None)
    encoder = TableEncoder().fit(text.to_frame())
    assert encoder.kinds_ == {"when": "date"}
    np.testing.assert_allclose(encoder.transform(text.to_frame()), expected)
    if written.startswith("%Y-"):
        np.testing.assert_allclose(encoder.transform(DATES.to_frame()), expected)


def test_times_are_those_of_the_clock_on_the_wall():
    local = DATES.dt.tz_localize("Asia/Tokyo")
    np.testing.assert_allclose(
        TableEncoder().fit_transform(local.to_frame()), TableEncoder().fit_transform(DATES.to_frame())
    )


def test_what_is_no_date():
    for cells in (["03/04/2024", "05/06/2024"], ["2024-13-01", "2024-01-01"], ["2024-01-01", "soon"], ["20240101"] * 2):
        assert TableEncoder().fit(pd.DataFrame({"c": cells})).kinds_["c"] != "date"
    encoder = TableEncoder().fit(pd.DataFrame({"c": ["2024-01-01", "2024-01-02"]}))
    with pytest.raises(NotNumericError, match="Row 2 of column 'c' holds 'soon', where the model expects a date"):
        encoder.transform(pd.DataFrame({"c": ["2024-01-01", "soon"]}))


def test_codes_are_categories_and_equal_numbers_are_one_category():
    encoder = TableEncoder().fit(pd.DataFrame({"post": ["01234", "89073"], "stars": ["4.0", "x"]}))
    assert encoder.kinds_ == {"post": "category", "stars": "category"}
    assert list(encoder.get_feature_names_out()) == ["post=01234", "post=89073", "stars=4", "stars=x"]
    new = dense(encoder.transform(pd.DataFrame({"post": [89073], "stars": [4]})))
    np.testing.assert_array_equal(new, [[0, 1, 1, 0]])


def test_spans_of_time_are_numbers():
    table = pd.DataFrame({"span": pd.to_timedelta(["1h", "3h"])})
    assert TableEncoder().fit(table).kinds_ == {"span": "number"}
    np.testing.assert_allclose(TableEncoder().fit_transform(table).ravel(), [-1, 1])


@pytest.mark.parametrize("kind", ["timedelta64[s]", "duration[ms][pyarrow]", object])
def test_durations_do_not_stand_in_for_numbers(kind):
    numbers = pd.DataFrame({"span": [1.5, 3.0]})
    spans = pd.DataFrame({"span": pd.Series(pd.to_timedelta(["1h", "3h"])).astype(kind)})
    encoder = TableEncoder().fit(numbers)
    with pytest.raises(DataError, match=r"Row 1 of column 'span' holds .*, where the model expects a number, in the"):
        encoder.transform(spans)
    assert len(encoder.transform(spans.assign(span=pd.Series([pd.NaT, pd.NaT], dtype="timedelta64[s]")))) == 2
    encoder.fit(spans)
    np.testing.assert_allclose(encoder.transform(pd.DataFrame({"span": [3600, 10800]})), encoder.transform(spans))


def test_unusual_rows_are_counted(encoder):
    new = TABLE.assign(town=["Rome", "Ulm", None, "Oslo"], age=[500.0, 20.0, -1.0, 54.0])
    new.loc[2] = None
    assert encoder.unusual(new) == {
        "unknown_categories": {"town": 2},
        "far_outside_range": {"age": 1},
        "empty_rows": {"rows": 1},
    }
    assert not any(encoder.unusual(TABLE).values())


def test_a_large_table_is_encoded_some_rows_at_a_time_with_the_same_result(monkeypatch):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.normal(50, 9, 500),
            "yes": rng.random(500) < 0.3,
            "when": pd.date_range("2024-01-01", periods=500, freq="7h"),
            "empty": np.nan,
        }
    )
    table.loc[::7, "age"] = np.nan
    wide = table.assign(town=rng.choice(["Ulm", "Bonn"], 500))
    expected = [TableEncoder().fit(part).transform(part) for part in (table, wide)]
    names = TableEncoder().fit(table).get_feature_names_out()
    monkeypatch.setattr("skldl.tabular._encoder.BLOCK_ROWS", 64)
    for part, known in zip((table, wide), expected, strict=True):
        encoder = TableEncoder().fit(part)
        np.testing.assert_allclose(encoder.transform(part), known, atol=1e-12)
    assert list(TableEncoder().fit(table).get_feature_names_out()) == list(names)
    words = pd.DataFrame({"w": rng.choice([f"w{i}" for i in range(90)], 500)})
    assert sparse.issparse(TableEncoder().fit(words).transform(words))


@pytest.mark.parametrize("name", ["max_categories", "max_text_features", "hashed_text"])
def test_one_feature_is_enough_and_none_is_too_few(name):
    table = pd.DataFrame({"said": ["warm bread and tea", "cold tea", "warm soup"], "town": ["Ulm", "Bonn", "Ulm"]})
    column = "town=" if name == "max_categories" else "said~"
    names = TableEncoder(text=["said"], **{name: 1}).fit(table).get_feature_names_out()
    assert sum(feature.startswith(column) for feature in names) == 1
    with pytest.raises(ValueError, match=f"{name}=0"):
        TableEncoder(text=["said"], **{name: 0}).fit(table)


@pytest.mark.parametrize(("age", "is_far"), [(20.0, False), (-10.0, False), (20.5, True), (-10.5, True)])
def test_a_number_is_far_outside_beyond_the_width_of_the_range(age, is_far):
    encoder = TableEncoder().fit(pd.DataFrame({"age": [0.0, 4.0, 10.0]}))
    counted = {"age": 1} if is_far else {}
    assert encoder.unusual(pd.DataFrame({"age": [age]}))["far_outside_range"] == counted
    assert encoder.encode_records([{"age": age}])[1]["far_outside_range"] == counted
    assert (encoder.encode_usual({"age": age}) is None) == is_far


def test_prose_is_cut_into_words_and_pairs_of_words():
    table = pd.DataFrame({"said": ["warm bread and tea", "cold tea", "warm soup"]})
    names = set(TableEncoder(text=["said"], text_ngrams="words").fit(table).get_feature_names_out())
    assert {"said~warm", "said~warm_bread", "said~cold_tea"} <= names
    assert "said~bre" in set(TableEncoder(text=["said"], text_ngrams="characters").fit(table).get_feature_names_out())
    with pytest.raises(TableError, match="text_ngrams='lines'"):
        TableEncoder(text=["said"], text_ngrams="lines").fit(table)
    with pytest.raises(TableError, match="no word of two letters"):
        TableEncoder(text=["said"], text_ngrams="words").fit(pd.DataFrame({"said": ["a", "b", "c"]}))


@pytest.mark.parametrize(("last", "cut"), [("two words", "words"), ("one", "characters")])
def test_prose_has_three_words_in_the_mean(last, cut):
    table = pd.DataFrame({"said": ["one nice day", "four words are here", last]})
    assert TableEncoder(text=["said"]).fit(table).text_ngrams_ == {"said": cut}


def test_prose_is_cut_into_words_and_single_words_into_letters():
    table = pd.DataFrame(
        {"name": ["tea pot", "cup", "spoon"] * 5, "said": ["this tea is good", "bad cups of tea here", "x y z w"] * 5}
    )
    names = set(TableEncoder(text=["name", "said"]).fit(table).get_feature_names_out())
    assert "said~tea_is" in names
    assert "name~spo" in names
    assert "name~spoon" not in names


def test_numbers_of_any_type_are_the_same_numbers():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(20, 600)), columns=[f"x{place}" for place in range(600)])
    table["whole"], table["town"] = np.arange(20), ["Ulm", "Bonn"] * 10
    table.loc[3, "x7"] = np.nan
    encoder = TableEncoder().fit(table)
    np.testing.assert_array_equal(encoder.transform(table), encoder.transform(table.astype(object)))
    table.loc[4, "x9"] = np.inf
    with pytest.raises(NonFiniteError, match="Row 5 of column 'x9' is infinite"):
        encoder.transform(table)


def test_typical_values_are_medians_and_the_most_frequent_cells():
    table = pd.DataFrame(
        {
            "age": ["3", "5", None, "8"],
            "smoker": ["yes", "no", "no", None],
            "town": ["Ulm", "Bonn", "Ulm", "Bonn"],
            "when": ["01.02.2024", "03.02.2024", "02.02.2024", None],
            "note": ["a secret to keep"] * 4,
            "none": [None] * 4,
        }
    )
    typical = {"age": 5.0, "smoker": False, "town": "Bonn", "when": "02.02.2024", "note": "", "none": None}
    assert TableEncoder(text=["note"]).fit(table).typical_ == typical


def test_typed_cells_do_not_depend_on_how_the_table_was_written():
    table = pd.DataFrame({"town": ["Ulm", None], "age": [31, 54], "day": ["2024-01-02", "2024-02-03"]})
    encoder = TableEncoder().fit(table)
    cells = encoder.typed_cells(table)
    assert list(cells) == [*encoder.numbers_, "town"]
    assert cells["age"].tolist() == [31.0, 54.0]
    assert cells["town"].tolist() == ["Ulm", "(missing)"]
    turned = table.assign(age=["31.0", " 54"], day=pd.to_datetime(table["day"]))[["day", "age", "town"]]
    again = encoder.typed_cells(turned)
    assert list(again) == list(cells)
    for name, column in cells.items():
        np.testing.assert_array_equal(again[name], column)


def rows_of(table):
    """The rows as a JSON parser would return them."""
    return table.astype(object).where(table.notna(), None).to_dict("records")


@pytest.mark.parametrize("max_categories", [5, 100])
@pytest.mark.parametrize("columns", [["age", "town", "smoker", "word", "post"], ["town", "smoker"], ["age"], ["word"]])
def test_records_have_the_features_and_counts_of_a_table(columns, max_categories):
    given = {"text": ["word"], "categories": ["post"]}
    options = {name: [column for column in given[name] if column in columns] for name in given}
    table = TABLE.assign(post=["89073", "53111", "007", None])[columns]
    encoder = TableEncoder(**options, max_categories=max_categories).fit(table)
    odd = {"age": 1e6, "town": " nowhere ", "smoker": True, "word": None, "post": 89073}
    others = {"age": -5, "town": "Ulm ", "smoker": "YES ", "word": " good day ", "post": 53111.0}
    records = [
        *rows_of(table),
        odd,
        others,
        dict.fromkeys(columns),
        {"age": 3, "town": "", "smoker": 1, "word": "", "post": "x"},
    ]
    records = [{name: record[name] for name in columns} for record in records]
    frame = pd.DataFrame(records).astype(object)
    for some in (records, *([record] for record in records)):
        rows = frame if some is records else pd.DataFrame(some, dtype=object)
        X, unusual = encoder.encode_records(some)
        assert unusual == encoder.unusual(rows)
        np.testing.assert_array_equal(dense(X), dense(encoder.transform(rows)))
        assert sparse.issparse(X) == encoder.is_sparse_
        np.testing.assert_array_equal(encoder.encode_records(some, dense=True)[0], dense(X))
        Z, counted = encoder.encode(rows)
        assert counted == unusual
        np.testing.assert_array_equal(dense(Z), dense(X))


@pytest.mark.parametrize(
    "change",
    [
        {"age": "3.5"},
        {"age": [1]},
        {"age": {"a": 1}},
        {"age": float("inf")},
        {"age": 10**400},
        {"town": ["Ulm"]},
        {"town": True},
        {"town": 2**60},
        {"smoker": "perhaps"},
        {"smoker": 2},
        {"smoker": []},
    ],
)
def test_records_that_are_not_plain_need_a_table(change):
    table = TABLE[["age", "town", "smoker"]]
    encoder = TableEncoder().fit(table)
    good = rows_of(table)[0]
    assert encoder.encode_records([good]) is not None
    for records in (
        [good | change],
        [good, good | change],
        [good, {"age": 1, "town": "Ulm"}],
        [good, "text"],
        [[1]],
        [],
    ):
        assert encoder.encode_records(records) is None
    dates = TableEncoder().fit(DATES.to_frame())
    assert dates.encode_records([{"when": "2024-01-01"}]) is None


@pytest.mark.parametrize("max_categories", [2, 100])
@pytest.mark.parametrize("columns", [["age", "town", "smoker"], ["town", "smoker"], ["town"], ["age"], ["word"]])
def test_a_usual_record_has_the_same_features(columns, max_categories):
    table = TABLE[columns]
    text = [name for name in columns if name == "word"]
    encoder = TableEncoder(text=text, max_categories=max_categories).fit(table)
    whole = table.notna().all(axis=1) & (not text)
    for row, record in enumerate(rows_of(table)):
        encoded = encoder.encode_usual(record)
        assert (encoded is not None) == whole[row]
        if encoded is not None:
            features = np.zeros(len(encoder.sources()))
            features[: len(encoded[0])] = encoded[0]
            features[encoded[1]] = 1.0
            np.testing.assert_array_equal(features, dense(encoder.transform(table[row : row + 1]))[0])


@pytest.mark.parametrize(
    "change",
    [
        {"age": None},
        {"age": "40"},
        {"age": 1e6},
        {"age": []},
        {"age": float("nan")},
        {"age": 10**400},
        {"town": "nowhere"},
        {"town": " Ulm"},
        {"town": None},
        {"town": 5},
        {"town": ["x"]},
        {"smoker": None},
        {"smoker": "perhaps"},
        {"smoker": 2},
        {"smoker": {}},
    ],
)
def test_an_unusual_record_is_left_to_the_others(change):
    table = pd.DataFrame({"age": [31.0, 54.0], "town": ["Ulm", "Bonn"], "smoker": ["yes", "no"]})
    encoder = TableEncoder().fit(table)
    good = {"age": 40.5, "town": "Ulm", "smoker": True}
    assert encoder.encode_usual(good) is not None
    assert encoder.encode_usual(good | change) is None
    assert encoder.encode_usual({name: cell for name, cell in good.items() if name != "town"}) is None
    assert encoder.encode_usual(["age"]) is None
    assert TableEncoder().fit(DATES.to_frame()).encode_usual({"when": "2024-01-01"}) is None


def test_a_record_of_a_sparse_encoder_may_be_an_array():
    table = pd.DataFrame({"w": [f"w{i % 90}" for i in range(500)], "x": np.arange(500.0)})
    encoder = TableEncoder().fit(table)
    records = rows_of(table)
    assert sparse.issparse(encoder.encode_records(records[:3])[0])
    for n_rows in (1, 3):
        X, _ = encoder.encode_records(records[:n_rows], dense=True)
        np.testing.assert_array_equal(X, encoder.transform(table[:n_rows]).toarray())


def test_a_model_file_holds_arrays_and_no_lookups(tmp_path):
    encoder = TableEncoder(text=["word"], categories=["post"], text_ngrams="words").fit(TABLE)
    expected = encoder.transform(TABLE)
    loaded = skldl.load(skldl.save(encoder, tmp_path / "encoder.skldl"))
    assert vars(loaded).keys() == clone(encoder).fit(TABLE).__dict__.keys()
    np.testing.assert_array_equal(dense(loaded.transform(TABLE)), dense(expected))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kinds_", {"age": "number"}),
        ("numbers_", ["age"]),
        ("medians_", np.zeros(1)),
        ("means_", np.zeros(9)),
        ("scales_", np.ones(4, dtype=np.float32)),
        ("with_missing_", np.array([0, 9])),
        ("categories_", {}),
        ("rare_categories_", {"post": [], "town": []}),
        ("text_ngrams_", {"age": "words"}),
        ("vocabularies_", {"word": ["one"]}),
        ("idf_", {}),
        ("_made_lookup", None),
    ],
)
def test_a_model_file_whose_parts_do_not_fit_is_rejected(tmp_path, name, value):
    encoder = TableEncoder(text=["word"], categories=["post"], text_ngrams="words").fit(TABLE)
    state = encoder.__getstate__() | {name: value}
    encoder.__class__ = type("TableEncoder", (TableEncoder,), {"__getstate__": lambda self: state})
    encoder.__class__.__module__ = TableEncoder.__module__
    with pytest.raises(ModelFileError, match="of a table encoder does not fit"):
        skldl.load(skldl.save(encoder, tmp_path / "encoder.skldl"))

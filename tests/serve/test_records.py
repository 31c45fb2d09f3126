"""The fast path gives what the encoder gives, or nothing."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from scipy.stats import entropy

from skldl.serve._model import ServedModel
from skldl.serve._records import RecordEncoder
from skldl.serve._single_row import SingleRow
from skldl.tabular import TableEncoder, predict_table


@pytest.fixture(scope="module")
def table():
    generator = np.random.default_rng(3)
    n_rows = 300
    frame = pd.DataFrame(
        {
            "age": generator.normal(40, 9, n_rows),
            "rooms": generator.integers(1, 9, n_rows),
            "town": generator.choice([f"town {place}" for place in range(30)], n_rows),
            "code": generator.choice(["3", "4.5", "x"], n_rows),
            "smoker": generator.choice(["yes", "no"], n_rows),
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::11, "town"] = None
    return frame


@pytest.mark.parametrize("max_categories", [5, 100])
def test_features_and_counts_are_those_of_the_encoder(table, max_categories):
    encoder = TableEncoder(max_categories=max_categories, dense=True).fit(table)
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    records[5] |= {"town": " nowhere ", "age": 1e6, "smoker": True, "code": " 3.0"}
    records[6] |= {"town": "town 3 ", "smoker": None, "age": -5}
    records[7] = dict.fromkeys(table, None)
    encoded = RecordEncoder(encoder)(records)
    frame = pd.DataFrame(records)
    np.testing.assert_array_equal(encoded.X, encoder.transform(frame))
    assert encoded.unusual == encoder.unusual(frame)
    assert encoded.unusual["unknown_categories"]["town"] == 1
    assert encoded.unusual["far_outside_range"] == {"age": 1}
    assert encoded.unusual["empty_rows"] == {"rows": 1}


def test_what_is_not_plain_is_left_to_the_encoder(table):
    encoder = RecordEncoder(TableEncoder(dense=True).fit(table))
    good = {"age": 3.5, "rooms": 2, "town": "town 1", "code": "x", "smoker": "no"}
    assert encoder([good]) is not None
    for change in (
        {"age": "3.5"},
        {"age": [1]},
        {"age": {"a": 1}},
        {"age": float("inf")},
        {"rooms": 10**30},
        {"rooms": "many"},
        {"town": 5},
        {"smoker": "perhaps"},
        {"smoker": 2},
        {"smoker": []},
    ):
        assert encoder([good | change]) is None, change
    without = {name: cell for name, cell in good.items() if name != "age"}
    assert encoder([good, without]) is None
    assert encoder([good, "text"]) is None
    assert encoder([[1, 2]]) is None


def test_tables_of_numbers_are_taken_as_they_are(faces, numbers_model):
    served = ServedModel(numbers_model, "numbers")
    frame = pd.DataFrame({"height": [1, 2, 300], "age": [30.5, np.nan, 9e9]})
    encoded = served.fast.table(frame)
    np.testing.assert_array_equal(encoded.X, served.encoder.transform(frame))
    assert encoded.unusual == served.encoder.unusual(frame)
    assert served.fast.table(frame.assign(age=["1", "2", "3"])) is None
    nullable = frame.assign(height=pd.array([1, None, 3], "Int64"))
    np.testing.assert_array_equal(served.fast.table(nullable).X, served.encoder.transform(nullable))
    assert served.fast.table(frame.assign(height=[np.inf, 1, 2])) is None


def test_one_row_is_answered_like_a_table(numbers_model):
    served = ServedModel(numbers_model, "numbers")
    for record in ({"age": 31, "height": 5.5}, {"age": 60.25, "height": 100}, {"age": 31.0, "height": None}):
        answer = served.predict_records([record])
        table = predict_table(served.pipeline, pd.DataFrame([record]), labels=served.labels, values=[1, 2, 3])
        assert list(answer.columns) == list(table)
        alone = served.predict_one(record)
        assert (alone is None) == (record["height"] is None)
        for row in (alone or {}), {name: cells[0] for name, cells in answer.columns.items()}:
            for name, cell in row.items():
                assert cell == (table[name][0] if name == "top" else pytest.approx(table[name][0], abs=1e-14, rel=0))


@pytest.mark.parametrize(
    "record",
    [
        {"age": 31, "height": 1e9},
        {"age": "31", "height": 1},
        {"age": 31},
        {"age": 31, "height": [1]},
        {"age": 31, "height": 10**400},
        {"age": 31, "height": float("nan")},
        ["age", "height"],
        None,
    ],
)
def test_an_unusual_row_is_not_answered_alone(numbers_model, record):
    assert ServedModel(numbers_model, "numbers").predict_one(record) is None


@pytest.mark.parametrize("max_categories", [5, 100])
@pytest.mark.parametrize(
    "columns", [["age", "rooms", "town", "code", "smoker"], ["smoker", "town"], ["code"], ["rooms"]]
)
def test_single_rows_of_every_kind_have_the_scores_of_the_table(table, columns, max_categories):
    """Features of the encoder itself times weights: the oracle; every row that is answered must agree with it."""
    encoder = TableEncoder(max_categories=max_categories, dense=True).fit(table[columns])
    chance = np.random.default_rng(1)
    features = np.asarray(encoder.transform(table[columns]))
    W, b = chance.normal(size=(features.shape[1], 4)), chance.normal(size=4)
    expected = softmax(features @ W + b, axis=1)
    alone = SingleRow(RecordEncoder(encoder), (W, b), list("klmn"), [*"klmn", "top", "entropy"], [])
    records = table[columns].astype(object).where(table[columns].notna(), None).to_dict("records")
    rows = [alone(record) for record in records]
    whole = table[columns].notna().all(axis=1).tolist()
    assert [row is not None for row in rows] == whole
    for row, degrees in zip(rows, expected, strict=True):
        if row is not None:
            np.testing.assert_allclose([row[label] for label in "klmn"], degrees, rtol=0, atol=1e-13)
            assert row["top"] == "klmn"[degrees.argmax()]
            assert row["entropy"] == pytest.approx(entropy(degrees), abs=1e-13)


def test_single_rows_leave_unusual_cells_to_the_encoder(table):
    encoder = TableEncoder(dense=True).fit(table)
    fast = RecordEncoder(encoder)
    weights = np.zeros((fast.n_features, 2)), np.zeros(2)
    alone = SingleRow(fast, weights, ["k", "l"], ["k", "l", "top", "entropy"], [])
    good = {"age": 40.5, "rooms": 2, "town": "town 1", "code": "x", "smoker": True}
    assert alone(good) is not None
    for change in (
        {"age": None},
        {"age": "40"},
        {"age": 1e6},
        {"rooms": []},
        {"town": "nowhere"},
        {"town": " town 1"},
        {"town": None},
        {"town": 5},
        {"code": ["x"]},
        {"smoker": None},
        {"smoker": "perhaps"},
        {"smoker": 2},
        {"smoker": {}},
    ):
        assert alone(good | change) is None, change
    assert alone({name: cell for name, cell in good.items() if name != "town"}) is None


def test_a_row_of_certainty_has_no_negative_entropy(numbers_model):
    served = ServedModel(numbers_model, "numbers")
    W, b = np.array([[1.0, 0, 0], [0, 1.0, 0]]), np.array([800.0, 0.0, -800.0])
    row = SingleRow(served.fast, (W, b), ["1", "2", "3"], ["1", "2", "3", "top", "entropy"], [])(
        {"age": 31, "height": 5}
    )
    assert row == {"1": 1.0, "2": 0.0, "3": 0.0, "top": "1", "entropy": 0.0}


def test_pieces_of_records_are_encoded_like_all_at_once(table):
    encoder = RecordEncoder(TableEncoder(dense=True).fit(table))
    records = table.astype(object).where(table.notna(), None).to_dict("records")
    records[5] |= {"town": "nowhere", "age": 1e6}
    records[200] |= {"town": "elsewhere", "age": -1e6}
    records[299] = dict.fromkeys(table, None)
    whole = encoder(records)
    parts = encoder.in_pieces([records[:7], records[7:8], records[8:]])
    np.testing.assert_array_equal(parts.X, whole.X)
    assert parts.unusual == whole.unusual
    assert parts.unusual["far_outside_range"] == {"age": 2}
    assert encoder.in_pieces([records, [records[0] | {"age": "3"}]]) is None


def test_text_and_dates_have_no_fast_path():
    frame = pd.DataFrame({"when": ["2024-05-31", "2024-06-01"] * 5, "what": ["good day", "bad day"] * 5})
    assert not RecordEncoder.supports(TableEncoder().fit(frame[["when"]]))
    assert not RecordEncoder.supports(TableEncoder(text=["what"]).fit(frame[["what"]]))

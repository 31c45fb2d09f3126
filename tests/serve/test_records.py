"""Predictions for JSON records are those for a table of these rows, however they come."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import entropy
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler

import skldl
from skldl.exceptions import DataError, TableError
from skldl.serve import Service
from skldl.tabular import TableEncoder, predict_table

LABELS = ["k", "l", "m"]


class Certain(skldl.SABFGS):
    """A linear model whose scores are far apart."""

    def fit(self, X, y):
        super().fit(X, y)
        self.coef_[:], self.intercept_ = 0.0, np.array([800.0, 0.0, -800.0])
        self.__class__ = skldl.SABFGS  # which a model file may hold
        return self


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
            "said": generator.choice(["good day to you", "a bad day", "so so"], n_rows),
        }
    )
    frame.loc[::7, "age"] = np.nan
    frame.loc[::11, "town"] = None
    return frame


@pytest.fixture
def serve(tmp_path):
    def served(encoder, *steps, table, values=None, learner=None):
        D = np.random.default_rng(0).dirichlet(np.ones(3), len(table))
        named = [("encoder", encoder), *((str(at), step) for at, step in enumerate(steps))]
        model = Pipeline([*named, ("model", learner or skldl.SABFGS(alpha=0.01))])
        model.fit(table, pd.DataFrame(D, columns=LABELS))
        path = skldl.save(model, tmp_path / "model.skldl", description={"values": values})
        return Service({"model": path}).model(None)

    return served


def rows_of(table):
    return table.astype(object).where(table.notna(), None).to_dict("records")


@pytest.mark.parametrize("options", [{}, {"dense": True}, {"max_categories": 5}, {"text": ["said"]}])
@pytest.mark.parametrize("learner", [None, skldl.AAKNN(5)])
@pytest.mark.parametrize("steps", [(), (MaxAbsScaler(),)])
def test_rows_are_predicted_as_in_a_table(serve, table, options, learner, steps):
    model = serve(TableEncoder(**options), *steps, table=table, learner=learner, values=[1, 2, 3])
    records = rows_of(table[:40])
    records[5] |= {"town": " nowhere ", "age": 1e6, "smoker": True, "code": " 3.0"}
    records[6] |= {"age": "41.5", "smoker": None}
    records[7] = dict.fromkeys(table)
    frame = pd.DataFrame(records, dtype=object)
    expected = predict_table(model.pipeline, frame, labels=LABELS, values=[1, 2, 3])
    answers = {
        "records": model.predict_records(records),
        "table": model.predict_frame(frame),
        "kept": model.predict_records(records, ["code"]),
    }
    assert answers["kept"].columns.pop("code") == frame["code"].tolist()
    for answer in answers.values():
        assert answer.unusual == model.encoder.unusual(frame)
        assert answer.unusual["empty_rows"] == {"rows": 1}
        assert list(answer.columns) == list(expected)
        assert answer.columns["top"] == expected["top"].tolist()
        for name in (*LABELS, "entropy", "expected"):
            np.testing.assert_allclose(answer.columns[name], expected[name], rtol=0, atol=1e-12)
    for row, record in enumerate(records):
        answer = model.predict_records([record])
        for name in LABELS:
            assert answer.columns[name][0] == pytest.approx(expected[name][row], abs=1e-12)


def test_pieces_of_records_are_predicted_like_all_at_once(serve, table):
    model = serve(TableEncoder(), table=table)
    records = rows_of(table)
    records[5] |= {"town": "nowhere", "age": 1e6}
    records[200] |= {"town": "elsewhere", "age": -1e6}
    records[299] = dict.fromkeys(table)
    whole = model.predict_records(records)
    parts = model.predict_pieces([records[:7], records[7:8], records[8:]])
    assert parts.unusual == whole.unusual
    assert parts.unusual["far_outside_range"] == {"age": 2}
    assert parts.columns["top"] == whole.columns["top"]
    for name in LABELS:
        np.testing.assert_allclose(parts.columns[name], whole.columns[name], rtol=0, atol=1e-14)
    assert model.predict_pieces([records, [records[0] | {"age": "3"}]]) is None


def test_names_of_the_answer_that_are_taken(serve, table):
    model = serve(TableEncoder(), table=table.rename(columns={"code": "top"}))
    answer = model.predict_records(rows_of(table[:3].rename(columns={"code": "top"})), ["top"])
    assert list(answer.columns) == ["top", *LABELS, "top_", "entropy"]


def test_a_row_of_certainty_has_no_negative_entropy(serve, table):
    model = serve(TableEncoder(), table=table[["rooms"]], learner=Certain())
    answer = model.predict_records([{"rooms": 3}])
    assert [answer.columns[name][0] for name in (*LABELS, "top", "entropy")] == [1.0, 0.0, 0.0, "k", 0.0]


def test_entropy_is_that_of_the_row(serve, table):
    answer = serve(TableEncoder(), table=table).predict_records(rows_of(table[:9]))
    D = np.array([answer.columns[name] for name in LABELS])
    np.testing.assert_allclose(answer.columns["entropy"], entropy(D), atol=1e-14)


def test_records_that_are_no_rows_are_named(serve, table):
    model = serve(TableEncoder(), table=table[["age"]])
    assert model.predict_records([]).n_rows == 0
    assert list(model.predict_records([]).columns) == [*LABELS, "top", "entropy"]
    some = model.predict_records([{"age": "31"}, {}])
    assert some.columns["k"][1] == model.predict_records([{"age": None}]).columns["k"][0]
    with pytest.raises(TableError, match="lacks the column 'age'"):
        model.predict_records([{"town": "Ulm"}])
    with pytest.raises(DataError, match="Row 2 is null, where an object") as caught:
        model.predict_records([{"age": 1}, None])
    assert caught.value.row == 1
    with pytest.raises(DataError, match="Row 2 of column 'age' holds a list") as caught:
        model.predict_records([{"age": 1}, {"age": [1]}])
    assert (caught.value.row, caught.value.column) == (1, "age")

"""Explanations: shuffled columns, centred weights, contributions that add up, neighbours, replacements."""

import numpy as np
import pandas as pd
import pytest

import skldl
from skldl.data import Columns
from skldl.exceptions import LengthMismatchError, TableError
from skldl.metrics import kullback_leibler
from skldl.tabular import column_effects, explain_row, feature_weights, fit_table

LABELS = ["emo_joy", "emo_anger", "emo_fear"]


def fitted(faces, model, **options):
    return fit_table(faces.assign(noise="u"), Columns("emo_*", drop=["person"]), model=model, **options).model


@pytest.fixture(scope="module")
def linear(faces):
    return fitted(faces, "sa-bfgs", settings={"alpha": 0.01})


@pytest.fixture(scope="module")
def table(faces):
    return faces.assign(noise="u")


def test_a_column_that_tells_nothing_moves_nothing(linear, table):
    effects = column_effects(linear, table, table[LABELS], n_repeats=2)
    assert set(effects.columns) == {"age", "town", "smoker", "noise"}
    assert effects.columns[-1] == "noise"
    assert effects.importance[-1] == 0
    assert not effects.movement[-1].any()
    assert (effects.importance[:3] > 0.01).all()
    assert np.all(np.diff(effects.importance) <= 0)
    assert effects.divergence == pytest.approx(kullback_leibler(table[LABELS], linear.predict(table)))
    shown = effects.to_pandas()
    assert list(shown) == ["column", "importance", "std", *(f"moves {label}" for label in LABELS)]
    assert shown["column"].tolist() == effects.columns


def test_without_truth_the_predictions_take_its_place(linear, table):
    effects = column_effects(linear, table.drop(columns=LABELS), n_repeats=1)
    assert effects.divergence is None
    assert (effects.importance[:3] > 0).all()
    assert effects.spread.tolist() == [0, 0, 0, 0]


def test_rows_are_drawn_and_weighted(linear, table):
    few = column_effects(linear, table, table[LABELS], max_rows=30, n_repeats=1, sample_weight=np.arange(120) + 1)
    assert few.n_rows == 30
    assert few.columns[-1] == "noise"
    with pytest.raises(LengthMismatchError, match="120 rows and D has 5"):
        column_effects(linear, table, table[LABELS].iloc[:5])


def test_weights_are_centred_and_in_order(linear, table):
    weights = feature_weights(linear)
    assert list(weights) == LABELS
    np.testing.assert_allclose(weights.sum(axis=1), 0, atol=1e-12)
    assert set(weights.index) == set(linear[0].get_feature_names_out())
    largest = weights.abs().max(axis=1).to_numpy()
    assert np.all(np.diff(largest) <= 0)
    assert feature_weights(fit_table(table, Columns("emo_*", drop=["person"]), model="mean").model) is None
    plain = skldl.SABFGS().fit(np.eye(3), np.full((3, 2), 0.5))
    assert set(feature_weights(plain).index) == {"0", "1", "2"}


def test_contributions_add_up_to_the_log_degrees(linear, table):
    explanation = explain_row(linear, table, 7)
    assert explanation.how == "contributions"
    assert explanation.table.index[0] == "(intercept)"
    scores = explanation.table.sum()
    np.testing.assert_allclose(np.exp(scores) / np.exp(scores).sum(), explanation.prediction)
    np.testing.assert_allclose(explanation.prediction, linear.predict(table.iloc[[7]])[0])


def test_contributions_of_sparse_features():
    words = pd.DataFrame({"word": ["good", "bad", "nice", "awful"] * 5, "a": [0.9, 0.1] * 10})
    model = fit_table(words.assign(b=1 - words["a"]), Columns(["a", "b"], text=["word"]), model="sabfgs").model
    explanation = explain_row(model, words, 0)
    assert all(name.startswith(("word~", "(")) for name in explanation.table.index)
    scores = explanation.table.sum()
    np.testing.assert_allclose(np.exp(scores) / np.exp(scores).sum(), explanation.prediction)


def test_neighbours_average_to_the_prediction(faces, table):
    model = fitted(faces, "aa-knn", settings={"n_neighbors": 7})
    explanation = explain_row(model, table, 3)
    assert explanation.how == "neighbours"
    assert len(explanation.table) == 7
    assert explanation.table["distance"].iloc[0] == 0
    np.testing.assert_allclose(explanation.table[LABELS].mean(), explanation.prediction)
    rows = explanation.table["training row"].to_numpy() - 1
    np.testing.assert_allclose(faces[LABELS].to_numpy()[rows], explanation.table[LABELS])


def test_replacement_for_any_other_model(faces, table):
    model = fitted(faces, "pt-bayes")
    explanation = explain_row(model, table, 5)
    assert explanation.how == "replacement"
    assert set(explanation.table.index) == {"age", "town", "smoker", "noise"}
    # equal up to rounding: a prediction minus the same one, computed in a batch of another size
    np.testing.assert_allclose(explanation.table.loc["noise"], 0, atol=1e-15)
    np.testing.assert_allclose(explanation.table.sum(axis=1), 0, atol=1e-12)
    changed = table.iloc[[5]].assign(town=table["town"].mode()[0])
    expected = model.predict(table.iloc[[5]])[0] - model.predict(changed)[0]
    np.testing.assert_allclose(explanation.table.loc["town"], expected)


def test_rows_that_are_not_there(linear, table):
    for row in (-1, 120):
        with pytest.raises(TableError, match=f"There is no row {row + 1}: the table has 120 rows"):
            explain_row(linear, table, row)


class Recorder:
    """A model of one column that remembers the cells for which it predicts."""

    label_names_, feature_names_in_ = ["no", "yes"], ["c"]

    def predict(self, table):
        self.cells = table["c"].tolist()
        return np.full((len(table), 2), 0.5)


@pytest.mark.parametrize(
    ("cells", "typical"),
    [
        (pd.Series([1.0, 5.0, 3.0]), 3.0),
        (pd.Series(["1", "5", "3", None]), 3.0),
        (pd.Series(["010", "010", "80331", "99999"]), "010"),
        (pd.Series([4.0, "4", "x"]), "4"),
        (pd.Series(["b", "a", "b"]), "b"),
        (pd.Series([True, True, False]), "True"),
        (pd.Series(pd.to_datetime(["2024-01-02", "2024-01-02", "2024-03-01"])), pd.Timestamp("2024-01-02")),
        (pd.Series([None, None], dtype=object), None),
    ],
)
def test_typical_values(cells, typical):
    model = Recorder()
    explanation = explain_row(model, pd.DataFrame({"c": cells}), 1)
    assert explanation.how == "replacement"
    assert model.cells == [typical]


def test_the_typical_value_of_a_code_is_the_most_frequent_one(faces):
    """The median of postcodes is none of them."""
    coded = faces.assign(code=faces["town"].map({"Ulm": 89073, "Bonn": 53111, "Kiel": 24103})).drop(columns="town")
    model = fit_table(coded, Columns("emo_*", drop=["person"], categories=["code"]), model="pt-bayes").model
    changed = coded.iloc[[5]].assign(code=coded["code"].mode()[0])
    expected = model.predict(coded.iloc[[5]])[0] - model.predict(changed)[0]
    np.testing.assert_allclose(explain_row(model, coded, 5).table.loc["code"], expected)


def test_a_column_may_be_called_self(faces):
    renamed = faces.rename(columns={"age": "self"})
    model = fit_table(renamed, Columns("emo_*", drop=["person"]), model="pt-bayes").model
    assert "self" in column_effects(model, renamed, n_repeats=1).columns
    assert "self" in explain_row(model, renamed, 0).table.index


def test_replacement_without_an_encoder(faces):
    X = faces[["age"]].fillna(40.0)
    model = skldl.PTBayes().fit(X, faces[LABELS])
    expected = model.predict(X.iloc[[3]])[0] - model.predict(pd.DataFrame({"age": [X["age"].median()]}))[0]
    np.testing.assert_allclose(explain_row(model, X, 3).table.loc["age"], expected)

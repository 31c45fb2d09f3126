"""Predictions as a table."""

import numpy as np
import pandas as pd
import pytest

import skldl
from skldl.data import Columns
from skldl.exceptions import TableError
from skldl.tabular import fit_table, predict_table


@pytest.fixture(scope="module")
def model(faces):
    return fit_table(faces, Columns("emo_*", drop=["person"]), model="sa-bfgs", settings={"alpha": 0.01}).model


LABELS = ["emo_joy", "emo_anger", "emo_fear"]


def test_columns(model, faces):
    D = model.predict(faces)
    result = predict_table(model, faces, labels=LABELS, values=[1, 2, 4], keep=["person", "town", "person"])
    assert list(result) == ["person", "town", *LABELS, "top", "entropy", "expected"]
    np.testing.assert_array_equal(result[LABELS], D)
    assert result["top"].tolist() == [LABELS[place] for place in D.argmax(axis=1)]
    np.testing.assert_allclose(result["entropy"], -(D * np.log(D)).sum(axis=1))
    np.testing.assert_allclose(result["expected"], D @ [1, 2, 4])
    assert list(predict_table(model, faces, labels=LABELS)) == [*LABELS, "top", "entropy"]


def test_no_rows(model, faces):
    result = predict_table(model, faces.iloc[:0], labels=LABELS, values=[1, 2, 3], keep=["person"])
    assert list(result) == ["person", *LABELS, "top", "entropy", "expected"]
    assert len(result) == 0


def test_names_that_are_taken():
    X = pd.DataFrame({"entropy": [0.0, 1.0], "x": [1.0, 2.0]})
    labels = ["top", "top_"]
    model = skldl.MeanDistribution().fit(X, pd.DataFrame([[0.25, 0.75]] * 2, columns=labels))
    result = predict_table(model, X, labels=labels, keep=["entropy"])
    assert list(result) == ["entropy", "top", "top_", "top__", "entropy_"]
    assert result["top__"].tolist() == ["top_", "top_"]


@pytest.mark.parametrize(("keep", "message"), [("nobody", "no such column"), ("emo_joy", "a label has this name")])
def test_columns_that_cannot_be_kept(model, faces, keep, message):
    with pytest.raises(TableError, match=f"keep='{keep}': .*{message}"):
        predict_table(model, faces, labels=LABELS, keep=[keep])

"""``skldl explain``: tables, rows, labels that are there or not."""

import shlex

import pandas as pd
import pytest

from skldl.cli._app import run


def call(line):
    return run(shlex.split(line))


def test_explain(here, capsys, faces):
    assert call("explain faces.skldl faces.csv --repeats 1 --out e.csv --out e.svg") == 0
    reported = capsys.readouterr()
    assert "divergence of the labels in the table when a column is shuffled (120 rows)" in reported.out
    assert "Weights, centred over labels" in reported.out
    assert "The model learned from these rows" in reported.err
    assert set(pd.read_csv("e.csv")["column"]) == {"age", "town", "smoker"}
    assert (here / "e.svg").read_text().startswith("<?xml")
    assert call("explain faces.skldl new.csv --repeats 1") == 0
    assert "The table has no labels" in capsys.readouterr().err
    faces.assign(emo_joy=None, emo_anger=None, emo_fear=None).to_csv("bare.csv", index=False)
    assert call("explain faces.skldl bare.csv --repeats 1") == 0
    assert "No row has labels" in capsys.readouterr().err


def test_explain_a_row(here, capsys):
    assert call("explain faces.skldl faces.csv --row 3 --out e.parquet --out e.png") == 0
    assert "(intercept)" in capsys.readouterr().out
    assert pd.read_parquet("e.parquet")["feature"].iloc[0] == "(intercept)"
    assert (here / "e.png").read_bytes().startswith(b"\x89PNG")
    assert call("fit faces.csv --labels 'emo_*' --drop person --model aa-knn --set n_neighbors=30 --out k.skldl") == 0
    capsys.readouterr()
    assert call("explain k.skldl faces.csv --row 3") == 0
    shown = capsys.readouterr().out
    assert "training row" in shown
    assert "the first 20 of 30" in shown


def test_explain_with_labels_that_the_model_does_not_know(here, capsys):
    assert call("fit votes.csv --labels says --kind label --drop id --model mean --folds 2 --out m.skldl") == 0
    pd.DataFrame({"who": ["ann", "bo"], "says": ["joy", "anger"]}).to_csv("other.csv", index=False)
    assert call("explain m.skldl other.csv") == 2
    assert "The label 'anger' is not among those of the model: fear, joy" in capsys.readouterr().err
    pd.DataFrame({"who": ["ann", "bo"], "says": ["joy", "fear"]}).to_csv("other.csv", index=False)
    assert call("explain m.skldl other.csv") == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # five iterations are too few
def test_explain_a_model_without_an_intercept(here, capsys):
    assert call("fit faces.csv --labels 'emo_*' --drop person --model sa-iis --set max_iter=5 --out i.skldl") == 0
    assert call("explain i.skldl faces.csv --row 3") == 0
    assert "What each feature adds to the logarithm" in capsys.readouterr().out


def test_explain_rows_with_one_label_of_several(here, capsys):
    assert call("fit votes.csv --labels says --kind label --drop id --model mean --folds 2 --out m.skldl") == 0
    pd.DataFrame({"who": ["ann", "bo"], "says": ["joy", "joy"]}).to_csv("joyful.csv", index=False)
    assert call("explain m.skldl joyful.csv") == 0
    assert "of the labels in the table" in capsys.readouterr().out


def test_rows_that_the_model_learned_from_are_left_out(here, faces, capsys):
    """They are found again in another file, in another order, with other columns beside them."""
    faces.head(80).to_csv("first.csv", index=False)
    assert call("fit first.csv --labels 'emo_*' --drop person --model sa-bfgs --out m.skldl") == 0
    faces.sample(frac=1, random_state=0)[faces.columns[::-1]].assign(more=1).to_parquet("all.parquet")
    capsys.readouterr()
    assert call("explain m.skldl all.parquet --repeats 1") == 0
    reported = capsys.readouterr()
    assert "learned from 80 of the 120 rows; the other 40 are explained. --all-rows takes all." in reported.err
    assert "(40 rows)" in reported.out
    assert call("explain m.skldl all.parquet --repeats 1 --all-rows") == 0
    reported = capsys.readouterr()
    assert "(120 rows)" in reported.out
    assert "that it overfits" in reported.err
    faces.tail(40).to_csv("new_rows.csv", index=False)
    assert call("explain m.skldl new_rows.csv --repeats 1") == 0
    reported = capsys.readouterr()
    assert "(40 rows)" in reported.out
    assert not reported.err
    assert call("inspect m.skldl --json") == 0
    assert '"training_rows": "960 hexadecimal digits"' in capsys.readouterr().out

"""``skldl explain``: tables, rows, labels that are there or not."""

import pandas as pd
import pytest


def test_explain(here, cli, faces):
    reported = cli("explain faces.skldl faces.csv --repeats 1 --out e.csv --out e.svg")
    assert "divergence of the labels in the table when a column is shuffled (120 rows)" in reported.out
    assert "Weights, centred over labels" in reported.out
    assert "The model learned from these rows" in reported.err
    assert set(pd.read_csv("e.csv")["column"]) == {"age", "town", "smoker"}
    assert (here / "e.svg").read_text().startswith("<?xml")
    assert "The table has no labels" in cli("explain faces.skldl new.csv --repeats 1").err
    faces.assign(emo_joy=None, emo_anger=None, emo_fear=None).to_csv("bare.csv", index=False)
    assert "No row has labels" in cli("explain faces.skldl bare.csv --repeats 1").err


def test_explain_a_row(here, cli):
    assert "(intercept)" in cli("explain faces.skldl faces.csv --row 3 --out e.parquet --out e.png").out
    assert pd.read_parquet("e.parquet")["feature"].iloc[0] == "(intercept)"
    assert (here / "e.png").read_bytes().startswith(b"\x89PNG")
    cli("fit faces.csv --labels 'emo_*' --drop person --model aa-knn --set n_neighbors=30 --out k.skldl")
    shown = cli("explain k.skldl faces.csv --row 3").out
    assert "training row" in shown
    assert "the first 20 of 30" in shown


def test_explain_with_labels_that_the_model_does_not_know(here, cli):
    cli("fit votes.csv --labels says --kind label --drop id --model mean --folds 2 --out m.skldl")
    pd.DataFrame({"who": ["ann", "bo"], "says": ["joy", "anger"]}).to_csv("other.csv", index=False)
    printed = cli("explain m.skldl other.csv", status=2)
    assert "The label 'anger' is not among those of the model: fear, joy" in printed.err
    pd.DataFrame({"who": ["ann", "bo"], "says": ["joy", "fear"]}).to_csv("other.csv", index=False)
    cli("explain m.skldl other.csv")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # five iterations are too few
def test_explain_a_model_without_an_intercept(here, cli):
    cli("fit faces.csv --labels 'emo_*' --drop person --model sa-iis --set max_iter=5 --out i.skldl")
    assert "Contribution of each feature to the logarithm" in cli("explain i.skldl faces.csv --row 3").out


def test_explain_rows_with_one_label_of_several(here, cli):
    cli("fit votes.csv --labels says --kind label --drop id --model mean --folds 2 --out m.skldl")
    pd.DataFrame({"who": ["ann", "bo"], "says": ["joy", "joy"]}).to_csv("joyful.csv", index=False)
    assert "of the labels in the table" in cli("explain m.skldl joyful.csv").out


def test_rows_that_the_model_learned_from_are_left_out(here, faces, cli):
    """They are found again in another file, in another order, with other columns beside them."""
    faces.head(80).to_csv("first.csv", index=False)
    cli("fit first.csv --labels 'emo_*' --drop person --model sa-bfgs --out m.skldl")
    faces.sample(frac=1, random_state=0)[faces.columns[::-1]].assign(more=1).to_parquet("all.parquet")
    reported = cli("explain m.skldl all.parquet --repeats 1")
    assert "learned from 80 of the 120 rows; the other 40 are explained. --all-rows uses all." in reported.err
    assert "(40 rows)" in reported.out
    reported = cli("explain m.skldl all.parquet --repeats 1 --all-rows")
    assert "(120 rows)" in reported.out
    assert "that it overfits" in reported.err
    faces.tail(40).to_csv("new_rows.csv", index=False)
    reported = cli("explain m.skldl new_rows.csv --repeats 1")
    assert "(40 rows)" in reported.out
    assert not reported.err
    assert '"training_rows": "960 hexadecimal digits"' in cli("inspect m.skldl --json").out

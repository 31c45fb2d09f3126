"""Conversions for files: votes, counts, scores, labels, sets and rankings."""

import numpy as np
import pandas as pd
import pytest

from skldl.data import convert_table
from skldl.distributions import from_rankings
from skldl.exceptions import DataError, MissingLabelError, TableError

VOTES = pd.DataFrame(
    {
        "id": ["u", "v", "u", "u", "v"],
        "who": ["ann", "ann", "bob", "cid", "bob"],
        "says": ["joy", "fear", "fear", "joy", None],
        "age": [31, 54, 31, 31, 54],
        "mood": [1, 2, 3, 4, 5],
    }
)


def test_votes_in_rows():
    done = convert_table(VOTES, "votes", item="id", annotator="who", label="says", prefix="emo_", weight="votes")
    assert done.table.to_dict("list") == {
        "id": ["u", "v"],
        "age": [31, 54],
        "emo_fear": [pytest.approx(1 / 3), 1.0],
        "emo_joy": [pytest.approx(2 / 3), 0.0],
        "votes": [3, 1],
    }
    assert done.labels == ["emo_fear", "emo_joy"]
    assert done.notes[0] == "1 rows without an answer are left out."
    assert "2 items, 3 annotators, 4 votes. Agreement: Krippendorff's alpha (nominal)" in done.notes[1]
    assert done.notes[2] == "Left out, since they differ between the rows of one item: 'mood'."


def test_votes_in_columns_keep_the_order_of_the_file():
    table = pd.DataFrame({"x": [5, 6], "r1": ["10", "9"], "r2": ["9", None]})
    done = convert_table(table, "votes", labels="r?", weight="n")
    assert done.table.to_dict("list") == {"x": [5, 6], "9": [0.5, 1.0], "10": [0.5, 0.0], "n": [2, 1]}


@pytest.mark.parametrize(
    ("source", "options", "expected"),
    [
        ("counts", {"labels": ["a", "b"]}, {"x": [1, 2], "a": [0.25, 0.5], "b": [0.75, 0.5]}),
        ("scores", {"labels": ["a", "b"], "prefix": "s_"}, {"x": [1, 2], "s_a": [0.25, 0.5], "s_b": [0.75, 0.5]}),
    ],
)
def test_columns_of_numbers(source, options, expected):
    table = pd.DataFrame({"x": [1, 2], "a": [1, 2], "b": [3, 2]})
    assert convert_table(table, source, **options).table.to_dict("list") == expected


def test_labels_and_sets():
    table = pd.DataFrame({"x": [1, 2], "says": ["sky | sea", "sea"]})
    assert convert_table(table, "sets", label="says").table.to_dict("list") == {
        "x": [1, 2],
        "sea": [0.5, 1.0],
        "sky": [0.5, 0.0],
    }
    table["says"] = ["sky", "sea"]
    assert convert_table(table, "label", label="says").table.to_dict("list") == {
        "x": [1, 2],
        "sea": [0.0, 1.0],
        "sky": [1.0, 0.0],
    }


def test_rankings_with_and_without_items():
    table = pd.DataFrame({"id": [1, 1, 2], "order": ["sky>sea", "sky", "sea>sun>sky"], "x": [7, 7, 8]})
    done = convert_table(table, "rankings", item="id", label="order", weight="n").table
    expected = from_rankings([[["sky", "sea"], ["sky"]], [["sea", "sun", "sky"]]], labels=["sea", "sky", "sun"])
    assert list(done) == ["id", "x", "sea", "sky", "sun", "n"]
    np.testing.assert_allclose(done[["sea", "sky", "sun"]], expected)
    assert done["n"].tolist() == [2, 1]
    rows = convert_table(table.drop(columns="id"), "rankings", label="order").table
    assert list(rows) == ["x", "sea", "sky", "sun"]
    assert len(rows) == 3


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("stars", {}, TableError, "Known are votes, counts"),
        ("votes", {"item": "id"}, TableError, "three columns: item=, annotator= and label="),
        ("votes", {}, TableError, "source='votes' needs labels="),
        ("sets", {}, TableError, "source='sets' needs label="),
        ("counts", {"labels": ["age"], "weight": "n"}, TableError, "weight= counts votes"),
        (
            "votes",
            {"item": "nr", "annotator": "who", "label": "says"},
            TableError,
            "item='nr': the table has no such column",
        ),
        ("votes", {"item": "says", "annotator": "who", "label": "id"}, MissingLabelError, "Row 5 of column 'says'"),
        ("rankings", {"item": "says", "label": "id"}, MissingLabelError, "Row 5 of column 'says' is empty"),
        ("votes", {"item": "id", "annotator": "who", "label": "none"}, MissingLabelError, "not a single answer"),
        ("votes", {"item": "id", "annotator": "age", "label": "says"}, DataError, "twice"),
        ("rankings", {}, TableError, "source='rankings' needs label="),
        ("label", {"label": "who", "prefix": "x_"}, TableError, "has a column 'x_ann' already.*prefix="),
    ],
)
def test_wrong_conversions(source, options, error, message):
    with pytest.raises(error, match=message):
        convert_table(VOTES.assign(none=None, x_ann=0), source, **options)


def test_numbers_that_are_equal_are_one_label_in_long_and_wide_form():
    long = pd.DataFrame({"id": [1, 1, 2, 2], "who": list("abab"), "stars": ["4", "4.0", "5", "4"]})
    done = convert_table(long, "votes", item="id", annotator="who", label="stars")
    assert done.table.to_dict("list") == {"id": [1, 2], "4": [1.0, 0.5], "5": [0.0, 0.5]}
    wide = pd.DataFrame({"id": [1, 2], "a": [4, 5], "b": [4.0, None]})
    assert convert_table(wide, "votes", labels=["a", "b"]).table.to_dict("list") == {
        "id": [1, 2],
        "4": [1.0, 0.0],
        "5": [0.0, 1.0],
    }


def test_ratings_that_are_numbers_have_an_ordinal_agreement():
    ratings = np.clip(np.arange(60)[:, None] % 5 + np.random.default_rng(0).integers(0, 2, (60, 3)), 0, 5)
    table = pd.DataFrame(ratings, columns=["a", "b", "c"])
    note = convert_table(table.assign(x=1), "votes", labels=["a", "b", "c"]).notes[-1]
    assert "alpha (ordinal) 0.9" in note
    assert "60 items, 3 annotators, 180 votes" in note
    assert "no agreement" in convert_table(table[["a"]].assign(x=1), "votes", labels=["a"]).notes[-1]


def test_what_is_written_is_loaded_without_any_option(tmp_path):
    from skldl.data import TableWriter, load_dataset

    for ending in ("csv", "parquet"):
        done = convert_table(VOTES, "votes", item="id", annotator="who", label="says", prefix="label_")
        with TableWriter(tmp_path / f"t.{ending}") as writer:
            writer.write(done.table)
        assert load_dataset(tmp_path / f"t.{ending}").label_names == ("fear", "joy")


def ratings(n_items=120):
    """Five raters who see the truth with small errors, and one who answers at random, in long form."""
    rng = np.random.default_rng(0)
    truth = rng.integers(1, 6, n_items)
    rows = []
    for item, true in enumerate(truth):
        for rater in range(6):
            answer = rng.integers(1, 6) if rater == 5 else np.clip(true + rng.choice([-1, 0, 0, 0, 1]), 1, 5)
            rows.append((item, f"r{rater}", str(answer)))
    return pd.DataFrame(rows, columns=["id", "who", "stars"])


@pytest.mark.parametrize("wide", [False, True])
def test_quality_of_raters_and_votes_weighed_by_it(wide):
    table = ratings()
    options = {"item": "id", "annotator": "who", "label": "stars"}
    if wide:
        table = table.pivot(index="id", columns="who", values="stars").reset_index()
        options = {"labels": "r*"}
    plain = convert_table(table, "votes", **options)
    measured = convert_table(table, "votes", raters=True, **options)
    weighed = convert_table(table, "votes", weigh_raters=True, **options)
    assert plain.raters is None
    pd.testing.assert_frame_equal(plain.table, measured.table)
    quality = measured.raters.set_index("rater")
    assert quality["informedness"].idxmin() == "r5"
    assert quality.loc["r5", "weight"] < 0.2 * quality["weight"].drop("r5").min()
    shares = {name: converted.table[plain.labels].to_numpy() for name, converted in (("all", plain), ("good", weighed))}
    good = ratings().query("who != 'r5'")
    expected = convert_table(good, "votes", item="id", annotator="who", label="stars").table[plain.labels].to_numpy()
    assert np.abs(shares["good"] - expected).mean() < 0.5 * np.abs(shares["all"] - expected).mean()


def test_quality_of_raters_is_for_votes():
    with pytest.raises(TableError, match="raters="):
        convert_table(pd.DataFrame({"a": [1, 2], "b": [3, 4]}), "counts", labels=["a", "b"], raters=True)


@pytest.mark.parametrize(("source", "separator"), [("sets", "|"), ("rankings", ">")])
def test_a_separator_that_never_occurs_is_noted(source, separator):
    table = pd.DataFrame({"says": ["joy; fear", "fear; joy", "joy"]})
    noted = convert_table(table, source=source, label="says").notes
    assert any(f"holds the separator {separator!r}" in note and "separator=" in note for note in noted)
    cut = convert_table(table, source=source, label="says", separator=";")
    assert cut.labels == ["fear", "joy"]
    assert not cut.notes

"""Kinds of columns that are known from a whole table, in fits to a part of it."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone

from skldl.exceptions import TableError
from skldl.tabular import TableEncoder

TABLE = pd.DataFrame(
    {
        "remark": ["3", "4", "ill"],
        "day": ["03/04/2024", "05/04/2024", "25/04/2024"],
        "answer": ["yes", "no", "7"],
        "prose": ["", "a", "a long day"],
        "number": [None, None, 1.5],
        "post": [1, 2, 3],
    }
)
KINDS = {"remark": "category", "day": "date", "answer": "category", "prose": "text", "number": "number"}
GIVEN = {"text": ["prose"], "categories": ["post"], "text_ngrams": "words", "dense": True}


def fit(encoder, table, how):
    return encoder.fit(table) if how == "whole" else encoder.fit_chunks(lambda: (table[:1], table[1:]))


@pytest.mark.parametrize("how", ["whole", "chunks"])
def test_kinds_known_from_a_whole_table_hold_in_a_part(how):
    options = GIVEN | ({"hashed_text": 8} if how == "chunks" else {})
    part = TABLE[:2].assign(prose="")
    encoder = fit(clone(TableEncoder(**options).know_columns(TABLE)), part, how)
    assert encoder.kinds_ == KINDS | {"post": "category"}
    assert encoder.dates_["day"][0] == "%d/%m/%Y"
    features = encoder.transform(TABLE)
    assert features.shape == (3, len(encoder.get_feature_names_out())) == (3, len(encoder.sources()))
    assert "prose" not in encoder.sources()
    assert np.isfinite(features).all()
    alone = fit(TableEncoder(categories=["post"]), part.drop(columns="prose"), how)
    assert (alone.kinds_["remark"], alone.kinds_["answer"]) == ("number", "boolean")


def test_text_is_cut_alike_in_every_part():
    table = pd.DataFrame({"prose": ["a long and sunny day", "one", "two"]})
    encoder = TableEncoder(text=["prose"]).know_columns(table)
    assert encoder.known_columns == {"prose": ("text", "characters")}
    assert "prose~_lo" in encoder.fit(table[:1]).get_feature_names_out()  # alone it would be cut into words


def test_known_columns_change_nothing_in_the_table_they_come_from():
    plain, known = TableEncoder(**GIVEN).fit(TABLE), TableEncoder(**GIVEN).know_columns(TABLE).fit(TABLE)
    assert known.kinds_ == plain.kinds_
    np.testing.assert_array_equal(known.transform(TABLE), plain.transform(TABLE))


def test_text_that_cannot_be_cut_is_refused():
    for learn in (TableEncoder.know_columns, TableEncoder.fit):
        with pytest.raises(TableError, match="The text column 'prose' holds no word of two letters or more"):
            learn(TableEncoder(**GIVEN), TABLE[:2])
        with pytest.raises(TableError, match="The text column 'prose' is empty in every row"):
            learn(TableEncoder(**GIVEN), TABLE[:1])
    with pytest.raises(TableError, match="Nothing is left to learn from: in these rows the text columns 'prose'"):
        TableEncoder(text=["prose"]).know_columns(TABLE[["prose"]]).fit(TABLE[["prose"]][:1])


def test_the_last_table_counts_and_what_is_not_known_is_found():
    encoder = TableEncoder().know_columns(TABLE[["day"]]).know_columns(pd.DataFrame({"day": ["Monday"]}))
    assert encoder.known_columns == {"day": ("category", "")}
    assert encoder.fit(pd.DataFrame({"day": ["7"], "more": [1.0]})).kinds_ == {"day": "category", "more": "number"}
    as_words = TableEncoder(text=["prose"]).know_columns(TABLE[["prose"]]).set_params(text=())
    assert as_words.fit(TABLE[["prose"]]).kinds_ == {"prose": "category"}


@pytest.mark.parametrize("entry", [("numbr", ""), ("date", ""), ("text", "")])
def test_known_columns_are_checked(entry):
    with pytest.raises(TableError, match=r"known_columns=\{'x': \('.*', ''\)\} is no kind of column"):
        TableEncoder(known_columns={"x": entry}).fit(pd.DataFrame({"x": ["a", "b"]}))


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        (pa.date32(), [dt.date(2024, 1, 2), None, dt.date(2024, 5, 6)]),
        (pa.timestamp("us"), [dt.datetime(2024, 1, 2), None, dt.datetime(2024, 5, 6)]),
        (pa.timestamp("ns", "UTC"), [pd.Timestamp("2024-01-02", tz="UTC"), None, pd.Timestamp("2024-05-06", tz="UTC")]),
    ],
)
def test_dates_of_arrow_are_dates(kind, cells):
    table = pd.DataFrame({"day": pd.Series(cells, dtype=pd.ArrowDtype(kind))})
    text = pd.DataFrame({"day": ["2024-01-02", None, "2024-05-06"]})
    found, expected = (TableEncoder().fit(each).transform(each) for each in (table, text))
    assert not sparse.issparse(found)
    np.testing.assert_allclose(found, expected)


def test_what_is_known_of_another_kind_does_not_count():
    table = pd.DataFrame({"day": ["2024-01-02", "2024-05-06", "2024-07-08"]})
    encoder = TableEncoder().know_columns(table).set_params(text=("day",))
    plain = TableEncoder(text=("day",))
    np.testing.assert_array_equal(*(each.fit(table).transform(table) for each in (encoder, plain)))


def test_an_unknown_way_to_cut_text_is_refused():
    with pytest.raises(TableError, match="text_ngrams='foo' must be one of auto, words, characters"):
        TableEncoder(text=("prose",), text_ngrams="foo").know_columns(TABLE)

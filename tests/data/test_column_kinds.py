"""Columns that are not what they seem: other notations of numbers, dates, several values in a cell, extremes."""

import datetime

import numpy as np
import pandas as pd
import pytest

from skldl.data import Columns, from_table
from skldl.exceptions import DataError, NonFiniteError, TableError
from skldl.tabular import TableEncoder


def table(**columns):
    n_rows = max(len(cells) for cells in columns.values())
    return pd.DataFrame({"x": np.arange(n_rows) % 4, **columns, "l_a": 0.25, "l_b": 0.75})


def encoded(cells):
    """An encoder of one column, and the typed cells of the column."""
    frame = pd.DataFrame({"v": pd.Series(cells)})
    encoder = TableEncoder().fit(frame)
    return encoder, encoder.typed_cells(frame)


NUMBERS = [12.5, 1234.5, -3.25, 88.0, 4321.75, 0.5, 17.0, 1000000.25]
AFFIXES = ("{:.2f}%", "{:.2f} %", "${:.2f}", "{:.2f} €", "CHF {:.2f}", "R${:.2f}")


@pytest.mark.parametrize(
    "write",
    [
        *(way.format for way in AFFIXES),
        lambda value: f"{value:,.2f}".replace(",", "'"),
        lambda value: f"{value:,.2f}".replace(",", "\u2019"),
        lambda value: f"{value:,.2f}".replace(",", "\u202f"),
        lambda value: f"{value:,.2f}".replace(",", "\u00a0").replace(".", ","),
        lambda value: f"{value:,.2f}",
        lambda value: f"{value:_.2f}0",
        lambda value: f"{value:.2f}".replace("-", "\u2212").replace(".", ","),
        lambda value: f"({-value:.2f})" if value < 0 else f"${value:.2f}",
        lambda value: f"{abs(value):.2f}-",
        lambda value: f"{value:.4e}".replace("e", "D"),
        lambda value: "".join(chr(0xFEE0 + ord(letter)) for letter in f"{value:.2f}"),
    ],
)
def test_numbers_in_another_notation_are_refused(write):
    cells = [write(value) for value in NUMBERS]
    with pytest.raises(TableError, match=r"'price' holds numbers in a notation that is not supported: .* \(row \d\), "):
        from_table(table(price=cells), "l_*")
    assert not from_table(table(price=cells), Columns("l_*", categories=["price"])).notes


@pytest.mark.parametrize(
    "cells",
    [
        *(["18-24", "25-34", "35-44"] * 3, ["A1", "B2", "$"] * 3, ["1/2", "3/4"] * 4, ["Room 7", "Room 8"] * 4),
        *(["1-", "2-", "3+"] * 3, ["1-", "2-"] * 4, ["65+", "80+"] * 4),  # marks of a school, ages
        *(["001_002", "007_123"] * 4, ["030 123 456", "040 123 456"] * 4),  # codes
        *(["152.520 113.405", "148.125 118.000"] * 4,),  # coordinates
    ],
)
def test_words_with_digits_are_categories(cells):
    assert not from_table(table(what=cells), "l_*").notes


def test_a_unit_is_mentioned():
    [note] = from_table(table(weight=["10 kg", "12.5 kg", "9 kg"] * 3), "l_*").notes
    assert note == (
        "Column 'weight' holds numbers with a unit, such as '10 kg', and is treated as categories, which have no "
        "order. Remove 'kg' to use the numbers."
    )
    assert not from_table(table(weight=["10 kg", "12.5 lb", "9 kg"] * 3), "l_*").notes


@pytest.mark.parametrize(
    ("cells", "written", "second"),
    [
        (["May 5, 2021", "September 12, 2021 8:15"], "%b %d, %Y", "2021-09-12 08:15"),
        (["5 May 2021", "12 December 2021"], "%d %b %Y", "2021-12-12"),
        (["31-Dec-2020", "01-Feb-2021"], "%d-%b-%Y", "2021-02-01"),
        (["31-12-2020", "01-02-2021"], "%d-%m-%Y", "2021-02-01"),
        (["31.12.20", "01.02.21"], "%d.%m.%y", "2021-02-01"),
        (["12/31/20", "1/2/21"], "%m/%d/%y", "2021-01-02"),
        (["2021-01-01 12:05 AM", "2021-01-02 1:00 pm"], "%Y-%m-%d", "2021-01-02 13:00"),
        (["2021-05", "2021-12"], "%Y-%m", "2021-12-01"),
        (["7:30", "23:59:59"], "%H:%M", "1970-01-01 23:59:59"),
        ([datetime.time(7, 30), datetime.time(12, 15)], "%H:%M", "1970-01-01 12:15"),
    ],
)
def test_more_ways_to_write_dates(cells, written, second):
    encoder, typed = encoded(pd.Series(cells, dtype=object))
    assert encoder.kinds_ == {"v": "date"}
    assert encoder.dates_["v"][0] == written
    assert typed["v: days"][1] == (pd.Timestamp(second) - pd.Timestamp(0)) / pd.Timedelta(days=1)
    assert all(np.isfinite(part).all() for part in typed.values())


@pytest.mark.parametrize(
    "cells", [["01/02/03", "04/05/06"], ["01-02-2021"], ["13:05 PM"], ["45:30"], ["16:90"], ["2021-13"], ["1999-1-2-3"]]
)
def test_what_is_no_date_or_not_clearly_one(cells):
    assert encoded(pd.Series(cells, dtype=object))[0].kinds_ == {"v": "category"}


@pytest.mark.parametrize(
    "cells", [["3. Mai 2024", "4. März 2024"], ["2024-W07", "2024-W08"], ["2024-05-31", "1.6.2024"]]
)
def test_dates_that_are_not_read_are_mentioned(cells):
    [note] = from_table(table(when=cells * 4), "l_*").notes
    assert note.startswith(f"Column 'when' seems to hold dates or times, such as {cells[0]!r}")


def test_dates_of_other_centuries():
    days = np.array(["1492-10-12", "1789-07-14", "2999-01-01"], dtype="datetime64[s]")
    encoder = TableEncoder().fit(pd.DataFrame({"when": days}))
    assert np.isfinite(encoder.transform(pd.DataFrame({"when": days}))).all()
    seconds = pd.DataFrame({"when": np.array([10**15, 10**15 + 1], dtype="datetime64[s]")})
    with pytest.raises(TableError, match="Column 'when' holds dates of the years 31690708 to 31690708"):
        TableEncoder().fit(seconds)


@pytest.mark.parametrize("cell", [[1.0], {"a": 1}, np.ones(2), (1, 2)])
def test_several_values_in_a_cell_are_refused(cell):
    cells = pd.Series([None, *[cell] * 5], dtype=object)
    with pytest.raises(TableError, match=r"Row 2 of column 'v' holds several values .*drop=\['v'\]"):
        from_table(table(v=cells), "l_*")
    with pytest.raises(TableError, match="Row 2 of column 'v' holds several values"):
        TableEncoder().fit(pd.DataFrame({"v": cells}))
    with pytest.raises(TableError, match="Row 2 of column 'l_c' holds several values"):
        from_table(table(l_c=cells), "l_*")
    assert not from_table(table(v=cells), Columns("l_*", drop=["v"])).notes


@pytest.mark.parametrize(("factor", "word"), [(1e300, "large"), (1e-310, "small")])
def test_numbers_that_cannot_be_standardised_are_refused(factor, word):
    values = np.linspace(1, 2, 8) * factor
    for cells in (values, [f"{value!r}" for value in values.tolist()]):
        with pytest.raises(TableError, match=f"largest absolute value of column 'size' is .* too {word} to compute"):
            from_table(table(size=cells), "l_*")


def test_whole_numbers_that_are_rounded_are_mentioned():
    [note] = from_table(table(code=np.uint64(2**63) + np.arange(8, dtype=np.uint64)), "l_*").notes
    assert note.startswith("Column 'code' holds whole numbers of more than 15 digits, which are rounded")


def test_columns_that_say_nothing_are_mentioned():
    [note] = from_table(table(nothing=[None] * 8, other=[np.nan] * 8), "l_*").notes
    assert note == "'nothing', 'other': empty in every row."
    [note] = from_table(table(town=["Ulm"] * 8).drop(columns="x"), "l_*").notes
    assert note == "'town': the same in every row, so that nothing can be learned from the features."
    assert not from_table(table(town=["Ulm", None] * 4).drop(columns="x"), "l_*").notes


@pytest.mark.parametrize("cells", [[1, 2], [0.0, 2.0], [5, 4]])
def test_numbers_that_do_not_count_the_rows(cells):
    assert not from_table(table(day=cells * 4), "l_*").notes


def test_a_column_that_counts_the_rows_is_mentioned():
    [note] = from_table(table(index=np.arange(8)), "l_*").notes
    assert note.startswith("Column 'index' goes up by one from row to row. If it only numbers the rows, leave it out")
    assert not from_table(table(index=np.arange(8)), Columns("l_*", drop=["index"])).notes


MOMENT = datetime.datetime(2024, 5, 31, 12)


@pytest.mark.parametrize("cell", [MOMENT, np.datetime64("2024-05-31"), MOMENT.date(), 1 + 2j, pd.Period("2024-05")])
def test_what_is_no_number_is_not_taken_for_one(cell):
    cells = pd.Series([cell, None] * 4, dtype=object)
    assert encoded(cells)[0].kinds_["v"] != "number"
    with pytest.raises(DataError, match=r"Row 1 of column 'l_b' holds .*, where a number belongs"):
        from_table(table(l_a=[0.5] * 8).assign(l_b=cells), "l_*")


@pytest.mark.parametrize("hour", [datetime.timedelta(hours=1), np.timedelta64(1, "h"), pd.Timedelta("1h")])
def test_spans_of_time_are_their_seconds_in_whatever_column(hour):
    for cells in (pd.Series([hour, 2 * hour], dtype=object), pd.Series([hour, 2 * hour])):
        weighted = from_table(table(age=[1, 2]).assign(w=cells), Columns("l_*", weight="w"))
        np.testing.assert_array_equal(weighted.sample_weight, [3600, 7200])
    typed = pd.Series([hour, pd.NaT, 2 * hour])
    np.testing.assert_array_equal(encoded(typed)[1]["v"], [3600, np.nan, 7200])


@pytest.mark.parametrize("hour", [datetime.timedelta(hours=1), np.timedelta64(1, "h"), pd.Timedelta("1h")])
def test_durations_are_numbers_whatever_the_type_of_their_column(hour):
    for cells in (pd.Series([None, hour, 2 * hour], dtype=object), pd.Series([None, hour, 2 * hour])):
        encoder, typed = encoded(cells)
        assert (encoder.kinds_, encoder.durations_) == ({"v": "number"}, ["v"])
        np.testing.assert_array_equal(typed["v"], [np.nan, 3600, 7200])
    [note] = from_table(table(v=[hour, 2 * hour, 4 * hour, hour]), "l_*").notes
    assert note == "Column 'v' holds durations: models learn from their seconds."


def test_periods_are_dates():
    frame = pd.DataFrame({"when": pd.period_range("2024-01", periods=6, freq="M")})
    assert TableEncoder().fit(frame).kinds_ == {"when": "date"}
    [note] = from_table(table(when=frame["when"]), "l_*").notes
    assert note.startswith("Column 'when' holds dates")


def test_bytes_are_text_if_they_can_be():
    cells = pd.DataFrame({"town": ["Köln".encode(), None, b"Ulm"] * 4})
    encoder = TableEncoder().fit(cells)
    as_text = pd.DataFrame({"town": ["Köln", None, "Ulm"] * 4})
    np.testing.assert_array_equal(encoder.transform(cells), encoder.transform(as_text))
    picture = table(picture=[b"\xff\xd8"] * 8)
    with pytest.raises(
        TableError, match=r"Row 1 of column 'picture' holds bytes that are not text .*drop=\['picture'\]"
    ):
        from_table(picture, "l_*")
    assert not from_table(picture, Columns("l_*", drop=["picture"])).notes


@pytest.mark.parametrize("cells", [[np.inf] * 8, [-np.inf, np.inf] * 4])
def test_infinite_cells_are_named_without_a_warning(cells):
    with pytest.raises(NonFiniteError, match="Row 1 of column 'size' is infinite"):
        TableEncoder().fit(from_table(table(size=cells), "l_*").X)

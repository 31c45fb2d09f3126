"""Long JSON bodies, which are parsed in pieces: the answer or the error is that of the whole body."""

import json

import orjson
import pytest

from skldl.serve import Limits
from skldl.serve._bodies import PIECE_BYTES, PIECE_ROWS, record_pieces  # sizes of pieces bound the memory of a request


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n ", " : ")])
def test_pieces_are_the_rows_in_order(separators):
    rows = [{"a": place, "b": "x" * 20, "c": [place, None]} for place in range(5000)]
    body = b" \n" + json.dumps(rows, separators=separators).encode() + b"\r\n"
    pieces = list(record_pieces(body, 10**6))
    assert [row for piece in pieces for row in piece] == rows
    if separators[0].startswith(","):
        assert len(pieces) == pytest.approx(len(body) / PIECE_BYTES, abs=2)


@pytest.mark.parametrize("cell", ["},{", "a}, {b", '\\"},{', [{}, {"d": 1}, {}], {"d": [{}, {}]}])
def test_a_cut_inside_a_cell_is_noticed(client, rows, cell):
    """Whether a cut falls into a cell depends on the position, so that all positions are tried."""
    alone = [client.post("/predict", json=[row]).json()[0]["top"] for row in rows[:3]]
    for shift in range(0, 60, 3):
        first = {"x": "x" * (PIECE_BYTES - 80 + shift), "y": cell} | rows[0]
        body = orjson.dumps([first, {"y": cell} | rows[1], {"y": None} | rows[2]])
        answer = client.post("/predict", content=body)
        assert [row["top"] for row in answer.json()] == alone


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[  ]",
        "{}",
        '{"a": [1]}',
        "[1,]",
        "[,{}]",
        '[{"a": 1},]',
        '[{"a": 1} {"a": 2}]',
        "[{}]]",
        "[[{}]",
        "[{}] x",
        "x [{}]",
        "]{}[",
        '[{"a": NaN}]',
    ],
)
def test_what_is_no_list_of_rows_is_answered_as_without_spaces(client, text):
    room = " " * (2 * PIECE_BYTES)
    expected = client.post("/predict", content=text, headers={"content-type": "application/json"})
    for body in (text + room, room + text, text.replace("[", "[" + room, 1)):
        answer = client.post("/predict", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == expected.status_code
        assert answer.text[:30] == expected.text[:30]


def test_broken_pieces_in_the_middle_are_noticed(client, rows):
    good = orjson.dumps([rows[place % 120] | {"z": "x" * 30} for place in range(3000)])
    assert client.post("/predict", content=good).status_code == 200
    assert client.post("/predict", content=good + b"x").status_code == 400
    middle = len(good) // 2
    for damage in (b"},,{", b"}{", b"}],[{", b"},{,", b"}\x00,{"):
        at = good.index(b"},{", middle)
        answer = client.post("/predict", content=good[:at] + damage + good[at + 3 :])
        assert (answer.status_code, "not JSON" in answer.text) == (400, True)


def test_rows_are_counted_over_all_pieces(make_client, rows):
    body = orjson.dumps([rows[0] | {"z": "x" * 100} for _ in range(3000)])
    assert len(make_client(limits=Limits(rows=3000)).post("/predict", content=body).json()) == 3000
    answer = make_client(limits=Limits(rows=2999)).post("/predict", content=body)
    assert (answer.status_code, "more than 2,999 rows" in answer.text) == (413, True)


@pytest.mark.parametrize("n_rows", [0, 1, PIECE_ROWS - 1, PIECE_ROWS, PIECE_ROWS + 1, 3 * PIECE_ROWS])
def test_answers_are_written_as_one_list(client, rows, n_rows):
    alone = [client.post("/predict", json=[row]).json()[0]["top"] for row in rows[:5]]
    answer = client.post("/predict", json=[rows[place % 5] for place in range(n_rows)]).json()
    assert [row["top"] for row in answer] == [alone[place % 5] for place in range(n_rows)]


def test_a_long_body_is_answered_like_its_rows(client, rows):
    def asked(records):
        answer = client.post("/predict", content=orjson.dumps(records))
        assert answer.status_code == 200
        return answer.json()

    some = [row | {"note": "}, {" + "y" * place} for place, row in enumerate(rows)]
    many = some * 15
    assert len(orjson.dumps(many)) > 2 * PIECE_BYTES
    alone = [asked([row])[0] for row in some]
    for one, long in zip(alone * 15, asked(many), strict=True):
        assert one["top"] == long["top"]
        assert one["emo_joy"] == pytest.approx(long["emo_joy"], abs=1e-14, rel=0)
    before = len(many)
    counted = f'skldl_rows_total{{model="faces"}} {before + len(some)}'
    assert counted in client.get("/metrics").text


def test_a_long_body_with_a_bad_cell_names_its_row(client, rows):
    many = [dict(rows[0], note="z" * 50) for _ in range(3000)]
    many[2345] = many[2345] | {"age": "x"}
    answer = client.post("/predict", content=orjson.dumps(many))
    assert answer.status_code == 422
    assert answer.json()["error"]["row"] == 2346
    assert answer.json()["error"]["column"] == "age"

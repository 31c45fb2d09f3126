"""Long JSON bodies in pieces: the same rows as the whole, or the rejected of the whole."""

import json

import orjson
import pytest

from skldl.serve._bodies import PIECE_BYTES, PIECE_ROWS, NotInPieces, read_records, record_pieces, write_answer
from skldl.serve._errors import RequestError
from skldl.serve._model import Answer

MANY = 10**6


def joined(body):
    return [record for piece in record_pieces(body, MANY) for record in piece]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": "), (" ,\n ", " : ")])
def test_pieces_are_the_rows_in_order(separators):
    rows = [{"a": place, "b": "x" * 20, "c": [place, None]} for place in range(5000)]
    body = b" \n" + json.dumps(rows, separators=separators).encode() + b"\r\n"
    assert joined(body) == rows
    if separators[0].startswith(","):
        sizes = [len(piece) for piece in record_pieces(body, MANY)]
        assert len(sizes) == pytest.approx(len(body) / PIECE_BYTES, abs=2)


@pytest.mark.parametrize("cell", ["},{", "a}, {b", '\\"},{', [{}, {"d": 1}, {}], {"d": [{}, {}]}])
def test_a_cut_inside_a_cell_is_noticed(cell):
    """Whether a cut falls into a cell depends on the place, so that all places are tried."""
    n_whole = 0
    for shift in range(0, 60, 3):
        rows = [{"a": "x" * (PIECE_BYTES - 30 + shift), "b": cell}, {"a": 1, "b": cell}, {"a": 2, "b": None}]
        body = orjson.dumps(rows)
        try:
            assert joined(body) == rows
        except NotInPieces:
            n_whole += 1
            assert read_records(body, MANY) == rows
    assert n_whole


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
@pytest.mark.parametrize("room", [0, 2 * PIECE_BYTES])
def test_what_is_no_list_of_rows_is_left_to_the_whole(text, room):
    for body in (text + " " * room, " " * room + text, text.replace("[", "[" + " " * room, 1)):
        with pytest.raises(NotInPieces):
            joined(body.encode())


def test_broken_pieces_in_the_middle_are_noticed():
    good = orjson.dumps([{"a": place, "b": "x" * 30} for place in range(6000)])
    middle = len(good) // 2
    for damage in (b"},,{", b"}{", b"}],[{", b"},{,", b"}\x00,{"):
        at = good.index(b"},{", middle)
        with pytest.raises(NotInPieces):
            joined(good[:at] + damage + good[at + 3 :])


def test_rows_are_counted_over_all_pieces():
    body = orjson.dumps([{"a": "x" * 100} for _ in range(3000)])
    assert sum(map(len, record_pieces(body, 3000))) == 3000
    with pytest.raises(RequestError, match="more than 2,999 rows"):
        list(record_pieces(body, 2999))


@pytest.mark.parametrize("n_rows", [0, 1, PIECE_ROWS - 1, PIECE_ROWS, PIECE_ROWS + 1, 3 * PIECE_ROWS])
def test_answers_are_written_as_one_list(n_rows):
    columns = {"yes": [place / 7 for place in range(n_rows)], "top": ["no"] * n_rows}
    rows = [{"yes": place / 7, "top": "no"} for place in range(n_rows)]
    assert orjson.loads(write_answer(Answer(columns, n_rows), "application/json")) == rows


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

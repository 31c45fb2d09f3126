"""The routes: answers are those of ``skldl predict``, and errors name the place and what to send."""

import asyncio
import io
import json
import re
import time

import numpy as np
import pandas as pd
import pytest

import skldl
from skldl.data import Columns
from skldl.serve import Limits
from skldl.tabular import FitOptions, fit_table

LABELS = ["emo_joy", "emo_anger", "emo_fear"]
PARQUET = "application/vnd.apache.parquet"


@pytest.fixture
def table(faces):
    return faces.drop(columns=LABELS)


@pytest.fixture
def predicted(tmp_path, table, faces_model, cli):
    """What the command writes."""
    table.to_csv(tmp_path / "new.csv", index=False)

    def predict(ending, *options):
        out = tmp_path / f"out{ending}"
        cli(["predict", str(faces_model), str(tmp_path / "new.csv"), "--out", str(out), *options])
        return out.read_bytes()

    return predict


@pytest.mark.parametrize("query", ["", "?digits=9", "?keep=person,age", "?keep=town&digits=3"])
def test_csv_is_what_the_command_writes(client, table, predicted, query):
    options = re.sub(r"[?&](\w+)=", r" --\1 ", query).split()
    content = table.to_csv(index=False)
    answer = client.post("/predict" + query, content=content, headers={"content-type": "text/csv"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.content == predicted(".csv", *options)


def test_parquet_is_what_the_command_writes(client, table, predicted):
    body = io.BytesIO()
    table.to_parquet(body)
    answer = client.post("/predict", content=body.getvalue(), headers={"content-type": PARQUET})
    expected = pd.read_parquet(io.BytesIO(predicted(".parquet")))
    pd.testing.assert_frame_equal(pd.read_parquet(io.BytesIO(answer.content)), expected, rtol=0, atol=1e-12)


def test_json_has_the_same_numbers(client, rows, predicted):
    expected = pd.read_parquet(io.BytesIO(predicted(".parquet")))
    for path in ("/predict", "/models/faces/predict"):
        answer = client.post(path, json=rows).json()
        pd.testing.assert_frame_equal(pd.DataFrame(answer), expected, rtol=0, atol=1e-12, check_dtype=False)
    one = client.post("/predict", json=rows[3]).json()
    assert one[0]["emo_joy"] == pytest.approx(expected["emo_joy"][3], abs=1e-12)
    assert one[0]["top"] == expected["top"][3]
    kept = client.post("/predict?keep=person", json=rows[:2]).json()
    assert list(kept[0]) == ["person", *expected.columns]
    assert [row["person"] for row in kept] == ["p0", "p0"]


def test_labels_that_are_numbers_have_an_expected_value(client):
    row = client.post("/models/numbers/predict", json={"age": 30, "height": 7}).json()[0]
    assert row["expected"] == pytest.approx(sum(int(name) * row[name] for name in "123"))
    assert list(row) == ["1", "2", "3", "top", "entropy", "expected"]


def test_no_rows_give_no_predictions(client):
    assert client.post("/predict", json=[]).json() == []
    header = client.post("/predict", content="age,town,smoker,person\n", headers={"content-type": "text/csv"})
    assert header.text == "emo_joy,emo_anger,emo_fear,top,entropy\n"


def test_the_answer_can_have_another_format(client, rows):
    as_csv = client.post("/predict?format=csv", json=rows[:2])
    assert as_csv.text.startswith("emo_joy,")
    accepted = client.post("/predict", json=rows[:2], headers={"accept": "text/html, text/csv;q=0.5"})
    assert accepted.text == as_csv.text
    guessed = client.post("/predict", content=json.dumps(rows[:1]), headers={"content-type": ""})
    assert guessed.json()[0]["top"]
    assert client.post("/predict", json=rows[:1], headers={"accept": "image/png"}).status_code == 406
    assert client.post("/predict?format=xml", json=rows[:1]).status_code == 400
    for digits in ("99", "0", "0170", "001000000000", "six", ""):
        assert client.post(f"/predict?digits={digits}", json=rows[:1]).status_code == 400
    misspelt = client.post("/predict?kep=age", json=rows[:1])
    assert misspelt.status_code == 400
    assert "'kep' is not a parameter of predict. Use format, keep, " in misspelt.json()["error"]["message"]
    twice = client.post("/predict?keep=age&keep=town", json=rows[:1])
    assert (twice.status_code, "keep is given twice" in twice.text) == (400, True)


WRONG_CELLS = [
    ({"age": "old"}, "age", "expects a number", "Send a number, or null"),
    ({"age": "inf"}, "age", "is infinite", "Send a number, or null"),
    ({"age": [3]}, "age", "holds a list", "Send a number, or null"),
    ({"smoker": "perhaps"}, "smoker", "expects yes or no", "true or false"),
    ({"town": {"a": 1}}, "town", "holds an object", "Send a text"),
]


@pytest.mark.parametrize(("change", "column", "message", "hint"), WRONG_CELLS)
def test_a_wrong_cell_is_named_with_a_hint(client, rows, change, column, message, hint):
    answer = client.post("/predict", json=[rows[0], rows[1] | change])
    error = answer.json()["error"]
    assert answer.status_code == 422
    assert (error["row"], error["column"]) == (2, column)
    assert message in error["message"]
    assert hint in error["hint"]


def test_a_missing_column_is_named(client, rows):
    short = [{name: cell for name, cell in row.items() if name != "town"} for row in rows[:2]]
    for body, headers in ((json.dumps(short), {}), ("age,smoker\n3,no\n", {"content-type": "text/csv"})):
        answer = client.post("/predict", content=body, headers=headers)
        assert answer.status_code == 422
        assert answer.json()["error"]["column"] == "town"
        assert "null" in answer.json()["error"]["hint"]


@pytest.mark.parametrize(
    ("body", "kind", "status", "message"),
    [
        (b"", "application/json", 400, "empty"),
        (b"{", "application/json", 400, "not JSON"),
        (b"[NaN]", "application/json", 400, "not JSON"),
        (b"3", "application/json", 422, "neither a list"),
        (b"[3]", "application/json", 422, "Row 1 is a number"),
        (b"[null, {}]", "application/json", 422, "Row 1 is null"),
        (b'[{"Age": 3}]', "application/json", 422, "It has 'Age'."),
        (b"[{}]", "application/json", 422, "It has no column."),
        (b"a,b\n1,2,3\n", "text/csv", 422, "has 3 cells, the header 2"),
        (b"PAR1 nothing", PARQUET, 422, "not a readable Parquet file"),
        (b"<a/>", "text/xml", 415, "not known"),
        (b"hello", "", 415, "not known"),
    ],
)
def test_bodies_that_cannot_be_read(client, body, kind, status, message):
    answer = client.post("/predict", content=body, headers={"content-type": kind})
    assert answer.status_code == status
    assert message in answer.json()["error"]["message"]


def test_limits(make_client, rows, table):
    client = make_client(limits=Limits(body_bytes=4000, rows=5))
    assert client.post("/predict", json=rows[:5]).status_code == 200
    assert client.post("/predict", json=rows[:6]).status_code == 413
    many = client.post("/predict", content=table[:6].to_csv(index=False), headers={"content-type": "text/csv"})
    assert many.status_code == 413
    assert "rows" in many.json()["error"]["message"]
    large = client.post("/predict", content=b" " * 4001)
    assert large.status_code == 413
    assert "4,000 bytes" in large.json()["error"]["message"]
    streamed = client.post("/predict", content=(b" " * 1000 for _ in range(5)))
    assert streamed.status_code == 413
    packed = client.post("/predict", content=b"x", headers={"content-encoding": "gzip"})
    assert packed.status_code == 415


@pytest.mark.parametrize("kind", ["text/csv", PARQUET])
def test_many_columns(make_client, rows, kind):
    few = make_client(limits=Limits(columns=30))
    for client, wide, status in ((few, 30, 200), (few, 31, 413), (make_client(), 20_000, 413)):
        table = pd.DataFrame([rows[0] | {f"c{i}": 1 for i in range(wide - len(rows[0]))}])
        body = io.BytesIO()
        table.to_csv(body, index=False) if kind == "text/csv" else table.to_parquet(body)
        answer = client.post("/predict", content=body.getvalue(), headers={"content-type": kind})
        assert answer.status_code == status
        assert status == 200 or f"{wide:,} columns" in answer.json()["error"]["message"]


@pytest.mark.parametrize("model", ["sa-bfgs", "aa-knn", "pt-svm"])
def test_numbers_whose_squares_overflow(make_client, faces, tmp_path, model):
    fitted = fit_table(faces[["age", *LABELS]].fillna(30.0), LABELS, model=model)
    path = skldl.save(fitted.model, tmp_path / "model.skldl", description=fitted.description)
    client = make_client(paths={"model": path})
    records = [{"age": 31.0}, {"age": 1e308}]
    csv = client.post("/predict", content="age\n31\n1e308\n", headers={"content-type": "text/csv"})
    for answer in (client.post("/predict", json=records), csv, client.post("/explain", json=records[1:])):
        assert answer.status_code == 422
        assert "too large" in answer.json()["error"]["message"]
    assert "row 2, column 'age'" in csv.json()["error"]["message"]


def test_work_ends_when_its_request_does(make_client, faces_model, rows, monkeypatch):
    from skldl.serve import _model

    client = make_client(limits=Limits(seconds=0.3))
    model, blocks = client.service.models["faces"], []

    def slow(X):
        blocks.append(time.sleep(0.1))
        return np.full((X.shape[0], 3), 1 / 3)

    monkeypatch.setattr(_model, "BLOCK_ROWS", 1)
    monkeypatch.setattr(model, "_linear", None)
    monkeypatch.setattr(model, "_distributions_of_block", slow)
    table = "age,town,smoker\n" + "31,Ulm,no\n" * 100
    with client:
        assert client.post("/predict", content=table, headers={"content-type": "text/csv"}).status_code == 504
        time.sleep(0.3)
        assert client.get("/health").status_code == 200  # the event loop sees the end of the thread
        assert client.service.metrics.running == 0
        assert len(blocks) < 10


def test_a_body_that_never_ends_or_is_cut_off(make_client, post):
    app = make_client(limits=Limits(seconds=0.05)).app
    start = {"type": "http.request", "body": b"[", "more_body": True}

    async def answer_to(*messages):
        waiting = iter(messages)

        async def receive():
            for message in waiting:
                return message
            await asyncio.sleep(10)

        return await post(app, receive)

    for messages, status in (
        ((), 504),
        ((start,), 504),
        (({"type": "http.disconnect"},), 400),
        ((start, {"type": "http.disconnect"}), 400),
    ):
        assert asyncio.run(answer_to(*messages))[0] == status
    _, answer = asyncio.run(answer_to(start, start, {"type": "http.request", "body": b"]"}))
    assert re.search(b"not JSON.*char 3", answer)  # all three parts of the body were read


def test_a_small_parquet_body_cannot_take_much_memory(make_client):
    import pyarrow as pa
    import pyarrow.parquet as pq

    n_rows = 90_000
    word = pa.DictionaryArray.from_arrays(pa.array([0] * n_rows, pa.int32()), pa.array(["x" * 2_000]))
    body = io.BytesIO()
    pq.write_table(pa.table({"age": [1.0] * n_rows, "town": word, "smoker": ["no"] * n_rows}), body, compression="gzip")
    assert len(body.getvalue()) < 50_000  # of 180 MB
    answer = make_client().post("/predict", content=body.getvalue(), headers={"content-type": PARQUET})
    assert answer.status_code == 413
    assert "'town'" in answer.json()["error"]["message"]
    for width, status in ((2, 200), (2_000, 413)):  # 2 MB and 80 MB, without dictionaries of words
        body, towns = io.BytesIO(), pa.array(["x" * width] * 40_000)
        table = pa.table({"age": [1.0] * 40_000, "town": towns, "smoker": ["no"] * 40_000})
        pq.write_table(table, body, compression="gzip", use_dictionary=False)
        answer = make_client().post("/predict", content=body.getvalue(), headers={"content-type": PARQUET})
        assert answer.status_code == status
    assert "The Parquet body would take more than 67,108,864 bytes" in answer.json()["error"]["message"]


def test_time_and_places_are_limited(make_client, rows, monkeypatch):
    client = make_client(limits=Limits(seconds=0.05, concurrent=1))
    model = client.service.models["faces"]
    monkeypatch.setattr(model, "predict_frame", lambda *_: time.sleep(0.4))
    monkeypatch.setattr(model.encoder, "encode_records", lambda *_, **__: None)
    with client:  # one event loop for both requests
        late = client.post("/predict", json=rows[:1])
        assert late.status_code == 504
        busy = client.post("/predict", json=rows[:1])  # the thread of the first still runs
        assert busy.status_code == 503
        assert busy.headers["retry-after"] == "1"
        time.sleep(0.6)
        assert client.get("/health").status_code == 200
        assert client.service.metrics.running == 0


def test_a_failure_of_ours_shows_no_traceback(make_client, rows, monkeypatch, capsys):
    client = make_client(raise_errors=False)
    monkeypatch.setattr(client.service.models["faces"].encoder, "encode_records", lambda *_, **__: None)
    monkeypatch.setattr(client.service.models["faces"], "predict_frame", lambda *_: 1 / 0)
    answer = client.post("/predict", json=rows[:1])
    assert answer.status_code == 500
    assert "ZeroDivision" not in answer.text
    number = answer.headers["x-request-id"]
    assert number in answer.json()["error"]["message"]
    line = json.loads(capsys.readouterr().err.splitlines()[0])
    assert line["request"] == number
    assert "ZeroDivisionError" in line["traceback"]


def test_the_schema_says_what_to_send(client):
    schema = client.get("/schema").json()
    features = {feature["name"]: feature for feature in schema["features"]}
    assert {name: feature["type"] for name, feature in features.items()} == {
        "age": "number",
        "town": "category",
        "smoker": "boolean",
    }
    assert features["town"]["categories"] == ["Bonn", "Kiel", "Ulm"]
    assert features["age"]["minimum"] < features["age"]["typical"] < features["age"]["maximum"]
    assert schema["labels"] == LABELS
    assert client.get("/models/numbers/schema").json()["values"] == [1, 2, 3]
    assert [model["name"] for model in client.get("/models").json()] == ["faces", "numbers"]


def test_the_description_names_every_route(client):
    about = client.get("/openapi.json").json()
    assert about["openapi"].startswith("3.1")
    for path in ("/predict", "/models/numbers/predict", "/schema", "/health", "/ready", "/metrics", "/explain"):
        assert path in about["paths"]
    row = about["components"]["schemas"]["faces.row"]
    assert row["required"] == ["age", "town", "smoker"]
    assert about["components"]["schemas"]["faces.prediction"]["properties"]["top"]["enum"] == LABELS
    assert set(about["paths"]["/predict"]["post"]["responses"]) == {
        *("200", "400", "401", "406", "413", "415", "422", "503", "504")
    }
    assert "406" not in about["paths"]["/explain"]["post"]["responses"]


def test_metrics_count_requests_rows_and_what_is_unusual(client, rows):
    client.post("/predict", json=rows[:3])
    client.post("/predict", json=[rows[0] | {"town": "Rome", "age": 4000}])
    client.post("/predict", json=[rows[0] | {"age": "x"}])
    client.get("/nowhere")
    text = client.get("/metrics").text
    samples = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert samples['skldl_requests_total{route="/predict",model="faces",status="200"}'] == "2"
    assert samples['skldl_requests_total{route="/predict",model="faces",status="422"}'] == "1"
    assert samples['skldl_errors_total{route="other",side="client"}'] == "1"
    assert samples['skldl_rows_total{model="faces"}'] == "4"
    assert samples['skldl_unknown_categories_total{model="faces",column="town"}'] == "1"
    assert samples['skldl_far_outside_range_total{model="faces",column="age"}'] == "1"
    assert samples['skldl_request_duration_seconds_count{route="/predict"}'] == "3"
    assert samples['skldl_request_duration_seconds_bucket{route="/predict",le="+Inf"}'] == "3"
    assert float(samples["process_resident_memory_bytes"]) > 1e6


def test_explanations(client, rows, faces_model):
    explained = client.post("/explain", json=rows[1]).json()
    assert explained["how"] == "contributions"
    total = {name: sum(feature["effects"][name] for feature in explained["features"]) for name in LABELS}
    powers = np.exp([total[name] for name in LABELS])
    np.testing.assert_allclose(powers / powers.sum(), [explained["prediction"][name] for name in LABELS], atol=1e-12)
    assert client.post("/explain", json=rows[:2]).status_code == 422
    wrong = client.post("/models/faces/explain", json=rows[0] | {"age": "x"})
    assert wrong.json()["error"]["column"] == "age"


def test_keys(make_client, rows):
    client = make_client(key="a key of sufficient length")
    assert client.post("/predict", json=rows[:1]).status_code == 401
    assert client.get("/metrics").headers["www-authenticate"] == "Bearer"
    for headers in (
        {"x-api-key": "a key of sufficient length"},
        {"authorization": "Bearer a key of sufficient length"},
    ):
        assert client.post("/predict", json=rows[:1], headers=headers).status_code == 200
    assert client.post("/predict", json=rows[:1], headers={"x-api-key": "another"}).status_code == 401
    assert {client.get(path).status_code for path in ("/", "/health", "/ready")} == {200}


def test_other_hosts_are_rejected_without_a_key(client, make_client):
    assert client.get("/schema", headers={"host": "evil.example:8000"}).status_code == 421
    assert client.get("/schema", headers={"host": "[::1]:8000"}).status_code == 200
    assert make_client(any_host=True).get("/schema", headers={"host": "evil.example"}).status_code == 200


def test_unknown_addresses_and_methods(client):
    assert client.get("/models/nobody/schema").status_code == 404
    assert client.post("/models/nobody/predict", json=[]).status_code == 404
    assert "faces, numbers" in client.post("/models/nobody/predict", json=[]).json()["error"]["message"]
    assert client.post("/a/b/c/predict").status_code == 404
    assert client.get("/predict").status_code == 405
    assert client.delete("/schema").status_code == 405


def test_the_end_is_announced(client):
    client.service.draining = True
    ready = client.get("/ready")
    assert ready.status_code == 503
    assert ready.headers["connection"] == "close"
    assert client.get("/health").status_code == 200


def test_explanations_of_models_without_weights(make_client, faces, tmp_path):
    import skldl
    from skldl.tabular import fit_table

    paths = {}
    for name, settings in (("aa-knn", {"n_neighbors": 5}), ("random-forest", {"n_estimators": 10, "kind": "extra"})):
        made = fit_table(
            faces,
            Columns("emo_*", drop=["person"]),
            model=name,
            settings=settings,
            options=FitOptions(folds=2, keep_rows=30),
        )
        paths[name] = skldl.save(made.model, tmp_path / f"{name}.skldl", description=made.description)
    client = make_client(paths=paths)
    row = {"age": 62.0, "town": "Ulm", "smoker": "yes"}
    near = client.post("/models/aa-knn/explain", json=row).json()
    assert len(near["neighbours"]) == 5
    typical = {feature["name"]: feature["typical"] for feature in client.get("/schema").json()["features"]}
    for name in paths:
        explained = client.post(f"/models/{name}/explain", json=row).json()
        assert explained["how"] == "replacement"
        assert {feature["feature"] for feature in explained["features"]} == {"age", "town", "smoker"}
        variants = [row | {feature["feature"]: typical[feature["feature"]]} for feature in explained["features"]]
        own, *others = client.post(f"/models/{name}/predict", json=[row, *variants]).json()
        for feature, other in zip(explained["features"], others, strict=True):
            assert feature["effects"] == pytest.approx({label: own[label] - other[label] for label in LABELS}, abs=1e-9)
        distances = [each["distance"] for each in explained["nearest"]]
        assert distances == sorted(distances)
        assert len(distances) == 5
        assert set(explained["nearest"][0]["row"]) == {"age", "town", "smoker"}
        assert sum(explained["nearest"][0]["labels"].values()) == pytest.approx(1)
    fast = client.post("/models/random-forest/predict", json=[row]).json()[0]
    slow = client.post("/models/random-forest/predict", json=[row | {"age": "62"}]).json()[0]
    assert fast == pytest.approx(slow, abs=1e-12)


def test_the_page_brings_everything_itself(client):
    answer = client.get("/")
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#|openapi\.json)""", answer.text)
    assert "http" not in answer.text

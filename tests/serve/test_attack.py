"""Bodies that nobody means well with, and load over some time: the service answers on, and its memory stays flat."""

import asyncio
import io
import json
import os
import random
import re
import string
import threading
import time

import pandas as pd
import pytest

from skldl.serve import Limits

GOOD = {"age": 31.5, "town": "Ulm", "smoker": "no"}
EXPECTED = {200, 400, 406, 413, 415, 422}
TYPES = ("application/json", "text/csv", "application/vnd.apache.parquet", "application/octet-stream", "text/plain", "")


def odd_cell(chance):
    return chance.choice(
        (
            *(
                None,
                True,
                False,
                0,
                -1,
                1e308,
                -1e308,
                2**63,
                2**64,
                10**40,
                1e-320,
                "",
                " ",
                "NaN",
                "inf",
                "-inf",
                "null",
            ),
            *(
                "1e999",
                "0x10",
                "1_000",
                "١٢",
                "\x00",
                "\ud7ff",
                "😀" * 50,
                "x" * 20_000,
                "2024-02-30",
                "=1+1",
                "yes",
                "Ulm",
            ),
            *([], {}, [1, [2]], {"a": {"b": []}}),
        )
    )


def malformed(number):
    """A body that is wrong in some way, always the same for a number."""
    chance = random.Random(number)
    records = [{**GOOD, chance.choice(list(GOOD)): odd_cell(chance)} for _ in range(chance.randint(1, 5))]
    kind = number % 8
    if kind == 0:
        return json.dumps(records).encode(), "application/json"
    if kind == 1:  # cut off
        text = json.dumps(records).encode()
        return text[: chance.randrange(len(text))], "application/json"
    if kind == 2:  # a byte changed
        text = bytearray(json.dumps(records).encode())
        text[chance.randrange(len(text))] = chance.randrange(256)
        return bytes(text), "application/json"
    if kind == 3:
        text = pd.DataFrame([GOOD] * 4).to_csv(index=False).encode()
        text = bytearray(text)
        for _ in range(chance.randint(1, 6)):
            text[chance.randrange(len(text))] = chance.choice(b'",;\n\r\t\x00\xff\xfe19')
        return bytes(text), "text/csv"
    if kind == 4:
        body = io.BytesIO()
        pd.DataFrame([GOOD] * 4).to_parquet(body)
        content = bytearray(body.getvalue())
        for _ in range(chance.randint(1, 8)):
            content[chance.randrange(4, len(content))] = chance.randrange(256)
        return bytes(content), "application/vnd.apache.parquet"
    if kind == 5:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(400))), chance.choice(TYPES)
    if kind == 6:
        deep = chance.randint(1, 3000)
        return b"[" * deep + b"]" * chance.randint(0, deep), "application/json"
    words = "".join(chance.choice(string.printable) for _ in range(chance.randrange(200)))
    return json.dumps(
        [words, {words: words}, {**GOOD, words: [words]}][: chance.randint(1, 3)]
    ).encode(), chance.choice(TYPES)


def attack(client, numbers):
    for number in numbers:
        body, kind = malformed(number)
        path = ("/predict", "/models/faces/predict", "/explain")[number % 3]
        answer = client.post(path, content=body, headers={"content-type": kind})
        assert answer.status_code in EXPECTED, (number, answer.status_code, answer.text)
        if answer.status_code != 200:
            message = answer.json()["error"]["message"]
            assert message, number
            assert "Traceback" not in message, number
            assert 'File "' not in message, number
    assert client.post("/predict", json=[GOOD]).status_code == 200
    assert client.service.metrics.running == 0


def test_some_malformed_bodies(client):
    with client:
        attack(client, range(40))


@pytest.mark.slow
def test_a_thousand_malformed_bodies(client):
    with client:
        attack(client, range(40, 1040))


@pytest.mark.slow
def test_memory_stays_flat_under_load(make_client, rows):
    """A soak of some thousand requests of every kind; the first ones may fill caches."""
    client = make_client()
    body = pd.DataFrame(rows).to_csv(index=False)

    def load(n_rounds):
        for number in range(n_rounds):
            client.post("/predict", json=rows[number % len(rows)])
            client.post("/predict", json=[rows[0] | {"age": "31"}])
            client.post("/predict", json=[rows[0] | {"age": "x"}])
            client.post(f"/nowhere/{number}")
            if number % 20 == 0:
                client.post("/predict", content=body, headers={"content-type": "text/csv"})
                client.post("/explain", json=rows[0])
        return resident_bytes()

    def resident_bytes():
        found = re.search(r"^process_resident_memory_bytes (\S+)", client.get("/metrics").text, flags=re.M)
        return None if found is None else float(found[1])

    if resident_bytes() is None:
        pytest.skip("this system does not say how much memory a process has")
    with client:  # one event loop for all
        load(300)
        before, after = load(100), load(1500)
    assert after - before < 10 * 2**20, f"{(after - before) / 2**20:.1f} MiB more after 6,000 further requests"
    assert threading.active_count() < 40
    assert len(os.listdir("/proc/self/fd")) < 200


def test_body_and_work_share_the_time_of_a_request(make_client, rows, monkeypatch, post):
    client = make_client(limits=Limits(seconds=0.5))
    model = client.service.model(None)
    monkeypatch.setattr(model.encoder, "encode_records", lambda *_, **__: None)
    monkeypatch.setattr(model, "predict_frame", lambda *_: time.sleep(0.3))

    async def receive():
        await asyncio.sleep(0.3)
        return {"type": "http.request", "body": json.dumps(rows[:1]).encode()}

    assert asyncio.run(post(client.app, receive))[0] == 504


def test_only_requests_that_are_late_are_cancelled(make_client, rows, post):
    app = make_client(limits=Limits(seconds=0.5)).app

    async def ask(seconds):
        async def receive():
            await asyncio.sleep(seconds)
            return {"type": "http.request", "body": json.dumps(rows[1:2]).encode()}

        status, _ = await post(app, receive)
        assert not asyncio.current_task().cancelling()
        return status

    async def serve():
        first = [asyncio.create_task(ask(seconds)) for seconds in (30, 0.0, 40)]
        await asyncio.sleep(0.2)
        later = [asyncio.create_task(ask(seconds)) for seconds in (50, 0.01)]
        gone = asyncio.create_task(ask(20))
        await asyncio.sleep(0)
        gone.cancel()  # by somebody else: this is not a late request
        with pytest.raises(asyncio.CancelledError):
            await gone
        return await asyncio.gather(*first, *later)

    for _ in range(2):  # also in a second event loop
        assert asyncio.run(asyncio.wait_for(serve(), 20)) == [504, 200, 504, 504, 200]

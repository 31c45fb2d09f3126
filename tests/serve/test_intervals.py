"""Intervals in the answers of the service: those of ``skldl predict --level --covers``, or a rejected that says why."""

import numpy as np
import pandas as pd
import pytest

from skldl.cli import main


class Calibration:
    """Stands for the calibration that a model file may keep."""

    def around(self, D, level):
        return np.maximum(D - level / 10, 0), np.minimum(D + level / 10, 1), np.full(len(D), level / 10)


def test_intervals_are_passed_on(client, rows, monkeypatch):
    rejected = client.post("/predict?level=0.8", json=rows[:1])
    assert rejected.status_code == 422
    assert "--intervals" in rejected.json()["error"]["message"]
    for model in client.service.models.values():
        monkeypatch.setattr(model, "intervals", Calibration())
    for body in (rows[:2], [rows[0] | {"age": "31"}]):
        row = client.post("/predict?level=0.5", json=body).json()[0]
        assert row["high_emo_joy"] == pytest.approx(min(row["emo_joy"] + 0.05, 1))
        assert row["low_emo_fear"] == pytest.approx(max(row["emo_fear"] - 0.05, 0))
        assert row["radius"] == 0.05
    header = client.post("/predict?format=csv", json=rows[:1]).text.splitlines()[0].split(",")
    assert header[5:8] == ["low_emo_joy", "high_emo_joy", "low_emo_anger"]
    assert client.post("/predict", json=rows[:1]).json()[0]["radius"] == 0.09
    assert client.get("/schema").json()["answer"] == header  # the schema names what an answer holds
    empty = client.post("/predict", content=",".join(rows[0]), headers={"content-type": "text/csv"})
    assert empty.text.splitlines() == [",".join(header)]
    assert client.post("/predict?level=2", json=rows[:1]).status_code == 400
    assert "high_emo_joy" in client.post("/explain", json=rows[0]).json()["prediction"]


@pytest.fixture(scope="module")
def votes_model(tmp_path_factory):
    """A model of votes with intervals, and its table, as files."""
    chance = np.random.default_rng(8)
    folder = tmp_path_factory.mktemp("votes")
    x = chance.uniform(size=80)
    votes = [chance.multinomial(20, [0.2 + 0.5 * value, 0.3, 0.5 - 0.5 * value]) for value in x]
    frame = pd.DataFrame({"x": x}).join(pd.DataFrame(votes, columns=["yes", "maybe", "no"]))
    frame.to_csv(folder / "votes.csv", index=False)
    frame[["x"]].to_csv(folder / "new.csv", index=False)
    command = ["fit", str(folder / "votes.csv"), "--labels", "yes,maybe,no", "--kind", "counts", "--model", "sa-bfgs"]
    assert main([*command, "--intervals", "--out", str(folder / "votes.skldl")]) == 0
    return folder / "votes.skldl"


@pytest.mark.parametrize("options", [{"level": "0.9"}, {"level": "0.7", "covers": "true"}, {"covers": "given"}])
def test_intervals_have_the_words_of_the_command(make_client, votes_model, tmp_path, options, cli):
    client = make_client(paths={"votes": votes_model})
    content = (votes_model.parent / "new.csv").read_bytes()
    answer = client.post("/predict", params=options, content=content, headers={"content-type": "text/csv"})
    asked = {"level": "0.9"} | options
    switches = [word for name, value in asked.items() for word in (f"--{name}", value)]
    command = ["predict", str(votes_model), str(votes_model.parent / "new.csv"), "--out", str(tmp_path / "out.csv")]
    cli([*command, *switches])
    assert answer.content == (tmp_path / "out.csv").read_bytes()
    assert client.get("/schema").json()["covers"] == ["given", "true"]


def test_intervals_that_a_model_does_not_have_are_rejected(client, rows, monkeypatch):
    assert client.get("/schema").json()["covers"] == []
    rejected = client.post("/predict?covers=true", json=rows[:1])
    assert (rejected.status_code, "--intervals" in rejected.text) == (422, True)
    unknown = client.post("/predict?covers=all", json=rows[:1])
    assert (unknown.status_code, "given, true" in unknown.text) == (400, True)
    monkeypatch.setattr(client.service.model(None), "intervals", Calibration())
    rejected = client.post("/predict?covers=true", json=rows[:1])
    assert (rejected.status_code, "--kind counts" in rejected.text) == (422, True)
    assert client.post("/predict?covers=given", json=rows[:1]).status_code == 200

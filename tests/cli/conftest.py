"""A folder with files as a person has them."""

import pandas as pd
import pytest

LABELS = ["emo_joy", "emo_anger", "emo_fear"]


@pytest.fixture
def here(tmp_path, monkeypatch, faces, faces_model):
    """A folder with the files that the examples of the help speak of."""
    monkeypatch.chdir(tmp_path)
    faces.to_csv("faces.csv", index=False)
    faces.drop(columns=LABELS).head(5).to_csv("new.csv", index=False)
    (tmp_path / "faces.skldl").write_bytes(faces_model.read_bytes())
    votes = [(i, who, "joy" if (i + len(who)) % 3 else "fear") for i in range(6) for who in ("ann", "bo", "cid")]
    pd.DataFrame(votes, columns=["id", "who", "says"]).to_csv("votes.csv", index=False)
    texts = [(*vote, f"text {'of odd' if vote[0] % 2 else 'of even'} number {vote[0]}") for vote in votes]
    pd.DataFrame(texts, columns=["id", "who", "says", "text"]).to_csv("texts.csv", index=False)
    pd.DataFrame({"film": ["a", "b"], "stars_1": [3, 0], "stars_2": [1, 4]}).to_csv("stars.csv", index=False)
    return tmp_path

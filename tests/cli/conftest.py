"""A folder with files as a person has them."""

import subprocess
import sys

import numpy as np
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


@pytest.fixture
def ratings():
    """Make a table with numbers, gaps and categories on which the labels depend."""

    def make(n_rows=600, seed=0):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame({"x": rng.normal(size=n_rows), "age": rng.integers(18, 90, n_rows).astype(float)})
        table["town"] = rng.choice(["Ulm", "Bonn", "Oslo"], n_rows)
        scores = np.column_stack([table["x"], 0.03 * table["age"], 1.0 * (table["town"] == "Ulm")])
        D = np.exp(scores + 0.3 * rng.normal(size=scores.shape))
        table.loc[rng.random(n_rows) < 0.1, "age"] = np.nan
        return table.join(pd.DataFrame(D / D.sum(axis=1, keepdims=True), columns=["r_a", "r_b", "r_c"]))

    return make


@pytest.fixture
def ratings_folder(tmp_path, monkeypatch, ratings):
    """A folder with one table in one CSV file and in several Parquet files."""
    monkeypatch.chdir(tmp_path)
    table = ratings()
    table.to_csv("all.csv", index=False)
    (tmp_path / "parts").mkdir()
    for place, part in enumerate(np.split(np.arange(600), [250, 251, 400])):
        table.iloc[part].to_parquet(f"parts/part-{place}.parquet", index=False)
    return tmp_path


@pytest.fixture
def peak_memory():
    """A function from arguments of the command to the greatest resident memory of a process that runs it, in MiB.

    The process looks at its own mark: what the system reports at its end (``ru_maxrss``) includes the process that
    started it.
    """

    def measure(arguments):
        script = (
            "import sys; from skldl.cli import main; from skldl.experiments.tasks import peak_memory\n"
            "with peak_memory() as found: status = main(sys.argv[1:])\n"
            "print(found['mib']); sys.exit(status)"
        )
        done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
        return float(done.stdout.splitlines()[-1])

    return measure

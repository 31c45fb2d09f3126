"""Random tables with bad cells: the commands give a correct result or a clear error, never a traceback."""

import csv
import io
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skldl.cli import main

LABELS = ["emo_joy", "emo_anger", "emo_fear"]
SETTINGS = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
BAD = [
    "",
    "NA",
    "inf",
    "-inf",
    "1e999",
    "nan",
    "x",
    "yes",
    "0x10",
    "1_000",
    "½",
    "\x07",
    "1,5",
    '"',
    "'",
    " ",
    "\n",
    "🙂",
]
cells = st.one_of(
    st.sampled_from(BAD),
    st.floats(-1e6, 1e6).map(str),
    st.integers(-5, 5).map(str),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6),
)
names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=4)


def execute(arguments):
    """Exit status, standard output and standard error of a command line."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main([str(argument) for argument in arguments])
    return status, out.getvalue(), err.getvalue()


def write(path, header, rows, separator=","):
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=separator)
        writer.writerow(header)
        writer.writerows(rows)


def is_clear(status, err):
    assert status == 2, err
    assert err.startswith("skldl: ")
    assert err.count("\n") == 1
    assert "--debug" not in err  # which would say that it is our mistake


@SETTINGS
@given(data=st.data())
def test_predict_is_right_or_says_what_is_wrong(faces_model, faces, data):
    header = data.draw(st.permutations(["age", "town", "smoker", "more"]))
    n_rows = data.draw(st.integers(0, 6))
    good = faces.iloc[:n_rows].assign(more=1)[header].astype(object).where(lambda t: t.notna(), "")
    rows = good.astype(str).to_numpy().tolist()
    for _ in range(data.draw(st.integers(0, 2)) if n_rows else 0):
        rows[data.draw(st.integers(0, n_rows - 1))][data.draw(st.integers(0, 3))] = data.draw(cells)
    if data.draw(st.integers(0, 9)) == 0 and n_rows:
        rows[-1] = rows[-1] + ["one too many"]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "t.csv", Path(folder) / "p.csv"
        write(source, header, rows, data.draw(st.sampled_from([",", ";", "\t"])))
        status, out, err = execute(["predict", faces_model, source, "--out", target])
        if status:
            is_clear(status, err)
            assert not target.exists()
            return
        predicted = pd.read_csv(target)
        assert not out
        assert list(predicted) == [*LABELS, "top", "entropy"]
        if n_rows:
            np.testing.assert_allclose(predicted[LABELS].sum(axis=1), 1, rtol=1e-5)  # six digits
            assert (predicted[LABELS] >= 0).all().all()
            assert set(predicted["top"]) <= set(LABELS)


@SETTINGS
@given(data=st.data())
def test_fit_is_right_or_says_what_is_wrong(data):
    features = data.draw(st.lists(names, max_size=3, unique=True))
    labels = data.draw(st.sampled_from([["a", "b"], ["1", "2", "3"]]))
    kind = data.draw(st.sampled_from(["distribution", "counts", "scores", "votes", "label"]))
    n_rows = data.draw(st.integers(0, 8))
    rows = []
    for row in range(n_rows):
        degrees = ["0.5", "0.5", "0"] if kind == "distribution" else [str(row % 3 + 1), "2", "1"]
        rows.append([data.draw(cells) for _ in features] + degrees[: len(labels)])
    for _ in range(data.draw(st.integers(0, 1)) if n_rows else 0):
        rows[data.draw(st.integers(0, n_rows - 1))][-1] = data.draw(cells)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "t.csv", Path(folder) / "m.skldl"
        write(source, [*features, *labels], rows)
        columns = labels[0] if kind == "label" else ",".join(labels)
        model = data.draw(st.sampled_from(["mean", "sa-bfgs", "aa-knn"]))
        arguments = ["fit", source, f"--labels={columns}", "--kind", kind, "--model", model, "--folds", "2"]
        status, _, err = execute([*arguments, "--out", target])
        if status:
            is_clear(status, err)
            assert not target.exists()
            return
        status, out, err = execute(["predict", target, source])
        assert status == 0, err
        predicted = pd.read_csv(io.StringIO(out))
        shares = predicted.iloc[:, : list(predicted).index("top")]
        np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-5)


@SETTINGS
@given(content=st.binary(max_size=300))
def test_any_bytes_are_a_table_or_a_clear_error(faces_model, content):
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "t.csv"
        source.write_bytes(content)
        is_clear(*execute(["predict", faces_model, source])[::2])
        is_clear(*execute(["fit", source, "--labels", "*", "--model", "mean", "--out", Path(folder) / "m"])[::2])

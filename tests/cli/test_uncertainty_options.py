"""``fit --intervals``, ``predict --level``, ``explain`` with intervals, ``inspect`` with a table, ``--monitor``."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from skldl.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("uncertainty")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    counts = rng.multinomial(10, softmax(X @ [[1.0, 0, -1], [0, 1, 0]], axis=1))
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(no=counts[:, 0], yes=counts[:, 1], maybe=counts[:, 2])
    frame.to_csv(place / "t.csv", index=False)
    frame.assign(a=frame.a + 8).to_csv(place / "far.csv", index=False)
    options = ["--labels", "no,yes,maybe", "--kind", "counts", "--model", "sa-bfgs"]
    assert main(["fit", str(place / "t.csv"), *options, "--intervals", "--out", str(place / "with.skldl")]) == 0
    assert main(["fit", str(place / "t.csv"), *options, "--out", str(place / "without.skldl")]) == 0
    return place


def test_predict_adds_intervals(folder, cli):
    command = ["predict", str(folder / "with.skldl"), str(folder / "t.csv")]
    cli([*command, "--level", "0.9", "--out", str(folder / "p.csv")])
    table = pd.read_csv(folder / "p.csv")
    assert list(table)[-7:] == ["low_no", "high_no", "low_yes", "high_yes", "low_maybe", "high_maybe", "radius"]
    assert ((table.low_no <= table.no) & (table.no <= table.high_no)).all()
    said = cli([*command, "--level", "0.99", "--out", str(folder / "wide.csv")]).err
    assert "50 calibration rows are too few for the level 0.99" in said
    assert "Use a lower --level, or" in said
    assert pd.read_csv(folder / "wide.csv").radius.eq(1).all()


def test_what_was_kept_for_calibration_is_said_in_options(folder, cli):
    columns = ["--labels", "no,yes,maybe", "--kind", "counts", "--model", "mean", "--intervals"]
    command = ["fit", str(folder / "t.csv"), *columns, "--out", str(folder / "said.skldl")]
    for said in (cli(command).out, cli(["inspect", str(folder / "said.skldl")]).out):
        assert said.count("skldl predict --level 0.9 gives intervals") == said.count("--covers true gives") == 1


def test_a_model_without_intervals_names_the_option(folder, cli):
    said = cli(["predict", str(folder / "without.skldl"), str(folder / "t.csv"), "--level", "0.9"], status=2).err
    assert len(said.splitlines()) == 1
    assert "skldl fit --intervals" in said
    assert "fit_table(options=FitOptions(intervals=True))" in said
    printed = cli(["predict", str(folder / "with.skldl"), str(folder / "t.csv"), "--level", "2"], status=2)
    assert "--level 2.0 must lie between 0 and 1" in printed.err


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ("1,0.5,0.5\n2,0.4,0.6\n", "At least 3 rows are needed"),
        ("1,0.5,\n2,0.4,0.6\n3,,0.2\n4,0.4,0.6\n", ""),  # one gap in a row of two labels is no gap
        ("1,0.5,0.2,\n2,0.4,,\n3,0.1,0.2,0.7\n4,0.4,0.5,0.1\n", "fill the table with skldl.incomplete.complete"),
    ],
)
def test_rows_that_cannot_calibrate_are_rejected_with_advice(tmp_path, cells, message, cli):
    labels = "no,yes" if cells.count(",") == 2 * cells.count("\n") else "no,yes,maybe"
    (tmp_path / "t.csv").write_text(f"x,{labels}\n{cells}")
    command = ["fit", str(tmp_path / "t.csv"), "--labels", labels, "--model", "mean", "--intervals"]
    said = cli([*command, "--out", str(tmp_path / "m.skldl")], status=2 if message else 0).err
    assert message in said
    assert "True" not in said


def test_predict_says_what_its_intervals_are_for(folder, cli):
    command = ["predict", str(folder / "with.skldl"), str(folder / "t.csv")]
    radius = {}
    for covers in ("given", "true"):
        target = folder / f"{covers}.csv"
        printed = cli([*command, "--level", "0.8", "--covers", covers, "--out", str(target)])
        assert "as many votes" not in printed.err
        radius[covers] = pd.read_csv(target).radius[0]
    printed = cli([*command, "--level", "0.8", "--out", str(folder / "default.csv")])
    assert "with --covers true they cover the distribution behind the votes" in printed.err
    assert pd.read_csv(folder / "default.csv").radius[0] == radius["given"]
    assert radius["true"] < 0.9 * radius["given"]
    assert "--level 0.9" in cli([*command, "--covers", "true"], status=2).err


def test_a_table_without_rows_has_the_same_columns(folder, cli):
    (folder / "none.csv").write_text("a,b\n")
    command = ["predict", str(folder / "with.skldl"), str(folder / "none.csv"), "--level", "0.9"]
    cli([*command, "--out", str(folder / "none_out.csv")])
    assert (folder / "none_out.csv").read_text().strip().endswith("low_maybe,high_maybe,radius")


def test_explain_shows_the_interval_of_the_row(folder, cli):
    said = cli(["explain", str(folder / "with.skldl"), str(folder / "t.csv"), "--row", "2"]).out
    assert "with probability 90% all degrees lie between low and high" in said.replace("\n", " ")
    assert "low, true" in said
    assert "The true distribution behind them" in said.replace("\n", " ")
    printed = cli(["explain", str(folder / "without.skldl"), str(folder / "t.csv"), "--row", "2"])
    assert "between low and high" not in printed.out


def test_drift_is_said_and_written(folder, cli):
    model = str(folder / "with.skldl")
    assert "no difference from the training table was found" in cli(["inspect", model, str(folder / "t.csv")]).out
    command = ["inspect", model, str(folder / "far.csv")]
    assert "farther from the training rows" in cli([*command, "--monitor", str(folder / "drift.json")]).out
    numbers = json.loads((folder / "drift.json").read_text())
    assert numbers["distance"]["far_share"] > 0.9
    assert json.loads(cli([*command, "--json"]).out) == numbers
    predict = ["predict", model, str(folder / "far.csv"), "--out", str(folder / "far_out.csv")]
    assert "farther from the training rows" in cli([*predict, "--monitor", str(folder / "again.json")]).err
    again = json.loads((folder / "again.json").read_text())
    assert again["prediction_shift"] == pytest.approx(numbers["prediction_shift"])
    assert "name a table" in cli(["inspect", model, "--monitor", str(folder / "x.json")], status=2).err


def test_inspect_and_explain_tell_the_floor(folder, cli):
    printed = cli(["explain", str(folder / "without.skldl"), str(folder / "t.csv"), "--repeats", "1"])
    assert "The noise floor of the votes in the training table is 0." in printed.out
    assert "Noise floor" in cli(["inspect", str(folder / "without.skldl")]).out

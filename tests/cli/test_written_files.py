"""What the commands write: tables, predictions, counts; and what they never write over."""

import io
import json
import shutil

import pandas as pd
import pytest

import skldl

LABELS = ["emo_joy", "emo_anger", "emo_fear"]


def test_convert_to_a_file_and_on(here, cli):
    line = "convert votes.csv --from votes --item id --annotator who --label says --prefix emo_ --weight n"
    reported = cli(f"{line} --out data.csv")
    assert not reported.out
    assert "Krippendorff" in reported.err
    assert "6 rows with 2 labels written to data.csv" in reported.err
    assert list(pd.read_csv("data.csv")) == ["id", "emo_fear", "emo_joy", "n"]
    cli(line.replace(" --prefix emo_", "") + " --out labels.parquet")
    assert skldl.data.load_dataset("labels.parquet").label_names == ("fear", "joy")
    cli("datasets describe labels.parquet")
    cli("fit data.csv --labels 'emo_*' --weight n --model mean --out m.skldl")


def test_six_digits_unless_asked_for_more(here, cli):
    """Kept columns stay as they are written."""
    new = pd.read_csv("new.csv").assign(key=["007", "0.123456789012", "=1+1", "-5", "@x"])
    new.to_csv("keyed.csv", index=False)
    short = pd.read_csv(io.StringIO(cli("predict faces.skldl keyed.csv --keep key").out), dtype=str)
    assert short["key"].tolist() == new["key"].tolist()
    assert max(len(cell.strip("0.")) for cell in short["emo_joy"]) == 6
    long = pd.read_csv(
        io.StringIO(cli("predict faces.skldl keyed.csv --keep key --digits 12 --escape-formulas").out), dtype=str
    )
    assert max(len(cell.strip("0.")) for cell in long["emo_joy"]) > 10
    assert long["key"].tolist() == ["007", "0.123456789012", "'=1+1", "-5", "'@x"]


def test_a_file_that_is_there_is_written_over_only_on_request(here, cli):
    before = (here / "stars.csv").read_bytes()
    cli("predict faces.skldl new.csv --out stars.csv", status=2)
    assert (here / "stars.csv").read_bytes() == before
    cli("predict faces.skldl new.csv --out stars.csv --overwrite")
    assert (here / "stars.csv").read_bytes() != before
    for _ in range(2):  # a model may take the place of a model
        cli("fit faces.csv --labels 'emo_*' --drop person --model mean --out m.skldl")


def test_a_bad_cell_far_down_leaves_no_output(here, cli, faces):
    rows = pd.concat([faces.drop(columns=LABELS)] * 200, ignore_index=True).astype(object)
    rows.loc[23_456, "age"] = "old"
    rows.to_csv("long.csv", index=False)
    (here / "p.csv").write_text("before")
    printed = cli("predict faces.skldl long.csv --out p.csv --overwrite", status=2)
    assert "Row 23457 of column 'age' holds 'old'" in printed.err
    assert (here / "p.csv").read_text() == "before"


def test_whole_numbers_with_gaps_are_one_label_each(here, faces, cli):
    """pandas writes a column of whole numbers with a gap as 4.0."""
    stars = pd.DataFrame({"age": faces["age"], "r1": faces.index % 3 + 1, "r2": (faces.index % 2 + 1.0)})
    stars.loc[3, "r2"] = None
    stars.to_csv("rated.csv", index=False)
    assert "2.0" in (here / "rated.csv").read_text()
    cli("fit rated.csv --labels r1,r2 --kind votes --model mean --out m.skldl")
    assert skldl.persistence.inspect("m.skldl")["description"]["labels"] == ["1", "2", "3"]
    reported = cli("convert rated.csv --from votes --labels r1,r2")
    assert reported.out.startswith("age,label_1,label_2,label_3\n")
    assert "alpha (ordinal)" in reported.err


def test_predict_counts_what_the_training_table_did_not_hold(here, cli):
    new = pd.read_csv("new.csv")
    new["town"] = ["Rome", "Rome", *new["town"][2:]]
    new.loc[3, "age"] = 9999
    new.loc[4, ["age", "town", "smoker"]] = None
    new.to_csv("odd.csv", index=False)
    reported = cli("predict faces.skldl odd.csv --out p.csv --monitor m.json").err
    assert "Column 'town' holds a category that the model does not know in 2 of 5 rows." in reported
    assert "Column 'age' is far outside the range of the training table in 1 of 5 rows." in reported
    assert "All features are empty in 1 of 5 rows." in reported
    numbers = json.loads((here / "m.json").read_text())
    assert numbers["rows"] == 5
    assert numbers["unknown_categories"] == {"town": 2}
    assert numbers["far_outside_range"] == {"age": 1}
    assert numbers["empty_rows"] == {"rows": 1}
    assert numbers["unknown_category_share"] == 0.4
    assert "Note" not in cli("predict faces.skldl new.csv --out q.csv --monitor n.json").err


def test_a_model_is_written_over_by_a_model_alone(here, cli):
    """Whatever else would take its place needs --overwrite."""
    shutil.copy("faces.skldl", "other.skldl")
    for option in ("--monitor", "--out"):
        printed = cli(f"predict faces.skldl new.csv {option} other.skldl", status=2)
        assert f"{option} other.skldl exists already" in printed.err
        assert (here / "other.skldl").read_bytes() == (here / "faces.skldl").read_bytes()
    cli("fit faces.csv --labels 'emo_*' --drop person --model mean --out other.skldl")
    assert (here / "other.skldl").read_bytes() != (here / "faces.skldl").read_bytes()


VOTES = "convert votes.csv --from votes --item id --annotator who --label says"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{VOTES} --out a.csv --raters a.csv", "--out and --raters both write to a.csv"),
        (f"{VOTES} --out a.csv --raters ./a.csv", "--out and --raters both write to ./a.csv"),
        (f"{VOTES} --raters=-", "--out and --raters both write to -"),
        (f"{VOTES} --out a.csv --raters a.xlsx", "Use .csv, .txt, .tsv, .parquet or .pq"),
        (f"{VOTES} --out a.csv --raters no/a.csv", "There is no folder no"),
        (f"{VOTES} --out a.csv --raters stars.csv", "--raters stars.csv exists already"),
        (f"{VOTES} --out a.csv --figure a.png.csv", "Use .png, .pdf, .svg"),
        (f"{VOTES} --out a.csv --figure no/a.png", "There is no folder no"),
        (
            f"{VOTES} --raters q.csv --out a.csv --figure a.csv",
            "--figure a.csv: the file extension determines the format",
        ),
        ("convert stars.csv --from counts --labels stars_* --out a.csv --figure a.png", "it needs --from votes"),
        ("predict faces.skldl new.csv --out p.csv --monitor p.csv", "--out and --monitor both write to p.csv"),
        ("predict faces.skldl new.csv --out p.csv --monitor no/m.json", "There is no folder no"),
        ("explain faces.skldl faces.csv --out e.csv --out e.csv", "--out and --out both write to e.csv"),
    ],
)
def test_two_results_never_share_a_file_and_come_together(here, cli, line, message):
    before = {file.name: file.read_bytes() for file in here.iterdir()}
    assert message in cli(line, status=2).err
    assert {file.name: file.read_bytes() for file in here.iterdir()} == before


def test_raters_beside_the_distributions(here, cli):
    assert "Quality of 3 raters written to q.csv" in cli(f"{VOTES} --out a.csv --raters q.csv --weights").err
    assert (len(pd.read_csv("a.csv")), len(pd.read_csv("q.csv"))) == (6, 3)


@pytest.mark.parametrize(("name", "beginning"), [("r.png", b"\x89PNG"), ("r.SVG", b"<?xml"), ("r.pdf", b"%PDF")])
def test_a_figure_of_the_raters(here, cli, name, beginning):
    assert f"Figure of 3 raters written to {name}" in cli(f"{VOTES} --out a.csv --figure {name}").err
    assert (here / name).read_bytes().startswith(beginning)
    assert len(pd.read_csv("a.csv")) == 6

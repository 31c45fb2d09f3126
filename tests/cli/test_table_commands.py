"""The commands for your own table, as a person would use them, mostly in this process."""

import io
import json
import shlex
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import skldl
from skldl.cli._app import COMMANDS, run
from skldl.data import TableFile

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
    pd.DataFrame({"film": ["a", "b"], "stars_1": [3, 0], "stars_2": [1, 4]}).to_csv("stars.csv", index=False)
    return tmp_path


def call(line):
    return run(shlex.split(line))


def examples():
    """Every command line that stands in a --help."""
    from importlib import import_module

    for place, _ in (COMMANDS[name] for name in COMMANDS if name not in ("bench", "measures", "report", "serve")):
        module = import_module(place.partition(":")[0])
        functions = [module.show, module.describe, module.fetch] if module.__name__.endswith("datasets") else []
        for function in functions or [getattr(module, module.__name__.rpartition(".")[2])]:
            for line in function.__doc__.splitlines():
                if line.strip().startswith("skldl "):
                    yield line.strip()


@pytest.mark.parametrize("line", list(examples()))
def test_examples_of_the_help_work(here, line, capsys, monkeypatch):
    if "fetch" in line:
        monkeypatch.setattr("skldl.cli.datasets.fetch_dataset", lambda name, data_home: skldl.data.load_lexicon(8))
    line = line.removeprefix("skldl ").partition(" > ")[0]
    line = line if "evaluate" not in line else f"{line} --jobs 1 --folds 2 --inner-folds 2 --models mean"
    assert call(line.replace("--models sa-bfgs ", "")) == 0
    assert capsys.readouterr().out or "--out" in line


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_an_example(name, capsys):
    assert run([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert f"skldl {name}" in shown.partition("╭")[0].partition("\n")[2]


def test_help_lists_the_commands(capsys):
    assert run([]) == 0
    shown = capsys.readouterr().out
    for name, (_, what) in COMMANDS.items():
        assert f"skldl {name:<10} {what}" in shown


def test_from_fit_to_prediction(here, capsys, faces):
    assert call("fit faces.csv --labels 'emo_*' --drop person --model aa-knn --set n_neighbors=9 --out m.skldl") == 0
    told = capsys.readouterr()
    assert told.out.startswith("AA-kNN: a held-out Kullback-Leibler divergence of")
    assert "skill" in told.out.casefold()
    assert "Written to m.skldl" in told.out
    assert not told.err
    assert call("predict m.skldl new.csv --keep person,town --out p.parquet") == 0
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "5 rows written to p.parquet.\n")
    predicted = TableFile("p.parquet").read()
    model = skldl.load("m.skldl")
    np.testing.assert_allclose(predicted[LABELS], model.predict(faces.head(5)))
    assert predicted["person"].tolist() == faces["person"].head(5).tolist()
    assert call("inspect m.skldl") == 0
    shown = capsys.readouterr().out
    for part in ("trained on   faces.csv, 120 rows", "numbers      age", "dropped      person", "AAKNN(n_neighbors=9)"):
        assert part in shown


def test_auto_by_groups_with_weights_and_notes(here, capsys, faces):
    faces.assign(key=[f"k{i}" for i in range(120)], w=1.0).to_csv("noted.csv", index=False)
    assert call("fit noted.csv --labels 'emo_*' --groups person --weight w --out m.skldl") == 0
    told = capsys.readouterr()
    assert "groups held out together" in told.out
    assert "Note: Column 'key' holds a different text in every row" in told.err
    about = skldl.persistence.inspect("m.skldl")["description"]
    assert about["roles"] == {"weight": "w", "groups": "person", "dropped": []}
    assert set(about["features"]) == {"age", "town", "smoker", "key"}


def test_inspect_as_json_and_of_other_models(here, capsys):
    assert call("inspect faces.skldl --json") == 0
    assert json.loads(capsys.readouterr().out)["description"]["labels"] == LABELS
    model = skldl.MeanDistribution().fit([[0.0], [1.0]], [[0.5, 0.5]] * 2)
    skldl.save(model, "plain.skldl", description={"author": "me"})
    assert call("inspect plain.skldl") == 0
    assert "author       me" in capsys.readouterr().out
    assert call("predict plain.skldl new.csv") == 2
    assert "holds MeanDistribution, which takes no tables" in capsys.readouterr().err


def test_inspect_shows_values_and_origin(here, capsys):
    assert call("fit votes.csv --labels says --kind label --model mean --values 1,2 --out m.skldl --folds 2") == 0
    capsys.readouterr()
    assert call("inspect m.skldl") == 0
    shown = capsys.readouterr().out
    assert "labels       fear, joy (from label: says)" in shown
    assert "values       1, 2" in shown
    assert call("predict m.skldl votes.csv") == 0
    assert capsys.readouterr().out.splitlines()[0] == "fear,joy,top,entropy,expected"


def test_standard_input_and_output(here, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((here / "new.csv").read_bytes())))
    assert call("predict faces.skldl -") == 0
    told = capsys.readouterr()
    frame = pd.read_csv(io.StringIO(told.out))
    assert list(frame) == [*LABELS, "top", "entropy"]
    assert len(frame) == 5
    assert not told.err


@pytest.mark.parametrize(
    "save",
    [
        lambda t: t.to_csv("t.csv", index=False),
        lambda t: pl.from_pandas(t).write_csv("t.csv"),
        lambda t: t.to_csv("t.csv", index=False, encoding="utf-8-sig", lineterminator="\r\n"),
        lambda t: t.to_csv("t.csv", sep=";", decimal=",", quoting=2, na_rep="NA"),
        lambda t: t.to_csv("t.csv", sep="\t", index=False, encoding="utf-16"),
        lambda t: t[t.columns[::-1]].assign(more="x").to_csv("t.csv", index=False, encoding="cp1252"),
        lambda t: t.to_parquet("t.csv"),
        lambda t: pl.from_pandas(t).write_parquet("t.csv"),
    ],
    ids=["pandas", "polars", "excel", "r-style", "utf16", "turned-cp1252", "parquet", "polars-parquet"],
)
def test_the_same_table_in_every_dress(here, faces, save, capsys):
    save(faces.drop(columns=LABELS).assign(wort="größer"))
    assert call("predict faces.skldl t.csv --out p.csv --digits 17") == 0
    expected = skldl.load("faces.skldl").predict(faces)
    np.testing.assert_allclose(pd.read_csv("p.csv")[LABELS], expected, rtol=1e-12)


def test_fit_on_an_r_style_file_and_predict_on_another(here, faces):
    faces.to_csv("r.csv", sep=";", decimal=",")
    assert (
        call("fit r.csv --labels 'emo_*' --drop 'person,Unnamed: 0' --model sa-bfgs --set alpha=0.1 --out r.skldl") == 0
    )
    assert call("fit faces.csv --labels 'emo_*' --drop person --model sa-bfgs --set alpha=0.1 --out p.skldl") == 0
    np.testing.assert_allclose(skldl.load("r.skldl").predict(faces), skldl.load("p.skldl").predict(faces), rtol=1e-9)


def test_a_header_alone_and_nothing_at_all(here, capsys, faces):
    faces.drop(columns=LABELS).head(0).to_csv("header.csv", index=False)
    assert call("predict faces.skldl header.csv --keep town --out p.csv") == 0
    assert "header but no rows" in capsys.readouterr().err
    assert (here / "p.csv").read_text() == "town,emo_joy,emo_anger,emo_fear,top,entropy\n"
    faces.head(0).to_parquet("header.parquet")
    assert call("predict faces.skldl header.parquet --out p.parquet") == 0
    assert list(pd.read_parquet("p.parquet")) == [*LABELS, "top", "entropy"]
    (here / "empty.csv").touch()
    assert call("predict faces.skldl empty.csv --out q.csv") == 2
    assert "empty.csv is empty" in capsys.readouterr().err
    (here / "wrong.csv").write_text("age,town\n")
    assert call("predict faces.skldl wrong.csv --out q.csv") == 2
    assert "lacks the column 'smoker'" in capsys.readouterr().err
    assert not (here / "q.csv").exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fit nothing.csv --labels a --out m.skldl", "There is no file nothing.csv"),
        ("fit faces.csv --labels emo_joy --out m.skldl", "only one label"),
        ("fit faces.csv --labels 'x_*' --out m.skldl", "--labels 'x_*': the table has no such column"),
        ("fit faces.csv --labels 'emo_*' --kind stars --out m.skldl", "stars"),
        ("fit faces.csv --labels 'emo_*' --model nobody --out m.skldl", "No algorithm is called 'nobody'"),
        ("fit faces.csv --labels 'emo_*' --model mean --set k=1 --out m.skldl", "Mean has no parameter 'k'"),
        (
            "fit faces.csv --labels 'emo_*' --model sabfgs --set alpha=-1 --out m.skldl",
            "could not be fitted: alpha=-1",
        ),
        ("fit faces.csv --labels 'emo_*' --out no/m.skldl", "lies in a folder that does not exist"),
        ("fit faces.csv --labels 'emo_*' --out .", "is a folder"),
        ("fit faces.csv --out m.skldl", "--labels"),
        ("predict nothing.skldl new.csv", "nothing.skldl: No such file"),
        ("predict new.csv faces.skldl", "The model comes first"),
        ("predict new.csv new.csv", "is no model of skldl"),
        ("predict faces.skldl new.csv --out p.xlsx", "Use .csv, .tsv or .parquet"),
        ("predict faces.skldl new.csv --out no/p.csv", "There is no folder no"),
        ("predict faces.skldl new.csv --keep nobody --out p.csv", "--keep nobody"),
        ("predict faces.skldl votes.csv --out p.csv", "lacks the column 'age'"),
        ("explain faces.skldl faces.csv --row 500", "There is no row 500"),
        ("explain faces.skldl faces.csv --row 0", "There is no row 0"),
        ("explain faces.skldl faces.csv --repeats 0", "at least once"),
        ("explain faces.skldl faces.csv --out e.docx", "the ending says"),
        ("evaluate faces.csv --labels 'emo_*' --folds 1", "At least 2 folds"),
        ("evaluate faces.csv --labels 'emo_*' --jobs 0", "--jobs 0 must be at least 1"),
        ("evaluate faces.csv --labels 'emo_*' --folds 200", "too few for 200 folds"),
        ("convert votes.csv --from counts", "--from counts needs --labels"),
        ("convert votes.csv --from counts --labels id --out votes.csv", "is a file that this command reads"),
        (
            "convert votes.csv --from counts --labels id --out stars.csv",
            "is there already. Name another file, or say --ov",
        ),
        ("predict faces.skldl new.csv --out new.csv --overwrite", "is a file that this command reads"),
        ("predict faces.skldl new.csv --out faces.skldl", "is a file that this command reads"),
        ("predict faces.skldl new.csv --out stars.csv", "is there already"),
        ("predict faces.skldl new.csv --monitor stars.csv", "is there already"),
        ("predict faces.skldl new.csv --digits 0", "Must be >= 1"),
        ("explain faces.skldl faces.csv --out faces.csv", "is a file that this command reads"),
        ("fit faces.csv --labels 'emo_*' --out faces.csv", "is a file that this command reads"),
        ("fit faces.csv --labels 'emo_*' --out stars.csv", "is there already"),
        ("fit faces.csv --labels 'emo_*' --encoding klingon --out m.skldl", "--encoding klingon is not known"),
        ("fit faces.csv --labels 'emo_*' --kind label --out m.skldl", "use --kind votes"),
        ("datasets describe nothing", "neither a known dataset nor a file"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(here, capsys, line, message):
    before = sorted(file.name for file in here.iterdir())
    assert call(line) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.err.count("\n") == 1
    assert "Traceback" not in told.err
    assert sorted(file.name for file in here.iterdir()) == before


def test_a_bad_cell_far_down_leaves_no_output(here, capsys, faces):
    rows = pd.concat([faces.drop(columns=LABELS)] * 200, ignore_index=True).astype(object)
    rows.loc[23_456, "age"] = "old"
    rows.to_csv("long.csv", index=False)
    (here / "p.csv").write_text("before")
    assert call("predict faces.skldl long.csv --out p.csv --overwrite") == 2
    assert "Row 23457 of column 'age' holds 'old'" in capsys.readouterr().err
    assert (here / "p.csv").read_text() == "before"


def test_evaluate_gives_the_tables_of_bench(here, capsys):
    line = "evaluate faces.csv --labels 'emo_*' --groups person --models sa-bfgs --measures kl --folds 3 --jobs 1"
    assert call(f"{line} --out compared") == 0
    shown = capsys.readouterr().out
    assert "Kullback-Leibler" in shown
    assert "Protocol nested" in shown
    for name in ("records.jsonl", "README.md", "statistics.md", "tables/kullback_leibler.csv", "report.html"):
        assert (here / "compared" / name).is_file()
    results = skldl.experiments.StudyResults.load("compared")
    assert results.candidates == ["SA-BFGS", "Mean"]
    assert results.info["faces"]["n_groups"] == 40
    means = results.means("kl")[0]
    assert means[0] < means[1]
    assert "`skldl bench study.toml` runs it again" in (here / "compared" / "README.md").read_text(encoding="utf-8")


def test_the_package_that_saves_is_asked_for_before_the_training(here, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setattr("skldl.cli.fit.fit_table", lambda *tables, **options: pytest.fail("trained in vain"))
    assert call("fit faces.csv --labels 'emo_*' --out x.skldl") == 2
    assert "needs the package skops: pip install 'scikit-ldl[save]'" in capsys.readouterr().err


def test_evaluate_goes_on_where_it_was_stopped(here, capsys):
    line = "evaluate faces.csv --labels 'emo_*' --drop person --models aa-knn --measures kl --folds 3 --jobs 1"
    assert call(f"{line} --resume") == 2
    assert "--resume needs --out" in capsys.readouterr().err
    assert call(f"{line} --out whole") == 0
    shown = capsys.readouterr().out
    assert call(f"{line} --out whole") == 2
    assert "Continue it with --resume" in capsys.readouterr().err
    records = here / "whole" / "records.jsonl"
    kept = records.read_bytes().splitlines(keepends=True)[:4]
    records.write_bytes(b"".join(kept))
    assert call(f"{line} --out whole --resume") == 0
    assert capsys.readouterr().out == shown
    assert records.read_bytes().startswith(b"".join(kept))


def test_evaluate_by_default_in_a_new_folder(here, faces, monkeypatch, capsys):
    faces.assign(w=1.0, key=[f"k{i}" for i in range(120)]).to_csv("noted.csv", index=False)
    line = "evaluate noted.csv --labels 'emo_*' --drop person --weight w --models mean,aaknn --folds 2 --inner-folds 2"
    assert call(f"{line} --jobs 1 --measures kl") == 0
    assert "Note: Column 'key'" in capsys.readouterr().err
    assert skldl.experiments.StudyResults.load("skldl-noted").info["noted"]["weighted"]


def test_explain(here, capsys, faces):
    assert call("explain faces.skldl faces.csv --repeats 1 --out e.csv --out e.svg") == 0
    told = capsys.readouterr()
    assert "divergence of the labels in the table when a column is shuffled (120 rows)" in told.out
    assert "Weights, centred over labels" in told.out
    assert "looks like the table that the model learned from" in told.err
    assert set(pd.read_csv("e.csv")["column"]) == {"age", "town", "smoker"}
    assert (here / "e.svg").read_text().startswith("<?xml")
    assert call("explain faces.skldl new.csv --repeats 1") == 0
    assert "The table has no labels" in capsys.readouterr().err
    faces.assign(emo_joy=None, emo_anger=None, emo_fear=None).to_csv("bare.csv", index=False)
    assert call("explain faces.skldl bare.csv --repeats 1") == 0
    assert "No row has labels" in capsys.readouterr().err


def test_explain_a_row(here, capsys):
    assert call("explain faces.skldl faces.csv --row 3 --out e.parquet --out e.png") == 0
    assert "(intercept)" in capsys.readouterr().out
    assert pd.read_parquet("e.parquet")["feature"].iloc[0] == "(intercept)"
    assert (here / "e.png").read_bytes().startswith(b"\x89PNG")
    assert call("fit faces.csv --labels 'emo_*' --drop person --model aa-knn --set n_neighbors=30 --out k.skldl") == 0
    capsys.readouterr()
    assert call("explain k.skldl faces.csv --row 3") == 0
    shown = capsys.readouterr().out
    assert "training row" in shown
    assert "the first 20 of 30" in shown


def test_explain_with_labels_that_the_model_does_not_know(here, capsys):
    assert call("fit votes.csv --labels says --kind label --drop id --model mean --folds 2 --out m.skldl") == 0
    pd.DataFrame({"who": ["ann", "bo"], "says": ["joy", "anger"]}).to_csv("other.csv", index=False)
    assert call("explain m.skldl other.csv") == 2
    assert "The label 'anger' is not among those of the model: fear, joy" in capsys.readouterr().err
    pd.DataFrame({"who": ["ann", "bo"], "says": ["joy", "fear"]}).to_csv("other.csv", index=False)
    assert call("explain m.skldl other.csv") == 0


def test_convert_to_a_file_and_on(here, capsys):
    line = "convert votes.csv --from votes --item id --annotator who --label says --prefix emo_ --weight n"
    assert call(f"{line} --out data.csv") == 0
    told = capsys.readouterr()
    assert not told.out
    assert "Krippendorff" in told.err
    assert "6 rows with 2 labels written to data.csv" in told.err
    assert list(pd.read_csv("data.csv")) == ["id", "emo_fear", "emo_joy", "n"]
    assert call(line.replace(" --prefix emo_", "") + " --out labels.parquet") == 0
    assert skldl.data.load_dataset("labels.parquet").label_names == ("fear", "joy")
    assert call("datasets describe labels.parquet") == 0
    assert call("fit data.csv --labels 'emo_*' --weight n --model mean --out m.skldl") == 0


def test_datasets(here, capsys, monkeypatch):
    assert call("datasets") == 0
    assert "Yeast_alpha" in capsys.readouterr().out
    assert call("datasets describe Artificial") == 0
    assert "500 × 3, 3 labels" in capsys.readouterr().out


def test_six_digits_unless_asked_for_more(here, capsys):
    """Kept columns stay as they are written."""
    new = pd.read_csv("new.csv").assign(key=["007", "0.123456789012", "=1+1", "-5", "@x"])
    new.to_csv("keyed.csv", index=False)
    assert call("predict faces.skldl keyed.csv --keep key") == 0
    short = pd.read_csv(io.StringIO(capsys.readouterr().out), dtype=str)
    assert short["key"].tolist() == new["key"].tolist()
    assert max(len(cell.strip("0.")) for cell in short["emo_joy"]) == 6
    assert call("predict faces.skldl keyed.csv --keep key --digits 12 --escape-formulas") == 0
    long = pd.read_csv(io.StringIO(capsys.readouterr().out), dtype=str)
    assert max(len(cell.strip("0.")) for cell in long["emo_joy"]) > 10
    assert long["key"].tolist() == ["007", "0.123456789012", "'=1+1", "-5", "'@x"]


def test_predict_counts_what_the_training_table_did_not_hold(here, capsys):
    new = pd.read_csv("new.csv")
    new["town"] = ["Rome", "Rome", *new["town"][2:]]
    new.loc[3, "age"] = 9999
    new.loc[4, ["age", "town", "smoker"]] = None
    new.to_csv("odd.csv", index=False)
    assert call("predict faces.skldl odd.csv --out p.csv --monitor m.json") == 0
    told = capsys.readouterr().err
    assert "Column 'town' holds a category that the model does not know in 2 of 5 rows." in told
    assert "Column 'age' is far outside the range of the training table in 1 of 5 rows." in told
    assert "All features are empty in 1 of 5 rows." in told
    assert json.loads((here / "m.json").read_text()) == {
        "rows": 5,
        "unknown_categories": {"town": 2},
        "far_outside_range": {"age": 1},
        "empty_rows": {"rows": 1},
    }
    assert call("predict faces.skldl new.csv --out q.csv --monitor n.json") == 0
    assert "Note" not in capsys.readouterr().err


def test_a_file_that_is_there_is_written_over_only_on_request(here, capsys):
    before = (here / "stars.csv").read_bytes()
    assert call("predict faces.skldl new.csv --out stars.csv") == 2
    assert (here / "stars.csv").read_bytes() == before
    assert call("predict faces.skldl new.csv --out stars.csv --overwrite") == 0
    assert (here / "stars.csv").read_bytes() != before
    for _ in range(2):  # a model may take the place of a model
        assert call("fit faces.csv --labels 'emo_*' --drop person --model mean --out m.skldl") == 0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_explain_a_model_without_an_intercept(here, capsys):
    assert call("fit faces.csv --labels 'emo_*' --drop person --model sa-iis --set max_iter=5 --out i.skldl") == 0
    assert call("explain i.skldl faces.csv --row 3") == 0
    assert "What each feature adds to the logarithm" in capsys.readouterr().out


def test_names_do_not_steer_the_terminal(here, faces, capsys):
    name = "\x1b[31mage"
    faces.rename(columns={"age": name}).to_csv("red.csv", index=False)
    assert call("fit red.csv --labels 'emo_*' --drop person --model mean --out red.skldl") == 0
    assert call("inspect red.skldl") == 0
    assert call("explain red.skldl red.csv --repeats 1") == 0
    assert call("predict red.skldl new.csv") == 2
    told = capsys.readouterr()
    assert "\\x1b[31mage" in told.out
    assert "\\x1b[31mage" in told.err
    assert "\x1b" not in told.out + told.err


def test_whole_numbers_with_gaps_are_one_label_each(here, capsys, faces):
    """pandas writes a column of whole numbers with a gap as 4.0."""
    stars = pd.DataFrame({"age": faces["age"], "r1": faces.index % 3 + 1, "r2": (faces.index % 2 + 1.0)})
    stars.loc[3, "r2"] = None
    stars.to_csv("rated.csv", index=False)
    assert "2.0" in (here / "rated.csv").read_text()
    assert call("fit rated.csv --labels r1,r2 --kind votes --model mean --out m.skldl") == 0
    assert skldl.persistence.inspect("m.skldl")["description"]["labels"] == ["1", "2", "3"]
    capsys.readouterr()
    assert call("convert rated.csv --from votes --labels r1,r2") == 0
    told = capsys.readouterr()
    assert told.out.startswith("age,label_1,label_2,label_3\n")
    assert "alpha (ordinal)" in told.err


def test_options_of_reading(here, faces, capsys):
    faces.assign(town=["NA", *faces["town"][1:]]).to_csv("t.csv", index=False, encoding="utf-16-le")
    line = "--labels 'emo_*' --drop person --model mean --out m.skldl"
    assert call(f"fit t.csv {line} --encoding utf-16-le") == 0
    assert "Column 'town': 'NA' (1 cells) taken as missing. If it is a name, say which" in capsys.readouterr().err
    assert call(f"fit t.csv {line} --encoding utf-16-le --na ''") == 0
    assert "NA" not in capsys.readouterr().err


def test_dates_are_learned_from(here, capsys):
    generator = np.random.default_rng(0)
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(generator.integers(0, 24 * 365, 400), unit="h")
    joy = 0.5 + 0.3 * np.sin(2 * np.pi * when.hour / 24) + 0.15 * (when.day_of_week >= 5)
    table = pd.DataFrame({"when": when, "joy": joy, "fear": 1 - joy})
    table.to_csv("dated.csv", index=False)
    table.to_parquet("dated.parquet")
    predictions = []
    for ending in ("csv", "parquet"):
        line = f"fit dated.{ending} --labels joy,fear --model sa-bfgs --set alpha=0.0001 --out m.skldl"
        assert call(line) == 0
        assert "Column 'when' holds dates" in capsys.readouterr().err
        assert call("inspect m.skldl") == 0
        assert "dates        when" in capsys.readouterr().out
        predictions.append(skldl.load("m.skldl").predict(table))
    np.testing.assert_allclose(predictions[0], predictions[1])
    assert skldl.metrics.kullback_leibler(table[["joy", "fear"]], predictions[0]) < 0.005

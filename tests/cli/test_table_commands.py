"""The commands for your own table, as a person would use them, mostly in this process."""

import io
import json
import pkgutil
import shlex
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest

import skldl.cli
from skldl.data import TableFile

LABELS = ["emo_joy", "emo_anger", "emo_fear"]
COMMANDS = {module.name for module in pkgutil.iter_modules(skldl.cli.__path__) if not module.name.startswith("_")}


def examples():
    """Every command line that stands in a --help."""
    from importlib import import_module

    for name in COMMANDS - {"bench", "measures", "report", "serve"}:
        module = import_module(f"skldl.cli.{name}")
        functions = [module.show, module.describe, module.fetch] if module.__name__.endswith("datasets") else []
        for function in functions or [getattr(module, module.__name__.rpartition(".")[2])]:
            for line in function.__doc__.splitlines():
                if line.strip().startswith("skldl "):
                    yield line.strip()


@pytest.mark.parametrize("line", sorted(examples()))
def test_examples_of_the_help_work(here, line, cli, monkeypatch):
    if "fetch" in line:
        monkeypatch.setattr("skldl.cli.datasets.fetch_dataset", lambda name, data_home: skldl.data.load_lexicon(8))
    if "big/" in line:
        (here / "big").mkdir()
        table = pd.DataFrame({"x": range(60)}).assign(r_no=lambda t: 1 - t["x"] / 60, r_yes=lambda t: t["x"] / 60)
        for part in (0, 1):
            table.iloc[30 * part : 30 * part + 30].to_parquet(f"big/part-{part}.parquet", index=False)
    line = line.removeprefix("skldl ").partition(" > ")[0]
    line = line if "evaluate" not in line else f"{line} --jobs 1 --folds 2 --inner-folds 2 --models mean"
    assert cli(line.replace("--candidates sa-bfgs ", "")).out or "--out" in line


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_help_has_an_example(name, cli):
    shown = cli([name, "--help"]).out
    assert f"skldl {name}" in shown.partition("╭")[0].partition("\n")[2]


def test_help_lists_the_commands(cli):
    shown = cli([]).out
    assert {line.split()[1] for line in shown.splitlines() if line.strip().startswith("skldl ")} >= COMMANDS


def test_labels_that_never_vary(here, cli):
    """The forest predicted .1, .2, .7 up to rounding, which was a skill of −∞, and no JSON in the model file."""
    rows = np.random.default_rng(0).normal(size=(60, 3))
    pd.DataFrame(rows, columns=list("abc")).assign(l0=0.1, l1=0.2, l2=0.7).to_csv("same.csv", index=False)
    printed = cli("fit same.csv --labels 'l*' --model forest --out same.skldl")
    assert "Skill 0.0% (95 % interval 0.0% to 0.0%)" in printed.out
    score = json.loads(
        cli("inspect same.skldl --json").out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON")
    )
    score = score["description"]["score"]
    expected = ("kullback_leibler", "kullback_leibler_of_mean", "skill", "skill_low", "skill_high")
    assert [score[name] for name in expected] == [0] * 5


def test_from_fit_to_prediction(here, cli, faces):
    reported = cli("fit faces.csv --labels 'emo_*' --drop person --model aa-knn --set n_neighbors=9 --out m.skldl")
    assert reported.out.startswith("AA-kNN: a held-out Kullback-Leibler divergence of")
    assert "skill" in reported.out.casefold()
    assert "Written to m.skldl" in reported.out
    assert not reported.err
    reported = cli("predict m.skldl new.csv --keep person,town --out p.parquet")
    assert (reported.out, reported.err) == ("", "5 rows written to p.parquet.\n")
    predicted = TableFile("p.parquet").read()
    model = skldl.load("m.skldl")
    np.testing.assert_allclose(predicted[LABELS], model.predict(faces.head(5)))
    assert predicted["person"].tolist() == faces["person"].head(5).tolist()
    shown = cli("inspect m.skldl").out
    for part in ("trained on   faces.csv, 120 rows", "numbers      age", "dropped      person", "AAKNN(n_neighbors=9)"):
        assert part in shown


def test_auto_by_groups_with_weights_and_notes(here, cli, faces):
    faces.assign(key=[f"k{i}" for i in range(120)], w=1.0).to_csv("noted.csv", index=False)
    reported = cli("fit noted.csv --labels 'emo_*' --groups person --weight w --out m.skldl")
    assert "groups held out together" in reported.out
    assert "Note: Column 'key' holds a different text in every row" in reported.err
    about = skldl.persistence.inspect("m.skldl")["description"]
    assert about["roles"] == {"weight": "w", "groups": "person", "dropped": []}
    assert set(about["features"]) == {"age", "town", "smoker", "key"}


def test_inspect_as_json_and_of_other_models(here, cli):
    assert json.loads(cli("inspect faces.skldl --json").out)["description"]["labels"] == LABELS
    model = skldl.MeanDistribution().fit([[0.0], [1.0]], [[0.5, 0.5]] * 2)
    skldl.save(model, "plain.skldl", description={"author": "me"})
    assert "author       me" in cli("inspect plain.skldl").out
    assert "holds MeanDistribution, which takes no tables" in cli("predict plain.skldl new.csv", status=2).err


def test_inspect_shows_values_and_origin(here, cli):
    cli("fit votes.csv --labels says --kind label --model mean --values 1,2 --out m.skldl --folds 2")
    shown = cli("inspect m.skldl").out
    assert "labels       fear, joy (from label: says)" in shown
    assert "values       1, 2" in shown
    assert cli("predict m.skldl votes.csv").out.splitlines()[0] == "fear,joy,top,entropy,expected"


def test_standard_input_and_output(here, cli, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((here / "new.csv").read_bytes())))
    reported = cli("predict faces.skldl -")
    frame = pd.read_csv(io.StringIO(reported.out))
    assert list(frame) == [*LABELS, "top", "entropy"]
    assert len(frame) == 5
    assert not reported.err


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
def test_the_same_table_in_every_dress(here, faces, save, cli):
    save(faces.drop(columns=LABELS).assign(wort="größer"))
    cli("predict faces.skldl t.csv --out p.csv --digits 17")
    expected = skldl.load("faces.skldl").predict(faces)
    np.testing.assert_allclose(pd.read_csv("p.csv")[LABELS], expected, rtol=1e-12)


def test_fit_on_an_r_style_file_and_predict_on_another(here, faces, cli):
    faces.to_csv("r.csv", sep=";", decimal=",")
    cli("fit r.csv --labels 'emo_*' --drop 'person,Unnamed: 0' --model sa-bfgs --set alpha=0.1 --out r.skldl")
    cli("fit faces.csv --labels 'emo_*' --drop person --model sa-bfgs --set alpha=0.1 --out p.skldl")
    np.testing.assert_allclose(skldl.load("r.skldl").predict(faces), skldl.load("p.skldl").predict(faces), rtol=1e-9)


def test_a_header_alone_and_nothing_at_all(here, cli, faces):
    faces.drop(columns=LABELS).head(0).to_csv("header.csv", index=False)
    assert "header but no rows" in cli("predict faces.skldl header.csv --keep town --out p.csv").err
    assert (here / "p.csv").read_text() == "town,emo_joy,emo_anger,emo_fear,top,entropy\n"
    faces.head(0).to_parquet("header.parquet")
    cli("predict faces.skldl header.parquet --out p.parquet")
    assert list(pd.read_parquet("p.parquet")) == [*LABELS, "top", "entropy"]
    (here / "empty.csv").touch()
    assert "empty.csv is empty" in cli("predict faces.skldl empty.csv --out q.csv", status=2).err
    (here / "wrong.csv").write_text("age,town\n")
    assert "lacks the column 'smoker'" in cli("predict faces.skldl wrong.csv --out q.csv", status=2).err
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
        (
            "fit faces.csv --labels 'emo_*' --budget 3parsecs --out m.skldl",
            "--budget 3parsecs must be a time above 0: seconds, or a number with a unit (s, sec, min, m, h), such as "
            "90, '90s', '10min' or '1h'. Leave it out for no limit.",
        ),
        ("fit faces.csv --labels 'emo_*' --out no/m.skldl", "is in a folder that does not exist"),
        ("fit faces.csv --labels 'emo_*' --out .", "is a folder"),
        ("fit faces.csv --out m.skldl", "--labels"),
        ("fit faces.csv --labels 'emo_*' --feature age --out m.skldl", "Unknown option: --feature."),
        ("predict faces.skldl --levle 0.9", "Unknown option: --levle."),
        ("predict nothing.skldl new.csv", "nothing.skldl: No such file"),
        ("predict new.csv faces.skldl", "Give the model first"),
        ("predict new.csv new.csv", "is not a model file"),
        ("predict faces.skldl new.csv --out p.xlsx", "Use .csv, .txt, .tsv, .parquet or .pq"),
        ("predict faces.skldl new.csv --out no/p.csv", "There is no folder no"),
        ("predict faces.skldl new.csv --keep nobody --out p.csv", "--keep nobody"),
        ("predict faces.skldl votes.csv --out p.csv", "lacks the column 'age'"),
        ("explain faces.skldl faces.csv --row 500", "There is no row 500"),
        ("explain faces.skldl faces.csv --row 0", "There is no row 0"),
        ("explain faces.skldl faces.csv --repeats 0", "at least once"),
        ("explain faces.skldl faces.csv --out e.docx", "the file extension determines"),
        ("evaluate faces.csv --labels 'emo_*' --folds 1", "At least 2 folds"),
        ("evaluate faces.csv --labels 'emo_*' --jobs 0", "--jobs 0 must be at least 1"),
        ("evaluate faces.csv --labels 'emo_*' --folds 200", "too few for 200 folds"),
        ("convert votes.csv --from counts", "--from counts needs --labels"),
        ("convert votes.csv --from counts --labels id --out votes.csv", "is a file that this command reads"),
        (
            "convert votes.csv --from counts --labels id --out stars.csv",
            "exists already. Name another file, or use --ov",
        ),
        ("predict faces.skldl new.csv --out new.csv --overwrite", "is a file that this command reads"),
        ("predict faces.skldl new.csv --out faces.skldl", "is a file that this command reads"),
        ("predict faces.skldl new.csv --out stars.csv", "exists already"),
        ("predict faces.skldl new.csv --monitor stars.csv", "exists already"),
        ("predict faces.skldl new.csv --digits 0", "Must be >= 1"),
        ("explain faces.skldl faces.csv --out faces.csv", "is a file that this command reads"),
        ("fit faces.csv --labels 'emo_*' --out faces.csv", "is a file that this command reads"),
        ("fit faces.csv --labels 'emo_*' --out stars.csv", "exists already"),
        ("fit faces.csv --labels 'emo_*' --encoding klingon --out m.skldl", "--encoding klingon is not known"),
        ("fit faces.csv --labels 'emo_*' --kind label --out m.skldl", "use --kind votes"),
        ("datasets describe nothing", "neither a known dataset nor a file"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(here, cli, line, message):
    before = sorted(file.name for file in here.iterdir())
    reported = cli(line, status=2)
    assert message in reported.err
    assert reported.err.count("\n") == 1
    assert "Traceback" not in reported.err
    assert sorted(file.name for file in here.iterdir()) == before


@pytest.mark.parametrize(
    "line",
    [
        "fit {} --labels 'emo_*' --model sa-bfgs --out m.skldl",
        "fit {} --labels 'emo_*' --stream --memory 700MiB --out m.skldl",
        "convert {} --from scores --labels 'emo_*' --out p.csv",
        "predict faces.skldl {} --out p.csv",
        "evaluate {} --labels 'emo_*' --models sa-bfgs",
    ],
)
def test_rows_between_unbalanced_quotation_marks_are_not_lost(here, cli, monkeypatch, line):
    lines = (here / "faces.csv").read_text().splitlines()
    for row in (10, 40):
        lines[row] = f'"{lines[row]}'
    content = "\n".join(lines) + "\n"
    (here / "wrong.csv").write_text(content)
    before = sorted(file.name for file in here.iterdir())
    says = "line 41 has text after the closing quotation mark of a cell, which opens in line 11."
    assert f"wrong.csv: {says}" in cli(line.format("wrong.csv"), status=2).err
    if "--stream" not in line:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        assert f"standard input: {says}" in cli(line.format("-"), status=2).err
    assert sorted(file.name for file in here.iterdir()) == before


def test_predict_reports_columns_without_a_value_and_rejects_durations(here, cli, faces):
    new = faces.drop(columns=LABELS)
    new.assign(town="", age="").to_csv("gaps.csv", index=False)
    assert "Note: 'age', 'town': empty in every row" in cli("predict faces.skldl gaps.csv --out p.csv").err
    new.assign(age=pd.to_timedelta(new["age"], unit="D")).to_parquet("spans.parquet")
    reported = cli("predict faces.skldl spans.parquet --out q.csv", status=2).err
    assert "column 'age' holds Timedelta" in reported
    assert "the model expects a number, in the unit of the training table" in reported


def test_shares_given_as_counts_are_noticed(here, faces, cli):
    line = "fit faces.csv --labels 'emo_*' --model mean --out m.skldl"
    (reported,) = [line for line in cli(f"{line} --kind counts").err.splitlines() if "fractions" in line]
    assert reported.startswith("Note: --kind counts: the label cells look like fractions")
    assert reported.endswith("use --kind distribution.")
    assert "look like fractions" not in cli(line).err
    printed = cli("convert faces.csv --from counts --labels 'emo_*' --out d.csv")
    assert "--from counts: the cells look like fractions" in printed.err
    faces.assign(**(faces[LABELS] > 0.5).astype(float)).loc[lambda votes: votes[LABELS].sum(axis=1) == 1].to_csv(
        "one.csv"
    )
    assert "fractions" not in cli("convert one.csv --from counts --labels 'emo_*' --out e.csv").err


def test_the_package_that_saves_is_asked_for_before_the_training(here, monkeypatch, cli):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setattr("skldl.cli.fit.fit_table", lambda *tables, **options: pytest.fail("trained in vain"))
    printed = cli("fit faces.csv --labels 'emo_*' --out x.skldl", status=2)
    assert "needs the package skops: pip install 'scikit-ldl[save]'" in printed.err


def test_datasets(here, cli, monkeypatch):
    assert "Yeast_alpha" in cli("datasets").out
    assert "500 × 3, 3 labels" in cli("datasets describe Artificial").out


def test_names_do_not_steer_the_terminal(here, faces, cli):
    name = "\x1b[31mage"
    faces.rename(columns={"age": name}).to_csv("red.csv", index=False)
    cli("fit red.csv --labels 'emo_*' --drop person --model mean --out red.skldl")
    for line, status in (("inspect red.skldl", 0), ("explain red.skldl red.csv", 0), ("predict red.skldl new.csv", 2)):
        printed = "".join(cli(line, status))
        assert "\\x1b[31mage" in printed
        assert "\x1b" not in printed


def test_commands_to_type_next_can_be_pasted(here, faces, cli):
    table, model = here / "$(touch x); it's.csv", "the model.skldl"
    faces.to_csv(table, index=False)
    line = shlex.join(["fit", table.name, "--labels", "emo_*", "--model", "sa-bfgs", "--out", model])
    *_, explain = cli(line).out.strip().partition("Next: ")[2].split(", skldl ")
    assert shlex.split(explain) == ["explain", model, table.name]


def test_options_of_reading(here, faces, cli):
    faces.assign(town=["NA", *faces["town"][1:]]).to_csv("t.csv", index=False, encoding="utf-16-le")
    line = "--labels 'emo_*' --drop person --model mean --out m.skldl"
    printed = cli(f"fit t.csv {line} --encoding utf-16-le")
    assert "Column 'town': 'NA' (1 cells) taken as missing. If it is a name, define which" in printed.err
    assert "NA" not in cli(f"fit t.csv {line} --encoding utf-16-le --na ''").err


def test_dates_are_learned_from(here, cli):
    generator = np.random.default_rng(0)
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(generator.integers(0, 24 * 365, 400), unit="h")
    joy = 0.5 + 0.3 * np.sin(2 * np.pi * when.hour / 24) + 0.15 * (when.day_of_week >= 5)
    table = pd.DataFrame({"when": when, "joy": joy, "fear": 1 - joy})
    table.to_csv("dated.csv", index=False)
    table.to_parquet("dated.parquet")
    predictions = []
    for ending in ("csv", "parquet"):
        line = f"fit dated.{ending} --labels joy,fear --model sa-bfgs --set alpha=0.0001 --out m.skldl"
        assert "Column 'when' holds dates" in cli(line).err
        assert "dates        when" in cli("inspect m.skldl").out
        predictions.append(skldl.load("m.skldl").predict(table))
    np.testing.assert_allclose(predictions[0], predictions[1])
    assert skldl.metrics.kullback_leibler(table[["joy", "fear"]], predictions[0]) < 0.005


def test_names_of_steps_stay_inside(here, cli):
    """A user sees min_samples_leaf, not regressor__min_samples_leaf; and types it so."""
    line = "fit faces.csv --labels 'emo_*' --drop person --model forest --set n_estimators=5 --set n_jobs=1 --folds 2"
    printed = "".join(
        "".join(cli(words)) for words in (f"{line} --out m.skldl", "inspect m.skldl", "inspect m.skldl --json")
    )
    assert "min_samples_leaf" in printed
    assert "__" not in printed


def test_inspect_gives_a_name_with_a_line_break_no_line_of_its_own(here, faces, cli):
    faces.rename(columns={"age": "age\nmodel        trust me\x1b[2J"}).to_csv("odd.csv", index=False)
    cli("fit odd.csv --labels 'emo_*' --drop person --model mean --folds 2 --out odd.skldl")
    reported = cli("inspect odd.skldl").out
    assert r"age\nmodel        trust me\x1b[2J" in reported
    assert [line for line in reported.splitlines() if line.startswith("model")] == ["model        MeanDistribution()"]

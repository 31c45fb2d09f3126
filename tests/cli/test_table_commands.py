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
    if "big/" in line:
        (here / "big").mkdir()
        table = pd.DataFrame({"x": range(60)}).assign(r_no=lambda t: 1 - t["x"] / 60, r_yes=lambda t: t["x"] / 60)
        for part in (0, 1):
            table.iloc[30 * part : 30 * part + 30].to_parquet(f"big/part-{part}.parquet", index=False)
    line = line.removeprefix("skldl ").partition(" > ")[0]
    line = line if "evaluate" not in line else f"{line} --jobs 1 --folds 2 --inner-folds 2 --models mean"
    assert call(line.replace("--candidates sa-bfgs ", "")) == 0
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


def test_labels_that_never_vary(here, capsys):
    """The forest predicted .1, .2, .7 up to rounding, which was a skill of −∞, and no JSON in the model file."""
    rows = np.random.default_rng(0).normal(size=(60, 3))
    pd.DataFrame(rows, columns=list("abc")).assign(l0=0.1, l1=0.2, l2=0.7).to_csv("same.csv", index=False)
    assert call("fit same.csv --labels 'l*' --model forest --out same.skldl") == 0
    assert "Skill 0.0% (95 % interval 0.0% to 0.0%)" in capsys.readouterr().out
    assert call("inspect same.skldl --json") == 0
    score = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    score = score["description"]["score"]
    expected = ("kullback_leibler", "kullback_leibler_of_mean", "skill", "skill_low", "skill_high")
    assert [score[name] for name in expected] == [0] * 5


def test_from_fit_to_prediction(here, capsys, faces):
    assert call("fit faces.csv --labels 'emo_*' --drop person --model aa-knn --set n_neighbors=9 --out m.skldl") == 0
    reported = capsys.readouterr()
    assert reported.out.startswith("AA-kNN: a held-out Kullback-Leibler divergence of")
    assert "skill" in reported.out.casefold()
    assert "Written to m.skldl" in reported.out
    assert not reported.err
    assert call("predict m.skldl new.csv --keep person,town --out p.parquet") == 0
    reported = capsys.readouterr()
    assert (reported.out, reported.err) == ("", "5 rows written to p.parquet.\n")
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
    reported = capsys.readouterr()
    assert "groups held out together" in reported.out
    assert "Note: Column 'key' holds a different text in every row" in reported.err
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
    reported = capsys.readouterr()
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
        ("predict new.csv faces.skldl", "The model comes first"),
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
def test_mistakes_are_one_line_and_leave_nothing(here, capsys, line, message):
    before = sorted(file.name for file in here.iterdir())
    assert call(line) == 2
    reported = capsys.readouterr()
    assert message in reported.err
    assert reported.err.count("\n") == 1
    assert "Traceback" not in reported.err
    assert sorted(file.name for file in here.iterdir()) == before


def test_shares_given_as_counts_are_noticed(here, faces, capsys):
    line = "fit faces.csv --labels 'emo_*' --model mean --out m.skldl"
    assert call(f"{line} --kind counts") == 0
    (reported,) = [line for line in capsys.readouterr().err.splitlines() if "fractions" in line]
    assert reported.startswith("Note: --kind counts: the label cells look like fractions")
    assert reported.endswith("use --kind distribution.")
    assert call(line) == 0
    assert "look like fractions" not in capsys.readouterr().err
    assert call("convert faces.csv --from counts --labels 'emo_*' --out d.csv") == 0
    assert "--from counts: the cells look like fractions" in capsys.readouterr().err
    faces.assign(**(faces[LABELS] > 0.5).astype(float)).loc[lambda votes: votes[LABELS].sum(axis=1) == 1].to_csv(
        "one.csv"
    )
    assert call("convert one.csv --from counts --labels 'emo_*' --out e.csv") == 0
    assert "fractions" not in capsys.readouterr().err


def test_the_package_that_saves_is_asked_for_before_the_training(here, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.setattr("skldl.cli.fit.fit_table", lambda *tables, **options: pytest.fail("trained in vain"))
    assert call("fit faces.csv --labels 'emo_*' --out x.skldl") == 2
    assert "needs the package skops: pip install 'scikit-ldl[save]'" in capsys.readouterr().err


def test_datasets(here, capsys, monkeypatch):
    assert call("datasets") == 0
    assert "Yeast_alpha" in capsys.readouterr().out
    assert call("datasets describe Artificial") == 0
    assert "500 × 3, 3 labels" in capsys.readouterr().out


def test_names_do_not_steer_the_terminal(here, faces, capsys):
    name = "\x1b[31mage"
    faces.rename(columns={"age": name}).to_csv("red.csv", index=False)
    assert call("fit red.csv --labels 'emo_*' --drop person --model mean --out red.skldl") == 0
    assert call("inspect red.skldl") == 0
    assert call("explain red.skldl red.csv --repeats 1") == 0
    assert call("predict red.skldl new.csv") == 2
    reported = capsys.readouterr()
    assert "\\x1b[31mage" in reported.out
    assert "\\x1b[31mage" in reported.err
    assert "\x1b" not in reported.out + reported.err


def test_commands_to_type_next_can_be_pasted(here, faces, capsys):
    table, model = here / "$(touch x); it's.csv", "the model.skldl"
    faces.to_csv(table, index=False)
    line = shlex.join(["fit", table.name, "--labels", "emo_*", "--model", "sa-bfgs", "--out", model])
    assert call(line) == 0
    *_, explain = capsys.readouterr().out.strip().partition("Next: ")[2].split(", skldl ")
    assert shlex.split(explain) == ["explain", model, table.name]


def test_options_of_reading(here, faces, capsys):
    faces.assign(town=["NA", *faces["town"][1:]]).to_csv("t.csv", index=False, encoding="utf-16-le")
    line = "--labels 'emo_*' --drop person --model mean --out m.skldl"
    assert call(f"fit t.csv {line} --encoding utf-16-le") == 0
    assert "Column 'town': 'NA' (1 cells) taken as missing. If it is a name, define which" in capsys.readouterr().err
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


def test_names_of_steps_stay_inside(here, capsys):
    """A user sees min_samples_leaf, not regressor__min_samples_leaf; and types it so."""
    line = "fit faces.csv --labels 'emo_*' --drop person --model forest --set n_estimators=5 --set n_jobs=1 --folds 2"
    assert call(f"{line} --out m.skldl") == 0
    assert call("inspect m.skldl") == 0
    assert call("inspect m.skldl --json") == 0
    reported = capsys.readouterr()
    assert "min_samples_leaf" in reported.out
    assert "__" not in reported.out + reported.err


def test_inspect_gives_a_name_with_a_line_break_no_line_of_its_own(here, faces, capsys):
    faces.rename(columns={"age": "age\nmodel        trust me\x1b[2J"}).to_csv("odd.csv", index=False)
    assert call("fit odd.csv --labels 'emo_*' --drop person --model mean --folds 2 --out odd.skldl") == 0
    capsys.readouterr()
    assert call("inspect odd.skldl") == 0
    reported = capsys.readouterr().out
    assert r"age\nmodel        trust me\x1b[2J" in reported
    assert [line for line in reported.splitlines() if line.startswith("model")] == ["model        MeanDistribution()"]

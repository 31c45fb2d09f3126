"""`skldl fit --stream`: the model of memory, from files of every kind, or one clear error."""

import numpy as np
import pandas as pd
import pytest

import skldl
from skldl.data import Columns
from skldl.persistence import inspect
from skldl.serve import Service
from skldl.tabular import FitOptions, fit_table

FIT = "--labels 'r_*' --stream --model sa-bfgs --set alpha=0.001"


def as_array(X):
    return X.toarray() if hasattr(X, "toarray") else X


def training_rows(fitted):
    """Features and degrees of all rows that the model has learned from, which the description keeps."""
    rows = fitted.description["kept_rows"]["rows"]
    names = [*fitted.description["features"], *fitted.description["labels"]]
    table = pd.DataFrame(rows, columns=names)
    assert len(table) == fitted.description["rows"]
    return table


@pytest.mark.parametrize(
    "kind", ["files", pytest.param("one file", marks=pytest.mark.slow), pytest.param("weights", marks=pytest.mark.slow)]
)
def test_the_model_is_that_of_the_same_rows_in_memory(ratings_folder, kind, ratings):
    """The estimator fitted in memory to all rows of the stream that were not held out."""
    table = ratings().assign(w=np.arange(600) % 4)
    table.to_csv("weighted.csv", index=False)
    source = {"files": "parts/*.parquet", "one file": "all.csv", "weights": "weighted.csv"}[kind]
    fitted = fit_table(
        source,
        Columns("r_*", weight="w" if kind == "weights" else None),
        model="sa-bfgs-cv",
        settings={"alphas": [0.1, 0.001], "cv": 2},
        options=FitOptions(stream=True, keep_rows=600),
    )
    rows = training_rows(fitted)
    X, D = as_array(fitted.model[0].transform(rows)), rows[["r_a", "r_b", "r_c"]].to_numpy()
    assert len(rows) == (450 if kind == "weights" else 600) - fitted.description["held_out"]
    weight = None if kind != "weights" else table.set_index(table["x"].round(12))["w"][rows["x"].round(12)].to_numpy()
    in_memory = skldl.SABFGSCV(alphas=[0.1, 0.001], cv=2).fit(X, D, weight)
    new = ratings(50, seed=1)
    np.testing.assert_allclose(
        fitted.model.predict(new), in_memory.predict(as_array(fitted.model[0].transform(new))), rtol=0, atol=1e-9
    )
    assert fitted.choice.beats_mean


def test_the_files_of_a_folder_are_one_table(ratings_folder, cli):
    sources = {"one": "all.csv", "folder": "parts"}
    found = {}
    for name, source in sources.items():
        assert "Judged by" in cli(f"fit {source} {FIT} --out {name}.skldl").out
        found[name] = skldl.load(f"{name}.skldl")[-1].coef_
    np.testing.assert_allclose(found["folder"], found["one"], rtol=1e-9)
    assert not list(ratings_folder.glob("*.resume"))
    assert inspect("folder.skldl")["description"]["source"] == "parts/part-0.parquet and 3 more files"
    cli("fit parts --labels 'r_*' --model mean --out memory.skldl")  # several files in memory
    assert inspect("memory.skldl")["description"]["rows"] == 600


def test_the_model_file_is_an_ordinary_one(ratings_folder, cli):
    assert "Note" not in cli(f"fit parts {FIT} --out m.skldl --keep-rows 7").err
    assert "Note" not in cli("predict m.skldl all.csv --out p.csv --monitor p.json").err
    degrees = pd.read_csv("p.csv")[["r_a", "r_b", "r_c"]]
    np.testing.assert_allclose(degrees.sum(axis=1), 1, atol=1e-5)
    assert "parts/part-0.parquet and 3 more files" in cli("inspect m.skldl").out
    cli("explain m.skldl all.csv")
    cli("export m.skldl --card card.md")
    assert "One split: the model was judged on 110 rows" in (ratings_folder / "card.md").read_text()
    about = inspect("m.skldl")["description"]
    kept = about["kept_rows"]
    options = FitOptions(stream=True, keep_rows=600)
    every = training_rows(fit_table("all.csv", "r_*", model="mean", options=options))
    assert len(kept["rows"]) == 7
    for position, row in zip(kept["positions"], kept["rows"], strict=True):
        assert row[0] == pytest.approx(every["x"].iloc[position])
    assert Service({"m": "m.skldl"}).model("m").labels == ["r_a", "r_b", "r_c"]


def test_text_is_hashed(ratings_folder, ratings, cli):
    """And the features are sparse, which the chunks must say from the first on."""
    rng = np.random.default_rng(0)
    table = ratings(200)
    table["says"] = np.where(
        table["r_a"] > 0.4, "all is very well", [f"not well at all {w}" for w in rng.choice(["x", "y"], 200)]
    )
    table.to_csv("says.csv", index=False)
    cli(f"fit says.csv {FIT} --text says --text-ngrams words --out m.skldl")
    assert skldl.load("m.skldl")[-1].n_features_in_ > 2**14
    assert inspect("m.skldl")["description"]["features"]["says"] == "text"
    cli("predict m.skldl says.csv --out p.csv")


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        pytest.param("counts", ["r_a", "r_b", "r_c"], marks=pytest.mark.slow),
        ("votes", ["0", "1", "2"]),
        pytest.param("label", ["may", "no", "yes"], marks=pytest.mark.slow),
    ],
)
def test_kinds_of_labels(ratings_folder, kind, labels, ratings, cli):
    table = ratings(300)
    counts = np.random.default_rng(0).multinomial(9, table[["r_a", "r_b", "r_c"]].to_numpy())
    features = table[["x", "town"]]
    features.assign(r_a=counts[:, 0], r_b=counts[:, 1], r_c=counts[:, 2]).to_csv("counts.csv", index=False)
    votes = pd.DataFrame({f"r_{k}": counts.argmax(axis=1) if k else counts.argmin(axis=1) for k in range(3)})
    features.join(votes).to_csv("votes.csv", index=False)
    features.assign(r_says=np.array(["no", "yes", "may"])[counts.argmax(axis=1)]).to_csv("label.csv", index=False)
    shown = cli(f"fit {kind}.csv {FIT} --kind {kind} --out m.skldl").out
    assert inspect("m.skldl")["description"]["labels"] == labels
    assert ("Noise floor" in shown) == (kind != "label")


def test_notes_about_columns_and_rows(ratings_folder, cli, ratings):
    table = ratings(200)
    table.loc[:9, ["r_a", "r_b", "r_c"]] = np.nan
    odd = table.assign(leak=2 * table["r_a"], day="2024-01-05", w=np.where(table.index < 20, 0, 1), r_d=0.0)
    odd.to_csv("odd.csv", index=False)
    notes = cli(f"fit odd.csv {FIT.replace('r_*', 'r_a,r_b,r_c')} --weight w --drop r_d --out m.skldl").err
    assert "10 of 200 rows have no label and are left out" in notes
    assert "10 of 190 rows have weight zero and are left out" in notes
    assert "Column 'leak' alone determines the label 'r_a' nearly completely" in notes
    assert "Column 'day' holds dates" in notes


def test_groups_are_held_out_together(ratings_folder, cli, ratings):
    ratings().assign(person=np.repeat(np.arange(60), 10)).to_csv("people.csv", index=False)
    assert "whole groups held out" in cli(f"fit people.csv {FIT} --groups person --out m.skldl").out
    assert inspect("m.skldl")["description"]["held_out"] % 10 == 0
    printed = cli("fit people.csv --labels 'r_*' --stream --groups person --out n.skldl", status=2)
    assert "--model sa-bfgs with --set alpha=0.001" in printed.err


def spoil(ratings_folder, what):
    """Make a bad input of the parts; the arguments of the command and the message."""
    part = ratings_folder / "parts" / "part-2.parquet"
    if what == "corrupt in the middle":
        content = bytearray(part.read_bytes())
        content[200:3000] = b"\xff" * 2800
        part.write_bytes(content)
        return "parts", "part-2.parquet cannot be read"
    if what == "cut off":
        part.write_bytes(part.read_bytes()[:-100])
        return "parts", "part-2.parquet cannot be read as Parquet"
    if what == "empty file":
        (ratings_folder / "parts" / "part-9.csv").write_bytes(b"")
        return "parts", "part-9.csv is empty"
    frame = pd.read_parquet(part)
    if what == "another column":
        frame.rename(columns={"age": "years"}).to_parquet(part)
        return "parts", "part-2.parquet lacks the column 'age'"
    if what == "a further column":
        frame.assign(more=1).to_parquet(part)
        return "parts", "part-2.parquet has a further column 'more'"
    if what == "a row that does not sum to one":
        frame.loc[frame.index[16], "r_a"] += 0.5
        frame.to_parquet(part, index=False)
        return "parts", "part-2.parquet: The labels sum to 1.5, not 1, in row 17"
    if what == "an empty label":
        frame.loc[frame.index[4], "r_b"] = np.nan
        frame.to_parquet(part, index=False)
        return "parts", "part-2.parquet: Row 5 of column 'r_b', a label, is empty"
    if what == "a bad cell":
        frame.astype({"x": object}).assign(x=["oops", *frame["x"].iloc[1:].astype(str)]).to_csv(
            ratings_folder / "parts" / "b.csv", index=False
        )
        part.unlink()
        return "parts", "Column 'x' is mostly numbers, but holds 'oops' (row 1 of parts/b.csv)"
    raise AssertionError(what)


@pytest.mark.parametrize(
    "what",
    [
        "corrupt in the middle",
        "cut off",
        "empty file",
        "another column",
        "a further column",
        "a row that does not sum to one",
        "an empty label",
        "a bad cell",
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(ratings_folder, cli, what):
    sources, message = spoil(ratings_folder, what)
    before = sorted(ratings_folder.rglob("*"))
    printed = cli(f"fit {sources} {FIT} --out m.skldl", status=2).err
    assert message in printed
    assert printed.count("\n") == 1
    assert sorted(ratings_folder.rglob("*")) == before


def test_a_file_without_rows_is_passed_over(ratings_folder, cli):
    (ratings_folder / "parts" / "part-9.csv").write_text("x,age,town,r_a,r_b,r_c\n")
    assert "part-9.csv has a header but no rows" in cli(f"fit parts {FIT} --out m.skldl").err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("all.csv --stream", "--labels is missing"),
        ("- --labels r --stream", "Standard input can be read only once"),
        ("all.npz --labels r --stream", "holds arrays"),
        ("all.csv --labels 'r_*' --stream --model aa-knn", "in chunks are Mean, SA-BFGS, SA-BFGS-CV, SA-IIS, PT-Bayes"),
        ("all.csv --labels 'r_*' --stream --preset best", "--preset has no part in a fit"),
        ("all.csv --labels 'r_*' --stream --folds 3", "--set cv=5"),
        ("all.csv --labels 'r_*' --stream --intervals", "with --no-stream"),
        ("all.csv --labels 'r_*' --stream --memory 10MiB", "--memory 10MiB is too little"),
        ("all.csv --labels 'r_*' --stream --memory lots", "write a number with a unit"),
        ("all.csv --labels 'r_*' --stream --set alpha=1", "parameters belong to a model"),
        ("all.csv --labels 'q_*' --stream", "the table has no such column"),
        ("none.csv --labels 'r_*' --stream", "There is no file none.csv"),
        ("'none/*.csv' --labels 'r_*' --stream", "no name matches the pattern"),
        ("all.csv all.npz --labels 'r_*'", "Name it alone"),
        ("all.csv --labels 'r_*' --stream --keep-rows 0", "--keep-rows 0 must be from 1"),
    ],
)
def test_what_cannot_be_is_rejected_with_advice(ratings_folder, cli, line, message):
    np.savez("all.npz", X=np.zeros((3, 1)), D=np.full((3, 2), 0.5))
    assert message in cli(f"fit {line} --out m.skldl", status=2).err
    assert not (ratings_folder / "m.skldl").exists()
    assert not (ratings_folder / "m.skldl.resume").exists()

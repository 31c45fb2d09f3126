"""Sources besides tables: arrays in .mat and .npz files, and folds from a file."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat

import skldl
from skldl.experiments import StudyResults

N_ROWS = 60


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    """The same data as a table and as arrays; the third label depends on the first feature."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 3))
    counts = np.column_stack([rng.integers(1, 6, size=(N_ROWS, 2)), 1 + (9 / (1 + np.exp(-2 * X[:, 0]))).astype(int)])
    person = np.array([f"p{row // 3}" for row in range(N_ROWS)])
    weight = np.linspace(1, 2, N_ROWS)
    arrays = {"features": X, "labels": counts, "person": person, "weight": weight}
    np.savez("d.npz", **arrays)
    savemat("d.mat", arrays | {"person": np.array(person, dtype=object)[:, None]})
    np.savez("other.npz", X=X, votes=counts, label_names=["a", "b", "c"])
    np.savez("bare.npz", X=X)
    table = pd.DataFrame(X, columns=[f"feature_{j}" for j in range(3)])
    table[[f"label_{j}" for j in range(3)]] = counts
    table.assign(person=person, weight=weight).to_csv("d.csv", index=False)
    pd.DataFrame({"fold": np.arange(N_ROWS) // 3 % 4}).to_csv("folds.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("ending", ["npz", "mat"])
def test_fit_and_predict_with_arrays_as_with_the_table(cli, ending):
    options = "--kind counts --groups person --weight weight --model sa-bfgs --set alpha=0.01"
    shown = cli(f"fit d.{ending} {options} --out arrays.skldl").out.partition("Written")[0]
    assert shown == cli(f"fit d.csv --labels 'label_*' {options} --out table.skldl").out.partition("Written")[0]
    for source in (f"d.{ending}", "d.csv", "bare.npz"):
        of_arrays = cli(f"predict arrays.skldl {source}").out
        assert of_arrays == cli("predict table.skldl d.csv").out
    assert "The model learned from these rows" in cli(f"explain arrays.skldl d.{ending} --repeats 1").err


def test_arrays_with_names_of_their_own(cli):
    cli("fit other.npz --labels votes --kind counts --model mean --out m.skldl")
    assert skldl.persistence.inspect("m.skldl")["description"]["labels"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("fit other.npz --out m.skldl", "holds no array of labels. Name it with --labels"),
        ("fit other.npz --labels a,b --out m.skldl", "Name the one array of labels"),
        ("fit d.npz --labels nothing --out m.skldl", "holds no 'nothing'"),
        ("fit d.npz --kind counts --groups nobody --out m.skldl", "d.npz holds no 'nobody'"),
        ("fit other.npz --labels votes --weight label_names --out m.skldl", "has 3 values for 60 rows"),
        ("fit d.npz --encoding utf-8 --out m.skldl", "--encoding is about CSV files, and d.npz holds arrays"),
        ("fit gone.mat --out m.skldl", "There is no file gone.mat"),
        ("fit d.csv --out m.skldl", "--labels is missing"),
        ("evaluate other.npz", "holds no array of labels"),
        ("evaluate d.npz --kind votes", "--kind votes is for tables"),
        ("fit d.npz --kind counts --splits folds.csv --out m.skldl", "--splits has no effect with --preset best"),
        (
            "fit d.npz --kind counts --model mean --splits gone.csv --out m.skldl",
            "d.npz: there is no file of splits gone.csv",
        ),
    ],
)
def test_mistakes_are_one_line(cli, line, message):
    said = cli(line, status=2).err
    assert message in said
    assert said.count("\n") == 1


def test_fit_takes_folds_from_a_file(cli):
    """The estimate is the one of cross-validation over these folds, done by hand; rows of no fold only train."""
    line = "fit d.csv --labels 'label_*' --kind counts --drop person,weight --model mean --out m.skldl"
    assert "in 4 folds of 60 rows" in cli(f"{line} --splits folds.csv").out
    counts = pd.read_csv("d.csv").filter(like="label_").to_numpy()
    D = counts / counts.sum(axis=1, keepdims=True)
    fold_of = pd.read_csv("folds.csv")["fold"].to_numpy()
    losses = np.concatenate(
        [
            skldl.metrics.MEASURES["kullback_leibler"].rowwise(
                D[fold_of == k], np.tile(D[fold_of != k].mean(axis=0), ((fold_of == k).sum(), 1))
            )
            for k in range(4)
        ]
    )
    score = skldl.persistence.inspect("m.skldl")["description"]["score"]
    assert score["kullback_leibler"] == pytest.approx(losses.mean())
    pd.DataFrame({"fold": np.where(fold_of == 3, None, fold_of)}).to_csv("three.csv", index=False)
    assert "in 3 folds of 45 of 60 rows" in cli(f"{line} --splits three.csv").out
    pd.DataFrame({"fold": np.where(fold_of == 3, "a", "train")}).to_csv("one.csv", index=False)
    assert "single fold" in cli(f"{line} --splits one.csv", status=2).err


@pytest.mark.parametrize("source", ["d.npz", "d.csv --labels 'label_*' --drop person,weight"])
def test_evaluate_arrays_with_given_folds_and_run_it_again(cli, source, monkeypatch):
    monkeypatch.setattr("skldl.cli._study_output._report_line", lambda results, folder: "")
    options = "--kind counts --splits folds.csv --models sa-bfgs --measures kl --inner-folds 2 --jobs 1"
    assert "The splits of d were given in a file." in cli(f"evaluate {source} {options} --out first").out
    first = StudyResults.load("first")
    assert len([r for r in first.evaluations if r["candidate"] == "SA-BFGS"]) == 4
    cli("bench first/study.toml --jobs 1 --out second")
    np.testing.assert_array_equal(first.means("kl"), StudyResults.load("second").means("kl"))


def test_evaluate_cuts_prose_as_chosen(cli, monkeypatch):
    monkeypatch.setattr("skldl.cli._study_output._report_line", lambda results, folder: "")
    rng = np.random.default_rng(0)
    warm = rng.random(60) < 0.5
    text = [f"{'warmest' if w else 'coldest'} {n}" for w, n in zip(warm, rng.choice(["tea", "soup"], 60), strict=True)]
    share = np.where(warm, 0.8, 0.2)
    pd.DataFrame({"said": text, "joy": share, "fear": 1 - share}).to_csv("said.csv", index=False)
    line = "evaluate said.csv --labels joy,fear --text said --models sa-bfgs --measures kl --folds 2 --inner-folds 2"
    means = {}
    for cut in ("words", "characters"):
        cli(f"{line} --jobs 1 --text-ngrams {cut} --out {cut}")
        means[cut] = StudyResults.load(cut).means("kl")[0][0]
        assert f'text_ngrams = "{cut}"' in Path(cut, "study.toml").read_text(encoding="utf-8")
    assert means["words"] != means["characters"]

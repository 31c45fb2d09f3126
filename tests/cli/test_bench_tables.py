"""``skldl bench`` on tables: which column is what, and what cannot be said about other datasets."""

import numpy as np
import pandas as pd
import pytest

import skldl
from skldl.experiments import StudyResults
from skldl.metrics import kullback_leibler

OPTIONS = "--candidates mean --measures kl --folds 2 --jobs 1 --protocol nested"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bench --na ''", "--na applies to tables. Give the paths of the tables with --datasets"),
        ("bench --labels 'emo_*'", "--labels applies to tables"),
        ("bench --datasets Lexicon --labels 'emo_*'", "--labels applies to tables"),
        ("bench --splits folds.csv", "--splits applies to tables"),
        ("bench --datasets Lexicon --text-ngrams words", "--text-ngrams applies to tables"),
        ("bench --datasets Artificial --decimal ,", "--decimal applies to tables"),
    ],
)
def test_roles_without_a_table_are_rejected(here, cli, line, message):
    assert message in cli(f"{line} {OPTIONS}", status=2).err


def test_no_word_means_missing(here, faces, cli):
    """Somebody lives in NA, the code of Namibia."""
    faces.assign(town=["NA", *faces["town"][1:]]).to_csv("t.csv", index=False)
    line = f"bench --datasets t.csv --labels 'emo_*' --drop person {OPTIONS}"
    assert "'NA' (1 cells) taken as missing" in cli(f"{line} --out one").err
    assert "taken as missing" not in cli(f"{line} --na '' --out two").err
    assert skldl.experiments.load_study("two/study.toml").datasets[0].na_values == ()


def test_folds_from_a_file(here, faces, cli):
    """Each fold is tested once; its training part is the rest, as the file says."""
    fold = [f"part {row % 3}" if row >= 20 else "train" for row in range(len(faces))]
    pd.DataFrame({"fold": fold}).to_csv("folds.csv", index=False)
    line = f"bench --datasets faces.csv --labels 'emo_*' --drop person --splits folds.csv {OPTIONS}"
    cli(f"{line} --out run")
    results = StudyResults.load("run")
    degrees = faces[["emo_joy", "emo_anger", "emo_fear"]].to_numpy()
    expected = []
    for part in ("part 0", "part 1", "part 2"):
        tested = np.array(fold) == part
        expected.append(kullback_leibler(degrees[tested], np.tile(degrees[~tested].mean(axis=0), (tested.sum(), 1))))
    np.testing.assert_allclose(results.values("kullback_leibler", "faces", "Mean"), expected, rtol=1e-9)
    cli("bench --resume --out run --jobs 1")  # the study remembers where its folds come from
    pd.DataFrame({"fold": fold[:-1]}).to_csv("folds.csv", index=False)
    assert "folds.csv has 119 lines for the 120 rows" in cli(f"{line} --out other", status=2).err


def test_a_table_with_one_row_for_each_vote(here, cli):
    line = "bench --datasets texts.csv --kind votes --labels says --item id --annotator who --text text"
    cli(f"{line} --text-ngrams characters {OPTIONS} --out run")
    results = StudyResults.load("run")
    assert results.info["texts"]["n_samples"] == 6
    assert results.info["texts"]["raters"]["n_raters"] == 3
    study = skldl.experiments.load_study("run/study.toml")
    assert study.title == "Mean on texts.csv"
    spec = study.datasets[0]
    assert (spec.item, spec.annotator, spec.text_ngrams) == ("id", "who", "characters")


def test_the_help_says_where_study_files_are_described(cli):
    assert "docs/records.md" in cli("bench --help").out

"""``skldl bench`` on tables: which column is what, and what cannot be said about other datasets."""

import shlex

import numpy as np
import pandas as pd
import pytest

import skldl
from skldl.cli._app import run
from skldl.experiments import StudyResults
from skldl.metrics import kullback_leibler

OPTIONS = "--candidates mean --measures kl --folds 2 --jobs 1 --protocol nested"


def call(line):
    return run(shlex.split(line))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bench --na ''", "--na is about tables. Name the tables with --datasets"),
        ("bench --labels 'emo_*'", "--labels is about tables"),
        ("bench --datasets Lexicon --labels 'emo_*'", "--labels is about tables"),
        ("bench --splits folds.csv", "--splits is about tables"),
        ("bench --datasets Lexicon --text-ngrams words", "--text-ngrams is about tables"),
        ("bench --datasets Artificial --decimal ,", "--decimal is about tables"),
    ],
)
def test_roles_without_a_table_are_refused(here, capsys, line, message):
    assert call(f"{line} {OPTIONS}") == 2
    assert message in capsys.readouterr().err


def test_no_word_means_missing(here, faces, capsys):
    """Somebody lives in NA, the code of Namibia."""
    faces.assign(town=["NA", *faces["town"][1:]]).to_csv("t.csv", index=False)
    line = f"bench --datasets t.csv --labels 'emo_*' --drop person {OPTIONS}"
    assert call(f"{line} --out one") == 0
    assert "'NA' (1 cells) taken as missing" in capsys.readouterr().err
    assert call(f"{line} --na '' --out two") == 0
    assert "taken as missing" not in capsys.readouterr().err
    assert skldl.experiments.load_study("two/study.toml").datasets[0].na_values == ()


def test_folds_from_a_file(here, faces, capsys):
    """Each fold is tested once; its training part is the rest, as the file says."""
    fold = [f"part {row % 3}" if row >= 20 else "train" for row in range(len(faces))]
    pd.DataFrame({"fold": fold}).to_csv("folds.csv", index=False)
    line = f"bench --datasets faces.csv --labels 'emo_*' --drop person --splits folds.csv {OPTIONS}"
    assert call(f"{line} --out run") == 0
    results = StudyResults.load("run")
    degrees = faces[["emo_joy", "emo_anger", "emo_fear"]].to_numpy()
    expected = []
    for part in ("part 0", "part 1", "part 2"):
        tested = np.array(fold) == part
        expected.append(kullback_leibler(degrees[tested], np.tile(degrees[~tested].mean(axis=0), (tested.sum(), 1))))
    np.testing.assert_allclose(results.values("kullback_leibler", "faces", "Mean"), expected, rtol=1e-9)
    assert call("bench --resume --out run --jobs 1") == 0  # the study remembers where its folds come from
    pd.DataFrame({"fold": fold[:-1]}).to_csv("folds.csv", index=False)
    assert call(f"{line} --out other") == 2
    assert "folds.csv has 119 lines for the 120 rows" in capsys.readouterr().err


def test_a_table_with_one_row_for_each_vote(here):
    line = "bench --datasets texts.csv --kind votes --labels says --item id --annotator who --text text"
    assert call(f"{line} --text-ngrams characters {OPTIONS} --out run") == 0
    results = StudyResults.load("run")
    assert results.info["texts"]["n_samples"] == 6
    assert results.info["texts"]["raters"]["n_raters"] == 3
    spec = skldl.experiments.load_study("run/study.toml").datasets[0]
    assert (spec.item, spec.annotator, spec.text_ngrams) == ("id", "who", "characters")


def test_the_help_says_where_study_files_are_described(capsys):
    assert call("bench --help") == 0
    assert "docs/records.md" in capsys.readouterr().out

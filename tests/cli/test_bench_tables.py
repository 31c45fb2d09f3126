"""``skldl bench`` on tables: which column is what, and what cannot be said about other datasets."""

import shlex

import pytest

import skldl
from skldl.cli._app import run

OPTIONS = "--algorithms mean --measures kl --folds 2 --jobs 1 --protocol nested"


def call(line):
    return run(shlex.split(line))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("bench --na ''", "--na is about the columns of tables. Name the tables with --datasets"),
        ("bench --labels 'emo_*'", "--labels is about the columns of tables"),
        ("bench --datasets Lexicon --labels 'emo_*'", "--labels is about the columns of tables"),
        ("bench --datasets Artificial --decimal ,", "--decimal is about the columns of tables"),
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

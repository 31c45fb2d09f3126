"""`skldl fit --stream` and memory: when a table is read in chunks, and the bound that holds then."""

import os
import shlex
import sys

import numpy as np
import pandas as pd
import pytest

from skldl.cli import _fit_stream
from skldl.cli._app import run

FIT = "--labels 'r_*' --stream --model sa-bfgs --set alpha=0.001"


def call(line):
    return run(shlex.split(line))


def test_a_large_table_is_streamed_without_being_asked(ratings_folder, monkeypatch, capsys):
    monkeypatch.setattr(_fit_stream, "SMALL", 1000)
    assert call("fit all.csv --labels 'r_*' --model mean --out m.skldl") == 0
    assert "chunks" not in capsys.readouterr().err
    monkeypatch.setattr(_fit_stream, "available_memory", lambda: 100_000)
    assert call("fit all.csv --labels 'r_*' --model mean --out m.skldl") == 0
    assert "it is read in chunks, as with --stream" in capsys.readouterr().err
    assert call("fit all.csv --labels 'r_*' --model mean --folds 2 --out m.skldl") == 0
    assert "It is read into memory, since --folds asks for that" in capsys.readouterr().err


@pytest.mark.slow
def test_a_large_table_and_a_model_that_needs_memory(ratings_folder, monkeypatch, capsys):
    monkeypatch.setattr(_fit_stream, "SMALL", 1000)
    monkeypatch.setattr(_fit_stream, "available_memory", lambda: 100_000)
    assert call("fit all.csv --labels 'r_*' --model aa-knn --set n_neighbors=5 --out m.skldl") == 0
    assert "only SA-BFGS-CV, SA-BFGS, SA-IIS, PT-Bayes, Mean learn in chunks" in capsys.readouterr().err


@pytest.mark.slow
def test_a_model_that_does_not_fit_into_the_bound(ratings_folder, capsys):
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(30, 1200)), columns=[f"x{k}" for k in range(1200)])
    wide.assign(r_a=0.5, r_b=0.5).to_parquet("wide.parquet")
    assert call("fit wide.parquet --labels 'r_*' --stream --memory 600MiB --out m.skldl") == 2
    assert "The table makes 1,200 features" in capsys.readouterr().err
    assert call("fit wide.parquet --labels 'r_*' --stream --memory 300MiB --out m.skldl") == 2
    assert "is too little: the libraries take 440 MiB" in capsys.readouterr().err


def test_free_memory_is_known_on_linux():
    assert sys.platform != "linux" or 2**20 < _fit_stream.available_memory() < 2**50


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_rows(ratings_folder, ending, ratings, peak_memory):
    for name, n_rows in (("small", 100_000), ("large", 300_000)):
        table = ratings(n_rows)
        table.to_csv(f"{name}.csv", index=False) if ending == "csv" else table.to_parquet(f"{name}.parquet")
    del table

    def peak(name, memory):
        return peak_memory(shlex.split(f"fit {name}.{ending} {FIT} --memory {memory} --out {name}.skldl"))

    small, large = peak("small", "640MiB"), peak("large", "640MiB")
    assert max(small, large) < 640
    assert large < small + 40
    assert peak("large", "1GiB") < 1024
    assert os.path.getsize("large.skldl") < 100_000

"""`skldl fit --stream` and memory: when a table is read in chunks, and the bound that holds then."""

import os
import shlex

import numpy as np
import pandas as pd
import pytest

from skldl.persistence import inspect

FIT = "--labels 'r_*' --stream --model sa-bfgs --set alpha=0.001"


@pytest.fixture
def small_limit(monkeypatch):
    """Files of more than a kilobyte count as large."""
    monkeypatch.setattr("skldl.tabular._fit.MAX_BYTES_IN_MEMORY", 1000)


def test_a_large_table_is_read_in_chunks_if_the_model_learns_so(ratings_folder, small_limit, cli):
    assert "it was read in chunks, as with --stream" in cli("fit all.csv --labels 'r_*' --model mean --out m.skldl").err
    assert inspect("m.skldl")["description"]["held_out"] > 0
    assert "chunks" not in cli("fit all.csv --labels 'r_*' --model mean --no-stream --out m.skldl").err
    assert "held_out" not in inspect("m.skldl")["description"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "--model auto compares models that need all rows in memory. Name one that can be fitted in chunks (Mean,"),
        ("--model aa-knn", "AA-kNN needs all rows in memory"),
        ("--model mean --folds 2", "--folds has no part in a fit that reads the table in chunks"),
    ],
)
def test_a_large_table_never_changes_the_model(ratings_folder, small_limit, cli, options, message):
    """The kind of model follows from the command alone."""
    printed = cli(f"fit all.csv --labels 'r_*' {options} --out m.skldl", status=2).err
    assert message in printed
    assert "tables of more than" in printed
    assert "or into memory with --no-stream" in printed
    assert not list(ratings_folder.glob("m.skldl*"))


@pytest.mark.slow
def test_a_model_that_does_not_fit_into_the_bound(ratings_folder, cli):
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.normal(size=(30, 1200)), columns=[f"x{k}" for k in range(1200)])
    wide.assign(r_a=0.5, r_b=0.5).to_parquet("wide.parquet")
    printed = cli("fit wide.parquet --labels 'r_*' --stream --memory 600MiB --out m.skldl", status=2)
    assert "The table has 1,200 encoded features" in printed.err
    printed = cli("fit wide.parquet --labels 'r_*' --stream --memory 300MiB --out m.skldl", status=2)
    assert "is too little: the libraries take 440 MiB" in printed.err


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

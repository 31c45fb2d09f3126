"""Data that the tests of rows in chunks share."""

import numpy as np
import pytest
from scipy import sparse


def _table(n_rows, n_features=6, n_labels=4, *, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)) * rng.exponential(size=n_features) + rng.normal(size=n_features)
    X[:, 0] = 3.7
    X[:, 1] = rng.integers(0, 2, n_rows)
    X[:, 2] = rng.poisson(0.05, n_rows)
    scores = X @ rng.normal(size=(n_features, n_labels)) / n_features + 0.3 * rng.normal(size=(n_rows, n_labels))
    D = np.exp(scores - scores.max(axis=1, keepdims=True))
    weight = rng.exponential(size=n_rows)
    weight[::7] = 0
    return X, D / D.sum(axis=1, keepdims=True), weight


def _as_form(X, form):
    if form == "dense":
        return X
    if form == "single":
        return X.astype(np.float32)
    thinned = np.where(np.random.default_rng(1).random(X.shape) < 0.3, X, 0.0)
    thinned[:, 0] = X[:, 0]
    return sparse.csr_matrix(thinned)


@pytest.fixture
def table():
    """Make features with a constant, a binary and a rare column, distributions, and weights of which some are zero."""
    return _table


@pytest.fixture
def as_form():
    """Make X dense, in single precision, or sparse with a third of its entries."""
    return _as_form


@pytest.fixture
def parquet_folder(tmp_path):
    """Write a table as Parquet files with columns x0, x1, …, r_0, r_1, … and w."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def write(X, D, weight=None, *, n_files=3, row_group_size=100):
        columns = {f"x{k}": column for k, column in enumerate(X.T)} | {f"r_{k}": column for k, column in enumerate(D.T)}
        if weight is not None:
            columns["w"] = weight
        whole = pa.table(columns)
        size = -(-len(X) // n_files)
        for part in range(n_files):
            piece = whole.slice(part * size, size)
            pq.write_table(piece, tmp_path / f"part-{part}.parquet", row_group_size=row_group_size)
        return tmp_path

    return write

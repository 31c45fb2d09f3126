"""Boxes of rows: every row is in one, and no row of a box is nearer than the box."""

import numpy as np
import pytest

from skldl.neighbors import _filter
from skldl.neighbors._boxes import RowBoxes
from skldl.neighbors._filter import LowerBoundFilter


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("kind", ["normal", "whole", "constant", "one column"])
def test_no_row_is_nearer_than_its_box(kind, scale):
    rng = np.random.default_rng(0)
    rows = {
        "normal": rng.normal(size=(1000, 12)),
        "whole": rng.integers(0, 3, size=(1000, 12)),
        "constant": np.ones((1000, 3)),
        "one column": rng.normal(size=(1000, 1)),
    }[kind]
    rows = (scale * rows).astype(np.float32)
    boxes = RowBoxes(rows, 60)
    np.testing.assert_array_equal(np.sort(boxes.order), np.arange(1000))
    assert max(len(boxes.order[part]) for part in boxes.slices) <= 60
    queries = np.vstack([rows[:20], 3.0 * rows[20:30], rng.normal(size=(10, rows.shape[1]))])
    squares = boxes.squared_distances(queries)
    exact = ((queries[:, None] - rows.astype(np.float64)) ** 2).sum(axis=2)
    norms = (queries**2).sum(axis=1)[:, None] + (rows.astype(np.float64) ** 2).sum(axis=1).max()
    slack = 32 * np.finfo(np.float32).eps * norms
    for place, part in enumerate(boxes.slices):
        assert np.all(squares[:, [place]] <= exact[:, boxes.order[part]] + slack)


def test_most_boxes_are_passed_over_where_few_directions_matter():
    rng = np.random.default_rng(0)
    rows = (rng.normal(size=(20_000, 12)) * 0.3 ** np.arange(12)).astype(np.float32)
    queries = rows[::200].astype(np.float64)
    fifth = np.partition(((queries[:, None] - rows) ** 2).sum(axis=2), 5, axis=1)[:, [5]]
    assert (RowBoxes(rows, 200).squared_distances(queries) <= fifth).mean() < 0.1


@pytest.mark.parametrize("n_neighbors", [3, 90])  # fewer and more than the rows of a box
def test_queries_far_away_and_in_any_order(n_neighbors, monkeypatch):
    monkeypatch.setattr(_filter, "ROWS", 40)
    monkeypatch.setattr(_filter, "QUERIES", 16)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2000, 10)) * 0.5 ** np.arange(10)
    queries = np.vstack([X[rng.permutation(2000)[:50]], 100 * X[:10], X[:10].round(1)])
    squares, found = LowerBoundFilter(X).query(queries, n_neighbors)
    expected = ((queries[:, None] - X) ** 2).sum(axis=2)
    nearest = np.argsort(expected, axis=1, kind="stable")[:, :n_neighbors]
    np.testing.assert_array_equal(found, nearest)
    np.testing.assert_allclose(squares, np.take_along_axis(expected, nearest, axis=1), rtol=1e-12)

"""Cosine distances in `AAKNN`: exact order, ties by row number, and the same answer whatever is asked beside it."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from skldl import AAKNN

FORMS = {
    "double": lambda X: np.asarray(X, dtype=np.float64),
    "single": lambda X: np.asarray(X, dtype=np.float32),
    "sparse": lambda X: sparse.csr_matrix(np.asarray(X, dtype=np.float64)),
    "sparse single": lambda X: sparse.csr_matrix(np.asarray(X, dtype=np.float32)),
}


def exact_order(x, rows):
    """Rows by their cosine distance in rational numbers, then by number; a row of zeros is at distance 1."""
    keys = []
    for place, row in enumerate(rows):
        product, square = int(x @ row), int(row @ row)
        sign = 1 if product > 0 else -1
        keys.append((-Fraction(sign * product**2, square) if square and x.any() else Fraction(0), place))
    return [place for _, place in sorted(keys)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(8))
def test_the_order_is_that_of_rational_numbers(form, seed):
    rng = np.random.default_rng(seed)
    rows, new = (rng.integers(-2, 4, size=(size, 2 + seed % 4)) for size in (60, 20))
    model = AAKNN(5, metric="cosine").fit(FORMS[form](rows), np.eye(60))
    found = model.kneighbors(FORMS[form](new))[1]
    assert found.tolist() == [exact_order(x, rows)[:5] for x in new]
    with_p = AAKNN(5, metric="cosine", metric_params={"p": 3}).fit(FORMS[form](rows), np.eye(60))  # it has no part
    np.testing.assert_array_equal(with_p.kneighbors(FORMS[form](new))[1], found)


@pytest.mark.parametrize(("offset", "n_features"), [(1e6, 6), (1e5, 300), (1e8, 4)])
def test_nearly_parallel_rows_are_distinguished_whatever_the_batch(offset, n_features):
    """1 − cos had lost all digits there: rows in between counted as equal, and which ones depended on the batch."""
    rng = np.random.default_rng(0)
    X, new = (offset + rng.normal(size=(size, n_features)) for size in (1500, 12))
    D = rng.dirichlet(np.ones(3), 1500)
    model = AAKNN(5, metric="cosine").fit(X, D)
    neighbors = model.kneighbors(new)[1]
    units, directions = (A.astype(np.longdouble) for A in (X, new))
    units /= np.sqrt((units**2).sum(axis=1))[:, None]
    directions /= np.sqrt((directions**2).sum(axis=1))[:, None]
    for direction, found in zip(directions, neighbors, strict=True):
        assert np.argsort(((units - direction) ** 2).sum(axis=1), kind="stable")[:5].tolist() == found.tolist()
    single = np.vstack([model.predict(row[None]) for row in new])
    np.testing.assert_allclose(model.predict(new), single, rtol=0, atol=1e-15)
    np.testing.assert_allclose(model.predict_all(new, 5)[4], model.predict_all(new, 9)[4], rtol=0, atol=1e-15)


def test_a_chain_of_equal_distances_is_followed_to_its_end():
    """Rows at nearly the same angle on both sides: the lowest numbers come first, however many are asked for."""
    angle = np.pi / 4 + np.where(np.arange(400) % 2, 0.3, -0.3)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * np.random.default_rng(0).uniform(1, 9, 400)[:, None]
    model = AAKNN(3, metric="cosine").fit(X, np.eye(400))
    for n_neighbors in (1, 3, 50, 399):
        assert model.kneighbors([[1.0, 1.0]], n_neighbors)[1].tolist() == [list(range(n_neighbors))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [1e-145, 1e-16, 1.0, 1e30, 1e145])
def test_the_unit_of_the_features_is_free(form, scale):
    if "single" in form and not 1e-30 < scale < 1e35:
        scale = 1e-30 if scale < 1 else 1e35
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(100, 4)), rng.normal(size=(20, 4))
    expected = AAKNN(3, metric="cosine").fit(X, np.eye(100)).kneighbors(new)
    model = AAKNN(3, metric="cosine").fit(FORMS[form](scale * X), np.eye(100))
    found = model.kneighbors(FORMS[form](scale * new))
    np.testing.assert_array_equal(found[1], expected[1])
    np.testing.assert_allclose(found[0], expected[0], atol=1e-6 if "single" in form else 1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_a_row_of_zeros_is_at_distance_one_from_every_row(form):
    model = AAKNN(3, metric="cosine").fit(FORMS[form]([[0, 0, 0], [1, 2, 3], [0, 0, 0], [3, 2, 1]]), np.eye(4))
    distances, neighbors = model.kneighbors(FORMS[form]([[0, 0, 0], [1, 2, 3], [-1, -2, -3]]))
    assert neighbors.tolist() == [[0, 1, 2], [1, 3, 0], [0, 2, 3]]
    np.testing.assert_allclose(distances, [[1, 1, 1], [0, 2 / 7, 1], [1, 1, 12 / 7]], atol=1e-15)


@pytest.mark.parametrize("algorithm", ["auto", "brute", "kd_tree"])
def test_models_can_be_pickled(algorithm):
    rng = np.random.default_rng(0)
    X, D = rng.normal(size=(50, 3)), rng.dirichlet(np.ones(3), 50)
    model = AAKNN(3, metric="cosine", algorithm=algorithm).fit(X, D)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))

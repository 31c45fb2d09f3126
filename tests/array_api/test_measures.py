"""Measures on arrays of other libraries agree with NumPy."""

import numpy as np
import pytest
import sklearn

from skldl.chunks import evaluate_pairs, skill_of_pairs
from skldl.exceptions import DeviceError, LengthMismatchError
from skldl.metrics import MEASURES, PAPER_MEASURES, evaluate, mu, skill


@pytest.fixture(scope="module")
def tables():
    generator = np.random.default_rng(0)
    P, Q = generator.dirichlet(np.ones(5), 60), generator.dirichlet(np.ones(5), 60)
    P[:6, 1], Q[3:9, 2], Q[20] = 0.0, 0.0, P[20]
    P[7], Q[7] = np.eye(5)[0], np.eye(5)[3]
    P, Q = (table / table.sum(axis=1, keepdims=True) for table in (P, Q))
    return P, Q, generator.integers(0, 3, 60).astype(np.float64)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-10), ("float32", 1e-5)])
def test_all_measures_agree_with_numpy(dtype, tolerance, backend, tables):
    P, Q, weight = tables
    given = [table.astype(dtype) for table in (P, Q)]
    exact = [table.astype(np.float64) / table.astype(np.float64).sum(axis=1, keepdims=True) for table in given]
    p, q = (backend.array(table, dtype) for table in given)
    for name, measure in MEASURES.items():
        rows = measure.rowwise(p, q)
        assert backend.owns(rows)
        with sklearn.config_context(array_api_dispatch=False):
            expected = measure.rowwise(*exact)
            mean = measure(*exact, weight)
        scale = np.maximum(1.0, np.abs(expected))  # where zeros are floored, values reach 1e15
        np.testing.assert_allclose(backend.numpy(rows) / scale, expected / scale, rtol=0, atol=tolerance, err_msg=name)
        assert abs(measure(p, q, backend.array(weight)) - mean) <= tolerance * max(1.0, abs(mean)), name


def test_evaluate_mu_and_weights(backend, tables):
    P, Q, weight = tables
    p, q, w = (backend.array(part) for part in tables)
    with sklearn.config_context(array_api_dispatch=False):
        expected = evaluate(P, Q, measures=PAPER_MEASURES), evaluate(P, Q, weight), mu(P, Q, weight)
    found = evaluate(p, q, measures=PAPER_MEASURES), evaluate(p, q, w), mu(p, q, w)
    for ours, theirs in zip(found[:2], expected[:2], strict=True):
        assert ours == pytest.approx(theirs, rel=1e-10)
    assert abs(found[2] - expected[2]) < 1e-10


def test_skill(backend, tables):
    P, Q, weight = tables
    p, q, w = (backend.array(part) for part in tables)
    uniform = np.full((1, 5), 0.2)
    with sklearn.config_context(array_api_dispatch=False):
        expected = skill(P, Q, uniform, weight)
    found = skill(p, q, backend.array(uniform), w)
    assert [found, found.low, found.high] == pytest.approx([expected, expected.low, expected.high], rel=1e-10)
    cut = [tuple(table[rows, ...] for table in (p, q)) for rows in (slice(0, 25), slice(25, 60))]
    weights = [w[0:25], w[25:60]]
    in_chunks = skill_of_pairs((*pair, backend.array(uniform), some) for pair, some in zip(cut, weights, strict=True))
    assert [in_chunks, in_chunks.low] == pytest.approx([expected, expected.low], rel=1e-10)
    assert evaluate_pairs(cut) == pytest.approx(evaluate(p, q), rel=1e-12)
    with pytest.raises(LengthMismatchError, match="Pass one reference row for each true row"):
        skill(p, q, q[:3, :])
    with pytest.raises(LengthMismatchError, match="Pass one reference row for each true row"):
        skill(p, q, backend.array(np.full((1, 4), 0.25)))
    with pytest.raises(DeviceError, match="D_reference is a NumPy array"):
        skill(p, q, uniform)


def test_rows_that_do_not_sum_to_one_exactly_are_divided_by_their_sum(backend, tables):
    P, Q, _ = tables
    with sklearn.config_context(array_api_dispatch=False):
        expected = evaluate(P * 1.0005, Q)
    assert evaluate(backend.array(P * 1.0005), backend.array(Q)) == pytest.approx(expected, rel=1e-10)

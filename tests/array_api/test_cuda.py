"""What is special about CUDA devices: views of tables, tensors of the host beside those of the device, memory.

The other files of this folder run on such a device too, if there is one: ``pytest tests/array_api -m cuda``.
"""

import numpy as np
import pytest
import sklearn

from skldl import AAKNN, KernelRidgeLDL, MeanDistribution
from skldl.exceptions import DeviceError, NegativeDegreeError, NonFiniteError, RowSumError, SampleWeightError
from skldl.metrics import PAPER_MEASURES, evaluate

pytestmark = pytest.mark.cuda


@pytest.fixture(params=["torch", "cupy"])
def cuda(request, dispatch):
    """Move tables to the device."""
    library = pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    if request.param == "cupy":
        try:
            library.zeros(1)
        except Exception as error:
            pytest.skip(f"CuPy finds no CUDA device: {error}")
        return library.asarray
    if not library.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    return lambda table: library.asarray(table, device="cuda")


def tables(n_rows, n_labels, dtype="float64"):
    generator = np.random.default_rng(n_labels)
    P, Q = (generator.dirichlet(np.ones(n_labels), n_rows) for _ in range(2))
    P[::7, 0], Q[::5, 1] = 0.0, 0.0
    P, Q = (table / table.sum(axis=1, keepdims=True) for table in (P, Q))
    weight = generator.integers(0, 3, n_rows).astype(np.float64)
    return P.astype(dtype), Q.astype(dtype), weight


def expected_means(P, Q, weight, measures):
    exact = [table.astype(np.float64) for table in (P, Q)]
    with sklearn.config_context(array_api_dispatch=False):
        return evaluate(*(table / table.sum(axis=1, keepdims=True) for table in exact), weight, measures=measures)


def test_views_and_columns_that_are_not_contiguous(cuda):
    P, Q, _ = tables(3000, 7, "float32")
    expected = expected_means(P[1:], Q[1:], None, list(PAPER_MEASURES))
    for p in (cuda(P)[1:], cuda(np.ascontiguousarray(P.T)).T[1:]):
        found = evaluate(p, cuda(Q)[1:], measures=list(PAPER_MEASURES))
        assert found == pytest.approx(expected, abs=1e-5)


def test_bad_tables_are_told_as_elsewhere(cuda):
    P, Q, _ = tables(300, 5)
    for place, value, error in (
        ((4, 2), np.nan, NonFiniteError),
        ((4, 2), np.inf, NonFiniteError),
        ((4, 2), -0.5, NegativeDegreeError),
        ((4, 2), 7.0, RowSumError),
    ):
        for bad in (0, 1):
            pair = [P.copy(), Q.copy()]
            pair[bad][place] = value
            with pytest.raises(error, match="4"):
                evaluate(*(cuda(table) for table in pair))
    with pytest.raises(SampleWeightError, match="row 3 is -1"):
        evaluate(cuda(P), cuda(Q), cuda(np.where(np.arange(300) == 3, -1.0, 1.0)))
    found = evaluate(cuda(P * 1.0005), cuda(Q), measures=list(PAPER_MEASURES))
    assert found == pytest.approx(expected_means(P, Q, None, list(PAPER_MEASURES)), rel=1e-10)


def test_host_and_device_are_not_mixed(cuda, problem):
    X, D, _, new = problem
    with pytest.raises(DeviceError, match="y is a NumPy array, a table or a list, but X is an array of"):
        MeanDistribution().fit(cuda(X), D)
    model = AAKNN().fit(cuda(X), cuda(D))
    with pytest.raises(DeviceError, match="keeps its training rows there"):
        model.predict(new)
    with (
        sklearn.config_context(array_api_dispatch=False),
        pytest.raises(DeviceError, match=r"X is on the device .*call sklearn\.set_config"),
    ):
        MeanDistribution().fit(cuda(X), D)


def test_tensors_of_the_host_beside_those_of_the_device(dispatch, problem):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    X, D, _, _ = problem
    with pytest.raises(DeviceError, match=r"y is on the device cpu, but X is .* on cuda:0.*Move y there"):
        MeanDistribution().fit(torch.asarray(X, device="cuda"), torch.asarray(D))


def test_a_kernel_matrix_that_does_not_fit_is_told_in_one_line(cuda):
    n_rows = 1_000_000
    X, D = cuda(np.zeros((n_rows, 2), dtype=np.float32)), cuda(np.full((n_rows, 2), 0.5, dtype=np.float32))
    with pytest.raises(
        MemoryError, match=r"KernelRidgeLDL.fit needs more memory than the device .* has free"
    ) as raised:
        KernelRidgeLDL(kernel="rbf", width=1.0, scaling="raw", alpha=1e-3, solver="exact").fit(X, D)
    assert "\n" not in str(raised.value)

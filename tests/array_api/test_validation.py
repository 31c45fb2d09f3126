"""Invalid input: errors of one line that say what was found and what to do; and the answer of every estimator."""

import re
from importlib import import_module

import numpy as np
import pytest

import skldl
from skldl import AABP, AAKNN, SABFGS, KernelRidgeLDL, MeanDistribution
from skldl._algorithms import ALGORITHMS  # the list of all estimators: a new one is tested without being named here
from skldl.exceptions import (
    DeviceError,
    DimensionError,
    EmptyDataError,
    FeatureMismatchError,
    LengthMismatchError,
    NegativeDegreeError,
    NonFiniteError,
    NotNumericError,
    RowSumError,
    SampleWeightError,
    SingleLabelError,
    ZeroRowError,
)
from skldl.metrics import evaluate
from skldl.utils.arrays import computing_on

REFUSED = "computes with NumPy alone, and X is an array of"


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


X, D = np.random.default_rng(0).random((20, 3)), np.full((20, 4), 0.25)
BAD = {
    "NaN in X": (
        changed(X, (3, 1), np.nan),
        D,
        None,
        NonFiniteError,
        "X contains NaN: row 3, column 1",
    ),
    "infinity in X": (changed(X, (4, 2), np.inf), D, None, NonFiniteError, "infinity: row 4, column 2"),
    "one dimension": (X[:, 0], D, None, DimensionError, "X has 1 dimension .*one column per feature"),
    "no column": (X[:, :0], D, None, EmptyDataError, "X is empty .*one feature"),
    "rows of D": (X, D[:5], None, LengthMismatchError, "20.*5|5.*20"),
    "NaN in D": (X, changed(D, (2, 0), np.nan), None, NonFiniteError, "row 2, label 0"),
    "negative": (X, changed(D, (1, 2), -0.25), None, NegativeDegreeError, r"Row 1 .*label 2"),
    "zero row": (X, changed(D, 6, 0.0), None, ZeroRowError, "Row 6 of y is all zero"),
    "sum": (X, changed(D, 6, 0.5), None, RowSumError, r"Row 6 of y sums to 2, not 1.*y / y.sum\(1\)"),
    "one label": (X, np.ones((20, 1)), None, SingleLabelError, "at least two labels"),
    "dimensions of D": (X, D[0], None, DimensionError, "one row per instance"),
    "empty D": (X, D[:0], None, EmptyDataError, "at least one row"),
    "negative weight": (X, D, changed(np.ones(20), 5, -1.0), SampleWeightError, "sample_weight of row 5 is -1"),
    "no weight": (X, D, np.zeros(20), SampleWeightError, "zero for every row"),
    "number of weights": (X, D, np.ones(3), SampleWeightError, "3 entries, but there are 20 rows"),
    "table of weights": (X, D, np.ones((20, 1)), SampleWeightError, "Pass one number per row"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_data_are_told_with_the_place(what, backend):
    X, D, weight, error, message = BAD[what]
    weight = None if weight is None else backend.array(weight)
    with pytest.raises(error, match=message):
        SABFGS().fit(backend.array(X), backend.array(D), weight)


def test_integers_and_half_precision_are_not_converted_silently(backend):
    with pytest.raises(NotNumericError, match=r"X holds numbers of type .*int.*must be float32 or float64.*pass X"):
        MeanDistribution().fit(backend.array(np.ones((20, 2)), "int64"), backend.array(D))
    if hasattr(backend.xp, "float16"):
        with pytest.raises(NotNumericError, match=r"X holds numbers of type .*float16.*float32 or float64"):
            MeanDistribution().fit(backend.array(X, "float16"), backend.array(D))
        with pytest.raises(NotNumericError, match=r"y holds numbers of type .*float16"):
            MeanDistribution().fit(backend.array(X), backend.array(D, "float16"))


def test_everything_follows_x(backend):
    there, numpy = backend.array(X), D
    with pytest.raises(DeviceError, match=r"y is a NumPy array, a table or a list, but X is .*Move y there"):
        MeanDistribution().fit(there, numpy)
    with pytest.raises(DeviceError, match=r"y is an array of .*, but X is a NumPy array.*: everything follows X"):
        MeanDistribution().fit(X, backend.array(D))
    with pytest.raises(DeviceError, match="sample_weight is a NumPy array"):
        MeanDistribution().fit(there, backend.array(D), np.ones(20))
    with pytest.raises(DeviceError, match="D_pred is a NumPy array"):
        evaluate(backend.array(D), D)
    with pytest.raises(LengthMismatchError, match="the number of rows differs"):
        evaluate(backend.array(D), backend.array(D[:4]))


def test_d_takes_the_precision_of_x(backend):
    model = AAKNN().fit(backend.array(X, "float32"), backend.array(D))
    assert model.distributions_.dtype == backend.xp.float32


def test_another_number_of_features(backend):
    model = SABFGS(alpha=1e-3).fit(backend.array(X), backend.array(D))
    with pytest.raises(FeatureMismatchError, match="X has 2 features, but SABFGS is expecting 3"):
        model.predict(backend.array(X[:, :2]))


def test_two_devices(dispatch):
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    one, other = strict.Device("CPU_DEVICE"), strict.Device("device1")
    with pytest.raises(DeviceError, match=r"y is on the device .*device1"):
        MeanDistribution().fit(strict.asarray(X, device=one), strict.asarray(D, device=other))


def test_arrays_outside_of_the_main_memory_need_the_setting():
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    with pytest.raises(
        DeviceError, match=r"sklearn.set_config\(array_api_dispatch=True\) .*SCIPY_ARRAY_API=1.*move it"
    ):
        MeanDistribution().fit(strict.asarray(X, device=strict.Device("device1")), D)


def test_without_the_setting_tensors_of_the_cpu_are_computed_with_numpy():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    predicted = MeanDistribution().fit(torch.asarray(X), torch.asarray(D)).predict(torch.asarray(X))
    assert isinstance(predicted, np.ndarray)


def test_gradients_are_left_behind(torch_backend):
    X_there = torch_backend.array(X).requires_grad_()
    model = SABFGS(alpha=1e-3).fit(X_there, torch_backend.array(D))
    assert not model.predict(X_there).requires_grad


def test_fast_products_of_single_precision_are_off_inside_and_as_before_outside(torch_backend):
    torch = pytest.importorskip("torch")
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        with computing_on(torch.zeros(1), "a test"):
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_full_device_is_told_in_one_line(torch_backend, monkeypatch):
    torch = pytest.importorskip("torch")

    def full(*arguments, **options):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 74.51 GiB.")

    monkeypatch.setattr(SABFGS, "_fit", full)
    with pytest.raises(
        MemoryError, match=r"SABFGS.fit needs more memory than the device cpu .*shape \(20, 3\)"
    ) as raised:
        SABFGS().fit(torch_backend.array(X), torch_backend.array(D))
    assert "\n" not in str(raised.value)
    assert not hasattr(SABFGS(), "n_features_in_")


def test_settings_that_need_numpy(torch_backend):
    arrays = torch_backend.array(X), torch_backend.array(D)
    for model, message in (
        (AAKNN(metric="manhattan"), "metric='manhattan' is computed with NumPy alone"),
        (AAKNN(metric="minkowski", metric_params={"w": np.ones(3)}), "'minkowski' with w in metric_params is computed"),
        (KernelRidgeLDL(solver="cg"), "solver='cg' computes with NumPy alone"),
        (AABP(loss="cjs"), "NumPy"),
    ):
        with pytest.raises(DeviceError, match=message):
            model.fit(*arrays)


CLASSES = [getattr(import_module(algorithm.module), algorithm.class_name) for algorithm in ALGORITHMS]
COMPUTING_THERE = {estimator.__name__ for estimator in CLASSES if getattr(estimator, "_array_api", False)}
NAMES = [algorithm.title or algorithm.class_name for algorithm in ALGORITHMS]


def make(name):
    """An instance of a registered estimator: by its name for people, or of a class that wraps others."""
    if any(algorithm.title == name for algorithm in ALGORITHMS):
        from skldl.names import find_candidate

        return find_candidate(name).make()
    if name == "StackingLDL":
        return skldl.StackingLDL([("mean", MeanDistribution()), ("neighbours", AAKNN())])
    return getattr(skldl, name)(MeanDistribution())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # whether it computes is the question
@pytest.mark.parametrize("name", NAMES)
def test_every_estimator_computes_there_or_says_in_one_line_that_it_does_not(name, torch_backend, problem):
    features, distributions, _, new = problem
    model, tensors = make(name), [torch_backend.array(part) for part in (features, distributions, new)]
    y = tensors[1]
    if name == "LDLClassifier":
        y = torch_backend.xp.argmax(y, axis=1)
    if getattr(model, "_array_api", False):
        predicted = model.fit(tensors[0], y).predict(tensors[2])
        assert torch_backend.owns(predicted)
        return
    with pytest.raises(DeviceError, match=REFUSED) as raised:
        model.fit(tensors[0], y)
    assert "\n" not in str(raised.value)
    assert type(model).__name__ in str(raised.value)
    listed = re.findall(r"\w+", str(raised.value).rpartition(" or use ")[2])
    assert {name for name in listed if name != "or"} == COMPUTING_THERE

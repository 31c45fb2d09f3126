"""Libraries of arrays to test with. Each is skipped, with the reason, where it or its device is missing.

``pytest tests/array_api -m cuda`` runs the whole suite on a CUDA device, with torch and with CuPy.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import scipy
import sklearn
from sklearn.utils.fixes import parse_version

from skldl.utils.arrays import to_numpy

ON_CUDA = ("torch on cuda", "cupy")


@dataclass(frozen=True)
class Backend:
    """A library, as a namespace of the array API, and a device."""

    name: str
    xp: Any
    device: Any

    def array(self, values: Any, dtype: str = "float64") -> Any:
        """A copy of numbers of NumPy in this library."""
        values = np.array(values)
        return self.xp.asarray(values, dtype=getattr(self.xp, dtype), device=self.device)

    def owns(self, array: Any) -> bool:
        """Whether an array is one of this library and device."""
        compat = import_module("sklearn.externals.array_api_compat")
        return compat.array_namespace(array) is self.xp and compat.device(array) == self.device

    numpy = staticmethod(to_numpy)


def make_backend(name: str) -> Backend:
    """Import a library, or skip the test."""
    compat = pytest.importorskip(
        "sklearn.externals.array_api_compat", reason="scikit-learn before 1.7 has no array-api-compat"
    )
    if name == "array_api_strict":
        strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
        return Backend(name, strict, strict.Device("CPU_DEVICE"))
    if name == "cupy":
        cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
        try:
            array = cupy.zeros(1)
        except Exception as error:
            pytest.skip(f"CuPy finds no CUDA device: {error}")
        return Backend(name, compat.array_namespace(array), array.device)
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if name == "torch on cuda" and not torch.cuda.is_available():
        pytest.skip("torch finds no CUDA device")
    device = torch.device("cuda", 0) if name == "torch on cuda" else torch.device("cpu")
    return Backend(name, compat.array_namespace(torch.zeros(1)), device)


@pytest.fixture(params=["array_api_strict", "torch", *(pytest.param(name, marks=pytest.mark.cuda) for name in ON_CUDA)])
def backend(request, dispatch):
    """Every library and device that there is, with the setting that lets arrays through."""
    return make_backend(request.param)


@pytest.fixture
def torch_backend(dispatch):
    return make_backend("torch")


@pytest.fixture
def dispatch(monkeypatch):
    """scikit-learn's setting ``array_api_dispatch``."""
    if parse_version(scipy.__version__) < parse_version("1.14"):
        pytest.skip("scikit-learn computes with other arrays from SciPy 1.14 on")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield


@pytest.fixture(scope="session")
def problem():
    """Features, distributions, weights and new features; some rows of features are equal, some degrees zero."""
    generator = np.random.default_rng(0)
    X = generator.random((90, 5)).astype(np.float32).astype(np.float64)
    X[40:43] = X[:3]
    scores = X @ generator.normal(size=(5, 4)) + 0.3 * generator.normal(size=(90, 4))
    D = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    D[::11, 2] = 0.0
    D /= D.sum(axis=1, keepdims=True)
    weight = generator.integers(1, 4, 90).astype(np.float64)
    return X, D, weight, generator.random((17, 5)).astype(np.float32).astype(np.float64)

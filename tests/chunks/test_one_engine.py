"""Arrays and rows in chunks are fitted by the same functions: there is one engine, and sources of rows."""

import sys
import threading
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skldl import SABFGS, SABFGSCV, SAIIS, PTBayes
from skldl.chunks import ArrayRows
from skldl.testing import make_distributions

MODELS = (
    SABFGS(),
    SABFGS(1e-3, fit_intercept=True),
    SABFGSCV([1e-3, 0.1, 10.0]),
    SAIIS(max_iter=20),
    PTBayes(),
    PTBayes("diag"),
)


def functions_run(package, action):
    """Names of the functions of a package that are executed, with their modules."""
    found = set()

    def watch(frame, event, argument):
        name = frame.f_globals.get("__name__", "")
        if event == "call" and name.startswith(package) and not frame.f_code.co_name.startswith("<"):
            found.add((name, frame.f_code.co_qualname))

    before = sys.getprofile()
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        action()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return found


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a few iterations
@pytest.mark.parametrize("shape", [(120, 5, 4), (30, 50, 3)])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_arrays_and_chunks_run_the_same_functions(model, shape):
    X, D = make_distributions(*shape)
    package = type(model).__module__.rpartition(".")[0]
    in_memory, in_chunks = clone(model), clone(model)
    of_arrays = functions_run(package, lambda: in_memory.fit(X, D))
    of_chunks = functions_run(package, lambda: in_chunks.fit(ArrayRows(X, D, chunk_rows=20)))
    assert len(of_arrays & of_chunks) >= 0.85 * len(of_arrays | of_chunks), of_arrays ^ of_chunks
    np.testing.assert_allclose(in_chunks.predict(X), in_memory.predict(X), atol=1e-9)


def test_the_measurement_sees_a_difference():
    X, D = make_distributions(60, 3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = functions_run("skldl.maxent", lambda: SABFGS(whiten=False, max_iter=2).fit(X, D))
    whitened = functions_run("skldl.maxent", lambda: SABFGS().fit(X, D))
    assert len(plain & whitened) < 0.85 * len(plain | whitened)

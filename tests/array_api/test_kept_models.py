"""Models fitted on a device, in files, pickles and copies."""

import copy
import pickle

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skldl
from skldl import AABP, AAKNN, SABFGS, KernelRidgeLDL

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few iterations are compared

MODELS = {
    "sa-bfgs": SABFGS(alpha=1e-3),
    "aa-knn": AAKNN(n_neighbors=3, weights="distance"),
    "aa-knn, squared": AAKNN(n_neighbors=3, metric="sqeuclidean"),
    "aa-bp": AABP(max_iter=3, random_state=0),
    "kernel ridge": KernelRidgeLDL(kernel="rbf", width=1.0, scaling="sqrt"),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_file_holds_numpy_arrays(name, dtype, backend, problem, tmp_path):
    pytest.importorskip("skops", reason="skops is not installed")
    X, D, weight, new = problem
    arrays = [backend.array(part, dtype) for part in (X, D)]
    model = sklearn.clone(MODELS[name]).fit(*arrays, backend.array(weight))
    there = backend.numpy(model.predict(backend.array(new, dtype)))
    with sklearn.config_context(array_api_dispatch=False):
        loaded = skldl.load(skldl.save(model, tmp_path / "model.skldl"))
        predicted = loaded.predict(new)
    assert isinstance(predicted, np.ndarray)
    np.testing.assert_allclose(predicted, there, rtol=0, atol=1e-10 if dtype == "float64" else 1e-6)
    assert backend.owns(model.predict(backend.array(new, dtype)))  # the model itself stays where it is


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("name", MODELS)
def test_copies_and_pickles_stay_on_the_device(name, copied, torch_backend, problem):
    X, D, _, new = problem
    model = sklearn.clone(MODELS[name]).fit(torch_backend.array(X), torch_backend.array(D))
    expected = torch_backend.numpy(model.predict(torch_backend.array(new)))
    predicted = copied(model).predict(torch_backend.array(new))
    assert torch_backend.owns(predicted)
    np.testing.assert_array_equal(torch_backend.numpy(predicted), expected)
    assert sklearn.clone(model).get_params().keys() == model.get_params().keys()


def test_a_model_inside_of_others_is_found(torch_backend, problem, tmp_path):
    X, D, _, new = problem
    model = AAKNN().fit(torch_backend.array(X), torch_backend.array(D))
    pipeline = make_pipeline(FunctionTransformer(), model)
    again = skldl.load(skldl.save(pipeline, tmp_path / "model.skldl"))
    with sklearn.config_context(array_api_dispatch=False):
        assert isinstance(again.predict(new), np.ndarray)

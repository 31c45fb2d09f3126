"""The tool that solves the systems of PT-SVM on a GPU, here on whatever device torch has."""

import numpy as np
import pytest

from skldl import PTSVM
from skldl.experiments import StudyResults
from skldl.testing import make_distributions
from skldl.transformation import _pair_model

torch = pytest.importorskip("torch")


@pytest.fixture
def tool(load_script, monkeypatch):
    """The script, with kernels on the device until the test ends."""
    script = load_script("tools/ptsvm_on_gpu.py")
    monkeypatch.setattr(_pair_model, "KernelMatrix", script.DeviceKernel)
    return script


def test_predictions_are_those_of_the_host(tool, monkeypatch):
    X, D = make_distributions(n_samples=400, n_labels=5, random_state=0)
    there = PTSVM(C=50.0, gamma=2.0).fit(X, D)
    monkeypatch.undo()
    here = PTSVM(C=50.0, gamma=2.0).fit(X, D)
    assert len(here.solved_pairs_) > 5  # else the solver had nothing to do
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=0, atol=1e-8)


def test_a_matrix_that_is_not_positive_definite_gets_a_larger_ridge(tool):
    kernel = tool.DeviceKernel(np.ones((100, 100)) - 1e-9 * np.eye(100))
    (solution,) = kernel.solve([tool.System(np.arange(100), 1e-12, np.ones((100, 2)))])
    assert np.isfinite(solution).all()


def test_systems_of_similar_size_are_solved_together(tool, monkeypatch):
    assert list(tool.batches([100, 300, 290, 90])) == [[1, 2], [0, 3]]
    monkeypatch.setattr(tool, "MOST_NUMBERS", 2 * 300**2)
    assert list(tool.batches([300, 300, 300])) == [[0, 1], [2]]


def test_the_records_are_those_of_the_study(tool, tmp_path):
    out = tmp_path / "records"
    assert tool.main(["tkde2016", "--datasets", "Artificial", "--out", str(out)]) == 0
    results = StudyResults.load(out)
    assert results.state("Artificial", "PT-SVM") == ""
    assert results.state("Artificial", "Mean").startswith("not run")

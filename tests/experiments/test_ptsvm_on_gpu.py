"""The tool that solves the systems of PT-SVM on a GPU, here on whatever device torch has."""

import json
from pathlib import Path

import numpy as np
import pytest

from skldl import PTSVM
from skldl.experiments import StudyResults
from skldl.testing import make_distributions
from skldl.transformation import _ptsvm

torch = pytest.importorskip("torch")


@pytest.fixture
def tool(load_script, monkeypatch):
    """The script, with kernels on the device until the test ends."""
    script = load_script("tools/ptsvm_on_gpu.py")
    monkeypatch.setattr(_ptsvm, "KernelMatrix", script.DeviceKernel)  # private: what the tool replaces
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


def test_many_rows_are_solved_in_blocks(tool, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    kernel = tool.DeviceKernel(np.exp(-((X[:, None] - X) ** 2).sum(axis=2)))
    rows = [np.sort(rng.choice(200, size, replace=False)) for size in (150, 131)]
    systems = [tool.System(some, 0.01, rng.normal(size=(len(some), 2))) for some in rows]
    expected = kernel.solve(systems)
    monkeypatch.setattr(tool, "MANY_ROWS", 100)
    monkeypatch.setattr(tool, "BLOCK", 64)
    for found, known, system in zip(kernel.solve(systems), expected, systems, strict=True):
        np.testing.assert_allclose(found, known, rtol=1e-10)
        matrix = kernel.matrix[np.ix_(system.rows, system.rows)] + 0.01 * np.eye(len(system.rows))
        np.testing.assert_allclose(matrix @ found, system.columns, atol=1e-10)
    bad = torch.from_numpy(np.stack([np.eye(150), -np.eye(150)]))
    assert tool.solve_in_blocks(bad, torch.ones((2, 150, 1), dtype=bad.dtype))[1].tolist() == [False, True]


def test_systems_of_similar_size_are_solved_together(tool, monkeypatch):
    assert list(tool.batches([100, 300, 290, 90])) == [[1, 2], [0, 3]]
    monkeypatch.setattr(tool, "MAX_NUMBERS", 2 * 300**2)
    assert list(tool.batches([300, 300, 300])) == [[0, 1], [2]]


def test_the_records_are_those_of_the_study(tool, tmp_path):
    out = tmp_path / "records"
    assert tool.main(["tkde2016", "--datasets", "Artificial", "--out", str(out)]) == 0
    results = StudyResults.load(out)
    assert results.state("Artificial", "PT-SVM") == ""
    assert results.state("Artificial", "Mean").startswith("not run")
    known = StudyResults.load(Path(__file__).parents[2] / "studies/tkde2016")
    assert results.chosen("Artificial", "PT-SVM") == known.chosen("Artificial", "PT-SVM")
    for measure in known.measures:
        found, expected = (r.values(measure, "Artificial", "PT-SVM") for r in (results, known))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_steps_alone_need_several_in_a_task(tool, tmp_path, capsys):
    with pytest.raises(SystemExit):
        tool.main(["tkde2016", "--steps-only", "--out", str(tmp_path)])
    assert "under geng2016 each selection is a task of one step" in capsys.readouterr().err


def test_a_task_goes_on_with_its_steps(tool, tmp_path, capsys):
    options = ["tkde2016-nested", "--datasets", "Artificial", "--out", str(tmp_path)]
    assert tool.main([*options, "--steps-only"]) == 0
    file = tmp_path / "steps.jsonl"
    steps = file.read_text()
    assert steps.count("\n") == 1  # settings are chosen on one part of its training rows
    step = json.loads(steps)
    others = [{"settings": [{"C": 7.0}]}, {"params": {"kernel": "linear"}}, {"criterion": "clark"}, {"versions": {}}]
    others.append({"layout": step["layout"] | {"inner_folds": 3}})
    wrong = "".join(json.dumps(step | other | {"values": [0.0]}) + "\n" for other in others)
    file.write_text(wrong + steps + '{"task": ["eval')
    assert not StudyResults.load(tmp_path).evaluations
    capsys.readouterr()
    assert tool.main(options) == 0
    assert "step" not in capsys.readouterr().out
    assert file.read_text() == wrong + steps  # those of anything else are not believed, a torn one is removed
    (record,) = StudyResults.load(tmp_path).evaluations
    assert record["selection"]["versions"] == step["versions"]
    assert record["selection_seconds"] >= step["seconds"] > 0
    assert record["seconds"] >= record["selection_seconds"]
    published = StudyResults.load(Path(__file__).parents[2] / "studies/tkde2016-nested").evaluations
    (known,) = [r for r in published if (r["dataset"], r["candidate"]) == ("Artificial", "PT-SVM")]
    np.testing.assert_allclose(record["selection"]["values"], known["selection"]["values"], rtol=1e-9)
    np.testing.assert_allclose(list(record["measures"].values()), list(known["measures"].values()), rtol=1e-9)


def test_a_file_of_whole_steps_is_only_read(tool, tmp_path):
    file = tmp_path / "steps.jsonl"
    file.write_text('{"step": 0}\n')
    file.chmod(0o400)
    before = file.stat()
    assert tool.read_steps(file) == [{"step": 0}]
    assert file.stat().st_mtime_ns == before.st_mtime_ns

"""The speed table of the README follows from the result files of the benchmarks, and holds nothing else."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from skldl import SABFGS
from skldl.testing import make_distributions

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="the benchmarks are in the repository")


@pytest.fixture(scope="module")
def speed_page(load_script):
    return load_script("docs/make_speed.py")


def test_cells_come_from_the_files_and_missing_ones_are_left_out(speed_page, tmp_path, monkeypatch):
    monkeypatch.setattr(speed_page, "RESULTS", tmp_path)
    row = {"dataset": "Movie", "python-ldl / ours": 60.8, "python-ldl objective − ours": 0.00063}
    machine = {"cpu": "some", "python": "3.11"}
    (tmp_path / "sabfgs.json").write_text(json.dumps({"machine": machine, "rows": [row]}))
    lines = speed_page.lines()
    assert len(lines) == 4  # head, rule, and the two rows of SABFGS that hold a number
    assert lines[2].count("|") == len(speed_page.SETS) + 2
    assert "| 61 × |" in lines[2]
    assert "| 0.00063 |" in lines[3]
    row["python-ldl / ours to its objective"] = 123.4
    bayes = {"dataset": "SJAFFE", "KL python-ldl": 0.0955, "python-ldl / ours tied": 2.79, "KL ours tied": 0.0728}
    bayes["python-ldl / ours diag"] = 6.6  # not the default
    (tmp_path / "sabfgs.json").write_text(json.dumps({"machine": machine, "rows": [row]}))
    (tmp_path / "ptbayes.json").write_text(json.dumps({"machine": machine | {"cpu": "other"}, "rows": [bayes]}))
    table = "\n".join(speed_page.lines())
    assert "until our objective is below python-ldl's last |  |  |  |  | 123 × |" in table
    assert "2.8 ×, 0.0728 / 0.0955" in table
    assert "6.6" not in table
    assert (
        speed_page.machines(("sabfgs", "ptbayes")) == "sabfgs: cpu some, python 3.11; ptbayes: cpu other, python 3.11"
    )
    assert [speed_page.times(value) for value in (None, 0.8, 4.56, 42.3)] == ["", "0.80 ×", "4.6 ×", "42 ×"]


def test_what_ptsvm_was_measured_with_is_said(speed_page, tmp_path, monkeypatch):
    monkeypatch.setattr(speed_page, "RESULTS", tmp_path)
    row = {"dataset": "Movie", "python-ldl / ours": 8.0, "KL ours": 0.1, "KL python-ldl": 0.2}
    (tmp_path / "ptsvm.json").write_text(json.dumps({"machine": {}, "rows": [row]}))
    assert "1,000 drawn rows" in speed_page.lines()[-1]
    (tmp_path / "ptsvm.json").write_text(json.dumps({"machine": {}, "rows": [row | {"ours is": "PTSVM()"}]}))
    assert "1,000 drawn rows" not in speed_page.lines()[-1]


def test_every_file_of_results_has_its_table(load_script):
    """Otherwise a benchmark is measured and nobody reads it."""
    titles = load_script("benchmarks/run.py").TITLES
    found = {path.stem for path in (ROOT / "benchmarks/results").glob("*.json")} - {
        "accuracy",
        "before_after",
        "enhancement",
        "gpu",
        "missing",
        "scale",
    }  # pages of their own
    assert found <= set(titles)
    page = (ROOT / "benchmarks/results/README.md").read_text(encoding="utf-8")
    assert all(f"## {titles[name]}\n" in page for name in found)


def test_the_step_that_falls_below_an_objective(monkeypatch, load_script):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    speed = load_script("benchmarks/speed.py")
    assert speed.steps_below([3.0, 2.0, 1.0], 2.5) == 1
    assert speed.steps_below([3.0, 2.0, 1.0], 9.0) == 1  # at least one step
    assert speed.steps_below([3.0, 2.0, 1.0], 0.5) is None
    X, D = make_distributions()
    losses = SABFGS().fit(X, D).loss_curve_
    objective = (losses[0] + losses[-1]) / 2
    steps = speed.steps_below(losses, objective)
    reached = speed.cross_entropy(X, D, speed.stopped_fit(X, D, steps).coef_.T)
    assert reached <= objective
    assert steps == 1 or losses[steps - 1] > objective
    np.testing.assert_allclose(reached, losses[steps], rtol=1e-9)
    sys.modules.pop("_common", None)

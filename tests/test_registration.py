"""One line registers an algorithm: what follows from the table is up to date, and a new class proves the promise."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINE = '    Algorithm("skldl.medians._median", "MedianDistribution", "Median"),\n'
FILE = '''
"""`MedianDistribution`: the normalised median of the training distributions."""

import numpy as np

from skldl.base import BaseLDL


class Middle:
    """Where the fitted model keeps its distribution: a class of its own, which model files have to trust."""

    def __init__(self, distribution):
        self.distribution = distribution


class MedianDistribution(BaseLDL):
    """Predict the normalised median of the training distributions."""

    _model_parts = (Middle,)

    def _fit(self, X, D, sample_weight):
        self.middle_ = Middle(np.median(D, axis=0))

    def _predict(self, X):
        return np.tile(self.middle_.distribution, (X.shape[0], 1))
'''
TEST = """
import skldl
from skldl.names import find_candidate
from skldl.testing import make_distributions

assert skldl.__file__.startswith({root!r}), skldl.__file__
X, D = make_distributions()
assert "MedianDistribution" in skldl.ESTIMATORS and "MedianDistribution" in dir(skldl)
model = find_candidate("median").make().fit(X, D)
assert type(model) is skldl.MedianDistribution is type(find_candidate("median_distribution").make())
again = skldl.load(skldl.save(model, "model.skldl"))
assert (again.predict(X) == model.predict(X)).all()
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the repository with one more algorithm: a new package, and a line in the table."""
    root = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "docs").mkdir()
    for name in ("pyproject.toml", "README.md", "docs/make_algorithms.py", "docs/marks.py"):
        shutil.copy(ROOT / name, root / name)
    package = root / "src/skldl/medians"
    package.mkdir()
    (package / "__init__.py").write_text('"""Medians."""\n')
    (package / "_median.py").write_text(FILE)
    table = root / "src/skldl/_algorithms.py"
    before, bracket, after = table.read_text(encoding="utf-8").rpartition("\n)\n")
    table.write_text(f"{before}\n{LINE})\n{after}", encoding="utf-8")
    assert bracket
    return root


def run(root, *command):
    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def lint_imports(root):
    pytest.importorskip("importlinter", reason="import-linter is not installed (a pinned tool; no lowest version)")
    script = "from importlinter.cli import lint_imports_command; lint_imports_command(['--no-cache', '--no-logo'])"
    return run(root, sys.executable, "-c", script)


def test_a_new_algorithm_is_one_line(copy):
    result = run(copy, sys.executable, "-c", TEST.format(root=str(copy)))
    assert result.returncode == 0, result.stderr
    rejected = lint_imports(copy)
    assert rejected.returncode != 0, "a package in no layer of the import contracts should be an error"
    assert "medians" in rejected.stdout
    assert run(copy, sys.executable, "docs/make_algorithms.py").returncode == 0
    assert "| `MedianDistribution` | Median | Predict the normalised median" in (copy / "README.md").read_text("utf-8")
    assert "## `skldl.medians`" in (copy / "docs/algorithms.md").read_text("utf-8")
    assert "import MedianDistribution as MedianDistribution" in (copy / "src/skldl/__init__.pyi").read_text("utf-8")
    accepted = lint_imports(copy)
    assert accepted.returncode == 0, accepted.stdout


@pytest.mark.slow
def test_a_new_algorithm_has_a_name_on_the_command_line(copy):
    pytest.importorskip("cyclopts")
    rows = "\n".join(f"{i},{0.1 + i % 5 / 10:.1f},{0.9 - i % 5 / 10:.1f}" for i in range(40))
    (copy / "table.csv").write_text(f"x,emo_joy,emo_fear\n{rows}\n")
    fit = "fit table.csv --labels emo_* --model median --out table.skldl"
    for command in (fit, "predict table.skldl table.csv --out predictions.csv"):
        result = run(copy, sys.executable, "-m", "skldl", *command.split())
        assert result.returncode == 0, result.stderr
    assert (copy / "predictions.csv").read_text().count("\n") == 41


def test_a_file_on_no_floor_fails_the_contracts(copy):
    stray = copy / "src/skldl/stray.py"
    stray.write_text('"""On no floor."""\n')
    try:
        result = lint_imports(copy)
        assert result.returncode != 0
        assert "stray" in result.stdout
    finally:
        stray.unlink()


def test_optional_dependencies_stay_out_of_the_library(copy):
    stray = copy / "src/skldl/maxent/_stray.py"
    stray.write_text('"""Wants pandas."""\n\nimport pandas as pd\n\n__all__ = ["pd"]\n')
    try:
        result = lint_imports(copy)
        assert result.returncode != 0
        assert "skldl.maxent._stray -> pandas" in result.stdout
    finally:
        stray.unlink()


@pytest.mark.slow
def test_type_checkers_know_the_new_name(copy):
    run(copy, sys.executable, "docs/make_algorithms.py")
    (copy / "use.py").write_text("import skldl\n\nreveal_type(skldl.MedianDistribution())\nskldl.Nothing\n")
    result = run(copy, sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", "use.py")
    assert 'Revealed type is "skldl.medians._median.MedianDistribution"' in result.stdout
    assert 'Module has no attribute "Nothing"' in result.stdout

"""Every example runs, on few rows, and saves its figure."""

import importlib.util
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SMALL = {
    "careless_raters": {"n_rows": 500},
    "multilabel": {"n_rows": 60, "n_repeats": 1},
    "rankings": {"n_rows": 20},
    "star_ratings": {"sizes": (100, 200)},
    "votes": {"n_rows": 400},
}


def test_every_example_is_tested():
    assert sorted(SMALL) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", sorted(SMALL))
def test_example_runs_and_saves_its_figure(name, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "Agg")
    matplotlib.use("Agg")
    specification = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    assert module.main(tmp_path / "figures", **SMALL[name])
    assert (tmp_path / "figures" / f"{name}.png").stat().st_size > 10_000

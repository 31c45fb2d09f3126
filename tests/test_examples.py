"""Every example runs, on few rows, and saves its figure."""

import importlib.util
import runpy
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


NEEDS_TORCH = "embeddings_head"


def test_every_example_is_tested():
    assert sorted((*SMALL, NEEDS_TORCH)) == sorted(path.stem for path in EXAMPLES.glob("*.py"))


@pytest.mark.slow
def test_the_example_with_tensors_runs_and_shows_its_figure(monkeypatch, capsys):
    pytest.importorskip("torch", reason="torch is not installed")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    runpy.run_path(str(EXAMPLES / f"{NEEDS_TORCH}.py"))
    assert len(pyplot.gcf().axes[0].lines) == 8
    pyplot.close("all")
    assert "SABFGSCV: " in capsys.readouterr().out


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

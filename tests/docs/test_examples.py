"""The examples of the gallery: all run, without a warning, and draw their figures."""

import ast
import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
if not EXAMPLES.exists():
    pytest.skip("the examples are in the repository, not in the package", allow_module_level=True)
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py"))
QUICK = ("calibration", "missing_degrees")  # about a second each; the others run with the slow tests


def test_there_are_examples_for_what_people_ask():
    assert len(NAMES) >= 15
    assert set(QUICK) < set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_an_example_begins_with_its_question_and_shows_figures(name):
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    title, line, blank, *_ = ast.get_docstring(ast.parse(source), clean=False).lstrip("\n").split("\n")
    assert line == "=" * len(title)
    assert blank == ""
    assert "plt.show()" in source
    linked = re.findall(r":ref:`sphx_glr_gallery_(\w+)\.py`", source)
    assert set(linked) <= set(NAMES)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_an_example_runs_and_draws_its_figures(name, monkeypatch, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    for package in re.findall(r"^(?:import|from) (\w+)", source, flags=re.MULTILINE):
        pytest.importorskip(package)
    pyplot.switch_backend("agg")
    shown = []

    def show():
        for number in pyplot.get_fignums():
            figure = pyplot.figure(number)
            figure.canvas.draw()
            shown.append(sum(len(ax.get_children()) > 10 for ax in figure.axes))
        pyplot.close("all")

    monkeypatch.setattr(pyplot, "show", show)
    runpy.run_path(str(EXAMPLES / f"{name}.py"))
    assert len(shown) >= source.count("plt.show()")
    assert all(shown), "a figure without anything in it"
    assert not pyplot.get_fignums()

"""The dendrogram of the measures as a figure."""

from itertools import pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

mpl.use("Agg")

from skldl.metrics import MEASURES
from skldl.metrics.selection import select_measures
from skldl.plots import MeasureDendrogramDisplay


@pytest.fixture(scope="module")
def selection():
    return select_measures(n_experiments=5, n_pairs=200)


@pytest.fixture
def display(selection):
    yield MeasureDendrogramDisplay.from_selection(selection)
    plt.close("all")


def test_shows_all_names_once_and_marks_the_chosen(display, selection):
    labels = display.ax_.get_yticklabels()
    names = {measure.title: measure.name for measure in selection.measures}
    shown = {names[label.get_text().removesuffix(" †")]: label for label in labels}
    assert set(shown) == {measure.name for measure in selection.measures}
    bold = {name for name, label in shown.items() if label.get_fontweight() == "bold"}
    assert bold == set(selection.chosen)
    assert sum("†" in label.get_text() for label in labels) == 6


def test_cut_line_stands_at_the_cut(display):
    lines = [line for line in display.ax_.lines if line.get_linestyle() == "--"]
    assert [list(line.get_xdata()) for line in lines] == [[0.1, 0.1]]


def test_families_have_colours_and_markers_of_their_own(display, selection):
    legend = display.ax_.get_legend()
    names, handles = [text.get_text() for text in legend.get_texts()], legend.legend_handles
    assert names == list(dict.fromkeys(measure.family for measure in selection.measures))
    assert len({handle.get_marker() for handle in handles}) == len(names) == 9
    colours = np.array([to_rgb(handle.get_color()) for handle in handles])
    distances = np.linalg.norm(colours[:, None] - colours[None, :], axis=2)
    assert distances[np.triu_indices(9, 1)].min() > 0.2


def test_labels_do_not_overlap_and_nothing_leaves_the_figure(display):
    display.figure_.canvas.draw()
    renderer = display.figure_.canvas.get_renderer()
    boxes = [label.get_window_extent(renderer) for label in display.ax_.get_yticklabels()]
    assert all(upper.y0 >= lower.y1 - 1 for lower, upper in pairwise(boxes))
    whole = display.figure_.get_tightbbox(renderer)
    width, height = display.figure_.get_size_inches()
    assert whole.x0 >= -0.02
    assert whole.y0 >= -0.02
    assert whole.x1 <= width + 0.02
    assert whole.y1 <= height + 0.02


def test_draws_into_given_axes(selection, tmp_path):
    figure, axes = plt.subplots(figsize=(9, 11))
    display = MeasureDendrogramDisplay(selection).plot(ax=axes)
    assert display.ax_ is axes
    assert display.figure_ is figure
    figure.savefig(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").stat().st_size > 10_000
    plt.close(figure)


def test_every_formula_can_be_set(tmp_path):
    figure = plt.figure()
    for measure in MEASURES.values():
        figure.text(0, 0, f"${measure.formula}$")
    figure.savefig(tmp_path / "formulae.png")
    plt.close(figure)

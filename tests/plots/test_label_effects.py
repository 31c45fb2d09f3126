"""The map of labels and columns: what is drawn is what was found."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from skldl.plots import LabelEffectsDisplay
from skldl.tabular import ColumnEffects, RowExplanation

mpl.use("Agg")
LABELS = ["joy", "fear"]
PREDICTION = pd.Series([0.5, 0.5], index=LABELS)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_effects_of_columns():
    effects = ColumnEffects(
        ["age", "town"], LABELS, np.array([0.5, 0.1]), np.zeros(2), np.array([[0.3, 0.2], [0, 0]]), 0.2, 9
    )
    display = LabelEffectsDisplay.from_effects(effects)
    image = display.ax_.images[0]
    np.testing.assert_array_equal(image.get_array(), effects.movement)
    assert [label.get_text() for label in display.ax_.get_xticklabels()] == LABELS
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == ["age  0.5000", "town  0.1000"]
    assert [text.get_text() for text in display.ax_.texts] == ["0.3", "0.2", "0", "0"]
    assert display.figure_ is display.ax_.figure


@pytest.mark.parametrize("how", ["contributions", "replacement"])
def test_signed_effects_have_zero_in_the_middle(how):
    table = pd.DataFrame([[0.5, -0.5], [-1.0, 1.0]], index=["a", "b"], columns=LABELS)
    display = LabelEffectsDisplay.from_row(RowExplanation(PREDICTION, how, table))
    assert display.ax_.images[0].get_clim() == (-1.0, 1.0)


def test_neighbours():
    table = pd.DataFrame({"training row": [3], "distance": [0.25], "joy": [0.5], "fear": [0.5]})
    _, ax = plt.subplots()
    display = LabelEffectsDisplay.from_row(RowExplanation(PREDICTION, "neighbours", table), ax=ax)
    assert display.ax_ is ax
    assert [label.get_text() for label in ax.get_yticklabels()] == ["row 3, distance 0.25"]


def test_long_tables_are_cut_and_nothing_at_all_is_drawn_too():
    display = LabelEffectsDisplay(np.ones((50, 20)), range(50), range(20), "Title", "meaning").plot()
    assert display.ax_.images[0].get_array().shape == (30, 20)
    assert "(the first 30 of 50)" in display.ax_.get_title(loc="left")
    assert not display.ax_.texts
    assert LabelEffectsDisplay(np.zeros((1, 2)), ["a"], LABELS, "t", "m").plot().ax_.images[0].get_clim() == (0, 1)

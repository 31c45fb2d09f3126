"""The figure of the skill: its numbers, the ceiling, and what is outside the axis."""

import numpy as np
import pandas as pd
import pytest

from skldl import plots
from skldl.metrics import kullback_leibler, skill


def test_from_predictions(make_predictions):
    D, predicted = make_predictions(4)
    mean = D.mean(axis=0, keepdims=True)
    display = plots.SkillDisplay.from_predictions(D, predicted, D_reference=mean, ceiling=0.02, title="faces")
    expected = skill(D, predicted["AA-kNN"], mean)
    assert display.skills["faces"]["AA-kNN"] == expected
    assert display.ceilings["faces"] == pytest.approx(1 - 0.02 / kullback_leibler(D, np.tile(mean, (len(D), 1))))
    line = next(line for line in display.ax_.lines if line.get_label() == "AA-kNN")
    assert line.get_xdata().tolist() == [float(expected)]
    assert not plots.SkillDisplay.from_predictions(D, predicted, D_reference=mean).ceilings


def test_the_labels_of_the_reference_are_put_in_order(make_predictions):
    D, predicted = make_predictions(4)
    mean = D.mean(axis=0, keepdims=True)
    expected = plots.SkillDisplay.from_predictions(D, predicted, D_reference=mean, ceiling=0.02)
    frames = {name: pd.DataFrame(P, columns=list("abcd")) for name, P in predicted.items()}
    turned = pd.DataFrame(mean, columns=list("abcd"))[list("cadb")]
    true = pd.DataFrame(D, columns=list("abcd"))
    found = plots.SkillDisplay.from_predictions(true, frames, D_reference=turned, ceiling=0.02)
    assert found.skills == expected.skills
    assert found.ceilings == pytest.approx(expected.ceilings, rel=1e-12)


def test_a_reference_without_loss():
    """The ceiling follows the one definition of skill; what is below the axis is not drawn, and has no entry."""
    for ceiling, expected in ((0.01, -np.inf), (0.0, 0.0), (1e-17, 0.0)):
        display = plots.SkillDisplay.from_predictions(
            [[0.5, 0.5]] * 2, [[0.4, 0.6]] * 2, D_reference=[[0.5, 0.5]], ceiling=ceiling, title="even"
        )
        assert display.ceilings == {"even": expected}
        drawn = [line for line in display.ax_.lines if line.get_label() == "noise ceiling"]
        assert len(drawn) == (expected == 0)
    display = plots.SkillDisplay({"x": {"A": 0.1}, "y": {"A": 0.2}}, {"x": -np.inf, "y": 0.5}).plot()
    (line,) = (line for line in display.ax_.lines if line.get_label() == "noise ceiling")
    assert line.get_xdata().tolist() == [0.5, 0.5]


def test_what_is_worse_than_the_lowest_stands_at_the_edge():
    display = plots.SkillDisplay({"x": {"A": -7.0, "B": 0.1}, "y": {"B": float("-inf")}}).plot()
    at_edge = [line for line in display.ax_.lines if line.get_marker() == "<" and len(line.get_xdata())]
    assert [line.get_xdata().tolist() for line in at_edge] == [[-0.5], [-0.5]]
    assert display.ax_.get_xlim()[0] < -0.5

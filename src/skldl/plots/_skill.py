"""`SkillDisplay`: skill of models against the mean distribution, and the largest possible skill."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from skldl.metrics import Skill, kullback_leibler, skill, skill_ratio
from skldl.metrics._skill import rows_of_reference
from skldl.plots._display import PredictionDisplay, named_predictions
from skldl.plots._style import MUTED, TRUTH, legend_beside, looks, name_axis, plain


@dataclass(eq=False)
class SkillDisplay(PredictionDisplay):
    """One line for each dataset, one marker for each model: the fraction of the mean's divergence that it removes.

    1 is perfect, 0 is no better than the mean of the training distributions. Values below ``lowest`` are drawn as arrow
    heads at the edge. If the noise of the annotators is known, a bar marks the skill that no model can be expected to
    exceed.

    Parameters
    ----------
    skills : dict of dict of Skill or float
        By dataset and model.
    ceilings : dict of float
        By dataset, the largest skill that the noise of the annotators permits, for datasets with votes. A ceiling below
        ``lowest`` is not drawn, such as −∞ where the mean has no loss.
    lowest : float
        Left end of the axis.

    Attributes
    ----------
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> from skldl.plots import SkillDisplay
    >>> display = SkillDisplay({"faces": {"AA-kNN": 0.3, "SA-BFGS": 0.4}}, {"faces": 0.6}).plot()
    >>> display.ax_.get_xlabel()
    'skill against the mean distribution'
    """

    skills: dict[str, dict[str, Skill | float]]
    ceilings: dict[str, float] = field(default_factory=dict)
    lowest: float = -0.5

    @classmethod
    def from_predictions(
        cls,
        D_true: Any,
        D_pred: Any,
        *,
        D_reference: Any,
        ceiling: float | None = None,
        title: str = "",
        lowest: float = -0.5,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the skill on one dataset.

        Parameters
        ----------
        D_true : array-like or DataFrame of shape (n_samples, n_labels)
            True distributions.
        D_pred : array-like or mapping
            Predicted distributions, or several tables of them by name.
        D_reference : array-like or DataFrame of shape (n_samples, n_labels) or (1, n_labels)
            Predictions of the reference: the mean of the training distributions.
        ceiling : float, default=None
            The Kullback-Leibler divergence of the best possible model, which is due to the noise of the votes: the
            noise floor that `skldl.uncertainty.noise_floor` estimates.
        title : str, default=""
            Name of the dataset.
        lowest : float, default=-0.5
            Left end of the axis.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        SkillDisplay
            The figure, drawn.
        """
        true, predicted = named_predictions(D_true, D_pred)
        skills: dict[str, Skill | float] = {name: skill(D_true, rows, D_reference) for name, rows in predicted.items()}
        ceilings = {}
        if ceiling is not None:
            reference = rows_of_reference(D_true, true, D_reference)
            ceilings[title] = float(skill_ratio(ceiling, kullback_leibler(true, reference)))
        return cls({title: skills}, ceilings, lowest).plot(ax)

    @property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.skills.values() for name in row))

    def _size(self, width: float | None) -> tuple[float, float]:
        each = 0.24 if len(self._names) == 1 else max(0.32, 0.075 * len(self._names))
        return 7.2, min(1.3 + each * len(self.skills), 16.0)

    def _draw(self, ax: Axes | None) -> None:
        names = self._names
        n_rows, n_models = len(self.skills), len(names)
        ax = self._axes(ax)
        ax.axvline(0, color=MUTED, linewidth=1.0)
        for number, (name, look) in enumerate(looks(names).items()):
            offset = 0.76 * ((number + 0.5) / n_models - 0.5)
            self._draw_model(name, look, offset)
        label: str | None = "noise ceiling"
        for place, title in enumerate(self.skills):
            if self.ceilings.get(title, -np.inf) >= self.lowest:
                x = [self.ceilings[title]] * 2
                ax.plot(x, [place - 0.42, place + 0.42], color=TRUTH, linewidth=2.2, label=label)
                label = None  # one entry in the legend
        for edge in range(1, n_rows):
            ax.axhline(edge - 0.5, color=MUTED, linewidth=0.3)
        ax.set(xlim=self._limits(), ylim=(n_rows - 0.45, -0.55))
        ax.set_xlabel("skill against the mean distribution")
        ax.grid(axis="x")
        legend_beside(ax)
        name_axis(ax, list(self.skills), "y")

    def _limits(self) -> tuple[float, float]:
        """Limits of the axis: from the lowest skill that is drawn to the best skill or ceiling, with a margin."""
        values = [value for row in self.skills.values() for value in row.values()]
        ends = [float(getattr(value, end, value)) for value in values for end in ("low", "high")]
        low = max(min([0.0, *ends]), self.lowest)
        high = min(max([0.02, *ends, *self.ceilings.values()]), 1.0)  # an end or a ceiling may be minus infinity
        return low - 0.03 * (high - low), high + 0.05 * (high - low)

    def _draw_model(self, name: str, look: Any, offset: float) -> None:
        rows: list[tuple[float, Skill | float]] = [
            (place + offset, row[name]) for place, row in enumerate(self.skills.values()) if name in row
        ]
        inside = [(height, value) for height, value in rows if value >= self.lowest]
        outside = [height for height, value in rows if not value >= self.lowest]
        for height, value in inside:
            if isinstance(value, Skill):
                self.ax_.hlines(height, max(value.low, self.lowest), value.high, color=look.colour, linewidth=1.1)
        self.ax_.plot(
            [float(value) for _, value in inside],
            [height for height, _ in inside],
            linestyle="none",
            color=look.colour,
            marker=look.marker,
            markersize=4.5,
            label=plain(name),
        )
        self.ax_.plot(
            [self.lowest] * len(outside), outside, linestyle="none", color=look.colour, marker="<", markersize=4
        )

"""`LabelCasesDisplay`: one instance annotated by one label, by a set of labels, and by a distribution (Fig. 2 of [1]_).

One label is a distribution with all mass on it. A set of labels has equal mass on each label of the set. In general,
the degree of a label is how much it describes the instance.

References
----------
.. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from skldl.plots._display import Display, label_names_of, names_of_labels
from skldl.plots._style import columns_that_fit, looks, name_axis, panels, width_of
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_distributions

TITLES = ("one label", "a set of labels", "a label distribution")
MAX_NUMBERS = 10  # with more labels the numbers beside the bars would overlap


@dataclass(eq=False)
class LabelCasesDisplay(Display):
    """The three cases of annotation side by side, as bars over the labels.

    Parameters
    ----------
    distribution : ndarray of shape (n_labels,)
        The general case, from which the other two follow.
    label_names : list of str
        Names of the labels.
    fraction : float
        The set contains the largest degrees that together reach this fraction of the mass, and all equal to the last.

    Attributes
    ----------
    cases : ndarray of shape (3, n_labels)
        The three distributions that are drawn.
    axes_ : list of Axes
        The three panels, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> from skldl.plots import LabelCasesDisplay
    >>> display = LabelCasesDisplay.from_predictions([[0.5, 0.3, 0.2]], label_names=["sky", "sea", "sand"])
    >>> display.cases
    array([[1. , 0. , 0. ],
           [0.5, 0.5, 0. ],
           [0.5, 0.3, 0.2]])
    """

    distribution: FloatArray
    label_names: list[str]
    fraction: float = 0.75

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, **options: Any) -> Self:
        """Draw what a fitted estimator predicts for one instance.

        Parameters
        ----------
        estimator : estimator
            A fitted estimator.
        X : array-like or DataFrame of shape (n_samples, n_features)
            Features.
        **options : dict
            Arguments of ``from_predictions``.

        Returns
        -------
        LabelCasesDisplay
            The figure, drawn.
        """
        options.setdefault("label_names", label_names_of(estimator))
        return cls.from_predictions(estimator.predict(X), **options)

    @classmethod
    def from_predictions(
        cls,
        D: Any,
        *,
        row: int = 0,
        fraction: float = 0.75,
        label_names: Sequence[str] | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the three cases that belong to one distribution.

        Parameters
        ----------
        D : array-like or DataFrame of shape (n_samples, n_labels)
            Distributions, real or predicted.
        row : int, default=0
            Which of them to draw.
        fraction : float, default=0.75
            The set contains the largest degrees that together reach this fraction of the mass, and all equal to the
            last.
        label_names : sequence of str, default=None
            Names of the labels.
        ax : Axes, default=None
            Where to draw; a new figure if None.

        Returns
        -------
        LabelCasesDisplay
            The figure, drawn.
        """
        rows = check_distributions(D, name="D")
        return cls(rows[row], names_of_labels(D, label_names, rows.shape[1]), fraction).plot(ax)

    @property
    def cases(self) -> FloatArray:
        """The three distributions that are drawn."""
        order = np.argsort(-self.distribution, kind="stable")
        before = np.cumsum(self.distribution[order]) - self.distribution[order]
        least = self.distribution[order[before < self.fraction]][-1]
        members = self.distribution >= least  # equal degrees are in or out together
        single, several = np.zeros((2, len(self.distribution)))
        single[order[0]] = 1.0
        several[members] = 1.0 / members.sum()
        return np.array([single, several, self.distribution])

    def _size(self, width: float | None) -> tuple[float, float]:
        n_labels = len(self.distribution)
        if columns_that_fit(width, 3) < 3:  # one panel below the other
            return 4.0, 1.2 + 3 * (0.25 + 0.17 * n_labels)
        return (7.5, 1.3 + 0.16 * n_labels) if n_labels <= MAX_NUMBERS else (9.0, 1.5 + 0.17 * n_labels)

    def _draw(self, ax: Axes | None) -> None:
        n_labels = len(self.distribution)
        many = n_labels > MAX_NUMBERS
        stacked = columns_that_fit(width_of(ax), 3) < 3
        shape = (3, 1) if stacked else (1, 3)
        self.figure_, grid = panels(ax, *shape, self.size(), sharex=not many, sharey=not stacked)
        self.axes_ = [panel for row in grid for panel in row]
        for place, (panel, case, title) in enumerate(zip(self.axes_, self.cases, TITLES, strict=True)):
            panel.barh(np.arange(n_labels), case, 0.75, color=looks(["SA-BFGS"])["SA-BFGS"].colour)
            panel.set_title(title)
            if many:  # a degree among many labels is small: each panel has its own scale
                panel.set_xlim(0, 1.1 * float(case.max()))
                panel.locator_params(axis="x", nbins=3)
            else:
                panel.set_xlim(0, 1.18)
                panel.set_xticks([0, 0.5, 1])
            panel.set_ylim(n_labels - 0.4, -0.6)
            if not stacked or place == 2:
                panel.set_xlabel("description degree")
            if stacked or place == 0:
                name_axis(panel, self.label_names, "y")
            if not many:
                for label, degree in enumerate(case):
                    panel.annotate(
                        f"{degree:.2f}".rstrip("0").rstrip("."),
                        (degree, label),
                        xytext=(3, 0),
                        textcoords="offset points",
                        va="center",
                        fontsize=7.5,
                    )

"""`MissingRateDisplay`: quality against the fraction of training degrees that were removed."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from matplotlib.axes import Axes

from skldl.metrics import Measure
from skldl.plots._display import BandDisplay
from skldl.utils.typing import FloatArray


@dataclass(eq=False)
class MissingRateDisplay(BandDisplay):
    """Quality on complete test rows against the fraction of training degrees that were removed (hidden).

    Parameters
    ----------
    rates : ndarray of shape (n_rates,)
        Fractions of hidden degrees, from 0 to 1.
    curves : dict of ndarray of shape (n_rates, n_tests)
        From the name of each candidate to its values of the measure.
    measure : str or Measure
        The measure.

    Attributes
    ----------
    ax_ : Axes
        The axes, once drawn.
    figure_ : Figure
        The figure, once drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.plots import MissingRateDisplay
    >>> display = MissingRateDisplay(np.array([0.0, 0.5]), {"Mean": np.array([[0.1, 0.2], [0.2, 0.3]])}).plot()
    >>> display.ax_.get_xlabel()
    'degrees hidden (%)'
    """

    rates: FloatArray
    curves: dict[str, FloatArray]
    measure: str | Measure = "kullback_leibler"

    @classmethod
    def of_study(cls, results: Any, measure: str = "kullback_leibler") -> dict[str, Self]:
        """Collect one figure for each dataset that a study ran with two or more fractions of hidden degrees.

        Parameters
        ----------
        results : StudyResults
            Results of a study with ``hide``.
        measure : str, default="kullback_leibler"
            A measure of the study.

        Returns
        -------
        dict of MissingRateDisplay
            By the name of the dataset, not yet drawn. Candidates that failed at one of the rates are left out.
        """
        rates: dict[str, dict[float, str]] = {}
        for entry in results.study["datasets"]:
            rate = entry.get("hide")
            if rate is not None and entry["name"] in results.datasets:
                base = entry["name"].removesuffix(f", {100 * rate:g} % hidden")
                rates.setdefault(base, {})[float(rate)] = entry["name"]
        found = {}
        for base, names in rates.items():
            order = sorted(names)
            values = {
                candidate: [results.values(measure, names[rate], candidate) for rate in order]
                for candidate in results.candidates
            }
            curves = {name: np.array(rows) for name, rows in values.items() if all(len(row) for row in rows)}
            if len(order) > 1 and curves:
                found[base] = cls(np.array(order), curves, measure)
        return found

    def _draw(self, ax: Axes | None) -> None:
        self._draw_bands(ax, 100 * np.asarray(self.rates), "degrees hidden (%)")

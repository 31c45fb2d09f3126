"""`Measure`: a distance or similarity between distributions that knows its name, family, formula and arrow."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl._validation import check_pair, check_weights
from skldl.metrics._pair import Pair, blocks

FloatArray = npt.NDArray[np.floating]

MACHINE_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Measure:
    """A distance or similarity between true and predicted label distributions.

    Call it for the mean over rows; `rowwise` gives one value per row.

    Attributes
    ----------
    name : str
        The key in ``MEASURES``.
    title : str
        The name in print.
    family : str
        Syntactic family in Cha (2007).
    formula : str
        The formula in LaTeX; d is the true degree, \\hat d the predicted one.
    higher_is_better : bool
        True for similarities.
    compute : callable
        From a block of rows to one value per row.
    lower, upper : float
        Range of the values; ``inf`` where there is no bound, ``nan`` where the bound grows with the number of labels.
    zeros : str
        What happens where the formula meets a zero.
    uses_eps : bool
        Whether the floor ``eps`` takes part.

    Examples
    --------
    >>> from skldl.metrics import clark
    >>> clark([[0.5, 0.5]], [[0.25, 0.75]]).__round__(4)
    0.3887
    >>> clark.rowwise([[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]])
    array([0., 0.])
    >>> clark.family, clark.higher_is_better
    ('squared L2 or χ²', False)
    """

    name: str
    title: str
    family: str
    formula: str
    higher_is_better: bool
    compute: Callable[[Pair], FloatArray] = field(repr=False)
    lower: float = 0.0
    upper: float = np.inf
    zeros: str = ""
    uses_eps: bool = False

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def arrow(self) -> str:
        """↑ if higher is better, else ↓."""
        return "↑" if self.higher_is_better else "↓"

    def rowwise(self, D_true: Any, D_pred: Any, *, eps: float | None = None) -> FloatArray:
        """Compute one value per row.

        Parameters
        ----------
        D_true, D_pred : array-like or DataFrame of shape (n_samples, n_labels)
            True and predicted distributions.
        eps : float, default=None
            Floor that keeps logarithms and denominators away from zero; None means machine epsilon, 0 lets
            infinities through. Only measures whose ``uses_eps`` is true take it.

        Returns
        -------
        ndarray of shape (n_samples,)
            The measure of each row.
        """
        true, pred = check_pair(D_true, D_pred)
        values = np.empty(len(true))
        for rows, pair in blocks(true, pred, self._floor(eps)):
            values[rows] = self.compute(pair)
        return values

    def __call__(self, D_true: Any, D_pred: Any, sample_weight: Any = None, *, eps: float | None = None) -> float:
        """Compute the (weighted) mean over rows.

        Parameters
        ----------
        D_true, D_pred : array-like or DataFrame of shape (n_samples, n_labels)
            True and predicted distributions.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row.
        eps : float, default=None
            As in `rowwise`.

        Returns
        -------
        float
            The mean.
        """
        values = self.rowwise(D_true, D_pred, eps=eps)
        return mean(values, check_weights(sample_weight, len(values)))

    def _floor(self, eps: float | None) -> float:
        if eps is None:
            return MACHINE_EPSILON
        if not self.uses_eps:
            raise TypeError(f"{self.name} has no logarithm or denominator to keep from zero: it takes no eps.")
        if not 0 <= eps < 1:
            raise ValueError(f"eps={eps!r} is a floor under description degrees and must lie in [0, 1).")
        return float(eps)

    def __reduce__(self) -> tuple[Callable[[str], "Measure"], tuple[str]]:
        return _by_name, (self.name,)


def _by_name(name: str) -> Measure:
    from skldl.metrics import MEASURES

    return MEASURES[name]


def mean(values: FloatArray, weight: FloatArray | None) -> float:
    """Weighted mean; a row without weight does not count even if its value is infinite."""
    if weight is None:
        return float(values.mean())
    counted = weight > 0
    return float(np.average(values[counted], weights=weight[counted]))

"""`evaluate`: the means of several measures over rows, and `MeasureSums`, the sums over one block of rows."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from skldl.metrics._measure import Measure, checked_pair, compute_rows, weigh
from skldl.metrics._noise_floor import floors_of_rows
from skldl.metrics._registry import PAPER_MEASURES, resolve
from skldl.utils.arrays import computing_on, namespace
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_weights


class MeasureSums(NamedTuple):
    """Weighted sums of measures over a block of rows.

    The sums of all blocks are added; divided by the weight they are the means. Arrays in memory and on a device are one
    block; rows in chunks, and pairs of tables in chunks, are several.

    Attributes
    ----------
    values : ndarray of shape (n_measures,)
        Sum of the weighted values of each measure.
    weight : float
        Sum of the weights.
    """

    values: FloatArray
    weight: float

    @classmethod
    def of(cls, measures: Sequence[Measure], true: Any, pred: Any, weight: Any) -> "MeasureSums":
        """Compute the measures of each row of a block, and add them up.

        Parameters
        ----------
        measures : sequence of Measure
            The measures.
        true, pred : array of shape (n_rows, n_labels)
            Validated distributions.
        weight : array of shape (n_rows,) or None
            Weights.

        Returns
        -------
        MeasureSums
            The sums.
        """
        xp = namespace(true)
        rows = compute_rows(true, pred, measures).values()
        sums = [float(xp.sum(weigh(values, weight))) for values in rows]
        return cls(np.array(sums), float(true.shape[0] if weight is None else xp.sum(weight)))

    def means(self, measures: Sequence[Measure]) -> dict[str, float]:
        """Compute the means: the sums divided by the weight.

        Parameters
        ----------
        measures : sequence of Measure
            The measures that `of` was called with.

        Returns
        -------
        dict
            From the name of each measure to its mean.
        """
        return {m.name: float(value) / float(self.weight) for m, value in zip(measures, self.values, strict=True)}


class Score(float):
    """The mean of a measure over rows that are fractions of votes: a float with its noise floor as attributes.

    ``floor`` is the value that the true distributions would have on these rows, a lower bound, and ``floor_smoothed``
    the upper end (see `skldl.uncertainty.NoiseFloor`); NaN if not finite. ``floor_error`` is the sampling error of
    ``floor`` alone.

    Parameters
    ----------
    value : float
        Mean of the measure.
    floor, floor_error, floor_smoothed : float
        The noise floor, its standard error, and its upper end.

    Examples
    --------
    >>> from skldl.metrics import evaluate
    >>> D, P, counts = [[0.5, 0.5], [0.8, 0.2]], [[0.6, 0.4], [0.7, 0.3]], [[5, 5], [8, 2]]
    >>> scores = evaluate(D, P, counts=counts, measures=["kullback_leibler"])
    >>> score = scores["kullback_leibler"]
    >>> round(score, 4), round(score.floor, 4)
    (0.0231, 0.0545)
    """

    floor: float
    floor_error: float
    floor_smoothed: float

    def __new__(cls, value: float, floor: float, floor_error: float, floor_smoothed: float) -> "Score":
        score = super().__new__(cls, value)
        score.floor, score.floor_error, score.floor_smoothed = floor, floor_error, floor_smoothed
        return score

    def __repr__(self) -> str:
        return f"Score({float(self):.4f}, noise floor {self.floor:.4f} to {self.floor_smoothed:.4f})"

    def __getnewargs__(self) -> tuple[float, ...]:  # type: ignore[override]  # float's has no arguments
        return float(self), self.floor, self.floor_error, self.floor_smoothed


def evaluate(
    D_true: Any,
    D_pred: Any,
    sample_weight: Any = None,
    *,
    measures: Iterable[str | Measure] = tuple(PAPER_MEASURES),
    counts: Any = None,
) -> dict[str, float]:
    """Compute several measures, each as mean over rows, in one pass over the arrays.

    Parameters
    ----------
    D_true, D_pred : array-like or DataFrame of shape (n_samples, n_labels)
        True and predicted distributions.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.
    measures : iterable of str or Measure, default: the six of the paper
        Which measures to compute.
    counts : array-like or DataFrame of shape (n_samples, n_labels), default=None
        Number of votes for each label, if ``D_true`` contains their fractions. Each mean then has its noise floor as
        an attribute.

    Returns
    -------
    dict
        From the name of each measure to its mean; with counts a `Score`, a float with the attributes ``floor`` and
        ``floor_smoothed`` (between which the true distributions would score, see `skldl.uncertainty.noise_floor`) and
        ``floor_error``.

    Examples
    --------
    >>> from skldl.metrics import evaluate
    >>> values = evaluate([[0.5, 0.5]], [[0.25, 0.75]])
    >>> {name: round(value, 4) for name, value in values.items()}
    {'chebyshev': 0.25, 'clark': 0.3887, 'canberra': 0.5333, 'kullback_leibler': 0.1438, 'cosine': 0.8944,
     'intersection': 0.75}

    With twenty votes a row, a divergence of 0.055 is nearly the best that any model can reach:

    >>> import numpy as np
    >>> truth = np.tile([0.2, 0.3, 0.5], (500, 1))
    >>> counts = np.random.default_rng(0).multinomial(20, truth)
    >>> evaluate(counts / 20, truth, measures=["kullback_leibler"], counts=counts)
    {'kullback_leibler': Score(0.0517, noise floor 0.0523 to 0.0523)}
    """
    chosen = resolve(measures)
    with computing_on(D_true, "evaluate"):
        true, pred = checked_pair(D_true, D_pred)
        weight = check_weights(sample_weight, true.shape[0], true)
        means = MeasureSums.of(chosen, true, pred, weight).means(chosen)
    if counts is None:
        return means
    floors = floors_of_rows(D_true, counts, chosen, sample_weight)
    scores = {}
    for name, value in means.items():
        found = floors.get(name)
        ends = (math.nan,) * 3 if found is None else (found.value, found.standard_error, found.smoothed)
        scores[name] = Score(value, *ends)
    return dict(scores)

"""Measures between distributions: each is an object that knows its name, family, formula and arrow.

`PAPER_MEASURES` are the six of Geng (2016); `MEASURES` holds all, by name; `SCORERS` turns them into scikit-learn
scorers with the right sign.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer

from skldl._validation import check_weights
from skldl.metrics import _evaluate
from skldl.metrics._evaluate import Skill
from skldl.metrics._measure import Measure
from skldl.metrics._paper import canberra, chebyshev, clark, cosine, intersection, kullback_leibler

PAPER_MEASURES: dict[str, Measure] = {
    measure.name: measure for measure in (chebyshev, clark, canberra, kullback_leibler, cosine, intersection)
}
MEASURES: dict[str, Measure] = dict(PAPER_MEASURES)
SCORERS = {name: make_scorer(measure, greater_is_better=measure.higher_is_better) for name, measure in MEASURES.items()}

__all__ = [
    "MEASURES",
    "PAPER_MEASURES",
    "SCORERS",
    "Measure",
    "Skill",
    "canberra",
    "chebyshev",
    "clark",
    "cosine",
    "evaluate",
    "intersection",
    "kullback_leibler",
    "skill",
]


def evaluate(
    D_true: Any,
    D_pred: Any,
    sample_weight: Any = None,
    *,
    measures: Iterable[str | Measure] = tuple(PAPER_MEASURES),
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

    Returns
    -------
    dict
        From the name of each measure to its mean.

    Examples
    --------
    >>> from skldl.metrics import evaluate
    >>> values = evaluate([[0.5, 0.5]], [[0.25, 0.75]])
    >>> {name: round(value, 4) for name, value in values.items()}
    {'chebyshev': 0.25, 'clark': 0.3887, 'canberra': 0.5333, 'kullback_leibler': 0.1438, 'cosine': 0.8944,
     'intersection': 0.75}
    """
    values = _evaluate.evaluate_rowwise(D_true, D_pred, _evaluate.resolve(measures, MEASURES))
    n_samples = len(next(iter(values.values()))) if values else 0
    return _evaluate.means(values, check_weights(sample_weight, n_samples))


def skill(
    D_true: Any,
    D_pred: Any,
    D_reference: Any,
    sample_weight: Any = None,
    *,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: int | np.random.RandomState | None = 0,
) -> Skill:
    """How much of the reference's Kullback-Leibler divergence the prediction takes away.

    ``1 - KL(true, predicted) / KL(true, reference)``: 1 is perfect, 0 is no better than the reference, and below 0 the
    reference (usually the mean of the training distributions) would have been the better prediction.

    Parameters
    ----------
    D_true, D_pred : array-like or DataFrame of shape (n_samples, n_labels)
        True and predicted distributions.
    D_reference : array-like or DataFrame of shape (n_samples, n_labels) or (1, n_labels)
        Predictions of the reference; one row stands for all.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.
    confidence : float, default=0.95
        Share of the bootstrap distribution that the interval covers.
    n_resamples : int, default=1000
        Number of bootstrap resamples of the rows.
    random_state : int, RandomState or None, default=0
        Seed of the resampling; a fixed default gives the same interval for the same data.

    Returns
    -------
    Skill
        A float with the attributes ``low``, ``high`` and ``confidence``.

    Examples
    --------
    >>> from skldl.metrics import skill
    >>> D = [[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]
    >>> skill(D, [[0.5, 0.5], [0.8, 0.2], [0.3, 0.7]], [[0.53, 0.47]])
    Skill(0.8874, 95% interval 0.8860 to 1.0000)
    """
    return _evaluate.skill(
        D_true,
        D_pred,
        D_reference,
        sample_weight,
        divergence=kullback_leibler,
        confidence=confidence,
        n_resamples=n_resamples,
        random_state=random_state,
    )

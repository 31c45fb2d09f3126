"""`PartialLDL`: base class of the learners that take NaN in y as a degree that was not observed."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skldl.base import BaseLDL
from skldl.chunks import Rows
from skldl.metrics import kullback_leibler
from skldl.utils.arrays import is_device_array, is_foreign
from skldl.utils.missing import (
    COMPLETE,
    READINGS,
    check_partial_distributions,
    has_gaps,
    informative,
    observed_pair,
    rest_of,
)
from skldl.utils.parameters import one_of
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_numbers, check_same_length, check_weights

MISSING = one_of(*READINGS, hint="'degrees' if the observed degrees are true, 'renormalised' if only ratios are known")
"""Valid values of the hyper-parameter ``missing``."""


class PartialLDL(BaseLDL):
    """Base class of label distribution learners that can learn from missing degrees.

    A subclass declares ``"missing": MISSING`` in ``_constraints`` and stores it in ``__init__``. Its ``_fit`` receives
    D with NaN where a degree is unknown, and finds the reading in ``missing_``: "complete" (no NaN), "degrees" or
    "renormalised"; see `skldl.utils.missing`.

    Attributes
    ----------
    missing_ : {"complete", "degrees", "renormalised"}
        How gaps in y were read; "complete" if there were none, or none that does not follow from the other cells.
    n_left_out_ : int
        Number of rows of y that carry nothing to learn from: no observed label or, with "renormalised", fewer than two.
    """

    _allow_missing_degrees = True
    missing: str

    def _check_rows(self, rows: Rows, y: Any, sample_weight: Any) -> None:
        super()._check_rows(rows, y, sample_weight)
        self.missing_, self.n_left_out_ = COMPLETE, 0  # chunks with gaps are rejected

    def _check_target(self, y: Any, X: Any) -> FloatArray:
        if is_device_array(X):  # NaN is refused there
            self.missing_, self.n_left_out_ = COMPLETE, 0
            return super()._check_target(y, X)
        D, self.missing_ = check_partial_distributions(y, self.missing)
        self.n_left_out_ = int((~informative(D, self.missing_)).sum())
        return D

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the mean Kullback-Leibler divergence from the true to the predicted distributions: higher is better.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features), or Rows
            Features; or rows that are read in chunks, with their distributions and weights.
        y : array-like or DataFrame of shape (n_samples, n_labels), default=None
            True label distributions; None if X is a `skldl.chunks.Rows`. With gaps, what was observed is compared: the
            observed labels and the rest of the mass, or the observed labels with both rows divided by their sums there,
            as ``missing`` says.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row.

        Returns
        -------
        float
            At most 0, which only a perfect prediction reaches.
        """
        if y is None or is_foreign(y) or not has_gaps(check_numbers(y, name="y", allow_nan=True)):
            return super().score(X, y, sample_weight)
        predicted = self._in_order_of(y, np.asarray(self.predict(X)))
        D, reading = check_partial_distributions(y, self.missing, to_learn=False)
        check_same_length(predicted, D)
        weight = check_weights(sample_weight, len(D))
        true, seen, kept = observed_pair(D, predicted, reading)
        return -kullback_leibler(true, seen, sample_weight=None if weight is None else weight[kept])

    def complete(self, X: Any, D: Any) -> FloatArray:
        """Fill the gaps of a table of degrees with what the fitted model predicts.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        D : array-like or DataFrame of shape (n_samples, n_labels)
            Degrees with NaN where they were not observed, such as those that ``fit`` saw.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Rows that sum to one. With true degrees the observed cells stay, and the rest of the mass is shared out as
            predicted; with renormalised ones their ratios stay, and the missing cells are the prediction. A row without
            any observed label is the prediction.
        """
        check_is_fitted(self)
        table, reading = check_partial_distributions(D, self.missing, to_learn=False)
        predicted = self._in_order_of(D, np.asarray(self.predict(X)))
        check_same_length(predicted, table)
        return fill_gaps(table, predicted, reading)


def fill_gaps(D: FloatArray, P: FloatArray, reading: str) -> FloatArray:
    """Complete rows D, as `check_partial_distributions` gives them, from predictions P; see `PartialLDL.complete`.

    Examples
    --------
    >>> import numpy as np
    >>> D, P = np.array([[0.5, np.nan, np.nan]]), np.array([[0.2, 0.6, 0.2]])
    >>> fill_gaps(D, P, "degrees").round(3)
    array([[0.5  , 0.375, 0.125]])
    >>> fill_gaps(np.array([[0.5, 0.5, np.nan]]), P, "renormalised")
    array([[0.4, 0.4, 0.2]])
    """
    gaps = np.isnan(D)
    hidden = np.where(gaps, P, 0.0).sum(axis=1, keepdims=True)
    if reading == "renormalised":
        scale = np.where(gaps.any(axis=1, keepdims=True), 1.0 - hidden, 1.0)
        filled = np.where(gaps, P, D * scale)
    else:
        even = gaps / np.maximum(gaps.sum(axis=1, keepdims=True), 1)  # where the model gives the missing labels nothing
        share = np.divide(np.where(gaps, P, 0.0), hidden, out=even, where=hidden > 0)
        filled = np.where(gaps, rest_of(D)[:, None] * share, D)
    return np.asarray(filled / filled.sum(axis=1, keepdims=True))

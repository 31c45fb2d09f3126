"""`from_similarity`: labels and sets of labels as distributions over similar labels."""

from typing import Any

import numpy as np

from skldl.distributions._labels import divide_rows, holds_sets, label_codes, membership
from skldl.distributions._tables import frame_like, is_frame, names_of, numbers
from skldl.exceptions import DataError, DimensionError, NegativeDegreeError, ZeroRowError


def from_similarity(y: Any, S: Any, classes: Any = None) -> Any:
    r"""Spread labels, or sets of labels, to similar labels.

    .. math:: d_k = \frac{1}{|Y|} \sum_{j \in Y} \frac{S_{jk}}{\sum_l S_{jl}}

    A single label is a set of one. S may come from any source: co-occurrence (``Y.T @ Y`` of an indicator matrix), the
    confusion matrix of a classifier or of annotators (S need not be symmetric: row j defines where the mass of label j
    goes), closeness in a hierarchy. The identity gives `from_labels` and `from_label_sets`; adding a constant to it
    smooths labels.

    Parameters
    ----------
    y : array-like or Series of labels, list of sets of labels, or indicator matrix
        As in `from_labels` or in `from_label_sets`; a column of labels if its entries are no collections.
    S : array-like or DataFrame of shape (n_labels, n_labels)
        Similarity, at least zero.
    classes : sequence, default=None
        Names of the rows and columns of S. None uses the columns of a DataFrame; for an array, the labels are the
        positions 0, 1, ….

    Returns
    -------
    ndarray or DataFrame of shape (n_samples, n_labels)
        Rows that sum to one. A DataFrame or Series y gives a DataFrame of the same library.

    Raises
    ------
    UnknownLabelError
        If a label of y is not among the labels of S.
    NegativeDegreeError, ZeroRowError
        If S holds a negative number, or a row of zeros.

    Examples
    --------
    >>> from skldl.distributions import from_similarity
    >>> S = [[3, 1, 0], [1, 2, 1], [0, 1, 3]]
    >>> from_similarity(["calm", "glad"], S, classes=["sad", "calm", "glad"])
    array([[0.25, 0.5 , 0.25],
           [0.  , 0.25, 0.75]])
    >>> from_similarity([{"sad", "glad"}], S, classes=["sad", "calm", "glad"])
    array([[0.375, 0.25 , 0.375]])
    """
    similarity, _ = numbers(S, name="S")
    n_labels = similarity.shape[1]
    if similarity.shape[0] != n_labels:
        raise DimensionError(f"S has shape {similarity.shape}, but needs one row and one column for each label.")
    names = names_of(S, n_labels, classes)
    _check_row_names(S, names)
    if similarity.min() < 0:
        row, column = (int(i) for i in np.argwhere(similarity < 0)[0])
        raise NegativeDegreeError(
            f"S holds {similarity[row, column]:g} for {names[row]!r} and {names[column]!r}. "
            "Similarities are at least zero: turn correlations or distances into such numbers first."
        )
    if not similarity.sum(axis=1).all():
        row = int(np.argmin(similarity.sum(axis=1)))
        raise ZeroRowError(
            f"Label {names[row]!r} is similar to no label, not even itself. Put a number on the diagonal."
        )
    spread = similarity / similarity.sum(axis=1, keepdims=True)
    if holds_sets(y):
        indicator, columns = membership(y, names, name="y", argument="the labels of S")
        if is_frame(y) and list(y.columns) != list(columns) and classes is None:
            raise DataError("The columns of y and of S name different labels, or are in another order.")
        base, _ = divide_rows(indicator, "error", name="y")
    else:
        codes, _ = label_codes(y, names, name="y", argument="the labels of S")
        base = np.eye(n_labels)[codes]
    return frame_like(y, base @ spread, names)


def _check_row_names(S: Any, names: list[Any]) -> None:
    """Check that the names of the rows of a pandas table are those of its columns, unless they are 0, 1, …."""
    index = list(S.index) if is_frame(S) and hasattr(S, "index") and not callable(S.index) else names
    if index != names and index != list(range(len(names))):
        raise DataError(f"The rows of S are {index} and its columns {names}. Put both in the same order.")

"""Conversions of distributions to labels, sets of labels, ranks, numbers, and weighted single-label examples."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse, stats

from skldl.distributions._tables import frame_like, is_frame, is_series, library, names_of, series_like
from skldl.exceptions import (
    DataError,
    DimensionError,
    DuplicateLabelError,
    LengthMismatchError,
    Parameter,
    ParameterError,
)
from skldl.utils.parameters import FRACTION, check_value, integer, number, one_of
from skldl.utils.typing import FloatArray
from skldl.utils.validation import as_real_array, check_distributions, check_same_length, check_weights


def to_labels(D: Any, classes: Any = None) -> Any:
    """Take the label with the highest degree in each row; of several equal ones, the first column.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Distributions.
    classes : sequence, default=None
        Names of the labels. None uses the columns of a DataFrame, or the positions 0, 1, ….

    Returns
    -------
    ndarray or Series of shape (n_samples,)
        One label per row; a DataFrame gives a Series of the same library.

    Examples
    --------
    >>> from skldl.distributions import to_labels
    >>> to_labels([[0.2, 0.8], [0.5, 0.5]], classes=["no", "yes"])
    array(['yes', 'no'], dtype='<U3')
    """
    values = check_distributions(D, name="D", renormalize=False)  # division could break ties
    names = names_of(D, values.shape[1], classes)
    best = values.argmax(axis=1)
    if is_frame(D):
        return series_like(D, [names[j] for j in best])
    return name_array(names)[best]


def name_array(names: list[Any]) -> npt.NDArray[Any]:
    """Return names as an array of numbers or text; names of several kinds, or tuples, stay objects."""
    kinds = {type(name) for name in names}
    if (len(kinds) == 1 and not isinstance(names[0], tuple)) or kinds == {int, float}:
        return np.array(names)
    objects = np.empty(len(names), dtype=object)
    objects[:] = names
    return objects


def to_label_sets(
    D: Any,
    *,
    mass: float | None = None,
    threshold: float | None = None,
    top: int | None = None,
    classes: Any = None,
    output: str = "indicator",
) -> Any:
    """Take a set of labels from each row, by exactly one of three rules.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Distributions.
    mass : float in (0, 1], default=None
        Take labels from the highest degree down until they have at least this mass. At least one label is taken.
    threshold : float in [0, 1], default=None
        Take every label whose degree is at least this. The set may be empty.
    top : int, default=None
        Take the ``top`` labels with the highest degrees.
    classes : sequence, default=None
        Names of the labels. None uses the columns of a DataFrame, or the positions 0, 1, ….
    output : {"indicator", "sets"}, default="indicator"
        Return a matrix of zeros and ones, or one list of labels per row, from the highest degree down.

    Returns
    -------
    ndarray or DataFrame of shape (n_samples, n_labels), or list of lists
        The sets.

    Notes
    -----
    Of labels with the same degree, ``mass`` and ``top`` take the one whose column comes first; ``threshold`` takes
    all or none of them. A running sum that misses ``mass`` by rounding alone (1e-12) counts as reaching it.

    Examples
    --------
    >>> from skldl.distributions import to_label_sets
    >>> D = [[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]
    >>> to_label_sets(D, mass=0.8)
    array([[1, 1, 0],
           [0, 0, 1]])
    >>> to_label_sets(D, threshold=0.2, classes=["sky", "sea", "sun"], output="sets")
    [['sky', 'sea', 'sun'], ['sun']]
    """
    values = check_distributions(D, name="D", renormalize=False)  # division could break ties
    check_value("output", output, one_of("indicator", "sets"))
    if sum(rule is not None for rule in (mass, threshold, top)) != 1:
        raise ParameterError(
            "Choose exactly one of ", Parameter("mass"), ", ", Parameter("threshold"), " and ", Parameter("top"), "."
        )
    names = names_of(D, values.shape[1], classes)
    order = np.argsort(-values, axis=1, kind="stable")
    descending = np.take_along_axis(values, order, axis=1)
    if mass is not None:
        check_value("mass", mass, number(above=0, at_most=1))
        before = np.cumsum(descending, axis=1) - descending
        # 1e-12: a running sum that misses the mass by rounding reaches it, and the next label is not needed
        chosen = (before < mass - 1e-12) & (descending > 0)
    elif threshold is not None:
        check_value("threshold", threshold, FRACTION)
        chosen = descending >= threshold
    else:
        assert top is not None
        check_value(
            "top", top, integer(at_least=1, at_most=values.shape[1], hint="the upper bound is the number of labels")
        )
        chosen = np.broadcast_to(np.arange(values.shape[1]) < top, values.shape)
    if output == "sets":
        return [[names[j] for j in row[take]] for row, take in zip(order, chosen, strict=True)]
    indicator = np.zeros(values.shape, dtype=np.intp)
    np.put_along_axis(indicator, order, chosen.astype(np.intp), axis=1)
    return frame_like(D, indicator, names)


def expected_value(D: Any, values: Any) -> Any:
    """Mean of numeric labels under each distribution, such as the expected age or rating.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Distributions.
    values : array-like of shape (n_labels,), dict or Series
        The number that each label represents. A dict, and a pandas Series if D is a DataFrame, are matched by the names
        of the labels; other types are matched by position.

    Returns
    -------
    ndarray or Series of shape (n_samples,)
        Σ_j d_j v_j; a DataFrame gives a Series of the same library.

    Examples
    --------
    >>> from skldl.distributions import expected_value
    >>> expected_value([[0.5, 0.25, 0.25]], [1, 2, 3])
    array([1.75])
    """
    degrees = check_distributions(D, name="D")
    numbers = as_real_array(_values_in_order(values, D, degrees.shape[1]), name="values")
    if numbers.shape != (degrees.shape[1],):
        raise LengthMismatchError(f"values has shape {numbers.shape}, but there are {degrees.shape[1]} labels.")
    if not np.isfinite(numbers).all():
        raise DataError("values must be finite numbers.")
    return series_like(D, degrees @ numbers)


def _values_in_order(values: Any, D: Any, n_labels: int) -> Any:
    """Values that carry the names of labels, in the order of the columns of D."""
    if isinstance(values, Mapping):
        by_name = dict(values)
    elif library(values) == "pandas" and is_series(values):
        if not is_frame(D) and list(values.index) != list(range(len(values))):
            raise DataError(
                "values is a Series with an index, but D has no column names to compare it with. "
                "Pass D as a DataFrame, or values.to_numpy() in the order of the columns of D."
            )
        if not is_frame(D):
            return values.to_numpy()
        if not values.index.is_unique:
            raise DuplicateLabelError("The index of values names a label twice. Each label has one value.")
        by_name = dict(zip(values.index, values.tolist(), strict=True))
    else:
        return values
    names = names_of(D, n_labels)
    missing = [name for name in names if name not in by_name]
    unknown = [name for name in by_name if name not in set(names)]
    if missing or unknown:
        raise DataError(
            f"values and the columns of D name different labels: without a value are {missing}, unknown are {unknown}."
        )
    return [by_name[name] for name in names]


def rank_labels(D: Any, ties: str = "average") -> Any:
    """Rank the labels of each row: 1 for the highest degree.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Distributions.
    ties : {"average", "min", "max", "dense", "ordinal"}, default="average"
        The ranks of labels of the same degree: the mean of their ranks, the smallest, the largest, the smallest without
        gaps after it, or different ranks in the order of the columns.

    Returns
    -------
    ndarray or DataFrame of shape (n_samples, n_labels)
        Ranks.

    Examples
    --------
    >>> from skldl.distributions import rank_labels
    >>> rank_labels([[0.2, 0.5, 0.2, 0.1]])
    array([[2.5, 1. , 2.5, 4. ]])
    """
    check_value("ties", ties, one_of("average", "min", "max", "dense", "ordinal"))
    degrees = check_distributions(D, name="D", renormalize=False)  # division could break ties
    ranks = stats.rankdata(-degrees, method=ties, axis=1).astype(np.float64)
    return frame_like(D, ranks, names_of(D, degrees.shape[1]))


def to_weighted_examples(X: Any, D: Any, sample_weight: Any = None, classes: Any = None) -> tuple[Any, Any, FloatArray]:
    """Turn each row with a distribution into single-label examples, weighted by the degrees.

    This is the problem transformation of Geng (2016): an instance becomes one example per label, and the weight of
    each is the degree of the label. Examples of weight zero are left out. Any classifier that takes ``sample_weight``
    can then learn from distributions.

    Parameters
    ----------
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        Features.
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Distributions.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row, which its examples share out.
    classes : sequence, default=None
        Names of the labels. None uses the columns of a DataFrame, or the positions 0, 1, ….

    Returns
    -------
    X : array, DataFrame or sparse matrix of shape (n_examples, n_features)
        The rows of X, repeated; examples of one row are adjacent, in the order of the labels.
    y : ndarray of shape (n_examples,)
        Labels.
    weight : ndarray of shape (n_examples,)
        Weights; those of one row sum to its weight.

    Examples
    --------
    >>> from skldl.distributions import to_weighted_examples
    >>> X, y, weight = to_weighted_examples([[1.0], [2.0]], [[0.25, 0.75], [0.0, 1.0]], classes=["no", "yes"])
    >>> X.ravel(), y, weight
    (array([1., 1., 2.]), array(['no', 'yes', 'yes'], dtype='<U3'), array([0.25, 0.75, 1.  ]))
    """
    degrees = check_distributions(D, name="D")
    if not sparse.issparse(X) and not is_frame(X):
        X = np.asarray(X)
        if X.ndim != 2:
            raise DimensionError(f"X has {X.ndim} dimension(s), but needs two: one row per instance.")
    check_same_length(X, degrees)
    weight = check_weights(sample_weight, len(degrees))
    if weight is not None:
        degrees = degrees * weight[:, None]
    rows, columns = np.nonzero(degrees)
    if library(X) == "pandas":
        repeated = X.iloc[rows]
    else:
        repeated = X.tocsr()[rows] if sparse.issparse(X) else X[rows]
    return repeated, name_array(names_of(D, degrees.shape[1], classes))[columns], degrees[rows, columns]

"""The step that all problem transformations share: from distributions to single-label examples.

Each pair of a row xᵢ and a label yⱼ becomes one example with the weight wᵢ dᵢⱼ, or examples are drawn with replacement
with probability proportional to it. As the number of draws grows, the second tends to the first, so weights are the
variance-free form of the paper's resampling.
"""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skldl.utils.typing import FloatArray, IntArray

RandomState = int | np.random.RandomState | None


def weighted_pairs(D: FloatArray, sample_weight: FloatArray | None) -> tuple[IntArray, IntArray, FloatArray]:
    """Return row, label and weight wᵢ dᵢⱼ of every pair with a positive weight, row after row.

    Parameters
    ----------
    D : ndarray of shape (n_samples, n_labels)
        Distributions.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights wᵢ; None means ones.

    Returns
    -------
    rows, labels : ndarray of shape (n_pairs,)
        Indices into the rows and the columns of D.
    weights : ndarray of shape (n_pairs,)
        Weight of each pair.

    Examples
    --------
    >>> import numpy as np
    >>> rows, labels, weights = weighted_pairs(np.array([[0.25, 0.75], [0.0, 1.0]]), None)
    >>> rows, labels, weights
    (array([0, 0, 1]), array([0, 1, 1]), array([0.25, 0.75, 1.  ]))
    """
    mass = _mass(D, sample_weight)
    rows, labels = np.nonzero(mass)
    return rows, labels, mass[rows, labels]


def weighted_examples(
    X: Any, D: FloatArray, sample_weight: FloatArray | None = None
) -> tuple[Any, IntArray, FloatArray]:
    """Return the weighted single-label examples: features, labels and weights.

    Pairs without weight are left out, so each row of X comes as often as its distribution has positive degrees.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Features.
    D : ndarray of shape (n_samples, n_labels)
        Distributions.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows; None means ones.

    Returns
    -------
    X_examples : ndarray or CSR matrix of shape (n_examples, n_features)
        Features, in the precision of X.
    labels : ndarray of shape (n_examples,)
        Label of each example, as a column of D.
    weights : ndarray of shape (n_examples,)
        Weight of each example.
    """
    rows, labels, weights = weighted_pairs(D, sample_weight)
    return X[rows], labels, weights


def multinomial_examples(
    D: FloatArray, n_draws: int, sample_weight: FloatArray | None = None, random_state: RandomState = None
) -> tuple[IntArray, IntArray]:
    """Draw single-label examples with replacement, each pair with probability proportional to wᵢ dᵢⱼ.

    Parameters
    ----------
    D : ndarray of shape (n_samples, n_labels)
        Distributions.
    n_draws : int
        Number of examples; the paper draws n_samples · n_labels.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows; None means ones.
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Returns
    -------
    rows, labels : ndarray of shape (n_draws,)
        Indices into the rows and the columns of D, in ascending order of the pair.

    Examples
    --------
    >>> import numpy as np
    >>> rows, labels = multinomial_examples(np.array([[0.2, 0.8], [0.0, 1.0]]), 5, random_state=0)
    >>> rows, labels
    (array([0, 1, 1, 1, 1]), array([1, 1, 1, 1, 1]))
    """
    if n_draws < 1:
        raise ValueError(f"n_draws={n_draws!r} must be at least 1: without a draw there is nothing to learn from.")
    mass = _mass(D, sample_weight).ravel()
    ends = np.cumsum(mass)
    points = np.sort(check_random_state(random_state).uniform(high=ends[-1], size=n_draws))
    pairs = np.searchsorted(ends, points, side="right")
    # A point may be rounded up to the very end, behind the last pair that can be drawn.
    np.minimum(pairs, np.flatnonzero(mass)[-1], out=pairs)
    rows, labels = np.divmod(pairs, D.shape[1])
    return rows, labels


def multinomial_counts(
    D: FloatArray, n_draws: int, sample_weight: FloatArray | None = None, random_state: RandomState = None
) -> FloatArray:
    """Draw as `multinomial_examples` does, and count how often each pair of row and label came.

    Parameters
    ----------
    D : ndarray of shape (n_samples, n_labels)
        Distributions.
    n_draws : int
        Number of examples.
    sample_weight : ndarray of shape (n_samples,), default=None
        Weights of the rows; None means ones.
    random_state : int, RandomState or None, default=None
        Source of randomness.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Counts, which sum to ``n_draws``.

    Examples
    --------
    >>> import numpy as np
    >>> multinomial_counts(np.array([[0.2, 0.8], [0.0, 1.0]]), 5, random_state=0)
    array([[0., 1.],
           [0., 4.]])
    """
    rows, labels = multinomial_examples(D, n_draws, sample_weight, random_state)
    return np.bincount(rows * D.shape[1] + labels, minlength=D.size).reshape(D.shape).astype(np.float64)


def _mass(D: FloatArray, sample_weight: FloatArray | None) -> FloatArray:
    return D if sample_weight is None else sample_weight[:, None] * D

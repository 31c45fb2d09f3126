"""Draws of single-label examples: each pair of a row xᵢ and a label yⱼ with probability proportional to wᵢ dᵢⱼ.

As the number of draws grows, they tend to the weights wᵢ dᵢⱼ of the pairs, which are therefore the form of the paper's
resampling without its variance.
"""

import numpy as np
from sklearn.utils import check_random_state

from skldl.utils.typing import FloatArray, IntArray

RandomState = int | np.random.RandomState | None


def multinomial_examples(
    D: FloatArray, n_draws: int, sample_weight: FloatArray | None = None, random_state: RandomState = None
) -> tuple[IntArray, IntArray]:
    """Draw single-label examples with replacement.

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
    mass = (D if sample_weight is None else sample_weight[:, None] * D).ravel()
    ends = np.cumsum(mass)
    points = np.sort(check_random_state(random_state).uniform(high=ends[-1], size=n_draws))
    pairs = np.searchsorted(ends, points, side="right")
    # a point may be rounded up to the very end, behind the last pair that can be drawn
    np.minimum(pairs, np.flatnonzero(mass)[-1], out=pairs)
    rows, labels = np.divmod(pairs, D.shape[1])
    return rows, labels


def multinomial_counts(
    D: FloatArray, n_draws: int, sample_weight: FloatArray | None = None, random_state: RandomState = None
) -> FloatArray:
    """Draw as `multinomial_examples` does; return how often each pair of row and label was drawn, an array like D."""
    rows, labels = multinomial_examples(D, n_draws, sample_weight, random_state)
    return np.bincount(rows * D.shape[1] + labels, minlength=D.size).reshape(D.shape).astype(np.float64)

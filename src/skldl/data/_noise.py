"""Noise for studies of robustness: exchanged rows, Gaussian noise of the log-ratios. `make_missing` hides degrees.

Each function takes distributions and returns new ones; the argument is not changed, and the same ``random_state`` gives
the same noise.
"""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skldl.simplex import smooth_zeros
from skldl.utils.simplex import softmax
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_distributions

__all__ = ["exchange_rows", "gaussian_log_ratio_noise"]


def exchange_rows(D: Any, share: float, *, random_state: int | np.random.RandomState | None = None) -> FloatArray:
    """Give a share of the rows the distributions of other rows among them.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Distributions.
    share : float
        Share of the rows that exchange their distributions, in [0, 1]; fewer than two rows cannot.
    random_state : int, RandomState or None, default=None
        Source of the rows.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The same distributions in another order.

    Examples
    --------
    >>> from skldl.data import exchange_rows
    >>> exchange_rows([[1.0, 0.0], [0.0, 1.0]], 1.0, random_state=0)
    array([[0., 1.],
           [1., 0.]])
    """
    D = check_distributions(D, name="D").copy()
    if not 0 <= share <= 1:
        raise ValueError(f"share={share!r} must lie between 0 and 1.")
    random = check_random_state(random_state)
    rows = random.permutation(len(D))[: round(share * len(D))]
    if len(rows) > 1:
        D[rows] = D[np.roll(rows, 1)]  # along a cycle, so that no row keeps its own
    return D


def gaussian_log_ratio_noise(
    D: Any, scale: float, *, floor: float = 1e-6, random_state: int | np.random.RandomState | None = None
) -> FloatArray:
    r"""Add Gaussian noise to the centred log-ratios of each row.

    A row d becomes :math:`\mathrm{softmax}(\ln d + \epsilon)` with independent :math:`\epsilon_j \sim N(0,
    \mathtt{scale}^2)`: noise that multiplies degrees and stays on the simplex.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Distributions.
    scale : float
        Standard deviation, at least 0.
    floor : float, default=1e-6
        Share of the uniform distribution that is mixed into rows that hold zeros, whose logarithm is infinite.
    random_state : int, RandomState or None, default=None
        Source of the noise.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Noisy distributions.

    Examples
    --------
    >>> from skldl.data import gaussian_log_ratio_noise
    >>> gaussian_log_ratio_noise([[0.5, 0.3, 0.2]], 0.1, random_state=0).round(2)
    array([[0.53, 0.28, 0.2 ]])
    """
    D = check_distributions(D, name="D")
    if not 0 <= scale < np.inf:
        raise ValueError(f"scale={scale!r} must be at least 0 and finite.")
    if not 0 < floor < 1:
        raise ValueError(f"floor={floor!r} must lie between 0 and 1, such as 1e-6.")
    random = check_random_state(random_state)
    holes = (D == 0).any(axis=1)
    D = np.where(holes[:, None], smooth_zeros(D, floor), D)
    return softmax(np.log(D) + random.normal(scale=scale, size=D.shape))

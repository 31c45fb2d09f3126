r"""The artificial dataset of Geng (2016, Section 5.2): three features, three labels, no noise.

For :math:`x \in [-1, 1]^3`,

.. math::
    t_i &= x_i + 0.5 x_i^2 + 0.2 x_i^3 + 1, \\
    \psi_1 &= (w_1^\top t)^2, \quad
    \psi_2 = (w_2^\top t + 0.01 \psi_1)^2, \quad
    \psi_3 = (w_3^\top t + 0.01 \psi_2)^2, \\
    d_i &= \psi_i / (\psi_1 + \psi_2 + \psi_3),

with :math:`w_1 = (4, 2, 1)`, :math:`w_2 = (1, 2, 4)` and :math:`w_3 = (1, 4, 2)`. All :math:`t_i` are positive on the
cube, so no degree is zero.
"""

import numpy as np
from sklearn.utils import check_random_state

from skldl.simplex import normalize
from skldl.utils.parameters import COUNT, check_value
from skldl.utils.typing import FloatArray

GRID_SIZE = 201
_WEIGHTS = np.array([[4.0, 2.0, 1.0], [1.0, 2.0, 4.0], [1.0, 4.0, 2.0]])
_COUPLING = 0.01


def _distributions(X: FloatArray) -> FloatArray:
    t = X + 0.5 * X**2 + 0.2 * X**3 + 1.0
    linear = t @ _WEIGHTS.T
    psi = np.empty_like(linear)
    psi[:, 0] = linear[:, 0] ** 2
    psi[:, 1] = (linear[:, 1] + _COUPLING * psi[:, 0]) ** 2
    psi[:, 2] = (linear[:, 2] + _COUPLING * psi[:, 1]) ** 2
    return normalize(psi)


def make_artificial(
    n_samples: int = 500, random_state: int | np.random.RandomState | None = None
) -> tuple[FloatArray, FloatArray]:
    r"""Draw the artificial training set of Geng (2016): x uniform on the cube, D a function of x.

    With :math:`t_i = x_i + 0.5 x_i^2 + 0.2 x_i^3 + 1`, the degrees are proportional to
    :math:`\psi_1 = (w_1^\top t)^2`, :math:`\psi_2 = (w_2^\top t + 0.01 \psi_1)^2` and
    :math:`\psi_3 = (w_3^\top t + 0.01 \psi_2)^2`, where :math:`w_1 = (4, 2, 1)`, :math:`w_2 = (1, 2, 4)` and
    :math:`w_3 = (1, 4, 2)`.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows; the paper takes 500.
    random_state : int, RandomState or None, default=None
        Seed of the features. The same seed gives the same data.

    Returns
    -------
    X : ndarray of shape (n_samples, 3)
        Features, uniform on [-1, 1].
    D : ndarray of shape (n_samples, 3)
        Their distributions.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.

    Examples
    --------
    >>> from skldl.data import make_artificial
    >>> X, D = make_artificial(random_state=0)
    >>> X.shape, D.shape
    ((500, 3), (500, 3))
    """
    check_value("n_samples", n_samples, COUNT)
    X = check_random_state(random_state).uniform(-1.0, 1.0, size=(int(n_samples), 3))
    return X, _distributions(X)


def artificial_manifold() -> tuple[FloatArray, FloatArray]:
    r"""Return the artificial test set of Geng (2016): a surface over a grid of 201 × 201 points, without randomness.

    :math:`x_1` and :math:`x_2` run over -1, -0.99, …, 1, and :math:`x_3 = \sin(\pi (x_1 + x_2))`.

    Returns
    -------
    X : ndarray of shape (40401, 3)
        Features. Row ``201 * i + j`` has the i-th value of :math:`x_1` and the j-th value of :math:`x_2`.
    D : ndarray of shape (40401, 3)
        Their distributions. ``D.reshape(201, 201, 3)`` is an image with :math:`x_1` growing downwards and
        :math:`x_2` to the right.

    Examples
    --------
    >>> from skldl.data import artificial_manifold
    >>> X, D = artificial_manifold()
    >>> X.shape, D.reshape(201, 201, 3).shape
    ((40401, 3), (201, 201, 3))
    """
    axis = np.arange(-(GRID_SIZE // 2), GRID_SIZE // 2 + 1) / 100.0  # exact to the last digit, unlike repeated steps
    x1, x2 = (grid.ravel() for grid in np.meshgrid(axis, axis, indexing="ij"))
    X = np.column_stack([x1, x2, np.sin(np.pi * (x1 + x2))])
    return X, _distributions(X)

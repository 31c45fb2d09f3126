r"""Generated data: the artificial dataset of Geng (2016), and distributions with missing degrees or with noise.

The artificial dataset (Section 5.2 of the paper) has three features, three labels and no noise.

The equations are those of `make_artificial`. All :math:`t_i` are positive on the cube, so that no degree is zero.
"""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from skldl.exceptions import DataError, Parameter
from skldl.simplex import normalize, smooth_zeros, softmax
from skldl.utils.parameters import COUNT, FRACTION, NONE, check_value, integer, one_of
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_distributions

GRID_SIZE = 201
_WEIGHTS = np.array([[4.0, 2.0, 1.0], [1.0, 2.0, 4.0], [1.0, 4.0, 2.0]])
_COUPLING = 0.01


def _distributions(X: FloatArray) -> FloatArray:
    """Distributions as a function of the features, see `make_artificial`."""
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
    axis = np.arange(-(GRID_SIZE // 2), GRID_SIZE // 2 + 1) / 100.0  # correctly rounded, unlike sums of steps
    x1, x2 = (grid.ravel() for grid in np.meshgrid(axis, axis, indexing="ij"))
    X = np.column_stack([x1, x2, np.sin(np.pi * (x1 + x2))])
    return X, _distributions(X)


MECHANISMS = ("uniform", "degree", "label")
MIN_OBSERVED = 2  # labels in a row: one observed degree has no ratio to another


def make_missing(
    D: Any,
    rate: float = 0.5,
    *,
    mechanism: str = "uniform",
    renormalise: bool = False,
    keep: int = MIN_OBSERVED,
    random_state: int | None = 0,
) -> FloatArray:
    r"""Hide degrees of label distributions: NaN where they are hidden.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Distributions.
    rate : float, default=0.5
        Fraction of the cells to hide, from 0 to 1.
    mechanism : {"uniform", "degree", "label"}, default="uniform"
        How cells are drawn. "uniform": each cell with the same probability. "degree": preferably small degrees; in each
        row cells are drawn one after the other with probabilities proportional to 1 − d. "label": whole labels, the
        same in all rows except for a random tenth of the rows, which are fully observed.
    renormalise : bool, default=False
        Whether the observed degrees are divided by their sum, so that only ratios are known.
    keep : int, default=2
        Minimum number of observed labels in each row; a single one has no ratio to another. At high rates, fewer cells
        are hidden for this reason.
    random_state : int, default=0
        Seed.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        The degrees, NaN if hidden. A row whose observed degrees are all zero keeps its largest degree, too.

    Examples
    --------
    >>> from skldl.data import make_missing
    >>> make_missing([[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], rate=0.34)
    array([[nan, 0.3, 0.2],
           [0.2, nan, 0.6]])
    """
    check_value("rate", rate, FRACTION)
    check_value("mechanism", mechanism, one_of(*MECHANISMS))
    check_value("random_state", random_state, NONE | integer(at_least=0))
    table = check_distributions(D, name="D")
    n_samples, n_labels = table.shape
    if not 1 <= keep <= n_labels:
        raise DataError(Parameter("keep", keep), f" must lie between 1 and the number of labels, {n_labels}.")
    # not the plain seed: degrees drawn from default_rng of the same seed would be correlated with the gaps
    generator = np.random.default_rng(None if random_state is None else [random_state, len("make_missing")])
    if mechanism == "label":
        n_hidden = min(round(rate * n_labels), n_labels - keep)
        labels = generator.permutation(n_labels)[:n_hidden]
        rows = generator.permutation(n_samples)[-(-n_samples // 10) :]
        gaps = np.zeros(table.shape, dtype=bool)
        gaps[np.ix_(rows, labels)] = True
    else:
        # the order of the keys is a weighted draw without replacement (Efraimidis and Spirakis, 2006), with weights 1
        # or 1 − d; 1e-9 avoids a division by zero for d = 1
        odds = np.ones_like(table) if mechanism == "uniform" else np.maximum(1.0 - table, 1e-9)
        keys = generator.exponential(size=table.shape) / odds
        place = keys.argsort(axis=1).argsort(axis=1)
        exact = rate * n_labels
        number = np.floor(exact) + (generator.uniform(size=n_samples) < exact - np.floor(exact))
        gaps = place < np.minimum(number, n_labels - keep)[:, None]
    empty = np.where(gaps, 0.0, table).sum(axis=1) == 0
    gaps[np.flatnonzero(empty), table.argmax(axis=1)[empty]] = False
    hidden = np.where(gaps, np.nan, table)
    return np.asarray(hidden / np.nansum(hidden, axis=1, keepdims=True) if renormalise else hidden)


def exchange_rows(D: Any, share: float, *, random_state: int | np.random.RandomState | None = None) -> FloatArray:
    """Exchange the distributions of a random fraction of the rows among these rows.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Distributions.
    share : float
        Fraction of the rows that exchange their distributions, in [0, 1]; nothing changes for less than two rows.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

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
        raise DataError(Parameter("share", share), " must lie between 0 and 1.")
    random = check_random_state(random_state)
    rows = random.permutation(len(D))[: round(share * len(D))]
    if len(rows) > 1:
        D[rows] = D[np.roll(rows, 1)]  # a cyclic permutation, so that no row keeps its distribution
    return D


def gaussian_log_ratio_noise(
    D: Any, scale: float, *, floor: float = 1e-6, random_state: int | np.random.RandomState | None = None
) -> FloatArray:
    r"""Add Gaussian noise to the centred log-ratios of each row.

    A row d becomes :math:`\mathrm{softmax}(\ln d + \epsilon)` with independent :math:`\epsilon_j \sim N(0,
    \mathtt{scale}^2)`: multiplicative noise that stays on the simplex.

    Parameters
    ----------
    D : array-like or DataFrame of shape (n_samples, n_labels)
        Distributions.
    scale : float
        Standard deviation, at least 0.
    floor : float, default=1e-6
        Weight of the uniform distribution that is mixed into rows with zeros, whose logarithm is infinite.
    random_state : int, RandomState or None, default=None
        Seed of the noise.

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
        raise DataError(Parameter("scale", scale), " must be at least 0 and finite.")
    if not 0 < floor < 1:
        raise DataError(Parameter("floor", floor), " must lie between 0 and 1, such as 1e-6.")
    random = check_random_state(random_state)
    holes = (D == 0).any(axis=1)
    D = np.where(holes[:, None], smooth_zeros(D, floor), D)
    return softmax(np.log(D) + random.normal(scale=scale, size=D.shape))

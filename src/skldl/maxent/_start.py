"""The weights at which the search of a maximum entropy model begins."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from skldl._typing import FloatArray

Init = Literal["zeros", "eye"] | npt.ArrayLike


def starting_weights(init: Any, n_features: int, n_labels: int) -> FloatArray | None:
    """Return θ⁰ of shape (n_features, n_labels), or None for zeros.

    Parameters
    ----------
    init : {"zeros", "eye"} or array-like of shape (n_features, n_labels)
        "eye" is ``numpy.eye(n_features, n_labels)``, as in the code published with Geng (2016).
    n_features, n_labels : int
        The shape that the weights must have.

    Examples
    --------
    >>> from skldl.maxent._start import starting_weights
    >>> starting_weights("eye", 3, 2)
    array([[1., 0.],
           [0., 1.],
           [0., 0.]])
    """
    if isinstance(init, str):
        if init == "zeros":
            return None
        if init == "eye":
            return np.eye(n_features, n_labels)
        raise ValueError(f"init={init!r} is not known: choose 'zeros', 'eye' or an array (n_features, n_labels).")
    try:
        theta = np.array(init, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init must be 'zeros', 'eye' or an array of numbers, not {init!r}.") from error
    if theta.shape != (n_features, n_labels):
        raise ValueError(
            f"init has shape {theta.shape}, but the weights have shape {(n_features, n_labels)}: one row for each "
            "feature, one column for each label (the transpose of coef_)."
        )
    if not np.isfinite(theta).all():
        raise ValueError("init holds numbers that are not finite. Begin at finite weights.")
    return theta

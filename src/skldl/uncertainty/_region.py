"""`Region`: the conformal prediction region of each row."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skldl.exceptions import LengthMismatchError
from skldl.utils.parameters import number
from skldl.utils.typing import BoolArray, FloatArray
from skldl.utils.validation import check_distributions

LEVEL = number(above=0, below=1, hint="it is a probability, for instance 0.9")


class TooFewCalibrationRowsWarning(UserWarning):
    """There are too few calibration rows for the level that was asked for, so the region is the whole simplex.

    Examples
    --------
    >>> import warnings
    >>> from skldl import SABFGS
    >>> from skldl.testing import make_distributions
    >>> from skldl.uncertainty import ConformalLDL
    >>> X, D = make_distributions(20)
    >>> model = ConformalLDL(SABFGS(), method="split", random_state=0).fit(X, D)
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     region = model.predict_region(X[:1], level=0.99)
    >>> [warning.category.__name__ for warning in caught]
    ['TooFewCalibrationRowsWarning']
    """


@dataclass(frozen=True, eq=False)
class Region:
    """One region of distributions for each row.

    Attributes
    ----------
    center : ndarray of shape (n_samples, n_labels)
        The predictions.
    radius : ndarray of shape (n_samples,)
        Greatest score inside the region; infinity where the region is the whole simplex.
    lower, upper : ndarray of shape (n_samples, n_labels)
        Least and greatest degree of each label inside the region. They are consistent with the simplex: for each of
        them a distribution of the region exists that attains it (in CV+, of the ball of this radius that holds it).
    level : float
        The level that was asked for.
    score : {"total_variation", "kullback_leibler", "label"}
        The score that the radius is measured in.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl import SABFGS
    >>> from skldl.testing import make_distributions
    >>> from skldl.uncertainty import ConformalLDL
    >>> X, D = make_distributions(100)
    >>> region = ConformalLDL(SABFGS(), method="split", random_state=0).fit(X, D).predict_region(X[:2], level=0.8)
    >>> region.center.shape, region.radius.shape
    ((2, 3), (2,))
    """

    center: FloatArray
    radius: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    score: str
    _inside: Any = field(repr=False)

    def contains(self, D: Any) -> BoolArray:
        """Return for each row whether a distribution is in its region.

        Parameters
        ----------
        D : array-like of shape (n_samples, n_labels)
            One distribution for each row.

        Returns
        -------
        ndarray of bool of shape (n_samples,)
            True where it does.
        """
        rows = check_distributions(D, name="D")
        if rows.shape != self.center.shape:
            raise LengthMismatchError(
                f"D has shape {rows.shape}, the region {self.center.shape}. Pass one distribution for each row that "
                "the region was predicted for."
            )
        return np.asarray(self._inside(rows))

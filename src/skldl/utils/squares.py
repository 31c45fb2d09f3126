"""Range checks for squared features."""

from typing import Any

from skldl.exceptions import DataError

LARGEST = 1e150
"""Sums of squares of larger numbers would overflow, and those of numbers below 1/LARGEST vanish."""


def check_squares(X: Any) -> None:
    """Refuse features whose squares overflow, or all of whose squares vanish.

    Parameters
    ----------
    X : ndarray or sparse matrix
        Features.

    Examples
    --------
    >>> import numpy as np
    >>> check_squares(np.array([[1e200]]))
    Traceback (most recent call last):
        ...
    skldl.exceptions.DataError: X holds numbers up to 1e+200, whose squares are too large for double precision. ...
    """
    check_range(float(X.min()), float(X.max()))


def check_range(least: float, greatest: float, *, is_part: bool = False) -> None:
    """Refuse features with these ends as `check_squares` does; of a part of the rows all squares may vanish."""
    largest = max(greatest, -least)
    if largest == 0 or ((is_part or largest >= 1 / LARGEST) and largest <= LARGEST):
        return
    size = "small" if largest < 1 else "large"
    raise DataError(
        f"X holds numbers up to {largest:.3g}, whose squares are too {size} for double precision. Multiply X by a "
        "power of ten, so that its features are of the order of 1."
    )

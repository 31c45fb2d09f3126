"""Checks of hyper-parameters and groups that the tree ensembles share."""

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from skldl._typing import FloatArray, IntArray
from skldl.exceptions import LengthMismatchError


def check_count(name: str, value: Any, *, least: int, alternative: str | None = None) -> None:
    """Demand a whole number."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}{_or(alternative)}.")


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float = np.inf,
    alternative: str | None = None,
) -> None:
    """Demand a finite number in a range that may or may not hold its lower end."""
    good = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value)) and value <= most
    if not good or (least is not None and value < least) or (above is not None and value <= above):
        lower = f"at least {least:g}" if least is not None else f"above {above:g}"
        upper = "" if most == np.inf else f" and at most {most:g}"
        raise ValueError(f"{name}={value!r} must be a number {lower}{upper}{_or(alternative)}.")


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Demand one of a few words."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, choices))}.")


def _or(alternative: str | None) -> str:
    return f", or {alternative}" if alternative else ""


def check_groups(groups: Any, n_samples: int, sample_weight: Any) -> IntArray | None:
    """Groups of the rows that have weight, numbered from 0, or None; one group alone cannot be held out."""
    if groups is None:
        return None
    names = np.asarray(groups)
    if names.shape != (n_samples,):
        raise LengthMismatchError(f"groups has shape {names.shape}, but there are {n_samples} rows. Pass one per row.")
    if sample_weight is not None:
        names = names[np.broadcast_to(sample_weight, n_samples) != 0]
    number = np.unique(names, return_inverse=True)[1]
    if number.max() == 0:
        raise ValueError("groups holds one group only, so that nothing can be held out. Leave groups out.")
    return np.asarray(number)


def count_given(D: FloatArray, sample_weight: Any) -> int:
    """Number of rows that came in, of which D holds those that have weight."""
    return len(D) if sample_weight is None or np.ndim(sample_weight) == 0 else len(np.asarray(sample_weight))


def put_in_order(D: FloatArray) -> IntArray:
    """Order of the labels by their degrees, so that a fit does not depend on the order in which they came.

    Sorted by the sum of degrees, and by sums that depend on the order of the rows where labels tie.
    """
    ramp = np.arange(1, len(D) + 1) / len(D)
    return np.lexsort((ramp**2 @ D, ramp @ D, D.sum(axis=0)))

"""Greatest values that measures can take on distributions over c labels, as numbers and in print."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Bound:
    """A bound with the text that prints it and the number it is for a given number of labels.

    Attributes
    ----------
    text : str
        The bound in print; c is the number of labels.
    value : callable
        From the number of labels (and the options of the measure, as keywords) to the bound.

    Examples
    --------
    >>> from skldl.metrics import MEASURES
    >>> bound = MEASURES["clark"].bound
    >>> bound.text, bound.value(4)
    ('√c', 2.0)
    """

    text: str
    value: Callable[..., float]


def constant(text: str, value: float) -> Bound:
    """Make a bound that does not depend on the number of labels or on options."""

    def same(n_labels: int, **options: Any) -> float:
        return value

    return Bound(text, same)


HALF = constant("1/2", 0.5)
ONE = constant("1", 1.0)
THREE_HALVES = constant("3/2", 1.5)
TWO = constant("2", 2.0)
FOUR = constant("4", 4.0)
ROOT_TWO = constant("√2", math.sqrt(2.0))
LN_TWO = constant("ln 2", math.log(2.0))
TWICE_LN_TWO = constant("2 ln 2", 2.0 * math.log(2.0))
INFINITY = constant("∞", math.inf)
LABELS = Bound("c", lambda n_labels: n_labels)
TWICE_LABELS = Bound("2c", lambda n_labels: 2.0 * n_labels)
ROOT_LABELS = Bound("√c", lambda n_labels: math.sqrt(n_labels))
TWO_PER_LABEL = Bound("2/c", lambda n_labels: 2.0 / n_labels)

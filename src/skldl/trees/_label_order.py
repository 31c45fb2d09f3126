"""An order of the labels that does not depend on the order in which they came."""

import numpy as np

from skldl.utils.typing import FloatArray, IntArray


def put_in_order(D: FloatArray) -> IntArray:
    """Order of the labels by their degrees, so that a fit does not depend on the order in which they came.

    Sorted by the sum of degrees, and by sums that depend on the order of the rows where labels tie.
    """
    ramp = np.arange(1, len(D) + 1) / len(D)
    return np.lexsort((ramp**2 @ D, ramp @ D, D.sum(axis=0)))

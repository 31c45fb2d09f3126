"""Validation of the weights of rows."""

from typing import Any

import numpy as np

from skldl.exceptions import SampleWeightError
from skldl.utils.arrays import is_device_array, space_of
from skldl.utils.device_validation import check_device_weights, check_one_weight_each, follow
from skldl.utils.real_numbers import refuse_unreal
from skldl.utils.row_numbers import row_number as _row
from skldl.utils.typing import FloatArray


def check_weights(
    sample_weight: Any, n_samples: int, like: Any = None, *, may_be_zero: bool = False
) -> FloatArray | None:
    """Return the weights as float64, or None where every row counts the same.

    They live where ``like`` does, rows that were checked. With ``may_be_zero`` all may be zero: other rows have weight.
    """
    if sample_weight is None:
        return None
    if like is not None and is_device_array(like):
        where = space_of(like)
        assert where is not None  # X was validated before
        return check_device_weights(sample_weight, n_samples, where)
    follow(sample_weight, None, name="sample_weight")
    refuse_unreal(sample_weight, name="sample_weight", error=SampleWeightError)
    weight = np.asarray(sample_weight)
    if weight.ndim == 0:
        weight = np.full(n_samples, weight)
    try:
        weight = weight.astype(np.float64)
    except (ValueError, TypeError) as error:
        raise SampleWeightError(f"sample_weight must hold numbers, one per row ({error}).") from error
    check_one_weight_each(weight, n_samples)
    if not np.isfinite(weight).all():
        row = int(np.argmin(np.isfinite(weight)))
        raise SampleWeightError(
            f"sample_weight of row {_row(row)} is {weight[row]}. Give such rows weight 0 or drop them."
        )
    if weight.min() < 0:
        row = int(np.argmax(weight < 0))
        raise SampleWeightError(f"sample_weight of row {_row(row)} is {weight[row]:g}. Weights are at least zero.")
    if weight.max() == 0 and not may_be_zero:
        raise SampleWeightError("sample_weight is zero for every row, so nothing is left to learn from.")
    return weight

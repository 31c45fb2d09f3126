"""Copies of fitted models whose arrays are NumPy's: what was fitted on a device, for machines that have none.

Estimators that keep training rows (`AAKNN`, `KernelRidgeLDL`) keep them where they were fitted. A copy is made by
pickling: on the way arrays of other libraries become arrays of NumPy in double precision, and an object with a method
``_on_host`` becomes what that method returns.
"""

import io
import pickle
from typing import Any

import numpy as np

from skldl.utils.arrays import is_foreign, to_numpy
from skldl.utils.typing import AnyArray

_OWN = ("skldl", "sklearn")


def host_copy(model: Any) -> Any:
    """Return a model without arrays of other libraries: itself if it holds none, else a copy of NumPy arrays."""
    if not holds_foreign_arrays(model):
        return model
    stream = io.BytesIO()
    _ToHost(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(model)
    return pickle.loads(stream.getvalue())  # our own bytes, made in the line above


def holds_foreign_arrays(model: Any) -> bool:
    """Say whether an estimator, or what it consists of, holds an array of a library other than NumPy."""
    seen: set[int] = set()
    left = [model]
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if is_foreign(part):
            return True
        if isinstance(part, dict):
            left += part.values()
        elif isinstance(part, list | tuple):
            left += part
        elif type(part).__module__.partition(".")[0] in _OWN:
            left += getattr(part, "__dict__", {}).values()
    return False


class _ToHost(pickle.Pickler):
    """A pickler that turns arrays of other libraries into NumPy's."""

    def reducer_override(self, value: Any) -> Any:
        if is_foreign(value) and hasattr(value, "shape"):
            return _itself, (_on_host(value),)
        if not isinstance(value, type) and hasattr(value, "_on_host"):
            return _itself, (value._on_host(),)
        return NotImplemented


def _on_host(array: Any) -> AnyArray:
    values = to_numpy(array)
    return values.astype(np.float64) if values.dtype.kind == "f" else values


def _itself(value: Any) -> Any:
    return value

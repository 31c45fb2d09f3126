"""Which kernels on which scaled features are compared."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skldl.kernel._kernels import FAMILIES, KernelFunction
from skldl.utils.arrays import as_type_of, count_true, is_device_array, namespace
from skldl.utils.scaling import SCALINGS, is_non_negative, two_valued_columns

MOST_OPERATIONS = 5e10
"""Operations for the L1 distances of all rows, some 20 s, beyond which they are not tried."""
SPARSE_DENSITY = 0.05
"""Features with a smaller share of non-zeros are stored as a sparse matrix: products are quicker, χ² is not tried."""


@dataclass(frozen=True)
class Candidate:
    """A kernel on scaled features; the width is in units of the median distance."""

    kernel: str | KernelFunction
    scaling: str
    width: float

    @property
    def metric(self) -> str:
        """Distance that the kernel, which has a name, rests on."""
        return FAMILIES[str(self.kernel)].distance


def candidates_for(X: Any, kernel: str | KernelFunction, scaling: str, width: float | None) -> list[Candidate]:
    """List the candidates that suit the data; what is given is fixed."""
    non_negative = is_non_negative(X)
    if scaling != "auto":
        scalings: tuple[str, ...] = (scaling,)
    elif callable(kernel):
        scalings = ("raw",)
    else:
        scalings = SCALINGS if non_negative else SCALINGS[:2]
    if kernel == "auto":
        kernels: tuple[str | KernelFunction, ...] = _families_for(X, non_negative)
    else:
        kernels = (kernel,)
    found = []
    for name in kernels:
        widths = (1.0,) if callable(name) else FAMILIES[name].widths
        for scale in scalings:
            if name == "chi2" and scaling == "auto" and scale != "raw":
                continue  # χ² has a separate scale for each feature, and needs non-negative features
            found += [Candidate(name, scale, w) for w in (widths if width is None or name == "linear" else (width,))]
    return found


def has_width(candidate: Candidate) -> bool:
    """Say whether the kernel has a width to choose."""
    return not callable(candidate.kernel) and candidate.kernel != "linear"


def density(X: Any) -> float:
    """Share of features that are not zero."""
    return _n_non_zero(X) / (X.shape[0] * X.shape[1])


def _n_non_zero(X: Any) -> int:
    return int(X.count_nonzero()) if sparse.issparse(X) else count_true(X != 0)


def _families_for(X: Any, non_negative: bool) -> tuple[str, ...]:
    """Kernels that the features allow, and whose distances between all rows do not take too long.

    Matrix products compute L2 distances, and L1 distances of two-valued features; for other features L1 and χ² need
    one operation for each pair of rows and each of a row's non-zeros.
    """
    many_valued = ~two_valued_columns(X)
    if is_device_array(X):
        part = namespace(X).take(X, as_type_of(np.flatnonzero(many_valued), X, namespace(X).int64), axis=1)
    else:
        part = X[:, many_valued]
    operations = X.shape[0] * _n_non_zero(part)
    refused = set()
    if operations > MOST_OPERATIONS:
        refused.add("laplacian")
    if not (non_negative and many_valued.any() and density(X) > SPARSE_DENSITY and operations <= MOST_OPERATIONS / 4):
        refused.add("chi2")
    return tuple(name for name in FAMILIES if name not in refused)

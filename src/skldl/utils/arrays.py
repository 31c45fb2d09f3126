"""Arrays of other libraries, such as torch tensors and CuPy arrays: where they live, and operations on any array.

NumPy arrays, tables, lists and sparse matrices are computed with NumPy. Arrays of other libraries are computed where
they are if ``sklearn.set_config(array_api_dispatch=True)`` is set, as in scikit-learn. Then everything follows X: its
library, its device and its precision.
"""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn import get_config

from skldl.exceptions import DeviceError
from skldl.utils.dependencies import array_api_compat
from skldl.utils.typing import AnyArray, FloatArray

PRODUCT_ROWS = 2048
"""Products of single precision are summed over so many rows at a time, and these sums in double precision."""
SETTING = "sklearn.set_config(array_api_dispatch=True)"
_LIBRARIES = ("torch", "cupy", "jax", "jaxlib", "dpnp", "array_api_strict")
DEVICE_CELLS = 2**26
"""Temporary arrays on a device hold at most about this many numbers: enough to keep an accelerator busy."""
MEAN_CELLS = 2**18
"""Those of a mean in NumPy hold at most about this many: 2 MiB, which stay in the cache."""


class Space(NamedTuple):
    """A namespace of the array API and a device in it."""

    xp: Any
    device: Any

    def __str__(self) -> str:
        return "NumPy" if self.device is None else f"{library_name(self.xp)} on {self.device}"

    def asarray(self, values: Any, dtype: Any = None) -> Any:
        """Numbers of NumPy, or a list of them, as an array here."""
        return self.xp.asarray(values, dtype=dtype, device=self.device)


def is_foreign(values: Any) -> bool:
    """Whether something is an array of a library other than NumPy, which may live on another device."""
    if isinstance(values, np.ndarray | np.generic | list | tuple):
        return False
    return type(values).__module__.partition(".")[0] in _LIBRARIES


def is_device_array(values: Any) -> bool:
    """Whether a validated array is computed in its own library, because it is not NumPy's."""
    return not isinstance(values, np.ndarray) and is_foreign(values)


def space_of(values: Any, *, name: str = "X") -> Space | None:
    """Library and device of an array that is computed there; None for everything that is computed with NumPy.

    An array outside of the main memory is an error if the setting is off; ``name`` is what the message calls it.
    """
    if not is_foreign(values):
        return None
    if get_config()["array_api_dispatch"]:
        return Space(array_api_compat().array_namespace(values), array_api_compat().device(values))
    device = array_api_compat().device(values)
    if "cpu" not in str(device).lower():
        raise DeviceError(
            f"{name} is on the device {device}. To compute there, call {SETTING} (with SCIPY_ARRAY_API=1 in the "
            "environment); to compute with NumPy, move it to the CPU first."
        )
    return None


def namespace(array: Any) -> Any:
    """NumPy for its own arrays, else the namespace of the array's library."""
    return np if isinstance(array, np.ndarray) else array_api_compat().array_namespace(array)


def space(array: Any) -> Space:
    """Namespace and device of an array; the device of NumPy is None."""
    return (
        Space(np, None) if isinstance(array, np.ndarray) else Space(namespace(array), array_api_compat().device(array))
    )


def library_name(xp: Any) -> str:
    """Name of the library behind a namespace."""
    return str(xp.__name__).rpartition(".")[2]


def to_numpy(array: Any) -> AnyArray:
    """Copy an array to NumPy; one of NumPy comes back as it is."""
    if isinstance(array, np.ndarray):
        return array
    library = library_name(namespace(array))
    if library == "torch":
        return np.asarray(array.detach().cpu().numpy())
    if library == "cupy":
        return np.asarray(array.get())
    if library == "array_api_strict":
        xp = namespace(array)
        return np.asarray(xp.asarray(array, device=xp.Device("CPU_DEVICE")))
    return np.asarray(array)


def to_numpy_together(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arrays and numbers with those of a device in NumPy and double precision, all in one copy: each copy waits."""
    there = [value for value in values if is_device_array(value)]
    if not there:
        return values
    xp = namespace(there[0])
    host = to_numpy(xp.concat([xp.reshape(as_double(value), (-1,)) for value in there]))
    ends = np.cumsum([math.prod(value.shape) for value in there])
    parts = iter([part.reshape(value.shape) for part, value in zip(np.split(host, ends[:-1]), there, strict=True)])
    return tuple(next(parts) if is_device_array(value) else value for value in values)


def rows_on_host(X: Any, D: Any, weight: Any) -> tuple[AnyArray, FloatArray, FloatArray | None]:
    """The same rows in NumPy, with distributions in double precision that sum to one in it."""
    host = np.asarray(to_numpy(D), dtype=np.float64)
    host = host / host.sum(axis=1, keepdims=True)
    return to_numpy(X), host, None if weight is None else to_numpy(weight)


def as_type_of(values: Any, array: Any, dtype: Any = None) -> Any:
    """Convert NumPy's numbers to the library and device of an array and, unless a dtype is given, to its dtype."""
    if isinstance(array, np.ndarray):
        return np.asarray(values, dtype=dtype or array.dtype)
    xp, device = space(array)
    values = values if is_foreign(values) else np.ascontiguousarray(values)
    return xp.asarray(values, dtype=dtype or array.dtype, device=device)


def as_double(array: Any, *, copy: bool = False) -> Any:
    """The array in double precision; without ``copy`` the array itself if it has that precision."""
    xp = namespace(array)
    if xp is np:
        return array.astype(np.float64, copy=copy)
    return xp.astype(array, xp.float64, copy=copy)


def take_rows(array: Any, rows: Any) -> Any:
    """Rows by position; the positions may be NumPy's."""
    if not is_foreign(array):
        return array[rows]
    xp, device = space(array)
    if not is_foreign(rows):
        rows = xp.asarray(np.asarray(rows, dtype=np.int64), device=device)
    return xp.take(array, rows, axis=0)


def sum_in_double(array: Any, axis: int | None = None) -> Any:
    """Sum whose running total is in double precision."""
    xp = namespace(array)
    return xp.sum(array, axis=axis, dtype=xp.float64)


def at_least(values: Any, low: float) -> Any:
    """The larger of each number and ``low``."""
    xp = namespace(values)
    return np.maximum(values, low) if xp is np else xp.clip(values, low)


def copy_of(array: Any) -> Any:
    """A copy of an array or of a sparse matrix."""
    return namespace(array).asarray(array, copy=True) if is_foreign(array) else array.copy()


def first_true(truth: Any) -> int:
    """Position of the first true value of a vector of truth values."""
    xp = namespace(truth)
    return int(xp.argmax(truth if xp is np else xp.astype(truth, xp.int32)))


def count_true(truth: Any) -> int:
    """Number of true values in an array of truth values."""
    xp = namespace(truth)
    return int(xp.count_nonzero(truth) if hasattr(xp, "count_nonzero") else xp.sum(xp.astype(truth, xp.int64)))


def ones_for(rows: Any) -> Any:
    """Vector of ones in double precision, one for each row, where the rows are; these may be sparse."""
    if not is_foreign(rows):
        return np.ones(rows.shape[0])
    xp, device = space(rows)
    return xp.ones((rows.shape[0],), dtype=xp.float64, device=device)


def subtract_outer(values: Any, left: Any, right: Any) -> None:
    """Subtract the outer product of two vectors from a matrix, in place."""
    if hasattr(values, "addr_"):  # torch, without a temporary matrix
        values.addr_(left, right, alpha=-1.0)
    else:
        values -= left[:, None] * right


def least_number(X: Any) -> float:
    """The least number of an array or a sparse matrix."""
    return float(namespace(X).min(X) if is_foreign(X) else X.min())


def least_of_rows(values: Any, count: int) -> tuple[Any, Any]:
    """The least numbers of each row, ascending, and their positions."""
    xp = namespace(values)
    if hasattr(xp, "topk"):
        least, found = xp.topk(values, count, dim=1, largest=False, sorted=True)
        return least, found
    order = xp.argsort(values, axis=1)[:, :count]
    return xp.take_along_axis(values, order, axis=1), order


def row_blocks(n_rows: int, cells_per_row: int, cells: int = DEVICE_CELLS) -> Iterator[slice]:
    """Cut rows into blocks of a bounded number of cells."""
    size = max(1, cells // max(1, cells_per_row))
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def is_device_memory_fault(error: BaseException) -> bool:
    """Whether an error says that the memory of a device is full: those of torch and CuPy are no MemoryError.

    Examples
    --------
    >>> from skldl.utils.arrays import is_device_memory_fault
    >>> class OutOfMemoryError(RuntimeError): pass  # as in torch
    >>> is_device_memory_fault(OutOfMemoryError()), is_device_memory_fault(RuntimeError())
    (True, False)
    """
    return any(cls.__name__ == "OutOfMemoryError" for cls in type(error).__mro__)


@contextmanager
def computing_on(array: Any, what: str) -> Iterator[None]:
    """Compute on the device of an array, without TF32; full memory there becomes a MemoryError of one line.

    With TF32, whose numbers have 10 bits, optimisers do not converge.
    """
    if not is_foreign(array):
        yield
        return
    torch: Any = sys.modules.get("torch")  # this package never imports torch: no setting to change if nobody has
    before = torch.get_float32_matmul_precision() if torch is not None else "highest"
    if torch is not None and before != "highest":
        torch.set_float32_matmul_precision("highest")
    try:
        yield
    except Exception as error:
        if not is_device_memory_fault(error):
            raise
        where = array_api_compat().device(array)
        raise MemoryError(
            f"{what} needs more memory than the device {where} has free, for an array of shape {tuple(array.shape)}. "
            "Free other arrays there, pass float32 or fewer rows, or compute with NumPy on the CPU."
        ) from error
    finally:
        if torch is not None and before != "highest":
            torch.set_float32_matmul_precision(before)


def product_over_rows(left: Any, right: Any) -> Any:
    """Left (q × n) times right (n × p), of which n is by far the largest, in double precision.

    In single precision a sum over millions of rows would lose all but four digits. So the rows are cut into pieces, all
    pieces are multiplied at once, and their products are added up in double precision.
    """
    xp = namespace(right)
    n, whole = right.shape[0], right.shape[0] // PRODUCT_ROWS * PRODUCT_ROWS
    if right.dtype == xp.float64 or n <= PRODUCT_ROWS or not right.shape[1]:
        return as_double(left @ right)
    q, p = left.shape[0], right.shape[1]
    pieces = xp.permute_dims(xp.reshape(left[:, :whole], (q, -1, PRODUCT_ROWS)), (1, 0, 2))
    total = sum_in_double(xp.matmul(pieces, xp.reshape(right[:whole, ...], (-1, PRODUCT_ROWS, p))), axis=0)
    return total if whole == n else total + as_double(left[:, whole:] @ right[whole:, ...])


def exp_in_place(values: Any, xp: Any) -> None:
    """Replace numbers on a device by their exponentials, without a temporary array where the library can."""
    if hasattr(values, "exp_"):
        values.exp_()
    elif library_name(xp) == "cupy":
        xp.exp(values, out=values)
    else:
        values[...] = xp.exp(values)


def as_numpy_vector(values: Any) -> FloatArray:
    """A small array as a NumPy array in double precision."""
    return np.asarray(to_numpy(values), dtype=np.float64)


def weighted_mean(rows: Any, weight: Any) -> FloatArray:
    """Weighted mean of the rows, as a NumPy vector, with sums in double precision.

    In NumPy the mean difference of the rows from a first result corrects it: a plain sum of 10,000 equal numbers has a
    relative error of 1e-13, and then the mean of equal rows would not be that row.
    """
    if isinstance(rows, np.ndarray):
        total = len(rows) if weight is None else weight.sum()
        mean = np.average(rows, axis=0, weights=weight).astype(np.float64)
        rest = np.zeros_like(mean)
        for block in row_blocks(rows.shape[0], rows.shape[1], MEAN_CELLS):
            differences = rows[block] - mean
            rest += differences.sum(axis=0) if weight is None else weight[block] @ differences
        return np.asarray(mean + rest / total)
    if weight is None:
        return as_numpy_vector(sum_in_double(rows, axis=0)) / rows.shape[0]
    return as_numpy_vector(weighted_row_sum(rows, weight / sum_in_double(weight)))


def weighted_row_sum(rows: Any, weight: Any) -> Any:
    """Σ_i weight_i rows_i in double precision, without a copy of all rows in double precision."""
    xp = namespace(rows)
    total = xp.zeros((rows.shape[1],), dtype=xp.float64, device=space(rows).device)
    for block in row_blocks(rows.shape[0], rows.shape[1]):
        total = total + weight[block] @ as_double(rows[block, ...])
    return total


def mean_and_variance(rows: Any, weight: Any) -> tuple[FloatArray, FloatArray]:
    """Weighted mean and variance of each column of rows on a device, in double precision and without a copy of them."""
    xp, device = space(rows)
    mean = weighted_mean(rows, weight)
    centre = as_type_of(mean, rows, xp.float64)
    total = xp.zeros((rows.shape[1],), dtype=xp.float64, device=device)
    for block in row_blocks(rows.shape[0], rows.shape[1]):
        squares = (as_double(rows[block, ...]) - centre) ** 2
        total = total + (xp.sum(squares, axis=0) if weight is None else weight[block] @ squares)
    return mean, as_numpy_vector(total) / (rows.shape[0] if weight is None else float(xp.sum(weight)))


SPARSE_DIGITS = 1e-10
"""Fraction of the squared mean below which the variance of a sparse column, a difference of sums, is not trusted.

At 1e-10 ten of sixteen digits are lost in the difference.
"""


def sparse_minus(X: Any, origin: FloatArray) -> Any:
    """Sparse rows minus an origin, in double precision; cells that become 0 are not stored.

    Examples
    --------
    >>> from skldl.utils.arrays import sparse_minus
    >>> sparse_minus(sparse.csr_matrix([[5.0, 0.0], [0.0, 3.0]]), np.array([5.0, 0.0])).toarray()
    array([[ 0.,  0.],
           [-5.,  3.]])
    """
    columns, n_rows = np.flatnonzero(origin), X.shape[0]
    starts = np.arange(n_rows + 1) * len(columns)
    shift = sparse.csr_matrix((np.tile(origin[columns], n_rows), np.tile(columns, n_rows), starts), shape=X.shape)
    return X.astype(np.float64) - shift


def row_size(rows: Any) -> int:
    """About how many numbers a row holds."""
    return 1 + int(rows.nnz // max(1, rows.shape[0]) if sparse.issparse(rows) else rows.shape[1])

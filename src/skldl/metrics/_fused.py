"""Means of many measures in one pass over the memory of a CUDA device, checks of the tables included.

On such a device every operation on arrays reads and writes the memory, which is all that a measure costs: six measures
made of some fifty operations take fifty times as long as reading the tables. Here `skldl.metrics._trace` writes the
measures as C code, the compiler that torch and CuPy carry (NVRTC) translates it once for each set of measures, and one
kernel reads each row once. Terms and sums over the few labels have the precision of the tables; sums over rows are in
double precision.
"""

import ctypes
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import lru_cache
from math import gcd
from typing import Any

import numpy as np

from skldl.metrics._pair import Pair, values_of
from skldl.metrics._trace import NotTraceable, Recording, c_function
from skldl.utils.arrays import library_name, space_of
from skldl.utils.device_validation import ROUNDING, check_device_weights

LEAST_CELLS = 2**22
"""Smaller tables are computed operation by operation: the translation takes longer."""
MOST_LABELS = 24
"""A row of both tables must fit into the registers of a thread."""
ROWS = 256
BLOCKS_PER_PROCESSOR = 8
OPERATORS = {
    "float": """
DEVICE float quotient(float a, float b) { return b > 1e-37f ? __fdividef(a, b) : a / b; }
#define QUOTIENT(a, b) quotient(a, b)
""",
    "double": """
#define QUOTIENT(a, b) ((a) / (b))
""",
}
"""Division: in single precision the quick one, which is right to two units in the last place."""

KERNEL = r"""
extern "C" __global__ void __launch_bounds__(ROWS) means_of_measures(
    const T* __restrict__ p, const T* __restrict__ q, const double* __restrict__ weight, double* results,
    int n_rows, int weighted)
{
  __shared__ double across[ROWS / 32];
  __shared__ bool is_last;
  double sums[MEASURES];
  for (int m = 0; m < MEASURES; ++m) sums[m] = 0;
  SUM worst = 0;
  T least = 0;
  bool are_numbers = true;
  const int own = threadIdx.x;
  for (long long row = (long long)blockIdx.x * ROWS + own; row < n_rows; row += (long long)gridDim.x * ROWS) {
    union { T degrees[LABELS]; PACK packs[PACKS]; } row_p, row_q;
    const PACK* from_p = (const PACK*)(p + row * LABELS);
    const PACK* from_q = (const PACK*)(q + row * LABELS);
    UNROLL
    for (int k = 0; k < PACKS; ++k) {
      row_p.packs[k] = from_p[k];
      row_q.packs[k] = from_q[k];
    }
    SUM sum_p = 0, sum_q = 0;
    UNROLL
    for (int j = 0; j < LABELS; ++j) {
      const T a = row_p.degrees[j], b = row_q.degrees[j];
      sum_p += a;
      sum_q += b;
      least = a < least ? a : least;
      least = b < least ? b : least;
    }
    const SUM off_p = fabs(sum_p - 1), off_q = fabs(sum_q - 1);
    worst = off_p > worst ? off_p : worst;
    worst = off_q > worst ? off_q : worst;
    are_numbers = are_numbers && off_p + off_q < 1e30f;
    double out[MEASURES];
    row_values(row_p.degrees, row_q.degrees, out);
    const double w = weighted ? weight[row] : 1.0;
    if (w > 0)
      for (int m = 0; m < MEASURES; ++m) sums[m] += w * out[m];
  }
  double* own_results = results + (1 + (long long)blockIdx.x) * (MEASURES + 2);
  for (int m = 0; m < MEASURES + 2; ++m) {
    double value = m < MEASURES ? sums[m < MEASURES ? m : 0] : m > MEASURES ? -(double)least
                   : are_numbers ? (double)worst : 1e30;
    for (int step = 16; step > 0; step /= 2) {
      const double other = __shfl_down_sync(0xffffffffu, value, step);
      value = m < MEASURES ? value + other : (other > value ? other : value);
    }
    __syncthreads();
    if (own % 32 == 0) across[own / 32] = value;
    __syncthreads();
    if (own == 0) {
      double total = across[0];
      for (int i = 1; i < ROWS / 32; ++i)
        total = m < MEASURES ? total + across[i] : (across[i] > total ? across[i] : total);
      own_results[m] = total;
    }
  }
  if (own == 0) {  // the block that is done last adds up the results of all blocks, always in the same order
    __threadfence();
    unsigned int* done = (unsigned int*)(results + (1 + (long long)gridDim.x) * (MEASURES + 2));
    is_last = atomicAdd(done, 1u) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (is_last && own / 32 < MEASURES + 2)
    for (int m = own / 32; m < MEASURES + 2; m += ROWS / 32) {
      double value = 0;
      for (int block = own % 32; block < gridDim.x; block += 32) {
        const double other = ((volatile double*)results)[(1 + (long long)block) * (MEASURES + 2) + m];
        value = m < MEASURES ? value + other : (other > value ? other : value);
      }
      for (int step = 16; step > 0; step /= 2) {
        const double other = __shfl_down_sync(0xffffffffu, value, step);
        value = m < MEASURES ? value + other : (other > value ? other : value);
      }
      if (own % 32 == 0) results[m] = value;
    }
}
"""


def row_function(measures: Sequence[Any], n_labels: int, eps: float) -> str:
    """C function of some measures, or `NotTraceable`."""
    recording = Recording(n_labels)
    pair = Pair(recording.argument("p"), recording.argument("q"), eps)  # type: ignore[arg-type]  # symbols act as arrays
    return c_function(recording, [values_of(measure, pair, n_labels) for measure in measures])


def fused_means(
    D_true: Any, D_pred: Any, sample_weight: Any, measures: Sequence[Any], eps: float
) -> dict[str, float] | None:
    """Means of measures by one kernel; None where the ordinary way must be taken.

    That is so for tables that are small, not on a CUDA device, or wrong in any way (the ordinary way words the error),
    for rows whose sums are not one within rounding, and for measures that need more than sums over labels.
    """
    where = space_of(D_true, name="D_true")
    if where is None or type(D_pred) is not type(D_true) or D_pred.device != D_true.device:
        return None
    if "cuda" not in str(where.device).lower():
        return None
    launch = _LAUNCHERS.get(library_name(where.xp))
    if launch is None or D_true.ndim != 2 or tuple(D_true.shape) != tuple(D_pred.shape):
        return None
    n_rows, n_labels = D_true.shape
    types = ((where.xp.float32, "float"), (where.xp.float64, "double"))
    kind = next((name for dtype, name in types if D_true.dtype == dtype), None)
    if kind is None or D_pred.dtype != D_true.dtype or not 2 <= n_labels <= MOST_LABELS:
        return None
    if n_rows * n_labels < LEAST_CELLS or n_rows >= 2**31:
        return None
    D_true, D_pred = contiguous(D_true, where.xp), contiguous(D_pred, where.xp)
    pack = pack_bytes(n_labels * (4 if kind == "float" else 8), address(D_true), address(D_pred))
    source = _source(tuple(measures), n_labels, eps, kind, pack)
    if source is None:
        return None
    weight = check_device_weights(sample_weight, n_rows, where)
    results = launch(source, D_true, D_pred, weight, len(measures))
    if results is None:
        return None
    *sums, worst, least = results
    if not (worst <= ROUNDING * EPS[kind] and least <= 0):
        return None
    total = float(n_rows) if weight is None else float(where.xp.sum(weight))
    return {measure.name: value / total for measure, value in zip(measures, sums, strict=True)}


EPS = {"float": float(np.finfo(np.float32).eps), "double": float(np.finfo(np.float64).eps)}
PACKS = {4: "int", 8: "int2", 16: "int4"}
"""Types of the device's language by bytes; as many bytes are read at once."""


def contiguous(table: Any, xp: Any) -> Any:
    """The table with its rows one after the other in memory."""
    return table.detach().contiguous() if library_name(xp) == "torch" else xp.ascontiguousarray(table)


def address(table: Any) -> int:
    """Where a table begins in memory."""
    return int(table.data_ptr() if hasattr(table, "data_ptr") else table.data.ptr)


def pack_bytes(row_bytes: int, *addresses: int) -> int:
    """The most bytes, at most 16, that can be read at once from each row."""
    return gcd(16, row_bytes, *addresses)


@lru_cache(maxsize=64)
def _source(measures: tuple[Any, ...], n_labels: int, eps: float, kind: str, pack: int) -> str | None:
    try:
        function = row_function(measures, n_labels, eps)
    except (NotTraceable, AttributeError, TypeError):  # the latter two: someone's own measure, written for NumPy
        return None
    head = [
        f"#define T {kind}",
        f"#define SUM {kind}",
        f"#define LABELS {n_labels}",
        f"#define MEASURES {len(measures)}",
        f"#define ROWS {ROWS}",
        f"#define PACK {PACKS[pack]}",
        f"#define PACKS {n_labels * (4 if kind == 'float' else 8) // pack}",
        "#define DEVICE static __device__ __forceinline__",
        "#define INFINITY __longlong_as_double(0x7ff0000000000000ULL)",
        OPERATORS[kind],
    ]
    return "\n".join([*head, function, KERNEL]).replace("UNROLL", "#pragma unroll")


def _launch_torch(source: str, p: Any, q: Any, weight: Any, n_measures: int) -> list[float] | None:
    torch = sys.modules["torch"]
    if not hasattr(torch.cuda, "_compile_kernel"):  # before version 2.9
        return None
    start, grid = _torch_kernel(source, p.device)
    width = n_measures + 2
    with nullcontext() if torch.cuda.current_device() == p.device.index else torch.cuda.device(p.device):
        results = torch.zeros((grid + 1) * width + 1, dtype=torch.float64, device=p.device)
        start(grid, [p, q, results if weight is None else weight, results], [p.shape[0], weight is not None])
        found: list[float] = results[:width].tolist()
    return found


@lru_cache(maxsize=64)
def _torch_kernel(source: str, device: Any) -> tuple[Callable[..., None], int]:
    """What starts the translated kernel, and the number of blocks that the device computes at a time."""
    cuda = sys.modules["torch"].cuda
    with cuda.device(device):
        kernel = cuda._compile_kernel(source, "means_of_measures")

    def start(grid: int, tables: list[Any], numbers: list[int]) -> None:
        arguments = [*tables, *(int(number) for number in numbers)]
        kernel(grid=(grid, 1, 1), block=(ROWS, 1, 1), args=arguments)

    grid = BLOCKS_PER_PROCESSOR * cuda.get_device_properties(device).multi_processor_count
    return _quick_start(kernel, cuda) or start, grid


def _quick_start(kernel: Any, cuda: Any) -> Callable[..., None] | None:
    """Start a kernel without opening the driver's library anew, as torch does: a tenth of a millisecond less."""
    try:
        launch, function = cuda._utils._get_gpu_runtime_library().cuLaunchKernel, kernel.func
    except (AttributeError, OSError, RuntimeError):  # another version of torch
        return None

    def start(grid: int, tables: list[Any], numbers: list[int]) -> None:
        values = [ctypes.c_void_p(table.data_ptr()) for table in tables] + [ctypes.c_int(n) for n in numbers]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        stream = ctypes.c_void_p(cuda.current_stream().cuda_stream)
        failed = launch(function, grid, 1, 1, ROWS, 1, 1, 0, stream, pointers, None)
        if failed:
            raise RuntimeError(f"The CUDA driver could not start a kernel: error {failed}.")

    return start


def _launch_cupy(source: str, p: Any, q: Any, weight: Any, n_measures: int) -> list[float]:
    cupy = sys.modules["cupy"]
    width = n_measures + 2
    with p.device:
        grid = BLOCKS_PER_PROCESSOR * p.device.attributes["MultiProcessorCount"]
        results = cupy.zeros((grid + 1) * width + 1, dtype=cupy.float64)
        arguments = (
            p,
            q,
            results if weight is None else weight,
            results,
            np.int32(p.shape[0]),
            np.int32(weight is not None),
        )
        _cupy_kernel(source)((grid,), (ROWS,), arguments)
        found: list[float] = results[:width].tolist()
    return found


@lru_cache(maxsize=64)
def _cupy_kernel(source: str) -> Any:
    return sys.modules["cupy"].RawKernel(source, "means_of_measures")


_LAUNCHERS = {"torch": _launch_torch, "cupy": _launch_cupy}

"""Means of many measures in one pass over the memory of a CUDA device, checks of the tables included.

On such a device every operation on arrays reads and writes the memory, which is all that a measure costs: six measures
made of some fifty operations take fifty times as long as reading the tables. Here `skldl.metrics._trace` writes the
measures as C code, the compiler that torch and CuPy carry (NVRTC) translates it once for each set of measures, and one
kernel reads each row once. Terms have the precision of the tables; sums over labels and rows are in double precision.
"""

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from skldl._array_api import library_name, space_of
from skldl._device_door import ROUNDING, check_device_weights
from skldl.metrics._pair import Pair
from skldl.metrics._trace import NotTraceable, Recording, c_function

LEAST_CELLS = 2**22
"""Smaller tables are computed operation by operation: the translation takes longer."""
MOST_LABELS = 24
"""A block's rows of both tables, in double precision, must fit into 48 KiB of shared memory."""
ROWS = 128
BLOCKS_PER_PROCESSOR = 8

KERNEL = r"""
extern "C" __global__ void __launch_bounds__(ROWS) means_of_measures(
    const T* __restrict__ p, const T* __restrict__ q, const double* __restrict__ weight, double* partial,
    int n_rows, int weighted)
{
  __shared__ T tile_p[ROWS * LABELS];
  __shared__ T tile_q[ROWS * LABELS];
  __shared__ double across[ROWS / 32];
  double sums[MEASURES];
  for (int m = 0; m < MEASURES; ++m) sums[m] = 0;
  double worst = 0, least = 0;
  bool is_number = true;
  const int own = threadIdx.x;
  for (long long first = (long long)blockIdx.x * ROWS; first < n_rows; first += (long long)gridDim.x * ROWS) {
    const int rows = n_rows - first < ROWS ? (int)(n_rows - first) : ROWS;
    const T* from_p = p + first * LABELS;
    const T* from_q = q + first * LABELS;
    __syncthreads();
    if (rows == ROWS) {
      UNROLL
      for (int k = 0; k < LABELS; ++k) {
        tile_p[own + k * ROWS] = from_p[own + k * ROWS];
        tile_q[own + k * ROWS] = from_q[own + k * ROWS];
      }
    } else {
      for (int i = own; i < rows * LABELS; i += ROWS) {
        tile_p[i] = from_p[i];
        tile_q[i] = from_q[i];
      }
    }
    __syncthreads();
    if (own < rows) {
      const T* row_p = tile_p + own * LABELS;
      const T* row_q = tile_q + own * LABELS;
      double sum_p = 0, sum_q = 0;
      T low = 0;
      UNROLL
      for (int j = 0; j < LABELS; ++j) {
        const T a = row_p[j], b = row_q[j];
        sum_p += a;
        sum_q += b;
        low = a < low ? a : low;
        low = b < low ? b : low;
      }
      const double off_p = fabs(sum_p - 1), off_q = fabs(sum_q - 1), off = off_p > off_q ? off_p : off_q;
      is_number = is_number && off_p + off_q < 1e300;
      worst = off > worst ? off : worst;
      least = low < least ? (double)low : least;
      double out[MEASURES];
      row_values(row_p, row_q, out);
      const double w = weighted ? weight[first + own] : 1.0;
      if (w > 0)
        for (int m = 0; m < MEASURES; ++m) sums[m] += w * out[m];
    }
  }
  for (int m = 0; m < MEASURES + 2; ++m) {
    double value = m < MEASURES ? sums[m < MEASURES ? m : 0] : m == MEASURES ? (is_number ? worst : 1e300) : -least;
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
      partial[(long long)blockIdx.x * (MEASURES + 2) + m] = total;
    }
  }
}
"""


def row_function(measures: Sequence[Any], n_labels: int, eps: float) -> str:
    """C function of some measures, or `NotTraceable`."""
    recording = Recording(n_labels)
    pair = Pair(recording.argument("p"), recording.argument("q"), eps)  # type: ignore[arg-type]
    return c_function(recording, [measure.compute(pair, **measure.options) for measure in measures])


def fused_means(
    D_true: Any, D_pred: Any, sample_weight: Any, measures: Sequence[Any], eps: float
) -> dict[str, float] | None:
    """Means of measures by one kernel; None where the ordinary way must be taken.

    That is so for tables that are small, not on a CUDA device, or wrong in any way (the ordinary way words the error),
    for rows whose sums are not one within rounding, and for measures that need more than sums over labels.
    """
    where = space_of(D_true, name="D_true")
    if where is None or where != space_of(D_pred, name="D_pred") or "cuda" not in str(where.device).lower():
        return None
    launch = _LAUNCHERS.get(library_name(where.xp))
    if launch is None or D_true.ndim != 2 or tuple(D_true.shape) != tuple(D_pred.shape):
        return None
    n_rows, n_labels = D_true.shape
    types = {where.xp.float32: "float", where.xp.float64: "double"}
    kind = types.get(D_true.dtype)
    if kind is None or D_pred.dtype != D_true.dtype or not 2 <= n_labels <= MOST_LABELS:
        return None
    if n_rows * n_labels < LEAST_CELLS or n_rows >= 2**31:
        return None
    source = _source(tuple(measures), n_labels, eps, kind)
    if source is None:
        return None
    weight = check_device_weights(sample_weight, n_rows, where)
    partial = launch(source, D_true, D_pred, weight, len(measures))
    if partial is None:
        return None
    worst, least = float(partial[:, -2].max()), -float(partial[:, -1].max())
    if not (worst <= ROUNDING * np.finfo(np.float32 if kind == "float" else np.float64).eps and least >= 0):
        return None
    total = float(n_rows) if weight is None else float(where.xp.sum(weight))
    means = partial[:, : len(measures)].sum(axis=0) / total
    return {measure.name: float(value) for measure, value in zip(measures, means, strict=True)}


@lru_cache(maxsize=64)
def _source(measures: tuple[Any, ...], n_labels: int, eps: float, kind: str) -> str | None:
    try:
        function = row_function(measures, n_labels, eps)
    except (NotTraceable, AttributeError, TypeError):  # the latter two: someone's own measure, written for NumPy
        return None
    head = [
        f"#define T {kind}",
        f"#define LABELS {n_labels}",
        f"#define MEASURES {len(measures)}",
        f"#define ROWS {ROWS}",
        "#define DEVICE static __device__ __forceinline__",
        "#define INFINITY __longlong_as_double(0x7ff0000000000000ULL)",
    ]
    return "\n".join([*head, function, KERNEL]).replace("UNROLL", "#pragma unroll")


def _launch_torch(source: str, p: Any, q: Any, weight: Any, n_measures: int) -> Any:
    cuda = sys.modules["torch"].cuda
    if not hasattr(cuda, "_compile_kernel"):  # before version 2.9
        return None
    p, q = p.detach().contiguous(), q.detach().contiguous()
    with cuda.device(p.device):
        grid = BLOCKS_PER_PROCESSOR * cuda.get_device_properties(p.device).multi_processor_count
        kernel = _torch_kernel(source, str(p.device))
        partial = p.new_empty((grid, n_measures + 2), dtype=sys.modules["torch"].float64)
        arguments = [p, q, partial if weight is None else weight, partial, int(p.shape[0]), int(weight is not None)]
        kernel(grid=(grid, 1, 1), block=(ROWS, 1, 1), args=arguments)
        return partial.cpu().numpy()


@lru_cache(maxsize=64)
def _torch_kernel(source: str, device: str) -> Any:
    return sys.modules["torch"].cuda._compile_kernel(source, "means_of_measures")


def _launch_cupy(source: str, p: Any, q: Any, weight: Any, n_measures: int) -> Any:
    cupy = sys.modules["cupy"]
    p, q = cupy.ascontiguousarray(p), cupy.ascontiguousarray(q)
    with p.device:
        grid = BLOCKS_PER_PROCESSOR * p.device.attributes["MultiProcessorCount"]
        partial = cupy.empty((grid, n_measures + 2), dtype=cupy.float64)
        arguments = (
            p,
            q,
            partial if weight is None else weight,
            partial,
            np.int32(p.shape[0]),
            np.int32(weight is not None),
        )
        cupy.RawKernel(source, "means_of_measures")((grid,), (ROWS,), arguments)
        return partial.get()


_LAUNCHERS = {"torch": _launch_torch, "cupy": _launch_cupy}

"""Write the section "On the GPU" of ``docs/scale.md`` from ``benchmarks/results/gpu.json``.

This script measures nothing; rows without figures in the file are left out. Run ``python docs/make_scale.py``.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from marks import between_marks

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "gpu.json"
PAGE = ROOT / "docs" / "scale.md"

ROWS = (
    # what, section and beginning of its record, what it is compared with and the beginning of that record
    (
        "Six measures, 10,000,000 × 10, float32",
        "measures",
        "evaluate, six measures (float32)",
        "reading both tables",
        "read both tables (float32",
    ),
    (
        "Six measures, 10,000,000 × 10, float64",
        "measures",
        "evaluate, six measures (float64)",
        "reading both tables",
        "read both tables (float64",
    ),
    ("`SABFGS`, 20,000,000 × 64 → 68, float32", "fit", "SABFGS({}).fit", "reading X and D once", "read X and D"),
    (
        "`KernelRidgeLDL`, all penalties, 20,000 rows",
        "kernel_all",
        "fit, 23 penalties × 2 targets × 10 shares (float64)",
        "the eigenvectors alone",
        "torch.linalg.eigh alone",
    ),
    (
        "`KernelRidgeLDL`, one penalty, 100,000 rows",
        "kernel_one",
        "fit, one penalty, auto",
        "the Cholesky factor alone",
        "torch.linalg.cholesky_ex",
    ),
    ("`AAKNN`, 100,000 queries among 1,000,000 × 64", "neighbours", "AAKNN.predict", "", ""),
    ("`SABFGSCV`, 1,000,000 × 64 → 10", "others", "SABFGSCV", "", ""),
    ("`SAIIS`, 20 iterations, the same rows", "others", "SAIIS", "", ""),
    ("`AABP`, 30 iterations, the same rows", "others", "AABP(lbfgs)", "", ""),
)

TEXT = """\
Features are often the output of a network, as tensors on a GPU. With scikit-learn's setting `array_api_dispatch`, which
needs SciPy 1.14, computations stay on the device, and predictions are arrays of the same library, device and precision:

```python
import os

os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is imported

import sklearn
import torch

from skldl import SABFGSCV
from skldl.metrics import evaluate

sklearn.set_config(array_api_dispatch=True)
X = torch.randn(1_000_000, 64, device="cuda")
D = torch.softmax(X @ torch.randn(64, 5, device="cuda"), dim=1)
model = SABFGSCV().fit(X, D)
P = model.predict(X)  # a tensor on the same device
evaluate(D, P)
```

- `SABFGS`, `SABFGSCV`, `SAIIS`, `AAKNN` (Euclidean distances), `AABP`, `KernelRidgeLDL` (exact solvers),
  `MeanDistribution`, all measures, `evaluate`, `mu` and `skill` accept arrays of torch and CuPy. All other estimators
  raise an error. torch or CuPy is not installed with this package; scikit-learn before 1.7 also needs
  `pip install 'scikit-ldl[gpu]'`.
- Distributions and weights must be on the device of X; nothing is copied silently. Arrays are float32 or float64.
- Products of float32 are computed in float32, never in TF32, and sums over rows in double precision. Results agree
  with NumPy to 1e-10 in double and 1e-5 in single precision.
- Models that keep training rows (`AAKNN`, `KernelRidgeLDL`) keep them on the device. `skldl.save` writes NumPy
  copies: the model that `skldl.load` reads computes with NumPy, on any machine.
"""


def duration(seconds: float) -> str:
    """Seconds, or milliseconds below a tenth of a second, in three digits."""
    return f"{1000 * seconds:.3g} ms" if seconds < 0.1 else f"{seconds:.3g} s"


def find(records: list[dict[str, Any]], section: str, beginning: str) -> dict[str, Any] | None:
    """The record of a section whose description has this beginning."""
    fitting = (r for r in records if r["section"] == section and r["what"].startswith(beginning) and "least_s" in r)
    return next(fitting, None)


def table(records: list[dict[str, Any]]) -> list[str]:
    """The table of times of estimators and measures, with the times of their main operations."""
    lines = ["| | time | for comparison |", "|---|---:|---|"]
    for what, section, beginning, other, beginning_of_other in ROWS:
        ours = find(records, section, beginning)
        if ours is None:
            continue
        bare = find(records, section, beginning_of_other) if other else None
        beside = f"{other}: {duration(bare['least_s'])}" if bare else ""
        lines.append(f"| {what} | {duration(ours['least_s'])} | {beside} |")
    return lines


def head(records: list[dict[str, Any]]) -> list[str]:
    """The paragraph on the example: a softmax layer on embeddings, compared with training loops."""
    ours = find(records, "head", "SABFGSCV")
    if ours is None:
        return []
    loops = [r for r in records if r["section"] == "head" and r is not ours]
    there = [r for r in loops if r["seconds_to_the_same_divergence"] is not None]
    size = ours["what"].removeprefix("SABFGSCV as a head, ")
    text = (
        f"As the last layer of a frozen network ({size}) `SABFGSCV` took {duration(ours['least_s'])}, choice of the "
        f"penalty included. Of {len(loops)} training loops with Adam or stochastic gradients and different learning "
        f"rates, {len(there) or 'none'} came within 0.1 % of its divergence"
    )
    if there:
        first = min(there, key=lambda r: r["seconds_to_the_same_divergence"])
        name = first["what"].rpartition(",")[0]
        text += f"; the quickest ({name}) needed {duration(first['seconds_to_the_same_divergence'])}"
    return ["", f"{text} ([example](../examples/embeddings_head.py))."]


def section(results: dict[str, Any] | None) -> str:
    """The section as Markdown."""
    lines = ["## On the GPU", "", TEXT]
    if results is not None:
        machine = results["machine"]
        lines += [
            f"Measured on one {machine['device']} with torch {machine['torch']}, arrays on the device already, with "
            "`SCIPY_ARRAY_API=1 python benchmarks/gpu.py`:",
            "",
            *table(results["records"]),
            *head(results["records"]),
        ]
    return "\n".join(lines).rstrip() + "\n"


def page(before: str, results: dict[str, Any] | None) -> str:
    """The page with the current section, which is added at the end if the page does not have it."""
    return between_marks(before, "gpu", f"\n{section(results)}")


def outputs() -> dict[Path, str]:
    """The current text of each file, by its path."""
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else "# Large data\n"
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else None
    return {PAGE: page(before, results)}


if __name__ == "__main__":
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")

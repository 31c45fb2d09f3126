"""Estimators and measures on torch tensors: times on a device beside those of the bare arithmetic.

Needs torch, NumPy, SciPy, scikit-learn and this package, nothing else::

    SCIPY_ARRAY_API=1 PYTHONPATH=src python benchmarks/gpu.py --out gpu.json
    SCIPY_ARRAY_API=1 PYTHONPATH=src python benchmarks/gpu.py --device cpu --scale 0.001   # to try it without a GPU

Every section makes its data on the device, runs once to warm up, and prints the least and the median of some runs, with
the bare comparison measured in the same process: reading the arrays, the eigendecomposition alone, the Cholesky
factorisation alone, the products of the fit alone. Data are never copied to or from the host inside of what is timed.
"""

import argparse
import importlib.util
import json
import os
import platform
import runpy
import statistics
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # scikit-learn asks for it; before SciPy is imported

import numpy as np
import scipy
import sklearn
import torch
from sklearn.exceptions import ConvergenceWarning

from skldl import AABP, AAKNN, SABFGS, SABFGSCV, SAIIS, KernelRidgeLDL
from skldl.metrics import PAPER_MEASURES, evaluate

SEED = 0


class Bench:
    """Device, scale of the sizes, and the records."""

    def __init__(self, device: str, scale: float, repeats: int) -> None:
        self.device = torch.device(device)
        self.scale, self.repeats = scale, repeats
        self.records: list[dict[str, Any]] = []

    def size(self, n: int, least: int = 200) -> int:
        return max(least, int(n * self.scale))

    def wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def free(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def time(self, action: Callable[[], Any], repeats: int | None = None, *, warm: bool = True) -> dict[str, Any]:
        """Times of repeated runs, each waited for; the first, which may compile and allocate, separately."""
        times, value = [], None
        for _ in range((repeats or self.repeats) + warm):
            value = None  # frees the result of the previous run before this one
            self.wait()
            begin = time.perf_counter()
            value = action()
            self.wait()
            times.append(time.perf_counter() - begin)
        first, rest = times[0], times[warm:]
        return {"least_s": min(rest), "median_s": statistics.median(rest), "first_s": first, "value": value}

    def record(self, section: str, what: str, timing: dict[str, Any], **more: Any) -> dict[str, Any]:
        record = {"section": section, "what": what, **{k: v for k, v in timing.items() if k != "value"}, **more}
        if self.device.type == "cuda":
            record["peak_gib"] = torch.cuda.max_memory_allocated(self.device) / 2**30
            torch.cuda.reset_peak_memory_stats(self.device)
        self.records.append(record)
        notes = ", ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in more.items())
        print(
            f"{section:10} {what:58} {timing['least_s']:10.5f} s  (median {timing['median_s']:.5f})  {notes}",
            flush=True,
        )
        return record

    def random(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(*shape, device=self.device, dtype=dtype)

    def distributions(self, n_rows: int, n_labels: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.softmax(self.random(n_rows, n_labels, dtype=dtype), dim=1)

    def problem(
        self, n_rows: int, n_features: int, n_labels: int, dtype: torch.dtype, spread: float = 0.25
    ) -> tuple[torch.Tensor, ...]:
        """Features in [0, 1) and distributions of a noisy maximum entropy model; ``spread`` is that of its weights."""
        X = torch.rand(n_rows, n_features, device=self.device, dtype=dtype)
        D = X @ (spread * self.random(n_features, n_labels, dtype=dtype))
        for rows in torch.split(D, 1_000_000):  # no second table of this size
            rows += 0.5 * torch.randn_like(rows)
            rows.copy_(torch.softmax(rows, dim=1))
        return X, D


def measures(bench: Bench) -> None:
    """The six measures of the paper on 10,000,000 × 10, beside the time to read the tables."""
    n_rows, n_labels = bench.size(10_000_000), 10
    for dtype in (torch.float32, torch.float64):
        p, q = bench.distributions(n_rows, n_labels, dtype), bench.distributions(n_rows, n_labels, dtype)
        name = str(dtype).removeprefix("torch.")
        read = bench.time(lambda p=p, q=q: (p.sum(), q.sum()), 20)
        bench.record("measures", f"read both tables ({name}, {n_rows:,} × {n_labels})", read)
        ours = bench.time(lambda p=p, q=q: evaluate(p, q, measures=list(PAPER_MEASURES)), 20)
        ratio = ours["least_s"] / read["least_s"]
        bench.record("measures", f"evaluate, six measures ({name})", ours, ratio_to_reading=ratio)
        some = slice(0, min(n_rows, 200_000))
        with sklearn.config_context(array_api_dispatch=False):
            numpy = evaluate(p[some].cpu().numpy(), q[some].cpu().numpy(), measures=list(PAPER_MEASURES))
        small = evaluate(p[some], q[some], measures=list(PAPER_MEASURES))
        error = max(abs(small[key] - numpy[key]) for key in numpy)
        bench.records[-1]["largest_difference_to_numpy"] = error
        print(f"{'':10} largest difference to NumPy on {some.stop:,} rows: {error:.2g}")
        del p, q
        bench.free()


def neighbours(bench: Bench) -> None:
    """AAKNN: 100,000 queries among 1,000,000 rows."""
    n_rows, n_new = bench.size(1_000_000), bench.size(100_000)
    X, D = bench.problem(n_rows, 64, 10, torch.float32)
    new = torch.rand(n_new, 64, device=bench.device)
    model = AAKNN(n_neighbors=10).fit(X, D)
    wide, queries = X.double(), new[:8192].double()
    share = n_new / len(queries)

    def products() -> None:
        for rows in torch.split(wide, max(1, 2**28 // len(queries))):
            (queries @ rows.T).sum()

    bare = bench.time(products, 2)
    bench.record(
        "neighbours", f"distance products alone ({len(queries):,} queries)", bare, for_all_s=bare["least_s"] * share
    )
    ours = bench.time(lambda: model.predict(new), 2)
    bench.record("neighbours", f"AAKNN.predict, {n_new:,} queries among {n_rows:,} × 64", ours)


def kernel_all(bench: Bench) -> None:
    """KernelRidgeLDL with all penalties on 20,000 rows; goal: 8 s, where the eigendecomposition alone takes 3.6 s."""
    n_rows = bench.size(20_000)
    X, D = bench.problem(n_rows, 64, 10, torch.float64)
    K = torch.exp(-(torch.cdist(X, X) ** 2) / 20)
    bare = bench.time(lambda K=K: torch.linalg.eigh(K)[0].sum(), 2)
    bench.record("kernel_all", f"torch.linalg.eigh alone ({n_rows:,} rows, float64)", bare)
    del K
    bench.free()
    for dtype in (torch.float64, torch.float32):
        A, B = X.to(dtype), D.to(dtype)
        model = KernelRidgeLDL(kernel="rbf", width=1.0, scaling="standard", solver="exact")
        ours = bench.time(lambda A=A, B=B, model=model: model.fit(A, B).loo_divergence_, 2)
        what = f"fit, 23 penalties × 2 targets × 10 shares ({str(dtype).removeprefix('torch.')})"
        bench.record("kernel_all", what, ours, goal="at most 8 s", solver=model.solver_, loo=ours["value"])
        bench.free()
    ours = bench.time(lambda: KernelRidgeLDL(solver="exact").fit(X, D).loo_divergence_, 1, warm=False)
    bench.record("kernel_all", "fit, kernel, width and scaling chosen too", ours, loo=ours["value"])


def gaussian_kernel(X: torch.Tensor, penalty: float) -> torch.Tensor:
    """Kernel matrix plus the penalty on its diagonal, made in blocks, so that its 80 GB are allocated only once."""
    n_rows = len(X)
    K = torch.empty(n_rows, n_rows, device=X.device, dtype=X.dtype)
    for start in range(0, n_rows, 2000):
        K[start : start + 2000] = torch.exp(-(torch.cdist(X[start : start + 2000], X) ** 2) / 20)
    K.diagonal().add_(penalty)
    return K


def kernel_one(bench: Bench) -> None:
    """KernelRidgeLDL with one penalty on 100,000 rows; goal: 15 s, where Cholesky alone takes 7.2 s."""
    n_rows = bench.size(100_000)
    X, D = bench.problem(n_rows, 64, 10, torch.float64)

    def factorise() -> float:
        K = gaussian_kernel(X, 1e-3 * n_rows)
        bench.wait()
        begin = time.perf_counter()
        info = torch.empty((), dtype=torch.int32, device=bench.device)
        torch.linalg.cholesky_ex(K.mT, out=(K.mT, info))  # in the memory of K
        bench.wait()
        return time.perf_counter() - begin

    try:
        seconds = min(factorise() for _ in range(1 if bench.device.type == "cuda" else 2))
        timing = {"least_s": seconds, "median_s": seconds, "first_s": seconds}
        bench.record("kernel_one", f"torch.linalg.cholesky_ex in place ({n_rows:,} rows, float64)", timing)
    except Exception as error:  # an error of the comparison must not lose the measurement
        print(f"kernel_one: cholesky_ex in place failed: {type(error).__name__}: {error}", flush=True)
    bench.free()
    from skldl.kernel._solvers import factorise_in_place, invert_in_place

    K = gaussian_kernel(X, 1e-3 * n_rows)
    for what, action in (
        ("Cholesky by blocks", factorise_in_place),
        ("inverse of the factor by blocks", invert_in_place),
    ):
        timing = bench.time(lambda K=K, action=action: action(K), 1, warm=False)
        bench.record("kernel_one", f"{what} in place", timing)
    del K
    bench.free()
    settings = {"kernel": "rbf", "width": 1.0, "scaling": "standard", "solver": "exact", "alpha": 1e-3}
    for more in ({"target": "degrees"}, {"target": "auto"}):
        model = KernelRidgeLDL(**settings, **more)
        ours = bench.time(lambda model=model: model.fit(X, D).loo_divergence_, 1, warm=False)
        what = f"fit, one penalty, {more['target']} ({n_rows:,} rows, with leave-one-out)"
        bench.record("kernel_one", what, ours, goal="at most 15 s", solver=model.solver_, loo=ours["value"])
        bench.free()


def fit(bench: Bench) -> None:
    """SABFGS on 20,000,000 × 64 → 68 labels in float32; goal: 0.6 s."""
    n_rows, n_features, n_labels = bench.size(20_000_000), 64, 68
    X, D = bench.problem(n_rows, n_features, n_labels, torch.float32)
    read = bench.time(lambda: (X.sum(), D.sum()))
    bench.record("fit", f"read X and D ({n_rows:,} × {n_features} and {n_labels})", read)
    W = torch.zeros(n_features, n_labels, device=bench.device)

    def evaluation() -> torch.Tensor:
        total = torch.zeros(n_features, n_labels, device=bench.device, dtype=torch.float64)
        for rows in torch.split(X, 2**20):
            total += rows.T @ torch.softmax(rows @ W, dim=1)
        return total

    bare = bench.time(evaluation)
    bench.record("fit", "one evaluation in bare torch: softmax(X W), Xᵀ P", bare)
    time_passes(bench, X, D)
    for settings in ({}, {"fit_intercept": True, "alpha": 1e-4}):
        model = SABFGS(**settings)
        ours = bench.time(lambda model=model: model.fit(X, D).loss_curve_[-1])
        evaluations = model.n_evaluations_
        per = ours["least_s"] / bare["least_s"]
        bench.record(
            "fit",
            f"SABFGS({settings}).fit",
            ours,
            goal="at most 0.6 s",
            evaluations=evaluations,
            in_bare_evaluations=per,
            loss=ours["value"],
            excess=model.excess_,
        )
    timing = bench.time(lambda: model.predict(X))
    bench.record("fit", "SABFGS.predict", timing)
    some = slice(0, min(n_rows, 20_000))
    with sklearn.config_context(array_api_dispatch=False):
        numpy = SABFGS().fit(X[some].double().cpu().numpy(), D[some].double().cpu().numpy())
    single = SABFGS().fit(X[some], D[some])
    double = SABFGS().fit(X[some].double(), D[some].double())
    with sklearn.config_context(array_api_dispatch=False):
        host = X[some].cpu().numpy()
        apart = [float(np.abs(m.predict(host) - numpy.predict(host)).max()) for m in (single, double)]
    print(
        f"{'':10} predictions differ from NumPy's by {apart[0]:.2g} (float32) and {apart[1]:.2g} (float64)", flush=True
    )
    bench.records[-1]["difference_to_numpy"] = apart


def time_passes(bench: Bench, X: torch.Tensor, D: torch.Tensor) -> None:
    """The passes of a fit, and what the size of blocks changes; version 0.2.0 has other names for them."""
    if importlib.util.find_spec("skldl.maxent._search") is None:
        return
    from skldl.chunks._arrays import CheckedRows
    from skldl.maxent import _blocks
    from skldl.maxent._moments import read_moments
    from skldl.maxent._objective import Passes

    rows = CheckedRows(X, D)
    for centred in (False, True):
        timing = bench.time(lambda centred=centred: read_moments(rows, centred=centred))
        bench.record("fit", f"moments of X and D, about the mean: {centred}", timing)
    (moments,) = read_moments(rows, centred=False)
    passes, before = Passes(rows, largest=moments.largest), _blocks.DEVICE_CELLS
    U, uses = np.full((1, X.shape[1], D.shape[1]), 0.01), np.ones((1, 1), dtype=bool)
    for power in (22, 23, 24, 25, 26, 27):
        _blocks.DEVICE_CELLS = 2**power
        timing = bench.time(lambda: passes.sums(uses, U, None), 3)
        bench.record("fit", f"one evaluation, blocks of 2^{power} scores", timing)
    _blocks.DEVICE_CELLS = before


def others(bench: Bench) -> None:
    """SABFGSCV, SAIIS and AABP on 1,000,000 × 64 → 10."""
    n_rows = bench.size(1_000_000, 2000)
    X, D = bench.problem(n_rows, 64, 10, torch.float32)
    for model in (
        SABFGSCV(),
        SAIIS(max_iter=20),
        AABP(random_state=0, max_iter=30),
        AABP(solver="adam", batch_size=8192, max_iter=3, random_state=0),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # few iterations are timed, not a fit to the end
            timing = bench.time(lambda model=model: model.fit(X, D), 1)
        score = model.score(X, D)
        name = f"{type(model).__name__}({getattr(model, 'solver', '')}).fit, {n_rows:,} × 64 → 10"
        bench.record("others", name, timing, divergence=-score)


def head(bench: Bench) -> None:
    """The example ``examples/embeddings_head.py``: a softmax layer on features of a frozen network."""
    if importlib.util.find_spec("matplotlib") is None:
        print("head: left out, because the example draws with matplotlib, which is not installed")
        return
    os.environ.setdefault("MPLBACKEND", "Agg")
    found = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "embeddings_head.py"))
    rows, features = found["X"].shape
    timing = dict.fromkeys(("least_s", "median_s", "first_s"), found["seconds"])
    what = f"SABFGSCV as a head, {rows:,} × {features} → {found['D'].shape[1]}"
    bench.record("head", what, timing, divergence=found["goal"])
    for (name, rate), (times, losses) in found["runs"].items():
        there = [t for t, loss in zip(times, losses, strict=True) if loss <= 1.001 * found["goal"]]
        timing = dict.fromkeys(("least_s", "median_s", "first_s"), times[-1])
        more = {"seconds_to_the_same_divergence": there[0] if there else None, "divergence": min(losses[1:])}
        bench.record("head", f"{name}, rate {rate:g}, {len(times) - 1} epochs", timing, **more)


SECTIONS = {f.__name__: f for f in (measures, fit, kernel_all, kernel_one, neighbours, others, head)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--scale", type=float, default=1.0, help="factor of all numbers of rows")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", help="JSON file to write")
    options = parser.parse_args()
    torch.manual_seed(SEED)
    sklearn.set_config(array_api_dispatch=True)
    bench = Bench(options.device, options.scale, options.repeats)
    machine = {
        "device": torch.cuda.get_device_name(bench.device) if bench.device.type == "cuda" else "cpu",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "scale": options.scale,
    }
    print(json.dumps(machine), flush=True)
    failed = False
    for name in options.only:
        try:
            SECTIONS[name](bench)
        except Exception:  # an error in one section must not stop the others
            failed = True
            print(f"{name} FAILED\n{traceback.format_exc()}", flush=True)
            bench.records.append({"section": name, "what": "failed", "error": traceback.format_exc()})
        bench.free()
        if options.out:  # after each section: what was measured stays
            with open(options.out, "w", encoding="utf-8") as file:
                json.dump({"machine": machine, "records": bench.records}, file, indent=1)
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()

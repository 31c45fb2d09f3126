"""Compare the numbers of two versions of the package: ``python tests/frozen/compare.py OLD_SRC [NEW_SRC]``.

OLD_SRC and NEW_SRC are folders that hold the package ``skldl``, such as ``../scikit-ldl-0.2.0/src``; NEW_SRC is the one
of this checkout if it is left out. Every case of ``cases.py`` is computed with both, each in a process of its own, on
one thread. The table shows the cases that differ by more than 1e-12, and whether ``exceptions.md`` names them. The exit
status is 1 if one differs by more than stands there, or if a line there fits no case that differs.
"""

import argparse
import fnmatch
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
TOLERANCE = 1e-12
MARGIN = 2.0
"""How often the difference that stands in the table may be exceeded: rounding differs between machines."""


def read_exceptions() -> dict[str, float]:
    """From patterns of cases to the largest difference that stands in exceptions.md."""
    table = {}
    for line in (HERE / "exceptions.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if line.startswith("| `"):
            table[cells[0].strip("`")] = np.inf if cells[1] == "any" else float(cells[1])
    return table


def compute(source: str, target: Path, only: str) -> dict[str, np.ndarray]:
    """All numbers of the version whose package is in the folder ``source``."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **threads, "PYTHONPATH": str(Path(source).resolve())}
    subprocess.run([sys.executable, HERE / "freeze.py", "--full", target, "--only", only], env=environment, check=True)
    with np.load(target) as content:
        return dict(content)


def difference(old: np.ndarray, new: np.ndarray) -> float:
    """Largest difference, relative where numbers are larger than one; inf if shapes, errors or places of NaN differ."""
    if old.dtype.kind == "U" or new.dtype.kind == "U":
        return 0.0 if old.dtype.kind == new.dtype.kind and str(old) == str(new) else np.inf
    if old.shape != new.shape or not np.array_equal(np.isnan(old), np.isnan(new)):
        return np.inf
    with np.errstate(invalid="ignore"):
        gap = np.abs(old - new)
    gap[np.isnan(old) | (old == new)] = 0.0
    return float((gap / np.maximum(1.0, np.abs(old))).max(initial=0.0))


def describe(old: np.ndarray, new: np.ndarray) -> str:
    """What differs, where it is not a number."""
    return ", ".join(str(array) if array.dtype.kind == "U" else f"shape {array.shape}" for array in (old, new))


def main() -> int:
    """Compute, compare, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", help="folder with the package of the version to compare with")
    parser.add_argument("new", nargs="?", default=HERE.parents[1] / "src", help="folder with the other one")
    parser.add_argument("--only", default="*", help="pattern of names of cases, as of files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        old = compute(options.old, Path(folder) / "old.npz", options.only)
        new = compute(options.new, Path(folder) / "new.npz", options.only)
    exceptions, used, n_unexplained = read_exceptions(), set(), 0
    differences = {name: difference(old[name], new[name]) if name in new else np.inf for name in old}
    print(f"{'difference':>10}  {'allowed':>9}  case")
    for name, size in sorted(differences.items(), key=lambda item: -item[1]):
        if size <= TOLERANCE:
            continue
        patterns = [pattern for pattern in exceptions if fnmatch.fnmatchcase(name, pattern)]
        used.update(patterns)
        allowed = max((exceptions[pattern] for pattern in patterns), default=0.0)
        n_unexplained += size > MARGIN * allowed
        what = "" if np.isfinite(size) else f" ({describe(old[name], new[name]) if name in new else 'not there'})"
        print(f"{size:10.2e}  {allowed:9.2e}  {name}{what}")
    n_different = sum(size > TOLERANCE for size in differences.values())
    print(f"{len(old)} cases, {n_different} differ by more than {TOLERANCE:g}, {n_unexplained} of them unexplained")
    unused = sorted(set(exceptions) - used) if options.only == "*" else []
    for pattern in unused:
        print(f"exceptions.md: nothing differs that fits {pattern}")
    return int(n_unexplained > 0 or bool(unused))


if __name__ == "__main__":
    sys.exit(main())

"""Write the table of the README's section "How fast" from ``benchmarks/results``: run ``python docs/make_speed.py``.

This script measures nothing; cells and rows without numbers in the result files are left out.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from marks import between_marks

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
README = ROOT / "README.md"
SETS = ("Yeast_alpha", "SJAFFE", "SBU_3DFE", "Natural_Scene", "Movie", "Synthetic")
PEER = "python-ldl"
# settings of measurements with an earlier version, where the result file does not contain them
MEASURED_WITH = {"ptsvm": "with 1,000 drawn rows, the default when it was measured; now it learns from all rows"}


def load(section: str) -> dict[str, dict[str, Any]]:
    """The rows of a result file by dataset; empty if there is no such file."""
    path = RESULTS / f"{section}.json"
    return (
        {row["dataset"]: row for row in json.loads(path.read_text(encoding="utf-8"))["rows"]} if path.exists() else {}
    )


def machines(sections: tuple[str, ...]) -> str:
    """The machine of the measurements, or each of several with its sections."""
    found: dict[str, list[str]] = {}
    for section in sections:
        path = RESULTS / f"{section}.json"
        if path.exists():
            machine = json.loads(path.read_text(encoding="utf-8"))["machine"]
            found.setdefault(", ".join(f"{key} {value}" for key, value in machine.items()), []).append(section)
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{', '.join(names)}: {machine}" for machine, names in found.items())


def times(ratio: float | None) -> str:
    """A ratio of times, such as 42 × or 0.80 ×; nothing if it was not measured."""
    if ratio is None:
        return ""
    return f"{ratio:.0f} ×" if ratio >= 10 else f"{ratio:.1f} ×" if ratio >= 2 else f"{ratio:.2f} ×"


def with_divergence(row: dict[str, Any], label: str) -> str:
    """A ratio of times with both divergences on the test fold."""
    ratio = times(row.get(f"{PEER} / {label}"))
    return f"{ratio}, {row[f'KL {label}']:.3g} / {row[f'KL {PEER}']:.3g}" if ratio else ""


def lines() -> list[str]:
    """The rows of the table that have at least one number."""
    sabfgs, saiis, aaknn, ptbayes, aabp, ptsvm = map(load, ("sabfgs", "saiis", "aaknn", "ptbayes", "aabp", "ptsvm"))
    old = "" if any("ours is" in row for row in ptsvm.values()) else f" ({MEASURED_WITH['ptsvm']})"
    above = f"{PEER} objective − ours"

    def gap(row: dict[str, Any]) -> str:
        return f"{row[above]:.2g}" if above in row else ""

    rows = [
        ("`SABFGS()`: fit to our optimum", sabfgs, lambda row: times(row.get(f"{PEER} / ours"))),
        ("… where the objective of python-ldl ends above ours by", sabfgs, gap),
        (
            "`SABFGS()`: fit until our objective is below python-ldl's last",
            sabfgs,
            lambda row: times(row.get(f"{PEER} / ours to its objective")),
        ),
        ("`SAIIS()`: one iteration", saiis, lambda row: times(row.get(f"{PEER} / ours"))),
        ("`AAKNN()`: prediction", aaknn, lambda row: times(row.get(f"{PEER} / ours"))),
        ("`PTBayes()`: fit and prediction, KL ours / theirs", ptbayes, lambda row: with_divergence(row, "ours tied")),
        ("`AABP()`: fit and prediction, KL ours / theirs", aabp, lambda row: with_divergence(row, "ours")),
        (f"`PTSVM()`{old}: fit and prediction, KL ours / theirs", ptsvm, lambda row: with_divergence(row, "ours")),
    ]
    table = ["| | " + " | ".join(SETS) + " |", "|---|" + "---:|" * len(SETS)]
    for title, found, show in rows:
        cells = [show(found[name]) if name in found else "" for name in SETS]
        if any(cells):
            table.append(f"| {title} | {' | '.join(cells)} |")
    return table


def block() -> str:
    """The text between the marks in the README."""
    sections = ("sabfgs", "saiis", "aaknn", "ptbayes", "aabp", "ptsvm")
    against = {name: row["ours / KNeighborsRegressor"] for name, row in load("aaknn").items()}
    slowest = max(against, key=against.__getitem__)
    recorded = any("ours to its objective" in key for row in load("sabfgs").values() for key in row)
    note = "" if recorded else " The time until our objective falls below theirs is recorded by the next `make bench`."
    return "\n".join(
        [
            "Time of python-ldl divided by ours: above 1 we are faster. All estimators have their default settings; "
            "CPU seconds on one core, on the first of ten folds in file order. KL is the mean Kullback-Leibler "
            "divergence on the test fold. Empty cells were not measured.",
            "",
            *lines(),
            "",
            f"The prediction of `AAKNN` takes {min(against.values()):.2f} to {max(against.values()):.2f} times as long "
            f"as that of `KNeighborsRegressor` (longest on {slowest}).{note}",
            "",
            f"Measured on: {machines(sections)}.",
        ]
    )


def render(page: str) -> str:
    """The README with the current block."""
    return between_marks(page, "speed", block())


def outputs() -> dict[Path, str]:
    """The current text of each file, by its path."""
    return {README: render(README.read_text(encoding="utf-8"))}


if __name__ == "__main__":
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
    print(f"wrote {README}")

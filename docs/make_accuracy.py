"""Write ``docs/accuracy.md`` from ``benchmarks/results/accuracy.json``."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "accuracy.json"
PAGE = ROOT / "docs" / "accuracy.md"
FIRST = ("auto", "mean", "linear", "neighbours", "kernel", "kernel-clr", "forest", "boosting")
HEADINGS = {
    "auto": "`AutoLDL`",
    "mean": "mean",
    "linear": "`SABFGSCV`",
    "neighbours": "`AAKNNCV`",
    "kernel": '`KernelRidgeLDL("degrees")`',
    "kernel-clr": '`KernelRidgeLDL("clr")`',
    "forest": "`RandomForestLDL`",
    "boosting": "`GradientBoostingLDL`",
}
INTRODUCTION = """# Accuracy

<!-- written by make docs from benchmarks/results/accuracy.json. Do not edit by hand. -->

Mean Kullback-Leibler divergence on rows that the models have not seen, over the first folds of ten; the number of
folds follows the name of the set. Settings, members and weights are chosen inside the training part of each fold.
The least divergence of a row is bold. An empty cell was not measured. `sklearn …` are what a user of scikit-learn would
try, behind `AARegressor`, which projects onto the simplex: a random forest, a network, ridge regression, and histogram
gradient boosting for each label.

`SKLDL_DATA=DIR OMP_NUM_THREADS=1 python benchmarks/accuracy.py` measures it again. The paper's datasets are not in this
repository.
"""
ORDERS = {
    "shuffled": "## Shuffled folds\n\nThe permutation of `numpy.random.default_rng(0)`, cut into ten.",
    "file": "## Folds in file order\n\nChunks of the file. SJAFFE shows ten persons and SBU_3DFE many faces of each "
    "person; chunks keep\nthe faces of one person nearly together, so that shuffled folds flatter models that know "
    "a face, neighbours above all.\nA pool judges its members by rows held out at random unless it is given which rows "
    "belong together: then it trusts neighbours\ntoo much, and a single linear or kernel model is better here. "
    "`AutoLDL().fit(X, D, groups=person)` and `skldl fit --groups person`\nhold whole persons out inside the fit; the "
    "paper's files do not name the persons, so that it could not be measured here.",
}


def page() -> str:
    """Give the text of the page."""
    entries = json.loads(RESULTS.read_text(encoding="utf-8"))
    parts = [INTRODUCTION]
    for order, heading in ORDERS.items():
        own = [entry for entry in entries if entry["order"] == order]
        if own:
            parts += [heading, "", _table(own), ""]
    seconds = {
        entry["dataset"]: entry for entry in entries if entry["model"] == "auto" and entry["order"] == "shuffled"
    }
    lines = [f"{name} {entry['fit_cpu_seconds']:.1f}" for name, entry in seconds.items()]
    parts.append(f"CPU seconds of one fit of `AutoLDL`, on one core of a busy machine: {', '.join(lines)}.")
    return "\n".join(parts) + "\n"


def _table(entries: list[dict]) -> str:
    models = [name for name in FIRST if any(entry["model"] == name for entry in entries)]
    models += sorted({entry["model"] for entry in entries} - set(models))
    sets = list(dict.fromkeys(entry["dataset"] for entry in entries))
    rows = [f"| | {' | '.join(HEADINGS.get(model, model) for model in models)} |", "|---" * (len(models) + 1) + "|"]
    for name in sets:
        found = {entry["model"]: entry for entry in entries if entry["dataset"] == name}
        best = min(entry["kullback_leibler"] for entry in found.values())
        cells = []
        for model in models:
            value = found[model]["kullback_leibler"] if model in found else None
            text = "" if value is None else f"{value:.5f}" if value < 0.02 else f"{value:.4f}"
            cells.append(f"**{text}**" if value == best and len(found) > 1 else text)
        folds = sorted({entry["folds"] for entry in found.values()})
        rows.append(f"| {name} ({', '.join(map(str, folds))}) | {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")

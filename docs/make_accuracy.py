"""Write ``docs/accuracy.md`` from ``accuracy.json`` in ``benchmarks/results``, and ``automl.json`` if it is there."""

import json
from pathlib import Path
from statistics import fmean, stdev

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "accuracy.json"
AUTOML_RESULTS = RESULTS.with_name("automl.json")
PAGE = ROOT / "docs" / "accuracy.md"
FEW_FOLDS = 3
FIRST = ("auto", "mean", "linear", "neighbours", "kernel", "kernel-clr", "forest", "boosting")
SINGLE = FIRST[2:]
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

<!-- written by make docs from benchmarks/results. Do not edit by hand. -->

Mean Kullback-Leibler divergence on unseen rows, over the first of ten folds; their number is beside the name of the
dataset. Settings, members and weights are chosen on the training part of each fold. The smallest divergence of a row is
bold. Empty cells were not measured. `sklearn …` are regressors of scikit-learn in an `AARegressor`, which projects
their predictions onto the simplex: a random forest, a network, ridge regression, and histogram gradient boosting for
each label.

The forest of the pool was chosen among five variants on the first three folds of SJAFFE, Yeast_dtt, Yeast_heat,
Yeast_spo5 and Yeast_spoem; on other folds and datasets the choice makes hardly any difference.

`SKLDL_DATA=DIR OMP_NUM_THREADS=1 python benchmarks/accuracy.py` repeats the measurement. The paper's datasets are not
in this repository.
"""
ORDERS = {
    "shuffled": "## Shuffled folds\n\nThe permutation of `numpy.random.default_rng(0)`, cut into ten.",
    "file": "## Folds in file order\n\nChunks of the file. SJAFFE and SBU_3DFE have many pictures of each person. In "
    "file order most of them are\nin one chunk; with shuffled folds models that recognise a face, above all "
    "neighbours, look better than they are.\nA pool evaluates its members on rows that are held out at random unless "
    "it knows the groups of the rows:\n`AutoLDL().fit(X, D, groups=person)` and `skldl fit --groups person` hold out "
    "all rows of a person. The paper's files\ndo not name the persons, so that this was not measured here.",
}
AUTOML = """## Packages with automatic choice of models

The first of the shuffled folds; their number is beside the name of the dataset. {packages} predict one number: each
label has its own regression with the mean squared error, and `AARegressor` projects the predictions onto the simplex.
The limit was {seconds:.0f} seconds for one fit of all labels, on one core; a fit that took five times as long was
stopped. `AutoLDL` has no limit and took {shortest:.0f} to {longest:.0f} CPU seconds on these datasets.
`python benchmarks/automl.py` repeats the measurement.
"""


def page() -> str:
    """The text of the page."""
    entries = json.loads(RESULTS.read_text(encoding="utf-8"))
    parts = [INTRODUCTION]
    for order, heading in ORDERS.items():
        own = [entry for entry in entries if entry["order"] == order]
        if own:
            parts += [heading, "", _table(own), "", *_against_single_models(own), *_ahead_on_few_folds(own)]
    seconds = {
        entry["dataset"]: entry for entry in entries if entry["model"] == "auto" and entry["order"] == "shuffled"
    }
    lines = [f"{name} {entry['fit_cpu_seconds']:.1f}" for name, entry in seconds.items()]
    parts.append(f"CPU seconds of one fit of `AutoLDL`, on one core of a busy machine: {', '.join(lines)}.")
    if AUTOML_RESULTS.exists():
        parts += ["", _automl(json.loads(AUTOML_RESULTS.read_text(encoding="utf-8")), seconds)]
    return "\n".join(parts) + "\n"


def _against_single_models(entries: list[dict]) -> list[str]:
    """Sentences on single models of this package that are better than `AutoLDL`, with a paired standard error."""
    found = {(entry["dataset"], entry["model"]): entry for entry in entries}
    sentences = []
    for (name, model), entry in found.items():
        ours = found.get((name, "auto"))
        if model not in SINGLE or ours is None or entry["kullback_leibler"] >= ours["kullback_leibler"]:
            continue
        gaps = [one - other for one, other in zip(ours["by_fold"], entry["by_fold"], strict=True)]
        error = f" ± {stdev(gaps) / len(gaps) ** 0.5:.1g} (standard error over folds)" if len(gaps) > 1 else ""
        sentences.append(
            f"On {name}, {HEADINGS[model]} is better than `AutoLDL` by {fmean(gaps):.2g}{error}, in "
            f"{sum(gap > 0 for gap in gaps)} of {len(gaps)} folds."
        )
    if not any(model in SINGLE for _, model in found):
        return []
    return [*(sentences or ["No single model of this package is better than `AutoLDL` on any of these datasets."]), ""]


def _ahead_on_few_folds(entries: list[dict]) -> list[str]:
    """Sentences on models that are better than `AutoLDL` over the first three folds, but not over all."""
    sentences = []
    found = {(entry["dataset"], entry["model"]): entry for entry in entries}
    for (name, model), entry in found.items():
        ours = found.get((name, "auto"), entry)
        if len(entry["by_fold"]) > FEW_FOLDS and entry["kullback_leibler"] > ours["kullback_leibler"]:
            their_mean, our_mean = (sum(one["by_fold"][:FEW_FOLDS]) / FEW_FOLDS for one in (entry, ours))
            if their_mean < our_mean:
                sentences.append(
                    f"On {name}, {HEADINGS.get(model, model)} is better than `AutoLDL` over the first {FEW_FOLDS} "
                    f"folds: {their_mean:.5f} against {our_mean:.5f}."
                )
    return [*sentences, ""] if sentences else []


def _automl(entries: list[dict], ours: dict[str, dict]) -> str:
    """The section on other packages; ``ours`` has the entries of `AutoLDL` by dataset."""
    versions = {entry["package"]: f"{entry['package']} {entry['package_version']}" for entry in entries}
    (limit,) = {entry["seconds"] for entry in entries}
    sets = list(dict.fromkeys(entry["dataset"] for entry in entries))
    times = [ours[name]["fit_cpu_seconds"] for name in sets]
    packages = " and ".join(sorted(versions.values()))
    n_folds = {entry["dataset"]: entry.get("folds", 1) for entry in entries}
    first = [
        {
            "dataset": name,
            "model": "auto",
            "folds": n_folds[name],
            "kullback_leibler": sum(ours[name]["by_fold"][: n_folds[name]]) / n_folds[name],
        }
        for name in sets
    ]
    others = [{"folds": 1} | entry | {"model": versions[entry["package"]]} for entry in entries]
    text = AUTOML.format(packages=packages, seconds=limit, shortest=min(times), longest=max(times))
    return f"{text}\n{_table(first + others)}"


def _table(entries: list[dict]) -> str:
    models = [name for name in FIRST if any(entry["model"] == name for entry in entries)]
    models += sorted({entry["model"] for entry in entries} - set(models))
    sets = list(dict.fromkeys(entry["dataset"] for entry in entries))
    rows = [f"| | {' | '.join(HEADINGS.get(model, model) for model in models)} |", "|---" * (len(models) + 1) + "|"]
    for name in sets:
        found = {entry["model"]: entry for entry in entries if entry["dataset"] == name}
        best = min(entry["kullback_leibler"] for entry in found.values() if entry["kullback_leibler"] is not None)
        cells = []
        for model in models:
            text = _cell(found[model]) if model in found else ""
            is_best = model in found and found[model]["kullback_leibler"] == best and len(found) > 1
            cells.append(f"**{text}**" if is_best else text)
        folds = sorted({entry["folds"] for entry in found.values()})
        rows.append(f"| {name} ({', '.join(map(str, folds))}) | {' | '.join(cells)} |")
    return "\n".join(rows)


def _cell(entry: dict) -> str:
    value = entry["kullback_leibler"]
    if value is None:
        return f"stopped after {entry['stopped_after']:.0f} s"
    return f"{value:.5f}" if value < 0.02 else f"{value:.4f}"


def outputs() -> dict[Path, str]:
    """The current text of each file, by its path."""
    return {PAGE: page()}


if __name__ == "__main__":
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
    print(f"wrote {PAGE}")

"""Write ``docs/leaderboard.md`` from the records of studies and benchmarks, and the times in ``docs/choose.md``.

Every cell is a skill: the fraction of the mean distribution's Kullback-Leibler divergence that the algorithm removes.
"""

import csv
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # both pages use the same names of models
from make_accuracy import HEADINGS
from marks import between_marks

from skldl.metrics import skill_ratio

ROOT = Path(__file__).resolve().parents[1]
PAGE, CHOICE = ROOT / "docs" / "leaderboard.md", ROOT / "docs" / "choose.md"
PAPER = ROOT / "studies" / "tkde2016" / "tables" / "kullback_leibler.csv"
AFTER, ACCURACY, SCALING = (
    ROOT / "benchmarks" / "results" / f"{name}.json" for name in ("after2016", "accuracy", "scaling")
)
NOT_IN_THE_AVERAGE = ("Artificial",)
FACES = ("SJAFFE", "SBU_3DFE")
Cells = dict[str, dict[str, float]]  # row → column → skill

INTRODUCTION = """# Leaderboard

<!-- written by make docs from studies/tkde2016 and benchmarks/results. Do not edit by hand. -->

Each cell is the skill of an algorithm on a dataset: the fraction of the mean distribution's Kullback-Leibler divergence
that it removes on test rows. 1 is perfect, 0 is no better than the mean, and negative values are worse. The best value
of a column is bold. Rows are sorted by their average over the real datasets. Empty cells were not measured. The tables
have different folds and settings, so that numbers can only be compared within a table.
"""
SECTIONS = {
    "paper": """## The six algorithms of the paper

Ten chunks in file order, settings chosen by the paper's protocol, features as they are in the files.
[The reproduction](reproduction.md) has all six measures with deviations, ranks and tests, and results under nested
cross-validation. `skldl bench tkde2016 --data DIR` repeats the measurement.
""",
    "after": """## After 2016

Chunks in file order, default settings: the linear algorithms and CPNN choose their penalty in `fit`. LDL4C, LDL-HR and
LDLM optimise the choice of the best label, not the whole distribution.
`SKLDL_DATA=DIR python benchmarks/after2016.py` repeats the measurement, together with python-ldl.
""",
    "accuracy": """## AutoLDL, single models and scikit-learn

Shuffled folds, with their numbers in [accuracy](accuracy.md); all choices depend only on the training rows.
`sklearn …` are regressors of scikit-learn in an `AARegressor`. Datasets for which the mean was not measured are left
out. SJAFFE and SBU_3DFE have many pictures of each person: with shuffled folds models that recognise a face look better
than they are, so that these two are not in the average ([folds in file order](accuracy.md#folds-in-file-order)).
""",
}


def page() -> str:
    """The text of the page."""
    parts = [INTRODUCTION]
    parts += [SECTIONS["paper"], table(paper_cells()), "", SECTIONS["after"]]
    for folds, cells in after_cells():
        datasets = dict.fromkeys(dataset for row in cells.values() for dataset in row)
        tested = {10: "All ten chunks", 1: "The first chunk"}.get(folds, f"The first {folds} chunks")
        parts += [f"{tested}, {', '.join(datasets)}:", "", table(cells), ""]
    return "\n".join([*parts, SECTIONS["accuracy"], table(accuracy_cells(), (*NOT_IN_THE_AVERAGE, *FACES)), ""])


def paper_cells() -> Cells:
    """The skills of the paper's six algorithms, from the table that the study made of its records."""
    cells: Cells = {}
    with PAPER.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            mean = float(row["Mean mean"])
            for column, value in row.items():
                name = column.removesuffix(" mean")
                if column.endswith(" mean") and name != "Mean":
                    cells.setdefault(name, {})[row["dataset"]] = float(skill_ratio(float(value), mean))
    return cells


def after_cells() -> list[tuple[int, Cells]]:
    """The skills of the algorithms published after the paper, one table for each set of test folds."""
    rows = [row for row in json.loads(AFTER.read_text(encoding="utf-8"))["rows"] if row["ours KL"] is not None]
    skills: dict[tuple[int, str], dict[str, float]] = {}
    for row in rows:
        name, _, dataset = row["case"].rpartition(", ")
        skills.setdefault((row["folds"], dataset), {})[name] = float(skill_ratio(row["ours KL"], row["mean KL"]))
    tables: dict[tuple[int, frozenset[str]], Cells] = {}
    for (folds, dataset), own in skills.items():
        cells = tables.setdefault((folds, frozenset(own)), {})
        for name, skill in own.items():
            cells.setdefault(name, {})[dataset] = skill
    return sorted(((folds, cells) for (folds, _), cells in tables.items()), key=lambda entry: -entry[0])


def accuracy_cells() -> Cells:
    """The skills of AutoLDL, of single models and of scikit-learn's regressors on shuffled folds."""
    entries = [e for e in json.loads(ACCURACY.read_text(encoding="utf-8")) if e["order"] == "shuffled"]
    means = {entry["dataset"]: entry["kullback_leibler"] for entry in entries if entry["model"] == "mean"}
    cells: Cells = {}
    for entry in entries:
        if entry["model"] != "mean" and entry["dataset"] in means:
            name = HEADINGS.get(entry["model"], entry["model"])
            skill = float(skill_ratio(entry["kullback_leibler"], means[entry["dataset"]]))
            cells.setdefault(name, {})[entry["dataset"]] = skill
    return cells


def table(cells: Cells, left_out: Sequence[str] = NOT_IN_THE_AVERAGE) -> str:
    """A table in Markdown, sorted by the average over the columns that are not left out, the best row first."""
    columns = list(dict.fromkeys(column for row in cells.values() for column in row))
    shared = [column for column in columns if all(column in row for row in cells.values())]
    shared = [column for column in shared if column not in left_out] or shared
    averages = {name: sum(row[column] for column in shared) / len(shared) for name, row in cells.items()}
    best = {column: max(row[column] for row in cells.values() if column in row) for column in columns}
    lines = [f"| | average | {' | '.join(columns)} |", "|---|" + "---:|" * (len(columns) + 1)]
    if len(columns) == 1:
        lines = [f"| | {columns[0]} |", "|---|---:|"]
    for name in sorted(cells, key=lambda name: -averages[name]):
        row = cells[name]
        texts = [_number(row[column]) if column in row else "" for column in columns]
        marked = [
            f"**{text}**" if row.get(column) == best[column] else text
            for column, text in zip(columns, texts, strict=True)
        ]
        marked = [_number(averages[name]), *marked] if len(columns) > 1 else marked
        lines.append(f"| {name} | {' | '.join(marked)} |")
    return "\n".join(lines)


def _number(skill: float) -> str:
    return f"{round(skill, 3) + 0.0:.3f}".replace("-", "−")


def choice(text: str) -> str:
    """The text of ``docs/choose.md`` with the current table of times between its marks."""
    rows = json.loads(SCALING.read_text(encoding="utf-8"))["rows"]
    sizes = [key for key in rows[0] if key.isdigit()]
    lines = [f"| | {' | '.join(f'{int(size):,} rows' for size in sizes)} |", "|---|" + "---:|" * len(sizes)]
    for row in rows:
        name, comma, remark = row["algorithm"].partition(",")
        seconds = [f"{row[size]:.2g}" if row.get(size) is not None else "" for size in sizes]
        lines.append(f"| `{name}`{comma}{remark} | {' | '.join(seconds)} |")
    return between_marks(text, "times", "\n".join(lines))


def outputs() -> dict[Path, str]:
    """The current text of each file, by its path."""
    return {PAGE: page(), CHOICE: choice(CHOICE.read_text(encoding="utf-8"))}


if __name__ == "__main__":
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")

"""Draw the figures of ``reproduction.md`` that need predictions, from the records in ``studies/tkde2016``.

Run ``python docs/make_study_figures.py`` before ``make_reproduction.py``. The records have predictions of a few rows,
but not the true distributions of data that must not be redistributed: these are read from the data folder
(``SKLDL_DATA``). If the records have no predictions, or the data of any dataset are not available, no figure is drawn
and those in ``docs/figures`` stay, because figures of some of the datasets would show another experiment.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from skldl.data import load_dataset
from skldl.exceptions import DatasetNotFoundError
from skldl.experiments import StudyResults
from skldl.metrics import PAPER_MEASURES
from skldl.metrics.selection import Selection, select_measures
from skldl.plots import MeasureDendrogramDisplay, style
from skldl.report._figures import typical_datasets, typical_examples

STUDY = Path(__file__).parents[1] / "studies" / "tkde2016"
FOLDER = Path(__file__).parent / "figures"
PAPER_EXAMPLES = ("Yeast_alpha", "Yeast_diau", "Yeast_dtt", "Yeast_spoem")
"""The datasets of Table 3 of the paper: the 2nd, 5th, 9th and 11th of its Table 1."""


def true_distributions(results: StudyResults, name: str) -> np.ndarray | None:
    """The true distributions of a dataset of the study, or None if it is not available or is another one."""
    try:
        dataset = load_dataset(name)
    except DatasetNotFoundError:
        return None
    if dataset.fingerprint != results.info[name]["fingerprint"]:
        return None
    return dataset.D_test if dataset.has_test_set else dataset.D


def kept_tables(results: StudyResults) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Predictions and true distributions of each dataset whose records keep some of all candidates.

    Returns
    -------
    tables : dict
        By dataset.
    missing : list of str
        Datasets whose true distributions are not available.
    """
    tables, missing = {}, []
    for name in results.datasets:
        if not results.kept_rows(name):
            continue
        truth = true_distributions(results, name)
        if truth is None:
            missing.append(name)
            continue
        found = results.predictions(name, D_true=truth)
        if found is not None and not any(np.isnan(table).any() for table in found["predicted"].values()):
            tables[name] = found
    return tables, missing


def of_the_paper(tables: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The datasets of which the paper shows examples; all where the study has none of these."""
    return {name: tables[name] for name in PAPER_EXAMPLES if name in tables} or tables


def examples(tables: dict[str, dict[str, Any]]) -> Any:
    """The figure of typical examples, as in the report of a study; every table here has all candidates."""
    display = typical_examples(of_the_paper(tables))
    assert display is not None
    return display.plot().figure_


def selection_on(found: dict[str, Any]) -> Selection:
    """The choice of measures on the kept predictions of all candidates for a dataset."""
    predicted = np.concatenate(list(found["predicted"].values()))
    return select_measures(np.tile(found["truth"], (len(found["predicted"]), 1)), predicted)


def what_was_chosen(selections: dict[str, Selection], tables: dict[str, dict[str, Any]], shown: str) -> dict[str, Any]:
    """The numbers in the captions: clusters of the six measures, chosen measures, and datasets of the examples."""
    clusters = {name: {s.clusters[measure] for measure in PAPER_MEASURES} for name, s in selections.items()}
    return {
        "dataset": shown,
        "n_rows": len(tables[shown]["rows"]),
        "n_candidates": len(tables[shown]["predicted"]),
        "n_clusters": len(clusters[shown]),
        "n_chosen": len(selections[shown].chosen),
        "chosen": [measure for measure in selections[shown].chosen if measure in PAPER_MEASURES],
        "in_six_clusters": [name for name, some in clusters.items() if len(some) == len(PAPER_MEASURES)],
        "n_datasets": len(selections),
        "examples": {name: len(tables[name]["labels"]) for name in typical_datasets(of_the_paper(tables))},
    }


def dendrogram(selection: Selection) -> Any:
    """The dendrogram of the measures."""
    with style():
        return MeasureDendrogramDisplay.from_selection(selection).figure_


def main() -> None:
    """Draw both figures, or print why they cannot be drawn."""
    mpl.use("Agg")
    tables, missing = kept_tables(StudyResults.load(STUDY))
    if missing:
        print(f"No figures drawn: {', '.join(missing)} not found. SKLDL_DATA must name the folder of the data.")
        return
    if not tables:
        print(f"No figures drawn: {STUDY} has no predictions.")
        return
    FOLDER.mkdir(exist_ok=True)
    selections = {name: selection_on(found) for name, found in tables.items()}
    shown = max(tables, key=lambda name: len(tables[name]["labels"]))
    said = json.dumps(what_was_chosen(selections, tables, shown), indent=1, ensure_ascii=False)
    (FOLDER / "measures.json").write_text(said + "\n", encoding="utf-8")
    pictures = {"typical-examples": examples(tables), "measures-dendrogram": dendrogram(selections[shown])}
    for name, figure in pictures.items():
        path = FOLDER / f"{name}.png"
        figure.savefig(path, dpi=110, metadata={"Software": None}, pil_kwargs={"optimize": True})
        plt.close(figure)
        print(f"{path.name}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()

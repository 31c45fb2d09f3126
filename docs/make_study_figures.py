"""Draw the figures of ``reproduction.md`` that need predictions, from the records in ``studies/tkde2016``.

Run ``python docs/make_study_figures.py`` before ``make_reproduction.py``. The records keep predictions of a few rows,
but no true distributions of data that may not be passed on: these are read from the data folder (``SKLDL_DATA``). Where
records hold no predictions, or the data are not available, no figure is drawn and the ones in ``docs/figures`` stay.
"""

from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from skldl.data import load_dataset
from skldl.exceptions import DatasetNotFoundError
from skldl.experiments import StudyResults
from skldl.metrics.selection import select_measures
from skldl.plots import MeasureDendrogramDisplay, style
from skldl.report._prediction_figures import typical_examples

STUDY = Path(__file__).parents[1] / "studies" / "tkde2016"
FOLDER = Path(__file__).parent / "figures"


def true_distributions(results: StudyResults, name: str) -> np.ndarray | None:
    """The true distributions of a dataset of the study, or None if it is not available or is another one."""
    try:
        dataset = load_dataset(name)
    except DatasetNotFoundError:
        return None
    if dataset.fingerprint != results.info[name]["fingerprint"]:
        return None
    return dataset.D_test if dataset.has_test_set else dataset.D


def kept_tables(results: StudyResults) -> dict[str, dict[str, Any]]:
    """For each dataset with predictions of every candidate and true distributions: both."""
    tables = {}
    for name in results.datasets:
        if not results.kept_rows(name):
            continue
        found = results.predictions(name, D_true=true_distributions(results, name))
        if found is None or any(np.isnan(table).any() for table in found["predicted"].values()):
            continue
        tables[name] = found
    return tables


def examples(tables: dict[str, dict[str, Any]]) -> Any:
    """The same figure as in the report of a study; every table here has all candidates."""
    display = typical_examples(tables)
    assert display is not None
    return display.plot().figure_


def dendrogram(tables: dict[str, dict[str, Any]]) -> Any:
    """The tree of measures on the kept predictions of all candidates for the dataset with most labels."""
    found = tables[max(tables, key=lambda name: len(tables[name]["labels"]))]
    predicted = np.concatenate(list(found["predicted"].values()))
    truth = np.tile(found["truth"], (len(found["predicted"]), 1))
    with style():
        return MeasureDendrogramDisplay.from_selection(select_measures(truth, predicted)).figure_


def main() -> None:
    """Draw both figures, or say why not."""
    mpl.use("Agg")
    tables = kept_tables(StudyResults.load(STUDY))
    if not tables:
        print(f"{STUDY} holds no predictions, or the data are not available: no figures drawn")
        return
    FOLDER.mkdir(exist_ok=True)
    for name, figure in (("typical-examples", examples(tables)), ("measures-dendrogram", dendrogram(tables))):
        path = FOLDER / f"{name}.png"
        figure.savefig(path, dpi=110, metadata={"Software": None}, pil_kwargs={"optimize": True})
        plt.close(figure)
        print(f"{path.name}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()

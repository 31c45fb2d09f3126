"""The predictions that records keep, as Parquet: one table for each dataset, for every program that reads such."""

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from skldl.experiments.results import StudyResults
from skldl.experiments.tasks import unpack
from skldl.utils.files import whole_file

FOLDER = "predictions"


def has_predictions(results: StudyResults) -> bool:
    """Whether the records keep any prediction."""
    return any("predictions" in record for record in results.evaluations)


def write_predictions(results: StudyResults, folder: Path) -> list[Path]:
    """Write ``predictions/<dataset>.parquet`` for each dataset with kept predictions; nothing without pyarrow."""
    if find_spec("pyarrow") is None:  # the records hold them all the same, and this is the end of a long run
        return []
    from pyarrow import parquet

    paths: list[Path] = []
    for name in results.datasets:
        table = prediction_table(results, name)
        if table is not None:
            path = folder / FOLDER / f"{_file_name(name)}.parquet"
            path = path if path not in paths else path.with_stem(f"{path.stem}-{len(paths)}")
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as stream:
                parquet.write_table(table, stream)
            paths.append(path)
    return paths


def prediction_table(results: StudyResults, dataset: str) -> Any:
    """All kept predictions for a dataset, or None if there are none.

    The table of Arrow has one line for each candidate, repeat, fold and row; a column ``predicted.<label>`` for each
    label, and ``true.<label>`` if the records keep the true distributions.
    """
    import pyarrow as pa

    records = [r for r in results.evaluations if r["dataset"] == dataset and "predictions" in r]
    if not records:
        return None
    info = results.info[dataset]
    rows = [np.asarray(record["predictions"]["rows"], dtype=np.int64) for record in records]
    columns: dict[str, Any] = {
        key: np.repeat([record[key] for record in records], [len(some) for some in rows])
        for key in ("candidate", "repeat", "fold")
    }
    columns["row"] = np.concatenate(rows)
    predicted = np.concatenate([unpack(record["predictions"]) for record in records])
    columns |= {f"predicted.{label}": predicted[:, j] for j, label in enumerate(info["label_names"])}
    if "truth" in info:
        truth = unpack(info["truth"])[np.searchsorted(info["truth"]["rows"], columns["row"])]
        columns |= {f"true.{label}": truth[:, j] for j, label in enumerate(info["label_names"])}
    return pa.table(columns)


def _file_name(dataset: str) -> str:
    """A valid file name on every system for any name of a dataset."""
    return re.sub(r"[^\w.-]+", "-", dataset).strip(".-")[:100] or "dataset"

"""Files of a study besides the records: tables, statistics, predictions, and a page with links to them."""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from skldl.experiments.grids import grid_end_notes
from skldl.experiments.results import StudyResults
from skldl.experiments.statistics_text import statistics_text
from skldl.experiments.tables import (
    dataset_table,
    interval_table,
    measure_table,
    settings_table,
    skill_table,
    time_table,
)
from skldl.experiments.tasks import unpack
from skldl.metrics import MEASURES
from skldl.selection import PROTOCOLS
from skldl.selection._protocols import FIXED_TEST_SET
from skldl.utils.files import whole_file
from skldl.utils.tables import TextTable, markdown_text


def write_outputs(results: StudyResults, folder: str | Path) -> list[Path]:
    """Write tables, statistics and kept predictions.

    The same records give the same bytes, apart from ``tables/time.*``, which has all times. The paths are returned in
    the order in which a reader wants them.
    """
    folder = Path(folder)
    texts = output_texts(results)
    return [*(_write(folder / name, text) for name, text in texts.items()), *write_predictions(results, folder)]


def output_texts(results: StudyResults) -> dict[str, str]:
    """The files that `write_outputs` writes, apart from the predictions: from the name of each to its text."""
    texts: dict[str, str] = {}
    tables: dict[str, TextTable] = {measure: measure_table(results, measure) for measure in results.measures}
    criterion = results.study["criterion"]
    tables["skill"] = skill_table(results, criterion if criterion in results.measures else results.measures[0])
    tables["datasets"] = dataset_table(results)
    tables["settings"] = settings_table(results)
    tables["time"] = time_table(results)
    if (intervals := interval_table(results)) is not None:
        tables["intervals"] = intervals
    for name, table in tables.items():
        texts[f"tables/{name}.csv"] = table.to_csv()
        texts[f"tables/{name}.md"] = table.to_markdown()
        texts[f"tables/{name}.tex"] = table.to_latex()
    texts["statistics.md"] = statistics_text(results)
    return {"README.md": overview_text(results, has_intervals=intervals is not None), **texts}


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as stream:
        stream.write(text.encode())
    return path


def meaning(results: StudyResults) -> list[str]:
    """Describe the protocol that was used, in sentences."""
    study = results.study
    order = {"file": "contiguous chunks of the file", "shuffled": f"drawn at random with seed {study['seed']}"}
    sentences = [PROTOCOLS[study["protocol"]].meaning]
    if study["protocol"] != "holdout":
        sentences.append(f"{study['folds']} folds, {order[study['order']]}; repeats: {study['repeats']}.")
    if given := [name for name in results.datasets if "n_splits" in results.info[name]]:
        sentences.append(f"The splits of {', '.join(given)} were given in a file.")
    if any(info["n_test"] for info in results.info.values()):
        sentences.append(FIXED_TEST_SET)
    sentences.append(
        f"Selection criterion: {MEASURES[study['criterion']].title}. Deviations are over the tests, with n − 1."
    )
    return sentences


def overview_text(results: StudyResults, *, has_intervals: bool) -> str:
    """Write the page that describes what was run and lists the files, with the table of intervals if there is one."""
    study = results.study
    lines = [f"# Study {markdown_text(study['name'])}", ""]
    if study["title"]:
        lines += [markdown_text(study["title"]), ""]
    lines += [f"**Protocol {study['protocol']}.** {markdown_text(' '.join(meaning(results)))}", ""]
    lines += [f"- Datasets: {_listed(results.datasets)}"]
    if results.missing:
        lines.append(f"- Not found, and so not run: {_listed(results.missing)}")
    lines += [f"- Candidates: {_listed(results.candidates)}", f"- Measures: {_listed(results.measures)}"]
    if results.failures:
        lines.append(f"- **Tasks that failed: {len(results.failures)}**")
        lines += [f"  - {markdown_text(failure_line(record))}" for record in results.failures]
    if lost := failed_settings(results):
        lines.append(f"- **Settings that failed in a selection: {len(lost)}**")
        lines += [f"  - {markdown_text(line)}" for line in lost]
    lines += [f"- {markdown_text(note)}" for note in grid_end_notes(results)]
    again = "`skldl bench study.toml` runs it again"
    if not repeats_from_file(results):
        again = "its candidates were built in Python or by `skldl evaluate`: run that again to repeat it"
    lines += [
        "",
        "| File | What it holds |",
        "|---|---|",
        f"| `study.toml` | the study; {again} |",
        "| `records.jsonl` | every task with its settings, measures, times, versions; the source of all other files |",
        "| `tables/<measure>.md`, `.tex`, `.csv` | mean ± std (rank) |",
        "| `tables/skill.*`, `settings.*`, `datasets.*` | skill against the mean, chosen settings, the data |",
        "| `tables/time.*` | all times |",
        "| `statistics.md` | tests |",
    ]
    if has_intervals:
        lines.append("| `tables/intervals.*` | coverage and width of the intervals of each candidate |")
    if has_predictions(results):
        lines.append("| `predictions/<dataset>.parquet` | the predictions in the records, as tables (needs pyarrow) |")
    return "\n".join(lines) + "\n"


def _listed(words: Sequence[str]) -> str:
    return ", ".join(markdown_text(word) for word in words)


def repeats_from_file(results: StudyResults) -> bool:
    """Whether ``skldl bench study.toml`` can run the study again: not if a candidate is an object of Python."""
    return all("estimator" in entry for entry in results.study["candidates"])


def failed_settings(results: StudyResults) -> list[str]:
    """List the settings that failed while selection continued with the others: a line for each, with its count.

    Messages of one setting that differ only in numbers, such as the rows of a fold, are one line: the first of them.
    """
    seen: dict[tuple[str, str], list[str]] = {}
    for record, error in results.failed_settings:
        text = re.sub(r"'(?:\w+__)+(\w+)'", r"'\1'", " ".join(error.split()))  # without the steps of a pipeline
        line = f"{record['dataset']} · {record['candidate']}: {text}"
        setting, _, reason = line.partition("}: ")
        seen.setdefault((setting, re.sub(r"\d+", "0", reason)), []).append(line)
    return [lines[0] if len(lines) == 1 else f"{lines[0]} ({len(lines)} times)" for lines in seen.values()]


def failure_line(record: dict[str, object]) -> str:
    """Describe in one line which task failed and why."""
    where = f"{record['dataset']} · {record['candidate']} · {record['kind']} {int(str(record['fold'])) + 1}"
    return f"{where}: {' '.join(str(record['error']).split())}"


def has_predictions(results: StudyResults) -> bool:
    """Whether the records keep any prediction."""
    return any("predictions" in record for record in results.evaluations)


def write_predictions(results: StudyResults, folder: Path) -> list[Path]:
    """Write ``predictions/<dataset>.parquet`` for each dataset with kept predictions; nothing without pyarrow."""
    if find_spec("pyarrow") is None:  # the records hold them anyway; a long run must not fail at its end
        return []
    from pyarrow import parquet

    paths: list[Path] = []
    for name in results.datasets:
        table = prediction_table(results, name)
        if table is not None:
            path = folder / "predictions" / f"{_file_name(name)}.parquet"
            path = path if path not in paths else path.with_stem(f"{path.stem}-{len(paths)}")  # names such as a/b, a-b
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as stream:
                parquet.write_table(table, stream)
            paths.append(path)
    return paths


def prediction_table(results: StudyResults, dataset: str) -> Any:
    """All kept predictions for a dataset, or None if there are none.

    The Arrow table has one line for each candidate, repeat, fold and row; a column ``predicted.<label>`` for each
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

"""The first records of a study, which describe it and its data; and the check that records belong to it."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from skldl.annotators import RaterSummary
from skldl.data._dataset import Dataset
from skldl.distributions._tables import is_missing, plain_label
from skldl.exceptions import Parameter, RecordsError
from skldl.experiments.store import FORMAT, MemoryStore, Record
from skldl.experiments.study import Study, fingerprint_of
from skldl.experiments.study_file import dump_study
from skldl.experiments.tasks import Rules, kept_rows, pack, versions
from skldl.utils.files import whole_file


def open_store(
    store: MemoryStore,
    study: Study,
    datasets: Mapping[str, Dataset],
    rules: Rules,
    missing: tuple[str, ...],
    out: str | Path | None,
) -> None:
    """Write the study, the header and the description of the data, or compare them with the existing ones."""
    now = {
        "kind": "header",
        "format": FORMAT,
        "skldl": versions()["skldl"],
        "fingerprint": study.fingerprint(),
        "study": study.to_dict(),
        "keep_predictions": rules.keep,
        "datasets": {name: dataset.fingerprint for name, dataset in datasets.items()},
        "missing": list(missing),
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    more_repeats = _compare_headers(store, now) if store.records else False
    if out is not None:  # before the header, so that records never exist without their study
        with whole_file(Path(out) / "study.toml") as stream:
            stream.write(dump_study(study).encode())
    if not store.records:
        store.append(now)
    if more_repeats:
        store.append({"kind": "change", "repeats": study.repeats, "fingerprint": study.fingerprint()})
    described = {record["name"] for record in store.records if record["kind"] == "dataset"}
    for name, dataset in datasets.items():
        if name not in described:
            may_be_passed_on = rules.keep != "predictions"
            known = dataset.describe() | noise_floor_of(dataset, study) | raters_of(dataset, named=may_be_passed_on)
            store.append({"kind": "dataset", **known, **_truth(dataset, rules)})


def noise_floor_of(dataset: Dataset, study: Study) -> dict[str, Any]:
    """Estimate the noise floor of each measure, the value that the true distributions would have, and its error.

    There is none without counts of votes, nor with a fixed test set, whose votes are not known. In records the noise
    floor is called ``noise_ceiling``.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.data import Dataset
    >>> counts = np.array([[3, 1], [2, 2], [0, 4]])
    >>> dataset = Dataset("d", np.eye(3), counts / 4, counts=counts)
    >>> study = Study([dataset], measures=["clark"], folds=3)
    >>> 0 < noise_floor_of(dataset, study)["noise_ceiling"]["clark"] < 2 ** 0.5
    True
    """
    if dataset.has_test_set:
        return {}
    floors = dataset.noise_floor([*dict.fromkeys([*study.measures, study.criterion])])
    if not floors:
        return {}
    return {
        "noise_ceiling": {name: floor.value for name, floor in floors.items()},
        "noise_ceiling_smoothed": {name: floor.smoothed for name, floor in floors.items()},
        "noise_ceiling_error": {name: floor.standard_error for name, floor in floors.items()},
    }


def raters_of(dataset: Dataset, *, named: bool = True) -> dict[str, Any]:
    """Summarise the quality of the raters, without their votes, as `skldl.annotators.RaterSummary.from_dict` takes it.

    There is no summary if the dataset has no ``raters``, or no row has votes of two of them. Without ``named`` they are
    numbered.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.data import Dataset
    >>> votes = np.array([["a", "a"], ["b", "a"], ["b", "b"]])
    >>> D = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    >>> dataset = Dataset("d", np.eye(3), D, ("a", "b"), votes=votes, raters=["ann", "bob"])
    >>> raters_of(dataset)["raters"]["raters"]["rater"]
    ['ann', 'bob']
    """
    if dataset.votes is None or dataset.raters is None:
        return {}
    votes = np.asarray(dataset.votes, dtype=object)
    given = np.array([[not is_missing(vote) for vote in row] for row in votes.tolist()])
    if given.sum(axis=1).max(initial=0) < 2:
        return {}
    row, _ = np.nonzero(given)
    columns = {
        "item": row,
        "rater": np.broadcast_to(dataset.raters, votes.shape)[given],
        "label": np.array([str(plain_label(vote)) for vote in votes[given].tolist()], dtype=object),
    }
    summary = RaterSummary.from_votes(
        columns, item="item", annotator="rater", label="label", labels=list(dataset.label_names)
    )
    return {"raters": summary.to_dict(named=named)}


def _truth(dataset: Dataset, rules: Rules) -> dict[str, Any]:
    """The true distributions of the rows whose predictions are kept."""
    rows = kept_rows(dataset, rules)
    if rules.keep == "predictions" or not len(rows):  # the data may not be passed on, or nothing is kept
        return {}
    truth = (dataset.D_test if dataset.has_test_set else dataset.D)[rows]
    groups = {}
    if dataset.groups is not None and not dataset.has_test_set:  # numbers, because names may be those of people
        groups = {"groups": np.unique(np.asarray(dataset.groups).astype(str), return_inverse=True)[1][rows].tolist()}
    return {"truth": {"rows": rows.tolist(), **pack(truth), **groups}}


def current_study(records: list[Record]) -> dict[str, Any]:
    """The study that records belong to, as its file holds it, with its current number of repeats."""
    study = dict(records[0]["study"])
    for record in records:
        if record["kind"] == "change":
            study["repeats"] = record["repeats"]
    return study


def check_records(records: list[Record]) -> None:
    """Reject records that contradict their header: a study or data that were edited."""
    header = records[0]
    if "fingerprint" in header and fingerprint_of(header["study"]) != header["fingerprint"]:
        raise RecordsError(
            "The study in the header of the records is not the one that its fingerprint belongs to: the file was "
            "changed after it was written. Run the study again in another folder."
        )
    for record in records:
        name = record.get("name") if record["kind"] == "dataset" else record.get("dataset")
        expected = header.get("datasets", {}).get(name)
        if expected is not None and record.get("fingerprint", expected) != expected:
            raise RecordsError(
                f"A record of {name} belongs to other data than the header states: records of two studies were mixed. "
                "Run the study again in another folder."
            )


def _compare_headers(store: MemoryStore, now: Record) -> bool:
    """Reject records of another study; return whether the study has more repeats than its records."""
    header = store.records[0]
    check_records(store.records)
    if header["skldl"] != now["skldl"]:
        raise RecordsError(
            f"These records were written by scikit-ldl {header['skldl']}, this is {now['skldl']}; numbers of two "
            "versions must not mix. Continue with that version, or start in another folder."
        )
    then, today = current_study(store.records), now["study"]
    if fingerprint_of(then) != now["fingerprint"] and not (
        today["repeats"] > then["repeats"]
        and fingerprint_of(then | {"repeats": today["repeats"]}) == now["fingerprint"]
    ):
        raise RecordsError(
            f"These records belong to another study: {_difference(then, today)}. "
            "Repeat the options of the first run, or start in another folder."
        )
    for name, fingerprint in header["datasets"].items():
        if now["datasets"].get(name) != fingerprint:
            raise RecordsError(
                f"The data of {name} have changed since these records were written: the file, or the options on its "
                "columns. Start in another folder."
            )
    if header["keep_predictions"] != now["keep_predictions"]:
        raise RecordsError(
            f"These records keep predictions: {header['keep_predictions']}, not {now['keep_predictions']}. Use ",
            Parameter("keep_predictions", header["keep_predictions"]),
            ", or start in another folder.",
        )
    before, after = header["versions"], now["versions"]
    names = [name for name in after if name != "skldl" and before[name] != after[name]]
    if names:
        changed = ", ".join(f"{name} {before[name]} → {after[name]}" for name in names)
        store.notices.append(f"Other versions than when the study began: {changed}. Numbers may differ.")
    return bool(today["repeats"] > then["repeats"])


def _difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Name the fields in which two studies differ, the most important first."""
    changes = []
    for key in then:
        if then[key] == now.get(key) or key in ("title", "timeout"):
            continue
        if key in ("datasets", "candidates"):
            names = [[entry["name"] for entry in side[key]] for side in (then, now)]
            before, after = (", ".join(some) for some in names)
            changes.append(f"{key} were {before}, now {after}" if before != after else f"{key} have other parameters")
        else:
            changes.append(f"{key} was {then[key]!r}, now {now.get(key)!r}")
    return "; ".join(changes)

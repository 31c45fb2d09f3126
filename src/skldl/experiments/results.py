"""`StudyResults`: the records of a study, in the order of the study."""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from skldl.exceptions import Message, Parameter, RecordsError, UnknownNameError
from skldl.experiments.header import check_records, current_study
from skldl.experiments.store import FILE_NAME, Record, read_records
from skldl.experiments.study import measure_name
from skldl.experiments.tasks import Task, unpack
from skldl.metrics import MEASURES, skill_ratio
from skldl.utils.spelling import find
from skldl.utils.typing import FloatArray

TIMES = ("fit_seconds", "predict_seconds", "selection_seconds")


class StudyResults:
    """The results of a study.

    Parameters
    ----------
    records : sequence of dict
        Its records, the header first. Of two records of one task the later counts.
    notices : iterable of str
        What the user should know about the run.
    missing : iterable of str
        Datasets of the study that were not found.

    Attributes
    ----------
    study : dict
        The study as its file holds it.
    header : dict
        The header of the record file: study, versions, date.
    datasets, candidates, measures : list of str
        Names, in the order of the study.
    info : dict
        For each dataset its size, label names and fingerprints.
    evaluations, selections : list of dict
        The records of both kinds of task, in the order of the study.

    Examples
    --------
    >>> from skldl.data import Dataset
    >>> from skldl.experiments import Candidate, Study, run_study
    >>> from skldl.testing import make_distributions
    >>> dataset = Dataset("toy", *make_distributions(20))
    >>> results = run_study(Study([dataset], [Candidate("Mean", "skldl:MeanDistribution")], folds=2))
    >>> results.datasets, results.candidates
    (['toy'], ['Mean'])
    >>> results.means("clark").shape
    (1, 1)
    """

    def __init__(self, records: Sequence[Record], *, notices: Iterable[str] = (), missing: Iterable[str] = ()) -> None:
        if not records:
            raise RecordsError("The record file is empty: the study was stopped before it began. Start it again.")
        self.header = records[0]
        self.study: dict[str, Any] = current_study(list(records))
        self.notices = list(notices)
        self.missing = list(missing) or list(self.header.get("missing", []))
        self.datasets = [entry["name"] for entry in self.study["datasets"]]
        self.candidates = [entry["name"] for entry in self.study["candidates"]]
        self.measures = list(self.study["measures"])
        self.info: dict[str, Record] = {r["name"]: r for r in records if r["kind"] == "dataset"}
        self.evaluations = self._in_order(records, "evaluation")
        self.selections = self._in_order(records, "selection")

    def _in_order(self, records: Sequence[Record], kind: str) -> list[Record]:
        latest = {Task.of(record): record for record in records if record["kind"] == kind}
        row = {name: place for place, name in enumerate(self.datasets)}
        column = {name: place for place, name in enumerate(self.candidates)}
        tasks = sorted(latest, key=lambda task: (row[task.dataset], column[task.candidate], task.repeat, task.fold))
        return [latest[task] for task in tasks]

    @classmethod
    def load(cls, folder: str | Path) -> "StudyResults":
        """Read the results from the folder of a study.

        Parameters
        ----------
        folder : path
            The folder that ``skldl bench --out`` named.

        Returns
        -------
        StudyResults
            The results as far as they are recorded.
        """
        records, torn = read_records(Path(folder) / FILE_NAME)
        if records:
            check_records(records)
        notice = Message(
            f"The last line of {FILE_NAME} is torn and was left out; ",
            Parameter("resume", True),
            " runs its task again.",
        )
        return cls(records, notices=[notice] if torn else ())

    @property
    def baseline(self) -> str:
        """Name of the mean baseline."""
        return next(
            entry["name"]
            for entry in self.study["candidates"]
            if entry.get("estimator", "").endswith(":MeanDistribution")
            or "MeanDistribution()" in entry.get("described", "")  # by itself or at the end of a pipeline
        )

    @property
    def control(self) -> str:
        """Name of the candidate that the others are tested against; the study may spell it otherwise."""
        return find(self.study["control"], {name: name for name in self.candidates}, "candidate")

    @property
    def averaged(self) -> list[str]:
        """Datasets that count in average ranks and tests."""
        return [name for name in self.datasets if not self.info[name]["apart"]] or self.datasets

    @property
    def families(self) -> list[list[str]]:
        """The averaged datasets in groups that share the same features."""
        groups: dict[str, list[str]] = {}
        for name in self.averaged:
            groups.setdefault(self.info[name]["family"], []).append(name)
        return list(groups.values())

    @cached_property
    def _cells(self) -> dict[tuple[str, str], list[Record]]:
        cells: dict[tuple[str, str], list[Record]] = {(d, c): [] for d in self.datasets for c in self.candidates}
        for record in self.evaluations:
            cells[record["dataset"], record["candidate"]].append(record)
        return cells

    @cached_property
    def _states(self) -> dict[tuple[str, str], str]:
        return {(d, c): self._state(d, c) for d in self.datasets for c in self.candidates}

    @property
    def failures(self) -> list[Record]:
        """Records of the tasks that failed."""
        return [record for record in [*self.selections, *self.evaluations] if record["status"] != "ok"]

    @property
    def failed_settings(self) -> list[tuple[Record, str]]:
        """Settings that failed in a selection, which continued without them: the record and the error."""
        records = [*self.selections, *self.evaluations]
        return [(r, error) for r in records for error in (r.get("selection") or r).get("errors", ())]

    def n_expected(self, dataset: str) -> int:
        """Number of tests of each candidate on a dataset.

        Parameters
        ----------
        dataset : str
            Name of the dataset.

        Returns
        -------
        int
            The number of tests.
        """
        info = self.info[dataset]
        usual = 1 if self.study["protocol"] == "holdout" else int(self.study["folds"])
        return int(self.study["repeats"]) * (1 if info["n_test"] else int(info.get("n_splits", usual)))

    def state(self, dataset: str, candidate: str) -> str:
        """Describe an incomplete cell of the tables: empty if all its tests ran.

        Parameters
        ----------
        dataset, candidate : str
            The cell.

        Returns
        -------
        str
            Such as ``failed 2/10`` or ``not run 3/10``.
        """
        return self._states[dataset, candidate]

    def _state(self, dataset: str, candidate: str) -> str:
        expected = self.n_expected(dataset)
        records = self._cells[dataset, candidate]
        failed = sum(record["status"] != "ok" for record in records)
        if failed:
            return f"failed {failed}/{expected}"
        return f"not run {expected - len(records)}/{expected}" if len(records) < expected else ""

    def values(self, measure: str, dataset: str, candidate: str) -> FloatArray:
        """One value per test of a candidate on a dataset; of a measure, or of a time.

        Parameters
        ----------
        measure : str
            Name of a measure of the study, or ``fit_seconds``, ``predict_seconds`` or ``selection_seconds``.
        dataset, candidate : str
            Names.

        Returns
        -------
        ndarray
            The values in the order of repeats and folds; empty if a test is missing or failed, since means over
            different folds must not be compared.
        """
        if self.state(dataset, candidate):
            return np.empty(0)
        records = self._cells[dataset, candidate]
        if measure in TIMES:
            return np.array([record[measure] for record in records], dtype=np.float64)
        name = self._measure(measure)
        return np.array([float(record["measures"][name]) for record in records])

    def _measure(self, word: str) -> str:
        name = word if word in self.measures else measure_name(word)
        if name not in self.measures:
            raise UnknownNameError(f"The study did not compute {name}. It has {', '.join(self.measures)}.")
        return name

    def means(self, measure: str, datasets: Sequence[str] | None = None) -> FloatArray:
        """Mean over the tests, for each dataset and candidate.

        Parameters
        ----------
        measure : str
            Name of a measure of the study, or of a time.
        datasets : sequence of str, default=None
            Which datasets; None means all.

        Returns
        -------
        ndarray of shape (n_datasets, n_candidates)
            The means; NaN where a test is missing or failed.
        """
        return self._each_cell(np.mean, 1, measure, datasets)

    def deviations(self, measure: str, datasets: Sequence[str] | None = None) -> FloatArray:
        """Standard deviation (n − 1) over the tests, for each dataset and candidate.

        Parameters
        ----------
        measure : str
            Name of a measure of the study, or of a time.
        datasets : sequence of str, default=None
            Which datasets; None means all.

        Returns
        -------
        ndarray of shape (n_datasets, n_candidates)
            The deviations; NaN where there are fewer than two tests.
        """
        return self._each_cell(partial(np.std, ddof=1), 2, measure, datasets)

    def losses(self, measure: str) -> FloatArray:
        """Mean losses, for each dataset and candidate; lower is better, see `skldl.metrics.Measure.loss`.

        Parameters
        ----------
        measure : str
            Name of a measure of the study.

        Returns
        -------
        ndarray of shape (n_datasets, n_candidates)
            The losses; NaN where a test is missing or failed.
        """
        name = self._measure(measure)
        n_labels = [[self.info[dataset]["n_labels"]] for dataset in self.datasets]
        return MEASURES[name].loss(self.means(name), n_labels)

    def skills(self, measure: str) -> FloatArray:
        """Fraction of the loss of the mean baseline that each candidate removes on each dataset.

        Parameters
        ----------
        measure : str
            Name of a measure of the study.

        Returns
        -------
        ndarray of shape (n_datasets, n_candidates)
            1 is perfect, below 0 is worse than the mean; NaN where there is no result, and everywhere for a similarity
            without upper bound.
        """
        losses = self.losses(measure)
        if not MEASURES[self._measure(measure)].has_zero_loss:
            return np.full_like(losses, np.nan)
        return skill_ratio(losses, losses[:, [self.candidates.index(self.baseline)]])

    def _each_cell(
        self, summary: Callable[[FloatArray], Any], min_tests: int, measure: str, datasets: Sequence[str] | None
    ) -> FloatArray:
        """Summarise the tests of each dataset and candidate; NaN where there are fewer than ``min_tests``."""
        names = self.datasets if datasets is None else datasets
        cells = [[self.values(measure, dataset, candidate) for candidate in self.candidates] for dataset in names]
        return np.array([[summary(cell) if len(cell) >= min_tests else np.nan for cell in row] for row in cells])

    def chosen(self, dataset: str, candidate: str) -> list[dict[str, Any]]:
        """The setting of each test of a candidate on a dataset.

        Parameters
        ----------
        dataset, candidate : str
            Names.

        Returns
        -------
        list of dict
            The chosen hyper-parameters of each successful test.
        """
        return [record["params"] for record in self._cells[dataset, candidate] if record["status"] == "ok"]

    def predictions(self, dataset: str, *, D_true: FloatArray | None = None) -> dict[str, Any] | None:
        """Predictions for a dataset, as far as the records keep them.

        Parameters
        ----------
        dataset : str
            Its name, in any spelling.
        D_true : ndarray, default=None
            True distributions of the dataset, or of its fixed test set, for records that were kept without them.

        Returns
        -------
        dict or None
            ``rows`` (row numbers), ``labels`` (names), ``truth`` (rows × labels) and ``predicted``, which maps each
            candidate to an array of the same shape, of the first repeat, NaN where there is no prediction; ``groups``,
            the number of the group of each row, or None without groups. Rows sum to one, though records hold single
            precision. None if the study kept no predictions, or no true distributions and ``D_true`` is not given.
        """
        name = find(dataset, {known: known for known in self.datasets}, "dataset")
        info = self.info[name]
        if "truth" in info:
            rows, truth = np.asarray(info["truth"]["rows"]), _summing_to_one(unpack(info["truth"]))
        else:
            rows = np.array(self.kept_rows(name), dtype=np.intp)
            if D_true is None or not len(rows):
                return None
            truth = np.asarray(D_true)[rows]
        predicted = {}
        for candidate in self.candidates:
            table = np.full(truth.shape, np.nan)
            for record in self._cells[name, candidate]:
                if record["repeat"] == 0 and "predictions" in record:
                    table[np.searchsorted(rows, record["predictions"]["rows"])] = unpack(record["predictions"])
            predicted[candidate] = _summing_to_one(table)
        groups = info.get("truth", {}).get("groups")
        return {
            "rows": rows,
            "labels": info["label_names"],
            "truth": truth,
            "predicted": predicted,
            "groups": None if groups is None else np.asarray(groups),
        }

    def kept_rows(self, dataset: str) -> list[int]:
        """Numbers of the rows of a dataset whose predictions the records keep, ascending.

        Parameters
        ----------
        dataset : str
            Name of the dataset.

        Returns
        -------
        list of int
            Row numbers.
        """
        cells = (record for candidate in self.candidates for record in self._cells[dataset, candidate])
        return sorted({row for record in cells if "predictions" in record for row in record["predictions"]["rows"]})

    def table(self, measure: str) -> Any:
        """The table of a measure, as in the paper.

        Parameters
        ----------
        measure : str
            Name of a measure of the study.

        Returns
        -------
        skldl.utils.tables.TextTable
            Prints as text; ``to_markdown``, ``to_latex`` and ``to_csv`` give the other forms.
        """
        from skldl.experiments.tables import measure_table

        return measure_table(self, self._measure(measure))

    def to_pandas(self) -> Any:
        """All tests as a table: one row per dataset, candidate, repeat and fold.

        Returns
        -------
        pandas.DataFrame
            Columns: the key, status, each measure, each chosen parameter as ``param_…``, times, memory, iterations.
        """
        import pandas as pd

        rows = []
        for record in self.evaluations:
            row = {key: record[key] for key in ("dataset", "candidate", "repeat", "fold", "status")}
            row |= {name: float(record["measures"][name]) for name in self.measures if "measures" in record}
            row |= {f"param_{name}": value for name, value in record.get("params", {}).items()}
            row |= {key: record.get(key) for key in (*TIMES, "peak_memory_mib", "n_iter", "seed", "error")}
            rows.append(row)
        return pd.DataFrame(rows)


def _summing_to_one(table: FloatArray) -> FloatArray:
    """Correct the sums of rows that were stored in single precision; rows of NaN stay."""
    values = np.asarray(table, dtype=np.float64)
    return np.asarray(values / values.sum(axis=1, keepdims=True))

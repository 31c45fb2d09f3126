"""A model file behind the service: predictions, schema, explanation of a row, nearest training rows."""

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from skldl.base import BaseLDL
from skldl.data._cells import BOOLEAN, CATEGORY, DATE, NUMBER, TEXT
from skldl.exceptions import ModelFileError
from skldl.persistence import read
from skldl.serve._explanation import explain, training_rows
from skldl.serve._frames import frame_of_records, refuse_long_categories
from skldl.serve._records import RecordEncoder
from skldl.serve._single_row import SingleRow
from skldl.tabular import TableEncoder, predict_table
from skldl.tabular._interval_columns import COVERS, LEVEL, interval_columns
from skldl.tabular._known_categories import known_categories
from skldl.tabular._softmax_weights import softmax_weights
from skldl.utils.typing import FloatArray
from skldl.utils.validation import sum_to_one

MOST_CATEGORIES = 1000
AGREEMENT = 1e-9
"""Largest difference between the fast path and ``predict_table`` at which the fast path is used."""

GIVEN, TRUE = COVERS
NOTHING_UNUSUAL: dict[str, dict[str, int]] = {}


class Answer(NamedTuple):
    """Predictions for some rows, as lists of cells by the names of the columns of ``skldl predict``.

    ``unusual`` is what ``TableEncoder.unusual`` gives; ``kept`` are the columns that were copied from the table.
    """

    columns: dict[str, list[Any]]
    n_rows: int
    unusual: Mapping[str, Mapping[str, int]] = NOTHING_UNUSUAL
    kept: frozenset[str] = frozenset()


class ServedModel:
    """A loaded model file with everything that the service needs.

    The file is read by `skldl.persistence.read`, which runs no code from it; ``name`` stands in addresses and metrics.
    ``fast`` is the fast path, if columns and estimator allow it and it agrees with ``predict_table`` on a probe.
    """

    def __init__(self, path: str | os.PathLike[str], name: str) -> None:
        about, pipeline = read(path)
        steps = getattr(pipeline, "steps", [("", None)])
        if not isinstance(steps[0][1], TableEncoder):
            raise ModelFileError(
                f"{path} holds {type(pipeline).__name__}, which takes no tables. Make it with skldl fit."
            )
        self.path, self.name = Path(path), name
        self.pipeline, self.encoder, self.estimator = pipeline, steps[0][1], steps[-1][1]
        self.labels = [str(label) for label in self.estimator.label_names_]
        self.description: dict[str, Any] = about["description"]
        self.sha256, self.created = str(about["sha256"]), str(about["created"])
        self.loaded = datetime.now(UTC)
        self.columns = [str(column) for column in self.encoder.feature_names_in_]
        values = self.description.get("values")
        self._values = None if values is None else np.asarray(values, dtype=np.float64)
        self.intervals = getattr(pipeline, "intervals_", None)
        self.true_intervals = getattr(pipeline, "true_intervals_", None)
        self._label_array = np.asarray(self.labels, dtype=object)
        self._categories = known_categories(self.encoder.encoder_)
        self.typical = self._typical()
        self.fast: RecordEncoder | None = None
        self._alone: SingleRow | None = None
        self._linear = softmax_weights(self.estimator)
        self._kept_rows, self._kept_features = training_rows(self)
        self._names = list(self.predict_frame(self._probe().iloc[:1]).columns)
        if len(steps) == 2 and RecordEncoder.supports(self.encoder):
            candidate = RecordEncoder(self.encoder)
            if self._agrees(candidate):
                self.fast = candidate
        if self.fast is not None and self._linear is not None:
            alone = SingleRow(self.fast, self._linear, self.labels, self._names, list(map(float, values or ())))
            if self._agrees_alone(alone):
                self._alone = alone

    def with_intervals(self, answer: Answer, level: float, covers: str = GIVEN) -> Answer:
        """Add intervals to an answer, if the model keeps a calibration.

        ``low_<label>``, ``high_<label>`` and ``radius`` are as ``skldl predict --level --covers`` writes them.
        """
        intervals = self.intervals if covers == GIVEN else self.true_intervals
        if intervals is None:
            return answer
        D = np.array([answer.columns[label] for label in self.labels]).T
        added = interval_columns(D, intervals, self.labels, set(answer.columns), level)
        return answer._replace(columns=answer.columns | {name: cells.tolist() for name, cells in added.items()})

    def predict_records(self, records: Sequence[Any], keep: Sequence[str] = ()) -> Answer:
        """Predict for records of JSON what ``skldl predict`` gives for a table of these rows."""
        if not keep and (answer := self.predict_plain(records)) is not None:
            return answer
        return self.predict_frame(frame_of_records(records, self.columns, keep), keep)

    def predict_plain(self, records: Sequence[Any]) -> Answer | None:
        """Predict by the fast path, or return None if that is not possible."""
        if self.fast is None or not records:
            return None
        encoded = self.fast(records)
        return None if encoded is None else self._answer(encoded.X, encoded.unusual)

    def predict_one(self, record: Any) -> dict[str, Any] | None:
        """Predict for one plain record by a linear model without intervals, as one row of an answer.

        None if the model or the record needs another way.
        """
        return None if self._alone is None or self.intervals is not None else self._alone(record)

    def predict_pieces(self, pieces: Iterable[Sequence[Any]]) -> Answer | None:
        """Predict by the fast path for the records of a long body, given in parts, or return None."""
        encoded = None if self.fast is None else self.fast.in_pieces(pieces)
        return None if encoded is None else self._answer(encoded.X, encoded.unusual)

    def predict_frame(self, frame: pd.DataFrame, keep: Sequence[str] = ()) -> Answer:
        """Predict for a table by the functions that ``skldl predict`` calls."""
        self.encoder.check_columns(frame.columns)
        encoded = None if keep or self.fast is None else self.fast.table(frame)
        if encoded is not None:
            return self._answer(encoded.X, encoded.unusual)
        refuse_long_categories(frame, self.encoder.kinds_)
        table = predict_table(
            self.pipeline, frame, labels=self.labels, values=self.description.get("values"), keep=keep
        )
        unusual = self.encoder.unusual(frame) if len(frame) else {}
        columns = {str(name): table[name].tolist() for name in table}
        return Answer(columns, len(frame), unusual, frozenset(keep))

    def _answer(self, X: FloatArray, unusual: dict[str, dict[str, int]]) -> Answer:
        if self._linear is not None:
            D = _softmax(X @ self._linear[0] + self._linear[1])
        elif type(self.estimator).predict is BaseLDL.predict:  # X is checked already
            D = sum_to_one(self.estimator._predict(X), type(self.estimator).__name__)
        else:
            D = np.asarray(self.estimator.predict(X))
        cells: list[list[Any]] = D.T.tolist()
        cells.append(self._label_array[D.argmax(axis=1)].tolist())
        cells.append(special.entr(D).sum(axis=1).tolist())
        if self._values is not None:
            cells.append((D @ self._values).tolist())
        return Answer(dict(zip(self._names, cells, strict=True)), len(D), unusual)

    def _agrees(self, candidate: RecordEncoder) -> bool:
        """Compare the fast path with ``predict_table`` on rows that touch every branch of it."""
        probe = self._probe()
        records = [
            {name: None if pd.isna(cell) else cell for name, cell in row.items()} for row in probe.to_dict("records")
        ]
        exact, encoded = self.predict_frame(probe), candidate(records)
        if encoded is None:
            return False
        try:
            quick = self._answer(encoded.X, encoded.unusual)
        except (TypeError, ValueError):  # further columns, such as intervals, or an estimator with further requirements
            return False
        return quick.unusual == exact.unusual and all(
            np.allclose(quick.columns[name], exact.columns[name], rtol=0, atol=AGREEMENT)
            for name in self._names_of_numbers()
        )

    def _agrees_alone(self, alone: SingleRow) -> bool:
        """Compare the way of a single row with that of a table on the rows of the probe that it takes."""
        probe = self._probe()
        exact = self.predict_frame(probe)
        rows = [alone(record) for record in probe.to_dict("records")]
        return rows[0] is not None and all(
            abs(row[name] - exact.columns[name][place]) <= AGREEMENT
            for place, row in enumerate(rows)
            if row is not None
            for name in self._names_of_numbers()
        )

    def _names_of_numbers(self) -> list[str]:
        return [name for name in self._names if name != self._names[len(self.labels)]]

    def _probe(self) -> pd.DataFrame:
        """Rows with the typical value, ends of the range, missing cells, known and unknown categories."""
        cells: dict[str, list[Any]] = {}
        for name, kind in self.encoder.kinds_.items():
            typical = self.typical[name]
            if kind == NUMBER:
                least, most = getattr(self.encoder, "ranges_", {}).get(name, (0.0, 1.0))
                cells[name] = [typical, least, most, most + 10 * (most - least) + 1, None]
            elif kind == BOOLEAN:
                cells[name] = [True, False, True, False, None]
            elif kind == CATEGORY:
                known = self._categories[name].every
                cells[name] = [typical, known[0], known[-1], "\x00unknown", None]
            else:
                cells[name] = [typical, typical, typical, typical, None]
        return pd.DataFrame(cells)

    def _typical(self) -> dict[str, Any]:
        """Typical values: those that ``skldl fit`` kept, else medians and first categories."""
        kept = self.description.get("typical") or {}
        medians: dict[str, float] = {}
        for label, step, columns in self.encoder.encoder_.transformers_:
            if label == "numbers":
                medians = dict(zip(columns, map(float, step[0].statistics_), strict=True))
        typical: dict[str, Any] = {}
        for name, kind in self.encoder.kinds_.items():
            if name in kept:
                typical[name] = kept[name]
            elif kind == NUMBER:
                typical[name] = medians.get(name)
            elif kind == CATEGORY:
                typical[name] = self._categories[name].every[0]
            else:
                typical[name] = False if kind == BOOLEAN else "" if kind == TEXT else None
        return typical

    def schema(self) -> dict[str, Any]:
        """Describe features and labels in plain values."""
        features = []
        for name, kind in self.encoder.kinds_.items():
            entry: dict[str, Any] = {"name": name, "type": kind, "typical": self.typical[name]}
            if kind == NUMBER and name in getattr(self.encoder, "ranges_", {}):
                entry["minimum"], entry["maximum"] = self.encoder.ranges_[name]
            elif kind == CATEGORY:
                known = self._categories[name].every
                entry["categories"], entry["n_categories"] = known[:MOST_CATEGORIES], len(known)
            elif kind == DATE:
                entry["format"] = self.encoder.dates_[name][0]
            features.append(entry)
        return {
            "model": self.name,
            "estimator": self.description.get("model", type(self.estimator).__name__),
            "features": features,
            "labels": self.labels,
            "values": self.description.get("values"),
            "answer": self._columns_of_answers(),
            "trained_on": {"source": self.description.get("source", ""), "rows": self.description.get("rows")},
            "score": self.description.get("score"),
            "intervals": self.intervals is not None,
            "covers": [
                word
                for word, kept in zip(COVERS, (self.intervals, self.true_intervals), strict=True)
                if kept is not None
            ],
            "keeps_rows": 0 if self._kept_rows is None else len(self._kept_rows),
            "created": self.created,
            "sha256": self.sha256,
        }

    def _columns_of_answers(self) -> list[str]:
        if self.intervals is None:
            return self._names
        even = np.full((1, len(self.labels)), 1.0 / len(self.labels))
        return [*self._names, *interval_columns(even, self.intervals, self.labels, set(self._names), LEVEL)]

    def explain(self, record: Any) -> dict[str, Any]:
        """Say why one row is predicted as it is.

        ``prediction``; ``how`` and ``features``, what each feature adds; ``neighbours`` if the model averages some;
        ``nearest``, rows of the training table if it keeps some.
        """
        return explain(self, record)


def _softmax(scores: FloatArray) -> FloatArray:
    """`skldl.simplex.softmax` without its checks: features and weights are finite here."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))

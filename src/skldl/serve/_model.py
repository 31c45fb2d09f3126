"""The model of a service: predictions for JSON records and tables, schema, explanation of a row."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from operator import add, mul
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse, special
from sklearn.metrics import pairwise_distances

from skldl.base import BaseLDL
from skldl.data._cells import CATEGORY, DATE, as_frame
from skldl.exceptions import DataError, ModelFileError
from skldl.persistence import read
from skldl.serve._errors import Check, go_on
from skldl.tabular import TableEncoder, explain_row
from skldl.tabular._encoder import Unusual, add_counts
from skldl.tabular._explain import EXPLANATION_TITLES, NEIGHBOURS, REPLACEMENT, replacement_effects, softmax_weights
from skldl.tabular._prediction import COVERS, LEVEL, answer_names, checked_keep, interval_columns
from skldl.utils.column_names import check_columns
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_sizes, rows_from, sum_to_one

MAX_CATEGORIES = 1000
"""Maximum number of categories of a column in the schema."""
BLOCK_ROWS = 2048
"""Rows that are predicted at a time: between two blocks, work ends if its request has ended; chosen by hand."""
MAX_FEATURES_SHOWN = 30
NEAREST_ROWS = 5
GIVEN, TRUE = COVERS
NOTHING_UNUSUAL: Unusual = {}


class Answer(NamedTuple):
    """Predictions for some rows, with the columns of ``skldl predict`` as lists.

    ``unusual`` counts unusual cells, see `TableEncoder.unusual`; ``kept`` names the columns copied from the request.
    """

    columns: dict[str, list[Any]]
    n_rows: int
    unusual: Mapping[str, Mapping[str, int]] = NOTHING_UNUSUAL
    kept: frozenset[str] = frozenset()


class ServedModel:
    """A model file and its predictions.

    The file is read by `skldl.persistence.read`, which runs no code from it; ``name`` is used in addresses and metrics.
    """

    def __init__(self, path: str | os.PathLike[str], name: str) -> None:
        about, pipeline = read(path)
        steps = getattr(pipeline, "steps", [("", None)])
        if not isinstance(steps[0][1], TableEncoder):
            raise ModelFileError(
                f"{path} holds {type(pipeline).__name__}, which takes no tables. Train a model with skldl fit."
            )
        self.path, self.name = Path(path), name
        self.pipeline, self.encoder, self.estimator = pipeline, steps[0][1], steps[-1][1]
        self.labels = [str(label) for label in self.estimator.label_names_]
        self.description: dict[str, Any] = about["description"]
        self.sha256, self.created = str(about["sha256"]), str(about["created"])
        self.loaded = datetime.now(UTC)
        self.columns = [str(column) for column in self.encoder.feature_names_in_]
        self._features = [str(feature) for feature in self.encoder.get_feature_names_out()]
        values = self.description.get("values")
        self._values: list[float] | None = None if values is None else list(map(float, values))
        self._names = answer_names(self.labels, values is not None)
        self.intervals = getattr(pipeline, "intervals_", None)
        self.true_intervals = getattr(pipeline, "true_intervals_", None)
        self._label_array = np.asarray(self.labels, dtype=object)
        self._linear = softmax_weights(self.estimator) if len(steps) == 2 else None
        if self._linear is not None:
            self._weights_of_numbers = np.ascontiguousarray(self._linear[0][: len(self.encoder.means_)].T)
            self._intercept: list[float] = self._linear[1].tolist()
        self._kept_rows, self._kept_features = self._training_rows()

    # --- predictions ---

    def predict_records(self, records: Sequence[Any], keep: Sequence[str] = (), check: Check = go_on) -> Answer:
        """Predict for JSON records, with the result of ``skldl predict`` for a table of these rows."""
        answer = None if keep else self.predict_plain(records, check)
        if answer is not None:
            return answer
        return self.predict_frame(frame_of_records(records, self.columns, keep), keep, check)

    def predict_plain(self, records: Sequence[Any], check: Check = go_on) -> Answer | None:
        """Predict for JSON records that need no table, see `TableEncoder.encode_records`; None for others."""
        encoded = self.encoder.encode_records(records, dense=self._linear is not None)
        return None if encoded is None else self._answer(self._distributions(encoded[0], check), encoded[1])

    def predict_one(self, record: Any) -> dict[str, Any] | None:
        """Predict for one record without unusual cells by a linear model without intervals; None for others.

        The result is that of `predict_plain`, as one row. For one row, the overhead of NumPy is most of the time.
        """
        if self._linear is None or self.intervals is not None:
            return None
        encoded = self.encoder.encode_usual(record)
        if encoded is None:
            return None
        sums = self._weights_of_numbers.dot(encoded[0])
        for position in encoded[1]:
            sums += self._linear[0][position]
        scores = list(map(add, sums.tolist(), self._intercept))
        maximum = max(scores)
        shifted = [score - maximum for score in scores]
        powers = list(map(math.exp, shifted))
        total = sum(powers)
        row: list[Any] = [power / total for power in powers]
        # -Σ d log d with log d = shifted - log total: both terms are non-negative, so that no digits cancel
        entropy = math.log(total) - sum(map(mul, row, shifted))
        expected = () if self._values is None else (sum(map(mul, row, self._values)),)
        row += (self.labels[scores.index(maximum)], entropy, *expected)
        return dict(zip(self._names, row, strict=True))

    def predict_pieces(self, pieces: Iterable[Sequence[Any]]) -> Answer | None:
        """Predict for pieces of a long list of JSON records; None if one of the records needs a table."""
        distributions, unusual = [], []
        n_rows = 0
        for records in pieces:
            encoded = self.encoder.encode_records(records, dense=self._linear is not None)
            if encoded is None:
                return None
            distributions.append(self._distributions(encoded[0], first_row=n_rows + 1))
            n_rows += len(records)
            unusual.append(encoded[1])
        return self._answer(np.concatenate(distributions), add_counts(unusual))

    def predict_frame(self, frame: pd.DataFrame, keep: Sequence[str] = (), check: Check = go_on) -> Answer:
        """Predict for a table, and copy the columns of ``keep``."""
        table = as_frame(frame)
        names = checked_keep(keep, table.columns, self.labels)
        self.encoder.check_columns(table.columns)
        kept = {name: table[name].tolist() for name in names}
        if not len(table):
            return Answer(
                {**kept, **{name: [] for name in answer_names(self.labels, self._values is not None, names)}}, 0
            )
        X, unusual = self.encoder.encode(table)
        return self._answer(self._distributions(X, check), unusual, kept)

    def _answer(self, D: FloatArray, unusual: Unusual, kept: Mapping[str, list[Any]] | None = None) -> Answer:
        cells: list[list[Any]] = D.T.tolist()
        cells.append(self._label_array[D.argmax(axis=1)].tolist())
        cells.append(special.entr(D).sum(axis=1).tolist())
        if self._values is not None:
            cells.append((D @ np.array(self._values)).tolist())
        if not kept:
            return Answer(dict(zip(self._names, cells, strict=True)), len(D), unusual)
        names = answer_names(self.labels, self._values is not None, kept)
        return Answer({**kept, **dict(zip(names, cells, strict=True))}, len(D), unusual, frozenset(kept))

    def _distributions(self, X: Any, check: Check = go_on, *, first_row: int = 1) -> FloatArray:
        """Return the predictions for encoded rows."""
        with rows_from(first_row):
            check_sizes(X, self._features, may_vanish=True)
        if self._linear is not None:
            return _softmax(X @ self._linear[0] + self._linear[1])
        parts = []
        for first in range(0, max(1, X.shape[0]), BLOCK_ROWS):
            check()
            parts.append(self._distributions_of_block(X[first : first + BLOCK_ROWS]))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _distributions_of_block(self, X: Any) -> FloatArray:
        for _, step in self.pipeline.steps[1:-1]:
            X = step.transform(X)
        if type(self.estimator).predict is BaseLDL.predict:  # without its checks of X, which is valid
            return sum_to_one(self.estimator._predict(X), type(self.estimator).__name__)
        return np.asarray(self.estimator.predict(X))

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

    # --- description ---

    def schema(self) -> dict[str, Any]:
        """Return a description of features, labels and training in plain values."""
        features = []
        for name, kind in self.encoder.kinds_.items():
            entry: dict[str, Any] = {"name": name, "type": kind, "typical": self.encoder.typical_[name]}
            if name in self.encoder.ranges_:
                entry["minimum"], entry["maximum"] = self.encoder.ranges_[name]
            elif kind == CATEGORY:
                known = sorted([*self.encoder.categories_[name], *self.encoder.rare_categories_[name]])
                entry["categories"], entry["n_categories"] = known[:MAX_CATEGORIES], len(known)
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

    # --- explanation ---

    def explain(self, record: Any) -> dict[str, Any]:
        """Explain the prediction for one row.

        The result has ``prediction``; ``how`` and ``features``, the contributions of features; ``neighbours`` if the
        model averages rows; ``nearest``, rows of the training table, if the model file keeps some.
        """
        frame = frame_of_records([record], self.columns)
        answer = self.with_intervals(self.predict_records([record]), LEVEL)
        typical = self.encoder.typical_
        explained = explain_row(self.pipeline, frame, 0, typical=typical)
        how, effects = explained.how, explained.table
        result: dict[str, Any] = {"prediction": {name: cells[0] for name, cells in answer.columns.items()}}
        if how == NEIGHBOURS:
            result["neighbours"] = effects.to_dict("records")
            how, effects = REPLACEMENT, replacement_effects(self.pipeline, frame, explained.prediction, typical)
        shown = effects.head(MAX_FEATURES_SHOWN)
        result["how"], result["meaning"] = how, EXPLANATION_TITLES[how][0]
        result["features"] = [
            {"feature": str(name), "effects": dict(zip(self.labels, map(float, row), strict=True))}
            for name, row in zip(shown.index, shown.to_numpy(), strict=True)
        ]
        if self._kept_rows is not None:
            result["nearest"] = self._nearest(frame)
        return result

    def _training_rows(self) -> tuple[pd.DataFrame | None, Any]:
        """Return the training rows in the model file and their features; None if it has none."""
        kept = self.description.get("kept_rows")
        if not kept:
            return None, None
        rows = pd.DataFrame(kept["rows"], columns=[*self.columns, *(f"label {name}" for name in self.labels)])
        return rows, self.encoder.transform(rows[self.columns])

    def _nearest(self, frame: pd.DataFrame) -> list[dict[str, Any]]:
        """Return the training rows with the smallest Euclidean distances, nearest first."""
        assert self._kept_rows is not None
        encoded, known = self.encoder.transform(frame), self._kept_features
        if sparse.issparse(encoded) != sparse.issparse(known):
            encoded, known = (part.toarray() if sparse.issparse(part) else part for part in (encoded, known))
        distances = pairwise_distances(encoded, known)[0]
        order = np.argsort(distances, kind="stable")[:NEAREST_ROWS]
        rows = self._kept_rows.iloc[order]
        features = rows[self.columns].astype(object).where(rows[self.columns].notna(), None).to_dict("records")
        degrees = rows.iloc[:, len(self.columns) :].to_numpy(dtype=np.float64).tolist()
        return [
            {"distance": float(distances[at]), "row": row, "labels": dict(zip(self.labels, given, strict=True))}
            for at, row, given in zip(order, features, degrees, strict=True)
        ]


def frame_of_records(records: Sequence[Any], columns: Sequence[str], keep: Sequence[str] = ()) -> pd.DataFrame:
    """Make a table of JSON records; errors name the row, the column and what was found.

    It has the columns that the model needs, and those to keep that a record names. A cell that a record does not name
    is missing; a column that the model needs must be named by one record at least.

    Examples
    --------
    >>> list(frame_of_records([{"age": 31, "note": "x"}, {}], ["age"], ["town"]).columns)
    ['age']
    """
    present: dict[str, Any] = {}
    for row, record in enumerate(records):
        if not isinstance(record, dict):
            raise DataError(
                f"Row {row + 1} is {_json_type(record)}, where an object from columns to cells belongs, such as "
                f'{{"{columns[0]}": ...}}.',
                row=row,
            )
        present.update(record)
    if records:
        check_columns(columns, present)
    names = [name for name in dict.fromkeys((*columns, *keep)) if name in present or not records]
    table: dict[str, pd.Series] = {}
    for name in names:
        cells = [record.get(name) for record in records]
        for row, cell in enumerate(cells):
            if isinstance(cell, list | dict):
                what = f"holds {_json_type(cell)}, where one value belongs"
                raise DataError(f"Row {row + 1} of column {name!r} {what}.", row=row, column=name)
        # text and mixed cells stay objects; pandas finds the type of all others
        untyped = any(isinstance(cell, str) for cell in cells) or all(cell is None for cell in cells)
        table[name] = pd.Series(cells, dtype=object if untyped else None)
    return pd.DataFrame(table)


def _json_type(cell: Any) -> str:
    names = {list: "a list", dict: "an object", str: "a text", bool: "a truth value", type(None): "null"}
    return names.get(type(cell), "a number")


def _softmax(scores: FloatArray) -> FloatArray:
    """Softmax without the checks of `skldl.simplex.softmax`: features and weights are finite here."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))

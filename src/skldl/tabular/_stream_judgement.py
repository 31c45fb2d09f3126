"""The last pass of `fit_stream`: how good the model is on the rows that were held out, and a sample of the others."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from skldl.base import BaseLDL
from skldl.data._dataset import Dataset
from skldl.data._leaks import label_leaks
from skldl.exceptions import DataError, Parameter
from skldl.metrics import kullback_leibler
from skldl.selection import Estimate
from skldl.selection._estimate import estimate_from_losses
from skldl.tabular._encoder import TableEncoder
from skldl.tabular._kept_rows import kept_rows
from skldl.tabular._row_sample import RowSample
from skldl.tabular._streamed_rows import HeldOut
from skldl.tabular._streamed_table import StreamedTable, naming
from skldl.tabular._uncertain_fit import MOST_REFERENCE, add_uncertainty, noise_floor_of
from skldl.utils.typing import AnyArray, FloatArray

SAMPLE_ROWS = 5000


@dataclass(eq=False)
class Judgement:
    """What the last pass has found: the estimate on the rows held out, and a ``sample`` of the ``n_train`` other rows.

    ``positions`` are the numbers of the sample among those rows.
    """

    estimate: Estimate
    n_train: int
    sample: Dataset
    positions: AnyArray
    floor_lines: list[str] = field(default_factory=list)
    floor_numbers: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def finish(self, pipeline: Pipeline, seed: int) -> list[str]:
        """Give the pipeline its reference for drift; what there is to tell."""
        rows = np.arange(min(MOST_REFERENCE, self.sample.n_samples))
        add_uncertainty(pipeline, self.sample.take(rows), None, self.estimate, seed)
        return self.floor_lines

    def kept(self, kinds: dict[str, str], keep_rows: int | None, seed: int) -> dict[str, Any]:
        """Rows for the description, if they are wanted."""
        if keep_rows is None:
            return {}
        kept = kept_rows(self.sample, kinds, keep_rows, seed)
        return {"kept_rows": kept | {"positions": self.positions[kept["positions"]].tolist()}}


def judge(
    table: StreamedTable,
    encoder: TableEncoder,
    estimator: BaseLDL,
    held_out: HeldOut,
    keep_rows: int | None,
    seed: int,
    tell: Callable[[str], None],
) -> Judgement:
    """Read the table once more: judge fitted estimators by the rows that were held out, and draw some of the others.

    ``keep_rows`` of them will be kept with the model; ``tell`` is called with the share that has been read.
    """
    size = max(SAMPLE_ROWS, keep_rows or 0)
    features, degrees = RowSample(size, seed), RowSample(size, seed)  # one seed: the same rows
    sums: Any = 0.0
    total = 0.0
    parts: dict[str, list[Any]] = {"losses": [], "D": [], "weight": [], "groups": [], "counts": []}
    for chunk in table.chunks():
        held = held_out.of(chunk)
        D = table.distributions(chunk)
        weight = np.ones(len(D)) if chunk.weight is None else chunk.weight
        sums = sums + weight[~held] @ D.to_numpy()[~held]
        total += float(weight[~held].sum())
        features.update(chunk.X[~held])
        degrees.update(D[~held])
        if held.any():
            with naming(chunk.place):
                P = estimator.predict(encoder.transform(chunk.X[held]))
            given = D.to_numpy()[held]
            parts["losses"].append(_divergences(given, P))
            parts["D"].append(given)
            parts["weight"].append(weight[held])
            parts["groups"].append(None if chunk.groups is None else chunk.groups[held])
            counts = table.counts(chunk)
            parts["counts"].append(None if counts is None else counts[held])
        tell(f"{table.files.fraction_read() or 0.0:.0%}")
    if not features.n_rows or not parts["losses"]:
        raise DataError(
            "All rows, or none, belong to the groups that were held out: there are too few groups to "
            "judge the model. Fit the table in memory, without ",
            Parameter("stream", True),
            ".",
        )
    found: dict[str, Any] = {name: None if those[0] is None else np.concatenate(those) for name, those in parts.items()}
    given = pd.DataFrame(found["D"], columns=table.label_names)
    judged = Dataset(
        "held out",
        pd.DataFrame({"row": np.arange(len(given))}),
        given,
        sample_weight=found["weight"] if table.weight is not None else None,
        groups=None if found["groups"] is None else np.unique(found["groups"], return_inverse=True)[1],
        counts=found["counts"],
    )
    estimate = estimate_from_losses(
        judged, np.arange(len(given)), found["losses"], _divergences(found["D"], sums / total)
    )
    lines, numbers = noise_floor_of(judged, estimate)
    X = features.rows()
    sample = Dataset("sample", X, degrees.rows())
    return Judgement(
        estimate, features.n_rows, sample, features.positions(), list(lines), numbers, label_leaks(X, degrees.rows())
    )


def _divergences(D: FloatArray, P: FloatArray) -> FloatArray:
    """Kullback-Leibler divergence of each row; P may be one row for all."""
    return kullback_leibler.rowwise(D, np.broadcast_to(P, D.shape))

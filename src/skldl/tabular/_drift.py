"""Drift: differences between new rows and the training table, as numbers for a monitor.

A model file contains a `TrainingReference`: centres of clusters of encoded training rows (never single rows), distances
of other training rows to the nearest centre, and the mean prediction. `DriftMonitor` compares new rows with it, piece
by piece.
"""

import itertools
import json
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances_argmin_min

from skldl.utils.column_names import list_names
from skldl.utils.typing import FloatArray

# Chosen by hand:
MAX_CENTRES = 100
MAX_CENTRE_CELLS = 500_000  # 2 MB in the model file
MIN_ROWS_OF_CENTRE = 5  # the centre of fewer rows would disclose too much about them, and is left out
ROWS_PER_CHUNK = 1000  # of which distances are computed
FAR_QUANTILE = 0.99
NO_DRIFT_LEVEL = 0.99  # one table in a hundred without drift may exceed what few training rows explain
MIN_ROWS = 30  # new rows for warnings about distances and the mean prediction
MAX_Z, MAX_TOTAL_VARIATION = 5, 0.02  # of the mean prediction: a shift above both gives a warning


class TrainingReference:
    """Summary of the training table for the comparison with new rows.

    Parameters
    ----------
    features : ndarray or sparse matrix of shape (n_samples, n_features)
        Encoded rows of the training table.
    P : ndarray of shape (n_samples, n_labels)
        Their predictions.
    seed : int, default=0
        Seed of the search for centres.

    Attributes
    ----------
    centres_ : ndarray of shape (n_centres, n_features)
        Means of clusters of at least five training rows; the mean of all rows if there are no such clusters.
    far_ : float
        Quantile .99 of the distances of other training rows to the nearest centre.
    typical_ : float
        Median of these distances.
    mean_prediction_, deviation_ : ndarray of shape (n_labels,)
        Mean and standard deviation of the predictions.
    n_rows_ : int
        Number of rows of which they were computed.
    """

    def __init__(self, features: Any, P: FloatArray, seed: int = 0) -> None:
        n_rows = features.shape[0]
        order = np.random.default_rng(seed).permutation(n_rows)
        # half of the rows make the centres, so that the distances of the other half are like those of new rows
        n_grouped = max(1, (n_rows + 1) // 2)
        grouped, probe = features[np.sort(order[:n_grouped])].astype(np.float32), np.sort(order[n_grouped:])
        self.centres_ = _centres(grouped, seed)
        distances = nearest_distances(self.centres_, features[probe]) if len(probe) else np.zeros(1)
        self.far_, self.typical_ = float(np.quantile(distances, FAR_QUANTILE)), float(np.median(distances))
        self.mean_prediction_, self.deviation_ = P.mean(axis=0), P.std(axis=0)
        self.n_rows_ = len(P)

    def max_far_share(self, n_new: int) -> float:
        """Fraction of new rows beyond ``far_`` that is still no sign of drift.

        Parameters
        ----------
        n_new : int
            Number of new rows.

        Returns
        -------
        float
            The fraction.
        """
        # .01 is expected; .05 by hand, plus three standard errors of a fraction of about .01
        by_hand = 0.05 + 3 * np.sqrt(0.01 / n_new)
        # the quantile of few distances has an error of its own: the fraction beyond the k-th largest of n distances has
        # the distribution Beta(k, n + 1 - k), and the number of new rows beyond it is beta-binomial
        n_known = max(self.n_rows_ // 2, 1)
        rank = n_known - FAR_QUANTILE * (n_known - 1)
        return max(by_hand, float(stats.betabinom.ppf(NO_DRIFT_LEVEL, n_new, rank, n_known + 1 - rank)) / n_new)

    def _check_fitted_state(self) -> None:
        if not isinstance(self.centres_, np.ndarray) or self.centres_.ndim != 2:
            raise ValueError("centres_ of the reference is not a matrix")
        for name in ("mean_prediction_", "deviation_"):
            if not isinstance(getattr(self, name), np.ndarray) or getattr(self, name).ndim != 1:
                raise ValueError(f"{name} of the reference is not a vector")


def _centres(rows: Any, seed: int) -> FloatArray:
    """Centres of clusters of rows, without small clusters; the mean of all rows if there are no others."""
    n_centres = min(MAX_CENTRES, rows.shape[0] // (2 * MIN_ROWS_OF_CENTRE), MAX_CENTRE_CELLS // rows.shape[1])
    if n_centres > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # some clusters are empty if many rows are equal
            # one start and 20 iterations: rough centres are enough for distances
            groups = KMeans(n_centres, n_init=1, max_iter=20, random_state=seed).fit(rows)
        large = np.bincount(groups.labels_, minlength=n_centres) >= MIN_ROWS_OF_CENTRE
        if large.any():
            return np.asarray(groups.cluster_centers_[large], dtype=np.float32)
    return np.asarray(rows.mean(axis=0), dtype=np.float32).reshape(1, -1)


def nearest_distances(reference: Any, features: Any) -> FloatArray:
    """Euclidean distance of each row to the nearest row of the reference."""
    return np.asarray(pairwise_distances_argmin_min(features.astype(np.float32), reference)[1], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Comparison of some rows with the training table: unusual cells, sum of predictions, and distances.

    ``unusual`` is the result of `TableEncoder.unusual`. ``distances`` are those of at most a thousand rows to the
    nearest centre of training rows; None, like the sum, if the model has no reference. ``empty`` are the columns that
    are empty in all these rows, but were not in the training table.
    """

    n_rows: int
    unusual: dict[str, dict[str, int]]
    sum_of_predictions: FloatArray | None = None
    distances: FloatArray | None = None
    empty: frozenset[str] = frozenset()


class DriftMonitor:
    """Compare new rows with the training table, piece by piece.

    Parameters
    ----------
    model : fitted pipeline
        Encoder and model. New rows are compared with its ``reference_``, if it has one.

    Attributes
    ----------
    n_rows : int
        Number of rows that were compared.

    Examples
    --------
    >>> import pandas as pd
    >>> from skldl.tabular import DriftMonitor, fit_table
    >>> table = pd.DataFrame({"x": range(40)}).assign(no=lambda t: 1 - t.x / 50, yes=lambda t: t.x / 50)
    >>> model = fit_table(table, ["no", "yes"], model="sa-bfgs").model
    >>> monitor = DriftMonitor(model)
    >>> new = pd.DataFrame({"x": range(100, 140)})
    >>> monitor.update(new, model.predict(new))
    >>> monitor.numbers()["distance"]["far_share"]
    1.0
    """

    def __init__(self, model: Any) -> None:
        self.encoder = model[0]
        self.reference: TrainingReference | None = getattr(model, "reference_", None)
        self.n_rows = 0
        self._unusual: dict[str, Counter[str]] = {}
        self._distances: list[FloatArray] = []
        self._sum: Any = 0.0
        self._empty: frozenset[str] | None = None  # before the first rows

    def update(self, table: Any, P: FloatArray) -> None:
        """Compare some rows with the training table.

        Parameters
        ----------
        table : DataFrame
            The rows.
        P : ndarray of shape (n_samples, n_labels)
            Their predictions.
        """
        self.add(self.look(table, P))

    def look(self, table: Any, P: FloatArray) -> "Comparison":
        """Compare some rows without adding the result, such as in another process.

        Parameters
        ----------
        table : DataFrame
            The rows.
        P : ndarray of shape (n_samples, n_labels)
            Their predictions.

        Returns
        -------
        Comparison
            The argument of `add`.
        """
        unusual = self.encoder.unusual(table)
        known = [name for name, value in self.encoder.typical_.items() if value is not None]
        empty = frozenset(itertools.compress(known, table[known].isna().all())) if len(table) else frozenset()
        if self.reference is None or not len(table):
            return Comparison(len(table), unusual, empty=empty)
        some = table.iloc[:: -(-len(table) // ROWS_PER_CHUNK)]
        distances = nearest_distances(self.reference.centres_, self.encoder.transform(some))
        return Comparison(len(table), unusual, np.asarray(P, dtype=np.float64).sum(axis=0), distances, empty)

    def add(self, rows: "Comparison") -> None:
        """Add the result of a comparison.

        Parameters
        ----------
        rows : Comparison
            The result of `look`.
        """
        for what, counts in rows.unusual.items():
            self._unusual.setdefault(what, Counter()).update(counts)
        self.n_rows += rows.n_rows
        if rows.n_rows:
            self._empty = rows.empty if self._empty is None else self._empty & rows.empty
        if rows.distances is not None:
            self._sum = self._sum + rows.sum_of_predictions
            self._distances.append(rows.distances)

    def numbers(self) -> dict[str, Any]:
        """Results in plain values.

        Returns
        -------
        dict
            ``rows``; ``unknown_categories``, ``far_outside_range`` and ``empty_rows``, numbers of rows by column;
            ``empty_columns``, the columns that are empty in every row, but were not in the training table;
            ``unknown_category_share``, the largest fraction of rows with an unknown category in one column. If the
            model has a reference: ``distance`` (``median`` of the distances to the nearest centre of training rows,
            ``typical``, the median in the training table, and ``far_share``, the fraction of rows beyond the quantile
            .99 of training rows) and ``prediction_shift`` (``total_variation`` between the mean predictions of these
            rows and of the training table, and ``z``, the largest shift of a label in standard errors).
        """
        found: dict[str, Any] = {"rows": self.n_rows, **{what: dict(counts) for what, counts in self._unusual.items()}}
        found["empty_columns"] = sorted(self._empty or ())
        worst = max(self._unusual.get("unknown_categories", Counter()).values(), default=0)
        found["unknown_category_share"] = worst / self.n_rows if self.n_rows else 0.0
        if self.reference is None or not self.n_rows:
            return found
        distances = np.concatenate(self._distances)
        found["distance"] = {
            "median": float(np.median(distances)),
            "typical": self.reference.typical_,
            "far_share": float(np.mean(distances > self.reference.far_)),
        }
        shift = self._sum / self.n_rows - self.reference.mean_prediction_
        error = self.reference.deviation_ * np.sqrt(1 / self.n_rows + 1 / self.reference.n_rows_)
        found["prediction_shift"] = {
            "total_variation": float(0.5 * np.abs(shift).sum()),
            "z": float(np.max(np.abs(shift) / np.maximum(error, 1e-9))),  # 1e-9: the error of a constant is 0
        }
        return found

    def to_json(self) -> str:
        """Return `numbers` as JSON, for the file of ``--monitor``.

        Returns
        -------
        str
            JSON.
        """
        return json.dumps(self.numbers(), indent=2, ensure_ascii=False)

    def warnings(self) -> list[str]:
        """Warnings for the user.

        Returns
        -------
        list of str
            Sentences; none if the rows are like the training table.
        """
        numbers = self.numbers()
        lines = []
        for what, meaning in MEANINGS.items():
            for column, count in Counter(numbers.get(what, {})).most_common(5):
                lines.append(f"Column {column!r} {meaning} in {count:,} of {self.n_rows:,} rows.")
        if empty := numbers.get("empty_rows", {}).get("rows"):
            lines.append(f"All features are empty in {empty:,} of {self.n_rows:,} rows.")
        if (columns := numbers["empty_columns"]) and empty != self.n_rows:
            lines.append(f"{list_names(columns)}: empty in every row, so the predictions rest on the other columns.")
        if self.n_rows >= MIN_ROWS and "distance" in numbers:
            far = numbers["distance"]["far_share"]
            if self.reference is not None and far > self.reference.max_far_share(min(self.n_rows, ROWS_PER_CHUNK)):
                lines.append(
                    f"{far:.0%} of the rows are farther from the training rows than 99 % of the training table "
                    "are: predictions for them are extrapolations."
                )
            shift = numbers["prediction_shift"]
            if shift["z"] > MAX_Z and shift["total_variation"] > MAX_TOTAL_VARIATION:
                lines.append(
                    f"The mean prediction differs by {shift['total_variation']:.3f} in total variation from that of "
                    "the training table: the distribution of the rows has changed."
                )
        return lines


MEANINGS = {
    "unknown_categories": "holds a category that the model does not know",
    "far_outside_range": "is far outside the range of the training table",
}

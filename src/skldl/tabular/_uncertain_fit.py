"""Calibration rows, noise floor and the reference for drift, which `fit_table` adds to a fitted pipeline."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from skldl.data._dataset import Dataset
from skldl.exceptions import DataError, Parameter
from skldl.selection import Estimate, hold_out
from skldl.tabular._drift import TrainingReference
from skldl.uncertainty import explainable_share
from skldl.uncertainty._intervals import Intervals
from skldl.utils.missing import has_gaps

CALIBRATION_FRACTION = 0.25  # of the rows, or groups; chosen by hand
MAX_REFERENCE_ROWS = 2000  # behind the reference for drift; chosen by hand


def keep_calibration_rows(dataset: Dataset, intervals: bool, seed: int) -> tuple[Dataset, Dataset | None]:
    """Split a dataset into training rows and, if ``intervals``, calibration rows; groups are kept together.

    Returns both parts; without intervals the second is None.
    """
    if not intervals:
        return dataset, None
    if has_gaps(dataset.D):
        raise DataError(
            "Some label cells are empty, and intervals are calibrated on rows in which every degree "
            "was observed. Leave out ",
            Parameter("intervals"),
            ", drop the rows with empty label cells, or fill the table with skldl.incomplete.complete.",
        )
    rest, held = hold_out(
        dataset.n_samples, CALIBRATION_FRACTION, random_state=seed, groups=dataset.groups, name="The table"
    )
    left = len(rest) if dataset.groups is None else len(np.unique(dataset.groups[rest]))
    if left < 2:
        what = "rows" if dataset.groups is None else "groups"
        raise DataError(
            Parameter("intervals", True),
            f" keeps a quarter of the {what} for calibration, which leaves one of this table for training. "
            f"At least 3 {what} are needed; intervals of 90 % need 9 for calibration.",
        )
    return dataset.take(rest), dataset.take(held)


def add_uncertainty(
    pipeline: Pipeline, training: Dataset, calibration: Dataset | None, estimate: Estimate, seed: int
) -> tuple[Sequence[str], dict[str, Any]]:
    """Add the reference for drift and, with calibration rows, the intervals to a fitted pipeline.

    They are the attributes ``reference_`` and ``intervals_``, and ``true_intervals_`` if the labels are votes. X of
    the training rows is the table or the encoded table; X of the calibration rows is the table. Returns messages for
    the user and the numbers of the noise floor.
    """
    lines, numbers = noise_floor_of(training, estimate)
    some = np.sort(np.random.default_rng(seed).permutation(training.n_samples)[:MAX_REFERENCE_ROWS])
    rows = training.take(some).X
    features = pipeline[0].transform(rows) if hasattr(rows, "columns") else rows
    pipeline.reference_ = TrainingReference(features, np.asarray(pipeline[-1].predict(features)), seed)
    if calibration is None:
        return lines, numbers
    P, scale, groups = np.asarray(pipeline.predict(calibration.X)), training.D.std(axis=0), calibration.groups
    pipeline.intervals_ = Intervals(calibration.D, P, scale, groups)
    line = (
        f"{calibration.n_samples} further rows were kept for calibration: skldl predict --level 0.9 gives intervals "
        "that contain all degrees of a new row with probability 0.9."
    )
    votes = calibration.whole_votes()
    if votes is not None:
        pipeline.true_intervals_ = Intervals.of_the_truth(votes, P, scale, groups, seed)
        line += (
            " They cover the fractions of votes of a new row that has as many votes; skldl predict --covers true gives "
            "intervals for the true distribution behind them."
        )
    elif calibration.counts is not None:
        line += " They cover the fractions of votes of a new row that has as many votes, not the true distribution."
    return [*lines, line], numbers


def noise_floor_of(dataset: Dataset, estimate: Estimate) -> tuple[list[str], dict[str, Any]]:
    """Describe the divergence that is due to the noise of the votes, and the fraction of the rest that is explained.

    Returns sentences and the numbers ``noise_floor`` (a lower bound), ``noise_floor_smoothed`` (its upper end),
    ``noise_floor_error`` (sampling error of the lower bound) and ``explained`` (fraction of the explainable divergence,
    or None); both are empty without counts of votes.
    """
    floor = dataset.noise_floor(["kullback_leibler"]).get("kullback_leibler")
    if floor is None:
        return [], {}
    explained = explainable_share(estimate.loss, estimate.reference_loss, floor.value)
    known = not np.isnan(explained)
    line = (
        f"Noise floor {floor}: with {floor.n_votes:.3g} votes a row, even the true distributions would have this "
        "divergence. "
    )
    line += (
        f"Of the explainable divergence, {estimate.reference_loss:.4g} − {floor.value:.4g}, the model explains "
        f"{explained:.1%}, or more if the floor is higher."
        if known
        else "Always predicting the mean reaches it, so that there is nothing left to explain."
    )
    return [line], {
        "noise_floor": floor.value,
        "noise_floor_smoothed": floor.smoothed,
        "noise_floor_error": None if np.isnan(floor.standard_error) else floor.standard_error,
        "explained": explained if known else None,
    }

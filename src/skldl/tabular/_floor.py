"""The noise floor of a table of votes, as text for ``skldl fit``."""

from typing import Any

from skldl.data._dataset import Dataset
from skldl.selection import Estimate
from skldl.uncertainty import explainable_share

MEASURE = "kullback_leibler"


def noise_floor_of(dataset: Dataset, estimate: Estimate) -> tuple[list[str], dict[str, Any]]:
    """Describe the share of the divergence that is noise of the votes, and the share of the rest that is explained.

    Parameters
    ----------
    dataset : Dataset
        The table; without counts of votes there is no estimate.
    estimate : Estimate
        Expected divergence of the model and of the mean distribution.

    Returns
    -------
    lines : list of str
        Sentences, or none.
    numbers : dict
        ``noise_floor``, ``noise_floor_error`` (standard error) and ``explained`` (share of the explainable divergence;
        None if there is none), or nothing.
    """
    floor = dataset.noise_floor([MEASURE]).get(MEASURE)
    if floor is None:
        return [], {}
    share = explainable_share(estimate.loss, estimate.reference_loss, floor.value)
    known = share == share
    line = (
        f"Noise floor {floor.value:.4g} ± {floor.standard_error:.2g}: with {floor.n_votes:.3g} votes a row, even the "
        "true distributions would have this divergence. "
    )
    line += (
        f"Of what can be explained, {estimate.reference_loss:.4g} − {floor.value:.4g}, the model explains {share:.1%}."
        if known
        else "Always predicting the mean reaches it, so that there is nothing left to explain."
    )
    return [line], {
        "noise_floor": floor.value,
        "noise_floor_error": floor.standard_error,
        "explained": share if known else None,
    }

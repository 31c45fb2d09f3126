"""What the votes behind a dataset allow any model: written into the record of the dataset."""

from typing import Any

import numpy as np

from skldl.data._dataset import Dataset
from skldl.distributions import Votes, from_votes
from skldl.experiments.study import Study

MOST_VOTES = 200_000


def noise_ceiling_of(dataset: Dataset, study: Study) -> dict[str, Any]:
    """Estimate the best value of each measure that the noise of the votes allows.

    Parameters
    ----------
    dataset : Dataset
        The data; without counts or votes there is no estimate, nor with a fixed test set, whose votes are not known.
    study : Study
        Its measures.

    Returns
    -------
    dict
        ``{"noise_ceiling": {measure: value}}``, or nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.data import Dataset
    >>> counts = np.array([[3, 1], [2, 2], [0, 4]])
    >>> dataset = Dataset("d", np.eye(3), counts / 4, counts=counts)
    >>> study = Study([dataset], measures=["clark"], folds=3)
    >>> 0 < noise_ceiling_of(dataset, study)["noise_ceiling"]["clark"] < 2 ** 0.5
    True
    """
    votes = None if dataset.has_test_set else _votes(dataset)
    if votes is None or votes.n_votes.max() < 2:
        return {}
    ceilings = votes.noise_ceiling([*dict.fromkeys([*study.measures, study.criterion])])
    return {"noise_ceiling": {name: ceiling.ceiling for name, ceiling in ceilings.items()}}


def _votes(dataset: Dataset) -> Votes | None:
    if dataset.votes is not None:
        return from_votes(dataset.votes)
    if dataset.counts is None:
        return None
    counts = np.asarray(dataset.counts, dtype=np.float64)
    number = np.rint(counts).astype(np.intp)
    if not np.allclose(number, counts) or number.sum() > MOST_VOTES:
        return None  # weighted votes, or so many that their noise does not matter
    items, labels = (np.repeat(places.ravel(), number.ravel()) for places in np.indices(number.shape))
    long = {"item": items, "annotator": np.arange(len(items)), "label": labels}
    return from_votes(long, item="item", annotator="annotator", label="label", labels=range(dataset.n_labels))

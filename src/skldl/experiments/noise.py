"""What the votes behind a dataset allow any model: written into the record of the dataset."""

from typing import Any

import numpy as np

from skldl.data._dataset import Dataset
from skldl.distributions import from_votes
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
    counts = dataset.counts
    if dataset.has_test_set or counts is None:
        return {}
    whole = np.rint(np.asarray(counts, dtype=np.float64)).astype(np.intp)
    if not np.allclose(whole, counts) or whole.sum() > MOST_VOTES or whole.sum(axis=1).max() < 2:
        return {}
    items, labels = np.indices(whole.shape)
    number = whole.ravel()
    item, label = np.repeat(items.ravel(), number), np.repeat(labels.ravel(), number)
    votes = {"item": item, "annotator": np.arange(len(item)), "label": label}
    found = from_votes(votes, item="item", annotator="annotator", label="label", labels=range(dataset.n_labels))
    ceilings = found.noise_ceiling([*dict.fromkeys([*study.measures, study.criterion])])
    return {"noise_ceiling": {name: ceiling.ceiling for name, ceiling in ceilings.items()}}

"""The noise floor of the votes of a dataset, for the record of the dataset."""

from typing import Any

from skldl.data._dataset import Dataset
from skldl.experiments.study import Study


def noise_ceiling_of(dataset: Dataset, study: Study) -> dict[str, Any]:
    """Estimate the noise floor of each measure, the value that the true distributions would have, and its error.

    There is none without counts of votes, nor with a fixed test set, whose votes are not known.

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
    if dataset.has_test_set:
        return {}
    floors = dataset.noise_floor([*dict.fromkeys([*study.measures, study.criterion])])
    if not floors:
        return {}
    return {
        "noise_ceiling": {name: floor.value for name, floor in floors.items()},
        "noise_ceiling_error": {name: floor.standard_error for name, floor in floors.items()},
    }

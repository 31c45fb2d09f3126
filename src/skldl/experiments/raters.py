"""Summary of the raters of a dataset for its record, without their votes."""

from typing import Any

import numpy as np

from skldl.annotators import RaterSummary
from skldl.data._dataset import Dataset
from skldl.distributions._tables import is_missing, plain_label


def raters_of(dataset: Dataset, *, named: bool = True) -> dict[str, Any]:
    """Summarise the quality of the raters, as `skldl.annotators.RaterSummary.from_dict` takes it.

    There is no summary if the dataset has no ``raters``, or no row has votes of two of them. Without ``named`` they are
    numbered.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.data import Dataset
    >>> votes = np.array([["a", "a"], ["b", "a"], ["b", "b"]])
    >>> D = [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]
    >>> dataset = Dataset("d", np.eye(3), D, ("a", "b"), votes=votes, raters=["ann", "bob"])
    >>> raters_of(dataset)["raters"]["raters"]["rater"]
    ['ann', 'bob']
    """
    if dataset.votes is None or dataset.raters is None:
        return {}
    votes = np.asarray(dataset.votes, dtype=object)
    given = np.array([[not is_missing(vote) for vote in row] for row in votes.tolist()])
    if given.sum(axis=1).max(initial=0) < 2:
        return {}
    row, _ = np.nonzero(given)
    columns = {
        "item": row,
        "rater": np.broadcast_to(dataset.raters, votes.shape)[given],
        "label": np.array([str(plain_label(vote)) for vote in votes[given].tolist()], dtype=object),
    }
    summary = RaterSummary.from_votes(
        columns, item="item", annotator="rater", label="label", labels=list(dataset.label_names)
    )
    return {"raters": summary.to_dict(named=named)}

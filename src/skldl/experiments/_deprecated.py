"""Names of 0.1 that go in 0.4: `Contender`, `Problem` and `load_problem`."""

import warnings
from typing import Any

from skldl.data import Dataset
from skldl.experiments.loading import load_datasets
from skldl.experiments.study import DatasetSpec
from skldl.selection import Candidate


def _warn(old: str, new: str) -> None:
    warnings.warn(
        f"skldl.experiments.{old} is now {new}; the old name is removed in 0.4.", DeprecationWarning, stacklevel=3
    )


def Contender(*args: Any, **kwargs: Any) -> Candidate:
    """Make a `skldl.selection.Candidate`.

    Parameters
    ----------
    *args, **kwargs
        Arguments of `skldl.selection.Candidate`.

    Returns
    -------
    Candidate
        The candidate.

    Examples
    --------
    >>> import warnings
    >>> from skldl.experiments import Contender
    >>> with warnings.catch_warnings(action="ignore"):
    ...     candidate = Contender("Mean", "skldl:MeanDistribution")
    >>> candidate.name
    'Mean'
    """
    _warn("Contender", "skldl.experiments.Candidate")
    return Candidate(*args, **kwargs)


def Problem(name: str, X: Any, D: Any, names: Any = (), *args: Any, **kwargs: Any) -> Dataset:
    """Make a `skldl.data.Dataset`.

    Parameters
    ----------
    name : str
        Name of the dataset.
    X, D : array-like
        Features and distributions.
    names : sequence of str, default=()
        Names of the labels.
    *args, **kwargs
        Further arguments of `skldl.data.Dataset`.

    Returns
    -------
    Dataset
        The dataset.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from skldl.experiments import Problem
    >>> with warnings.catch_warnings(action="ignore"):
    ...     dataset = Problem("toy", np.eye(2), np.eye(2), ("no", "yes"))
    >>> dataset.label_names
    ('no', 'yes')
    """
    _warn("Problem", "skldl.data.Dataset")
    rest = ("groups", "sample_weight", "X_test", "D_test", "apart", "source")
    return Dataset(name, X, D, names, **dict(zip(rest, args, strict=False)), **kwargs)


def load_problem(name: str, *, apart: bool = False, data_home: Any = None) -> Dataset:
    """Load a dataset by name or path, as `skldl.data.load_dataset` does.

    Parameters
    ----------
    name : str
        Name or path.
    apart : bool, default=False
        Whether the dataset is left out of average ranks and tests.
    data_home : path, default=None
        Folder with the data files.

    Returns
    -------
    Dataset
        The dataset.

    Examples
    --------
    >>> import warnings
    >>> from skldl.experiments import load_problem
    >>> with warnings.catch_warnings(action="ignore"):
    ...     dataset = load_problem("Artificial")
    >>> dataset.n_samples
    500
    """
    _warn("load_problem", "skldl.data.load_dataset")
    found, _ = load_datasets([DatasetSpec(name, apart)], data_home=data_home)
    if not found:
        from skldl.data import load_dataset

        load_dataset(name, data_home)  # says where it was looked for
    assert found[0].data is not None
    return found[0].data

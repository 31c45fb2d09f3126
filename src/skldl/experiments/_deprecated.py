"""Names of 0.1 that go in 0.4: `Contender`, `Problem` and `load_problem`."""

import warnings
from typing import Any

from skldl.data import Dataset
from skldl.experiments.loading import load_datasets
from skldl.experiments.study import DatasetSpec
from skldl.selection import Candidate


def _warn(old: str, new: str) -> None:
    warnings.warn(f"skldl.experiments.{old} is now {new}; the old name goes in 0.4.", DeprecationWarning, stacklevel=3)


def Contender(*args: Any, **kwargs: Any) -> Candidate:
    """Make a `skldl.selection.Candidate`."""
    _warn("Contender", "skldl.experiments.Candidate")
    return Candidate(*args, **kwargs)


def Problem(name: str, X: Any, D: Any, names: Any = (), *args: Any, **kwargs: Any) -> Dataset:
    """Make a `skldl.data.Dataset`."""
    _warn("Problem", "skldl.data.Dataset")
    rest = ("groups", "sample_weight", "X_test", "D_test", "apart", "source")
    return Dataset(name, X, D, names, **dict(zip(rest, args, strict=False)), **kwargs)


def load_problem(name: str, *, apart: bool = False, data_home: Any = None) -> Dataset:
    """Load a dataset by name or path, as `skldl.data.load_dataset` does."""
    _warn("load_problem", "skldl.data.load_dataset")
    found, _ = load_datasets([DatasetSpec(name, apart)], data_home=data_home)
    if not found:
        from skldl.data import load_dataset

        load_dataset(name, data_home)  # says where it was looked for
    assert found[0].data is not None
    return found[0].data

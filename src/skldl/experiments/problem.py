"""`Problem`: the data that a study runs on, with the fingerprint that records carry."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from skldl._validation import check_distributions, check_same_length, check_weights, label_names
from skldl.exceptions import DatasetNotFoundError, LengthMismatchError, UnknownDatasetError

FloatArray = npt.NDArray[np.floating]
NEAR_ZERO = 0.01


@dataclass(frozen=True, eq=False)
class Problem:
    """A dataset as a study sees it.

    Attributes
    ----------
    name : str
        Name of the row in the tables.
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        Features.
    D : array or DataFrame of shape (n_samples, n_labels)
        Label distributions.
    names : tuple of str
        Names of the labels; taken from D if empty.
    groups : array of shape (n_samples,) or None
        Rows of one group never stand on both sides of a split.
    sample_weight : array of shape (n_samples,) or None
        Weight of each row, in fitting and in the measures.
    X_test, D_test : as X and D, or None
        A test set that is fixed. Then there are no folds: each contender is tested once.
    apart : bool
        Listed in the tables, but left out of average ranks and tests.
    source : str
        The file it came from, if it is not of the catalogue.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.experiments import Problem
    >>> problem = Problem("tiny", np.eye(4), [[0.5, 0.5]] * 4)
    >>> problem.n_samples, problem.n_features, problem.n_labels
    (4, 4, 2)
    """

    name: str
    X: Any
    D: Any
    names: tuple[str, ...] = ()
    groups: Any = None
    sample_weight: Any = None
    X_test: Any = None
    D_test: Any = None
    apart: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        names = self.names or tuple(str(name) for name in label_names(self.D, np.shape(self.D)[1]))
        object.__setattr__(self, "names", tuple(names))
        X = sparse.csr_matrix(self.X) if sparse.issparse(self.X) else self.X
        object.__setattr__(self, "X", X if hasattr(X, "shape") else np.asarray(X))
        object.__setattr__(self, "D", check_distributions(self.D, name=f"D of {self.name}"))
        check_same_length(self.X, self.D)
        object.__setattr__(self, "sample_weight", check_weights(self.sample_weight, self.n_samples))
        if self.groups is not None:
            object.__setattr__(self, "groups", np.asarray(self.groups))
            if len(self.groups) != self.n_samples:
                raise LengthMismatchError(
                    f"{self.name}: {len(self.groups)} groups for {self.n_samples} rows. Give one group for each row."
                )
        if self.has_test_set:
            object.__setattr__(self, "D_test", check_distributions(self.D_test, name=f"D_test of {self.name}"))
            check_same_length(self.X_test, self.D_test)

    @property
    def n_samples(self) -> int:
        """Number of rows to learn from."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def n_labels(self) -> int:
        """Number of labels."""
        return int(self.D.shape[1])

    @property
    def has_test_set(self) -> bool:
        """Whether the test set is fixed."""
        return self.X_test is not None

    @cached_property
    def family(self) -> str:
        """Fingerprint of X alone: datasets that share it are not independent."""
        return _digest(self.X)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of everything that can change a number."""
        parts = (self.X, self.D, self.groups, self.sample_weight, self.X_test, self.D_test)
        return _digest(*(part for part in parts if part is not None))

    def describe(self) -> dict[str, Any]:
        """Say what the data look like, in plain values, for the record file."""
        positive = self.D > 0
        entropy = -np.sum(np.where(positive, self.D * np.log(np.where(positive, self.D, 1.0)), 0.0), axis=1)
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "family": self.family,
            "n_samples": self.n_samples,
            "n_test": int(self.D_test.shape[0]) if self.has_test_set else 0,
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "label_names": list(self.names),
            "near_zero_share": float(np.mean(self.D < NEAR_ZERO)),
            "mean_entropy_share": float(np.mean(entropy) / np.log(self.n_labels)),
            "mean_distribution": [float(degree) for degree in self.D.mean(axis=0)],
            "n_groups": None if self.groups is None else len(np.unique(self.groups)),
            "weighted": self.sample_weight is not None,
            "apart": self.apart,
        }


def load_problem(name: str, *, apart: bool = False, data_home: Any = None) -> Problem:
    """Load a dataset by name or path.

    Parameters
    ----------
    name : str
        A name of the catalogue, or the path of a data file. ``artificial`` brings its fixed test set, the manifold
        of the paper.
    apart : bool, default=False
        Keep it out of average ranks and tests.
    data_home : path, default=None
        Folder with the data files; it comes before the one that ``SKLDL_DATA`` names.

    Returns
    -------
    Problem
        The data.
    """
    from skldl.data import artificial_manifold, load_dataset

    with _first_looked_at(data_home):
        dataset = load_dataset(name)
    test: dict[str, Any] = {}
    if dataset.name.casefold() == "artificial":
        test["X_test"], test["D_test"] = artificial_manifold()
    labels = tuple(str(label) for label in dataset.label_names)
    source = name if Path(name).is_file() else ""
    return Problem(dataset.name, dataset.X, dataset.D, labels, apart=apart, source=source, **test)


@contextmanager
def _first_looked_at(folder: Any) -> Iterator[None]:
    """Let a folder that a user names for one study stand in for the one that the environment names for all."""
    usual = os.environ.get("SKLDL_DATA")
    if folder is not None:
        os.environ["SKLDL_DATA"] = str(folder)
    try:
        yield
    finally:
        if usual is not None:
            os.environ["SKLDL_DATA"] = usual
        else:
            os.environ.pop("SKLDL_DATA", None)


def load_problems(specs: Any, *, data_home: Any = None) -> tuple[list[Problem], list[str]]:
    """Load the datasets of a study; those that are not there are named, not fatal.

    Parameters
    ----------
    specs : sequence of Problem or DatasetSpec
        The datasets of a study.
    data_home : path, default=None
        Folder with the data files.

    Returns
    -------
    problems : list of Problem
        The data that were found.
    missing : list of str
        Names of the datasets that were not.
    """
    problems: list[Problem] = []
    missing: list[str] = []
    shared: dict[str, Any] = {}
    for spec in specs:
        if isinstance(spec, Problem):
            problems.append(spec)
            continue
        try:
            problem = load_problem(spec.source or spec.name, apart=spec.apart, data_home=data_home)
        except UnknownDatasetError:  # a slip of the pen, which no folder can mend
            raise
        except DatasetNotFoundError:
            missing.append(spec.name)
            continue
        object.__setattr__(problem, "X", shared.setdefault(problem.family, problem.X))  # one X in memory per family
        problems.append(problem)
    return problems, missing


def _digest(*tables: Any) -> str:
    """Hash values, shape and, for tables with names, the names of the columns."""
    state = hashlib.sha256()
    for table in tables:
        if sparse.issparse(table):
            csr = sparse.csr_matrix(table)
            csr.sort_indices()
            _feed(state, csr.shape, csr.data, csr.indices.astype(np.int64), csr.indptr.astype(np.int64))
        elif hasattr(table, "columns"):
            state.update(repr([str(column) for column in table.columns]).encode())
            _feed(state, table.shape, *(np.asarray(table[column]) for column in table.columns))
        else:
            _feed(state, np.shape(table), np.asarray(table))
    return state.hexdigest()[:16]


def _feed(state: Any, shape: tuple[int, ...], *arrays: npt.NDArray[Any]) -> None:
    state.update(repr(tuple(int(size) for size in shape)).encode())
    for array in arrays:
        if array.dtype.kind in "biuf":
            state.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
        else:
            state.update(repr(array.tolist()).encode())

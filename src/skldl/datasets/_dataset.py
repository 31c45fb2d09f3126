"""`Dataset`: features, distributions and what is known about them, in one immutable object."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.floating]


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """Features X, distributions D and what is known about them; unpacks as ``X, D = dataset``.

    Parameters
    ----------
    name : str
        Name of the dataset.
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Features.
    D : ndarray of shape (n_samples, n_labels)
        Distributions: rows that sum to one.
    label_names : tuple of str
        Names of the labels; label_0, label_1, … where the source does not tell.
    feature_names : tuple of str, default=None
        Names of the features, or None if the source does not tell.
    description, citation, terms, source : str, default=""
        What it is, what to cite, under which terms it may be used, and which file or function it came from.
    votes : ndarray of shape (n_samples, n_raters), default=None
        The single ratings behind D, where they are known.
    counts : ndarray of shape (n_samples, n_labels), default=None
        How many raters chose each label, where this is known.
    tokens : tuple of str, default=None
        The texts that the rows of X describe, where there are such.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.datasets import Dataset
    >>> dataset = Dataset("toy", X=np.eye(2), D=np.array([[0.2, 0.8], [0.5, 0.5]]), label_names=("no", "yes"))
    >>> dataset
    Dataset('toy', 2 samples, 2 features, 2 labels)
    >>> X, D = dataset
    >>> D[0]
    array([0.2, 0.8])
    """

    name: str
    X: Any
    D: FloatArray
    label_names: tuple[str, ...]
    feature_names: tuple[str, ...] | None = None
    description: str = ""
    citation: str = ""
    terms: str = ""
    source: str = ""
    votes: npt.NDArray[np.integer] | None = field(default=None, kw_only=True)
    counts: npt.NDArray[np.integer] | None = field(default=None, kw_only=True)
    tokens: tuple[str, ...] | None = field(default=None, kw_only=True)

    def __iter__(self) -> Iterator[Any]:
        yield self.X
        yield self.D

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.D.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def n_labels(self) -> int:
        """Number of columns of D."""
        return int(self.D.shape[1])

    def __repr__(self) -> str:
        sizes = f"{self.n_samples} samples, {self.n_features} features, {self.n_labels} labels"
        return f"Dataset({self.name!r}, {sizes})"

"""`Dataset`: features, distributions and metadata in one immutable object."""

import hashlib
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing

from skldl.exceptions import LengthMismatchError
from skldl.metrics import PAPER_MEASURES
from skldl.metrics._noise_floor import NoiseFloor, noise_floor
from skldl.utils.column_names import label_names
from skldl.utils.missing import COMPLETE, check_partial_distributions, has_gaps, informative, mean_distribution
from skldl.utils.simplex import entropy
from skldl.utils.typing import AnyArray, FloatArray, IntArray
from skldl.utils.validation import check_distributions, check_same_length, check_weights, reject_masked

NEAR_ZERO = 0.01
_PER_ROW = ("X", "D", "observed", "groups", "sample_weight", "votes", "counts", "splits")


@dataclass(frozen=True, repr=False, eq=False)
class Dataset:
    """Features X, distributions D and metadata; unpacks as ``X, D = dataset``.

    Parameters
    ----------
    name : str
        Name of the dataset.
    X : array, sparse matrix or DataFrame of shape (n_samples, n_features)
        Features.
    D : array or DataFrame of shape (n_samples, n_labels)
        Distributions: rows that sum to one, converted to an array in double precision. NaN is a degree that was not
        observed.
    label_names : tuple of str, default=()
        Names of the labels; by default the columns of D, or label_0, label_1, … if D has no names.
    feature_names : tuple of str, default=None
        Names of the features, or None if they are unknown.
    description, citation, terms, source : str, default=""
        Description, citation, terms of use, and the file or function that the data come from.
    groups : array of shape (n_samples,), default=None
        Group of each row; rows of a group are never on both sides of a split.
    sample_weight : array of shape (n_samples,), default=None
        Weight of each row, in fits and in measures.
    splits : array of int of shape (n_samples,) or (n_samples, n_repeats), default=None
        Given folds: for each repeat of a study the fold in which a row is tested, from 0; -1 for rows that are never
        tested.
    X_test, D_test : as X and D, default=None
        A fixed test set. Then there are no folds: each candidate is tested once.
    votes : ndarray of shape (n_samples, n_raters), default=None
        The individual ratings behind D, if they are known; NaN if a row has fewer ratings.
    raters : array of shape (n_raters,) or (n_samples, n_raters), default=None
        Names of the raters: one for each column of ``votes``, or one for each cell. None if the position of a rating
        does not identify the rater.
    counts : ndarray of shape (n_samples, n_labels), default=None
        Number of raters who chose each label, if it is known.
    tokens : tuple of str, default=None
        The texts that the rows of X encode, if there are any.
    apart : bool, default=False
        Whether the dataset is listed in the tables of a study, but left out of average ranks and tests.
    notes : tuple of str, default=()
        Notes for the user about the data.
    observed : ndarray of shape (n_samples, n_labels), default=None
        The training target, if it is not D: degrees with NaN, as from `skldl.data.make_missing`. Predictions are still
        compared with D.
    columns : Columns, default=None
        Roles of the columns of the original table; see `from_table`.
    missing : {"degrees", "renormalised"}, default="degrees"
        Meaning of the observed degrees in rows with gaps: true degrees, or degrees divided by their sum; as the
        parameter ``missing`` of estimators.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.data import Dataset
    >>> dataset = Dataset("toy", X=np.eye(2), D=np.array([[0.2, 0.8], [0.5, 0.5]]), label_names=("no", "yes"))
    >>> dataset
    Dataset('toy', 2 samples, 2 features, 2 labels)
    >>> X, D = dataset
    >>> D[0]
    array([0.2, 0.8])
    >>> dataset[1] is dataset.D
    True
    """

    name: str
    X: Any
    D: Any
    label_names: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None
    description: str = ""
    citation: str = ""
    terms: str = ""
    source: str = ""
    groups: Any = field(default=None, kw_only=True)
    sample_weight: Any = field(default=None, kw_only=True)
    splits: IntArray | None = field(default=None, kw_only=True)
    X_test: Any = field(default=None, kw_only=True)
    D_test: Any = field(default=None, kw_only=True)
    votes: AnyArray | None = field(default=None, kw_only=True)
    raters: Any = field(default=None, kw_only=True)
    counts: AnyArray | None = field(default=None, kw_only=True)
    tokens: tuple[str, ...] | None = field(default=None, kw_only=True)
    apart: bool = field(default=False, kw_only=True)
    notes: tuple[str, ...] = field(default=(), kw_only=True)
    observed: Any = field(default=None, kw_only=True)
    columns: Any = field(default=None, kw_only=True)
    missing: str = field(default="degrees", kw_only=True)

    def __post_init__(self) -> None:
        names = self.label_names or label_names(self.D, np.shape(self.D)[1])
        self._set("label_names", tuple(str(name) for name in names))
        reject_masked(self.X, name=f"X of {self.name}")
        X = sparse.csr_matrix(self.X) if sparse.issparse(self.X) else self.X
        self._set("X", X if hasattr(X, "shape") else np.asarray(X))
        D, meaning = check_partial_distributions(self.D, "auto", name=f"D of {self.name}", to_learn=False)
        self._set("D", D)
        if meaning != COMPLETE:
            self._set("missing", meaning)
        check_same_length(self.X, self.D)
        self._set("sample_weight", check_weights(self.sample_weight, self.n_samples))
        if self.groups is not None:
            self._set("groups", np.asarray(self.groups))
        if self.splits is not None:
            self._set("splits", np.asarray(self.splits, dtype=np.intp).reshape(len(self.splits), -1))
        for what, values in (("groups", self.groups), ("lines of splits", self.splits)):
            if values is not None and len(values) != self.n_samples:
                raise LengthMismatchError(
                    f"{self.name}: {len(values)} {what} for {self.n_samples} rows. Give one for each row."
                )
        if self.raters is not None:
            self._set("raters", np.asarray(self.raters))
            shape = () if self.votes is None else np.shape(self.votes)
            if not shape or self.raters.shape not in (shape, shape[1:]):
                raise LengthMismatchError(
                    f"{self.name}: raters of shape {self.raters.shape} for votes of shape {shape}. Give one name for "
                    "each column of votes, or one for each of its cells."
                )
        if self.has_test_set:
            self._set("D_test", check_distributions(self.D_test, name=f"D_test of {self.name}"))
            check_same_length(self.X_test, self.D_test)

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def __iter__(self) -> Iterator[Any]:
        yield self.X
        yield self.D

    def __getitem__(self, place: int | slice) -> Any:
        """Return X for 0 and D for 1; there is no ``len``, which could be mistaken for the number of rows."""
        if not isinstance(place, int | slice):
            raise TypeError(
                f"A dataset holds X at 0 and D at 1; {place!r} is neither. Its parts have names too: dataset.X, "
                "dataset.D, dataset.votes; dataset.take(rows) gives some of the rows."
            )
        return (self.X, self.D)[place]

    def __repr__(self) -> str:
        sizes = f"{self.n_samples} samples, {self.n_features} features, {self.n_labels} labels"
        return f"Dataset({self.name!r}, {sizes})"

    @property
    def n_samples(self) -> int:
        """Number of rows to learn from."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.X.shape[1])

    @property
    def n_labels(self) -> int:
        """Number of columns of D."""
        return int(np.shape(self.D)[1])

    @property
    def n_votes(self) -> AnyArray | None:
        """Number of votes of each row, if ``counts`` are known: a natural ``sample_weight``."""
        return None if self.counts is None else np.asarray(self.counts).sum(axis=1)

    @property
    def has_test_set(self) -> bool:
        """Whether the test set is fixed."""
        return self.X_test is not None

    @property
    def target(self) -> FloatArray:
        """The training target: ``observed`` if it is given, else D."""
        return np.asarray(self.D if self.observed is None else self.observed)

    @cached_property
    def family(self) -> str:
        """Fingerprint of X alone: datasets that share it are not independent."""
        return _digest(self.X)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of all data that can change a result."""
        parts = (self.X, self.D, self.groups, self.sample_weight, self.X_test, self.D_test, self.splits, self.observed)
        return _digest(*(part for part in parts if part is not None))

    def take(self, rows: IntArray) -> "Dataset":
        """Copy the dataset with some of its rows; a fixed test set stays as it is.

        Parameters
        ----------
        rows : ndarray of int
            Positions of the rows.

        Returns
        -------
        Dataset
            These rows.
        """
        per_row = {name: rows_of(getattr(self, name), rows) for name in _PER_ROW}
        tokens = None if self.tokens is None else tuple(self.tokens[row] for row in rows)
        if np.ndim(self.raters) == 2:
            per_row["raters"] = self.raters[rows]
        return self.changed(**per_row, tokens=tokens)

    def changed(self, **attributes: Any) -> "Dataset":
        """Copy the dataset with other attributes, which are not checked.

        The constructor divides the rows of D by their sums. A second division would change last digits, and with them
        the fingerprint in records.

        Parameters
        ----------
        **attributes : dict
            New values by name.

        Returns
        -------
        Dataset
            The copy.
        """
        other = copy(self)
        for fingerprint in ("family", "fingerprint"):
            other.__dict__.pop(fingerprint, None)
        for name, value in attributes.items():
            other._set(name, value)
        return other

    def noise_floor(self, measures: Any = None, *, random_state: int = 0) -> dict[str, NoiseFloor]:
        """Estimate the score of the true distributions on these rows, if the votes behind D are known.

        Parameters
        ----------
        measures : iterable of str or Measure, default=None
            The measures; None for the six of the paper.
        random_state : int, default=0
            Seed of the simulation.

        Returns
        -------
        dict
            From the name of each measure to a `skldl.uncertainty.NoiseFloor`. Empty without counts, or if `whole_votes`
            returns None.
        """
        votes = self.whole_votes()
        if votes is None:
            return {}
        chosen = tuple(PAPER_MEASURES) if measures is None else measures
        return noise_floor(
            votes, chosen, sample_weight=self.sample_weight, groups=self.groups, random_state=random_state
        )

    def whole_votes(self) -> FloatArray | None:
        """Number of votes for each label, if D consists of the fractions of whole votes.

        Returns
        -------
        ndarray of shape (n_samples, n_labels) or None
            None if there are no counts, if they are not whole numbers, if D is not equal to the counts divided by their
            sums, or if no row has two votes.
        """
        if self.counts is None:
            return None
        counts = np.asarray(self.counts, dtype=np.float64)
        totals = counts.sum(axis=1, keepdims=True)
        whole = np.isfinite(counts).all() and np.allclose(counts, np.rint(counts)) and (totals > 0).all()
        # 1e-6: tables often have fractions with six digits
        if not whole or totals.max() < 2 or not np.allclose(counts / totals, self.D, atol=1e-6):
            return None
        return np.asarray(np.rint(counts))

    def describe(self) -> dict[str, Any]:
        """Describe the data in plain values, for a record file.

        Returns
        -------
        dict
            Name, fingerprint, sizes, label names and summary statistics.
        """
        complete = self.D[~np.isnan(self.D).any(axis=1)] if has_gaps(self.D) else self.D
        mean = self.D.mean(axis=0)
        if has_gaps(self.D):
            mean = mean_distribution(self.D, np.ones(self.n_samples), self.missing)
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "family": self.family,
            "n_samples": self.n_samples,
            "n_test": int(self.D_test.shape[0]) if self.has_test_set else 0,
            "n_features": self.n_features,
            "n_labels": self.n_labels,
            "label_names": list(self.label_names),
            "near_zero_share": float(np.mean(self.D < NEAR_ZERO)),
            "mean_entropy_share": float(np.mean(entropy(complete)) / np.log(self.n_labels)) if len(complete) else 0.0,
            "mean_distribution": [float(degree) for degree in mean],
            "n_groups": None if self.groups is None else len(np.unique(self.groups)),
            "weighted": self.sample_weight is not None,
            "apart": self.apart,
            **({} if self.splits is None else {"n_splits": int(self.splits[:, 0].max()) + 1}),
        }


def rows_of(table: Any, rows: IntArray) -> Any:
    """Take rows of an array, a sparse matrix or a DataFrame; None stays None."""
    return None if table is None else _safe_indexing(table, rows)


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


def _feed(state: Any, shape: tuple[int, ...], *arrays: FloatArray) -> None:
    state.update(repr(tuple(int(size) for size in shape)).encode())
    for array in arrays:
        if array.dtype.kind in "biuf":
            state.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
        else:
            state.update(repr(array.tolist()).encode())


def with_note_of_gaps(dataset: Dataset, n_gaps: int) -> Dataset:
    """Add a note about empty label cells of the source, and their meaning, if there are any."""
    if not n_gaps:
        return dataset
    note = f"{n_gaps} of {dataset.D.size} label cells are empty: degrees that were not observed. "
    if not has_gaps(dataset.D):
        note += "They follow from the others, since the degrees of a row sum to one. "
    else:
        note += {
            "renormalised": "The observed ones sum to one in every row: only their ratios count "
            "(missing='renormalised'). ",
            "degrees": "The observed ones sum to less than one in some rows: the rest of the mass belongs to the empty "
            "labels (missing='degrees'). ",
        }[dataset.missing] + "Only some models learn from such rows. "
    return dataset.changed(notes=(*dataset.notes, f"{note}Write 0 where a label does not apply."))


def rows_to_judge_by(dataset: Dataset) -> Dataset:
    """Leave out rows whose observed degrees contain no information, and add a note on their number.

    The dataset is returned unchanged if this concerns no rows, or all.
    """
    if not has_gaps(dataset.D):
        return dataset
    kept = informative(dataset.D, dataset.missing)
    if kept.all() or not kept.any():
        return dataset
    reason = (
        "fewer than two observed labels, and no ratio follows from one"
        if dataset.missing == "renormalised"
        else "no observed label"
    )
    note = f"{int((~kept).sum())} of {len(kept)} rows have {reason}: they are left out."
    return dataset.take(np.flatnonzero(kept)).changed(notes=(*dataset.notes, note))

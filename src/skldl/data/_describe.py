"""`describe`: a summary of a dataset as a `Card`; tables of such summaries."""

import itertools
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from skldl import simplex
from skldl.data._catalogue import BUILT_IN, CATALOGUE, FETCHED_TEXTS, find_entry, in_catalogue
from skldl.data._dataset import Dataset
from skldl.data._load import load_dataset
from skldl.exceptions import DatasetNotFoundError, DimensionError, NonFiniteError
from skldl.utils.tables import aligned
from skldl.utils.validation import check_distributions, check_same_length

# Bounds of the warnings, chosen by hand.
NEARLY_UNIFORM = 0.95  # fraction of the maximum entropy
LITTLE_VARIATION = 0.03  # mean divergence from the mean distribution, in nats
FEW_DISTINCT = 0.5  # fraction of rows of X that do not repeat an earlier row

_MAX_SVD_WORK = 2e9  # n_samples · n_features · smaller of the two, for singular values in a few seconds
_MAX_GRAM = 4000  # rows of a Gram matrix whose eigenvalues take a few seconds
_GRAM_CUT = 1e-6  # relative: a Gram matrix squares singular values, so that smaller ones are lost in rounding errors


@dataclass(frozen=True)
class Card:
    """Facts about a dataset, for ``print(card)`` or, with ``to_dict``, for other programs.

    Parameters
    ----------
    name : str
        Name of the dataset.
    n_samples, n_features, n_labels : int
        Numbers of rows, features (q) and labels (c).
    is_sparse : bool
        Whether X is a sparse matrix.
    zero_share : float
        Fraction of zeros in X.
    feature_range : tuple of float
        Minimum and maximum of X.
    feature_sum_range : tuple of float
        Minimum and maximum of the row sums of X, g# in improved iterative scaling.
    rank : int or None
        Rank of X; None if X is too large to compute it.
    constant_features : int
        Number of constant columns of X.
    duplicate_rows : int
        Number of rows of X that repeat an earlier one.
    label_zeros : int
        Number of exact zeros in D.
    smallest_degree : float
        Smallest positive degree in D.
    mean_entropy : float
        Mean entropy of the rows of D in nats; the maximum is ln c.
    divergence_from_mean : float
        Mean Kullback-Leibler divergence of the rows of D from their mean, the most that a model can explain.
    warnings : tuple of str
        Warnings about learning from these data.

    Examples
    --------
    >>> from skldl.data import describe
    >>> card = describe("Artificial")
    >>> card.n_samples, card.n_labels
    (500, 3)
    """

    name: str
    n_samples: int
    n_features: int
    n_labels: int
    is_sparse: bool
    zero_share: float
    feature_range: tuple[float, float]
    feature_sum_range: tuple[float, float]
    rank: int | None
    constant_features: int
    duplicate_rows: int
    label_zeros: int
    smallest_degree: float
    mean_entropy: float
    divergence_from_mean: float
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the facts as plain Python values, ready for JSON.

        Returns
        -------
        dict
            From the name of each fact to its value.
        """
        content = asdict(self)
        return {key: list(value) if isinstance(value, tuple) else value for key, value in content.items()}

    def __str__(self) -> str:
        low, high = self.feature_range
        least, most = self.feature_sum_range
        facts = {
            "samples, features, labels": f"{self.n_samples:,} × {self.n_features:,}, {self.n_labels} labels",
            "range of X": f"{low:.4g} to {high:.4g}",
            "zeros in X": f"{self.zero_share:.1%}{' (sparse matrix)' if self.is_sparse else ''}",
            "row sums of X (g#)": f"{least:.4g} to {most:.4g}",
            "rank of X": "not computed: too large" if self.rank is None else f"{self.rank:,}",
            "constant features": f"{self.constant_features:,}",
            "duplicate rows of X": f"{self.duplicate_rows:,}",
            "exact zeros in D": f"{self.label_zeros:,}",
            "smallest positive degree": f"{self.smallest_degree:.4g}",
            "mean entropy of D": f"{self.mean_entropy:.4f} of {math.log(self.n_labels):.4f} nats",
            "divergence from the mean": f"{self.divergence_from_mean:.4f} nats",
        }
        width = max(map(len, facts))
        lines = [self.name, *(f"  {fact.ljust(width)}  {value}" for fact, value in facts.items())]
        lines += [f"  ! {warning}" for warning in self.warnings]
        return "\n".join(lines)


def describe(dataset: Dataset | tuple[Any, Any] | str, name: str | None = None) -> Card:
    """Summarise a dataset: sizes, zeros, duplicates, rank, entropy and warnings.

    Parameters
    ----------
    dataset : Dataset, pair (X, D) or str
        The data, or the name of a dataset for `load_dataset`. X is a dense table or a sparse matrix of finite numbers.
    name : str, default=None
        Name on the card; by default the dataset's own.

    Returns
    -------
    Card
        The facts. The rank is computed from singular values, or for large X from the eigenvalues of the smaller Gram
        matrix of the scaled columns, where singular values below 1e-6 of the largest count as zero; it is not computed
        for X with more than 4,000 rows and columns.

    Examples
    --------
    >>> from skldl.data import describe
    >>> card = describe("Artificial")
    >>> card.n_samples, card.rank, card.label_zeros
    (500, 3, 0)
    """
    if isinstance(dataset, str):
        dataset = load_dataset(dataset)
    raw_X, raw_D = dataset
    D = check_distributions(raw_D, name="D")
    X = _numbers(raw_X)
    check_same_length(X, D)
    name = name or (dataset.name if isinstance(dataset, Dataset) else "data")
    low, high, constant = _column_facts(X)
    sums = np.asarray(X.sum(axis=1)).ravel()
    n_nonzero = X.count_nonzero() if sparse.issparse(X) else np.count_nonzero(X)
    mean = D.mean(axis=0)
    entropy = float(simplex.entropy(D).mean())
    facts: dict[str, Any] = {
        "n_samples": int(X.shape[0]),
        "n_features": int(X.shape[1]),
        "n_labels": int(D.shape[1]),
        "is_sparse": bool(sparse.issparse(X)),
        "zero_share": 1.0 - float(n_nonzero) / (X.shape[0] * X.shape[1]),
        "feature_range": (low, high),
        "feature_sum_range": (float(sums.min()), float(sums.max())),
        "rank": _rank(X),
        "constant_features": constant,
        "duplicate_rows": _duplicate_rows(X),
        "label_zeros": int((D == 0).sum()),
        "smallest_degree": float(D[D > 0].min()),
        "mean_entropy": entropy,
        # the mean divergence from the mean is the entropy of the mean minus the mean entropy
        "divergence_from_mean": max(float(simplex.entropy(mean)) - entropy, 0.0),
    }
    return Card(name=name, **facts, warnings=tuple(_warnings(name, facts)))


def _numbers(X: Any) -> Any:
    if sparse.issparse(X):
        X = sparse.csr_matrix(X, dtype=np.float64, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        values = X.data
    else:
        X = np.asarray(X, dtype=np.float64)
        values = X
    if X.ndim != 2 or 0 in X.shape:
        raise DimensionError(f"X has the shape {X.shape}, but needs rows and columns.")
    if not np.isfinite(values).all():
        raise NonFiniteError("X contains NaN or infinity. Impute these cells or drop their rows first.")
    return X


def _column_facts(X: Any) -> tuple[float, float, int]:
    """Minimum, maximum, and number of constant columns."""
    least, most = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        least, most = least.toarray().ravel(), most.toarray().ravel()
    return float(least.min()), float(most.max()), int((least == most).sum())


def _duplicate_rows(X: Any) -> int:
    if sparse.issparse(X):
        rows = (
            X.indices[start:end].tobytes() + X.data[start:end].tobytes() for start, end in itertools.pairwise(X.indptr)
        )
    else:
        rows = (row.tobytes() for row in np.ascontiguousarray(X + 0.0))  # -0.0, which has other bytes, becomes 0.0
    return int(X.shape[0]) - len(set(rows))


def _rank(X: Any) -> int | None:
    """Rank of X, or None if it would take too long."""
    n_samples, n_features = X.shape
    smaller = min(n_samples, n_features)
    is_sparse = sparse.issparse(X)
    if n_samples * n_features * smaller <= _MAX_SVD_WORK:
        return int(np.linalg.matrix_rank(X.toarray() if is_sparse else X))
    if smaller > _MAX_GRAM:
        return None
    squares = X.multiply(X) if is_sparse else X * X
    norms = np.sqrt(np.asarray(squares.sum(axis=0)).ravel())
    scale = np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0)
    scaled = X @ sparse.diags(scale) if is_sparse else X * scale
    gram = scaled.T @ scaled if n_features <= n_samples else scaled @ scaled.T
    eigenvalues = np.linalg.eigvalsh(gram.toarray() if is_sparse else gram)
    return int((eigenvalues > eigenvalues[-1] * _GRAM_CUT**2).sum())


def _warnings(name: str, facts: dict[str, Any]) -> Iterable[str]:
    """Warnings for the user, in descending order of importance."""
    n, q, c, rank = facts["n_samples"], facts["n_features"], facts["n_labels"], facts["rank"]
    if n < q:
        yield f"Fewer rows ({n:,}) than features ({q:,}): models without regularisation can fit any training labels."
    if rank is not None and rank < min(n, q):
        yield f"X has rank {rank:,} of at most {min(n, q):,}: weights of linear models are not unique."
    if facts["constant_features"]:
        yield f"{_are(facts['constant_features'], 'feature')} constant, with no information on the labels."
    distinct, repeated = n - facts["duplicate_rows"], facts["duplicate_rows"]
    if distinct < FEW_DISTINCT * n:
        yield f"Only {distinct:,} of {n:,} rows of X are distinct: training and test folds share rows."
    elif repeated:
        yield f"{_are(repeated, 'row', ' of X')} a copy of an earlier one: neighbours tie, and folds can share rows."
    if facts["mean_entropy"] > NEARLY_UNIFORM * math.log(c):
        fraction = facts["mean_entropy"] / math.log(c)
        yield f"D is nearly uniform: its mean entropy is {fraction:.1%} of the maximum."
    if facts["divergence_from_mean"] < LITTLE_VARIATION:
        yield "The rows of D differ little from their mean: compare with MeanDistribution, which is hard to beat here."
    if facts["label_zeros"]:
        yield (
            f"{_are(facts['label_zeros'], 'degree')} exactly zero: Clark and Canberra count each as a full 1 unless "
            "the prediction is zero too, and a model that learns zeros makes Kullback-Leibler very large elsewhere."
        )
    if in_catalogue(name) and find_entry(name).note:
        yield find_entry(name).note


def _are(count: int, noun: str, of_what: str = "") -> str:
    return f"1 {noun}{of_what} is" if count == 1 else f"{count:,} {noun}s{of_what} are"


class PrintedRows(list[dict[str, Any]]):
    """Rows with the same keys; ``print(rows)`` shows them in columns, and ``pandas.DataFrame(rows)`` works.

    Examples
    --------
    >>> print(PrintedRows([{"name": "a", "n": 1200}, {"name": "b", "n": None}]))
    name      n
    a     1,200
    b
    """

    def __str__(self) -> str:
        if not self:
            return "(no rows)"
        keys = list(self[0])
        cells = [keys] + [[_as_text(row[key]) for key in keys] for row in self]
        is_number = [any(isinstance(row[key], int | float) for row in self) for key in keys]
        return "\n".join(aligned(cells, is_number))


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def statistics_table(datasets: Iterable[Dataset | Card | str] | None = None) -> PrintedRows:
    """Return the statistics of several datasets, as in Table 1 of the paper and beyond.

    Parameters
    ----------
    datasets : iterable of Dataset, Card or str, default=None
        The datasets or their names; by default the artificial set and the fifteen of the paper. The row of a dataset of
        the paper that is not on this machine has only the sizes from the paper.

    Returns
    -------
    list of dict
        One row per dataset, with the keys dataset, n, q, c, zeros_in_D, duplicates, rank, sparsity and entropy.
        ``print`` shows it as text.

    Examples
    --------
    >>> from skldl.data import statistics_table
    >>> print(statistics_table(["Artificial"]))
    dataset       n  q  c  zeros_in_D  duplicates  rank  sparsity  entropy
    Artificial  500  3  3           0           0     3     0.000    1.051
    """
    wanted = ("Artificial", *CATALOGUE) if datasets is None else datasets
    return PrintedRows(_statistics_row(dataset) for dataset in wanted)


def _statistics_row(dataset: Dataset | Card | str) -> dict[str, Any]:
    if isinstance(dataset, str):
        name = dataset
        try:
            dataset = load_dataset(name)
        except DatasetNotFoundError:
            entry = find_entry(name)
            sizes = {"dataset": entry.name, "n": entry.n_samples, "q": entry.n_features, "c": entry.n_labels}
            return sizes | dict.fromkeys(("zeros_in_D", "duplicates", "rank", "sparsity", "entropy"))
    card = dataset if isinstance(dataset, Card) else describe(dataset)
    return {
        "dataset": card.name,
        "n": card.n_samples,
        "q": card.n_features,
        "c": card.n_labels,
        "zeros_in_D": card.label_zeros,
        "duplicates": card.duplicate_rows,
        "rank": card.rank,
        "sparsity": card.zero_share,
        "entropy": card.mean_entropy,
    }


def list_datasets() -> PrintedRows:
    """List the datasets that `load_dataset` knows by name, with short facts.

    Returns
    -------
    list of dict
        One row per dataset, with the keys name, n, q, c, origin and what. ``print`` shows it as text.

    Examples
    --------
    >>> from skldl.data import list_datasets
    >>> [row["name"] for row in list_datasets()][:3]
    ['Lexicon', 'Tweets', 'Artificial']
    """
    rows: list[dict[str, Any]] = [{"name": name, **facts} for name, facts in (BUILT_IN | FETCHED_TEXTS).items()]
    for entry in CATALOGUE.values():
        rows.append(
            {
                "name": entry.name,
                "n": entry.n_samples,
                "q": entry.n_features,
                "c": entry.n_labels,
                "origin": "fetch_dataset",
                "what": entry.description.partition(";")[0].partition(".")[0],
            }
        )
    return PrintedRows(rows)

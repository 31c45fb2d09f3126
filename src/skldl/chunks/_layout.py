"""What is known about the columns of rows that are read in chunks, and a piece of such rows before it is checked."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Layout:
    """Numbers and names of the columns.

    Attributes
    ----------
    n_features : int
        Number of features.
    n_labels : int or None
        Number of labels; None where there are no distributions.
    feature_names, label_names : tuple of str or None
        Names, where they are known.
    has_weight : bool
        Whether the rows carry weights.
    is_sparse : bool
        Whether features come as sparse matrices.

    Examples
    --------
    >>> from skldl.chunks import ArrayRows
    >>> ArrayRows([[0.0], [1.0]], [[0.5, 0.5], [0.1, 0.9]]).layout
    Layout(n_features=1, n_labels=2, feature_names=None, label_names=None, has_weight=False, is_sparse=False)
    """

    n_features: int
    n_labels: int | None = None
    feature_names: tuple[str, ...] | None = None
    label_names: tuple[str, ...] | None = None
    has_weight: bool = False
    is_sparse: bool = False


@dataclass(frozen=True)
class Piece:
    """Some rows as a source gives them, not yet checked.

    Attributes
    ----------
    X : any
        Features: array-like, DataFrame or sparse matrix.
    y : any
        Distributions, or None.
    weight : any
        Weights, or None.
    place : str
        Where the rows come from, as error messages say, such as the name of a file.
    first_row : int
        Number of the first row at that place.

    Examples
    --------
    >>> Piece([[0.0]], [[0.5, 0.5]], place="ratings.csv", first_row=7).place
    'ratings.csv'
    """

    X: Any
    y: Any = None
    weight: Any = None
    place: str = ""
    first_row: int = 0

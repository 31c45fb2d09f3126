"""The checks of one chunk: those of `skldl.utils.validation`, with errors that name the source and the row in it."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator

from skldl.chunks._layout import Layout, Piece
from skldl.exceptions import DataError, EmptyDataError, FeatureMismatchError, LabelMismatchError, LengthMismatchError
from skldl.utils.column_names import column_names, label_names
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_distributions, check_features, check_same_length, check_weights, rows_from

NAN_HINT = "Rows in chunks need every degree: drop such rows, or fit in memory an estimator that takes missing degrees."


class _Features(BaseEstimator):
    """Receives what `check_features` records; each chunk has one of its own."""


def check_piece(
    piece: Piece, number: int, *, labels: bool, known: Layout | None
) -> tuple[Any, FloatArray | None, FloatArray | None, Layout]:
    """Check one piece, and compare its columns with those of the chunks before, if there were some.

    The number of the chunk, from 0, is for errors about pieces that have no place of their own. Returns X, D, weights
    and the columns; D only where labels are needed and there.
    """
    place = piece.place or f"chunk {number}"
    try:
        with rows_from(piece.first_row):
            return _checked(piece, labels=labels, known=known)
    except DataError as error:
        raise error.prefixed(f"In {place}: ") from error
    except TypeError as error:
        raise TypeError(f"In {place}: {error}") from error


def _checked(
    piece: Piece, *, labels: bool, known: Layout | None
) -> tuple[Any, FloatArray | None, FloatArray | None, Layout]:
    shape = np.shape(piece.X) if not hasattr(piece.X, "shape") else piece.X.shape
    if len(shape) == 2 and shape[0] == 0:
        raise EmptyDataError("the chunk is empty. Leave chunks without rows out.")
    if known is not None and len(shape) == 2 and shape[1] != known.n_features:
        raise FeatureMismatchError(
            f"X has {shape[1]} columns, but the chunks before have {known.n_features}. Every chunk needs the same "
            "columns in the same order."
        )
    features = _Features()
    X = check_features(features, piece.X, reset=True, accept_sparse=True, is_part=True)
    names = getattr(features, "feature_names_in_", None)
    found_names = None if names is None else tuple(str(name) for name in names)
    D = names_of_labels = None
    if labels and piece.y is not None:
        D = check_distributions(piece.y, nan_hint=NAN_HINT)
        check_same_length(X, D)
        if column_names(piece.y):
            names_of_labels = tuple(str(name) for name in label_names(piece.y, D.shape[1]))
    weight = check_weights(piece.weight, X.shape[0], is_part=True)
    n_labels = None if D is None else D.shape[1]
    layout = Layout(X.shape[1], n_labels, found_names, names_of_labels, weight is not None, sparse.issparse(X))
    if known is not None:
        _compare(layout, known, labels=labels)
    return X, D, weight, layout


def _compare(found: Layout, known: Layout, *, labels: bool) -> None:
    """Demand the columns that the chunks before had."""
    names = zip(found.feature_names or (), known.feature_names or (), strict=False)  # as many, if both are known
    new, old = next((pair for pair in names if pair[0] != pair[1]), (None, None))
    if new is not None:
        raise FeatureMismatchError(
            f"X has a column {new!r} where the chunks before have {old!r}. Every chunk needs the same columns in the "
            "same order."
        )
    if found.is_sparse != known.is_sparse:
        kinds = ["a sparse matrix" if layout.is_sparse else "dense" for layout in (found, known)]
        raise DataError(f"X is {kinds[0]}, and in the chunks before it is {kinds[1]}. Give all chunks in one form.")
    if found.has_weight != known.has_weight:
        raise LengthMismatchError(
            f"this chunk has {'weights' if found.has_weight else 'no weights'}, and the chunks before have "
            f"{'some' if known.has_weight else 'none'}. Give weights with every chunk or with none."
        )
    if not labels:
        return
    if found.n_labels != known.n_labels:
        counts = ["no distributions" if n is None else f"{n} labels" for n in (found.n_labels, known.n_labels)]
        raise LengthMismatchError(
            f"this chunk has {counts[0]}, and the chunks before have {counts[1]}. Every chunk needs one degree for "
            "each label."
        )
    if None not in (found.label_names, known.label_names) and found.label_names != known.label_names:
        raise LabelMismatchError(
            f"the labels are {', '.join(found.label_names or ())}, and those of the chunks before "
            f"{', '.join(known.label_names or ())}. Every chunk needs the same labels in the same order."
        )

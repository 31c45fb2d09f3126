"""Predictions, measures and skill of rows that are read in chunks: only one chunk and a few sums are in memory.

The sums are those that `skldl.metrics` computes for tables in memory, which are a single chunk: `MeasureSums` and
`LossSums`.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl.chunks._rows import Chunk, Rows, add
from skldl.exceptions import DataError, EmptyDataError, FeatureMismatchError, LengthMismatchError, Parameter
from skldl.metrics import PAPER_MEASURES, Measure, Skill
from skldl.metrics._evaluate import MeasureSums
from skldl.metrics._measure import checked_pair, summing_to_one
from skldl.metrics._registry import resolve
from skldl.metrics._skill import CONFIDENCE, LossSums, divergences, rows_of_reference
from skldl.utils.arrays import namespace
from skldl.utils.column_names import order_of_labels
from skldl.utils.parameters import check_value
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_distributions, check_weights


def predict(model: Any, rows: Rows) -> Iterator[Any]:
    """Predict rows in chunks, one chunk at a time.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    rows : Rows
        Rows to predict; labels are not read. Rows with weight 0 are predicted, too.

    Yields
    ------
    ndarray or DataFrame of shape (n_rows_of_chunk, n_labels)
        Predictions for each chunk, in the order of the rows. ``model.predict(rows)`` returns them in one array.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl import MeanDistribution
    >>> from skldl.chunks import ArrayRows, predict
    >>> model = MeanDistribution().fit([[0.0], [1.0]], [[0.2, 0.8], [0.4, 0.6]])
    >>> [P.shape for P in predict(model, ArrayRows(np.zeros((5, 1)), chunk_rows=3))]
    [(3, 2), (2, 2)]
    """
    _compare_features(model, rows)
    for chunk in rows.read(labels=False):
        yield _predicted(model, chunk.X)


def evaluate(model: Any, rows: Rows, *, measures: Iterable[str | Measure] = tuple(PAPER_MEASURES)) -> dict[str, float]:
    """Compute measures of a model's predictions for rows in chunks, in one pass.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    rows : Rows
        Rows with their true distributions, and with weights if not all count the same.
    measures : iterable of str or Measure, default: the six of the paper
        Which measures to compute.

    Returns
    -------
    dict
        From the name of each measure to its mean, as `skldl.metrics.evaluate` returns it.

    Examples
    --------
    >>> from skldl import MeanDistribution
    >>> from skldl.chunks import ArrayRows, evaluate
    >>> X, D = [[0.0], [1.0]], [[0.2, 0.8], [0.4, 0.6]]
    >>> values = evaluate(MeanDistribution().fit(X, D), ArrayRows(X, D, chunk_rows=1))
    >>> round(values["chebyshev"], 3)
    0.1
    """
    chosen = resolve(measures)
    return MeasureSums(*rows.sum(_measure_sums, model, _order_of_labels(model, rows), chosen)).means(chosen)


def evaluate_pairs(
    pairs: Iterable[Sequence[Any]], *, measures: Iterable[str | Measure] = tuple(PAPER_MEASURES)
) -> dict[str, float]:
    """Compute measures of true and predicted distributions that come in chunks.

    Parameters
    ----------
    pairs : iterable of (D_true, D_pred) or (D_true, D_pred, weight)
        Chunks, read once.
    measures : iterable of str or Measure, default: the six of the paper
        Which measures to compute.

    Returns
    -------
    dict
        From the name of each measure to its mean, as `skldl.metrics.evaluate` returns it.

    Examples
    --------
    >>> from skldl.chunks import evaluate_pairs
    >>> evaluate_pairs([([[0.5, 0.5]], [[0.25, 0.75]]), ([[1.0, 0.0]], [[1.0, 0.0]])], measures=["chebyshev"])
    {'chebyshev': 0.125}
    """
    chosen = resolve(measures)
    blocks = _checked_blocks(pairs, "D_true", "D_pred")
    return MeasureSums(*_total(add, (MeasureSums.of(chosen, *block) for block in blocks))).means(chosen)


def skill(model: Any, rows: Rows, reference: Any, *, confidence: float = 0.95) -> Skill:
    """Compute the fraction of the reference's Kullback-Leibler divergence that a model removes, on rows in chunks.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    rows : Rows
        Rows with their true distributions.
    reference : estimator or array-like of shape (n_labels,)
        The reference: a fitted estimator such as `skldl.MeanDistribution`, or one distribution for all rows.
    confidence : float, default=0.95
        Confidence of the interval.

    Returns
    -------
    Skill
        As `skldl.metrics.skill` returns it, in one pass.

    Examples
    --------
    >>> from skldl import SABFGS
    >>> from skldl.chunks import ArrayRows, skill
    >>> X, D = [[0.0], [1.0], [2.0]], [[0.5, 0.5], [0.6, 0.4], [0.7, 0.3]]
    >>> rows = ArrayRows(X, D, chunk_rows=2)
    >>> skill(SABFGS(fit_intercept=True).fit(rows), rows, [0.6, 0.4]) > 0.9
    True
    """
    check_value("confidence", confidence, CONFIDENCE)
    order, other_order = _order_of_labels(model, rows), None
    if hasattr(reference, "predict"):
        other_order = _order_of_labels(reference, rows)
    else:
        reference = summing_to_one(check_distributions(np.atleast_2d(reference), name="reference", renormalize=False))
        if reference.shape != (1, rows.n_labels):
            raise LengthMismatchError(
                f"reference has shape {reference.shape}. Pass a fitted estimator or one row of {rows.n_labels} numbers."
            )
    sums = rows.sum(_loss_sums, model, order, reference, other_order, merge=LossSums.plus)
    return LossSums(*sums).skill(confidence)


def skill_of_pairs(triples: Iterable[Sequence[Any]], *, confidence: float = 0.95) -> Skill:
    """Compute the skill from true distributions, predictions and those of a reference that come in chunks.

    Parameters
    ----------
    triples : iterable of (D_true, D_pred, D_reference) or (D_true, D_pred, D_reference, weight)
        Chunks, read once. A reference of one row is used for all rows of the chunk.
    confidence : float, default=0.95
        Confidence of the interval.

    Returns
    -------
    Skill
        As `skldl.metrics.skill` returns it.

    Examples
    --------
    >>> from skldl.chunks import skill_of_pairs
    >>> D = [[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]
    >>> P = [[0.45, 0.55], [0.8, 0.2], [0.3, 0.7]]
    >>> skill_of_pairs([(D[:2], P[:2], [[0.53, 0.47]]), (D[2:], P[2:], [[0.53, 0.47]])])
    Skill(0.8783, 95% interval 0.8072 to 0.9232)
    """
    check_value("confidence", confidence, CONFIDENCE)
    blocks = _checked_blocks(triples, "D_true", "D_pred", "D_reference")
    return _total(LossSums.plus, (LossSums.of(*divergences(*block)) for block in blocks)).skill(confidence)


def _predicted(model: Any, X: Any) -> Any:
    with warnings.catch_warnings():  # names were compared before, and chunks of arrays have none
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return model.predict(X)


def _compare_features(model: Any, rows: Rows) -> None:
    """Raise an error if the rows have names of features that differ from those in ``fit``."""
    known, found = getattr(model, "feature_names_in_", None), rows.feature_names
    if known is None or found is None or list(known) == list(found):
        return
    lacking = [name for name in known if name not in set(found)]
    what = f"lack {lacking[0]!r}" if lacking else "are in another order, or there are more of them"
    raise FeatureMismatchError(
        f"The features of the rows are not those that fit saw: they {what}. Pass the features of the rows in the order "
        "of fit: features=list(model.feature_names_in_)."
    )


def _order_of_labels(model: Any, rows: Rows) -> npt.NDArray[np.intp] | None:
    """Compare the columns of the rows with the model; the order of the model's labels in the rows, None if equal."""
    _compare_features(model, rows)
    if rows.n_labels is None:
        raise DataError(
            "The rows contain no distributions to compare predictions with. Pass the names of their columns as ",
            Parameter("labels"),
            ", or pass y.",
        )
    known, found = getattr(model, "label_names_", None), rows.label_names
    if known is None or found is None or list(known) == [f"label_{j}" for j in range(len(known))]:
        return None
    return order_of_labels(list(found), list(known), name="the table that fit saw")


def _pair(chunk: Chunk, model: Any, order: npt.NDArray[np.intp] | None) -> tuple[FloatArray, FloatArray]:
    """True and predicted distributions of a chunk."""
    P = np.asarray(_predicted(model, chunk.X))
    return checked_pair(chunk.D, P if order is None else P[:, order])


def _measure_sums(chunk: Chunk, model: Any, order: npt.NDArray[np.intp] | None, measures: list[Measure]) -> MeasureSums:
    return MeasureSums.of(measures, *_pair(chunk, model, order), chunk.weight)


def _loss_sums(
    chunk: Chunk,
    model: Any,
    order: npt.NDArray[np.intp] | None,
    reference: Any,
    other_order: npt.NDArray[np.intp] | None,
) -> LossSums:
    true, pred = _pair(chunk, model, order)
    is_model = hasattr(reference, "predict")
    other = _pair(chunk, reference, other_order)[1] if is_model else np.broadcast_to(reference, true.shape)
    return LossSums.of(*divergences(true, pred, other, chunk.weight))


def _checked_blocks(chunks: Iterable[Sequence[Any]], *names: str) -> Iterator[tuple[Any, ...]]:
    """Validate the tables and weights (or None) of each chunk; chunks whose weights are all 0 are skipped."""
    n_tables = len(names)
    for number, chunk in enumerate(chunks):
        if not isinstance(chunk, tuple | list) or len(chunk) not in (n_tables, n_tables + 1):
            raise DataError(f"Chunk {number} is not a tuple ({', '.join(names)}), with or without weights.")
        D_true, D_pred, *reference = chunk[:n_tables]
        try:
            tables = checked_pair(D_true, D_pred)
            n_rows, like = tables[0].shape[0], tables[0]
            tables += tuple(rows_of_reference(D_true, like, table) for table in reference)
            weight = check_weights(chunk[n_tables], n_rows, like, is_part=True) if len(chunk) > n_tables else None
        except DataError as error:
            raise error.prefixed(f"In chunk {number}: ") from error
        if weight is None or float(namespace(weight).max(weight)) > 0:
            yield *tables, weight


def _total(merge: Callable[[Any, Any], Any], sums: Iterable[Any]) -> Any:
    """Merge the sums of all blocks."""
    blocks = iter(sums)
    first = next(blocks, None)
    if first is None:
        raise EmptyDataError("There is no row with a weight above 0 to evaluate. At least one is needed.")
    return reduce(merge, blocks, first)

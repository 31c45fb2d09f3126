"""Predictions and measures of rows that are read in chunks: nothing but one chunk and a few sums lies in memory."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from skldl.chunks._rows import Chunk, Rows, Sums, add, weight_exponent
from skldl.exceptions import DataError, EmptyDataError, FeatureMismatchError, LengthMismatchError
from skldl.metrics import MEASURES, PAPER_MEASURES, Measure, Skill, kullback_leibler
from skldl.metrics._evaluate import resolve, rows_of_reference
from skldl.metrics._measure import checked_pair, compute_rows, summing_to_one
from skldl.metrics._skill import CONFIDENCE, demand_two, skill_of_sums
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
        Rows to predict; labels are not read. Rows without weight are predicted, too.

    Yields
    ------
    ndarray or DataFrame of shape (n_rows_of_chunk, n_labels)
        What ``model.predict`` gives for each chunk, in the order of the rows. ``model.predict(rows)`` puts them
        together.

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
        Rows with their true distributions, and with weights if they count differently.
    measures : iterable of str or Measure, default: the six of the paper
        Which measures to compute.

    Returns
    -------
    dict
        From the name of each measure to its mean, as `skldl.metrics.evaluate` gives it.

    Examples
    --------
    >>> from skldl import MeanDistribution
    >>> from skldl.chunks import ArrayRows, evaluate
    >>> X, D = [[0.0], [1.0]], [[0.2, 0.8], [0.4, 0.6]]
    >>> values = evaluate(MeanDistribution().fit(X, D), ArrayRows(X, D, chunk_rows=1))
    >>> round(values["chebyshev"], 3)
    0.1
    """
    chosen = resolve(measures, MEASURES)
    order = _prepare(model, rows)
    sums = rows.sum(_measure_sums, model, order, chosen)
    return _means(sums, chosen)


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
        From the name of each measure to its mean, as `skldl.metrics.evaluate` gives it.

    Examples
    --------
    >>> from skldl.chunks import evaluate_pairs
    >>> evaluate_pairs([([[0.5, 0.5]], [[0.25, 0.75]]), ([[1.0, 0.0]], [[1.0, 0.0]])], measures=["chebyshev"])
    {'chebyshev': 0.125}
    """
    chosen = resolve(measures, MEASURES)

    def sums_of(true: FloatArray, pred: FloatArray, weight: FloatArray) -> Sums:
        return _sums_of_measures(true, pred, weight, chosen)

    chunks = (_checked(number, *tables, weight) for number, (tables, weight) in enumerate(_parts(pairs, 2)))
    return _means(_total(chunks, sums_of, powers=(1, 1)), chosen)


def skill(model: Any, rows: Rows, reference: Any, *, confidence: float = 0.95) -> Skill:
    """How much of the reference's Kullback-Leibler divergence a model removes, on rows in chunks.

    Parameters
    ----------
    model : estimator
        A fitted estimator.
    rows : Rows
        Rows with their true distributions.
    reference : estimator or array-like of shape (n_labels,)
        The reference: a fitted estimator such as `skldl.MeanDistribution`, or one distribution that stands for all.
    confidence : float, default=0.95
        Confidence of the interval.

    Returns
    -------
    Skill
        As `skldl.metrics.skill` gives it, in one pass.

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
    order = _prepare(model, rows)
    if hasattr(reference, "predict"):
        other_order = _prepare(reference, rows)
    else:
        reference = summing_to_one(check_distributions(np.atleast_2d(reference), name="reference", renormalize=False))
        other_order = None
        if reference.shape != (1, rows.n_labels):
            raise LengthMismatchError(
                f"reference has shape {reference.shape}. Pass a fitted estimator or one row of {rows.n_labels} numbers."
            )
    return _skill_of(rows.sum(_loss_sums, model, order, reference, other_order), confidence)


def skill_of_pairs(triples: Iterable[Sequence[Any]], *, confidence: float = 0.95) -> Skill:
    """Skill from true distributions, predictions and those of a reference that come in chunks.

    Parameters
    ----------
    triples : iterable of (D_true, D_pred, D_reference) or (D_true, D_pred, D_reference, weight)
        Chunks, read once. A reference of one row stands for all rows of the chunk.
    confidence : float, default=0.95
        Confidence of the interval.

    Returns
    -------
    Skill
        As `skldl.metrics.skill` gives it.

    Examples
    --------
    >>> from skldl.chunks import skill_of_pairs
    >>> D = [[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]]
    >>> P = [[0.45, 0.55], [0.8, 0.2], [0.3, 0.7]]
    >>> skill_of_pairs([(D[:2], P[:2], [[0.53, 0.47]]), (D[2:], P[2:], [[0.53, 0.47]])])
    Skill(0.8783, 95% interval 0.8072 to 0.9232)
    """
    check_value("confidence", confidence, CONFIDENCE)

    chunks = (_checked(number, *tables, weight) for number, (tables, weight) in enumerate(_parts(triples, 3)))
    return _skill_of(_total(chunks, _sums_of_losses, powers=(1, 1, 2, 2, 2, 0, 1)), confidence)


def _predicted(model: Any, X: Any) -> Any:
    with warnings.catch_warnings():  # names were compared before, chunks of arrays have none
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        return model.predict(X)


def _compare_features(model: Any, rows: Rows) -> None:
    """Demand the names of the features that ``fit`` saw, where both are known."""
    known, found = getattr(model, "feature_names_in_", None), rows.feature_names
    if known is None or found is None or list(known) == list(found):
        return
    lacking = [name for name in known if name not in set(found)]
    what = f"lack {lacking[0]!r}" if lacking else "stand in another order, or there are more of them"
    raise FeatureMismatchError(
        f"The features of the rows are not those that fit saw: they {what}. Name the features of the rows in the order "
        "of fit: features=list(model.feature_names_in_)."
    )


def _prepare(model: Any, rows: Rows) -> npt.NDArray[np.intp] | None:
    """Compare features, demand labels, and return the order in which the model's labels stand as in the rows."""
    _compare_features(model, rows)
    if rows.n_labels is None:
        raise DataError("The rows hold no distributions to compare predictions with. Say which columns are labels.")
    known, found = getattr(model, "label_names_", None), rows.label_names
    if known is None or found is None or list(known) == [f"label_{j}" for j in range(len(known))]:
        return None
    return order_of_labels(list(found), list(known), name="the table that fit saw")


def _in_order(model: Any, X: Any, order: npt.NDArray[np.intp] | None) -> FloatArray:
    P = np.asarray(_predicted(model, X))
    return P if order is None else P[:, order]


def _measure_sums(chunk: Chunk, model: Any, order: npt.NDArray[np.intp] | None, measures: list[Measure]) -> Sums:
    true, pred = checked_pair(chunk.D, _in_order(model, chunk.X, order))
    return _sums_of_measures(true, pred, chunk.weights(), measures)


def _sums_of_measures(true: FloatArray, pred: FloatArray, weight: FloatArray, measures: list[Measure]) -> Sums:
    values = compute_rows(true, pred, measures)
    return np.array([float(weight @ values[measure.name]) for measure in measures]), float(weight.sum())


def _means(sums: Sums, measures: list[Measure]) -> dict[str, float]:
    return {measure.name: float(value) / float(sums[1]) for measure, value in zip(measures, sums[0], strict=True)}


def _loss_sums(
    chunk: Chunk,
    model: Any,
    order: npt.NDArray[np.intp] | None,
    reference: Any,
    other_order: npt.NDArray[np.intp] | None,
) -> Sums:
    true, pred = checked_pair(chunk.D, _in_order(model, chunk.X, order))
    if hasattr(reference, "predict"):
        other = checked_pair(chunk.D, _in_order(reference, chunk.X, other_order))[1]
    else:
        other = np.broadcast_to(reference, true.shape)
    return _sums_of_losses(true, pred, other, chunk.weights())


def _sums_of_losses(true: FloatArray, pred: FloatArray, other: FloatArray, weight: FloatArray) -> Sums:
    """Sums of weighted losses m and r, of m², m r and r², number of rows and weight."""
    m, r = (
        weight * np.maximum(compute_rows(true, P, [kullback_leibler])[kullback_leibler.name], 0.0)
        for P in (pred, other)
    )
    return float(m.sum()), float(r.sum()), float(m @ m), float(m @ r), float(r @ r), len(weight), float(weight.sum())


def _skill_of(sums: Sums, confidence: float) -> Skill:
    own, other, own_squares, products, other_squares, count, weight = (float(part) for part in sums)
    demand_two(int(count))

    def squares() -> float:
        z = own_squares / own**2 - 2.0 * products / (own * other) + other_squares / other**2
        return max(z, 0.0)

    return skill_of_sums(own, other, squares, int(count), n_rows=weight, confidence=confidence)


def _parts(chunks: Iterable[Sequence[Any]], n_tables: int) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """The tables of each chunk, and its weights or None."""
    for number, chunk in enumerate(chunks):
        if not isinstance(chunk, tuple | list) or len(chunk) not in (n_tables, n_tables + 1):
            names = "(D_true, D_pred)" if n_tables == 2 else "(D_true, D_pred, D_reference)"
            raise DataError(f"Chunk {number} is not a tuple {names}, with or without weights.")
        yield tuple(chunk[:n_tables]), chunk[n_tables] if len(chunk) > n_tables else None


def _checked(number: int, D_true: Any, D_pred: Any, *rest: Any) -> tuple[FloatArray, ...]:
    """Checked rows with weight: truth, prediction, that of the reference if there is one, and weights."""
    *reference, weight = rest
    try:
        tables = checked_pair(D_true, D_pred)
        tables += tuple(rows_of_reference(D_true, tables[0], table) for table in reference)
        weights = check_weights(weight, len(tables[0]), is_part=True)
    except DataError as error:
        raise error.prefixed(f"In chunk {number}: ") from error
    if weights is None:
        return *tables, np.ones(len(tables[0]))
    return tuple(table[weights > 0] for table in (*tables, weights))


def _total(chunks: Iterable[tuple[FloatArray, ...]], sums_of: Callable[..., Sums], powers: Sequence[int]) -> Sums:
    """Sums over checked chunks, whose last table are the weights.

    ``powers`` says for each sum with which power of the weights it grows. Weights are divided by one power of two, so
    that sums of huge or tiny ones neither overflow nor vanish.
    """
    total: Sums | None = None
    exponent = 0
    for *tables, weight in chunks:
        if not len(weight):
            continue
        own = weight_exponent(float(weight.max()))
        if total is not None and own > exponent:
            factors = (power * (exponent - own) for power in powers)
            total = tuple(np.ldexp(part, factor) for part, factor in zip(total, factors, strict=True))
        exponent = own if total is None else max(own, exponent)
        part = sums_of(*tables, np.ldexp(weight, -exponent))
        total = part if total is None else add(total, part)
    if total is None:
        raise EmptyDataError("There is no row with weight to evaluate. At least one is needed.")
    return total

"""`Measure`: a distance or similarity between distributions with name, family, formula and direction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from skldl.exceptions import Parameter, ParameterError
from skldl.metrics._pair import blocks
from skldl.utils.arrays import as_double, computing_on, is_device_array, namespace
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_pair, check_weights

MACHINE_EPSILON = float(np.finfo(np.float64).eps)
ROUNDING = 1e-14
"""Losses up to this, for each label, are rounding error and count as zero. Chosen by hand: 45 machine epsilons, more
than an error of a few units in the last place of a degree adds to any measure."""


@dataclass(frozen=True)
class Bound:
    """The largest value of a measure, as text and as a number.

    Parameters
    ----------
    text : str
        The bound in print; c is the number of labels.
    limit : float or callable
        The number, or a function from the number of labels (and the options of the measure, as keywords) to it.

    Examples
    --------
    >>> from skldl.metrics import MEASURES
    >>> bound = MEASURES["clark"].bound
    >>> bound.text, bound.value(4)
    ('√c', 2.0)
    """

    text: str
    limit: float | Callable[..., float]

    def value(self, n_labels: int, **options: Any) -> float:
        """Compute the bound for a number of labels.

        Parameters
        ----------
        n_labels : int
            Number of labels.
        **options
            Options of the measure.

        Returns
        -------
        float
            The largest value.
        """
        return float(self.limit(n_labels, **options) if callable(self.limit) else self.limit)


@dataclass(frozen=True, eq=False)
class Measure:
    r"""A distance or similarity between true and predicted label distributions.

    Call it for the mean over rows; `rowwise` computes one value per row.

    Attributes
    ----------
    name : str
        The key in ``MEASURES``.
    title : str
        The name in print.
    family : str
        Syntactic family: one of the eight of Cha (2007), ``"vicissitude"`` outside them, or a later one.
    formula : str
        The formula in LaTeX; :math:`d_j` is the true degree of label j, :math:`\hat d_j` the predicted one.
    text : str
        The formula in plain text; d is the true degree, p the predicted one.
    higher_is_better : bool
        True for similarities.
    compute : callable
        From a block of rows (and the options, as keywords) to one value per row.
    use : str
        When to use it, in one sentence.
    lower : float
        The smallest value.
    bound : Bound
        The largest value, as a function of the number of labels.
    zeros : str
        How zeros and ties are treated.
    uses_eps : bool
        Whether the formula contains the floor ``eps``.
    options : mapping
        What can be set with `with_options`, with the current values.
    check : callable or None
        Validates options, and returns those to store.

    Examples
    --------
    >>> from skldl.metrics import clark
    >>> clark([[0.5, 0.5]], [[0.25, 0.75]]).__round__(4)
    0.3887
    >>> clark.rowwise([[0.5, 0.5], [0.0, 1.0]], [[0.5, 0.5], [0.0, 1.0]])
    array([0., 0.])
    >>> clark.family, clark.higher_is_better, clark.range
    ('squared L2 or χ²', False, '[0, √c]')
    """

    name: str
    title: str
    family: str
    formula: str
    text: str
    higher_is_better: bool
    compute: Callable[..., FloatArray] = field(repr=False)
    use: str = field(default="", repr=False)
    lower: float = 0.0
    bound: Bound = field(default=Bound("∞", np.inf), repr=False)
    zeros: str = field(default="no special case", repr=False)
    uses_eps: bool = field(default=False, repr=False)
    options: Mapping[str, Any] = field(default_factory=dict)
    check: Callable[..., dict[str, Any]] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))  # read-only: measures are shared

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def arrow(self) -> str:
        """↑ if higher is better, else ↓."""
        return "↑" if self.higher_is_better else "↓"

    @property
    def range(self) -> str:
        """The interval of its values, in print; c is the number of labels."""
        return f"[{self.lower:g}, {self.bound.text}]"

    def upper(self, n_labels: int) -> float:
        """Compute the largest value on distributions over a number of labels.

        Parameters
        ----------
        n_labels : int
            Number of labels.

        Returns
        -------
        float
            The bound; infinite if there is none.
        """
        return self.bound.value(n_labels, **self.options)

    @property
    def has_zero_loss(self) -> bool:
        """Whether the smallest loss is 0, so that a skill is defined; false for similarities without an upper bound."""
        return not self.higher_is_better or bool(np.isfinite(self.upper(2)))

    def loss(self, values: Any, n_labels: Any) -> FloatArray:
        """Turn values into losses: lower is better.

        Parameters
        ----------
        values : array-like
            Values of this measure.
        n_labels : int or array-like of int
            Number of labels of the distributions; several must fit the shape of the values.

        Returns
        -------
        ndarray
            For a distance the values, for a similarity the difference to its upper bound: at least 0, and exactly 0 up
            to 1e-14 for each label, which is rounding error. For a similarity without a bound the negative values: such
            losses can be compared, but their ratios have no meaning.

        Examples
        --------
        >>> from skldl.metrics import clark, cosine
        >>> clark.loss([0.5, 0.0], 3), cosine.loss([0.25, 1.0], 3)
        (array([0.5, 0. ]), array([0.75, 0.  ]))
        """
        values = np.asarray(values, dtype=np.float64)
        if not self.has_zero_loss:
            return -values
        if self.higher_is_better:
            values = np.vectorize(self.upper, otypes=[np.float64])(n_labels) - values
        return without_rounding(values, n_labels)

    def with_options(self, **options: Any) -> "Measure":
        """Return a copy of the measure with other options.

        Parameters
        ----------
        **options
            New values of the names in ``options``.

        Returns
        -------
        Measure
            Its name contains the options, such as ``top_k(k=3)``.

        Examples
        --------
        >>> from skldl.metrics import minkowski
        >>> minkowski.with_options(power=4)([[1.0, 0.0]], [[0.0, 1.0]]).__round__(4)
        1.1892
        """
        unknown = set(options) - set(self.options)
        if unknown or self.check is None:
            known = ", ".join(self.options) or "none"
            raise TypeError(f"{self.key} has no option {', '.join(sorted(unknown))!r}. Its options: {known}.")
        checked = self.check(**{**self.options, **options})
        text = ", ".join(f"{name}={value}" for name, value in checked.items())
        return replace(self, name=f"{self.key}({text})", options=checked)

    @property
    def key(self) -> str:
        """The name without options."""
        return self.name.partition("(")[0]

    def rowwise(self, D_true: Any, D_pred: Any, *, eps: float | None = None) -> FloatArray:
        """Compute one value per row.

        Parameters
        ----------
        D_true, D_pred : array-like or DataFrame of shape (n_samples, n_labels)
            True and predicted distributions. Rows that sum to one within 1e-3 are accepted and divided by their sum.
        eps : float, default=None
            Floor that keeps logarithms and denominators away from zero; None means machine epsilon, 0 allows
            infinite values. Only measures whose ``uses_eps`` is true accept it.

        Returns
        -------
        ndarray of shape (n_samples,)
            The measure of each row; for tables on a device, an array of their library in double precision.
        """
        eps = self._check_eps(eps)
        with computing_on(D_true, self.name):
            return compute_rows(*checked_pair(D_true, D_pred), [self], eps)[self.name]

    def __call__(self, D_true: Any, D_pred: Any, sample_weight: Any = None, *, eps: float | None = None) -> float:
        """Compute the (weighted) mean over rows.

        Parameters
        ----------
        D_true, D_pred : array-like or DataFrame of shape (n_samples, n_labels)
            True and predicted distributions.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row.
        eps : float, default=None
            As in `rowwise`.

        Returns
        -------
        float
            The mean.
        """
        values = self.rowwise(D_true, D_pred, eps=eps)
        return mean(values, check_weights(sample_weight, values.shape[0], values))

    def _check_eps(self, eps: float | None) -> float:
        if eps is None:
            return MACHINE_EPSILON
        named = Parameter("eps", eps)
        if not self.uses_eps:
            raise ParameterError(
                f"{self.name} has no logarithm or denominator that can be zero. Do not pass ", named, "."
            )
        if not 0 <= eps < 1:
            raise ParameterError(named, " must lie in [0, 1): it is a lower limit of description degrees.")
        return float(eps)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from skldl.metrics import MEASURES

        known = MEASURES.get(self.key)
        if known is None or known.compute is not self.compute:  # a user's own measure is pickled as a whole
            values = {each.name: getattr(self, each.name) for each in fields(self)}
            return partial(Measure, **{**values, "options": dict(self.options)}), ()
        changed = {} if self.name == known.name else dict(self.options)
        return _by_name, (self.key, changed)


def _by_name(key: str, options: dict[str, Any]) -> Measure:
    from skldl.metrics import MEASURES

    return MEASURES[key].with_options(**options) if options else MEASURES[key]


def without_rounding(losses: Any, n_labels: Any = 1) -> FloatArray:
    """Set losses that are only rounding error to 0: those up to 1e-14, times the number of labels.

    A model or a reference has no loss if this function sets its mean loss to 0.

    Parameters
    ----------
    losses : array-like
        Losses that are at least 0 but for rounding; NaN stays NaN.
    n_labels : int or array-like of int, default=1
        Number of labels, for losses that add up terms of the labels; several must fit the shape of the losses.

    Returns
    -------
    ndarray
        The losses.

    Examples
    --------
    >>> from skldl.metrics._measure import without_rounding
    >>> without_rounding([0.1, 5e-17, -5e-17])
    array([0.1, 0. , 0. ])
    """
    values = np.asarray(losses, dtype=np.float64)
    return np.asarray(np.where(values <= ROUNDING * np.asarray(n_labels), 0.0, values))


def checked_pair(D_true: Any, D_pred: Any) -> tuple[FloatArray, FloatArray]:
    """Validate true and predicted distributions, and divide each row by its sum, which would change the measures."""
    true, pred = check_pair(D_true, D_pred)
    if is_device_array(true):  # validation has divided the rows already, in the pass that checked the sums
        return true, pred
    return summing_to_one(true), summing_to_one(pred)


def summing_to_one(D: FloatArray) -> FloatArray:
    """Divide the rows whose sum is not one by it."""
    sums = D.sum(axis=1)
    # sums that are wrong by up to four epsilons per label are kept: a division would only add other rounding errors
    wrong = np.abs(sums - 1.0) > 4 * D.shape[1] * MACHINE_EPSILON
    return D / np.where(wrong, sums, 1.0)[:, None] if wrong.any() else D


def compute_rows(
    true: FloatArray, pred: FloatArray, measures: Sequence[Measure], eps: float = MACHINE_EPSILON
) -> dict[str, FloatArray]:
    """Compute each measure for each row of validated distributions, in one pass over the arrays.

    Parameters
    ----------
    true, pred : array of shape (n_rows, n_labels)
        Rows that sum to one, in NumPy or on a device.
    measures : sequence of Measure
        The measures.
    eps : float, default=machine epsilon
        Floor of degrees in logarithms and denominators.

    Returns
    -------
    dict
        From the name of each measure to an array of shape (n_rows,), in double precision and where the rows are.
    """
    xp, n_labels = namespace(true), true.shape[1]
    results = [xp.empty_like(true[:, 0], dtype=xp.float64) for _ in measures]
    bounds = [measure.upper(n_labels) for measure in measures]
    # each measure replaces 0/0, x/0 and overflow in its terms as its `zeros` describes
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        for rows, pair in blocks(true, pred, eps):
            for measure, bound, result in zip(measures, bounds, results, strict=True):
                values = measure.compute(pair, **measure.options)
                # rounding can make a value larger than the largest possible one
                values = values if bound == np.inf else xp.where(values > bound, bound, values)
                result[rows] = as_double(values)
    return {measure.name: result for measure, result in zip(measures, results, strict=True)}


def mean(values: FloatArray, weight: FloatArray | None) -> float:
    """Compute a weighted mean over rows.

    Parameters
    ----------
    values : array of shape (n_rows,)
        One value per row, which may be infinite.
    weight : array of shape (n_rows,) or None
        Weights, at least one of them above zero; a row with weight 0 does not count even if its value is infinite.

    Returns
    -------
    float
        The mean.
    """
    xp = namespace(values)
    total = values.shape[0] if weight is None else float(xp.sum(weight))
    return float(xp.sum(weigh(values, weight))) / total


def weigh(values: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Multiply values of rows by the weights of the rows; the result is 0 where the weight is, even if a value is ∞."""
    if weight is None:
        return values
    xp = namespace(values)
    with np.errstate(invalid="ignore"):  # an infinite value times 0
        return xp.where(weight > 0, values * weight, 0.0)

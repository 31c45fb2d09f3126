"""`Measure`: a distance or similarity between distributions with name, family, formula and direction."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from skldl.metrics._bounds import INFINITY, Bound
from skldl.metrics._pair import blocks, values_of
from skldl.metrics._skill import without_rounding
from skldl.utils.arrays import as_double, computing_on, is_device_array, namespace
from skldl.utils.typing import FloatArray
from skldl.utils.validation import check_pair, check_weights

MACHINE_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Measure:
    r"""A distance or similarity between true and predicted label distributions.

    Call it for the mean over rows; `rowwise` gives one value per row.

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
        The least value.
    bound : Bound
        The greatest value, as a function of the number of labels.
    zeros : str
        What happens where the formula meets a zero or a tie.
    uses_eps : bool
        Whether the floor ``eps`` takes part.
    options : mapping
        What can be set with `with_options`, and how it is set now.
    check : callable or None
        Refuses bad options and returns the good ones.

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
    bound: Bound = field(default=INFINITY, repr=False)
    zeros: str = field(default="nothing to decide", repr=False)
    uses_eps: bool = field(default=False, repr=False)
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    check: Callable[..., dict[str, Any]] | None = field(default=None, repr=False)

    @property
    def __name__(self) -> str:
        return self.name

    @property
    def arrow(self) -> str:
        """↑ if higher is better, else ↓."""
        return "↑" if self.higher_is_better else "↓"

    @property
    def range(self) -> str:
        """The values that it can take, in print; c is the number of labels."""
        return f"[{self.lower:g}, {self.bound.text}]"

    def upper(self, n_labels: int) -> float:
        """Give the greatest value on distributions over a number of labels.

        Parameters
        ----------
        n_labels : int
            Number of labels.

        Returns
        -------
        float
            The bound; infinite where there is none.
        """
        return float(self.bound.value(n_labels, **self.options))

    @property
    def has_least_loss(self) -> bool:
        """Whether its losses have a least value, 0, so that there can be a skill: not so without an upper bound."""
        return not self.higher_is_better or bool(np.isfinite(self.upper(2)))

    def loss(self, values: Any, n_labels: Any) -> FloatArray:
        """Turn values into losses, of which the lower is the better.

        Parameters
        ----------
        values : array-like
            Values of this measure.
        n_labels : int or array-like of int
            Number of labels of the distributions; several must fit the shape of the values.

        Returns
        -------
        ndarray
            A distance itself, and for a similarity the difference to its upper bound: at least 0, and exactly 0 up to
            1e-14 for each label, which is rounding error. For a similarity without a bound its negative, which can be
            compared, but of which shares have no meaning.

        Examples
        --------
        >>> from skldl.metrics import clark, cosine
        >>> clark.loss([0.5, 0.0], 3), cosine.loss([0.25, 1.0], 3)
        (array([0.5, 0. ]), array([0.75, 0.  ]))
        """
        values = np.asarray(values, dtype=np.float64)
        if not self.has_least_loss:
            return -values
        if self.higher_is_better:
            values = np.vectorize(self.upper, otypes=[np.float64])(n_labels) - values
        return without_rounding(values, n_labels)

    def with_options(self, **options: Any) -> "Measure":
        """Make the same measure with other options; this one stays as it is.

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
        settled = self.check(**{**self.options, **options})
        text = ", ".join(f"{name}={value}" for name, value in settled.items())
        return replace(self, name=f"{self.key}({text})", options=MappingProxyType(settled))

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
            Floor that keeps logarithms and denominators away from zero; None means machine epsilon, 0 lets
            infinities through. Only measures whose ``uses_eps`` is true take it.

        Returns
        -------
        ndarray of shape (n_samples,)
            The measure of each row; of tables on a device, an array of their library in double precision.
        """
        floor = self._floor(eps)
        with computing_on(D_true, self.name):
            return compute_rows(*checked_pair(D_true, D_pred), [self], floor)[self.name]

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

    def _floor(self, eps: float | None) -> float:
        if eps is None:
            return MACHINE_EPSILON
        if not self.uses_eps:
            raise TypeError(f"{self.name} has no logarithm or denominator to keep from zero: it takes no eps.")
        if not 0 <= eps < 1:
            raise ValueError(f"eps={eps!r} is a floor under description degrees and must lie in [0, 1).")
        return float(eps)

    def __reduce_ex__(self, protocol: Any) -> Any:
        from skldl.metrics import MEASURES

        known = MEASURES.get(self.key)
        if known is None or known.compute is not self.compute:  # one from outside the package is pickled as a whole
            return super().__reduce_ex__(protocol)
        changed = {} if self.name == known.name else dict(self.options)
        return _by_name, (self.key, changed)


def _by_name(key: str, options: dict[str, Any]) -> Measure:
    from skldl.metrics import MEASURES

    return MEASURES[key].with_options(**options) if options else MEASURES[key]


def checked_pair(D_true: Any, D_pred: Any) -> tuple[FloatArray, FloatArray]:
    """Check true and predicted distributions, and divide each row by its sum: no measure may reward a wrong sum."""
    true, pred = check_pair(D_true, D_pred)
    if is_device_array(true):  # validation has divided them already, in the pass that checked the sums
        return true, pred
    return summing_to_one(true), summing_to_one(pred)


def summing_to_one(D: FloatArray) -> FloatArray:
    """Divide the rows whose sum is not one by it."""
    sums = D.sum(axis=1)
    wrong = np.abs(sums - 1.0) > 4 * D.shape[1] * MACHINE_EPSILON  # what rounding leaves is no reason to round again
    return D / np.where(wrong, sums, 1.0)[:, None] if wrong.any() else D


def compute_rows(
    true: FloatArray, pred: FloatArray, measures: Sequence[Measure], eps: float = MACHINE_EPSILON
) -> dict[str, FloatArray]:
    """Compute each measure for each row of checked distributions, in one pass over the arrays."""
    # 0/0, x/0 and overflow are decided term by term, by the rules that each measure states
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        if is_device_array(true):
            return _compute_rows_on_device(true, pred, measures, eps)
        values: dict[str, FloatArray] = {measure.name: np.empty(len(true)) for measure in measures}
        for rows, pair in blocks(true, pred, eps):
            for measure in measures:
                values[measure.name][rows] = values_of(measure, pair, true.shape[1])
    return values


def _compute_rows_on_device(true: Any, pred: Any, measures: Sequence[Measure], eps: float) -> dict[str, Any]:
    xp = namespace(true)
    parts: dict[str, list[Any]] = {measure.name: [] for measure in measures}
    for _, pair in blocks(true, pred, eps):
        for measure in measures:
            parts[measure.name].append(as_double(values_of(measure, pair, true.shape[1])))
    return {name: part[0] if len(part) == 1 else xp.concat(part) for name, part in parts.items()}


def mean(values: FloatArray, weight: FloatArray | None) -> float:
    """Weighted mean; a row without weight does not count even if its value is infinite."""
    if is_device_array(values):
        xp = namespace(values)
        if weight is None:
            return float(xp.mean(values))
        return float(xp.sum(xp.where(weight > 0, values * weight, 0.0)) / xp.sum(weight))
    if weight is None:
        return float(values.mean())
    counted = weight > 0
    return float(np.average(values[counted], weights=weight[counted] / weight.max()))

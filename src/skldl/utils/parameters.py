"""Declaration of hyper-parameters: the valid values of each, and one error with parameter, value and advice.

A class lists its hyper-parameters in ``_constraints``::

    class Example(BaseLDL):
        _constraints: ClassVar = {
            "alpha": number(at_least=0, hint="0 means no penalty"),
            "fit_intercept": BOOLEAN,
            "max_iter": COUNT,
            "gamma": one_of("auto", "scale") | POSITIVE,
        }

`BaseLDL` checks them before the data, in ``fit`` and in ``predict_path``. What depends on the data, or on
several hyper-parameters together, is checked by the algorithm.

scikit-learn's own declarations (``sklearn.utils._param_validation``) are private, accept a boolean as a number, and
their errors give no advice; `sklearn.utils.check_scalar` is public, but supports neither strings nor alternatives.
"""

import inspect
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from skldl.exceptions import Parameter, ParameterError


@dataclass(frozen=True)
class Constraint:
    """Valid values of a hyper-parameter.

    ``text`` describes them in the error message ("a whole number of at least 1"), ``accepts`` is the test of a value,
    and ``hint`` is further text of the message.
    """

    text: str
    accepts: Callable[[Any], bool]
    hint: str = ""

    def __or__(self, other: "Constraint") -> "Constraint":
        """Values that one of two constraints accepts."""
        return Constraint(
            f"{self.text} or {other.text}",
            lambda value: self.accepts(value) or other.accepts(value),
            self.hint or other.hint,
        )


def check_parameters(estimator: Any) -> None:
    """Check the hyper-parameters of an estimator against its ``_constraints``, from names to constraints.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_parameters(SimpleNamespace(max_iter=0, _constraints={"max_iter": integer(at_least=1)}))
    Traceback (most recent call last):
        ...
    skldl.exceptions.ParameterError: max_iter=0 must be a whole number of at least 1.
    """
    constraints: Mapping[str, Constraint] = estimator._constraints
    for name, constraint in constraints.items():
        check_value(name, getattr(estimator, name), constraint)


def check_value(name: str, value: Any, constraint: Constraint) -> None:
    """Check the value of the parameter with this name."""
    if not constraint.accepts(value):
        hint = f" {constraint.hint[0].upper()}{constraint.hint[1:]}." if constraint.hint else ""
        raise ParameterError(Parameter(name, value), f" must be {constraint.text}.{hint}")


def check_declared_parameters(estimator: Any) -> None:
    """Assert that all hyper-parameters are declared, and that those with a boolean default take booleans alone.

    An estimator without any declaration passes.
    """
    kind = type(estimator)
    constraints = getattr(kind, "_constraints", {})
    parameters = inspect.signature(kind).parameters
    if constraints:
        assert set(constraints) == set(parameters), f"declared: {sorted(constraints)}, taken: {sorted(parameters)}"
    for name, constraint in constraints.items():
        if isinstance(parameters[name].default, bool):
            assert not any(map(constraint.accepts, ("no", 0, 1))), f"{name} must take True and False only"


def number(
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    hint: str = "",
) -> Constraint:
    """A finite number in an open or closed interval; booleans are rejected."""
    return _in_range("a finite number", Real, at_least, above, at_most, below, hint)


def integer(*, at_least: int | None = None, at_most: int | None = None, hint: str = "") -> Constraint:
    """A whole number in a closed interval; booleans are rejected."""
    return _in_range("a whole number", Integral, at_least, None, at_most, None, hint)


def _in_range(
    text: str,
    kind: Any,
    at_least: float | None,
    above: float | None,
    at_most: float | None,
    below: float | None,
    hint: str,
) -> Constraint:
    bounds: list[tuple[str, float | None, Callable[[Any, Any], bool]]] = [
        ("of at least", at_least, lambda value, bound: value >= bound),
        ("above", above, lambda value, bound: value > bound),
        ("of at most", at_most, lambda value, bound: value <= bound),
        ("below", below, lambda value, bound: value < bound),
    ]
    given = [(words, bound, fits) for words, bound, fits in bounds if bound is not None]

    def accepts(value: Any) -> bool:
        if not isinstance(value, kind) or isinstance(value, bool | np.bool_):
            return False
        return (kind is Integral or _is_finite(value)) and all(fits(value, bound) for _, bound, fits in given)

    return Constraint(f"{text} {' and '.join(f'{words} {bound}' for words, bound, _ in given)}".strip(), accepts, hint)


def _is_finite(value: Any) -> bool:
    """Whether a number is finite in double precision."""
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def one_of(*words: str, hint: str = "") -> Constraint:
    """One of several strings."""
    return Constraint(" or ".join(map(repr, words)), lambda value: isinstance(value, str) and value in words, hint)


def sequence_of(item: Constraint) -> Constraint:
    """A non-empty 1-d sequence; strings and mappings are rejected."""

    def accepts(value: Any) -> bool:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Collection):
            return False
        if not hasattr(value, "__getitem__") or getattr(value, "ndim", 1) == 0:
            return False
        return len(value) > 0 and all(item.accepts(each) for each in value)

    return Constraint(f"a sequence of at least one item, each of them {item.text}", accepts, item.hint)


def has_methods(text: str, *methods: str, hint: str = "") -> Constraint:
    """An object with certain methods, such as "a regressor" (``text`` of the message); classes are rejected."""
    return Constraint(
        f"{text} with {' and '.join(methods)}",
        lambda value: not isinstance(value, type) and all(callable(getattr(value, name, None)) for name in methods),
        hint,
    )


BOOLEAN = Constraint(
    "True or False", lambda value: isinstance(value, bool | np.bool_), "words and numbers are not converted to booleans"
)
NONE = Constraint("None", lambda value: value is None)
CALLABLE = Constraint("a callable", lambda value: callable(value) and not isinstance(value, type))
POSITIVE = number(above=0)
NOT_NEGATIVE = number(at_least=0)
FRACTION = number(at_least=0, at_most=1)
COUNT = integer(at_least=1)
N_JOBS = NONE | Constraint("a whole number other than 0", lambda value: integer().accepts(value) and value != 0)
RANDOM_STATE = (
    NONE
    | integer(at_least=0, at_most=2**32 - 1)
    | Constraint("a numpy.random.RandomState", lambda value: isinstance(value, np.random.RandomState))
)
FOLDS = (
    integer(at_least=2)
    | has_methods("a splitter", "split", "get_n_splits")
    | Constraint(
        "pairs of (train, test)", lambda value: isinstance(value, Iterable) and not isinstance(value, str | bytes)
    )
)

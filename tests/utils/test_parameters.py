"""Declared hyper-parameters: valid and invalid values, and errors with parameter, value and advice."""

import inspect
from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB

import skldl
from skldl.exceptions import ParameterError
from skldl.testing import CHECKS, make_distributions
from skldl.utils import parameters as declared
from skldl.utils.parameters import (
    check_declared_parameters,
    check_parameters,
    check_value,
    has_methods,
    integer,
    number,
    one_of,
    sequence_of,
)

X, D = make_distributions()

ACCEPTED = [
    (number(at_least=0), [0, 0.0, 1e300, np.float32(3), np.int64(2)]),
    (number(above=0, below=1), [1e-9, 0.5]),
    (number(at_most=2), [-5, 2]),
    (integer(at_least=1), [1, np.int32(7), 10**30, 10**400]),
    (one_of("auto", "scale") | number(above=0), ["auto", "scale", 0.1]),
    (declared.BOOLEAN, [True, False, np.True_]),
    (declared.NONE, [None]),
    (declared.CALLABLE, [len, np.exp, lambda value: value]),
    (declared.RANDOM_STATE, [None, 0, 2**32 - 1, np.random.RandomState(0)]),
    (declared.FOLDS, [2, 10, KFold(3), [([0], [1])]]),
    (declared.N_JOBS, [None, 1, -1, np.int64(4)]),
    (sequence_of(integer(at_least=1)), [[1], (2, 3), np.array([4]), range(1, 3)]),
    (has_methods("a regressor", "fit", "predict"), [Ridge()]),
]
REJECTED = [
    (number(at_least=0), [-1, -1e-300, np.nan, np.inf, "1", None, True, [1], np.array([1.0]), 1j]),
    (number(above=0, below=1), [0, 1, 0.0, 1.0]),
    (number(above=0), [10**400, Fraction(10**400, 3)]),
    (number(at_most=2), [2.1]),
    (integer(at_least=1), [0, 1.0, 1.5, True, "3", np.float64(2)]),
    (one_of("auto", "scale") | number(above=0), ["Auto", "", 0, True, b"auto"]),
    (declared.BOOLEAN, [0, 1, "no", "True", None, 1.0, []]),
    (declared.NONE, [0, ""]),
    (declared.CALLABLE, ["len", int, 3]),
    (declared.RANDOM_STATE, [-1, 2**32, "0", 1.5, True]),
    (declared.FOLDS, [1, 0, True, "5", 2.5, None]),
    (has_methods("a regressor", "fit", "predict"), [Ridge, "Ridge", None]),
    (declared.N_JOBS, [0, "all", 1.0, True]),
    (sequence_of(integer(at_least=1)), [[], (), 1, "12", {1: 1}, {1, 2}, [1, 0], np.array(3), np.array([[1]]), None]),
]


@pytest.mark.parametrize(("constraint", "values"), ACCEPTED, ids=lambda item: getattr(item, "text", ""))
def test_accepted(constraint, values):
    for value in values:
        check_value("name", value, constraint)


@pytest.mark.parametrize(("constraint", "values"), REJECTED, ids=lambda item: getattr(item, "text", ""))
def test_rejected(constraint, values):
    for value in values:
        with pytest.raises(ParameterError, match=r"^name=.* must be "):
            check_value("name", value, constraint)


@pytest.mark.parametrize(
    ("constraint", "value", "message"),
    [
        (
            number(at_least=0, hint="0 means no penalty"),
            -1,
            "x=-1 must be a finite number of at least 0. 0 means no penalty.",
        ),
        (number(above=0, below=1), 2, "x=2 must be a finite number above 0 and below 1."),
        (number(), "a", "x='a' must be a finite number."),
        (one_of("a", "b") | integer(at_least=2), 1, "x=1 must be 'a' or 'b' or a whole number of at least 2."),
        (declared.BOOLEAN, "no", "x='no' must be True or False. Words and numbers are not converted to booleans."),
    ],
)
def test_messages(constraint, value, message):
    with pytest.raises(ParameterError) as caught:
        check_value("x", value, constraint)
    assert str(caught.value) == message


def test_long_values_are_cut():
    with pytest.raises(ParameterError) as caught:
        check_value("x", "long " * 1000, one_of("short"))
    assert len(str(caught.value)) < 120


KINDS = {name: getattr(skldl, name) for name in skldl.ESTIMATORS}
REQUIRED = {
    "AARegressor": Ridge(),
    "PTClassifier": GaussianNB(),
    "StackingLDL": [("mean", skldl.MeanDistribution())],
    "LDLClassifier": skldl.MeanDistribution(),
    "CalibratedLDL": skldl.MeanDistribution(),
    "ConformalLDL": skldl.MeanDistribution(),
    "DirichletSpread": skldl.MeanDistribution(),
}


def parameters_of(name):
    """Names and defaults of the hyper-parameters of an estimator."""
    return {key: item.default for key, item in inspect.signature(KINDS[name]).parameters.items()}


def make(name, **parameters):
    return KINDS[name](*([REQUIRED[name]] if name in REQUIRED else []), **parameters)


TRUTHS = [
    (name, parameter) for name in KINDS for parameter, default in parameters_of(name).items() if type(default) is bool
]


@pytest.mark.parametrize("name", KINDS)
def test_every_hyper_parameter_is_declared(name):
    """A parameter that is not declared would accept any value."""
    assert set(KINDS[name]._constraints) == set(parameters_of(name))
    for parameter, value in make(name).get_params(deep=False).items():
        check_value(parameter, value, KINDS[name]._constraints[parameter])
    check_declared_parameters(make(name))


def test_there_are_truth_values_to_test():
    assert len(TRUTHS) >= 15
    assert ("SABFGS", "fit_intercept") in TRUTHS


@pytest.mark.parametrize("value", ["no", 1])
@pytest.mark.parametrize(("name", "parameter"), TRUTHS)
def test_truth_values_are_true_or_false(name, parameter, value):
    with pytest.raises(ParameterError, match=f"^{parameter}={value!r} must be True or False"):
        make(name, **{parameter: value}).fit(X, D)


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ({"alpha": number()}, r"declared: \['alpha'\], taken: \['alpha', 'center'\]"),
        ({"alpha": number(), "center": number() | declared.BOOLEAN}, "center must take True and False only"),
    ],
)
def test_public_check_finds_what_is_not_declared(constraints, message):
    class Careless(skldl.MeanDistribution):
        _constraints = constraints

        def __init__(self, alpha=1.0, center=True):
            self.alpha = alpha
            self.center = center

    with pytest.raises(AssertionError, match=message):
        CHECKS["check_declared_parameters"](Careless())


def test_values_of_a_path_are_checked_before_the_first_fit():
    model = skldl.SABFGS()
    with pytest.raises(ParameterError, match="fit_intercept='no' must be True or False"):
        next(model.predict_path(X, D, X, param="fit_intercept", values=[True, "no"]))
    with pytest.raises(ParameterError, match="alpha=-1"):
        next(model.set_params(alpha=-1).predict_path(X, D, X, param="tol", values=[1e-4]))


def test_parameters_are_checked_before_the_data():
    with pytest.raises(ParameterError, match="alpha=-1"):
        skldl.SABFGS(-1).fit(X, None)


@pytest.mark.parametrize(
    ("model", "y", "match"),
    [
        (skldl.AARegressor("forest"), D, "regressor='forest' must be a regressor with fit and predict"),
        (skldl.AARegressor(Ridge), D, "regressor=<class .*> must be a regressor"),
        (
            skldl.LDLClassifier(skldl.MeanDistribution(), threshold=2),
            D.argmax(axis=1),
            "threshold=2 must be 'learn' or",
        ),
        (
            skldl.LDLClassifier(skldl.MeanDistribution(), cv=1),
            D.argmax(axis=1),
            "cv=1 must be a whole number of at least 2",
        ),
        (skldl.LDLClassifier(skldl.MeanDistribution(), enhance="x"), D.argmax(axis=1), "enhance='x' must be None or"),
    ],
)
def test_estimators_reject_before_they_fit(model, y, match):
    with pytest.raises(ParameterError, match=match):
        model.fit(X, y)


def test_what_is_not_declared_is_not_checked():
    class Free:
        _constraints = {}  # noqa: RUF012 - as small as possible

    check_parameters(Free())


def test_bounds_are_printed_with_all_their_digits():
    assert integer(at_most=2**32 - 1).text == "a whole number of at most 4294967295"
    assert number(above=0, below=0.5).text == "a finite number above 0 and below 0.5"

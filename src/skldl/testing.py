"""Checks for any label distribution learner, of this package or of others: scikit-learn's and further ones."""

import pickle
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator as check_by_scikit_learn

from skldl.exceptions import DataError
from skldl.utils.parameters import check_declared_parameters
from skldl.utils.typing import FloatArray

__all__ = ["CHECKS", "EXPECTED_FAILED_CHECKS", "check_estimator", "make_distributions"]

EXPECTED_FAILED_CHECKS = {
    "check_regressor_multioutput": "its targets are not distributions",
    "check_sample_weights_pandas_series": "its targets are not distributions",
    "check_sample_weights_not_an_array": "its targets are not distributions",
    "check_estimator_sparse_array": "its targets are not distributions; sparse X is checked here",
    "check_estimator_sparse_matrix": "its targets are not distributions; sparse X is checked here",
}
"""Checks of scikit-learn that no label distribution learner can pass, with the reason."""


def make_distributions(
    n_samples: int = 40, n_features: int = 4, n_labels: int = 3, *, random_state: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Make a small set of non-negative features and distributions that depend on them.

    Parameters
    ----------
    n_samples, n_features, n_labels : int
        Size of the set.
    random_state : int, default=0
        Seed of the random numbers.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Features in [0, 1].
    D : ndarray of shape (n_samples, n_labels)
        Distributions.

    Examples
    --------
    >>> from skldl.testing import make_distributions
    >>> X, D = make_distributions(10, n_features=2, n_labels=3)
    >>> X.shape, D.shape
    ((10, 2), (10, 3))
    """
    generator = np.random.default_rng(random_state)
    X = generator.uniform(size=(n_samples, n_features))
    scores = X @ generator.normal(size=(n_features, n_labels)) + 0.3 * generator.normal(size=(n_samples, n_labels))
    D = np.exp(scores)
    return X, D / D.sum(axis=1, keepdims=True)


def _fit(estimator: Any, X: Any, D: Any, sample_weight: Any = None) -> Any:
    model = clone(estimator)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # such as ConvergenceWarning
        return model.fit(X, D) if sample_weight is None else model.fit(X, D, sample_weight=sample_weight)


def _assert_distributions(P: FloatArray, shape: tuple[int, int]) -> None:
    assert isinstance(P, np.ndarray), f"predict returned {type(P).__name__}, not an array"
    assert P.shape == shape, f"predict returned shape {P.shape}, not {shape}"
    assert np.isfinite(P).all(), "predict returned numbers that are not finite"
    assert P.min() >= 0, f"predict returned the negative degree {P.min()}"
    error = np.abs(P.sum(axis=1) - 1).max()
    assert error < 1e-12, f"a predicted row misses the sum of one by {error:g}"


def _assert_same_model(estimator: Any, X: FloatArray, first: tuple[Any, ...], second: tuple[Any, ...]) -> None:
    np.testing.assert_allclose(_fit(estimator, *first).predict(X), _fit(estimator, *second).predict(X), atol=1e-6)


def check_rows_sum_to_one(estimator: Any) -> None:
    """Predictions are finite, non-negative and sum to one, near the training data and far from them."""
    X, D = make_distributions()
    model = _fit(estimator, X, D)
    for rows in (X, X[:1], 1e3 * X, np.zeros((2, X.shape[1]))):
        _assert_distributions(model.predict(rows), (len(rows), D.shape[1]))


def check_label_permutation(estimator: Any) -> None:
    """Permuting the labels permutes the predictions, without any other change."""
    X, D = make_distributions()
    order = [2, 0, 1]
    expected = _fit(estimator, X, D).predict(X)[:, order]
    np.testing.assert_allclose(_fit(estimator, X, D[:, order]).predict(X), expected, atol=1e-6)


def check_weight_two_is_row_twice(estimator: Any) -> None:
    """A row with weight two counts as the same row twice."""
    X, D = make_distributions()
    weight = np.where(np.arange(len(X)) < 10, 2.0, 1.0)
    twice = np.r_[np.arange(10), np.arange(len(X))]
    _assert_same_model(estimator, X, (X, D, weight), (X[twice], D[twice]))


def check_weight_zero_is_no_row(estimator: Any) -> None:
    """A row with weight zero does not count."""
    X, D = make_distributions()
    weight = np.where(np.arange(len(X)) < 10, 0.0, 1.0)
    _assert_same_model(estimator, X, (X, D, weight), (X[10:], D[10:]))


def check_equal_weights_are_no_weights(estimator: Any) -> None:
    """Equal weights, and all weights times a constant, change nothing."""
    X, D = make_distributions()
    _assert_same_model(estimator, X, (X, D, np.full(len(X), 7.0)), (X, D))


def check_batch_equals_rows(estimator: Any) -> None:
    """The prediction of a row does not depend on the other rows."""
    X, D = make_distributions()
    model = _fit(estimator, X, D)
    np.testing.assert_allclose(np.vstack([model.predict(row[None]) for row in X]), model.predict(X), atol=1e-10)


def check_deterministic(estimator: Any) -> None:
    """The same random_state gives the same model, also after clone and pickle; the inputs are not changed."""
    X, D = make_distributions()
    X_before, D_before = X.copy(), D.copy()
    model = _fit(estimator, X, D)
    expected = model.predict(X)
    np.testing.assert_array_equal(_fit(estimator, X, D).predict(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(D, D_before)


def check_keeps_copies(estimator: Any) -> None:
    """Changing X and D after ``fit`` does not change the model."""
    X, D = make_distributions()
    one_hot = np.eye(D.shape[1])[D.argmax(axis=1)]  # rows that sum to one exactly are not divided, so not copied
    for form in (np.array, sparse.csr_matrix) if get_tags(estimator).input_tags.sparse else (np.array,):
        mine: Any = form(X)
        target = one_hot.copy()
        model = _fit(estimator, mine, target)
        expected = model.predict(form(X))
        (mine.data if sparse.issparse(mine) else mine)[:] = 0.5
        target[:] = 1 / D.shape[1]
        np.testing.assert_array_equal(model.predict(form(X)), expected, err_msg="fit keeps X or D without a copy")


def check_float32(estimator: Any) -> None:
    """Single precision works and gives nearly the same."""
    X, D = make_distributions()
    X32, D32 = X.astype(np.float32), D.astype(np.float32)
    P = _fit(estimator, X32, D32).predict(X32)
    _assert_distributions(P, D.shape)
    np.testing.assert_allclose(P, _fit(estimator, X32.astype(np.float64), D32).predict(X32), atol=5e-3)


def check_odd_shapes(estimator: Any) -> None:
    """Two labels, many labels, one feature, identical rows, a constant feature, more features than rows."""
    for n_samples, n_features, n_labels in [(30, 4, 2), (30, 4, 60), (30, 1, 3), (20, 25, 3)]:
        X, D = make_distributions(n_samples, n_features, n_labels)
        _assert_distributions(_fit(estimator, X, D).predict(X), D.shape)
    X, D = make_distributions()
    _assert_distributions(_fit(estimator, np.ones_like(X), D).predict(X), D.shape)
    same = np.tile(D[:1], (len(D), 1))
    P = _fit(estimator, np.ones_like(X), same).predict(np.ones_like(X))
    _assert_distributions(P, D.shape)
    np.testing.assert_allclose(P, same, atol=0.05, err_msg="all rows are identical, and so should be the prediction")
    constant = X.copy()
    constant[:, 1] = 0.0
    _assert_distributions(_fit(estimator, constant, D).predict(X), D.shape)


def check_zero_mass_labels(estimator: Any) -> None:
    """Labels without any mass, one-hot rows and rows with zeros lead to no NaN."""
    X, D = make_distributions(n_labels=4)
    D[:, 2] = 0.0
    D /= D.sum(axis=1, keepdims=True)
    P = _fit(estimator, X, D).predict(X)
    _assert_distributions(P, D.shape)
    assert P[:, 2].mean() < 0.1, "a label without mass in the training set is predicted with mass"
    one_hot = np.eye(4)[D.argmax(axis=1)]
    _assert_distributions(_fit(estimator, X, one_hot).predict(X), D.shape)


def check_names(estimator: Any) -> None:
    """DataFrames name features and labels; another order or number of features is rejected."""
    pandas = import_module("pandas") if find_spec("pandas") else None
    X, D = make_distributions()
    model = _fit(estimator, X, D)
    assert len(model.label_names_) == D.shape[1]
    _assert_raises(DataError, model.predict, X[:, :2])
    if pandas is None:
        return
    frame = pandas.DataFrame(X, columns=list("abcd"))
    labels = pandas.DataFrame(D, columns=["joy", "anger", "fear"])
    model = _fit(estimator, frame, labels)
    assert list(model.label_names_) == ["joy", "anger", "fear"]
    assert list(model.feature_names_in_) == list("abcd")
    _assert_raises(DataError, model.predict, frame[list("dcba")])


def check_bad_input(estimator: Any) -> None:
    """Bad data raise a DataError, an unfitted model raises NotFittedError."""
    X, D = make_distributions()
    _assert_raises(NotFittedError, clone(estimator).predict, X)
    missing_X, missing_D = X.copy(), D.copy()
    missing_X[1, 1] = missing_D[1, 1] = np.nan
    negative = D + np.where(np.arange(3) == 0, -2.0, 1.0)
    infinite_X, infinite_D = (np.where(np.isnan(table), np.inf, table) for table in (missing_X, missing_D))
    tags = get_tags(estimator)
    bad: list[tuple[Any, ...]] = [
        (infinite_X if tags.input_tags.allow_nan else missing_X, D),
        (X, infinite_D if getattr(tags.target_tags, "missing_degrees", False) else missing_D),
        (X, negative),
        (X, 3 * D),
        (X, np.where(np.arange(len(D))[:, None] == 5, 0.0, D)),
        (X, D[:, 0]),
        (X[:-1], D),
        (X[:0], D[:0]),
        (X, np.ones((len(X), 1))),
        (X, D.astype(str)),
        (X, sparse.csr_matrix(D)),
        (X, D, -np.ones(len(X))),
        (X, D, np.zeros(len(X))),
    ]
    for arguments in bad:
        _assert_raises(DataError, clone(estimator).fit, *arguments)


def check_sparse(estimator: Any) -> None:
    """Sparse features give the same model as dense ones, or raise a TypeError."""
    X, D = make_distributions()
    X = np.where(X < 0.4, 0.0, X)
    if not get_tags(estimator).input_tags.sparse:
        _assert_raises(TypeError, clone(estimator).fit, sparse.csr_matrix(X), D)
        return
    expected = _fit(estimator, X, D).predict(X)
    for form in (sparse.csr_matrix, sparse.csc_matrix, sparse.coo_array):
        model = _fit(estimator, form(X), D)
        np.testing.assert_allclose(model.predict(form(X)), expected, atol=1e-6)
        np.testing.assert_allclose(model.predict(X), expected, atol=1e-6)


def check_model_selection(estimator: Any) -> None:
    """Pipeline, GridSearchCV and cross_val_score work with it; score is minus the mean Kullback-Leibler."""
    X, D = make_distributions()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # such as ConvergenceWarning
        model = make_pipeline(StandardScaler(), clone(estimator))
        assert np.isfinite(cross_val_score(model, X, D, cv=3)).all()
        search = GridSearchCV(clone(estimator), {}, cv=3, scoring="neg_mean_squared_error").fit(X, D)
        assert np.isfinite(search.best_score_)
    assert search.best_estimator_.score(X, D) < 1e-12


def check_predict_path(estimator: Any) -> None:
    """`predict_path` predicts what one fit for each value predicts, for two different values of every number.

    An iterative algorithm may start at the solution for the previous value. Its stopping rule may leave a difference of
    one per cent of the change between the two values.
    """
    X, D = make_distributions()
    parameters = clone(estimator).get_params()
    for param, value in parameters.items():
        if type(value) not in (int, float) or param == "random_state":
            continue
        values = [value, *_other_values(estimator, param, value, X, D)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # such as ConvergenceWarning
            model = clone(estimator)
            if "random_state" in parameters:
                model.set_params(random_state=0)
            # the other value first, so that a path which takes the estimator's own value for all is seen
            path = list(model.predict_path(X, D, X[:7], param=param, values=values[::-1]))
        assert len(path) == len(values), f"predict_path over {param} gives {len(path)} predictions for {len(values)}"
        expected = [_fit(clone(model).set_params(**{param: wanted}), X, D).predict(X[:7]) for wanted in values[::-1]]
        tolerance = max(1e-6, 0.01 * float(np.abs(expected[0] - expected[-1]).max()))
        for wanted, P, P_alone in zip(values[::-1], path, expected, strict=True):
            np.testing.assert_allclose(
                P, P_alone, rtol=0, atol=tolerance, err_msg=f"predict_path over {param}={wanted!r}"
            )
        assert getattr(model, param, value) == value, f"predict_path changed {param} of the estimator"


def _other_values(estimator: Any, param: str, value: float, X: FloatArray, D: FloatArray) -> list[float]:
    """Another valid value of a hyper-parameter that changes the prediction, if there is one."""
    expected = _fit(estimator, X, D).predict(X[:7])
    taken: list[float] = []
    others = (2 * value + 1, value // 2 if isinstance(value, int) else value / 2, value + 1, 100 * value)
    for other in (other for other in others if other != value):
        try:
            P = _fit(clone(estimator).set_params(**{param: other}), X, D).predict(X[:7])
        except ValueError:  # outside of its range
            continue
        if np.abs(P - expected).max() > 1e-3:
            return [other]
        taken.append(other)
    return taken[:1]


def _assert_raises(kind: type[Exception], call: Callable[..., Any], *arguments: Any) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # such as ConvergenceWarning
            call(*arguments)
    except kind:
        return
    raise AssertionError(f"{call.__qualname__} should have raised {kind.__name__}")


CHECKS: dict[str, Callable[[Any], None]] = {
    name: check
    for name, check in tuple(globals().items())
    if name.startswith("check_") and (check.__module__ == __name__ or check is check_declared_parameters)
}
"""The checks of this package, by name; each takes an estimator and raises an error if the check fails."""


@contextmanager
def _distribution_targets() -> Iterator[None]:
    """Make scikit-learn's estimator checks use three-label distributions as y.

    The checks make y as whole numbers or class labels. Each of these becomes one row here, equal values
    equal rows, through the hook by which the checks adapt y to an estimator's tags.
    """
    from sklearn.utils import estimator_checks

    original = estimator_checks._enforce_estimator_tags_y

    def enforce(estimator: Any, y: Any) -> Any:
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] > 1:
            return y
        y = np.asarray(original(estimator, y)).ravel()
        angle = np.unique(y, return_inverse=True)[1].astype(np.float64)
        if y.dtype.kind == "f":
            angle[~np.isfinite(y)] = np.nan
        rows = np.column_stack([2 + np.sin(angle), 2 + np.cos(angle), 1 + angle % 3])
        return rows / rows.sum(axis=1, keepdims=True)

    estimator_checks._enforce_estimator_tags_y = enforce
    try:
        yield
    finally:
        estimator_checks._enforce_estimator_tags_y = original


def check_estimator(estimator: Any, *, expected_failed_checks: Mapping[str, str] | None = None) -> dict[str, str]:
    """Run scikit-learn's estimator checks and those of this module on a label distribution learner.

    Parameters
    ----------
    estimator : estimator instance
        It is cloned and not changed.
    expected_failed_checks : mapping from str to str, default=None
        Checks that this estimator cannot pass, with the reason. Those that no learner of distributions can pass
        (`EXPECTED_FAILED_CHECKS`) need not be named. A check that is named here and passes is an error too.

    Returns
    -------
    dict
        From the name of each check to "passed", "skipped" or "expected to fail: reason".

    Raises
    ------
    AssertionError
        If a check fails or an expected failure passes; the message lists all of them.

    Examples
    --------
    >>> from skldl import MeanDistribution
    >>> from skldl.testing import check_estimator
    >>> "passed" in check_estimator(MeanDistribution()).values()
    True
    """
    mine = dict(expected_failed_checks or {})
    if unknown := sorted(name for name in mine if not name.startswith("check_")):
        raise ValueError(f"These are no names of checks: {unknown}")
    outcomes: dict[str, list[tuple[str, Exception | None]]] = {}
    with _distribution_targets(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # their data are made to provoke warnings
        for result in check_by_scikit_learn(estimator, on_fail=None, on_skip=None):
            outcomes.setdefault(result["check_name"], []).append((result["status"], result["exception"]))
    for name, check in CHECKS.items():
        try:
            check(estimator)
            outcomes.setdefault(name, []).append(("passed", None))
        except Exception as error:
            outcomes.setdefault(name, []).append(("failed", error))

    expected = {**EXPECTED_FAILED_CHECKS, **mine}
    if not get_tags(estimator).input_tags.sparse:
        # an estimator that rejects sparse features passes scikit-learn's checks of them
        expected = {name: reason for name, reason in expected.items() if name in mine or "sparse" not in name}
    report, complaints = {}, []
    for name, results in outcomes.items():
        failures = [error for status, error in results if status == "failed"]
        if failures and name in expected:
            report[name] = f"expected to fail: {expected[name]}"
        elif failures:
            complaints.append(f"{name}: {type(failures[0]).__name__}: {failures[0]}")
        elif name in expected:
            complaints.append(f"{name} passes but is expected to fail ({expected[name]})")
        else:
            report[name] = "skipped" if all(status == "skipped" for status, _ in results) else "passed"
    complaints += [f"{name} is expected to fail but never ran" for name in mine if name not in outcomes]
    if complaints:
        raise AssertionError(f"{type(estimator).__name__} fails {len(complaints)} checks:\n" + "\n".join(complaints))
    return report

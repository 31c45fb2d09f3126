"""`BaseLDL`: base class of label distribution learners, so that the file of an algorithm has only its mathematics."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skldl._algorithms import hint_on_missing_degrees, names_with
from skldl.chunks import Rows
from skldl.chunks._arrays import CheckedRows
from skldl.exceptions import DataError, UnknownNameError
from skldl.utils.arrays import computing_on, is_device_array, is_foreign, least_number, to_numpy
from skldl.utils.column_names import column_names, given_names, label_names, order_of_labels
from skldl.utils.missing import (
    COMPLETE,
    MEANINGS,
    DistributionTargetTags,
    check_partial_distributions,
    fill_gaps,
    has_gaps,
    informative,
    observed_pair,
)
from skldl.utils.parameters import NONE, Constraint, check_parameters, check_value, one_of
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import (
    check_distributions,
    check_features,
    check_groups,
    check_numbers,
    check_same_length,
    check_weights,
    sum_to_one,
)

__all__ = ["BaseLDL", "GroupedLDL", "PartialLDL"]

OUTPUTS = ("default", "pandas", "polars")
MISSING = one_of(*MEANINGS, hint="'degrees' if the observed degrees are true, 'renormalised' if only ratios are known")
"""Valid values of the hyper-parameter ``missing``."""


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Restore an estimator, fitted or not, if the block fails."""
    before = dict(estimator.__dict__)
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


class BaseLDL(RegressorMixin, BaseEstimator):
    """Base class of label distribution learners.

    A subclass stores its hyper-parameters in ``__init__`` and writes two methods:

    - ``_fit(X, D, sample_weight)``: X is a float array (or a CSR matrix if ``_accept_sparse`` is true), D holds
      rows that sum to one in float64, ``sample_weight`` is None or positive float64. It assigns what it learns and does
      not change what an earlier fit has assigned;
    - ``_predict(X)``: the distributions for a checked X.

    One that can learn from sums over rows writes ``_fit_rows(rows)`` instead of ``_fit``. It receives a source of rows
    (`skldl.chunks.Rows`), in memory, on a device or in chunks, and each call of ``rows.sum`` is a pass over them.

    The base class checks everything that comes in, keeps names, and makes sure that what goes out sums to one. What a
    subclass declares in ``_constraints`` (see `skldl.utils.parameters`) is checked before the data are.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen by ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a DataFrame whose column names are all strings.
    n_labels_ : int
        Number of labels.
    label_names_ : ndarray of str
        Names of the labels: the columns of y if it was a DataFrame, else ``label_0``, ``label_1``, ….

    Examples
    --------
    >>> import numpy as np
    >>> from skldl import BaseLDL
    >>> class MedianDistribution(BaseLDL):
    ...     def _fit(self, X, D, sample_weight):
    ...         self.distribution_ = np.median(D, axis=0)
    ...     def _predict(self, X):
    ...         return np.tile(self.distribution_, (X.shape[0], 1))
    >>> MedianDistribution().fit(np.eye(2), [[0.2, 0.8], [0.4, 0.6]]).predict(np.eye(2)).round(2)
    array([[0.3, 0.7],
           [0.3, 0.7]])
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {}

    # Capabilities: what the algorithm can do. A subclass sets those that differ; every list of estimators (pages of the
    # documentation, error messages, the service, the checks of model files) is computed from them.
    _accept_sparse: ClassVar[bool] = True  # X may be a sparse matrix
    _allow_nan: ClassVar[bool] = False  # NaN in X is a missing value that the algorithm can use
    _allow_missing_degrees: ClassVar[bool] = False  # NaN in y is a degree that was not observed
    _array_api: ClassVar[bool] = False  # computes on arrays of torch, CuPy and the like where they are
    _chunks: ClassVar[bool] = False  # learns from rows in chunks; true where `_fit_rows` is written
    _hands_weights_on: ClassVar[bool] = (
        False  # gives weights to a learner of another package, without a change of scale
    )
    _keeps_rows: ClassVar[bool] = False  # a fitted model holds training rows
    _linear_scores: ClassVar[bool] = False  # predicts the softmax of X coef_ᵀ + intercept_
    _onnx: ClassVar[str] = ""  # kind of graph that `skldl.export` writes for it; empty if it cannot be exported
    # Further classes of this package that a fitted model holds in its attributes: a model file may hold them. A class
    # whose arrays are positions in others has a method `_check_fitted_state` (see `skldl._model_file_checks`).
    _model_parts: ClassVar[tuple[type, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._chunks = cls._fit_rows is not BaseLDL._fit_rows
        if "_predict" in vars(cls):  # they describe the `_predict` of the base class, not this one
            for name in ("_linear_scores", "_onnx"):
                if name not in vars(cls):
                    setattr(cls, name, getattr(BaseLDL, name))

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from features and label distributions.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features), or Rows
            Features; or rows that are read in chunks, with their distributions and weights, from `skldl.chunks`.
        y : array-like or DataFrame of shape (n_samples, n_labels), default=None
            Label distributions: non-negative rows that sum to one. None if X is a `skldl.chunks.Rows`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; None means that all count the same. Only ratios of weights count in the algorithms of
            this package: all weights times a constant give the same model. Estimators that wrap a learner of another
            package hand the weights on as they are, so that its penalties keep their meaning: the weights then must sum
            to a number between 1e-3 and 1e15.

        Returns
        -------
        self
            The fitted estimator. If fitting fails, an estimator that was fitted before stays as it was.
        """
        with unchanged_on_failure(self), computing_on(X, f"{type(self).__name__}.fit"):
            if isinstance(X, Rows) and self._chunks:
                check_parameters(self)
                self._check_rows(X, y, sample_weight)
                self._fit_rows(X)
            else:
                self._fit(*self._check_training_set(X, y, sample_weight))
        return self

    def _check_training_set(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, FloatArray, FloatArray | None]:
        """Check hyper-parameters, X, y and weights, and keep the names of features and labels."""
        check_parameters(self)
        if isinstance(X, Rows):
            raise DataError(
                f"{type(self).__name__} cannot learn from rows in chunks. Pass arrays, or use {names_with('chunks')}."
            )
        if y is None:
            raise DataError(
                f"{type(self).__name__} requires y to be passed, but the target y is None. "
                "Pass the label distributions of the rows of X."
            )
        X = check_features(self, X, reset=True, accept_sparse=self._accept_sparse)
        D = self._check_target(y, X)
        check_same_length(X, D)
        weight = check_weights(sample_weight, X.shape[0], X, hand_on=self._hands_weights_on)
        if weight is not None and least_number(weight) == 0:  # rows of weight zero have no effect: remove them
            kept = weight > 0
            X, D, weight = X[kept], D[kept], weight[kept]
        self.label_names_ = label_names(y, D.shape[1])
        self.n_labels_ = D.shape[1]
        return X, D, weight

    def _check_rows(self, rows: Rows, y: Any, sample_weight: Any) -> None:
        """Check what was given besides rows in chunks, and keep numbers and names of their features and labels."""
        _check_nothing_besides(rows, y, sample_weight)
        layout = rows.layout
        if layout.n_labels is None:
            raise DataError(
                f"The {type(rows).__name__} holds no label distributions to learn from. Say which columns are labels, "
                "or pass y to it."
            )
        self.n_features_in_ = layout.n_features
        for name in ("feature_names_in_", "_integer_columns"):  # of a fit before
            self.__dict__.pop(name, None)
        if layout.feature_names is not None:
            self.feature_names_in_ = np.array(layout.feature_names, dtype=object)
        names = layout.label_names or [f"label_{j}" for j in range(layout.n_labels)]
        self.label_names_ = np.array(names, dtype=object)
        self.n_labels_ = layout.n_labels

    def _check_target(self, y: Any, X: Any) -> FloatArray:
        hint = partial(hint_on_missing_degrees, type(self).__name__)
        return check_distributions(y, leave_rounding=True, nan_hint=hint, like=X)

    def predict(self, X: Any) -> FloatArray:
        """Predict a label distribution for each row.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features), or Rows
            Features, in the columns that ``fit`` saw. Rows that are read in chunks are predicted chunk by chunk; where
            not even the predictions fit into memory, `skldl.chunks.predict` yields them.

        Returns
        -------
        ndarray or DataFrame of shape (n_samples, n_labels)
            Non-negative rows that sum to one, in double precision for X of any precision; a DataFrame if
            `set_output` asked for it. For X on a device, an array of its library, device and
            precision.
        """
        if "n_labels_" not in self.__dict__:  # `fit` assigns it; scikit-learn's check is slower
            check_is_fitted(self)
        if isinstance(X, Rows):
            from skldl.metrics._in_chunks import predict  # imported here, since a fit needs no measures

            parts = [np.asarray(part) for part in predict(self, X)]
            return self._in_container(np.concatenate(parts or [np.zeros((0, self.n_labels_))]), X)
        features = check_features(self, X, reset=False, accept_sparse=self._accept_sparse)
        with computing_on(features, f"{type(self).__name__}.predict"):
            distributions = sum_to_one(self._predict(features), type(self).__name__)
        return self._in_container(distributions, X)

    def set_output(self, *, predict: str | None = None, transform: str | None = None) -> Self:
        """Choose what ``predict`` returns, as ``set_output(transform=...)`` does for scikit-learn's transformers.

        Parameters
        ----------
        predict : {"default", "pandas", "polars"}, default=None
            "pandas" and "polars" give a DataFrame whose columns are the names of the labels; with "pandas" its index is
            that of X. "default" gives an array. None leaves the choice as it is.
        transform : {"default", "pandas", "polars"}, default=None
            scikit-learn's word, with the same effect if ``predict`` is None.

        Returns
        -------
        self
            The estimator. `sklearn.base.clone` keeps the choice. In a pipeline, set it on the last step.

        Examples
        --------
        >>> from skldl import MeanDistribution
        >>> import pandas as pd
        >>> D = pd.DataFrame({"no": [0.2, 0.4], "yes": [0.8, 0.6]})
        >>> MeanDistribution().set_output(predict="pandas").fit([[0], [1]], D).predict([[2]]).round(1)
            no  yes
        0  0.3  0.7
        """
        for name, value in (("transform", transform), ("predict", predict)):
            check_value(name, value, NONE | one_of(*OUTPUTS))
            if value is not None:
                config = dict(getattr(self, "_sklearn_output_config", {}))  # `sklearn.base.clone` copies this attribute
                self._sklearn_output_config = {**config, "predict": value}
        return self

    def _in_container(self, distributions: FloatArray, X: Any) -> Any:
        """Predictions in the container that `set_output` configures."""
        output = getattr(self, "_sklearn_output_config", {}).get("predict", "default")
        if output == "default":
            return distributions
        distributions = to_numpy(distributions)
        index = X.index if hasattr(X, "columns") and hasattr(X, "index") else None  # a list has a method `index`
        return _data_frame(distributions, list(self.label_names_), output, index)

    def predict_path(
        self, X: Any, y: Any, X_new: Any, *, param: str, values: Sequence[Any], sample_weight: Any = None
    ) -> Iterator[FloatArray]:
        """Fit once for each value of one hyper-parameter and predict new rows, sharing work where the algorithm can.

        Selection of hyper-parameters uses it. The estimator itself stays as it is.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features to learn from.
        y : array-like or DataFrame of shape (n_samples, n_labels)
            Label distributions to learn from.
        X_new : array-like, DataFrame or sparse matrix of shape (n_new, n_features)
            Features to predict for.
        param : str
            Name of the hyper-parameter.
        values : sequence
            Its values.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row of X.

        Yields
        ------
        ndarray of shape (n_new, n_labels)
            Predictions of ``clone(self).set_params(**{param: value}).fit(X, y, sample_weight)``, in the order of
            ``values``.
        """
        model = clone(self)
        if param not in model.get_params():
            raise UnknownNameError(f"{type(self).__name__} has no hyper-parameter {param!r}.")
        if param in self._constraints:
            for value in values:
                check_value(param, value, self._constraints[param])
        X, D, weight = model._check_training_set(X, y, sample_weight)
        X_new = check_features(model, X_new, reset=False, accept_sparse=self._accept_sparse)
        for distributions in model._predict_path(X, D, weight, X_new, param, list(values)):
            yield sum_to_one(distributions, type(self).__name__)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the mean Kullback-Leibler divergence from the true to the predicted distributions: higher is better.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features), or Rows
            Features; or rows that are read in chunks, with their distributions and weights.
        y : array-like or DataFrame of shape (n_samples, n_labels), default=None
            True label distributions. None if X is a `skldl.chunks.Rows`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row.

        Returns
        -------
        float
            At most 0, which only a perfect prediction reaches.
        """
        from skldl.metrics import kullback_leibler  # imported here, since a fit needs no measures
        from skldl.metrics._in_chunks import evaluate

        if isinstance(X, Rows):
            _check_nothing_besides(X, y, sample_weight)
            return -evaluate(self, X, measures=[kullback_leibler])[kullback_leibler.name]
        predicted = self.predict(X)
        if not is_device_array(predicted):
            predicted = self._in_order_of(y, np.asarray(predicted))
        return -kullback_leibler(y, predicted, sample_weight=sample_weight)

    def _in_order_of(self, y: Any, predicted: FloatArray) -> FloatArray:
        """Predictions with the labels in the order of the columns of y."""
        names = column_names(y)
        if len(names) != self.n_labels_:  # the measure rejects a wrong number of labels
            return predicted
        order = order_of_labels(names, given_names(self.label_names_), name="the table that fit saw")
        return predicted if order is None else predicted[:, order]

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        """Learn from checked arrays."""
        self._fit_rows(CheckedRows(X, D, sample_weight))

    def _fit_rows(self, rows: Rows) -> None:
        """Learn from a source of rows, whose names are known already."""
        raise NotImplementedError

    def _predict(self, X: Any) -> FloatArray:
        raise NotImplementedError

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """One fit per value; an algorithm that can share work between values overrides this."""
        for value in values:
            self.set_params(**{param: value})
            self._fit(X, D, sample_weight)
            yield self._predict(X_new)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accept_sparse
        tags.input_tags.allow_nan = self._allow_nan
        tags.target_tags = DistributionTargetTags.of(tags.target_tags, missing_degrees=self._allow_missing_degrees)
        tags.regressor_tags.poor_score = True
        return tags


def _check_nothing_besides(rows: Rows, y: Any, sample_weight: Any) -> None:
    """Raise if distributions or weights are given besides rows in chunks."""
    if y is not None or sample_weight is not None:
        raise DataError(
            "X is a source of rows in chunks, which brings its own distributions and weights: give them to "
            f"{type(rows).__name__}, and leave y and sample_weight out."
        )


def _data_frame(distributions: FloatArray, names: list[str], output: str, index: Any) -> Any:
    """Make a DataFrame of distributions; pandas and polars are imported only here, where one was asked for."""
    try:
        frames = import_module(output)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"set_output(predict={output!r}) needs {output}: pip install {output}", name=error.name
        ) from error
    if output == "polars":
        return frames.DataFrame(distributions, schema=names)
    return frames.DataFrame(distributions, columns=names, index=index)


class PartialLDL(BaseLDL):
    """Base class of label distribution learners that can learn from missing degrees.

    A subclass declares ``"missing": MISSING`` in ``_constraints`` and stores it in ``__init__``. Its ``_fit`` receives
    D with NaN where a degree is unknown, and finds what it means in ``missing_``: "complete" (no NaN), "degrees" or
    "renormalised"; see `skldl.utils.missing`.

    Attributes
    ----------
    missing_ : {"complete", "degrees", "renormalised"}
        What NaN in y means; "complete" if there was none, or none that does not follow from the other cells.
    n_left_out_ : int
        Number of rows of y without information: no observed label or, with "renormalised", fewer than two.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl import MeanDistribution
    >>> model = MeanDistribution(missing="degrees").fit([[0.0], [1.0]], [[0.5, 0.25, 0.25], [0.5, np.nan, np.nan]])
    >>> model.missing_
    'degrees'
    >>> model.complete([[0.0]], [[0.6, np.nan, np.nan]])
    array([[0.6, 0.2, 0.2]])
    """

    _allow_missing_degrees = True
    missing: str = "auto"  # a subclass may have an ``__init__`` without it

    def _check_rows(self, rows: Rows, y: Any, sample_weight: Any) -> None:
        super()._check_rows(rows, y, sample_weight)
        self.missing_, self.n_left_out_ = COMPLETE, 0  # chunks with gaps are rejected

    def _check_target(self, y: Any, X: Any) -> FloatArray:
        if is_device_array(X):  # NaN is rejected there
            self.missing_, self.n_left_out_ = COMPLETE, 0
            return super()._check_target(y, X)
        D, self.missing_ = check_partial_distributions(y, self.missing)
        self.n_left_out_ = int((~informative(D, self.missing_)).sum())
        return D

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Minus the mean Kullback-Leibler divergence from the true to the predicted distributions: higher is better.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features), or Rows
            Features; or rows that are read in chunks, with their distributions and weights.
        y : array-like or DataFrame of shape (n_samples, n_labels), default=None
            True label distributions; None if X is a `skldl.chunks.Rows`. With gaps, what was observed is compared: the
            observed labels and the rest of the mass, or the observed labels with both rows divided by their sums there,
            as ``missing`` says.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row.

        Returns
        -------
        float
            At most 0, which only a perfect prediction reaches.
        """
        if y is None or is_foreign(y) or not has_gaps(check_numbers(y, name="y", allow_nan=True)):
            return super().score(X, y, sample_weight)
        from skldl.metrics import kullback_leibler

        predicted = self._in_order_of(y, np.asarray(self.predict(X)))
        D, meaning = check_partial_distributions(y, self.missing, to_learn=False)
        check_same_length(predicted, D)
        weight = check_weights(sample_weight, len(D))
        true, seen, kept = observed_pair(D, predicted, meaning)
        return -kullback_leibler(true, seen, sample_weight=None if weight is None else weight[kept])

    def complete(self, X: Any, D: Any) -> FloatArray:
        """Fill the gaps of a table of degrees with what the fitted model predicts.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        D : array-like or DataFrame of shape (n_samples, n_labels)
            Degrees with NaN where they were not observed, such as those that ``fit`` saw.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Rows that sum to one. With true degrees the observed cells stay, and the rest of the mass is distributed as
            predicted; with renormalised ones their ratios stay, and the missing cells are the prediction. A row without
            any observed label is the prediction.
        """
        check_is_fitted(self)
        table, meaning = check_partial_distributions(D, self.missing, to_learn=False)
        predicted = self._in_order_of(D, np.asarray(self.predict(X)))
        check_same_length(predicted, table)
        return fill_gaps(table, predicted, meaning)


class GroupedLDL(BaseLDL):
    """Base class of learners that hold rows out inside ``fit`` and can keep groups of rows together while they do.

    A subclass writes ``_fit_grouped(X, D, sample_weight, groups)`` instead of ``_fit``; ``groups`` is None or an array
    of whole numbers, one for each row.

    Examples
    --------
    >>> from skldl import RandomForestLDL
    >>> from skldl.base import GroupedLDL
    >>> issubclass(RandomForestLDL, GroupedLDL)
    True
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None) -> Self:
        """Learn from features and label distributions.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like or DataFrame of shape (n_samples, n_labels), default=None
            Label distributions: non-negative rows that sum to one.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row; None means that all count the same.
        groups : array-like of shape (n_samples,), default=None
            Group of each row, such as the person it belongs to. Rows of one group are held out together wherever rows
            are held out.

        Returns
        -------
        self
            The fitted estimator.
        """
        with unchanged_on_failure(self), computing_on(X, f"{type(self).__name__}.fit"):
            self._fit_grouped(*self._check_grouped_set(X, y, sample_weight, groups))
        return self

    def _check_grouped_set(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[Any, FloatArray, FloatArray | None, IntArray | None]:
        """`_check_training_set`, and the groups of the rows that it kept."""
        X, D, weight = self._check_training_set(X, y, sample_weight)
        return X, D, weight, check_groups(groups, *kept_rows(sample_weight, D.shape[0]))

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        self._fit_grouped(X, D, sample_weight, None)

    def _fit_grouped(self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None) -> None:
        raise NotImplementedError


def kept_rows(sample_weight: Any, n_kept: int) -> tuple[IntArray, int]:
    """Which rows `BaseLDL` kept and how many there were: rows without weight are left out.

    Parameters
    ----------
    sample_weight : array-like of shape (n_samples,), float or None
        Weights that were given to ``fit`` and have been checked.
    n_kept : int
        Number of rows that were kept.

    Returns
    -------
    rows : ndarray of shape (n_kept,)
        Positions of the rows kept.
    n_samples : int
        Number of rows given.
    """
    if sample_weight is None or np.ndim(sample_weight) == 0:
        return np.arange(n_kept), n_kept
    weight = np.asarray(to_numpy(sample_weight) if is_device_array(sample_weight) else sample_weight, dtype=np.float64)
    return np.flatnonzero(weight), len(weight)

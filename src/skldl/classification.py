r"""`LDLClassifier`: any label distribution learner as an ordinary classifier, for single labels and sets of labels.

Geng (2016) shows single-label and multi-label learning as special cases of label distribution learning. Turning labels
into distributions is easy; turning a predicted distribution into a *set* of labels is not, since the degrees of a row
sum to one for any number of labels. Here a **virtual label** is added to every set; it separates the labels inside from
those outside, like the threshold of a ranking. With the indicator matrix L and its rows Y_i, row i is learned with the
distribution ``L'_i / (|Y_i| + 1)``, L' being L with a column of ones, and with the weight ``|Y_i| + 1``. A learner that
fits weighted means then predicts

.. math:: d_j = \frac{P(j \in Y \mid x)}{1 + E(|Y| \mid x)}, \qquad d_0 = \frac{1}{1 + E(|Y| \mid x)}

so that d_j / d_0 is the probability that label j belongs to the set. With unbiased probabilities a threshold of one
half makes the fewest mistakes; since no learner is unbiased, the threshold is learned from predictions for held-out
rows. Rows without any label need no special treatment: their whole mass is on the virtual label.
"""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import PredefinedSplit, check_cv
from sklearn.utils import Tags, get_tags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, has_fit_parameter

from skldl.distributions._tables import is_missing
from skldl.exceptions import DataError, MissingLabelError, Parameter, SampleWeightError, SingleLabelError
from skldl.utils.column_names import column_names
from skldl.utils.parameters import CALLABLE, FOLDS, NONE, check_parameters, has_methods, number, one_of
from skldl.utils.typing import FloatArray
from skldl.utils.validation import (
    check_distributions,
    check_features,
    check_same_length,
    check_weights,
    reject_lazy,
    reject_masked,
)


def label_probabilities(D: FloatArray) -> FloatArray:
    """Probability of each label to belong to the set: its degree over that of the virtual label, the last column.

    Parameters
    ----------
    D : ndarray of shape (n_samples, n_labels + 1)
        Distributions over the labels and the virtual label.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.classification import label_probabilities
    >>> label_probabilities(np.array([[0.5, 0.1, 0.4]])).round(3)
    array([[1.  , 0.25]])
    """
    virtual = D[:, -1:]
    ratio = np.divide(D[:, :-1], virtual, out=(D[:, :-1] > 0).astype(np.float64), where=virtual > 0)
    return np.minimum(ratio, 1.0)


def best_threshold(probabilities: FloatArray, members: npt.NDArray[np.bool_], weight: FloatArray) -> float:
    """Threshold with the least weight of wrong decisions; in a tie the one nearest to one half.

    Parameters
    ----------
    probabilities : ndarray of shape (n_samples, n_labels)
        Predicted probability of each label.
    members : ndarray of bool of shape (n_samples, n_labels)
        Whether the label belongs to the set.
    weight : ndarray of shape (n_samples,)
        Weight of each row.

    Returns
    -------
    float
        The threshold.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.classification import best_threshold
    >>> members = np.array([[True, False], [True, False]])
    >>> round(best_threshold(np.array([[0.9, 0.2], [0.7, 0.4]]), members, np.ones(2)), 2)
    0.55
    """
    cost = np.broadcast_to(weight[:, None], probabilities.shape).ravel()
    order = np.argsort(probabilities.ravel())
    ascending = probabilities.ravel()[order]
    # raising the threshold past a probability corrects a decision if the label is not in the set, else it spoils one
    gain = np.concatenate([[0.0], np.cumsum(np.where(members.ravel()[order], -cost[order], cost[order]))])
    edges = np.concatenate([[0.0], ascending, [1.0]])
    thresholds = (edges[:-1] + edges[1:]) / 2
    possible = np.concatenate([[True], np.diff(ascending) > 0, [True]]) & (thresholds > 0) & (thresholds < 1)
    gain, thresholds = gain[possible], thresholds[possible]
    best = thresholds[gain >= gain.max() - 1e-9 * cost.sum()]  # gains are sums: their rounding must not break ties
    return float(best[np.abs(best - 0.5).argmin()])


class LDLClassifier(ClassifierMixin, BaseEstimator):
    """Classify with a label distribution learner.

    Single labels become distributions with the whole mass on the label. A virtual label [1]_ is added to sets of
    labels: it separates the labels that belong to the set from those that do not; see the notes.

    Parameters
    ----------
    estimator : estimator
        Label distribution learner: `fit` takes features and distributions, `predict` returns distributions.
    enhance : None, transformer or callable, default=None
        Turns labels into richer distributions before they are learned. A transformer such as
        `skldl.distributions.PropagationEnhancer` is cloned, and its ``fit_transform(X, L)`` gives the distributions; a
        callable is called with ``(X, L)``. L is the indicator matrix, for sets with the virtual label as last column.
    threshold : float or "learn", default="learn"
        For sets of labels: a label belongs to the set if its probability is above this. "learn" takes the threshold
        with the fewest wrong decisions (the least Hamming loss) on training rows that were held out.
    cv : int, splitter or iterable of splits, default=5
        How rows are held out to learn the threshold: a number of folds (row i belongs to fold i modulo that number,
        which serves sorted data too), or anything that scikit-learn takes as ``cv``.

    Attributes
    ----------
    estimator_ : estimator
        The fitted learner.
    classes_ : ndarray of shape (n_labels,)
        The labels; for an indicator matrix the names of its columns, or their positions.
    multilabel_ : bool
        Whether y was an indicator matrix.
    threshold_ : float
        The threshold in use. Only for sets of labels.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X was a DataFrame whose column names are all strings.

    Notes
    -----
    Let row i have the set Y_i. It is learned with the same degree for each label of the set and for the virtual label,
    and with the weight ``|Y_i| + 1``, so that each label of each set counts the same. The predicted degree of a label
    over that of the virtual label, at most one, is then the probability that the label belongs to the set, as far as
    the learner fits the data; with `AAKNN` it is the fraction of neighbours that have the label, as in scikit-learn's
    ``KNeighborsClassifier``. A learner whose ``fit`` takes no ``sample_weight`` is fitted without these
    weights; large sets then count less, and probabilities are underestimated where sets differ in size. So
    put a scaler before this classifier, not into a pipeline inside it.

    With an enhancer, the probabilities are those of the enhanced degrees.

    References
    ----------
    .. [1] J. Fürnkranz, E. Hüllermeier, E. Loza Mencía and K. Brinker, "Multilabel classification via calibrated label
       ranking", Machine Learning 73(2), 2008.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skldl import LDLClassifier, MeanDistribution
    >>> X, y = load_iris(return_X_y=True)
    >>> LDLClassifier(MeanDistribution()).fit(X, y).predict_proba(X[:1]).round(3)
    array([[0.333, 0.333, 0.333]])
    >>> sets = [[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 1]]
    >>> model = LDLClassifier(MeanDistribution(), threshold=0.5).fit(X[:4], sets)
    >>> model.predict_proba(X[:1])
    array([[0.75, 0.25, 0.25]])
    >>> model.predict(X[:1])
    array([[1, 0, 0]])
    """

    _constraints: ClassVar = {
        "estimator": has_methods("a label distribution learner", "fit", "predict", "get_params"),
        "enhance": NONE | has_methods("a transformer", "fit_transform", "get_params") | CALLABLE,
        "threshold": one_of("learn") | number(above=0, below=1, hint="it is a probability"),
        "cv": FOLDS,
    }

    def __init__(
        self,
        estimator: Any,
        enhance: BaseEstimator | Callable[[Any, FloatArray], Any] | None = None,
        threshold: float | str = "learn",
        cv: Any = 5,
    ) -> None:
        self.estimator = estimator
        self.enhance = enhance
        self.threshold = threshold
        self.cv = cv

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Turn labels into distributions and learn them.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,) or indicator matrix of shape (n_samples, n_labels)
            Single labels, or sets of labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row.

        Returns
        -------
        self
            The fitted classifier.
        """
        check_parameters(self)
        if y is None:
            raise DataError("LDLClassifier requires y to be passed, but the target y is None.")
        X = check_features(self, X, reset=True, accept_sparse=self._takes_sparse())
        L = self._read_target(y)
        check_same_length(X, L)
        weight = check_weights(sample_weight, len(L))
        if self.multilabel_:
            learn = self.threshold == "learn"
            self.threshold_ = self._learn_threshold(X, L, weight) if learn else float(self.threshold)
        self.estimator_ = self._fit_learner(X, L, weight)
        return self

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Predict a label, or a set of labels, for each row.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
            The label with the highest degree (of equal ones the first in ``classes_``), or an indicator matrix.
        """
        probabilities = self.predict_proba(X)
        if self.multilabel_:
            return (probabilities > self.threshold_).astype(np.intp)
        return np.asarray(self.classes_[probabilities.argmax(axis=1)])

    def predict_proba(self, X: Any) -> FloatArray:
        """Predict the probability of each label.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            For single labels, rows that sum to one; for sets, the probability of each label to belong to the set.
        """
        D = self._predict_degrees(X)
        return label_probabilities(D) if self.multilabel_ else D

    def predict_distribution(self, X: Any) -> FloatArray:
        """Predict the label distribution of each row, without the virtual label.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Rows that sum to one; uniform where the virtual label has all the mass.
        """
        D = self._predict_degrees(X)
        if not self.multilabel_:
            return D
        degrees = D[:, :-1]
        totals = degrees.sum(axis=1, keepdims=True)
        return np.divide(degrees, totals, out=np.full_like(degrees, 1 / degrees.shape[1]), where=totals > 0)

    def _predict_degrees(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        X = check_features(self, X, reset=False, accept_sparse=self._takes_sparse())
        return np.asarray(self.estimator_.predict(X), dtype=np.float64)

    def _read_target(self, y: Any) -> FloatArray:
        """Set ``classes_`` and return the labels as an indicator matrix, sets with the virtual label as last column."""
        _reject_missing(y)
        self.multilabel_ = type_of_target(y, input_name="y") == "multilabel-indicator"
        if not self.multilabel_:
            y = column_or_1d(y, warn=True)
            check_classification_targets(y)
            self.classes_, codes = np.unique(y, return_inverse=True)
            if len(self.classes_) < 2:
                raise SingleLabelError(
                    f"y holds only one class, {self.classes_[0]!r}: there is nothing to classify. "
                    "Rows of at least two classes are needed."
                )
            return np.eye(len(self.classes_))[codes]
        names = column_names(y)
        indicator = np.asarray(y.toarray() if sparse.issparse(y) else y, dtype=np.float64)
        self.classes_ = np.array(names) if names else np.arange(indicator.shape[1])
        return np.column_stack([indicator, np.ones(len(indicator))])

    def _distributions(self, X: Any, L: FloatArray) -> FloatArray:
        if self.enhance is None:
            return np.asarray(L / L.sum(axis=1, keepdims=True))
        if hasattr(self.enhance, "fit_transform"):
            enhanced = clone(self.enhance).fit_transform(X, L)
        else:
            enhanced = self.enhance(X, L)
        D = check_distributions(enhanced, name="the result of enhance")
        if D.shape != L.shape:
            raise DataError(f"enhance returned shape {D.shape} for labels of shape {L.shape}: one row per row of X.")
        return D

    def _fit_learner(self, X: Any, L: FloatArray, weight: FloatArray | None) -> Any:
        D = self._distributions(X, L)
        weight = self._weights(weight, L)
        model = clone(self.estimator)
        return model.fit(X, D) if weight is None else model.fit(X, D, sample_weight=weight)

    def _learn_threshold(self, X: Any, L: FloatArray, weight: FloatArray | None) -> float:
        """Predict each fold from the others, and count mistakes. Enhancers are fitted without the fold, too."""
        probabilities, members, weights = [], [], []
        for train, test in self._folds(L):
            model = self._fit_learner(X[train], L[train], None if weight is None else weight[train])
            probabilities.append(label_probabilities(np.asarray(model.predict(X[test]))))
            members.append(L[test, :-1] > 0)
            weights.append(np.ones(len(test)) if weight is None else weight[test])
        return best_threshold(np.concatenate(probabilities), np.concatenate(members), np.concatenate(weights))

    def _folds(self, L: FloatArray) -> Iterator[tuple[Any, Any]]:
        if not isinstance(self.cv, int | np.integer):
            return iter(check_cv(self.cv).split(L))
        if len(L) < self.cv:
            raise DataError(
                f"There are {len(L)} rows, too few to learn the threshold with ",
                Parameter("cv", self.cv),
                " folds. Set ",
                Parameter("threshold", 0.5),
                ", or fewer folds with ",
                Parameter("cv"),
                ".",
            )
        # row i belongs to fold i modulo cv, which serves rows that are sorted by label, too
        return iter(PredefinedSplit(np.arange(len(L)) % self.cv).split())

    def _weights(self, weight: FloatArray | None, L: FloatArray) -> FloatArray | None:
        takes_weights = has_fit_parameter(self.estimator, "sample_weight")
        if weight is not None and not takes_weights:
            raise SampleWeightError(
                f"{type(self.estimator).__name__} takes no sample_weight in fit, so the weights cannot be used."
            )
        if not self.multilabel_ or not takes_weights:
            return weight
        sizes = L.sum(axis=1)
        return sizes if weight is None else sizes * weight

    def _takes_sparse(self) -> bool:
        return bool(get_tags(self.estimator).input_tags.sparse)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.sparse = self._takes_sparse()
        tags.target_tags.single_output = True
        return tags


def _reject_missing(y: Any) -> None:
    """Raise for labels that are missing, masked or infinite; the error names the row."""
    reject_lazy(y, name="y")
    reject_masked(y, name="y", error=MissingLabelError)
    try:
        labels = np.asarray(y.data if sparse.issparse(y) else y)
    except ValueError:  # rows of unequal length: `type_of_target` says so
        return
    if labels.dtype.kind == "f":
        bad = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        bad = np.array([is_missing(label) for label in labels.ravel()], dtype=bool).reshape(labels.shape)
    else:
        return
    if bad.any():
        cell = np.unravel_index(int(np.argmax(bad)), labels.shape)
        row = None if sparse.issparse(y) or not cell else int(cell[0])
        where = "" if row is None else f" in row {row}"
        raise MissingLabelError(
            f"y holds {labels[cell]!s}{where}, which is not a label. Remove the row, or fill in its label.", row=row
        )

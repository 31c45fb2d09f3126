"""`PTClassifier`: any classifier that predicts probabilities becomes a label distribution learner.

The problem transformation of the paper, for any single-label learner: each pair of a row xᵢ and a label yⱼ is one
example with the weight wᵢ dᵢⱼ, and the predicted degree of a label is its predicted probability P(yⱼ | x).
"""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import has_fit_parameter

from skldl.base import BaseLDL
from skldl.exceptions import Parameter, ParameterError
from skldl.transformation._resampling import RandomState, multinomial_examples
from skldl.utils.parameters import COUNT, NONE, RANDOM_STATE, has_methods, one_of
from skldl.utils.typing import FloatArray
from skldl.utils.warn import warn

SUMS_OVER_ROWS = (BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB)
"""Classifiers whose model consists of sums over rows, so that they can be fitted one label after the other."""
ROUND_FEATURES = (DecisionTreeClassifier, ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier)
"""Classifiers that round features to single precision, and would keep a copy of the whole table to do so."""
MAX_QUIET_BYTES = 2**31
"""If the table of examples takes more bytes, a warning proposes what takes less memory."""


class PTClassifier(BaseLDL):
    """Turn a classifier into a label distribution learner by weighted single-label examples.

    Parameters
    ----------
    classifier : estimator
        Any classifier with the interface of scikit-learn and ``predict_proba``. It is cloned and not changed.
    resample : {None, "multinomial"}, default=None
        None gives the classifier every pair of row and label once, with its degree as weight; this needs a ``fit`` that
        takes ``sample_weight``. "multinomial" draws n_samples · n_labels examples without weights, as in the
        paper, and serves every classifier.
    max_samples : int, default=None
        Maximum number of examples to draw, to bound time and memory; None means n_samples · n_labels. Only with
        "multinomial".
    random_state : int, RandomState or None, default=None
        Source of randomness of the draws. The classifier keeps its own ``random_state``: set it there
        (``classifier__random_state``).

    Attributes
    ----------
    classifier_ : estimator
        The fitted classifier; its ``classes_`` are the columns of the labels with mass. Others get degree 0.
    n_features_in_ : int
        Number of features seen by ``fit``.
    n_labels_ : int
        Number of labels.
    label_names_ : ndarray of str
        Names of the labels.

    Notes
    -----
    The weights of a row's examples sum to the row's own weight, so without ``sample_weight`` all weights sum to
    n_samples, and a penalty such as ``C`` of a logistic regression means what it means on n_samples rows. With
    ``sample_weight`` they sum to its sum, which must be between 1e-3 and 1e15 unless examples are drawn. Settings
    that count examples, such as ``min_samples_leaf``, count each row as often as it has positive degrees.

    Naive Bayes classifiers see X itself, once for each label. All others need the examples in one table: a row comes
    as often as its distribution has positive degrees. With 10⁶ rows of 50 features and 10 labels that is 4 GB (2 GB for
    trees and forests, which compute in single precision), in addition to what the classifier itself takes; beyond 2 GiB
    there is a warning. If this is too much, draw fewer with ``max_samples``, or take a model that needs no copies:
    `PTBayes`; `AARegressor` with trees or forests of regression (the Gini gain of a split on weighted examples is its
    gain in squared error on the distributions, so a tree is the same tree); `SABFGS` for logistic regression.

    Scaling and other steps that learn from X belong in a pipeline around this estimator, not inside it.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skldl import PTClassifier
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]]
    >>> PTClassifier(LogisticRegression(C=10)).fit(X, D).predict([[0.0], [1.5]]).round(2)
    array([[0.87, 0.13],
           [0.5 , 0.5 ]])
    """

    _constraints: ClassVar = {
        "classifier": has_methods(
            "a classifier",
            "fit",
            "predict_proba",
            "get_params",
            hint="choose another, or wrap it in sklearn.calibration.CalibratedClassifierCV",
        ),
        "resample": NONE | one_of("multinomial"),
        "max_samples": NONE | COUNT,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        classifier: BaseEstimator,
        *,
        resample: str | None = None,
        max_samples: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.classifier = classifier
        self.resample = resample
        self.max_samples = max_samples
        self.random_state = random_state

    @property
    def _accept_sparse(self) -> bool:  # type: ignore[override]  # an attribute elsewhere; here the classifier decides
        return bool(get_tags(self.classifier).input_tags.sparse)

    @property
    def _hands_weights_on(self) -> bool:  # type: ignore[override]  # an attribute elsewhere; draws see ratios alone
        return self.resample is None

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        name = type(self.classifier).__name__
        if self.max_samples is not None and self.resample is None:
            raise ParameterError(
                Parameter("max_samples", self.max_samples),
                " bounds the draws of ",
                Parameter("resample", "multinomial"),
                ", but resample is None. Set it, or leave max_samples out.",
            )
        if self.resample is None and not has_fit_parameter(self.classifier, "sample_weight"):
            raise ParameterError(
                f"classifier={name} takes no sample_weight in fit. Set ",
                Parameter("resample", "multinomial"),
                " to draw examples instead; if it is a Pipeline, put its first steps in front of PTClassifier.",
            )
        self.classifier_ = clone(self.classifier)
        mass = D if sample_weight is None else sample_weight[:, None] * D
        if self.resample == "multinomial":
            n_draws = D.size if self.max_samples is None else min(D.size, self.max_samples)
            rows, labels = multinomial_examples(D, n_draws, sample_weight, self.random_state)
            self.classifier_.fit(X[rows], labels)
        elif isinstance(self.classifier_, SUMS_OVER_ROWS):
            present = np.flatnonzero(mass.any(axis=0))
            for label in present:
                column = np.full(X.shape[0], label)
                self.classifier_.partial_fit(X, column, classes=present, sample_weight=mass[:, label])
        else:
            if isinstance(self.classifier_, ROUND_FEATURES):
                with np.errstate(over="ignore"):  # the message of scikit-learn's error says more than a warning here
                    X = X.astype(np.float32)
            rows, labels = np.nonzero(mass)  # each row of X as often as its distribution has positive degrees
            _warn_of_memory(X, len(rows), name)
            self.classifier_.fit(X[rows], labels, sample_weight=mass[rows, labels])

    def _predict(self, X: Any) -> FloatArray:
        distributions = np.zeros((X.shape[0], self.n_labels_))
        distributions[:, self.classifier_.classes_] = self.classifier_.predict_proba(X)
        if not np.isfinite(distributions).all():
            row = int(np.argmin(np.isfinite(distributions).all(axis=1)))
            raise ValueError(
                f"{type(self.classifier_).__name__} predicted probabilities that are not finite (row {row})."
            )
        return distributions

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.classifier)
        tags.input_tags.positive_only = inner.input_tags.positive_only
        tags.non_deterministic = inner.non_deterministic
        return tags


def _warn_of_memory(X: Any, n_examples: int, name: str) -> None:
    """Warn before the examples take very much memory, and propose what takes less."""
    parts = (X.data, X.indices) if sparse.issparse(X) else (X,)
    n_bytes = sum(part.nbytes for part in parts) / X.shape[0] * n_examples
    if n_bytes > MAX_QUIET_BYTES:
        warn(
            f"PTClassifier gives {name} a table of {n_examples:,} examples, {n_bytes / 1e9:.1f} GB: each row once for "
            "each of its labels. To take less memory, set resample='multinomial' with max_samples, or take a model "
            "without copies: SABFGS for a logistic regression, AARegressor with trees of regression for trees.",
        )

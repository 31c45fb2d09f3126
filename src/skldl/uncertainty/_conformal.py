r"""`ConformalLDL`: regions that contain the true distribution with a given probability.

The score of a row is the distance of its distribution from the prediction of a model fitted without it. If rows
are exchangeable, the score of a new row is as likely as any other to be the largest, the second largest, and so on;
so the :math:`\lceil (n+1)(1-\alpha) \rceil`-th smallest of n scores is not exceeded with probability :math:`1-\alpha`
at least, for any model and data (Vovk, Gammerman & Shafer, 2005). CV+ (Barber et al., 2021) uses all rows for
fitting and for calibration; its guarantee is about :math:`1-2\alpha`, its coverage usually near :math:`1-\alpha`.
"""

from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skldl._algorithms import hint_on_missing_degrees
from skldl.base import BaseLDL, unchanged_on_failure
from skldl.data._dataset import rows_of
from skldl.ensemble._members import fit_rows, seed_of, shuffled_folds
from skldl.exceptions import DataError, Parameter, ParameterError
from skldl.metrics import kullback_leibler
from skldl.selection import hold_out, pairs_of
from skldl.selection._candidate import with_seed
from skldl.uncertainty._dirichlet import plausible_truths
from skldl.uncertainty._region import (
    LEVEL,
    SCORES,
    Region,
    TooFewCalibrationRowsWarning,
    bounds,
    conformal_quantile,
    score_rows,
)
from skldl.utils.column_names import label_names
from skldl.utils.parameters import (
    BOOLEAN,
    RANDOM_STATE,
    Constraint,
    check_parameters,
    check_value,
    integer,
    number,
    one_of,
)
from skldl.utils.typing import BoolArray, FloatArray, IntArray
from skldl.utils.validation import (
    check_distributions,
    check_groups,
    check_row_labels,
    check_same_length,
    check_truth,
    check_weights,
    in_label_order,
    reject_device_arrays,
)
from skldl.utils.votes import check_votes_of
from skldl.utils.warn import warn

MIN_DIFFICULTY = 0.1  # of the mean: a forest that predicts 0 would make a radius of 0; chosen by hand
N_TREES, MIN_SAMPLES_LEAF, MAX_DIFFICULTY_FOLDS = 200, 10, 5  # of the default model of the difficulty; chosen by hand
MIN_SPREAD = 1e-6  # of a label, so that a constant label can be divided by


def _is_regressor(value: Any) -> bool:
    return hasattr(value, "fit") and not isinstance(value, type) and bool(is_regressor(value))


class ConformalLDL(BaseEstimator):
    r"""Prediction regions with guaranteed coverage for any label distribution learner.

    Parameters
    ----------
    estimator : estimator
        A label distribution learner.
    method : {"split", "cv+", "prefit"}, default="split"
        "split" keeps a fraction of the rows for calibration; for exchangeable rows the coverage is at least the level
        [1]_. "cv+" calibrates on out-of-fold predictions and fits on all rows [2]_; its guarantee is about
        :math:`1 - 2\alpha` for the level :math:`1 - \alpha`, its coverage usually near the level. "prefit" takes an
        estimator or pipeline that is fitted already, and calibrates on all rows, which it must not have seen.
    conformity_score : {"total_variation", "kullback_leibler", "label"}, default="total_variation"
        How the distance from the prediction is measured. "label" is the largest deviation of one label, in units of
        that label's standard deviation over the training rows: the region is a box, and covers all labels at once.
        "kullback_leibler" works with "split" only, because it satisfies no triangle inequality.
    calibration_size : float, default=0.25
        Fraction of the rows (with groups: of the groups [3]_) kept for calibration, under "split".
    n_folds : int, default=10
        Number of folds, under "cv+", and for the model of the difficulty. As many folds as rows give jackknife+.
    adaptive : bool or regressor, default=False
        Scale the radius of each row by a model of its difficulty: a regression of held-out scores on the features,
        by a random forest or by the regressor given. Under "split" only.
    covers : {"given", "true"}, default="given"
        Which distribution is covered. "given" covers distributions like those in y: if y was made from a few votes
        per row, the distribution of as many votes on a new row. "true" covers the distribution that the votes were
        drawn from; ``fit`` then needs ``counts``, and draws plausible true distributions of each calibration row from
        a posterior [4]_: votes, and a Dirichlet prior around the prediction whose concentration is
        estimated. Its guarantee is about :math:`1 - 2\alpha`, and rests on that posterior. It is cautious, since the
        prior takes the lower end of the interval of the concentration: where true distributions hardly scatter around
        the predictions, regions of level .9 cover .999 of them.
    random_state : int, RandomState instance or None, default=None
        Seed of the split, and of estimators whose ``random_state`` is None.

    Attributes
    ----------
    estimator_ : estimator
        The fitted learner whose predictions are the centres of the regions.
    calibration_scores_ : ndarray of shape (n_calibration,)
        Scores of the calibration rows, divided by their difficulty where ``adaptive``.
    n_calibration_ : int
        Number of calibration rows.
    label_scale_ : ndarray of shape (n_labels,)
        Unit of each label's deviation in the score "label"; 1 under "prefit".
    folds_ : ndarray of int of shape (n_calibration,)
        The fold of each calibration row; zeros unless ``method="cv+"``.
    fold_estimators_ : list of estimators
        The models of the folds under "cv+"; empty otherwise.
    difficulty_ : estimator or None
        The regressor that predicts the difficulty of a row, where ``adaptive``.
    groups_, strata_ : ndarray or None
        Group and stratum of each calibration row, where ``fit`` was given them.
    label_names_ : ndarray of str
        Names of the labels: the columns of y if it was a DataFrame, those of the fitted estimator under "prefit", else
        ``label_0``, ``label_1``, ….

    References
    ----------
    .. [1] V. Vovk, A. Gammerman and G. Shafer, "Algorithmic Learning in a Random World", Springer 2005.
    .. [2] R. F. Barber, E. J. Candès, A. Ramdas and R. J. Tibshirani, "Predictive inference with the jackknife+",
       Annals of Statistics 49(1), 2021.
    .. [3] Y. Lee, R. F. Barber and R. Willett, "Distribution-free inference with hierarchical data", arXiv:2306.06342,
       2023.
    .. [4] D. Stutz et al., "Conformal prediction under ambiguous ground truth", arXiv:2307.09302, 2023.

    Examples
    --------
    >>> from skldl import SABFGS
    >>> from skldl.testing import make_distributions
    >>> from skldl.uncertainty import ConformalLDL
    >>> X, D = make_distributions(n_samples=400)
    >>> model = ConformalLDL(SABFGS(alpha=1e-3), random_state=0).fit(X[:300], D[:300])
    >>> region = model.predict_region(X[300:], level=0.8)
    >>> bool(0.7 < region.contains(D[300:]).mean() < 0.9)
    True
    """

    _constraints: ClassVar = {
        "estimator": Constraint("a label distribution learner", lambda value: isinstance(value, BaseLDL | Pipeline)),
        "method": one_of("split", "cv+", "prefit"),
        "conformity_score": one_of(*SCORES),
        "calibration_size": number(above=0, below=1),
        "n_folds": integer(at_least=2),
        "adaptive": BOOLEAN | Constraint("a regressor", _is_regressor),
        "covers": one_of("given", "true"),
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        estimator: Any,
        *,
        method: str = "split",
        conformity_score: str = "total_variation",
        calibration_size: float = 0.25,
        n_folds: int = 10,
        adaptive: Any = False,
        covers: str = "given",
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.conformity_score = conformity_score
        self.calibration_size = calibration_size
        self.n_folds = n_folds
        self.adaptive = adaptive
        self.covers = covers
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        groups: Any = None,
        strata: Any = None,
        counts: Any = None,
    ) -> Self:
        """Fit the estimator and calibrate its regions.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like or DataFrame of shape (n_samples, n_labels)
            Label distributions.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row in the fit; the calibration counts each row once.
        groups : array-like of shape (n_samples,), default=None
            Group of each row. Whole groups are held out, and the coverage holds for rows of a new group.
        strata : array-like of shape (n_samples,), default=None
            Stratum of each row, such as a category; each is calibrated by itself, so that the coverage holds within
            each of them.
        counts : array-like or DataFrame of shape (n_samples, n_labels), default=None
            Number of votes for each label, for ``covers="true"``. Columns with the names of the labels may be in
            another order, as those of y under "prefit".

        Returns
        -------
        self
            The fitted object. If fitting fails, one that was fitted before stays as it was.
        """
        with unchanged_on_failure(self):
            self._fit(X, y, sample_weight, groups, strata, counts)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, strata: Any, counts: Any) -> None:
        self._check_parameters()
        reject_device_arrays(self, X)
        D = check_distributions(y, nan_hint=partial(hint_on_missing_degrees, "ConformalLDL"))
        n_rows = len(D)
        check_same_length(X, D)
        self.label_names_ = label_names(y, D.shape[1])
        if self.method == "prefit":
            check_is_fitted(self.estimator)
            model = self.estimator[-1] if isinstance(self.estimator, Pipeline) else self.estimator
            self.label_names_ = getattr(model, "label_names_", self.label_names_)
            D = in_label_order(D, y, self.label_names_, n_rows, name="y")
        weight = check_weights(sample_weight, n_rows)
        group_of = check_groups(groups, np.arange(n_rows), n_rows)
        votes = self._check_counts(counts, n_rows)
        stratum_of = None if strata is None else check_row_labels(strata, n_rows, name="strata")
        seed = seed_of(self.random_state)
        self.folds_: IntArray
        self.fold_estimators_: list[Any] = []  # set by "cv+", as difficulty_ by adaptive=True
        self.difficulty_: Any = None
        if self.method == "prefit":
            held, held_out = self._use_fitted(X, n_rows)
        else:
            part = partial(fit_rows, with_seed(clone(self.estimator), seed), X, y, weight, group_of)
            fit_parts = self._fit_split if self.method == "split" else self._fit_folds
            held, held_out = fit_parts(part, X, D, group_of, n_rows, seed)
        difficulty = self._difficulty(rows_of(X, held))
        truths = [D[held]] if votes is None else plausible_truths(held_out, votes[held], seed)
        scores = [self._scores(truth, held_out) / difficulty for truth in truths]
        self.calibration_scores_ = np.concatenate(scores)
        repeat = len(scores)
        self.n_calibration_ = len(held)
        self.strata_ = None if stratum_of is None else np.tile(stratum_of[held], repeat)
        # plausible truths of one row are not independent: as a group they have the mass of one row
        units = np.tile(group_of[held] if group_of is not None else np.arange(len(held)), repeat)
        self.groups_ = units if group_of is not None or repeat > 1 else None
        self.folds_ = np.tile(self.folds_, repeat)

    def _fit_split(
        self, part: Any, X: Any, D: FloatArray, groups: IntArray | None, n_rows: int, seed: int
    ) -> tuple[IntArray, FloatArray]:
        """Fit on one part; return the rows of the other part and the predictions for them."""
        train, held = hold_out(n_rows, self.calibration_size, random_state=seed, groups=groups, name="y")
        self.estimator_ = part(train)
        self.label_scale_ = _spread_of_labels(D[train])  # the calibration rows have no part in their own unit
        self.folds_ = np.zeros(len(held), dtype=np.intp)
        if self._adapts():
            self.difficulty_ = self._fit_difficulty(part, X, D, train, groups, seed)
        return held, np.asarray(self.estimator_.predict(rows_of(X, held)))

    def _use_fitted(self, X: Any, n_rows: int) -> tuple[IntArray, FloatArray]:
        """Use the fitted estimator; return all rows and its predictions for them."""
        self.estimator_ = self.estimator
        held_out = np.asarray(self.estimator_.predict(X))
        self.label_scale_ = np.ones(held_out.shape[1])  # all rows calibrate: none is left to estimate a unit from
        self.folds_ = np.zeros(n_rows, dtype=np.intp)
        return np.arange(n_rows), held_out

    def _fit_folds(
        self, part: Any, X: Any, D: FloatArray, groups: IntArray | None, n_rows: int, seed: int
    ) -> tuple[IntArray, FloatArray]:
        """Fit on all rows, and once without each fold; return all rows and their held-out predictions."""
        held_out = np.empty_like(D)
        self.label_scale_ = _spread_of_labels(D)
        self.folds_ = shuffled_folds(n_rows, self.n_folds, groups, seed)
        for train, test in pairs_of(self.folds_):
            model = part(train)
            held_out[test] = np.asarray(model.predict(rows_of(X, test)))
            self.fold_estimators_.append(model)
        self.estimator_ = part(np.arange(n_rows))
        return np.arange(n_rows), held_out

    def _fit_difficulty(
        self, part: Any, X: Any, D: FloatArray, train: IntArray, groups: IntArray | None, seed: int
    ) -> Any:
        """Regress out-of-fold scores of the training part on the features."""
        regressor = (
            RandomForestRegressor(N_TREES, min_samples_leaf=MIN_SAMPLES_LEAF, random_state=seed)
            if not _is_regressor(self.adaptive)
            else with_seed(clone(self.adaptive), seed)
        )
        scores = np.empty(len(train))
        n_folds = min(self.n_folds, MAX_DIFFICULTY_FOLDS)
        for rest, test in pairs_of(shuffled_folds(len(train), n_folds, rows_of(groups, train), seed)):
            predicted = np.asarray(part(train[rest]).predict(rows_of(X, train[test])))
            scores[test] = self._scores(D[train[test]], predicted)
        finite = np.isfinite(scores)  # a divergence is infinite where a label with mass was predicted to have none
        regressor.fit(rows_of(X, train[finite]), scores[finite])
        self.mean_difficulty_ = float(scores[finite].mean())
        return regressor

    def _difficulty(self, X: Any) -> FloatArray | float:
        """Difficulty of each row, one on average; bounded below, so that no radius vanishes."""
        if self.difficulty_ is None:
            return 1.0
        # perfect predictions have a mean difficulty of 0
        predicted = self.difficulty_.predict(X) / max(self.mean_difficulty_, 1e-300)
        return np.maximum(predicted, MIN_DIFFICULTY)

    def _scores(self, D: FloatArray, P: FloatArray) -> FloatArray:
        return score_rows(self.conformity_score, D, P, self.label_scale_)

    def predict(self, X: Any) -> FloatArray:
        """Predict a label distribution for each row: the centres of the regions.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_labels)
            Distributions.
        """
        check_is_fitted(self)
        return np.asarray(self.estimator_.predict(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Minus the mean Kullback-Leibler divergence from the true to the predicted distributions: higher is better.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like or DataFrame of shape (n_samples, n_labels)
            True label distributions. Columns with the names of the labels may be in another order.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row.

        Returns
        -------
        float
            At most 0, which only a perfect prediction reaches.
        """
        P = self.predict(X)
        return -kullback_leibler(check_truth(y, self.label_names_, len(P)), P, sample_weight=sample_weight)

    def predict_region(self, X: Any, level: float = 0.9, strata: Any = None) -> Region:
        """Predict for each row a region that contains its distribution with probability ``level``.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        level : float, default=0.9
            Probability of coverage, between 0 and 1.
        strata : array-like of shape (n_samples,), default=None
            Stratum of each row, if ``fit`` was given strata.

        Returns
        -------
        Region
            With ``radius``, ``lower``, ``upper`` and ``contains``.
        """
        check_is_fitted(self)
        check_value("level", level, LEVEL)
        center = np.asarray(self.predict(X))
        codes, calibration = self._match_strata(strata, len(center))
        difficulty = np.broadcast_to(self._difficulty(X), len(center))
        radius = np.empty(len(center))
        if self.method != "cv+":
            for stratum, rows in enumerate(calibration):
                quantile = conformal_quantile(self.calibration_scores_[rows], level, rows_of(self.groups_, rows))
                radius[codes == stratum] = quantile
            radius = radius * difficulty
            inside = partial(self._inside_ball, center, radius)
        else:
            members = [np.asarray(model.predict(X)) for model in self.fold_estimators_]
            shift = np.stack([self._scores(member, center) for member in members])
            for row in range(len(center)):
                rows = calibration[codes[row]]
                reach = self.calibration_scores_[rows] + shift[self.folds_[rows], row]
                radius[row] = conformal_quantile(reach, level, rows_of(self.groups_, rows))
            inside = partial(self._inside_folds, members, codes, calibration, float(level))
        if not np.isfinite(radius).all():
            warn(
                f"{self.n_calibration_} calibration rows (fewer within a stratum, or groups) are too few for the level "
                f"{level:g}: the region of {int((~np.isfinite(radius)).sum())} rows is the whole simplex. Use more "
                "rows, a lower level or a larger calibration_size.",
                TooFewCalibrationRowsWarning,
            )
        lower, upper = bounds(self.conformity_score, center, radius, self.label_scale_)
        return Region(center, radius, lower, upper, float(level), self.conformity_score, self.label_names_, inside)

    def _inside_ball(self, center: FloatArray, radius: FloatArray, D: FloatArray) -> BoolArray:
        return np.asarray(self._scores(D, center) <= radius)

    def _inside_folds(
        self, members: list[FloatArray], codes: IntArray, calibration: list[IntArray], level: float, D: FloatArray
    ) -> BoolArray:
        """Whether the scores under the fold models exceed few enough of the calibration scores."""
        scores = np.stack([self._scores(D, member) for member in members])
        inside = np.empty(len(D), dtype=bool)
        for stratum, rows in enumerate(calibration):
            mass, n_units = np.ones(len(rows)), len(rows)
            if self.groups_ is not None:
                _, code, sizes = np.unique(self.groups_[rows], return_inverse=True, return_counts=True)
                mass, n_units = 1.0 / sizes[code], len(sizes)
            for row in np.flatnonzero(codes == stratum):
                exceeds = scores[self.folds_[rows], row] > self.calibration_scores_[rows]
                # 1e-9: a sum of fractions that reaches the limit up to rounding is outside
                inside[row] = mass @ exceeds < level * (n_units + 1) - 1e-9
        return inside

    def _match_strata(self, strata: Any, n_rows: int) -> tuple[IntArray, list[IntArray]]:
        """Code of the stratum of each new row, and the calibration rows of each stratum."""
        everything = np.arange(len(self.calibration_scores_))
        if self.strata_ is None:
            if strata is not None:
                raise DataError("fit was called with no strata, so the regions do not depend on them. Fit with strata.")
            return np.zeros(n_rows, dtype=np.intp), [everything]
        if strata is None:
            raise DataError("fit was called with strata: pass the stratum of each row to predict_region, too.")
        names, codes = np.unique(check_row_labels(strata, n_rows, name="strata"), return_inverse=True)
        return codes, [np.flatnonzero(self.strata_ == name) for name in names]

    def _check_parameters(self) -> None:
        check_parameters(self)
        if self.method == "cv+" and self.conformity_score == "kullback_leibler":
            raise ParameterError(
                Parameter("conformity_score", self.conformity_score),
                " works with ",
                Parameter("method", "split"),
                " only. Use 'total_variation' or 'label'.",
            )
        if self.method != "split" and self._adapts():
            raise ParameterError(
                Parameter("adaptive", self.adaptive),
                " works with ",
                Parameter("method", "split"),
                " only. Choose this method, or set ",
                Parameter("adaptive", False),
                ".",
            )

    def _adapts(self) -> bool:
        return _is_regressor(self.adaptive) or bool(self.adaptive)

    def _check_counts(self, counts: Any, n_rows: int) -> FloatArray | None:
        if self.covers == "given":
            return None
        if counts is None:
            raise DataError(
                Parameter("covers", "true"),
                " needs counts: the number of votes for each label, one row for each row of y.",
            )
        return check_votes_of(counts, self.label_names_, n_rows)


def _spread_of_labels(D: FloatArray) -> FloatArray:
    return np.maximum(D.std(axis=0), MIN_SPREAD)

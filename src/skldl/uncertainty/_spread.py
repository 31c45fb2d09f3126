"""`DirichletSpread`: how widely distributions scatter around a prediction, as a Dirichlet distribution."""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse, stats
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skldl.base import kept_rows, unchanged_on_failure
from skldl.data._dataset import rows_of
from skldl.ensemble._members import TrainingRows, seed_of
from skldl.exceptions import DataError
from skldl.uncertainty._dirichlet import (
    MIN_DEGREE,
    REPLACEMENT,
    concentration_of,
    fill_zeros,
    fit_concentration,
    fit_concentration_model,
    log_likelihood,
)
from skldl.uncertainty._region import LEVEL
from skldl.uncertainty._wrapper import LEARNER, HeldOutWrapper
from skldl.utils.mean_mixture import first_best
from skldl.utils.parameters import RANDOM_STATE, check_value, integer, number, one_of
from skldl.utils.scaling import Scaling
from skldl.utils.simplex import entropy
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_features, check_truth
from skldl.utils.votes import check_votes_of

PENALTIES = (np.inf, 1.0, 0.1, 0.01, 1e-3)  # from a constant concentration to almost no penalty; chosen by hand
LEVELS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


@dataclass(frozen=True, eq=False)
class CoverageCurve:
    """Fraction of the degrees that lie inside intervals of given levels.

    Attributes
    ----------
    levels : ndarray of shape (n_levels,)
        Levels of the intervals.
    observed : ndarray of shape (n_levels,)
        Fraction of the degrees inside. Above the level, the spread is too wide; below, too narrow.
    error : float
        Mean absolute difference between the two; 0 is perfect.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.uncertainty import CoverageCurve
    >>> CoverageCurve(levels=np.array([0.5, 0.9]), observed=np.array([0.48, 0.92]), error=0.02).error
    0.02
    """

    levels: FloatArray
    observed: FloatArray
    error: float


def coverage_curve(ranks: Any, levels: Any = LEVELS) -> CoverageCurve:
    """Coverage of central intervals, from the ranks of the truth in its predicted distribution.

    Parameters
    ----------
    ranks : array-like
        Values of the predicted distribution function at the truth, in [0, 1]; of any shape.
    levels : array-like, default=0.05, 0.1, 0.2, …, 0.9, 0.95
        Levels of the intervals.

    Returns
    -------
    CoverageCurve
        The curve.

    Examples
    --------
    >>> from skldl.uncertainty import coverage_curve
    >>> coverage_curve([0.1, 0.3, 0.5, 0.7, 0.9], levels=[0.5]).observed
    array([0.6])
    """
    u, steps = np.ravel(np.asarray(ranks, dtype=np.float64)), np.asarray(levels, dtype=np.float64)
    # 1e-12: a rank at the end of an interval is inside, whatever the rounding of level / 2
    observed = np.array([np.mean(np.abs(u - 0.5) <= level / 2 + 1e-12) for level in steps])
    return CoverageCurve(steps, observed, float(np.mean(np.abs(observed - steps))))


def dirichlet_ranks(D: FloatArray, P: FloatArray, concentration: FloatArray) -> FloatArray:
    r"""Ranks of degrees under :math:`\mathrm{Beta}(\tau p_j, \tau(1-p_j))`, their law under a Dirichlet distribution.

    Parameters
    ----------
    D, P : ndarray of shape (n_samples, n_labels)
        Distributions and predicted means.
    concentration : ndarray of shape (n_samples,)
        Sum of the Dirichlet parameters.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Uniform on [0, 1] if the spread is right.
    """
    a, b = beta_parameters(P, concentration)
    return np.asarray(stats.beta.cdf(D, a, b))


def votes_ranks(counts: FloatArray, P: FloatArray, concentration: FloatArray, random_state: Any = 0) -> FloatArray:
    """Ranks of votes under the beta-binomial distribution; within its steps, ranks are drawn at random.

    Parameters
    ----------
    counts, P : ndarray of shape (n_samples, n_labels)
        Votes and predicted means.
    concentration : ndarray of shape (n_samples,)
        Sum of the Dirichlet parameters.
    random_state : int, RandomState or None, default=0
        Random generator for the position within a step.

    Returns
    -------
    ndarray of shape (n_samples, n_labels)
        Uniform on [0, 1] if the spread is right.
    """
    a, b = beta_parameters(P, concentration)
    totals = counts.sum(axis=1, keepdims=True)
    step = stats.betabinom.pmf(counts, totals, a, b)
    # the position within the step is random: ranks of discrete votes are then uniform if the spread is right
    below = np.where(counts > 0, stats.betabinom.cdf(counts - 1, totals, a, b), 0.0)
    return np.asarray(below + check_random_state(random_state).uniform(size=counts.shape) * step)


def beta_parameters(P: FloatArray, concentration: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Both parameters of the beta distribution of each degree under a Dirichlet distribution."""
    p = np.clip(P, MIN_DEGREE, 1 - MIN_DEGREE)
    return concentration[:, None] * p, concentration[:, None] * (1 - p)


class DirichletSpread(HeldOutWrapper):
    r"""A label distribution learner whose predictions are means of Dirichlet distributions.

    The model is :math:`d \sim \mathrm{Dirichlet}(\tau(x)\, p(x))`: p is the prediction of the learner, and the
    concentration τ measures how closely distributions follow it; a degree has the variance :math:`p_j(1-p_j)/(\tau+1)`.
    It is fitted by maximum likelihood [1]_ to held-out predictions. Where votes are given, their likelihood is that of
    the Dirichlet-multinomial distribution, so that τ is the scatter of the true distributions, without the noise of the
    votes. Without votes, zeros (which have no density) are replaced by ``floor``.

    Parameters
    ----------
    estimator : estimator
        A label distribution learner.
    concentration : {"constant", "features"}, default="constant"
        One τ for all rows, or :math:`\ln\tau` linear in the features and in the entropy of the prediction, with a ridge
        penalty chosen by the cross-validated likelihood. The constant is among the choices.
    n_folds : int, default=5
        Number of folds for held-out predictions.
    floor : float, default=1e-4
        Replaces degrees of zero, where there are no votes.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds, and of an estimator whose ``random_state`` is None.

    Attributes
    ----------
    estimator_ : estimator
        The learner, fitted on all rows.
    concentration_ : float
        The constant τ; with "features" the geometric mean over the training rows.
    penalty_ : float
        The penalty that was chosen; infinite for a constant τ.
    log_coef_ : ndarray
        Logarithm of τ, or, with "features", the coefficients of its linear model.
    log_likelihood_ : float
        Mean log-likelihood of the held-out rows at the fitted τ, per row.
    held_out_curve_ : CoverageCurve
        Coverage of the intervals of single labels on the held-out rows.

    Notes
    -----
    A Dirichlet distribution has one parameter for its width, so that the scatter of all labels is tied to it. The curve
    of the held-out rows shows whether that fits; `ConformalLDL` covers distributions of any shape.

    References
    ----------
    .. [1] T. P. Minka, "Estimating a Dirichlet distribution", technical report, MIT, 2000.

    Examples
    --------
    >>> from skldl import SABFGS
    >>> from skldl.testing import make_distributions
    >>> from skldl.uncertainty import DirichletSpread
    >>> X, D = make_distributions(n_samples=300)
    >>> model = DirichletSpread(SABFGS(alpha=1e-3), random_state=0).fit(X[:200], D[:200])
    >>> model.sample(X[200:], n_draws=5, random_state=0).shape
    (5, 100, 3)
    >>> lower, upper = model.predict_interval(X[200:], level=0.9)
    >>> bool(0.7 < ((lower <= D[200:]) & (D[200:] <= upper)).mean() < 1)
    True
    """

    _model_parts = (CoverageCurve,)
    _constraints: ClassVar = {
        "estimator": LEARNER,
        "concentration": one_of("constant", "features"),
        "n_folds": integer(at_least=2),
        "floor": number(above=0, below=0.1),
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        estimator: Any,
        *,
        concentration: str = "constant",
        n_folds: int = 5,
        floor: float = REPLACEMENT,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.concentration = concentration
        self.n_folds = n_folds
        self.floor = floor
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, counts: Any = None) -> Self:
        """Fit the learner, and the scatter around its held-out predictions.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like or DataFrame of shape (n_samples, n_labels)
            Label distributions.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row.
        groups : array-like of shape (n_samples,), default=None
            Group of each row; rows of one group are held out together.
        counts : array-like or DataFrame of shape (n_samples, n_labels), default=None
            Number of votes for each label, where y was made from votes. Columns with the names of those of y may be in
            another order.

        Returns
        -------
        self
            The fitted estimator.
        """
        with unchanged_on_failure(self):
            X, D, weight, codes = self._check_grouped_set(X, y, sample_weight, groups)
            kept, n_given = kept_rows(sample_weight, len(D))
            votes = None if counts is None else check_votes_of(counts, self.label_names_, n_given)[kept]
            self._fit_spread(X, D, weight, codes, votes)
        return self

    def _fit_grouped(self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None) -> None:
        self._fit_spread(X, D, sample_weight, groups, None)

    def _fit_spread(
        self, X: Any, D: FloatArray, weight: FloatArray | None, groups: IntArray | None, votes: FloatArray | None
    ) -> None:
        seed = seed_of(self.random_state)
        rows, held_out = self._fit_estimator(X, D, weight, groups, seed)
        known = np.flatnonzero(np.isfinite(held_out[:, 0]))
        truth: dict[str, Any] = {"counts": votes} if votes is not None else {"D": fill_zeros(D, self.floor)}
        features = None
        self.penalty_ = float("inf")
        if self.concentration == "features":
            self.scaling_ = Scaling.fit("standard", X, weight).divisor
            self.entropy_scale_ = max(float(entropy(held_out[known]).std()), 1e-6)  # constant predictions have none
            features = self._features(X, held_out)
            self.penalty_ = _choose_penalty(features, held_out, truth, weight, rows, known)
        own = {name: table[known] for name, table in truth.items()}
        P, w = held_out[known], rows_of(weight, known)
        if np.isinf(self.penalty_):
            self.log_coef_ = np.log([fit_concentration(P, **own, weight=w)])
        else:
            assert features is not None
            self.log_coef_ = fit_concentration_model(features[known], P, self.penalty_, **own, weight=w)
        tau = self._concentration(rows_of(X, known), P)
        self.concentration_ = float(np.exp(np.average(np.log(tau), weights=w)))
        self.log_likelihood_ = float(np.average(log_likelihood(P, tau, **own), weights=w))
        ranks = dirichlet_ranks(own["D"], P, tau) if votes is None else votes_ranks(own["counts"], P, tau, seed)
        self.held_out_curve_ = coverage_curve(ranks)

    def _features(self, X: Any, P: FloatArray) -> Any:
        scaled = Scaling("standard", self.scaling_).apply(X)
        # rows without a held-out prediction are not used; any finite number serves
        column = (entropy(np.where(np.isfinite(P), P, 1.0)) / self.entropy_scale_)[:, None]
        return sparse.hstack([scaled, column], format="csr") if sparse.issparse(scaled) else np.hstack([scaled, column])

    def _concentration(self, X: Any, P: FloatArray) -> FloatArray:
        if len(self.log_coef_) == 1:
            return np.full(len(P), float(np.exp(self.log_coef_[0])))
        return concentration_of(self.log_coef_, self._features(X, P))

    def _predict(self, X: Any) -> FloatArray:
        return np.asarray(self.estimator_.predict(X))

    def _mean_and_concentration(self, X: Any) -> tuple[FloatArray, FloatArray]:
        check_is_fitted(self)
        features = check_features(self, X, reset=False, accept_sparse=self._accept_sparse)
        P = self._predict(features)
        return P, self._concentration(features, P)

    def predict_concentration(self, X: Any) -> FloatArray:
        """Predict the concentration τ of each row.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
            Concentrations.
        """
        return self._mean_and_concentration(X)[1]

    def sample(self, X: Any, n_draws: int = 1, random_state: Any = None) -> FloatArray:
        """Draw distributions for each row.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        n_draws : int, default=1
            Number of draws.
        random_state : int, RandomState instance or None, default=None
            Source of the draws.

        Returns
        -------
        ndarray of shape (n_draws, n_samples, n_labels)
            Distributions.
        """
        check_value("n_draws", n_draws, integer(at_least=1))
        P, tau = self._mean_and_concentration(X)
        alpha = tau[:, None] * np.maximum(P, MIN_DEGREE)
        random = check_random_state(random_state)
        # gamma draws of tiny parameters underflow; ln G(a) = ln G(a + 1) + ln U / a does not
        logarithms = np.log(random.standard_gamma(alpha + 1, size=(n_draws, *alpha.shape)))
        logarithms += np.log(random.uniform(np.finfo(float).tiny, 1.0, size=logarithms.shape)) / alpha
        draws = np.exp(logarithms - logarithms.max(axis=2, keepdims=True))
        return np.asarray(draws / draws.sum(axis=2, keepdims=True))

    def predict_interval(self, X: Any, level: float = 0.9) -> tuple[FloatArray, FloatArray]:
        """Central interval of the degree of each label, one label at a time.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        level : float, default=0.9
            Probability that a degree is inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_labels)
            Quantiles of the beta distribution of each degree.
        """
        check_value("level", level, LEVEL)
        P, tau = self._mean_and_concentration(X)
        a, b = beta_parameters(P, tau)
        lower, upper = (stats.beta.ppf(q, a, b) for q in ((1 - level) / 2, (1 + level) / 2))
        return lower, upper

    def log_likelihood(self, X: Any, y: Any = None, counts: Any = None) -> FloatArray:
        """Log-likelihood of distributions, or of votes, for each row.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        y : array-like or DataFrame of shape (n_samples, n_labels), default=None
            Distributions; zeros are replaced by ``floor``. Columns with the names of the labels may be in another
            order.
        counts : array-like or DataFrame of shape (n_samples, n_labels), default=None
            Votes, instead of y. The multinomial coefficient, which does not depend on the model, is left out.

        Returns
        -------
        ndarray of shape (n_samples,)
            Log-densities, or log-probabilities of the votes.
        """
        P, tau = self._mean_and_concentration(X)
        return log_likelihood(P, tau, **self._truth(y, counts, len(P)))

    def coverage(self, X: Any, y: Any = None, counts: Any = None, levels: Any = LEVELS) -> CoverageCurve:
        """Coverage of the intervals of each level on new rows.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Features.
        y, counts : array-like or DataFrame of shape (n_samples, n_labels), default=None
            Distributions, or votes, as for `log_likelihood`; with votes the intervals are those of the fractions of as
            many votes.
        levels : array-like, default=0.05, 0.1, 0.2, …, 0.9, 0.95
            Levels.

        Returns
        -------
        CoverageCurve
            The curve; `skldl.plots.CoverageDisplay` draws it.
        """
        P, tau = self._mean_and_concentration(X)
        truth = self._truth(y, counts, len(P))
        ranks = votes_ranks(truth["counts"], P, tau) if "counts" in truth else dirichlet_ranks(truth["D"], P, tau)
        return coverage_curve(ranks, levels)

    def _truth(self, y: Any, counts: Any, n_rows: int) -> dict[str, Any]:
        if (y is None) == (counts is None):
            raise DataError("Pass either y, the distributions, or counts, the votes.")
        if counts is not None:
            return {"counts": check_votes_of(counts, self.label_names_, n_rows)}
        return {"D": fill_zeros(check_truth(y, self.label_names_, n_rows), self.floor)}


def _choose_penalty(
    Z: Any, P: FloatArray, truth: dict[str, Any], weight: FloatArray | None, rows: TrainingRows, known: IntArray
) -> float:
    """The penalty with the largest cross-validated likelihood; infinity means a constant concentration."""
    losses = np.zeros(len(PENALTIES))
    is_known = np.zeros(len(P), dtype=bool)
    is_known[known] = True
    for train, test in rows.folds:
        train, test = train[is_known[train]], test[is_known[test]]
        own, other = ({name: table[part] for name, table in truth.items()} for part in (train, test))
        w = rows_of(weight, train)
        for index, penalty in enumerate(PENALTIES):
            if np.isinf(penalty):
                tau = np.full(len(test), fit_concentration(P[train], **own, weight=w))
            else:
                tau = concentration_of(fit_concentration_model(Z[train], P[train], penalty, **own, weight=w), Z[test])
            likelihood = log_likelihood(P[test], tau, **other)
            losses[index] -= float(likelihood @ (np.ones(len(test)) if weight is None else weight[test]))
    return float(PENALTIES[first_best(losses)])

"""`StackingLDL`: a pool of label distribution learners whose weights are fitted on held-out predictions."""

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from sklearn.base import clone
from sklearn.utils import Tags, get_tags

from skldl.base import BaseLDL
from skldl.ensemble._members import PooledLDL, TrainingRows, cross_fit_pool, fit_member, seed_of
from skldl.ensemble._pool import PENALTY
from skldl.exceptions import ParameterError
from skldl.selection._candidate import with_seed
from skldl.utils.parameters import NOT_NEGATIVE, RANDOM_STATE, Constraint, integer, one_of
from skldl.utils.typing import FloatArray, IntArray


def _are_named(estimators: Any) -> bool:
    """Check whether these are pairs of a name and an estimator, with different names."""
    if not isinstance(estimators, Sequence) or not estimators:
        return False
    pairs = [pair for pair in estimators if isinstance(pair, tuple) and len(pair) == 2]
    names = [name for name, _ in pairs if isinstance(name, str) and "__" not in name]
    return len(set(names)) == len(estimators) and all(hasattr(model, "get_params") for _, model in pairs)


class StackingLDL(PooledLDL):
    r"""Pool several label distribution learners.

    Each member makes held-out predictions of the training rows: its own leave-one-out or out-of-bag predictions if it
    has them (`KernelRidgeLDL`, `AAKNNCV`, `RandomForestLDL`, `GradientBoostingLDL`), else by cross-validation. A small
    fraction of the mean distribution, chosen on these predictions, is mixed into them, so that none is zero. Then the
    weights of the pool [2]_ are fitted on them [1]_:

    .. math:: p(x) \propto \exp\Big(\sum_k w_k \ln p_k(x) + b\Big), \quad w_k \ge 0.

    Parameters
    ----------
    estimators : sequence of (str, estimator)
        Names and unfitted label distribution learners.
    pool : {"log-linear", "linear"}, default="log-linear"
        Form of the pool: the weighted geometric mean above, or :math:`\sum_k w_k p_k(x)` with weights that sum to one.
        The log-linear pool was more accurate on all datasets that we tried.
    n_folds : int, default=5
        Number of folds for members that do not keep held-out predictions, and for the cross-fitted weights.
    penalty : float, default=8.0
        Strength of the penalty towards equal weights and no offset, in the log-linear pool.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds, and of members whose ``random_state`` is None.

    Attributes
    ----------
    members_ : list of estimators
        The members, fitted on all rows.
    member_names_ : list of str
        Their names.
    member_weights_ : ndarray of shape (n_members,)
        Their weights in the pool.
    member_scores_ : ndarray of shape (n_members,)
        Mean Kullback-Leibler divergence of each member on rows held out; lower is better.
    mean_shares_ : ndarray of shape (n_members,)
        Fraction of the mean distribution mixed into each member's predictions.
    mean_distribution_ : ndarray of shape (n_labels,)
        That mean distribution.
    pool_kind_ : str
        How predictions are pooled: "log-linear" or "linear".
    offset_ : ndarray of shape (n_labels,)
        Offset b of each label; zeros in the linear pool.
    oof_predictions_ : ndarray of shape (n_samples, n_labels)
        Pooled predictions for the training rows, with weights fitted without the row's fold.
    pool_score_ : float
        Mean Kullback-Leibler divergence of these: an estimate for new rows.

    See Also
    --------
    AutoLDL : The same pool with automatically chosen members.

    References
    ----------
    .. [1] D. H. Wolpert, "Stacked generalization", Neural Networks 5(2), 1992.
    .. [2] C. Genest and J. V. Zidek, "Combining probability distributions: a critique and an annotated bibliography",
       Statistical Science 1(1), 1986.

    Examples
    --------
    >>> from skldl import AAKNN, SABFGS, StackingLDL
    >>> from skldl.testing import make_distributions
    >>> X, D = make_distributions(n_samples=60)
    >>> model = StackingLDL([("linear", SABFGS(alpha=1e-3)), ("neighbours", AAKNN(5))], random_state=0).fit(X, D)
    >>> model.member_names_
    ['linear', 'neighbours']
    >>> model.predict(X).shape == D.shape
    True
    """

    _constraints: ClassVar = {
        "estimators": Constraint(
            "a sequence of pairs (name, estimator) with unique names without double underscore",
            _are_named,
        ),
        "pool": one_of("log-linear", "linear"),
        "n_folds": integer(at_least=2),
        "penalty": NOT_NEGATIVE,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        estimators: Sequence[tuple[str, Any]],
        *,
        pool: str = "log-linear",
        n_folds: int = 5,
        penalty: float = PENALTY,
        random_state: Any = None,
    ) -> None:
        self.estimators = estimators
        self.pool = pool
        self.n_folds = n_folds
        self.penalty = penalty
        self.random_state = random_state

    def _fit_grouped(self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None) -> None:
        self._check_members()
        seed = seed_of(self.random_state)
        rows = TrainingRows.split(X, D, sample_weight, groups, n_folds=self.n_folds, seed=seed)
        members = [fit_member(name, with_seed(clone(model), seed), rows) for name, model in self.estimators]
        pool, held_out = cross_fit_pool(members, rows, kind=self.pool, penalty=self.penalty)
        self._keep(members, pool, held_out, rows)

    def _check_members(self) -> None:
        own = super().get_params(deep=False)
        for name, model in self.estimators:
            if name in own:
                raise ParameterError(
                    f"A member of estimators is named {name!r}, which is also a parameter of StackingLDL: set_params "
                    "could not distinguish them. Choose another name."
                )
            if not isinstance(model, BaseLDL):
                raise ParameterError(
                    f"The member {name!r} of estimators is {type(model).__name__}, not a label distribution learner. "
                    "Wrap a regressor in AARegressor, or a classifier in PTClassifier."
                )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the estimator and, if asked for, of its members under their names.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of the members, as ``name__parameter``.

        Returns
        -------
        dict
            Names and values.
        """
        params = super().get_params(deep=False)
        for name, model in self._named() if deep else ():
            params[name] = model
            params |= {f"{name}__{key}": value for key, value in model.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the estimator, replace a member by its name, or set ``name__parameter`` of a member.

        Parameters
        ----------
        **params : dict
            Names and values.

        Returns
        -------
        self
            The estimator.
        """
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        by_name = {name: params.pop(name) for name, _ in self._named() if name in params}
        if by_name:
            self.estimators = [(name, by_name.get(name, model)) for name, model in self.estimators]
        super().set_params(**params)
        return self

    def _named(self) -> list[tuple[str, Any]]:
        """The members whose parameters can be set; none while ``estimators`` is not valid."""
        given = self.estimators if isinstance(self.estimators, Sequence) else ()
        return [pair for pair in given if isinstance(pair, tuple) and len(pair) == 2 and hasattr(pair[1], "get_params")]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = all(get_tags(model).input_tags.sparse for _, model in self._named())
        return tags

"""`AutoLDL`: a pool of learners of different kinds with automatically chosen settings."""

import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from skldl.base import BaseLDL
from skldl.data._dataset import rows_of
from skldl.ensemble._members import (
    Member,
    PooledLDL,
    TrainingRows,
    cross_fit_pool,
    divergence_of,
    fit_member,
    judge_member,
    row_losses,
    seed_of,
)
from skldl.ensemble._pool import PENALTY, Pool
from skldl.exceptions import DataError, ParameterError
from skldl.kernel import KernelRidgeLDL, fit_each_target
from skldl.maxent import SABFGSCV
from skldl.neighbors import AAKNNCV
from skldl.selection._candidate import with_seed
from skldl.trees import GradientBoostingLDL, RandomForestLDL
from skldl.utils.parameters import (
    BOOLEAN,
    CALLABLE,
    NONE,
    RANDOM_STATE,
    Constraint,
    check_value,
    number,
    one_of,
    sequence_of,
)
from skldl.utils.typing import FloatArray, IntArray

N_FOLDS = 5
MIN_WEIGHT = 0.01
"""Members with a smaller weight are removed from the pool, whose weights are then fitted again."""
TRIAL_ROWS = 400
"""Number of rows of the fit from which the time of a member is estimated; without it for up to twice as many rows."""
BOOSTING_ROWS, BOOSTING_FEATURES, BOOSTING_CELLS = 150, 50, 3_000_000
"""Boosted trees are fitted with at least so many rows and features, and at most so many degrees."""
MANY_ROWS, MANY_CELLS = 20_000, 200_000
"""With more rows, boosted trees are fitted for any number of features; with more numbers in X, the forest is
smaller."""
_UNITS = {"s": 1.0, "sec": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0}


def _one(name: str, model: BaseLDL) -> Callable[[TrainingRows, int], list[Member]]:
    """Function that fits a single member."""
    return lambda rows, seed: [fit_member(name, with_seed(clone(model), seed), rows)]


def _linear(rows: TrainingRows, seed: int) -> list[Member]:
    """Fit the maximum entropy model, with fewer folds if there are fewer rows."""
    return [fit_member("linear", SABFGSCV(cv=min(N_FOLDS, len(rows.D))), rows)]


def _kernels(rows: TrainingRows, seed: int) -> list[Member]:
    """Fit kernel ridge regression on the degrees and on their log-ratios, from the same decompositions."""
    started = time.perf_counter()
    model = KernelRidgeLDL(random_state=seed)
    fitted = fit_each_target(model, rows.X, rows.D, rows.sample_weight, groups=rows.groups)
    seconds = (time.perf_counter() - started) / len(fitted)
    names = {"degrees": "kernel", "clr": "kernel-clr"}
    return [judge_member(names[t], fitted[t], fitted[t].loo_predictions_, rows, seconds) for t in names]


def _always(rows: TrainingRows) -> str:
    return ""


def _forest(rows: TrainingRows, seed: int) -> list[Member]:
    """Fit a forest of both kinds of trees; with many numbers in X, fewer trees of one kind."""
    few = rows.X.shape[0] * rows.X.shape[1] > MANY_CELLS
    model = RandomForestLDL(100, n_trial_estimators=15) if few else RandomForestLDL(400, kind="both")
    return [fit_member("forest", with_seed(model, seed), rows)]


def _boosting(rows: TrainingRows, seed: int) -> list[Member]:
    """Fit boosted trees, with fewer rounds if there are many rows."""
    max_iter = 200 if len(rows.D) > MANY_ROWS else 300
    model = GradientBoostingLDL(max_iter, learning_rate=0.2, random_state=seed)
    return [fit_member("boosting", model, rows)]


def _boosting_is_idle(rows: TrainingRows) -> str:
    (n_rows, n_features), n_labels = rows.X.shape, rows.D.shape[1]
    if n_rows < BOOSTING_ROWS:
        return f"fewer than {BOOSTING_ROWS:,} rows"
    if n_features < BOOSTING_FEATURES and n_rows <= MANY_ROWS:
        return f"fewer than {BOOSTING_FEATURES} features: forests were more accurate there"
    if n_rows * n_labels > BOOSTING_CELLS:
        return f"{n_rows:,} rows × {n_labels} labels take too long without a budget"
    return ""


@dataclass(frozen=True)
class Recipe:
    """How `AutoLDL` fits a member, or two members with common computations.

    Attributes
    ----------
    fit : callable
        From the training set and a seed to the fitted members.
    idle : callable
        From the training set to the reason why its size does not suit the member, or an empty string.
    growth : float
        The time grows with this power of the number of rows; used only with a budget.
    """

    fit: Callable[[TrainingRows, int], list[Member]]
    idle: Callable[[TrainingRows], str]
    growth: float


RECIPES: dict[str, Recipe] = {
    "linear": Recipe(_linear, _always, 1.0),
    "neighbours": Recipe(_one("neighbours", AAKNNCV()), _always, 2.0),
    "kernel": Recipe(_kernels, _always, 2.5),
    "forest": Recipe(_forest, _always, 1.2),
    "boosting": Recipe(_boosting, _boosting_is_idle, 1.0),
}
"""The members of `AutoLDL` by name, fast ones first."""


def _seconds(text: Any) -> float:
    """Parse a text such as "90s" or "10min" into seconds; 0 if it has another form."""
    pattern = rf"\s*(\d+(?:\.\d*)?)\s*({'|'.join(_UNITS)})?\s*"
    match = re.fullmatch(pattern, text) if isinstance(text, str) else None
    return float(match[1]) * _UNITS[match[2] or "s"] if match else 0.0


def _is_learner(entry: Any) -> bool:
    return isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[1], BaseLDL)


_SECONDS = number(above=0)
BUDGET = Constraint(
    f"a time above 0: seconds, or a number with a unit ({', '.join(_UNITS)}), such as 90, '90s', '10min' or '1h'",
    lambda value: value is None or _SECONDS.accepts(value) or 0 < _seconds(value) < np.inf,
    hint="leave it out for no limit",
)
MEMBER = one_of(*RECIPES) | Constraint("a pair (name, label distribution learner)", _is_learner)


class AutoLDL(PooledLDL):
    r"""Fit a pool of different learners with all settings chosen automatically.

    The model is a log-linear pool [1]_ of learners of different kinds: a linear maximum-entropy model (`SABFGSCV`),
    neighbours (`AAKNNCV`), kernel ridge regression on degrees and on log-ratios (`KernelRidgeLDL`), a forest
    (`RandomForestLDL`, with extra and random trees up to 200,000 numbers in X) and, with 50 features or more than
    20,000 rows, boosted trees (`GradientBoostingLDL`). Each chooses its own settings and makes held-out predictions of
    the training rows; the weights of the pool are fitted on these predictions [2]_, see `StackingLDL`. If the pool is
    no better than its best member on held-out rows, the model is the best member alone.

    Parameters
    ----------
    budget : float or str, default=None
        Time for the fit, in seconds or as a text such as "90s", "10min" or "1h". The time of each member is estimated
        on a few rows, and a member that would take longer than the remaining time is dropped; ``report_`` lists them.
        None means no limit: members are then left out only for the size of the data, so that the result depends only
        on the seed.
    members : sequence, default=None
        The members: names among "linear", "neighbours", "kernel" (both kernel members), "forest" and "boosting", or
        your own pairs (name, estimator). None means all that are suitable for the size of the data.
    random_state : int, RandomState instance or None, default=None
        Seed of folds and members.
    least_gain : float, default=0.0
        Use the best member alone if the pool lowers its divergence on held-out rows by less than this fraction: a
        single model is easier to explain. ``skldl fit`` uses 0.01.
    verbose : bool or callable, default=None
        Whether to print to standard error which member is being fitted; a function is called with the message
        instead. None means only if standard error is a terminal.

    Attributes
    ----------
    report_ : list of dict
        One entry for each member, the best first: ``member``, ``divergence`` (mean Kullback-Leibler divergence on rows
        held out), ``seconds``, ``weight`` in the pool and ``note``, the reason if it is not in the pool.
    members_ : list of estimators
        The members of the pool, fitted on all rows.
    member_names_, member_weights_, member_scores_ : list of str, ndarray, ndarray
        Their names, their weights in the pool, and their divergence on rows held out.
    pool_score_ : float
        Mean Kullback-Leibler divergence on rows held out, with pool weights fitted without the row's fold. It is
        slightly too low for new rows, because the settings of the members, and the choice between the pool and its best
        member, depend on the row. `skldl.tabular.fit_table` makes a nested estimate for small tables.
    oof_predictions_ : ndarray of shape (n_samples, n_labels)
        The predictions from which it is computed; NaN in rows without one: with very many rows a member may predict
        only some.
    held_out_losses_ : dict
        Kullback-Leibler divergence of each training row by each member, and by the pool of all (or of those with
        weight) under the name "pool"; rows as in ``oof_predictions_``.
    fold_of_ : ndarray of int of shape (n_samples,)
        The fold in which each row was held out from the weights of the pool.
    mean_shares_ : ndarray of shape (n_members,)
        Fraction of the mean distribution mixed into each member's predictions.
    mean_distribution_ : ndarray of shape (n_labels,)
        That mean distribution.
    pool_kind_ : str
        How predictions are pooled: "log-linear" or "linear".
    offset_ : ndarray of shape (n_labels,)
        Offset of each label in the pool; zeros in a linear pool.

    See Also
    --------
    StackingLDL : The same pool with members of your choice.

    References
    ----------
    .. [1] C. Genest and J. V. Zidek, "Combining probability distributions: a critique and an annotated bibliography",
       Statistical Science 1(1), 1986.
    .. [2] D. H. Wolpert, "Stacked generalization", Neural Networks 5(2), 1992.

    Examples
    --------
    >>> from skldl import AutoLDL
    >>> from skldl.testing import make_distributions
    >>> X, D = make_distributions(n_samples=60)
    >>> model = AutoLDL(random_state=0).fit(X, D)
    >>> model.report_[-1]["member"], model.report_[-1]["note"]
    ('boosting', 'fewer than 150 rows')
    >>> model.predict(X).shape == D.shape
    True
    """

    _constraints: ClassVar = {
        "budget": BUDGET,
        "members": NONE | sequence_of(MEMBER),
        "random_state": RANDOM_STATE,
        "least_gain": number(at_least=0, below=1, hint="it is a fraction"),
        "verbose": NONE | BOOLEAN | CALLABLE,
    }

    def __init__(
        self,
        budget: float | str | None = None,
        members: Sequence[Any] | None = None,
        random_state: Any = None,
        least_gain: float = 0.0,
        verbose: bool | Callable[[str], None] | None = None,
    ) -> None:
        self.budget = budget
        self.members = members
        self.random_state = random_state
        self.least_gain = least_gain
        self.verbose = verbose

    def _fit_grouped(self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None) -> None:
        started = time.perf_counter()
        budget = parse_budget(self.budget)
        recipes = self._recipes()
        seed = seed_of(self.random_state)
        rows = TrainingRows.split(X, D, sample_weight, groups, n_folds=N_FOLDS, seed=seed)
        fitted: list[Member] = []
        notes: dict[str, str] = {}
        for position, (name, recipe) in enumerate(recipes.items()):
            reason = recipe.idle(rows)
            try:
                if not reason and budget is not None and fitted:
                    reason = _does_not_fit(recipe, rows, budget - (time.perf_counter() - started), seed)
                if not reason:
                    self._say(f"fitting {name} ({position + 1} of {len(recipes)})")
                    fitted += recipe.fit(rows, seed)
            except ValueError as error:  # the data do not suit the member; other errors, such as of memory, are raised
                reason = f"failed: {error}"
            if reason:
                notes[name] = reason
        self._say("")
        if not fitted:
            raise DataError(f"No member could be fitted. {'; '.join(f'{name}: {why}' for name, why in notes.items())}")
        fitted.sort(key=lambda member: member.divergence)
        chosen, pool, held_out, pooled = _pool_of(fitted, rows, self.least_gain)
        self._keep(chosen, pool, held_out, rows)
        self.held_out_losses_: dict[str, FloatArray] = {
            member.name: row_losses(rows, member.held_out) for member in fitted
        }
        self.held_out_losses_["pool"] = row_losses(rows, pooled)
        self.fold_of_ = rows.fold_of
        weight_of = dict(zip(self.member_names_, pool.weights.tolist(), strict=True))
        self.report_: list[dict[str, Any]] = [
            {
                "member": member.name,
                "divergence": member.divergence,
                "seconds": member.seconds,
                "weight": weight_of.get(member.name, 0.0),
                "note": "" if member.name in weight_of else "without weight in the pool",
            }
            for member in fitted
        ]
        self.report_ += [
            {"member": name, "divergence": None, "seconds": 0.0, "weight": 0.0, "note": reason}
            for name, reason in notes.items()
        ]

    def _recipes(self) -> dict[str, Recipe]:
        if self.members is None:
            return dict(RECIPES)
        chosen: dict[str, Recipe] = {}
        for entry in self.members:
            if isinstance(entry, str):
                chosen[entry] = Recipe(RECIPES[entry].fit, _always, RECIPES[entry].growth)
            else:
                name, model = str(entry[0]), entry[1]
                chosen[name] = Recipe(_one(name, model), _always, 1.0)
        clash = "kernel" in self.members and "kernel-clr" in chosen  # the recipe "kernel" makes both
        if len(chosen) < len(self.members) or clash:
            raise ParameterError("members contains a name twice ('kernel' includes 'kernel-clr'). Use each name once.")
        if "pool" in chosen:
            raise ParameterError(
                "members contains the name 'pool', which is reserved for the pool itself. Choose another."
            )
        return chosen

    def _say(self, text: str) -> None:
        if callable(self.verbose):
            if text:
                self.verbose(text)
        elif self.verbose if self.verbose is not None else sys.stderr.isatty():
            print(f"\r\033[KAutoLDL: {text}" if text else "\r\033[K", end="", file=sys.stderr, flush=True)


def parse_budget(budget: float | str | None) -> float | None:
    """Convert a budget to seconds.

    Parameters
    ----------
    budget : float, str or None
        Seconds, or a text such as "90s", "10min" or "1h".

    Returns
    -------
    float or None
        Seconds; None for no limit.

    Examples
    --------
    >>> parse_budget("10min"), parse_budget(90), parse_budget(None)
    (600.0, 90.0, None)
    """
    check_value("budget", budget, BUDGET)
    if budget is None:
        return None
    return _seconds(budget) if isinstance(budget, str) else float(budget)


def _does_not_fit(recipe: Recipe, rows: TrainingRows, left: float, seed: int) -> str:
    """Estimate the time of a member from a fit on a few rows; return a reason to drop it, or an empty string."""
    if left <= 0:
        return "dropped: the budget was used up"
    n_rows = len(rows.D)
    if n_rows <= 2 * TRIAL_ROWS:
        return ""
    some = np.sort(np.random.default_rng(seed).choice(n_rows, TRIAL_ROWS, replace=False))
    part = TrainingRows.split(
        rows.X[some], rows.D[some], rows_of(rows.sample_weight, some), None, n_folds=N_FOLDS, seed=seed
    )
    started = time.perf_counter()
    recipe.fit(part, seed)
    took = time.perf_counter() - started
    estimate = took * (n_rows / TRIAL_ROWS) ** recipe.growth
    if took + estimate <= left:
        return ""
    return f"dropped: its fit was estimated at {estimate:.0f} s, and {max(0.0, left - took):.0f} s were left"


def _pool_of(
    fitted: Sequence[Member], rows: TrainingRows, least_gain: float
) -> tuple[list[Member], Pool, FloatArray, FloatArray]:
    """Fit the pool of all members without those of little weight, or of the best member alone if that is better.

    Return the members, the pool, its held-out predictions, and those of the pool of several members in either case.
    """
    members = list(fitted)
    pool, held_out = cross_fit_pool(members, rows, kind="log-linear", penalty=PENALTY)
    heavy = [member for member, weight in zip(members, pool.weights, strict=True) if weight >= MIN_WEIGHT]
    if 0 < len(heavy) < len(members):
        members = heavy
        pool, held_out = cross_fit_pool(members, rows, kind="log-linear", penalty=PENALTY)
    best = fitted[0]
    if divergence_of(rows, held_out) < (1.0 - least_gain) * best.divergence:
        return members, pool, held_out, held_out
    return [best], Pool("linear", np.ones(1), np.zeros(rows.D.shape[1])), best.held_out, held_out

"""Statistical tests over datasets and within one dataset.

Over datasets, after Demšar (2006): Friedman with the correction of Iman and Davenport, the critical differences of
Nemenyi and of Bonferroni and Dunn, Wilcoxon signed-rank with Holm's correction, and the Bayesian signed-rank test of
Benavoli et al. (2014) with a region of practical equivalence. Within a dataset: the corrected resampled t-test of
Nadeau and Bengio (2003). Where a test is not possible, the reason is given instead.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

from skldl.exceptions import ParameterError
from skldl.experiments.results import StudyResults
from skldl.metrics import MEASURES
from skldl.utils.spelling import find
from skldl.utils.typing import FloatArray

__all__ = ["Comparison", "PairTests", "compare", "pair_tests"]

ALPHA = 0.05
ROPE = 0.01  # region of practical equivalence; Benavoli et al. take 1 % of accuracy, too
POSTERIOR_DRAWS = 5_000  # an estimated probability has a standard error of at most 0.007


@dataclass(frozen=True, eq=False)
class Comparison:
    """Tests of one measure over several datasets.

    Attributes
    ----------
    measure : str
        The measure.
    datasets, candidates : list of str
        What entered the tests; datasets on which a candidate or the baseline failed are left out. With ``by_family``
        each family stands in place of its datasets, by what their names begin with.
    control : str
        The candidate that the others are compared with; empty if it takes no part.
    average_ranks : ndarray of shape (n_candidates,)
        Average ranks, 1 is best.
    friedman : dict
        ``chi2``, ``chi2_p``, ``F`` and ``F_p`` (Iman-Davenport).
    nemenyi_difference, dunn_difference : float
        Critical differences of average ranks, between any two and against the control.
    nemenyi, wilcoxon : ndarray of shape (n_candidates, n_candidates)
        p values of all pairs; those of Wilcoxon are Holm's.
    dunn : dict
        For each other candidate its p value against the control, with Bonferroni's correction.
    bayes : dict
        For each other candidate the probabilities that it is better than the control, practically equivalent, worse.
    reasons : dict
        For each of these tests that is missing (empty, or NaN), why.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.experiments.statistics import Comparison
    >>> tests = Comparison("clark", ["d", "e"], ["A", "B"], "B", np.array([1.0, 2.0]), nemenyi_difference=1.386)
    >>> bool(np.ptp(tests.average_ranks) > tests.nemenyi_difference)
    False
    """

    measure: str
    datasets: list[str]
    candidates: list[str]
    control: str
    average_ranks: FloatArray
    friedman: dict[str, float] = field(default_factory=dict)
    nemenyi_difference: float = np.nan
    dunn_difference: float = np.nan
    nemenyi: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    wilcoxon: FloatArray = field(default_factory=lambda: np.empty((0, 0)))
    dunn: dict[str, float] = field(default_factory=dict)
    bayes: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)


def compare(
    results: StudyResults,
    measure: str,
    datasets: Sequence[str] | None = None,
    *,
    candidates: Sequence[str] | None = None,
    by_family: bool = False,
    control: str | None = None,
    alpha: float = ALPHA,
    rope: float = ROPE,
) -> Comparison:
    """Test a measure over datasets.

    Parameters
    ----------
    results : StudyResults
        The results.
    measure : str
        The measure.
    datasets : sequence of str, default=None
        Which datasets; None means all that count in average ranks.
    candidates : sequence of str, default=None
        Which candidates; None means all. A baseline that is last on every dataset can by itself make the tests of all
        candidates significant, without a difference between the others.
    by_family : bool, default=False
        Count the datasets of a family, which share their features, once: by their mean loss relative to the baseline
        where that is positive, else by their mean loss.
    control : str, default=None
        The candidate to compare with; None means the control of the study. If that takes no part, there are no
        comparisons with a control: one that is chosen by its results would look better than it is.
    alpha : float, default=0.05
        Level of the critical differences.
    rope : float, default=0.01
        Region of practical equivalence: the fraction of the control's loss that does not matter.

    Returns
    -------
    Comparison
        The tests, and reasons for those that are not possible.

    Examples
    --------
    >>> from skldl.data import Dataset
    >>> from skldl.experiments import Candidate, Study, run_study
    >>> from skldl.experiments.statistics import compare
    >>> from skldl.testing import make_distributions
    >>> datasets = [Dataset(f"toy {seed}", *make_distributions(30, random_state=seed)) for seed in range(4)]
    >>> candidates = [Candidate(name, f"skldl:{name}") for name in ("SABFGS", "AAKNN", "MeanDistribution")]
    >>> tests = compare(run_study(Study(datasets, candidates, folds=3)), "kullback_leibler")
    >>> tests.average_ranks.tolist(), tests.control
    ([1.0, 2.0, 3.0], 'MeanDistribution')
    >>> round(tests.nemenyi_difference, 3)
    1.657
    """
    names = _named(results.candidates, candidates, "candidate")
    columns = [results.candidates.index(name) for name in names]
    baseline = results.candidates.index(results.baseline)
    all_losses = dict(zip(results.datasets, results.losses(measure), strict=True))
    wanted = results.averaged if datasets is None else _named(results.datasets, datasets, "dataset")
    used = [name for name in wanted if not np.isnan(all_losses[name][[*columns, baseline]]).any()]
    table = np.array([all_losses[name] for name in used]).reshape(len(used), len(results.candidates))
    if by_family:
        table, used = _family_means(results, used, _relative(table, table[:, baseline]))
    losses, of_baseline = table[:, columns], table[:, baseline]
    ranks = rank_rows(losses, higher_is_better=False)
    average = ranks.mean(axis=0) if used else np.full(len(names), np.nan)
    if control is None:
        control = results.control if results.control in names else ""
    else:
        control = find(control, {name: name for name in names}, "candidate")
    reasons: dict[str, str] = {}
    found: dict[str, Any] = {}
    n_datasets, n_candidates = ranks.shape
    if n_datasets < 2:
        reasons["all"] = f"{n_datasets} dataset{'' if n_datasets == 1 else 's'}: a test over datasets needs at least 2."
    elif n_candidates < 2:
        reasons["all"] = "One candidate: there is nothing to compare."
    elif (ranks == ranks[:, :1]).all():
        reasons["all"] = "All candidates are tied on every dataset: there is no difference to test."
    else:
        found["friedman"], why = _friedman(ranks)
        if why:
            reasons["friedman"] = why
        found["nemenyi_difference"] = nemenyi_difference(n_candidates, n_datasets, alpha)
        found["nemenyi"] = _nemenyi(ranks)
        found["wilcoxon"] = _wilcoxon(_relative(losses, of_baseline))
        if control:
            found |= _against_control(names, losses, average, control, alpha, rope, int(results.study["seed"]))
        else:
            reasons["control"] = f"The control of the study, {results.control}, takes no part, and no other is named."
    return Comparison(measure, used, names, control, average, reasons=reasons, **found)


def _named(known: Sequence[str], wanted: Sequence[str] | None, what: str) -> list[str]:
    """The names of the study for those that are wanted, each once; all for None."""
    if wanted is None:
        return list(known)
    if isinstance(wanted, str) or not len(wanted):
        raise ParameterError(f"{what}s must be a list of names with at least one, or None for all; got {wanted!r}.")
    names = {name: name for name in known}
    return list(dict.fromkeys(find(name, names, what) for name in wanted))


def _family_means(results: StudyResults, used: list[str], table: FloatArray) -> tuple[FloatArray, list[str]]:
    """One row for each family of datasets, the mean of theirs; and the names of the families."""
    groups: dict[str, list[int]] = {}
    for row, name in enumerate(used):
        groups.setdefault(results.info[name]["family"], []).append(row)
    means = np.array([table[rows].mean(axis=0) for rows in groups.values()]).reshape(len(groups), table.shape[1])
    return means, [family_name([used[row] for row in rows]) for rows in groups.values()]


def _against_control(
    names: list[str], losses: FloatArray, average: FloatArray, control: str, alpha: float, rope: float, seed: int
) -> dict[str, Any]:
    """The tests of Bonferroni and Dunn, and the Bayesian one, of each candidate against one."""
    place, comparisons = names.index(control), len(names) - 1
    spread = np.sqrt(len(names) * (len(names) + 1) / (6 * len(losses)))
    p_values = np.minimum(1.0, comparisons * 2 * stats.norm.sf(np.abs(average - average[place]) / spread))
    relative = _relative(losses, losses[:, place])
    others = [j for j in range(len(names)) if j != place]
    return {
        "dunn_difference": float(stats.norm.isf(alpha / (2 * comparisons)) * spread),
        "dunn": {names[j]: float(p_values[j]) for j in others},
        "bayes": {names[j]: _bayes(relative[:, j], relative[:, place], rope, seed) for j in others},
    }


def _relative(losses: FloatArray, reference: FloatArray) -> FloatArray:
    """Losses as multiples of one candidate's, so that datasets of any scale count equally."""
    scale = np.where(reference > 0, reference, 1.0)[:, np.newaxis]
    return np.round(losses / scale, 9)  # rounding errors must not break ties between signed ranks


def _friedman(ranks: FloatArray) -> tuple[dict[str, float], str]:
    n_datasets, n_candidates = ranks.shape
    if n_candidates < 3:
        return {}, "Two candidates: Friedman's test needs at least 3; Wilcoxon's test compares two."
    chi2, chi2_p = stats.friedmanchisquare(*ranks.T)
    below_maximum = n_datasets * (n_candidates - 1) - chi2
    degrees = (n_candidates - 1, (n_candidates - 1) * (n_datasets - 1))
    # At its maximum, where every dataset ranks the candidates in the same order, F would be a division by zero; the
    # probability of one order everywhere is known exactly. 1e-9 covers the rounding error of chi2.
    if below_maximum <= 1e-9:
        ties = np.unique(ranks[0], return_counts=True)[1]
        orders = math.factorial(n_candidates) // math.prod(math.factorial(n) for n in ties.tolist())
        p_value = float(orders) ** (1 - n_datasets)
        return {"chi2": float(chi2), "chi2_p": float(chi2_p), "F": np.inf, "F_p": p_value}, ""
    F = (n_datasets - 1) * chi2 / below_maximum
    return {"chi2": float(chi2), "chi2_p": float(chi2_p), "F": float(F), "F_p": float(stats.f.sf(F, *degrees))}, ""


def _nemenyi(ranks: FloatArray) -> FloatArray:
    import scikit_posthocs

    return np.asarray(scikit_posthocs.posthoc_nemenyi_friedman(ranks), dtype=np.float64)


def _wilcoxon(losses: FloatArray) -> FloatArray:
    import scikit_posthocs

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few datasets, or ties: scipy then warns that its result is approximate
        table = scikit_posthocs.posthoc_wilcoxon(list(losses.T), zero_method="zsplit", p_adjust="holm")
    return np.asarray(table, dtype=np.float64)


def _bayes(one: FloatArray, control: FloatArray, rope: float, seed: int) -> tuple[float, float, float]:
    """Bayesian signed-rank test of Benavoli et al. (ICML 2014): probabilities of a smaller, equal and greater loss.

    A Dirichlet process with prior strength 1/2 at zero weighs the differences; of the sums of two differences, the mass
    above and below twice the rope is compared in each draw. The draws are those of ``baycomp.SignedRankTest`` with the
    same seed, which sums in a loop; here each draw is one row of a matrix product.
    """
    # the first difference is the prior's pseudo-observation
    differences = np.concatenate([[0.0], control - one])
    sums = np.add.outer(differences, differences)
    strength = np.ones(len(differences))
    strength[0] = 0.5
    draws = np.random.RandomState(seed).dirichlet(strength, POSTERIOR_DRAWS)  # the generator that baycomp uses
    worse, better = (((draws @ np.heaviside(sign * sums - 2 * rope, 0.5)) * draws).sum(axis=1) for sign in (-1.0, 1.0))
    most = np.argmax(np.column_stack([worse, 1.0 - worse - better, better]), axis=1)
    p_worse, p_equal, p_better = np.bincount(most, minlength=3) / POSTERIOR_DRAWS
    return float(p_better), float(p_equal), float(p_worse)


@dataclass(frozen=True, eq=False)
class PairTests:
    """Corrected resampled t-tests within each dataset.

    Attributes
    ----------
    measure : str
        The measure.
    p_values : dict
        From (dataset, candidate, other candidate) to the p value; pairs without a test are not in it.
    better : dict
        From the same key to whether the first candidate's mean is better.
    alpha : float
        The level.
    reasons : dict
        For each dataset without tests, why.

    Examples
    --------
    >>> from skldl.experiments.statistics import PairTests
    >>> key = ("toy", "SA-BFGS", "Mean")
    >>> tests = PairTests("clark", {key: 0.01}, {key: True}, alpha=0.05, reasons={})
    >>> tests.mark(*key), tests.count("SA-BFGS", "Mean")
    ('win', (1, 0, 0))
    """

    measure: str
    p_values: dict[tuple[str, str, str], float]
    better: dict[tuple[str, str, str], bool]
    alpha: float
    reasons: dict[str, str]

    def mark(self, dataset: str, one: str, other: str) -> str:
        """Return whether a candidate wins, ties or loses against another on a dataset.

        Parameters
        ----------
        dataset, one, other : str
            Names.

        Returns
        -------
        {"win", "tie", "loss", ""}
            Empty if there is no test.
        """
        key = (dataset, one, other)
        if key not in self.p_values:
            return ""
        if self.p_values[key] >= self.alpha:
            return "tie"
        return "win" if self.better[key] else "loss"

    def count(self, one: str, other: str) -> tuple[int, int, int]:
        """Count wins, ties and losses of a candidate against another over all datasets.

        Parameters
        ----------
        one, other : str
            Names.

        Returns
        -------
        wins, ties, losses : int
            The counts.
        """
        marks = [self.mark(*key) for key in self.p_values if key[1:] == (one, other)]
        return marks.count("win"), marks.count("tie"), marks.count("loss")


def pair_tests(results: StudyResults, measure: str, *, alpha: float = ALPHA) -> PairTests:
    """Test every pair of candidates on every dataset, with the variance corrected for overlapping training parts.

    Parameters
    ----------
    results : StudyResults
        The results.
    measure : str
        The measure.
    alpha : float, default=0.05
        The level.

    Returns
    -------
    PairTests
        p values and marks.

    Examples
    --------
    >>> from skldl.data import Dataset
    >>> from skldl.experiments import Candidate, Study, run_study
    >>> from skldl.experiments.statistics import pair_tests
    >>> from skldl.testing import make_distributions
    >>> candidates = [Candidate(name, f"skldl:{name}") for name in ("SABFGS", "MeanDistribution")]
    >>> results = run_study(Study([Dataset("toy", *make_distributions(90))], candidates, folds=5))
    >>> pair_tests(results, "kullback_leibler").mark("toy", "SABFGS", "MeanDistribution")
    'win'
    """
    sign = -1.0 if MEASURES[measure].higher_is_better else 1.0
    p_values: dict[tuple[str, str, str], float] = {}
    better: dict[tuple[str, str, str], bool] = {}
    reasons: dict[str, str] = {}
    for dataset in results.datasets:
        losses = {name: sign * results.values(measure, dataset, name) for name in results.candidates}
        n_folds = results.n_expected(dataset) // int(results.study["repeats"])
        if n_folds < 2:
            reasons[dataset] = "one test set: a t-test needs at least two folds"
            continue
        for one in results.candidates:
            for other in results.candidates:
                if one != other and len(losses[one]) and len(losses[other]):
                    key = (dataset, one, other)
                    p_values[key] = _corrected_t(losses[one], losses[other], int(results.study["repeats"]))
                    better[key] = bool(losses[one].mean() < losses[other].mean())
    return PairTests(measure, p_values, better, alpha, reasons)


def _corrected_t(one: FloatArray, other: FloatArray, repeats: int) -> float:
    from baycomp.single import CorrelatedTTest

    mean, variance, degrees = CorrelatedTTest.compute_statistics(one, other, repeats)
    scale = max(float(np.abs(one).mean()), float(np.abs(other).mean()))
    if np.sqrt(variance) <= 1e-12 * scale:  # the same difference in every fold, up to rounding errors
        return 1.0 if abs(mean) <= 1e-12 * scale else 0.0
    return float(2 * stats.t.sf(abs(mean) / np.sqrt(variance), degrees))


def is_tie(one: float, other: float) -> bool:
    """Whether two means differ by nothing but rounding errors: then they share their rank."""
    # means over folds are sums in different orders on different machines; losses below 1e-15 are rounding errors of 0
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-15)


def rank_rows(means: FloatArray, *, higher_is_better: bool) -> FloatArray:
    """Rank the columns of each row, 1 for the best; ties get the average rank, NaN no rank.

    Examples
    --------
    >>> import numpy as np
    >>> rank_rows(np.array([[0.2, 0.1, 0.2]]), higher_is_better=False)
    array([[2.5, 1. , 2.5]])
    """
    ranks = np.full(means.shape, np.nan)
    for row, values in enumerate(means):
        places = [int(place) for place in np.argsort(values) if not np.isnan(values[place])]
        levels = np.empty(len(places))  # equal up to rounding errors means equal
        level = 0
        for i, place in enumerate(places):
            level += bool(i and not is_tie(values[places[i - 1]], values[place]))
            levels[i] = level
        ranks[row, places] = stats.rankdata(-levels if higher_is_better else levels)
    return ranks


def nemenyi_difference(n_candidates: int, n_datasets: int, alpha: float) -> float:
    """The critical difference of average ranks between any two candidates, by the test of Nemenyi at a level."""
    spread = np.sqrt(n_candidates * (n_candidates + 1) / (6 * n_datasets))
    return float(stats.studentized_range.ppf(1 - alpha, n_candidates, np.inf) / np.sqrt(2) * spread)


def family_name(datasets: list[str]) -> str:
    """Name a family by what the names of its datasets begin with.

    Examples
    --------
    >>> family_name(["Yeast_alpha", "Yeast_cdc"]), family_name(["Movie"]), family_name(["a", "b"])
    ('Yeast', 'Movie', 'a, b')
    """
    if len(datasets) == 1:
        return datasets[0]
    first, last = min(datasets), max(datasets)
    shared = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:shared].rstrip("_- ") or ", ".join(datasets)

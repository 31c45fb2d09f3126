"""What the paper says in words about its results, checked one by one on the results of a study."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from skldl.data._spelling import plain
from skldl.experiments.output.published import load_published
from skldl.experiments.output.tables import losses_of, rank_rows
from skldl.experiments.results import StudyResults
from skldl.metrics import MEASURES, PAPER_MEASURES

SIX = ("PT-Bayes", "PT-SVM", "AA-kNN", "AA-BP", "SA-IIS", "SA-BFGS")
PUBLISHED_ORDER = ("SA-BFGS", "SA-IIS", "AA-kNN", "PT-SVM", "AA-BP", "PT-Bayes")
_NOT_ALL_SIX = "Not all six algorithms took part."
HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "cannot be checked here"


@dataclass(frozen=True)
class Verdict:
    """A claim and what became of it.

    Attributes
    ----------
    claim : str
        What the paper says.
    verdict : str
        Whether it holds on our results.
    evidence : str
        The figures behind the verdict.
    """

    claim: str
    verdict: str
    evidence: str


@dataclass(frozen=True)
class Board:
    """Losses of the algorithms of the paper, ours or the published ones.

    Attributes
    ----------
    datasets, artificial : list of str
        The real datasets, and the artificial one if it is there.
    algorithms : list of str
        Those of the six that took part.
    losses : dict
        From measure to an array (n_datasets + n_artificial, n_algorithms).
    """

    datasets: list[str]
    artificial: list[str]
    algorithms: list[str]
    losses: dict[str, np.ndarray]

    def ranks(self, measure: str) -> np.ndarray:
        """Average rank of each algorithm over the real datasets, among the algorithms of the paper only."""
        return np.asarray(self._rank_rows(measure)[: len(self.datasets)].mean(axis=0))

    def artificial_ranks(self) -> np.ndarray:
        """Average rank of each algorithm on the artificial dataset over all measures."""
        return np.asarray(np.mean([self._rank_rows(m)[-1] for m in self.losses], axis=0))

    def _rank_rows(self, measure: str) -> np.ndarray:
        return rank_rows(self.losses[measure], higher_is_better=False)

    @property
    def is_complete(self) -> bool:
        """Whether all six took part."""
        return len(self.algorithms) == len(SIX)

    def place(self, algorithm: str) -> int:
        """Column of an algorithm."""
        return self.algorithms.index(algorithm)


def board_of(results: StudyResults) -> Board:
    """Take the losses of the paper's algorithms out of the results of a study.

    Parameters
    ----------
    results : StudyResults
        The results.

    Returns
    -------
    Board
        The losses, on datasets where nothing failed.
    """
    known = {plain(name): name for name in SIX}
    columns = {known[plain(c)]: j for j, c in enumerate(results.candidates) if plain(c) in known}
    algorithms = [name for name in SIX if name in columns]
    measures = [measure for measure in results.measures if measure in PAPER_MEASURES]
    losses = {m: losses_of(results, m)[:, [columns[a] for a in algorithms]] for m in measures}
    whole = [i for i in range(len(results.datasets)) if not any(np.isnan(table[i]).any() for table in losses.values())]
    artificial = [i for i in whole if plain(results.datasets[i]) == "artificial"]
    order = [i for i in whole if i not in artificial] + artificial
    return Board(
        [results.datasets[i] for i in whole if i not in artificial],
        [results.datasets[i] for i in artificial],
        algorithms,
        {measure: table[order] for measure, table in losses.items()},
    )


def published_board(datasets: list[str]) -> Board:
    """Take the losses of the paper's own tables, on the same real datasets.

    Parameters
    ----------
    datasets : list of str
        Names of real datasets; those that the paper does not have are left out.

    Returns
    -------
    Board
        The published losses.
    """
    cells = {(plain(c.dataset), c.algorithm, c.measure): c.mean for c in load_published()}
    rows = [name for name in datasets if (plain(name), SIX[0], "clark") in cells]
    losses = {}
    for measure in PAPER_MEASURES:
        means = np.array([[cells[plain(row), a, measure] for a in SIX] for row in [*rows, "Artificial"]])
        losses[measure] = 1 - means if MEASURES[measure].higher_is_better else means
    return Board(rows, ["Artificial"], list(SIX), losses)


def check_claims(results: StudyResults) -> list[Verdict]:
    """Check the paper's claims on the results of a study.

    Parameters
    ----------
    results : StudyResults
        The results.

    Returns
    -------
    list of Verdict
        One verdict per claim; the claim about training time stands with the time table.
    """
    board = board_of(results)
    if len(board.algorithms) < 2 or not board.datasets:
        return []
    checks: list[Callable[[Board], Verdict]] = [
        *(_order_claim(measure) for measure in board.losses),
        *(_pair_claim(*pair) for pair in _PAIRS),
        _specialised,
        _best_in_most,
        _measures_differ,
        _artificial_order,
    ]
    verdicts = [check(board) for check in checks]
    return [*verdicts, _near_zero(results, board), *_beats_the_mean(results, board)]


def _show(algorithms: list[str], ranks: np.ndarray) -> str:
    order = np.argsort(ranks, kind="stable")
    text = f"{algorithms[order[0]]} {ranks[order[0]]:.2f}"
    for before, after in pairwise(order):
        sign = "=" if ranks[before] == ranks[after] else "≻"
        text += f" {sign} {algorithms[after]} {ranks[after]:.2f}"
    return text


def _order_claim(measure: str) -> Callable[[Board], Verdict]:
    title = MEASURES[measure].title
    tied = " with PT-SVM = AA-BP" if measure == "chebyshev" else ""
    claim = f"Average ranks on {title}: {' ≻ '.join(PUBLISHED_ORDER)}{tied}."

    def check(board: Board) -> Verdict:
        if not board.is_complete:
            return Verdict(claim, UNKNOWN, _NOT_ALL_SIX)
        ranks = board.ranks(measure)
        steps = [(board.place(one), board.place(other)) for one, other in pairwise(PUBLISHED_ORDER)]
        kept = sum(bool(ranks[one] < ranks[other] or (tied and ranks[one] == ranks[other])) for one, other in steps)
        verdict = HOLDS if kept == len(steps) else PARTLY if kept else FAILS
        paper = published_board(board.datasets)
        evidence = f"Ours: {_show(board.algorithms, ranks)}; {kept} of {len(steps)} steps of the order."
        if paper.datasets:
            evidence += f" The paper's numbers on the same datasets: {_show(paper.algorithms, paper.ranks(measure))}."
        return Verdict(claim, verdict, evidence)

    return check


_PAIRS = (
    ("SA-BFGS", "SA-IIS", "SA-BFGS improves on SA-IIS by a better optimisation."),
    ("AA-kNN", "PT-SVM", "AA-kNN is better than PT-SVM, because it keeps the distributions whole."),
    ("AA-kNN", "AA-BP", "AA-BP is worse than its sibling AA-kNN: its many parameters overfit."),
    (
        "PT-SVM",
        "PT-Bayes",
        "PT-Bayes is worse than its sibling PT-SVM: its Gaussian assumption does not fit real data.",
    ),
)


def _pair_claim(winner: str, loser: str, claim: str) -> Callable[[Board], Verdict]:
    def check(board: Board) -> Verdict:
        if winner not in board.algorithms or loser not in board.algorithms:
            return Verdict(claim, UNKNOWN, f"{winner} or {loser} did not take part.")
        one, other = board.place(winner), board.place(loser)
        told, kept = [], 0
        for measure in board.losses:
            ranks = board.ranks(measure)
            kept += bool(ranks[one] < ranks[other])
            told.append(f"{MEASURES[measure].title} {ranks[one]:.2f} : {ranks[other]:.2f}")
        verdict = HOLDS if kept == len(board.losses) else PARTLY if kept else FAILS
        return Verdict(claim, verdict, f"Average ranks {winner} : {loser}: {', '.join(told)}.")

    return check


def _specialised(board: Board) -> Verdict:
    claim = "The specialised algorithms (SA-IIS, SA-BFGS) are generally better than the other four."
    if not board.is_complete:
        return Verdict(claim, UNKNOWN, _NOT_ALL_SIX)
    special = [board.place(name) for name in board.algorithms if name.startswith("SA-")]
    others = [board.place(name) for name in board.algorithms if not name.startswith("SA-")]
    told, kept = [], 0
    for measure in board.losses:
        ranks = board.ranks(measure)
        kept += bool(ranks[special].max() < ranks[others].min())
        told.append(f"{MEASURES[measure].title} {ranks[special].mean():.2f} : {ranks[others].mean():.2f}")
    verdict = HOLDS if kept == len(board.losses) else PARTLY if kept else FAILS
    return Verdict(
        claim,
        verdict,
        f"Mean of average ranks, specialised : other: {', '.join(told)}; both SA first on {kept} measures.",
    )


def _best_in_most(board: Board) -> Verdict:
    claim = "SA-BFGS achieves the best performance in most cases."
    if not board.is_complete:
        return Verdict(claim, UNKNOWN, _NOT_ALL_SIX)
    tables = [table[: len(board.datasets)] for table in board.losses.values()]
    wins = np.sum([(table == table.min(axis=1, keepdims=True)).sum(axis=0) for table in tables], axis=0)
    cases = len(tables) * len(board.datasets)
    counts = ", ".join(f"{name} {int(count)}" for name, count in zip(board.algorithms, wins, strict=True))
    own = int(wins[board.place("SA-BFGS")])
    verdict = HOLDS if own > cases / 2 else PARTLY if own == wins.max() else FAILS
    return Verdict(claim, verdict, f"Best in how many of {cases} cells, among the algorithms of the paper: {counts}.")


def _measures_differ(board: Board) -> Verdict:
    claim = "On a given dataset the ranking often differs between measures."
    tables = [rank_rows(table, higher_is_better=False)[: len(board.datasets)] for table in board.losses.values()]
    differing = sum(any((table[i] != tables[0][i]).any() for table in tables) for i in range(len(board.datasets)))
    verdict = HOLDS if differing > len(board.datasets) / 2 else PARTLY if differing else FAILS
    return Verdict(
        claim, verdict, f"Rankings differ between measures on {differing} of {len(board.datasets)} datasets."
    )


def _artificial_order(board: Board) -> Verdict:
    claim = "On the artificial dataset: SA-BFGS = SA-IIS ≻ PT-Bayes ≻ AA-kNN ≻ AA-BP ≻ PT-SVM."
    if not board.artificial or not board.is_complete:
        return Verdict(claim, UNKNOWN, "The artificial dataset or some of the six algorithms did not take part.")
    ranks = board.artificial_ranks()
    expected = ("SA-BFGS", "SA-IIS", "PT-Bayes", "AA-kNN", "AA-BP", "PT-SVM")
    steps = list(pairwise(board.place(name) for name in expected))
    kept = sum(bool(ranks[one] <= ranks[other]) for one, other in steps)
    verdict = HOLDS if kept == len(steps) else PARTLY if kept else FAILS
    return Verdict(
        claim, verdict, f"Ours: {_show(board.algorithms, ranks)}; {kept} of {len(steps)} steps of the order."
    )


def _near_zero(results: StudyResults, board: Board) -> Verdict:
    claim = "Clark and Canberra are large on Natural Scene, whatever the algorithm: many of its degrees are near zero."
    scene = next((name for name in board.datasets if plain(name) == "naturalscene"), None)
    if scene is None or len(board.datasets) < 2 or "clark" not in board.losses:
        return Verdict(claim, UNKNOWN, "Natural Scene, another dataset or the Clark distance did not take part.")
    place = board.datasets.index(scene)
    smallest = board.losses["clark"][place].min()
    rest = np.delete(board.losses["clark"][: len(board.datasets)], place, axis=0).max()
    shares = {name: results.info[name]["near_zero_share"] for name in board.datasets}
    most = max(share for name, share in shares.items() if name != scene)
    verdict = HOLDS if smallest > rest and shares[scene] > most else PARTLY if shares[scene] > most else FAILS
    bound = np.sqrt(results.info[scene]["n_labels"])
    return Verdict(
        claim,
        verdict,
        f"The least Clark distance there is {smallest:.3f} (its upper bound is {bound:.0f}), the greatest on any other "
        f"dataset {rest:.3f}. Degrees below 0.01: {shares[scene]:.1%} there, at most {most:.1%} elsewhere. Each "
        "of them adds almost 1 to both sums unless the prediction is as near to zero.",
    )


def _beats_the_mean(results: StudyResults, board: Board) -> list[Verdict]:
    claim = "(Not asked in the paper) Every algorithm beats the mean of the training distributions."
    mean = results.candidates.index(results.baseline)
    rows = [results.datasets.index(name) for name in board.datasets]
    told, total = [], 0
    for algorithm in board.algorithms:
        column = next(j for j, name in enumerate(results.candidates) if plain(name) == plain(algorithm))
        wins = sum(
            int(np.sum(losses_of(results, m)[rows, column] < losses_of(results, m)[rows, mean])) for m in board.losses
        )
        told.append(f"{algorithm} {wins}")
        total += wins
    cells = len(rows) * len(board.losses)
    verdict = HOLDS if total == cells * len(board.algorithms) else PARTLY if total else FAILS
    return [Verdict(claim, verdict, f"In how many of {cells} cells it does: {', '.join(told)}.")]


def speed_claim(results: StudyResults) -> Verdict:
    """Check that SA-BFGS trains faster than SA-IIS, by the fits of a study.

    Parameters
    ----------
    results : StudyResults
        The results.

    Returns
    -------
    Verdict
        The verdict; it holds times, so that it stands with the time table and nowhere else.
    """
    claim = "Training SA-BFGS is much faster than training SA-IIS."
    columns = {plain(name): j for j, name in enumerate(results.candidates)}
    if not {"sabfgs", "saiis"} <= set(columns):
        return Verdict(claim, UNKNOWN, "SA-BFGS or SA-IIS did not take part.")
    seconds = results.means("fit_seconds")
    ratios = seconds[:, columns["saiis"]] / seconds[:, columns["sabfgs"]]
    ratios = ratios[np.isfinite(ratios)]
    if not len(ratios):
        return Verdict(claim, UNKNOWN, "Both failed.")
    faster = int(np.sum(ratios > 1))
    verdict = HOLDS if faster == len(ratios) else PARTLY if faster else FAILS
    return Verdict(
        claim,
        verdict,
        f"SA-BFGS was faster on {faster} of {len(ratios)} datasets; the ratio of times goes from {ratios.min():.2g} to "
        f"{ratios.max():.2g}, median {np.median(ratios):.2g}. Both are fitted with the setting that selection chose.",
    )


def claims_text(verdicts: list[Verdict]) -> str:
    """Write verdicts as Markdown.

    Parameters
    ----------
    verdicts : list of Verdict
        The verdicts.

    Returns
    -------
    str
        Markdown.
    """
    lines = ["# What the paper says, checked on our results", ""]
    for number, verdict in enumerate(verdicts, start=1):
        lines += [f"{number}. {verdict.claim}", f"   **{verdict.verdict}.** {verdict.evidence}", ""]
    lines.append("The claim about training time is checked in `tables/time.md`.")
    return "\n".join(lines) + "\n"

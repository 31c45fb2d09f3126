"""Claims of the paper about its results, checked one by one on the results of a study.

A claim that compares algorithms is counted in cells (dataset × measure), family by family of datasets that share their
features: it holds in a family if it does in more than half of its cells, and it holds if it does in every family.
Causes that the paper names are left out: a comparison of results cannot test them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from skldl.data._spelling import plain
from skldl.experiments.output.board import Board, board_of, published_board
from skldl.experiments.output.scores import losses_of, rank_rows
from skldl.experiments.results import StudyResults
from skldl.metrics import MEASURES

USUAL_ORDER = "SA-BFGS ≻ SA-IIS ≻ AA-kNN ≻ PT-SVM ≻ AA-BP ≻ PT-Bayes"
ORDERS = {"chebyshev": "SA-BFGS ≻ SA-IIS ≻ AA-kNN ≻ PT-SVM = AA-BP ≻ PT-Bayes"}  # other measures: the usual one
ARTIFICIAL_ORDER = "SA-BFGS = SA-IIS ≻ PT-Bayes ≻ AA-kNN ≻ AA-BP ≻ PT-SVM"
_NOT_ALL_SIX = "Not all six algorithms took part."
HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "cannot be checked here"
RULE = (
    "A claim is counted in cells (dataset × measure). It holds in a family of datasets that share their features if it "
    "does in more than half of the cells there, and it holds altogether only if it does so in every family. Causes "
    "that the paper names are not checked: comparing results cannot test them."
)


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, whether it holds on our results, and the figures behind the verdict."""

    claim: str
    verdict: str
    evidence: str


def check_claims(results: StudyResults) -> list[Verdict]:
    """Check the paper's claims on the results of a study; the claim about training time is with the time table."""
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
    return [*verdicts, _near_zero(results, board), _beats_the_mean(results, board)]


def _by_family(board: Board, counts: dict[str, int], needed: Callable[[int], float], per_cell: int = 1) -> str:
    """The verdict that follows from counts: in how many families they exceed what is needed of the cells there."""
    return _in_families([counts[family] > needed(per_cell * board.cells(family)) for family in board.families])


def _in_families(kept: list[bool]) -> str:
    if all(kept):
        return HOLDS
    return f"holds in {sum(kept)} of {len(kept)} families" if any(kept) else FAILS


def _half(cells: int) -> float:
    return cells / 2


def _show(algorithms: list[str], ranks: np.ndarray) -> str:
    order = np.argsort(ranks, kind="stable")
    text = f"{algorithms[order[0]]} {ranks[order[0]]:.2f}"
    for before, after in pairwise(order):
        sign = "=" if np.isclose(ranks[before], ranks[after]) else "≻"
        text += f" {sign} {algorithms[after]} {ranks[after]:.2f}"
    return text


def _steps(order: str, algorithms: list[str], ranks: np.ndarray) -> list[bool]:
    """For each step of an order, whether the ranks keep it: ``≻`` a lower rank, ``=`` an equal one.

    Examples
    --------
    >>> _steps("a ≻ b = c", ["a", "b", "c"], np.array([1.0, 1.0, 2.0]))
    [False, False]
    """
    words = order.split()
    places = [algorithms.index(name) for name in words[::2]]
    kept = []
    for sign, (one, other) in zip(words[1::2], pairwise(places), strict=True):
        tied = bool(np.isclose(ranks[one], ranks[other]))
        kept.append(tied if sign == "=" else bool(ranks[one] < ranks[other]) and not tied)
    return kept


def _order_claim(measure: str) -> Callable[[Board], Verdict]:
    order = ORDERS.get(measure, USUAL_ORDER)
    claim = f"Average ranks on {MEASURES[measure].title}: {order}."

    def check(board: Board) -> Verdict:
        if not board.is_complete:
            return Verdict(claim, UNKNOWN, _NOT_ALL_SIX)
        by_set, by_family = board.ranks(measure), board.family_ranks(measure)
        kept, kept_by_family = (_steps(order, board.algorithms, ranks) for ranks in (by_set, by_family))
        found = [*kept, *kept_by_family]
        verdict = HOLDS if all(found) else PARTLY if any(found) else FAILS
        steps = f"of {len(kept)} steps"
        evidence = f"Every dataset counted once: {_show(board.algorithms, by_set)}; {sum(kept)} {steps}."
        if len(board.families) < len(board.datasets):
            shown = _show(board.algorithms, by_family)
            evidence += f" Every family counted once: {shown}; {sum(kept_by_family)} {steps}."
        paper = published_board(board.families)
        if paper.datasets:
            evidence += f" The paper's numbers on the same datasets: {_show(paper.algorithms, paper.ranks(measure))}."
        return Verdict(claim, verdict, evidence)

    return check


_PAIRS = (("SA-BFGS", "SA-IIS"), ("AA-kNN", "PT-SVM"), ("AA-kNN", "AA-BP"), ("PT-SVM", "PT-Bayes"))


def _pair_claim(winner: str, loser: str) -> Callable[[Board], Verdict]:
    claim = f"{winner} performs better than {loser}."

    def counts(board: Board) -> dict[str, int]:
        one, other = board.place(winner), board.place(loser)
        return board.count(lambda losses: losses[:, one] < losses[:, other])

    def check(board: Board) -> Verdict:
        if winner not in board.algorithms or loser not in board.algorithms:
            return Verdict(claim, UNKNOWN, f"{winner} or {loser} did not take part.")
        evidence = f"Cells in which {winner} is better: {board.describe(counts(board))}."
        paper = published_board(board.families)
        if paper.datasets:
            evidence += f" In the paper's own numbers: {paper.describe(counts(paper))}."
        return Verdict(claim, _by_family(board, counts(board), _half), evidence)

    return check


def _specialised(board: Board) -> Verdict:
    claim = "The specialised algorithms (SA-IIS, SA-BFGS) are generally better than the other four."
    if not board.is_complete:
        return Verdict(claim, UNKNOWN, _NOT_ALL_SIX)
    special = [board.place(name) for name in board.algorithms if name.startswith("SA-")]
    others = [board.place(name) for name in board.algorithms if not name.startswith("SA-")]
    pairs = len(special) * len(others)
    counts = board.count(lambda losses: losses[:, special, None] < losses[:, None, others])
    both = board.count(lambda losses: losses[:, special].max(axis=1) < losses[:, others].min(axis=1))
    return Verdict(
        claim,
        _by_family(board, counts, _half, pairs),
        f"Comparisons, {pairs} in each cell, that the specialised one wins: {board.describe(counts, per_cell=pairs)}. "
        f"Cells in which both are better than all four others: {board.describe(both)}.",
    )


def _is_best(column: int, losses: np.ndarray) -> np.ndarray:
    return np.asarray(losses[:, column] == losses.min(axis=1))


def _best_in_most(board: Board) -> Verdict:
    claim = "SA-BFGS achieves the best performance in most cases."
    if not board.is_complete:
        return Verdict(claim, UNKNOWN, _NOT_ALL_SIX)
    best = {name: board.count(partial(_is_best, j)) for j, name in enumerate(board.algorithms)}
    text = "; ".join(f"{name} {board.describe(counts)}" for name, counts in best.items() if any(counts.values()))
    never = [name for name, counts in best.items() if not any(counts.values())]
    text += f"; {', '.join(never)} in none" if never else ""
    return Verdict(
        claim,
        _by_family(board, best["SA-BFGS"], _half),
        f"Best cells among the algorithms of the paper: {text}.",
    )


def _measures_differ(board: Board) -> Verdict:
    claim = "On a given dataset the ranking often differs between measures."
    tables = [rank_rows(table, higher_is_better=False) for table in board.losses.values()]
    differs = {
        family: sum(
            any((table[i] != tables[0][i]).any() for table in tables)
            for i in range(*board.rows(family).indices(len(board.datasets)))
        )
        for family in board.families
    }
    verdict = _in_families([count > len(board.families[family]) / 2 for family, count in differs.items()])
    text = ", ".join(f"{family} {count} of {len(board.families[family])}" for family, count in differs.items())
    return Verdict(claim, verdict, f"Datasets on which rankings differ between measures: {text}.")


def _artificial_order(board: Board) -> Verdict:
    claim = f"On the artificial dataset: {ARTIFICIAL_ORDER}."
    if not board.artificial or not board.is_complete:
        return Verdict(claim, UNKNOWN, "The artificial dataset or some of the six algorithms did not take part.")
    ranks = board.artificial_ranks()
    kept = _steps(ARTIFICIAL_ORDER, board.algorithms, ranks)
    return Verdict(
        claim,
        HOLDS if all(kept) else PARTLY if any(kept) else FAILS,
        f"Ours: {_show(board.algorithms, ranks)}; {sum(kept)} of {len(kept)} steps of the order. One training set and "
        "one test set: there is no deviation to judge it by.",
    )


def _near_zero(results: StudyResults, board: Board) -> Verdict:
    claim = "Clark and Canberra are larger on Natural Scene than on other datasets, for every algorithm."
    scene = next((name for name in board.datasets if plain(name) == "naturalscene"), None)
    if scene is None or len(board.datasets) < 2 or not {"clark", "canberra"} <= set(board.losses):
        return Verdict(claim, UNKNOWN, "Natural Scene, another dataset or one of the two distances did not take part.")
    place, n_labels = board.datasets.index(scene), results.info[scene]["n_labels"]
    parts, kept = [], 0
    for measure, bound in (("clark", np.sqrt(n_labels)), ("canberra", n_labels)):
        smallest = board.losses[measure][place].min()
        rest = np.delete(board.losses[measure][: len(board.datasets)], place, axis=0).max()
        kept += bool(smallest > rest)
        parts.append(
            f"{MEASURES[measure].title} there at least {smallest:.3f} (upper bound {bound:.3g}), elsewhere at most "
            f"{rest:.3f}"
        )
    shares = {name: results.info[name]["near_zero_share"] for name in board.datasets}
    most = max(share for name, share in shares.items() if name != scene)
    return Verdict(
        claim,
        (FAILS, PARTLY, HOLDS)[kept],
        f"{'; '.join(parts)}. Degrees below 0.01: {shares[scene]:.1%} there, at most {most:.1%} elsewhere.",
    )


def _beats_the_mean(results: StudyResults, board: Board) -> Verdict:
    claim = "(Not asked in the paper) Every algorithm beats the mean of the training distributions."
    mean = results.candidates.index(results.baseline)
    rows = [results.datasets.index(name) for name in board.datasets]
    baseline = {measure: losses_of(results, measure)[rows, mean] for measure in board.losses}
    parts, totals = [], dict.fromkeys(board.families, 0)
    for j, algorithm in enumerate(board.algorithms):
        wins = {}
        for family in board.families:
            rows_of = board.rows(family)
            wins[family] = int(sum(np.sum(t[rows_of, j] < baseline[m][rows_of]) for m, t in board.losses.items()))
        totals = {family: totals[family] + wins[family] for family in totals}
        parts.append(f"{algorithm} {board.describe(wins)}")
    n_algorithms = len(board.algorithms)
    return Verdict(
        claim,
        _by_family(board, totals, lambda cells: cells - 1, n_algorithms),
        f"Here a family counts only if every algorithm wins every cell of it. Cells won: {'; '.join(parts)}.",
    )


def speed_claim(results: StudyResults) -> Verdict:
    """Check by the fits of a study that SA-BFGS trains faster than SA-IIS; times differ from run to run."""
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
    """Write verdicts as Markdown."""
    lines = ["# Claims of the paper, checked on our results", "", RULE, ""]
    for number, verdict in enumerate(verdicts, start=1):
        lines += [f"{number}. {verdict.claim}", f"   **{verdict.verdict}.** {verdict.evidence}", ""]
    lines.append("The claim about training time is checked in `tables/time.md`.")
    return "\n".join(lines) + "\n"

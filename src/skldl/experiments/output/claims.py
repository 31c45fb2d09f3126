"""Claims of the paper about its results, checked one by one on the results of a study.

A claim that compares algorithms is counted in cells (dataset × measure), family by family of datasets that share their
features: it holds in a family if it does in more than half of its cells, and it holds if it does in every family. An
order of average ranks holds only if every step of it does. Causes that the paper names are left out: a comparison of
results cannot test them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from scipy import stats

from skldl.data._spelling import plain
from skldl.experiments.output.board import Board, board_of, published_board
from skldl.experiments.output.scores import losses_of, rank_rows
from skldl.experiments.results import StudyResults
from skldl.metrics import MEASURES

USUAL_ORDER = "SA-BFGS ≻ SA-IIS ≻ AA-kNN ≻ PT-SVM ≻ AA-BP ≻ PT-Bayes"
ORDERS = {"chebyshev": "SA-BFGS ≻ SA-IIS ≻ AA-kNN ≻ PT-SVM = AA-BP ≻ PT-Bayes"}  # other measures: the usual one
ARTIFICIAL_ORDER = "SA-BFGS = SA-IIS ≻ PT-Bayes ≻ AA-kNN ≻ AA-BP ≻ PT-SVM"
_NOT_ALL_SIX = "Not all six algorithms took part."
HOLDS_BY_DATASET = "holds, but not with every family counted once"
HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "cannot be checked here"
RULE = (
    "A claim that compares algorithms is counted in cells (dataset × measure). It holds in a family of datasets that "
    "share their features if it does in more than half of the cells there, and it holds altogether only if it does so "
    "in every family. An order of average ranks holds only if every step of it does; one drawn at random keeps half of "
    "its steps on average. Kendall's τ is 1 for the same order, -1 for the reverse one, and 0 on average for one drawn "
    "at random. Claims with a rule of their own state it. Causes that the paper names are not checked: comparing "
    "results cannot test them."
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


def _kept(order: str, algorithms: list[str], ranks: np.ndarray) -> tuple[bool, str]:
    """Whether all steps of an order are kept; and in words how many, and Kendall's rank correlation."""
    kept = _steps(order, algorithms, ranks)
    words = order.split()
    places = np.cumsum([0, *(sign != "=" for sign in words[1::2])])
    tau = stats.kendalltau(places, [ranks[algorithms.index(name)] for name in words[::2]]).statistic
    return all(kept), f"{sum(kept)} of {len(kept)} steps, τ = {tau:.2f}"


def _order_claim(measure: str) -> Callable[[Board], Verdict]:
    order = ORDERS.get(measure, USUAL_ORDER)
    claim = f"Average ranks on {MEASURES[measure].title}: {order}."

    def check(board: Board) -> Verdict:
        if not board.is_complete:
            return Verdict(claim, UNKNOWN, _NOT_ALL_SIX)
        by_set, by_family = board.ranks(measure), board.family_ranks(measure)
        holds, steps = _kept(order, board.algorithms, by_set)
        verdict = HOLDS if holds else FAILS
        evidence = f"Every dataset counted once: {_show(board.algorithms, by_set)} ({steps})."
        if len(board.families) < len(board.datasets):
            holds_by_family, steps = _kept(order, board.algorithms, by_family)
            verdict = HOLDS_BY_DATASET if holds and not holds_by_family else verdict
            evidence += f" Every family counted once: {_show(board.algorithms, by_family)} ({steps})."
        paper = published_board(board.families)
        if paper.datasets:
            shown = _show(paper.algorithms, paper.ranks(measure))
            evidence += f" Ranks of the paper's printed means on the same datasets: {shown}."
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
    paper = published_board(board.families)
    text = f"SA-BFGS is best among the six in {_all_cells(board, best['SA-BFGS'])} cells"
    if paper.datasets:
        printed = paper.count(partial(_is_best, paper.place("SA-BFGS")))
        text += f", in the paper's printed means in {_all_cells(paper, printed)}, ties counted"
    each = "; ".join(f"{name} {board.describe(counts)}" for name, counts in best.items() if any(counts.values()))
    never = [name for name, counts in best.items() if not any(counts.values())]
    each += f"; {', '.join(never)} in none" if never else ""
    return Verdict(claim, _by_family(board, best["SA-BFGS"], _half), f"{text}. Best cells: {each}.")


def _all_cells(board: Board, counts: dict[str, int]) -> str:
    return f"{sum(counts.values())} of {sum(board.cells(family) for family in board.families)}"


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
    holds, steps = _kept(ARTIFICIAL_ORDER, board.algorithms, ranks)
    return Verdict(
        claim,
        HOLDS if holds else FAILS,
        f"Ours, average ranks over the measures: {_show(board.algorithms, ranks)} ({steps}). One training set and one "
        "test set: there is no deviation to judge it by.",
    )


def _near_zero(results: StudyResults, board: Board) -> Verdict:
    claim = "Clark and Canberra are larger on Human Gene and Natural Scene than on other datasets, for every algorithm."
    named = {plain(name): name for name in board.datasets if plain(name) in ("humangene", "naturalscene")}
    others = [name for name in board.datasets if name not in named.values()]
    if not named or not others or not {"clark", "canberra"} <= set(board.losses):
        return Verdict(claim, UNKNOWN, "Both datasets, all others or one of the two distances did not take part.")
    rest = [board.datasets.index(name) for name in others]
    parts, kept = [], []
    for name in named.values():
        place, n_labels = board.datasets.index(name), results.info[name]["n_labels"]
        for measure, bound in (("clark", np.sqrt(n_labels)), ("canberra", n_labels)):
            there, elsewhere = board.losses[measure][place], board.losses[measure][rest].max(axis=0)
            larger = int(np.sum(there > elsewhere))
            kept.append(larger == len(there))
            parts.append(
                f"{MEASURES[measure].title} on {name} is {there.min():.3f} to {there.max():.3f} (upper bound "
                f"{bound:.3g}), larger than on every other dataset for {larger} of {len(there)} algorithms (there at "
                f"most {elsewhere.max():.3f})"
            )
    shares = {name: results.info[name]["near_zero_share"] for name in board.datasets}
    near = ", ".join(f"{shares[name]:.1%} on {name}" for name in named.values())
    most = max(shares[name] for name in others)
    verdict = HOLDS if all(kept) else PARTLY if any(kept) else FAILS
    if len(named) < 2 and verdict == HOLDS:
        verdict = f"holds for {next(iter(named.values()))}"
        parts.append("the other of the two datasets did not take part")
    return Verdict(claim, verdict, f"{'; '.join(parts)}. Degrees below 0.01: {near}, at most {most:.1%} elsewhere.")


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
    claim = "Training SA-BFGS is much faster than training SA-IIS (said of the artificial dataset)."
    columns = {plain(name): j for j, name in enumerate(results.candidates)}
    if not {"sabfgs", "saiis"} <= set(columns):
        return Verdict(claim, UNKNOWN, "SA-BFGS or SA-IIS did not take part.")
    seconds = results.means("fit_seconds")
    quotients = seconds[:, columns["saiis"]] / seconds[:, columns["sabfgs"]]
    ratios = {name: ratio for name, ratio in zip(results.datasets, quotients, strict=True) if np.isfinite(ratio)}
    if not ratios:
        return Verdict(claim, UNKNOWN, "Both failed.")
    faster = sum(ratio > 1 for ratio in ratios.values())
    there = next((ratio for name, ratio in ratios.items() if plain(name) == "artificial"), None)
    known = "" if there is None else f"On the artificial dataset SA-IIS takes {_times(there)} as long. "
    slowest, fastest = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    return Verdict(
        claim,
        HOLDS if faster == len(ratios) else FAILS if not faster else f"holds on {faster} of {len(ratios)} datasets",
        f"{known}On all datasets from {_times(ratios[slowest])} ({slowest}) to {_times(ratios[fastest])} ({fastest}), "
        f"median {_times(float(np.median(list(ratios.values()))))}. Both are fitted with the setting that selection "
        "chose, SA-IIS often with few iterations and SA-BFGS to its optimum. The claim counts as kept where SA-BFGS "
        "is faster.",
    )


def _times(ratio: float) -> str:
    return f"{ratio:.2f} times" if ratio < 10 else f"{ratio:,.0f} times"


def claims_text(verdicts: list[Verdict]) -> str:
    """Write verdicts as Markdown."""
    lines = ["# Claims of the paper, checked on our results", "", RULE, ""]
    for number, verdict in enumerate(verdicts, start=1):
        lines += [f"{number}. {verdict.claim}", f"   **{verdict.verdict}.** {verdict.evidence}", ""]
    lines.append("The claim about training time is checked in `tables/time.md`.")
    return "\n".join(lines) + "\n"

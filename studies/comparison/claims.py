"""Claims of the paper about its results, checked one by one on the results of a study.

A claim that compares algorithms is counted in cells (dataset × measure), family by family of datasets that share their
features. Claims about time are in `time_claims`. Causes that the paper states are not checked: a comparison of results
cannot test them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from scipy import stats

from comparison.board import Board, board_of, published_board
from skldl.experiments.results import StudyResults
from skldl.experiments.statistics import ROPE
from skldl.metrics import MEASURES
from skldl.utils.spelling import plain
from skldl.utils.typing import FloatArray

USUAL_ORDER = "SA-BFGS ≻ SA-IIS ≻ AA-kNN ≻ PT-SVM ≻ AA-BP ≻ PT-Bayes"
ORDERS = {"chebyshev": "SA-BFGS ≻ SA-IIS ≻ AA-kNN ≻ PT-SVM = AA-BP ≻ PT-Bayes"}  # other measures: the usual one
ARTIFICIAL_ORDER = "SA-BFGS = SA-IIS ≻ PT-Bayes ≻ AA-kNN ≻ AA-BP ≻ PT-SVM"
_NOT_ALL_SIX = "Not all six algorithms took part."
HOLDS, PARTLY, FAILS, UNKNOWN = "holds", "holds in part", "does not hold", "cannot be checked here"
HOLDS_BY_DATASET = "holds, but not with every family counted once"
RULE = (
    "A claim that compares algorithms is counted in cells (dataset × measure). In a cell an algorithm is better if its "
    f"loss is more than {ROPE:.0%} below that of the other; otherwise there is no clear difference. A claim holds in a "
    "family of datasets that share their features if it does in more than half of the cells of the family, and it "
    "holds altogether only if it does so in every family. In a family where it does not hold, it is reversed if the "
    "other algorithm is better in more than half of the cells, mixed if one or the other is better in more than half "
    "of them but neither alone is, and without a clear difference otherwise. An order of average ranks holds if every "
    "step ≻ does, with every dataset counted once; = requires nothing. With every family counted once, ranks are first "
    "averaged in each family. In a random order, half the steps of an order without = hold on average. Kendall's τ-b "
    "is 1 for the same order with the same ties, -1 for the reverse order, and 0 on average for a random one. Claims "
    "with other rules state them. Causes that the paper states are not checked: comparing results cannot test them. "
    "Nor are claims without a quantitative criterion, such as clear advantages of specialised algorithms, PT "
    "algorithms that are slightly worse on the Chebyshev distance, or a PT-Bayes that is much worse on real data."
)


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, whether it holds on our results, and the figures behind the verdict."""

    claim: str
    verdict: str
    evidence: str


def check_claims(results: StudyResults) -> list[Verdict]:
    """Check the paper's claims on the results of a study, except those about time."""
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


def _in_families(kept: Sequence[str], n_families: int, **others: Sequence[str]) -> str:
    """The verdict of a claim that holds in some families; ``others`` maps each other outcome to its families.

    Examples
    --------
    >>> _in_families(["Movie"], 4, reversed=["SJAFFE"], no_clear_difference=["Yeast"])
    'does not hold, except in Movie; reversed in SJAFFE; no clear difference in Yeast'
    """
    if len(kept) == n_families:
        return HOLDS
    if len(kept) > n_families / 2:
        text = f"holds in {len(kept)} of {n_families} families"
    else:
        text = f"{FAILS}, except in {', '.join(kept)}" if kept else FAILS
    seen = [f"{what.replace('_', ' ')} in {', '.join(families)}" for what, families in others.items() if families]
    return "; ".join([text, *seen])


def _compare(board: Board, better: dict[str, int], worse: dict[str, int], per_cell: int = 1) -> str:
    """The verdict that follows from the numbers of cells in which an algorithm is better and worse."""
    seen: dict[str, list[str]] = {"kept": [], "reversed": [], "mixed": [], "no_clear_difference": []}
    for family in board.families:
        half = per_cell * board.cells(family) / 2
        counts = (better[family], worse[family], better[family] + worse[family], np.inf)
        what = next(what for what, count in zip(seen, counts, strict=True) if count > half)
        seen[what].append(family)
    return _in_families(n_families=len(board.families), **seen)


def _clearly_less(one: FloatArray, other: FloatArray) -> FloatArray:
    """Where a loss is below another by more than the fraction that makes no difference in practice."""
    return np.asarray(one < (1.0 - ROPE) * other)


def _show(algorithms: list[str], ranks: FloatArray) -> str:
    order = np.argsort(ranks, kind="stable")
    text = f"{algorithms[order[0]]} {ranks[order[0]]:.2f}"
    for before, after in pairwise(order):
        sign = "=" if np.isclose(ranks[before], ranks[after]) else "≻"
        text += f" {sign} {algorithms[after]} {ranks[after]:.2f}"
    return text


def _steps(order: str, algorithms: list[str], ranks: FloatArray) -> list[bool]:
    """For each step ``≻`` of an order, whether all ranks before it are below all ranks after it.

    Examples
    --------
    >>> _steps("a ≻ b = c ≻ d", ["a", "b", "c", "d"], np.array([1.0, 2.0, 3.5, 3.0]))
    [True, False]
    """
    groups = [[ranks[algorithms.index(name.strip())] for name in part.split("=")] for part in order.split("≻")]
    return [bool(max(one) < min(other) and not np.isclose(max(one), min(other))) for one, other in pairwise(groups)]


def _kept(order: str, algorithms: list[str], ranks: FloatArray) -> tuple[bool, str]:
    """Check whether all steps of an order hold; return also a text with their number and Kendall's rank correlation."""
    kept = _steps(order, algorithms, ranks)
    words = order.split()
    places = np.cumsum([0, *(sign != "=" for sign in words[1::2])])
    own = np.round([ranks[algorithms.index(name)] for name in words[::2]], 9)  # rounding errors must not break ties
    tau = "no τ: all ranks are equal" if np.ptp(own) == 0 else f"τ = {stats.kendalltau(places, own).statistic:.2f}"
    return all(kept), f"{sum(kept)} of {len(kept)} steps, {tau}"


def _order_on(order: str, board: Board, measure: str) -> tuple[str, str]:
    """The verdict on an order of average ranks, and the ranks with every dataset and every family counted once."""
    holds, steps = _kept(order, board.algorithms, board.ranks(measure))
    verdict = HOLDS if holds else FAILS
    shown = f"{_show(board.algorithms, board.ranks(measure))} ({steps})"
    if len(board.families) < len(board.datasets):
        holds_by_family, steps = _kept(order, board.algorithms, board.family_ranks(measure))
        verdict = HOLDS_BY_DATASET if holds and not holds_by_family else verdict
        shown += f", with every family counted once {_show(board.algorithms, board.family_ranks(measure))} ({steps})"
    return verdict, shown


def _order_claim(measure: str) -> Callable[[Board], Verdict]:
    order = ORDERS.get(measure, USUAL_ORDER)
    claim = f"Average ranks on {MEASURES[measure].title}: {order}."

    def check(board: Board) -> Verdict:
        if not board.is_complete:
            return Verdict(claim, UNKNOWN, _NOT_ALL_SIX)
        verdict, shown = _order_on(order, board, measure)
        evidence = f"Here: {shown}."
        paper = published_board(board)
        if paper.datasets:
            printed, shown = _order_on(order, paper, measure)
            number = f"{len(paper.datasets)} dataset{'s' if len(paper.datasets) != 1 else ''}"
            evidence += f" The ranks printed in the paper, on the same {number}: {shown}: {printed}."
        return Verdict(claim, verdict, evidence)

    return check


_PAIRS = (("SA-BFGS", "SA-IIS"), ("AA-kNN", "PT-SVM"), ("AA-kNN", "AA-BP"), ("PT-SVM", "PT-Bayes"))


def _pair_claim(winner: str, loser: str) -> Callable[[Board], Verdict]:
    claim = f"{winner} performs better than {loser}."

    def counts(board: Board) -> tuple[dict[str, int], dict[str, int]]:
        one, other = board.place(winner), board.place(loser)
        return (
            board.count(lambda losses: _clearly_less(losses[:, one], losses[:, other])),
            board.count(lambda losses: _clearly_less(losses[:, other], losses[:, one])),
        )

    def check(board: Board) -> Verdict:
        if winner not in board.algorithms or loser not in board.algorithms:
            return Verdict(claim, UNKNOWN, f"{winner} or {loser} did not take part.")
        better, worse = counts(board)
        evidence = f"Cells in which {winner} is better: {board.describe(better)}; worse: {board.describe(worse)}."
        paper = published_board(board)
        if paper.datasets:
            better_there, worse_there = map(paper.describe, counts(paper))
            evidence += f" In the paper's own numbers better: {better_there}; worse: {worse_there}."
        return Verdict(claim, _compare(board, better, worse), evidence)

    return check


def _specialised(board: Board) -> Verdict:
    claim = "The specialised algorithms (SA-IIS, SA-BFGS) are generally better than the other four."
    if not board.is_complete:
        return Verdict(claim, UNKNOWN, _NOT_ALL_SIX)
    special = [board.place(name) for name in board.algorithms if name.startswith("SA-")]
    others = [board.place(name) for name in board.algorithms if not name.startswith("SA-")]
    pairs = len(special) * len(others)

    def counts(table: Board) -> tuple[dict[str, int], dict[str, int]]:
        return (
            table.count(lambda losses: _clearly_less(losses[:, special, None], losses[:, None, others])),
            table.count(lambda losses: _clearly_less(losses[:, others, None], losses[:, None, special])),
        )

    better, worse = counts(board)
    text = (
        f"Comparisons, {pairs} in each cell, in which the specialised one is better: "
        f"{board.describe(better, per_cell=pairs)}; worse: {board.describe(worse, per_cell=pairs)}."
    )
    paper = published_board(board)
    if paper.datasets:
        better_there, worse_there = (paper.describe(count, per_cell=pairs) for count in counts(paper))
        text += f" In the paper's own numbers better: {better_there}; worse: {worse_there}."
    return Verdict(claim, _compare(board, better, worse, pairs), text)


def _is_best(column: int, losses: FloatArray) -> FloatArray:
    return np.asarray(losses[:, column] == losses.min(axis=1))


def _best_in_most(board: Board) -> Verdict:
    claim = "SA-BFGS achieves the best performance in most cases."
    if not board.is_complete:
        return Verdict(claim, UNKNOWN, _NOT_ALL_SIX)
    best = {name: board.count(partial(_is_best, j)) for j, name in enumerate(board.algorithms)}
    paper = published_board(board)
    text = (
        "SA-BFGS has the lowest loss of the six, possibly tied and however small the difference, in "
        f"{_all_cells(board, best['SA-BFGS'])} cells"
    )
    if paper.datasets:
        printed = paper.count(partial(_is_best, paper.place("SA-BFGS")))
        text += f", in the paper's printed means in {_all_cells(paper, printed)}"
    each = "; ".join(f"{name} {board.describe(counts)}" for name, counts in best.items() if any(counts.values()))
    never = [name for name, counts in best.items() if not any(counts.values())]
    each += f"; {', '.join(never)} in none" if never else ""
    kept = [family for family, count in best["SA-BFGS"].items() if count > board.cells(family) / 2]
    return Verdict(claim, _in_families(kept, len(board.families)), f"{text}. Best cells: {each}.")


def _all_cells(board: Board, counts: dict[str, int]) -> str:
    return f"{sum(counts.values())} of {sum(board.cells(family) for family in board.families)}"


def _measures_differ(board: Board) -> Verdict:
    claim = "On a given dataset the ranking often differs between measures."

    def ranked_apart(table: Board) -> dict[str, int]:
        ranks = np.array([table.dataset_ranks(measure) for measure in table.losses])
        return _count_datasets(table, (ranks != ranks[0]).any(axis=(0, 2)))

    def contradicted(table: Board) -> dict[str, int]:
        by_some = np.any([_clearly_less(t[:, :, None], t[:, None, :]) for t in table.losses.values()], axis=0)
        return _count_datasets(table, (by_some & np.swapaxes(by_some, 1, 2)).any(axis=(1, 2)))

    def show(table: Board, counts: dict[str, int]) -> str:
        return ", ".join(f"{family} {count} of {len(table.families[family])}" for family, count in counts.items())

    counts, clear_counts = ranked_apart(board), contradicted(board)
    apart, clearly = show(board, counts), show(board, clear_counts)
    paper = published_board(board)
    if paper.datasets:
        apart += f"; in the printed ranks: {show(paper, ranked_apart(paper))}"
        clearly += f"; in the printed means: {show(paper, contradicted(paper))}"
    kept = [family for family, count in counts.items() if count > len(board.families[family]) / 2]
    return Verdict(
        claim,
        f"{_in_families(kept, len(board.families))} for ranks; for differences of more than {ROPE:.0%} on "
        f"{sum(clear_counts.values())} of {len(board.datasets)} datasets",
        f"Datasets on which not all measures rank the algorithms equally, however small the differences: {apart}. The "
        "claim holds in a family if these are more than half of its datasets. "
        f"Datasets on which an algorithm is better than another by one measure and worse by another measure, both by "
        f"more than {ROPE:.0%}: {clearly}.",
    )


def _count_datasets(board: Board, found: FloatArray) -> dict[str, int]:
    """Number of datasets of each family for which something was found."""
    return {family: int(found[board.rows(family)].sum()) for family in board.families}


def _artificial_order(board: Board) -> Verdict:
    claim = f"On the artificial dataset: {ARTIFICIAL_ORDER}."
    if not board.artificial or not board.is_complete:
        return Verdict(claim, UNKNOWN, "The artificial dataset or some of the six algorithms did not take part.")
    ranks = board.artificial_ranks()
    holds, steps = _kept(ARTIFICIAL_ORDER, board.algorithms, ranks)
    return Verdict(
        claim,
        HOLDS if holds else FAILS,
        f"Here, average ranks over the measures: {_show(board.algorithms, ranks)} ({steps}). One training set and one "
        "test set, so that there is no standard deviation.",
    )


def _near_zero(results: StudyResults, board: Board) -> Verdict:
    claim = "Clark and Canberra are larger on Human Gene and Natural Scene than on other datasets, for every algorithm."
    named = {plain(name): name for name in board.datasets if plain(name) in ("humangene", "naturalscene")}
    others = [name for name in board.datasets if name not in named.values()]
    if not named or not others or not {"clark", "canberra"} <= set(board.losses):
        return Verdict(claim, UNKNOWN, "This needs Human Gene or Natural Scene, another dataset, Clark and Canberra.")
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
                f"{bound:.3g}), larger than on every other dataset for {larger} of {len(there)} algorithms (elsewhere "
                f"at most {elsewhere.max():.3f})"
            )
    fractions = {name: results.info[name]["near_zero_share"] for name in board.datasets}
    near = ", ".join(f"{fractions[name]:.1%} on {name}" for name in named.values())
    most = max(fractions[name] for name in others)
    verdict = HOLDS if all(kept) else PARTLY if any(kept) else FAILS
    if len(named) < 2:
        verdict = f"holds for {next(iter(named.values()))}" if verdict == HOLDS else verdict
        parts.append("the other of the two datasets did not take part")
    return Verdict(claim, verdict, f"{'; '.join(parts)}. Degrees below 0.01: {near}, at most {most:.1%} elsewhere.")


def _beats_the_mean(results: StudyResults, board: Board) -> Verdict:
    claim = "(Not in the paper) Every algorithm beats the mean of the training distributions."
    mean = results.candidates.index(results.baseline)
    rows = [results.datasets.index(name) for name in board.datasets]
    baseline = {measure: results.losses(measure)[rows, mean] for measure in board.losses}
    parts, lost = [], dict.fromkeys(board.families, 0)
    for j, algorithm in enumerate(board.algorithms):
        wins = {}
        for family in board.families:
            rows_of = board.rows(family)
            wins[family] = int(sum(np.sum(t[rows_of, j] < baseline[m][rows_of]) for m, t in board.losses.items()))
            lost[family] += board.cells(family) - wins[family]
        parts.append(f"{algorithm} {board.describe(wins)}")
    return Verdict(
        claim,
        _in_families([family for family, cells in lost.items() if not cells], len(lost)),
        "This holds in a family only if every algorithm is better in every cell of it, however small the difference. "
        "Cells in which it is: "
        f"{'; '.join(parts)}.",
    )


def claims_text(verdicts: list[Verdict]) -> str:
    """Write verdicts as Markdown."""
    lines = ["# Claims of the paper, checked on our results", "", RULE, ""]
    for number, verdict in enumerate(verdicts, start=1):
        lines += [f"{number}. {verdict.claim}", f"   **{verdict.verdict}.** {verdict.evidence}", ""]
    lines.append("The claims about time are checked in `tables/time.md`.")
    return "\n".join(lines) + "\n"

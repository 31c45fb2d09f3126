"""What we learned from the experiment of Geng (2016), in sentences whose numbers come from the records."""

from dataclasses import replace
from functools import cache

import numpy as np

from comparison.board import Board, board_of
from comparison.published import Match, count_text, load_published, match_published
from skldl.experiments import StudyResults, load_study
from skldl.experiments.grids import grid_end_notes, natural_limit_notes
from skldl.experiments.statistics import ALPHA, compare
from skldl.experiments.store import Record, json_ready
from skldl.metrics import MEASURES

KL = "kullback_leibler"


def learned(paper: StudyResults, fixed: StudyResults, random: StudyResults | None, nested: StudyResults | None) -> str:
    """What we learned, with the figures behind it."""
    points = [
        _folds_point(paper, fixed, random),
        _neighbours_point(paper, fixed),
        _mean_point(paper, nested),
        _places_point(paper, nested),
        _little_to_win_point(paper),
        _same_optimum_point(paper),
        "**Two rows of the paper are not reproduced:** s-BU_3DFE, probably because the available file is another one, "
        "and the artificial dataset (Section 5.2 of the paper, equations 16 to 21): with the printed generator all "
        "algorithms are far better than the published figures.",
        _open_point(paper),
    ]
    lines = ["## What we learned", "", *(f"{number}. {point}" for number, point in enumerate(points, start=1)), ""]
    tasks = [*paper.selections, *paper.evaluations]
    minutes = sum(task["seconds"] for task in tasks) / 60
    others = sum(_ran_elsewhere(task, paper.header["versions"]) for task in tasks)
    where = f", {others} of them on another machine" if others else ""
    lines.append(
        f"The {len(tasks):,} tasks of the study, selection included, took {minutes:.0f} minutes together{where}."
    )
    return "\n".join(lines) + "\n"


@cache
def matches_of(results: StudyResults, column: str = "") -> tuple[Match, ...]:
    """All cells that are also in the paper."""
    return tuple(match_published(results, column=column))


def cells_of(results: StudyResults, candidate: str, prefix: str, column: str = "") -> list[Match]:
    """The cells of a candidate on the datasets whose names begin with a prefix."""
    return [m for m in matches_of(results, column) if m.candidate == candidate and m.dataset.startswith(prefix)]


def cells_of_repeats(results: StudyResults, candidate: str, prefix: str, column: str = "") -> list[list[Match]]:
    """The cells of `cells_of`, separately for each repeat of the study."""
    n_repeats = int(results.study["repeats"])
    found: list[list[Match]] = [[] for _ in range(n_repeats)]
    for match in cells_of(results, candidate, prefix, column):
        values = results.values(match.published.measure, match.dataset, candidate).reshape(n_repeats, -1)
        for cells, own in zip(found, values, strict=True):
            deviation = float(own.std(ddof=1)) if len(own) > 1 else np.nan
            cells.append(replace(match, ours=float(own.mean()), deviation=deviation))
    return found


def _folds_point(paper: StudyResults, fixed: StudyResults, random: StudyResults | None) -> str:
    neighbours = {k: cells_of(fixed, f"AA-kNN (k={k})", "Yeast") for k in (3, 4, 5)}
    optimum = cells_of(fixed, "SA-BFGS", "Yeast")
    others = ", ".join(f"{name} {_count(cells)}" for name, cells in as_column_of(paper, "SA-BFGS").items())
    mean = cells_of(fixed, fixed.baseline, "Yeast", column="SA-BFGS")
    mean_there = cells_of(fixed, fixed.baseline, "Yeast", column="AA-kNN")
    one = [*cells_of(fixed, "AA-kNN (k=1)", "Natural"), *cells_of(fixed, "AA-kNN (k=1)", "Movie")]
    jaffe = {k: cells_of(fixed, f"AA-kNN (k={k})", "SJAFFE") for k in (5, 7)}
    return (
        "**The published folds are chunks in file order**, at least those of AA-kNN on the Yeast sets, Natural Scene, "
        f"Movie and s-JAFFE. With them, four neighbours reproduce {count_text(neighbours[4])} Yeast means of the "
        f"AA-kNN column (three {_count(neighbours[3])}, five {_count(neighbours[5])}), and the unregularised maximum "
        f"of the likelihood {count_text(optimum)} of the SA-BFGS column. The latter identifies no algorithm: of the "
        f"same cells tuned settings reproduce {others}, and the mean, which learns nothing from the features, "
        f"{count_text(mean)}. "
        "The evidence for the folds are the standard deviations that are printed as more than one unit of their last "
        "digit; they agree if they do within 10 % or one unit. Four neighbours reproduce "
        f"{_deviations(neighbours[4])} in the AA-kNN column and the unregularised maximum {_deviations(optimum)} in "
        f"the SA-BFGS column; the mean in the same chunks reproduces {_deviations(mean_there)} and "
        f"{_deviations(mean)}, so that those of the SA-BFGS column depend mostly on the chunks. "
        f"{_random_folds(random)}Of a single neighbour on Natural Scene and Movie {_deviations(one)} agree. On s-JAFFE "
        f"seven neighbours reproduce {_count(jaffe[7])} of {len(jaffe[7])} means (five {_count(jaffe[5])}) in file "
        "order, and no number up to 40 does in random folds (`tests/experiments/test_reproduction.py`); of the "
        f"deviations only {_deviations(jaffe[7])} agree."
    )


def _random_folds(random: StudyResults | None) -> str:
    """A sentence on the conclusive deviations of two columns that agree in random folds, at least and at most."""
    if random is None:
        return ""
    ranges = []
    for candidate in ("AA-kNN (k=4)", "SA-BFGS"):
        counts = [conclusive_deviations(cells)[0] for cells in cells_of_repeats(random, candidate, "Yeast")]
        ranges.append(f"{min(counts)} to {max(counts)}")
    return (
        "In folds drawn at random, as described in the paper's text, four neighbours and the maximum reproduce "
        f"{' and '.join(ranges)} of them ({random.study['repeats']} draws). "
    )


def as_column_of(paper: StudyResults, column: str) -> dict[str, list[Match]]:
    """The cells of each tuned candidate but the baseline, compared with one column of the paper on the Yeast sets."""
    names = [name for name in paper.candidates if name != paper.baseline]
    return {name: cells_of(paper, name, "Yeast", column=column) for name in names}


def _count(matches: list[Match]) -> int:
    return sum(match.agrees for match in matches)


def _deviations(matches: list[Match]) -> str:
    agree, total = conclusive_deviations(matches)
    return f"{agree} of {total}"


def conclusive_deviations(matches: list[Match]) -> tuple[int, int]:
    """Number of conclusive deviations that agree, and of all conclusive ones."""
    conclusive = [match for match in matches if match.deviation_is_conclusive]
    return sum(match.deviation_agrees for match in conclusive), len(conclusive)


def _neighbours_point(paper: StudyResults, fixed: StudyResults) -> str:
    one = [count_text(cells_of(fixed, "AA-kNN (k=1)", name)) for name in ("Natural", "Movie")]
    printed = next(c for c in load_published() if (c.dataset, c.algorithm, c.measure) == ("Movie", "AA-kNN", KL))
    chosen = [
        setting["n_neighbors"]
        for dataset in paper.datasets
        if dataset.startswith("Yeast")
        for setting in paper.chosen(dataset, "AA-kNN")
    ]
    return (
        f"**The published AA-kNN is a single neighbour on Natural Scene ({one[0]} cells) and Movie ({one[1]}).** The "
        f"Kullback-Leibler divergence on Movie is as printed, {printed.mean} ± {printed.std}, only if predicted zeros "
        "are replaced by about 1e-4 instead of machine epsilon (`tests/experiments/test_reproduction.py`). On "
        f"the Yeast sets selection chose {min(chosen)} to {max(chosen)} neighbours here, where the published column "
        "is that of four."
    )


def _mean_point(paper: StudyResults, nested: StudyResults | None) -> str:
    counts = worse_than_the_mean(paper)
    worse, total = (sum(pair[i] for pair in counts.values()) for i in (0, 1))
    each = ", ".join(f"{name} {some} of {cells}" for name, (some, cells) in counts.items())
    here = "; ".join(
        f"under `{results.study['protocol']}` {_wins_text(results)}" for results in (paper, nested) if results
    )
    return (
        f"**The mean of the training distributions beats {worse} of {total} published cells** of the real datasets "
        f"({left_out(paper)}): {each}. The paper's tables do not contain it. Of our six, {here}."
    )


def left_out(paper: StudyResults) -> str:
    """Which real datasets of the paper are not compared with its numbers, and why."""
    missing = "".join(f", and {name}, which we do not have" for name in paper.missing)
    return f"without s-BU_3DFE, whose file is probably another one{missing}"


def _wins_text(results: StudyResults) -> str:
    """A clause on the cells in which the six beat the baseline."""
    board = board_of(results)
    rows, mean = [results.datasets.index(name) for name in board.datasets], results.candidates.index(results.baseline)
    mean_losses = {measure: results.losses(measure)[rows, mean] for measure in board.losses}
    won = np.array([board.losses[m][: len(rows)] < losses[:, None] for m, losses in mean_losses.items()])
    lost: dict[str, list[str]] = {}
    for i, j in zip(*np.nonzero((~won).any(axis=0)), strict=True):
        cells = f"{(~won[:, i, j]).sum()} of {len(won)} measures on {board.datasets[i]}"
        lost.setdefault(board.algorithms[j], []).append(cells)
    n_cells = len(board.datasets) * len(board.losses)
    if not lost:
        return f"each beats it in all {n_cells} cells"
    exceptions = "; ".join(f"{algorithm} by {' and '.join(cells)}" for algorithm, cells in lost.items())
    return f"each beats it in all {n_cells} cells, except {exceptions}"


def _places_point(paper: StudyResults, nested: StudyResults | None) -> str:
    board = board_of(paper)
    first = []
    for family in board.families:
        winners = [board.algorithms[j] for j in board.losses[KL][board.rows(family)].argmin(axis=1)]
        text = ", ".join(f"{n} on {winners.count(n)} of {len(winners)}" for n in dict.fromkeys(winners))
        first.append(f"{family}: {text if len(winners) > 1 else winners[0]}")
    there = "" if nested is None else f" Under `nested`: {ranks_text(nested, KL)}."
    tests = [
        compare(results, KL, candidates=board.algorithms, by_family=True)
        for results in (paper, nested)
        if results is not None
    ]
    p_values = " and ".join(f"{test.friedman['F_p']:.2g}" for test in tests)
    shown = ["shows" if test.friedman["F_p"] < ALPHA else "does not show" for test in tests]
    says = shown[0] if len(set(shown)) == 1 else " and, under `nested`, ".join(shown)
    return (
        "**With settings chosen by the same protocol, the order of the algorithms is different.** Average ranks of the "
        f"six on Kullback-Leibler, under `geng2016`: {ranks_text(paper, KL)}.{there} A test that counts every family "
        f"once, by its mean loss relative to {paper.baseline}, {says} a difference (p = {p_values}; with "
        f"{len(board.families)} families only large ones can be significant, "
        "[below](#which-differences-are-significant)). First on Kullback-Leibler, under "
        f"`geng2016`: {'; '.join(first)}."
    )


def ranks_text(results: StudyResults, measure: str) -> str:
    """Average ranks of the six, with every dataset and with every family of datasets counted once."""
    board = board_of(results)
    return (
        f"{_order(board, board.ranks(measure))}; every family counted once {_order(board, board.family_ranks(measure))}"
    )


def _order(board: Board, ranks: np.ndarray) -> str:
    return " ≻ ".join(f"{board.algorithms[j]} {ranks[j]:.2f}" for j in np.argsort(ranks, kind="stable"))


def _little_to_win_point(paper: StudyResults) -> str:
    skills = dict(zip(paper.datasets, np.nanmax(paper.skills(KL), axis=1), strict=True))
    inside = [skill for name, skill in skills.items() if name.startswith("Yeast")]
    outside = {name: skills[name] for name in paper.averaged if not name.startswith("Yeast")}
    return (
        f"**On the Yeast sets the six have little skill:** the best of them removes {min(inside):.1%} to "
        f"{max(inside):.1%} of the mean's Kullback-Leibler divergence; on {', '.join(outside)} it is "
        f"{min(outside.values()):.0%} to {max(outside.values()):.0%}. Models made since are compared on the "
        f"[leaderboard](leaderboard.md), on folds of their own. {len(inside)} of the {len(paper.averaged)} real "
        "datasets are these Yeast sets with one and the same X, so that average ranks over datasets are mostly about "
        "them."
    )


def _same_optimum_point(paper: StudyResults) -> str:
    losses = paper.losses(KL)
    iis, bfgs = (losses[:, paper.candidates.index(name)] for name in ("SA-IIS", "SA-BFGS"))
    ratio = dict(zip(paper.datasets, iis / bfgs - 1, strict=True))
    inside = [abs(value) for name, value in ratio.items() if name.startswith("Yeast")]
    outside = ", ".join(f"{name} {ratio[name]:+.1%}" for name in paper.averaged if not name.startswith("Yeast"))
    return (
        "**SA-IIS and SA-BFGS maximise the same concave function**, up to the penalty of SA-BFGS. With stopping point "
        "and penalty chosen by validation their Kullback-Leibler divergences under `geng2016` differ by at most "
        f"{max(inside):.2%} on the Yeast sets. Elsewhere SA-IIS is above SA-BFGS by: {outside}."
    )


def _open_point(paper: StudyResults) -> str:
    text = "Ends of grids were chosen; notes below the table of settings list them. " if grid_end_notes(paper) else ""
    if natural_limit_notes(paper):
        text += (
            "Some of the chosen ends are limits of the parameter by the study's definition; for these the notes state "
            "how little the loss still changed. "
        )
    return (
        f"**Limitations:** {text}Selection uses only Kullback-Leibler; another criterion chooses other settings, and "
        "the ranks change with them. Grids and one kernel width were set after trials on the same data "
        "([how it was run](#how-it-was-run))."
    )


def other_machines(results: StudyResults) -> str:
    """A sentence on the records from a machine with other versions than in the header; empty if there are none."""
    records = [*results.selections, *results.evaluations]
    others = [record for record in records if _ran_elsewhere(record, results.header["versions"])]
    if not others:
        return ""
    names = ", ".join(dict.fromkeys(record["candidate"] for record in others))
    datasets = ", ".join(dict.fromkeys(record["dataset"] for record in others))
    return (
        f"{len(others)} of the {len(records):,} tasks ({names} on {datasets}) ran on another machine, so that their "
        "times cannot be compared, nor sums that contain them; [studies/](../studies/README.md) describes how well "
        "results of both machines agree."
    )


def _ran_elsewhere(record: Record, versions: dict[str, str]) -> bool:
    selection = record.get("selection", {})
    if selection and not record["selection_seconds"]:  # in steps, before their versions and times were recorded
        return True
    return bool(record["versions"] != versions or selection.get("versions", versions) != versions)


def study_file(results: StudyResults, folder: str = "") -> str:
    """Sentences that name the study file of the records, and whether the package still contains it."""
    name = results.study["name"]
    folder = folder or name
    text = (
        f"The records were written by scikit-ldl {results.header['skldl']} with the study file in the same folder, "
        f"[studies/{folder}/study.toml](../studies/{folder}/study.toml)."
    )
    study = load_study(name)
    found = [dataset for dataset in study.datasets if dataset.name in results.datasets]
    protocol = results.study["protocol"]
    options = {} if protocol == study.protocol else {"protocol": protocol}
    plain = json_ready(study.with_options(**options).to_dict())  # a protocol has an order of its own
    options |= {key: results.study[key] for key in ("order", "repeats") if results.study[key] != plain[key]}
    now = study.with_options(datasets=found or None, **options)
    command = " ".join(["skldl bench", name, *(f"--{key} {value}" for key, value in options.items())])
    if now.fingerprint() == results.header["fingerprint"]:
        return f"{text} It is the one that `{command}` runs."
    entries = (results.study["candidates"], json_ready(now.to_dict())["candidates"])
    then, today = ({e["name"]: (e.get("params"), e.get("grid"), e.get("grids")) for e in some} for some in entries)
    changed = [candidate for candidate in {**then, **today} if then.get(candidate) != today.get(candidate)]
    return (
        f"{text} **It is older than the one that `{command}` runs now**, which differs in "
        f"{', '.join(changed) or 'its other fields'}."
    )


def worse_than_the_mean(paper: StudyResults) -> dict[str, tuple[int, int]]:
    """For each algorithm, the numbers of published cells that are worse than our mean baseline, and of all cells."""
    mean = paper.candidates.index(paper.baseline)
    means = {m: dict(zip(paper.datasets, paper.means(m)[:, mean], strict=True)) for m in paper.measures}
    found: dict[str, list[bool]] = {}
    for match in matches_of(paper):
        if match.dataset in ("Artificial", "SBU_3DFE"):
            continue
        cell = match.published
        baseline = means[cell.measure][match.dataset]
        unit = 0.5 * 10.0**-cell.decimals  # the largest error of rounding
        is_similarity = MEASURES[cell.measure].higher_is_better
        worse = cell.mean + unit < baseline if is_similarity else cell.mean - unit > baseline
        found.setdefault(match.candidate, []).append(bool(worse))
    return {name: (sum(cells), len(cells)) for name, cells in found.items()}

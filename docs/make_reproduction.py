"""Write ``reproduction.md`` from the records in ``studies/``: run ``python docs/make_reproduction.py``."""

from pathlib import Path

import numpy as np

from skldl.experiments import StudyResults
from skldl.experiments.output.claims import check_claims, speed_claim
from skldl.experiments.output.published import REASONS, match_published, published_table
from skldl.experiments.output.tables import average_ranks, settings_table, skill_of, skill_table, time_table
from skldl.experiments.statistics import compare
from skldl.metrics import MEASURES

HERE = Path(__file__).parent
STUDIES = HERE.parent / "studies"

INTRODUCTION = """\
# The experiment of Geng (2016), run again

<!-- Written by docs/make_reproduction.py from the records in studies/. Do not edit by hand. -->

X. Geng, "Label distribution learning", *IEEE Transactions on Knowledge and Data Engineering* 28(7), 1734–1748, 2016,
compares six algorithms by six measures on an artificial dataset and fifteen real ones. Here is the same experiment with
this package, on the artificial dataset and on fourteen of the real ones (Human Gene was not at hand), with one more
column: the mean of the training distributions, predicted for every instance. The records, and everything made from
them, lie in [studies/](../studies/README.md). You repeat it with

```
skldl bench tkde2016 --data DIR
skldl bench tkde2016-fixed --data DIR
```
"""


def main() -> None:
    """Write the page."""
    paper = StudyResults.load(STUDIES / "tkde2016")
    fixed = StudyResults.load(STUDIES / "tkde2016-fixed")
    parts = [
        INTRODUCTION,
        learned(paper, fixed),
        how(paper),
        results_text(paper),
        comparison(paper, fixed),
        claims(paper),
        times(paper),
    ]
    (HERE / "reproduction.md").write_text("\n".join(part.rstrip() + "\n" for part in parts), encoding="utf-8")


def demoted(markdown: str) -> str:
    """A table of a study, one heading deeper."""
    return markdown.replace("### ", "#### ", 1)


def agreement(results: StudyResults, candidate: str, datasets: str) -> str:
    """How many cells of a column agree on some datasets, such as 60 of 60."""
    cells = [m for m in match_published(results) if m.candidate == candidate and m.dataset.startswith(datasets)]
    return f"{sum(m.agrees for m in cells)} of {len(cells)}"


def how(paper: StudyResults) -> str:
    """What was run."""
    lines = [
        "## How it was run",
        "",
        "The paper's protocol (`geng2016`), with chunks in file order: in each of ten rotations one chunk tests, the "
        "next validates, eight train; the setting with the least mean Kullback-Leibler divergence over the ten "
        "validation chunks is chosen once for all; then nine chunks train and one tests. A chunk that validates in one "
        "rotation tests in another, so the figures are a little too good, for every algorithm with a grid alike; "
        "`--protocol nested` leaks nothing. The artificial dataset has its own test set, and settings are chosen on a "
        "random fifth of its 500 training rows.",
        "",
        "The paper gives no grids. These are ours; in a tie the first value wins.",
        "",
        "| Algorithm | Fixed | Chosen among |",
        "|---|---|---|",
    ]
    for entry in paper.study["candidates"]:
        fixed = ", ".join(f"{name} = {value}" for name, value in entry.get("params", {}).items())
        grid = "; ".join(f"{name}: {', '.join(map(str, values))}" for name, values in entry.get("grid", {}).items())
        lines.append(f"| {entry['name']} | {fixed} | {grid or 'nothing to choose'} |")
    versions = ", ".join(f"{name} {version}" for name, version in paper.header["versions"].items())
    return "\n".join(
        [
            *lines,
            "",
            f"Versions: {versions}. Features are taken as they are in the files; AA-BP standardises them itself.",
        ]
    )


def results_text(paper: StudyResults) -> str:
    """Tables of all measures, skill and settings."""
    lines = [
        "## Results",
        "",
        "Mean ± standard deviation (n − 1) over the ten test chunks, rank in brackets, best in bold.",
        "",
    ]
    lines += [demoted(paper.table(measure).to_markdown()) for measure in paper.measures]
    lines.append(demoted(skill_table(paper, "kullback_leibler").to_markdown()))
    lines.append(demoted(settings_table(paper).to_markdown()))
    one_each = [family[0] for family in paper.families]
    lines += ["### Which differences can be trusted", "", tests_text(paper, one_each)]
    return "\n".join(lines)


def tests_text(paper: StudyResults, one_each: list[str]) -> str:
    """Average ranks with the tests over datasets, counted twice: all, and one per family."""
    lines = [
        "The ten Yeast datasets share their features. Tests that count them as ten find too much, so each is done "
        f"twice: on all {len(paper.averaged)} datasets, and on {len(one_each)} ({', '.join(one_each)}). All tests "
        "stand in [statistics.md](../studies/tkde2016/statistics.md).",
        "",
        "| Measure | Iman-Davenport p, all | Nemenyi difference, all | p, one per family | difference, the same |",
        "|---|---:|---:|---:|---:|",
    ]
    for measure in paper.measures:
        everything, few = compare(paper, measure), compare(paper, measure, one_each)
        cells = [f"{t.friedman['F_p']:.2g} | {t.nemenyi_difference:.2f}" for t in (everything, few)]
        lines.append(f"| {MEASURES[measure].title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def comparison(paper: StudyResults, fixed: StudyResults) -> str:
    """Ours and the published numbers."""
    lines = [
        "## Side by side with the published numbers",
        "",
        "A cell agrees if both means are equal within 2 % or one unit of the last printed digit. With settings fixed "
        "to what the numbers give away:",
        "",
        "| Column | Yeast (10 datasets) | Natural Scene | s-JAFFE | s-BU_3DFE | Movie | Artificial |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for candidate in fixed.candidates[:-1]:
        groups = ("Yeast", "Natural", "SJAFFE", "SBU", "Movie", "Artificial")
        lines.append(f"| {candidate} | {' | '.join(agreement(fixed, candidate, group) for group in groups)} |")
    matches = match_published(paper)
    others = [match for match in matches if not match.agrees]
    better = sum(match.better for match in others)
    lines += [
        "",
        f"With settings chosen by validation, {len(matches) - len(others)} of {len(matches)} cells agree; of the "
        f"others ours is better in {better} and worse in {len(others) - better}. Why they differ:",
        "",
        *(f"- {reason.text}" for reason in REASONS),
        "",
    ]
    lines += [demoted(published_table(paper, measure).to_markdown()) for measure in paper.measures]
    return "\n".join(lines)


def claims(paper: StudyResults) -> str:
    """The paper's claims."""
    lines = ["## What the paper says, checked", "", "| The paper says | Here | Figures |", "|---|---|---|"]
    for verdict in [*check_claims(paper), speed_claim(paper)]:
        lines.append(f"| {verdict.claim} | **{verdict.verdict}** | {verdict.evidence} |")
    return "\n".join(lines) + "\n"


def times(paper: StudyResults) -> str:
    """The time table."""
    return "## Time\n\n" + demoted(time_table(paper).to_markdown())


def learned(paper: StudyResults, fixed: StudyResults) -> str:
    """What we learned, with the figures behind it."""
    yeast = [agreement(fixed, name, "Yeast") for name in ("AA-kNN (k=4)", "SA-BFGS")]
    one = [agreement(fixed, "AA-kNN (k=1)", name) for name in ("Natural", "Movie")]
    ranks = dict(zip(paper.candidates, average_ranks(paper, "kullback_leibler"), strict=True))
    order = " ≻ ".join(f"{name} {ranks[name]:.2f}" for name in sorted(ranks, key=ranks.__getitem__))
    skills = dict(zip(paper.datasets, np.nanmax(skill_of(paper, "kullback_leibler"), axis=1), strict=True))
    on_yeast = [skill for name, skill in skills.items() if name.startswith("Yeast")]
    elsewhere = [skills[name] for name in ("Natural_Scene", "SJAFFE", "SBU_3DFE", "Movie")]
    worse, total = published_cells_worse_than_the_mean(paper)
    wins = next(verdict for verdict in check_claims(paper) if "most cases" in verdict.claim).evidence
    two_columns = [m for m in match_published(fixed) if m.dataset.startswith("Yeast") and "k=1" not in m.candidate]
    deviations = sum(match.deviation_agrees for match in two_columns)
    svm = next(entry for entry in paper.study["candidates"] if entry["name"] == "PT-SVM")
    points = [
        f"**The published folds are chunks in file order.** With them, four neighbours give {yeast[0]} Yeast means of "
        f"the AA-kNN column and the unregularised maximum of the likelihood gives {yeast[1]} of the SA-BFGS column, "
        f"and {deviations} of the {len(two_columns)} standard deviations agree within 10 % or one unit of the last "
        "digit. Random folds, of which the paper's text speaks, give nearly all the means too (117 to 120 with five "
        "seeds), but only 61 to 79 of the deviations.",
        f"**The published AA-kNN is a single neighbour on Natural Scene ({one[0]} cells) and Movie ({one[1]})**, to "
        "the printed digit. The one cell that differs is the Kullback-Leibler divergence on Movie: with a floor of "
        "1e-4 under predicted zeros instead of machine epsilon it too is as printed, 0.201 ± 0.011. The paper's grid "
        "evidently stopped short: on the Yeast sets 50 to 100 neighbours are best.",
        f"**The mean of the training distributions beats {worse} of {total} published cells** of the real datasets "
        "(without s-BU_3DFE, whose file differs), and no published table prints it. Here every algorithm but PT-SVM "
        "beats it in every cell.",
        f"**Tuned alike, the algorithms change places.** Average ranks on Kullback-Leibler: {order}. {wins} PT-Bayes, "
        "last in the paper, is among the first with one pooled, regularised covariance and exact weights instead of a "
        "sample; AA-kNN with enough neighbours is first on most Yeast sets; on Kullback-Leibler AA-BP is first on "
        "Natural Scene, s-BU_3DFE and the artificial set.",
        f"**On the Yeast sets there is little to win:** the best algorithm takes {min(on_yeast):.1%} to "
        f"{max(on_yeast):.1%} of the mean's Kullback-Leibler divergence away, and the algorithms differ in the third "
        f"or fourth digit. On Natural Scene, s-JAFFE, s-BU_3DFE and Movie it is {min(elsewhere):.0%} to "
        f"{max(elsewhere):.0%}. Ten of the fourteen real datasets are these Yeast sets with one and the same X, so "
        "that average ranks are mostly about them.",
        "**SA-IIS and SA-BFGS climb the same hill.** With stopping and penalty chosen by validation they agree to the "
        "third digit on the Yeast sets. Where selection went to 500 iterations of SA-IIS, the end of our grid (Natural "
        "Scene, s-JAFFE, s-BU_3DFE), SA-BFGS is ahead on Kullback-Leibler; where it stopped after ten (Movie), SA-IIS "
        "is the quicker.",
        "**Two rows of the paper stay out of reach:** s-BU_3DFE, because the file that circulates is another one, and "
        "the artificial dataset, which with the printed generator is far easier than the published figures.",
        f"**What is still open:** PT-SVM learns from {svm['params']['max_samples']} drawn rows here, with four values "
        "of C and one width, which may underrate it; selection goes by Kullback-Leibler alone, and another criterion "
        "would choose other settings, such as a single neighbour for Clark and Canberra on Natural Scene, which is "
        "poor on the other measures.",
    ]
    lines = ["## What we learned", "", *(f"{number}. {point}" for number, point in enumerate(points, start=1)), ""]
    tasks = [*paper.selections, *paper.evaluations]
    minutes = sum(task["seconds"] for task in tasks) / 60
    lines.append(
        f"The {len(tasks):,} tasks of the study, selection included, took {minutes:.0f} minutes together, half of that "
        "on the two cores of a busy machine. It was stopped on the way and resumed."
    )
    return "\n".join(lines) + "\n"


def published_cells_worse_than_the_mean(paper: StudyResults) -> tuple[int, int]:
    """How many published cells of the real datasets are worse than our mean baseline on the same folds."""
    mean = paper.candidates.index(paper.baseline)
    worse = total = 0
    for match in match_published(paper):
        if match.dataset in ("Artificial", "SBU_3DFE"):
            continue
        cell = match.published
        baseline = paper.means(cell.measure)[paper.datasets.index(match.dataset), mean]
        unit = 0.5 * 10.0**-cell.decimals  # what rounding may hide
        total += 1
        if MEASURES[cell.measure].higher_is_better:
            worse += bool(cell.mean + unit < baseline)
        else:
            worse += bool(cell.mean - unit > baseline)
    return worse, total


if __name__ == "__main__":
    main()

"""The tests of a study as Markdown: every measure, with every dataset and with every family counted once."""

import numpy as np

from skldl.experiments.results import StudyResults
from skldl.experiments.statistics import ALPHA, ROPE, Comparison, PairTests, compare, pair_tests
from skldl.experiments.tables import NOTHING
from skldl.metrics import MEASURES
from skldl.utils.tables import Cell, TextTable, markdown_text

FEW_DATASETS = 6  # with fewer, a two-sided signed-rank test cannot reach p = .05: 2 / 2**5 = .0625
_MARKS = {"win": "•", "tie": "–", "loss": "◦", "": ""}


def statistics_text(results: StudyResults) -> str:
    """Write all tests of a study as Markdown."""
    shared = [family for family in results.families if len(family) > 1]
    control = results.control
    lines = [
        "# Statistics",
        "",
        f"Level {ALPHA:g}. The control is {markdown_text(control)}. Tests over datasets use one mean per dataset; "
        "those of Wilcoxon and the Bayesian signed-rank test use losses relative to "
        f"{markdown_text(results.baseline)} and to the control, so that all datasets count equally. Practical "
        "equivalence: a "
        f"loss within {ROPE:.0%} of the control's.",
        "",
    ]
    for family in shared:
        lines.append(
            f"> **Not independent:** {markdown_text(', '.join(family))} share their features, so that a test which "
            f"counts them as {len(family)} datasets finds too much. Each test is repeated with every family counted "
            f"once, by its mean loss relative to {markdown_text(results.baseline)}."
        )
        lines.append("")
    rivals = [name for name in results.candidates if name != results.baseline]
    if len(rivals) > 2:
        lines += [
            f"A baseline that is last everywhere can by itself make tests of all candidates significant, so that "
            f"those of average ranks are repeated without {markdown_text(results.baseline)}.",
            "",
        ]
    for measure in results.measures:
        known = MEASURES[measure]
        lines += [f"## {known.title} {known.arrow}", ""]
        for by_family in (False, True) if shared else (False,):
            title = "Every family counted once" if by_family else "All datasets"
            lines += _comparison(compare(results, measure, by_family=by_family), title)
            if len(rivals) > 2:
                lines += _rivals(results, compare(results, measure, candidates=rivals, by_family=by_family))
        lines += _pairs(results, pair_tests(results, measure), control)
    return "\n".join(lines).rstrip() + "\n"


def _comparison(tests: Comparison, title: str) -> list[str]:
    table = comparison_table(tests)
    sentences = [markdown_text(sentence) for sentence in comparison_sentences(tests)]
    lines = [f"### {title} ({len(tests.datasets)})", "", *sentences, ""]
    return lines if table is None else [*lines, *table.to_markdown().splitlines()[2:], "", *_wilcoxon(tests), ""]


def _rivals(results: StudyResults, tests: Comparison) -> list[str]:
    """Tests of average ranks without the baseline, in one paragraph."""
    apart = [f"{one} ≻ {other}" for one, other in pairs_apart(tests)]
    sentences = comparison_sentences(tests)
    if "all" not in tests.reasons:
        sentences.append(f"Pairs whose average ranks differ by more than that: {', '.join(apart) or 'none'}.")
    return [markdown_text(" ".join([f"Without {results.baseline}:", *sentences])), ""]


def pairs_apart(tests: Comparison) -> list[tuple[str, str]]:
    """Pairs, the better first, whose average ranks differ by more than Nemenyi's critical difference."""
    ranks = tests.average_ranks
    order = np.argsort(ranks, kind="stable")
    return [
        (tests.candidates[i], tests.candidates[j])
        for i in order
        for j in order
        if ranks[j] - ranks[i] > tests.nemenyi_difference
    ]


def comparison_sentences(tests: Comparison) -> list[str]:
    """Describe the results of the tests over datasets; or why there is no test."""
    if "all" in tests.reasons:
        return [f"No test: {tests.reasons['all']}"]
    if "friedman" in tests.reasons:
        sentences = [f"No Friedman test. {tests.reasons['friedman']}"]
    else:
        f = tests.friedman
        sentences = [
            f"Friedman: χ² = {f['chi2']:.3f}, {_p(f['chi2_p'])}; Iman-Davenport: F = {f['F']:.3f}, {_p(f['F_p'])}."
        ]
    against = f", Bonferroni-Dunn {tests.dunn_difference:.3f} against {tests.control}" if tests.control else ""
    sentences.append(
        f"Critical difference of average ranks: Nemenyi {tests.nemenyi_difference:.3f} between any two{against}."
    )
    if len(tests.datasets) < FEW_DATASETS:
        sentences.append(
            f"With fewer than {FEW_DATASETS} datasets these tests have little power, and p values are approximate."
        )
    return sentences


def comparison_table(tests: Comparison) -> TextTable | None:
    """Make the table of the tests against the control, or None if there is none."""
    if "all" in tests.reasons or not tests.control:
        return None
    control = tests.candidates.index(tests.control)
    rows = []
    for j in np.argsort(tests.average_ranks, kind="stable"):
        name = tests.candidates[j]
        texts = [f"{tests.average_ranks[j]:.2f}"]
        if j == control:
            texts += [NOTHING] * 4
        else:
            better, equal, worse = tests.bayes[name]
            numbers = (tests.nemenyi[j, control], tests.dunn[name], tests.wilcoxon[j, control])
            texts += [*(_number(p) for p in numbers), f"{better:.2f} / {equal:.2f} / {worse:.2f}"]
        rows.append((name, [Cell(text) for text in texts]))
    head = ["Candidate", "Average rank", "Nemenyi p", "Bonferroni-Dunn p", "Wilcoxon-Holm p", "better / equal / worse"]
    known = MEASURES[tests.measure]
    title = f"{known.title} {known.arrow}: tests against {tests.control} over {len(tests.datasets)} datasets"
    return TextTable(title, head, rows)


def _wilcoxon(tests: Comparison) -> list[str]:
    found = [
        f"{tests.candidates[i]} ≻ {tests.candidates[j]} ({_number(tests.wilcoxon[i, j])})"
        for i in np.argsort(tests.average_ranks, kind="stable")
        for j in range(len(tests.candidates))
        if tests.wilcoxon[i, j] < ALPHA and tests.average_ranks[i] < tests.average_ranks[j]
    ]
    text = markdown_text(", ".join(found)) if found else "none"
    return [f"Pairs that the Wilcoxon test with Holm's correction distinguishes: {text}."]


def _pairs(results: StudyResults, tests: PairTests, control: str) -> list[str]:
    lines = [f"### Within each dataset: corrected resampled t-test against {markdown_text(control)}", ""]
    tested = [name for name in results.datasets if name not in tests.reasons]
    lines += [f"{markdown_text(name)}: no test, {reason}." for name, reason in tests.reasons.items()]
    others = [name for name in results.candidates if name != control]
    if not tested or not others:
        return [*lines, ""]
    rows = []
    for dataset in tested:
        cells = []
        for name in others:
            mark = tests.mark(dataset, name, control)
            p = tests.p_values.get((dataset, name, control))
            cells.append(Cell(NOTHING if p is None else f"{_MARKS[mark]} {_number(p)}"))
        rows.append((dataset, cells))
    totals = ["{}/{}/{}".format(*tests.count(name, control)) for name in others]
    foot = [("win/tie/loss", [Cell(text) for text in totals])]
    table = TextTable("", ["Dataset", *others], rows, foot)
    lines += ["", *table.to_markdown().splitlines()[2:], ""]
    lines += [
        f"• better than {markdown_text(control)}, ◦ worse, – no difference at this level; followed by the p value.",
        "",
    ]
    counts = [
        (
            one,
            [Cell(NOTHING if one == two else "{}/{}/{}".format(*tests.count(one, two))) for two in results.candidates],
        )
        for one in results.candidates
    ]
    every = TextTable("", ["win/tie/loss against", *results.candidates], counts)
    return [
        *lines,
        "All pairs, win/tie/loss of the row over the datasets:",
        "",
        *every.to_markdown().splitlines()[2:],
        "",
    ]


def _p(value: float) -> str:
    return "p < 0.0001" if value < 1e-4 else f"p = {value:.4f}"


def _number(value: float) -> str:
    return "< 0.0001" if value < 1e-4 else f"{value:.4f}"

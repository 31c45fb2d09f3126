"""Parts of ``reproduction.md``: which differences can be trusted, and both protocols side by side."""

import numpy as np
from findings import other_machines, ranks_text, study_file

from skldl.experiments import StudyResults
from skldl.experiments.grids import grid_end_notes, natural_limit_notes
from skldl.experiments.statistics import ALPHA, compare, is_tie
from skldl.experiments.statistics_text import pairs_apart
from skldl.experiments.tables import NOTHING
from skldl.metrics import MEASURES
from skldl.utils.tables import Cell, TextTable

HEADING = "## The paper's protocol and nested selection\n\n"


def tests_text(paper: StudyResults) -> str:
    """Average ranks with the tests over datasets, once with all datasets and once with every family counted as one."""
    rivals = [name for name in paper.candidates if name != paper.baseline]
    lines = [
        "The ten Yeast datasets share their features. If a test counts them as ten, too many differences are "
        f"significant, so each test is done twice: on all {len(paper.averaged)} datasets, and with each of the "
        f"{len(paper.families)} families counted once, by its mean loss relative to {paper.baseline}. "
        f"{paper.baseline} is not tested: a baseline that is worse than all others would make the tests significant. "
        f"p is that of Iman and Davenport, the critical difference that of Nemenyi, at level {ALPHA}, without "
        "correction for six measures. All tests are in [statistics.md](../studies/tkde2016/statistics.md).",
        "",
        "| Measure | p, all | difference of ranks, all | p, families | difference, families |",
        "|---|---:|---:|---:|---:|",
    ]
    pairs: dict[str, list[str]] = {"all datasets": [], "families": []}
    found = []
    for measure in paper.measures:
        tests = [compare(paper, measure, candidates=rivals, by_family=by_family) for by_family in (False, True)]
        cells = [f"{t.friedman['F_p']:.2g} | {t.nemenyi_difference:.2f}" for t in tests]
        lines.append(f"| {MEASURES[measure].title} | {' | '.join(cells)} |")
        for apart, some in zip(pairs.values(), tests, strict=True):
            apart += [f"{one} ≻ {other}" for one, other in pairs_apart(some)]
        found += [MEASURES[measure].title] if tests[1].friedman["F_p"] < ALPHA else []
    lines += [
        "",
        "With each family counted once, a difference between them "
        f"is significant for {', '.join(found) or 'no measure'}: with {len(paper.families)} families only large "
        "differences can be. Pairs whose average ranks differ by more than the critical difference, with the number "
        "of measures:",
        "",
        *(f"- {name}: {_counted(apart)}" for name, apart in pairs.items()),
    ]
    return "\n".join(lines) + "\n"


def _counted(pairs: list[str]) -> str:
    return ", ".join(f"{pair} ({pairs.count(pair)})" for pair in dict.fromkeys(pairs)) or "none"


def protocols(paper: StudyResults, nested: StudyResults | None) -> str:
    """The two protocols side by side."""
    if nested is None:
        return (
            f"{HEADING}Under `nested` the settings for each test chunk are chosen on the other nine, so that the "
            "choice does not depend on test rows. studies/tkde2016-nested has no records yet; `make study` runs it, "
            "and this section then shows both side by side.\n"
        )
    both = [name for name in paper.averaged if name in nested.averaged]
    names = [name for name in paper.candidates if name in nested.candidates]
    shown = [protocol_table(paper, nested, measure, both, names) for measure in paper.measures]
    ends = grid_end_notes(nested) + natural_limit_notes(nested) or ["none was chosen"]
    return "\n".join(
        [
            f"{HEADING}Under `nested` the settings for each test chunk are chosen on the other nine. Each cell has the "
            f"values under `geng2016` / `nested`, on the same test chunks. {study_file(paper)} For `nested`: "
            f"{study_file(nested, 'tkde2016-nested')} {other_machines(nested)}",
            "",
            *(demoted(table.to_markdown()) for table in shown),
            "Average ranks of the six under `nested`:",
            "",
            *(f"- {MEASURES[measure].title}: {ranks_text(nested, measure)}" for measure in nested.measures),
            "",
            "Ends of grids under `nested`:",
            "",
            *(f"- {note}" for note in ends),
        ]
    )


def demoted(markdown: str) -> str:
    """A table of a study, with a heading of the next lower level."""
    return markdown.replace("### ", "#### ", 1)


def protocol_table(
    paper: StudyResults, nested: StudyResults, measure: str, datasets: list[str], names: list[str]
) -> TextTable:
    """A table of one measure under both protocols; the last rows are how often, and by how much, nested is worse."""
    tables = []
    for results in (paper, nested):
        rows = [results.datasets.index(name) for name in datasets]
        columns = [results.candidates.index(name) for name in names]
        tables.append((results.means(measure)[rows][:, columns], results.losses(measure)[rows][:, columns]))
    (one, loss), (other, nested_loss) = tables
    rows = [
        (name, [Cell(f"{one[i, j]:.4f} / {other[i, j]:.4f}") for j in range(len(names))])
        for i, name in enumerate(datasets)
    ]
    known = ~np.isnan(loss) & ~np.isnan(nested_loss)
    worse, rise = [], []
    for j in range(len(names)):
        pairs = list(zip(loss[known[:, j], j], nested_loss[known[:, j], j], strict=True))
        if not pairs:  # it failed everywhere
            worse.append(Cell(NOTHING))
            rise.append(Cell(NOTHING))
            continue
        number = sum(there > here and not is_tie(here, there) for here, there in pairs)
        worse.append(Cell(f"{number} of {len(pairs)}"))
        rises = [there / here - 1 for here, there in pairs]
        rise.append(Cell(f"{round(float(np.mean(rises)), 4) + 0.0:+.2%} (most {round(max(rises), 4) + 0.0:+.1%})"))
    title = f"{MEASURES[measure].title} {MEASURES[measure].arrow}: geng2016 / nested"
    foot = [("nested is worse", worse), ("mean rise of the loss", rise)]
    return TextTable(title=title, head=["Dataset", *names], rows=rows, foot=foot, notes=[])

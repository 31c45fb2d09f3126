"""The tables of the page: those of the study without what another part of the page shows already."""

from dataclasses import replace
from typing import Any

from skldl.experiments import StudyResults
from skldl.experiments.statistics import Comparison
from skldl.experiments.statistics_text import comparison_sentences, comparison_table
from skldl.experiments.tables import dataset_table, interval_table, measure_table, settings_table, time_table
from skldl.metrics import MEASURES
from skldl.report._skill import skill_table_with_intervals
from skldl.utils.tables import TextTable


def page_tables(results: StudyResults, skills: list[list[float]]) -> dict[str, Any]:
    """Make the tables of a page; ``skills`` as in `skldl.report._headline.headline`.

    ``measures`` (the criterion first), ``notes`` (those that all of them share), ``skill``, ``datasets``, ``settings``,
    ``time`` and ``intervals``.
    """
    criterion = results.study["criterion"]
    names = sorted(results.measures, key=lambda name: name != criterion)  # stable: the others keep their order
    tables = {name: measure_table(results, name) for name in names}
    if skills:
        tables[criterion] = without_column(tables[criterion], "Skill")  # the table of skills has all of them
    shown, notes = with_shared_notes(list(tables.values()))
    return {
        "measures": [(MEASURES[name].title, table) for name, table in zip(names, shown, strict=True)],
        "notes": notes,
        "skill": skill_table_with_intervals(results, skills) if skills else None,
        "datasets": dataset_table(results),
        "settings": settings_table(results),
        "time": time_table(results),
        "intervals": interval_table(results),
    }


def with_shared_notes(tables: list[TextTable]) -> tuple[list[TextTable], list[str]]:
    """Separate the notes that all tables share, so that the page shows them once: the tables without them, and these.

    Examples
    --------
    >>> from skldl.utils.tables import TextTable
    >>> given = [TextTable("", [], [], notes=["a", "b"]), TextTable("", [], [], notes=["a"])]
    >>> tables, notes = with_shared_notes(given)
    >>> [table.notes for table in tables], notes
    ([['b'], []], ['a'])
    """
    shared = [note for note in tables[0].notes if all(note in table.notes for table in tables)]
    return [replace(table, notes=[note for note in table.notes if note not in shared]) for table in tables], shared


def without_column(table: TextTable, heading: str) -> TextTable:
    """Leave a column of a table out, if the table has it.

    Examples
    --------
    >>> from skldl.utils.tables import Cell, TextTable
    >>> without_column(TextTable("", ["", "a", "b"], [("x", [Cell("1"), Cell("2")])]), "a").rows
    [('x', [Cell(text='2', best=False)])]
    """
    if heading not in table.head[1:]:
        return table
    place = table.head.index(heading, 1)

    def cut(rows: list[Any]) -> list[Any]:
        return [(name, [*cells[: place - 1], *cells[place:]]) for name, cells in rows]

    head = [*table.head[:place], *table.head[place + 1 :]]
    return replace(table, head=head, rows=cut(table.rows), foot=cut(table.foot))


def page_statistics(results: StudyResults, tests: dict[str, Comparison]) -> list[dict[str, Any]]:
    """Make the tests of each measure for the page, the criterion first: ``title``, ``text`` and ``table``.

    Average ranks are left out: they are in the table of the measure.
    """
    names = sorted(tests, key=lambda name: name != results.study["criterion"])
    found = []
    for name in names:
        table = comparison_table(tests[name])
        found.append(
            {
                "title": MEASURES[name].title,
                "text": " ".join(comparison_sentences(tests[name])),
                "table": None if table is None else without_column(table, "Average rank"),
            }
        )
    return found

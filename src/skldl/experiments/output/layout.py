"""`ResultTable`: a frame of numbers, and its formatted cells for terminal, Markdown and LaTeX."""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from skldl.experiments.output.texts import latex_text, markdown_text
from skldl.utils.typing import FloatArray

USUAL_DECIMALS = 3
MOST_DECIMALS = 8
NOTHING = "–"


@dataclass(frozen=True)
class Cell:
    """Text of a cell, in bold if it is the best; ``±`` and arrows are turned into LaTeX where needed."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class Frame:
    """The numbers of a table, in full: from the name of each row to its values by heading.

    NaN and None are empty cells. ``index`` is what the rows are; ``headings`` are for a frame without rows.
    """

    index: str
    lines: Mapping[str, Mapping[str, Any]]
    headings: Sequence[str] = ()

    def to_csv(self) -> str:
        """Write it as comma-separated values, for programs."""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        first: Mapping[str, Any] = next(iter(self.lines.values()), {})
        writer.writerow([self.index, *(self.headings or first)])
        for name, line in self.lines.items():
            writer.writerow([name, *(_csv_value(value) for value in line.values())])
        return stream.getvalue()


def _csv_value(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return float(value) if isinstance(value, np.floating) else value


@dataclass(frozen=True)
class ResultTable:
    """A table as people read it: names of rows with their cells, and averages below a line (``foot``).

    The first heading is that of the names of the rows; ``frame`` has the numbers that the cells show.
    """

    title: str
    head: list[str]
    rows: list[tuple[str, list[Cell]]]
    foot: list[tuple[str, list[Cell]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    frame: Frame | None = None

    @classmethod
    def of(
        cls,
        frame: Frame,
        show: Callable[[str, Mapping[str, Any]], list[Cell]],
        title: str,
        head: Sequence[str],
        *,
        foot: Sequence[tuple[str, list[Cell]]] = (),
        notes: Sequence[str] = (),
    ) -> "ResultTable":
        """Make the table of a frame; ``show`` turns the name of a row and its values by heading into cells."""
        rows = [(name, show(name, line)) for name, line in frame.lines.items()]
        return cls(title, list(head), rows, list(foot), list(notes), frame)

    def to_csv(self) -> str:
        """Write numbers in full as comma-separated values, for programs."""
        return "" if self.frame is None else self.frame.to_csv()

    def to_markdown(self) -> str:
        """Write a Markdown table with title and notes; the best in bold."""
        lines = [f"### {markdown_text(self.title)}", ""]
        lines.append("| " + " | ".join(markdown_text(word) for word in self.head) + " |")
        lines.append("|" + "|".join(["---"] + ["---:"] * (len(self.head) - 1)) + "|")
        for name, cells in [*self.rows, *self.foot]:
            texts = [f"**{markdown_text(cell.text)}**" if cell.best else markdown_text(cell.text) for cell in cells]
            lines.append("| " + " | ".join([markdown_text(name), *texts]) + " |")
        lines += ["", *(f"{markdown_text(note)}  " for note in self.notes)]
        return "\n".join(lines).rstrip() + "\n"

    def to_latex(self) -> str:
        """Write a LaTeX document that compiles as it is, with booktabs; the table is between two marked lines."""
        columns = "l" + "c" * (len(self.head) - 1)
        lines = [
            r"\documentclass{article}",
            r"\usepackage[landscape,margin=1cm]{geometry}",
            r"\usepackage{booktabs}",
            r"\pagestyle{empty}",
            r"\begin{document}",
            "% --- copy from here ---",
            r"\begin{table}",
            r"\centering\scriptsize\setlength{\tabcolsep}{3pt}",
            rf"\caption{{{latex_text(self.title)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            " & ".join(latex_text(word) for word in self.head) + r" \\",
            r"\midrule",
        ]
        for part, rows in ((0, self.rows), (1, self.foot)):
            if part and rows:
                lines.append(r"\midrule")
            for name, cells in rows:
                texts = [
                    rf"\textbf{{{latex_text(cell.text)}}}" if cell.best else latex_text(cell.text) for cell in cells
                ]
                lines.append(" & ".join([latex_text(name), *texts]) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}", ""]
        lines += [rf"\smallskip\footnotesize {latex_text(note)}" + "\n" for note in self.notes]
        lines += [r"\end{table}", "% --- to here ---", r"\end{document}"]
        return "\n".join(lines) + "\n"

    def widths(self) -> list[int]:
        """Number of letters of the widest cell in each column."""
        lines = [[name, *(cell.text for cell in cells)] for name, cells in [*self.rows, *self.foot]]
        return [max(len(line[column]) for line in [self.head, *lines]) for column in range(len(self.head))]

    def transposed(self) -> "ResultTable":
        """Exchange rows and columns, for a narrow page; the rows below the line become the columns on the right."""
        lines = [*self.rows, *self.foot]
        rows = [(name, [cells[j] for _, cells in lines]) for j, name in enumerate(self.head[1:])]
        return ResultTable(self.title, [self.head[0], *(name for name, _ in lines)], rows, [], self.notes, self.frame)

    def fitted(self, width: int, gap: int = 3) -> list["ResultTable"]:
        """Lay the table out for a page: as it is, with rows and columns exchanged, or in parts side by side.

        A line has ``width`` letters, ``gap`` of them between two columns; a table is wider only if a cell is.
        """
        for table in (self, self.transposed()):
            if sum(table.widths()) + gap * len(table.head) <= width:
                return [table]
        widths = self.widths()
        parts: list[list[int]] = []
        used = width + 1
        for column in range(1, len(self.head)):
            used += widths[column] + gap
            if used > width:
                parts.append([])
                used = widths[0] + gap + widths[column] + gap
            parts[-1].append(column)
        return [self._columns(part) for part in parts]

    def _columns(self, part: list[int]) -> "ResultTable":
        rows, foot = (
            [(name, [cells[column - 1] for column in part]) for name, cells in lines]
            for lines in (self.rows, self.foot)
        )
        return ResultTable(self.title, [self.head[0], *(self.head[column] for column in part)], rows, foot, self.notes)

    def __str__(self) -> str:
        """Plain text; ``*`` marks the best."""
        grid = [self.head]
        for name, cells in [*self.rows, *self.foot]:
            grid.append([name, *(f"{cell.text}*" if cell.best else cell.text for cell in cells)])
        widths = [max(len(line[column]) for line in grid) for column in range(len(self.head))]
        lines = [self.title, ""]
        for line in grid:
            others = (word.rjust(width) for word, width in zip(line[1:], widths[1:], strict=True))
            lines.append("  ".join([line[0].ljust(widths[0]), *others]).rstrip())
        return "\n".join([*lines, "", *self.notes]).rstrip()


def decimals_to_tell_apart(values: FloatArray, deviations: FloatArray) -> int:
    """Number of decimals for the means of a row: three, and more where two would be printed equal, or one as zero.

    All means of a row have the same number, so that no difference between them seems larger than it is; and at most two
    more than the deviations, since what comes after that is chance. Means with different ranks may then be printed
    equal.

    Examples
    --------
    >>> import numpy as np
    >>> decimals_to_tell_apart(np.array([0.174, 0.01472, 0.01483, 0.036]), np.array([0.02, 0.001, 0.001, 0.002]))
    4
    """
    most = min([MOST_DECIMALS, *(2 + _decimals_to_show(value) for value in deviations[deviations > 0])])
    decimals = max((_decimals_to_show(value) for value in values), default=USUAL_DECIMALS)
    order = np.sort(values[np.isfinite(values)])
    for lower, upper in pairwise(order):
        while decimals < most and not same(lower, upper) and f"{lower:.{decimals}f}" == f"{upper:.{decimals}f}":
            decimals += 1
    return decimals


def same(one: float, other: float) -> bool:
    """Whether two means differ by nothing but rounding errors: then they share their rank."""
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-15)


def show_deviation(value: float) -> str:
    """Write a standard deviation: three decimals, or the first digit that is not zero.

    Examples
    --------
    >>> show_deviation(0.0124), show_deviation(0.00043), show_deviation(0.0)
    ('0.012', '0.0004', '0.000')
    """
    return f"{value:.{_decimals_to_show(value)}f}"


def _decimals_to_show(value: float) -> int:
    """Three, or up to the first digit that is not zero; rounding noise shows as zero."""
    if not 0.5 * 10**-MOST_DECIMALS <= value < 0.5 * 10**-USUAL_DECIMALS:
        return USUAL_DECIMALS
    return min(MOST_DECIMALS, -math.floor(math.log10(value)))


def show_rank(rank: float) -> str:
    """Write a rank: whole if it is whole, a tie with one decimal.

    Examples
    --------
    >>> show_rank(2.0), show_rank(2.5)
    ('2', '2.5')
    """
    return f"{rank:.0f}" if rank == int(rank) else f"{rank:.1f}"


def show_share(value: float) -> str:
    """Write a share in per cent, without the sign of a zero.

    Examples
    --------
    >>> show_share(0.123), show_share(-0.0001)
    ('12.3%', '0.0%')
    """
    return "−∞" if value == -math.inf else f"{round(value, 3) + 0.0:.1%}"

"""Tables for readers: aligned text, Markdown, LaTeX and comma-separated values."""

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Cell:
    """The text of a cell; the best cells of a row are bold."""

    text: str
    best: bool = False


@dataclass(frozen=True)
class TextTable:
    """A table of texts, and the numbers behind them.

    Parameters
    ----------
    title : str
        Title above the table.
    head : list of str
        Headings; the first is that of the row names.
    rows, foot : list of (str, list of Cell)
        Name and cells of each row; those of ``foot``, such as averages, are below a line.
    notes : list of str
        Sentences below the table.
    values : mapping
        Numbers in full, which `to_csv` writes: from the name of each row to its values by heading.
    index : str
        Heading of the row names in `to_csv`.

    Examples
    --------
    >>> print(TextTable("Losses", ["Dataset", "A", "B"], [("x", [Cell("0.1", True), Cell("0.25")])]))
    Losses
    <BLANKLINE>
    Dataset     A     B
    x        0.1*  0.25
    """

    title: str
    head: list[str]
    rows: list[tuple[str, list[Cell]]]
    foot: list[tuple[str, list[Cell]]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    index: str = ""

    @classmethod
    def of(
        cls,
        values: Mapping[str, Mapping[str, Any]],
        show: Callable[[str, Mapping[str, Any]], list[Cell]],
        title: str,
        head: Sequence[str],
        *,
        index: str = "dataset",
        foot: Sequence[tuple[str, list[Cell]]] = (),
        notes: Sequence[str] = (),
    ) -> "TextTable":
        """Make a table of values; ``show`` turns the name of a row and its values into cells."""
        rows = [(name, show(name, line)) for name, line in values.items()]
        return cls(title, list(head), rows, list(foot), list(notes), values, index)

    def to_csv(self) -> str:
        """Write the numbers in full, for programs; NaN and None are empty. Empty for a table without numbers."""
        if not self.values:
            return ""
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow([self.index, *next(iter(self.values.values()))])
        for name, line in self.values.items():
            writer.writerow([name, *(_csv_value(value) for value in line.values())])
        return stream.getvalue()

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

    def transposed(self) -> "TextTable":
        """Exchange rows and columns, for a narrow page; the rows of ``foot`` become the last columns."""
        lines = [*self.rows, *self.foot]
        rows = [(name, [cells[j] for _, cells in lines]) for j, name in enumerate(self.head[1:])]
        return TextTable(self.title, [self.head[0], *(name for name, _ in lines)], rows, [], self.notes)

    def fitted(self, width: int, gap: int = 3) -> list["TextTable"]:
        """Fit the table to a page: unchanged, with rows and columns exchanged, or in parts one below the other.

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

    def _columns(self, part: list[int]) -> "TextTable":
        rows, foot = (
            [(name, [cells[column - 1] for column in part]) for name, cells in lines]
            for lines in (self.rows, self.foot)
        )
        return TextTable(self.title, [self.head[0], *(self.head[column] for column in part)], rows, foot, self.notes)

    def __str__(self) -> str:
        """Plain text; ``*`` marks the best."""
        grid = [self.head]
        for name, cells in [*self.rows, *self.foot]:
            grid.append([name, *(f"{cell.text}*" if cell.best else cell.text for cell in cells)])
        right = [column > 0 for column in range(len(self.head))]
        return "\n".join([self.title, "", *aligned(grid, right), "", *self.notes]).rstrip()


def aligned(lines: Sequence[Sequence[str]], right: Sequence[bool]) -> list[str]:
    """Pad the cells of lines so that they stand in columns, which are aligned to the right where ``right`` says so.

    Examples
    --------
    >>> aligned([["name", "n"], ["a", "1,200"]], [False, True])
    ['name      n', 'a     1,200']
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(
            word.rjust(width) if is_right else word.ljust(width)
            for word, width, is_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    ]


def _csv_value(value: Any) -> Any:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return float(value) if isinstance(value, np.floating) else value


_MARKDOWN = re.compile(r"[\\|*`]|](?=[(\[])|<(?=[A-Za-z/!?])")  # cells, emphasis, code, links and HTML


def markdown_text(text: str) -> str:
    """Escape a text, such as a name, so that Markdown shows it literally: on one line, without links or HTML.

    Examples
    --------
    >>> print(markdown_text("a_b [x](http://y) <script>"))
    a_b [x\\](http://y) &lt;script>
    """
    return _MARKDOWN.sub(lambda found: "&lt;" if found[0] == "<" else f"\\{found[0]}", " ".join(text.split()))


_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "–": "--",
    "…": r"\dots{}",
}
_LATEX_MATHS = {
    "±": r"\pm",
    "↑": r"\uparrow",
    "↓": r"\downarrow",
    "−": "-",
    "·": r"\cdot",
    "•": r"\bullet",
    "◦": r"\circ",
    "×": r"\times",
    "→": r"\to",
    "≻": r"\succ",
    "χ": r"\chi",
    "²": "^2",
    "≥": r"\geq",
    "≤": r"\leq",
}
_LATEX = (
    _LATEX_SPECIAL
    | {letter: f"${code}$" for letter, code in _LATEX_MATHS.items()}
    | {letter: f"\\{letter}" for letter in "&%$#_{}"}
)


def latex_text(text: str) -> str:
    """Escape a text so that LaTeX prints it literally."""
    return "".join(_LATEX.get(letter, letter) for letter in text)

"""Output of the commands: notes on standard error, tables on standard output, figures in files."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from skldl.cli._wording import printable, worded
from skldl.utils.files import whole_file

IMAGES = (".png", ".pdf", ".svg")


def note(text: str) -> None:
    """Print on standard error, with parameters spelled as options; standard output is for results alone."""
    print(worded(text), file=sys.stderr)


def print_table(table: pd.DataFrame, title: str, *, decimals: int = 4) -> None:
    """Print a table without its index, in the width of the terminal, or 200 columns wide in a pipe."""
    from rich.console import Console
    from rich.text import Text

    left = [not pd.api.types.is_numeric_dtype(table[name]) for name in table]
    lines = [[Text(_show(cell, decimals)) for cell in row] for row in table.itertuples(index=False)]
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    console.print(Text(title))
    console.print(framed([printable(str(name)) for name in table], [lines], left))


def framed(
    head: Sequence[str],
    sections: Sequence[Sequence[Any]],
    left: Sequence[bool],
    *,
    title: str = "",
    no_wrap: bool = False,
) -> Any:
    """A table of rich texts, with a line below the headings and between sections of rows.

    Columns are aligned to the right, except where ``left`` is true; ``no_wrap`` prevents line breaks in the former.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=Text(title) if title else None, box=box.SIMPLE_HEAD, title_justify="left")
    for heading, is_left in zip(head, left, strict=True):
        shown.add_column(
            Text(heading), justify="left" if is_left else "right", overflow="fold", no_wrap=no_wrap and not is_left
        )
    for rows in sections:
        for row in rows:
            shown.add_row(*row)
        shown.add_section()
    return shown


def _show(cell: Any, decimals: int) -> str:
    return f"{cell:.{decimals}f}" if isinstance(cell, float) else printable(str(cell))


def save_figure(target: Path, draw: Callable[[], Any]) -> None:
    """Draw a display of `skldl.plots` without a window and write it atomically; the extension is the format."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure = draw().figure_
    with whole_file(target) as stream:
        figure.savefig(stream, format=target.suffix[1:].lower(), dpi=150)
    plt.close(figure)

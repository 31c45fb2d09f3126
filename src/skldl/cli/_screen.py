"""Output of the commands: notes and progress on standard error, tables on standard output."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from skldl.cli._wording import printable, worded
from skldl.data import TableFile
from skldl.data._tables import ArrayTable
from skldl.utils.files import whole_file

IMAGES = (".png", ".pdf", ".svg")


def note(text: str) -> None:
    """Print on standard error, so that standard output stays clean; parameters are named as options."""
    print(worded(text), file=sys.stderr)


@contextmanager
def progress_of(table: TableFile | ArrayTable, *, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show how far the reading of a table is, on a terminal only, unless the result itself goes there (``quiet``).

    The block calls what it gets with the number of rows that are done.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("0 rows", total=None if table.fraction_read() is None else 1.0)

        def tell(rows: int) -> None:
            bar.update(task, completed=table.fraction_read() or 0.0, description=f"{rows:,} rows")

        yield tell


def print_table(table: pd.DataFrame, title: str, *, decimals: int = 4) -> None:
    """Print a table without its index: framed on a terminal, plain columns in a pipe."""
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

    Columns are aligned to the right, unless ``left`` says otherwise; ``no_wrap`` keeps the former on one line.
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
    """Draw a display of `skldl.plots` without a window and write it whole; the extension is the format."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure = draw().figure_
    with whole_file(target) as stream:
        figure.savefig(stream, format=target.suffix[1:].lower(), dpi=150)
    plt.close(figure)

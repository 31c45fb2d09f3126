"""Output of the commands: notes and progress on standard error, tables on standard output."""

import sys
from collections.abc import Callable, Iterator
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
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=box.SIMPLE_HEAD)
    numeric = [pd.api.types.is_numeric_dtype(table[name]) for name in table]
    for name, is_number in zip(table, numeric, strict=True):
        shown.add_column(Text(printable(str(name))), justify="right" if is_number else "left", overflow="fold")
    for row in table.itertuples(index=False):
        shown.add_row(*(Text(_show(cell, decimals)) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    console.print(Text(title))
    console.print(shown)


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

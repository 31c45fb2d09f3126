"""``skldl report``: make the page of a study again from its records."""

from pathlib import Path

from cyclopts import App

app = App(name="report")


@app.default
def report(folder: Path) -> None:
    """Make the HTML report of a study from its records.

    The page is one file that needs no other file and no network. Example:

    skldl report run1

    Parameters
    ----------
    folder
        The folder that skldl bench wrote.
    """
    from skldl.report import write_report

    print(f"Report: {write_report(folder)}")

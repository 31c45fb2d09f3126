"""A self-contained HTML report of a study. Needs the extra ``report``.

`write_report` makes it from the records of a study; ``skldl bench`` and ``skldl report`` call it.
"""

from skldl.report._page import render_report, write_report

__all__ = ["render_report", "write_report"]

"""Quality of raters: reliability, severity and random answers.

`DawidSkene` learns from votes alone how reliable each rater is, and estimates one true label for each item.
`rater_table` estimates the quality of each rater, with intervals and flags. The weights of the raters go into
`skldl.distributions.from_votes`.

**One truth or a distribution.** The posterior of Dawid and Skene's model answers the question "which label is the true
one?". The more votes an item has, the closer it comes to a row of zeros and a single one, even where careful raters
disagree for good reasons. It is no label distribution. Who wants the disagreement keeps the votes, weighted by the
quality of the raters: ``from_votes(votes, weights=model)``.
"""

from skldl.annotators._dawid_skene import DawidSkene
from skldl.annotators._rater_table import RaterTable, rater_table
from skldl.annotators._summary import RaterSummary

__all__ = ["DawidSkene", "RaterSummary", "RaterTable", "rater_table"]

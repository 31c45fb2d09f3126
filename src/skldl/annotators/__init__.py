"""Quality of raters: reliability, severity and random answers.

`DawidSkene` estimates from votes alone how reliable each rater is, and one true label for each item. `rater_table`
estimates the quality of each rater, with intervals and flags. `skldl.distributions.from_votes` accepts the weights of
the raters.

**One truth or a distribution.** The posterior of Dawid and Skene's model is about the question which label is the true
one. With many votes it tends to a row of zeros and a single one, even if careful raters disagree for good reasons. It
is not a label distribution. To keep the disagreement, weight the votes by the quality of the raters:
``from_votes(votes, weights=model)``.
"""

from skldl.annotators._dawid_skene import DawidSkene
from skldl.annotators._rater_table import RaterTable, rater_table
from skldl.annotators._summary import RaterSummary

__all__ = ["DawidSkene", "RaterSummary", "RaterTable", "rater_table"]

"""Conversions of labels, votes, counts, scores and rankings to label distributions, and back.

Data rarely come as label distributions, but as labels, sets of labels, votes, ratings or rankings. Each function here
is pure: it checks its input, does not change it, and documents how invalid input is handled.

**Tables.** For a DataFrame or Series the result is a DataFrame or Series of the same library (pandas or polars), with
the labels as names of its columns and, in pandas, with the same index; for other input it is a NumPy array. Columns are
in the order of ``classes`` or ``labels`` if given, else in the order of the columns of a table, else sorted.

========================  ==========================================================================
input                     function
========================  ==========================================================================
single labels             `from_labels`; `from_neighbours` (ordered), `from_similarity` (related)
sets of labels            `from_label_sets`, `from_similarity`; `PropagationEnhancer` (with features)
counts, intensities       `from_counts`, `from_scores`
answers of annotators     `from_votes`; `skldl.annotators` estimates the quality of annotators
rankings                  `from_rankings`
distributions             `to_labels`, `to_label_sets`, `rank_labels`, `expected_value`,
                          `to_weighted_examples`
========================  ==========================================================================
"""

from skldl.distributions._back import expected_value, rank_labels, to_label_sets, to_labels, to_weighted_examples
from skldl.distributions._counts import from_counts, from_scores
from skldl.distributions._labels import from_label_sets, from_labels
from skldl.distributions._neighbours import from_neighbours
from skldl.distributions._propagation import PropagationEnhancer
from skldl.distributions._rankings import from_rankings
from skldl.distributions._similarity import from_similarity
from skldl.distributions._votes import NoiseCeiling, Votes, from_votes

__all__ = [
    "NoiseCeiling",
    "PropagationEnhancer",
    "Votes",
    "expected_value",
    "from_counts",
    "from_label_sets",
    "from_labels",
    "from_neighbours",
    "from_rankings",
    "from_scores",
    "from_similarity",
    "from_votes",
    "rank_labels",
    "to_label_sets",
    "to_labels",
    "to_weighted_examples",
]

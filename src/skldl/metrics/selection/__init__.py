"""How the six measures of the paper were chosen, as a program that can be varied and run on other predictions.

The paper takes its six from a dendrogram of the measures in Cha (2007) by four principles: clusters further apart than
0.1, one measure for each syntactic family, calculation that is not prone to instability, and wide use.
`select_measures` runs that choice and reports why each measure was taken or left; `robustness` repeats it over seeds,
numbers of labels and concentrations. What the paper leaves open, and what was assumed instead, is in the docstring
of `select_measures`.
"""

from skldl.metrics.selection._principles import LIBRARIES, USAGE, instability
from skldl.metrics.selection._robustness import Robustness, robustness
from skldl.metrics.selection._select import Selection, select_measures

__all__ = ["LIBRARIES", "USAGE", "Robustness", "Selection", "instability", "robustness", "select_measures"]

"""The strategy of problem transformation: label distributions as weighted single-label examples."""

from skldl.transformation._ptbayes import PTBayes
from skldl.transformation._ptclassifier import PTClassifier
from skldl.transformation._ptsvm import PTSVM

__all__ = ["PTSVM", "PTBayes", "PTClassifier"]

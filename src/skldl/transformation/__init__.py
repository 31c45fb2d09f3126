"""The strategy of problem transformation: label distributions as weighted single-label examples."""

from skldl.transformation._ptbayes import PTBayes
from skldl.transformation._ptclassifier import PTClassifier

__all__ = ["PTBayes", "PTClassifier"]

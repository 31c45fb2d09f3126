"""`EnhancedLDL`: a learner trained on enhanced logical labels, for studies of label enhancement.

Enhancement is usually evaluated by a recovery experiment: binarise true distributions, enhance the logical labels, and
compare with the truth. For users another question matters: does a learner trained on the enhanced labels predict the
true distributions of new rows better than one trained on the logical labels, with 1/|L| each?
"""

from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from skldl.base import BaseLDL
from skldl.distributions import from_label_sets, to_label_sets
from skldl.exceptions import DataError, Parameter
from skldl.utils.parameters import FRACTION, NONE, has_methods
from skldl.utils.typing import FloatArray


class EnhancedLDL(BaseLDL):
    """Binarise the distributions, enhance the logical labels, and learn from the result.

    Parameters
    ----------
    enhancer : transformer, default=None
        Such as `skldl.enhancement.GLLE`; None assigns each label of a row ``1/|L|``.
    estimator : estimator, default=None
        Learner for the enhanced labels. With None, ``predict`` accepts the training rows alone, and returns their
        enhanced labels.
    mass : float, default=0.5
        Labels are relevant from the highest degree down until their degrees sum to this mass.

    Attributes
    ----------
    distributions_ : ndarray of shape (n_samples, n_labels)
        Enhanced labels of the training rows.
    estimator_ : estimator
        The fitted learner, if there is one.

    Notes
    -----
    Sample weights reach the learner, not the enhancer.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl import MeanDistribution
    >>> from skldl.enhancement import EnhancedLDL
    >>> X, D = np.eye(2), [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3]]
    >>> EnhancedLDL().fit(X, D).predict(X)
    array([[1. , 0. , 0. ],
           [0.5, 0.5, 0. ]])
    >>> EnhancedLDL(estimator=MeanDistribution()).fit(X, D).predict(X[:1])
    array([[0.75, 0.25, 0.  ]])
    """

    _constraints: ClassVar = {
        "enhancer": NONE | has_methods("an enhancer", "fit_transform"),
        "estimator": NONE | has_methods("a learner", "fit", "predict"),
        "mass": FRACTION,
    }
    _accept_sparse = False

    def __init__(self, enhancer: Any = None, estimator: Any = None, *, mass: float = 0.5) -> None:
        self.enhancer = enhancer
        self.estimator = estimator
        self.mass = mass

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        L = to_label_sets(D, mass=self.mass)
        if self.enhancer is None:
            self.distributions_ = np.asarray(from_label_sets(L))
        else:
            self.distributions_ = np.asarray(clone(self.enhancer).fit_transform(X, L))
        if self.estimator is None:
            self._rows = X
            return
        arguments = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(X, self.distributions_, **arguments)

    def _predict(self, X: Any) -> FloatArray:
        if self.estimator is not None:
            return np.asarray(self.estimator_.predict(X))
        if X.shape != self._rows.shape or not np.array_equal(X, self._rows):
            raise DataError(
                "EnhancedLDL without an estimator returns the enhanced labels of the rows that fit saw, and these are "
                "other rows. To predict new rows, set ",
                Parameter("estimator"),
                ".",
            )
        return self.distributions_

"""`HeldOutWrapper`: base class of `CalibratedLDL` and `DirichletSpread`, which learn from held-out predictions."""

from typing import Any

from sklearn.base import clone
from sklearn.utils import Tags, get_tags

from skldl.base import BaseLDL, GroupedLDL
from skldl.ensemble._members import TrainingRows, out_of_sample
from skldl.selection._candidate import with_seed
from skldl.utils.parameters import Constraint
from skldl.utils.typing import FloatArray, IntArray

LEARNER = Constraint("a label distribution learner", lambda value: isinstance(value, BaseLDL))


class HeldOutWrapper(GroupedLDL):
    """Base class of estimators that wrap a learner and learn from its predictions for held-out rows.

    A subclass has the parameters ``estimator`` and ``n_folds``.
    """

    estimator: Any
    n_folds: int

    def _fit_estimator(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None, seed: int
    ) -> tuple[TrainingRows, FloatArray]:
        """Fit ``estimator_`` on all rows; return the rows with their folds, and the held-out predictions."""
        rows = TrainingRows.split(X, D, sample_weight, groups, n_folds=self.n_folds, seed=seed)
        self.estimator_, held_out = out_of_sample(with_seed(clone(self.estimator), seed), rows)
        return rows, held_out

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags

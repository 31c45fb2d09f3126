"""`PTSVM`: problem transformation with support vector machines, Platt's posterior and pairwise coupling.

Each training example becomes c single-label examples, weighted by the description degrees. On these, every pair of
labels gets a support vector machine (`_pairwise_svm`), its decision values on rows it has not seen a logistic function
(`_platt`), and the probabilities of all pairs are coupled into one distribution (`_coupling`).
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state

from skldl.base import BaseLDL
from skldl.transformation._gaussian import kernel_width
from skldl.transformation._origin import column_medians, measured_from
from skldl.transformation._pair_fit import PairFit, fit_pair_model
from skldl.transformation._pair_model import Examples, PairModel
from skldl.transformation._pairwise_svm import Machines
from skldl.transformation._resampling import multinomial_counts
from skldl.utils.parameters import BOOLEAN, COUNT, N_JOBS, NONE, POSITIVE, RANDOM_STATE, integer, number, one_of
from skldl.utils.typing import FloatArray


class PTSVM(BaseLDL):
    r"""Problem transformation to support vector machines (PT-SVM).

    The n training rows become weighted single-label examples: row i counts :math:`m_{ij} = c\,w_i d_{ij} / \bar w`
    times with label j, the expected number of copies when c·n examples are drawn with replacement in proportion to
    weight and description degree, as the paper does [1]_. For each pair of labels (a, b) a machine f minimises

    .. math:: \tfrac12 \|f\|^2 + C \sum_i s_a m_{ia} \max(0, 1 - f(x_i)) + s_b m_{ib} \max(0, 1 + f(x_i)),

    the objective of LIBSVM on those copies. The factors :math:`s_j = n / \sum_i m_{ij}` let each label count as n
    examples (``equal_mass``; scikit-learn's ``class_weight="balanced"``). How frequent each label is returns with
    Platt's posterior [2]_, which is fitted with the unscaled weights to decision values of rows that were left out. The
    second method of Wu, Lin and Weng [3]_ couples the posteriors of all pairs into one distribution.

    Label distributions that change gently with x leave every row between the margins. Then each machine is known in
    closed form, and all pairs together cost one product of the kernel with the distributions. An interval of offsets is
    optimal then; of these the one that brings the mean decision value nearest to 0 is taken. That condition is tested
    pair by pair; the pairs that fail it (`solved_pairs_`) need a solver, once for each fold and once for all rows. They
    share one kernel matrix, and a semismooth Newton method solves all of them together, to within 1e-8 of the
    optimality conditions, where the margins are at ±1. It begins at that closed form; where many rows are on a margin,
    at a point near the optimum that the alternating direction method of multipliers finds; and with fewer than 300
    rows, where LIBSVM arrives soon. Pairs with more than 4,096 rows exactly on a margin, and those that take more than
    400 steps, go to LIBSVM one after the other, which stops within 1e-6. With very many labels choose C so small (1e-3,
    say) that no pair needs a solver: as long as that is so, the value of C changes nothing, because Platt's posterior
    sets the scale.

    Features are taken as they are: scale them first if they have different units. A number added to a feature changes
    nothing, except with ``gamma="scale"``: then it changes the variance of all numbers in X, and so the width.

    Parameters
    ----------
    kernel : {"rbf", "linear"}, default="rbf"
        ``exp(-gamma * ||x - z||²)`` or ``x @ z``. With ``"linear"`` no kernel matrix is built as long as every pair
        is known in closed form, so that it serves any number of rows; put
        `sklearn.kernel_approximation.Nystroem` or `RBFSampler` before it for a Gaussian kernel on many rows.
    C : float, default=1.0
        Price of an example on the wrong side of its margin.
    gamma : {"auto", "scale"} or float, default="auto"
        Width of the Gaussian kernel: ``1 / n_features`` (LIBSVM's default, which the paper's published code uses),
        ``1 / (n_features * X.var())``, or the number itself. The linear kernel has none.
    equal_mass : bool, default=True
        Let every label count as n examples in the machines. False takes the weights as they are, which is
        the plain LIBSVM of the paper's published code: a more frequent label then draws f to its own margin, hardly
        any pair is known in closed form, and the decision values are less informative.
    resample : {None, "multinomial"}, default=None
        None uses the expected numbers of copies; ``"multinomial"`` draws them, as in the paper.
    max_samples : int or None, default=None
        Largest number of rows to learn from; None takes all rows. From more rows, this many are drawn without
        replacement with probabilities in proportion to their weights, and then count the same. The time of the closed
        form grows with the square of this number, and so does the memory of the solver.
    n_folds : int, default=5
        Parts of the out-of-fold step; row i is in part ``i % n_folds``.
    memory_limit : float, default=2.0
        Largest kernel matrix, in GiB. The closed form stores none; if the solver would need a larger one, it works on a
        low-rank factor (Cholesky with complete pivoting, at most 1000 columns), with a warning that says how far the
        kernel is off at most; with large C decision values are off by several times as much. 2 GiB are enough for
        16,384 rows. Up to 8,192 rows the solver may hold an inverse of the same size in single precision besides.
    max_machines : int or None, default=20000
        Largest number of machines to solve: pairs without a closed form, times ``n_folds + 1``. More are refused with
        an error instead of a fit that takes hours; None sets no limit.
    n_jobs : int, default=None
        Batches of pairs that are solved at the same time.
    random_state : int, RandomState instance or None, default=None
        Decides which rows are drawn if there are more than ``max_samples``, and the copies with
        ``resample="multinomial"``. In all other cases nothing is random.

    Attributes
    ----------
    support_ : ndarray of shape (n_used,)
        Rows of the training set that were learned from. Rows with weight zero are not counted.
    gamma_ : float or None
        Width of the Gaussian kernel; None for the linear kernel.
    solved_pairs_ : ndarray of shape (n_solved, 2)
        Pairs of labels whose final machine is not known in closed form.
    kernel_error_ : float
        Largest error of an entry of the kernel matrix that the solver worked with; 0 unless a low-rank factor took
        its place.
    n_features_in_ : int
        Number of features seen by ``fit``.
    n_labels_ : int
        Number of labels.
    label_names_ : ndarray of str
        Names of the labels.

    Notes
    -----
    A label without any mass is allowed: Platt's targets give it a small degree, about one part in the number of
    examples. In the out-of-fold fits the remaining rows count as n too, so that decision values have the scale of the
    final ones.

    A row with weight two is not the same as the row twice: copies of a row may end up in different folds.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.
    .. [2] H.-T. Lin, C.-J. Lin and R. C. Weng, "A note on Platt's probabilistic outputs for support vector machines",
       Machine Learning 68, 2007.
    .. [3] T.-F. Wu, C.-J. Lin and R. C. Weng, "Probability estimates for multi-class classification by pairwise
       coupling", Journal of Machine Learning Research 5, 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl import PTSVM
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> D = np.hstack([0.2 + 0.6 * X, 0.6 - 0.5 * X, 0.2 - 0.1 * X])
    >>> PTSVM().fit(X, D).predict([[0.0], [0.5], [1.0]]).round(1)
    array([[0.2, 0.6, 0.2],
           [0.5, 0.3, 0.2],
           [0.8, 0.1, 0.1]])

    Many rows, with an approximate kernel:

    >>> from sklearn.kernel_approximation import Nystroem
    >>> from sklearn.pipeline import make_pipeline
    >>> features = Nystroem(gamma=2.0, n_components=20, random_state=0)
    >>> model = make_pipeline(features, PTSVM(kernel="linear")).fit(X, D)
    >>> model.predict(X).shape
    (50, 3)
    """

    _keeps_rows = True
    _model_parts = (Examples, PairModel, Machines)
    _constraints: ClassVar = {
        "kernel": one_of(
            "rbf",
            "linear",
            hint="for another kernel put its feature map, such as sklearn.kernel_approximation.Nystroem, before a "
            "PTSVM(kernel='linear')",
        ),
        "C": number(above=0, at_most=1e30, hint="sums over all rows must not overflow"),
        "gamma": one_of("auto", "scale") | POSITIVE,
        "equal_mass": BOOLEAN,
        "resample": NONE | one_of("multinomial"),
        "max_samples": NONE | integer(at_least=2),
        "n_folds": integer(at_least=2),
        "memory_limit": number(above=0, hint="it is in GiB"),
        "max_machines": NONE | COUNT,
        "n_jobs": N_JOBS,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        kernel: Literal["rbf", "linear"] = "rbf",
        C: float = 1.0,
        gamma: Literal["auto", "scale"] | float = "auto",
        equal_mass: bool = True,
        resample: Literal["multinomial"] | None = None,
        max_samples: int | None = None,
        n_folds: int = 5,
        memory_limit: float = 2.0,
        max_machines: int | None = 20_000,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.kernel = kernel
        self.C = C
        self.gamma = gamma
        self.equal_mass = equal_mass
        self.resample = resample
        self.max_samples = max_samples
        self.n_folds = n_folds
        self.memory_limit = memory_limit
        self.max_machines = max_machines
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        self._fit_pairs(self._make_examples(X, D, sample_weight))

    def _make_examples(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> Examples:
        """Choose rows, weigh them and order them by fold: everything that does not depend on C."""
        generator = check_random_state(self.random_state)
        chosen, weight = _choose_rows(X.shape[0], sample_weight, self.max_samples, generator)
        fold_of = np.arange(len(chosen)) % min(self.n_folds, len(chosen))
        order = np.argsort(fold_of, kind="stable")
        ends = np.cumsum(np.bincount(fold_of))
        self.support_ = chosen[order]
        rows = X[self.support_]
        counts: FloatArray = weight[order, None] * D[self.support_]
        counts *= counts.size / counts.sum()
        if self.resample == "multinomial":
            counts = multinomial_counts(counts, counts.size, random_state=generator)
        self.gamma_ = None if self.kernel == "linear" else kernel_width(rows, self.gamma)
        origin = column_medians(rows)
        folds = [slice(int(start), int(end)) for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        limit = self.memory_limit * 2.0**30
        return Examples(measured_from(origin, rows), counts, folds, self.gamma_, limit, origin)

    def _fit_pairs(self, examples: Examples, previous: PairFit | None = None) -> PairFit:
        """Fit the pairs for the present C; return the fit on all rows, from which that for another C can begin."""
        self._model: PairModel
        self._model, final = fit_pair_model(
            examples,
            self.C,
            equal_mass=self.equal_mass,
            max_machines=np.inf if self.max_machines is None else self.max_machines,
            n_jobs=self.n_jobs,
            previous=previous,
        )
        self._examples = replace(examples)  # without what was cached for fitting
        self.solved_pairs_ = np.column_stack(examples.pairs)[self._model.solved]
        self.kernel_error_ = examples.solver_kernel.error if len(self.solved_pairs_) else 0.0
        return final

    def _predict(self, X: Any) -> FloatArray:
        return np.concatenate(list(self._model.predict(self._examples, X)))

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """All values of C share the rows and their kernel; each begins where the next smaller one ended."""
        if param != "C":
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        if not values:
            return
        examples = self._make_examples(X, D, sample_weight)
        sums = examples.expansion(slice(None), examples.weights)(examples.measured(X_new))
        predictions: dict[float, FloatArray] = {}
        final = None
        for value in sorted(set(values)):
            self.set_params(C=value)
            final = self._fit_pairs(examples, final)
            predictions[value] = np.concatenate(list(self._model.predict(examples, X_new, sums)))
        yield from (predictions[value] for value in values)


def _choose_rows(
    n_samples: int, sample_weight: FloatArray | None, max_samples: int | None, generator: np.random.RandomState
) -> tuple[npt.NDArray[np.intp], FloatArray]:
    """Rows to learn from, and their weights; rows drawn with probabilities by weight count the same afterwards."""
    weight = np.ones(n_samples) if sample_weight is None else sample_weight
    if max_samples is None or n_samples <= max_samples:
        return np.arange(n_samples), weight
    drawn = generator.choice(n_samples, size=max_samples, replace=False, p=weight / weight.sum())
    return np.sort(drawn), np.ones(max_samples)

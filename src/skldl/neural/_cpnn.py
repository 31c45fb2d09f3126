"""CPNN: a conditional probability neural network (Geng, Yin and Zhou, 2013).

A network with one output, f(x, y), takes the features and the label as inputs; p(y | x) = exp f(x, y) / Σ_y' exp f(x,
y'). With one hidden layer of activation g,

    f(x, y) = Σ_h v_h g(a_hᵀx + u_hᵀ code(y) + c_h),

and the cross-entropy between d and p is minimised. The code of a label is its number, for ordered labels such as the
ages of the paper, or one-hot (BCPNN [2]_), for labels without order.

No penalty suits all data. If it is too strong, all scores tend to zero and the prediction to the uniform distribution,
which is worse than the mean; if it is too weak, the network overfits. ``alpha="auto"`` chooses it on held-out rows,
from strong to weak.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from skldl.base import GroupedLDL
from skldl.neural._network import ACTIVATIONS, Activation
from skldl.selection import hold_out
from skldl.utils.arrays import row_blocks
from skldl.utils.mean_mixture import mean_distribution, row_weights
from skldl.utils.parameters import COUNT, NOT_NEGATIVE, RANDOM_STATE, one_of
from skldl.utils.scaling import StandardizedFeatures, column_divisors, standardize
from skldl.utils.simplex import log_softmax, softmax
from skldl.utils.solvers import Minimum, minimise
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.warn import warn

BLOCK_CELLS = 1 << 17
"""Number of values of hidden units in a block of rows and labels: 1 MiB, so that a block fits into the cache."""
ALPHAS = (3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 3e-5, 1e-5)
"""Penalties that "auto" compares, in this order."""
MAX_WORSE = 2
"""The search ends after so many consecutive penalties that are no better than the best one."""
HELD_OUT_FRACTION = 0.2
"""Fraction of the rows, or of the groups, on which "auto" compares penalties."""
ALPHA_OF_ONE_ROW = 1e-3
"""Penalty for a single row, which cannot be held out; chosen by hand."""


def label_codes(n_labels: int, kind: str) -> FloatArray:
    """Codes (n_labels, n_inputs): numbers from −1 to 1 in one column, or one-hot rows."""
    return np.linspace(-1.0, 1.0, n_labels)[:, None] if kind == "number" else np.eye(n_labels)


def _parts(theta: FloatArray, n_features: int, n_codes: int, n_hidden: int) -> list[FloatArray]:
    """Views A (n_features, n_hidden), U (n_codes, n_hidden), c (n_hidden,) and v (n_hidden,) of the flat vector."""
    ends = np.cumsum([n_features * n_hidden, n_codes * n_hidden, n_hidden])
    A, U, c, v = np.split(theta, ends)
    return [A.reshape(n_features, n_hidden), U.reshape(n_codes, n_hidden), c, v]


def scores(theta: FloatArray, features: Any, codes: FloatArray, n_hidden: int, activation: Activation) -> FloatArray:
    """Compute f(x, y) for all rows and labels; ``features`` is an array or a CSR matrix."""
    A, U, c, v = _parts(theta, features.shape[1], codes.shape[1], n_hidden)
    of_rows = np.asarray(features @ A)
    of_labels = codes @ U + c
    S = np.empty((len(of_rows), len(codes)))
    for rows in row_blocks(len(of_rows), len(codes) * n_hidden, BLOCK_CELLS):
        S[rows] = activation.value(of_rows[rows, None, :] + of_labels) @ v
    return S


def loss_and_gradient(
    theta: FloatArray,
    features: StandardizedFeatures,
    D: FloatArray,
    weight: FloatArray,
    codes: FloatArray,
    n_hidden: int,
    activation: Activation,
    alpha: float,
) -> tuple[float, FloatArray]:
    """Σᵢ weightᵢ cross-entropy + alpha/2 (‖A‖² + ‖U‖² + ‖v‖²) and its gradient in the flat vector."""
    n_features = len(features.mean)
    A, U, c, v = _parts(theta, n_features, codes.shape[1], n_hidden)
    gradient = np.zeros_like(theta)
    of_A, of_U, of_c, of_v = _parts(gradient, n_features, codes.shape[1], n_hidden)
    of_rows, of_labels = features.times(A), codes @ U + c
    back = np.empty_like(of_rows)
    loss = 0.0
    for rows in row_blocks(len(D), len(codes) * n_hidden, BLOCK_CELLS):
        hidden = activation.value(of_rows[rows, None, :] + of_labels)
        log_p = log_softmax(hidden @ v)
        loss -= float(weight[rows] @ (D[rows] * log_p).sum(axis=1))
        delta = (np.exp(log_p) - D[rows]) * weight[rows, None]
        of_v += delta.ravel() @ hidden.reshape(-1, n_hidden)
        slope = activation.slope(hidden)
        # summed over the labels first, so that one product with the features makes the gradient of A
        back[rows] = np.matmul(delta[:, None, :], slope)[:, 0, :] * v
        by_label = np.einsum("ij,ijh->jh", delta, slope) * v
        of_U += codes.T @ by_label
        of_c += by_label.sum(axis=0)
    of_A += features.transposed_times(back)
    for part, of_part in ((A, of_A), (U, of_U), (v, of_v)):
        loss += 0.5 * alpha * float(np.vdot(part, part))
        of_part += alpha * part
    return loss, gradient


@dataclass(frozen=True)
class _Rows:
    """Training or held-out rows, with weights that sum to one."""

    features: StandardizedFeatures
    D: FloatArray
    weight: FloatArray

    def take(self, rows: IntArray) -> "_Rows":
        return _Rows(self.features.take(rows), self.D[rows], row_weights(len(rows), self.weight[rows]))


class CPNN(GroupedLDL):
    r"""Conditional probability neural network: the label is an input, and the only output is a score (CPNN).

    With :math:`p_j \propto \exp f(x, j)` for a network f with one hidden layer it minimises, with the mean over rows,

    .. math:: \overline{-\textstyle\sum_j d_{ij} \ln p_{ij}} + \frac{\mathtt{alpha}}{2} \lVert \text{weights} \rVert^2.

    Features are centred internally and divided by their standard deviation. A feature with two values is divided by
    their difference instead: divided by its standard deviation, a rare value would be an outlier.

    Parameters
    ----------
    n_hidden : int, default=32
        Units of the hidden layer.
    label_code : {"number", "one_hot"}, default="number"
        Input for a label: its number, for ordered labels such as ages, or a one-hot code (BCPNN).
    activation : {"tanh", "logistic", "relu", "identity"}, default="tanh"
        Function of the hidden units.
    alpha : float or "auto", default="auto"
        Weight decay. "auto" holds out a fifth of the rows, or of the groups, and tries 0.03, 0.01, …, 1e-5 on the
        others. It stops after two consecutive values that do not improve on the best, but not before one is better
        than the mean distribution. Then all rows are fitted with the best value, from the same initial weights.
    max_iter : int, default=200
        Maximum number of steps of L-BFGS.
    tol : float, default=1e-6
        Estimated excess of the objective over a minimum at which the search ends; the true excess can be larger.
    random_state : int, RandomState or None, default=None
        Source of the initial weights, and of the held-out rows.

    Attributes
    ----------
    alpha_ : float
        The penalty that was used.
    theta_ : ndarray
        All weights in one vector.
    n_iter_ : int
        Number of steps.
    loss_curve_ : list of float
        Objective at the start and after each step.

    Notes
    -----
    The paper trains with resilient propagation, this class with L-BFGS on all rows. The full text of the paper was not
    available; the scaling of the label's number to [−1, 1] is our choice.

    References
    ----------
    .. [1] X. Geng, C. Yin and Z.-H. Zhou, "Facial age estimation by learning from label distributions", IEEE
       Transactions on Pattern Analysis and Machine Intelligence 35(10), 2013.
    .. [2] J. Yang, M. Sun and X. Sun, "Learning visual sentiment distributions via augmented conditional probability
       neural network", AAAI 2017.

    Examples
    --------
    >>> from skldl.neural import CPNN
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]]
    >>> CPNN(4, alpha=1e-3, random_state=0).fit(X, D).predict([[1.5]]).round(1)
    array([[0.5, 0.5]])

    The penalty that was chosen on held-out rows:

    >>> from skldl.testing import make_distributions
    >>> X, D = make_distributions(200)
    >>> CPNN(4, label_code="one_hot", random_state=0).fit(X, D).alpha_
    0.003
    """

    _onnx = "conditional_network"
    _constraints: ClassVar = {
        "n_hidden": COUNT,
        "label_code": one_of("number", "one_hot"),
        "activation": one_of(*ACTIVATIONS),
        "alpha": one_of("auto") | NOT_NEGATIVE,
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        n_hidden: int = 32,
        *,
        label_code: str = "number",
        activation: str = "tanh",
        alpha: float | str = "auto",
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.label_code = label_code
        self.activation = activation
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _fit_grouped(self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None) -> None:
        self._train(X, D, sample_weight, groups, set())

    def _train(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None, wanted: set[int]
    ) -> dict[int, FloatArray]:
        """Fit; return the weights after each of the wanted numbers of steps that were reached."""
        weight = row_weights(X.shape[0], sample_weight)
        mean, scale = weight @ X, column_divisors(X, weight)
        rows = _Rows(standardize(X, mean, scale), D, weight)
        random = check_random_state(self.random_state)
        codes, n_hidden = label_codes(D.shape[1], self.label_code), int(self.n_hidden)
        start = self._initial(X.shape[1], codes, n_hidden, random)
        alpha = self._automatic_alpha(rows, start, groups, random) if self.alpha == "auto" else float(self.alpha)
        kept: dict[int, FloatArray] = {}

        def callback(n_iter: int, theta: FloatArray) -> None:
            if n_iter in wanted:
                kept[n_iter] = _for_raw_features(theta, mean, scale, codes.shape[1], n_hidden)

        run = self._minimise(rows, start, alpha, callback)
        if run.n_iter >= self.max_iter and not run.converged:
            warn(
                f"CPNN stopped at max_iter={self.max_iter} before it converged. Raise max_iter or tol.",
                ConvergenceWarning,
            )
        self.alpha_ = alpha
        self.theta_ = _for_raw_features(run.x, mean, scale, codes.shape[1], n_hidden)
        self.n_iter_, self.loss_curve_ = max(1, run.n_iter), run.loss_curve
        return kept

    def _loss(self, theta: FloatArray, rows: _Rows, alpha: float) -> tuple[float, FloatArray]:
        codes, activation = label_codes(rows.D.shape[1], self.label_code), ACTIVATIONS[self.activation]
        return loss_and_gradient(
            theta, rows.features, rows.D, rows.weight, codes, int(self.n_hidden), activation, alpha
        )

    def _minimise(
        self, rows: _Rows, start: FloatArray, alpha: float, callback: Callable[[int, FloatArray], None] | None = None
    ) -> Minimum:
        return minimise(
            lambda theta: self._loss(theta, rows, alpha),
            start,
            tol=self.tol,
            max_iter=self.max_iter,
            lower_bound=0.0,
            callback=callback,
        )

    def _automatic_alpha(
        self, rows: _Rows, start: FloatArray, groups: IntArray | None, random: np.random.RandomState
    ) -> float:
        """Find the penalty with the smallest cross-entropy on held-out rows, from strong to weak.

        All runs start at the same weights, not at the solution of the previous penalty: if that is zero, so is the
        gradient there.
        """
        seed = int(random.randint(2**31 - 1))
        if len(rows.D) < 2:
            return ALPHA_OF_ONE_ROW  # one row cannot be held out
        train, test = map(rows.take, hold_out(len(rows.D), HELD_OUT_FRACTION, random_state=seed, groups=groups))
        of_mean = -float(test.weight @ test.D @ np.log(mean_distribution(train.D, train.weight)))
        best, smallest, n_worse = ALPHAS[0], np.inf, 0
        for alpha in ALPHAS:
            loss, _ = self._loss(self._minimise(train, start, alpha).x, test, 0.0)
            if loss < smallest:
                best, smallest, n_worse = alpha, loss, 0
            else:
                n_worse += 1
            if n_worse >= MAX_WORSE and smallest < of_mean:
                break
        return best

    def _initial(self, n_features: int, codes: FloatArray, n_hidden: int, random: np.random.RandomState) -> FloatArray:
        """Draw initial weights uniformly within Glorot's bounds.

        Weights of one-hot codes are zero, so that training does not depend on the order of the labels.
        """
        theta = np.zeros(n_hidden * (n_features + codes.shape[1] + 2))
        A, U, c, v = _parts(theta, n_features, codes.shape[1], n_hidden)
        bound = np.sqrt(6.0 / (n_features + 1 + n_hidden))
        A[:] = random.uniform(-bound, bound, size=A.shape)
        if self.label_code == "number":
            U[:] = random.uniform(-1.0, 1.0, size=U.shape)
        c[:] = random.uniform(-bound, bound, size=n_hidden)
        v[:] = random.uniform(-bound, bound, size=n_hidden)
        return theta

    def _predict(self, X: Any) -> FloatArray:
        return self._outputs(X, self.theta_)

    def _outputs(self, X: Any, theta: FloatArray) -> FloatArray:
        codes = label_codes(self.n_labels_, self.label_code)
        return softmax(scores(theta, X, codes, int(self.n_hidden), ACTIVATIONS[self.activation]))

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        """Predict for all numbers of steps from one fit, if the penalty does not depend on them."""
        if param != "max_iter" or self.alpha == "auto":
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        kept = self.set_params(max_iter=max(values))._train(X, D, sample_weight, None, set(values))
        yield from (self._outputs(X_new, kept.get(value, self.theta_)) for value in values)


def _for_raw_features(
    theta: FloatArray, mean: FloatArray, scale: FloatArray, n_codes: int, n_hidden: int
) -> FloatArray:
    """Move the standardisation of the features into the hidden layer."""
    theta = theta.copy()
    A, _, c, _ = _parts(theta, len(scale), n_codes, n_hidden)
    A /= scale[:, None]
    c -= mean @ A
    return theta

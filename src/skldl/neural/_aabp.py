"""`AABP`: a backpropagation network with softmax output and squared error (algorithm adaptation of BP).

The network has q input units, hidden layers, and one output unit for each label. With z = softmax(η) it minimises

    Σᵢ wᵢ ‖zᵢ − dᵢ‖² / Σᵢ wᵢ ‖d̄ − dᵢ‖²  +  alpha/2 Σ_l ‖W_l‖²,

the squared error of the paper in units of the error of the mean distribution d̄, so that the error of the mean is 1 and
the same ``alpha`` and ``tol`` suit any number of labels. The training loops are independent of the network: they need
only a flat vector of weights and a function that returns loss and gradient.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import optimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from skldl.base import BaseLDL
from skldl.exceptions import Parameter, ParameterError
from skldl.losses._rows import LOSS, RowLoss, check_device_loss, resolve_loss
from skldl.neural._network import (
    ACTIVATIONS,
    BLOCK_ROWS,
    Layers,
    initial_weights,
    log_outputs,
    loss_and_gradient,
    standardisation,
    unflatten,
)
from skldl.utils.arrays import (
    as_double,
    as_type_of,
    copy_of,
    is_device_array,
    namespace,
    ones_for,
    row_blocks,
    space,
    take_rows,
    to_numpy,
    weighted_mean,
)
from skldl.utils.parameters import BOOLEAN, COUNT, NOT_NEGATIVE, POSITIVE, RANDOM_STATE, number, one_of, sequence_of
from skldl.utils.scaling import StandardizedFeatures, standardize
from skldl.utils.typing import FloatArray
from skldl.utils.warn import warn

SINGLE_ROWS = 2**17
"""On a device, fewer rows of single precision are computed in double precision: it takes little more time, and the
iterations are those of NumPy."""

Objective = Callable[..., tuple[float, FloatArray]]


class TrainingRecord:
    """Record of a training: losses, the best weights, and whether to stop."""

    def __init__(
        self, held_out: Callable[[FloatArray], float] | None, patience: int, tol: float, wanted: Collection[int]
    ) -> None:
        self.losses: list[float] = []
        self.scores: list[float] = []
        self.snapshots: dict[int, FloatArray] = {}
        self.best = np.inf
        self.best_theta: FloatArray | None = None
        self._held_out = held_out
        self._patience, self._tol, self._wanted = patience, tol, wanted
        self._since_best = 0

    def start(self, theta: FloatArray, loss: float) -> None:
        """Record the weights before the first iteration."""
        self.best = loss if self._held_out is None else self._held_out(theta)
        self.best_theta = copy_of(theta)

    def step(self, theta: FloatArray, loss: float) -> bool:
        """Record an iteration; return whether the last ``patience`` iterations brought no improvement."""
        self.losses.append(loss)
        value, required = loss, self._tol
        if self._held_out is not None:
            value, required = self._held_out(theta), 0.0
            self.scores.append(-value)
        if value < self.best - required:
            self.best, self._since_best = value, 0
            self.best_theta = copy_of(theta)
        else:
            self._since_best += 1
        if len(self.losses) in self._wanted:
            self.snapshots[len(self.losses)] = copy_of(self.result(theta))
        return self._since_best >= self._patience

    def result(self, theta: FloatArray) -> FloatArray:
        """The weights to keep: the best on held-out rows, else the last."""
        return theta if self._held_out is None or self.best_theta is None else self.best_theta


def run_lbfgs(
    objective: Objective, theta: FloatArray, max_iter: int, tol: float, record: TrainingRecord
) -> tuple[FloatArray, bool]:
    """Minimise with L-BFGS on all rows, recording each iteration; return the weights and whether it converged."""
    stopped = False

    def callback(intermediate_result: optimize.OptimizeResult) -> None:
        nonlocal stopped
        stopped = record.step(intermediate_result.x, float(intermediate_result.fun))
        if stopped:
            raise StopIteration

    # the memory of 20 steps was chosen by hand; "maxfun" is too large to be reached before "maxiter"
    options = {"maxiter": max_iter, "maxfun": 100 * max_iter, "ftol": tol, "gtol": 0.0, "maxcor": 20}
    outcome = optimize.minimize(objective, theta, jac=True, method="L-BFGS-B", callback=callback, options=options)
    out_of_iterations = outcome.status == 1  # 0 and 2: no step lowers the objective further
    return np.asarray(outcome.x), stopped or not out_of_iterations


def run_adam(
    objective: Objective,
    theta: FloatArray,
    max_iter: int,
    batches: Callable[[], Iterator[npt.NDArray[np.intp]]],
    learning_rate: float,
    record: TrainingRecord,
) -> tuple[FloatArray, bool]:
    """Minimise with Adam on batches, recording each pass over the rows; return weights and whether it converged."""
    theta, xp = copy_of(theta), namespace(theta)
    first, second, n_steps = xp.zeros_like(theta), xp.zeros_like(theta), 0
    for _ in range(max_iter):
        losses = []
        for rows in batches():
            loss, gradient = objective(theta, rows)
            losses.append(loss)
            n_steps += 1
            # decay rates .9 and .999 and 1e-8 are those of Kingma and Ba (2015); the step corrects both biases
            first += 0.1 * (gradient - first)
            second += 0.001 * (gradient**2 - second)
            step = float(learning_rate * np.sqrt(1 - 0.999**n_steps) / (1 - 0.9**n_steps))
            theta -= step * first / (xp.sqrt(second) + 1e-8)
        if record.step(theta, float(np.mean([float(loss) for loss in losses]))):
            return theta, True
    return theta, False


def _cross_entropy(
    features: StandardizedFeatures, D: FloatArray, weight: FloatArray, sizes: Sequence[int], activation: str
) -> Callable[[FloatArray], float]:
    """Return a function from the flat vector of weights to the mean cross-entropy on held-out rows."""

    def held_out(theta: FloatArray) -> float:
        if is_device_array(D):
            xp = namespace(D)
            layers = unflatten(as_type_of(theta, D), sizes)
            log_z = log_outputs(layers, features, ACTIVATIONS[activation])
            return -float(xp.sum(weight * as_double(xp.sum(D * log_z, axis=1))) / xp.sum(weight))
        log_z = log_outputs(unflatten(theta, sizes), features, ACTIVATIONS[activation])
        return -float(weight @ np.einsum("ij,ij->i", D, log_z)) / float(weight.sum())

    return held_out


def _for_raw_features(theta: FloatArray, sizes: Sequence[int], scaler: Any) -> Layers:
    """Move the standardisation of the features into the first layer."""
    layers = [(weights.copy(), intercepts.copy()) for weights, intercepts in unflatten(to_numpy(theta), sizes)]
    weights = layers[0][0] / scaler.scale_[:, None]
    layers[0] = (weights, layers[0][1] - scaler.mean_ @ weights)
    return layers


class AABP(BaseLDL):
    r"""Backpropagation network with softmax output, trained on the squared error to the distributions.

    It minimises

    .. math:: \frac{\sum_i w_i \lVert z_i - d_i \rVert^2}{\sum_i w_i \lVert \bar d - d_i \rVert^2}
        + \frac{\mathtt{alpha}}{2} \sum_l \lVert W_l \rVert^2,

    the paper's squared error in units of the error of the mean distribution. Features are standardised internally;
    sparse ones stay sparse. Initial hidden weights are uniform within Glorot's bounds, and the initial output is the
    mean distribution. The paper specifies neither width, nor learning rate, nor number of epochs. Another ``loss``
    replaces the squared error in both sums.

    Parameters
    ----------
    hidden_layer_sizes : int or sequence of int, default=(32,)
        Units of each hidden layer; with one hidden layer it is the paper's three-layer network.
    activation : {"tanh", "logistic", "relu", "identity"}, default="tanh"
        Function of the hidden units.
    solver : {"lbfgs", "adam"}, default="lbfgs"
        "lbfgs" is a quasi-Newton method on all rows, "adam" a stochastic gradient method on batches, for many rows.
    alpha : float, default=0.001
        Weight decay.
    max_iter : int, default=300
        Maximum number of iterations of L-BFGS or passes of Adam over the rows.
    tol : float, default=1e-6
        L-BFGS stops when an iteration lowers the objective by less than this, Adam after ``n_iter_no_change`` such
        passes.
    early_stopping : bool, default=True
        Hold rows out, stop after ``n_iter_no_change`` consecutive iterations that do not lower the mean
        Kullback-Leibler divergence on them, and keep the weights with the lowest.
    validation_fraction : float, default=0.1
        Fraction of the rows that are held out.
    n_iter_no_change : int, default=10
        Number of iterations without improvement after which training stops.
    batch_size : int, default=128
        Rows of a batch of Adam.
    learning_rate : float, default=0.001
        Step size of Adam.
    loss : str, mapping from str to float, or callable, default="squared_error"
        Loss between a predicted and a true distribution; names and mappings as in `skldl.losses.SmoothLossLDL`, which
        has "kullback_leibler" and losses for ordered labels such as "cad", "qfd2", "cjs" and "dldl_v2".
    random_state : int, RandomState or None, default=None
        Source of the initial weights, the held-out rows and the order of batches.

    Attributes
    ----------
    coefs_ : list of ndarray
        Weights of each layer; those of the first apply to features that are not standardised.
    intercepts_ : list of ndarray
        Intercepts of each layer.
    n_iter_ : int
        Number of iterations.
    loss_curve_ : list of float
        Objective after each iteration, on the rows that were not held out.
    validation_scores_ : list of float
        Minus the mean cross-entropy on the held-out rows after each iteration; empty without early stopping.
    n_features_in_ : int
        Number of features seen by ``fit``.
    n_labels_ : int
        Number of labels.
    label_names_ : ndarray of str
        Names of the labels.

    References
    ----------
    .. [1] X. Geng, "Label distribution learning", IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.

    Examples
    --------
    >>> from skldl import AABP
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> D = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]]
    >>> model = AABP(hidden_layer_sizes=4, early_stopping=False, random_state=0).fit(X, D)
    >>> model.predict([[0.0], [1.5]]).round(1)
    array([[0.9, 0.1],
           [0.5, 0.5]])
    """

    _array_api = True
    _onnx = "network"
    _constraints: ClassVar = {
        "hidden_layer_sizes": COUNT | sequence_of(COUNT),
        "activation": one_of(*ACTIVATIONS),
        "solver": one_of("lbfgs", "adam"),
        "alpha": NOT_NEGATIVE,
        "max_iter": COUNT,
        "tol": NOT_NEGATIVE,
        "early_stopping": BOOLEAN,
        "validation_fraction": number(above=0, below=1),
        "n_iter_no_change": COUNT,
        "batch_size": COUNT,
        "learning_rate": POSITIVE,
        "loss": LOSS,
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] = (32,),
        *,
        activation: str = "tanh",
        solver: str = "lbfgs",
        alpha: float = 1e-3,
        max_iter: int = 300,
        tol: float = 1e-6,
        early_stopping: bool = True,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        batch_size: int = 128,
        learning_rate: float = 1e-3,
        loss: str | Mapping[str, float] | RowLoss = "squared_error",
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.loss = loss
        self.random_state = random_state

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray | None) -> None:
        self._train(X, D, sample_weight, ())

    def _train(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, wanted: Collection[int]
    ) -> dict[int, Layers]:
        """Fit; return the layers after each of the wanted numbers of iterations that were reached."""
        row_loss = resolve_loss(self.loss)
        random = check_random_state(self.random_state)
        xp, device = space(D)
        if device is not None:
            check_device_loss(self.loss)
            if X.shape[0] < SINGLE_ROWS:
                X, D = as_double(X), as_double(D)
        if sample_weight is not None:
            sample_weight = sample_weight / xp.max(sample_weight)  # sums of huge weights must not overflow
        weight = ones_for(D) if sample_weight is None else sample_weight
        scaler: Any = standardisation(X, sample_weight)
        features = standardize(X, scaler.mean_, scaler.scale_)
        mean = weighted_mean(D, weight)
        sizes = [X.shape[1], *np.atleast_1d(self.hidden_layer_sizes).tolist(), D.shape[1]]
        theta = initial_weights(sizes, mean, random)
        activation = ACTIVATIONS[self.activation]

        held_out = None
        if self.early_stopping:
            train, test = self._split(X.shape[0], random)
            held_out = _cross_entropy(
                features.take(test), take_rows(D, test), take_rows(weight, test), sizes, self.activation
            )
            features, D, weight = features.take(train), take_rows(D, train), take_rows(weight, train)
        log_mean = as_type_of(np.log(np.maximum(mean, np.finfo(np.float64).tiny)), D)
        n_rows = D.shape[0]
        of_mean = row_loss(np.tile(log_mean, (n_rows, 1)) if xp is np else xp.broadcast_to(log_mean, D.shape), D)[0]
        spread = float(weight @ as_double(of_mean))  # loss of the mean distribution
        total = float(xp.sum(weight))
        # 1e-12: if all distributions are equal up to rounding, the loss is the plain mean
        row_weight = weight / (spread if spread > 1e-12 * total else total)
        record = TrainingRecord(held_out, self.n_iter_no_change, self.tol, wanted)

        def objective(theta: FloatArray, rows: Any = slice(None)) -> tuple[float, FloatArray]:
            if isinstance(rows, slice):
                batch, of_rows, part = features, D, row_weight
            else:
                batch, of_rows, part = features.take(rows), take_rows(D, rows), take_rows(row_weight, rows)
            part = part * (n_rows / part.shape[0])  # a batch represents all rows
            return loss_and_gradient(theta, sizes, batch, of_rows, part, activation, self.alpha, row_loss)

        def on_host(theta: FloatArray) -> tuple[float, FloatArray]:
            value, gradient = objective(as_type_of(theta, weight))
            return float(value), to_numpy(gradient)

        record.start(theta, on_host(theta)[0])
        if self.solver == "lbfgs":
            theta, converged = run_lbfgs(on_host, theta, self.max_iter, self.tol, record)
        else:
            theta = as_type_of(theta, weight)
            theta, converged = run_adam(
                objective, theta, self.max_iter, self._batches(n_rows, random), self.learning_rate, record
            )
        if not converged:
            warn(
                f"AABP stopped after max_iter={self.max_iter} iterations of {self.solver} before it converged. "
                "Raise max_iter or tol, or set early_stopping=True.",
                ConvergenceWarning,
            )
        self.loss_curve_, self.validation_scores_ = record.losses, record.scores
        self.n_iter_ = max(1, len(record.losses))
        layers = _for_raw_features(record.result(theta), sizes, scaler)
        self.coefs_, self.intercepts_ = ([layer[part] for layer in layers] for part in (0, 1))
        return {n: _for_raw_features(snapshot, sizes, scaler) for n, snapshot in record.snapshots.items()}

    def _split(self, n_samples: int, random: np.random.RandomState) -> tuple[Any, Any]:
        n_test = max(1, round(self.validation_fraction * n_samples))
        if n_test >= n_samples:
            raise ParameterError(
                Parameter("early_stopping", True),
                " with ",
                Parameter("validation_fraction", self.validation_fraction),
                f" leaves no training rows (n_samples={n_samples}). Set ",
                Parameter("early_stopping", False),
                " or pass more rows.",
            )
        order = random.permutation(n_samples)
        return np.sort(order[n_test:]), np.sort(order[:n_test])

    def _batches(self, n_samples: int, random: np.random.RandomState) -> Callable[[], Iterator[npt.NDArray[np.intp]]]:
        def batches() -> Iterator[npt.NDArray[np.intp]]:
            order = random.permutation(n_samples)
            for start in range(0, n_samples, self.batch_size):
                yield order[start : start + self.batch_size]

        return batches

    def _predict(self, X: Any) -> FloatArray:
        return self._outputs(X, list(zip(self.coefs_, self.intercepts_, strict=True)))

    def _outputs(self, X: Any, layers: Layers) -> FloatArray:
        if is_device_array(X):
            xp, activation = namespace(X), ACTIVATIONS[self.activation]
            there = [(as_type_of(weights, X), as_type_of(intercepts, X)) for weights, intercepts in layers]
            widest = max(weights.shape[1] for weights, _ in layers)
            rows = row_blocks(X.shape[0], widest)
            return xp.concat([xp.exp(log_outputs(there, X[some, ...], activation)) for some in rows])
        blocks = range(0, X.shape[0], BLOCK_ROWS)
        activation = ACTIVATIONS[self.activation]
        return np.exp(np.vstack([log_outputs(layers, X[start : start + BLOCK_ROWS], activation) for start in blocks]))

    def _predict_path(
        self, X: Any, D: FloatArray, sample_weight: FloatArray | None, X_new: Any, param: str, values: list[Any]
    ) -> Iterator[FloatArray]:
        if param != "max_iter":
            yield from super()._predict_path(X, D, sample_weight, X_new, param, values)
            return
        self.set_params(max_iter=max(values))
        layers_after = self._train(X, D, sample_weight, values)
        for value in values:
            yield self._outputs(X_new, layers_after[value]) if value in layers_after else self._predict(X_new)

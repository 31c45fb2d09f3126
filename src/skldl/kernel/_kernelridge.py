"""`KernelRidgeLDL`: kernel ridge regression on distributions, with every setting chosen by exact leave-one-out."""

from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import check_random_state

from skldl.base import GroupedLDL
from skldl.exceptions import DeviceError, Parameter, ParameterError
from skldl.kernel._kernels import FAMILIES, KernelFunction, kernel_values, row_blocks
from skldl.kernel._selection import (
    ALPHAS,
    CG_ROWS,
    EIGEN_ROWS,
    SPARSE_DENSITY,
    TARGETS,
    Choice,
    Data,
    Options,
    Solution,
    candidates_for,
    density,
    fit_targets,
    to_distributions,
)
from skldl.utils.arrays import as_type_of, is_device_array, least_number, namespace
from skldl.utils.arrays import row_blocks as device_blocks
from skldl.utils.mean_mixture import MEAN_FRACTIONS, mean_distribution, mix
from skldl.utils.parameters import CALLABLE, FRACTION, NONE, POSITIVE, RANDOM_STATE, integer, one_of
from skldl.utils.scaling import SCALINGS, Scaling, is_non_negative
from skldl.utils.typing import FloatArray, IntArray
from skldl.utils.validation import check_same_space


class KernelRidgeLDL(GroupedLDL):
    """Kernel ridge regression on label distributions, with kernel, scaling and penalties chosen by leave-one-out.

    The regression minimises, over functions f of the kernel's space and an intercept b,

        Σ_i w_i ‖y_i − b − f(x_i)‖² / Σ_i w_i + alpha·‖f‖²,

    where y is the distribution d itself (target "degrees") or its centred log-ratio (target "clr"). Predictions are
    projected on the simplex, or converted by the softmax. Then they are mixed with the mean distribution of the
    training rows, (1 − s)·P + s·mean with a small fraction s, which makes every degree positive.

    Settings that are not fixed are chosen by the mean Kullback-Leibler divergence of leave-one-out predictions. They
    are exact: with the kernel matrix centred, K = VΛVᵀ and λ = alpha·n, the residual of the model without row i is the
    residual of row i divided by 1 − h_i, h_i = 1/n + Σ_k V_ik² Λ_k / (Λ_k + λ), the intercept re-estimated too [1]_.
    One decomposition serves all penalties and both targets. Kernels are screened on ``n_screen`` rows; the best one (on
    up to 1,000 rows the best three, of each target) is decomposed on all rows.

    Parameters
    ----------
    target : {"auto", "degrees", "clr"}, default="auto"
        What to regress on. "auto" chooses the better one. For "clr", degrees are raised to at least
        max(0.0001, 0.001 / n_labels) first.
    kernel : {"auto", "exponential", "laplacian", "rbf", "chi2", "linear"} or callable, default="auto"
        exp(−‖x − z‖₂/ℓ), exp(−‖x − z‖₁/ℓ), exp(−‖x − z‖₂²/(2ℓ²)), exp(−χ²(x, z)/ℓ) with
        χ² = Σ_j (x_j − z_j)²/(x_j + z_j) for non-negative features such as histograms, xᵀz/ℓ, or a function that
        takes two tables of scaled features and returns the kernel of all pairs of their rows. "auto" compares those
        that the features allow, but "laplacian" and "chi2" only where their distances take at most about 20 s.
    width : float, default=None
        Length scale ℓ in units of the median distance between rows. None chooses among several. "linear" (whose ℓ is
        the mean squared norm of the centred rows) and functions have none.
    scaling : {"auto", "raw", "standard", "sqrt"}, default="auto"
        Scaling of the features: none, division by the standard deviation (of a two-valued feature by the difference of
        its values), or square roots, for non-negative features. "auto" chooses; for a function it is "raw".
    alpha : float, default=None
        Penalty. None chooses among 23 from 1e-11 to 1, two per decade.
    mean_share : float, default=None
        Fraction of the mean distribution in predictions, from 0 to 1; with 0, predicted degrees can be zero. None
        chooses among ten values from 0.001 to 0.5.
    solver : {"auto", "exact", "cg", "nystroem"}, default="auto"
        "exact" solves the regression directly, with exact leave-one-out predictions; it needs 12·n² bytes. "cg" uses
        conjugate gradients with a Nyström preconditioner [2]_ and never stores the kernel matrix; leave-one-out
        predictions rest on its residuals and on leverages estimated by random signs. "nystroem" restricts f to the
        kernel functions of ``n_landmarks`` rows; leave-one-out predictions are exact for that model. "auto" is "exact"
        if 12·n² is at most ``max_bytes``, else "cg" up to 30,000 rows, else "nystroem". The penalty is chosen on all
        rows by eigenvectors up to 3,500 rows, and by Nyström features beyond.
    max_bytes : int, default=2_700_000_000
        Memory for the kernel matrix or the Nyström features; the default is "exact" up to 15,000 rows.
    n_screen : int, default=900
        Number of rows, drawn at random, on which kernels are compared and the median distance is computed.
    n_landmarks : int, default=1500
        Maximum number of Nyström landmarks.
    tol : float, default=1e-4
        Relative residual at which conjugate gradients stop.
    max_iter : int, default=100
        Maximum number of steps of conjugate gradients.
    random_state : int, RandomState instance or None, default=0
        Seed for drawing the screening rows and the landmarks. With the default, every fit returns the same model.

    Attributes
    ----------
    target_, kernel_, scaling_, width_, alpha_, mean_share_ : str, str or callable, str, float, float, float
        The settings used.
    length_scale_ : float
        ℓ, in units of the scaled features.
    solver_ : {"eigen", "cholesky", "cg", "nystroem"}
        How the regression was solved; the first two are exact.
    loo_predictions_ : ndarray of shape (n_samples, n_labels)
        For each training row of positive weight, the prediction of the model fitted without it (with ``groups``,
        without its group) at the chosen settings.
    loo_divergence_ : float
        Their mean Kullback-Leibler divergence: slightly optimistic, because the settings were chosen by it.
    candidates_ : list of dict
        All comparisons: kernel, scaling, width, target, number of rows, alpha, mean share, divergence.
    X_fit_ : ndarray or CSR matrix of shape (n_support, n_features)
        Scaled training rows of the kernel functions: all of them, or the landmarks.
    dual_coef_ : ndarray of shape (n_support, n_labels)
        Coefficients of their kernel functions.
    intercept_ : ndarray of shape (n_labels,)
        The intercept b.
    distribution_ : ndarray of shape (n_labels,)
        Mean distribution of the training rows.
    n_iter_ : int
        Number of steps of conjugate gradients; 1 for other solvers.

    Notes
    -----
    Integer weights equal copies of the rows for fixed settings (up to ``n_screen`` rows: beyond that the median
    distance is that of a sample). When settings are chosen, a row is left out with its whole weight, while a copy of
    it would stay.

    With ``groups`` given to ``fit``, the settings are chosen by leaving out whole groups, and ``loo_predictions_``
    predicts each row without its group.

    When rows are left out, alpha·Σw, the scaling of the features and the length scale stay as they are.

    Predictions are computed in blocks, so that memory does not grow with the number of new rows.

    With scikit-learn's setting ``array_api_dispatch``, X and y on a device stay there, and so do ``X_fit_``,
    ``dual_coef_``, ``intercept_`` and ``loo_predictions_``, in double precision. Kernels are screened on ``n_screen``
    rows in NumPy; all rows are solved on the device, always exactly: by eigenvectors if ``alpha`` is to be chosen, else
    (beyond 3,500 rows) by a Cholesky factorisation in the memory of the kernel matrix, 8·n² bytes. ``max_bytes`` has no
    effect there.

    See Also
    --------
    skldl.kernel.fit_each_target : Both targets from shared decompositions.

    References
    ----------
    .. [1] R. D. Cook and S. Weisberg, "Residuals and influence in regression", Chapman and Hall, 1982.
    .. [2] Z. Frangella, J. A. Tropp and M. Udell, "Randomized Nyström preconditioning", SIAM Journal on Matrix Analysis
       and Applications 44(2), 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skldl.kernel import KernelRidgeLDL
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(80, 2))
    >>> D = np.exp(np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2 / 2, np.zeros(80)]))
    >>> D /= D.sum(axis=1, keepdims=True)
    >>> model = KernelRidgeLDL().fit(X, D)
    >>> model.solver_, model.loo_predictions_.shape
    ('eigen', (80, 3))
    >>> model.loo_divergence_ < 0.01
    True
    """

    _array_api = True
    _keeps_rows = True
    _constraints: ClassVar = {
        "target": one_of("auto", *TARGETS),
        "kernel": one_of("auto", *FAMILIES) | CALLABLE,
        "width": NONE | POSITIVE,
        "scaling": one_of("auto", *SCALINGS),
        "alpha": NONE | POSITIVE,
        "mean_share": NONE | FRACTION,
        "solver": one_of("auto", "exact", "cg", "nystroem"),
        "max_bytes": integer(at_least=2),
        "n_screen": integer(at_least=2),
        "n_landmarks": integer(at_least=2),
        "tol": POSITIVE,
        "max_iter": integer(at_least=2),
        "random_state": RANDOM_STATE,
    }

    def __init__(
        self,
        target: str = "auto",
        *,
        kernel: str | KernelFunction = "auto",
        width: float | None = None,
        scaling: str = "auto",
        alpha: float | None = None,
        mean_share: float | None = None,
        solver: str = "auto",
        max_bytes: int = 2_700_000_000,
        n_screen: int = 900,
        n_landmarks: int = 1500,
        tol: float = 1e-4,
        max_iter: int = 100,
        random_state: Any = 0,
    ) -> None:
        self.target = target
        self.kernel = kernel
        self.width = width
        self.scaling = scaling
        self.alpha = alpha
        self.mean_share = mean_share
        self.solver = solver
        self.max_bytes = max_bytes
        self.n_screen = n_screen
        self.n_landmarks = n_landmarks
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit_grouped(self, X: Any, D: FloatArray, sample_weight: FloatArray | None, groups: IntArray | None) -> None:
        data = Data(_compact(X), D, sample_weight, groups)
        solutions, tried = fit_targets(data, self._options(data))
        self._keep(data, min(solutions.values(), key=lambda solution: solution.choice.divergence), tried)

    def _keep(self, data: Data, solution: Solution, tried: list[Choice]) -> Self:
        """Set the fitted attributes."""
        choice = solution.choice
        self.target_ = choice.target
        self.kernel_ = choice.candidate.kernel
        self.scaling_ = choice.candidate.scaling
        self.width_ = choice.candidate.width
        self.alpha_ = choice.alpha
        self.mean_share_ = choice.share
        self.length_scale_ = solution.length_scale
        self.solver_ = self._solver(data)
        self.loo_predictions_ = solution.left_out
        self.loo_divergence_ = choice.divergence
        self.candidates_ = [_record(each) for each in tried]
        scaling = Scaling.fit(self.scaling_, data.X, data.weight)
        self._divisor = scaling.divisor
        support = data.X if solution.support is None else data.X[solution.support]  # on a device all rows
        self.X_fit_ = scaling.apply(support, copy=True)  # the caller may change the original
        self.dual_coef_ = solution.dual
        self.intercept_ = solution.intercept
        self.distribution_ = mean_distribution(data.D, data.weight)
        self.n_iter_ = solution.n_iter
        return self

    def _predict(self, X: Any) -> FloatArray:
        scaling = Scaling(self.scaling_, self._divisor)
        check_same_space(self, X, self.X_fit_)
        if is_device_array(X):
            return self._predict_on_device(X, scaling)
        scores = np.empty((X.shape[0], self.n_labels_))
        for block in row_blocks(X.shape[0], max(self.X_fit_.shape)):
            K = kernel_values(self.kernel_, scaling.apply(X[block]), self.X_fit_, self.length_scale_)
            scores[block] = K @ self.dual_coef_
        scores += self.intercept_
        return mix(to_distributions(scores, self.target_), self.distribution_, self.mean_share_)

    def _predict_on_device(self, X: Any, scaling: Scaling) -> Any:
        xp, parts = namespace(X), []
        mean = as_type_of(self.distribution_, self.dual_coef_)
        for block in device_blocks(X.shape[0], max(self.X_fit_.shape)):
            K = kernel_values(self.kernel_, scaling.apply(X[block, ...]), self.X_fit_, self.length_scale_)
            scores = K @ self.dual_coef_ + self.intercept_
            parts.append(mix(to_distributions(scores, self.target_), mean, self.mean_share_))
        return xp.astype(xp.concat(parts), X.dtype, copy=False)

    def _solver(self, data: Data) -> str:
        n_rows = data.n_rows
        if is_device_array(data.X):
            if self.solver not in ("auto", "exact"):
                raise DeviceError(
                    Parameter("solver", self.solver),
                    " computes with NumPy alone: on a device set ",
                    Parameter("solver", "exact"),
                    " or 'auto', or pass NumPy arrays.",
                )
            return "eigen" if self.alpha is None or n_rows <= EIGEN_ROWS else "cholesky"
        if self.solver == "exact" or (self.solver == "auto" and 12 * n_rows**2 <= self.max_bytes):
            return "eigen" if n_rows <= EIGEN_ROWS else "cholesky"
        if self.solver == "auto":
            return "cg" if n_rows <= CG_ROWS else "nystroem"
        return self.solver

    def _options(self, data: Data) -> Options:
        """Check the hyper-parameters against the data."""
        X = data.X
        if data.n_rows < 2:
            raise ValueError("KernelRidgeLDL leaves rows out, so it needs at least two rows, but n_samples=1.")
        for name, value in (("kernel", "chi2"), ("scaling", "sqrt")):
            if getattr(self, name) == value and not is_non_negative(X):
                raise ParameterError(
                    Parameter(name, value),
                    f" needs non-negative features, but X holds {least_number(X):g}. Choose another {name}, or 'auto'.",
                )
        solver = self._solver(data)
        # the other solvers need penalties above rounding errors, from 1e-9 on; .9 allows for the rounding of the grid
        alphas = ALPHAS if solver == "eigen" else tuple(alpha for alpha in ALPHAS if alpha > 0.9e-9)
        max_landmarks = max(
            2, int(self.max_bytes // (24 * data.n_rows))
        )  # three tables of features in double precision
        return Options(
            candidates=candidates_for(X, self.kernel, self.scaling, self.width),
            targets=TARGETS if self.target == "auto" else (self.target,),
            alphas=alphas if self.alpha is None else (float(self.alpha),),
            shares=MEAN_FRACTIONS if self.mean_share is None else (float(self.mean_share),),
            refine_width=self.width is None,
            n_screen=int(self.n_screen),
            n_landmarks=min(int(self.n_landmarks), max_landmarks),
            solver=solver,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            random_state=check_random_state(self.random_state),
        )


def fit_each_target(
    estimator: KernelRidgeLDL, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None
) -> dict[str, KernelRidgeLDL]:
    """Fit one model on the degrees and one on the log-ratios, from shared distances and decompositions.

    It takes little longer than one of them where both choose the same kernel. A pool of models can use both.

    Parameters
    ----------
    estimator : KernelRidgeLDL
        The settings; it is cloned, and its ``target`` is not used.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        Features.
    y : array-like or DataFrame of shape (n_samples, n_labels)
        Label distributions.
    sample_weight : array-like of shape (n_samples,), default=None
        Weight of each row.
    groups : array-like of shape (n_samples,), default=None
        Group of each row; whole groups are left out.

    Returns
    -------
    dict
        Fitted estimators by target, "degrees" and "clr".

    Examples
    --------
    >>> from skldl.kernel import KernelRidgeLDL, fit_each_target
    >>> from skldl.testing import make_distributions
    >>> X, D = make_distributions()
    >>> models = fit_each_target(KernelRidgeLDL(), X, D)
    >>> {target: model.loo_predictions_.shape for target, model in models.items()}
    {'degrees': (40, 3), 'clr': (40, 3)}
    """
    models = {target: clone(estimator).set_params(target=target) for target in TARGETS}
    both = clone(estimator).set_params(target="auto")
    checked, *rest = both._check_grouped_set(X, y, sample_weight, groups)
    data = Data(_compact(checked), *rest)
    solutions, tried = fit_targets(data, both._options(data))
    names = {name: value for name, value in vars(both).items() if name not in both.get_params(deep=False)}
    for target, model in models.items():
        vars(model).update(names)  # of features and labels
        model._keep(data, solutions[target], [choice for choice in tried if choice.target == target])
    return models


def _compact(X: Any) -> Any:
    """Store features that are nearly all zero as a sparse matrix."""
    return X if sparse.issparse(X) or is_device_array(X) or density(X) > SPARSE_DENSITY else sparse.csr_matrix(X)


def _record(choice: Choice) -> dict[str, Any]:
    kernel = choice.candidate.kernel
    return {
        "kernel": getattr(kernel, "__name__", type(kernel).__name__) if callable(kernel) else kernel,
        "scaling": choice.candidate.scaling,
        "width": choice.candidate.width,
        "target": choice.target,
        "n_rows": choice.n_rows,
        "alpha": choice.alpha,
        "mean_share": choice.share,
        "divergence": choice.divergence,
    }

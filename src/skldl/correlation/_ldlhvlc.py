"""LDL-HVLC: label distribution learning with horizontal and vertical label correlation (Lin et al., 2024).

C_i is the mean distribution of the neighbours of row i. It provides additional features, s = Wᵀx + Mᵀ C, and two terms
draw the prediction towards it (horizontal: rows) and draw correlated labels together (vertical: columns):

    mean KL(d_i ‖ p_i) + λ_h mean ρ_i ‖p_i − C_i‖² + λ_v mean Σ_jk R_jk (p_ij − p_ik)² + alpha/2 ‖W‖² + δ/2 ‖M‖²

with ρ_i the Pearson correlation between C_i and d_i, and R_jk between columns j and k of D.
"""

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from skldl.correlation._joined import column_penalties, column_scale, join, split_parameters
from skldl.distributions._nearest import nearest_rows
from skldl.exceptions import DataError, Message, Parameter
from skldl.losses._linear_softmax import (
    LinearSoftmaxLDL,
    ScoreObjective,
    TrainingSet,
    fit_linear,
    mean_of,
)
from skldl.losses._rows import divergence_plus
from skldl.utils.parameters import COUNT, NOT_NEGATIVE
from skldl.utils.simplex import softmax
from skldl.utils.typing import FloatArray
from skldl.utils.warn import warn

MIN_ROW_LENGTH = 1e-15  # product of the lengths of two centred rows: below it, one of them is constant up to rounding
MAX_REPULSION = 0.5
"""Fraction of the divergence's curvature that the vertical term may cancel without a warning. On 450 rows of each of
five Yeast sets, SJAFFE, SBU_3DFE, Movie and Natural_Scene the divergence of new rows was at most 6 % above that without
the term for .3, at most 52 % for .5, and above that of the mean distribution on all nine for 1."""
MIN_DEVIATION = 1e-12  # of a label: below it, the label is constant up to rounding


def row_correlations(A: FloatArray, B: FloatArray) -> FloatArray:
    """Pearson correlation between each row of A and the same row of B; 0 where a row is constant."""
    A, B = A - A.mean(axis=1, keepdims=True), B - B.mean(axis=1, keepdims=True)
    lengths = np.sqrt((A**2).sum(axis=1) * (B**2).sum(axis=1))
    products = np.einsum("ij,ij->i", A, B)
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > MIN_ROW_LENGTH)


def column_correlations(D: FloatArray, weight: FloatArray) -> FloatArray:
    """Weighted Pearson correlations between the columns of D; 0 where a column is constant."""
    centred = D - weight @ D
    covariance = centred.T @ (centred * weight[:, None])
    lengths = np.sqrt(np.diag(covariance))
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > MIN_DEVIATION)
    return np.asarray(covariance * scale * scale[:, None])


def repulsion(form: FloatArray, mean: FloatArray) -> float:
    """Fraction of the divergence's curvature that the term p form pᵀ cancels at most, near the mean distribution.

    For steps v with Σⱼ vⱼ = 0 the divergence has the curvature Σⱼ vⱼ² / meanⱼ and the term 2 v form vᵀ. The result is
    minus the least quotient of the two, and negative where the term is positive definite.
    """
    root = np.sqrt(mean)  # v = root ∘ z turns the quotient into one with ‖z‖², for z orthogonal to root
    inside = np.eye(len(mean)) - np.outer(root, root)
    return -float(np.linalg.eigvalsh(inside @ (2.0 * root[:, None] * form * root) @ inside)[0])


def neighbour_means(search: NearestNeighbors, fitted: Any, D: FloatArray, X: Any | None, k: int) -> FloatArray:
    """Mean distribution of the k nearest fitted rows of each row, with all rows that are as near as the last of them.

    X is None for the fitted rows themselves. k is at most the number of fitted rows minus one, also for new rows.
    """
    rows, nearest, _ = nearest_rows(search, fitted, X, min(k, len(D) - 1))
    starts = np.searchsorted(rows, np.arange(fitted.shape[0] if X is None else X.shape[0]))
    counts = np.diff(starts, append=len(rows))
    # pairs are sorted by row, and each row has at least one neighbour
    return np.asarray(np.add.reduceat(D[nearest], starts, axis=0) / counts[:, None])


class LDLHVLC(LinearSoftmaxLDL):
    r"""Maximum entropy model with horizontal and vertical label correlation (LDL-HVLC).

    With :math:`C_i` the mean distribution of the nearest training rows and
    :math:`p = \mathrm{softmax}(W^\top x + M^\top C)` it minimises, with means over rows,

    .. math:: \overline{\mathrm{KL}(d_i \,\|\, p_i)}
        + \mathtt{horizontal\_weight}\; \overline{\rho_i \lVert p_i - C_i \rVert^2}
        + \mathtt{vertical\_weight}\; \overline{\textstyle\sum_{jk} R_{jk} (p_{ij} - p_{ik})^2}
        + \frac{\mathtt{alpha}}{2} \lVert W \rVert^2 + \frac{\mathtt{alpha\_neighbours}}{2} \lVert M \rVert^2.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the squared penalty on W; "auto" chooses it by generalised cross-validation of the model linearised
        at the mean distribution, so that the unit of the features hardly matters. The paper has a sum over n rows in
        place of the mean and no factor ½: its γ is n · alpha / 2, its δ n · alpha_neighbours / 2.
    alpha_neighbours : float, default=1e-4
        Strength of the squared penalty on M.
    n_neighbors : int, default=5
        Number of neighbours, by Euclidean distance; a training row is no neighbour of itself. All rows that are as near
        as the last neighbour count, too, so that the order of the rows does not matter.
    horizontal_weight : float, default=1e-3
        Weight of the distance to the neighbours' mean, α of the paper.
    vertical_weight : float, default=1e-3
        Weight of the differences between correlated labels, β of the paper. The term draws positively correlated labels
        together and pushes negatively correlated ones apart. If it cancels more than half of the curvature of the
        divergence, predictions become much worse, and ``fit`` warns.
    fit_intercept : bool, default=True
        Whether to learn one free score for each label, without penalty. Without it a penalty pulls the predictions to
        the uniform distribution in place of the mean.
    max_iter : int, default=1000
        Largest number of steps.
    tol : float, default=1e-8
        Estimated excess of the objective over the optimum at which the search ends; the true excess can be larger,
        see `skldl.SABFGS`.

    Attributes
    ----------
    alpha_ : float
        The penalty that was used.
    coef_ : ndarray of shape (n_labels, n_features)
        Weights of the features.
    neighbour_coef_ : ndarray of shape (n_labels, n_labels)
        Weights of the neighbours' mean: Mᵀ.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts, which sum to zero.
    n_iter_ : int
        Number of steps after the first phase.
    loss_curve_ : list of float
        Objective after the first phase and after each step.

    Notes
    -----
    Weights of rows count in the means and correlations; a row counts once as a neighbour for any weight. The
    training set is kept for predictions. The paper's text and the authors' code were not available: the terms follow
    python-ldl, which fits them with Adam.

    References
    ----------
    .. [1] Y. Lin, Y. Li, C. Wang, L. Guo and J. Chen, "Label distribution learning based on horizontal and vertical
       mining of label correlations", IEEE Transactions on Big Data 10(3), 2024.

    Examples
    --------
    >>> from skldl.correlation import LDLHVLC
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]
    >>> D = [[0.9, 0.1], [0.7, 0.3], [0.3, 0.7], [0.1, 0.9]]
    >>> LDLHVLC(n_neighbors=2).fit(X, D).predict([[1.5, 1.0]]).round(1)
    array([[0.5, 0.5]])
    """

    _keeps_rows = True
    _constraints: ClassVar = {
        **LinearSoftmaxLDL._constraints,
        "alpha_neighbours": NOT_NEGATIVE,
        "n_neighbors": COUNT,
        "horizontal_weight": NOT_NEGATIVE,
        "vertical_weight": NOT_NEGATIVE,
    }

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        alpha_neighbours: float = 1e-4,
        n_neighbors: int = 5,
        horizontal_weight: float = 1e-3,
        vertical_weight: float = 1e-3,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-8,
    ) -> None:
        self.alpha = alpha
        self.alpha_neighbours = alpha_neighbours
        self.n_neighbors = n_neighbors
        self.horizontal_weight = horizontal_weight
        self.vertical_weight = vertical_weight
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _neighbour_means(self, training: TrainingSet) -> FloatArray:
        """Mean distribution of the neighbours of each training row; with fewer rows, of all others."""
        k = int(self.n_neighbors)
        return training.shared(
            ("neighbour means", k), lambda: neighbour_means(*self._search_of(training), training.D, None, k)
        )

    def _search_of(self, training: TrainingSet) -> tuple[NearestNeighbors, Any]:
        """Neighbour search over a copy of the rows, and the copy; the model stores both."""

        def build() -> tuple[NearestNeighbors, Any]:
            rows = training.X.copy()
            return NearestNeighbors(algorithm="brute" if sparse.issparse(rows) else "auto").fit(rows), rows

        return training.shared("neighbour search", build)

    def _fit_shared(self, training: TrainingSet) -> None:
        if training.X.shape[0] < 2:
            raise DataError(f"LDLHVLC needs neighbours, and so at least 2 rows (n_samples={training.X.shape[0]}).")
        C = self._neighbour_means(training)
        plain = training.factorisation(scale_free=False)
        self.alpha_ = training.alpha(self.alpha)
        scale = column_scale(self.alpha_, self.alpha_neighbours)
        joined = training.shared(
            ("joined", int(self.n_neighbors), scale), lambda: join(plain, scale * C, training.weight)
        )
        fit = fit_linear(
            joined,
            training.D,
            training.weight,
            self._objective(training)[0],
            alpha=column_penalties(plain, C.shape[1], self.alpha_, self.alpha_neighbours),
            tol=self.tol,
            max_iter=self.max_iter,
        )
        fit.W, M, fit.b = split_parameters(fit.parameters, plain)
        self._store(fit)
        self.neighbour_coef_ = np.ascontiguousarray(scale * M.T)
        self._search, self._rows = self._search_of(training)
        self._distributions = training.D.copy()

    def _objective(self, training: TrainingSet) -> tuple[ScoreObjective, float]:
        C = self._neighbour_means(training)
        agreement = row_correlations(C, training.D)
        R = column_correlations(training.D, training.weight)
        form = 2.0 * (np.diag(R.sum(axis=1)) - R)  # p form pᵀ = Σ_jk R_jk (p_j − p_k)²
        self._warn_of_repulsion(repulsion(form, training.weight @ training.D))

        def term(p: FloatArray) -> tuple[FloatArray, FloatArray]:
            away, product = p - C, p @ form
            values = self.horizontal_weight * agreement * np.einsum("ij,ij->i", away, away)
            values += self.vertical_weight * np.einsum("ij,ij->i", p, product)
            slope = (2.0 * self.horizontal_weight * agreement)[:, None] * away + 2.0 * self.vertical_weight * product
            return values, slope

        # negative correlations make terms negative: no lower bound is known
        return mean_of(divergence_plus(training.D, term), training.D, training.weight), -np.inf

    def _warn_of_repulsion(self, unit: float) -> None:
        """Warn if the vertical term outweighs the divergence; ``unit`` is what it cancels with a weight of 1."""
        if self.vertical_weight * unit > MAX_REPULSION:
            warn(
                Message(
                    "Labels are negatively correlated, and the term that pushes them apart cancels "
                    f"{self.vertical_weight * unit:.0%} of the curvature of the divergence with ",
                    Parameter("vertical_weight", self.vertical_weight),
                    ": predictions become worse, and from 100 % on worse than the mean distribution. Choose at most "
                    f"{MAX_REPULSION / unit:.1g}.",
                )
            )

    def _predict(self, X: Any) -> FloatArray:
        C = neighbour_means(self._search, self._rows, self._distributions, X, int(self.n_neighbors))
        return softmax(np.asarray(X @ self.coef_.T) + C @ self.neighbour_coef_.T + self.intercept_)

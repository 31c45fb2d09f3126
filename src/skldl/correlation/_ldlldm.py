"""LDL-LDM: label distribution learning by exploiting the label distribution manifold (Wang and Geng, 2023).

The columns of D (labels) are assumed to lie near a manifold: each is nearly a weighted sum of the others, with weights
Z_kj that sum to one over k, estimated from all rows (global) and from the rows of each cluster (local). Predictions are
penalised for violating these relations:

    mean KL(d_i ‖ p_i) + alpha/2 ‖W‖² + λ_g mean ‖p_i (I − Z)‖² + λ_l mean ‖p_i (I − Z_g(i))‖².
"""

from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import linalg

from skldl.correlation._clusters import cluster_rows
from skldl.losses._linear_softmax import (
    LinearSoftmaxLDL,
    ScoreObjective,
    TrainingSet,
    mean_of,
)
from skldl.losses._rows import divergence_plus
from skldl.utils.parameters import COUNT, NOT_NEGATIVE
from skldl.utils.typing import FloatArray

BARYCENTRE_RIDGE = 1e-3  # of the trace, as in locally linear embedding and in the authors' code


def barycentre_weights(products: FloatArray) -> FloatArray:
    """Weights Z with columns that sum to one and a zero diagonal, such that D ≈ D Z, from products = DᵀD.

    For label j they minimise ‖d_j − Σ_k z_k d_k‖², with a ridge of 1e-3 times the trace of the local Gram matrix.
    """
    n_labels = len(products)
    Z = np.zeros((n_labels, n_labels))
    for j in range(n_labels):
        others = np.delete(np.arange(n_labels), j)
        # products of the differences d_k − d_j, from those of the columns: no pass over the rows for each label
        gram = products[np.ix_(others, others)] - products[others, j][:, None] - products[j, others]
        gram += products[j, j]
        trace = float(np.trace(gram))
        gram[np.diag_indices_from(gram)] += BARYCENTRE_RIDGE * (trace if trace > 0 else 1.0)  # equal labels
        z = linalg.solve(gram, np.ones(n_labels - 1), assume_a="pos")
        Z[others, j] = z / z.sum()
    return Z


def manifold_form(D: FloatArray, weight: FloatArray) -> FloatArray:
    """L = (I − Z)(I − Z)ᵀ for some rows: p L pᵀ is the squared distance of p from its reconstruction."""
    Z = barycentre_weights(D.T @ (D * (weight / weight.sum())[:, None]))
    left = np.eye(len(Z)) - Z
    return np.asarray(left @ left.T)


class LDLLDM(LinearSoftmaxLDL):
    r"""Maximum entropy model that keeps the label distribution manifold (LDL-LDM).

    It minimises, with p = softmax(Wᵀx + b) and means over rows,

    .. math:: \overline{\mathrm{KL}(d_i \,\|\, p_i)} + \frac{\mathtt{alpha}}{2} \lVert W \rVert^2
        + \mathtt{global\_weight}\; \overline{\lVert p_i (I - Z) \rVert^2}
        + \mathtt{local\_weight}\; \overline{\lVert p_i (I - Z_{g(i)}) \rVert^2},

    where column j of Z holds the weights, which sum to one, by which label j is reconstructed from the other labels: Z
    from all rows, Z_g from the rows of cluster g of the training distributions.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the squared penalty on the weights; "auto" chooses it by generalised cross-validation of the model
        linearised at the mean distribution, so that the unit of the features hardly matters. The paper has a sum over n
        rows in place of the mean: its λ1 is n · alpha, its λ2 and λ3 are the two weights below.
    global_weight : float, default=0.1
        Weight of the relations between labels over all rows.
    local_weight : float, default=0.1
        Weight of the relations inside clusters.
    n_clusters : int, default=5
        Number of clusters; with 1 the local term is left out, as in the authors' code.
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
        Weights; each column sums to zero.
    intercept_ : ndarray of shape (n_labels,)
        Intercepts, which sum to zero.
    n_iter_ : int
        Number of steps after the first phase.
    loss_curve_ : list of float
        Objective after the first phase and after each step.

    Notes
    -----
    With both weights zero it is SA-BFGS. Checked against the authors' code: objective, ridge of the reconstruction
    (1e-3 of the trace) and clusters (k-means on D). Different here: k-means starts without random numbers; rows carry
    weights; the intercept, which the code appends as a penalised column, is optional and free.

    References
    ----------
    .. [1] J. Wang and X. Geng, "Label distribution learning by exploiting label distribution manifold", IEEE
       Transactions on Neural Networks and Learning Systems 34(2), 2023.

    Examples
    --------
    >>> from skldl.correlation import LDLLDM
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]]
    >>> LDLLDM(n_clusters=1).fit(X, D).predict([[1.0, 1.0]]).round(1)
    array([[0.3, 0.4, 0.3]])
    """

    _constraints: ClassVar = {
        **LinearSoftmaxLDL._constraints,
        "global_weight": NOT_NEGATIVE,
        "local_weight": NOT_NEGATIVE,
        "n_clusters": COUNT,
    }

    def __init__(
        self,
        alpha: float | str = "auto",
        *,
        global_weight: float = 0.1,
        local_weight: float = 0.1,
        n_clusters: int = 5,
        fit_intercept: bool = True,
        max_iter: int = 1000,
        tol: float = 1e-8,
    ) -> None:
        self.alpha = alpha
        self.global_weight = global_weight
        self.local_weight = local_weight
        self.n_clusters = n_clusters
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def _objective(self, training: TrainingSet) -> tuple[ScoreObjective, float]:
        groups = []
        D, weight = training.D, training.weight
        if self.global_weight > 0:
            form = training.shared("global form", lambda: manifold_form(D, weight))
            groups.append((slice(None), self.global_weight * form))
        if self.local_weight > 0 and self.n_clusters > 1:
            local = training.shared(
                ("local forms", int(self.n_clusters)), lambda: _local_forms(D, weight, int(self.n_clusters))
            )
            groups += [(rows, self.local_weight * form) for rows, form in local]

        def term(p: FloatArray) -> tuple[FloatArray, FloatArray]:
            values, slope = np.zeros(len(p)), np.zeros_like(p)
            for rows, form in groups:
                product = p[rows] @ form
                values[rows] += np.einsum("ij,ij->i", p[rows], product)
                slope[rows] += 2.0 * product
            return values, slope

        return mean_of(divergence_plus(D, term if groups else None), D, weight), 0.0


def _local_forms(D: FloatArray, weight: FloatArray, n_clusters: int) -> list[tuple[npt.NDArray[np.intp], FloatArray]]:
    """The rows of each cluster, and the matrix of their quadratic form."""
    assignment, centres = cluster_rows(D, weight, n_clusters)
    members = [np.flatnonzero(assignment == number) for number in range(len(centres))]
    return [(rows, manifold_form(D[rows], weight[rows])) for rows in members]

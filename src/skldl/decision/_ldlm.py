"""LDLM: the label distribution learning machine (Wang and Geng, 2021).

Errors below a margin are ignored; for the other labels the margin is the difference between the second and the third
largest degree of the row:

    mean max(0, ‖e_i − p_i‖₁ − ρ) + λ_m mean Σ_{j≠first} max(0, ρ − (p_i,first − p_ij))
    + λ_r mean max(0, Σ_{j≠first} |d_ij − p_ij| − ρ_i) + alpha/2 ‖W‖²,        ρ_i = d_i(2) − d_i(3).
"""

from skldl.decision._terms import TopAndRestLDL, insensitive
from skldl.utils.typing import FloatArray


class LDLM(TopAndRestLDL):
    r"""Label distribution learning machine: insensitive absolute errors and a large margin (LDLM).

    It minimises, with p = softmax(Wᵀx + b), the one-hot row :math:`e_i` of the label (1) with the largest true degree,
    :math:`\rho_i = d_{i(2)} - d_{i(3)}` and means over rows,

    .. math:: \overline{\max(0, \lVert e_i - p_i \rVert_1 - \rho)}
        + \mathtt{margin\_weight}\; \overline{\textstyle\sum_{j \neq (1)} \max(0, \rho - p_{i(1)} + p_{ij})}
        + \mathtt{rest\_weight}\; \overline{\max\big(0, \textstyle\sum_{j \neq (1)} |d_{ij} - p_{ij}| - \rho_i\big)}
        + \frac{\mathtt{alpha}}{2} \lVert W \rVert^2.

    ``predict`` returns distributions; the decision is their largest degree.

    Parameters
    ----------
    alpha : float or "auto", default="auto"
        Strength of the squared penalty on the weights; "auto" is ten times the result of generalised
        cross-validation of the model linearised at the mean distribution, so that the unit of the features hardly
        matters. The paper has a sum over n rows in place of the mean: its penalty is n · alpha.
    margin_weight : float, default=0.1
        Weight of the margin term.
    rest_weight : float, default=10.0
        Weight of the error in the other labels. The authors tune both weights between 0.001 and 1; with equal ones (1
        and 1) the one-hot term rules, and the predictions for new rows are farther from the truth than the mean
        distribution on Yeast_alpha and Movie.
    rho : float, default=0.01
        Margin.
    fit_intercept : bool, default=True
        Whether to learn one free score for each label, without penalty. Without it a penalty pulls the predictions to
        the uniform distribution in place of the mean.
    smoothing : float, default=1e-3
        Scale at which absolute values and max(0, ·) are smoothed; the paper's objective is the limit 0.
    max_iter : int, default=1000
        Largest number of steps.
    tol : float, default=1e-9
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

    See Also
    --------
    skldl.metrics.error_probability : The measure for decisions for one label.
    skldl.LDLClassifier : Turns any label distribution learner into a classifier.

    Notes
    -----
    Checked against the authors' code; there the intercept is penalised like a weight. With two labels there is no
    third: ρ_i is the degree of the second.

    References
    ----------
    .. [1] J. Wang and X. Geng, "Label distribution learning machine", ICML 2021.

    Examples
    --------
    >>> from skldl.decision import LDLM
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.1, 0.3, 0.6]]
    >>> LDLM().fit(X, D).predict(X).argmax(axis=1)
    array([0, 0, 2, 2])
    """

    def _soften(
        self, values: FloatArray, slope: FloatArray, threshold: float | FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        return insensitive(values, slope, threshold, self.smoothing)

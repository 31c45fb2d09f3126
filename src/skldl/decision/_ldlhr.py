"""LDL-HR: label distribution learning with the highest degree and the rest re-weighted (Wang and Geng, 2021).

The top label is learned as a one-hot target with a margin, and the other degrees as they are:

    mean ‖e_i − p_i‖₁ + λ_m mean Σ_{j≠first} max(0, ρ − (p_i,first − p_ij)) + λ_r mean Σ_{j≠first} |d_ij − p_ij|
    + alpha/2 ‖W‖²,

where e_i is one at the label with the largest degree in d_i.
"""

from skldl.decision._terms import TopAndRestLDL


class LDLHR(TopAndRestLDL):
    r"""Linear softmax model for decisions that weighs the top label and the rest (LDL-HR).

    It minimises, with p = softmax(Wᵀx + b), the one-hot row :math:`e_i` of the label (1) with the largest true degree
    and means over rows,

    .. math:: \overline{\lVert e_i - p_i \rVert_1}
        + \mathtt{margin\_weight}\; \overline{\textstyle\sum_{j \neq (1)} \max(0, \rho - p_{i(1)} + p_{ij})}
        + \mathtt{rest\_weight}\; \overline{\textstyle\sum_{j \neq (1)} |d_{ij} - p_{ij}|}
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
        Weight of the error in the other labels. The authors tune both weights; with equal ones (1 and 1) the one-hot
        term rules, and the predictions for new rows are farther from the truth than the mean distribution on
        Yeast_alpha and Movie.
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
    Checked against the authors' code, which differs in two points: there the third term runs over all labels with
    target 0 for the top one, which contradicts the first term, while the text mentions the other labels; and the
    intercept is penalised like a weight.

    References
    ----------
    .. [1] J. Wang and X. Geng, "Learn the highest label and rest label description degrees", IJCAI 2021.

    Examples
    --------
    >>> from skldl.decision import LDLHR
    >>> X = [[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [3.0, 1.0]]
    >>> D = [[0.6, 0.3, 0.1], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.1, 0.3, 0.6]]
    >>> LDLHR().fit(X, D).predict(X).argmax(axis=1)
    array([0, 0, 2, 2])
    """

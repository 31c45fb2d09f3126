"""LDL4C, LDLHR, LDLM: common checks, objectives by loops with and without smoothing, optima, decisions."""

import numpy as np
import pytest
from scipy import optimize
from sklearn.base import clone

from skldl.baseline import MeanDistribution
from skldl.decision import LDL4C, LDLHR, LDLM
from skldl.metrics import argmax_accuracy, error_probability, kullback_leibler
from skldl.simplex import entropy, softmax
from skldl.testing import check_estimator, make_distributions

ONE_HOT = "the target of the top label is one, not its degree"


@pytest.mark.parametrize("model", [LDL4C(), LDLHR()], ids=str)
def test_common_checks(model):
    check_estimator(model)


def test_common_checks_of_ldlm():
    check_estimator(LDLM(), expected_failed_checks={"check_odd_shapes": ONE_HOT})


def absolute(x, smoothing):
    """|x|, smoothed."""
    return np.sqrt(x * x + smoothing**2) - smoothing


def hinge(x, smoothing):
    """max(0, x), smoothed."""
    return 0.5 * (x + np.sqrt(x * x + smoothing**2))


def ldl4c_row(p, d, m, e):
    first, second = np.argsort(-d, kind="stable")[:2]
    return entropy(d) * absolute(d - p, e).sum() + m.margin_weight / m.rho * hinge(m.rho - (p[first] - p[second]), e)


def _margin(p, first, rho, e):
    return sum(hinge(rho - (p[first] - p[j]), e) for j in range(len(p)) if j != first)


def ldlhr_row(p, d, m, e):
    first = d.argmax()
    rest = sum(absolute(d[j] - p[j], e) for j in range(len(p)) if j != first)
    top = absolute(np.eye(len(p))[first] - p, e).sum()
    return top + m.margin_weight * _margin(p, first, m.rho, e) + m.rest_weight * rest


def ldlm_row(p, d, m, e):
    first = d.argmax()
    degrees = np.r_[np.sort(d)[::-1], 0.0]  # with two labels, the third degree counts as 0
    rest = sum(absolute(d[j] - p[j], e) for j in range(len(p)) if j != first)
    top = hinge(absolute(np.eye(len(p))[first] - p, e).sum() - m.rho, e)
    rest = hinge(rest - (degrees[1] - degrees[2]), e)
    return top + m.margin_weight * _margin(p, first, m.rho, e) + m.rest_weight * rest


MODELS = [
    (LDL4C(1e-2, margin_weight=0.3, rho=0.1), ldl4c_row),
    (LDLHR(1e-2, margin_weight=0.7, rest_weight=0.4, rho=0.1), ldlhr_row),
    (LDLM(1e-2, margin_weight=0.7, rest_weight=0.4, rho=0.1), ldlm_row),
]


@pytest.mark.parametrize("shape", [(30, 3, 4), (20, 2, 2)])
@pytest.mark.parametrize(("model", "row"), MODELS, ids=["LDL4C", "LDLHR", "LDLM"])
def test_smoothed_objective_by_loops_and_its_optimum(model, row, shape):
    X, D = make_distributions(*shape)
    D[0] = 1 / shape[2]  # a tie: the first label is the top one
    weight = np.random.default_rng(0).dirichlet(np.ones(len(X)))
    smoothing = 1e-2
    model = clone(model).set_params(smoothing=smoothing, tol=1e-11).fit(X, D, weight)

    def objective(flat):
        parameters = flat.reshape(shape[1] + 1, shape[2])
        P = softmax(X @ parameters[:-1] + parameters[-1])
        rows = [row(p, d, model, smoothing) for p, d in zip(P, D, strict=True)]
        return weight @ rows + 0.5e-2 * (parameters[:-1] ** 2).sum()

    end = np.vstack([model.coef_.T, model.intercept_]).ravel()
    assert objective(end) == pytest.approx(model.loss_curve_[-1], rel=1e-10)
    lower = optimize.minimize(objective, end, method="BFGS", options={"gtol": 1e-8, "maxiter": 60}).fun
    assert objective(end) - lower < 1e-8


@pytest.mark.parametrize(("model", "row"), MODELS, ids=["LDL4C", "LDLHR", "LDLM"])
def test_no_lower_objective_nearby_without_smoothing(model, row):
    """The paper's objective, not smoothed, has no lower value near the solution than smoothing explains."""
    X, D = make_distributions(30, 3, 3)
    model = model.set_params(smoothing=1e-4, max_iter=3000, tol=1e-8).fit(X, D)

    def objective(flat):
        W = flat.reshape(3, 3)
        rows = [row(p, d, model, 0.0) for p, d in zip(softmax(X @ W + model.intercept_), D, strict=True)]
        return np.mean(rows) + 0.5e-2 * (W**2).sum()

    end = model.coef_.T.ravel()
    lower = optimize.minimize(objective, end, method="Powell", options={"maxiter": 3}).fun
    assert objective(end) - lower < 2e-3


@pytest.mark.parametrize("model", [LDL4C(), LDLHR(), LDLM()], ids=str)
def test_decisions_beat_the_mean(model):
    X, D = make_distributions(300, 4, 4, random_state=3)
    P, mean = model.fit(X[:200], D[:200]).predict(X[200:]), MeanDistribution().fit(X[:200], D[:200]).predict(X[200:])
    assert error_probability(D[200:], P) < error_probability(D[200:], mean)
    assert argmax_accuracy(D[200:], P) > argmax_accuracy(D[200:], mean)


@pytest.mark.parametrize("model", [LDL4C(), LDLHR(), LDLM()], ids=str)
def test_distributions_beat_the_mean_where_degrees_hardly_differ(model):
    """With equal weights of its terms, the one-hot target pulls LDL-HR and LDLM away from the distributions."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    D = rng.dirichlet(np.full(18, 100.0), size=400) * np.exp(0.1 * X @ rng.normal(size=(3, 18)))
    D /= D.sum(axis=1, keepdims=True)
    P, mean = (m.fit(X[:300], D[:300]).predict(X[300:]) for m in (model, MeanDistribution()))
    assert kullback_leibler(D[300:], P) < kullback_leibler(D[300:], mean)


@pytest.mark.parametrize("bad", [{"rho": 0}, {"smoothing": 0}, {"margin_weight": -1}])
@pytest.mark.parametrize("kind", [LDL4C, LDLHR, LDLM])
def test_bad_hyperparameters(kind, bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        kind(**bad).fit(X, D)

"""LDL4C, LDLHR, LDLM: common checks, objectives by loops without smoothing, finite differences, decisions."""

import numpy as np
import pytest
from scipy import optimize

from skldl.baseline import MeanDistribution
from skldl.decision import LDL4C, LDLHR, LDLM
from skldl.decision._terms import TopLabels
from skldl.losses._linear_softmax import TrainingSet
from skldl.metrics import argmax_accuracy, error_probability, kullback_leibler
from skldl.simplex import entropy, softmax
from skldl.testing import check_estimator, make_distributions

ONE_HOT = "the target of the top label is one, not its degree"


@pytest.mark.parametrize("model", [LDL4C(), LDLHR()], ids=str)
def test_common_checks(model):
    check_estimator(model)


def test_common_checks_of_ldlm():
    check_estimator(LDLM(), expected_failed_checks={"check_odd_shapes": ONE_HOT})


def ldl4c_row(p, d, m):
    first, second = np.argsort(-d)[:2]
    return entropy(d) * np.abs(d - p).sum() + m.margin_weight * max(0, 1 - (p[first] - p[second]) / m.rho)


def _margin(p, first, rho):
    return sum(max(0, rho - (p[first] - p[j])) for j in range(len(p)) if j != first)


def ldlhr_row(p, d, m):
    first = d.argmax()
    rest = sum(abs(d[j] - p[j]) for j in range(len(p)) if j != first)
    top = np.abs(np.eye(len(p))[first] - p).sum()
    return top + m.margin_weight * _margin(p, first, m.rho) + m.rest_weight * rest


def ldlm_row(p, d, m):
    first = d.argmax()
    degrees = np.sort(d)[::-1]
    rest = sum(abs(d[j] - p[j]) for j in range(len(p)) if j != first)
    top = max(0, np.abs(np.eye(len(p))[first] - p).sum() - m.rho)
    rest = max(0, rest - (degrees[1] - degrees[2]))
    return top + m.margin_weight * _margin(p, first, m.rho) + m.rest_weight * rest


MODELS = [
    (LDL4C(1e-2, margin_weight=0.3, rho=0.1), ldl4c_row),
    (LDLHR(1e-2, margin_weight=0.7, rest_weight=0.4, rho=0.1), ldlhr_row),
    (LDLM(1e-2, margin_weight=0.7, rest_weight=0.4, rho=0.1), ldlm_row),
]


@pytest.mark.parametrize(("model", "row"), MODELS, ids=["LDL4C", "LDLHR", "LDLM"])
def test_objective_is_the_papers_in_the_limit_of_no_smoothing(model, row):
    X, D = make_distributions(30, 3, 4)
    weight = np.random.default_rng(0).dirichlet(np.ones(30))
    S = np.random.default_rng(1).normal(size=D.shape)
    expected = sum(w * row(p, d, model) for w, p, d in zip(weight, softmax(S), D, strict=True))
    gaps = []
    for smoothing in (1e-2, 1e-4, 1e-6):
        model.set_params(smoothing=smoothing)
        gaps.append(abs(model._objective(TrainingSet(X, D, weight, False))[0](S)[0] - expected))
    assert gaps[2] < 1e-4
    assert gaps[2] < gaps[1] < gaps[0]


@pytest.mark.parametrize(("model", "row"), MODELS, ids=["LDL4C", "LDLHR", "LDLM"])
def test_gradient_by_differences(model, row):
    X, D = make_distributions(10, 3, 4)
    objective = model.set_params(smoothing=1e-2)._objective(TrainingSet(X, D, np.full(10, 0.1), False))[0]
    S = np.random.default_rng(1).normal(size=D.shape)
    _, gradient = objective(S)
    for place in np.ndindex(S.shape):
        step = np.zeros_like(S)
        step[place] = 1e-6
        slope = (objective(S + step)[0] - objective(S - step)[0]) / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize(("model", "row"), MODELS, ids=["LDL4C", "LDLHR", "LDLM"])
def test_no_lower_objective_nearby_without_smoothing(model, row):
    """The paper's objective, not smoothed, has no lower value near the solution than smoothing explains."""
    X, D = make_distributions(30, 3, 3)
    model = model.set_params(smoothing=1e-4, max_iter=3000, tol=1e-8).fit(X, D)

    def objective(flat):
        W = flat.reshape(3, 3)
        rows = [row(p, d, model) for p, d in zip(softmax(X @ W + model.intercept_), D, strict=True)]
        return np.mean(rows) + 0.5e-2 * (W**2).sum()

    end = model.coef_.T.ravel()
    lower = optimize.minimize(objective, end, method="Powell", options={"maxiter": 3}).fun
    assert objective(end) - lower < 2e-3


def test_top_labels_with_two_labels_and_ties():
    top = TopLabels.of(np.array([[0.3, 0.7], [0.5, 0.5]]))
    np.testing.assert_array_equal(top.first, [1, 0])
    np.testing.assert_allclose(top.gap, [0.3, 0.5])
    np.testing.assert_array_equal(top.one_hot, [[0, 1], [1, 0]])


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

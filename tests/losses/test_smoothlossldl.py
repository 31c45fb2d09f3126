"""SmoothLossLDL: the common checks, its limit SA-BFGS, scipy's optimiser as oracle, losses for ordered labels."""

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.exceptions import ConvergenceWarning

from skldl import AABP, SABFGS
from skldl.losses import LOSSES, SmoothLossLDL, resolve_loss
from skldl.metrics import earth_mover
from skldl.simplex import log_softmax
from skldl.testing import check_estimator, make_distributions


@pytest.mark.parametrize("loss", ["kullback_leibler", "squared_error"])
def test_common_checks(loss):
    check_estimator(SmoothLossLDL(loss, fit_intercept=loss == "squared_error"))


ORDER = "the loss sees the order of the labels"


@pytest.mark.parametrize("loss", ["cad", "qfd2", "cjs", "dldl_v2"])
def test_common_checks_of_losses_for_ordered_labels(loss):
    check_estimator(SmoothLossLDL(loss), expected_failed_checks={"check_label_permutation": ORDER})


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("alpha", "shape"), [(0.0, (60, 4, 3)), (1e-2, (60, 4, 3)), (1e-2, (20, 30, 4))])
def test_divergence_gives_sabfgs(alpha, fit_intercept, shape):
    X, D = make_distributions(*shape)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(X))
    ours = SmoothLossLDL(alpha=alpha, fit_intercept=fit_intercept, tol=1e-12).fit(X, D, weight)
    theirs = SABFGS(alpha, fit_intercept=fit_intercept, tol=1e-12).fit(X, D, weight)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-6)


PENALTIES = ["expectation", "unimodal", "concentrated"]


@pytest.mark.parametrize("kind", [SmoothLossLDL, AABP])
@pytest.mark.parametrize("loss", [*PENALTIES, {"unimodal": 1}, {"expectation": 1, "cad": 0, "concentrated": 1}])
def test_penalties_alone_are_rejected(loss, kind):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=r"loss=.* are penalties, .* add them to a loss"):
        kind(loss=loss).fit(X, D)


@pytest.mark.parametrize(
    "loss",
    [
        *(name for name in LOSSES if name not in PENALTIES),
        *({"kullback_leibler": 0.1, name: 1.0} for name in PENALTIES),
        "dldl_v2",
        {"kullback_leibler": 1.0, "unimodal": 0.1, "concentrated": 0.1},
    ],
)
def test_scipy_finds_nothing_lower_nearby(loss):
    X, D = make_distributions(50, 3, 4)
    model = SmoothLossLDL(loss, alpha=1e-3, fit_intercept=True, tol=1e-10).fit(X, D)
    row_loss = resolve_loss(loss)

    def objective(flat):
        parameters = flat.reshape(4, 4)
        log_p = log_softmax(X @ parameters[:3] + parameters[3])
        return row_loss(log_p, D)[0].mean() + 0.5e-3 * (parameters[:3] ** 2).sum()

    end = np.vstack([model.coef_.T, model.intercept_]).ravel()
    assert objective(end) == pytest.approx(model.loss_curve_[-1], rel=1e-12)
    better = optimize.minimize(objective, end, method="BFGS", options={"gtol": 1e-8}).fun
    assert model.loss_curve_[-1] - better < 1e-7


def test_loss_for_ordered_labels_lowers_the_earth_movers_distance():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(400, 2))
    places = np.arange(7)
    centre = 3 + 2.5 * np.sin(3 * X[:, :1])  # not what a linear model can follow
    D = np.exp(-0.5 * (places - centre) ** 2)
    D /= D.sum(axis=1, keepdims=True)
    plain = SmoothLossLDL(alpha=0.0, fit_intercept=True).fit(X, D)
    ordered = SmoothLossLDL("cad", alpha=0.0, fit_intercept=True, max_iter=3000).fit(X, D)
    assert earth_mover(D, ordered.predict(X)) < 0.99 * earth_mover(D, plain.predict(X))


def test_own_function_as_loss_and_sparse_features():
    X, D = make_distributions(60, 5, 3)
    X[X < 0.4] = 0
    own = SmoothLossLDL(LOSSES["qfd2"]).fit(sparse.csr_array(X), D)
    np.testing.assert_allclose(own.predict(X), SmoothLossLDL("qfd2").fit(X, D).predict(X), atol=1e-8)


def test_path_shares_work_and_agrees_with_single_fits():
    X, D = make_distributions(60, 5, 3)
    values = [0.0, 1e-3, 1e-1]
    path = SmoothLossLDL("cjs").predict_path(X, D, X[:5], param="alpha", values=values)
    for value, P in zip(values, path, strict=True):
        np.testing.assert_allclose(P, SmoothLossLDL("cjs", alpha=value).fit(X, D).predict(X[:5]), atol=1e-10)
    with_and_without = SmoothLossLDL().predict_path(X, D, X[:5], param="fit_intercept", values=[True, False])
    for value, P in zip([True, False], with_and_without, strict=True):
        np.testing.assert_allclose(P, SmoothLossLDL(fit_intercept=value).fit(X, D).predict(X[:5]), atol=1e-10)


@pytest.mark.parametrize("bad", [{"alpha": -1}, {"max_iter": 0}, {"tol": np.nan}, {"loss": "emd"}])
def test_bad_hyperparameters(bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        SmoothLossLDL(**bad).fit(X, D)


def test_a_run_that_stops_early_warns():
    X, D = make_distributions()
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        SmoothLossLDL("cad", max_iter=1).fit(X, D)

"""LDLLRR: common checks, the ranking loss by loops over all ordered pairs, limits, and order that is kept."""

import numpy as np
import pytest

from skldl import SABFGS
from skldl.correlation import LDLLRR
from skldl.metrics import kendall
from skldl.testing import check_estimator, make_distributions


def paper_ranking_loss(p, d, sharpness):
    """½ Σ_{j,k} (d_j − d_k)² CE(1[d_j > d_k], σ(κ(p_j − p_k))), over all ordered pairs."""
    total = 0.0
    for j in range(len(p)):
        for k in range(len(p)):
            chance = 1 / (1 + np.exp(-sharpness * (p[j] - p[k])))
            target = float(d[j] > d[k])
            entropy = -(target * np.log(chance) + (1 - target) * np.log(1 - chance))
            total += 0.5 * (d[j] - d[k]) ** 2 * entropy
    return total


def test_common_checks():
    check_estimator(LDLLRR())


def test_many_rows_are_computed_in_blocks():
    """Copies of rows change nothing, and there are more than fit into a block."""
    X, D = make_distributions(40, 3, 4)
    settings = {"alpha": 1e-2, "ranking_weight": 0.1, "tol": 1e-12}
    many = LDLLRR(**settings).fit(np.tile(X, (500, 1)), np.tile(D, (500, 1)))
    np.testing.assert_allclose(many.predict(X), LDLLRR(**settings).fit(X, D).predict(X), atol=1e-6)


def test_objective_by_loops(check_optimum):
    X, D = make_distributions(30, 3, 4)
    D[0, :3] = D[0, :3].mean()  # ties have no weight
    weight = np.random.default_rng(0).uniform(0.5, 2, 30)
    model = LDLLRR(1e-3, ranking_weight=0.1, sharpness=20.0, fit_intercept=True, tol=1e-11).fit(X, D, weight)

    def objective(P, W, weight):
        rows = zip(weight, P, D, strict=True)
        return sum(w * ((d * np.log(d / p)).sum() + 0.1 * paper_ranking_loss(p, d, 20.0)) for w, p, d in rows)

    check_optimum(model, X, objective, weight)


def test_without_ranking_it_is_sabfgs():
    X, D = make_distributions(60, 4, 3)
    plain = LDLLRR(1e-3, ranking_weight=0, tol=1e-12).fit(X, D)
    np.testing.assert_allclose(
        plain.predict(X), SABFGS(1e-3, fit_intercept=True, tol=1e-12).fit(X, D).predict(X), atol=1e-6
    )


def test_ranking_weight_brings_labels_into_order():
    X, D = make_distributions(200, 3, 5, random_state=4)
    before = kendall(D, LDLLRR(1e-3, ranking_weight=0).fit(X, D).predict(X))
    after = kendall(D, LDLLRR(1e-3, ranking_weight=10.0, max_iter=3000).fit(X, D).predict(X))
    assert after > before


@pytest.mark.parametrize("bad", [{"ranking_weight": -1}, {"sharpness": 0}])
def test_bad_hyperparameters(bad):
    X, D = make_distributions()
    with pytest.raises(ValueError, match=next(iter(bad))):
        LDLLRR(**bad).fit(X, D)

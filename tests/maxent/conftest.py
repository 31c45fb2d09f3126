"""The objective of rows in memory at some parameters."""

import pytest

from skldl.chunks._arrays import CheckedRows
from skldl.maxent._search import Settings, make_problem


@pytest.fixture
def problem():
    """Make the problem of minimisation for arrays whose weights are positive."""

    def make(X, D, weight=None, *, fit_intercept=False, missing="complete", **more):
        settings = Settings(fit_intercept, whiten=False, solver="lbfgs", max_iter=1, tol=0.0, missing=missing)
        return make_problem(CheckedRows(X, D, weight), settings, **more)

    return make


@pytest.fixture
def evaluate(problem):
    """Loss, gradient and mean prediction at some parameters, and the objective."""

    def at(parameters, X, D, weight=None, *, alpha=0.0, **settings):
        made = problem(X, D, weight, **settings)
        found = made.passes.run(made.objective.at(parameters))
        return *made.objective.penalised(found, alpha), found.mean, made.objective

    return at

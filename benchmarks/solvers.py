"""SABFGS with its own L-BFGS against SciPy's L-BFGS-B, both stopped by the same estimate of the excess.

``python benchmarks/solvers.py`` prints the table that docs/architecture.md quotes. SciPy's run gets our memory of 20
steps and no stopping rule of its own; its callback computes the estimate from the gradient of the last evaluation.
"""

import warnings
from collections import deque
from collections.abc import Generator
from typing import Any

import numpy as np
from _common import PAPER_SETS, SYNTHETIC, first_fold, load, timed
from scipy import optimize, special

from skldl import SABFGS
from skldl.maxent import _search
from skldl.utils import solvers


def minimise_by_scipy(
    start: Any, parameters: Any, answer: Any, problem: Any, settings: Any, keep: Any,
    *, known: Any = None, curvature: float = 1.0,
) -> Generator[Any, Any, tuple[solvers.Minimum, dict[int, Any]]]:  # fmt: skip
    """SciPy's L-BFGS-B with the interface of `skldl.maxent._search._minimise`; it yields nothing."""
    curvatures: deque[float] = deque(maxlen=solvers.MEMORY)
    run = solvers.Minimum(x=start, loss=np.inf, metric=None, curvature=curvature, n_evaluations=0)
    last: dict[str, Any] = {}
    before: dict[str, Any] = {}

    def evaluate(x: Any) -> tuple[float, Any]:
        loss, gradient, metric = answer(problem.passes.run(problem.objective.at(parameters(x))))
        run.n_evaluations += 1
        last.update(x=x.copy(), loss=loss, gradient=gradient.copy(), metric=metric)
        if run.n_evaluations == 1:
            judge()
        return loss, gradient

    def judge() -> None:
        run.curvature = min(curvatures, default=curvature)
        run.excess = min(
            last["metric"].dual(last["gradient"]) / run.curvature, last["loss"] - problem.objective.entropy
        )
        run.converged = run.excess <= settings.tol
        run.x, run.loss, run.metric = last["x"], last["loss"], last["metric"]
        run.loss_curve.append(run.loss)
        before.update(last)

    def after_step(intermediate_result: Any) -> None:
        if not np.array_equal(intermediate_result.x, last["x"]):  # never seen: the accepted point is evaluated last
            evaluate(intermediate_result.x)
        step, change = last["x"] - before["x"], last["gradient"] - before["gradient"]
        if step @ change > 0:
            curvatures.append(float(step @ change) / last["metric"].primal(step))
        run.n_iter += 1
        judge()
        if run.converged or run.n_iter == settings.max_iter:
            raise StopIteration

    options = {"maxcor": solvers.MEMORY, "maxls": solvers.MAX_TRIALS, "ftol": 0.0, "gtol": 0.0}
    options |= {"maxiter": settings.max_iter + 1, "maxfun": 10**9}
    optimize.minimize(evaluate, start, jac=True, method="L-BFGS-B", callback=after_step, options=options)
    yield from ()
    return run, {}


def fit(X: Any, D: Any, alpha: float, solve: Any) -> tuple[float, Any]:
    """CPU seconds and the fitted model, with one of the two solvers."""
    _search._minimise, kept = solve, _search._minimise
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return timed(lambda: SABFGS(alpha=alpha).fit(X, D), repeats=3)
    finally:
        _search._minimise = kept


def main() -> None:
    """Print one line for each dataset and penalty."""
    print("| dataset | alpha | evaluations | by SciPy | CPU s | by SciPy | loss of SciPy - ours | excess | of SciPy |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|")
    for name in (*PAPER_SETS, SYNTHETIC):
        X, D, _, _ = first_fold(*load(name))
        for alpha in (0.0, 0.01):
            ours, model = fit(X, D, alpha, _search._minimise)
            theirs, other = fit(X, D, alpha, minimise_by_scipy)
            losses = [
                -(D * special.log_softmax(X @ m.coef_.T + m.intercept_, axis=1)).sum(axis=1).mean()
                + alpha / 2 * (m.coef_**2).sum()
                for m in (model, other)
            ]
            print(
                f"| {name} | {alpha:g} | {model.n_evaluations_} | {other.n_evaluations_} | {ours:.3f} | {theirs:.3f} | "
                f"{losses[1] - losses[0]:.1e} | {model.excess_:.1e} | {other.excess_:.1e} |",
                flush=True,
            )


if __name__ == "__main__":
    main()

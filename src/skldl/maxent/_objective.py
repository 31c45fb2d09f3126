"""The maximum entropy objective with soft targets, as sums over rows that are read in passes.

With scores S = X U + 1 bᵀ, row weights ω that sum to one and P = softmax(S) row by row:

    loss(U, b) = Σ_i ω_i [ln Σ_j exp s_ij − Σ_j d_ij s_ij] + alpha/2 ‖U‖²
    ∂/∂U = Xᵀ diag(ω) (P − D) + alpha U        ∂/∂b = Σ_i ω_i (p_i − d_i)

This is the weighted mean cross-entropy: mean Kullback-Leibler divergence plus the entropy of D, which does not depend
on the parameters. With weights of 1 and without penalty ∂/∂U is the gradient of Geng (2016), equation 15. D enters
through Xᵀ diag(ω) D only, which is computed once.

If some degrees are missing, the loss is the exact likelihood of the observed ones. With the observed labels Ω_i:

- **degrees** (the observed degrees are true, the rest r_i = 1 − Σ_Ω d_ij lies on the missing labels) is the
  cross-entropy over the observed labels and one cell for all others, whose probability is Σ_{j ∉ Ω} p_ij:

      loss_i = ln Σ_j exp s_ij − Σ_Ω d_ij s_ij − r_i ln Σ_{j ∉ Ω} exp s_ij,   ∂/∂s_ij = p_ij − d_ij − r_i q_ij

  with d_ij = 0 outside of Ω and q_i the softmax over the missing labels alone. Filling in r_i q_ij is the E-step of EM;
  here the quasi-Newton method minimises the loss directly. With several missing degrees in a row it need not be convex.

- **renormalised** (only ratios inside Ω are known) is the cross-entropy of the conditional distribution:

      loss_i = ln Σ_Ω exp s_ij − Σ_Ω d_ij s_ij,   ∂/∂s_ij = p_ij / Σ_Ω p_ik − d_ij inside of Ω, zero outside. Convex.

A search is a generator that yields a `Request` for each evaluation, and `Passes` answers the requests of all searches
that run together in one pass over the rows.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from scipy import special

from skldl.chunks import Chunk, Rows
from skldl.chunks._arrays import CheckedRows
from skldl.chunks._rows import Sums
from skldl.maxent._blocks import SAFE_SCORES, Intercept, SoftmaxSums, is_single, softmax_sums, split_intercept
from skldl.maxent._folds import ALL_TOGETHER, Folds
from skldl.maxent._moments import Moments
from skldl.utils.arrays import as_type_of, is_device_array, row_blocks, space, to_numpy_together
from skldl.utils.missing import COMPLETE, mean_distribution, rest_of
from skldl.utils.simplex import softmax
from skldl.utils.typing import BoolArray, FloatArray

Found = TypeVar("Found")


class Request(NamedTuple):
    """Parameters at which a search needs an evaluation: weights of the unscaled columns, and intercepts or None."""

    U: FloatArray
    b: FloatArray | None


Search = Generator[Request, SoftmaxSums, Found]
"""A generator that yields requests, receives the sums over its rows, and returns its result."""


class Evaluation(NamedTuple):
    """Result of one pass: loss and gradient without the penalty, and the mean prediction, at some parameters."""

    parameters: FloatArray
    loss: float
    gradient: FloatArray
    mean: FloatArray


@dataclass(frozen=True)
class CrossEntropy:
    """Weighted mean cross-entropy of softmax scores.

    Parameters are (n_columns, n_labels), with one more row at the end for b if there is an intercept; so is the
    gradient.

    Attributes
    ----------
    target : ndarray
        Xᵀ diag(ω) D in the shape of the parameters, with the mean of D for the intercept.
    total : float
        Sum of the weights, by which sums over rows are divided.
    fit_intercept : bool
        Whether the last row of the parameters is the intercept.
    entropy : float
        Weighted mean entropy of D (of the observed degrees), a lower bound of the loss.
    mean_target : ndarray of shape (n_labels,)
        Weighted mean of D; with missing degrees the constant prediction of maximum likelihood.
    loss_at_zero : float
        The loss of the uniform prediction.
    column_means : ndarray of shape (n_columns,)
        Weighted mean of the columns.
    factors : ndarray of shape (n_columns,) or None
        Numbers by which the columns of the rows are multiplied; None stands for ones.
    is_complete : bool
        Whether no degree is missing.
    """

    target: FloatArray
    total: float
    fit_intercept: bool
    entropy: float
    mean_target: FloatArray
    loss_at_zero: float
    column_means: FloatArray
    factors: FloatArray | None = None
    is_complete: bool = True

    @classmethod
    def of(cls, moments: Moments, factors: FloatArray | None, *, fit_intercept: bool) -> "CrossEntropy":
        """The objective of rows with these moments, with columns multiplied by ``factors``."""
        target, mean = moments.target / moments.total, moments.mass / moments.total
        column_means = moments.mean
        if factors is not None:
            target, column_means = target * factors[:, None], column_means * factors
        return cls(
            np.vstack([target, mean]) if fit_intercept else target,
            moments.total,
            fit_intercept,
            moments.entropy / moments.total,
            mean,
            float(np.log(len(mean))),
            column_means,
            factors,
        )

    def with_missing(self, D: FloatArray, weight: FloatArray, missing: str) -> "CrossEntropy":
        """The same objective with missing degrees; D has NaN, and each row carries information."""
        weight = weight / self.total
        observed = (~np.isnan(D)).sum(axis=1)
        entropy, at_zero = self.entropy, float(weight @ np.log(observed))
        if missing == "degrees":
            rest = rest_of(D)
            entropy += float(weight @ special.entr(rest))
            hidden = np.log(np.maximum(D.shape[1] - observed, 1))
            at_zero = self.loss_at_zero - float(weight @ (rest * hidden))
        mean = mean_distribution(D, weight, missing)
        return replace(self, entropy=entropy, loss_at_zero=at_zero, mean_target=mean, is_complete=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the parameters."""
        return self.target.shape

    @property
    def n_columns(self) -> int:
        """Number of columns, without the intercept."""
        return self.target.shape[0] - self.fit_intercept

    def at(self, parameters: FloatArray) -> Search[Evaluation]:
        """Evaluate the objective without its penalty: one pass."""
        U = parameters[: self.n_columns]
        b = parameters[self.n_columns] if self.fit_intercept else None
        sums = yield Request(U if self.factors is None else U * self.factors[:, None], b)
        gradient = np.empty(self.shape)
        np.divide(sums.gradient.T, self.total, out=gradient[: self.n_columns])
        if self.factors is not None:
            gradient[: self.n_columns] *= self.factors[:, None]
        if self.fit_intercept:
            gradient[-1] = sums.gradient_of_b / self.total
        gradient -= self.target
        loss = float(sums.log_partition) / self.total - float(np.vdot(self.target, parameters))
        return Evaluation(parameters, loss, gradient, (sums.gradient_of_b + sums.hidden) / self.total)

    def divergences(self, sums: SoftmaxSums, U: FloatArray, b: FloatArray) -> FloatArray:
        """Mean divergence for several parameters, from their sums over the rows: the loss minus the entropy."""
        n = self.n_columns
        targets = np.einsum("kij,ij->k", U, self.target[:n]) + b @ self.target[n]
        return np.asarray(sums.log_partition / self.total - targets - self.entropy)

    def penalised(self, found: Evaluation, alpha: float) -> tuple[float, FloatArray]:
        """Loss and gradient with the penalty alpha/2 ‖U‖²; the intercept is free."""
        if not alpha:
            return found.loss, found.gradient
        U, gradient = found.parameters[: self.n_columns], found.gradient.copy()
        gradient[: self.n_columns] += alpha * U
        return found.loss + 0.5 * alpha * float(np.vdot(U, U)), gradient


@dataclass(frozen=True)
class Passes:
    """Passes over rows, which answer the requests of searches.

    Attributes
    ----------
    rows : Rows
        The rows.
    folds : Folds, default: all together
        Their folds.
    largest : ndarray of shape (n_columns,) or None, default=None
        Largest absolute value of each column, if known: it bounds all scores.
    missing : str, default="complete"
        Meaning of NaN in D.
    n_threads : int, default=1
        Number of blocks of rows that are processed at once; it changes no digit.
    """

    rows: Rows
    folds: Folds = ALL_TOGETHER
    largest: FloatArray | None = None
    missing: str = COMPLETE
    n_threads: int = 1

    def run(self, search: Search[Found]) -> Found:
        """Run one search over all rows."""
        return self.run_together([search], np.ones((1, self.folds.n_folds), dtype=bool))[0]

    def run_together(self, searches: Sequence[Search[Found]], uses: BoolArray) -> list[Found]:
        """Run searches side by side, all of which share each pass.

        ``uses`` (n_searches, n_folds): which folds each search learns from. Which requests share a pass depends on the
        searches only, so results are reproducible to the last digit.
        """
        found: dict[int, Found] = {}
        answers: dict[int, Any] = dict.fromkeys(range(len(searches)))
        while answers:
            asked: dict[int, Request] = {}
            for number, answer in answers.items():
                try:
                    asked[number] = searches[number].send(answer)
                except StopIteration as end:
                    found[number] = end.value
            if not asked:
                break
            U = np.stack([request.U for request in asked.values()])
            b = [request.b for request in asked.values() if request.b is not None]
            sums = self.sums(uses[list(asked)], U, np.stack(b) if b else None)
            answers = {number: SoftmaxSums(*parts) for number, *parts in zip(asked, *sums, strict=True)}
        return [found[number] for number in range(len(searches))]

    def sums(self, uses: BoolArray, U: FloatArray, b: FloatArray | None, *, gradient: bool = True) -> SoftmaxSums:
        """One pass for several parameters, each over the folds that it uses."""
        chunk = self.rows.chunk if isinstance(self.rows, CheckedRows) else None
        on_device = chunk is not None and is_device_array(chunk.X)
        single = chunk is not None and is_single(chunk.X)
        intercept, left_out = (None, None) if b is None else split_intercept(b, single=single)
        safe = self._is_safe(U, single)
        if not on_device:
            safe = safe or None  # scores can be smaller than their bound: in memory their maximum is computed
        arguments = uses, U, intercept, self.folds, safe, self.missing, gradient, self.n_threads
        sums = SoftmaxSums(*self.rows.sum(_softmax_sums, *arguments, labels=self.missing != COMPLETE))
        log_partition = sums.log_partition
        if left_out is not None:
            log_partition = log_partition + np.sum(left_out * sums.gradient_of_b, axis=-1)
        if single and gradient:  # the device used rounded weights: without this the loss would not be smooth in U
            log_partition = log_partition + np.einsum("rkj,rjk->r", U - U.astype(np.float32), sums.gradient)
        return sums._replace(log_partition=log_partition)

    def _is_safe(self, U: FloatArray, single: bool) -> bool | None:
        """Whether no score can be too large for an exponential, by a bound from `largest`; None if it is not known."""
        if self.largest is None:
            return None
        return float((self.largest @ np.abs(U)).max()) < SAFE_SCORES[4 if single else 8]


def _softmax_sums(
    chunk: Chunk,
    uses: BoolArray,
    U: FloatArray,
    intercept: Intercept | None,
    folds: Folds,
    safe: bool | None,
    missing: str,
    gradient: bool,
    n_threads: int,
) -> Sums:
    """Sums over the rows of one chunk for each request, over the folds that it uses."""
    n_requests, n_columns, n_labels = U.shape
    parts = []
    for fold, some in enumerate(folds.segments(chunk)):
        asked = np.flatnonzero(uses[:, fold])
        if len(some) and len(asked):
            own = None if intercept is None else intercept._replace(values=intercept.values[asked])
            degrees = None if missing == COMPLETE else (np.asarray(some.D), missing)
            more: dict[str, Any] = {"safe": safe, "degrees": degrees, "gradient": gradient, "n_threads": n_threads}
            parts.append((asked, softmax_sums(some.X, some.weight, U[asked], own, **more)))
    values = to_numpy_together(tuple(value for _, part in parts for value in part))
    if len(parts) == 1 and len(parts[0][0]) == n_requests:
        return values
    total = (
        np.zeros(n_requests),
        np.zeros((n_requests, n_labels, n_columns if gradient else 0)),
        np.zeros((n_requests, n_labels)),
        np.zeros((n_requests, n_labels)),
    )
    for number, (asked, _) in enumerate(parts):
        for sums, value in zip(total, values[4 * number :], strict=False):
            sums[asked] += value
    return total


def probabilities(X: Any, W: FloatArray, b: FloatArray | None = None) -> Any:
    """Softmax of X W (+ b) for weights W (n_features, n_labels); on a device in the precision of X."""
    if not is_device_array(X):
        scores = np.asarray(X @ W)
        return softmax(scores if b is None else scores + b)
    xp, device = space(X)
    weights, shift = as_type_of(W, X), None if b is None else as_type_of(b, X)
    P = xp.empty((X.shape[0], W.shape[1]), dtype=X.dtype, device=device)
    for some in row_blocks(X.shape[0], W.shape[1]):
        scores = X[some, ...] @ weights
        P[some, ...] = softmax(scores if shift is None else scores + shift)
    return P

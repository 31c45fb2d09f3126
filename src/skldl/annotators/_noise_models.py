r"""How raters err: the M-steps of three models, as pure functions from expected counts to confusion matrices.

Every function takes an array of shape (n_raters, n_labels, n_labels): how often each rater is expected to have
answered l (last axis) where k is true (second axis), the pseudo-counts of the prior included; and the parameters of the
raters from the last step, from which an iterative maximisation starts. It returns the confusion matrices, whose rows
sum to one and which maximise

.. math:: \sum_{kl} N_{rkl} \ln \pi_{rkl}

among those that the model allows, and the parameters behind them (an empty array where the matrices are all).
"""

from collections.abc import Callable

import numpy as np
from scipy import special

from skldl.utils.typing import BoolArray, FloatArray

Maximizer = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]
NO_PARAMETERS: FloatArray = np.zeros((0, 2))


def full_confusion(counts: FloatArray, start: FloatArray = NO_PARAMETERS) -> tuple[FloatArray, FloatArray]:
    """Each rater has a confusion matrix of their own; a row without any count is uniform."""
    totals = counts.sum(axis=2, keepdims=True)
    uniform = 1.0 / counts.shape[2]
    return np.divide(counts, totals, out=np.full_like(counts, uniform), where=totals > 0), start


def one_coin(counts: FloatArray, start: FloatArray = NO_PARAMETERS) -> tuple[FloatArray, FloatArray]:
    """Each rater is right with one probability, and errs towards all other labels equally."""
    n_labels = counts.shape[2]
    right = np.trace(counts, axis1=1, axis2=2)
    total = counts.sum(axis=(1, 2))
    reliability = np.divide(right, total, out=np.full(len(counts), 1.0 / n_labels), where=total > 0)
    wrong = (1.0 - reliability) / (n_labels - 1)
    confusion = np.broadcast_to(wrong[:, None, None], counts.shape).copy()
    diagonal = np.arange(n_labels)
    confusion[:, diagonal, diagonal] = reliability[:, None]
    return confusion, start


class OrderedProbit:
    r"""Each rater sees the true value shifted by their severity and blurred, and answers with the interval it falls in.

    With the values v of the ordered labels and the midpoints t between them,

    .. math:: \pi_{rkl} = \Phi(a_r (t_l - v_k) - m_r) - \Phi(a_r (t_{l-1} - v_k) - m_r)

    where a = 1/spread, m = severity/spread, and the outer thresholds are infinite. The logarithm of such a difference
    is concave in (a, m), so Newton's method with step halving finds the maximum for all raters at once.

    Parameters
    ----------
    values : ndarray of shape (n_labels,)
        Values of the labels, ascending.
    """

    _MOST_STEPS = 2
    _SHARPEST = 50.0  # in units of one over the smallest distance of two labels: beyond it errors have no probability

    def __init__(self, values: FloatArray) -> None:
        self.values = values
        middle = (values[1:] + values[:-1]) / 2
        self._unit = float(np.diff(values).min())
        self._upper = np.concatenate([middle, [np.inf]])
        self._lower = np.concatenate([[-np.inf], middle])

    def __call__(self, counts: FloatArray, start: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Maximise from given parameters; raters without any start at severity 0 and a spread of one step."""
        fresh = np.tile([1.0 / self._unit, 0.0], (len(counts) - len(start), 1))
        parameters = np.concatenate([start, fresh])
        moving = np.arange(len(counts))
        for _ in range(self._MOST_STEPS):  # the rest is left to the next step of EM, which starts from here
            parameters[moving], gains = self._newton_step(counts[moving], parameters[moving])
            moving = moving[gains]
            if not len(moving):
                break
        return self.probabilities(parameters[:, 0], parameters[:, 1]), parameters

    def probabilities(self, slope: FloatArray, shift: FloatArray) -> FloatArray:
        """Confusion matrices for given parameters."""
        upper, lower = self._edges(slope, shift)
        flip = lower > 0  # differences of upper tails lose precision: use the lower tails
        return np.asarray(
            special.ndtr(np.where(flip, -lower, upper)) - special.ndtr(np.where(flip, -upper, lower)), dtype=np.float64
        )

    def _edges(self, slope: FloatArray, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        a, m = slope[:, None, None], shift[:, None, None]
        upper = a * (self._upper[None, None, :] - self.values[None, :, None]) - m
        lower = a * (self._lower[None, None, :] - self.values[None, :, None]) - m
        return upper, lower

    def _value(self, counts: FloatArray, slope: FloatArray, shift: FloatArray) -> FloatArray:
        probability = np.maximum(self.probabilities(slope, shift), 1e-300)
        return np.asarray((counts * np.log(probability)).sum(axis=(1, 2)))

    def _newton_step(self, counts: FloatArray, start: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Take one damped step for every rater; also return which raters have not converged."""
        gradient, hessian = self._derivatives(counts, start[:, 0], start[:, 1])
        ridge = 1e-9 * (np.abs(hessian[:, [0, 1], [0, 1]]).sum(axis=1) + 1e-12)
        hessian[:, [0, 1], [0, 1]] -= ridge[:, None]
        step = np.linalg.solve(hessian, -gradient[:, :, None])[:, :, 0]
        before = self._value(counts, start[:, 0], start[:, 1])
        best, gain = start.copy(), np.zeros(len(counts))
        waiting, size = np.arange(len(counts)), 1.0
        while len(waiting) and size > 1e-9:
            tried = start[waiting] + size * step[waiting]
            tried[:, 0] = np.clip(tried[:, 0], 1e-3 / self._unit, self._SHARPEST / self._unit)
            better = self._value(counts[waiting], tried[:, 0], tried[:, 1]) - before[waiting]
            taken = better > 0
            best[waiting[taken]], gain[waiting[taken]] = tried[taken], better[taken]
            promised = size * (gradient[waiting] * step[waiting]).sum(axis=1)  # at most this, by concavity
            waiting = waiting[~taken & (promised > 1e-12 * (1.0 + np.abs(before[waiting])))]
            size *= 0.5
        return best, gain > 1e-9 * (1.0 + np.abs(before))

    def _derivatives(self, counts: FloatArray, slope: FloatArray, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Gradient and Hessian in (slope, shift) of the log-likelihood, for each rater."""
        upper, lower = self._edges(slope, shift)
        probability = np.maximum(self.probabilities(slope, shift), 1e-300)
        x = {
            "upper": np.where(np.isfinite(upper), self._upper[None, None, :] - self.values[None, :, None], 0.0),
            "lower": np.where(np.isfinite(lower), self._lower[None, None, :] - self.values[None, :, None], 0.0),
        }
        density = {"upper": _density(upper), "lower": _density(lower)}
        curve = {
            "upper": -np.where(np.isfinite(upper), upper, 0.0) * density["upper"],
            "lower": -np.where(np.isfinite(lower), lower, 0.0) * density["lower"],
        }
        d_slope = x["upper"] * density["upper"] - x["lower"] * density["lower"]
        d_shift = -(density["upper"] - density["lower"])
        dd_slope = x["upper"] ** 2 * curve["upper"] - x["lower"] ** 2 * curve["lower"]
        dd_mixed = -(x["upper"] * curve["upper"] - x["lower"] * curve["lower"])
        dd_shift = curve["upper"] - curve["lower"]
        # quotients first: squares of the smallest probabilities would underflow
        d_slope, d_shift = d_slope / probability, d_shift / probability
        dd_slope, dd_mixed, dd_shift = dd_slope / probability, dd_mixed / probability, dd_shift / probability
        gradient = np.stack([(counts * d_slope).sum(axis=(1, 2)), (counts * d_shift).sum(axis=(1, 2))], axis=1)
        hessian = np.empty((len(counts), 2, 2))
        hessian[:, 0, 0] = (counts * (dd_slope - d_slope**2)).sum(axis=(1, 2))
        hessian[:, 1, 1] = (counts * (dd_shift - d_shift**2)).sum(axis=(1, 2))
        hessian[:, 0, 1] = hessian[:, 1, 0] = (counts * (dd_mixed - d_slope * d_shift)).sum(axis=(1, 2))
        return gradient, hessian


def _density(x: FloatArray) -> FloatArray:
    return np.exp(-0.5 * np.where(np.isfinite(x), x, 40.0) ** 2) / np.sqrt(2 * np.pi)

"""A design with further columns: neighbours' means or codes in addition to the features, with separate penalties."""

from typing import Any

import numpy as np
from scipy import sparse

from skldl.maxent._moments import MAX_MATRIX
from skldl.maxent._whitening import Factorisation
from skldl.utils.typing import FloatArray


def column_scale(alpha: float, alpha_further: float) -> float:
    """Factor of the further columns with which one penalty serves all columns.

    One where either is zero: then each keeps its own penalty.
    """
    return float(np.sqrt(alpha / alpha_further)) if alpha > 0 and alpha_further > 0 else 1.0


def strengths(plain: Factorisation, n_further: int, alpha: float, alpha_further: float) -> FloatArray:
    """Penalty of each column of the joined design."""
    of_further = alpha_further * column_scale(alpha, alpha_further) ** 2
    return np.r_[np.full(plain.design.shape[1], alpha), np.full(n_further, of_further)]


def join(plain: Factorisation, C: FloatArray, weight: FloatArray) -> Factorisation:
    """The design with further columns C, and the moments that its whitened coordinates need."""
    centre = None if plain.centre is None else np.r_[plain.centre, weight @ C]
    if sparse.issparse(plain.design):
        design: Any = sparse.hstack([plain.design, sparse.csr_array(C)], format="csr")
        weighted: Any = design.multiply(weight[:, None]).tocsr()
    else:
        design = np.hstack([plain.design, C])
        weighted = design * weight[:, None]
    means = np.zeros(design.shape[1]) if centre is None else centre
    if design.shape[1] > MAX_MATRIX:  # the diagonal is enough, since the coordinates only change the path of the solver
        squares = design.multiply(weighted).sum(axis=0) if sparse.issparse(design) else (design * weighted).sum(axis=0)
        return Factorisation(design, centre, eigenvalues=np.maximum(np.asarray(squares).ravel() - means**2, 0.0))
    gram = weighted.T @ design
    gram = gram.toarray() if sparse.issparse(gram) else gram
    return Factorisation(design, centre, gram=gram - np.multiply.outer(means, means))


def part(parameters: FloatArray, plain: Factorisation) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weights of the features, of the further columns, and the intercept, all centred over labels."""
    first = plain.design.shape[1]
    last = len(parameters) - (plain.centre is not None)
    further = parameters[first:last]
    W, b = plain.to_features(np.delete(parameters, slice(first, last), axis=0))
    return W - W.mean(axis=1, keepdims=True), further - further.mean(axis=1, keepdims=True), b - b.mean()

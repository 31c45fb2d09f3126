"""Design matrices with added columns, such as means of neighbours or codes of rows, that have their own penalty."""

from typing import Any

import numpy as np
from scipy import sparse

from skldl.maxent._moments import MAX_MATRIX
from skldl.maxent._whitening import Factorisation
from skldl.utils.typing import FloatArray


def column_scale(alpha: float, alpha_added: float) -> float:
    """Factor of the additional columns with which the penalty ``alpha`` is right for all columns.

    It is 1 if either penalty is zero: then each column has its own.
    """
    return float(np.sqrt(alpha / alpha_added)) if alpha > 0 and alpha_added > 0 else 1.0


def column_penalties(plain: Factorisation, n_added: int, alpha: float, alpha_added: float) -> FloatArray:
    """Penalty of each column of the joined design."""
    of_added = alpha_added * column_scale(alpha, alpha_added) ** 2
    return np.r_[np.full(plain.design.shape[1], alpha), np.full(n_added, of_added)]


def join(plain: Factorisation, C: FloatArray, weight: FloatArray) -> Factorisation:
    """Append the columns C to the design, and factorise the result."""
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
        # variances are negative only by rounding
        return Factorisation(design, centre, eigenvalues=np.maximum(np.asarray(squares).ravel() - means**2, 0.0))
    gram = weighted.T @ design
    gram = gram.toarray() if sparse.issparse(gram) else gram
    return Factorisation(design, centre, gram=gram - np.multiply.outer(means, means))


def split_parameters(parameters: FloatArray, plain: Factorisation) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Split parameters into weights of the features and of the added columns, and intercepts, centred over labels."""
    first = plain.design.shape[1]
    last = len(parameters) - (plain.centre is not None)
    added = parameters[first:last]
    W, b = plain.to_features(np.delete(parameters, slice(first, last), axis=0))
    return W - W.mean(axis=1, keepdims=True), added - added.mean(axis=1, keepdims=True), b - b.mean()

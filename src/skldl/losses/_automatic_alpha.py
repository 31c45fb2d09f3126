r"""``alpha="auto"``: the penalty by generalised cross-validation of the model linearised at the mean distribution.

Near the mean distribution p̄ the cross-entropy of label j is a weighted least squares problem with the response
z_ij = (d_ij − p̄_j)/p̄_j and the curvature p̄_j. With eigenvalues g_k of G = Xᵀ diag(ω) X, eigenvectors v_k and moments
b_kj = Σ_i ω_i v_kᵀx_i z_ij the solution keeps the fraction h_kj = p̄_j g_k / (p̄_j g_k + alpha) of each direction, so
that

    RSS_j = Σ_i ω_i z_ij² − Σ_k (2 h_kj − h_kj²) b_kj² / g_k,        df_j = Σ_k h_kj,
    GCV(alpha) = Σ_j p̄_j RSS_j / (1 − df_j/n)²

need only the factorisation that the fit needs, too [1]_. The penalty that minimises GCV grows with the square of the
unit of the features, so that the prediction hardly depends on this unit.

References
----------
.. [1] G. H. Golub, M. Heath and G. Wahba, "Generalized cross-validation as a method for choosing a good ridge
   parameter", Technometrics 21(2), 1979.
"""

from typing import Any

import numpy as np
from scipy import sparse

from skldl.maxent._whitening import Factorisation
from skldl.utils.parameters import NOT_NEGATIVE, one_of
from skldl.utils.typing import FloatArray

ALPHA = one_of("auto") | NOT_NEGATIVE
CANDIDATES = np.logspace(-10, 2, 25)  # in units of the mean eigenvalue: two for each power of ten
MAX_FREEDOM = 0.5  # degrees of freedom as a fraction of the rows: near 1 the criterion is 0/0; chosen by hand
BLOCK_CELLS = 1 << 18  # numbers in a temporary array (2 MiB): stays in the cache
KEY_FACTORS = (0.6180339887, 0.4142135624, 0.7320508076)
"""Factors of the second to fourth label in the key of a row: irrational, so that different rows rarely agree."""
WITHOUT_EIGENVALUES = 0.1  # penalty in units of the mean square of the columns; chosen by hand


def automatic_alpha(factorisation: Factorisation, D: FloatArray, weight: FloatArray, n_rows: int) -> float:
    """Choose the penalty of a linear softmax model.

    Parameters
    ----------
    factorisation : Factorisation
        Of the features.
    D : ndarray of shape (n_samples, n_labels)
        Distributions.
    weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    n_rows : int
        Number of different rows.

    Returns
    -------
    float
        The penalty. Where only the diagonal of G is known (more than 5000 rows and columns), a tenth of its mean.
    """
    mean = weight @ D
    used = mean > 0
    return ridge_penalty(factorisation, (D[:, used] - mean[used]) / mean[used], weight, mean[used], n_rows)


def ridge_penalty(
    factorisation: Factorisation, response: FloatArray, weight: FloatArray, curvature: FloatArray, n_rows: int
) -> float:
    """Choose the penalty of a ridge regression, one for all columns of the response, each with its curvature."""
    factorisation.whitening(np.inf, np.ones(1))  # computes the eigenvalues where they are not known
    spectrum = factorisation.eigenvalues
    assert spectrum is not None
    if factorisation.basis is None and factorisation.rows is None:
        return WITHOUT_EIGENVALUES * float(spectrum.mean())
    weighted = response * weight[:, None]
    moments = np.asarray(factorisation.design.T @ weighted)
    if factorisation.basis is not None:
        moments = factorisation.basis.T @ moments
    squares = np.einsum("ij,ij->j", weighted, response)
    return generalised_cross_validation(spectrum, moments, squares, curvature, n_rows)


def generalised_cross_validation(
    spectrum: FloatArray, moments: FloatArray, squares: FloatArray, curvature: FloatArray, n_rows: int
) -> float:
    """Ridge penalty with the smallest generalised cross-validation score, summed over responses.

    Parameters
    ----------
    spectrum : ndarray of shape (n_directions,)
        Eigenvalues of the weighted mean of x xᵀ.
    moments : ndarray of shape (n_directions, n_responses)
        Weighted means of the coordinates along the eigenvectors times the responses.
    squares : ndarray of shape (n_responses,)
        Weighted means of the squared responses.
    curvature : ndarray of shape (n_responses,)
        Weight of each response in the loss.
    n_rows : int
        Number of rows.

    Returns
    -------
    float
        The best of 25 values from 1e-10 to 100 times the mean eigenvalue, among those with at most half as many degrees
        of freedom as rows.
    """
    unit = float(spectrum.sum()) / max(1, len(spectrum))
    if unit <= 0:
        return 1.0  # there is nothing to shrink
    explained = np.divide(moments**2, spectrum[:, None], out=np.zeros_like(moments), where=spectrum[:, None] > 0)
    if n_rows == 1:
        return unit * float(CANDIDATES[0])  # one row cannot be held out
    best, lowest = unit * float(CANDIDATES[-1]), np.inf
    curved = spectrum[:, None] * curvature
    descending = unit * CANDIDATES[::-1]  # of equal scores the strongest penalty is chosen
    step = max(1, BLOCK_CELLS // curved.size)
    for alphas in (descending[first : first + step] for first in range(0, len(descending), step)):
        kept = curved / (curved + alphas[:, None, None])
        freedom = kept.sum(axis=1) / n_rows
        # differences of sums of squares are negative only by rounding
        rest = np.maximum(squares - np.einsum("kj,akj->aj", explained, (2.0 - kept) * kept), 0.0)
        scores = np.where(freedom.max(axis=1) <= MAX_FREEDOM, (rest / (1.0 - freedom) ** 2) @ curvature, np.inf)
        index = scores.argmin()
        if scores[index] < lowest:
            best, lowest = float(alphas[index]), float(scores[index])
    return best


def count_different_rows(X: Any, D: FloatArray) -> int:
    """Number of different rows of (X, D); copies of a row add no information about new rows.

    The first label, or a key computed from the first four, differs between most rows; only rows that agree in it are
    compared completely.
    """
    key = D[:, 0].copy()
    if not len(_repeated(key)):
        return len(D)
    for factor, degrees in zip(KEY_FACTORS, D.T[1:], strict=False):  # one label after another: equal rows, equal keys
        key += factor * degrees
    repeated = _repeated(key)
    if not len(repeated):
        return len(D)
    rows = np.flatnonzero(np.isin(key, repeated))
    return len(D) - len(rows) + _count_by_hash(X[rows], D[rows])


def _repeated(key: FloatArray) -> FloatArray:
    """Keys that occur more than once."""
    in_order = np.sort(key)
    return in_order[1:][in_order[1:] == in_order[:-1]]


def _count_by_hash(X: Any, D: FloatArray) -> int:
    """Count different rows by a hash of their bytes, in which equal numbers have equal bytes; X may be changed."""
    if sparse.issparse(X):
        X.eliminate_zeros()
        ends = zip(X.indptr[:-1], X.indptr[1:], D + 0.0, strict=True)  # + 0.0 turns −0.0 into 0.0
        return len({hash((X.indices[a:b].tobytes(), X.data[a:b].tobytes(), d.tobytes())) for a, b, d in ends})
    found: set[int] = set()
    size = max(1, BLOCK_CELLS // (X.shape[1] + D.shape[1]))
    for first in range(0, len(D), size):
        rows = np.hstack([X[first : first + size], D[first : first + size]], dtype=np.float64)
        block = np.ascontiguousarray(rows) + 0.0  # −0.0 becomes 0.0
        found.update(map(hash, block.view(f"V{8 * block.shape[1]}").ravel().tolist()))
    return len(found)

"""Cholesky factor and its inverse in the memory of the matrix itself, by blocks: for matrices that fill a device.

The library routines of most array libraries return a new matrix, so that they need twice the memory: of 100,000 rows in
double precision, 160 GB. Here nearly all arithmetic is in matrix products of blocks, n³/3 multiplications for the
factor and as many for its inverse. Blocks of the diagonal are factorised by the library and inverted by halves.
"""

from typing import Any

from skldl._array_api import namespace

BLOCK = 4096
"""Rows of a block: large enough for products at full speed, small enough that the diagonal blocks cost little."""
SMALLEST = 256


class NotPositiveDefinite(ValueError):
    """The matrix has no Cholesky factor."""


def factorise_in_place(A: Any, block: int = BLOCK) -> None:
    """Replace a symmetric positive definite matrix by its lower Cholesky factor; what is above becomes zero.

    Parameters
    ----------
    A : array of shape (n, n)
        Only its lower triangle is read.
    block : int, default=4096
        Rows of a block.

    Raises
    ------
    NotPositiveDefinite
        If there is no factor.
    """
    n = A.shape[0]
    for start in range(0, n, block):
        end = min(start + block, n)
        corner = _factor(A[start:end, start:end])
        A[start:end, start:end] = corner
        A[start:end, end:] = 0.0
        if end == n:
            break
        A[end:, start:end] = A[end:, start:end] @ inverse_of_lower(corner).T
        for first in range(end, n, block):
            last = min(first + block, n)
            below = A[first:, first:last]
            below -= A[first:, start:end] @ A[first:last, start:end].T


def _factor(block: Any) -> Any:
    xp = namespace(block)
    try:
        factor = xp.linalg.cholesky(block)
    except Exception as error:  # each library has an error of its own for this
        if "LinAlgError" not in type(error).__name__:
            raise
        raise NotPositiveDefinite from error
    if not bool(xp.all(xp.isfinite(xp.linalg.diagonal(factor)))):  # some return NaN instead
        raise NotPositiveDefinite
    return factor


def inverse_of_lower(L: Any) -> Any:
    """Inverse of a lower triangular matrix, by halves: (A 0; B C)⁻¹ = (A⁻¹ 0; −C⁻¹BA⁻¹ C⁻¹)."""
    xp = namespace(L)
    n = L.shape[0]
    if n <= SMALLEST:
        return xp.tril(xp.linalg.inv(L))
    half = n // 2
    inverse = xp.zeros_like(L)
    upper, lower = inverse_of_lower(L[:half, :half]), inverse_of_lower(L[half:, half:])
    inverse[:half, :half] = upper
    inverse[half:, half:] = lower
    inverse[half:, :half] = -(lower @ (L[half:, :half] @ upper))
    return inverse


def invert_in_place(L: Any, block: int = BLOCK) -> None:
    """Replace a lower triangular matrix, zero above, by its inverse.

    Block columns are inverted from the last to the first, and each from the bottom up: a block then needs only what is
    inverted already on its left and below, and what is not yet above it.
    """
    n = L.shape[0]
    starts = list(range(0, n, block))
    for start in reversed(starts):
        end = min(start + block, n)
        corner = inverse_of_lower(L[start:end, start:end])
        for first in [first for first in reversed(starts) if first >= end]:
            last = min(first + block, n)
            L[first:last, start:end] = -(L[first:last, end:last] @ L[end:last, start:end]) @ corner
        L[start:end, start:end] = corner

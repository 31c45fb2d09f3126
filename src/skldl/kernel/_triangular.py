"""Cholesky factor and its inverse in the memory of the matrix itself, by blocks: for matrices that fill a device.

The library routines of most array libraries return a new matrix, so that they need twice the memory: of 100,000 rows in
double precision, 160 GB. Here nearly all arithmetic is in matrix products of blocks, n³/3 multiplications for the
factor and as many for its inverse. Blocks of the diagonal are factorised by the library and inverted by a triangular
solver, where the library has one, or by halves. Products are written to their place without a temporary array where the
library can.
"""

from typing import Any

from skldl.utils.arrays import namespace, space

BLOCK = 1024
"""Columns of a block: enough for products at full speed, and few enough that what is computed above the diagonal, where
all is zero, costs little."""
SMALLEST = 256


class NotPositiveDefinite(ValueError):
    """The matrix has no Cholesky factor."""


def factorise_in_place(A: Any, block: int = BLOCK) -> None:
    """Replace a symmetric positive definite matrix by its lower Cholesky factor; what is above becomes zero.

    Parameters
    ----------
    A : array of shape (n, n)
        Only its lower triangle is read.
    block : int, default=1024
        Columns of a block.

    Raises
    ------
    NotPositiveDefinite
        If there is no factor.
    """
    n = A.shape[0]
    for start in range(0, n, block):
        end = min(start + block, n)
        if start:  # the columns minus what the columns on their left explain: one long product
            _subtract_product(A[start:, start:end], A[start:, :start], A[start:end, :start].T)
        corner = _factor(A[start:end, start:end])
        A[start:end, start:end] = corner
        A[start:end, end:] = 0.0
        if end < n:
            A[end:, start:end] = A[end:, start:end] @ inverse_of_lower(corner).T


def _subtract_product(values: Any, left: Any, right: Any) -> None:
    """Values minus left times right, in the memory of the values."""
    if hasattr(values, "addmm_"):
        values.addmm_(left, right, alpha=-1.0)
    else:
        values -= left @ right


def _negative_product(values: Any, left: Any, right: Any) -> None:
    """Write −left times right over some values, which the factors may not share memory with."""
    if hasattr(values, "addmm_"):
        values.addmm_(left, right, beta=0.0, alpha=-1.0)
    else:
        values[...] = -(left @ right)


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
    xp, device = space(L)
    n = L.shape[0]
    if hasattr(xp.linalg, "solve_triangular"):  # torch
        return xp.linalg.solve_triangular(L, xp.eye(n, dtype=L.dtype, device=device), upper=False)
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

    Block columns are inverted from the last to the first: of (A 0; B C), with C⁻¹ in the place of C already, the block
    column becomes A⁻¹ and −C⁻¹ (B A⁻¹).
    """
    n = L.shape[0]
    for start in reversed(range(0, n, block)):
        end = min(start + block, n)
        corner = inverse_of_lower(L[start:end, start:end])
        below = L[end:, start:end] @ corner
        for first in range(end, n, 2 * block):
            last = min(first + 2 * block, n)
            _negative_product(L[first:last, start:end], L[first:last, end:last], below[: last - end, :])
        L[start:end, start:end] = corner

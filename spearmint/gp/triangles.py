"""Products with lower triangles, in half the time of square matrices (BLAS TRMM).

The right factors are those of the posterior, shape ``(S, N, N)``: its inverse Cholesky factors, or
its inverse covariances.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas

from spearmint.gp.numerics import Array

# TRMM copies the triangle into its own order first. For few rows of a large triangle, as in a batch
# of proposals, one TRMV for each row takes two thirds of the time; for one row, a third.
FEW_ROWS, LARGE = 4, 500
# Elements of a left factor up to which one call for all samples is faster, for its zeros.
_SMALL = 1500


def times_lower(left: Array, lower: Array) -> Array:
    """Return ``left`` (S, m, N) times ``lower``, shape ``(S, m, N)``."""
    return _products(left, lower, transposed=False)


def times_lower_transposed(left: Array, lower: Array) -> Array:
    """Return ``left`` (S, m, N) times the transposes of ``lower``, shape ``(S, m, N)``."""
    return _products(left, lower, transposed=True)


def times_symmetric(left: Array, lower: Array) -> Array:
    """Return few rows ``left`` (S, m, N) times the symmetric matrices with these triangles.

    This reads each triangle once for each row, instead of twice as two products with a factor do.
    """
    out = np.empty_like(left, order="C")
    for product, rows, triangle in zip(out, left, lower, strict=True):
        for to, row in zip(product, rows, strict=True):
            to[:] = blas.dsymv(1.0, triangle.T, row, lower=0)
    return out


def _products(left: Array, lower: Array, *, transposed: bool) -> Array:
    """Return the products from BLAS, for which rows in memory are columns: it has A' = L B'."""
    if left.shape[1] * left.shape[2] <= _SMALL:
        return np.asarray(left @ (lower.transpose(0, 2, 1) if transposed else lower))
    out = np.empty_like(left, order="C")
    is_one_by_one = left.shape[1] <= FEW_ROWS and left.shape[2] >= LARGE
    for product, rows, triangle in zip(out, left, lower, strict=True):
        if is_one_by_one:
            for to, row in zip(product, rows, strict=True):
                to[:] = blas.dtrmv(triangle.T, row, lower=0, trans=int(transposed))
        else:
            product[:] = blas.dtrmm(1.0, triangle.T, rows.T, lower=0, trans_a=int(transposed)).T
    return out

"""Symmetric matrices as flat arrays of n (n + 1) / 2 numbers, so that half the kernel is computed.

The order is LAPACK's rectangular full packed format, in which a factorisation is as fast as that of
a square matrix. Source: Gustavson, Wasniewski, Dongarra and Langou 2010 (ACM TOMS 37:18).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from spearmint.gp.numerics import Array


@dataclass(frozen=True, slots=True)
class PackedLayout:
    """Row and column of every packed number, and the positions of the diagonal, in order."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    diagonal: NDArray[np.intp]


@lru_cache(maxsize=8)
def layout(n: int) -> PackedLayout:
    """Return the order of the numbers of an n x n matrix."""
    places = np.arange(n * n, dtype=np.float64).reshape(n, n)
    order = lapack.dtrttf(places.T, uplo="L")[0].astype(np.intp)
    rows, columns = np.divmod(order, n)
    diagonal = np.flatnonzero(rows == columns)
    return PackedLayout(rows, columns, diagonal[np.argsort(rows[diagonal])])


def pack(square: Array) -> Array:
    """Return the packed form of symmetric matrices ``(..., n, n)``."""
    order = layout(square.shape[-1])
    return np.ascontiguousarray(square[..., order.rows, order.columns])


def unpack(packed: Array, n: int) -> Array:
    """Return the symmetric n x n matrix of a packed matrix."""
    order = layout(n)
    square = np.empty((n, n))
    square[order.rows, order.columns] = packed
    square[order.columns, order.rows] = packed
    return square


def cholesky(packed: Array, n: int) -> Array | None:
    """Return the packed lower Cholesky factor, None if it does not exist; overwrite ``packed``."""
    factor, info = lapack.dpftrf(n, packed, uplo="L", overwrite_a=1)
    return np.asarray(factor) if info == 0 else None


def forward(factor: Array, right: Array) -> Array:
    """Return L^-1 ``right`` (n, m) for the packed factor L."""
    return np.asarray(lapack.dtfsm(1.0, factor, np.asfortranarray(right), uplo="L"))


def solve(factor: Array, right: Array) -> Array:
    """Return (L L')^-1 ``right`` (n, m) for the packed factor L."""
    return np.asarray(lapack.dpftrs(len(right), factor, np.asfortranarray(right), uplo="L")[0])


def inverse(factor: Array, n: int) -> Array:
    """Return (L L')^-1, packed, for the packed factor L; overwrite ``factor``."""
    return np.asarray(lapack.dpftri(n, factor, uplo="L", overwrite_a=1)[0])


def add_products(packed: Array, times: float, columns: Array) -> Array:
    """Return ``times`` the matrix plus V V', packed, for ``columns`` V (n, m); overwrite it."""
    n, m = columns.shape
    return np.asarray(lapack.dsfrk(n, m, 1.0, columns, times, packed, uplo="L", overwrite_c=1))

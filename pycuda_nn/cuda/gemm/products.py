"""The three matrix products of a dense layer, in the notation of cuBLASLt.

All matrices are row-major with padded widths. cuBLASLt is column-major, so each product is
transposed: C = A B becomes C' = B' A', which has the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pycuda_nn.cuda.layout import PaddedDense


@dataclass(frozen=True, kw_only=True)
class Product:
    """A product D = alpha op(A) op(B) + beta D, column-major as in cuBLASLt.

    Attributes:
        m, n, k: Shape (m, n) of D, and the length k of the sums.
        trans_a, trans_b: Whether A and B are transposed.
        a, b, d: Addresses.
        wide: Whether D is float32 in all precisions.
        alpha, beta: Factors of the product and of the old values of D.
        relu_bias: Address of a bias (m,) to add before max(., 0); 0 for no bias and no max.
        networks: Products of this shape; all operands follow each other in memory.
        shared_b: Whether they have the same B.
    """

    m: int
    n: int
    k: int
    trans_a: bool
    trans_b: bool
    a: int
    b: int
    d: int
    wide: bool = False
    alpha: float = 1.0
    beta: float = 0.0
    relu_bias: int = 0
    networks: int = 1
    shared_b: bool = False


def forward(layer: PaddedDense, rows: int, *, x: int, weights: int, z: int, **more: Any) -> Product:
    """Return z (rows, outputs) = x W; ``more`` as in :class:`Product`."""
    return Product(
        m=layer.outputs, n=rows, k=layer.inputs,
        trans_a=False, trans_b=False, a=weights, b=x, d=z, **more,
    )  # fmt: skip


def data_gradient(
    layer: PaddedDense, rows: int, *, delta: int, weights: int, below: int
) -> Product:
    """Return below (rows, inputs) = delta W'."""
    return Product(
        m=layer.inputs, n=rows, k=layer.outputs,
        trans_a=True, trans_b=False, a=weights, b=delta, d=below,
    )  # fmt: skip


def weight_gradient(
    layer: PaddedDense, rows: int, *, x: int, delta: int, out: int, **more: Any
) -> Product:
    """Return out (inputs, outputs) = alpha x' delta + beta out; ``more`` as in :class:`Product`."""
    return Product(
        m=layer.outputs, n=layer.inputs, k=rows,
        trans_a=False, trans_b=True, a=delta, b=x, d=out, **more,
    )  # fmt: skip

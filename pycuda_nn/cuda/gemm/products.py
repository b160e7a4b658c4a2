"""The three matrix products of a dense layer, as cuBLASLt counts them.

All matrices are row-major with padded widths. cuBLASLt counts columns first, so each product is
asked for transposed: C = A B becomes C' = B' A', which is the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pycuda_nn.cuda.layout import PaddedDense


@dataclass(frozen=True, kw_only=True)
class Product:
    """One product D = op(A) op(B) + beta D as cuBLASLt sees it, columns first.

    Attributes:
        m, n, k: Shape of D, (m, n), and the length of the sums.
        trans_a, trans_b: Whether A, B are transposed.
        a, b, d: Addresses.
        wide: Whether D is float32 whatever the precision.
        alpha, beta: Factors of the product and of what D held.
        relu_bias: Address of a bias (m,) to add before max(., 0); 0 for neither.
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
    layer: PaddedDense, rows: int, *, x: int, delta: int, out: int, alpha: float, beta: float
) -> Product:
    """Return out (inputs, outputs), float32, = alpha x' delta + beta out."""
    return Product(
        m=layer.outputs, n=layer.inputs, k=rows,
        trans_a=False, trans_b=True, a=delta, b=x, d=out, wide=True, alpha=alpha, beta=beta,
    )  # fmt: skip

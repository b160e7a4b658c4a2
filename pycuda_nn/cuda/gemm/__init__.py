"""Multiply matrices with cuBLASLt or a built-in kernel, whichever is faster for a shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycuda_nn.cuda.lazy import lazy_names

if TYPE_CHECKING:
    from pycuda_nn.cuda.gemm.matmul import Gemms
    from pycuda_nn.cuda.gemm.products import Product
    from pycuda_nn.cuda.gemm.sgemm import Sgemm

__all__ = ["Gemms", "Product", "Sgemm"]
_MODULES = {
    "Gemms": "pycuda_nn.cuda.gemm.matmul",
    "Product": "pycuda_nn.cuda.gemm.products",
    "Sgemm": "pycuda_nn.cuda.gemm.sgemm",
}

__getattr__ = lazy_names(__name__, _MODULES)

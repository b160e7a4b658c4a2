"""Multiply matrices with cuBLASLt or our own kernel, whichever is faster for a shape."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

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


def __getattr__(name: str) -> object:
    """Import a name when it is first used: most need PyCUDA."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

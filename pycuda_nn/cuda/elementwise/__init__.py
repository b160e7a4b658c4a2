"""Compute each elementwise expression in one fused kernel; NPP is included for comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycuda_nn.cuda.lazy import lazy_names

if TYPE_CHECKING:
    from pycuda_nn.cuda.elementwise.kernel import Elementwise, Kernel
    from pycuda_nn.expression import Input, Scalar

__all__ = ["Elementwise", "Input", "Kernel", "Scalar"]
_MODULES = {
    "Elementwise": "pycuda_nn.cuda.elementwise.kernel",
    "Input": "pycuda_nn.expression",
    "Kernel": "pycuda_nn.cuda.elementwise.kernel",
    "Scalar": "pycuda_nn.expression",
}

__getattr__ = lazy_names(__name__, _MODULES)

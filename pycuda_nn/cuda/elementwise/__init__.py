"""Compute elementwise expressions as one fused kernel each, and NPP beside them to compare."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pycuda_nn.cuda.elementwise.expression import Input, Scalar
    from pycuda_nn.cuda.elementwise.kernel import Elementwise, Kernel

__all__ = ["Elementwise", "Input", "Kernel", "Scalar"]
_MODULES = {
    "Elementwise": "pycuda_nn.cuda.elementwise.kernel",
    "Input": "pycuda_nn.cuda.elementwise.expression",
    "Kernel": "pycuda_nn.cuda.elementwise.kernel",
    "Scalar": "pycuda_nn.cuda.elementwise.expression",
}


def __getattr__(name: str) -> object:
    """Import a name when it is first used: most need PyCUDA."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

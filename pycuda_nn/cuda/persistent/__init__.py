"""Train a small network in one persistent kernel per epoch."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pycuda_nn.cuda.persistent.kernel import PersistentKernel
    from pycuda_nn.cuda.persistent.plan import KernelPlan

__all__ = ["KernelPlan", "PersistentKernel"]
_MODULES = {
    "KernelPlan": "pycuda_nn.cuda.persistent.plan",
    "PersistentKernel": "pycuda_nn.cuda.persistent.kernel",
}


def __getattr__(name: str) -> object:
    """Import a name when it is first used: most need PyCUDA."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

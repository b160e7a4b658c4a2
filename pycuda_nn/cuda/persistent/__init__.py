"""Train a small network in one persistent kernel per epoch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycuda_nn.cuda.lazy import lazy_names

if TYPE_CHECKING:
    from pycuda_nn.cuda.persistent.kernel import PersistentKernel
    from pycuda_nn.cuda.persistent.plan import KernelPlan

__all__ = ["KernelPlan", "PersistentKernel"]
_MODULES = {
    "KernelPlan": "pycuda_nn.cuda.persistent.plan",
    "PersistentKernel": "pycuda_nn.cuda.persistent.kernel",
}

__getattr__ = lazy_names(__name__, _MODULES)

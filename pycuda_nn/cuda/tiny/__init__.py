"""Train a network whose weights fit in one multiprocessor, many steps in one launch, in float32."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycuda_nn.cuda.lazy import lazy_names

if TYPE_CHECKING:
    from pycuda_nn.cuda.tiny.kernel import TinyKernel
    from pycuda_nn.cuda.tiny.plan import TinyPlan

__all__ = ["TinyKernel", "TinyPlan"]
_MODULES = {
    "TinyKernel": "pycuda_nn.cuda.tiny.kernel",
    "TinyPlan": "pycuda_nn.cuda.tiny.plan",
}

__getattr__ = lazy_names(__name__, _MODULES)

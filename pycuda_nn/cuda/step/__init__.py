"""Capture one training step of dense layers: its plan, weights, buffers, products and kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycuda_nn.cuda.lazy import lazy_names

if TYPE_CHECKING:
    from pycuda_nn.cuda.step.plan import TrainingPlan
    from pycuda_nn.cuda.step.step import TrainingStep

__all__ = ["TrainingPlan", "TrainingStep"]
_MODULES = {
    "TrainingPlan": "pycuda_nn.cuda.step.plan",
    "TrainingStep": "pycuda_nn.cuda.step.step",
}

__getattr__ = lazy_names(__name__, _MODULES)

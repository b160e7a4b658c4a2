"""Capture one training step of dense layers: its plan, weights, buffers, products and kernels."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pycuda_nn.cuda.step.plan import TrainingPlan
    from pycuda_nn.cuda.step.step import TrainingStep

__all__ = ["TrainingPlan", "TrainingStep"]
_MODULES = {
    "TrainingPlan": "pycuda_nn.cuda.step.plan",
    "TrainingStep": "pycuda_nn.cuda.step.step",
}


def __getattr__(name: str) -> object:
    """Import a name when it is first used: both need PyCUDA."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

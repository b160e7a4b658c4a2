"""Train a network on one GPU: buffers, weights, the captured training step, evaluation."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pycuda_nn.cuda.training.plan import TrainingPlan
    from pycuda_nn.cuda.training.session import CudaSession
    from pycuda_nn.cuda.training.step import TrainingStep

__all__ = ["CudaSession", "TrainingPlan", "TrainingStep"]
_MODULES = {
    "CudaSession": "pycuda_nn.cuda.training.session",
    "TrainingPlan": "pycuda_nn.cuda.training.plan",
    "TrainingStep": "pycuda_nn.cuda.training.step",
}


def __getattr__(name: str) -> object:
    """Import a name when it is first used: most need PyCUDA."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

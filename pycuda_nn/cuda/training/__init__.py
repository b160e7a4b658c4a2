"""Train a network on one GPU: rows and their order, epochs, evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycuda_nn.cuda.lazy import lazy_names

if TYPE_CHECKING:
    from pycuda_nn.cuda.training.session import CudaSession

__all__ = ["CudaSession"]
_MODULES = {"CudaSession": "pycuda_nn.cuda.training.session"}

__getattr__ = lazy_names(__name__, _MODULES)

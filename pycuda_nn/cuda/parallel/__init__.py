"""Train a network on several GPUs of one host: ranks, shards, and the exchange of gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycuda_nn.cuda.lazy import lazy_names

if TYPE_CHECKING:
    from pycuda_nn.cuda.parallel.session import DataParallelSession

__all__ = ["DataParallelSession"]
_MODULES = {"DataParallelSession": "pycuda_nn.cuda.parallel.session"}

__getattr__ = lazy_names(__name__, _MODULES)

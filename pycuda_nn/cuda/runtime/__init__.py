"""Reach a GPU: compiler and cache, device and memory, modules, graphs, precisions."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pycuda_nn.cuda.runtime.compiler import kernel_source
    from pycuda_nn.cuda.runtime.device import Device, Memory
    from pycuda_nn.cuda.runtime.graph import Graph
    from pycuda_nn.cuda.runtime.module import Module
    from pycuda_nn.cuda.runtime.precision import PRECISIONS
    from pycuda_nn.cuda.runtime.stopwatch import Stopwatch

__all__ = ["PRECISIONS", "Device", "Graph", "Memory", "Module", "Stopwatch", "kernel_source"]
_MODULES = {
    "PRECISIONS": "pycuda_nn.cuda.runtime.precision",
    "Device": "pycuda_nn.cuda.runtime.device",
    "Graph": "pycuda_nn.cuda.runtime.graph",
    "Memory": "pycuda_nn.cuda.runtime.device",
    "Module": "pycuda_nn.cuda.runtime.module",
    "Stopwatch": "pycuda_nn.cuda.runtime.stopwatch",
    "kernel_source": "pycuda_nn.cuda.runtime.compiler",
}


def __getattr__(name: str) -> object:
    """Import a name when it is first used: most need PyCUDA."""
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

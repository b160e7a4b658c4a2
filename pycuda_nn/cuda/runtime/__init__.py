"""Use a GPU: compiler and cache, device and memory, modules, graphs, precisions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pycuda_nn.cuda.lazy import lazy_names

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

__getattr__ = lazy_names(__name__, _MODULES)

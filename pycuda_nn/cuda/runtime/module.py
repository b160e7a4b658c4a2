"""Compiled kernels on a device, each with the types of its arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import pycuda.driver as cuda

from pycuda_nn.cuda.runtime.compiler import build
from pycuda_nn.cuda.runtime.device import Device


class Module:
    """The kernels of one source, loaded on the active device."""

    def __init__(
        self,
        device: Device,
        source: str,
        signatures: Mapping[str, str | type[ctypes.Structure]],
        options: Sequence[str] = (),
    ) -> None:
        """Compile (or take from the cache) and load.

        Args:
            device: Whose context is active.
            source: CUDA C++ with ``extern "C"`` kernels.
            signatures: Types of the arguments of each kernel, as Python's ``struct`` writes them:
                P an address, i int32, q int64, f float32, Q uint64; or the structure that is its
                only argument.
            options: For the compiler, such as ``-DWIDTH=8``.

        Raises:
            KernelBuildError: The source cannot be compiled.
        """
        self._module = cuda.module_from_buffer(build(source, device.facts.arch, options))
        self.functions: dict[str, Any] = {
            name: self._module.get_function(name).prepare(_types(types))
            for name, types in signatures.items()
        }

    def launch(
        self, name: str, grid: tuple[int, ...], block: int, stream: cuda.Stream, *arguments: Any
    ) -> None:
        """Put a kernel on ``stream``; nothing is waited for."""
        if len(arguments) == 1 and isinstance(arguments[0], ctypes.Structure):
            arguments = (bytes(arguments[0]),)
        self.functions[name].prepared_async_call(grid, (block, 1, 1), stream, *arguments)


def _types(signature: str | type[ctypes.Structure]) -> list[str]:
    if isinstance(signature, str):
        return list(signature)
    return [f"{ctypes.sizeof(signature)}s"]

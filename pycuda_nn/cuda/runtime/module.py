"""Compiled kernels on a device, with the types of their arguments."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import pycuda.driver as cuda

from pycuda_nn.cuda.runtime.compiler import build
from pycuda_nn.cuda.runtime.device import Device


class Module:
    """The kernels of a source, loaded on the active device."""

    def __init__(
        self,
        device: Device,
        source: str,
        signatures: Mapping[str, str | type[ctypes.Structure]],
        options: Sequence[str] = (),
        *,
        feature: str = "",
    ) -> None:
        """Compile the source, or read it from the cache, and load it.

        Args:
            device: Device of the active context.
            source: CUDA C++ with ``extern "C"`` kernels.
            signatures: Types of the arguments of each kernel in the notation of ``struct``:
                P for an address, i for int32, q int64, f float32, Q uint64; or the structure that
                is the only argument.
            options: Compiler options, such as ``-DWIDTH=8``.
            feature: Suffix of the architecture: ``a`` for the instructions of this one only.

        Raises:
            KernelBuildError: The source cannot be compiled.
        """
        self._module = cuda.module_from_buffer(build(source, device.facts.arch + feature, options))
        self.functions: dict[str, Any] = {
            name: self._module.get_function(name).prepare(_types(types))
            for name, types in signatures.items()
        }

        self._more: dict[str, dict[str, int]] = {}

    def reserve(self, name: str, shared_bytes: int) -> None:
        """Launch a kernel with this much dynamic shared memory."""
        what = cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.functions[name].set_attribute(what, shared_bytes)
        self._more[name] = {"shared_size": shared_bytes}

    def launch(
        self, name: str, grid: tuple[int, ...], block: int, stream: cuda.Stream, *arguments: Any
    ) -> None:
        """Queue a kernel on ``stream`` without waiting for it."""
        if len(arguments) == 1 and isinstance(arguments[0], ctypes.Structure):
            arguments = (bytes(arguments[0]),)
        self.functions[name].prepared_async_call(
            grid, (block, 1, 1), stream, *arguments, **self._more.get(name, {})
        )


def _types(signature: str | type[ctypes.Structure]) -> list[str]:
    if isinstance(signature, str):
        return list(signature)
    return [f"{ctypes.sizeof(signature)}s"]

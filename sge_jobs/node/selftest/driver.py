"""The functions of the CUDA driver ``libcuda.so.1`` for the self-test and the benchmark."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from ctypes import byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Any

_LIBRARY = "libcuda.so.1"
_ATTRIBUTES = {
    "multiprocessors": 16, "memory_clock_khz": 36, "memory_bus_bits": 37, "major": 75, "minor": 76,
}  # fmt: skip
_MEMORY_ERROR = 2
_CAPTURE_RELAXED = 2


class CudaError(Exception):
    """A call of the driver failed; ``call`` is its name, ``code`` the number of the error."""

    def __init__(self, call: str, code: int, text: str) -> None:
        super().__init__(f"{call}: {text}")
        self.call = call
        self.code = code

    @property
    def out_of_memory(self) -> bool:
        """Whether there was no memory left."""
        return self.code == _MEMORY_ERROR


class NoDriver(Exception):
    """There is no driver, or no GPU is visible to this process."""


class Driver:
    """The library of the driver. Raises NoDriver if it cannot be loaded."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL(_LIBRARY)
        except OSError as error:
            raise NoDriver(f"cannot load {_LIBRARY}: {error}") from error
        try:
            self.call("cuInit", c_uint(0))
        except CudaError as error:
            raise NoDriver(str(error)) from error

    def call(self, name: str, *arguments: Any) -> None:
        """Call function ``name``. Raises CudaError."""
        code = getattr(self._library, name)(*arguments)
        if code:
            text = c_char_p()
            self._library.cuGetErrorString(c_int(code), byref(text))
            words = text.value.decode() if text.value else "unknown error"
            raise CudaError(name, code, f"error {code}, {words}")

    def version(self) -> str:
        """Return the newest CUDA version that the driver supports."""
        number = c_int()
        self.call("cuDriverGetVersion", byref(number))
        return f"{number.value // 1000}.{number.value % 1000 // 10}"

    def count(self) -> int:
        """Return how many GPUs are visible to this process."""
        number = c_int()
        self.call("cuDeviceGetCount", byref(number))
        return number.value


class Device:
    """One GPU with its primary context, current in the thread that created it."""

    def __init__(self, driver: Driver, index: int) -> None:
        self._driver = driver
        self._device = c_int()
        self._call("cuDeviceGet", byref(self._device), c_int(index))
        self._context = c_void_p()
        self._call("cuDevicePrimaryCtxRetain", byref(self._context), self._device)
        self._call("cuCtxSetCurrent", self._context)
        self._functions: dict[str, c_void_p] = {}
        self._module: c_void_p | None = None
        self._stream = c_void_p()

    def _call(self, name: str, *arguments: Any) -> None:
        self._driver.call(name, *arguments)

    @property
    def name(self) -> str:
        """Name of the model."""
        text = ctypes.create_string_buffer(100)
        self._call("cuDeviceGetName", text, c_int(100), self._device)
        return text.value.decode(errors="replace")

    @property
    def uuid(self) -> str:
        """UUID as ``nvidia-smi -L`` prints it; for a MIG slice, the UUID of the slice."""
        data = ctypes.create_string_buffer(16)
        self._call("cuDeviceGetUuid_v2", data, self._device)
        digits = data.raw.hex()
        parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        return "GPU-" + "-".join(parts)

    @property
    def bus_id(self) -> str:
        """PCI address such as ``0000:3b:00.0``."""
        text = ctypes.create_string_buffer(32)
        self._call("cuDeviceGetPCIBusId", text, c_int(32), self._device)
        return text.value.decode().lower()

    def attribute(self, name: str) -> int:
        """Return an attribute of the GPU; 0 if the driver does not have it."""
        value = c_int()
        try:
            self._call("cuDeviceGetAttribute", byref(value), c_int(_ATTRIBUTES[name]), self._device)
        except CudaError:
            return 0
        return value.value

    def free_bytes(self) -> int:
        """Return how much memory is free."""
        free, total = c_size_t(), c_size_t()
        self._call("cuMemGetInfo_v2", byref(free), byref(total))
        return free.value

    def allocate(self, size: int) -> int:
        """Return the address of ``size`` bytes of device memory."""
        address = c_ulonglong()
        self._call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address.value

    def free(self, address: int) -> None:
        """Free device memory."""
        self._call("cuMemFree_v2", c_ulonglong(address))

    def allocate_host(self, size: int) -> int:
        """Return the address of ``size`` bytes of page-locked host memory."""
        address = c_void_p()
        self._call("cuMemAllocHost_v2", byref(address), c_size_t(size))
        return address.value or 0

    def free_host(self, address: int) -> None:
        """Free page-locked host memory."""
        self._call("cuMemFreeHost", c_void_p(address))

    def write(self, address: int, data: bytes) -> None:
        """Copy ``data`` to the device."""
        self._call("cuMemcpyHtoD_v2", c_ulonglong(address), c_char_p(data), c_size_t(len(data)))

    def read(self, address: int, size: int) -> bytes:
        """Copy ``size`` bytes from the device."""
        data = ctypes.create_string_buffer(size)
        self._call("cuMemcpyDtoH_v2", data, c_ulonglong(address), c_size_t(size))
        return data.raw

    def copy(self, kind: str, target: int, source: int, size: int) -> None:
        """Copy asynchronously; ``kind`` is DtoD, HtoD or DtoH, with page-locked host memory."""
        to = c_void_p(target) if kind == "DtoH" else c_ulonglong(target)
        of = c_void_p(source) if kind == "HtoD" else c_ulonglong(source)
        self._call(f"cuMemcpy{kind}Async_v2", to, of, c_size_t(size), c_void_p())

    def launch(self, name: str, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        """Launch kernel ``name`` of ``kernels.ptx``; ``arguments`` are ctypes values."""
        pointers = (c_void_p * len(arguments))(
            *(ctypes.addressof(argument) for argument in arguments)
        )
        one = c_uint(1)
        self._call(
            "cuLaunchKernel", self._function(name), c_uint(blocks), one, one, c_uint(threads),
            one, one, c_uint(0), self._stream, pointers, c_void_p(),
        )  # fmt: skip

    def capture(self, work: Callable[[], None]) -> c_void_p:
        """Return a graph of the launches in ``work``, without running them."""
        stream, graph, ready = c_void_p(), c_void_p(), c_void_p()
        self._call("cuStreamCreate", byref(stream), c_uint(0))
        self._call("cuStreamBeginCapture_v2", stream, c_uint(_CAPTURE_RELAXED))
        self._stream = stream
        try:
            work()
        finally:
            self._stream = c_void_p()
            self._call("cuStreamEndCapture", stream, byref(graph))
        self._call("cuGraphInstantiateWithFlags", byref(ready), graph, c_ulonglong(0))
        return ready

    def replay(self, graph: c_void_p) -> None:
        """Launch a graph."""
        self._call("cuGraphLaunch", graph, c_void_p())

    def _function(self, name: str) -> c_void_p:
        if self._module is None:
            self._module = c_void_p()
            with open(os.path.join(os.path.dirname(__file__), "kernels.ptx"), "rb") as file:
                self._call("cuModuleLoadData", byref(self._module), c_char_p(file.read()))
        if name not in self._functions:
            function = c_void_p()
            self._call("cuModuleGetFunction", byref(function), self._module, name.encode())
            self._functions[name] = function
        return self._functions[name]

    def synchronize(self) -> None:
        """Wait for all work. Raises the error of a kernel that failed."""
        self._call("cuCtxSynchronize")

    def record(self) -> c_void_p:
        """Return an event after all earlier work."""
        event = c_void_p()
        self._call("cuEventCreate", byref(event), c_uint(0))
        self._call("cuEventRecord", event, c_void_p())
        return event

    def seconds_between(self, start: c_void_p, end: c_void_p) -> float:
        """Wait for both events, return the time between them, and destroy them."""
        milliseconds = c_float()
        self._call("cuEventSynchronize", end)
        self._call("cuEventElapsedTime", byref(milliseconds), start, end)
        for event in (start, end):
            self._call("cuEventDestroy_v2", event)
        return milliseconds.value / 1000

    def close(self) -> None:
        """Release the primary context."""
        self._call("cuDevicePrimaryCtxRelease_v2", self._device)

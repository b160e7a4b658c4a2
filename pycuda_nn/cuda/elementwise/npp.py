"""NVIDIA's signal processing library, libnpps, which only the benchmark uses."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pycuda.driver as cuda

from pycuda_nn.cuda.runtime.device import Device
from pycuda_nn.errors import DeviceError

_VERSIONS = (13, 12)
_TARGET = ("targets", "x86_64-linux", "lib")
_WITH_CONSTANT = ("MulC", "AddC")
_ALONE = ("Exp", "Ln", "Sqr", "Sqrt", "Abs")


Call = Callable[[], Any]


class _Context(ctypes.Structure):
    """NppStreamContext of nppdefs.h."""

    _fields_ = (
        ("stream", ctypes.c_void_p),
        ("device", ctypes.c_int),
        ("multiprocessors", ctypes.c_int),
        ("threads_per_multiprocessor", ctypes.c_int),
        ("threads_per_block", ctypes.c_int),
        ("shared_bytes_per_block", ctypes.c_size_t),
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("stream_flags", ctypes.c_uint),
        ("workspace", ctypes.c_void_p),  # 0; some versions have a shorter field here
    )


class Npp:
    """The in-place float32 operations of libnpps on one stream."""

    def __init__(
        self, core: ctypes.CDLL, library: ctypes.CDLL, device: Device, stream: cuda.Stream
    ) -> None:
        self._library = library
        asked = core.nppGetLibVersion
        asked.restype = ctypes.POINTER(ctypes.c_int * 3)
        self.version = ".".join(map(str, asked().contents))
        self._context = _context(device, stream)

    def call(self, operation: str, address: int, count: int, value: float = 0.0) -> Call:
        """Run ``operation``, such as MulC, once on ``count`` float32 in place; return the call.

        Raises:
            DeviceError: libnpps does not have the operation, or the call failed.
        """
        name = f"npps{operation}_32f_I_Ctx"
        if operation not in (*_WITH_CONSTANT, *_ALONE) or not hasattr(self._library, name):
            raise DeviceError(f"libnpps does not have the function {name}")
        constant = (ctypes.c_float(value),) if operation in _WITH_CONSTANT else ()
        array = ctypes.c_void_p(address), ctypes.c_size_t(count)
        made = functools.partial(self._library[name], *constant, *array, self._context)
        status = made()
        if status:
            raise DeviceError(f"{name} failed: NppStatus {status}")
        return made


def open_npp(device: Device, stream: cuda.Stream) -> Npp | None:
    """Return libnpps for ``stream`` of ``device``, or None if it is not installed."""
    for version in _VERSIONS:
        for folder in ("", *_folders()):
            try:
                # libnpps needs libnppc, which the loader does not always find.
                core = ctypes.CDLL(str(Path(folder, f"libnppc.so.{version}")), ctypes.RTLD_GLOBAL)
                library = ctypes.CDLL(str(Path(folder, f"libnpps.so.{version}")))
            except OSError:
                continue
            return Npp(core, library, device, stream)
    return None


def _folders() -> list[str]:
    homes = [home for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home]
    toolkit = [Path(home, *rest) for home in homes for rest in (("lib64",), _TARGET)]
    wheels = [found for place in sys.path for found in Path(place, "nvidia").glob("*/lib")]
    return [str(folder) for folder in (*toolkit, *wheels)]


def _context(device: Device, stream: cuda.Stream) -> _Context:
    attribute, asked = cuda.device_attribute, cuda.Device(device.ordinal).get_attribute
    major, minor = device.facts.compute_capability
    return _Context(
        stream=stream.handle,
        device=device.ordinal,
        multiprocessors=device.facts.multiprocessors,
        threads_per_multiprocessor=asked(attribute.MAX_THREADS_PER_MULTIPROCESSOR),
        threads_per_block=asked(attribute.MAX_THREADS_PER_BLOCK),
        shared_bytes_per_block=asked(attribute.MAX_SHARED_MEMORY_PER_BLOCK),
        major=major,
        minor=minor,
    )

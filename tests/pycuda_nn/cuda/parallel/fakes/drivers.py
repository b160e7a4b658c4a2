"""Fake modules of the drivers, and how to import ``pycuda_nn.cuda`` on them."""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from tests.pycuda_nn.cuda.parallel.fakes.gpu import (
    MACHINE,
    Allocation,
    Context,
    Device,
    Event,
    Module,
    Stream,
)

_HERE = "tests.pycuda_nn.cuda.parallel.fakes"
_FAKED = (
    "pycuda", "cuda", "nvmath", "nccl", "pycuda_nn.cuda",
    f"{_HERE}.emulation", f"{_HERE}.step", f"{_HERE}.training", f"{_HERE}.twin",
    f"{_HERE}.protocol", f"{_HERE}.interleavings",
)  # fmt: skip


def _driver() -> dict[str, Any]:
    """Return the names of ``pycuda.driver``."""

    def copy(to: int, source: int, n_bytes: int) -> None:
        ctypes.memmove(int(to), int(source), n_bytes)

    def upload(to: int, values: np.ndarray[Any, Any]) -> None:
        assert values.flags.c_contiguous
        copy(to, values.ctypes.data, values.nbytes)

    def pinned(n: int, kind: Any, mem_flags: int = 0) -> Any:
        class Pinned(np.ndarray[Any, Any]):
            base: Any = SimpleNamespace(get_device_pointer=lambda: address, free=lambda: None)

        array = np.zeros(n, kind)
        address = array.ctypes.data
        return array.view(Pinned)

    error = type("Error", (Exception,), {})
    out_of_memory = type("MemoryError", (error,), {})

    def allocate(n_bytes: int) -> Allocation:
        if n_bytes > MACHINE.free_bytes():
            raise out_of_memory
        return Allocation(MACHINE.allocate(n_bytes))

    return {
        "Stream": Stream, "Event": Event, "Device": Device, "Context": Context,
        "Error": error, "MemoryError": out_of_memory, "init": lambda: None,
        "event_flags": SimpleNamespace(DISABLE_TIMING=2, BLOCKING_SYNC=1),
        "device_attribute": SimpleNamespace(
            MULTIPROCESSOR_COUNT=132, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN=1 << 17, L2_CACHE_SIZE=1
        ),
        "mem_alloc": allocate,
        "mem_get_info": lambda: (MACHINE.free_bytes(), 1 << 36),
        "memset_d8": lambda to, value, n: ctypes.memset(int(to), value, n) and None,
        "memset_d8_async": lambda to, value, n, stream: MACHINE.queue(
            stream, "memset", arguments=(to, value, n)
        ),
        "memset_d32_async": lambda to, value, n, stream: MACHINE.queue(
            stream, "memset", arguments=(to, value, 4 * n)
        ),
        "memcpy_htod": upload,
        "memcpy_htod_async": lambda to, values, stream: upload(to, values),  # no kernel computes
        "memcpy_dtoh_async": lambda to, source, stream: copy(to.ctypes.data, source, to.nbytes),
        "memcpy_dtod_async": lambda to, source, n, stream: MACHINE.queue(
            stream, "copy", arguments=(int(to), int(source), n)
        ),
        "pagelocked_empty": pinned,
        "host_alloc_flags": SimpleNamespace(DEVICEMAP=2, PORTABLE=1),
        "module_from_buffer": Module,
        "memcpy_dtoh": lambda to, source: copy(to.ctypes.data, source, to.nbytes),
    }  # fmt: skip


def _bindings() -> dict[str, Any]:
    """Return the names of ``cuda.bindings.driver``."""
    return {
        "CUstreamCaptureMode": SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2),
        "CUstream": lambda handle: MACHINE.streams[handle],
        "cuStreamBeginCapture": lambda stream, mode: (0, MACHINE.begin(stream))[:1],
        "cuStreamEndCapture": lambda stream: (0, MACHINE.end()),
        "cuGraphInstantiate": lambda graph, flags: (0, graph),
        "cuGraphDestroy": lambda graph: (0,),
        "cuGraphExecDestroy": lambda graph: (0,),
        "cuGraphUpload": lambda graph, stream: (0,),
        "cuGraphLaunch": lambda graph, stream: (0, MACHINE.launch(graph, stream))[:1],
        "cuDeviceGet": lambda ordinal: (0, ordinal),
        "cuDevicePrimaryCtxRetain": lambda device: (0, device),
        "cuDevicePrimaryCtxRelease": lambda device: (0,),
        "cuCtxEnablePeerAccess": lambda context, flags: (
            0 if context != MACHINE.stack[-1] else 101,
        ),
        "cuDeviceCanAccessPeer": lambda one, other: (0, 1),
    }


class _Names:
    """Gives every name a value."""

    def __getattr__(self, name: str) -> int:
        return 1


def _cublas() -> dict[str, Any]:
    """Return the names of cuBLASLt: products are queued, and one algorithm is proposed."""

    def propose(*arguments: Any) -> None:
        ctypes.c_int.from_address(arguments[-1]).value = 1

    makers = ["matmul_desc", "matrix_layout", "matmul_preference"]
    nothing = [f"{name}_{what}" for name in makers for what in ("destroy", "set_attribute")]
    return {
        "cuBLASLtError": type("cuBLASLtError", (Exception,), {}), "get_version": lambda: 1,
        "create": lambda: 1, "destroy": lambda handle: None,
        **{f"{name}_create": lambda *_: 1 for name in makers},
        **{name: lambda *_: None for name in nothing},
        "matmul_algo_get_heuristic": propose,
        "matmul": lambda *arguments: MACHINE.queue(MACHINE.streams[arguments[-1]], "matmul"),
        "MatmulDescAttribute": _Names(), "MatmulPreferenceAttribute": _Names(),
        "MatrixLayoutAttribute": _Names(), "Epilogue": _Names(), "ReductionScheme": _Names(),
    }  # fmt: skip


def _nccl() -> dict[str, Any]:
    """Return the names of ``nccl.bindings.nccl``; the ranks of a reduction are found later."""

    def all_reduce(
        source: int, to: int, count: int, kind: int, operation: int, communicator: Any, stream: int
    ) -> None:
        assert source == to
        MACHINE.queue(MACHINE.streams[stream], "all_reduce", arguments=(to, count, kind))

    return {
        "DataType": SimpleNamespace(Float32=7, Bfloat16=9, Float64=8),
        "comm_init_all": lambda size, ordinals: list(ordinals), "RedOp": SimpleNamespace(Sum=0),
        "group_start": lambda: None, "group_end": lambda: None, "all_reduce": all_reduce,
        "comm_destroy": lambda communicator: None, "comm_abort": lambda communicator: None,
    }  # fmt: skip


def _modules() -> dict[str, ModuleType]:
    found = {}
    for name, names in (
        ("pycuda", {}), ("pycuda.driver", _driver()),
        ("cuda", {}), ("cuda.bindings", {}), ("cuda.bindings.driver", _bindings()),
        ("nvmath", {}), ("nvmath.bindings", {}), ("nvmath.bindings.cublasLt", _cublas()),
        ("nccl", {}), ("nccl.bindings", {}), ("nccl.bindings.nccl", _nccl()),
    ):  # fmt: skip
        found[name] = module = ModuleType(name)
        module.__path__ = []  # type: ignore[attr-defined]
        module.__dict__.update(names)
        package, _, last = name.rpartition(".")
        if package:
            setattr(found[package], last, module)
    return found


@contextmanager
def faked_drivers() -> Iterator[None]:
    """Import ``pycuda_nn.cuda`` on the fakes; afterwards its modules are those of before."""
    parent = importlib.import_module("pycuda_nn")
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_faked(name)}
    attribute = parent.__dict__.pop("cuda", None)
    sys.modules.update(_modules())
    try:
        yield
    finally:
        for name in list(sys.modules):
            if _is_faked(name):
                del sys.modules[name]
        sys.modules.update(before)
        parent.__dict__.pop("cuda", None)
        if attribute is not None:
            parent.cuda = attribute  # type: ignore[attr-defined]


def _is_faked(name: str) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in _FAKED)

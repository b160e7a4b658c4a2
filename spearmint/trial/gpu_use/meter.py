"""All calls of NVML by a trial's monitor: how busy its GPUs are, and how full."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class _Gpu:
    """One GPU, with the sum of its utilisation in per cent over ``samples``; memory in bytes."""

    name: str
    handle: Any
    is_measured: bool = False
    total: float = 0.0
    samples: int = 0
    memory: int = 0
    memory_total: int = 0


class Meter:
    """Samples the GPUs in ``visible``, a value of CUDA_VISIBLE_DEVICES; another thread can read.

    Raises:
        ImportError: The package nvidia-ml-py is not installed.
        LookupError: There is no driver, or no GPU of that name.
    """

    def __init__(self, visible: str) -> None:
        import pynvml

        self._nvml: Any = pynvml
        try:
            pynvml.nvmlInit()
            self._gpus = [_Gpu(name, handle) for name, handle in self._handles(visible)]
        except pynvml.NVMLError as error:
            raise LookupError(str(error)) from error
        if not self._gpus:
            raise LookupError(f"no GPU {visible}")
        self._is_used = False
        self._lock = threading.Lock()

    def _handles(self, visible: str) -> Iterator[tuple[str, Any]]:
        """Yield the GPUs that CUDA sees: it ignores an unknown name and all after it."""
        nvml = self._nvml
        for name in (part.strip() for part in visible.split(",")):
            handle = None
            with contextlib.suppress(nvml.NVMLError):
                handle = self._handle(name)
            if handle is None:
                return
            yield name, handle

    def _handle(self, name: str) -> Any:
        """Return the GPU with an index, or with a UUID of which CUDA accepts the beginning."""
        nvml = self._nvml
        if name.isdecimal():
            return nvml.nvmlDeviceGetHandleByIndex(int(name))
        with contextlib.suppress(nvml.NVMLError):
            return nvml.nvmlDeviceGetHandleByUUID(name.encode())
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid = nvml.nvmlDeviceGetUUID(handle)
            if name and (uuid.decode() if isinstance(uuid, bytes) else uuid).startswith(name):
                return handle
        return None

    def sample(self) -> bool:
        """Measure once; return whether a kernel has run since the first sample.

        The utilisation counts from the first sample with a kernel on any of the GPUs.
        """
        found = [(self._utilization(gpu), self._memory(gpu)) for gpu in self._gpus]
        with self._lock:
            self._is_used = self._is_used or any(busy for busy, _ in found)
            for gpu, (busy, (memory, total)) in zip(self._gpus, found, strict=True):
                gpu.memory, gpu.memory_total = max(gpu.memory, memory), total or gpu.memory_total
                if busy is not None:
                    gpu.is_measured = True
                    if self._is_used:
                        gpu.total, gpu.samples = gpu.total + busy, gpu.samples + 1
        return self._is_used

    def _utilization(self, gpu: _Gpu) -> float | None:
        """Return the utilisation of a GPU in per cent; None if unknown, as for a MIG slice."""
        try:
            return float(self._nvml.nvmlDeviceGetUtilizationRates(gpu.handle).gpu)
        except self._nvml.NVMLError:
            return None

    def _memory(self, gpu: _Gpu) -> tuple[int, int]:
        """Return the used and the total bytes of a GPU; zeros if it does not say."""
        with contextlib.suppress(self._nvml.NVMLError):
            info = self._nvml.nvmlDeviceGetMemoryInfo(gpu.handle)
            return int(info.used), int(info.total)
        return 0, 0

    def result(self) -> dict[str, Any]:
        """Return ``gpu_busy`` and ``gpus``, as :func:`gpu_use_of` describes them."""
        with self._lock:
            gpus = [_facts(gpu) for gpu in self._gpus]
        known = [gpu["busy"] for gpu in gpus if isinstance(gpu["busy"], float)]
        return {"gpu_busy": round(sum(known) / len(known), 4) if known else None, "gpus": gpus}


def _facts(gpu: _Gpu) -> dict[str, Any]:
    busy = gpu.total / gpu.samples / 100 if gpu.samples else 0.0
    return {
        "gpu": gpu.name,
        "busy": round(busy, 4) if gpu.is_measured else None,
        "memory_mib": gpu.memory >> 20,
        "memory_total_mib": gpu.memory_total >> 20,
    }

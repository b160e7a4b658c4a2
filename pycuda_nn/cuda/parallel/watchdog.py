"""Sees that a GPU has fallen off the bus, after which a call of its driver may never return."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pycuda.driver as cuda

_LOG = logging.getLogger("pycuda_nn")
_PERIOD_S = 1.0
_JOIN_S = 1.0  # a call of NVML can hang, too


class Watchdog:
    """Asks NVML for each GPU in a thread of its own, until :meth:`close`."""

    def __init__(self, ordinals: Sequence[int], lost: Callable[[int], object]) -> None:
        """Start to watch; without NVML, nothing is watched.

        Args:
            ordinals: The GPUs.
            lost: Called once in the thread, with the place in ``ordinals`` of a lost GPU.
        """
        self._lost, self._ended = lost, threading.Event()
        self._thread: threading.Thread | None = None
        try:
            buses = [str(cuda.Device(ordinal).pci_bus_id()) for ordinal in ordinals]
        except cuda.Error:
            return  # there is no such GPU: its rank says so
        nvml = _open_nvml()
        if nvml is None:
            _LOG.debug("without NVML, a GPU that falls off the bus ends a training by a time limit")
            return
        self._thread = threading.Thread(
            target=self._watch, args=(nvml, buses), name="watchdog", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._ended.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(_JOIN_S)

    def _watch(self, nvml: Any, buses: Sequence[str]) -> None:
        try:
            while not self._ended.wait(_PERIOD_S):
                gone = [place for place, bus in enumerate(buses) if _is_lost(nvml, bus)]
                if gone:
                    self._lost(gone[0])
                    return
        finally:
            nvml.nvmlShutdown()


def _open_nvml() -> Any:
    """Return pynvml after its start; None without a driver or without nvidia-ml-py."""
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml


def _is_lost(nvml: Any, bus: str) -> bool:
    """Return whether the driver says so; any other error, as of permissions, says nothing."""
    try:
        handle = nvml.nvmlDeviceGetHandleByPciBusId(bus)
        nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)  # from the GPU itself
    except nvml.NVMLError as error:
        return bool(error.value == nvml.NVML_ERROR_GPU_IS_LOST)
    return False

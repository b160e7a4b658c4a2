"""CUDA graphs on PyCUDA streams: record work once, replay it with one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pycuda.driver as cuda
from cuda.bindings import driver

from pycuda_nn.errors import DeviceError

# Relaxed: garbage collection can free an array in this thread while the body runs.
_MODE = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED


class Graph:
    """The work that a function queues on a stream, and on streams that fork from and join it."""

    def __init__(self, stream: cuda.Stream, body: Callable[[], object]) -> None:
        """Record the work that ``body`` queues on ``stream``, without running it.

        Raises:
            DeviceError: The driver cannot record the work, e.g. because ``body`` waits for the GPU.
                Exceptions of ``body`` itself are not changed.
        """
        self._stream = driver.CUstream(stream.handle)
        self._graph = _instantiate(self._stream, body)
        _checked(driver.cuGraphUpload(self._graph, self._stream))

    def launch(self, stream: cuda.Stream | None = None) -> None:
        """Queue a replay on ``stream`` (default: the recorded stream) without waiting for it."""
        if self._graph is None:
            raise DeviceError("CUDA graph: launched after close")
        where = self._stream if stream is None else driver.CUstream(stream.handle)
        _checked(driver.cuGraphLaunch(self._graph, where))

    def close(self) -> None:
        """Destroy the graph after running replays have finished."""
        if self._graph is not None:
            driver.cuGraphExecDestroy(self._graph)
            self._graph = None


def _instantiate(stream: Any, body: Callable[[], object]) -> Any:
    """Return the executable graph of the work of ``body`` on ``stream``, a handle of the driver."""
    _checked(driver.cuStreamBeginCapture(stream, _MODE))
    try:
        body()
    except BaseException:
        status, graph = driver.cuStreamEndCapture(stream)
        if not int(status):
            driver.cuGraphDestroy(graph)
        raise
    (graph,) = _checked(driver.cuStreamEndCapture(stream))
    try:
        (made,) = _checked(driver.cuGraphInstantiate(graph, 0))
    finally:
        driver.cuGraphDestroy(graph)
    return made


def _checked(answer: tuple[Any, ...]) -> tuple[Any, ...]:
    status, *values = answer
    if int(status):
        raise DeviceError(f"CUDA graph: {status}")
    return tuple(values)

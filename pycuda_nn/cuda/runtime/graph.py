"""Work recorded once and replayed with one call: CUDA graphs on PyCUDA's streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pycuda.driver as cuda
from cuda.bindings import driver

from pycuda_nn.errors import DeviceError

# Relaxed: the collector may free an array of this thread while the body runs.
_MODE = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED


class Graph:
    """What a body put on a stream, and on streams forked from it and joined again."""

    def __init__(self, stream: cuda.Stream, body: Callable[[], object]) -> None:
        """Record what ``body`` puts on ``stream``; none of it runs.

        Raises:
            DeviceError: The driver cannot record it, e.g. because the body waits for the GPU.
                What the body itself raises comes out as it is.
        """
        self._stream = driver.CUstream(stream.handle)
        self._graph = _instantiate(self._stream, body)
        _checked(driver.cuGraphUpload(self._graph, self._stream))

    def launch(self, stream: cuda.Stream | None = None) -> None:
        """Put one replay on ``stream`` (default: where it was recorded); nothing is waited for."""
        if self._graph is None:
            raise DeviceError("CUDA graph: launched after close")
        where = self._stream if stream is None else driver.CUstream(stream.handle)
        _checked(driver.cuGraphLaunch(self._graph, where))

    def close(self) -> None:
        """Give the graph back; a replay under way ends first."""
        if self._graph is not None:
            driver.cuGraphExecDestroy(self._graph)
            self._graph = None


def _instantiate(stream: Any, body: Callable[[], object]) -> Any:
    """Return the executable graph of what ``body`` puts on ``stream``, a handle of the driver."""
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

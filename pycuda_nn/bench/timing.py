"""Seconds of a launch: called again and again, or replayed from a graph."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pycuda.driver as cuda

from pycuda_nn.cuda.graph import Graph

Call = Callable[[], Any]

_BLOCKS = 5  # the median of so many is reported
_PROBES = 20  # calls that tell how many are affordable


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds of one call, the median over blocks of ``calls`` calls in all."""

    each_s: float
    calls: int


def called(stream: cuda.Stream, call: Call, most: int, limit_s: float) -> Timing:
    """Time at most ``most`` calls from Python in about ``limit_s`` seconds of wall clock."""
    _elapsed(stream, call, _PROBES)
    each = _elapsed(stream, call, _PROBES) / _PROBES
    return _blocks(stream, call, 1, each, most, limit_s)


def replayed(stream: cuda.Stream, call: Call, most: int, limit_s: float) -> Timing:
    """Time the same calls recorded in a graph of up to 1000, as :func:`called` does."""
    probe = Graph(stream, lambda: _repeat(call, _PROBES))
    _elapsed(stream, probe.launch, 1)
    each = _elapsed(stream, probe.launch, 1) / _PROBES
    probe.close()
    nodes = max(1, min(1000, most // _BLOCKS, int(limit_s / _BLOCKS / each)))
    graph = Graph(stream, lambda: _repeat(call, nodes))
    try:
        _elapsed(stream, graph.launch, 1)
        return _blocks(stream, graph.launch, nodes, each, most, limit_s)
    finally:
        graph.close()


def on_device(stream: cuda.Stream, body: Call, prepare: Call, repeats: int) -> float:
    """Return the median of the seconds that ``body`` takes on the GPU, by events.

    Args:
        prepare: Put on the stream before each, and not timed.
    """
    start, end = cuda.Event(), cuda.Event()
    seconds: list[float] = []
    for _ in range(repeats):
        prepare()
        start.record(stream)
        body()
        end.record(stream)
        end.synchronize()
        seconds.append(end.time_since(start) / 1e3)
    return statistics.median(seconds)


def _blocks(
    stream: cuda.Stream, call: Call, inside: int, each_s: float, most: int, limit_s: float
) -> Timing:
    affordable = min(most, int(limit_s / each_s))
    repeats = max(1, affordable // (inside * _BLOCKS))
    seconds = [_elapsed(stream, call, repeats) for _ in range(_BLOCKS)]
    calls = repeats * inside
    return Timing(each_s=statistics.median(seconds) / calls, calls=calls * _BLOCKS)


def _elapsed(stream: cuda.Stream, call: Call, times: int) -> float:
    stream.synchronize()
    start = time.perf_counter()
    _repeat(call, times)
    stream.synchronize()
    return time.perf_counter() - start


def _repeat(call: Call, times: int) -> None:
    for _ in itertools.repeat(None, times):
        call()

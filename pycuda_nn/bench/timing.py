"""Measure the seconds of a launch, called from Python or replayed from a CUDA graph."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pycuda.driver as cuda

from pycuda_nn.cuda.runtime.graph import Graph

Call = Callable[[], Any]

_ROUNDS = 7  # the result is their median
_PROBES = 20  # calls that estimate the number of affordable calls
_NODES = 1000  # most calls in a graph


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Wall-clock seconds of a call, the median of rounds; ``calls`` counts all rounds."""

    each_s: float
    calls: int


@dataclass(frozen=True)
class _Runner:
    """A round: ``repeats`` launches of ``inside`` calls each."""

    launch: Call
    inside: int
    repeats: int


def race(
    stream: cuda.Stream, calls: Mapping[str, Call], most: int, limit_s: float
) -> dict[str, Timing]:
    """Time each of ``calls`` from Python, and replayed from a CUDA graph as ``NAME_graph``.

    The rounds of all calls alternate, so that a slow phase of the machine affects all of them.

    Args:
        most: Limit of the number of repetitions of each call.
        limit_s: Approximate limit of the wall time of each call.
    """
    runners: dict[str, _Runner] = {}
    graphs = []
    for name, call in calls.items():
        _elapsed(stream, call, _PROBES)
        runners[name] = _runner(call, 1, _elapsed(stream, call, _PROBES) / _PROBES, most, limit_s)
        graph, nodes, each_s = _recorded(stream, call, most, limit_s)
        graphs.append(graph)
        runners[f"{name}_graph"] = _runner(graph.launch, nodes, each_s, most, limit_s)
    seconds: dict[str, list[float]] = {name: [] for name in runners}
    for _ in range(_ROUNDS):
        for name, runner in runners.items():
            seconds[name].append(_elapsed(stream, runner.launch, runner.repeats))
    for graph in graphs:
        graph.close()
    found = {}
    for name, runner in runners.items():
        of_round = runner.inside * runner.repeats
        each_s = statistics.median(seconds[name]) / of_round
        found[name] = Timing(each_s=each_s, calls=of_round * _ROUNDS)
    return found


def on_device(stream: cuda.Stream, body: Call, prepare: Call, repeats: int) -> float:
    """Return the median seconds of ``body`` on the GPU, measured with events.

    Args:
        prepare: Queued on the stream before each ``body``, and not timed.
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


def _runner(launch: Call, inside: int, each_s: float, most: int, limit_s: float) -> _Runner:
    affordable = min(most, int(limit_s / each_s))
    return _Runner(launch, inside, max(1, affordable // (inside * _ROUNDS)))


def _recorded(
    stream: cuda.Stream, call: Call, most: int, limit_s: float
) -> tuple[Graph, int, float]:
    """Return a graph of as many calls as the limits allow, their number, and seconds per call."""
    probe = Graph(stream, lambda: _repeat(call, _PROBES))
    _elapsed(stream, probe.launch, 1)
    each_s = _elapsed(stream, probe.launch, 1) / _PROBES
    probe.close()
    nodes = max(1, min(_NODES, most // _ROUNDS, int(limit_s / _ROUNDS / each_s)))
    graph = Graph(stream, lambda: _repeat(call, nodes))
    each_s = min(each_s, _elapsed(stream, graph.launch, 1) / nodes)
    return graph, nodes, each_s


def _elapsed(stream: cuda.Stream, call: Call, times: int) -> float:
    stream.synchronize()
    start = time.perf_counter()
    _repeat(call, times)
    stream.synchronize()
    return time.perf_counter() - start


def _repeat(call: Call, times: int) -> None:
    for _ in itertools.repeat(None, times):
        call()

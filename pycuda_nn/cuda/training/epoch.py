"""The steps of an epoch, as graphs or, for a small or tiny network, in one kernel."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.persistent.kernel import PersistentKernel
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.step.step import TrainingStep
from pycuda_nn.cuda.step.streams import BatchSource
from pycuda_nn.cuda.step.weights import Weights
from pycuda_nn.cuda.tiny.kernel import TinyKernel
from pycuda_nn.network import Network

STEPS_A_GRAPH = 8  # more steps are not faster
STEPS_A_LAUNCH = 4096  # less than a second; other processes can use the GPU between launches
_STEPS_TO_TIME, _ROUNDS_TO_TIME = 256, 4
_THREADS = 256


class Epoch(ABC):
    """All full minibatches, and the remaining rows."""

    def __init__(self, full_steps: int, rest: TrainingStep | None) -> None:
        self._full_steps, self._rest = full_steps, rest

    def launch(self) -> None:
        """Queue the steps of an epoch on the main stream; the clock must be at the first step."""
        self.launch_full(self._full_steps)
        if self._rest is not None:
            self._rest.replay(1)

    @abstractmethod
    def launch_full(self, steps: int) -> None:
        """Queue the first ``steps`` full minibatches, and advance the clock past them."""


class GraphEpoch(Epoch):
    """Full minibatches as CUDA graphs of several steps."""

    def __init__(self, full: TrainingStep, full_steps: int, rest: TrainingStep | None) -> None:
        super().__init__(full_steps, rest)
        self._full = full

    def launch_full(self, steps: int) -> None:
        """See :class:`Epoch`."""
        for _ in range(steps // STEPS_A_GRAPH):
            self._full.replay(STEPS_A_GRAPH)
        if steps % STEPS_A_GRAPH:
            self._full.replay(steps % STEPS_A_GRAPH)


class PersistentEpoch(Epoch):
    """Full minibatches in one kernel, which updates the float32 weights; the others follow."""

    def __init__(
        self,
        kernel: PersistentKernel,
        module: Module,
        weights: Weights,
        source: BatchSource,
        stream: cuda.Stream,
        full_steps: int,
        rest: TrainingStep | None,
    ) -> None:
        super().__init__(full_steps, rest)
        self._kernel, self._module, self._weights = kernel, module, weights
        self._source, self._stream = source, stream

    def launch_full(self, steps: int) -> None:
        """See :class:`Epoch`."""
        source, weights, stream = self._source, self._weights, self._stream
        for first in range(0, steps, STEPS_A_LAUNCH):
            self._kernel.run(
                stream,
                source,
                params=_whole(weights),
                first=weights.first,
                second=weights.second,
                first_step=first,
                n_steps=min(STEPS_A_LAUNCH, steps - first),
            )
        _round_weights(self._module, weights, stream)
        self._module.launch("tick", (1, 1), 1, stream, source.clock, steps)


class TinyEpoch(Epoch):
    """All minibatches in one kernel, also the last one, which can have fewer rows."""

    def __init__(
        self,
        kernel: TinyKernel,
        module: Module,
        weights: Weights,
        source: BatchSource,
        stream: cuda.Stream,
        rows: int,
    ) -> None:
        super().__init__(-(-rows // kernel.plan.batch), None)
        self._kernel, self._module, self._weights = kernel, module, weights
        self._source, self._stream, self._rows = source, stream, rows

    def launch_full(self, steps: int) -> None:
        """See :class:`Epoch`; the clock stays at the first step."""
        weights = self._weights
        for first in range(0, steps, STEPS_A_LAUNCH):
            self._kernel.run(
                self._stream,
                self._source,
                params=_whole(weights),
                first=weights.first,
                second=weights.second,
                rows=self._rows,
                first_step=first,
                n_steps=min(STEPS_A_LAUNCH, steps - first),
            )
        _round_weights(self._module, weights, self._stream)


@dataclass(frozen=True, kw_only=True)
class QueuedEpoch:
    """An epoch on the device.

    Attributes:
        last_step: Steps of all epochs at its end.
        side: Where its results are.
        done: Recorded after it.
    """

    last_step: int
    side: int
    done: cuda.Event


def seconds_of_step(
    epoch: Epoch, source: BatchSource, stream: cuda.Stream, full_steps: int, networks: int = 1
) -> float:
    """Return the seconds of a step, while all rates are 0 so that nothing is learned.

    The clocks of the ``networks`` follow each other.
    """
    steps, least = min(full_steps, _STEPS_TO_TIME), math.inf
    for _ in range(_ROUNDS_TO_TIME):
        cuda.memset_d32(source.clock, 0, 4 * networks)
        began = time.perf_counter()
        epoch.launch_full(steps)
        stream.synchronize()
        least = min(least, time.perf_counter() - began)
    return least / steps


def moments_after(
    epoch: Epoch,
    steps: int,
    source: BatchSource,
    stream: cuda.Stream,
    weights: Weights,
    network: Network,
) -> list[npt.NDArray[np.float32]]:
    """Return the first moment of each parameter after full steps with rates of 0.

    The moments must be zero at the start.
    """
    cuda.memset_d32(source.clock, 0, 4)
    epoch.launch_full(steps)
    stream.synchronize()
    first = next(iter(weights.moments().values()))
    return [part for layer in network.views_by_layer(first) for part in layer]


def _whole(weights: Weights) -> int:
    """Return the address of the float32 weights."""
    return weights.master or weights.values


def _round_weights(module: Module, weights: Weights, stream: cuda.Stream) -> None:
    """Queue the rounding of the float32 weights to those of the products, if these differ."""
    if not weights.master:
        return
    n = weights.n_params
    grid = (-(-n // _THREADS), 1)
    module.launch("round_weights", grid, _THREADS, stream, weights.master, n, weights.values)

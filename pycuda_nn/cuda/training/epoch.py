"""The steps of an epoch, as graphs or, for a small network, in one kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod

import pycuda.driver as cuda

from pycuda_nn.cuda.persistent.kernel import PersistentKernel
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.step.step import TrainingStep
from pycuda_nn.cuda.step.streams import BatchSource
from pycuda_nn.cuda.step.weights import Weights

STEPS_A_GRAPH = 8  # more steps are not faster
_STEPS_A_LAUNCH = 4096  # tens of milliseconds; other processes can use the GPU between launches
_THREADS = 256


class Epoch(ABC):
    """All full minibatches, and the remaining rows."""

    def __init__(self, full_steps: int, rest: TrainingStep | None) -> None:
        self._full_steps, self._rest = full_steps, rest

    def launch(self) -> None:
        """Queue the steps of an epoch on the main stream; the clock must be at the first step."""
        self.launch_full()
        if self._rest is not None:
            self._rest.replay(1)

    @abstractmethod
    def launch_full(self) -> None:
        """Queue the full minibatches on the stream, and advance the clock past them."""


class GraphEpoch(Epoch):
    """Full minibatches as CUDA graphs of several steps."""

    def __init__(self, full: TrainingStep, full_steps: int, rest: TrainingStep | None) -> None:
        super().__init__(full_steps, rest)
        self._full = full

    def launch_full(self) -> None:
        """See :class:`Epoch`."""
        for _ in range(self._full_steps // STEPS_A_GRAPH):
            self._full.replay(STEPS_A_GRAPH)
        if self._full_steps % STEPS_A_GRAPH:
            self._full.replay(self._full_steps % STEPS_A_GRAPH)


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

    def launch_full(self) -> None:
        """See :class:`Epoch`."""
        source, weights, stream = self._source, self._weights, self._stream
        for first in range(0, self._full_steps, _STEPS_A_LAUNCH):
            self._kernel.run(
                stream,
                x=source.x,
                y=source.y,
                order=source.order,
                rates=source.rates,
                params=weights.master,
                velocity=weights.first,
                losses=source.losses,
                first_step=first,
                n_steps=min(_STEPS_A_LAUNCH, self._full_steps - first),
            )
        n = weights.n_params
        grid = (-(-n // _THREADS), 1)
        self._module.launch(
            "round_weights", grid, _THREADS, stream, weights.master, n, weights.values
        )
        self._module.launch("tick", (1, 1), 1, stream, source.clock, self._full_steps)

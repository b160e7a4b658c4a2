"""State that the parts of a training step share."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from pycuda_nn.cuda.layout import PaddedDense
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.step.buffers import Buffers
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.streams import BatchSource, Streams
from pycuda_nn.cuda.step.weights import Weights


@dataclass(frozen=True, kw_only=True, eq=False)
class StepContext:
    """A step on ``rows`` rows: the session's plan, kernels, streams and memory.

    Attributes:
        source: Source of the minibatches.
        rows: Rows of each step, at most ``batch``.
        batch: Distance of two steps in the order of the rows.
        first: Number of the first row within a minibatch of several GPUs.
        whole: Rows of that minibatch; 0 for ``rows``.
        multiprocessors: Multiprocessors of the GPU.
    """

    plan: TrainingPlan
    module: Module
    streams: Streams
    weights: Weights
    buffers: Buffers
    source: BatchSource
    rows: int
    batch: int
    multiprocessors: int
    first: int = 0
    whole: int = 0

    @functools.cached_property
    def layers(self) -> list[PaddedDense]:
        """Layers of the network on the device."""
        return self.plan.layout.layers

    @property
    def last(self) -> int:
        """Number of the last layer."""
        return len(self.layers) - 1

    @functools.cached_property
    def fused(self) -> bool:
        """Whether the last layer and its loss are one kernel."""
        return self.plan.fused_head

    @property
    def scale(self) -> float:
        """Factor of the gradients of outputs."""
        return 1.0 if self.plan.precision.keep_scale else 1.0 / (self.whole or self.rows)

    @property
    def unscale(self) -> float:
        """Additional factor of the gradients of parameters."""
        return 1.0 / (self.whole or self.rows) if self.plan.precision.keep_scale else 1.0

    def stream_of(self, number: int) -> int:
        """Return the stream of the gradient of a layer's weights."""
        return self.streams.side(number) if number else 0

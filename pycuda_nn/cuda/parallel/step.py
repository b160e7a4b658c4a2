"""One step of a rank: as on one GPU, but each layer has an exchange, which includes its update.

The exchange of a layer starts as soon as its gradient exists, the last layer first, on streams of
its own, next to the rest of the backward pass. It writes the second copy of the weights, so that
the data gradients still read the first one. The sums of the bias are sent still earlier.
"""

from __future__ import annotations

from typing import ClassVar

import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.matmul import Gemms
from pycuda_nn.cuda.parallel.exchange import GradientExchange
from pycuda_nn.cuda.parallel.weights import SharedWeights
from pycuda_nn.cuda.runtime.graph import Graph
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.kernels import StepKernels
from pycuda_nn.cuda.step.step import TrainingStep


class SharedStep(TrainingStep):
    """Records and replays steps of one rank; ``exchange`` must be set before the first exchange.

    Attributes:
        computes, exchanges: Whether the next graphs contain the computation and the exchange:
            products are timed without exchange, since the ranks try different numbers of them.
        large: From this number of weights on, the gradient of a layer is computed before the rest
            of the backward pass, not next to it: its exchange takes as long as that rest.
    """

    large: ClassVar[int] = 1 << 25

    def __init__(
        self,
        context: StepContext,
        gemms: Gemms,
        weights: SharedWeights,
        kernels: StepKernels | None = None,
    ) -> None:
        super().__init__(context, gemms, kernels)
        self._weights = weights
        self.exchange: GradientExchange | None = None
        self.computes, self.exchanges = True, False
        self._recorded: dict[tuple[int, int], Graph] = {}
        self._comm: dict[str, cuda.Stream] = {}

    def replay(self, steps: int) -> None:
        """See :class:`TrainingStep`; the steps end on the other side if their number is odd."""
        key = (steps, self._weights.side)
        if key not in self._recorded:
            main = self._context.streams.main
            self._recorded[key] = Graph(main, lambda: self._record(steps))
        self._recorded[key].launch()
        if self.exchanges:
            self._weights.side = (self._weights.side + steps) % 2

    def prepare(self, steps: int, side: int) -> None:
        """Record the graph of ``steps`` steps that begin on ``side``, without running it."""
        before, self._weights.side = self._weights.side, side
        key, main = (steps, side), self._context.streams.main
        if key not in self._recorded:
            self._recorded[key] = Graph(main, lambda: self._record(steps))
        self._weights.side = before

    def forget(self) -> None:
        """See :class:`TrainingStep`."""
        for graph in self._recorded.values():
            graph.close()
        self._recorded.clear()

    def _record(self, steps: int) -> None:
        c = self._context
        self._events.clear()
        main, first = c.streams.main, self._weights.side
        if self.computes and c.rows:
            self._kernels.gather(0, first, main)
        for j in range(steps):
            side = (first + j) % 2
            self._wait("rows", main)
            self._forward(j, side)
            self._backward(j, side, more=j + 1 < steps)
        for number in range(c.last + 1):
            self._wait(f"updated {number}", main)
        self._kernels.tick(steps)

    def _forward(self, j: int, side: int) -> None:
        c = self._context
        main = c.streams.main
        for number in range(c.last + 1):
            for what in (f"updated {number}", f"gradient {number + 1}"):
                self._wait(what, main)
            if not (self.computes and c.rows):
                continue
            products = self._products.forward[number]
            if products:
                products[side](main)
            if number < c.last and not c.plan.relu_in_product:
                self._kernels.activate(number, j, side)
        if self.computes and c.rows:
            if c.fused:
                self._kernels.head(side)
            else:
                self._kernels.loss(side)

    def _backward(self, j: int, side: int, *, more: bool) -> None:
        c = self._context
        main = c.streams.main
        self._mark("delta", main)
        if more and self.computes and c.rows:
            stream = c.streams.sides[-1]
            self._wait("delta", stream)
            self._kernels.gather(j + 1, 1 - side, stream)
            self._mark("rows", stream)
        for number in range(c.last, 0, -1):
            stream = c.streams.all[c.stream_of(number)]
            self._wait("delta", stream)
            self._layer_gradient(number, j, side, stream)
            if self.exchanges and c.layers[number].inputs * c.layers[number].outputs >= self.large:
                self._wait(f"gradient {number}", main)
            if self.computes and c.rows and not (number == c.last and c.fused):
                self._products.data_grads[number][side](main)
                self._kernels.activation_grad(number - 1, j)
                self._mark("delta", main)
        self._layer_gradient(0, j, side, main)

    def _layer_gradient(self, number: int, j: int, side: int, stream: cuda.Stream) -> None:
        """Queue the gradients of a layer on ``stream``, and its exchanges next to it."""
        c = self._context
        if self.computes and c.rows and number == c.last and not c.fused:
            self._kernels.sum_columns(number, j, stream)
        self._beside(stream, f"bias {number}", "queue_bias", number, j, side)
        if self.computes:
            self._weight_gradient(number, side, stream)
        self._mark(f"gradient {number}", stream)
        self._wait(f"bias {number}", stream)
        where = f"updated {number}"
        self._beside(stream, where, "queue_weights", number, j, side, own=number > 0)

    def _weight_gradient(self, number: int, side: int, stream: cuda.Stream) -> None:
        c = self._context
        if c.rows:
            products = self._products.weight_grads[number]
            products[side % len(products)](stream)
            return
        layer = c.layers[number]  # this rank has no row of a small rest
        target = self._weights.gradient(layer, 0.0)
        n_bytes = self._weights.gradient_bytes * layer.inputs * layer.outputs
        cuda.memset_d8_async(target.address, 0, n_bytes, stream)

    def _beside(
        self,
        stream: cuda.Stream,
        name: str,
        method: str,
        number: int,
        j: int,
        side: int,
        *,
        own: bool = True,
    ) -> None:
        """Queue an exchange after ``stream``, on a stream of its own; mark its end as ``name``."""
        where = stream
        if own:
            if name not in self._comm:
                self._comm[name] = cuda.Stream()
            where = self._comm[name]
            self._mark(f"before {name}", stream)
            self._wait(f"before {name}", where)
        if self.exchanges and self.exchange is not None:
            queue = getattr(self.exchange, method)
            queue(self._context, self._kernels, number, j, side, where)
        self._mark(name, where)

"""The steps of a training as CUDA graphs: recorded once for a number of rows, then replayed.

Forward and data gradients run on the main stream; the gradient of each layer's weights and their
update run beside it, and so does the gather of the next minibatch. A counter on the device tells
each step which rows, rate and loss are its own, so a replay takes no argument and no host work.
"""

from __future__ import annotations

import itertools
import math

import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.matmul import Gemm, Gemms
from pycuda_nn.cuda.gemm.products import Product, data_gradient, forward, weight_gradient
from pycuda_nn.cuda.runtime.graph import Graph
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.runtime.structs import Activation, Head, Update
from pycuda_nn.cuda.training.buffers import LOSS_PARTS, PARTS, Buffers
from pycuda_nn.cuda.training.plan import TrainingPlan
from pycuda_nn.cuda.training.streams import BatchSource, Streams
from pycuda_nn.cuda.training.weights import MOMENTUM, Weights, hyper_scalars
from pycuda_nn.rng import Purpose

_THREADS = 256
_UPDATE_ELEMENTS, _BIAS_COLUMNS = 2048, 32  # of a block of the kernel ``update``
_HEAD_ROWS, _LOSS_ROWS = 8, 4  # rows of a block at a time


class TrainingStep:
    """Records and replays steps on ``rows`` rows each."""

    def __init__(
        self,
        plan: TrainingPlan,
        module: Module,
        gemms: Gemms,
        streams: Streams,
        weights: Weights,
        buffers: Buffers,
        feed: BatchSource,
        *,
        rows: int,
        batch: int,
        multiprocessors: int,
    ) -> None:
        """Prepare the products.

        Args:
            rows: Of each step, at most ``batch``.
            batch: Rows between two steps in the order.
        """
        self._plan, self._module, self._streams = plan, module, streams
        self._weights, self._buffers, self._feed = weights, buffers, feed
        self._rows, self._batch, self._sms = rows, batch, multiprocessors
        self._layers = plan.layout.layers
        self._last = len(self._layers) - 1
        self._scale = 1.0 if plan.precision.keep_scale else 1.0 / rows
        self._unscale = 1.0 / rows if plan.precision.keep_scale else 1.0
        self._fused = plan.fused_head
        self._hyper = hyper_scalars(plan.recipe)
        self._events: dict[str, cuda.Event] = {}
        self._prepare(gemms)
        self._graphs: dict[int, Graph] = {}

    def replay(self, steps: int) -> None:
        """Put ``steps`` steps on the main stream as one graph, recorded the first time."""
        if steps not in self._graphs:
            self._graphs[steps] = Graph(self._streams.main, lambda: self._record(steps))
        self._graphs[steps].launch()

    def forget(self) -> None:
        """Drop the recorded graphs, after an algorithm was changed."""
        for graph in self._graphs.values():
            graph.close()
        self._graphs.clear()

    def products(self) -> dict[str, list[Gemm]]:
        """Return the products of a step by kind."""
        kinds: dict[str, list[Gemm]] = {}
        for gemm in itertools.chain(*self._forward, *self._weight_grads, self._data_grads.values()):
            kinds.setdefault(gemm.kind(), []).append(gemm)
        return kinds

    def close(self) -> None:
        """Give graphs and products back."""
        self.forget()
        for gemms in self.products().values():
            for gemm in gemms:
                gemm.close()

    # Products

    def _prepare(self, gemms: Gemms) -> None:
        self._forward: list[list[Gemm]] = []
        self._weight_grads: list[list[Gemm]] = []
        self._data_grads: dict[int, Gemm] = {}
        b, main = self._buffers, self._streams.workspaces[0]
        for number, layer in enumerate(self._layers):
            inputs = b.x if number == 0 else [b.activations[number - 1]]
            weights = self._weights.value(layer.weights)
            last = number == self._last
            z = b.logits if last else b.activations[number]
            bias = 0 if last or not self._plan.relu_in_product else layer.bias
            more = {"wide": last, "relu_bias": bias and self._weights.value(bias)}
            self._forward.append([
                gemms.ready(
                    forward(layer, self._rows, x=x, weights=weights, z=z, **more),
                    main, self._streams.main,
                )
                for x in ([] if last and self._fused else inputs)
            ])  # fmt: skip
            self._weight_grads.append([gemms.ready(*self._weight_grad(number, x)) for x in inputs])
            if number and not (last and self._fused):
                below = b.deltas[number - 1]
                product = data_gradient(
                    layer, self._rows, delta=b.deltas[number], weights=weights, below=below
                )
                self._data_grads[number] = gemms.ready(product, main, self._streams.main)

    def _weight_grad(self, number: int, x: int) -> tuple[Product, tuple[int, int], cuda.Stream]:
        layer, momentum = self._layers[number], self._weights.optimizer == MOMENTUM
        out = self._weights.first if momentum else self._weights.grad
        product = weight_gradient(
            layer,
            self._rows,
            x=x,
            delta=self._buffers.deltas[number],
            out=out + 4 * layer.weights,
            alpha=self._unscale,
            beta=self._hyper["momentum"] if momentum else 0.0,
        )
        stream = self._stream_of(number)
        return product, self._streams.workspaces[stream], self._streams.all[stream]

    def _stream_of(self, number: int) -> int:
        """Return the stream of the gradient of a layer's weights."""
        return self._streams.side(number) if number else 0

    # One step

    def _record(self, steps: int) -> None:
        """Put ``steps`` steps on the main stream and those beside it, and join them."""
        self._events.clear()
        main = self._streams.main
        self._gather(0, main)
        for j in range(steps):
            self._wait("rows", main)
            self._forward_pass(j)
            self._backward_pass(j, more=j + 1 < steps)
        for number in range(1, self._last + 1):
            self._wait(f"updated {number}", main)
        self._module.launch("tick", (1, 1), 1, main, self._feed.clock, steps)

    def _forward_pass(self, j: int) -> None:
        main, plan = self._streams.main, self._plan
        for number in range(self._last + 1):
            self._wait(f"updated {number}", main)
            self._wait(f"updated {number + 1}", main)  # its gradient read what is written now
            products = self._forward[number]
            if products:
                products[j % len(products)](main)
            if number < self._last and not plan.relu_in_product:
                self._activate(number, j)
        if self._fused:
            self._head(j)
        else:
            self._loss(j)

    def _backward_pass(self, j: int, *, more: bool) -> None:
        main = self._streams.main
        self._mark("delta", main)
        if more:
            side = self._streams.sides[-1]
            self._wait("delta", side)
            self._gather(j + 1, side)
            self._mark("rows", side)
        for number in range(self._last, 0, -1):
            stream = self._streams.all[self._stream_of(number)]
            fused = number == self._last and self._fused
            self._wait("delta", stream)
            if number == self._last and not fused:
                self._sum_columns(number, j, stream)
            self._weight_grads[number][0](stream)
            if not fused:
                self._data_grads[number](main)
                self._activation_grad(number - 1, j)
                self._mark("delta", main)
                self._wait("delta", stream)  # the weights were read
            self._update(number, j, stream)
            self._mark(f"updated {number}", stream)
        if self._last == 0:
            self._sum_columns(0, j, main)
        products = self._weight_grads[0]
        products[j % len(products)](main)
        self._update(0, j, main)

    def _mark(self, name: str, stream: cuda.Stream) -> None:
        event = cuda.Event(cuda.event_flags.DISABLE_TIMING)
        event.record(stream)
        self._events[name] = event

    def _wait(self, name: str, stream: cuda.Stream) -> None:
        if name in self._events:
            stream.wait_for_event(self._events[name])

    # Kernels

    def _gather(self, j: int, stream: cuda.Stream) -> None:
        feed, b = self._feed, self._buffers
        packs = self._plan.layout.sizes[0] // self._plan.pack
        self._module.launch(
            "gather", _blocks(self._rows * packs, _THREADS), _THREADS, stream,
            feed.x, feed.y, feed.order, feed.clock, j, self._batch, self._rows, packs,
            self._plan.target_words(), b.x[j % 2], b.y[j % 2],
        )  # fmt: skip

    def _activation(self, number: int, j: int) -> Activation:
        layer, dropout = self._layers[number], self._plan.stack.dropout
        return Activation(
            clock=self._feed.clock,
            seed=self._plan.recipe.seed,
            purpose=int(Purpose.DROPOUT),
            rows=self._rows,
            packs=layer.outputs // self._plan.pack,
            width=layer.width,
            j=j,
            layer=number,
            threshold=dropout.threshold,
            scale=dropout.scale,
        )

    def _activate(self, number: int, j: int) -> None:
        arguments = self._activation(number, j)
        arguments.a = self._buffers.activations[number]
        arguments.bias = self._weights.value(self._layers[number].bias)
        grid = _blocks(self._rows * arguments.packs, _THREADS)
        self._module.launch("bias_activation", grid, _THREADS, self._streams.main, arguments)

    def _activation_grad(self, number: int, j: int) -> None:
        arguments = self._activation(number, j)
        arguments.h = self._buffers.activations[number]
        self._launch_grad(number, arguments, self._streams.main)

    def _sum_columns(self, number: int, j: int, stream: cuda.Stream) -> None:
        self._launch_grad(number, self._activation(number, j), stream)

    def _launch_grad(self, number: int, arguments: Activation, stream: cuda.Stream) -> None:
        columns, share = self._shape_of_grad(number)
        arguments.a = self._buffers.deltas[number]
        arguments.partial = self._buffers.partials[number]
        arguments.share = share
        grid = (columns, -(-self._rows // share))
        self._module.launch("activation_grad", grid, _THREADS, stream, arguments)

    def _shape_of_grad(self, number: int) -> tuple[int, int]:
        """Return blocks across and rows of a block: about four blocks a multiprocessor."""
        columns = -(-self._layers[number].outputs // (32 * self._plan.pack))
        wanted = min(PARTS, max(1, 4 * self._sms // columns))
        share = math.ceil(self._rows / wanted)
        return columns, math.ceil(share / 8) * 8

    def _parts_of(self, number: int) -> int:
        """Return how many partial sums there are of a layer's bias gradient."""
        if self._fused and number >= self._last - 1:
            return self._head_blocks()
        return -(-self._rows // self._shape_of_grad(number)[1])

    def _head_blocks(self) -> int:
        return head_blocks(self._rows, self._sms)

    def _head(self, j: int) -> None:
        b, layer, last = self._buffers, self._layers[-1], self._last
        arguments = Head(
            h=b.activations[-1],
            weight=self._weights.value(layer.weights),
            bias=self._weights.value(layer.bias),
            y=b.y[j % 2],
            below=b.deltas[last - 1],
            delta=b.deltas[last],
            loss=b.loss,
            partial=b.partials[last],
            partial_below=b.partials[last - 1],
            rows=self._rows,
            scale=self._scale,
        )
        grid = (self._head_blocks(), 1)
        self._module.launch("head", grid, _THREADS, self._streams.main, arguments)

    def _loss(self, j: int) -> None:
        b, layer = self._buffers, self._layers[-1]
        self._module.launch(
            self._plan.stack.kernels.step, (self._loss_blocks(), 1), 32 * _LOSS_ROWS,
            self._streams.main, b.logits, self._weights.value(layer.bias), b.y[j % 2], self._rows,
            layer.outputs, layer.width, self._scale, b.deltas[-1], b.loss,
        )  # fmt: skip

    def _loss_blocks(self) -> int:
        return min(-(-self._rows // _LOSS_ROWS), LOSS_PARTS)

    def _update(self, number: int, j: int, stream: cuda.Stream) -> None:
        layer, w, feed = self._layers[number], self._weights, self._feed
        last = number == self._last
        arguments = Update(
            **_places("", w, layer.weights),
            **_places("bias_", w, layer.bias),
            grad=w.grad and w.grad + 4 * layer.weights,
            partial=self._buffers.partials[number],
            loss=self._buffers.loss,
            losses=feed.losses,
            rates=feed.rates,
            clock=feed.clock,
            n=layer.inputs * layer.outputs,
            outputs=layer.outputs,
            parts=self._parts_of(number),
            loss_parts=self._head_blocks() if self._fused else self._loss_blocks(),
            rows=self._rows,
            j=j,
            bias_scale=self._unscale,
            **self._hyper,
        )
        blocks = -(-arguments.n // _UPDATE_ELEMENTS) + -(-layer.outputs // _BIAS_COLUMNS) + last
        self._module.launch("update", (blocks, 1), _THREADS, stream, arguments)


def head_blocks(rows: int, multiprocessors: int) -> int:
    """Return the blocks of the kernel ``head``: each loads the weights, so no more than fit."""
    return min(-(-rows // _HEAD_ROWS), multiprocessors)


def _blocks(items: int, threads: int) -> tuple[int, int]:
    return (-(-items // threads), 1)


def _places(prefix: str, weights: Weights, offset: int) -> dict[str, int]:
    """Return the addresses of a range of parameters and of what belongs to it."""
    names = {"": "weight", "bias_": "bias"}
    return {
        names[prefix]: weights.value(offset),
        f"{prefix}master": weights.master_at(offset),
        f"{prefix}first": weights.first + 4 * offset,
        f"{prefix}second": weights.second and weights.second + 4 * offset,
    }

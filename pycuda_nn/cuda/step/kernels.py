"""Launch the kernels of a training step, except for its matrix products.

Their sources are the .cuh files of this directory and of ``pycuda_nn/layers``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pycuda.driver as cuda

from pycuda_nn.cuda.runtime.structs import MOST_BIASES, Activation, Biases, Head, Update
from pycuda_nn.cuda.step.buffers import LOSS_PARTS, PARTS
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.weights import Weights, hyper_scalars
from pycuda_nn.rng import Purpose

_THREADS = 256
_UPDATE_ELEMENTS, _BIAS_COLUMNS = 2048, 32  # per block of the kernel ``update``
_HEAD_ROWS, _LOSS_ROWS = 8, 4  # concurrent rows of a block


class StepKernels:
    """Queues the kernels of step ``j`` of a graph, for layers by number.

    ``side`` is the copy that the step reads of what exists twice: the minibatch and, if the weights
    are shared with other GPUs, the weights.

    Attributes:
        parts: Number of partial sums of the bias gradient of a layer, if a product sums them.
    """

    def __init__(self, context: StepContext) -> None:
        self._context = context
        self._hyper = hyper_scalars(context.plan.recipe)
        self.parts: dict[int, int] = {}

    def tick(self, steps: int) -> None:
        """Advance the clock by ``steps`` steps, on the main stream."""
        c = self._context
        c.module.launch("tick", (1, 1), 1, c.streams.main, c.source.clock, steps)

    def gather(self, j: int, side: int, stream: cuda.Stream) -> None:
        """Queue the gather of the rows of step ``j`` on ``stream``."""
        c = self._context
        source, b = c.source, c.buffers
        packs = c.plan.layout.sizes[0] // c.plan.pack
        c.module.launch(
            "gather", _blocks(c.rows * packs, _THREADS), _THREADS, stream,
            source.x, source.y, source.order + 4 * c.first, source.clock, j, c.batch, c.rows, packs,
            c.plan.target_words(), b.x[side], b.y[side],
        )  # fmt: skip

    def _activation(self, number: int, j: int) -> Activation:
        c = self._context
        layer, dropout = c.layers[number], c.plan.stack.dropout
        return Activation(
            clock=c.source.clock,
            seed=c.plan.recipe.seed,
            purpose=int(Purpose.DROPOUT),
            rows=c.rows,
            packs=layer.outputs // c.plan.pack,
            width=layer.width,
            j=j,
            layer=number,
            first=c.first,
            threshold=dropout.threshold,
            scale=dropout.scale,
        )

    def activation_arguments(self, number: int, j: int, side: int) -> Activation:
        """Return the arguments of bias, activation and dropout of a hidden layer."""
        c = self._context
        arguments = self._activation(number, j)
        arguments.a = c.buffers.activations[number]
        arguments.z = c.buffers.z[number] if c.plan.stack.keeps_z else 0
        arguments.bias = c.weights.value(c.layers[number].bias, side)
        return arguments

    def slope_arguments(self, number: int, j: int) -> Activation:
        """Return the arguments of the slope of a hidden layer's activation."""
        c = self._context
        arguments = self._activation(number, j)
        before = c.buffers.z if c.plan.stack.keeps_z else c.buffers.activations
        arguments.h = before[number]
        arguments.a, arguments.partial = c.buffers.deltas[number], c.buffers.partials[number]
        return arguments

    def activate(self, number: int, j: int, side: int) -> None:
        """Queue bias, activation and dropout of a hidden layer on the main stream."""
        c = self._context
        arguments = self.activation_arguments(number, j, side)
        grid = _blocks(c.rows * arguments.packs, _THREADS)
        c.module.launch("bias_activation", grid, _THREADS, c.streams.main, arguments)

    def activation_grad(self, number: int, j: int) -> None:
        """Queue the gradient of a hidden layer's activation, and its column sums, there."""
        self._launch_grad(number, self.slope_arguments(number, j), self._context.streams.main)

    def sum_columns(self, number: int, j: int, stream: cuda.Stream) -> None:
        """Queue the column sums of a delta on ``stream``."""
        self._launch_grad(number, self._activation(number, j), stream)

    def _launch_grad(self, number: int, arguments: Activation, stream: cuda.Stream) -> None:
        c = self._context
        columns, share = self._shape_of_grad(number)
        arguments.a = c.buffers.deltas[number]
        arguments.partial = c.buffers.partials[number]
        arguments.share = share
        grid = (columns, -(-c.rows // share))
        c.module.launch("activation_grad", grid, _THREADS, stream, arguments)

    def _shape_of_grad(self, number: int) -> tuple[int, int]:
        """Return blocks across and rows of a block, for about four blocks per multiprocessor."""
        c = self._context
        columns = -(-c.layers[number].outputs // (32 * c.plan.pack))
        wanted = min(PARTS, max(1, 4 * c.multiprocessors // columns))
        share = math.ceil(c.rows / wanted)
        return columns, math.ceil(share / 8) * 8

    def _parts_of(self, number: int) -> int:
        """Return the number of partial sums of the bias gradient of a layer."""
        c = self._context
        if number in self.parts:
            return self.parts[number]
        if not c.rows:  # of a small rest, on one of several GPUs
            return 0
        if c.fused and number >= c.last - 1:
            return self._head_blocks()
        return -(-c.rows // self._shape_of_grad(number)[1])

    def _head_blocks(self) -> int:
        c = self._context
        return head_blocks(c.rows, c.multiprocessors)

    def head(self, side: int) -> None:
        """Queue last layer, loss and their gradients, as one kernel, on the main stream."""
        c = self._context
        b, layer, last = c.buffers, c.layers[-1], c.last
        arguments = Head(
            h=b.activations[-1],
            weight=c.weights.value(layer.weights, side),
            bias=c.weights.value(layer.bias, side),
            y=b.y[side],
            below=b.deltas[last - 1],
            delta=b.deltas[last],
            loss=b.loss,
            partial=b.partials[last],
            partial_below=b.partials[last - 1],
            rows=c.rows,
            scale=c.scale,
            keep=c.plan.stack.dropout.scale if c.plan.stack.drops else 1.0,
        )
        self._launch_head(arguments)

    def _launch_head(self, arguments: Head) -> None:
        c = self._context
        c.module.launch("head", (self._head_blocks(), 1), _THREADS, c.streams.main, arguments)

    def loss(self, side: int) -> None:
        """Queue the loss and its gradient on the main stream."""
        c = self._context
        b, layer = c.buffers, c.layers[-1]
        c.module.launch(
            c.plan.stack.kernels.step, (self._loss_blocks(), 1), 32 * _LOSS_ROWS,
            c.streams.main, b.logits, c.weights.value(layer.bias, side), b.y[side], c.rows,
            layer.outputs, layer.width, c.scale, b.deltas[-1], b.loss,
        )  # fmt: skip

    def _loss_blocks(self) -> int:
        c = self._context
        return min(-(-c.rows // _LOSS_ROWS), LOSS_PARTS)

    def update(self, number: int, j: int, stream: cuda.Stream) -> None:
        """Queue the update of a layer's parameters on ``stream``."""
        arguments = self.update_arguments(number, j)
        blocks = -(-arguments.n // _UPDATE_ELEMENTS) + -(-arguments.outputs // _BIAS_COLUMNS)
        blocks += number == self._context.last
        self._context.module.launch("update", (blocks, 1), _THREADS, stream, arguments)

    def update_biases(self, numbers: Sequence[int], j: int, stream: cuda.Stream) -> None:
        """Queue the update of the biases of some layers on ``stream``."""
        for first in range(0, len(numbers), MOST_BIASES):
            arguments, end = Biases(), 0
            for place, number in enumerate(numbers[first : first + MOST_BIASES]):
                u = self.update_arguments(number, j)
                end += -(-u.outputs // _BIAS_COLUMNS) + (number == self._context.last)
                arguments.u[place], arguments.end[place] = u, end
            self._context.module.launch("biases", (end, 1), _THREADS, stream, arguments)

    def update_arguments(self, number: int, j: int) -> Update:
        """Return the arguments of the update of a layer."""
        c = self._context
        layer, w, source = c.layers[number], c.weights, c.source
        return Update(
            **_places("", w, layer.weights),
            **_places("bias_", w, layer.bias),
            grad=w.grad and w.grad + 4 * layer.weights,
            partial=c.buffers.partials[number],
            loss=c.buffers.loss,
            losses=source.losses,
            rates=source.rates,
            clock=source.clock,
            n=layer.inputs * layer.outputs,
            outputs=layer.outputs,
            parts=self._parts_of(number),
            loss_parts=self._head_blocks() if c.fused else self._loss_blocks(),
            rows=c.rows,
            j=j,
            bias_scale=c.unscale,
            **self._hyper,
        )


def head_blocks(rows: int, multiprocessors: int) -> int:
    """Return the blocks of the kernel ``head``: no more than fit, since each loads the weights."""
    return min(-(-rows // _HEAD_ROWS), multiprocessors)


def _blocks(items: int, threads: int) -> tuple[int, int]:
    return (-(-items // threads), 1)


def _places(prefix: str, weights: Weights, offset: int) -> dict[str, int]:
    """Return the addresses of parameters from ``offset``, their masters, moments and gradients."""
    names = {"": "weight", "bias_": "bias"}
    return {
        names[prefix]: weights.value(offset),
        f"{prefix}master": weights.master_at(offset),
        f"{prefix}first": weights.first + 4 * offset,
        f"{prefix}second": weights.second and weights.second + 4 * offset,
    }

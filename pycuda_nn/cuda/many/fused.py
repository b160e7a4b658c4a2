"""A step of many networks whose products are kernels that also do what follows them.

On the captured step, a product writes its result to memory and another kernel reads it. Here the
gradient of the weights never exists in memory: of 24 bytes for each weight, 16 remain.
"""

from __future__ import annotations

import functools

import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.matmul import Gemms
from pycuda_nn.cuda.many.kernels import ManyKernels
from pycuda_nn.cuda.many.plan import ManyPlan
from pycuda_nn.cuda.many.structs import (
    ManyBiases,
    ManyProduct,
    ManyWeights,
    Operands,
)
from pycuda_nn.cuda.runtime.structs import MOST_BIASES, Head
from pycuda_nn.cuda.step.buffers import PARTS
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.products import StepProducts
from pycuda_nn.cuda.step.step import TrainingStep

_THREADS = 256
_COLUMNS, _WEIGHT_ROWS, _BIAS_COLUMNS = 64, 128, 32  # of a block
_HEAD_ROWS = 8  # of a block at the same time
_TWO_BLOCKS = 256  # width up to which two blocks with the last layer fit on a multiprocessor


class LastProduct(StepProducts):
    """The product of the last layer, if the kernel of its loss does not include it."""

    def __init__(self, context: StepContext, gemms: Gemms, *, needed: bool) -> None:
        self._needed = needed
        super().__init__(context, gemms)

    def _prepare(self, gemms: Gemms) -> None:
        c = self._context
        self.forward, self.weight_grads, self.data_grads = [[]], [], {}
        if not self._needed:
            return
        main = c.streams.workspaces[0]
        self.forward[0] = [
            gemms.ready(self._forward(c.last, x, 0), main, c.streams.main)
            for x in self._inputs(c.last)
        ]


class FusedKernels(ManyKernels):
    """Queues the products of a step."""

    def __init__(self, context: StepContext, plan: ManyPlan, **numbers: int) -> None:
        """Keep the numbers of :class:`ManyKernels`."""
        super().__init__(context, **numbers)
        self._tile_rows, self.has_head = plan.tile_rows, plan.has_head

    def forward(self, number: int, j: int) -> None:
        """Queue a hidden layer with its activation on the main stream."""
        c = self._context
        layer, b = c.layers[number], c.buffers
        u = self._activation(number, j)
        u.a, u.bias = b.activations[number], c.weights.value(layer.bias)
        u.z = b.z[number] if c.plan.stack.keeps_z else 0
        p = Operands(
            a=self._input(number, j),
            b=c.weights.value(layer.weights),
            m=c.rows,
            n=layer.outputs,
            k=layer.inputs,
        )
        self._launch_product("forward_many", ManyProduct(p=p, u=u, nets=self._nets))

    def _head_blocks(self) -> int:
        """Return the blocks of each network in its last layer; all of them are resident."""
        c = self._context
        resident = c.multiprocessors * (2 if c.layers[-1].inputs <= _TWO_BLOCKS else 1)
        wanted = max(1, resident // self._count)
        return min(wanted, PARTS, -(-c.rows // _HEAD_ROWS))

    def _launch_head(self, arguments: Head) -> None:
        c = self._context
        grid = (self._head_blocks(), 1, self._count)
        c.module.launch("head_many", grid, _THREADS, c.streams.main, arguments)

    def _loss_blocks(self) -> int:
        return self._head_blocks() if self.has_head else super()._loss_blocks()

    def gradient(self, number: int, j: int) -> None:
        """Queue the gradient of the hidden layer below layer ``number`` on the main stream."""
        c = self._context
        layer, b, below = c.layers[number], c.buffers, number - 1
        u = self._activation(below, j)
        u.a, u.partial = b.deltas[below], b.partials[below]
        u.h = (b.z if c.plan.stack.keeps_z else b.activations)[below]
        p = Operands(
            a=b.deltas[number],
            b=c.weights.value(layer.weights),
            m=c.rows,
            n=layer.inputs,
            k=layer.outputs,
        )
        self._launch_product("gradient_many", ManyProduct(p=p, u=u, nets=self._nets))

    def weights(self, number: int, j: int, stream: cuda.Stream) -> None:
        """Queue the gradient of the weights of a layer, and their update, on ``stream``."""
        c = self._context
        layer = c.layers[number]
        p = Operands(
            a=self._input(number, j),
            b=c.buffers.deltas[number],
            m=layer.inputs,
            n=layer.outputs,
            k=c.rows,
        )
        u = self.update_arguments(number, j)
        arguments = ManyWeights(p=p, u=u, nets=self._nets, steps=self._steps)
        grid = (-(-p.n // _COLUMNS), -(-p.m // _WEIGHT_ROWS), self._count)
        c.module.launch("weights_many", grid, _THREADS, stream, arguments)

    def biases(self, j: int, stream: cuda.Stream) -> None:
        """Queue the update of all biases, and the loss of the step, on ``stream``."""
        c = self._context
        for first in range(0, c.last + 1, MOST_BIASES):
            arguments, end = ManyBiases(nets=self._nets, steps=self._steps), 0
            for place, number in enumerate(range(first, min(first + MOST_BIASES, c.last + 1))):
                u = self.update_arguments(number, j)
                end += -(-u.outputs // _BIAS_COLUMNS) + (number == c.last)
                arguments.u[place], arguments.end[place] = u, end
            c.module.launch("biases_many", (end, 1, self._count), _THREADS, stream, arguments)

    def _input(self, number: int, j: int) -> int:
        b = self._context.buffers
        return b.activations[number - 1] if number else b.x[j % 2]

    def _launch_product(self, name: str, arguments: ManyProduct) -> None:
        c, p = self._context, arguments.p
        grid = (-(-p.n // _COLUMNS), -(-p.m // self._tile_rows), self._count)
        c.module.launch(name, grid, _THREADS, c.streams.main, arguments)

    def _parts_of(self, number: int) -> int:
        c = self._context
        if self.has_head and number >= c.last - 1:
            return self._head_blocks()
        if number == c.last:
            return super()._parts_of(number)
        return -(-c.rows // self._tile_rows)


class FusedStep(TrainingStep):
    """Records and replays steps; see :class:`TrainingStep`."""

    _kernels: FusedKernels

    def __init__(self, context: StepContext, gemms: Gemms, kernels: FusedKernels) -> None:
        """Prepare the product of the last layer."""
        products = functools.partial(LastProduct, needed=not kernels.has_head)
        super().__init__(context, gemms, kernels, products=products)

    def _forward_pass(self, j: int) -> None:
        c, kernels = self._context, self._kernels
        main = c.streams.main
        self._mark("begun", main)
        for number in range(c.last + 1):
            self._wait(f"updated {number}", main)
            self._wait(f"updated {number + 1}", main)  # its gradient reads what is written next
            if number == 0:
                self._wait("biases", main)
            if number < c.last:
                kernels.forward(number, j)
        if kernels.has_head:
            kernels.head(j % 2)
        else:
            products = self._products.forward[0]
            products[j % len(products)](main)
            kernels.loss(j % 2)

    def _backward_pass(self, j: int, *, more: bool) -> None:
        c, kernels = self._context, self._kernels
        main, (biases, *_, gather) = c.streams.main, c.streams.sides
        self._mark("delta", main)
        if more:  # next to the forward pass, which leaves room on the multiprocessors
            self._wait("begun", gather)
            kernels.gather(j + 1, (j + 1) % 2, gather)
            self._mark("rows", gather)
        if not kernels.has_head:
            kernels.sum_columns(c.last, j, main)
        for number in range(c.last, 0, -1):
            stream = c.streams.all[c.stream_of(number)]
            if number < c.last or not kernels.has_head:
                kernels.gradient(number, j)
                self._mark("delta", main)
            self._wait("delta", stream)  # the weights were read
            kernels.weights(number, j, stream)
            self._mark(f"updated {number}", stream)
        self._mark("partials", main)
        self._wait("partials", biases)
        kernels.biases(j, biases)
        self._mark("biases", biases)
        kernels.weights(0, j, main)

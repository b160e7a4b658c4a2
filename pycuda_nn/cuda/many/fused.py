"""A step of many networks whose products are kernels that also do what follows them.

On the captured step, a product writes its result to memory and another kernel reads it. Here the
gradient of the weights never exists in memory: of 24 bytes for each weight, 16 remain.
"""

from __future__ import annotations

import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.matmul import Gemms
from pycuda_nn.cuda.many.kernels import ManyKernels
from pycuda_nn.cuda.many.structs import (
    MOST_BIASES,
    ManyBiases,
    ManyProduct,
    ManyWeights,
    Operands,
)
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.products import StepProducts
from pycuda_nn.cuda.step.step import TrainingStep

_THREADS = 256
_COLUMNS, _WEIGHT_ROWS, _BIAS_COLUMNS = 64, 128, 32  # of a block


class LastProduct(StepProducts):
    """The product of the last layer: the kernel of its loss follows."""

    def _prepare(self, gemms: Gemms) -> None:
        c = self._context
        self.forward, self.weight_grads, self.data_grads = [[]], [], {}
        main = c.streams.workspaces[0]
        self.forward[0] = [
            gemms.ready(self._forward(c.last, x, 0), main, c.streams.main)
            for x in self._inputs(c.last)
        ]


class FusedKernels(ManyKernels):
    """Queues the products of a step."""

    def __init__(self, context: StepContext, *, tile_rows: int, **numbers: int) -> None:
        """Keep the numbers of :class:`ManyKernels`, and the rows of a block of a product."""
        super().__init__(context, **numbers)
        self._tile_rows = tile_rows

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
        if number == c.last:
            return super()._parts_of(number)
        return -(-c.rows // self._tile_rows)


class FusedStep(TrainingStep):
    """Records and replays steps; see :class:`TrainingStep`."""

    _kernels: FusedKernels

    def __init__(self, context: StepContext, gemms: Gemms, kernels: FusedKernels) -> None:
        """Prepare the product of the last layer."""
        super().__init__(context, gemms, kernels, products=LastProduct)

    def _forward_pass(self, j: int) -> None:
        c, kernels = self._context, self._kernels
        main = c.streams.main
        for number in range(c.last + 1):
            self._wait(f"updated {number}", main)
            self._wait(f"updated {number + 1}", main)  # its gradient reads what is written next
            if number == 0:
                self._wait("biases", main)
            if number < c.last:
                kernels.forward(number, j)
        products = self._products.forward[0]
        products[j % len(products)](main)
        kernels.loss(j % 2)

    def _backward_pass(self, j: int, *, more: bool) -> None:
        c, kernels = self._context, self._kernels
        main, (biases, *_, gather) = c.streams.main, c.streams.sides
        self._mark("delta", main)
        if more:
            self._wait("delta", gather)
            kernels.gather(j + 1, (j + 1) % 2, gather)
            self._mark("rows", gather)
        kernels.sum_columns(c.last, j, main)
        for number in range(c.last, 0, -1):
            stream = c.streams.all[c.stream_of(number)]
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

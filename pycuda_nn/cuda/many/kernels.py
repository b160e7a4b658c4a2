"""Launch the kernels of a step of many networks."""

from __future__ import annotations

import math

import pycuda.driver as cuda

from pycuda_nn.cuda.many.structs import ManyActivation, ManyUpdate
from pycuda_nn.cuda.runtime.structs import Activation
from pycuda_nn.cuda.step.buffers import PARTS
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.kernels import StepKernels

_THREADS = 256
_UPDATE_ELEMENTS, _BIAS_COLUMNS, _LOSS_ROWS = 2048, 32, 4


class ManyKernels(StepKernels):
    """The kernels of :class:`StepKernels`, with one more dimension of blocks."""

    def __init__(
        self, context: StepContext, *, count: int, nets: int, slots: int, steps: int
    ) -> None:
        """Keep the numbers of the group.

        Args:
            context: Shared state of a step.
            count: Number of networks.
            nets: Address of their settings.
            slots: Distance of the orders of two networks.
            steps: Distance of the rates and the losses of two networks.
        """
        super().__init__(context)
        self._count, self._nets, self._slots, self._steps = count, nets, slots, steps

    def tick(self, steps: int) -> None:
        """See :class:`StepKernels`."""
        c, blocks = self._context, -(-self._count // _THREADS)
        c.module.launch(
            "tick_many", (blocks, 1), _THREADS, c.streams.main, c.source.clock, steps, self._count
        )

    def gather(self, j: int, side: int, stream: cuda.Stream) -> None:
        """See :class:`StepKernels`."""
        c = self._context
        source, b = c.source, c.buffers
        packs = c.plan.layout.sizes[0] // c.plan.pack
        c.module.launch(
            "gather_many", self._grid(c.rows * packs), _THREADS, stream,
            source.x, source.y, source.order, source.clock, j, c.batch, c.rows, packs,
            c.plan.target_words(), self._slots, b.x[side], b.y[side],
        )  # fmt: skip

    def activate(self, number: int, j: int, side: int) -> None:
        """See :class:`StepKernels`."""
        c = self._context
        u = self._activation(number, j)
        u.a = c.buffers.activations[number]
        u.z = c.buffers.z[number] if c.plan.stack.keeps_z else 0
        u.bias = c.weights.value(c.layers[number].bias, side)
        self._launch_activation(
            "bias_activation_many", self._grid(c.rows * u.packs), u, c.streams.main
        )

    def _launch_grad(self, number: int, arguments: Activation, stream: cuda.Stream) -> None:
        c = self._context
        columns, share = self._shape_of_grad(number)
        arguments.a = c.buffers.deltas[number]
        arguments.partial = c.buffers.partials[number]
        arguments.share = share
        grid = (columns, -(-c.rows // share), self._count)
        self._launch_activation("activation_grad_many", grid, arguments, stream)

    def _launch_activation(
        self, name: str, grid: tuple[int, ...], u: Activation, stream: cuda.Stream
    ) -> None:
        arguments = ManyActivation(u=u, nets=self._nets)
        self._context.module.launch(name, grid, _THREADS, stream, arguments)

    def _shape_of_grad(self, number: int) -> tuple[int, int]:
        c = self._context
        columns = -(-c.layers[number].outputs // (32 * c.plan.pack))
        wanted = min(PARTS, max(1, 4 * c.multiprocessors // (columns * self._count)))
        share = math.ceil(c.rows / wanted)
        return columns, math.ceil(share / 8) * 8

    def loss(self, side: int) -> None:
        """See :class:`StepKernels`."""
        c = self._context
        b, layer = c.buffers, c.layers[-1]
        c.module.launch(
            c.plan.stack.kernels.step, (self._loss_blocks(), 1, self._count), 32 * _LOSS_ROWS,
            c.streams.main, b.logits, c.weights.value(layer.bias, side), b.y[side], c.rows,
            layer.outputs, layer.width, c.scale, b.deltas[-1], b.loss,
        )  # fmt: skip

    def update(self, number: int, j: int, stream: cuda.Stream) -> None:
        """See :class:`StepKernels`."""
        u = self.update_arguments(number, j)
        blocks = -(-u.n // _UPDATE_ELEMENTS) + -(-u.outputs // _BIAS_COLUMNS)
        blocks += number == self._context.last
        arguments = ManyUpdate(u=u, nets=self._nets, steps=self._steps)
        grid = (blocks, 1, self._count)
        self._context.module.launch("update_many", grid, _THREADS, stream, arguments)

    def _grid(self, items: int) -> tuple[int, int, int]:
        return -(-items // _THREADS), 1, self._count

"""The matrix products of a training step, with their algorithms."""

from __future__ import annotations

import itertools

import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.matmul import Gemm, Gemms
from pycuda_nn.cuda.gemm.products import Product, data_gradient, weight_gradient
from pycuda_nn.cuda.gemm.products import forward as forward_product
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.weights import hyper_scalars


class StepProducts:
    """Products by layer.

    Attributes:
        forward, weight_grads: Products of each layer: one, or one for each side where the inputs
            or the weights exist twice. The last layer has no forward product if it is fused with
            the loss.
        data_grads: Products of the layers after the first, by number.
    """

    def __init__(self, context: StepContext, gemms: Gemms) -> None:
        self._context = context
        self._momentum = hyper_scalars(context.plan.recipe)["momentum"]
        self._prepare(gemms)

    def by_kind(self) -> dict[str, list[Gemm]]:
        """Return the products of a step by kind."""
        kinds: dict[str, list[Gemm]] = {}
        for gemm in itertools.chain(*self.forward, *self.weight_grads, *self.data_grads.values()):
            kinds.setdefault(gemm.kind(), []).append(gemm)
        return kinds

    def close(self) -> None:
        """Close all products."""
        for gemms in self.by_kind().values():
            for gemm in gemms:
                gemm.close()

    def _prepare(self, gemms: Gemms) -> None:
        c = self._context
        self.forward: list[list[Gemm]] = []
        self.weight_grads: list[list[Gemm]] = []
        self.data_grads: dict[int, list[Gemm]] = {}
        if not c.rows:  # of a small rest, on one of several GPUs
            return
        main, copies = c.streams.workspaces[0], range(c.weights.copies)
        for number in range(c.last + 1):
            head = number == c.last and c.fused
            inputs = self._inputs(number)
            sides = range(0 if head else max(len(inputs), len(copies)))
            forward = [self._forward(number, inputs[side % len(inputs)], side) for side in sides]
            self.forward.append([gemms.ready(one, main, c.streams.main) for one in forward])
            self.weight_grads.append([gemms.ready(*self._weight_grad(number, x)) for x in inputs])
            if number and not head:
                self.data_grads[number] = [
                    gemms.ready(self._data_grad(number, side), main, c.streams.main)
                    for side in copies
                ]

    def _inputs(self, number: int) -> list[int]:
        b = self._context.buffers
        return b.x if number == 0 else [b.activations[number - 1]]

    def _forward(self, number: int, x: int, side: int) -> Product:
        c = self._context
        layer, last = c.layers[number], number == c.last
        relu = c.plan.relu_in_product and not last
        return forward_product(
            layer,
            c.rows,
            x=x,
            weights=c.weights.value(layer.weights, side),
            z=c.buffers.logits if last else c.buffers.activations[number],
            wide=last,
            relu_bias=c.weights.value(layer.bias, side) if relu else 0,
        )

    def _data_grad(self, number: int, side: int) -> Product:
        c = self._context
        layer, deltas = c.layers[number], c.buffers.deltas
        weights = c.weights.value(layer.weights, side)
        return data_gradient(
            layer, c.rows, delta=deltas[number], weights=weights, below=deltas[number - 1]
        )

    def _weight_grad(self, number: int, x: int) -> tuple[Product, tuple[int, int], cuda.Stream]:
        c = self._context
        layer = c.layers[number]
        target = c.weights.gradient(layer, self._momentum)
        product = weight_gradient(
            layer,
            c.rows,
            x=x,
            delta=c.buffers.deltas[number],
            out=target.address,
            wide=target.wide,
            alpha=c.unscale,
            beta=target.beta,
        )
        stream = c.stream_of(number)
        return product, c.streams.workspaces[stream], c.streams.all[stream]

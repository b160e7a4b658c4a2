"""The matrix products of a training step, with their algorithms."""

from __future__ import annotations

import itertools

import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.matmul import Gemm, Gemms
from pycuda_nn.cuda.gemm.products import Product, data_gradient, forward, weight_gradient
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.weights import hyper_scalars


class StepProducts:
    """Products by layer.

    Attributes:
        forward, weight_grads: One product per layer, two for the first layer: one for even and one
            for odd steps. The last layer has no forward product if it is fused with the loss.
        data_grads: Products of the layers after the first, by number.
    """

    def __init__(self, context: StepContext, gemms: Gemms) -> None:
        self._context = context
        self._momentum = hyper_scalars(context.plan.recipe)["momentum"]
        self._prepare(gemms)

    def by_kind(self) -> dict[str, list[Gemm]]:
        """Return the products of a step by kind."""
        kinds: dict[str, list[Gemm]] = {}
        for gemm in itertools.chain(*self.forward, *self.weight_grads, self.data_grads.values()):
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
        self.data_grads: dict[int, Gemm] = {}
        b, main = c.buffers, c.streams.workspaces[0]
        for number, layer in enumerate(c.layers):
            inputs = b.x if number == 0 else [b.activations[number - 1]]
            weights = c.weights.value(layer.weights)
            last = number == c.last
            z = b.logits if last else b.activations[number]
            bias = 0 if last or not c.plan.relu_in_product else layer.bias
            more = {"wide": last, "relu_bias": bias and c.weights.value(bias)}
            self.forward.append([
                gemms.ready(
                    forward(layer, c.rows, x=x, weights=weights, z=z, **more),
                    main, c.streams.main,
                )
                for x in ([] if last and c.fused else inputs)
            ])  # fmt: skip
            self.weight_grads.append([gemms.ready(*self._weight_grad(number, x)) for x in inputs])
            if number and not (last and c.fused):
                below = b.deltas[number - 1]
                product = data_gradient(
                    layer, c.rows, delta=b.deltas[number], weights=weights, below=below
                )
                self.data_grads[number] = gemms.ready(product, main, c.streams.main)

    def _weight_grad(self, number: int, x: int) -> tuple[Product, tuple[int, int], cuda.Stream]:
        c = self._context
        layer, momentum = c.layers[number], not c.weights.grad
        out = c.weights.first if momentum else c.weights.grad
        product = weight_gradient(
            layer,
            c.rows,
            x=x,
            delta=c.buffers.deltas[number],
            out=out + 4 * layer.weights,
            alpha=c.unscale,
            beta=self._momentum if momentum else 0.0,
        )
        stream = c.stream_of(number)
        return product, c.streams.workspaces[stream], c.streams.all[stream]

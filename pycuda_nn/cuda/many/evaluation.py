"""Evaluate many networks on the same rows."""

from __future__ import annotations

import numpy as np
import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.matmul import Gemm
from pycuda_nn.cuda.gemm.products import forward
from pycuda_nn.cuda.many.plan import ManyGemms, ManyPlan
from pycuda_nn.cuda.many.structs import ManyActivation
from pycuda_nn.cuda.runtime.device import Memory
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.runtime.structs import Activation
from pycuda_nn.cuda.step.weights import Weights
from pycuda_nn.cuda.training.rows import Rows
from pycuda_nn.protocols import Metrics

_PIECE_BYTES = 256 << 20  # of the activations of all networks
_MOST_ROWS, _THREADS, _ROWS_A_BLOCK = 4096, 256, 8


class ManyEvaluator:
    """Computes the forward pass of all rows of a part, for all networks."""

    def __init__(
        self,
        plan: ManyPlan,
        module: Module,
        gemms: ManyGemms,
        weights: Weights,
        memory: Memory,
        stream: cuda.Stream,
        workspace: tuple[int, int],
        nets: int,
        rows: int,
    ) -> None:
        """Allocate memory for parts of at most ``rows`` rows."""
        self._plan, self._module, self._gemms, self._weights = plan, module, gemms, weights
        self._stream, self._workspace, self._nets = stream, workspace, nets
        widths = [layer.outputs for layer in plan.layout.layers]
        fits = _PIECE_BYTES // (4 * plan.count * sum(widths))
        self._piece = min(rows, _MOST_ROWS, max(16, fits))
        many, what = plan.count * self._piece, "the evaluation"
        item = plan.precision.item_bytes
        self._a = [memory.allocate(item * many * width, what) for width in widths[:-1]]
        self._logits = memory.allocate(4 * many * widths[-1], what)
        self._blocks = -(-self._piece // _ROWS_A_BLOCK)
        pieces = -(-rows // self._piece)
        self._sums = memory.allocate(16 * self._blocks * plan.count * pieces, what)
        self._products: dict[tuple[int, int], Gemm] = {}

    def queue(self, rows: Rows) -> None:
        """Queue the evaluation of all ``rows``, without waiting for it."""
        for piece, start in enumerate(range(0, rows.n, self._piece)):
            self._forward(rows, start, min(self._piece, rows.n - start), piece)

    def collect(self, rows: Rows) -> list[Metrics]:
        """Wait for the evaluation of ``rows``; return loss and error for each network."""
        plan = self._plan
        starts = range(0, rows.n, self._piece)
        sums = np.empty((len(starts), plan.count * self._blocks, 2))
        cuda.memcpy_dtoh_async(sums, self._sums, self._stream)
        self._stream.synchronize()
        totals = np.zeros((plan.count, 2))
        for piece, start in zip(sums, starts, strict=True):
            blocks = -(-min(self._piece, rows.n - start) // _ROWS_A_BLOCK)
            totals += piece[: plan.count * blocks].reshape(plan.count, blocks, 2).sum(axis=1)
        loss, outputs = plan.stack.loss, plan.stack.sizes[-1]
        return [
            Metrics(loss=float(total) / rows.n, error=loss.error(float(wrong), rows.n, outputs))
            for total, wrong in totals
        ]

    def close(self) -> None:
        """Close the products."""
        for product in self._products.values():
            product.close()
        self._products.clear()

    def _forward(self, rows: Rows, start: int, count: int, piece: int) -> None:
        a, layers, stack = rows.row(start), self._plan.layout.layers, self._plan.stack
        for number, layer in enumerate(layers):
            last = number == len(layers) - 1
            z = self._logits if last else self._a[number]
            self._product(number, a, z, count)(self._stream, b=a)
            if not last:
                self._activate(
                    z, self._weights.value(layer.bias), layer.outputs, layer.width, count
                )
            a = z
        blocks = -(-count // _ROWS_A_BLOCK)
        self._module.launch(
            stack.kernels.metrics, (blocks, 1, self._plan.count), 32 * _ROWS_A_BLOCK, self._stream,
            self._logits, self._weights.value(layer.bias), rows.target(start), count,
            layer.outputs, layer.width, self._sums + 16 * self._blocks * self._plan.count * piece,
        )  # fmt: skip

    def _product(self, number: int, x: int, z: int, count: int) -> Gemm:
        if (number, count) not in self._products:
            layers = self._plan.layout.layers
            product = forward(
                layers[number],
                count,
                x=x,
                weights=self._weights.value(layers[number].weights),
                z=z,
                wide=number == len(layers) - 1,
            )
            self._products[number, count] = self._gemms.ready(
                product, self._workspace, self._stream, shared_b=number == 0
            )
        return self._products[number, count]

    def _activate(self, z: int, bias: int, outputs: int, width: int, count: int) -> None:
        packs = outputs // self._plan.pack
        u = Activation(a=z, bias=bias, rows=count, packs=packs, width=width, threshold=0, scale=1.0)
        grid = (-(-count * packs // _THREADS), 1, self._plan.count)
        arguments = ManyActivation(u=u, nets=self._nets)
        self._module.launch("bias_activation_many", grid, _THREADS, self._stream, arguments)

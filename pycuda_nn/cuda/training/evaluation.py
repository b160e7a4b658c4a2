"""Compute loss and errors of rows on the device, piece by piece, without changing the training."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.matmul import Gemm, Gemms
from pycuda_nn.cuda.gemm.products import forward
from pycuda_nn.cuda.runtime.device import Memory
from pycuda_nn.cuda.runtime.graph import Graph
from pycuda_nn.cuda.runtime.module import Module
from pycuda_nn.cuda.runtime.structs import Activation
from pycuda_nn.cuda.step.buffers import Buffers
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.weights import Weights
from pycuda_nn.cuda.training.rows import Rows
from pycuda_nn.cuda.training.transfer import pinned
from pycuda_nn.protocols import Metrics

Array = npt.NDArray[Any]

_PIECE_ROWS = 4096  # if a minibatch has fewer rows
_THREADS, _ROWS_A_BLOCK = 256, 8


class Evaluator:
    """Computes the forward pass of all rows of a part."""

    def __init__(
        self,
        plan: TrainingPlan,
        module: Module,
        gemms: Gemms,
        weights: Weights,
        memory: Memory,
        stream: cuda.Stream,
        workspace: tuple[int, int],
        buffers: Buffers,
        rows: int,
    ) -> None:
        """Allocate memory for parts of at most ``rows`` rows, if ``buffers`` are too small."""
        self._plan, self._module, self._gemms, self._weights = plan, module, gemms, weights
        self._stream, self._workspace = stream, workspace
        self._piece = max(buffers.rows, min(rows, _PIECE_ROWS))
        self._layers, what = plan.layout.layers, "the evaluation"
        if self._piece == buffers.rows:
            self._a, self._logits = buffers.activations, buffers.logits
        else:
            item = plan.precision.item_bytes
            widths = [layer.outputs for layer in self._layers]
            self._a = [memory.allocate(item * self._piece * width, what) for width in widths[:-1]]
            self._logits = memory.allocate(4 * self._piece * widths[-1], what)
        pieces = -(-rows // self._piece)
        self._blocks = -(-self._piece // _ROWS_A_BLOCK)
        self._sums = memory.allocate(16 * self._blocks * pieces, what)
        self._received = [pinned(2 * self._blocks * pieces, np.float64, what) for _ in range(2)]
        self._products: dict[tuple[int, int, int], Gemm] = {}
        self._graphs: dict[tuple[int, int, int, int], Graph | None] = {}

    def metrics(self, rows: Rows) -> Metrics:
        """Return loss and error of all ``rows``; wait for the GPU."""
        return self.mean(self.sums(rows, range(rows.n)), rows.n)

    def mean(self, sums: tuple[float, float], n: int) -> Metrics:
        """Return loss and error of ``n`` rows with these sums."""
        stack, (loss, wrong) = self._plan.stack, sums
        return Metrics(loss=loss / n, error=stack.loss.error(wrong, n, stack.sizes[-1]))

    def sums(self, rows: Rows, some: range) -> tuple[float, float]:
        """Return the sums of loss and error of ``some`` rows; wait for the GPU."""
        if not some:
            return 0.0, 0.0
        self.queue(rows, some)
        self._stream.synchronize()
        return self.collected(some)

    def queue(self, rows: Rows, some: range, side: int = 0) -> None:
        """Queue the evaluation of ``some`` rows; ``side`` is 0 or 1, as in :meth:`collected`."""
        self._launch(rows, some)
        sums = self._received_of(some, side)
        cuda.memcpy_dtoh_async(sums, self._sums, self._stream)

    def collected(self, some: range, side: int = 0) -> tuple[float, float]:
        """Return the sums of loss and error of a queued evaluation that has ended."""
        sums, starts = self._received_of(some, side).copy(), some[:: self._piece]
        sums = sums.reshape(len(starts), self._blocks, 2)
        last = -(-(some.stop - starts[-1]) // _ROWS_A_BLOCK)
        sums[-1, last:] = 0.0
        loss, wrong = sums.reshape(-1, 2).sum(axis=0)
        return float(loss), float(wrong)

    def _received_of(self, some: range, side: int) -> Array:
        """Return the pinned memory for the sums of ``some`` rows."""
        received: Array = self._received[side]
        return received[: 2 * self._blocks * len(some[:: self._piece])]

    def close(self) -> None:
        """Close the graphs and the products, and free the memory of the host."""
        for graph in filter(None, self._graphs.values()):
            graph.close()
        self._graphs.clear()
        for product in self._products.values():
            product.close()
        self._products.clear()
        while self._received:
            self._received.pop().base.free()

    def _launch(self, rows: Rows, some: range) -> None:
        """Queue the evaluation of some rows: the first time kernel by kernel, then as a graph."""

        def queue() -> None:
            for number, start in enumerate(some[:: self._piece]):
                self._forward(rows, start, min(self._piece, some.stop - start), number)

        key = (rows.x, some.start, some.stop, self._weights.side)
        if key not in self._graphs:
            self._graphs[key] = None  # the first time chooses algorithms
            queue()
            return
        graph = self._graphs[key]
        if graph is None:
            graph = self._graphs[key] = Graph(self._stream, queue)
        graph.launch()

    def _forward(self, rows: Rows, start: int, count: int, piece: int) -> None:
        a = rows.row(start)
        for number in range(len(self._layers)):
            last = number == len(self._layers) - 1
            z = self._logits if last else self._a[number]
            self._product(number, a, z, count)(self._stream, b=a)
            if not last and self._plan.stack.activation != "relu":
                self._activate(number, z, count)
            a = z
        layer = self._layers[-1]
        self._module.launch(
            self._plan.stack.kernels.metrics, (-(-count // _ROWS_A_BLOCK), 1), 32 * 8,
            self._stream, self._logits, self._weights.value(layer.bias), rows.target(start), count,
            layer.outputs, layer.width, self._sums + 16 * self._blocks * piece,
        )  # fmt: skip

    def _product(self, number: int, x: int, z: int, count: int) -> Gemm:
        """Return the product of a layer; ``x`` is only for tuning, a call passes its own input."""
        key = (number, count, self._weights.side)
        if key not in self._products:
            layer, last = self._layers[number], number == len(self._layers) - 1
            relu = self._plan.stack.activation == "relu" and not last
            product = forward(
                layer,
                count,
                x=x,
                weights=self._weights.value(layer.weights),
                z=z,
                wide=last,
                relu_bias=self._weights.value(layer.bias) if relu else 0,
            )
            ready = self._gemms.ready(product, self._workspace, self._stream)
            self._products[key] = ready
        return self._products[key]

    def _activate(self, number: int, z: int, count: int) -> None:
        layer = self._layers[number]
        packs = layer.outputs // self._plan.pack
        arguments = Activation(
            a=z,
            bias=self._weights.value(layer.bias),
            rows=count,
            packs=packs,
            width=layer.width,
            threshold=0,
            scale=1.0,
        )
        grid = (-(-count * packs // _THREADS), 1)
        self._module.launch("bias_activation", grid, _THREADS, self._stream, arguments)

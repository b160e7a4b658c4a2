"""The steps of a training as CUDA graphs: recorded once for a number of rows, then replayed.

The forward pass and data gradients run on the main stream. Weight gradients, updates and the gather
of the next minibatch run on side streams. A counter on the device determines the rows, the rate and
the loss of each step, so that a replay needs no arguments and no host work. A product of a built-in
kernel includes what follows it; the biases of its layer are then updated with those of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.matmul import Gemms
from pycuda_nn.cuda.runtime.graph import Graph
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.fused import FusedProducts
from pycuda_nn.cuda.step.kernels import StepKernels
from pycuda_nn.cuda.step.products import StepProducts

if TYPE_CHECKING:
    from pycuda_nn.cuda.gemm.matmul import Gemm
    from pycuda_nn.cuda.step.fused_grads import FusedGrads
    from pycuda_nn.cuda.step.tune import Choice


class TrainingStep:
    """Records and replays steps."""

    def __init__(
        self,
        context: StepContext,
        gemms: Gemms,
        kernels: StepKernels | None = None,
        *,
        products: Callable[[StepContext, Gemms], StepProducts] | None = None,
        fused: FusedGrads | None = None,
    ) -> None:
        """Prepare the products.

        Args:
            context, gemms: Shared state of a step, and the factory of its products.
            kernels, products: Replace those of one network.
            fused: Kernels that can replace a data gradient with the slope of an activation.
        """
        self._context = context
        self._products = (products or StepProducts)(context, gemms)
        self._kernels = kernels or StepKernels(context)
        self._built_in = FusedProducts(context, self._products, self._kernels)
        self._gemms, self._compiled = gemms, False
        choices = fused.of_step(context, self._kernels) if fused else ()
        self._fused = {choice.number: choice for choice in choices}
        for choice in choices:
            gemms.offer(choice.kind(), choice.algorithms())
        self._events: dict[str, cuda.Event] = {}
        self._graphs: dict[int, Graph] = {}

    def replay(self, steps: int) -> None:
        """Queue ``steps`` steps on the main stream as one graph, recorded at the first call."""
        if steps not in self._graphs:
            self._compile()
            main = self._context.streams.main
            self._graphs[steps] = Graph(main, lambda: self._record(steps))
        self._graphs[steps].launch()

    def forget(self) -> None:
        """Discard the recorded graphs after a change of an algorithm."""
        for graph in self._graphs.values():
            graph.close()
        self._graphs.clear()

    def products(self) -> Mapping[str, Sequence[Choice]]:
        """Return the products of a step, and their alternatives with the slope, by kind."""
        kinds: dict[str, list[Choice]] = {
            kind: list(products) for kind, products in self._products.by_kind().items()
        }
        for choice in self._fused.values():
            kinds.setdefault(choice.kind(), []).append(choice)
        return kinds

    def close(self) -> None:
        """Close graphs and products."""
        self.forget()
        self._products.close()

    def _compile(self) -> None:
        """Compile the kernels among which :func:`refine` chooses, all at once."""
        if not self._compiled:
            self._gemms.compile(self._built_in.kinds())
            self._compiled = True

    def _record(self, steps: int) -> None:
        """Queue ``steps`` steps on the main stream and the side streams, and join the streams."""
        c = self._context
        self._events.clear()
        main = c.streams.main
        self._kernels.gather(0, 0, main)
        for j in range(steps):
            self._wait("rows", main)
            self._forward_pass(j)
            self._backward_pass(j, more=j + 1 < steps)
        for number in range(1, c.last + 1):
            self._wait(f"updated {number}", main)
        self._wait("biases", main)
        self._kernels.tick(steps)

    def _forward_pass(self, j: int) -> None:
        c = self._context
        main = c.streams.main
        self._wait("biases", main)
        for number in range(c.last + 1):
            self._wait(f"updated {number}", main)
            self._wait(f"updated {number + 1}", main)  # its gradient reads what is written next
            products = self._products.forward[number]
            if products:
                self._forward_layer(products[j % len(products)], number, j)
        if c.fused:
            self._kernels.head(j % 2)
        else:
            self._kernels.loss(j % 2)

    def _forward_layer(self, product: Gemm, number: int, j: int) -> None:
        c = self._context
        activates = number < c.last and not c.plan.relu_in_product
        if activates and self._built_in.activate(product, number, j):
            return
        product(c.streams.main)
        if activates:
            self._kernels.activate(number, j, j % 2)

    def _backward_pass(self, j: int, *, more: bool) -> None:
        c = self._context
        main = c.streams.main
        self._mark("delta", main)
        if more:
            side = c.streams.sides[-1]
            self._wait("delta", side)
            self._kernels.gather(j + 1, (j + 1) % 2, side)
            self._mark("rows", side)
        later: list[int] = []  # layers whose biases are updated later, all at once
        for number in range(c.last, 0, -1):
            self._layer_backward(number, j, later)
        if c.last == 0:
            self._kernels.sum_columns(0, j, main)
        products = self._products.weight_grads[0]
        product = products[j % len(products)]
        later += [0] * product.is_own
        self._update_biases(later, j)
        if product.is_own:
            self._built_in.update(product, 0, j, main)
        else:
            product(main)
            self._kernels.update(0, j, main)

    def _layer_backward(self, number: int, j: int, later: list[int]) -> None:
        c = self._context
        main, stream = c.streams.main, c.streams.all[c.stream_of(number)]
        head, product = number == c.last and c.fused, self._products.weight_grads[number][0]
        self._wait("delta", stream)
        if number == c.last and not head:
            self._kernels.sum_columns(number, j, stream)
        if not product.is_own:
            product(stream)
        if not head:
            self._data_gradient(number, j)
            self._mark("delta", main)
            self._wait("delta", stream)  # the weights were read
        if not product.is_own:
            self._kernels.update(number, j, stream)
        else:
            self._built_in.update(product, number, j, stream)
            if head or number < c.last:
                later.append(number)
            else:
                self._kernels.update_biases([number], j, stream)
        self._mark(f"updated {number}", stream)

    def _update_biases(self, numbers: list[int], j: int) -> None:
        if not numbers:
            return
        main, stream = self._context.streams.main, self._context.streams.sides[0]
        self._mark("partials", main)
        self._wait("partials", stream)
        self._kernels.update_biases(numbers, j, stream)
        self._mark("biases", stream)

    def _data_gradient(self, number: int, j: int) -> None:
        """Queue the gradient of the layer below, with its column sums, on the main stream."""
        choice, product = self._fused.get(number), self._products.data_grads[number][0]
        if choice is not None and choice.launch():
            return
        if not self._built_in.slope(product, number - 1, j):
            product(self._context.streams.main)
            self._kernels.activation_grad(number - 1, j)

    def _mark(self, name: str, stream: cuda.Stream) -> None:
        event = cuda.Event(cuda.event_flags.DISABLE_TIMING)
        event.record(stream)
        self._events[name] = event

    def _wait(self, name: str, stream: cuda.Stream) -> None:
        if name in self._events:
            stream.wait_for_event(self._events[name])

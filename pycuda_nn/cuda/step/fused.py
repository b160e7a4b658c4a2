"""Products of built-in kernels that also do what follows them: one launch instead of two."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.epilogue import ACTIVATE, SLOPE, UPDATE, Epilogue, EpilogueCode
from pycuda_nn.cuda.gemm.matmul import Gemm
from pycuda_nn.cuda.runtime.compiler import kernel_source
from pycuda_nn.cuda.step.buffers import PARTS
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.kernels import StepKernels
from pycuda_nn.cuda.step.products import StepProducts
from pycuda_nn.cuda.step.sources import STEP_FILES


class FusedProducts:
    """Queues a product with what follows it, if its algorithm is a built-in kernel."""

    def __init__(self, context: StepContext, products: StepProducts, kernels: StepKernels) -> None:
        self._context, self._products, self._kernels = context, products, kernels
        self._summed: set[int] = set()  # layers whose delta the last recorded product has summed

    @functools.cached_property
    def _codes(self) -> dict[int, EpilogueCode]:
        plan = self._context.plan
        source = plan.stack.functions() + kernel_source(*STEP_FILES)
        _, *options = plan.options(self._context.weights.master_kind)
        return {
            number: EpilogueCode(number=number, source=source, options=(*options, "-DGRADIENT"))
            for number in (ACTIVATE, SLOPE, UPDATE)
        }

    def kinds(self) -> Iterator[tuple[Gemm, EpilogueCode]]:
        """Yield the products of a step that something follows, and the code of that."""
        c, products = self._context, self._products
        if not c.plan.relu_in_product:
            for gemms in products.forward[:-1]:
                yield gemms[0], self._codes[ACTIVATE]
        for gemms in products.data_grads.values():
            yield gemms[0], self._codes[SLOPE]
        for gemms in products.weight_grads:
            yield gemms[0], self._codes[UPDATE]

    def activate(self, product: Gemm, number: int, j: int) -> bool:
        """Queue a product and the activation of a hidden layer; return False if it cannot."""
        if not product.is_own:
            return False
        arguments = self._kernels.activation_arguments(number, j, j % 2)
        epilogue = Epilogue(code=self._codes[ACTIVATE], arguments=arguments)
        product.launch_with(epilogue, self._context.streams.main)
        return True

    def slope(self, product: Gemm, number: int, j: int) -> bool:
        """Queue the gradient of a hidden layer, and its column sums; return False if it cannot."""
        if not product.is_own or product.parts > PARTS:
            if number in self._summed:
                self._summed.remove(number)
                del self._kernels.parts[number]
            return False
        self._summed.add(number)
        self._kernels.parts[number] = product.parts
        arguments = self._kernels.slope_arguments(number, j)
        epilogue = Epilogue(code=self._codes[SLOPE], arguments=arguments)
        product.launch_with(epilogue, self._context.streams.main)
        return True

    def update(self, product: Gemm, number: int, j: int, stream: cuda.Stream) -> None:
        """Queue the gradient of a layer's weights, and their update."""
        arguments = self._kernels.update_arguments(number, j)
        product.launch_with(Epilogue(code=self._codes[UPDATE], arguments=arguments), stream)

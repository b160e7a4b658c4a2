"""The choice, for each layer, between separate and fused kernels of a data gradient."""

from __future__ import annotations

from collections.abc import Sequence

from pycuda_nn.cuda.runtime.device import Device
from pycuda_nn.cuda.runtime.structs import DataGrad
from pycuda_nn.cuda.step.buffers import SUM_ROWS
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.data_grad import DataGradKernels
from pycuda_nn.cuda.step.kernels import StepKernels
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.tilings import MAPS_BYTES, TILINGS

_CAPABILITY = (9, 0)
_LEAST_ROWS = 128


def covered(plan: TrainingPlan, device: Device, rows: int) -> bool:
    """Return whether a step of ``rows`` rows can use the kernel."""
    return (
        device.facts.compute_capability == _CAPABILITY
        and plan.precision.item_bytes == 2
        and not plan.stack.drops
        and rows >= _LEAST_ROWS
    )


class FusedGrad:
    """The gradient below layer ``number``: a choice of :func:`pycuda_nn.cuda.step.tune.refine`."""

    def __init__(
        self, context: StepContext, kernels: StepKernels, made: DataGradKernels, number: int
    ) -> None:
        self._context, self._kernels, self._made, self.number = context, kernels, made, number
        self._place = 0
        self._arguments: dict[int, DataGrad] = {}

    def kind(self) -> str:
        """Return what the speed depends on; it sorts before the products without slope."""
        c, layer = self._context, self._context.layers[self.number]
        return f"+ slope {c.rows} {layer.inputs} {layer.outputs} {self._made.version}"

    def algorithms(self) -> list[bytes]:
        """Return the choices: the separate kernels, and each tiling."""
        return [bytes([place]) for place in range(len(TILINGS) + 1)]

    def use(self, algorithm: bytes) -> None:
        """Use one of :meth:`algorithms`; the update then sums as many rows of column sums."""
        self._place, below = algorithm[0], self.number - 1
        self._kernels.parts.pop(below, None)
        if not self._place:
            return
        self._kernels.parts[below] = -(-self._context.rows // SUM_ROWS)
        if self._place not in self._arguments:
            self._arguments[self._place] = self._prepared()

    def launch(self) -> bool:
        """Queue the kernel on the main stream, or return False if the separate ones are faster."""
        if not self._place:
            return False
        arguments, main = self._arguments[self._place], self._context.streams.main
        self._made.kernel(self._place - 1).launch(arguments, main)
        return True

    def _prepared(self) -> DataGrad:
        c, number = self._context, self.number
        layer, deltas = c.layers[number], c.buffers.deltas
        slot = number * len(TILINGS) + self._place - 1
        return self._made.kernel(self._place - 1).arguments(
            c.buffers.maps + MAPS_BYTES * slot,
            layer,
            self._kernels.slope_arguments(number - 1, 0),
            delta=deltas[number],
            weights=c.weights.value(layer.weights),
            below=deltas[number - 1],
        )


class FusedGrads:
    """The kernels of a session; :meth:`of_step` returns the choices of one step.

    Only one step of a session can use them: its buffers have room for one set of tensor maps.
    """

    def __init__(self, device: Device, plan: TrainingPlan) -> None:
        self._device, self._plan = device, plan
        self._made = DataGradKernels(device, plan)

    def of_step(self, context: StepContext, kernels: StepKernels) -> Sequence[FusedGrad]:
        """Return the choices for the layers after the first, except for that of the fused head."""
        if not covered(self._plan, self._device, context.rows):
            return ()
        numbers = range(1, context.last + (not context.fused))
        return [FusedGrad(context, kernels, self._made, number) for number in numbers]

"""Networks of one shape on one GPU, trained by the same kernels."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.layout import check_reach
from pycuda_nn.cuda.many.evaluation import ManyEvaluator
from pycuda_nn.cuda.many.kernels import ManyKernels
from pycuda_nn.cuda.many.plan import ManyBuffers, ManyGemms, ManyPlan, drawn
from pycuda_nn.cuda.many.structs import nets
from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.step import TrainingStep
from pycuda_nn.cuda.step.streams import N_STREAMS, BatchSource, Streams
from pycuda_nn.cuda.step.weights import Weights, rates_of
from pycuda_nn.cuda.training.epoch import GraphEpoch
from pycuda_nn.cuda.training.order import DeviceOrder
from pycuda_nn.cuda.training.rows import Rows, place_rows
from pycuda_nn.protocols import Metrics, Split, State
from pycuda_nn.rng import EpochOrder

Array = npt.NDArray[Any]
Inputs = Mapping[int, tuple[Array | EpochOrder, Array]]
Kept = TypeVar("Kept", ManyGemms, ManyEvaluator, Rows, TrainingStep)
_LOG = logging.getLogger("pycuda_nn")
_THREADS = 256


class Batch:
    """Trains all networks of a plan in step; those without input stand still with rate 0."""

    def __init__(
        self,
        plan: ManyPlan,
        options: CudaOptions,
        parts: Mapping[str, Split],
        params: Sequence[Array],
    ) -> None:
        """Copy rows and parameters to the device.

        Raises:
            OutOfDeviceMemory: There is not enough memory for the parameters and one minibatch.
            BackendUnavailable: The GPU does not exist or is in use.
        """
        self._plan, self._options = plan, options
        self._device = Device(options.device)
        self._memory = Memory(self._device, options.memory_limit)
        self._closers: list[Any] = []
        self.steps = np.zeros(plan.count, dtype=np.int64)
        with self._device.active():
            try:
                self._build(parts, np.stack(params))
            except BaseException:
                self._release()
                raise

    def run_epochs(self, inputs: Inputs) -> dict[int, npt.NDArray[np.float32]]:
        """Train one epoch of the networks in ``inputs``; return the losses of each."""
        plan, n_steps = self._plan, self._n_steps
        rates = np.zeros((plan.count, n_steps), dtype=np.float32)
        losses = np.empty_like(rates)
        for k, (_, of_network) in inputs.items():
            rates[k] = rates_of(plan.recipes[k], of_network, int(self.steps[k]))
        with self._device.active():
            self._begin_epoch({k: order for k, (order, _) in inputs.items()}, rates)
            self._epoch.launch()
            self._streams.main.synchronize()
            cuda.memcpy_dtoh(losses, self._source.losses)
        for k in inputs:
            self.steps[k] += n_steps
        return {k: losses[k] for k in inputs}

    def metrics(self, part: str) -> list[Metrics]:
        """Return loss and error of each network on ``part``."""
        with self._device.active():
            return self._evaluator.metrics(self._rows[part])

    def params(self) -> npt.NDArray[np.float32]:
        """Return the parameters (networks, n)."""
        with self._device.active():
            return self._weights.params()

    def moments(self) -> State:
        """Return the moments by name, each (networks, n)."""
        with self._device.active():
            return self._weights.moments()

    def load(self, params: Array, moments: Mapping[str, Array]) -> None:
        """Load parameters and moments as :meth:`params` and :meth:`moments` return them."""
        with self._device.active():
            self._weights.load_params(params)
            for address, values in zip(
                (self._weights.first, self._weights.second), moments.values(), strict=False
            ):
                cuda.memcpy_htod(address, self._plan.layout.spread(values))

    def close(self) -> None:
        """Free everything."""
        with self._device.active():
            self._device.synchronize()
            self._release()

    def _build(self, parts: Mapping[str, Split], params: Array) -> None:
        plan, memory, n = self._plan, self._memory, len(parts["train"].x)
        self._n, self._batch = n, min(plan.recipe.batch_size, n)
        self._n_steps = -(-n // self._batch)
        most_rows = max(len(part.x) for part in parts.values())
        check_reach(plan.layout, rows=most_rows, batch=self._batch, pack=plan.pack)
        self._weights = Weights(
            memory, plan.layout, plan.recipe, plan.precision, split=True, gradient=True
        )
        self._weights.load_params(params)
        self._module = plan.module(self._device, self._weights.master_kind)
        self._gemms = self._kept(
            ManyGemms(self._device, plan, tune=not self._options.deterministic)
        )
        largest = plan.count * max(
            layer.outputs * max(layer.inputs, self._batch) for layer in plan.layout.layers
        )
        self._streams = Streams([self._gemms.workspace(memory, largest) for _ in range(N_STREAMS)])
        main = self._streams.main
        self._buffers = ManyBuffers(memory, plan, self._batch)
        settings = nets(plan.recipes, plan.dropouts)
        self._nets = memory.allocate(settings.nbytes, "the settings")
        cuda.memcpy_htod(self._nets, settings)
        self._evaluator = self._kept(
            ManyEvaluator(
                plan, self._module, self._gemms, self._weights, memory, main,
                self._streams.workspaces[0], self._nets, most_rows,
            )
        )  # fmt: skip
        self._order = DeviceOrder(memory, self._module, n, plan.count)
        self._drawn = memory.allocate(16 * plan.count, "the order of the rows")
        rates, losses = (
            memory.allocate(4 * plan.count * self._n_steps, "the losses") for _ in range(2)
        )
        placed = place_rows(memory, self._module, plan, parts, main, self._options)
        self._rows = {name: self._kept(rows) for name, rows in placed}
        train = self._rows["train"]
        self._source = BatchSource(
            x=train.x, y=train.y, order=self._order.rows, rates=rates, losses=losses,
            clock=memory.allocate(16 * plan.count, "the clock"),
        )  # fmt: skip
        self._noise()
        rest = n % self._batch
        self._epoch = GraphEpoch(
            self._step_of(self._batch), n // self._batch, self._step_of(rest) if rest else None
        )
        self._device.synchronize()
        self._weights.clear_moments()
        self._weights.load_params(params)
        _LOG.info(
            "training path: %d networks at once (%s, %s, minibatch %s)",
            plan.count, plan.stack, plan.precision.name, f"{self._batch:,}",
        )  # fmt: skip

    def _step_of(self, rows: int) -> TrainingStep:
        context = StepContext(
            plan=self._plan,
            module=self._module,
            streams=self._streams,
            weights=self._weights,
            buffers=self._buffers,
            source=self._source,
            rows=rows,
            batch=self._batch,
            multiprocessors=self._device.facts.multiprocessors,
        )
        kernels = ManyKernels(
            context,
            count=self._plan.count,
            nets=self._nets,
            slots=self._order.slots,
            steps=self._n_steps,
        )
        return self._kept(TrainingStep(context, self._gemms, kernels))

    def _noise(self) -> None:
        """Fill the inputs of the products, so that their timing is like in training."""
        b, sizes = self._buffers, self._plan.layout.sizes
        widths = [sizes[0], sizes[0], *sizes[1:-1], *sizes[1:]]
        for address, width in zip([*b.x, *b.activations, *b.deltas], widths, strict=True):
            n = self._plan.count * self._batch * width
            grid = (-(-n // _THREADS), 1)
            self._module.launch("noise", grid, _THREADS, self._streams.main, address, n)

    def _begin_epoch(self, orders: Mapping[int, Array | EpochOrder], rates: Array) -> None:
        clocks = np.zeros((self._plan.count, 2), dtype=np.int64)
        clocks[:, 1] = self.steps
        cuda.memcpy_htod(self._source.clock, clocks)
        cuda.memcpy_htod(self._source.rates, rates)
        pairs = [(0, 0)] * self._plan.count
        for k, order in orders.items():
            if isinstance(order, EpochOrder):
                pairs[k] = (order.seed, order.epoch)
        cuda.memcpy_htod(self._drawn, drawn(pairs))
        self._order.draw_many(self._drawn, self._streams.main)
        self._streams.main.synchronize()
        for k, order in orders.items():
            if not isinstance(order, EpochOrder):
                place = self._order.rows + 4 * k * self._order.slots
                cuda.memcpy_htod(place, np.ascontiguousarray(order, dtype=np.int32))

    def _kept(self, made: Kept) -> Kept:
        self._closers.append(made)
        return made

    def _release(self) -> None:
        while self._closers:
            self._closers.pop().close()
        self._memory.free()

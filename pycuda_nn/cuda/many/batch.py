"""Networks of one shape on one GPU, trained by the same kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.layout import check_reach
from pycuda_nn.cuda.many.evaluation import ManyEvaluator
from pycuda_nn.cuda.many.fused import FusedKernels, FusedStep
from pycuda_nn.cuda.many.kernels import ManyKernels
from pycuda_nn.cuda.many.plan import ManyBuffers, ManyGemms, ManyPlan, nets
from pycuda_nn.cuda.many.sources import TINY_ENTRY
from pycuda_nn.cuda.many.tiny import ManyTinyKernel
from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.stack import NotCovered
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.step import TrainingStep
from pycuda_nn.cuda.step.streams import N_STREAMS, BatchSource, Streams
from pycuda_nn.cuda.step.weights import Weights, optimizer_number, rates_of
from pycuda_nn.cuda.tiny.kernel import source_of
from pycuda_nn.cuda.tiny.plan import TinyPlan, rounds
from pycuda_nn.cuda.tiny.recognise import recognise
from pycuda_nn.cuda.training.choice import Paths
from pycuda_nn.cuda.training.epoch import Epoch, GraphEpoch, TinyEpoch, seconds_of_step
from pycuda_nn.cuda.training.order import DeviceOrder
from pycuda_nn.cuda.training.rows import Rows, place_rows
from pycuda_nn.protocols import Metrics, Split, State, TrainingRecipe
from pycuda_nn.rng import EpochOrder

Array = npt.NDArray[Any]
Inputs = Mapping[int, tuple[Array | EpochOrder, Array]]
Kept = TypeVar("Kept", DeviceOrder, ManyGemms, ManyEvaluator, ManyTinyKernel, Rows, TrainingStep)
_THREADS = 256
_VALID = "valid"  # the part that every epoch evaluates


class Batch:
    """Trains all networks of a plan in step; those without input stand still."""

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
        self._choose: Callable[[Sequence[int]], None] = lambda members: None
        self.steps = np.zeros(plan.count, dtype=np.int64)
        self._metrics: dict[str, list[Metrics]] = {}  # since the last change of a network
        with self._device.active():
            try:
                self._build(parts, np.stack(params))
            except BaseException:
                self._release()
                raise

    def begin_epoch(self, inputs: Inputs) -> None:
        """Queue an epoch of the networks in ``inputs`` and its validation, without waiting."""
        plan = self._plan
        rates = np.zeros((plan.count, self._n_steps), dtype=np.float32)
        for k, (_, of_network) in inputs.items():
            rates[k] = rates_of(plan.recipes[k], of_network, int(self.steps[k]))
        self._metrics.clear()
        with self._device.active():
            self._begin_epoch({k: order for k, (order, _) in inputs.items()}, rates)
            self._epoch.launch()
            if _VALID in self._rows:
                self._evaluator.queue(self._rows[_VALID])

    def end_epoch(self, members: Sequence[int]) -> dict[int, npt.NDArray[np.float32]]:
        """Wait for the epoch of the networks ``members``; return the losses of each."""
        losses = np.empty((self._plan.count, self._n_steps), dtype=np.float32)
        with self._device.active():
            cuda.memcpy_dtoh_async(losses, self._source.losses, self._streams.main)
            if _VALID in self._rows:
                self._metrics[_VALID] = self._evaluator.collect(self._rows[_VALID])
            self._streams.main.synchronize()
            if self._ordered:  # the GPU draws the next orders while the host handles the results
                self._draw({k: (seed, epoch + 1) for k, (seed, epoch) in self._ordered.items()})
        self.steps[list(members)] += self._n_steps
        return {k: losses[k] for k in members}

    def metrics(self, part: str) -> list[Metrics]:
        """Return loss and error of each network on ``part``."""
        if part not in self._metrics:
            with self._device.active():
                self._evaluator.queue(self._rows[part])
                self._metrics[part] = self._evaluator.collect(self._rows[part])
        return self._metrics[part]

    def params_of(self, number: int) -> npt.NDArray[np.float32]:
        """Return the parameters of a network."""
        main = self._streams.main
        out = np.empty(self._plan.stack.network.n_params, dtype=np.float32)
        with self._device.active():
            for piece in self._plan.layout.pieces(number):
                self._module.launch(
                    "copy_params", (-(-piece.rows * piece.columns // _THREADS), 1), _THREADS, main,
                    self._weights.value(piece.place), self._weights.master_at(piece.place),
                    piece.rows, piece.columns, piece.pitch, self._copy + 4 * piece.of_state,
                )  # fmt: skip
            cuda.memcpy_dtoh_async(out, self._copy, main)
            main.synchronize()
        return out

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
        self._metrics.clear()
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
        plan, memory = self._plan, self._memory
        self._prepare(parts, params)
        main = self._streams.main
        placed = place_rows(memory, self._module, plan, parts, main, self._options)
        self._rows = {name: self._kept(rows) for name, rows in placed}
        train = self._rows["train"]
        rates, losses = (
            memory.allocate(4 * plan.count * self._n_steps, "the losses") for _ in range(2)
        )
        self._source = BatchSource(
            x=train.x, y=train.y, order=self._order.rows, rates=rates, losses=losses,
            clock=memory.allocate(16 * plan.count, "the clock"),
        )  # fmt: skip
        self._noise()
        self._draw({k: (recipe.seed, 0) for k, recipe in enumerate(plan.recipes)})
        self._epoch = self._fastest()
        self._device.synchronize()
        self._weights.clear_moments()
        self._weights.load_params(params)

    def _prepare(self, parts: Mapping[str, Split], params: Array) -> None:
        """Make everything that needs no rows."""
        plan, memory, n = self._plan, self._memory, len(parts["train"].x)
        self._n, self._batch = n, min(plan.recipe.batch_size, n)
        self._n_steps = -(-n // self._batch)
        most_rows = max(len(part.x) for part in parts.values())
        check_reach(plan.layout, rows=most_rows, batch=self._batch, pack=plan.pack)
        self._tiny = recognise(
            plan.stack, self._batched(), plan.precision.name, self._device.facts, plan.count
        )
        split = isinstance(self._tiny, NotCovered)
        self._weights = Weights(
            memory, plan.layout, plan.recipe, plan.precision, split=split, gradient=True
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
        self._buffers = ManyBuffers(memory, plan, self._batch)
        settings = nets(plan.recipes, plan.dropouts)
        self._nets = memory.allocate(settings.nbytes, "the settings")
        self._copy = memory.allocate(4 * plan.stack.network.n_params, "a copy of parameters")
        cuda.memcpy_htod(self._nets, settings)
        self._evaluator = self._kept(
            ManyEvaluator(
                plan, self._module, self._gemms, self._weights, memory, self._streams.main,
                self._streams.workspaces[0], self._nets, most_rows,
            )
        )  # fmt: skip
        self._order = self._kept(DeviceOrder(memory, self._module, n, plan.count))
        self._ordered: dict[int, tuple[int, int]] = {}  # the orders there, drawn ahead

    def _fastest(self) -> Epoch:
        """Return the steps of an epoch by the fastest path, and log the path."""
        plan, tiny = self._plan, self._tiny
        what = f"{plan.count} networks at once, {plan.stack}, {plan.precision.name}, "
        what += f"minibatch {self._batch:,}"
        stack, optimizer = plan.stack, optimizer_number(plan.recipe)
        name = f"{what} {stack.sizes} {stack.activation} {stack.drops} {optimizer}"
        paths = Paths(self._seconds, self._gemms.where, name, tune=self._gemms.tune)
        reason = tiny.reason if isinstance(tiny, NotCovered) else ""
        if plan.fuses(self._device):
            paths.add("fused step", self._fused_epoch)
            reason = ""
        paths.add("captured step", self._graph_epoch, reason)
        if isinstance(tiny, TinyPlan):
            paths.add_tiny(
                tiny,
                lambda: self._tiny_epoch(tiny),
                rounds=rounds(tiny, plan.count, self._device.facts.multiprocessors),
                source=source_of(tiny, TINY_ENTRY),
            )
        return paths.fastest(what)

    def _seconds(self, epoch: Epoch) -> float:
        main, full = self._streams.main, self._n // self._batch
        return seconds_of_step(epoch, self._source, main, full, self._plan.count)

    def _graph_epoch(self) -> GraphEpoch:
        return self._epoch_of(self._step_of)

    def _fused_epoch(self) -> GraphEpoch:
        return self._epoch_of(self._fused_step_of)

    def _epoch_of(self, step_of: Callable[[int], TrainingStep]) -> GraphEpoch:
        rest = self._n % self._batch
        full, rest_step = step_of(self._batch), step_of(rest) if rest else None
        return GraphEpoch(full, self._n // self._batch, rest_step)

    def _tiny_epoch(self, plan: TinyPlan) -> TinyEpoch:
        kernel = ManyTinyKernel(
            self._device, self._memory, plan, self._plan,
            nets=self._nets, slots=self._order.slots, steps=self._n_steps,
        )  # fmt: skip
        main, choose = self._streams.main, self._kept(kernel).choose
        self._choose = lambda members: choose(members, main)
        return TinyEpoch(kernel, self._module, self._weights, self._source, main, self._n)

    def _batched(self) -> TrainingRecipe:
        """Return the recipe with a batch size of at most the number of rows."""
        return replace(self._plan.recipe, batch_size=self._batch)

    def _step_of(self, rows: int) -> TrainingStep:
        context = self._context_of(rows)
        return self._kept(TrainingStep(context, self._gemms, ManyKernels(context, **self._numbers)))

    def _fused_step_of(self, rows: int) -> TrainingStep:
        context = self._context_of(rows)
        kernels = FusedKernels(context, self._plan, **self._numbers)
        return self._kept(FusedStep(context, self._gemms, kernels))

    @property
    def _numbers(self) -> dict[str, int]:
        return {
            "count": self._plan.count,
            "nets": self._nets,
            "slots": self._order.slots,
            "steps": self._n_steps,
        }

    def _context_of(self, rows: int) -> StepContext:
        return StepContext(
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

    def _noise(self) -> None:
        """Fill the inputs of the products, so that their timing is like in training."""
        b, sizes = self._buffers, self._plan.layout.sizes
        widths = [sizes[0], sizes[0], *sizes[1:-1], *sizes[1:]]
        for address, width in zip([*b.x, *b.activations, *b.deltas], widths, strict=True):
            n = self._plan.count * self._batch * width
            grid = (-(-n // _THREADS), 1)
            self._module.launch("noise", grid, _THREADS, self._streams.main, address, n)

    def _begin_epoch(self, orders: Mapping[int, Array | EpochOrder], rates: Array) -> None:
        """Queue what precedes the steps, on the main stream: no other batch waits for it."""
        main = self._streams.main
        clocks = np.zeros((self._plan.count, 2), dtype=np.int64)
        clocks[:, 1] = self.steps
        cuda.memcpy_htod_async(self._source.clock, clocks, main)
        cuda.memcpy_htod_async(self._source.rates, rates, main)
        self._choose(list(orders))
        wanted = {k: (of.seed, of.epoch) for k, of in orders.items() if isinstance(of, EpochOrder)}
        if not wanted.items() <= self._ordered.items():
            self._draw(wanted)
        self._ordered = wanted
        for k, order in orders.items():
            if not isinstance(order, EpochOrder):
                place = self._order.rows + 4 * k * self._order.slots
                cuda.memcpy_htod_async(place, np.ascontiguousarray(order, dtype=np.int32), main)

    def _draw(self, orders: Mapping[int, tuple[int, int]]) -> None:
        """Queue the orders of the networks with this (seed, epoch)."""
        self._ordered = dict(orders)
        pairs = [orders.get(k, (0, 0)) for k in range(self._plan.count)]
        self._order.draw_many(pairs, self._streams.main)

    def _kept(self, made: Kept) -> Kept:
        self._closers.append(made)
        return made

    def _release(self) -> None:
        while self._closers:
            self._closers.pop().close()
        self._memory.free()

"""Networks of one shape on one GPU, trained by the same kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.layout import check_reach
from pycuda_nn.cuda.many.evaluation import ManyEvaluator
from pycuda_nn.cuda.many.orders import Orders
from pycuda_nn.cuda.many.paths import ManyPaths, Parts
from pycuda_nn.cuda.many.plan import ManyBuffers, ManyGemms, ManyPlan, nets
from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.stack import NotCovered
from pycuda_nn.cuda.step.streams import N_STREAMS, BatchSource, Streams
from pycuda_nn.cuda.step.weights import Weights, rates_of
from pycuda_nn.cuda.tiny.recognise import recognise
from pycuda_nn.cuda.training.order import DeviceOrder
from pycuda_nn.cuda.training.rows import Rows, place_rows
from pycuda_nn.protocols import Metrics, Split, State
from pycuda_nn.rng import EpochOrder

Array = npt.NDArray[Any]
Inputs = Mapping[int, tuple[Array | EpochOrder, Array]]
Kept = TypeVar("Kept", DeviceOrder, ManyGemms, ManyEvaluator, ManyPaths, Rows)
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
        rates = np.zeros((plan.count, self._parts.steps), dtype=np.float32)
        for k, (_, of_network) in inputs.items():
            rates[k] = rates_of(plan.recipes[k], of_network, int(self.steps[k]))
        self._metrics.clear()
        with self._device.active():
            self._send(rates)
            self._paths.choose(list(inputs))
            self._orders.take({k: order for k, (order, _) in inputs.items()})
            self._epoch.launch()
            if _VALID in self._rows:
                self._evaluator.queue(self._rows[_VALID])

    def end_epoch(self, members: Sequence[int]) -> dict[int, npt.NDArray[np.float32]]:
        """Wait for the epoch of the networks ``members``; return the losses of each."""
        steps, main = self._parts.steps, self._parts.streams.main
        losses = np.empty((self._plan.count, steps), dtype=np.float32)
        with self._device.active():
            cuda.memcpy_dtoh_async(losses, self._source.losses, main)
            if _VALID in self._rows:
                self._metrics[_VALID] = self._evaluator.collect(self._rows[_VALID])
            main.synchronize()
            self._orders.draw_ahead()  # while the host handles the results
        self.steps[list(members)] += steps
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
        main, weights = self._parts.streams.main, self._parts.weights
        out = np.empty(self._plan.stack.network.n_params, dtype=np.float32)
        with self._device.active():
            for piece in self._plan.layout.pieces(number):
                self._parts.module.launch(
                    "copy_params", (-(-piece.rows * piece.columns // _THREADS), 1), _THREADS, main,
                    weights.value(piece.place), weights.master_at(piece.place),
                    piece.rows, piece.columns, piece.pitch, self._copy + 4 * piece.of_state,
                )  # fmt: skip
            cuda.memcpy_dtoh_async(out, self._copy, main)
            main.synchronize()
        return out

    def params(self) -> npt.NDArray[np.float32]:
        """Return the parameters (networks, n)."""
        with self._device.active():
            return self._parts.weights.params()

    def moments(self) -> State:
        """Return the moments by name, each (networks, n)."""
        with self._device.active():
            return self._parts.weights.moments()

    def load(self, params: Array, moments: Mapping[str, Array]) -> None:
        """Load parameters and moments as :meth:`params` and :meth:`moments` return them."""
        self._metrics.clear()
        with self._device.active():
            weights = self._parts.weights
            weights.load_params(params)
            moved = zip((weights.first, weights.second), moments.values(), strict=False)
            for address, values in moved:
                cuda.memcpy_htod(address, self._plan.layout.spread(values))

    def close(self) -> None:
        """Free everything."""
        with self._device.active():
            self._device.synchronize()
            self._release()

    def _send(self, rates: Array) -> None:
        """Queue clocks and rates on the main stream: no other batch waits for it."""
        clocks = np.zeros((self._plan.count, 2), dtype=np.int64)
        clocks[:, 1] = self.steps
        cuda.memcpy_htod_async(self._source.clock, clocks, self._parts.streams.main)
        cuda.memcpy_htod_async(self._source.rates, rates, self._parts.streams.main)

    def _build(self, parts: Mapping[str, Split], params: Array) -> None:
        p = self._parts = self._prepare(parts, params)
        plan, memory, main = self._plan, self._memory, p.streams.main
        placed = place_rows(memory, p.module, plan, parts, main, self._options)
        self._rows = {name: self._kept(rows) for name, rows in placed}
        train = self._rows["train"]
        rates, losses = (memory.allocate(4 * plan.count * p.steps, "the losses") for _ in range(2))
        self._source = BatchSource(
            x=train.x, y=train.y, order=p.order.rows, rates=rates, losses=losses,
            clock=memory.allocate(16 * plan.count, "the clock"),
        )  # fmt: skip
        self._noise()
        self._orders = Orders(p.order, plan.count, main)
        self._orders.draw({k: (recipe.seed, 0) for k, recipe in enumerate(plan.recipes)})
        self._paths = self._kept(ManyPaths(p, self._source, resident=train.resident))
        self._epoch = self._paths.fastest()
        self._device.synchronize()
        p.weights.clear_moments()
        p.weights.load_params(params)

    def _prepare(self, parts: Mapping[str, Split], params: Array) -> Parts:
        """Make everything that needs no rows."""
        plan, memory, device, n = self._plan, self._memory, self._device, len(parts["train"].x)
        batch, most_rows = (
            min(plan.recipe.batch_size, n),
            max(len(part.x) for part in parts.values()),
        )
        check_reach(plan.layout, rows=most_rows, batch=batch, pack=plan.pack)
        recipe = replace(plan.recipe, batch_size=batch)
        tiny = recognise(plan.stack, recipe, plan.precision.name, device.facts, plan.count)
        split = isinstance(tiny, NotCovered)
        weights = Weights(
            memory, plan.layout, plan.recipe, plan.precision, split=split, gradient=True
        )
        weights.load_params(params)
        module = plan.module(device, weights.master_kind)
        gemms = self._kept(ManyGemms(device, plan, tune=not self._options.deterministic))
        layers = plan.layout.layers
        largest = max(layer.outputs * max(layer.inputs, batch) for layer in layers)
        spaces = [gemms.workspace(memory, plan.count * largest) for _ in range(N_STREAMS)]
        streams, buffers = Streams(spaces), ManyBuffers(memory, plan, batch)
        settings = nets(plan.recipes, plan.dropouts)
        address = memory.allocate(settings.nbytes, "the settings")
        cuda.memcpy_htod(address, settings)
        self._copy = memory.allocate(4 * plan.stack.network.n_params, "a copy of parameters")
        self._evaluator = self._kept(
            ManyEvaluator(
                plan, module, gemms, weights, memory, streams.main, streams.workspaces[0],
                address, most_rows,
            )
        )  # fmt: skip
        order = self._kept(DeviceOrder(memory, module, n, plan.count))
        return Parts(
            plan=plan, tiny=tiny, device=device, memory=memory, module=module, gemms=gemms,
            weights=weights, streams=streams, buffers=buffers, order=order, nets=address,
            n=n, batch=batch,
        )  # fmt: skip

    def _noise(self) -> None:
        """Fill the inputs of the products, so that their timing is like in training."""
        p, b, sizes = self._parts, self._parts.buffers, self._plan.layout.sizes
        widths = [sizes[0], sizes[0], *sizes[1:-1], *sizes[1:]]
        for address, width in zip([*b.x, *b.activations, *b.deltas], widths, strict=True):
            n = self._plan.count * p.batch * width
            grid = (-(-n // _THREADS), 1)
            p.module.launch("noise", grid, _THREADS, p.streams.main, address, n)

    def _kept(self, made: Kept) -> Kept:
        self._closers.append(made)
        return made

    def _release(self) -> None:
        while self._closers:
            self._closers.pop().close()
        self._memory.free()

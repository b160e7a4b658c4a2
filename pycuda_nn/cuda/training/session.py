"""A training on one GPU."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import time
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.gemm.matmul import Gemms
from pycuda_nn.cuda.layout import check_reach
from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.persistent.kernel import PersistentKernel, source_of
from pycuda_nn.cuda.persistent.plan import KernelPlan
from pycuda_nn.cuda.persistent.recognise import recognise
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.stack import NotCovered
from pycuda_nn.cuda.step.agreement import COARSE, FINE
from pycuda_nn.cuda.step.buffers import Buffers
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.fused_grads import FusedGrads
from pycuda_nn.cuda.step.kernels import head_blocks
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.step import TrainingStep
from pycuda_nn.cuda.step.streams import N_STREAMS, BatchSource, Streams
from pycuda_nn.cuda.step.tune import refine
from pycuda_nn.cuda.step.weights import Weights, optimizer_number, rates_of
from pycuda_nn.cuda.tiny.kernel import TinyKernel
from pycuda_nn.cuda.tiny.plan import TinyPlan
from pycuda_nn.cuda.tiny.recognise import recognise as recognise_tiny
from pycuda_nn.cuda.training.choice import Paths
from pycuda_nn.cuda.training.epoch import (
    STEPS_A_GRAPH,
    Epoch,
    GraphEpoch,
    PersistentEpoch,
    QueuedEpoch,
    TinyEpoch,
    moments_after,
    seconds_of_step,
)
from pycuda_nn.cuda.training.evaluation import Evaluator
from pycuda_nn.cuda.training.order import DeviceOrder
from pycuda_nn.cuda.training.rows import Rows, place_rows
from pycuda_nn.cuda.training.transfer import EpochTransfer
from pycuda_nn.protocols import Metrics, Session, Split, State, TrainingRecipe
from pycuda_nn.rng import EpochOrder

Array = npt.NDArray[Any]
_LOG = logging.getLogger("pycuda_nn")
Kept = TypeVar(
    "Kept", DeviceOrder, EpochTransfer, Evaluator, Gemms, PersistentKernel, Rows, TinyKernel,
    TrainingStep,
)  # fmt: skip

_THREADS = 256
_VALID = "valid"  # the part that every epoch evaluates


class CudaSession(Session):
    """See :class:`Session`; logs its choices and their reasons to ``pycuda_nn``."""

    def __init__(
        self, plan: TrainingPlan, options: CudaOptions, parts: Mapping[str, Split], params: Array
    ) -> None:
        """Copy rows and parameters to the device, and record the steps.

        Raises:
            OutOfDeviceMemory: There is not enough memory for the parameters and one minibatch.
            BackendUnavailable: The GPU does not exist or is in use.
        """
        self._plan, self._options = plan, options
        self._device = Device(options.device)
        self._memory = Memory(self._device, options.memory_limit)
        self._closers: list[Any] = []
        self._step = 0
        self._expected: tuple[EpochOrder, Array] | None = None
        self._begun: QueuedEpoch | None = None
        self._valid: Metrics | None = None  # after the last epoch
        _LOG.info("training on %s in %s", self._device.facts.name, options.precision)
        with self._device.active():
            try:
                self._build(parts, params)
            except BaseException:
                self._release()
                raise

    def run_epoch(
        self, order: Array | EpochOrder, learning_rates: Array
    ) -> npt.NDArray[np.float32]:
        """See :class:`Session`."""
        with self._device.active(), self._settled():
            epoch = self._begun or self._queue(order, learning_rates)
            self._begun, self._step = None, epoch.last_step
            if self._expected is not None:
                self._begun, self._expected = self._queue(*self._expected), None
            epoch.done.synchronize()
            losses = self._transfer.fetched(len(learning_rates), epoch.side)
            self._valid = self._evaluated(epoch.side)
        return losses

    def expect(self, order: EpochOrder, learning_rates: Array) -> bool:
        """See :class:`Session`."""
        self._expected = order, learning_rates
        return True

    def evaluate(self, part: str) -> Metrics:
        """See :class:`Session`."""
        if part == _VALID and self._valid is not None:
            return self._valid
        with self._device.active():
            return self._evaluator.metrics(self._rows[part])

    def params(self) -> npt.NDArray[np.float32]:
        """See :class:`Session`."""
        with self._device.active():
            return self._weights.params()

    def state(self) -> State:
        """See :class:`Session`."""
        with self._device.active():
            moments = self._weights.moments()
        return {"params": self.params(), "step": np.array(self._step, dtype=np.int64), **moments}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """See :class:`Session`."""
        with self._device.active():
            self._weights.load(state)
        self._step, self._valid = int(state["step"]), None

    def close(self) -> None:
        """See :class:`Session`."""
        with self._device.active():
            self._device.synchronize()
            self._release()

    def step_seconds(self) -> float:
        """Return the seconds of a step with rates of 0; weights and moments end as at the start."""
        with self._device.active():
            params, moments = self._weights.params(), self._weights.moments()
            cuda.memset_d8(self._source.rates, 0, 4 * -(-self._n // self._batch))
            seconds = self._seconds(self._epoch)
            self._weights.load({"params": params, **moments})
        return seconds

    # Parts

    def _build(self, parts: Mapping[str, Split], params: Array) -> None:
        self._prepare(parts, params)
        main = self._streams.main
        placed = place_rows(self._memory, self._module, self._plan, parts, main, self._options)
        self._take({name: self._kept(rows) for name, rows in placed})
        self._noise()
        self._epoch = self._fastest(params)
        self._restart(params)

    def _prepare(self, parts: Mapping[str, Split], params: Array) -> None:
        """Make everything that needs no rows."""
        plan, memory, facts = self._plan, self._memory, self._device.facts
        recipe, n = plan.recipe, len(parts["train"].x)
        self._n, self._batch = n, min(recipe.batch_size, n)
        precision = plan.precision
        most_rows = max(len(part.x) for part in parts.values())
        check_reach(plan.layout, rows=most_rows, batch=self._batch, pack=plan.pack)
        self._found = recognise(plan.stack, self._batched(), precision.name, facts)
        self._tiny = recognise_tiny(plan.stack, self._batched(), precision.name, facts)
        self._weights = self._new_weights()
        self._weights.load_params(params)
        self._module = plan.module(self._device, self._weights.master_kind)
        self._gemms = self._kept(
            Gemms(self._device, plan.precision, tune=not self._options.deterministic)
        )
        rows = self._most_rows()
        layers = plan.layout.layers
        largest = max(layer.outputs * max(layer.inputs, rows) for layer in layers)
        spaces = [self._gemms.workspace(memory, largest) for _ in range(N_STREAMS)]
        self._streams = Streams(spaces)
        self._buffers = Buffers(memory, plan, rows, head_blocks(rows, facts.multiprocessors))
        self._evaluator = self._kept(
            Evaluator(
                plan, self._module, self._gemms, self._weights, memory,
                self._streams.main, self._streams.workspaces[0], self._buffers,
                most_rows,
            )
        )  # fmt: skip
        self._transfer = self._kept(EpochTransfer(memory, -(-n // self._batch)))
        drawn = self._transfer.drawn
        self._order = self._kept(DeviceOrder(memory, self._module, n, drawn=drawn))

    def _new_weights(self) -> Weights:
        plan = self._plan
        split = isinstance(self._found, NotCovered) and isinstance(self._tiny, NotCovered)
        return Weights(self._memory, plan.layout, plan.recipe, plan.precision, split=split)

    def _most_rows(self) -> int:
        """Return the most rows of a step on this GPU."""
        return self._batch

    def _take(self, rows: dict[str, Rows]) -> None:
        """Use these rows of each part."""
        self._rows, train = rows, rows["train"]
        self._source = BatchSource(
            x=train.x,
            y=train.y,
            order=self._order.rows,
            rates=self._transfer.rates,
            losses=self._transfer.losses,
            clock=self._transfer.clock,
        )

    def _step_of(self, rows: int, *, tune: bool = False) -> TrainingStep:
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
        fused = FusedGrads(self._device, self._plan) if tune else None
        return self._kept(TrainingStep(context, self._gemms, fused=fused))

    def _noise(self) -> None:
        """Fill the inputs of the products, so that their timing is like in training."""
        b, sizes = self._buffers, self._plan.layout.sizes
        widths = [sizes[0], sizes[0], *sizes[1:-1], *sizes[1:]]
        for address, width in zip([*b.x, *b.activations, *b.deltas], widths, strict=True):
            n = self._buffers.rows * width
            grid = (-(-n // _THREADS), 1)
            self._module.launch("noise", grid, _THREADS, self._streams.main, address, n)

    def _fastest(self, params: Array) -> Epoch:
        """Return the steps of an epoch by the fastest path, and log the path."""
        found, tiny, resident = self._found, self._tiny, self._rows["train"].resident
        what = f"{self._plan.stack}, {self._plan.precision.name}, minibatch {self._batch:,}"
        paths = Paths(
            self._seconds, self._gemms.where, self._name(), tune=self._gemms.tune,
            gradients=functools.partial(self._gradients, params),
            tolerance=FINE if self._plan.precision.item_bytes == 4 else COARSE,
        )  # fmt: skip
        if isinstance(found, KernelPlan) and resident:
            source = source_of(found)
            paths.add("persistent kernel", lambda: self._small_epoch(found), source=source)
        reason = (
            "" if resident else "rows in host memory are not supported by the persistent kernel"
        )
        if isinstance(found, NotCovered):
            reason = found.reason
        tuned = functools.partial(self._graph_epoch, params)
        plain = functools.partial(tuned, tune=False)
        paths.add("captured step", tuned, reason, source=self._code(), plain=plain)
        if isinstance(tiny, TinyPlan):
            same_numbers = self._plan.precision.item_bytes == 4
            paths.add_tiny(tiny, lambda: self._tiny_epoch(tiny), preferred=same_numbers)
        # Rows as in training: to read one row all the time is slower in the persistent kernel.
        self._order.draw_many([(self._plan.recipe.seed, 0)], self._streams.main)
        return paths.fastest(what)

    def _seconds(self, epoch: Epoch) -> float:
        return seconds_of_step(epoch, self._source, self._streams.main, self._n // self._batch)

    def _tiny_epoch(self, plan: TinyPlan) -> TinyEpoch:
        kernel = self._kept(TinyKernel(self._device, self._memory, plan, self._batched()))
        main = self._streams.main
        return TinyEpoch(kernel, self._module, self._weights, self._source, main, self._n)

    def _graph_epoch(self, params: Array, *, tune: bool = True) -> GraphEpoch:
        tune = tune and self._gemms.tune
        full, main = self._step_of(self._batch, tune=tune), self._streams.main
        n_steps = self._n // self._batch

        def try_steps(steps: int, replays: int) -> float:  # all rates are 0: nothing is learned
            began = time.perf_counter()
            for _ in range(replays):
                cuda.memset_d32_async(self._source.clock, 0, 4, main)
                full.replay(steps)
            main.synchronize()
            return time.perf_counter() - began

        if tune:
            refine(
                full, self._gemms, try_steps, self._name(), source=self._code(),
                most_steps=min(STEPS_A_GRAPH, n_steps),
                gradients=lambda steps: self._gradients(params, GraphEpoch(full, steps, None)),
            )  # fmt: skip
        return GraphEpoch(full, n_steps, self._rest())

    def _gradients(self, params: Array, epoch: Epoch) -> list[Array]:
        """Return the first moments after a few full steps with rates of 0, by parameter.

        A gradient that is not finite makes NaN of a weight also with a rate of 0.
        """
        self._restart(params)
        steps, network = min(STEPS_A_GRAPH, self._n // self._batch), self._plan.stack.network
        weights, main = self._weights, self._streams.main
        return moments_after(epoch, steps, self._source, main, weights, network)

    def _name(self) -> str:
        """Return the identifier of this step in the cache on disk; it must not change."""
        stack, optimizer = self._plan.stack, optimizer_number(self._plan.recipe)
        network = f"Network(sizes={stack.sizes}, activation={stack.activation!r}, "
        network += f"loss={stack.loss.name!r})"
        return f"({network}, {self._batch}, {optimizer}, {stack.drops})"

    def _code(self) -> str:
        """Return an identifier of the kernels of the captured step."""
        return self._plan.code(self._device.facts, self._weights.master_kind)

    def _small_epoch(self, found: KernelPlan) -> PersistentEpoch:
        plan = self._plan
        kernel = self._kept(
            PersistentKernel(
                self._device, self._memory, found, plan.stack, self._batched(), plan.precision.name
            )
        )
        n_steps, main = self._n // self._batch, self._streams.main
        return PersistentEpoch(
            kernel, self._module, self._weights, self._source, main, n_steps, self._rest()
        )

    def _rest(self) -> TrainingStep | None:
        """Return the step on the remaining rows, which do not fill a minibatch."""
        rows = self._n % self._batch
        return self._step_of(rows) if rows else None

    def _batched(self) -> TrainingRecipe:
        """Return the recipe with a batch size of at most the number of rows."""
        return dataclasses.replace(self._plan.recipe, batch_size=self._batch)

    def _restart(self, params: Array) -> None:
        """Reset everything that tuning has written."""
        self._device.synchronize()
        self._weights.clear_moments()
        self._weights.load_params(params)

    # An epoch

    def _queue(self, order: Array | EpochOrder, learning_rates: Array) -> QueuedEpoch:
        """Queue an epoch and the evaluation after it."""
        steps, main = len(learning_rates), self._streams.main
        self._begin_epoch(order, rates_of(self._plan.recipe, learning_rates, self._step))
        self._epoch.launch()
        side = self._transfer.fetch(steps, main)
        if self._n_valid:
            self._evaluator.queue(self._rows[_VALID], range(self._n_valid), side)
        done = cuda.Event(cuda.event_flags.DISABLE_TIMING)
        done.record(main)
        return QueuedEpoch(last_step=self._step + steps, side=side, done=done)

    @property
    def _n_valid(self) -> int:
        return self._rows[_VALID].n if _VALID in self._rows else 0

    def _evaluated(self, side: int) -> Metrics | None:
        """Return the evaluation after an epoch that has ended."""
        n = self._n_valid
        return self._evaluator.mean(self._evaluator.collected(range(n), side), n) if n else None

    def _begin_epoch(self, order: Array | EpochOrder, rates: Array) -> None:
        main = self._streams.main
        if isinstance(order, EpochOrder):
            self._transfer.send(self._step, rates, (order.seed, order.epoch), main)
            self._order.draw(main)
        else:
            self._transfer.send(self._step, rates, None, main)
            cuda.memcpy_htod(self._order.rows, order.astype(np.int32))

    @contextlib.contextmanager
    def _settled(self) -> Iterator[None]:
        """Leave no kernel or copy running after an exception."""
        try:
            yield
        except BaseException:
            self._begun = self._expected = None
            self._device.synchronize()
            raise

    # The end

    def _kept(self, made: Kept) -> Kept:
        self._closers.append(made)
        return made

    def _release(self) -> None:
        """Close all parts in reverse order, and free the memory."""
        while self._closers:
            self._closers.pop().close()
        self._memory.free()

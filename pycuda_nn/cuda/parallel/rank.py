"""The part of a training that runs on one of several GPUs, in a thread of its own."""

from __future__ import annotations

import collections
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.parallel.exchange import (
    GradientExchange,
    PeerExchange,
    Peers,
    exchange_module,
)
from pycuda_nn.cuda.parallel.nccl import NcclExchange
from pycuda_nn.cuda.parallel.peers import enable_access
from pycuda_nn.cuda.parallel.ranks import RankStopped
from pycuda_nn.cuda.parallel.room import room_of
from pycuda_nn.cuda.parallel.rows import DealtKernels, PlacedRows, Placement, hold
from pycuda_nn.cuda.parallel.shards import Shards, rows_of, share_of
from pycuda_nn.cuda.parallel.step import SharedStep
from pycuda_nn.cuda.parallel.weights import Pieces, SharedWeights
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.tune import refine
from pycuda_nn.cuda.training.epoch import STEPS_A_GRAPH
from pycuda_nn.cuda.training.session import CudaSession
from pycuda_nn.errors import DeviceError
from pycuda_nn.protocols import Split
from pycuda_nn.rng import EpochOrder

Array = npt.NDArray[Any]

_AHEAD_S = 0.1  # of queued work; the rest of an epoch is not queued after another rank failed
_MOST_CHUNK = 512  # graphs
_EVENT_FLAGS = cuda.event_flags.DISABLE_TIMING | cuda.event_flags.BLOCKING_SYNC
_NO_ANSWER = 1  # Trouble of exchange.cuh


class RankSession(CudaSession):
    """One rank; :class:`~pycuda_nn.cuda.parallel.session.DataParallelSession` calls its methods.

    They must run in the thread that made it, in this order: :meth:`prepare`, :meth:`connect`,
    :meth:`place`, :meth:`record`; then the others, on all ranks at the same time.
    """

    def __init__(
        self,
        plan: TrainingPlan,
        options: CudaOptions,
        parts: Mapping[str, Split],
        *,
        rank: int,
        size: int,
        ordinal: int,
        ordinals: Sequence[int],
        whole_shards: bool,
    ) -> None:
        """Open GPU ``ordinal``; nothing is allocated yet.

        Args:
            plan: The plan of the whole training.
            options: Options of the GPU.
            parts: The rows.
            rank: This rank.
            size: Number of ranks, of all hosts.
            ordinal: The GPU of this rank.
            ordinals: The GPUs of this process.
            whole_shards: Whether this rank updates all weights.
        """
        self._plan, self._options, self._parts = plan, options, parts
        self.rank, self._size, self._ordinals = rank, size, list(ordinals)
        self._device = Device(ordinal)
        self._memory = Memory(self._device, options.memory_limit)
        self._closers: list[Any] = []
        self._step = 0
        owner = (0, 1) if whole_shards else (rank, self._size)
        self._shards = Shards(plan.layout, *owner)
        self._layers_room = room_of(plan.layout.layers, 1 if whole_shards else size)
        self._held: dict[str, PlacedRows] = {}
        self._chunk = 1  # graphs between two events
        self._ahead: tuple[int, int] | None = None  # seed and epoch of an order drawn before

    def active(self) -> contextlib.AbstractContextManager[None]:
        """Make the context of this rank current in its thread."""
        return self._device.active()

    def prepare(self, params: Array) -> int:
        """Allocate everything but the rows; return the address of the arena."""
        with self._device.active():
            self._prepare(self._parts, params)
            return self._shared.arena

    def connect(self, peers: Peers, communicate: Callable[[], Any] | None) -> None:
        """Load the kernels of the exchange: those for NCCL with a function for the communicator."""
        plan, weights = self._plan, self._shared
        with self._device.active():
            if communicate is None:
                enable_access(self._ordinals, self._device.ordinal)
            self._exchange_module = exchange_module(self._device, plan, weights, peers.size)
            parts = (self._exchange_module, weights, self._shards, self._layers_room, peers)
            self._exchange: GradientExchange
            if communicate is None:
                self._exchange = PeerExchange(*parts)
            else:
                self._exchange = reducing = NcclExchange(*parts, communicator=communicate())
                reducing.warm(plan.layout.layers)
            self._closers.append(self._exchange)

    def gathered(self, values: Array) -> Array:
        """Return the float64 ``values`` of all ranks of all hosts, (ranks, n)."""
        exchange = self._exchange
        assert isinstance(exchange, NcclExchange)  # noqa: S101 - several hosts have no other
        mine = np.zeros((self._size, len(values)))
        mine[self.rank] = values
        with self._device.active(), self._memory.borrowed(mine.nbytes, "results") as address:
            cuda.memcpy_htod(address, mine)
            exchange.gathered(address, mine.size)
            cuda.memcpy_dtoh(mine, address)
        return mine

    def problem(self) -> str | None:
        """Return which failure of another host was noticed, if any; from any thread."""
        exchange = getattr(self, "_exchange", None)  # none before the hosts have connected
        return exchange.problem() if isinstance(exchange, NcclExchange) else None

    @property
    def multiprocessors(self) -> int:
        """Multiprocessors of the GPU."""
        return self._device.facts.multiprocessors

    def room(self) -> int:
        """Return the free memory for rows."""
        with self._device.active():
            return self._memory.available_bytes()

    def place(
        self, placements: Mapping[str, Placement], pinned: Mapping[str, int]
    ) -> dict[str, int]:
        """Copy the rows, or use those of rank 0 at ``pinned``; return their addresses."""
        with self._device.active():
            for name, placement in placements.items():
                self._held[name] = held = hold(
                    self._memory, self._module, self._plan, self._parts[name], self._streams.main,
                    name=name, placement=placement, rank=self.rank, size=self._size,
                    pinned=pinned.get(name, 0),
                )  # fmt: skip
                self._kept(held.rows)
            self._take({name: held.rows for name, held in self._held.items()})
            return {name: held.rows.x for name, held in self._held.items()}

    def record(self, params: Array, dealt: Sequence[int]) -> None:
        """Tune the products and record the steps; ``dealt`` is where the ranks hold their rows."""
        with self._device.active():
            self._noise()
            first = (self._plan.recipe.seed, 0)
            self._order.draw_many([first], self._streams.main)  # as in training, for the timing
            self._dealt = list(dealt)
            self._full = self._shared_step(self._batch)
            rest = self._n % self._batch
            self._last = self._shared_step(rest) if rest else None
            if self._gemms.tune:
                refine(
                    self._full, self._gemms, self._try_steps, self._name(), source=self._code(),
                    most_steps=self._most_steps,
                )  # fmt: skip
            self._record_all()
            self._restart(params)

    @property
    def _most_steps(self) -> int:
        return min(STEPS_A_GRAPH, self._n // self._batch)

    @property
    def _shared(self) -> SharedWeights:
        weights = self._weights
        assert isinstance(weights, SharedWeights)  # noqa: S101 - made by _new_weights
        return weights

    def _new_weights(self) -> SharedWeights:
        return SharedWeights(
            self._memory, self._plan, self._shards, self._layers_room.n_bytes,
            exact=self._options.exact_gradients,
        )  # fmt: skip

    def _most_rows(self) -> int:
        sizes = (self._batch, self._n % self._batch)
        return max(len(rows_of(self.rank, self._size, rows)) for rows in sizes)

    def _shared_step(self, whole: int) -> SharedStep:
        """Return the step of this rank on its rows of a minibatch of ``whole`` rows."""
        mine = rows_of(self.rank, self._size, whole)
        context = StepContext(
            plan=self._plan,
            module=self._module,
            streams=self._streams,
            weights=self._weights,
            buffers=self._buffers,
            source=self._source,
            rows=len(mine),
            batch=self._batch,
            multiprocessors=self._device.facts.multiprocessors,
            first=mine.start,
            whole=whole,
        )
        kernels = None
        if self._dealt:
            share = share_of(self._size, self._n)
            kernels = DealtKernels(context, self._exchange_module, self._dealt, share)
        step = SharedStep(context, self._gemms, self._shared, kernels)
        step.exchange = self._exchange
        self._closers.append(step)
        return step

    def _name(self) -> str:
        rows, kind = self._most_rows(), self._shared.gradient_bytes
        return f"{super()._name()} {rows} rows of rank, gradients of {kind} bytes"

    def _try_steps(self, steps: int, replays: int) -> float:
        """Return the seconds of some steps; all rates are 0 and nothing is exchanged."""
        main = self._streams.main
        began = time.perf_counter()
        for _ in range(replays):
            cuda.memset_d32_async(self._source.clock, 0, 4, main)
            self._full.replay(steps)
        main.synchronize()
        return time.perf_counter() - began

    def _record_all(self) -> None:
        """Record all graphs, so that nothing is allocated while kernels wait for this rank."""
        for step in filter(None, (self._full, self._last)):
            step.forget()
            step.computes, step.exchanges = True, True
        for step, steps in dict.fromkeys(self._queued()):
            for side in range(2):
                step.prepare(steps, side)

    # An epoch

    def run(self, order: Array | EpochOrder, rates: Array, stopped: Any) -> Array:
        """Train one epoch; return the mean losses of this rank's rows of each step.

        Args:
            order: The order of all rows.
            rates: Factor of each step, float32.
            stopped: Called now and then; true if another rank has failed.
        """
        main = self._streams.main
        with self._device.active(), self._settled():
            self._begin_epoch(order, rates)
            self._launch(self._queued(), stopped)
            self._transfer.fetch(len(rates), main, word=self._trouble)
            ended = cuda.Event(cuda.event_flags.DISABLE_TIMING)
            ended.record(main)
            self._draw_ahead(order)
            ended.synchronize()
            if stopped():
                raise RankStopped
            _check(self._transfer.word())
            losses = self._transfer.fetched(len(rates))
        self._step += len(rates)
        return losses

    def _begin_epoch(self, order: Array | EpochOrder, rates: Array) -> None:
        ahead, self._ahead = self._ahead, None
        if isinstance(order, EpochOrder) and ahead == (order.seed, order.epoch):
            self._transfer.send(self._step, rates, ahead, self._streams.main)
            return
        if ahead is not None:
            self._streams.main.synchronize()
        super()._begin_epoch(order, rates)

    def _draw_ahead(self, order: Array | EpochOrder) -> None:
        """Queue the order of the next epoch: it is drawn while the threads finish this one."""
        if isinstance(order, EpochOrder):
            self._ahead = order.seed, order.epoch + 1
            self._transfer.send_next(self._ahead, self._streams.main)
            self._order.draw(self._streams.main)

    def _queued(self) -> list[tuple[SharedStep, int]]:
        """Return the graphs of an epoch."""
        full, odd = divmod(self._n // self._batch, self._most_steps)
        counts = [self._most_steps] * full + [odd] * bool(odd)
        rest = [] if self._last is None else [(self._last, 1)]
        return [(self._full, steps) for steps in counts] + rest

    def time_steps(self, steps: int, what: tuple[bool, bool]) -> float:
        """Return the seconds of a step with rates of 0; ``what``: computation and exchange."""
        with self._device.active():
            step, main = self._full, self._streams.main
            if (step.computes, step.exchanges) != what:
                step.forget()
                step.computes, step.exchanges = what
            step.prepare(self._most_steps, self._shared.side)
            cuda.memset_d8(self._source.rates, 0, 4 * (self._n // self._batch))
            for _ in range(2):
                began = time.perf_counter()
                for _ in range(steps):
                    cuda.memset_d32_async(self._source.clock, 0, 4, main)
                    step.replay(self._most_steps)
                main.synchronize()
            word = np.zeros(1, dtype=np.uint32)
            cuda.memcpy_dtoh(word, self._trouble)
            _check(int(word[0]))
            return (time.perf_counter() - began) / (steps * self._most_steps)

    def begin(self, params: Array) -> None:
        """Undo :meth:`time_steps`."""
        with self._device.active():
            self._record_all()
            self._restart(params)

    def _launch(self, queued: Sequence[tuple[SharedStep, int]], stopped: Any) -> None:
        """Queue graphs, never more than a fraction of a second ahead of the GPU.

        The ranks wait for each other's kernels, so a rank that waits here delays all of them: an
        epoch begins with the length of queue that the one before has found.
        """
        events: collections.deque[cuda.Event] = collections.deque()
        began, flags = time.perf_counter(), _EVENT_FLAGS
        for number, (step, steps) in enumerate(queued, start=1):
            step.replay(steps)
            if number % self._chunk:
                continue
            event = cuda.Event(flags)
            event.record(self._streams.main)
            events.append(event)
            if len(events) < 3:
                continue
            events.popleft().synchronize()
            if stopped():
                raise RankStopped
            now = time.perf_counter()
            if now - began < _AHEAD_S / 2 and self._chunk < _MOST_CHUNK:
                self._chunk *= 2
            began = now

    @property
    def _trouble(self) -> int:
        """Address of the word that says why an exchange has given up, 0 otherwise."""
        return self._shared.arena + self._shared.extra + self._layers_room.trouble

    # Results

    def sums(self, part: str) -> tuple[float, float]:
        """Return the sums of loss and error of the rows of ``part`` that this rank evaluates."""
        held = self._held[part]
        with self._device.active():
            return self._evaluator.sums(held.rows, held.local)

    def mean(self, sums: tuple[float, float], part: str) -> Any:
        """Return the metrics of ``part`` with these sums."""
        return self._evaluator.mean(sums, self._held[part].n)

    def pieces(self) -> dict[str, Pieces]:
        """Return what this rank holds of the state."""
        with self._device.active():
            return self._shared.parts()

    def bits(self) -> Array:
        """Return the bytes of the weights, for a comparison of the ranks."""
        with self._device.active():
            return self._shared.copy_bits()

    def stop(self) -> None:
        """End the waits that the words of the host do not end; from any thread."""
        exchange = getattr(self, "_exchange", None)
        if exchange is not None:
            exchange.stop()

    def settle(self) -> None:
        """Wait until no kernel of this rank runs, before any rank frees what those access."""
        with self._device.active():
            self._device.synchronize()

    def close(self) -> None:
        """Free everything, in the thread of this rank, after all ranks have settled."""
        device = self._device
        with device.active():
            self._release()
            self.__dict__.clear()  # PyCUDA's objects end in the thread of their context


def _check(trouble: int) -> None:
    """Raise if an exchange has given up.

    Raises:
        DeviceError: Another rank did not answer.
        RankStopped: Another rank has failed.
    """
    if trouble == _NO_ANSWER:
        raise DeviceError("another GPU did not answer", "Check nvidia-smi.")
    if trouble:
        raise RankStopped

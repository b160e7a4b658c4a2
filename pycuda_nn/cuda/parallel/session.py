"""A training on several GPUs of one host: synchronous SGD on the whole minibatch."""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.cuda.options import CudaOptions
from pycuda_nn.cuda.parallel.exchange import Peers
from pycuda_nn.cuda.parallel.host_words import BEAT_S, HostWords
from pycuda_nn.cuda.parallel.hosts import World
from pycuda_nn.cuda.parallel.nccl import communicators, joined
from pycuda_nn.cuda.parallel.rank import RankSession
from pycuda_nn.cuda.parallel.ranks import Ranks
from pycuda_nn.cuda.parallel.rows import Placement, placements
from pycuda_nn.cuda.parallel.shards import rows_of
from pycuda_nn.cuda.parallel.watchdog import Watchdog
from pycuda_nn.cuda.runtime.device import Device, gpu_name
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.weights import rates_of
from pycuda_nn.errors import DeviceError
from pycuda_nn.protocols import Metrics, Session, Split, State
from pycuda_nn.rng import EpochOrder

Array = npt.NDArray[Any]
_LOG = logging.getLogger("pycuda_nn")

_WATCH_S, _LOCKS_EVERY = 0.2, 10  # asking for locks burdens the server of the meeting folder
_JOIN_LIMIT_S = 600.0  # for the GPUs of all hosts to connect; a host can compile kernels before
LIMIT_S = 30.0  # for an answer of another GPU
_RESERVE_BYTES = 256 << 20  # left free for the driver, graphs and evaluation


@dataclass(frozen=True, kw_only=True)
class StepTimes:
    """Seconds of a step.

    Attributes:
        whole: With computation and exchange.
        computation: Without exchange.
        exchange: Without computation.
    """

    whole: float
    computation: float
    exchange: float

    @property
    def waiting(self) -> float:
        """The part of the exchange that is not hidden behind the computation."""
        return max(0.0, self.whole - self.computation)


class DataParallelSession(Session):
    """See :class:`Session`; each GPU computes some rows of each minibatch, in a thread of its own.

    The bits are the same each time for the same number of GPUs; another number rounds the sums in
    another order.

    Attributes:
        size: Number of GPUs.
        exchange: Name of the exchange.
        times: How long a step takes, if it was measured.
        alone: Seconds of a step on one GPU, if it was measured.
    """

    def __init__(
        self,
        plan: TrainingPlan,
        options: CudaOptions,
        parts: Mapping[str, Split],
        params: Array,
        *,
        ordinals: Sequence[int],
        exchange: str,
        world: World | None = None,
    ) -> None:
        """Copy rows and parameters to the GPUs, and record the steps.

        Args:
            plan: The plan of the whole training.
            options: Options of the GPUs.
            parts: The rows.
            params: The first parameters.
            ordinals: The GPU of each rank of this host.
            exchange: ``peer`` or ``nccl``.
            world: The ranks of all hosts; None for this host alone.

        Raises:
            RankFailed: A GPU failed, for example because it has not enough memory.
            BackendUnavailable: A GPU does not exist or is in use.
        """
        self._plan, self._options, self._parts = plan, options, parts
        self.size = len(ordinals) if world is None else world.size
        self.exchange, self._params, self._world = exchange, params, world
        self._first = 0 if world is None else world.first
        self._batch = min(plan.recipe.batch_size, len(parts["train"].x))
        self._n, self._step = len(parts["train"].x), 0
        self.times: StepTimes | None = None
        self.alone: float | None = None
        self._words: HostWords | None = None
        self._ordinals = list(ordinals)
        names = [f"GPU {ordinal} ({gpu_name(ordinal)})" for ordinal in ordinals]
        here = "" if world is None else f" of {options.hosts} hosts, here"
        _LOG.info(
            "training on %d GPUs%s: %s, in %s",
            self.size, here, ", ".join(names), options.precision,
        )  # fmt: skip
        self._ranks: Ranks[RankSession] = Ranks(names, self._stop)
        self._made: list[RankSession] = []
        self._closed, self._connected = threading.Event(), threading.Event()
        self._watcher: threading.Thread | None = None
        self._watchdog = Watchdog(
            self._ordinals, lambda place: self._ranks.stop(_lost(names[place]))
        )
        self._handled = sys.exception()  # of a caller that has opened this after an error
        try:
            self._build()
        except BaseException:
            self.close()
            raise

    def run_epoch(
        self, order: Array | EpochOrder, learning_rates: Array
    ) -> npt.NDArray[np.float32]:
        """See :class:`Session`."""
        self._check_hosts(len(learning_rates))
        rates = rates_of(self._plan.recipe, learning_rates, self._step)
        stopped = lambda: self._ranks.stopped  # noqa: E731
        losses = self._of_all(lambda rank: rank.run(order, rates, stopped))
        self._step += len(learning_rates)
        return self._mean(losses)

    def evaluate(self, part: str) -> Metrics:
        """See :class:`Session`."""
        sums = self._of_all(lambda rank: rank.sums(part))
        loss, wrong = sums.sum(axis=0).tolist()
        metrics: Metrics = self._made[0].mean((loss, wrong), part)
        return metrics

    def params(self) -> npt.NDArray[np.float32]:
        """See :class:`Session`."""
        return self._gathered()["params"]

    def state(self) -> State:
        """See :class:`Session`."""
        return {**self._gathered(), "step": np.array(self._step, dtype=np.int64)}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """See :class:`Session`."""
        self._ranks.each(lambda rank: rank.load_state(state))
        self._step = int(state["step"])

    def close(self) -> None:
        """See :class:`Session`; while an exception is raised, the other hosts end, too."""
        self._closed.set()
        if self._watcher is not None:  # it must not ask a communicator that is being destroyed
            self._watcher.join(LIMIT_S)
        if self._world is not None and self._world.presence is not None:
            failed = self._ranks.stopped or sys.exception() not in (None, self._handled)
            self._world.presence.leave(done=not failed)
        self._watchdog.close()
        made, self._made = self._made, []
        if made and not self._ranks.stuck:
            ignored = (DeviceError,) if self._ranks.stopped else ()  # a GPU that failed fails again
            with contextlib.suppress(*ignored):
                self._ranks.each(lambda rank: rank.settle())
                self._ranks.each(lambda rank: rank.close())
                self._ranks.each(lambda _: self._free_words(), only=[0])
        if self._words is not None:  # a thread is stuck: its memory stays until the process ends
            self._words.end_beats()
        self._ranks.end()

    def step_times(self, seconds: float = 0.1) -> StepTimes:
        """Return how long a step takes; all weights and moments end as at the start.

        Raises:
            DeviceError: The exchange did not give all GPUs the same weights.
        """
        whole = self._seconds((True, True), seconds)
        computation = self._seconds((True, False), seconds)
        exchange = self._seconds((False, True), seconds)
        if not self.replicas_are_equal():  # a wrong IOMMU or PCIe setting breaks access silently
            raise DeviceError(
                "the GPUs have different weights after an exchange: the access to each other's "
                "memory does not work on this host",
                "Use --exchange nccl, and check the settings of IOMMU and PCIe ACS.",
            )
        self._ranks.each(lambda rank: rank.begin(self._params))
        return StepTimes(whole=whole, computation=computation, exchange=exchange)

    def replicas_are_equal(self) -> bool:
        """Return whether all GPUs have the same weights, bit by bit."""
        first, *others = self._ranks.each(lambda rank: rank.bits())
        return all(np.array_equal(first, other) for other in others)

    # Parts

    def _build(self) -> None:
        ranks, plan, parts = self._ranks, self._plan, self._parts
        reduces = self.exchange == "nccl"
        ranks.make(
            lambda number: RankSession(
                plan, self._options, parts,
                rank=self._first + number, size=self.size, ordinal=self._ordinals[number],
                ordinals=self._ordinals, whole_shards=reduces,
            )
        )  # fmt: skip
        self._made = ranks.each(lambda rank: rank)
        ranks.each(lambda rank: self._make_words(rank), only=[0])
        arenas = ranks.each(lambda rank: rank.prepare(self._params))
        communicate = self._communicators() if reduces else [None] * self.size
        if self._world is not None:
            self._watcher = threading.Thread(target=self._watch, name="hosts", daemon=True)
            self._watcher.start()
        ranks.each(
            lambda rank: rank.connect(
                self._peers(rank, arenas), communicate[rank.rank - self._first]
            )
        )
        self._connected.set()
        held = self._place()
        for some in ([0], range(1, len(self._ordinals))):  # the others find what the first tuned
            ranks.each(lambda rank: rank.record(self._params, held), only=some)
        self._params = self._params.copy()
        path = f"captured step on {self.size} GPUs, exchange by {self._exchange_name()}"
        _LOG.info(
            "training path: %s (%s, %s, minibatch %s)",
            path, plan.stack, plan.precision.name, f"{self._batch:,}",
        )  # fmt: skip

    def _communicators(self) -> list[Callable[[], Any]]:
        """Return a function for each rank of this host, which returns its communicator there."""
        world = self._world
        if world is None:
            known = communicators(self._ordinals)
            return [lambda one=one: one for one in known]  # type: ignore[misc]
        ranks = range(world.first, world.first + len(self._ordinals))
        return [functools.partial(joined, world.unique_id, rank, world.size) for rank in ranks]

    def _watch(self) -> None:
        """Stop this host after another one was lost."""
        until = time.monotonic() + _JOIN_LIMIT_S
        for turn in itertools.count():
            if self._closed.wait(_WATCH_S):
                return
            problem = self._problem(locks=turn % _LOCKS_EVERY == 0)
            if problem is not None:
                again = "A training with --checkpoint continues with --resume."
                self._ranks.stop(DeviceError(f"another host was lost: {problem}", again))
                return
            if time.monotonic() > until and not self._connected.is_set():
                self._ranks.stop(_not_connected())
                return

    def _problem(self, *, locks: bool) -> str | None:
        """Return how another host was lost, if one was; with ``locks`` also ask for those."""
        presence = self._world.presence if self._world is not None else None
        lost = presence.lost() if locks and presence is not None else None
        if lost is not None:
            return f"the process of host {lost} has ended"
        return next(filter(None, (rank.problem() for rank in self._made)), None)

    def _of_all(self, call: Callable[[RankSession], Any]) -> Array:
        """Return the numbers that ``call`` returns on each rank of all hosts, (ranks, n)."""
        if self._world is None:
            return np.array(self._ranks.each(call))
        answers = self._ranks.each(
            lambda rank: rank.gathered(np.asarray(call(rank), dtype=np.float64))
        )
        return answers[0]

    def _check_hosts(self, steps: int) -> None:
        """Raise DeviceError if another host is at another step, or has other rows."""
        if self._world is None:
            return
        states = self._of_all(lambda _: (self._step, steps, self._n))
        if (states != states[0]).any():
            raise DeviceError(
                "the hosts do not train the same: their steps or their numbers of rows differ",
                "Use the same data, settings and checkpoint on all hosts.",
            )

    def _exchange_name(self) -> str:
        return {"peer": "built-in kernels", "nccl": "NCCL"}[self.exchange]

    def _make_words(self, rank: RankSession) -> None:
        with rank.active():
            self._words = HostWords()

    def _free_words(self) -> None:
        words, self._words = self._words, None
        if words is not None:
            with Device(self._ordinals[0]).active():
                words.close()

    def _peers(self, rank: RankSession, arenas: Sequence[int]) -> Peers:
        words, reduces = self._words, self.exchange == "nccl"
        number = rank.rank - self._first
        return Peers(
            rank=0 if reduces else number,
            size=1 if reduces else self.size,
            arenas=[arenas[number]] if reduces else arenas,
            host=0 if words is None else words.address,
            limit=round(LIMIT_S / BEAT_S),
            multiprocessors=min(other.multiprocessors for other in self._made),
        )

    def _place(self) -> list[int]:
        """Copy the rows; return where the ranks hold training rows that are dealt out."""
        ranks = self._ranks
        room = min(ranks.each(lambda rank: rank.room()))
        room -= 0 if self._options.memory_limit else _RESERVE_BYTES
        peers = self.exchange == "peer"
        chosen = placements(self._plan, self._parts, self.size, room, peers=peers)
        for name, placement in chosen.items():
            _LOG.info("%s: %s rows %s", name, f"{len(self._parts[name].x):,}", placement.value)
        (first,) = ranks.each(lambda rank: rank.place(chosen, {}), only=[0])
        pinned = {name: first[name] for name, at in chosen.items() if at is Placement.PINNED}
        others = ranks.each(
            lambda rank: rank.place(chosen, pinned), only=range(1, len(self._ordinals))
        )
        if chosen["train"] is not Placement.DEALT:
            return []
        return [held["train"] for held in (first, *others)]

    def _stop(self) -> None:
        """End all waits of the GPUs, after one has failed; from any thread."""
        if self._words is not None:
            self._words.stop()
        for rank in self._made:
            rank.stop()

    def _mean(self, losses: Array) -> npt.NDArray[np.float32]:
        """Return the mean loss of each step from the means of the ranks, (ranks, steps)."""
        rows, weights = self._rows_of_steps
        sums = np.where(weights > 0, losses.astype(np.float64), 0.0) * weights
        mean: npt.NDArray[np.float32] = (sums.sum(axis=0) / rows).astype(np.float32)
        return mean

    @functools.cached_property
    def _rows_of_steps(self) -> tuple[Array, Array]:
        """Rows of each step, and of each rank in each step, (ranks, steps)."""
        steps = -(-self._n // self._batch)
        rows = np.full(steps, self._batch)
        rows[-1] = self._n - self._batch * (steps - 1)
        shares = [[len(rows_of(rank, self.size, int(whole))) for whole in rows[[0, -1]]]
                  for rank in range(self.size)]  # fmt: skip
        mine = np.array(shares)
        weights = np.repeat(mine[:, :1], steps, axis=1)
        weights[:, -1] = mine[:, 1]
        return rows, weights

    def _gathered(self) -> State:
        layout = self._plan.layout
        wide: dict[str, Array] = {}
        for pieces in self._ranks.each(lambda rank: rank.pieces()):
            for name, some in pieces.items():
                flat = wide.setdefault(name, np.zeros(layout.n_params, dtype=np.float32))
                for start, values in some:
                    flat[start : start + len(values)] = values
        return {name: layout.compact(flat) for name, flat in wide.items()}

    def _seconds(self, what: tuple[bool, bool], seconds: float) -> float:
        once = max(self._ranks.each(lambda rank: rank.time_steps(2, what)))
        most = max(2, int(seconds / max(once, 1e-6) / 8))
        times = [max(self._ranks.each(lambda rank: rank.time_steps(most, what))) for _ in range(3)]
        return float(np.median(times))


def _lost(gpu: str) -> DeviceError:
    return DeviceError(
        f"{gpu} has fallen off the bus; the other GPUs were stopped",
        "Check dmesg for NVRM: Xid, and restart the host. A training with --checkpoint continues "
        "with --resume.",
    )


def _not_connected() -> DeviceError:
    return DeviceError(
        f"the GPUs of the hosts did not connect within {_JOIN_LIMIT_S:.0f} s",
        "Check the output of the other hosts, and that no firewall is between them. Set "
        "NCCL_DEBUG=INFO to see more, and NCCL_SOCKET_IFNAME to the network of the hosts.",
    )

"""The ranks of a test of an exchange, each in a thread of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pycuda.driver as cuda

from pycuda_nn.cuda.parallel.exchange import GradientExchange, Peers, exchange_module
from pycuda_nn.cuda.parallel.host_words import HostWords
from pycuda_nn.cuda.parallel.ranks import Ranks
from pycuda_nn.cuda.parallel.room import room_of
from pycuda_nn.cuda.parallel.shards import Shards
from pycuda_nn.cuda.parallel.testing.turns import ROWS, TURNS, Turns
from pycuda_nn.cuda.parallel.weights import SharedWeights
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.step.buffers import Buffers
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.kernels import StepKernels
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.streams import BatchSource, Streams

Array = npt.NDArray[Any]
_LIMIT_BEATS = 600


Make = Callable[[TrainingPlan, tuple[Any, ...], Any], GradientExchange]


class TestedRank:
    """One rank: its memory, and the exchange under test; its methods run in its thread."""

    def __init__(self, plan: TrainingPlan, rank: int, size: int, *, whole: bool) -> None:
        self.rank, self._plan, self._size = rank, plan, 1 if whole else size
        self.device = Device(rank)
        with self.device.active():
            self.memory = Memory(self.device)
            self.shards = Shards(plan.layout, *((0, 1) if whole else (rank, size)))
            self.room = room_of(plan.layout.layers, self._size)
            self.weights = SharedWeights(
                self.memory, plan, self.shards, self.room.n_bytes, exact=False
            )
            self.context = self._new_context()
            self.kernels = StepKernels(self.context)

    def _new_context(self) -> StepContext:
        rates, losses, clock = (self.memory.allocate(256, "the turns") for _ in range(3))
        unused: Any = None
        return StepContext(
            plan=self._plan, module=unused, streams=Streams([(0, 0)] * 2), weights=self.weights,
            buffers=Buffers(self.memory, self._plan, ROWS, 1), rows=ROWS, batch=ROWS,
            source=BatchSource(x=0, y=0, order=0, rates=rates, losses=losses, clock=clock),
            multiprocessors=self.device.facts.multiprocessors,
        )  # fmt: skip

    def connect(self, make: Make, peers: Peers, connection: Any) -> None:
        """Make the exchange."""
        arenas = [self.weights.arena] if self._size == 1 else peers.arenas
        rank = 0 if self._size == 1 else self.rank
        peers = dataclasses.replace(peers, rank=rank, size=self._size, arenas=arenas)
        with self.device.active():
            module = exchange_module(self.device, self._plan, self.weights, self._size)
            parts = (module, self.weights, self.shards, self.room, peers)
            self.exchange = make(self._plan, parts, connection)

    def load(self, turns: Turns) -> None:
        """Copy the first parameters, and the gradients of all turns."""
        with self.device.active():
            self.weights.load_params(self._plan.layout.compact(turns.params))
            cuda.memcpy_htod(self.context.source.rates, turns.rates)
            mine = np.ascontiguousarray(turns.gradients[:, self.rank])
            wide = self.weights.float_gradients
            sent = mine if wide else self._plan.precision.rounded(mine)
            self.staged = self.memory.allocate(sent.nbytes, "gradients")
            cuda.memcpy_htod(self.staged, sent)
            partials = np.ascontiguousarray(turns.partials[:, self.rank])
            self.partials = self.memory.allocate(partials.nbytes, "partial sums")
            cuda.memcpy_htod(self.partials, partials)

    def queue(self) -> None:
        """Queue all turns, the last layer first, without waiting for the other ranks."""
        c, layout, main = self.context, self._plan.layout, self.context.streams.main
        item = self.weights.gradient_bytes
        with self.device.active():
            for turn in range(TURNS):
                side = self.weights.side
                for number in range(c.last, -1, -1):
                    layer = c.layers[number]
                    bias = turn * (layout.n_params - layout.n_weights) + layer.bias
                    source = self.partials + 4 * (bias - layout.n_weights)
                    cuda.memcpy_dtod_async(
                        c.buffers.partials[number], source, 4 * layer.outputs, main
                    )
                    self.exchange.queue_bias(c, self.kernels, number, turn, side, main)
                    source = self.staged + item * (turn * layout.n_weights + layer.weights)
                    size = item * layer.inputs * layer.outputs
                    cuda.memcpy_dtod_async(
                        self.weights.gradient(layer, 0.0).address, source, size, main
                    )
                    self.exchange.queue_weights(c, self.kernels, number, turn, side, main)
                self.weights.side = 1 - side

    def wait(self) -> None:
        """Wait until all work of this rank has ended."""
        with self.device.active():
            self.context.streams.main.synchronize()

    def results(self) -> tuple[dict[str, Any], Array]:
        """Return the pieces of the state, and the bytes of the last copy of the weights."""
        with self.device.active():
            return self.weights.parts(), self.weights.copy_bits()

    def close(self) -> None:
        """Free everything."""
        with self.device.active():
            self.exchange.close()
            self.memory.free()
            self.__dict__.clear()


class RankGroup:
    """The ranks of a test."""

    def __init__(
        self, plan: TrainingPlan, connections: Sequence[Any], make: Make, *, whole: bool
    ) -> None:
        """Make the ranks and their exchanges.

        Args:
            plan: The plan of the training.
            connections: For :func:`make`, of each rank.
            make: Returns the exchange of a rank, in its thread.
            whole: Whether every rank updates all weights.
        """
        size = len(connections)
        self._layout = plan.layout
        self._words: HostWords | None = None
        self._made: list[TestedRank] = []
        self.ranks: Ranks[TestedRank] = Ranks([f"GPU {rank}" for rank in range(size)], self._stop)
        self.ranks.make(lambda rank: TestedRank(plan, rank, size, whole=whole))
        (address,) = self.ranks.each(self._new_words, only=[0])
        peers = Peers(
            rank=0, size=size, host=address, limit=_LIMIT_BEATS,
            arenas=self.ranks.each(lambda rank: rank.weights.arena),
            multiprocessors=min(self.ranks.each(lambda rank: rank.context.multiprocessors)),
        )  # fmt: skip
        self.ranks.each(lambda rank: rank.connect(make, peers, connections[rank.rank]))
        self._made = self.ranks.each(lambda rank: rank)

    def _new_words(self, rank: TestedRank) -> int:
        with rank.device.active():
            self._words = HostWords()
            return self._words.address

    def _stop(self) -> None:
        if self._words is not None:
            self._words.stop()
        for rank in self._made:
            rank.exchange.stop()

    def state(self) -> dict[str, Array]:
        """Return the parameters and moments of all ranks, in the layout of the device."""
        wide: dict[str, Array] = {}
        for pieces, _ in self.ranks.each(lambda rank: rank.results()):
            for name, some in pieces.items():
                flat = wide.setdefault(name, np.zeros(self._layout.n_params, np.float32))
                for start, values in some:
                    flat[start : start + len(values)] = values
        return wide

    def copies(self) -> list[Array]:
        """Return the bytes of the last copy of the weights of each rank."""
        return [bits for _, bits in self.ranks.each(lambda rank: rank.results())]

    def close(self) -> None:
        """End all ranks."""
        self._made.clear()
        self.ranks.each(lambda rank: rank.close())
        if self._words is not None:
            device = self.ranks.each(lambda _: Device(0), only=[0])[0]
            words, self._words = self._words, None
            self.ranks.each(lambda _: _freed(words, device), only=[0])
        self.ranks.end()


def _freed(words: HostWords, device: Device) -> None:
    with device.active():
        words.close()

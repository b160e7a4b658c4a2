"""The real step and exchange of a rank on a fake GPU; its products only say that they were queued.

Import this module inside of ``faked_drivers``.
"""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from pycuda_nn.cuda.parallel import step as step_module
from pycuda_nn.cuda.parallel.exchange import PeerExchange, Peers
from pycuda_nn.cuda.parallel.nccl import NcclExchange
from pycuda_nn.cuda.parallel.room import room_of
from pycuda_nn.cuda.parallel.shards import Shards, rows_of
from pycuda_nn.cuda.parallel.weights import SharedWeights
from pycuda_nn.cuda.runtime.device import Device, Memory
from pycuda_nn.cuda.runtime.precision import PRECISIONS
from pycuda_nn.cuda.stack import recognise
from pycuda_nn.cuda.step import step as single_step
from pycuda_nn.cuda.step.buffers import Buffers
from pycuda_nn.cuda.step.context import StepContext
from pycuda_nn.cuda.step.kernels import StepKernels
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.cuda.step.streams import N_STREAMS, BatchSource, Streams
from pycuda_nn.network import Network
from pycuda_nn.protocols import TrainingRecipe
from tests.pycuda_nn.cuda.parallel.fakes.gpu import MACHINE

Array = npt.NDArray[Any]


def view(address: int, n: int, kind: Any) -> Array:
    """Return memory of a fake GPU as an array."""
    memory = (ctypes.c_char * (n * np.dtype(kind).itemsize)).from_address(address)
    return np.frombuffer(memory, dtype=kind)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A training."""

    size: int
    optimizer: Any
    precision: str = "float32"
    exact: bool = False
    l2: float = 1e-3
    widths: tuple[int, ...] = (32, 80, 48, 16)
    activation: str = "tanh"
    loss: str = "squared"
    rows: int = 24  # of a minibatch
    graphs: tuple[int, ...] = (3, 1, 3)  # steps of each
    multiprocessors: int = 132
    nccl: bool = False
    large: int = 1 << 25  # weights of a layer

    @property
    def peers(self) -> int:
        """Number of ranks that the kernels know."""
        return 1 if self.nccl else self.size

    @property
    def plan(self) -> TrainingPlan:
        network = Network.from_sizes(self.widths, activation=self.activation, loss=self.loss)
        recipe = TrainingRecipe(optimizer=self.optimizer, batch_size=self.rows, l2=self.l2, seed=0)
        stack: Any = recognise(network)
        return TrainingPlan(stack=stack, recipe=recipe, precision=PRECISIONS[self.precision])


class Products:
    """Stands for the products of a step."""

    def __init__(self, context: Any, gemms: Any) -> None:
        n = context.last + 1
        self.j = 0
        sides = range(2)
        self.forward = [[self._product("forward", i, side) for side in sides] for i in range(n)]
        self.weight_grads = [
            [self._product("weight_grad", i, side) for side in sides] for i in range(n)
        ]
        self.data_grads = {
            i: [self._product("data_grad", i, side) for side in sides] for i in range(1, n)
        }
        if context.fused:
            self.forward[-1] = []
            del self.data_grads[context.last]

    def _product(self, name: str, number: int, side: int) -> Any:
        return lambda stream: MACHINE.queue(stream, name, meaning=(number, self.j, side))

    def close(self) -> None:
        pass


class Kernels(StepKernels):
    """Queues the kernels by their names and numbers."""

    step: Any = None

    def gather(self, j: int, side: int, stream: Any) -> None:
        MACHINE.queue(stream, "gather", meaning=(j, side))

    def activate(self, number: int, j: int, side: int) -> None:
        MACHINE.queue(self._main, "activate", meaning=(number, j, side))

    def head(self, side: int) -> None:
        MACHINE.queue(self._main, "head", meaning=(self._context.last, self.j, side))

    def loss(self, side: int) -> None:
        MACHINE.queue(self._main, "loss", meaning=(self._context.last, self.j, side))

    def activation_grad(self, number: int, j: int) -> None:
        MACHINE.queue(self._main, "activation_grad", meaning=(number, j))

    def sum_columns(self, number: int, j: int, stream: Any) -> None:
        MACHINE.queue(stream, "sum_columns", meaning=(number, j))

    def tick(self, steps: int) -> None:
        MACHINE.queue(self._main, "tick", meaning=(steps,))

    @property
    def _main(self) -> Any:
        return self._context.streams.main


class Step(step_module.SharedStep):
    """Tells products and kernels the number of the step.

    Attributes:
        skipped: Beginning of the names of events that the forward pass does not wait for.
    """

    skipped: ClassVar[tuple[str, ...]] = ()
    _inside = False

    def _forward(self, j: int, side: int) -> None:
        self._products.j = self._kernels.j = j  # type: ignore[attr-defined]
        self._inside = True
        super()._forward(j, side)
        self._inside = False

    def _wait(self, name: str, stream: Any) -> None:
        if not (self._inside and name.startswith(self.skipped or "-")):
            super()._wait(name, stream)

    def _weight_gradient(self, number: int, side: int, stream: Any) -> None:
        MACHINE.meaning = (number, self._products.j, side)  # type: ignore[attr-defined]
        super()._weight_gradient(number, side, stream)


class ExchangeModule:
    """Queues the kernels of the exchange."""

    def launch(self, name: str, grid: Any, block: int, stream: Any, arguments: Any) -> None:
        MACHINE.queue(
            stream, name, arguments=bytes(arguments), blocks=grid[0], threads=block,
            meaning=MACHINE.meaning,
        )  # fmt: skip


class Meaning:
    """Says to which layer a kernel belongs."""

    def arguments(self, context: Any, kernels: Any, number: int, j: int, side: int) -> Any:
        MACHINE.meaning = (number, j, side)
        return super().arguments(context, kernels, number, j, side)  # type: ignore[misc]


class Peer(Meaning, PeerExchange):
    pass


class Nccl(Meaning, NcclExchange):
    pass


class Rank:
    """One rank: its memory and its step."""

    def __init__(self, case: Case, rank: int, params: Array) -> None:
        plan, self.rank = case.plan, rank
        self.layers = plan.layout.layers
        self.memory = Memory(Device(rank))
        owner = (0, 1) if case.nccl else (rank, case.size)
        self.shards = Shards(plan.layout, *owner)
        self.room = room_of(plan.layout.layers, case.peers)
        self.weights = SharedWeights(
            self.memory, plan, self.shards, self.room.n_bytes, exact=case.exact
        )
        self.weights.load_params(params)
        self.rows = len(rows_of(rank, case.size, case.rows))
        self.buffers = Buffers(self.memory, plan, max(1, self.rows), 8)
        steps = sum(case.graphs)
        self.rates = self.memory.allocate(4 * steps, "rates")
        self.losses = self.memory.allocate(4 * steps, "losses")
        self.clock = self.memory.allocate(16, "clock")
        self.context = StepContext(
            plan=plan, module=None, streams=Streams([(0, 0)] * N_STREAMS), weights=self.weights,
            buffers=self.buffers, rows=self.rows, batch=case.rows, whole=case.rows,
            multiprocessors=case.multiprocessors,
            source=BatchSource(
                x=0, y=0, order=0, rates=self.rates, losses=self.losses, clock=self.clock
            ),
        )  # type: ignore[arg-type]  # fmt: skip

    def connect(self, case: Case, arenas: Sequence[int], words: Array, limit: int) -> None:
        """Record the graphs and queue them."""
        mine = [arenas[self.rank]] if case.nccl else arenas
        peers = Peers(
            rank=0 if case.nccl else self.rank, size=len(mine), arenas=mine,
            host=words.ctypes.data, limit=limit, multiprocessors=case.multiprocessors,
        )  # fmt: skip
        module: Any = ExchangeModule()
        single_step.StepProducts = Products  # type: ignore[misc,assignment]
        gemms: Any = None
        self.kernels = Kernels(self.context)
        self.step = Step(self.context, gemms, self.weights, self.kernels)
        self.step.large = case.large  # type: ignore[misc]
        parts = (module, self.weights, self.shards, self.room, peers)
        self.step.exchange = Nccl(*parts, communicator=self.rank) if case.nccl else Peer(*parts)
        self.step.exchanges = True
        for steps in case.graphs:
            self.step.replay(steps)

    def trouble(self) -> int:
        """Return the word that ends all waits."""
        address = self.weights.arena + self.weights.extra + self.room.trouble
        return int(view(address, 1, np.uint32)[0])

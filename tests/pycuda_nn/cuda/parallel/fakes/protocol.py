"""A model of a training on several GPUs: who reads and writes what, and who waits for whom.

The operations and their order are those that the real step records. A kernel of the exchange is
split into what it does with flags and memory, one action for each. protocol.cc runs the actions in
random orders. Import this module inside of ``faked_drivers``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.pycuda_nn.cuda.parallel.fakes.gpu import Operation
from tests.pycuda_nn.cuda.parallel.fakes.training import FakeTraining

Key = tuple[Any, ...]
Version = tuple[Key, int]


@dataclass(eq=False)
class Action:
    """One action; ``reads`` and ``writes`` are cells and versions, ``put`` and ``wait`` flags."""

    name: str
    rank: int
    layer: int
    after: list[Action]
    reads: list[Version] = field(default_factory=list)
    writes: list[Version] = field(default_factory=list)
    put: Key | None = None
    wait: Key | None = None
    value: int = 0


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """What the exchange does; the tests leave out one thing each.

    Attributes:
        waits: Flags that a kernel waits for.
        copies: Copies of the weights.
    """

    waits: frozenset[str] = frozenset({"READY", "DONE"})
    copies: int = 2


class Model:
    """The actions of a training."""

    def __init__(self, training: FakeTraining, protocol: Protocol | None = None) -> None:
        self.protocol = protocol or Protocol()
        self.size, self.last = training.case.size, len(training.plan.layout.layers) - 1
        self.plan = training.plan
        self.rows = [rank.rows for rank in training.ranks]
        self.actions: list[Action] = []
        self._base = dict.fromkeys(range(self.size), 0)
        self._turns: dict[Key, int] = {}
        ends: dict[Operation, Action] = {}
        for operation in training.operations:
            after = [ends[one] for one in operation.after]
            ends[operation] = getattr(self, f"_{operation.name}")(operation, after)

    def _add(self, operation: Operation, name: str, after: Sequence[Action], **more: Any) -> Action:
        number = operation.meaning[0] if len(operation.meaning) > 1 else 0
        self.actions.append(Action(name, operation.rank, number, list(after), **more))
        return self.actions[-1]

    # Cells and their versions; ``s`` is the step of the training

    def _step(self, operation: Operation) -> int:
        j = operation.meaning[0 if operation.name == "gather" else 1]
        return self._base[operation.rank] + int(j)

    def _weights(self, rank: int, what: str, number: int, side: int, s: int) -> list[Version]:
        side %= self.protocol.copies
        return [((what, rank, number, side, shard), s) for shard in range(self.size)]

    def _work(
        self,
        operation: Operation,
        after: Sequence[Action],
        reads: Iterable[Version] = (),
        writes: Iterable[Version] = (),
    ) -> Action:
        clock = (("clock", operation.rank), self._base[operation.rank])
        return self._add(
            operation, operation.name, after, reads=[*reads, clock], writes=list(writes)
        )

    def _local(self, operation: Operation, name: str, number: int, phase: int = 0) -> Version:
        """Return a buffer of the rank after its step; a later ``phase`` of a step changes it."""
        return (name, operation.rank, number), 2 * self._step(operation) + 1 + phase

    def _input(self, operation: Operation, number: int) -> Version:
        s = self._step(operation)
        if number == 0:
            return ("x", operation.rank, operation.meaning[-1]), s + 1
        return self._local(operation, "h", number - 1, phase=1)

    def _gather(self, one: Operation, after: Sequence[Action]) -> Action:
        cell = ("x", one.rank, one.meaning[-1])
        return self._work(one, after, writes=[(cell, self._step(one) + 1)])

    def _forward(self, one: Operation, after: Sequence[Action]) -> Action:
        number, _, side = one.meaning
        done = self.plan.relu_in_product and number < self.last
        s = self._step(one)
        reads = [self._input(one, number), *self._weights(one.rank, "W", number, side, s)]
        reads += self._weights(one.rank, "b", number, side, s) if done else []
        return self._work(one, after, reads, [self._local(one, "h", number, phase=int(done))])

    def _activate(self, one: Operation, after: Sequence[Action]) -> Action:
        number, _, side = one.meaning
        # It changes h in place: its old version needs an action of its own.
        check = self._work(one, after, [self._local(one, "h", number)])
        reads = self._weights(one.rank, "b", number, side, self._step(one))
        return self._work(one, [check], reads, [self._local(one, "h", number, phase=1)])

    def _head(self, one: Operation, after: Sequence[Action]) -> Action:
        number, _, side = one.meaning
        s = self._step(one)
        reads = [self._input(one, number), (("x", one.rank, side), s + 1)]
        reads += self._weights(one.rank, "W", number, side, s)
        reads += self._weights(one.rank, "b", number, side, s)
        names = [("delta", number), ("delta", number - 1), ("partial", number)]
        names += [("partial", number - 1), ("loss", 0)]
        writes = [self._local(one, name, n, phase=1) for name, n in names]
        return self._work(one, after, reads, writes)

    def _loss(self, one: Operation, after: Sequence[Action]) -> Action:
        number, _, side = one.meaning
        s = self._step(one)
        reads = [self._local(one, "h", number), (("x", one.rank, side), s + 1)]
        reads += self._weights(one.rank, "b", number, side, s)
        writes = [self._local(one, "delta", number, phase=1), self._local(one, "loss", 0, phase=1)]
        return self._work(one, after, reads, writes)

    def _data_grad(self, one: Operation, after: Sequence[Action]) -> Action:
        number, _, side = one.meaning
        reads = [self._local(one, "delta", number, phase=1)]
        reads += self._weights(one.rank, "W", number, side, self._step(one))
        return self._work(one, after, reads, [self._local(one, "delta", number - 1)])

    def _activation_grad(self, one: Operation, after: Sequence[Action]) -> Action:
        number = one.meaning[0]
        check = self._work(one, after, [self._local(one, "delta", number)])
        writes = [self._local(one, name, number, phase=1) for name in ("delta", "partial")]
        return self._work(one, [check], [self._local(one, "h", number, phase=1)], writes)

    def _sum_columns(self, one: Operation, after: Sequence[Action]) -> Action:
        number = one.meaning[0]
        reads = [self._local(one, "delta", number, phase=1)]
        return self._work(one, after, reads, [self._local(one, "partial", number, phase=1)])

    def _weight_grad(self, one: Operation, after: Sequence[Action]) -> Action:
        number = one.meaning[0]
        reads = [self._local(one, "delta", number, phase=1), self._input(one, number)]
        return self._work(one, after, reads, self._gradient(one))

    def _memset(self, one: Operation, after: Sequence[Action]) -> Action:
        return self._work(one, after, (), self._gradient(one))

    def _gradient(self, one: Operation) -> list[Version]:
        number, s = one.meaning[0], self._step(one) + 1
        return [(("grad", one.rank, number, shard), s) for shard in range(self.size)]

    def _tick(self, one: Operation, after: Sequence[Action]) -> Action:
        self._base[one.rank] += int(one.meaning[0])
        writes = [(("clock", one.rank), self._base[one.rank])]
        return self._add(one, "tick", after, writes=writes)

    # The kernels of the exchange

    def _turn(self, operation: Operation) -> int:
        key = (operation.name, operation.rank, operation.meaning[0])
        self._turns[key] = self._turns.get(key, 0) + 1
        return self._turns[key]

    def _flags(
        self, one: Operation, flag: str, turn: int, after: list[Action]
    ) -> tuple[list[Action], list[Action]]:
        """Add the stores of a flag to all ranks, in any order, and the waits for theirs."""
        number, ranks = one.meaning[0], range(self.size)
        puts = [
            self._add(one, f"put {flag}", after, put=(flag, q, number, one.rank), value=turn)
            for q in ranks
        ]
        if flag not in self.protocol.waits:
            return puts, [self._add(one, "nothing", after)]
        waits = [
            self._add(one, f"wait {flag}", after, wait=(flag, one.rank, number, q), value=turn)
            for q in ranks
        ]
        return puts, waits

    def _exchange(self, one: Operation, after: list[Action]) -> Action:
        number, _, side = one.meaning
        s, r, turn = self._step(one), one.rank, self._turn(one)
        puts, waits = self._flags(one, "READY", turn, after)
        reads = [(("grad", q, number, r), s + 1) for q in range(self.size)]
        reads += [(("sums", r, number, q), s + 1) for q in range(self.size)]
        if self.protocol.copies == 2:
            reads += [self._weights(r, "W", number, side, s)[r]]
            reads += self._weights(r, "b", number, side, s)
        writes = [self._weights(q, "W", number, 1 - side, s + 1)[r] for q in range(self.size)]
        writes += self._weights(r, "b", number, 1 - side, s + 1)
        work = self._work(one, waits, reads, writes)
        more, ends = self._flags(one, "DONE", turn, [work])
        return self._add(one, "end", [*puts, *more, *ends])

    def _send_sums(self, one: Operation, after: list[Action]) -> Action:
        number, r, s = one.meaning[0], one.rank, self._step(one)
        names = [("partial", number), *([("loss", 0)] if number == self.last else [])]
        reads = [self._local(one, *name, phase=1) for name in names if self.rows[r]]
        add = self._work(one, after, reads)
        stores = [
            self._add(one, "store sums", [add], writes=[(("sums", q, number, r), s + 1)])
            for q in range(self.size)
        ]
        return self._add(one, "end", stores)

"""A training on fake GPUs, with simple functions that read and write what the products do.

They check that nothing changes while they read it. What they write is NaN until they end.
Import this module inside of ``faked_drivers``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.pycuda_nn.cuda.parallel.fakes.gpu import MACHINE, Operation, reset
from tests.pycuda_nn.cuda.parallel.fakes.step import Array, Case, Rank, view

F32 = np.float32


class FakeTraining:
    """All ranks, their data, and what the products compute from it."""

    def __init__(self, case: Case, *, limit: int = 1 << 30) -> None:
        self.case, self.plan = case, case.plan
        self.steps = sum(case.graphs)
        rng = np.random.default_rng(0)
        self.params = rng.standard_normal(self.plan.layout.network.n_params, dtype=F32)
        self.rates = np.linspace(0.02, 0.01, self.steps).astype(F32)
        self.words = np.zeros(2, np.uint32)
        reset(case.size)
        self.ranks = []
        for rank in range(case.size):
            with MACHINE.on(rank):
                self.ranks.append(Rank(case, rank, self.params))
        arenas = [rank.weights.arena for rank in self.ranks]
        for one in self.ranks:
            with MACHINE.on(one.rank):
                one.connect(case, arenas, self.words, limit)
                view(one.rates, self.steps, F32)[:] = self.rates
        self.operations = list(MACHINE.operations)
        self.reductions = self._joined() if case.nccl else {}
        self.seen: dict[tuple[Any, ...], Array] = {}

    def _joined(self) -> dict[Operation, list[Operation]]:
        """Let every all-reduce wait for all ranks; return the operations of each."""
        of_ranks = [
            [one for one in self.operations if one.rank == rank.rank and one.name == "all_reduce"]
            for rank in self.ranks
        ]
        found = {}
        for some in zip(*of_ranks, strict=True):
            after = frozenset[Operation]().union(*(one.after for one in some))
            shared = list(some)  # empty after the sum
            for one in some:
                one.after, found[one] = after, shared
        return found

    def numbers(self, n: int, *key: int) -> Array:
        """Return the data of a rank, a step and a layer."""
        return np.random.default_rng(key).standard_normal(n, dtype=F32)

    # What the operations do

    def host(self, operation: Operation, end: bool) -> None:
        """Begin or end an operation that is not a kernel of the exchange."""
        if operation.name == "all_reduce":
            self._all_reduce(operation, end)
            return
        method = getattr(self, f"_{operation.name}")
        method(self.ranks[operation.rank], end, *operation.meaning)

    def _all_reduce(self, operation: Operation, end: bool) -> None:
        """Sum the floats of all ranks, once."""
        some = self.reductions[operation]
        if not end or not some:
            return
        every = [view(one.arguments[0], one.arguments[1], F32) for one in some]
        total = np.zeros_like(every[0])
        for one in every:
            total = total + one
        for one in every:
            one[:] = total
        some.clear()

    def _reads(self, rank: Rank, end: bool, what: str, number: int, side: int) -> None:
        layer, weights = rank.layers[number], rank.weights
        at, n = (layer.bias, layer.outputs) if what == "bias" else (
            layer.weights, layer.inputs * layer.outputs)  # fmt: skip
        bits = view(weights.value(at, side), n, self._kind).copy()
        key = (rank.rank, what, number)
        if end:
            assert np.array_equal(self.seen[(*key, "bits")], bits), f"{key}: changed while read"
            self.seen[key] = self.widened(bits)
        self.seen[(*key, "bits")] = bits

    @property
    def _kind(self) -> Any:
        return np.uint32 if self.plan.precision.item_bytes == 4 else np.uint16

    def widened(self, bits: Array) -> Array:
        """Return the float32 of activations."""
        if self.plan.precision.name == "bf16":
            return (bits.astype(np.uint32) << np.uint32(16)).view(F32)
        return bits.view(np.float16).astype(F32) if bits.itemsize == 2 else bits.view(F32)

    def _forward(self, rank: Rank, end: bool, number: int, j: int, side: int) -> None:
        self._reads(rank, end, "forward", number, side)
        if self.plan.relu_in_product and number < rank.context.last:
            self._reads(rank, end, "bias", number, side)

    def _activate(self, rank: Rank, end: bool, number: int, j: int, side: int) -> None:
        self._reads(rank, end, "bias", number, side)

    def _data_grad(self, rank: Rank, end: bool, number: int, j: int, side: int) -> None:
        self._reads(rank, end, "back", number, side)

    def _loss(self, rank: Rank, end: bool, number: int, j: int, side: int) -> None:
        self._reads(rank, end, "bias", number, side)
        step = int(view(rank.clock, 1, np.int32)[0]) + j
        parts = rank.kernels.update_arguments(number, j).loss_parts
        self._write(rank.buffers.loss, self.losses_of(rank.rank, step, parts), end)

    def _head(self, rank: Rank, end: bool, number: int, j: int, side: int) -> None:
        self._reads(rank, end, "forward", number, side)
        self._reads(rank, end, "back", number, side)
        self._loss(rank, end, number, j, side)
        for one in (number, number - 1):
            self._activation_grad(rank, end, one, j)

    def _activation_grad(self, rank: Rank, end: bool, number: int, j: int) -> None:
        step = int(view(rank.clock, 1, np.int32)[0]) + j
        bias = self.seen.get((rank.rank, "bias", number), np.zeros(1, F32))
        parts = rank.kernels.update_arguments(number, j).parts
        values = self.partials(rank.rank, step, number, parts, bias)
        self._write(rank.buffers.partials[number], values, end)

    _sum_columns = _activation_grad

    def _weight_grad(self, rank: Rank, end: bool, number: int, j: int, side: int) -> None:
        step = int(view(rank.clock, 1, np.int32)[0]) + j
        back = self.seen.get((rank.rank, "back", number + 1))
        values = self.gradient(
            rank.rank, step, number, self.seen[rank.rank, "forward", number], back
        )
        target = rank.weights.gradient(rank.layers[number], 0.0)
        sent = values if target.wide else self.plan.precision.rounded(values)
        self._write(target.address, sent, end)

    def _write(self, address: int, values: Array, end: bool) -> None:
        memory = view(address, values.nbytes, np.uint8)
        memory[:] = values.view(np.uint8).ravel() if end else 0xFF

    def _memset(self, rank: Rank, end: bool, number: int, j: int, side: int) -> None:
        layer = rank.layers[number]
        n = layer.inputs * layer.outputs * rank.weights.gradient_bytes
        self._write(rank.weights.gradient(layer, 0.0).address, np.zeros(n, np.uint8), end)

    def _gather(self, rank: Rank, end: bool, j: int, side: int) -> None:
        pass

    def _tick(self, rank: Rank, end: bool, steps: int) -> None:
        if end:
            view(rank.clock, 1, np.int32)[:] += steps

    # The functions that stand for products

    def gradient(
        self, rank: int, step: int, number: int, weights: Array, back: Array | None
    ) -> Array:
        """Return the gradient of the weights of a layer on one rank."""
        values = F32(0.5) * weights + self.numbers(len(weights), rank, step, number)
        if back is not None and number < len(self.plan.layout.layers) - 1:
            values = values + F32(0.25) * np.resize(back, len(weights))
        wide = self.ranks[0].weights.float_gradients
        rounded = self.plan.precision.rounded
        return values if wide else self.widened(rounded(values))

    def partials(self, rank: int, step: int, number: int, parts: int, bias: Array) -> Array:
        """Return the partial sums of the gradient of a bias on one rank."""
        n = self.plan.layout.layers[number].outputs
        return F32(0.125) * np.resize(bias, n) + self.numbers(
            parts * n, rank, step, 100 + number
        ).reshape(parts, n)

    def losses_of(self, rank: int, step: int, parts: int) -> Array:
        """Return the partial sums of the loss on one rank."""
        return self.numbers(parts, rank, step, 200)

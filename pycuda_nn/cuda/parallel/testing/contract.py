"""The tests of an exchange."""

from __future__ import annotations

import contextlib
import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pycuda_nn.cuda.parallel.exchange import GradientExchange
from pycuda_nn.cuda.parallel.testing.ranks import RankGroup
from pycuda_nn.cuda.parallel.testing.turns import OPTIMIZERS, ROWS, Turns, sample_plan
from pycuda_nn.cuda.step.plan import TrainingPlan
from pycuda_nn.errors import PycudaNNError

Array = npt.NDArray[Any]


class ExchangeContract(ABC):
    """Tests of one exchange between ``size`` GPUs; pytest collects its subclasses.

    Attributes:
        size: Number of ranks.
        whole_shards: Whether every rank updates all weights.
    """

    size: int = 2
    whole_shards: bool = False

    @abstractmethod
    def exchange(
        self, plan: TrainingPlan, parts: tuple[Any, ...], connection: Any
    ) -> GradientExchange:
        """Return the exchange of a rank, in its thread, at the same time as the others.

        Args:
            plan: The plan of the training.
            parts: The arguments of :class:`GradientExchange`.
            connection: What :meth:`connections` returned for this rank.
        """

    def connections(self) -> Sequence[Any]:
        """Return what :meth:`exchange` needs on each rank."""
        return [None] * self.size

    @contextlib.contextmanager
    def group(self, plan: TrainingPlan) -> Iterator[RankGroup]:
        """Return the ranks of a training."""
        group = RankGroup(plan, self.connections(), self.exchange, whole=self.whole_shards)
        try:
            yield group
        finally:
            group.close()

    def test_the_update_is_that_of_the_sum(self) -> None:
        """Rule 1 for each optimizer and precision, over several turns of all layers."""
        for precision, optimizer in zip(("float32", "bf16", "fp16"), OPTIMIZERS, strict=True):
            plan = sample_plan(optimizer, precision)
            turns = Turns.sample(plan, self.size)
            # With a scale, the kernels divide the sums of a bias by the rows.
            scale = np.float32(ROWS if plan.precision.keep_scale else 1)
            with self.group(plan) as group:
                _exchange(group, dataclasses.replace(turns, partials=scale * turns.partials))
                _check(group, turns.result(plan))

    def test_the_copies_are_equal(self) -> None:
        """Rule 2: the bits of the new weights are the same on all ranks, and each time."""
        plan = sample_plan(OPTIMIZERS[1], "bf16")
        turns = Turns.sample(plan, self.size)
        seen = []
        for _ in range(2):
            with self.group(plan) as group:
                _exchange(group, turns)
                seen += group.copies()
        for bits in seen:
            np.testing.assert_array_equal(bits, seen[0])

    def test_ranks_may_be_turns_ahead(self) -> None:
        """Rule 3: a rank queues all turns before another one queues its first."""
        plan = sample_plan(OPTIMIZERS[0], "float32")
        turns = Turns.sample(plan, self.size)
        with self.group(plan) as group:
            group.ranks.each(lambda rank: rank.load(turns))
            for number in reversed(range(self.size)):
                group.ranks.each(lambda rank: rank.queue(), only=[number])
            group.ranks.each(lambda rank: rank.wait())
            _check(group, turns.result(plan))

    def test_a_stop_ends_all_waits(self) -> None:
        """Rule 4: ranks whose last one never comes end after a stop."""
        plan = sample_plan(OPTIMIZERS[0], "float32")
        turns, others = Turns.sample(plan, self.size), range(self.size - 1)
        with self.group(plan) as group:
            group.ranks.each(lambda rank: rank.load(turns))
            group.ranks.each(lambda rank: rank.queue(), only=others)
            group.ranks.stop()
            with contextlib.suppress(PycudaNNError):  # an exchange may say that it was stopped
                group.ranks.each(lambda rank: rank.wait(), only=others)
            np.testing.assert_equal(group.ranks.stuck, desired=False)


def _exchange(group: RankGroup, turns: Turns) -> None:
    group.ranks.each(lambda rank: rank.load(turns))
    group.ranks.each(lambda rank: rank.queue())
    group.ranks.each(lambda rank: rank.wait())


def _check(group: RankGroup, wanted: dict[str, Array]) -> None:
    found = group.state()
    for name, values in wanted.items():
        np.testing.assert_allclose(found[name], values, rtol=2e-5, atol=2e-6)

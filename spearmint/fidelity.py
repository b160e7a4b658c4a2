"""Multi-fidelity: the rungs at which trials pause, and which paused trial to resume."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

NAME, REDUCTION = "steps", 3
"""Defaults of the block ``fidelity``."""


@dataclass(frozen=True, kw_only=True)
class Fidelity:
    """The block ``fidelity`` of config.pb: a trial trains up to ``high`` steps, in parts.

    Attributes:
        name: What the steps are, such as ``epochs``; for messages.
        low, high: Minimum steps of the first part, and steps of a full training.
        reduction: Reduction factor: one of this many trials of a rung continues.
    """

    name: str = NAME
    low: int = 1
    high: int
    reduction: int = REDUCTION

    @cached_property
    def rungs(self) -> tuple[int, ...]:
        """Steps after which a part ends, in ascending order.

        They are ``high``, ``high`` / ``reduction`` and so on, down to at least ``low``.
        """
        found = [self.high]
        divisor = self.reduction
        while (step := round(self.high / divisor)) >= self.low and 0 < step < found[-1]:
            found.append(step)
            divisor *= self.reduction
        return tuple(found[::-1])

    def steps(self, done: int) -> tuple[int, int]:
        """Return the steps before and after the part that follows ``done`` rungs."""
        return (self.rungs[done - 1] if done else 0), self.rungs[done]

    def is_last(self, done: int) -> bool:
        """Return whether the part after ``done`` rungs ends with the full training."""
        return done + 1 >= len(self.rungs)

    def place(self, passed: int) -> str:
        """Return ``27 of 81 epochs`` for a trial that passed this many rungs."""
        return f"{self.rungs[passed - 1]} of {self.high} {self.name}"

    def pause(self, passed: int) -> str:
        """Return ``paused at 27 epochs``: how the job ended that passed the last of these rungs."""
        return f"paused at {self.rungs[passed - 1]} {self.name}"

    def describe(self) -> str:
        """Return ``rungs at 1, 3, 9, 27, 81 epochs, reduction factor 3`` for messages."""
        steps = ", ".join(map(str, self.rungs))
        return f"rungs at {steps} {self.name}, reduction factor {self.reduction}"

    def at_rungs(self, curve: Mapping[int, float]) -> tuple[float, ...]:
        """Return the values at the rungs below the last one, up to the last that is known.

        An unknown one before it is NaN.

        Args:
            curve: Values by step. Long curves are thinned: the last step before a rung counts for
                it if at most a tenth of its steps are missing.
        """
        values = [_at(curve, step) for step in self.rungs[:-1]]
        known = [i for i, value in enumerate(values) if not math.isnan(value)]
        return tuple(values[: known[-1] + 1]) if known else ()


_MISSING = 0.1  # share of the steps to a rung that a thinned curve can lack


def _at(curve: Mapping[int, float], rung: int) -> float:
    """Return the value of a curve at a rung; NaN if it is unknown."""
    step = max((step for step in curve if step <= rung), default=0)
    return curve[step] if step and step >= (1 - _MISSING) * rung else math.nan


def rungs_in(description: str) -> tuple[int, ...]:
    """Return the rungs in the text of :meth:`Fidelity.describe`; empty for another text."""
    found = re.match(r"rungs at (\d+(?:, \d+)*) ", description)
    return tuple(map(int, found[1].split(", "))) if found else ()


@dataclass(frozen=True, slots=True)
class Climber:
    """A trial on the rungs.

    Attributes:
        losses: Its value at each rung that it reached, lowest rung first, to be minimised; NaN
            where it is unknown, in imported trials.
        is_paused: Whether it waits at the last of them.
    """

    losses: tuple[float, ...]
    is_paused: bool


def next_to_resume(trials: Mapping[int, Climber], reduction: int) -> int | None:
    """Return the paused trial to resume now; None if a new point is due.

    This is asynchronous successive halving (Li et al. 2020, arXiv:1810.05934, algorithm 2): from
    the highest rung down, a paused trial continues if it is among the best 1 / ``reduction`` of all
    trials that reached its rung. The best of several continues first. A loss that is not finite
    never does.
    """
    highest = max((len(each.losses) for each in trials.values()), default=0)
    for rung in reversed(range(highest)):
        reached = [
            (each.losses[rung], number)
            for number, each in trials.items()
            if len(each.losses) > rung and not math.isnan(each.losses[rung])
        ]
        for loss, number in sorted(reached)[: len(reached) // reduction]:
            trial = trials[number]
            if trial.is_paused and len(trial.losses) == rung + 1 and math.isfinite(loss):
                return number
    return None


def rungs_text(fidelity: Fidelity, trials: Iterable[Climber]) -> str:
    """Return how many trials reached each rung: ``40 to 3 epochs, 13 to 9, 4 to 27, 1 to 81``."""
    sizes = [len(each.losses) for each in trials]
    reached = [sum(size > rung for size in sizes) for rung in range(len(fidelity.rungs))]
    first, *others = [f"{n} to {step}" for n, step in zip(reached, fidelity.rungs, strict=True)]
    return ", ".join([f"{first} {fidelity.name}", *others])

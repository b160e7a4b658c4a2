"""Multi-fidelity: the rungs at which trials pause, and which paused trial to resume."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

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
        goal: It continues to this number of rungs, whatever its losses are.
    """

    losses: tuple[float, ...]
    is_paused: bool
    goal: int = 0


def next_to_resume(trials: Mapping[int, Climber], fidelity: Fidelity) -> int | None:
    """Return the paused trial to resume now; None if a new point is due.

    Trials below their goal continue first. Then this is asynchronous successive halving (Li et al.
    2020, arXiv:1810.05934, algorithm 2) at the rungs where comparing saves time: from the highest
    one down, a paused trial continues if it is among the best 1 / ``reduction`` of all trials that
    reached its rung. The best of several continues first. A loss that is not finite never does.
    """
    onward = [n for n, t in trials.items() if t.is_paused and len(t.losses) < t.goal]
    if onward:
        return min(onward)
    last = len(fidelity.rungs)
    known = [trials[number] for number in sorted(trials)]
    for rung in reversed(range(lowest_trusted(complete_losses(known, fidelity), last), last)):
        reached = [
            (each.losses[rung], number)
            for number, each in trials.items()
            if len(each.losses) > rung and not math.isnan(each.losses[rung])
        ]
        for loss, number in sorted(reached)[: len(reached) // fidelity.reduction]:
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


_HEDGE, _LARGE_HEDGE = 0.1, 0.5
"""Share of the steps for trials that train to the end whatever their values are; the second one if
some rungs do not predict the last."""

_PRIOR, _PRIOR_TRIALS = 0.75, 3.0  # expected share of pairs in the same order, and its weight
_CHANCE = 0.5
_MOST = 100  # number of complete trials that are compared, the last ones


def lowest_trusted(curves: Sequence[Sequence[float]], n_rungs: int) -> int:
    """Return the lowest rung, from 0, whose order predicts the order at the last one.

    It does if more than half of the pairs of good trials are in the same order at both. A rung
    predicts at least as well as those below it: estimates that contradict this are averaged
    (isotonic regression).

    Args:
        curves: Values of each complete trial at all rungs, in the order of the trials; NaN where
            one is unknown.
        n_rungs: Number of rungs.
    """
    share = _isotonic([_agreement(curves[-_MOST:], rung) for rung in range(n_rungs - 1)])
    return sum(each < _CHANCE for each in share)


def _agreement(curves: Sequence[Sequence[float]], rung: int) -> float:
    """Return the share of pairs of trials in the same order at ``rung`` and at the last one.

    One of each pair is among the best third at the last rung, and the other one among the best two
    thirds: that a rung finds the worst trials does not help. It is as if three more trials had
    three quarters of their pairs in the same order.
    """
    known = sorted((c[-1], c[rung]) for c in curves if math.isfinite(c[-1] + c[rung]))
    n_best = max(2, math.ceil(len(known) / 3))
    some = known[: max(4, 2 * n_best)]
    pairs = [
        good[1] < other[1]
        for i, good in enumerate(some[:n_best])
        for other in some[i + 1 :]
        if good[0] < other[0] and good[1] != other[1]
    ]
    weight = len(some) - 1 if pairs else 0
    share = sum(pairs) / len(pairs) if pairs else 0.0
    return (_PRIOR * _PRIOR_TRIALS + share * weight) / (_PRIOR_TRIALS + weight)


def _isotonic(values: Sequence[float]) -> list[float]:
    """Return the nearest values that do not descend."""
    n = len(values)
    return [
        max(min(fmean(values[i : j + 1]) for j in range(k, n)) for i in range(k + 1))
        for k in range(n)
    ]


def goal_of(trial: Climber, others: Iterable[Climber], fidelity: Fidelity) -> int:
    """Return the number of rungs to which a trial continues whatever its losses are.

    At its first rung it is all of them if less than a tenth of the steps are for such trials, so
    that some with poor early losses train to the end; half of the steps if some rungs do not
    predict the last one. Otherwise it is the lowest rung that predicts the last one. It is 0 if the
    last loss is not finite.

    Args:
        trial: A trial that reached a rung.
        others: All other trials that reached any, in their order.
        fidelity: The rungs.
    """
    passed, last = len(trial.losses), len(fidelity.rungs)
    if not math.isfinite(trial.losses[-1]):
        return 0
    if trial.goal > passed or passed >= last:
        return trial.goal
    known = list(others)
    lowest = lowest_trusted(complete_losses(known, fidelity), last)
    if passed == 1:
        hedged = sum(fidelity.high for each in known if each.goal == last)
        total = sum(fidelity.rungs[max(len(c.losses), c.goal) - 1] for c in known)
        if hedged + fidelity.high / 2 < (_LARGE_HEDGE if lowest else _HEDGE) * total:
            return last
    return max(trial.goal, lowest + 1)


def complete_losses(trials: Iterable[Climber], fidelity: Fidelity) -> list[tuple[float, ...]]:
    """Return the losses of the trials that reached the last rung."""
    return [each.losses for each in trials if len(each.losses) == len(fidelity.rungs)]

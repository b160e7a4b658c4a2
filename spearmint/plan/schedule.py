"""Simulate many searches on nodes at the same time, as arrays; no I/O."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spearmint.plan.durations import Draws, DurationModel

SEARCHES = 400
"""Simulated searches of a plan."""
_DAY_S = 86400.0
_BLOCK = 32  # trials between two checks whether the limit is reached
_NORMAL_90 = 1.2816


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """The time that passes between trials.

    Attributes:
        boot: Seconds from the order of a node to its first trial: 80 % are between these two.
        gap_s: Seconds between two trials of one GPU.
        losses_per_day: Of a spot node.
    """

    boot: tuple[float, float] = (240.0, 600.0)
    gap_s: float = 3.0
    losses_per_day: float = 0.5


@dataclass(frozen=True, slots=True)
class Chances:
    """The random numbers of all plans: rows differ by their nodes, not by chance.

    Attributes:
        seconds: Of each trial, shape ``(searches, trials)``.
        is_lost: Compared with the probability that a trial loses its node, same shape.
        lost_at: Share of the trial that had passed then, same shape.
        boots: Standard normal numbers of the same shape, for boots of nodes.
    """

    seconds: Draws
    is_lost: Draws
    lost_at: Draws
    boots: Draws

    @classmethod
    def draw(
        cls, model: DurationModel, trials: int, *, seed: int = 1, searches: int = SEARCHES
    ) -> Chances:
        """Draw searches of ``trials`` trials."""
        random = np.random.default_rng(seed)
        shape = (searches, trials)
        seconds = model.draw(random, searches, trials)
        return cls(seconds, random.random(shape), random.random(shape), random.normal(size=shape))


@dataclass(frozen=True, slots=True)
class Course:
    """How far the searches are after each trial: seconds of shape ``(trials, searches)``.

    Attributes:
        starts: When the last trial starts.
        ends: When all trials have ended.
    """

    starts: Draws
    ends: Draws


def simulate(
    chances: Chances,
    delays: Delays,
    *,
    nodes: int,
    per_node: int,
    at_once: int,
    speed: float = 1.0,
    spot: bool = False,
    until_s: float = np.inf,
) -> Course:
    """Return the course of all searches, as far as most can get until ``until_s``.

    A trial starts on the first free GPU. A trial that loses its node restarts when the
    replacement has booted.
    """
    searches, most = chances.seconds.shape
    rows = np.arange(searches)
    free = _boots(chances, delays, nodes, per_node, at_once)
    seconds = _with_losses(chances, delays, chances.seconds / speed, spot) + delays.gap_s
    starts, ends = np.empty((most, searches)), np.empty((most, searches))
    last = np.zeros(searches)
    for number in range(most):
        place = free.argmin(axis=1)
        starts[number] = free[rows, place]
        end = starts[number] + seconds[:, number]
        free[rows, place] = end
        last = np.maximum(last, end)
        ends[number] = last
        if number % _BLOCK == 0 and np.median(last) > until_s:
            return Course(starts[: number + 1], ends[: number + 1])
    return Course(starts, ends)


def _boots(chances: Chances, delays: Delays, nodes: int, per_node: int, at_once: int) -> Draws:
    """Return when each GPU is ready first; all GPUs of a node at the same time."""
    searches = len(chances.boots)
    random = np.random.default_rng(nodes)
    ready = _boot_seconds(random.normal(size=(searches, nodes)), delays)
    return np.repeat(ready, per_node, axis=1)[:, :at_once]


def _boot_seconds(normal: Draws, delays: Delays) -> Draws:
    low, high = np.log(delays.boot)
    return np.asarray(np.exp((low + high) / 2 + normal * (high - low) / (2 * _NORMAL_90)))


def _with_losses(chances: Chances, delays: Delays, seconds: Draws, spot: bool) -> Draws:
    """Return the seconds with the time of a lost attempt and of the boot of another node."""
    if not spot:
        return seconds
    probability = -np.expm1(-seconds * delays.losses_per_day / _DAY_S)
    lost = seconds * chances.lost_at + _boot_seconds(chances.boots, delays)
    return np.where(chances.is_lost < probability, seconds + lost, seconds)

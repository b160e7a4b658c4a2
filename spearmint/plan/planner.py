"""Find for each number of nodes how many trials fit until a deadline and into a budget; no I/O."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from spearmint.budget.budget import END_S
from spearmint.plan.durations import Draws, DurationModel
from spearmint.plan.lessons import worth
from spearmint.plan.offers import NodeOffer
from spearmint.plan.schedule import Chances, Course, Delays, simulate

MOST_TRIALS = 1000
"""Trials of a plan if the user does not limit them."""
_SURE = 0.9
_LONGEST = 0.95  # of durations, as the budget of a search reserves


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the user asks for.

    Attributes:
        by_s: Seconds until the deadline; infinite without one.
        budget: Dollars of all nodes; infinite without a limit.
        trials: New trials, of all regions together.
        finished: Trials that have ended before.
        regions: Number of regions; 1 without any.
        gpus: GPUs of one trial, or its share of one; 0 for one trial on each node.
        at_once: Most trials at the same time; None for no limit.
        master: Dollars per hour of a master that runs no trials; 0 if it is one of the nodes.
    """

    by_s: float = math.inf
    budget: float = math.inf
    trials: int = MOST_TRIALS
    finished: int = 0
    regions: int = 1
    gpus: float = 1.0
    at_once: int | None = None
    master: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A plan: nodes of one kind, and what they probably reach.

    Attributes:
        at_once: Trials at the same time.
        trials: New trials until the end.
        end_s, end_p90_s: Seconds until the last trial has ended; half of the searches, or 90 %,
            end earlier.
        dollars, dollars_p90: Cost of all nodes until then, in the same sense.
        worth: What a trial is worth, as a share of one that runs alone.
        complete: Whether these are all wanted trials.
    """

    offer: NodeOffer
    nodes: int
    at_once: int
    trials: int
    end_s: float
    end_p90_s: float
    dollars: float
    dollars_p90: float
    worth: float
    complete: bool

    @property
    def lessons(self) -> float:
        """Trials one after another that teach as much."""
        return self.trials * self.worth


@dataclass(slots=True)
class Planner:
    """Plans with the same simulated searches for all nodes."""

    wanted: Wanted
    model: DurationModel
    delays: Delays = field(default_factory=Delays)
    seed: int = 1
    _chances: Chances = field(init=False)

    def __post_init__(self) -> None:
        self._chances = Chances.draw(self.model, max(self.wanted.trials, 1), seed=self.seed)

    def rows(self, offers: Iterable[NodeOffer], nodes: Sequence[int]) -> list[Row]:
        """Return the plans with at least one trial, the one that teaches most first.

        Of plans that teach as much, the cheaper one is first. More nodes than trials are omitted.
        """
        found = [self.row(offer, count) for offer in offers for count in nodes]
        return sorted(
            (row for row in found if row is not None),
            key=lambda row: (-round(row.lessons), row.dollars_p90, row.end_p90_s, row.nodes),
        )

    def row(self, offer: NodeOffer, nodes: int) -> Row | None:
        """Return the plan of some nodes; None if no trial fits, or if nodes would be idle."""
        wanted, per_node = self.wanted, self._per_node(offer)
        room = min(wanted.at_once or nodes * per_node, nodes * per_node)
        if wanted.trials < 1 or room <= (nodes - 1) * per_node:
            return None
        if nodes > 1 and (nodes - 1) * per_node >= wanted.trials:
            return None
        course = simulate(
            self._chances,
            self.delays,
            nodes=nodes,
            per_node=per_node,
            at_once=room,
            speed=offer.speed,
            spot=offer.spot,
            until_s=min(wanted.by_s, self._seconds_of_budget(offer, nodes)),
        )
        trials = self._fitting(course, offer, nodes)
        return self._row(course, offer, nodes, room, trials) if trials else None

    def _per_node(self, offer: NodeOffer) -> int:
        gpus = self.wanted.gpus
        return max(math.floor(offer.gpus / gpus + 1e-9), 0) if gpus else 1

    def per_hour(self, offer: NodeOffer, nodes: int) -> float:
        """Return dollars per hour of a cluster."""
        if self.wanted.master:
            return offer.dollars * nodes + self.wanted.master
        return offer.per_hour(nodes)

    def _seconds_of_budget(self, offer: NodeOffer, nodes: int) -> float:
        rate = self.per_hour(offer, nodes)
        return self.wanted.budget / rate * 3600 if rate else math.inf

    def _fitting(self, course: Course, offer: NodeOffer, nodes: int) -> int:
        """Return the most trials that 90 % of the searches finish in time and in the budget.

        A search with a budget starts its last trial only if a long trial would fit.
        """
        seconds = self._chances.seconds / offer.speed
        longest = np.quantile(seconds, _LONGEST, axis=1)
        paid = np.maximum(course.ends, course.starts + longest) + END_S
        fits = _quantiles(course.ends, _SURE) <= self.wanted.by_s
        fits &= _quantiles(paid, _SURE) <= self._seconds_of_budget(offer, nodes)
        return int(np.flatnonzero(fits)[-1]) + 1 if fits.any() else 0

    def _row(self, course: Course, offer: NodeOffer, nodes: int, room: int, trials: int) -> Row:
        wanted = self.wanted
        middle, late = np.quantile(course.ends[trials - 1], (0.5, _SURE))
        hourly = self.per_hour(offer, nodes)
        at_once = min(room, trials)
        in_region = (wanted.finished + trials) / wanted.regions
        return Row(
            offer=offer,
            nodes=nodes,
            at_once=at_once,
            trials=trials,
            end_s=float(middle),
            end_p90_s=float(late),
            dollars=hourly * (float(middle) + END_S) / 3600,
            dollars_p90=hourly * (float(late) + END_S) / 3600,
            worth=worth(in_region, at_once / wanted.regions),
            complete=trials == wanted.trials,
        )


def _quantiles(values: Draws, share: float) -> Draws:
    """Return the quantile of each row."""
    return np.asarray(np.quantile(values, share, axis=1))

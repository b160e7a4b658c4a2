"""Find for each number of nodes how many trials fit until a deadline and into a budget; no I/O."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from spearmint.budget.budget import END_S
from spearmint.plan.durations import LONGEST_S, Draws, DurationModel
from spearmint.plan.lessons import worth
from spearmint.plan.offers import NodeOffer
from spearmint.plan.schedule import SEARCHES, Chances, Delays, simulate

MOST_TRIALS = 1000
"""Trials of a plan if the user does not limit them."""
_MOST_DRAWS, _FEWEST = 2_000_000, 100
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
        at_once: Most trials at the same time; None for no limit. With ``batch``, most jobs.
        batch: Trials of each job, which share its time.
        master: Dollars per hour of a master that runs no trials; 0 if it is one of the nodes.
    """

    by_s: float = math.inf
    budget: float = math.inf
    trials: int = MOST_TRIALS
    finished: int = 0
    regions: int = 1
    gpus: float = 1.0
    at_once: int | None = None
    batch: int = 1
    master: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A plan: nodes of one kind, and what they probably reach.

    Attributes:
        at_once: Trials at the same time; with ``batch``, jobs.
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


@dataclass(frozen=True, slots=True)
class Curve:
    """Seconds for each number of trials, whatever the nodes cost.

    Attributes:
        end, end_p90: When half of the searches, or 90 %, have ended.
        paid_p90: For how long 90 % need money, as a search with a budget reserves it.
    """

    end: Draws
    end_p90: Draws
    paid_p90: Draws


@dataclass(slots=True)
class Planner:
    """Plans with the same simulated searches for all nodes."""

    wanted: Wanted
    model: DurationModel
    delays: Delays = field(default_factory=Delays)
    seed: int = 1
    _chances: Chances = field(init=False)
    _curves: dict[tuple[object, ...], Curve] = field(default_factory=dict)

    def __post_init__(self) -> None:
        trials = max(self.wanted.trials, 1)
        searches = max(min(SEARCHES, _MOST_DRAWS // trials), _FEWEST)
        self._chances = Chances.draw(self.model, trials, seed=self.seed, searches=searches)

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
        is_idle = room <= (nodes - 1) * per_node or (nodes - 1) * per_node >= wanted.trials
        if is_idle or wanted.trials < 1:
            return None
        curve = self._curve(nodes, per_node, room, offer.speed, offer.spot)
        fits = curve.end_p90 <= min(wanted.by_s, LONGEST_S)
        fits &= curve.paid_p90 <= self._seconds_of_budget(offer, nodes)
        if not fits.any():
            return None
        return self._row(curve, offer, nodes, room, int(np.flatnonzero(fits)[-1]) + 1)

    def _curve(self, nodes: int, per_node: int, room: int, speed: float, spot: bool) -> Curve:
        key = (nodes, per_node, room, speed, spot)
        if key not in self._curves:
            course = simulate(
                self._chances,
                self.delays,
                nodes=nodes,
                per_node=per_node,
                at_once=room,
                speed=speed,
                spot=spot,
                until_s=self.wanted.by_s,
            )
            # A search with a budget starts its last trial only if a long one would fit.
            longest = np.quantile(self._chances.seconds / speed, _LONGEST, axis=1)
            paid = np.maximum(course.ends, course.starts + longest) + END_S
            middle, late = np.quantile(course.ends, (0.5, _SURE), axis=1)
            self._curves[key] = Curve(middle, late, np.quantile(paid, _SURE, axis=1))
        return self._curves[key]

    def _per_node(self, offer: NodeOffer) -> int:
        gpus = self.wanted.gpus
        if not gpus:
            return 1
        return math.floor(min(offer.gpus / gpus + 1e-9, max(self.wanted.trials, 1)))

    def per_hour(self, offer: NodeOffer, nodes: int) -> float:
        """Return dollars per hour of a cluster."""
        if self.wanted.master:
            return offer.dollars * nodes + self.wanted.master
        return offer.per_hour(nodes)

    def _seconds_of_budget(self, offer: NodeOffer, nodes: int) -> float:
        rate = self.per_hour(offer, nodes)
        return self.wanted.budget / rate * 3600 if rate else math.inf

    def _row(self, curve: Curve, offer: NodeOffer, nodes: int, room: int, trials: int) -> Row:
        wanted = self.wanted
        middle, late = float(curve.end[trials - 1]), float(curve.end_p90[trials - 1])
        hourly = self.per_hour(offer, nodes)
        at_once = min(room, trials)
        in_region = (wanted.finished + trials) / wanted.regions
        return Row(
            offer=offer,
            nodes=nodes,
            at_once=at_once,
            trials=trials,
            end_s=middle,
            end_p90_s=late,
            dollars=hourly * (middle + END_S) / 3600,
            dollars_p90=hourly * (late + END_S) / 3600,
            worth=worth(in_region, at_once * wanted.batch / wanted.regions),
            complete=trials == wanted.trials,
        )

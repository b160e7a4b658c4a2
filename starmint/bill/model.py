"""Runs of nodes and prices; all times are in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRun:
    """One run of an instance, from its start to its stop or end.

    Attributes:
        id: Of the instance.
        seen: When it was last seen running.
        end: When it stopped or ended; None while it runs, and if the time is unknown.
        gone: When it was first seen not to run; None while it runs, and if ``end`` is known.
        free: Whether AWS bills nothing for this run.
    """

    id: str
    alias: str
    type: str
    zone: str
    spot: bool
    start: datetime
    seen: datetime
    end: datetime | None = None
    gone: datetime | None = None
    free: bool = False

    @property
    def runs(self) -> bool:
        """Whether it ran when it was last looked at."""
        return self.end is None and self.gone is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars per hour of a type from ``time`` on; ``zone`` is empty for the on-demand price."""

    type: str
    zone: str
    time: datetime
    dollars: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """Runs of the nodes of one cluster, with their prices.

    Attributes:
        updated: When the nodes were last looked at.
    """

    cluster: str
    region: str
    updated: datetime
    runs: tuple[NodeRun, ...] = ()
    prices: tuple[Price, ...] = ()

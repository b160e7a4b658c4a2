"""The max_hourly_cost of a template during a launch; no I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starcluster.launch.plan import Planned

_ROUNDING = 1e-6


class Budget:
    """What the nodes of a cluster cost, and whether more is allowed."""

    def __init__(self, limit: float | None, on_demand: Mapping[str, float]) -> None:
        """Begin without nodes.

        Args:
            limit: Dollars per hour; None for no limit.
            on_demand: Dollars per hour by type.
        """
        self._limit, self._on_demand = limit, on_demand
        self._dollars: dict[str, float] = {}  # per hour, by alias

    def add(self, alias: str, dollars: float) -> None:
        """Set the dollars per hour of a node; "" stands for all nodes from before the launch."""
        self._dollars[alias] = dollars

    def affords(self, batch: Sequence[Planned], instance_type: str) -> bool:
        """Return whether ``batch`` on demand is within the limit; if so, set what it costs."""
        if self._limit is None:
            return True
        price = self._on_demand.get(instance_type)
        if price is None:
            return False
        dollars = self._dollars | dict.fromkeys((node.alias for node in batch), price)
        if sum(dollars.values()) > self._limit + _ROUNDING:
            return False
        self._dollars = dollars
        return True

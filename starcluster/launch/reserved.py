"""The capacity reservation of a template: its checks, and which nodes run in it; no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from starcluster.aws.model import Place
from starcluster.aws.reservations import Reservation
from starcluster.config.account import names_reservation
from starcluster.config.template import Template

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-using.html
CLEARED = timedelta(minutes=30)
"""Before the end of a Capacity Block, AWS terminates its instances for this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reserved:
    """The reservations that ``capacity_reservation`` means; empty without the key.

    Attributes:
        reference: The value of the key.
    """

    reference: str = ""
    found: tuple[Reservation, ...] = ()

    def takes(self, instance_type: str) -> bool:
        """Return whether nodes of a type run in a reservation."""
        return any(each.type == instance_type for each in self.found)

    @property
    def zones(self) -> set[str]:
        """Return the zones of the reservations."""
        return {each.zone for each in self.found}

    @property
    def prepaid(self) -> set[str]:
        """Return the instance types that run in a Capacity Block."""
        return {each.type for each in self.found if each.block}

    def target(self, instance_type: str, *, spot: bool) -> str:
        """Return what a launch of a type names: a reservation, a group, open, none or nothing."""
        if spot or (names_reservation(self.reference) and not self.takes(instance_type)):
            return ""
        return self.reference

    def usable(self, places: Sequence[Place], instance_type: str) -> tuple[Place, ...]:
        """Return the places where nodes of a type can run in a reservation, if they must."""
        if not self.takes(instance_type):
            return tuple(places)
        zones = {each.zone for each in self.found if each.type == instance_type}
        return tuple(
            place
            for place in places
            if place.instance_type == instance_type and place.zone in zones
        )

    def lines(self, types: Iterable[str], now: datetime) -> Iterator[str]:
        """Yield a line about each reservation for nodes of ``types``, master included."""
        nodes = Counter(types)
        for each in self.found:
            if not nodes[each.type]:
                continue
            kind = "Capacity Block" if each.block else "Capacity reservation"
            line = f"{kind} {each.id}: {each.left} of {each.total} {each.type} left in {each.zone}"
            if each.end and each.block:
                clear = each.end - CLEARED
                line += (
                    f", paid in advance.\nWARNING: it ends at {_utc(each.end)}. AWS terminates its "
                    f"nodes from {_utc(clear)} on, in {_hours(clear - now)}."
                )
            elif each.end:
                line += f", ends at {_utc(each.end)}."
            yield line
        for name, left in self._left().items():
            if self.reference.startswith("arn:") and 0 < left < nodes[name]:
                count = nodes[name] - left
                yield f"{count} x {name} do not fit into the group: AWS runs them on demand"

    def _left(self) -> Counter[str]:
        left: Counter[str] = Counter()
        for each in self.found:
            left[each.type] += each.left
        return left


def problems(
    template: Template, reserved: Reserved | None, subnet_zones: Sequence[str], now: datetime
) -> Iterator[str]:
    """Yield what prevents the nodes of ``template`` from running in its reservations now.

    Args:
        subnet_zones: Zones where nodes can be.
    """
    name = template.capacity_reservation
    if not names_reservation(name):
        return
    if reserved is None or not reserved.found:
        yield (
            f"no capacity reservation in {name}" if ":" in name else f"no such reservation: {name}"
        )
        return
    kinds = [template.type_of_master(), *template.types_of_nodes()]
    nodes = Counter(kind.instance_type for kind in kinds)
    used = [each for each in reserved.found if nodes[each.type]]
    if not used:
        have = ", ".join(sorted({each.type for each in reserved.found}))
        yield f"{name} is for {have}, but the nodes are {', '.join(nodes)}"
    for each in used:
        yield from (f"{each.id} {text}" for text in _unusable(each, now))
        if each.block and name.startswith("arn:"):
            yield f"{each.id} is a Capacity Block: set capacity_reservation to its id"
        if each.zone not in subnet_zones:
            yield f"{each.id} is in {each.zone}, but the nodes are in {', '.join(subnet_zones)}"
        if not name.startswith("arn:") and each.left < nodes[each.type]:
            text = f"{each.left} of its {each.total} {each.type} left, {nodes[each.type]} nodes"
            yield f"{each.id} has {text} need it"


def _unusable(each: Reservation, now: datetime) -> Iterator[str]:
    if each.start and (each.state == "scheduled" or each.start > now):
        yield f"begins at {_utc(each.start)}, in {_hours(each.start - now)}: start the cluster then"
    elif each.state != "active":
        yield f"is {each.state}"
    elif each.block and each.end and now >= each.end - CLEARED:
        yield f"ends at {_utc(each.end)}: AWS terminates its nodes already"
    if each.tenancy != "default":
        yield f"is for {each.tenancy} instances"
    if "windows" in each.platform.lower():
        yield f"is for {each.platform}"


def _utc(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"


def _hours(span: timedelta) -> str:
    minutes = max(int(span.total_seconds() // 60), 0)
    return f"{minutes // 60} h {minutes % 60} min" if minutes < 72 * 60 else f"{span.days} days"
